# SPDX-License-Identifier: Apache-2.0
"""Blocks of ciphertext on the client's disk, by their hashes: verified once more whenever they are used."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import time
from collections import OrderedDict

from .errors import FlexaError
from .store import Folder

__all__ = ["Cache"]

_BLOCK, _ASIDE = re.compile(r"[0-9a-f]{64}\Z"), re.compile(r"t-[0-9a-f]{32}\Z")  # what lies here by us
_ABANDONED = 3600.0  # seconds after which nobody is still writing what lies aside


class Cache:
    """A folder of its own, of at most `size` bytes; what was used last stays. Any number of threads; processes may
    share a folder, each with a bound of its own. What it cannot write it goes without; what others have put there it
    leaves alone."""

    def __init__(self, path: str | os.PathLike[str], size: int) -> None:
        if size < 0:
            raise ValueError(f"cache_size is {size}; it is a number of bytes")
        self._path = os.path.abspath(os.fspath(path))
        self._folder, self._most = Folder(self._path, sync=False), size
        self._folder.make_root()
        self._lock = threading.Lock()
        self._known: OrderedDict[str, int] = OrderedDict()
        found = sorted(self._folder.ls("").items(), key=lambda one: one[1][1] or 0.0)
        for name, (bytes_, at) in found:
            if _BLOCK.match(name):
                self._known[name] = bytes_
            elif _ASIDE.match(name) and at is not None and time.time() - at > _ABANDONED:
                with contextlib.suppress(OSError):
                    self._folder.rm("", name)
        self._held = sum(self._known.values())
        self._trim()

    def get(self, digest: bytes) -> bytes | None:
        name = digest.hex()
        with self._lock:
            if name not in self._known:
                return None
            self._known.move_to_end(name)
            most = self._known[name] + 1  # it may have been made larger
        try:
            data = self._folder.get("", name, 0, most)
        except (OSError, FlexaError):
            data = b""
        if hashlib.sha256(data).digest() != digest:
            self._forget(name)
            return None
        with contextlib.suppress(OSError):
            os.utime(os.path.join(self._path, name))  # for who opens the cache next
        return data

    def put(self, digest: bytes, data: bytes) -> None:
        name = digest.hex()
        if len(data) > self._most:
            return
        try:
            self._folder.put("", name, data)
        except OSError:
            return
        with self._lock:
            self._held += len(data) - self._known.pop(name, 0)
            self._known[name] = len(data)
        self._trim()

    def _trim(self) -> None:
        gone = []
        with self._lock:
            while self._held > self._most:
                old, size = self._known.popitem(last=False)
                self._held -= size
                gone.append(old)
        for old in gone:
            with contextlib.suppress(OSError):
                self._folder.rm("", old)

    def _forget(self, name: str) -> None:
        with self._lock:
            self._held -= self._known.pop(name, 0)
        with contextlib.suppress(OSError):
            self._folder.rm("", name)
