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
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from . import _core
from ._appear import Appearing
from ._core import Engine, Identities, Recipients, SealedKeys
from ._reader import SealedReader
from ._writer import SealedWriter, Text
from .exceptions import FormatError

if TYPE_CHECKING:
    from typing_extensions import Buffer

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

MOST_ENVELOPE = 128 << 10


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
        reader = SealedReader(_source(path, key, keyset, identities, passphrase, aad, segment, engine), os.fspath(path))
        if verify:
            reader.verify()
        return io.TextIOWrapper(reader.layered(), encoding, errors, newline) if text else reader
    if way == "identities":
        raise TypeError("identities= opens; sealing takes recipients=")
    if verify:
        raise TypeError("verify= is for reading")
    envelope, keys = sealing(key, keyset, recipients, passphrase, segment)
    sink = Appearing(path, replace=mode == "wb")
    writer = SealedWriter(sink, os.fspath(path), mode, keys, aad, engine, envelope=envelope)
    return Text(writer, encoding, errors, newline) if text else writer


def open_into(path: Path, out: Output, *, stream: Any = None, **how: Any) -> Output:
    """Opens all of a file into `out` and returns it: what has the buffer protocol, or a tensor, on the host or a GPU.

    `out` has the plaintext's size in bytes (`SealedReader.size`). Into a GPU's memory, ciphertext is copied and opened
    there. When it returns, all of the file is verified; if it does not, `out` is wiped, or as it was where already the
    first segment was refused. `how`: as `open`.
    """
    with open(path, "rb", **how) as file:
        return file.open_into(out, stream=stream)


def sealing(
    key: SealedKeys | Buffer | None,
    keyset: str | Buffer | None,
    recipients: Recipients | str | Buffer | Iterable[str] | None,
    passphrase: str | Buffer | None,
    segment: int | str | None,
) -> tuple[bytes, SealedKeys]:
    """The envelope that goes before a stream, if any, and the keys that seal it."""
    if recipients is None and passphrase is None:
        return b"", sealed_keys(key, keyset, segment)
    if key is not None or keyset is not None or (recipients is not None and passphrase is not None):
        raise TypeError("one of key=, keyset=, recipients= and passphrase= seals")
    return _core.envelope_make(_whom(recipients, passphrase), segment_size(segment))


def of_key(path: Path, keys: SealedKeys, aad: Buffer, engine: Engine | None = None) -> _core.SealedFile:
    """A file that was sealed with a key or a keyset, as what is read from."""
    return _source(path, keys, None, None, None, aad, None, engine)


def _source(
    path: Path,
    key: SealedKeys | Buffer | None,
    keyset: str | Buffer | None,
    identities: Identities | str | Buffer | Iterable[str] | None,
    passphrase: str | Buffer | None,
    aad: Buffer,
    segment: int | str | None,
    engine: Engine | None,
) -> _core.SealedFile:
    name = os.fspath(path)
    # Not to wait for whoever writes to a pipe, before it is seen that it is one.
    with builtins.open(path, "rb", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as raw:
        status = os.fstat(raw.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise io.UnsupportedOperation(f"{name!r} is not a regular file; a sealed one is read from anywhere")
        start = raw.read(22)
        enveloped = _core.is_envelope(start)
        begin = 0
        if enveloped != (identities is not None or passphrase is not None):
            raise ValueError(
                f"{name!r} was sealed for recipients or with a passphrase: open it with identities= or passphrase="
                if enveloped
                else f"{name!r} has no envelope: it was sealed with a key, and takes key= or keyset="
            )
        if enveloped:
            start = os.pread(raw.fileno(), MOST_ENVELOPE, 0)
            begin, _ = _core.envelope_read(start)
            if begin == 0:
                raise FormatError(f"{name!r} is cut off within its envelope, or holds no sealed data")
            keys = _core.envelope_open(secrets_of(identities, passphrase), start, segment_size(segment))
        else:
            keys = sealed_keys(key, keyset, segment)
        return _core.SealedFile(keys, aad, raw.fileno(), begin, status.st_size - begin, engine=engine)


def secrets_of(
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

