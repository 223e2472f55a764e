# SPDX-License-Identifier: Apache-2.0
"""What every class here with a state has: one thread at a time, nobody amid a call of its own, and a lock that a child
of fork() finds free.

The lock is the interpreter's own, so that no interrupt comes between taking it and the block that gives it back.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["Turns"]


class Turns:
    """``with self._turn(): ...`` around whatever changes the state."""

    _lock: Any = None

    def _begin_turns(self) -> None:
        self._lock = threading.RLock()
        _living[id(self)] = self

    def _turn(self) -> Any:
        lock = self._lock
        if lock._is_owned():  # of this thread: a signal handler, or what is called while it works
            raise RuntimeError(f"{self!r} is called amid a call of this thread's own")
        return lock

    def _in_child(self) -> None:
        """After fork(), in the child, before any other thread is there: whoever held the lock is not."""
        self._lock = threading.RLock()


# By their ids: what is equal to others, or cannot be hashed yet, is another one here.
_living: weakref.WeakValueDictionary[int, Turns] = weakref.WeakValueDictionary()


def _in_child() -> None:
    failed = None
    for one in list(_living.values()):
        try:
            one._in_child()
        except BaseException as error:  # of one: the others' locks are free all the same, and so is its own
            one._lock, failed = threading.RLock(), error
    if failed is not None:
        raise failed


os.register_at_fork(after_in_child=_in_child)
