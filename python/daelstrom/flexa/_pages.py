# SPDX-License-Identifier: Apache-2.0
"""What a mount knows of open files, and of what the kernel keeps of them."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Any

from .files import Entry

__all__ = ["Hidden", "Pages", "Reading"]

_MOST = 100_000
Version = tuple[str, int]  # a file, and its version


class Reading:
    """A version that is read, by one descriptor."""

    def __init__(self, file: Any) -> None:
        self.lock = threading.Lock()
        self.be(file)

    def be(self, file: Any) -> None:
        self.file, self.name = file, file.name
        opened = file._raw.open_source()
        manifest = opened.signed.manifest
        self.true = Entry(file.name, "file", manifest.size, manifest.time, manifest.version)
        self.stood: Version = (opened._keys.name, manifest.version)

    def read(self, at: int, size: int) -> bytes:
        self.file.seek(at)
        data = bytes(self.file.read(size))
        if len(data) != max(0, min(size, self.true.size - at)):  # less would be an end to the kernel
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.name)
        return data


class Hidden:
    """A file whose name libfuse took away, since it is open: it goes when it is closed, unless it gets its name back."""

    def __init__(self, name: str, stored: bool) -> None:
        self.name, self.stored = name, stored
        self.back: bool | None = None  # None: it shall go; False: it shall have its name back; True: it has


class Pages:
    """The kernel keeps one size and one set of pages of a file, for all who have it open: of which version they are,
    whether this mount has written it, and what size it was told. Any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[str, tuple[Version | None, bool]] = {}
        self._sizes: dict[str, int] = {}

    def opened(self, name: str, version: Version | None) -> bool:
        """Whether those that it has are of a version that is opened."""
        with self._lock:
            if version is not None and self._of.get(name, (None, False))[0] == version:
                return True
            self._set(self._of, name, (version, False))
        return False

    def written(self, name: str, version: Version | None) -> None:
        with self._lock:
            self._set(self._of, name, (version, True))

    def of(self, name: str) -> tuple[Version | None, bool]:
        with self._lock:
            if name not in self._of:
                return None, False
            self._set(self._of, name, self._of[name])  # in use
            return self._of[name]

    def forget(self, name: str) -> None:
        with self._lock:
            self._of.pop(name, None)

    def tell(self, name: str, size: int, *, least: bool = False) -> None:
        with self._lock:
            self._set(self._sizes, name, max(size, self._sizes.get(name, 0)) if least else size)

    def size(self, name: str) -> int | None:
        with self._lock:
            return self._sizes.get(name)

    def moved(self, now: Callable[[str], str], target: str) -> None:
        with self._lock:
            for of in (self._of, self._sizes):
                self._move(of, now, target)

    def _move(self, of: dict[str, Any], now: Callable[[str], str], target: str) -> None:
        of.pop(target, None)
        for name in [name for name in of if now(name) != name]:
            of[now(name)] = of.pop(name)

    def _set(self, of: dict[str, Any], name: str, value: Any) -> None:
        """The oldest are forgotten: of those it asks again by itself."""
        of.pop(name, None)
        of[name] = value
        while len(of) > _MOST:
            del of[next(iter(of))]
