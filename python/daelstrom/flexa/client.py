# SPDX-License-Identifier: Apache-2.0
"""Files by their keys, without names: made, read, written anew, removed."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from typing import Any

from .cache import Cache
from .errors import Conflict, Fault, FlexaError, Lost, Unavailable
from .group import Background, Group
from .keys import FileKeys
from .manifest import Signed
from .portions import Ciphertext, Cutter, Opened, homes
from .register import Register, names
from .seen import Seen
from .store import Store

__all__ = ["Client", "replaced"]

Feed = Callable[[Cutter], Any]


def replaced(file: str) -> OSError:
    return OSError(errno.ESTALE, "the file was replaced or removed while it was read; open it again", file)


class Client:
    """Any number of threads. close() waits for copies that are on their way. A child of fork() is refused."""

    def __init__(self, group: Group, seen: Seen, cache: Cache | None, engine: Any) -> None:
        self.group, self.seen, self.cache, self.engine = group, seen, cache, engine
        if seen.said:
            group.faults.append(Fault("", "", seen.said))
        self.background = Background()
        self._lock = threading.Lock()
        self._made: dict[str, Signed] = {}  # of each file, the newest version that is to be settled

    def register(self, keys: FileKeys) -> Register:
        return Register(self.group, keys, self.seen)

    def current(self, keys: FileKeys) -> Signed:
        return self.register(keys).current()

    def opened(self, keys: FileKeys, signed: Signed | None = None) -> Opened:
        signed = signed or self.current(keys)

        def gone() -> Exception:
            """Why no store has a block: there is a newer version by now, or it is lost."""
            newer = self.current(keys)
            if newer.digest != signed.digest:
                return replaced(keys.name)
            return Lost(self.group.why(f"a block of {keys.name} is nowhere unharmed"))

        return Opened(self.group, keys, signed, self.cache, self.engine, gone)

    def cutter(self, keys: FileKeys, base: Signed | None, progress: Callable[[int], Any] | None = None) -> Cutter:
        """What takes the plaintext of the version after `base`, or of a new file."""
        return Cutter(self.group, keys, 1 if base is None else base.manifest.version + 1, self.engine, progress)

    def commit(self, keys: FileKeys, cutter: Cutter, base: Signed | None) -> Signed:
        """Makes a version of what a cutter has got."""
        try:
            history = () if base is None else (base.digest, *base.manifest.history)
            body = cutter.finish(history, time.time()).encode()
            register = self.register(keys)
            made = register.create(body) if base is None else register.write(body, cutter.version)
            cutter.missing |= register.missing
        except (Conflict, Unavailable):  # for certain: nobody will miss the portions
            cutter.discard()
            if base is None:
                self.remove(keys)
            raise
        superseded = base is not None and made.ballot.number == 0
        if not superseded and (base is not None or self.group.secondaries):
            self._settle_later(keys, made)
        return made

    def write(self, keys: FileKeys, feed: Feed, base: Signed | None, progress: Callable[[int], Any] | None = None) -> Signed:
        cutter = self.cutter(keys, base, progress)
        try:
            feed(cutter)
        except BaseException:
            cutter.discard()
            raise
        return self.commit(keys, cutter, base)

    def _settle_later(self, keys: FileKeys, made: Signed) -> None:
        """Threads that write one file come here in any order: the newest version is what is settled."""
        with self._lock:
            waiting = self._made.get(keys.name)
            if waiting is None or waiting.manifest.version < made.manifest.version:
                self._made[keys.name] = made

        def settle() -> None:
            with self._lock:
                newest = self._made.pop(keys.name, None)
            if newest is not None:
                self.settle(keys, newest)

        self.background.add(keys.name, settle)

    def settle(self, keys: FileKeys, made: Signed) -> None:
        """What may wait: replicas, and what a version has made useless. Whoever has made a newer one settles that."""
        for store in self.group.secondaries:
            try:
                self.replicate(keys, made, store)
            except Exception as error:
                if isinstance(error, Lost) and self._is_replaced(keys, made):
                    return
                self.group.note(store, keys.name, error)
        self.register(keys).tidy(made)

    def _is_replaced(self, keys: FileKeys, made: Signed) -> bool:
        """Also by nothing: it was removed."""
        try:
            return self.current(keys).digest != made.digest
        except Lost:
            return True
        except FlexaError:
            return False

    def replicate(self, keys: FileKeys, made: Signed, store: Store) -> None:
        manifest = made.manifest
        there = store.wait(store.ls(keys.name))
        if any(name.version > manifest.version for name in names(there, "m")):
            return  # a store that only says so has itself alone to blame
        source = Ciphertext(self.group, keys, manifest)
        for portion, piece in manifest.pieces() if manifest.inline is None else ():
            name, blocks = manifest.piece_name(portion, piece), manifest.piece(portion, piece)
            if there.get(name, (-1, None))[0] != sum(map(manifest.block_size, blocks)):
                found = source.run(blocks, homes(self.group, portion))
                store.wait(store.put(keys.name, name, b"".join(found[i] for i in blocks)))
        store.wait(store.put(keys.name, made.name, made.raw))

    def remove(self, keys: FileKeys) -> None:
        """From secondaries after what is on its way to them."""

        def away(stores: list[Store]) -> None:
            self.group.each(keys.name, lambda store: store.rm_folder(keys.name), stores)

        with self._lock:
            self._made.pop(keys.name, None)
        away(self.group.primaries)
        if self.group.secondaries:
            self.background.add(keys.name, lambda: away(self.group.secondaries))
        self.seen.forget(keys.name)

    def bury(self, keys: FileKeys) -> None:
        """Of a folder its last version stays, which takes no changes: whoever was about to write it finds that. `repair`
        removes it, when it is old."""
        try:
            register = self.register(keys)
            register.tidy(register.current())
        except FlexaError:  # it takes a little more room
            pass

    def close(self) -> None:
        if self.group.is_parents():
            return
        self.background.drain()
        self.background.close()
        self.group.close()
        self.seen.close()
