# SPDX-License-Identifier: Apache-2.0
"""The keys of one file, all from one random number (docs/flexa.md, "The key chain")."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any, NoReturn

from .. import _core

__all__ = ["NUMBER", "FileKeys", "hkdf"]

NUMBER = 32  # bytes of a file's number
_LABEL = b"daelstrom flexa 1 "


def hkdf(key: bytes | bytearray, label: bytes, size: int = 32) -> bytes:
    """HKDF-SHA-256 (RFC 5869) without a salt, for up to 32 bytes."""
    extracted = hmac.digest(bytes(32), bytes(key), "sha256")
    return hmac.digest(extracted, _LABEL + label + b"\x01", "sha256")[:size]


class FileKeys:
    """What somebody has of a file: all of it (of its number), what it takes to read, or what it takes to check.

    It never changes: any number of threads; a child of fork() has a copy. Not pickled. Secrets are wiped when it goes,
    as far as Python has let them be held in one place.
    """

    _seed: bytearray | None = None
    _read: bytearray | None = None
    _write: bytearray | None = None

    def __init__(self, verify: bytes, public: bytes, read: bytes | bytearray | None = None) -> None:
        if len(verify) != 48 or len(public) != 32 or (read is not None and len(read) != 32):
            raise ValueError("a verify key has 48 bytes, a public key 32, a read key 32")
        self.verify, self.public = bytes(verify), bytes(public)
        self.valid_write: bytes | None = None
        self.sealed: _core.SealedKeys | None = None
        if read is not None:
            self._read = bytearray(read)
            self.sealed = _core.SealedKeys.of_key(self._read, 1 << 20)

    @classmethod
    def of_number(cls, number: bytes | bytearray) -> FileKeys:
        if len(number) != NUMBER:
            raise ValueError(f"a file's number has {NUMBER} bytes, not {len(number)}")
        write = bytearray(hashlib.sha256(number).digest())
        seed = bytearray(hkdf(write, b"signature"))
        keys = cls(hashlib.sha384(number).digest(), _core.ed25519_public(seed), hkdf(write, b"read key"))
        keys.valid_write = hkdf(write, b"valid write")
        keys._seed, keys._write = seed, write
        return keys

    @staticmethod
    def new_number() -> bytes:
        return os.urandom(NUMBER)

    @property
    def name(self) -> str:
        """What the file is called on the stores."""
        return self.verify.hex()

    @property
    def can_write(self) -> bool:
        return self._seed is not None

    @property
    def can_read(self) -> bool:
        return self._read is not None

    def sign(self, message: bytes) -> bytes:
        if self._seed is None:
            raise PermissionError("this file may be read here, and not written: its write key is not known")
        return _core.ed25519_sign(self._seed, message)

    def check(self, message: bytes, signature: bytes) -> bool:
        return _core.ed25519_verify(self.public, message, signature)

    def entries_key(self) -> bytes | None:
        """Of a folder: what the numbers of its entries are encrypted with, for whoever may write it."""
        return None if self._write is None else hkdf(self._write, b"folder entries")

    def read_key(self) -> bytes:
        """To share it."""
        if self._read is None:
            raise PermissionError("this file may be checked here, and not read: its read key is not known")
        return bytes(self._read)

    def __del__(self) -> None:
        for secret in (self._seed, self._read, self._write):
            if secret:
                _core.wipe(secret)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("keys are not pickled; open the keyring where they are needed")

    def __repr__(self) -> str:
        rights = "write" if self.can_write else "read" if self.can_read else "verify"
        return f"<FileKeys {self.name[:16]}... {rights}>"
