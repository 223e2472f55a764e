# SPDX-License-Identifier: Apache-2.0
"""Cipher: a mode of AES, in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ...._core import AEADCipherContext, AEADDecryptionContext, AEADEncryptionContext, CipherContext, begin
from . import algorithms, modes
from .algorithms import BlockCipherAlgorithm, CipherAlgorithm

if TYPE_CHECKING:
    from ...._core import Engine

__all__ = [
    "AEADCipherContext",
    "AEADDecryptionContext",
    "AEADEncryptionContext",
    "BlockCipherAlgorithm",
    "Cipher",
    "CipherAlgorithm",
    "CipherContext",
    "algorithms",
    "modes",
]

_Mode = TypeVar("_Mode", bound=modes.Mode, covariant=True)


def _theirs(given: Any, module: str) -> str:
    """Of a program in which some of the imports were swapped, and others not."""
    kind = given if isinstance(given, type) else type(given)
    if not kind.__module__.startswith("cryptography."):
        return ""
    return f" ({kind.__name__} is of cryptography: import it from daelstrom.hazmat.primitives.ciphers.{module}, or keep cryptography's Cipher for it)"


class Cipher(Generic[_Mode]):
    """A key in a mode. ``backend`` is taken for the sake of older programs; ``engine`` is daelstrom's. Any number of
    threads may make contexts of it; a context takes one thread at a time, and raises RuntimeError for another.

    A child of ``fork()`` has a copy of each context. Of one that encrypts, parent or child alone may go on: with
    different data they would use the same keystream, or IV, twice.
    """

    def __init__(
        self, algorithm: CipherAlgorithm, mode: _Mode, backend: Any = None, *, engine: Engine | None = None
    ) -> None:
        if not isinstance(algorithm, CipherAlgorithm):
            raise TypeError(f"Expected interface of CipherAlgorithm.{_theirs(algorithm, 'algorithms')}")
        if not isinstance(mode, modes.Mode):
            raise TypeError(f"mode is {type(mode).__name__}; it is one of daelstrom's modes{_theirs(mode, 'modes')}")
        mode.validate_for_algorithm(algorithm)
        self.algorithm = algorithm
        self.mode = mode
        self._engine = engine

    @overload
    def encryptor(self: Cipher[modes.ModeWithAuthenticationTag]) -> AEADEncryptionContext: ...
    @overload
    def encryptor(self: Cipher[modes.Mode]) -> CipherContext: ...
    def encryptor(self) -> CipherContext:
        if isinstance(self.mode, modes.GCM) and self.mode.tag is not None:
            raise ValueError("Authentication tag must be None when encrypting.")
        return self._begin(0)

    @overload
    def decryptor(self: Cipher[modes.ModeWithAuthenticationTag]) -> AEADDecryptionContext: ...
    @overload
    def decryptor(self: Cipher[modes.Mode]) -> CipherContext: ...
    def decryptor(self) -> CipherContext:
        return self._begin(1)

    def _begin(self, direction: int) -> CipherContext:
        mode = self.mode
        context: CipherContext
        if not isinstance(mode, modes.GCM):
            context = begin(mode._number, direction, self.algorithm.key, mode._start, engine=self._engine)
            return context
        context = begin(
            mode._number,
            direction,
            self.algorithm.key,
            mode._start,
            tag=mode._tag,
            min_tag_length=mode._min_tag_length,
            engine=self._engine,
        )
        return context
