# SPDX-License-Identifier: Apache-2.0
"""The stores of one FlexA: three primaries, which decide, and secondaries, which hold replicas."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .errors import Fault, Lost, Unavailable
from .store import Job, Store

__all__ = ["Group", "QUORUM"]

QUORUM = 2
_KEPT = 1000  # faults that are remembered
_LATE = 20  # times `hedge`
_REST = 5.0  # seconds
Answer = TypeVar("Answer")


class Group:
    """Any number of threads. A child of fork() is refused by its stores."""

    def __init__(self, primaries: Sequence[Store], secondaries: Sequence[Store], hedge: float) -> None:
        if len(primaries) != 3:
            raise ValueError(f"FlexA has three primaries, not {len(primaries)}")
        self.primaries, self.secondaries = list(primaries), list(secondaries)
        if len({store.url for store in self.stores}) != len(self.stores):
            raise ValueError("one store stands there twice; each is a place of its own")
        self.hedge, self._process = hedge, os.getpid()
        self.faults: deque[Fault] = deque(maxlen=_KEPT)
        self._rest: dict[Store, float] = {}  # until when it is not asked for listings, as it failed
        self._late: dict[Store, float] = {}  # until when a store is asked last, as it was slow or failed

    def is_parents(self) -> bool:
        return self._process != os.getpid()

    def check_process(self) -> None:
        """Before any lock: in a child of fork() somebody who is not there may hold it."""
        if self.is_parents():
            raise RuntimeError("this FlexA is the parent process's; a child of fork() opens one of its own")

    @property
    def stores(self) -> list[Store]:
        return self.primaries + self.secondaries

    def note(self, store: Store, file: str, error: BaseException) -> None:
        """A fault, once in a row."""
        fault = store.fault(file, error)
        if not self.faults or self.faults[-1] != fault:
            self.faults.append(fault)

    def each(self, file: str, call: Callable[[Store], Job], stores: Iterable[Store] | None = None) -> dict[Store, Any]:
        """The answers of those that have one by their deadline; of all of them, not of the first two: one that lies is
        outvoted by two that do not."""
        jobs = [(store, call(store)) for store in (self.primaries if stores is None else stores)]
        answers: dict[Store, Any] = {}
        for store, job in jobs:
            try:
                answers[store] = store.wait(job)
            except Exception as error:
                self.note(store, file, error)
        return answers

    def quorum(self, file: str, call: Callable[[Store], Job], *, every: bool = False) -> dict[Store, Any]:
        """The answers of two primaries at least. One that has just failed is left out for some seconds, unless `every`
        one is asked, or the others are too few."""
        now = time.monotonic()
        resting = [] if every else [store for store in self.primaries if self._rest.get(store, 0.0) > now]
        answers: dict[Store, Any] = {}
        for stores in ([store for store in self.primaries if store not in resting], resting):
            if len(answers) >= QUORUM:
                break
            answers.update(self.each(file, call, stores))
            for store in stores:
                self._rest[store] = 0.0 if store in answers else time.monotonic() + _REST
        if len(answers) < QUORUM:
            raise Unavailable(self.why(f"{len(answers)} of three primaries answer"))
        return answers

    def why(self, said: str) -> str:
        recent = [str(fault) for fault in list(self.faults)[-3:]]
        return said + (" (" + "; ".join(recent) + ")" if recent else "")

    def fetch(
        self, file: str, what: str, stores: Sequence[Store], call: Callable[[Store], Job],
        check: Callable[[Any], Answer], *, quietly: bool = False,
    ) -> Answer:  # fmt: skip
        """The first answer that `check` lets pass (it raises where it does not): a store is asked, and after `hedge`
        seconds the next one too."""
        answered: queue.SimpleQueue[tuple[Store, Job]] = queue.SimpleQueue()
        waiting: dict[Job, Store] = {}
        begun = time.monotonic()
        left = deque(sorted(stores, key=lambda store: self._late.get(store, 0.0) > begun))
        next_at = 0.0
        while waiting or left:
            now = time.monotonic()
            if left and (not waiting or now >= next_at):
                for store in waiting.values():
                    self._late[store] = now + _LATE * self.hedge
                store = left.popleft()
                job = call(store)
                waiting[job] = store
                store.tell(job, lambda job, store=store: answered.put((store, job)))  # type: ignore[misc]
                next_at = now + self.hedge
            until = min((job.left() for job in waiting), default=0.0)
            try:
                store, job = answered.get(timeout=max(0.001, min(until, next_at - now if left else until, 5.0)))
            except queue.Empty:
                for store in set(waiting.values()):
                    store.reap()  # which tells of what it gives up
                continue
            if waiting.pop(job, None) is None:
                continue
            try:
                return check(store.answer(job))
            except Exception as error:
                if not quietly:
                    self._late[store] = time.monotonic() + _LATE * self.hedge
                    self.note(store, file, error)
                next_at = 0.0  # another one now, though others are waited for
        raise Lost(self.why(f"no store has {what} of {file}, or not unharmed"))

    def close(self) -> None:
        for store in self.stores:
            store.close()


class Background:
    """One thread that does what may wait, in order: a file's copies to the secondaries, and what is left over. What
    fails there is a fault, and `repair` makes it good."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock = threading.Condition()
        self._calls: dict[Any, Callable[[], None]] = {}
        self._waiting = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, key: Any, call: Callable[[], None]) -> None:
        """In the place of what waits under the same key. Nothing, where no thread is to be had: `repair` does it."""
        with self._lock:
            waits = key in self._calls
            if not waits and not self._started():
                return
            self._calls[key] = call
            if not waits:
                self._waiting += 1
                self._queue.put(key)

    def _started(self) -> bool:
        if self._closed:
            return False
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="flexa background", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the process has as many as it may
                return False
            self._thread = thread
        return True

    def _work(self) -> None:
        while (key := self._queue.get()) is not None:
            with self._lock:
                call = self._calls.pop(key)
            try:
                call()
            except BaseException:  # noqa: S110  it is among the faults already; who drains waits for what comes after it
                pass
            with self._lock:
                self._waiting -= 1
                self._lock.notify_all()

    @property
    def waiting(self) -> int:
        with self._lock:
            return self._waiting

    def drain(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._waiting == 0)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._queue.put(None)
