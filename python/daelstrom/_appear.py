# SPDX-License-Identifier: Apache-2.0
"""Files that appear at once, when they are whole, and keys that are kept in files: by the library, as the program does
both."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Appearing", "generate_key_file", "read_key_file"]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_REFUSED, _REPLACED, _WHATEVER = range(3)  # dael_file_existing


class Appearing:
    """A file that is written without a name, and gets it when it is whole, on the disk where it takes another one's
    place; with the rights, the owner and the attributes of what it replaces. In a child of fork() it is the parent's.

    One thread at a time. `replace`: what is there when this begins, and nothing that somebody puts there meanwhile
    (OSError, ESTALE or EEXIST); with `last`, whatever is there in the end. `secret`: for its owner alone, on the disk.
    """

    def __init__(self, path: Path, replace: bool, *, secret: bool = False, last: bool = False) -> None:
        existing = _WHATEVER if last else _REPLACED if replace else _REFUSED
        self._file = _core.PlacedFile(path, existing, secret, last and os.path.exists(path))

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, data: Buffer) -> None:
        self._file.write(data)

    def finish(self) -> None:
        pass

    def appear(self) -> None:
        for said in self._file.commit():
            warnings.warn(said, RuntimeWarning, stacklevel=3)

    def discard(self) -> None:
        self._file.discard()


def read_key_file(path: Path) -> bytes:
    """An AES key as people keep it, and the program reads it: 16, 24 or 32 bytes, or twice as many hexadecimal digits,
    with white space behind them. A file that others can read is worth a warning."""
    key, open_to = _core.read_key_file(path)
    if open_to:
        warnings.warn(f"{os.fsdecode(path)!r} is a key, and others than its owner can read or change it", RuntimeWarning, stacklevel=2)
    return key


def generate_key_file(path: Path, bits: int = 256) -> None:
    """Writes a new random key of 128, 192 or 256 bits, raw, to a new file that its owner alone can read (0600); what
    is there already is left alone: FileExistsError. As ``daelstrom keygen`` does."""
    if bits not in (128, 192, 256):
        raise ValueError(f"bits is {bits}; it is 128, 192 or 256")
    write_secret(path, os.urandom(bits // 8))


def write_secret(path: Path, secret: Any) -> None:
    """A new file for its owner alone, on the disk when this returns."""
    file = Appearing(path, replace=False, secret=True)
    try:
        file.write(secret)
        file.appear()
    finally:
        file.discard()
