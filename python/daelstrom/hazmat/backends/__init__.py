# SPDX-License-Identifier: Apache-2.0
"""For programs that still pass a backend, as pyca/cryptography asked for before version 3.1."""

from __future__ import annotations

from typing import Any


def default_backend() -> Any:
    """What ``Cipher`` takes as ``backend``, and does nothing with."""
    return None
