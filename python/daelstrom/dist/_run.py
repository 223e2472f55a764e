# SPDX-License-Identifier: Apache-2.0
"""The client's side of a job: units of work go out, what fails for a while goes out again, workers without keys get
them. Dask itself gives the work of a worker that is lost to others."""

from __future__ import annotations

import contextlib
import glob
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from distributed import Client, as_completed
from distributed.scheduler import KilledWorker
from fsspec.implementations.local import LocalFileSystem

from .._objects import mark_of
from ..exceptions import FormatError, InvalidTag
from . import _held, _worker
from ._plan import Found
from ._ranges import cuts, new_header
from ._report import Done, Report
from ._secrets import Keys, Settings, Spec, sealed

__all__ = ["Job"]

_SMALL, _TOGETHER = 8 << 20, 32  # bytes and objects that go out as one unit
_MOST_PARTS = 9000  # S3 takes 10,000


_MOST_KEYLESS = 20  # workers that a unit meets before they have keys


class _Unit(NamedTuple):
    work: list[_worker.Item | _worker.Part]
    objects: list[int]
    attempt: int = 0
    keyless: int = 0


class Job:
    """One call of `daelstrom.dist`. One thread."""

    def __init__(
        self, client: Client, verb: str, found: list[Found], old: Spec, new: Spec | None, settings: Settings,
        *, part: int, retries: int, progress: Callable[[int, int], None] | None,
    ) -> None:  # fmt: skip
        self._client, self._verb, self._found = client, verb, found
        self._old, self._new, self._settings = old, new, settings
        self._part, self._retries, self._progress = part, retries, progress
        self.name = "0" + secrets.token_hex(7)  # begins with a digit, so that Dask's pages leave it out of groups' names
        self._told: set[str] = set()  # workers that have the keys
        self._pending: dict[Any, _Unit] = {}
        self._waiting: deque[_Unit] = deque()
        self._parts: dict[int, dict[int, str]] = {}  # of each object that is cut, what was made of it so far
        self._cut: dict[int, list[_worker.Part]] = {}
        self._begun: dict[int, int] = {}  # how often before
        self._number = self._done = 0
        self._ended = threading.Event()
        self._keys = Keys(*old)
        self._sealing = Keys(*(new or old))
        self.report = Report(verb, self.name)
        for one in found:
            self.report.objects.append(Done(one.source, one.target, self._expected(one) or 0))
        self._total = sum(one.size for one in self.report.objects)

    def _expected(self, one: Found) -> int | None:
        if self._verb == "encrypt" or one.size is None:
            return one.size
        with contextlib.suppress(FormatError):
            return self._keys.keys.sealing().plain_size(one.size)
        return None  # a worker will say what is wrong with it

    def close(self) -> None:
        self._keys.close()
        self._sealing.close()

    # Keys.

    def _hand_out(self) -> None:
        """To all workers that have none, for them alone. Several rounds, as some may come and go meanwhile."""
        known = {address: info["host"] for address, info in self._client.scheduler_info(n_workers=-1)["workers"].items()}
        new = [address for address in known if address not in self._told]
        if not new:
            return
        met = self._client.run(_held.introduce, workers=new, on_error="return")
        recipients = {address: who for address, who in met.items() if isinstance(who, str)}
        wrong = next((error for error in met.values() if isinstance(error, (ImportError, AttributeError))), None)
        if wrong is not None:
            raise wrong
        if not recipients:
            return
        blob = sealed(self._old, self._new, self._settings, list(recipients.values()), self.name)
        hosts = list(known.values())
        ranks = {
            address: (sorted(a for a in known if known[a] == host).index(address), hosts.count(host))
            for address, host in known.items()
        }
        took = self._client.run(
            _held.take, self.name, blob, ranks, workers=list(recipients), on_error="return"
        )
        for address, backends in took.items():
            if isinstance(backends, list):
                self._told.add(address)
                self.report.workers[address] = backends
            elif not isinstance(backends, (OSError, InvalidTag)):  # it is gone, or another one is in its place
                raise backends

    # Work.

    def _units(self) -> Iterator[_Unit]:
        """Large objects cut, small ones together."""
        small: list[int] = []
        room = 0
        for i, done in enumerate(self.report.objects):
            if done.size > 2 * self._part:
                try:
                    parts = list(self._begin_cut(i)) if self._can_cut(i) else []
                except Exception:
                    parts = []  # a worker will say it
                if parts:
                    yield from parts
                    continue
            small.append(i)
            room += max(done.size, 1)
            if room >= _SMALL or len(small) == _TOGETHER:
                yield self._together(small)
                small, room = [], 0
        if small:
            yield self._together(small)

    def _together(self, objects: list[int], attempt: int = 0) -> _Unit:
        found = [self._found[i] for i in objects]
        return _Unit([_worker.Item(self._verb, one.source, one.target) for one in found], list(objects), attempt)

    def _can_cut(self, i: int) -> bool:
        """Whether it goes by ranges. What is there already is skipped or compared, by one worker."""
        to = self._found[i].target
        if to is not None and self._settings.existing != "replace":
            fs, path = _held.filesystem(to, self._settings.storage)
            if fs.exists(path):
                return False
        return self._verb in ("verify", "decrypt") or self._sealing.hash == "sha256"

    def _begin_cut(self, i: int, attempt: int = 0) -> Iterator[_Unit]:
        """Under a new header, whenever it is begun: another plaintext never meets the nonces of an earlier one."""
        one, done = self._found[i], self.report.objects[i]
        fs, path = _held.filesystem(one.source, self._settings.storage)
        fs.invalidate_cache()
        info = fs.info(path)
        mark, head = mark_of(info), b""
        if self._verb != "encrypt":
            _, head = _worker.head_of(fs, path, self._keys.keys if self._old.keyset else self._keys.keys.sealing(), info["size"])
        elif not any(one is not None for one in mark[1:]):
            raise OSError(f"{path!r}: the store does not tell versions apart, so that ranges might be of several")
        sealing = self._keys.keys.sealing()
        total = int(info["size"]) if self._verb == "encrypt" else sealing.plain_size(info["size"])
        layout = self._sealing if self._verb in ("encrypt", "rekey") else self._keys
        header = new_header(self._sealing.size)  # which tells parts of this beginning from earlier ones, whatever the verb
        parts = [
            _worker.Part(self._verb, one.source, one.target, mark, head, header, number, begin, end, total)
            for number, (begin, end) in enumerate(cuts(layout.keys, total, self._part, _MOST_PARTS))
        ]
        done.parts, done.size = len(parts), total
        self._parts[i], self._cut[i], self._begun[i] = {}, parts, attempt
        for part in parts:
            yield _Unit([part], [i], attempt)

    def run(self) -> None:
        started = time.monotonic()
        threading.Thread(target=self._renew, name="daelstrom.dist", daemon=True).start()
        try:
            self._go()
        finally:
            self._end()
            self.report.seconds = time.monotonic() - started

    def _renew(self) -> None:
        """Tells the workers that somebody still wants their keys kept."""
        while not self._ended.wait(_held.RENEWED):
            with contextlib.suppress(Exception):
                self._client.run(_held.renew, self.name, on_error="ignore")

    def _go(self) -> None:
        self._hand_out()
        units = self._units()
        ready = as_completed(with_results=False)
        while True:
            # Not more than keeps the workers busy: the scheduler remembers each.
            while len(self._pending) < max(32, 4 * sum(self._client.nthreads().values())):
                unit = self._waiting.popleft() if self._waiting else next(units, None)
                if unit is None:
                    break
                if self._over(unit):
                    continue
                key = f"daelstrom-{self._verb}-{self.name}-{self._number}"
                self._number += 1
                future = self._client.submit(_worker.do, self.name, unit.work, key=key, pure=False, retries=0)
                self._pending[future] = unit
                ready.add(future)
            if not self._pending:
                return
            future = next(ready)
            unit = self._pending.pop(future)
            self._take(future, unit)
            future.release()

    def _over(self, unit: _Unit) -> bool:
        """Of a part: its object has failed by another one, or was begun anew."""
        return isinstance(unit.work[0], _worker.Part) and (
            self.report.objects[unit.objects[0]].outcome == "failed" or self._stale(unit)
        )

    def _stale(self, unit: _Unit) -> bool:
        cut = self._cut.get(unit.objects[0])
        return not cut or cut[0][:6] != unit.work[0][:6]

    def _take(self, future: Any, unit: _Unit) -> None:
        if future.status == "finished":
            for work, i, row in zip(unit.work, unit.objects, future.result()):
                self._row(unit, work, i, *row)
            return
        error = future.exception() if future.status == "error" else None
        if isinstance(error, _held.NeedsKeys):
            self._told &= set(self.report.workers) & set(self._have_keys())
            self._hand_out()
            if unit.keyless < _MOST_KEYLESS:  # no attempt of its own: nothing was tried
                self._waiting.append(unit._replace(keyless=unit.keyless + 1))
                return
        lost = error is None or isinstance(error, (KilledWorker, OSError))
        text = "the work was lost with its workers" if error is None else _held.words(error, self._settings.storage)
        if isinstance(unit.work[0], _worker.Item) and len(unit.objects) > 1 and lost:
            for i in unit.objects:  # one of them may be what no worker lives through
                self._waiting.append(self._together([i], unit.attempt))
            return
        for work, i in zip(unit.work, unit.objects):
            self._row(unit, work, i, "failed", 0, text, lost, "")

    def _have_keys(self) -> list[str]:
        answers = self._client.run(_held.has, self.name, on_error="return")
        return [address for address, answer in answers.items() if answer is True]

    def _row(
        self, unit: _Unit, work: Any, i: int, outcome: str, size: int, told: str, may_pass: bool, worker: str
    ) -> None:
        done = self.report.objects[i]
        cut = isinstance(work, _worker.Part)
        if cut and self._over(unit):
            return
        done.attempts += 1
        if worker and worker not in done.workers:
            done.workers.append(worker)
        if outcome == "failed":
            kind = told.partition(":")[0]
            in_place = self._verb == "rekey" and work.target in (None, work.source)
            if cut and in_place and kind in ("InvalidTag", "FormatError"):
                # An earlier run has done it, perhaps: whole, a worker tries the new key too.
                self._cut.pop(i)
                self._waiting.append(self._together([i]))
            elif not may_pass or unit.attempt >= self._retries:
                done.outcome, done.error = "failed", told
            elif cut and kind == "Changed":
                # What lies there of the earlier beginning stays until the job ends: some may go on with it.
                try:
                    self._waiting.extend(self._begin_cut(i, unit.attempt + 1))
                except Exception:  # a worker will say it; or that an attempt has done it, whose worker was lost before it told
                    self._cut.pop(i, None)
                    self._waiting.append(self._together([i], unit.attempt + 1))
            else:
                self._waiting.append(_Unit([work], [i], unit.attempt + 1))
        elif not cut or work.end < 0:
            done.outcome, done.size = outcome, size
            if not cut:
                self._tell(size)
        else:
            self._parts[i][work.number] = told
            self._tell(size)
            if len(self._parts[i]) == len(self._cut[i]):
                names = tuple(self._parts[i][number] for number in range(len(self._cut[i])))
                self._waiting.append(_Unit([work._replace(end=-1, number=-1, names=names)], [i], self._begun[i]))

    def _tell(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done, max(self._total, self._done))

    def _discard(self, i: int) -> None:
        """What lies there of an object that was cut."""
        one = self._found[i]
        if self._verb == "verify" or i not in self._begun:
            return
        fs, path = _held.filesystem(one.target or one.source, self._settings.storage)
        folder = _worker.folder_of(path, self.name)
        with contextlib.suppress(FileNotFoundError):
            fs.invalidate_cache()
            if glob.has_magic(folder) and not isinstance(fs, LocalFileSystem):  # rm() would take it for a pattern
                for name in fs.find(folder):
                    fs.rm_file(name)
            else:
                fs.rm(folder, recursive=True)

    def _end(self) -> None:
        self._ended.set()
        try:
            for future in list(self._pending):
                with contextlib.suppress(Exception):
                    future.cancel()
            with contextlib.suppress(Exception):  # what still runs ends first, which would leave parts behind
                self._client.run(_held.forget, self.name, on_error="ignore")
            for i in self._begun:  # of what was cut at first, and then was not, some went on
                with contextlib.suppress(Exception):
                    self._discard(i)
        finally:  # a second Ctrl-C too
            self.close()
