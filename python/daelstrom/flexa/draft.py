# SPDX-License-Identifier: Apache-2.0
"""Files that are written through a mount: programs write where they like and read it back; what is there when they
close becomes a version, whole."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _core
from ..modes import crypt

if TYPE_CHECKING:
    from .files import FlexA

__all__ = ["Draft", "Spool"]

_PAGE, _SECTOR = 64 << 10, 4096
_IN_MEMORY = 1 << 20
_STREAMED = 4 << 20  # from this size on it goes to the stores as it is written
_CHUNK = 8 << 20


class Spool:
    """Bytes at any place, in memory or in a file without a name, there in AES-256-XTS under a key that nobody else has
    and that goes with it. One thread at a time."""

    def __init__(self, folder: str | None = None) -> None:
        self.size = 0
        self._folder = folder
        self._memory: bytearray | None = bytearray()
        self._file = -1
        self._key: _core.Key | None = None
        self._hot, self._page, self._changed = -1, bytearray(), False  # the page that was used last

    def _to_disk(self) -> None:
        assert self._memory is not None
        held, self._memory = self._memory, None
        folder = self._folder or tempfile.gettempdir()
        try:
            self._file = os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
        except OSError:  # a file system that cannot
            self._file, name = tempfile.mkstemp(dir=folder)
            os.unlink(name)
        secret = bytearray(os.urandom(64))
        self._key = _core.Key.xts(secret)
        _core.wipe(secret)
        self._put(0, memoryview(held))
        _core.wipe(held)

    def _crypt(self, direction: Any, page: int, data: Any) -> bytearray:
        assert self._key is not None
        out = bytearray(_PAGE)
        crypt("xts", direction, self._key, data, sector=_SECTOR, first_sector=page * (_PAGE // _SECTOR), out=out)
        return out

    def _settle(self) -> None:
        if self._changed:
            sealed = self._crypt("encrypt", self._hot, self._page)
            if os.pwrite(self._file, sealed, self._hot * _PAGE) != _PAGE:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._changed = False

    def _turn_to(self, page: int) -> bytearray:
        if page != self._hot:
            self._settle()
            sealed = os.pread(self._file, _PAGE, page * _PAGE)
            # Beyond its end, and where nothing was ever written: zeros, which no sealed page is but by chance.
            empty = len(sealed) < _PAGE or not any(sealed)
            self._page = bytearray(_PAGE) if empty else self._crypt("decrypt", page, sealed)
            self._hot = page
        return self._page

    def _put(self, at: int, data: memoryview) -> None:
        while len(data):
            page, skip = divmod(at, _PAGE)
            part = data[: _PAGE - skip]
            self._turn_to(page)[skip : skip + len(part)] = part
            self._changed = True
            at, data = at + len(part), data[len(part) :]

    def write(self, at: int, data: Any) -> None:
        with memoryview(data) as view:
            end = at + len(view)
            if self._memory is not None and end > _IN_MEMORY:
                self._to_disk()
            if self._memory is not None:
                if len(self._memory) < end:
                    self._memory += bytes(end - len(self._memory))
                self._memory[at:end] = view
            else:
                self._put(at, view)
            self.size = max(self.size, end)

    def read(self, at: int, size: int) -> bytes:
        size = max(0, min(size, self.size - at))
        if self._memory is not None:
            return bytes(self._memory[at : at + size])
        parts = []
        while size:
            page, skip = divmod(at, _PAGE)
            part = bytes(self._turn_to(page)[skip : skip + size])
            parts.append(part)
            at, size = at + len(part), size - len(part)
        return b"".join(parts)

    def truncate(self, size: int) -> None:
        if self._memory is not None and size > _IN_MEMORY:
            self._to_disk()
        if self._memory is not None:
            if size < len(self._memory):
                del self._memory[size:]
            else:
                self._memory += bytes(size - len(self._memory))
        elif size < self.size:
            page, skip = divmod(size, _PAGE)
            if skip:
                self._turn_to(page)[skip:] = bytes(_PAGE - skip)
                self._changed = True
                self._settle()
            elif self._hot >= page:
                self._hot, self._changed = -1, False
            if self._hot > page:
                self._hot, self._changed = -1, False
            os.ftruncate(self._file, (page + bool(skip)) * _PAGE)
        self.size = size

    def close(self) -> None:
        if self._memory is not None:
            _core.wipe(self._memory)
        _core.wipe(self._page)
        self._memory, self._page, self._hot, self._changed = bytearray(), bytearray(), -1, False
        self.size, self._key = 0, None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        if hasattr(self, "_file") and self._file >= 0:
            self.close()


class Draft:
    """One file that is being written, by any number of descriptors.

    What comes in order goes to the stores as it comes, beside being kept for who reads or changes it; up to `most`
    bytes are kept. Other orders are kept, and go when it is committed. What is changed in place is the version that was
    there when it was opened, or the change is refused.

    *Threads*: any number, in turn. *close() during use* waits for them. *Children of fork()*: a mount has none.
    """

    def __init__(self, flexa: FlexA, name: str, *, new: bool, folder: str | None, most: int) -> None:
        self.name, self.references, self.lock = name, 0, threading.RLock()
        self._flexa, self._most = flexa, most
        self._spool = Spool(folder)
        self.dirty = new  # differs from what the name leads to
        self.new = new  # the name leads to nothing yet
        self._writer: Any = None
        self._order, self._kept = True, True  # all came in order; all of it is kept
        self._reader: Any = None  # of what is there, and was not taken over yet
        self.stood: tuple[str, int] | None = None  # the file and version that this was made of
        self._seen = False  # and was read
        self.nameless = False
        self.failed: BaseException | None = None
        self.size, self.mtime = 0, time.time()
        if not new:
            self._reader = flexa.open(name, "rb")
            opened = self._reader._raw.open_source()
            self.size, self.mtime = opened.size, opened.manifest.time
            self.stood = (opened._keys.name, opened.manifest.version)

    def _load(self) -> None:
        """What was there, before the first change of it."""
        if self._reader is None:
            return
        if self.size > self._most:
            raise OSError(errno.EFBIG, "a file of this size is written anew, not changed", self.name)
        for at in range(0, self.size, _CHUNK):
            self._spool.write(at, self._there(at, min(_CHUNK, self.size - at)))
        self._order = self.size == 0
        self._forget()

    def _there(self, at: int, size: int) -> bytes:
        size = max(0, min(size, self.size - at))
        data = bytes(self._reader.read_at(at, size))
        if len(data) != size:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.name)
        return data

    def _forget(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def read(self, at: int, size: int) -> bytes:
        with self.lock:
            if self._reader is not None:
                self._seen = True
                return self._there(at, size)
            if not self._kept:
                raise OSError(errno.EFBIG, "a file of this size is read once it is closed", self.name)
            return self._spool.read(at, size)

    def write(self, at: int, data: Any) -> int:
        """At its end where `at` is negative."""
        with self.lock:
            self._check()
            self._load()
            at = self.size if at < 0 else at
            end = at + len(data)
            if self.nameless:  # it goes nowhere, but must be there to be read
                if end > self._most:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), self.name)
                self._stop_streaming()
            in_order = self._order and at == self.size
            if not self._kept and not in_order or self._kept and end > self._most and not in_order:
                raise OSError(errno.EFBIG, "a file of this size is written in order", self.name)
            with self._for_good():
                if not in_order:
                    self._stop_streaming()
                if self._kept and end > self._most:
                    self._stream()
                    self._kept = False
                    self._spool.close()
                if self._kept:
                    self._spool.write(at, data)
                if in_order and not self.nameless and (self._writer is not None or end >= _STREAMED):
                    if self._writer is None:
                        self._stream(but=len(data))
                    self._writer.write(data)
            self.size, self.dirty, self.mtime = max(self.size, end), True, time.time()
            return len(data)

    @contextlib.contextmanager
    def _for_good(self) -> Iterator[None]:
        """What fails within, by whatever it is, leaves less than what was told to be written: nothing of it is ever
        committed."""
        try:
            yield
        except BaseException as error:
            self.failed = error
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.discard()
            raise

    def _check(self) -> None:
        if self.failed is not None:
            raise OSError(getattr(self.failed, "errno", None) or errno.EIO, str(self.failed), self.name)

    def _begin(self) -> Any:
        """Of two who make a file of one name, one is told that it is there. What was changed in place must still be
        what it was: the version that is begun follows this very one, or is refused by the stores."""
        writer: Any = self._flexa.open(self.name, "xb" if self.new else "wb")
        putting = writer._putting
        base = putting._base
        now = None if base is None else (putting.keys.name, base.manifest.version)
        if self.stood is not None and now != self.stood:
            writer.discard()
            raise OSError(errno.ESTALE, "somebody else has changed it meanwhile", self.name)
        return writer

    def _stream(self, but: int = 0) -> None:
        """Begins to send it, with what is kept less the last bytes."""
        if self._writer is None:
            self._writer = self._begin()
            self._send(self._writer, self._spool.size - but)

    def _send(self, writer: Any, size: int) -> None:
        for at in range(0, size, _CHUNK):
            writer.write(self._spool.read(at, min(_CHUNK, size - at)))

    def _stop_streaming(self) -> None:
        self._order = False
        if self._writer is not None:
            self._writer.discard()
            self._writer = None

    def anew(self) -> None:
        """By whoever opens it to write all of it: what was there, if nobody has looked at it here, is of no matter."""
        with self.lock:
            self._check()
            if self._reader is not None and not self._seen:
                self.stood = None
            self.truncate(0)

    def _begin_anew(self) -> None:
        self._forget()
        if not self._kept:
            with self._for_good():
                self._stop_streaming()
            self._spool.close()
            self._kept = True

    def truncate(self, size: int) -> None:
        with self.lock:
            self._check()
            if size == self.size:
                return
            if size == 0:
                self._begin_anew()
            self._load()
            if size > self._most or not self._kept:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), self.name)
            with self._for_good():
                self._stop_streaming()
                self._spool.truncate(size)
            self._order = size == 0
            self.size, self.dirty, self.mtime = size, True, time.time()

    @property
    def readable(self) -> bool:
        """Whether it has what is read of it; otherwise the stores have it, unless it is being written."""
        return self._kept or self.dirty

    def orphan(self) -> None:
        """Something else has its name, or nothing: what is written goes nowhere."""
        with self.lock:
            if self._writer is not None:
                self._writer.discard()
                self._writer = None
            self.nameless = True

    def renamed(self, name: str) -> None:
        with self.lock:
            if self._writer is not None and self._kept:
                self._stop_streaming()
            self.name = name

    def commit(self) -> None:
        """What is there becomes a version; an error is the caller's, who tells the program that closes."""
        with self.lock:
            self._check()
            if not self.dirty or self.nameless:
                return
            with self._for_good():
                writer: Any = self._writer
                self._writer = None
                if writer is None:
                    if not self._kept:
                        raise OSError(errno.EIO, "what was written is not here any more", self.name)
                    writer = self._begin()
                    try:
                        self._send(writer, self.size)
                    except BaseException:
                        writer.discard()
                        raise
                file = writer._putting.keys.name
                self._order = False  # what follows is another version
                writer.close()
                if writer.written is None:
                    raise OSError(errno.EIO, "it was thrown away", self.name)
                self.stood = (file, writer.written.version)
            self.dirty = self.new = False

    @property
    def version(self) -> int:
        return 0 if self.stood is None else self.stood[1]

    def close(self) -> None:
        with self.lock:
            if self._writer is not None:
                self._writer.discard()
                self._writer = None
            self._forget()
            self._spool.close()
