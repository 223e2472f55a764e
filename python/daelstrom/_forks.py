# SPDX-License-Identifier: Apache-2.0
"""What objects with a lock of Python's do in a child of ``fork()``: whoever held the lock is not there."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What is told of a fork."""

    def _after_fork(self) -> None:
        """Called in the child, before anything else of it runs: takes a new lock, and forgets what is its parent's."""


_told: weakref.WeakSet[Forked] = weakref.WeakSet()


def tell(what: Forked) -> None:
    """From now on, for as long as it lives."""
    _told.add(what)


def _in_child() -> None:
    for what in list(_told):
        what._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
