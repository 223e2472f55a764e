# SPDX-License-Identifier: Apache-2.0
"""Sealed streams that are written as files, wherever they go: `daelstrom.open` and `daelstrom.fs` make them."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from . import _core
from ._core import Engine, SealedKeys
from ._turns import Turns

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer, Self

__all__ = ["Chunks", "SealedWriter", "Sink", "Text", "bytes_of"]

# Plaintext that is gathered before it is sealed.
_GATHERED = 8 << 20


def bytes_of(data: Any) -> memoryview:
    """The bytes of whatever has some: buffers of every shape and type, and tensors in the host's memory."""
    if type(data) not in (bytes, bytearray):
        data = _core.HostBytes(data)
    return memoryview(data)


class Sink(Protocol):
    """Where a stream goes. `finish` and `appear` are called once; `discard` also after them, and then does nothing to
    what has appeared; nor does it, in a child of fork(), to what is the parent's."""

    def write(self, data: memoryview) -> Any: ...
    def finish(self) -> None: ...
    def appear(self) -> None: ...
    def discard(self) -> None: ...


class SealedWriter(Turns, io.BufferedIOBase):
    """A sealed stream that is written from its beginning to its end. What it makes appears whole when it is closed, or
    not at all: not after an exception in its `with` block or in a call of its own, nor if it is never closed.

    *Threads*: any number; each call's bytes stay together.
    *close() during use* waits for the calls of other threads. From within a call of the same thread (a signal handler)
    it is a RuntimeError.
    *Children of fork()* cannot write or finish it, since nonces would repeat the parent's (ValueError); nothing that
    they do to it changes what the parent writes.
    """

    _sink: Sink | None = None
    _finished = _theirs = False

    def __init__(
        self,
        sink: Sink,
        name: str | bytes,
        mode: str,
        keys: SealedKeys,
        aad: Buffer,
        engine: Engine | None = None,
        *,
        envelope: bytes = b"",
        autocommit: bool = True,
    ) -> None:
        self.name, self.mode, self.autocommit = name, mode, autocommit
        self._begin_turns()
        self._sink = sink
        try:
            self._stream = Chunks(keys, aad, engine)
            if envelope:
                sink.write(memoryview(envelope))
        except BaseException:
            self._throw_away()
            raise

    def writable(self) -> bool:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        return True

    def tell(self) -> int:
        self._open()
        return self._stream.plain

    def write(self, data: Buffer, /) -> int:
        """All of `data`: what has the buffer protocol, of any shape and type, or a tensor in the host's memory."""
        with bytes_of(data) as view, self._turn():
            sink = self._open()
            try:
                self._stream.write(view, sink.write)
            except BaseException:
                self._throw_away()
                raise
            return len(view)

    def discard(self) -> None:
        """Closes without a file: nothing of it is left."""
        with self._turn():
            self._throw_away()

    def close(self) -> None:
        with self._turn():
            if self._sink is not None and not self._finished:
                try:
                    sink = self._open()
                    self._stream.finish(sink.write)
                    sink.finish()
                    self._finished = True
                    if self.autocommit:
                        sink.appear()
                except BaseException:
                    self._throw_away()
                    raise
                if self.autocommit:
                    self._sink = None
            super().close()

    def commit(self) -> None:
        """With ``autocommit=False``, after `close`: what was written appears. Nothing of what was discarded does."""
        with self._turn():
            if self._sink is None:
                return
            try:
                if not self._finished:
                    self._open()
                    raise ValueError(f"{self!r} was not closed before its transaction ended, and is thrown away")
                self._own().appear()
            except BaseException:
                self._throw_away()
                raise
            self._sink = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __enter__(self) -> Self:
        self._open()
        return self

    def __del__(self) -> None:
        self.forgotten()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: one process writes a file")

    def __repr__(self) -> str:
        return f"<daelstrom.{type(self).__name__} name={self.name!r}{' closed' if self.closed else ''}>"

    def _open(self) -> Sink:
        if self._sink is None or self._finished:
            raise ValueError("I/O operation on closed file.")
        return self._own()

    def _own(self) -> Sink:
        assert self._sink is not None
        if self._theirs:
            raise ValueError(f"{self!r} is the parent process's: its nonces would repeat in this child")
        return self._sink

    def forgotten(self) -> None:
        """Nobody has it any more, and nobody closed it."""
        if self._sink is not None:
            if not self._theirs and not self._finished:
                warnings.warn(f"{self!r} was never closed, and is thrown away", ResourceWarning, stacklevel=3)
            self._throw_away()

    def _throw_away(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            try:
                if hasattr(self, "_stream"):
                    self._stream.wipe()
            finally:
                sink.discard()
        super().close()

    def _in_child(self) -> None:
        super()._in_child()
        self._theirs = True


class Text(io.TextIOWrapper):
    """Text that is written. Python's own would close the file after an exception, or when it is forgotten, as if it
    were finished."""

    def __init__(self, writer: Any, encoding: str | None, errors: str | None, newline: str | None) -> None:
        self._writer = writer
        super().__init__(writer, encoding, errors, newline)

    def close(self) -> None:
        if not self.closed:
            try:
                self.flush()
            except BaseException:
                self.discard()
                raise
            super().close()

    def discard(self) -> None:
        """Closes without a file: nothing of it is left."""
        self._writer.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # What is closed is finished, though a transaction may have it yet.
        if hasattr(self, "_writer") and not self._writer.closed:
            self._writer.forgotten()


class Compressed(Turns, io.BufferedIOBase):
    """What is compressed on its way to a sealed writer. fsspec's compressors do not close what they write to, and
    their own ends would end a beginning too. Threads, close() and children of fork(): as `SealedWriter`."""

    def __init__(self, writer: SealedWriter, compress: Any) -> None:
        self._begin_turns()
        self._writer, self._plain = writer, 0
        self._file = compress(writer, mode="w")

    def writable(self) -> bool:
        self._check_open()
        return True

    def write(self, data: Buffer, /) -> int:
        with bytes_of(data) as view, self._turn():
            self._check_open()
            try:
                self._file.write(view)
            except BaseException:
                self._throw_away()
                raise
            self._plain += len(view)
            return len(view)

    def tell(self) -> int:
        self._check_open()
        return self._plain

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def close(self) -> None:
        with self._turn():
            if not self.closed:
                try:
                    self._file.close()
                    self._writer.close()
                except BaseException:
                    self._throw_away()
                    raise
                super().close()

    def discard(self) -> None:
        with self._turn():
            self._throw_away()

    def _throw_away(self) -> None:
        self._writer.discard()
        with contextlib.suppress(Exception):
            self._file.close()  # has nowhere to write any more
        super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def forgotten(self) -> None:
        if not self.closed:
            self._writer.forgotten()
            self._throw_away()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.forgotten()


class Chunks:
    """Plaintext as it comes, made into a sealed stream in chunks of whole segments. One thread at a time, which is for
    whoever has it to see to; its sealer ends in a child of fork()."""

    def __init__(self, keys: SealedKeys, aad: Buffer, engine: Engine | None) -> None:
        self._sealer = _core.Sealer(keys, aad, engine=engine)
        self._segments = max(1, _GATHERED // self._sealer.segment)
        self._gathered, self._have = bytearray(), 0
        self._out = bytearray()
        self.plain = 0  # bytes so far
        self._wanted = self._segments * (self._sealer.segment - 16) - self._sealer.header

    def write(self, view: memoryview, put: Any) -> None:
        size = len(view)
        # The last chunk is not empty: one is sealed when more has come.
        while self._have + len(view) > self._wanted:
            if self._have == 0:
                taken = self._wanted
                self._seal(view[:taken], False, put)
            else:
                taken = self._wanted - self._have
                self._gathered[self._have : self._wanted] = view[:taken]
                self._seal(memoryview(self._gathered)[: self._wanted], False, put)
                self._have = 0
            view = view[taken:]
        if len(self._gathered) < self._have + len(view):
            grown = bytearray(min(self._wanted, max(2 * len(self._gathered), self._have + len(view))))
            grown[: self._have] = memoryview(self._gathered)[: self._have]
            old, self._gathered = self._gathered, grown
            _core.wipe(old)
        self._gathered[self._have : self._have + len(view)] = view
        self._have += len(view)
        self.plain += size

    def finish(self, put: Any) -> None:
        self._seal(memoryview(self._gathered)[: self._have], True, put)
        self.wipe()

    def wipe(self) -> None:
        old, self._gathered, self._have = self._gathered, bytearray(), 0
        _core.wipe(old)

    def _seal(self, plain: memoryview, last: bool, put: Any) -> None:
        room = self._sealer.room(len(plain), last)
        if len(self._out) < room:
            self._out = bytearray(room)
        size = self._sealer.seal(plain, self._out, last)
        self._wanted = self._segments * (self._sealer.segment - 16)
        with memoryview(self._out) as out:
            put(out[:size])


class Stream:
    """A sink that is a file object of somebody's: what was written stays there, and it stays open."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def write(self, data: memoryview) -> None:
        write_all(self._raw, data)

    def finish(self) -> None:
        flush = getattr(self._raw, "flush", None)
        if flush is not None:
            flush()

    def appear(self) -> None:
        pass

    def discard(self) -> None:
        pass


def write_all(raw: Any, data: memoryview) -> None:
    """To file objects that may take a part of what they are given."""
    while len(data):
        took = raw.write(data)
        if took is None or not 0 < took <= len(data):
            if took is None and not isinstance(raw, io.RawIOBase):
                return
            raise BlockingIOError(11, f"{raw!r} takes nothing more; sealing takes a file that blocks")
        data = data[took:]
