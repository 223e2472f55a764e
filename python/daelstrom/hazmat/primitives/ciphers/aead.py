# SPDX-License-Identifier: Apache-2.0
"""Authenticated encryption, by pyca/cryptography's names. Of its classes AESGCM and AESGCMSIV are here; the others are
absent, and say so when they are made."""

from __future__ import annotations

from typing import Any, NoReturn

from ...._core import AESGCM
from ....aead import AESGCMSIV
from ....exceptions import UnsupportedAlgorithm

__all__ = ["AESCCM", "AESGCM", "AESGCMSIV", "AESOCB3", "AESSIV", "ChaCha20Poly1305"]


class _Absent:
    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._refuse()

    @classmethod
    def generate_key(cls, *arguments: Any, **named: Any) -> NoReturn:
        cls._refuse()

    @classmethod
    def _refuse(cls) -> NoReturn:
        raise UnsupportedAlgorithm(f"daelstrom has no {cls.__name__}; take AESGCM, or pyca/cryptography's")


class AESCCM(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class AESOCB3(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class AESSIV(_Absent):
    """Absent: raises UnsupportedAlgorithm."""


class ChaCha20Poly1305(_Absent):
    """Absent: raises UnsupportedAlgorithm."""
