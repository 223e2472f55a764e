# SPDX-License-Identifier: Apache-2.0
"""Where pyca/cryptography defines them."""

from . import AEADCipherContext, AEADDecryptionContext, AEADEncryptionContext, Cipher, CipherContext

__all__ = ["AEADCipherContext", "AEADDecryptionContext", "AEADEncryptionContext", "Cipher", "CipherContext"]
