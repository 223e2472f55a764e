# SPDX-License-Identifier: Apache-2.0
"""Chunks of a KV cache at rest, in LMCache's frame: ``[1 B version][12 B IV][ciphertext][16 B tag]``.

Needs no LMCache; `daelstrom.lmcache` puts it there. Two versions:

* version 1 is what LMCache's own serde ``aesgcm`` writes, byte for byte, with its keys. It binds nothing: under one
  tenant's key, one chunk's frame opens in place of another's.
* version 0xD1 is daelstrom's: the additional data are all that a chunk is looked up by, so that a frame opens only
  as the chunk that it was stored as. Its keys are derived apart from those of version 1.

Chunks go from memory to memory, on all cores; there is no copy of a plaintext. Safety: nonces are random, so a tenant's
key should seal at most 2^32 chunks (SP 800-38D 8.3).
"""

from __future__ import annotations

import hmac
import os
import struct
from collections import OrderedDict
from typing import TYPE_CHECKING

from ._core import AESGCM, Engine
from ._turns import Turns
from .exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

__all__ = ["OVERHEAD", "PLAIN_VERSION", "BOUND_VERSION", "ChunkSealer", "bound_data", "derived_keys"]

PLAIN_VERSION, BOUND_VERSION = 1, 0xD1
_HEADER, _TAG = 1 + 12, 16
OVERHEAD = _HEADER + _TAG
_INFO = {PLAIN_VERSION: b"lmcache-l2-aesgcm-v1", BOUND_VERSION: b"daelstrom-l2-bound-v1"}
_LEAST_MASTER = 16
_KEPT = 1024  # keys of the tenants that were busy last


def derived_keys(master: bytes, version: int = BOUND_VERSION, bits: int = 128) -> Callable[[str], bytes]:
    """Each tenant's key, by its salt: HKDF-SHA-256 (RFC 5869) of a master key, as LMCache derives them. Of 16 bytes or
    more; for version 1 any that LMCache takes."""
    if bits not in (128, 256):
        raise ValueError(f"bits is {bits}; it is 128 or 256")
    least = 1 if version == PLAIN_VERSION else _LEAST_MASTER  # version 1 takes what LMCache takes
    if len(master) < least:
        raise ValueError(f"the master key is {len(master)} bytes; version {version:#x} takes {least} or more")
    extracted = hmac.digest(bytes(32), master, "sha256")

    def key_of(salt: str) -> bytes:
        return hmac.digest(extracted, _INFO[version] + salt.encode() + b"\x01", "sha256")[: bits // 8]

    return key_of


def bound_data(chunk_hash: bytes, model_name: str, kv_rank: int, object_group_id: int, cache_salt: str) -> bytes:
    """What version 0xD1 authenticates besides a chunk: its version and all of its key, each part with its length."""
    parts = (chunk_hash, model_name.encode(), str(kv_rank).encode(), str(object_group_id).encode(), cache_salt.encode())
    return bytes((BOUND_VERSION,)) + b"".join(struct.pack(">Q", len(part)) + part for part in parts)


class ChunkSealer(Turns):
    """Seals and opens chunks under their tenants' keys. Any number of threads at once; a child of ``fork()`` goes on."""

    def __init__(
        self, key_of: Callable[[str], bytes], version: int = BOUND_VERSION, *, engine: Engine | None = None
    ) -> None:
        if version not in _INFO:
            raise ValueError(f"version is {version}; it is {PLAIN_VERSION} or {BOUND_VERSION:#x}")
        self.version = version
        self._key_of, self._engine = key_of, engine
        self._ciphers: OrderedDict[str, AESGCM] = OrderedDict()
        self._begin_turns()

    def _in_child(self) -> None:
        super()._in_child()
        self._ciphers = OrderedDict()

    def seal(self, plain: Buffer, frame: Buffer, salt: str, bound: bytes | None) -> int:
        """Writes the frame of `plain` to the beginning of `frame`; its size. `bound`: None in version 1."""
        out = memoryview(frame).cast("B")
        size = OVERHEAD + memoryview(plain).nbytes
        if len(out) < size:
            raise ValueError(f"the frame takes {size} bytes; there is room for {len(out)}")
        self._check(bound)
        nonce = os.urandom(12)
        self._cipher(salt).encrypt_into(nonce, plain, bound, out[_HEADER:size])
        out[0] = self.version
        out[1:_HEADER] = nonce
        return size

    def open(self, frame: Buffer, plain: Buffer, salt: str, bound: bytes | None) -> None:
        """Opens a frame, which may have anything behind it, into all of `plain`. Raises `InvalidTag`, after which
        `plain` is wiped, and `FormatError`."""
        sealed = memoryview(frame).cast("B")
        size = OVERHEAD + memoryview(plain).nbytes
        self._check(bound)
        if len(sealed) < size:
            raise FormatError(f"the frame is cut off: {len(sealed)} bytes of {size}")
        if sealed[0] != self.version:
            raise FormatError(f"the frame is of version {sealed[0]:#x}; this one opens {self.version:#x}")
        self._cipher(salt).decrypt_into(bytes(sealed[1:_HEADER]), sealed[_HEADER:size], bound, plain)

    def _check(self, bound: bytes | None) -> None:
        if (bound is None) != (self.version == PLAIN_VERSION):
            raise TypeError(f"version {self.version:#x} {'binds nothing' if bound is not None else 'takes bound data'}")

    def _cipher(self, salt: str) -> AESGCM:
        with self._turn():
            cipher = self._ciphers.get(salt)
            if cipher is not None:
                self._ciphers.move_to_end(salt)
                return cipher
        made = AESGCM(self._key_of(salt), engine=self._engine)  # somebody else's code, which may take its time
        with self._turn():
            cipher = self._ciphers.setdefault(salt, made)
            while len(self._ciphers) > _KEPT:
                self._ciphers.popitem(last=False)
            return cipher
