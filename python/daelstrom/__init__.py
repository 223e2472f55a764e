# SPDX-License-Identifier: Apache-2.0
"""AES wherever the data is: on the vector units of CPUs, and on GPUs, in tensors where they lie.

>>> import os
>>> from daelstrom import AESGCM
>>> key, nonce = AESGCM.generate_key(256), os.urandom(12)
>>> sealed = AESGCM(key).encrypt(nonce, b"a message", b"v1")
>>> AESGCM(key).decrypt(nonce, sealed, b"v1")
b'a message'
"""

from __future__ import annotations

from . import exceptions
from ._appear import generate_key_file
from ._batch import open_batch, opened_offsets, seal_batch, sealed_offsets
from ._core import AESGCM, Engine, Key, KeySet, NonceCounter, ctr, list_backends, wipe
from ._core import version as _version
from .aead import AEGIS256, AEGIS128L, AEGIS128X2, AEGIS128X4, AESGCMSIV, XAES256GCM
from .exceptions import InvalidTag
from .files import open, open_into
from .modes import crypt
from .streams import open_bytes, open_stream, seal, seal_stream

__version__ = _version()

__all__ = [
    "AEGIS128L",
    "AEGIS128X2",
    "AEGIS128X4",
    "AEGIS256",
    "AESGCM",
    "AESGCMSIV",
    "Engine",
    "InvalidTag",
    "Key",
    "KeySet",
    "NonceCounter",
    "XAES256GCM",
    "crypt",
    "ctr",
    "exceptions",
    "generate_key_file",
    "list_backends",
    "open",
    "open_batch",
    "open_bytes",
    "open_into",
    "open_stream",
    "opened_offsets",
    "seal",
    "seal_batch",
    "seal_stream",
    "sealed_offsets",
    "wipe",
]
