# SPDX-License-Identifier: Apache-2.0
"""AESCuda, the module that encrypted for the distributed file system FlexA (Barbosa, Sao Jose do Rio Preto 2013):
AES-CTR with a counter block of an 8-byte nonce and an 8-byte big-endian counter. ``import AESCuda`` is the same.

>>> from daelstrom import aescuda
>>> secret = aescuda.encrypt(b"a portion of a file", bytes(16), bytes(8))
>>> aescuda.decrypt(secret, bytes(16), bytes(8))
b'a portion of a file'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from ._types import Buffer, HostBuffer

__all__ = ["decrypt", "encrypt"]

_NONCE = 8


def encrypt(
    input: Buffer, key: HostBuffer, nonce: HostBuffer, ctr_offset: int = 0, gpup: tuple[int, int] | None = None
) -> Any:
    """Encrypts bytes, or a tensor where it lies. ``ctr_offset``: the number of the first block, for what is encrypted
    in parts. ``gpup``: blocks and threads of a CUDA launch of that shape, each thread taking one block of AES after
    another;
    it is refused where there is no GPU. Without it the fastest way is taken. The key may have 16, 24 or 32 bytes.

    Safety: no counter may be used twice under one key: a part's number times its blocks, and never the same nonce for
    two files. Nothing is authenticated.
    """
    given = memoryview(nonce).nbytes
    if given != _NONCE:
        raise ValueError(f"nonce is {given} bytes; it takes {_NONCE}")
    if not 0 <= ctr_offset < 1 << 64:
        raise ValueError(f"ctr_offset is {ctr_offset}; it is a number of blocks from 0 to 2^64 - 1")
    counter = bytes(memoryview(nonce)) + int(ctr_offset).to_bytes(8, "big")
    if gpup is None:
        return _core.ctr(key, counter, input)
    blocks, threads = gpup
    if not (1 <= blocks < 1 << 31 and 1 <= threads <= 1024):
        raise ValueError(f"gpup is {gpup}; it is 1 block or more, of 1 to 1024 threads")
    return _core.shaped_ctr(key, counter, input, blocks, threads)


def decrypt(
    input: Buffer, key: HostBuffer, nonce: HostBuffer, ctr_offset: int = 0, gpup: tuple[int, int] | None = None
) -> Any:
    """The same as :func:`encrypt`: counter mode is its own reverse."""
    return encrypt(input, key, nonce, ctr_offset, gpup)
