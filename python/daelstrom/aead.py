# SPDX-License-Identifier: Apache-2.0
"""AEGIS (RFC 10032), XAES-256-GCM (C2SP) and AES-GCM-SIV (RFC 8452), with the calls of pyca/cryptography's AEADs, for
data that lies anywhere.

A nonce must never repeat under one key, but in AESGCMSIV; random ones are safe in AEGIS256 and XAES256GCM for as many
messages as anybody has, in the other AEGIS for 2^48 under a key.

>>> import os
>>> from daelstrom import XAES256GCM
>>> key, nonce = XAES256GCM.generate_key(), os.urandom(24)
>>> XAES256GCM(key).decrypt(nonce, XAES256GCM(key).encrypt(nonce, b"a message", b"v1"), b"v1")
b'a message'
"""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any, ClassVar

from . import _core

if TYPE_CHECKING:
    from ._types import Buffer, HostBuffer, Stream


class Aead:
    """One key for one of the modes of its subclasses. It never changes: any number of threads may use it at once, and a
    child of ``fork()`` too, in host memory. It is not copied or pickled. Calls on 2 KiB or more let other threads run;
    what they were given must stay as it is until they return."""

    __slots__ = ("_core",)
    mode: ClassVar[int]  # a dael_mode
    bits: ClassVar[tuple[int, ...]]
    tags: ClassVar[tuple[int, ...]] = (16,)

    def __init__(
        self, key: _core.Key | HostBuffer, *, tag_length: int = 16, engine: _core.Engine | None = None
    ) -> None:
        """``key``: its bytes, or a Key. ``tag_length``: bytes of a tag; AEGIS has 16 and 32. Raises ValueError for a
        key or a tag of another size."""
        self.check_tag(tag_length)
        name, sizes = type(self).__name__, " or ".join(str(bits // 8) for bits in self.bits)
        if not isinstance(key, _core.Key):
            try:
                key = _core.Key(key)
            except ValueError:
                raise ValueError(f"key is not of {sizes} bytes, which {name} takes") from None
        if key.is_xts or key.bits not in self.bits:
            raise ValueError(f"key is {'for XTS' if key.is_xts else f'{key.bits // 8} bytes'}; {name} takes {sizes}")
        self._core = _core.Aead(self.mode, key, tag_length, engine)

    @classmethod
    def check_tag(cls, tag_length: int) -> int:
        """The number itself; ValueError for one that the mode does not have."""
        if operator.index(tag_length) not in cls.tags:
            raise ValueError(f"tag_length is {tag_length}; {cls.__name__} has {' and '.join(map(str, cls.tags))}")
        return tag_length

    @property
    def tag_length(self) -> int:
        """Bytes of a tag."""
        return self._core.tag

    @property
    def keys(self) -> _core.KeySet:
        """Its key as a set of one, for batches."""
        return self._core.keys

    def encrypt(
        self,
        nonce: HostBuffer,
        data: Buffer,
        associated_data: Buffer | None = None,
        *,
        out: Any = None,
        stream: Stream = None,
    ) -> Any:
        """ciphertext || tag: bytes of bytes, a tensor of a tensor, or ``out``, memory of just that size. In a GPU's
        memory the call ends when the work is done. Raises ValueError for a nonce of another size than the mode's, and
        UnsupportedAlgorithm for a mode that the data's device does not have."""
        return self._core.encrypt(nonce, data, associated_data, out, stream)

    def decrypt(
        self,
        nonce: HostBuffer,
        data: Buffer,
        associated_data: Buffer | None = None,
        *,
        out: Any = None,
        stream: Stream = None,
    ) -> Any:
        """The plaintext, or InvalidTag; then ``out`` holds nothing of it."""
        return self._core.decrypt(nonce, data, associated_data, out, stream)

    def encrypt_into(
        self, nonce: HostBuffer, data: Buffer, associated_data: Buffer | None, buf: Any, *, stream: Stream = None
    ) -> int:
        """ciphertext || tag to ``buf``, which has room for just that, and may begin with the data; how many bytes they
        are."""
        return self._core.encrypt_into(nonce, data, associated_data, buf, stream)

    def decrypt_into(
        self, nonce: HostBuffer, data: Buffer, associated_data: Buffer | None, buf: Any, *, stream: Stream = None
    ) -> int:
        """The plaintext to ``buf``; how many bytes it has. On InvalidTag `buf` is wiped; in place it holds the
        ciphertext again, and on a GPU zeros or what it held before. An argument that is refused leaves it as it was."""
        return self._core.decrypt_into(nonce, data, associated_data, buf, stream)

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} is not pickled: its key would be written where nobody wipes it")

    def __copy__(self) -> Any:
        raise TypeError(f"{type(self).__name__} is not copied; use it from as many places as you like")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()


class _OneSize(Aead):
    __slots__ = ()

    @classmethod
    def generate_key(cls) -> bytes:
        """A new key from the operating system's random numbers."""
        return os.urandom(cls.bits[0] // 8)


class AEGIS128L(_OneSize):
    """AEGIS-128L: keys and nonces of 16 bytes, tags of 16 or 32; fewer than 2^61 bytes of data, and of additional
    data. A nonce that repeats under one key gives messages away, and lets others be forged."""

    __slots__ = ()
    mode, bits, tags = 8, (128,), (16, 32)


class AEGIS256(_OneSize):
    """AEGIS-256: keys and nonces of 32 bytes, tags of 16 or 32; sizes as AEGIS128L's. A nonce that repeats under one
    key gives messages away, and lets others be forged; random ones do not repeat."""

    __slots__ = ()
    mode, bits, tags = 9, (256,), (16, 32)


class AEGIS128X2(_OneSize):
    """AEGIS-128X2, for wide vector units and GPUs: keys, nonces, tags and sizes as AEGIS128L's."""

    __slots__ = ()
    mode, bits, tags = 10, (128,), (16, 32)


class AEGIS128X4(_OneSize):
    """AEGIS-128X4, for wide vector units and GPUs, and long messages: keys, nonces, tags and sizes as AEGIS128L's."""

    __slots__ = ()
    mode, bits, tags = 11, (128,), (16, 32)


class XAES256GCM(_OneSize):
    """XAES-256-GCM: keys of 32 bytes, nonces of 24, which may be random for 2^80 messages under a key, tags of 16; at
    most 2^36 - 32 bytes of data. A nonce that repeats costs what it costs in GCM."""

    __slots__ = ()
    mode, bits = 12, (256,)


class AESGCMSIV(Aead):
    """AES-GCM-SIV, pyca/cryptography's calls: keys of 16 or 32 bytes, nonces of 12, tags of 16; at most 2^36 bytes of
    data, and of additional data. A nonce that repeats shows which messages are alike, and nothing else."""

    __slots__ = ()
    mode, bits = 13, (128, 256)

    @staticmethod
    def generate_key(bit_length: int) -> bytes:
        """A new key from the operating system's random numbers: of 128 or 256 bits."""
        if operator.index(bit_length) not in (128, 256):
            raise ValueError("bit_length must be 128 or 256")
        return os.urandom(bit_length // 8)


# By the library's names of the modes.
BY_NAME: dict[str, type[Aead]] = {
    "aegis128l": AEGIS128L,
    "aegis256": AEGIS256,
    "aegis128x2": AEGIS128X2,
    "aegis128x4": AEGIS128X4,
    "xaes256gcm": XAES256GCM,
    "gcm_siv": AESGCMSIV,
}
