# SPDX-License-Identifier: Apache-2.0
"""AES wherever the data is: on the vector units of CPUs, and on GPUs, in tensors where they lie."""

from __future__ import annotations

from . import exceptions
from ._core import AESGCM, Engine, Key, KeySet, NonceCounter, ctr, list_backends, wipe
from ._core import version as _version

__version__ = _version()

__all__ = [
    "AESGCM",
    "Engine",
    "Key",
    "KeySet",
    "NonceCounter",
    "ctr",
    "exceptions",
    "list_backends",
    "wipe",
]
