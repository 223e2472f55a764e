# SPDX-License-Identifier: Apache-2.0
"""Chunks of a KV cache at rest, in LMCache's frame and in one of daelstrom's.

Needs no LMCache; `daelstrom.lmcache` puts it there. Three versions, which a frame's first byte says:

* version 1 is what LMCache's own serde ``aesgcm`` writes, byte for byte, with its keys:
  ``[1 B version][12 B IV][ciphertext][16 B tag]``. It binds nothing: under one tenant's key, one chunk's frame opens in
  place of another's.
* version 0xD1 is daelstrom's: the same, but the additional data are all that a chunk is looked up by, so that a frame
  opens only as the chunk that it was stored as. Its keys are derived apart from those of version 1.
* version 0xD2 binds the same, and has nonces so long that random ones do not repeat:
  ``[1 B version][1 B cipher][nonce][ciphertext][16 B tag]``. The cipher is 1, AEGIS-128L with nonces of 16 bytes; 2,
  AEGIS-256 with 32; or 3, XAES-256-GCM with 24. The first two bytes are authenticated before what is bound, and keys
  are derived apart for each cipher.

Who writes one of daelstrom's versions reads both, and each cipher, where the keys come from `derived_keys`.

Chunks go from memory to memory, on all cores; there is no copy of a plaintext. Safety: nonces are random, so a tenant's
key should seal at most 2^32 chunks in versions 1 and 0xD1 (SP 800-38D 8.3), 2^48 by AEGIS-128L, and as many as anybody
has by AEGIS-256 and XAES-256-GCM.
"""

from __future__ import annotations

import hmac
import os
import struct
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from ._core import AESGCM, Engine
from ._turns import Turns
from .aead import AEGIS128L, AEGIS256, XAES256GCM, Aead
from .exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

__all__ = [
    "OVERHEAD",
    "PLAIN_VERSION",
    "BOUND_VERSION",
    "LONG_VERSION",
    "ChunkSealer",
    "DerivedKeys",
    "bound_data",
    "derived_keys",
]

PLAIN_VERSION, BOUND_VERSION, LONG_VERSION = 1, 0xD1, 0xD2
_TAG = 16
_KEPT = 1024  # keys of the tenants that were busy last


class _Cipher(NamedTuple):
    name: str
    number: int  # in a frame of version 0xD2
    kind: type[Aead]
    bits: int
    nonce: int


_CIPHERS = (
    _Cipher("aegis128l", 1, AEGIS128L, 128, 16),
    _Cipher("aegis256", 2, AEGIS256, 256, 32),
    _Cipher("xaes256gcm", 3, XAES256GCM, 256, 24),
)
OVERHEAD = 2 + max(cipher.nonce for cipher in _CIPHERS) + _TAG
"""The most by which any frame is longer than its chunk; `ChunkSealer.overhead` is what its own are."""


class _Frame(NamedTuple):
    """How a frame is made: GCM in versions 1 and 0xD1, where `cipher` is None."""

    version: int
    cipher: _Cipher | None
    bits: int

    @property
    def head(self) -> bytes:
        return bytes((self.version,)) if self.cipher is None else bytes((self.version, self.cipher.number))

    @property
    def nonce(self) -> int:
        return 12 if self.cipher is None else self.cipher.nonce

    @property
    def overhead(self) -> int:
        return len(self.head) + self.nonce + _TAG

    @property
    def info(self) -> bytes:
        if self.cipher is not None:
            return b"daelstrom-l2-" + self.cipher.name.encode() + b"-v2"
        return b"lmcache-l2-aesgcm-v1" if self.version == PLAIN_VERSION else b"daelstrom-l2-bound-v1"


def _frame(version: int, bits: int, cipher: str | None) -> _Frame:
    if version not in (PLAIN_VERSION, BOUND_VERSION, LONG_VERSION):
        raise ValueError(f"version is {version}; it is {PLAIN_VERSION}, {BOUND_VERSION:#x} or {LONG_VERSION:#x}")
    if bits not in (128, 256):
        raise ValueError(f"bits is {bits}; it is 128 or 256")
    if version != LONG_VERSION:
        if cipher is not None:
            raise ValueError(f"version {version:#x} has one cipher; cipher is for {LONG_VERSION:#x}")
        return _Frame(version, None, bits)
    for known in _CIPHERS:
        if known.name == cipher or (cipher is None and known.bits == bits):
            return _Frame(version, known, known.bits)
    raise ValueError(f"cipher is {cipher!r}; it is {', '.join(repr(known.name) for known in _CIPHERS)}")


class DerivedKeys:
    """Each tenant's key, by its salt: HKDF-SHA-256 (RFC 5869) of a master key, as LMCache derives them; for `frame` or,
    where a frame is of another kind, for that. `bound`: frames of version 0xD1 beside it. It never changes; any number
    of threads at once."""

    __slots__ = ("_extracted", "bound", "frame")

    def __init__(self, master: bytes, frame: _Frame, bits: int) -> None:
        self.frame, self.bound = frame, _Frame(BOUND_VERSION, None, bits)
        self._extracted = hmac.digest(bytes(32), master, "sha256")

    def __call__(self, salt: str) -> bytes:
        return self.of(salt, self.frame)

    def of(self, salt: str, frame: _Frame) -> bytes:
        """The tenant's key for that kind of frames."""
        return hmac.digest(self._extracted, frame.info + salt.encode() + b"\x01", "sha256")[: frame.bits // 8]

    def __reduce__(self) -> str:
        raise TypeError("DerivedKeys is not pickled: the master key's would be written where nobody wipes it")


def derived_keys(master: bytes, version: int = LONG_VERSION, bits: int = 128, cipher: str | None = None) -> DerivedKeys:
    """Keys of frames of a version, of a master key of 16 bytes or more; for version 1 of any that LMCache takes.
    `bits`: of an AES key, or 128 for AEGIS-128L and 256 for AEGIS-256, unless `cipher` names one: ``"aegis128l"``,
    ``"aegis256"`` or ``"xaes256gcm"``; of version 0xD1's keys in any case, whose frames are read as well."""
    frame = _frame(version, bits, cipher)
    least = 1 if version == PLAIN_VERSION else 16
    if len(master) < least:
        raise ValueError(f"the master key is {len(master)} bytes; version {version:#x} takes {least} or more")
    return DerivedKeys(master, frame, bits)


def bound_data(chunk_hash: bytes, model_name: str, kv_rank: int, object_group_id: int, cache_salt: str) -> bytes:
    """What versions 0xD1 and 0xD2 authenticate besides a chunk: all of its key, each part with its length, behind the
    byte 0xD1."""
    parts = (chunk_hash, model_name.encode(), str(kv_rank).encode(), str(object_group_id).encode(), cache_salt.encode())
    return bytes((BOUND_VERSION,)) + b"".join(struct.pack(">Q", len(part)) + part for part in parts)


class ChunkSealer(Turns):
    """Seals and opens chunks under their tenants' keys. Any number of threads at once; a child of ``fork()`` goes
    on."""

    def __init__(
        self,
        key_of: Callable[[str], bytes],
        version: int | None = None,
        *,
        cipher: str | None = None,
        engine: Engine | None = None,
    ) -> None:
        """`key_of`: from `derived_keys`, which says the version as well; or any function, whose keys are then for
        frames of `version`, 0xD1 where that is not given, and of 0xD2's `cipher`, and open no others."""
        if isinstance(key_of, DerivedKeys):
            self._frame = key_of.frame
            own = self._frame.cipher.name if self._frame.cipher else None
            if version not in (None, self._frame.version) or cipher not in (None, own):
                raise ValueError("version and cipher are others than those of the keys; derived_keys() takes them")
        else:
            self._frame = _frame(BOUND_VERSION if version is None else version, 128, cipher)
        self.version = self._frame.version
        self.overhead = self._frame.overhead
        """By how many bytes a frame is longer than its chunk."""
        self._key_of, self._engine = key_of, engine
        self._ciphers: OrderedDict[tuple[str, _Frame], AESGCM | Aead] = OrderedDict()
        self._begin_turns()

    def _in_child(self) -> None:
        super()._in_child()
        self._ciphers = OrderedDict()

    def seal(self, plain: Buffer, frame: Buffer, salt: str, bound: bytes | None) -> int:
        """Writes the frame of `plain` to the beginning of `frame`; its size. `bound`: None in version 1."""
        out, kind = memoryview(frame).cast("B"), self._frame
        size = kind.overhead + memoryview(plain).nbytes
        if len(out) < size:
            raise ValueError(f"the frame takes {size} bytes; there is room for {len(out)}")
        self._check(bound)
        nonce, head = os.urandom(kind.nonce), len(kind.head)
        begin = head + kind.nonce
        self._cipher(salt, kind).encrypt_into(nonce, plain, self._additional(kind, bound), out[begin:size])
        out[:head] = kind.head
        out[head:begin] = nonce
        return size

    def open(self, frame: Buffer, plain: Buffer, salt: str, bound: bytes | None) -> None:
        """Opens a frame, which may have anything behind it, into all of `plain`. Raises `InvalidTag`, after which
        `plain` is wiped, and `FormatError`."""
        sealed = memoryview(frame).cast("B")
        self._check(bound)
        kind = self._kind_of(sealed)
        size = kind.overhead + memoryview(plain).nbytes
        if len(sealed) < size:
            raise FormatError(f"the frame is cut off: {len(sealed)} bytes of {size}")
        head = len(kind.head)
        begin = head + kind.nonce
        self._cipher(salt, kind).decrypt_into(
            bytes(sealed[head:begin]), sealed[begin:size], self._additional(kind, bound), plain
        )

    def _kind_of(self, sealed: memoryview) -> _Frame:
        """What a frame says of itself, of what this one opens."""
        if len(sealed) < 2:
            raise FormatError(f"the frame is cut off: {len(sealed)} bytes of {self.overhead} or more")
        kind, version = self._frame, sealed[0]
        if sealed[: len(kind.head)] == kind.head:
            return kind
        keys = self._key_of if isinstance(self._key_of, DerivedKeys) and kind.version != PLAIN_VERSION else None
        both = keys is not None
        if keys and version == BOUND_VERSION:
            return keys.bound
        for cipher in _CIPHERS:
            if both and version == LONG_VERSION and cipher.number == sealed[1]:
                return _Frame(version, cipher, cipher.bits)
        if version != kind.version and not (both and version == LONG_VERSION):
            raise FormatError(f"the frame is of version {version:#x}; this one opens {kind.version:#x}")
        raise FormatError(f"the frame is of cipher {sealed[1]}, which this one does not open")

    def _additional(self, kind: _Frame, bound: bytes | None) -> bytes | None:
        return bound if kind.cipher is None or bound is None else kind.head + bound

    def _check(self, bound: bytes | None) -> None:
        if (bound is None) != (self.version == PLAIN_VERSION):
            raise TypeError(f"version {self.version:#x} {'binds nothing' if bound is not None else 'takes bound data'}")

    def _cipher(self, salt: str, kind: _Frame) -> AESGCM | Aead:
        with self._turn():
            cipher = self._ciphers.get((salt, kind))
            if cipher is not None:
                self._ciphers.move_to_end((salt, kind))
                return cipher
        # Somebody else's code, which may take its time.
        key = self._key_of.of(salt, kind) if isinstance(self._key_of, DerivedKeys) else self._key_of(salt)
        made = AESGCM(key, engine=self._engine) if kind.cipher is None else kind.cipher.kind(key, engine=self._engine)
        with self._turn():
            cipher = self._ciphers.setdefault((salt, kind), made)
            while len(self._ciphers) > _KEPT:
                self._ciphers.popitem(last=False)
            return cipher


