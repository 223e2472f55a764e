# SPDX-License-Identifier: Apache-2.0
"""Sealed data as files: `open` reads and writes what `daelstrom seal` makes (docs/format.md), from anywhere and on
all cores; `open_into` opens a whole file into an array or a tensor, on a GPU without plaintext on the host.

What a reader hands out is authentic. That nothing was cut off is known once the last segment is verified: after
reading to the end, after `verify()`, or from the start with ``open(..., verify=True)``.
"""

from __future__ import annotations

import builtins
import io
import os
import stat
import threading
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from . import _core
from ._appear import Appearing
from ._core import Engine, Identities, Recipients, SealedKeys
from .exceptions import FormatError, InvalidTag

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer, Self

__all__ = [
    "Identities",
    "Recipients",
    "SealedKeys",
    "SealedReader",
    "SealedWriter",
    "generate_identity",
    "open",
    "open_into",
]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Output = TypeVar("Output")

# What is opened at a time for reads that go on where the last one ended, and for the first one.
_MOST_AHEAD, _FIRST_AHEAD = 8 << 20, 256 << 10
_MOST_ENVELOPE = 128 << 10
# Plaintext that is gathered before it is sealed.
_GATHERED = 8 << 20


def generate_identity() -> tuple[str, str]:
    """A new secret key (``AGE-SECRET-KEY-1...``) and its recipient (``age1...``), as age has them."""
    return _core.identity_make()


def _bytes(text: str | Buffer) -> Buffer:
    return text.encode() if isinstance(text, str) else text


def _lines(given: str | Buffer | Iterable[str]) -> Buffer:
    """The text of an identity or a recipients file, or its lines."""
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, (list, tuple, set, frozenset)):
        return "\n".join(given).encode()
    return given  # type: ignore[return-value]


def segment_size(segment: int | str | None) -> int:
    """4096, 1048576, "4K" or "1M"; 0 where nothing is said."""
    sizes: dict[int | str | None, int] = {None: 0, "4K": 4096, "1M": 1 << 20, 4096: 4096, 1 << 20: 1 << 20}
    if segment not in sizes:
        raise ValueError(f"segment is {segment!r}; it is '4K' or '1M'")
    return sizes[segment]


def sealed_keys(key: SealedKeys | Buffer | None, keyset: str | Buffer | None, segment: int | str | None) -> SealedKeys:
    """What `key=`, `keyset=` and `segment=` say together."""
    if (key is None) == (keyset is None):
        raise TypeError("give key= (16 or 32 bytes) or keyset= (Tink's JSON), one of the two")
    if keyset is not None or isinstance(key, SealedKeys):
        if segment is not None:
            raise TypeError("segment= goes with the bytes of a key; a keyset says its own")
        return SealedKeys.of_keyset(_bytes(keyset)) if keyset is not None else key  # type: ignore[return-value]
    assert key is not None
    return SealedKeys.of_key(key, segment_size(segment))


@overload
def open(
    path: Path,
    mode: Literal["rb"] = "rb",
    *,
    key: SealedKeys | Buffer | None = None,
    keyset: str | Buffer | None = None,
    identities: Identities | str | Buffer | Iterable[str] | None = None,
    passphrase: str | Buffer | None = None,
    aad: Buffer = b"",
    segment: int | str | None = None,
    verify: bool = False,
    engine: Engine | None = None,
) -> SealedReader: ...


@overload
def open(
    path: Path,
    mode: Literal["wb", "xb"],
    *,
    key: SealedKeys | Buffer | None = None,
    keyset: str | Buffer | None = None,
    recipients: Recipients | str | Buffer | Iterable[str] | None = None,
    passphrase: str | Buffer | None = None,
    aad: Buffer = b"",
    segment: int | str | None = None,
    engine: Engine | None = None,
) -> SealedWriter: ...


@overload
def open(
    path: Path,
    mode: Literal["rt", "wt", "xt"],
    *,
    encoding: str = "utf-8",
    errors: str | None = None,
    newline: str | None = None,
    key: SealedKeys | Buffer | None = None,
    keyset: str | Buffer | None = None,
    identities: Identities | str | Buffer | Iterable[str] | None = None,
    recipients: Recipients | str | Buffer | Iterable[str] | None = None,
    passphrase: str | Buffer | None = None,
    aad: Buffer = b"",
    segment: int | str | None = None,
    verify: bool = False,
    engine: Engine | None = None,
) -> io.TextIOWrapper: ...


def open(
    path: Path,
    mode: str = "rb",
    *,
    key: SealedKeys | Buffer | None = None,
    keyset: str | Buffer | None = None,
    identities: Identities | str | Buffer | Iterable[str] | None = None,
    recipients: Recipients | str | Buffer | Iterable[str] | None = None,
    passphrase: str | Buffer | None = None,
    aad: Buffer = b"",
    segment: int | str | None = None,
    verify: bool = False,
    engine: Engine | None = None,
    encoding: str = "utf-8",
    errors: str | None = None,
    newline: str | None = None,
) -> SealedReader | SealedWriter | io.TextIOWrapper:
    """Opens a sealed file: ``"rb"`` to read it, ``"wb"`` to make or replace it, ``"xb"`` only if it is not there yet;
    with ``"t"`` in place of ``"b"`` as text, in UTF-8 unless `encoding` says otherwise.

    Exactly one says what opens it: `key` (16 or 32 bytes, or `SealedKeys`), `keyset` (Tink's JSON), `identities`
    (age's secret keys) or `recipients`, `passphrase`. `aad` is bound to the file and not stored in it. `segment` is
    "1M" (the default) or "4K", for files that are read in small ranges. `verify` checks the end first.

    A file that is written appears when it is closed, whole; after an exception in its `with` block, or if it is never
    closed, nothing of it is left.
    """
    if mode not in ("rb", "wb", "xb", "rt", "wt", "xt"):
        raise ValueError(f"mode is {mode!r}; sealed files take 'rb', 'wb' and 'xb', and 'rt', 'wt' and 'xt' for text")
    text, mode = mode[1] == "t", mode[0] + "b"
    if not text and (encoding != "utf-8" or errors is not None or newline is not None):
        raise ValueError("encoding, errors and newline are for text: mode 'rt', 'wt' or 'xt'")
    others = {"identities": identities, "recipients": recipients, "passphrase": passphrase}
    ways = [name for name, given in {"key": key, "keyset": keyset, **others}.items() if given is not None]
    if len(ways) != 1:
        raise TypeError(f"one of key=, keyset=, identities=, recipients= and passphrase= opens a file; given: {ways}")
    (way,) = ways
    if mode == "rb":
        if way == "recipients":
            raise TypeError("recipients= seals; opening takes identities=")
        reader = SealedReader(path, key, keyset, identities, passphrase, aad, segment, verify, engine)
        return io.TextIOWrapper(reader, encoding, errors, newline) if text else reader
    if way == "identities":
        raise TypeError("identities= opens; sealing takes recipients=")
    if verify:
        raise TypeError("verify= is for reading")
    writer = SealedWriter(path, mode, key, keyset, recipients, passphrase, aad, segment, engine)
    return _Text(writer, encoding, errors, newline) if text else writer


def open_into(path: Path, out: Output, *, stream: Any = None, **how: Any) -> Output:
    """Opens all of a file into `out` and returns it: what has the buffer protocol, or a tensor, on the host or a GPU.

    `out` has the plaintext's size in bytes (`SealedReader.size`). Into a GPU's memory, ciphertext is copied and opened
    there. When it returns, all of the file is verified; if it does not, `out` is wiped, or as it was where already the
    first segment was refused. `how`: as `open`.
    """
    with open(path, "rb", **how) as file:
        return file.open_into(out, stream=stream)


class SealedReader(io.BufferedIOBase):
    """A sealed file that is read from anywhere. Any number of threads at once."""

    mode = "rb"
    _file: _core.SealedFile | None = None
    _cache = bytearray()

    def __init__(
        self,
        path: Path,
        key: SealedKeys | Buffer | None,
        keyset: str | Buffer | None,
        identities: Identities | str | Buffer | Iterable[str] | None,
        passphrase: str | Buffer | None,
        aad: Buffer,
        segment: int | str | None,
        verify: bool,
        engine: Engine | None,
    ) -> None:
        self.name = os.fspath(path)
        self._lock = threading.Lock()
        self._at = 0
        self._cache, self._cache_at, self._ahead = bytearray(), 0, _FIRST_AHEAD
        with builtins.open(path, "rb", buffering=0) as raw:
            status = os.fstat(raw.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise io.UnsupportedOperation(f"{self.name!r} is not a regular file; a sealed one is read from anywhere")
            start = raw.read(22)
            enveloped = _core.is_envelope(start)
            begin = 0
            if enveloped != (identities is not None or passphrase is not None):
                raise ValueError(
                    f"{self.name!r} was sealed for recipients or with a passphrase: open it with identities= or passphrase="
                    if enveloped
                    else f"{self.name!r} has no envelope: it was sealed with a key, and takes key= or keyset="
                )
            if enveloped:
                start = os.pread(raw.fileno(), _MOST_ENVELOPE, 0)
                begin, _ = _core.envelope_read(start)
                if begin == 0:
                    raise FormatError(f"{self.name!r} is cut off within its envelope, or holds no sealed data")
                keys = _core.envelope_open(_secrets(identities, passphrase), start, segment_size(segment))
            else:
                keys = sealed_keys(key, keyset, segment)
            self._file = _core.SealedFile(
                keys, aad, raw.fileno(), begin, status.st_size - begin, engine=engine
            )
        self._size = self._file.size
        if verify:
            self._file.check_size()

    @property
    def size(self) -> int:
        """Bytes of plaintext, as the file's size tells; authentic once the end is verified."""
        return self._size

    def verify(self) -> None:
        """Verifies the last segment, and with it that nothing was cut off or added. Raises `InvalidTag`."""
        self._open().check_size()

    def open_into(self, out: Output, *, stream: Any = None) -> Output:
        """All of the plaintext into `out`, as the function `open_into` does."""
        self._open().read_all(out, stream=stream)
        return out

    def read_at(self, at: int, size: int) -> bytes:
        """`size` bytes from byte `at` on, fewer at the end; the position stays where it is."""
        if at < 0 or size < 0:
            raise ValueError("at and size are 0 or more")
        at = min(at, self._size)
        return self._open().read(at, min(size, self._size - at))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._open()
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._open()
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}
        if whence not in base:
            raise ValueError(f"whence is {whence}; it is 0, 1 or 2")
        at = base[whence] + offset
        if at < 0:
            raise ValueError(f"negative seek position {at}")
        self._at = at
        return at

    def read(self, size: int | None = -1, /) -> bytes:
        with self._lock:
            return self._read(self._size if size is None or size < 0 else size)

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(_FIRST_AHEAD if size < 0 else size)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        with self._lock:
            file = self._open()
            view = memoryview(buffer).cast("B")
            size = max(0, min(len(view), self._size - self._at))
            if size >= _MOST_AHEAD // 2 and not self._cached(self._at):
                file.read_into(self._at, view[:size])
                self._at += size
            else:
                view[:size] = self._read(size)
            return size

    def readinto1(self, buffer: Buffer, /) -> int:
        return self.readinto(buffer)

    def peek(self, size: int = 0, /) -> bytes:
        """Some bytes from the position on, without moving it."""
        with self._lock:
            if self._at >= self._size:
                return b""
            if not self._cached(self._at):
                self._fill(1)
            begin = self._at - self._cache_at
            return bytes(self._cache[begin : begin + max(size, 8192)])

    def close(self) -> None:
        if not self.closed:
            self._drop()
            self._file = None
        super().close()

    def __repr__(self) -> str:
        return f"<daelstrom.SealedReader name={self.name!r}{' closed' if self.closed else ''}>"

    def _open(self) -> _core.SealedFile:
        if self._file is None:
            raise ValueError("I/O operation on closed file.")
        return self._file

    def _cached(self, at: int) -> bool:
        return self._cache_at <= at < self._cache_at + len(self._cache)

    def _drop(self) -> None:
        _core.wipe(self._cache)
        self._cache = bytearray()

    def _fill(self, wanted: int) -> None:
        """Opens ahead: more at a time where reads follow each other. Damage ahead is left for whoever gets there."""
        follows = len(self._cache) != 0 and self._at == self._cache_at + len(self._cache)
        self._ahead = min(2 * self._ahead, _MOST_AHEAD) if follows else _FIRST_AHEAD
        self._drop()
        try:
            self._open_ahead(max(wanted, self._ahead))
        except InvalidTag:
            self._open_ahead(wanted)

    def _open_ahead(self, size: int) -> None:
        file = self._open()
        at, size = file.around(self._at, min(size, self._size - self._at))
        cache = bytearray(size)
        file.read_into(at, cache)
        self._cache, self._cache_at = cache, at

    def _read(self, size: int) -> bytes:
        file = self._open()
        size = max(0, min(size, self._size - self._at))
        parts: list[bytes] = []
        while size:
            if self._cached(self._at):
                begin = self._at - self._cache_at
                part = bytes(memoryview(self._cache)[begin : begin + size])
            elif size >= _MOST_AHEAD // 2:
                part = file.read(self._at, size)
            else:
                self._fill(size)
                continue
            parts.append(part)
            self._at += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class SealedWriter(io.BufferedIOBase):
    """A sealed file that is written from its beginning to its end. One thread at a time."""

    def __init__(
        self,
        path: Path,
        mode: str,
        key: SealedKeys | Buffer | None,
        keyset: str | Buffer | None,
        recipients: Recipients | str | Buffer | Iterable[str] | None,
        passphrase: str | Buffer | None,
        aad: Buffer,
        segment: int | str | None,
        engine: Engine | None,
    ) -> None:
        self._file: Appearing | None = None
        self.name, self.mode = os.fspath(path), mode
        envelope = b""
        if recipients is not None or passphrase is not None:
            envelope, keys = _core.envelope_make(_whom(recipients, passphrase), segment_size(segment))
        else:
            keys = sealed_keys(key, keyset, segment)
        self._stream = Chunks(keys, aad, engine)
        self._file = Appearing(path, replace=mode == "wb")
        try:
            self._file.write(envelope)
        except BaseException:
            self.discard()
            raise

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        self._open()
        return self._stream.plain

    def write(self, data: Buffer, /) -> int:
        file = self._open()
        view = memoryview(data).cast("B")
        try:
            self._stream.write(view, file.write)
        except BaseException:
            self.discard()
            raise
        return len(view)

    def discard(self) -> None:
        """Closes without a file: nothing of it is left."""
        file, self._file = self._file, None
        if file is not None:
            self._stream.wipe()
            file.discard()
        super().close()

    def close(self) -> None:
        if self._file is not None:
            try:
                self._stream.finish(self._file.write)
                self._file.appear()
            except BaseException:
                self.discard()
                raise
            self._file = None
        super().close()

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
        if getattr(self, "_file", None) is not None:
            warnings.warn(f"{self!r} was never closed, and is thrown away", ResourceWarning, stacklevel=2)
            self.discard()

    def __repr__(self) -> str:
        return f"<daelstrom.SealedWriter name={self.name!r}{' closed' if self.closed else ''}>"

    def _open(self) -> Appearing:
        if self._file is None:
            raise ValueError("I/O operation on closed file.")
        return self._file


class _Text(io.TextIOWrapper):
    """Python's own would close the file after an exception, as if it were finished."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.close()
        else:
            writer = self.buffer
            assert isinstance(writer, SealedWriter)
            writer.discard()


class Chunks:
    """Plaintext as it comes, made into a sealed stream in chunks of whole segments. Used by what writes."""

    def __init__(self, keys: SealedKeys, aad: Buffer, engine: Engine | None) -> None:
        self._sealer = _core.Sealer(keys, aad, engine=engine)
        self._segments = max(1, _GATHERED // self._sealer.segment)
        self._gathered, self._have = bytearray(), 0
        self._out = bytearray()
        self.plain = 0  # bytes so far
        self._wanted = self._segments * (self._sealer.segment - 16) - self._sealer.header

    def write(self, view: memoryview, put: Any) -> None:
        self.plain += len(view)
        # The last chunk is not empty: one is sealed when more has come.
        while self._have + len(view) > self._wanted:
            if self._have == 0:
                self._seal(view[: self._wanted], False, put)
                view = view[self._taken :]
                continue
            take = self._wanted - self._have
            self._gathered[self._have : self._wanted] = view[:take]
            view = view[take:]
            self._seal(memoryview(self._gathered)[: self._wanted], False, put)
            self._have = 0
        if len(self._gathered) < self._have + len(view):
            grown = bytearray(min(self._wanted, max(2 * len(self._gathered), self._have + len(view))))
            grown[: self._have] = memoryview(self._gathered)[: self._have]
            _core.wipe(self._gathered)
            self._gathered = grown
        self._gathered[self._have : self._have + len(view)] = view
        self._have += len(view)

    def finish(self, put: Any) -> None:
        self._seal(memoryview(self._gathered)[: self._have], True, put)
        self.wipe()

    def wipe(self) -> None:
        _core.wipe(self._gathered)
        self._gathered, self._have = bytearray(), 0

    def _seal(self, plain: memoryview, last: bool, put: Any) -> None:
        room = self._sealer.room(len(plain), last)
        if len(self._out) < room:
            self._out = bytearray(room)
        size = self._sealer.seal(plain, self._out, last)
        self._taken = len(plain)
        self._wanted = self._segments * (self._sealer.segment - 16)
        with memoryview(self._out) as out:
            put(out[:size])


def _secrets(
    identities: Identities | str | Buffer | Iterable[str] | None, passphrase: str | Buffer | None
) -> Identities:
    if passphrase is not None:
        return Identities.of_passphrase(_bytes(passphrase))
    assert identities is not None
    return identities if isinstance(identities, Identities) else Identities.parse(_lines(identities))


def _whom(recipients: Recipients | str | Buffer | Iterable[str] | None, passphrase: str | Buffer | None) -> Recipients:
    if passphrase is not None:
        return Recipients.of_passphrase(_bytes(passphrase))
    assert recipients is not None
    return recipients if isinstance(recipients, Recipients) else Recipients.parse(_lines(recipients))

