# SPDX-License-Identifier: Apache-2.0
"""The modes, by pyca/cryptography's names. Of them GCM alone authenticates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....exceptions import UnsupportedAlgorithm
from .algorithms import AES128, AES256, BlockCipherAlgorithm, CipherAlgorithm

if TYPE_CHECKING:
    from ...._types import HostBuffer


def _bytes_like(name: str, value: Any) -> int:
    """The size of a buffer in bytes."""
    try:
        return memoryview(value).nbytes
    except TypeError:
        raise TypeError(f"{name} must be bytes-like") from None


class Mode:
    """What Cipher takes as its mode."""

    name: str
    _number: int  # in the C interface

    @property
    def _start(self) -> Any:
        """What the first block starts from."""
        return None

    def validate_for_algorithm(self, algorithm: CipherAlgorithm) -> None:
        if isinstance(algorithm, BlockCipherAlgorithm) and algorithm.key_size > 256:
            raise ValueError("Only 128, 192, and 256 bit keys are allowed for this AES mode")


class ModeWithInitializationVector(Mode):
    def __init__(self, initialization_vector: HostBuffer) -> None:
        self._size = _bytes_like("initialization_vector", initialization_vector)
        self._initialization_vector = initialization_vector

    @property
    def initialization_vector(self) -> HostBuffer:
        return self._initialization_vector

    @property
    def _start(self) -> Any:
        return self._initialization_vector

    def validate_for_algorithm(self, algorithm: CipherAlgorithm) -> None:
        super().validate_for_algorithm(algorithm)
        if self._size * 8 != getattr(algorithm, "block_size", 128):
            raise ValueError(f"Invalid IV size ({self._size}) for {self.name}.")


class ModeWithNonce(Mode):
    def __init__(self, nonce: HostBuffer) -> None:
        self._size = _bytes_like("nonce", nonce)
        self._nonce = nonce

    @property
    def nonce(self) -> HostBuffer:
        return self._nonce

    @property
    def _start(self) -> Any:
        return self._nonce

    def validate_for_algorithm(self, algorithm: CipherAlgorithm) -> None:
        super().validate_for_algorithm(algorithm)
        if self._size * 8 != getattr(algorithm, "block_size", 128):
            raise ValueError(f"Invalid nonce size ({self._size}) for {self.name}.")


class ModeWithTweak(Mode):
    def __init__(self, tweak: HostBuffer) -> None:
        if _bytes_like("tweak", tweak) != 16:
            raise ValueError("tweak must be 128-bits (16 bytes)")
        self._tweak = tweak

    @property
    def tweak(self) -> HostBuffer:
        return self._tweak

    @property
    def _start(self) -> Any:
        return self._tweak


class ModeWithAuthenticationTag(Mode):
    @property
    def tag(self) -> bytes | None:
        raise NotImplementedError


class ECB(Mode):
    """Each block by itself: it shows which blocks are equal."""

    name = "ECB"
    _number = 0


class CBC(ModeWithInitializationVector):
    """The IV must be unpredictable."""

    name = "CBC"
    _number = 1


class CFB(ModeWithInitializationVector):
    """CFB-128."""

    name = "CFB"
    _number = 2


class CFB8(ModeWithInitializationVector):
    """Absent: raises UnsupportedAlgorithm."""

    name = "CFB8"

    def __init__(self, initialization_vector: HostBuffer) -> None:
        raise UnsupportedAlgorithm("daelstrom has no CFB8; it has CFB, of 128 bits")


class OFB(ModeWithInitializationVector):
    """The IV must never repeat under one key."""

    name = "OFB"
    _number = 3


class CTR(ModeWithNonce):
    """One counter of 128 bits, which must never repeat under one key."""

    name = "CTR"
    _number = 4


class GCM(ModeWithInitializationVector, ModeWithAuthenticationTag):
    """GCM in pieces. When decrypting, nothing is authentic before ``finalize()`` has returned; AESGCM hands out no
    plaintext before. The IV must never repeat under one key."""

    name = "GCM"
    _number = 5

    def __init__(self, initialization_vector: HostBuffer, tag: bytes | None = None, min_tag_length: int = 16) -> None:
        super().__init__(initialization_vector)
        if not 8 <= self._size <= 128:
            raise ValueError("initialization_vector must be between 8 and 128 bytes (64 and 1024 bits).")
        if min_tag_length < 4:
            raise ValueError("min_tag_length must be >= 4")
        if tag is not None:
            if _bytes_like("tag", tag) < min_tag_length:
                raise ValueError(f"Authentication tag must be {min_tag_length} bytes or longer.")
            if len(tag) > 16:
                raise ValueError("Authentication tag cannot be more than 16 bytes.")
        self._tag = tag
        self._min_tag_length = min_tag_length

    @property
    def tag(self) -> bytes | None:
        return self._tag

    def validate_for_algorithm(self, algorithm: CipherAlgorithm) -> None:
        Mode.validate_for_algorithm(self, algorithm)


class XTS(ModeWithTweak):
    """Data units of 16 bytes to 16 MiB: each ``update`` is one, from the same tweak."""

    name = "XTS"
    _number = 7

    def validate_for_algorithm(self, algorithm: CipherAlgorithm) -> None:
        if isinstance(algorithm, (AES128, AES256)):
            raise TypeError(
                "The AES128 and AES256 classes do not support XTS, please use the standard AES class instead."
            )
        if algorithm.key_size not in (256, 512):
            raise ValueError(
                "The XTS specification requires a 256-bit key for AES-128-XTS and 512-bit key for AES-256-XTS"
            )
