# SPDX-License-Identifier: Apache-2.0
"""Where pyca/cryptography has had these modes since version 47."""

from ...primitives.ciphers.modes import CFB, CFB8, OFB

__all__ = ["CFB", "CFB8", "OFB"]
