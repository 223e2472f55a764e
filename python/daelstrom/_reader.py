# SPDX-License-Identifier: Apache-2.0
"""Sealed streams that are read as files, wherever their bytes are: `daelstrom.open` and `daelstrom.fs` make them."""

from __future__ import annotations

import io
import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from . import _core
from ._turns import Turns
from .exceptions import InvalidTag

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

__all__ = ["SealedReader", "Source"]

Output = TypeVar("Output")

# What is opened at a time for reads that go on where the last one ended, and for the first one.
MOST_AHEAD, FIRST_AHEAD = 8 << 20, 256 << 10
# What is handed out in small pieces by the interpreter's own reader, which does so quickest.
_BUFFERED = 64 << 10


class Source(Protocol):
    """One version of one sealed stream: `_core.SealedFile`, or an object of a store. Any number of threads at once."""

    @property
    def size(self) -> int: ...
    def around(self, at: int, size: int) -> tuple[int, int]: ...
    def read(self, at: int, size: int) -> bytes: ...
    def read_into(self, at: int, out: Buffer) -> None: ...
    def check_size(self) -> None: ...


class _Raw(Turns, io.RawIOBase):
    """Reads ahead, and knows what of the end was verified.

    Whatever is remembered stands with what it is of, in one tuple that one assignment replaces: an interrupt may come
    anywhere, and what goes is wiped once nobody can reach it.
    """

    def __init__(self, source: Source, first: int, most: int) -> None:
        self._begin_turns()
        self._source: Source | None = source
        self._size = source.size
        self._first, self._most, self._ahead = first, most, first
        self._at = 0
        self._window: tuple[int, bytearray] = (0, bytearray())
        self.ended = False  # the last segment was verified
        self._from_end = False  # the position follows from a size of which nobody knows yet whether it is true

    def open_source(self) -> Source:
        source = self._source
        if source is None:
            raise ValueError("I/O operation on closed file.")
        return source

    def check_end(self) -> None:
        """Before anybody is told that here the stream ends."""
        if not self.ended:
            self.open_source().check_size()
            self.ended = True

    def readable(self) -> bool:
        self._check_open()
        return True

    def seekable(self) -> bool:
        self._check_open()
        return True

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def tell(self) -> int:
        self.open_source()
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        offset, whence = operator.index(offset), operator.index(whence)
        with self._turn():
            self.open_source()
            base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}
            if whence not in base:
                raise ValueError(f"whence is {whence}; it is 0, 1 or 2")
            at = base[whence] + offset
            if at < 0:
                raise ValueError(f"negative seek position {at}")
            if whence != io.SEEK_CUR:
                self._from_end = whence == io.SEEK_END
            self._at = at
            return at

    def readinto(self, buffer: Buffer, /) -> int:
        check_memory(buffer)
        with self._turn(), memoryview(buffer).cast("B") as view:
            source, at = self.open_source(), self._at
            size = max(0, min(len(view), self._size - at))
            if size == 0 and len(view) != 0:
                self.check_end()
            if size == 0:
                return 0
            begin, cached = self._window
            if not 0 <= at - begin < len(cached):
                if size >= MOST_AHEAD // 2:
                    try:
                        with view[:size] as out:
                            source.read_into(at, out)
                        return self._moved(at + size)
                    except InvalidTag:  # somewhere: what comes before it is handed out first
                        pass
                self._fill(source, at, size)
                begin, cached = self._window
            with memoryview(cached) as known, known[at - begin : at - begin + size] as part:
                view[: len(part)] = part
                return self._moved(at + len(part))

    def readall(self) -> bytes:
        with self._turn():
            source, at = self.open_source(), self._at
            if at >= self._size:
                self.check_end()
                return b""
            out = source.read(at, self._size - at)
            self.ended = True
            self._at = self._size
            return out

    def _moved(self, to: int) -> int:
        if to == self._size:
            self.ended = True
        elif self._from_end:
            self.check_end()
        came, self._at = to - self._at, to
        return came

    def _fill(self, source: Source, at: int, wanted: int) -> None:
        """Opens ahead: more at a time where reads follow each other. Damage ahead is left for whoever gets there."""
        begin, cached = self._window
        follows = len(cached) != 0 and at == begin + len(cached)
        ahead = min(2 * self._ahead, self._most) if follows else self._first
        try:
            made = self._opened(source, at, min(max(wanted, ahead), self._most))
        except InvalidTag:
            made = self._opened(source, at, 1)
        self._ahead = ahead
        self._forget(made)

    def _opened(self, source: Source, at: int, size: int) -> tuple[int, bytearray]:
        begin, size = source.around(at, min(size, self._size - at))
        made = bytearray(size)
        source.read_into(begin, made)
        return begin, made

    def _forget(self, instead: tuple[int, bytearray] = (0, bytearray())) -> None:
        (_, old), self._window = self._window, instead
        if old:
            _core.wipe(old)

    def close(self) -> None:
        if not self.closed:
            with self._turn():
                self._source = None
                self._forget((0, bytearray()))
        super().close()


def check_memory(buffer: Any) -> None:
    """The interpreter's own readers write into arrays of objects too, whose bytes are addresses. The exceptions are
    theirs."""
    try:
        _core.writable(buffer)
    except (BufferError, ValueError) as error:
        raise TypeError(str(error)) from None


class SealedReader(Turns, io.BufferedReader):
    """A sealed stream that is read from anywhere, of one version: what it was when it was opened. If it is replaced
    meanwhile, what is read is still of that version, or an exception says so.

    Whatever is handed out is authentic, an end included: ``b""`` comes only once the last segment is verified.

    After an exception amid a read, an interrupt's too, the position is where it was before: whoever tries again misses
    nothing.

    *Threads*: any number at once; those that move the position take turns. `read_at` and `verify` do not wait.
    *close() during use* waits for calls of other threads that move the position; `read_at` of another thread ends well.
    From within a call of the same thread (a signal handler) it is a RuntimeError.
    *Children of fork()* read on, each with a position of its own; that of a reader in whose call another thread was
    is somewhere within what that call would have read.
    """

    def __init__(
        self, source: Source, name: str | bytes, *, first: int = FIRST_AHEAD, most: int = MOST_AHEAD
    ) -> None:
        self._name = name
        self._layered = self._gap = False
        self._raw = _Raw(source, first, most)
        io.BufferedReader.__init__(self, self._raw, _BUFFERED)
        self._begin_turns()

    def layered(self) -> Self:
        """For text, and what is decompressed. Python's layers drop what they were given so far where an exception ends a
        call of them, and would go on behind it: here nothing more is read then, before somebody seeks."""
        self._layered = True
        return self

    @property
    def name(self) -> str | bytes:
        return self._name

    @property
    def mode(self) -> str:
        return "rb"

    @property
    def size(self) -> int:
        """Bytes of plaintext, as the sealed stream's size tells; authentic once the end is verified."""
        return self._raw._size

    def verify(self) -> None:
        """Verifies the last segment, and with it that nothing was cut off or added. Raises `InvalidTag`."""
        self._raw.open_source().check_size()
        self._raw.ended = True

    def open_into(self, out: Output, *, stream: Any = None) -> Output:
        """All of the plaintext into `out`, as the function `daelstrom.open_into` does."""
        source = self._raw.open_source()
        if isinstance(source, _core.SealedFile):
            source.read_all(out, stream=stream)
        else:
            with memoryview(out) as view:  # type: ignore[arg-type]
                if view.nbytes != source.size:
                    raise ValueError(f"the plaintext has {source.size} bytes, the output {view.nbytes}")
            source.read_into(0, out)  # type: ignore[arg-type]
        self._raw.ended = True
        return out

    def read_at(self, at: int, size: int) -> bytes:
        """`size` bytes from byte `at` on, fewer at the end; the position stays where it is."""
        at, size = operator.index(at), operator.index(size)
        if at < 0 or size < 0:
            raise ValueError("at and size are 0 or more")
        raw = self._raw
        source = raw.open_source()
        if size and at >= raw._size:
            raw.check_end()
        at = min(at, raw._size)
        return source.read(at, min(size, raw._size - at))

    def _whole(self, call: Callable[..., Output], *given: Any) -> Output:
        """The interpreter's own reader drops its buffer, and what it was given so far, where an exception ends a call of
        it; amid a seek it keeps a buffer of elsewhere. Here it is begun anew at the position before."""
        with self._turn():
            raw, at = self._raw, super().tell()
            from_end = raw._from_end
            self._no_gap()
            try:
                self._gap = self._layered
                out = call(*given)
                self._gap = False
                return out
            except BaseException:
                if not self.closed and raw._source is not None:
                    super().seek(0, io.SEEK_END)  # within its buffer it would not move the raw one
                    super().seek(at)
                    raw._from_end = from_end
                raise

    def _no_gap(self) -> None:
        if self._gap:
            raise ValueError("an exception cost this file's text some of what was read: seek() to go on, or open it again")

    def tell(self) -> int:
        # A layer's answer would be a position behind what it has lost.
        self._no_gap()
        return super().tell()

    def read(self, size: int | None = -1, /) -> bytes:
        return self._whole(super().read, size)

    def read1(self, size: int = -1, /) -> bytes:
        return self._whole(super().read1, size)

    def peek(self, size: int = 0, /) -> bytes:
        return self._whole(super().peek, size)

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._whole(super().readline, size)

    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        return self._whole(self._lines, hint)

    def _lines(self, hint: int | None) -> list[bytes]:
        most = 0 if hint is None else operator.index(hint)
        if abs(most) > sys.maxsize:
            raise OverflowError("cannot fit 'int' into an index-sized integer")
        left = most if most > 0 else sys.maxsize
        lines: list[bytes] = []
        while left >= 0 and (line := super().readline()):
            lines.append(line)
            left -= len(line)
        return lines

    def readinto(self, buffer: Buffer, /) -> int:
        check_memory(buffer)
        try:
            return self._whole(super().readinto, buffer)
        except InvalidTag:
            _core.wipe(buffer)
            raise

    def readinto1(self, buffer: Buffer, /) -> int:
        check_memory(buffer)
        return self._whole(super().readinto1, buffer)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with self._turn():
            gap, self._gap = self._gap, False
        try:
            return self._whole(super().seek, offset, whence)
        except BaseException:
            self._gap = gap
            raise

    def close(self) -> None:
        # Not the interpreter's own, which would take its buffer from whoever is in a call of it.
        self._raw.close()

    def _in_child(self) -> None:
        """The interpreter's reader has a lock too, so it is begun anew, at its position."""
        super()._in_child()
        raw = self._raw
        raw._in_child()
        if not self.closed:
            if raw._source is not None:  # nobody was closing it
                raw._at = super().tell()
            io.BufferedReader.__init__(self, raw, _BUFFERED)

    def detach(self) -> NoReturn:
        raise io.UnsupportedOperation("detach")

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(2)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self!r} cannot be pickled: its key would be. Pass its name, and open it there")

    def __repr__(self) -> str:
        return f"<daelstrom.{type(self).__name__} name={self.name!r}{' closed' if self.closed else ''}>"
