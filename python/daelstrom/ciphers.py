# SPDX-License-Identifier: Apache-2.0
"""``Cipher`` with its algorithms and modes, as pyca/cryptography has them.

>>> from daelstrom.ciphers import Cipher, algorithms, modes
>>> encryptor = Cipher(algorithms.AES(bytes(16)), modes.CTR(bytes(16))).encryptor()
>>> (encryptor.update(b"attack at") + encryptor.update(b" dawn") + encryptor.finalize()).hex()
'079d3fb58ce10c5afc6c9e38bd5a'
"""

from .hazmat.primitives.ciphers import (
    AEADCipherContext,
    AEADDecryptionContext,
    AEADEncryptionContext,
    BlockCipherAlgorithm,
    Cipher,
    CipherAlgorithm,
    CipherContext,
    algorithms,
    modes,
)

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
