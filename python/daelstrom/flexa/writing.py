# SPDX-License-Identifier: Apache-2.0
"""Versions on their way to names: what `FlexA.put` and `FlexA.open` write through."""

from __future__ import annotations

import dataclasses
import errno
import io
import os
import stat
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._turns import Turns
from .._writer import bytes_of
from .errors import Conflict, Lost, Unavailable, Uncertain
from .folders import Link, check_leaf
from .keys import FileKeys
from .manifest import Signed
from .portions import Cutter
from .store import Store

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer

    from .files import FlexA

__all__ = ["FlexaWriter", "Putting", "Written", "feed", "parts_of", "writable"]

_CHUNK = 8 << 20  # plaintext that is read at a time
Progress = Callable[[int], Any]


@dataclasses.dataclass(frozen=True)
class Written:
    """A version that counts. `missing`: stores that lack some of it, or of the folders that name it, until `repair`."""

    name: str
    version: int
    size: int
    missing: tuple[str, ...] = ()

    def but(self, missing: Iterable[Store]) -> Written:
        """With stores that lack something more."""
        return dataclasses.replace(self, missing=tuple(dict.fromkeys((*self.missing, *(one.url for one in missing)))))


def parts_of(name: str) -> list[str]:
    """Of a path, whose beginning is the root whether it begins with a stroke or not."""
    return [check_leaf(part) for part in name.split("/") if part not in ("", ".")]


def writable(keys: FileKeys, name: str) -> None:
    if not keys.can_write:
        raise PermissionError(errno.EACCES, "this may be read here, and not written", name)


def feed(cutter: Cutter, source: Any) -> None:
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "this is no regular file", os.fspath(source))
            feed(cutter, file)
    elif hasattr(source, "read"):
        while data := source.read(_CHUNK):
            cutter.write(memoryview(data))
        if data is None:  # a pipe that does not block has not ended
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    else:
        with bytes_of(source) as view:
            for at in range(0, len(view), _CHUNK):
                cutter.write(view[at : at + _CHUNK])


class Putting:
    """A version on its way to a name."""

    def __init__(self, flexa: FlexA, name: str, exclusive: bool, progress: Progress | None, *, parents: bool = False) -> None:
        self._flexa, self._name = flexa, name
        self._missing: set[Store] = set()  # what folders say of it
        if parents and "/" in name.strip("/"):
            try:
                at = flexa._at(name)
            except FileNotFoundError:
                flexa._mkdir("/".join(parts_of(name)[:-1]), True, True, self._missing)
                at = flexa._at(name)
        else:
            at = flexa._at(name)
        self._at = at
        if at.there and exclusive:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        if at.there and at.kind == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        self._base: Signed | None = None
        self._instead = b""  # an entry that leads nowhere any more
        if at.there:
            self.keys = at.keys
            writable(self.keys, name)
            try:
                self._base = flexa._client.current(self.keys)
            except Lost:
                again = flexa._at(name)
                if again.link is None or at.link is None or again.link.verify != at.link.verify:
                    raise Conflict(errno.EEXIST, "somebody else has changed what is there meanwhile", name) from None
                if not again.link.leaving:
                    raise
                self._instead = again.link.verify  # it was removed by the name that it was given since
        if self._base is None:
            writable(at.parent(), name)
            self._number = bytearray(FileKeys.new_number())
            self.keys = FileKeys.of_number(self._number)
        self.cutter = flexa._client.cutter(self.keys, self._base, progress)

    @staticmethod
    def create(flexa: FlexA, folder: FileKeys, leaf: str, source: Any) -> tuple[Link, Written]:
        """A new file, for a name that it does not have yet."""
        number = FileKeys.new_number()
        keys, client = FileKeys.of_number(number), flexa._client
        cutter = client.cutter(keys, None)
        try:
            feed(cutter, source)
        except BaseException:
            cutter.discard()
            raise
        made = client.commit(keys, cutter, None)
        done = Written(leaf, made.manifest.version, made.manifest.size).but(cutter.missing)
        return Link.to("file", number, folder, keys, made), done

    def discard(self) -> None:
        self.cutter.discard()

    def commit(self) -> Written:
        client = self._flexa._client
        made = client.commit(self.keys, self.cutter, self._base)
        done = Written(self._at.name, made.manifest.version, made.manifest.size).but(self.cutter.missing)
        if self._at.folder is None:
            return done
        if self._base is not None:
            self._list(made)
            return done.but(self._missing)
        folder, leaf, name = self._at.folder, self._at.leaf, self._name
        link = Link.to("file", bytes(self._number), folder, self.keys, made)

        def add(links: dict[str, Link]) -> None:
            if leaf in links and links[leaf].verify not in (link.verify, self._instead):
                raise Conflict(errno.EEXIST, "somebody else has made a file of this name meanwhile", name)
            links[leaf] = link

        try:
            self._flexa._editor.edit(folder, add, missing=self._missing)
        except (Conflict, Unavailable, FileNotFoundError):  # for certain: it has no name
            client.remove(self.keys)
            raise
        return done.but(self._missing)

    def _list(self, made: Signed) -> None:
        """What listings say of it. That it is still there is asked too: a version of a file that somebody has removed
        is nobody's."""
        leaf, old = self._at.leaf, self._at.link
        assert old is not None and self._at.folder is not None

        def change(links: dict[str, Link]) -> None:
            there = links.get(leaf)
            if there is None or there.verify != old.verify:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._name)
            if there.version < made.manifest.version:
                links[leaf] = there.with_version(made)

        try:
            self._flexa._editor.edit(self._at.folder, change, missing=self._missing)
        except FileNotFoundError:
            said = "it was written, and somebody else has removed or moved it meanwhile"
            raise Uncertain(errno.ENOENT, said, self._name) from None
        except (Conflict, Unavailable, Uncertain):
            pass  # it is written; listings will know its size when it is written again


class FlexaWriter(Turns, io.BufferedIOBase):
    """A file that is written from its beginning to its end. It counts when it is closed, or not at all: not after an
    exception in its `with` block or in a call of its own, nor if it is never closed.

    *Threads*: any number, in turn. *close() during use* waits for them. *Children of fork()* write nothing, and leave
    the parent's file alone.
    """

    _putting: Putting | None = None
    _theirs = _failed = False

    def __init__(self, putting: Putting, name: str, mode: str) -> None:
        self.name, self.mode = name, mode
        self.written: Written | None = None
        self._begin_turns()
        self._at = 0
        self._putting = putting

    def writable(self) -> bool:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        return True

    def tell(self) -> int:
        self._open()
        return self._at

    def _open(self) -> Putting:
        if self._theirs:
            raise ValueError("this file is the parent process's; it is written there")
        if self._putting is None:
            raise ValueError("I/O operation on closed file.")
        return self._putting

    def write(self, data: Buffer, /) -> int:
        with bytes_of(data) as view, self._turn():
            putting = self._open()
            try:
                putting.cutter.write(view)
            except BaseException:
                self._failed = True
                self._throw_away()
                raise
            self._at += len(view)
            return len(view)

    def discard(self) -> None:
        """Closes without a file: nothing of it is left."""
        with self._turn():
            self._throw_away()

    def close(self) -> None:
        with self._turn():
            if self._putting is not None and not self._theirs:
                putting, self._putting = self._putting, None
                try:
                    self.written = putting.commit()
                finally:
                    super().close()
                return
            super().close()
            if self._failed:
                self._failed = False  # said once
                raise OSError(errno.EIO, "a write of this file has failed, and nothing of it is there", self.name)

    def _throw_away(self) -> None:
        putting, self._putting = self._putting, None
        if putting is not None and not self._theirs:
            putting.discard()
        super().close()

    def _in_child(self) -> None:
        super()._in_child()
        self._theirs = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if self._putting is not None:
            try:
                self._throw_away()
            except Exception:  # noqa: S110  nobody is there to hear it; repair collects what is left
                pass
