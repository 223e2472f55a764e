# SPDX-License-Identifier: Apache-2.0
"""daelstrom.aescuda by the name that programs import."""

from daelstrom.aescuda import decrypt, encrypt

__all__ = ["decrypt", "encrypt"]
