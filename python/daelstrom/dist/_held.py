# SPDX-License-Identifier: Apache-2.0
"""Who a worker is, and what it holds of each job: keys, stores, a device. A worker makes a pair of keys when it is first
asked; the secret one stays in its memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
import weakref
from typing import Any
from urllib.parse import urlsplit

import fsspec

from .. import _core, files
from ..fs import DaelstromFileSystem
from ._secrets import Keys, Settings, opened

__all__ = ["Changed", "Held", "NeedsKeys", "filesystem", "forget", "has", "held_by", "introduce", "renew", "take", "words"]

# A client that is there says so far more often; what one left behind that was killed is wiped.
RENEWED, LEASE = 60.0, 900.0
_ENDING = 30.0  # what runs looks up at least every 8 MiB


class NeedsKeys(Exception):
    """This worker has none for the job: it came, or was started anew, after they were handed out, or the job is over."""


class Changed(OSError):
    """The source is another one than when it was begun."""


def filesystem(url: str, storage: dict[str, dict[str, Any]], **more: Any) -> tuple[Any, str]:
    """As fsspec's url_to_fs(), but that ``::`` in a name, which is a stranger's perhaps, chains nothing."""
    protocol = fsspec.utils.get_protocol(url)
    cls = fsspec.get_filesystem_class(protocol)
    options = {**cls._get_kwargs_from_urls(url), **storage.get(protocol, {}), **more}
    if protocol in ("file", "local"):
        options.setdefault("auto_mkdir", True)
    return fsspec.filesystem(protocol, **options), str(cls._strip_protocol(url))


class Held:
    """What a worker knows of one job. *Threads*: any number. *close() during use* ends what uses it soon, at `check`."""

    def __init__(self, old: Keys | None, new: Keys | None, settings: Settings, rank: int, beside: int) -> None:
        self.old, self.new, self.settings = old, new, settings
        self.renewed = time.monotonic()
        self.engine = engine_for(settings.device, rank, beside)
        self._lock, self._users, self._closed = threading.Lock(), 0, False
        # Of this job alone: fsspec would keep them, and the options with which they were made, for ever.
        self._stores: dict[str, Any] = {}

    def __enter__(self) -> Held:
        with self._lock:
            if self._closed:
                raise NeedsKeys("the job is over")
            self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            last = self._closed and self._users == 0
        if last:
            self._wipe()

    def check(self) -> None:
        """Before anything is written: that the job still goes on."""
        if self._closed:
            raise NeedsKeys("the job is over")

    def close(self) -> None:
        with self._lock:
            last, self._closed = not self._closed and self._users == 0, True
        if last:
            self._wipe()

    @property
    def used(self) -> bool:
        return self._users > 0

    def _wipe(self) -> None:
        self._stores.clear()
        for keys in (self.old, self.new):
            if keys is not None:
                keys.close()

    def plain(self, url: str) -> tuple[Any, str]:
        protocol = fsspec.utils.get_protocol(url)
        cls = fsspec.get_filesystem_class(protocol)
        which = json.dumps([protocol, cls._get_kwargs_from_urls(url)], sort_keys=True, default=str)
        with self._lock:
            fs = self._stores.get(which)
        if fs is None:
            fs, _ = filesystem(url, self.settings.storage, skip_instance_cache=True)
            with self._lock:
                fs = self._stores.setdefault(which, fs)
        return fs, str(cls._strip_protocol(url))

    def sealed(self, url: str, keys: Keys | None) -> tuple[DaelstromFileSystem, str]:
        assert keys is not None
        fs, path = self.plain(url)
        key: Any = keys.keys
        made = DaelstromFileSystem(
            fs=fs, key=key, aad=self.settings.aad, bind_names=self.settings.bind_names, skip_instance_cache=True
        )
        if keys.keyset:  # all its keys open
            made._keys = keys.keys
        made._engine = self.engine
        return made, path

    def words(self, error: Exception) -> str:
        """An error as it leaves this worker."""
        return words(error, self.settings.storage)


_SECRET = ("key", "secret", "token", "pass", "sas", "cred", "sign", "auth", "connection", "cookie")
_SHORTEST = 4


def _secrets_of(options: Any, name: str = "") -> set[str]:
    """Of the stores' options, what nobody else is to read: by their names, and what stands in URLs before the host."""
    if isinstance(options, dict):
        return {one for key, value in options.items() for one in _secrets_of(value, f"{name} {key}".lower())}
    if isinstance(options, (list, tuple)):
        return {one for value in options for one in _secrets_of(value, name)}
    found = set()
    if isinstance(options, str):
        if any(word in name for word in _SECRET):
            found.add(options)
        with contextlib.suppress(ValueError):
            found |= {one for one in (urlsplit(options).password, urlsplit(options).query) if one}
    return {one for one in found if len(one) >= _SHORTEST}


def words(error: BaseException, storage: Any) -> str:
    """An error as a report has it: stores name their options, now and then."""
    text = f"{type(error).__name__}: {error}"
    # The longest ones first, as others may be in them.
    for one in sorted(_secrets_of(storage), key=len, reverse=True):
        text = text.replace(one, "***")
    return text


def engine_for(device: str, rank: int, beside: int) -> _core.Engine:
    """Of the worker `rank` of `beside` on one machine: a GPU of its own, in turn, and its share of the cores."""
    gpus = sum(1 for one in _core.list_backends() if one["present"] and str(one["name"]).partition(":")[0] == "cuda")
    share = 1 / max(1, beside)
    if device == "cuda" or (device == "auto" and gpus > 1):
        mine = f"cuda:{rank % max(1, gpus)}"
        return _core.Engine(mine if device == "cuda" else f"{mine}+cpu", cpu_share=share)
    return _core.Engine("" if device == "auto" else device, cpu_share=share)


class _Worker:
    """Of one worker, by all its threads: who it is, and what it was told of each job."""

    def __init__(self) -> None:
        self.identity, self.recipient = files.generate_identity()
        self.jobs: dict[str, Held] = {}


_workers: weakref.WeakKeyDictionary[Any, _Worker] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def _in_child() -> None:
    global _making
    _making = threading.Lock()
    _workers.clear()  # a child is no worker


os.register_at_fork(after_in_child=_in_child)


def _of(worker: Any) -> _Worker:
    with _making:
        if worker not in _workers:
            _workers[worker] = _Worker()
        return _workers[worker]


def held_by(worker: Any, job: str) -> Held:
    held = _of(worker).jobs.get(job)
    if held is None:
        raise NeedsKeys("this worker has no keys for the job yet")
    return held


# What clients call by `Client.run`.


def introduce(dask_worker: Any) -> str:
    """Whom to seal for."""
    return _of(dask_worker).recipient


def take(job: str, blob: bytes, ranks: dict[str, tuple[int, int]], dask_worker: Any) -> list[str]:
    """The keys of a job. Answers the backends that will be used."""
    mine = _of(dask_worker)
    if job not in mine.jobs:
        old, new, settings = opened(blob, mine.identity, job)
        try:
            mine.jobs[job] = Held(old, new, settings, *ranks.get(dask_worker.address, (0, 1)))
        except BaseException:
            for keys in (old, new):
                if keys is not None:
                    keys.close()
            raise
        renew(job, dask_worker)  # a device may have taken its time
        _expire(dask_worker, job)
    renew(job, dask_worker)
    return mine.jobs[job].engine.backends()


def _expire(worker: Any, job: str) -> None:
    """Looks now and then whether the client is still there."""
    held = _of(worker).jobs.get(job)
    if held is None:
        return
    left = held.renewed + LEASE - time.monotonic()
    if left > 0:
        worker.loop.call_later(left, _expire, worker, job)
    else:
        _of(worker).jobs.pop(job).close()


def renew(job: str, dask_worker: Any) -> None:
    held = _of(dask_worker).jobs.get(job)
    if held is not None:
        held.renewed = time.monotonic()


def has(job: str, dask_worker: Any) -> bool:
    return job in _of(dask_worker).jobs


async def forget(job: str, dask_worker: Any) -> bool:
    """Answers whether nothing of the job runs here any more."""
    held = _of(dask_worker).jobs.pop(job, None)
    if held is None:
        return True
    held.close()
    until = time.monotonic() + _ENDING
    while held.used and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return not held.used
