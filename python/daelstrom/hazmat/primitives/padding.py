# SPDX-License-Identifier: Apache-2.0
"""PKCS#7 padding, for ECB and CBC.

>>> from daelstrom.hazmat.primitives import padding
>>> padder = padding.PKCS7(128).padder()
>>> padder.update(b"some data") + padder.finalize()
b'some data\\x07\\x07\\x07\\x07\\x07\\x07\\x07'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _core
from ...exceptions import AlreadyFinalized, UnsupportedAlgorithm

if TYPE_CHECKING:
    from ..._types import HostBuffer

_BLOCK = 16


class PaddingContext:
    """Pads, or takes padding away, in pieces. One thread at a time."""

    def __init__(self, unpads: bool) -> None:
        self._unpads = unpads
        self._held: bytes | None = b""

    def update(self, data: HostBuffer) -> bytes:
        if self._held is None:
            raise AlreadyFinalized("Context was already finalized.")
        held = self._held + bytes(memoryview(data))
        # The last block is held back: it may be the one with the padding.
        whole = (max(len(held) - 1, 0) if self._unpads else len(held)) // _BLOCK * _BLOCK
        self._held = held[whole:]
        return held[:whole]

    def finalize(self) -> bytes:
        if self._held is None:
            raise AlreadyFinalized("Context was already finalized.")
        held, self._held = self._held, None
        if not self._unpads:
            return _core.pad(held)
        if len(held) != _BLOCK:
            raise ValueError("Invalid padding bytes.")
        return held[: _core.unpad(held)]


class PKCS7:
    """PKCS#7 padding of blocks of 128 bits. Where an attacker can see whether padding was right, CBC without
    authentication gives the plaintext away, however the padding is checked."""

    def __init__(self, block_size: int) -> None:
        if block_size != 8 * _BLOCK:
            raise ValueError(f"block_size is {block_size} bits; AES has blocks of 128")
        self.block_size = block_size

    def padder(self) -> PaddingContext:
        return PaddingContext(unpads=False)

    def unpadder(self) -> PaddingContext:
        return PaddingContext(unpads=True)


class ANSIX923:
    """Absent: daelstrom has PKCS#7 padding alone."""

    def __init__(self, block_size: int) -> None:
        raise UnsupportedAlgorithm("daelstrom has no ANSI X9.23 padding; take padding.PKCS7")
