# SPDX-License-Identifier: Apache-2.0
"""What a keyring has seen: the newest version of each file, so that stores cannot go back behind it."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from typing import Any

from .errors import FlexaError, RollBack

__all__ = ["Seen"]


class SeenError(FlexaError, OSError):
    """What was seen cannot be looked up."""


class Seen:
    """In a file of its own (SQLite), for any number of processes and threads; without a path, or where no file can be
    made, in memory. A child of fork() is refused: the connection is the parent's."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else os.path.abspath(path)
        self._lock, self._process = threading.Lock(), os.getpid()
        self._memory: dict[str, tuple[int, bytes]] = {}
        self._connection: Any = None
        self.said = ""  # why it is in memory all the same
        if self._path is not None:
            try:
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_RDWR, 0o600))
            except FileExistsError:
                pass
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                self.said = f"{self._path} cannot be made ({error.strerror}): which versions are seen is forgotten at the end"
                self._path = None
        if self._path is not None:
            try:
                self._open()
            except sqlite3.Error as error:
                raise SeenError(f"{self._path}: {error}") from None

    def _open(self) -> Any:
        if self._connection is None:
            assert self._path is not None
            made = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
            made.execute("PRAGMA journal_mode=WAL")
            made.execute("PRAGMA synchronous=NORMAL")
            made.execute("CREATE TABLE IF NOT EXISTS seen (file TEXT PRIMARY KEY, version INTEGER, digest BLOB) WITHOUT ROWID")
            self._connection = made
        return self._connection

    def newest(self, file: str) -> tuple[int, bytes] | None:
        if self._process != os.getpid():  # before the lock, which somebody who is not there may hold
            raise RuntimeError("what was seen is the parent process's; a child of fork() opens a FlexA of its own")
        with self._lock:
            known = self._memory.get(file)
            if self._path is not None:
                try:
                    row = self._open().execute("SELECT version, digest FROM seen WHERE file = ?", (file,)).fetchone()
                except sqlite3.Error as error:
                    raise SeenError(f"{self._path}: {error}") from None
                if row is not None and (known is None or row[0] > known[0]):
                    known = (row[0], bytes(row[1]))
            return known

    def accept(self, file: str, version: int, digest: bytes, before: tuple[int, bytes] | None = None) -> None:
        """Remembers a version that is decided. Raises `RollBack` where it is older than what was known before the stores
        were asked, or another one of its number."""
        known = None
        if before is not None and version < before[0]:
            raise RollBack(f"the stores show version {version} of {file}; version {before[0]} was seen before")
        with contextlib.suppress(SeenError):  # it is decided, whatever can be written of it here
            known = self.newest(file)
        if known is not None:
            if version == known[0] and digest != known[1]:
                raise RollBack(f"the stores show another version {version} of {file} than was seen before")
            if version <= known[0]:
                return
        with self._lock:
            if self._path is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._open().execute(
                        "INSERT INTO seen VALUES (?, ?, ?) ON CONFLICT (file) DO UPDATE SET version = excluded.version, "
                        "digest = excluded.digest WHERE excluded.version > seen.version",
                        (file, version, digest),
                    )
                    return
            self._memory[file] = (version, digest)

    def forget(self, file: str) -> None:
        """Of a file that is removed."""
        with self._lock:
            self._memory.pop(file, None)
            if self._path is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._open().execute("DELETE FROM seen WHERE file = ?", (file,))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
