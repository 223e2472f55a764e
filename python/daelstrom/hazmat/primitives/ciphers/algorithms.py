# SPDX-License-Identifier: Apache-2.0
"""AES, by pyca/cryptography's names. Its other algorithms are absent, and say so when they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....exceptions import UnsupportedAlgorithm

if TYPE_CHECKING:
    from ...._types import HostBuffer


class CipherAlgorithm:
    """What Cipher takes as its algorithm."""

    name: str
    key_sizes: frozenset[int]
    key: HostBuffer

    @property
    def key_size(self) -> int:
        return memoryview(self.key).nbytes * 8


class BlockCipherAlgorithm(CipherAlgorithm):
    """An algorithm that has blocks."""

    block_size: int


class AES(BlockCipherAlgorithm):
    """AES with a key of 128, 192 or 256 bits; for XTS with two, 256 or 512 bits in all."""

    name = "AES"
    block_size = 128
    key_sizes = frozenset([128, 192, 256, 512])

    def __init__(self, key: HostBuffer) -> None:
        if isinstance(key, str):
            raise TypeError("key must be bytes-like")
        bits = memoryview(key).nbytes * 8
        if bits not in self.key_sizes:
            raise ValueError(f"Invalid key size ({bits}) for {self.name}.")
        self.key = key


class AES128(AES):
    """AES with a key of 128 bits. Not for XTS, whose two keys AES takes."""

    key_sizes = frozenset([128])
    key_size = 128


class AES256(AES):
    """AES with a key of 256 bits. Not for XTS, whose two keys AES takes."""

    key_sizes = frozenset([256])
    key_size = 256


class _Absent(CipherAlgorithm):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise UnsupportedAlgorithm(f"daelstrom has no {type(self).__name__}; it has AES alone")


class ARC4(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class Blowfish(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class CAST5(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class Camellia(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class ChaCha20(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class IDEA(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class SEED(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class SM4(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class TripleDES(_Absent):
    """Absent: raises UnsupportedAlgorithm."""
