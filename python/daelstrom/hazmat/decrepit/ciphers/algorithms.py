# SPDX-License-Identifier: Apache-2.0
"""Absent algorithms, by pyca/cryptography's names."""

from ...primitives.ciphers.algorithms import ARC4, CAST5, IDEA, SEED, Blowfish, Camellia, TripleDES

__all__ = ["ARC4", "CAST5", "IDEA", "SEED", "Blowfish", "Camellia", "TripleDES"]
