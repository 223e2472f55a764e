# SPDX-License-Identifier: Apache-2.0
"""Folders: files whose content says what is in them. An entry has what it takes to read what it names; what it takes
to write that is encrypted once more, for those who may write the folder."""

from __future__ import annotations

import base64
import dataclasses
import errno
import json
import os
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import _core
from .client import Client
from .errors import Conflict, FlexaError
from .keys import FileKeys
from .manifest import Malformed, Signed
from .portions import Cutter
from .store import Store

__all__ = ["Editor", "Folder", "Link", "check_leaf"]

_MOST = 256 << 20  # bytes of a folder
_TRIES = 30
_KEPT = 64  # folders that were read last


@dataclasses.dataclass(frozen=True)
class Link:
    """What a name leads to. `number` is encrypted; `leaving`: it has another name already, or is about to."""

    kind: str
    verify: bytes
    public: bytes
    read: bytes
    number: bytes
    size: int = 0
    time: float = 0.0
    version: int = 1
    leaving: str = ""

    @staticmethod
    def to(kind: str, number: bytes, folder: FileKeys, keys: FileKeys, signed: Signed) -> Link:
        made = Link(kind, keys.verify, keys.public, keys.read_key(), _seal_number(folder, keys.verify, number))
        return made.with_version(signed)

    def with_version(self, signed: Signed) -> Link:
        manifest = signed.manifest
        return dataclasses.replace(self, size=manifest.size, time=manifest.time, version=manifest.version)

    def number_of(self, folder: FileKeys) -> bytes:
        key = folder.entries_key()
        if key is None:
            raise PermissionError("this folder may be read here, and not written: its write key is not known")
        return _core.AESGCM(key).decrypt(self.number[:12], self.number[12:], _bound(self.verify))

    def keys(self, folder: FileKeys) -> FileKeys:
        """All of them for who may write the folder, else those that read."""
        if not folder.can_write:
            return FileKeys(self.verify, self.public, self.read)
        made = FileKeys.of_number(self.number_of(folder))
        if made.verify != self.verify:
            raise Malformed("an entry's number is not of the file that it names")
        return made

    def below(self, old: FileKeys, new: FileKeys) -> Link:
        """The same in another folder."""
        return dataclasses.replace(self, number=_seal_number(new, self.verify, self.number_of(old)), leaving="")


def _bound(verify: bytes) -> bytes:
    return b"daelstrom flexa entry 1" + verify


def _seal_number(folder: FileKeys, verify: bytes, number: bytes) -> bytes:
    key = folder.entries_key()
    if key is None:
        raise PermissionError("this folder may be read here, and not written: its write key is not known")
    nonce = os.urandom(12)
    return nonce + _core.AESGCM(key).encrypt(nonce, number, _bound(verify))


def check_leaf(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name or len(name.encode("utf-8", "surrogateescape")) > 255:
        raise ValueError(f"{name!r} is no name of a file")
    return name


@dataclasses.dataclass(frozen=True)
class Folder:
    """What stood in a folder at one version. `removed`: nothing comes into it any more."""

    links: dict[str, Link]
    removed: bool = False

    def encode(self) -> bytes:
        def text(data: bytes) -> str:
            return base64.b64encode(data).decode()

        entries = {
            name: {"k": link.kind[0], "v": text(link.verify), "p": text(link.public), "r": text(link.read),
                   "n": text(link.number), "s": link.size, "t": link.time, "i": link.version,
                   **({"l": link.leaving} if link.leaving else {})}
            for name, link in self.links.items()
        }  # fmt: skip
        return json.dumps({"format": 1, "removed": self.removed, "entries": entries}, separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> Folder:
        kinds = {"f": "file", "d": "directory"}
        try:
            whole = json.loads(data)
            if whole["format"] != 1:
                raise ValueError(f"format {whole['format']}")
            links = {}
            for name, one in whole["entries"].items():
                verify, public, read, number = (base64.b64decode(one[part]) for part in "vprn")
                links[check_leaf(name)] = Link(kinds[one["k"]], verify, public, read, number, int(one["s"]), float(one["t"]),
                                               int(one["i"]), str(one.get("l", "")))  # fmt: skip
            return Folder(links, bool(whole["removed"]))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise FlexaError(f"this is no folder: {error}") from None


Change = Callable[[dict[str, Link]], Any]


class _Wanted:
    def __init__(self, change: Change, remove: bool) -> None:
        self.change, self.remove = change, remove
        self.done = False
        self.answer: Any = None
        self.missing: set[Store] = set()  # primaries without the version that has it
        self.error: BaseException | None = None


class Editor:
    """Reads folders, and changes them: what several threads want of one goes into one version of it. What another
    client has changed meanwhile is looked at, and the change made again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._turn = threading.Condition()
        self._waiting: dict[str, list[_Wanted]] = {}
        self._busy: set[str] = set()
        self._known: OrderedDict[bytes, Folder] = OrderedDict()

    def read(self, keys: FileKeys) -> Folder:
        return self.of(keys, self._client.current(keys))

    def of(self, keys: FileKeys, signed: Signed) -> Folder:
        """What stood in it at one version."""
        with self._turn:
            folder = self._known.get(signed.digest)
            if folder is not None:
                self._known.move_to_end(signed.digest)
                return folder
        opened = self._client.opened(keys, signed)
        if opened.size > _MOST:
            raise FlexaError(f"a folder of {opened.size} bytes; there are at most {_MOST}")
        folder = Folder.decode(opened.read(0, opened.size))
        with self._turn:
            self._known[signed.digest] = folder
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return folder

    def create(self, keys: FileKeys, missing: set[Store] | None = None) -> Signed:
        made, lack = self._write(keys, Folder({}), None)
        if missing is not None:
            missing |= lack
        return made

    def _write(self, keys: FileKeys, folder: Folder, base: Signed | None) -> tuple[Signed, set[Store]]:
        """A version, and the primaries that lack it."""
        lack: set[Store] = set()

        def feed(to: Cutter) -> None:
            nonlocal lack
            lack = to.missing
            to.write(memoryview(folder.encode()))

        return self._client.write(keys, feed, base), lack

    def edit(self, keys: FileKeys, change: Change, *, remove: bool = False, missing: set[Store] | None = None) -> Any:
        """Has `change` made to a folder's entries; what it returns. It raises before it changes anything, and may be
        called again. With `remove` the folder takes no changes after this one. To `missing` the primaries come that
        lack the version that was made."""
        wanted, name = _Wanted(change, remove), keys.name
        with self._turn:
            self._waiting.setdefault(name, []).append(wanted)
            while name in self._busy and not wanted.done:
                self._turn.wait()
            if not wanted.done:
                self._busy.add(name)
        if not wanted.done:
            group: list[_Wanted] = []
            try:
                with self._turn:
                    group = self._waiting.pop(name, [])
                self._make(keys, group)
            except BaseException as error:
                for one in group:
                    if not one.done:
                        one.error = error
            finally:
                with self._turn:
                    for one in group:
                        one.done = True
                    self._busy.discard(name)
                    self._turn.notify_all()
        if wanted.error is not None:
            raise wanted.error
        if missing is not None:
            missing |= wanted.missing
        return wanted.answer

    def _make(self, keys: FileKeys, group: list[_Wanted]) -> None:
        for attempt in range(_TRIES):
            base = self._client.current(keys)
            folder = self.of(keys, base)
            links, removed, changed = dict(folder.links), folder.removed, False
            for one in group:
                one.error = None
                try:
                    if removed:
                        raise FileNotFoundError(errno.ENOENT, "the folder was removed")
                    one.answer = one.change(links)
                    removed, changed = removed or one.remove, True
                except BaseException as error:
                    one.error = error
            if not changed:
                return
            made = Folder(links, removed)
            if not removed and made == folder:
                return
            try:
                lack = self._write(keys, made, base)[1]
                for one in group:
                    one.missing = lack
                return
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
            time.sleep(random.uniform(0.0, min(1.0, 0.02 * 2**attempt)))
