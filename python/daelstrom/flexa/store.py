# SPDX-License-Identifier: Apache-2.0
"""One store: a place of objects, each call with a deadline."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import threading
import time
from collections.abc import Callable
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from .errors import Fault
from .places import TEMPORARY, Folder, Objects, StoreError, is_lost

__all__ = ["Folder", "Job", "Objects", "Store", "StoreError"]

_OURS = re.compile(r"[0-9a-f]{96}\Z|flexa-")
_MOST_THREADS = 32
_MARKED = 10.0  # seconds
_RATE = 1 << 20  # bytes a second that a deadline allows a store at least


class Job:
    """A call of a store that a thread of its own makes; whoever waits gives it up at its deadline, and the thread is
    left behind."""

    def __init__(self, call: Callable[[], Any], limit: float) -> None:
        self.call, self.limit = call, limit
        self.begun: float | None = None
        self.done = threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None
        self.given_up = False
        self.told: Callable[[Job], None] | None = None

    def run(self) -> None:
        self.begun = time.monotonic()
        try:
            self.answer = self.call()
        except BaseException as error:
            self.error = error

    def take_told(self) -> Callable[[Job], None]:
        """Under its store's lock: whom to tell, once."""
        told, self.told = self.told, None
        return told or (lambda job: None)

    def left(self) -> float:
        """Seconds until the deadline, which counts from when a thread took it on."""
        return self.limit if self.begun is None else self.begun + self.limit - time.monotonic()


class Store:
    """Threads: any number. close() gives back its idle threads; calls under way end by themselves. A child of fork()
    has none of the threads, and refuses."""

    def __init__(self, url: str, options: dict[str, Any] | None = None, *, deadline: float = 10.0, marker: str = "") -> None:
        self.url, self.deadline, self.marker = url, deadline, marker
        self._options = dict(options or {})
        self._objects: Any = None
        self._marked: Any = None  # of `_objects` it is known that the mark is there,
        self._marked_at = 0.0  # or was then
        self._refused = 0  # how often no connection was had
        self._lock, self._making = threading.Lock(), threading.Lock()
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads = self._idle = self._stuck = 0
        self._running: set[Job] = set()
        self._until = 0.0  # left out before
        self._closed = False
        self._process = os.getpid()
        self.said = ""  # what went wrong last

    # The calls.
    def put(self, folder: str, name: str, data: bytes | bytearray) -> Job:
        return self.submit(lambda: self._do(lambda at: at.put(folder, name, data)), len(data))

    def put_ls(self, folder: str, name: str, data: bytes | bytearray) -> Job:
        """Puts an object, and then lists what is there."""

        def call(objects: Any) -> Any:
            objects.put(folder, name, data)
            listing = objects.ls(folder)
            if name not in listing:  # it may be another place by now
                self._marked = None
            return listing

        return self.submit(lambda: self._do(call), len(data))

    def get(self, folder: str, name: str, start: int | None = None, end: int | None = None, size: int = 0) -> Job:
        return self.submit(lambda: self._do(lambda at: at.get(folder, name, start, end)), size)

    def ls(self, folder: str) -> Job:
        """Of a file that is not there an empty one, which is believed where the mark is seen."""

        def call(objects: Any) -> Any:
            listing = objects.ls(folder)
            if not listing:
                self._marked = None
                self._check(objects)
            return listing

        return self.submit(lambda: self._do(call))

    def rm(self, folder: str, name: str) -> Job:
        return self.submit(lambda: self._do(lambda at: at.rm(folder, name)))

    def rm_folder(self, folder: str) -> Job:
        return self.submit(lambda: self._do(lambda at: at.rm_folder(folder)))

    def room(self) -> Job:
        return self.submit(lambda: self._do(lambda at: at.room()))

    def begin(self, *, again: bool = False) -> Job:
        """Makes it a store of this FlexA. `again`: it is known to be one, and may have lost everything."""

        def others(objects: Any) -> list[str]:
            names = [name for name in objects.ls("") if not name.startswith((TEMPORARY, ".", "lost+found"))]
            if any(name.startswith("flexa-") and name != self.marker for name in names):
                raise StoreError("it belongs to another FlexA")
            return names

        put: list[str] = []

        def mark(objects: Any) -> None:
            objects.pin(None)  # another folder may stand in its place
            objects.make_root()
            if any(not (again and _OURS.match(name)) for name in others(objects) if name not in put):
                raise StoreError("something else is there already")
            put.append(self.marker)  # which is there, if the connection is lost after that
            objects.put("", self.marker, b"daelstrom flexa 1\n")
            try:
                others(objects)
            except StoreError:  # who came at the same time; at least one of the two sees it
                objects.rm("", self.marker)
                raise
            objects.pin(self.marker)
            self._marked, self._marked_at = objects, time.monotonic()

        return self.submit(lambda: self._do(mark, check=False))

    # How they are made.
    def _made(self) -> Any:
        refused = self._refused
        with self._making:  # one connection, not one for each thread that comes first
            if self._objects is None:
                if self._refused != refused:  # while this one waited: those that queue do not each take as long again
                    raise StoreError(f"no connection: {self.said}")
                try:
                    self._objects = self._make()
                except Exception as error:
                    self._refused, self.said = self._refused + 1, _said(error)
                    raise
            return self._objects

    def _make(self) -> Any:
        options = dict(self._options)
        sync = bool(options.pop("sync", True))
        if "://" not in self.url or self.url.startswith(("file://", "local://")):
            return Folder(LocalFileSystem._strip_protocol(self.url), sync)
        return Objects(self.url, options, self.deadline)

    def _do(self, call: Callable[[Any], Any], check: bool = True) -> Any:
        """Once more by a new connection, where the one that there was is lost: SFTP's are not opened again by
        themselves. Another place may stand there then, without the mark."""
        begun: float | None = time.monotonic()
        while True:
            objects = self._made()
            try:
                if check:
                    self._check(objects)
                return call(objects)
            except Exception as error:
                self._marked = None
                if isinstance(error, FileNotFoundError) and check:
                    self._check(objects)  # one object is gone, or all
                if not is_lost(error):
                    raise
                with self._making:
                    if self._objects is objects:
                        self._objects = None
                if begun is None or time.monotonic() - begun > self.deadline:  # nobody waits any more
                    raise
                begun = None

    def _check(self, objects: Any) -> None:
        # Servers that keep no session are started anew, over another disk, without anybody's telling: so it is looked
        # for now and then.
        if self.marker and (self._marked is not objects or time.monotonic() - self._marked_at > _MARKED):
            # An empty folder where a disk is not mounted, a bucket that somebody emptied: no store, and nothing to fill.
            begun = time.monotonic()
            if not objects.has(self.marker):
                raise StoreError("it has not the mark of this FlexA: it is lost, or not mounted")
            objects.pin(self.marker)
            self._marked, self._marked_at = objects, begun

    # `_threads`: how many there are. `_idle`: those that wait for a job, less the jobs that wait for one of them. `_stuck`:
    # those whose job was given up.
    def submit(self, call: Callable[[], Any], size: int = 0) -> Job:
        if self._process != os.getpid():
            raise RuntimeError("this FlexA is the parent process's; a child of fork() opens one of its own")
        job = Job(call, self.deadline + size / _RATE)
        self.reap()
        with self._lock:
            if self._closed:
                raise ValueError("this FlexA is closed")
            if time.monotonic() < self._until or self._stuck >= _MOST_THREADS:
                job.error = StoreError(f"left out for a while: {self.said}")
                job.done.set()
                return job
            if not (self._idle <= 0 and self._threads - self._stuck < _MOST_THREADS and self._start()):
                if self._threads <= self._stuck:  # nobody would take it on
                    job.error = StoreError("no thread can be started")
                    job.done.set()
                    return job
                self._idle -= 1
            self._queue.put(job)
        return job

    def _start(self) -> bool:
        try:
            threading.Thread(target=self._work, name=f"flexa {self.url}", daemon=True).start()
        except RuntimeError:  # the process has as many as it may
            return False
        self._threads += 1
        return True

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            if job is None:
                return
            with self._lock:
                self._running.add(job)
            job.run()
            with self._lock:
                self._running.discard(job)
                if job.given_up:
                    self._stuck -= 1
                    if job.error is None:  # it answers again
                        self._until = 0.0
                if job.error is not None:
                    self.said = _said(job.error)
                self._idle += 1
                job.done.set()
                told = job.take_told()
            told(job)
            del job, told

    def give_up(self, job: Job) -> None:
        """At its deadline: it may yet do what it was told to. The store is left out for a while."""
        with self._lock:
            if job.done.is_set() or job.given_up or job not in self._running:
                return
            job.given_up = True
            self._stuck += 1
            self.said = f"no answer within {job.limit:.1f} s"
            self._until = time.monotonic() + 3 * self.deadline
            # What no thread has taken on yet would wait for those that hang.
            waiting, ends = [], 0
            with contextlib.suppress(queue.Empty):
                while True:
                    one = self._queue.get_nowait()
                    if one is None:
                        ends += 1
                    else:
                        waiting.append(one)
            for _ in range(ends):
                self._queue.put(None)
            for one in waiting:
                self._idle += 1
                one.error = StoreError(f"left out for a while: {self.said}")
                one.done.set()
            tell = [(one.take_told(), one) for one in (job, *waiting)]
        for told, one in tell:
            told(one)

    def reap(self) -> None:
        """Gives up what is late and nobody waits for any more: hedged calls, of which another one was quicker."""
        with self._lock:
            late = [job for job in self._running if not job.given_up and job.left() <= 0]
        for job in late:
            self.give_up(job)

    def tell(self, job: Job, told: Callable[[Job], None]) -> None:
        """Has `told` called once, when a job is done or given up, which may be at once."""
        with self._lock:
            if not (job.done.is_set() or job.given_up):
                job.told = told
                return
        told(job)

    def wait(self, job: Job) -> Any:
        """Its answer, or `StoreError`."""
        while not job.done.wait(max(0.0, min(job.left(), self.deadline))):
            if job.left() <= 0:
                self.give_up(job)
                break
            self.reap()
        return self.answer(job)

    def answer(self, job: Job) -> Any:
        """Of one that is done, or was given up: what it answers later counts no more."""
        if not job.done.is_set() or job.given_up:
            raise StoreError(f"no answer within {job.limit:.1f} s")
        error = job.error
        if error is None:
            return job.answer
        if isinstance(error, (FileNotFoundError, StoreError)) or not isinstance(error, Exception):
            raise error
        raise StoreError(_said(error)) from error

    @property
    def state(self) -> str:
        with self._lock:
            if time.monotonic() < self._until:
                return "hung"
            return "failing" if self.said and self.marker and self._marked is None else "ok"

    def fault(self, file: str, error: BaseException) -> Fault:
        return Fault(self.url, file, _said(error))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._queue.put(None)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if not isinstance(error, StoreError) else str(error)
