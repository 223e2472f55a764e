# SPDX-License-Identifier: Apache-2.0
"""A file that appears at once, when it is whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Appearing:
    """Written without a name (O_TMPFILE), so that nothing is left of it if the process dies; where the file system
    has no such files, under a hidden name beside its own."""

    _fd = -1
    _name: str | None = None

    def __init__(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], replace: bool) -> None:
        self._path = os.path.realpath(os.fsdecode(path))
        self._replace, self._process = replace, os.getpid()
        mode = None
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            pass
        else:
            if not replace:
                raise FileExistsError(17, os.strerror(17), os.fsdecode(path))
            if stat.S_ISDIR(there.st_mode):
                raise IsADirectoryError(21, os.strerror(21), os.fsdecode(path))
            if not stat.S_ISREG(there.st_mode):
                raise ValueError(f"{os.fsdecode(path)!r} is not a regular file; sealed files are put in place whole")
            if not os.access(self._path, os.W_OK):
                raise PermissionError(13, os.strerror(13), os.fsdecode(path))
            mode = stat.S_IMODE(there.st_mode)
        folder = os.path.dirname(self._path)
        try:
            self._fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            raise
        except OSError:
            self._name = self._hidden()
            self._fd = os.open(self._name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        if mode is not None:
            os.fchmod(self._fd, mode)

    def _hidden(self) -> str:
        folder, name = os.path.split(self._path)
        return os.path.join(folder, f".{os.fsdecode(os.fsencode(name)[:200])}.{secrets.token_hex(8)}")

    def fileno(self) -> int:
        return self._fd

    def write(self, data: Buffer) -> None:
        view = memoryview(data)
        while len(view):
            view = view[os.write(self._fd, view) :]

    def finish(self) -> None:
        os.fsync(self._fd)

    def appear(self) -> None:
        if not self._replace:
            self._link(self._path)
            if self._name is not None:
                os.unlink(self._name)
        else:
            if self._name is None:
                self._name = self._hidden()
                self._link(self._name, unnamed=True)
            os.replace(self._name, self._path)
        self._name = None
        self._close()

    def _link(self, to: str, unnamed: bool = False) -> None:
        if unnamed or self._name is None:
            # With a directory named, Python calls linkat(), which follows the link in /proc.
            os.link(f"/proc/self/fd/{self._fd}", to, src_dir_fd=self._fd, follow_symlinks=True)
        else:
            os.link(self._name, to)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def discard(self) -> None:
        name, self._name = self._name, None
        self._close()
        # In a child of fork() the name is the parent's.
        if name is not None and self._process == os.getpid():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)

    def __del__(self) -> None:
        if self._fd >= 0 or self._name is not None:
            self.discard()
