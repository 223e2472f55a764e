# SPDX-License-Identifier: Apache-2.0
"""Where a store's objects lie: on a file system of fsspec's, or in a folder of this machine.

Objects are written whole, once, under names of their own. What a store answers is believed by nobody: manifests are
signed, and blocks have hashes in them.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import inspect
import io
import os
import random
import secrets
import stat
import time
from collections.abc import Callable
from typing import Any

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from .errors import FlexaError

__all__ = ["TEMPORARY", "Folder", "Objects", "StoreError", "is_lost"]

# Where an object is there whole, or not at all, when a put ends.
_ATOMIC = {"s3", "s3a", "gs", "gcs", "abfs", "az", "abfss", "oss", "oci", "ocilake", "tos", "obs"}
# A server that is gone is told at once: two others serve. What one says it will do later is asked again here
# (`_later`). Blocks and manifests have hashes and signatures of their own, so that botocore's checksums add nothing.
_S3 = {"s3", "s3a"}
_S3_CONFIG = {
    "retries": {"total_max_attempts": 1}, "connect_timeout": 3, "max_pool_connections": 32, "user_agent": "daelstrom",
    "request_checksum_calculation": "when_required", "response_checksum_validation": "when_required",
}  # fmt: skip
_TRIES = 3
_LATER = {423, 429, 500, 502, 503, 504}  # 423: some WebDAV servers lock a folder while somebody else makes it
# By the names of their errors: whose they are need not be installed. asyncssh's, paramiko's, httpx's.
_LOST = {
    "ChannelOpenError", "ConnectionLost", "DisconnectError", "SFTPConnectionLost", "SFTPNoConnection", "SSHException",
    "ReadError", "RemoteProtocolError", "WriteError",
}  # fmt: skip
_LOST_WORDS = ("Socket is closed", "create any SFTP connections")  # paramiko's, and sshfs's, in a ValueError
TEMPORARY = "t-"
_NO_FILE = (FileNotFoundError, NotADirectoryError)
_UNMARKED = "it has not the mark of this FlexA any more: it is lost, or not mounted"


class StoreError(FlexaError):
    """A store failed, or did not answer in time."""


class Objects:
    """Objects of two levels, file/object, on a file system of fsspec's."""

    def __init__(self, url: str, options: dict[str, Any], deadline: float = 10.0) -> None:
        # What keeps listings is told not to; others (sshfs, webdav4) pass options that they do not know on.
        if isinstance(options.get("auth"), list):
            options = {**options, "auth": tuple(options["auth"])}  # webdav4's; keyrings are JSON, which has no tuples
        protocol = fsspec.utils.get_protocol(url)
        fresh = {"use_listings_cache": False} if protocol in _ATOMIC else {}
        config = options.get("config_kwargs") or {}
        quick = protocol in _S3 and "retries" not in config
        if protocol in _S3:
            options = {**options, "config_kwargs": {**_s3_config(), **config}}
        if _is_sshfs(protocol):
            # A server that is silent holds a thread no longer than that, whenever it became so.
            options = {"connect_timeout": deadline, "login_timeout": deadline, "keepalive_interval": max(deadline, 1.0), **options}
        if protocol in ("webdav", "dav"):
            # httpx's 5 seconds are short for a piece of 16 MiB. What webdav4 tries again is tried again here.
            options = {"timeout": deadline, "retry": False, **options}
        self.fs, root = fsspec.core.url_to_fs(url, **{"skip_instance_cache": True, **fresh, **options})
        if quick:
            self.fs.retries = 1  # s3fs's own, of which there are five otherwise, each with botocore's five
        self.root = root.rstrip("/")
        protocols = {self.fs.protocol} if isinstance(self.fs.protocol, str) else set(self.fs.protocol)
        self._atomic = isinstance(self.fs, MemoryFileSystem) or bool(protocols & _ATOMIC)
        self._dav = self.fs.client if "webdav" in protocols and hasattr(self.fs, "client") else None
        self._tries = _TRIES if quick or self._dav is not None else 1
        self._made: set[str] = set()
        # Some read all of a file, whatever is asked for (sshfs).
        asked = inspect.signature(self.fs._cat_file if self.fs.async_impl else self.fs.cat_file).parameters
        self._ranges = {"start", "end"} <= set(asked)

    def _path(self, *parts: str) -> str:
        return "/".join((self.root, *(part for part in parts if part)))

    def _call(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Again, after a pause, where a server says that it is busy or that the fault is its own: `call` may be made
        twice."""
        for tries in range(1, self._tries):
            try:
                return call(*given, **named)
            except Exception as error:
                if not _later(error):
                    raise
            time.sleep(random.uniform(0.1, 0.2) * 2**tries)
        return call(*given, **named)

    def put(self, folder: str, name: str, data: bytes | bytearray) -> None:
        path = self._path(folder, name)
        if self._atomic:
            self._call(self.fs.pipe_file, path, bytes(data))
            return
        aside = self._path(folder, TEMPORARY + secrets.token_hex(16))
        try:
            self._call(self._make, folder)
            try:
                self._call(self._write, aside, bytes(data))
            except FileNotFoundError:  # somebody removed the folder meanwhile
                self._made.discard(folder)
                self._call(self._make, folder)
                self._call(self._write, aside, bytes(data))
            try:
                self._call(self._move, aside, path)
            except Exception as error:
                self._move_over(aside, path, bytes(data), error)
        except BaseException:
            self._made.discard(folder)
            with contextlib.suppress(Exception):
                self.fs.rm_file(aside)
            raise

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            self.fs.makedirs(self._path(folder), exist_ok=True)
            if len(self._made) < 1 << 16:
                self._made.add(folder)

    def _write(self, path: str, data: bytes) -> None:
        if self._dav is None:
            self.fs.pipe_file(path, data)
            return
        # The file system's own looks for the folders above each time, and makes the last one again.
        try:
            self._dav.upload_fileobj(io.BytesIO(data), self.fs._strip_protocol(path), overwrite=True, size=len(data))
        except Exception as error:
            if type(error).__name__ == "ResourceNotFound" or _status(error) == 409:  # as servers call a folder that is not there
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
            raise

    def _move(self, old: str, new: str) -> None:
        if self._dav is None:
            self.fs.mv(old, new)
        else:  # webdav4's mv copies, so that half an object would be seen
            self._dav.move(self.fs._strip_protocol(old), self.fs._strip_protocol(new), overwrite=False)

    def _move_over(self, aside: str, path: str, data: bytes, error: Exception) -> None:
        """Where a move failed: some servers do not rename over what is there.

        What is there may be the object that decides, and is as good if it is the same: an object has one content for
        ever. So it is taken away only if it is another for certain: read whole twice, with the same outcome, of the
        size that the server tells. It goes first, since it must; if the move fails then, what was there is put back. A
        crash between leaves neither, which is one store's fault: nobody could have taken what was there for this
        object, and `repair` puts it."""
        there = self._read(path)
        if there == data:
            with contextlib.suppress(Exception):  # it may be what was moved
                self.fs.rm_file(aside)
            return
        if there is not None:
            self.fs.invalidate_cache(path)
            if int(self.fs.info(path).get("size") or 0) != len(there) or self._read(path) != there:
                raise error
            self.fs.rm_file(path)
        try:
            self._call(self._move, aside, path)
        except BaseException:
            with contextlib.suppress(Exception):
                if there is not None and self._read(path) is None:  # else somebody was quicker, and has put a good one
                    self._write(path, there)
            raise

    def _read(self, path: str) -> bytes | None:
        try:
            return bytes(self.fs.cat_file(path))
        except FileNotFoundError:
            return None

    def get(self, folder: str, name: str, start: int | None = None, end: int | None = None) -> bytes:
        path = self._path(folder, name)
        if self._ranges or (start is None and end is None):
            return bytes(self._call(self.fs.cat_file, path, start=start, end=end))
        with self.fs.open(path, "rb") as file:
            file.seek(start or 0)
            return bytes(file.read(-1 if end is None else end - (start or 0)))

    def ls(self, folder: str) -> dict[str, tuple[int, float | None]]:
        """Names, with their sizes, and when they were written where the store tells it."""
        path = self._path(folder)
        self.fs.invalidate_cache(path)
        try:
            found = self._call(self.fs.ls, path, detail=True)
        except _NO_FILE as error:
            self._check_bucket(error)
            return {}
        answer = {}
        for one in found:
            name = one["name"].rstrip("/")
            if name != path.rstrip("/") and name.strip("/") != path.strip("/"):
                answer[name.rpartition("/")[2]] = (int(one.get("size") or 0), _time_of(one))
        return answer

    def rm(self, folder: str, name: str) -> None:
        with contextlib.suppress(*_NO_FILE):
            self._call(self.fs.rm_file, self._path(folder, name))

    def rm_folder(self, folder: str) -> None:
        with contextlib.suppress(*_NO_FILE):
            self._call(self.fs.rm, self._path(folder), recursive=True)
        self._made.discard(folder)

    def has(self, name: str) -> bool:
        self.fs.invalidate_cache(self._path(""))
        try:
            self._call(self.fs.info, self._path(name))  # exists() takes a store that fails for one that has not got it
        except _NO_FILE as error:
            self._check_bucket(error)
            return False
        return True

    def _check_bucket(self, error: BaseException) -> None:
        """What is not in a bucket that is there is one thing; that there is none, another."""
        if _code(error) == "NoSuchBucket":
            raise StoreError(f"there is no bucket {self.root.partition('/')[0]}") from None

    def pin(self, marker: str | None) -> None:
        """The mark was seen here."""

    def make_root(self) -> None:
        if not self._atomic:
            self._call(self.fs.makedirs, self.root, exist_ok=True)

    def room(self) -> tuple[int, int] | None:
        return None


def _answer(error: BaseException) -> Any:
    """What a server has said: S3's as botocore has it, a dict; WebDAV's as httpx has it."""
    return getattr(error if hasattr(error, "response") else error.__cause__, "response", None)


def _code(error: BaseException) -> str:
    answer = _answer(error)
    return str(answer.get("Error", {}).get("Code", "")) if isinstance(answer, dict) else ""


def _status(error: BaseException) -> int | None:
    answer = _answer(error)
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else getattr(answer, "status_code", None)
    return status if isinstance(status, int) else None


def _later(error: BaseException) -> bool:
    """Whether a server says to come again (503 and the like), or closed a connection that it had kept."""
    return _status(error) in _LATER or type(error).__name__ in ("ConnectionClosedError", "BadGatewayError")


def is_lost(error: BaseException) -> bool:
    """Whether a connection is gone."""
    if isinstance(error, (EOFError, ConnectionError)) or any(one.__name__ in _LOST for one in type(error).__mro__):
        return True
    return any(words in str(error) for words in _LOST_WORDS)


def _s3_config() -> dict[str, Any]:
    """What this botocore knows of it: Config refuses other names."""
    try:
        from botocore.config import Config
    except ImportError:
        return dict(_S3_CONFIG)
    return {name: value for name, value in _S3_CONFIG.items() if name in Config.OPTION_DEFAULTS}


def _is_sshfs(protocol: str) -> bool:
    """Not fsspec's own of the same protocols, which is paramiko's."""
    return protocol in ("sftp", "ssh") and fsspec.get_filesystem_class(protocol).__module__.partition(".")[0] == "sshfs"


def _time_of(info: dict[str, Any]) -> float | None:
    for name in ("mtime", "LastModified", "last_modified", "modified", "updated", "created"):
        when = info.get(name)
        if isinstance(when, (int, float)):
            return float(when)
        if isinstance(when, datetime.datetime):
            return when.timestamp()
    return None


class Folder:
    """Objects on a path of this machine, by descriptors: nothing is followed out of it. On the disk when a put ends,
    unless `sync` is off."""

    def __init__(self, root: str, sync: bool = True) -> None:
        self.root, self._sync = root, sync
        self._marker: str | None = None
        self._place: tuple[int, int] | None = None
        self._synced: set[str] = set()  # folders that are on the disk as such

    def pin(self, marker: str | None) -> None:
        """The mark was seen here, so that another folder in this place (of a disk that is mounted no more) is not taken
        for it."""
        if marker is None:
            self._marker = self._place = None
            return
        top = self._top()
        try:
            os.stat(marker, dir_fd=top, follow_symlinks=False)
            status = os.fstat(top)
        except FileNotFoundError:
            raise StoreError(_UNMARKED) from None
        finally:
            os.close(top)
        self._marker, self._place = marker, (status.st_dev, status.st_ino)

    def _top(self) -> int:
        try:
            return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # which would say that an object is not there
            raise OSError(errno.ENODEV, "lost, or not mounted", self.root) from None

    def _check(self, top: int) -> None:
        status = os.fstat(top)
        if self._place is None or (status.st_dev, status.st_ino) == self._place:
            return
        try:
            os.stat(self._marker or "", dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            raise StoreError(_UNMARKED) from None
        self._place = status.st_dev, status.st_ino

    @contextlib.contextmanager
    def _open(self, folder: str, make: bool = False) -> Any:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        top = self._top()
        try:
            self._check(top)
            if not folder:
                yield top
                return
            try:
                below = os.open(folder, flags | os.O_NOFOLLOW, dir_fd=top)
            except FileNotFoundError:
                if not make:
                    raise
                self._synced.discard(folder)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, 0o700, dir_fd=top)
                below = os.open(folder, flags | os.O_NOFOLLOW, dir_fd=top)
            try:
                if make and self._sync and folder not in self._synced:  # somebody else may have made it just now
                    os.fsync(top)
                    if len(self._synced) < 1 << 16:
                        self._synced.add(folder)
                yield below
            finally:
                os.close(below)
        finally:
            os.close(top)

    def put(self, folder: str, name: str, data: bytes | bytearray) -> None:
        for again in (True, False):
            try:
                with self._open(folder, make=True) as at:
                    self._put(at, name, data)
                return
            except FileNotFoundError:  # somebody removed the folder meanwhile
                if not again:
                    raise

    def _put(self, at: int, name: str, data: bytes | bytearray) -> None:
        aside = TEMPORARY + secrets.token_hex(16)
        file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=at)
        try:
            try:
                left = memoryview(data)
                while len(left):
                    left = left[os.write(file, left) :]
                if self._sync:
                    os.fdatasync(file)
            finally:
                os.close(file)
            os.rename(aside, name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside, dir_fd=at)
            raise
        if self._sync:
            os.fsync(at)

    def get(self, folder: str, name: str, start: int | None = None, end: int | None = None) -> bytes:
        with self._open(folder) as at:
            file = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"{name} is no regular file")
            position, stop = start or 0, status.st_size if end is None else end
            parts = []
            while position < stop:
                part = os.pread(file, stop - position, position)
                if not part:
                    break
                parts.append(part)
                position += len(part)
            return b"".join(parts)
        finally:
            os.close(file)

    def ls(self, folder: str) -> dict[str, tuple[int, float | None]]:
        answer: dict[str, tuple[int, float | None]] = {}
        try:
            with self._open(folder) as at, os.scandir(at) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        answer[entry.name] = (status.st_size, status.st_mtime)
        except FileNotFoundError:
            return {}
        return answer

    def rm(self, folder: str, name: str) -> None:
        with contextlib.suppress(*_NO_FILE), self._open(folder) as at:
            os.unlink(name, dir_fd=at)

    def rm_folder(self, folder: str) -> None:
        with contextlib.suppress(*_NO_FILE):
            with self._open(folder) as at:
                for name in os.listdir(at):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=at)
            with self._open("") as top:
                os.rmdir(folder, dir_fd=top)

    def has(self, name: str) -> bool:
        with self._open("") as top:
            try:
                os.stat(name, dir_fd=top, follow_symlinks=False)
            except FileNotFoundError:
                return False
            return True

    def make_root(self) -> None:
        if os.path.isdir(self.root):
            return
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        if self._sync:
            above = os.open(os.path.dirname(os.path.abspath(self.root)), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(above)
            finally:
                os.close(above)

    def room(self) -> tuple[int, int] | None:
        status = os.statvfs(self.root)
        return status.f_frsize * status.f_blocks, status.f_frsize * status.f_bavail
