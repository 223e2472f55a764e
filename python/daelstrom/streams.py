# SPDX-License-Identifier: Apache-2.0
"""Sealed data that is no file of this machine: in memory, and through any file object, a socket's or a pipe's as well."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import Engine, Identities, Recipients, SealedKeys
from ._reader import check_memory
from ._turns import Turns
from ._writer import SealedWriter, Stream, bytes_of
from .exceptions import FormatError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["StreamReader", "open_bytes", "open_stream", "seal", "seal_stream"]

_AHEAD = 8 << 20  # bytes of a stream that are opened at a time
_BUFFERED = 64 << 10


def seal(data: Any, **how: Any) -> bytes:
    """Seals all of `data`: `bytes` that `open_bytes`, ``daelstrom open`` and Tink open. `how`: as `seal_stream`."""
    out = io.BytesIO()
    with seal_stream(out, **how) as to:
        to.write(data)
    return out.getvalue()


def open_bytes(sealed: Any, **how: Any) -> bytes:
    """The plaintext of what `seal` made, all of it verified. `how`: as `open_stream`. Raises `InvalidTag`, `FormatError`."""
    with bytes_of(sealed) as view, open_stream(io.BytesIO(view), **how) as file:
        return file.read()


def seal_stream(
    raw: Any,
    *,
    key: SealedKeys | Buffer | None = None,
    keyset: str | Buffer | None = None,
    recipients: Recipients | str | Buffer | Iterable[str] | None = None,
    passphrase: str | Buffer | None = None,
    aad: Buffer = b"",
    segment: int | str | None = None,
    engine: Engine | None = None,
) -> SealedWriter:
    """A writer whose sealed stream goes to `raw`, which has ``write()``, as it is made; `raw` stays open. Only `close`
    ends the stream: after an exception `raw` has a beginning, which does not open as a whole. Arguments: as
    `daelstrom.open`."""
    from . import files

    envelope, keys = files.sealing(key, keyset, recipients, passphrase, segment)
    return SealedWriter(Stream(raw), getattr(raw, "name", repr(raw)), "wb", keys, aad, engine, envelope=envelope)


def open_stream(
    raw: Any,
    *,
    key: SealedKeys | Buffer | None = None,
    keyset: str | Buffer | None = None,
    identities: Identities | str | Buffer | Iterable[str] | None = None,
    passphrase: str | Buffer | None = None,
    aad: Buffer = b"",
    segment: int | str | None = None,
    engine: Engine | None = None,
) -> io.BufferedReader:
    """A reader of the sealed stream that `raw` (which has ``read(size)``) gives from here to its end; `raw` stays open.
    What it hands out is verified; that the stream is whole is known when ``b""`` comes. Arguments: as `daelstrom.open`.
    A child of `fork()` gets `ValueError` where it reads on: the stream, and what was read ahead of it, are its parent's.
    """
    from . import files

    first = b""
    if identities is not None or passphrase is not None:
        first = _some(raw, 22)
        if not _core.is_envelope(first):
            raise ValueError("the stream has no envelope: it was sealed with a key, and takes key= or keyset=")
        size = 0
        while size == 0:
            more = _some(raw, 4096)
            first += more
            size, _ = _core.envelope_read(first)
            if size == 0 and (not more or len(first) > files.MOST_ENVELOPE):
                raise FormatError("the stream is cut off within its envelope, or holds no sealed data")
        keys = _core.envelope_open(files.secrets_of(identities, passphrase), first, files.segment_size(segment))
        first = first[size:]
    else:
        keys = files.sealed_keys(key, keyset, segment)
    return _Buffered(StreamReader(raw, keys, bytes(aad), first, engine))


def _some(raw: Any, size: int) -> bytes:
    """`size` bytes, or fewer at the end."""
    parts: list[bytes] = []
    while size:
        part = raw.read(size)
        if part is None:
            raise BlockingIOError(11, f"{raw!r} has nothing yet; opening takes a file that blocks")
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class StreamReader(Turns, io.RawIOBase):
    """What `open_stream` wraps. A segment is handed out once it is verified, and an end once the last one is.

    After an exception amid a read, an interrupt's too, reading on is a ValueError: a stream does not come twice.

    *Threads*: any number, in turn. *close() during use* waits for the others. *Children of fork()*: the stream is the
    parent's, who reads on; to them reading is a ValueError, and closing ends well.
    """

    def __init__(self, raw: Any, keys: SealedKeys, aad: bytes, first: bytes, engine: Engine | None) -> None:
        self._begin_turns()
        self._raw, self._keys, self._aad, self._engine = raw, keys, aad, engine
        self._opener: _core.SealedOpener | None = None
        self._held = first  # sealed, and not opened yet
        self._at = 0  # of the stream, where `_held` begins
        self._plain, self._skip = b"", 0
        self._ended = self._failed = self._parents = False

    def readable(self) -> bool:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        with self._turn(), memoryview(buffer).cast("B") as view:
            # Unless all goes well: Python's own reader drops what it was given so far where an exception ends a call.
            failed, self._failed = self._failed, True
            if self.closed:
                raise ValueError("I/O operation on closed file.")
            if self._parents:
                raise ValueError("this stream was begun before fork(), and its parent reads on; begin one in each process")
            if failed:
                raise ValueError("an exception ended an earlier read of this stream, and some of it may be lost")
            if len(view) and self._skip == len(self._plain) and not self._ended:
                self._open_more()
            part = self._plain[self._skip : self._skip + len(view)]
            view[: len(part)] = part
            self._skip += len(part)
            self._failed = False
            return len(part)

    def _open_more(self) -> None:
        if self._opener is None:
            head = self._keys.head_size
            self._held += _some(self._raw, max(0, head + 1 - len(self._held)))
            whole = len(self._held) <= head
            self._opener = _core.SealedOpener(self._keys, self._aad, self._held[:head], whole, engine=self._engine)
        segment = self._opener.segment
        # Whole segments, and one byte more, which tells that the last of them is not the stream's.
        size = max(1, _AHEAD // segment) * segment
        self._held += _some(self._raw, max(0, size + 1 - len(self._held)))
        ends = len(self._held) <= size
        sealed = self._held if ends else self._held[:size]
        end = self._at + len(sealed)
        total = self._opener.plain_size(end) if ends else self._opener.plain_size(end + segment)
        begin = 0 if self._at == 0 else self._opener.plain_size(self._at)
        to = total if ends else self._opener.plain_size(end)
        self._plain, self._skip = self._opener.open(begin, to - begin, total, sealed), 0
        self._held, self._at = self._held[len(sealed) :], end
        self._ended = ends

    def _in_child(self) -> None:
        super()._in_child()
        self._parents = True


class _Buffered(Turns, io.BufferedReader):
    """The interpreter's own reader, whose lock and buffer a thread of the parent may have been amid when it forked: in
    a child it is begun anew."""

    def __init__(self, raw: StreamReader) -> None:
        self._stream = raw
        io.BufferedReader.__init__(self, raw, _BUFFERED)
        self._begin_turns()

    def readinto(self, buffer: Buffer, /) -> int:
        check_memory(buffer)
        return super().readinto(buffer)

    def readinto1(self, buffer: Buffer, /) -> int:
        check_memory(buffer)
        return super().readinto1(buffer)

    def _in_child(self) -> None:
        super()._in_child()
        self._stream._in_child()
        if not self.closed:
            io.BufferedReader.__init__(self, self._stream, _BUFFERED)
