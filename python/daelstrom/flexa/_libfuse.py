# SPDX-License-Identifier: Apache-2.0
"""mfusepy and libfuse, as `_fuse` takes them."""

from __future__ import annotations

import ctypes.util
import errno
import logging
import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

if ctypes.util.find_library("fuse3"):  # mfusepy would take libfuse 2 where that is there too
    os.environ.setdefault("FUSE_LIBRARY_NAME", "fuse3")
import mfusepy

from ..exceptions import DaelstromError

if TYPE_CHECKING:
    from ._fuse import Mounted

__all__ = ["errors", "mfusepy", "serve"]

_log = logging.getLogger("daelstrom.flexa.mount")


def errors(call: Callable[..., Any]) -> Callable[..., Any]:
    """What goes wrong, in the kernel's words; what a program cannot be told is logged."""

    @wraps(call)
    def told(self: Mounted, path: str | None, *args: Any) -> Any:
        self._called(call.__name__)
        try:
            return call(self, path, *args)
        except mfusepy.FuseOSError:
            raise
        except OSError as error:
            if error.errno is None:
                _log.warning("%s: %s", path, error)
            unsaid = errno.EACCES if isinstance(error, PermissionError) else errno.EIO
            raise mfusepy.FuseOSError(error.errno or unsaid) from error
        except Exception as error:
            _log.warning("%s: %s: %s", path, type(error).__name__, error)
            bad = isinstance(error, ValueError) and not isinstance(error, DaelstromError)
            raise mfusepy.FuseOSError(errno.EINVAL if bad else errno.EIO) from error

    return told


_NOREPLACE = 1  # of renameat2(2)


class _Fuse(mfusepy.FUSE):  # type: ignore[misc]
    """Which hears with what flags something is renamed, and what of a file's pages the kernel may keep."""

    def open(self, path: bytes, fip: Any) -> int:
        fi = fip.contents
        fi.fh = self.operations.open(path.decode(self.encoding, self.errors), fi.flags)
        fi.keep_cache = self.operations.keeps(fi.fh)
        return 0

    def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
        if flags & ~_NOREPLACE:  # two names are not exchanged here
            return -errno.EINVAL
        names = (one.decode(self.encoding, self.errors) for one in (old, new))
        return int(self.operations.rename(*names, not flags & _NOREPLACE))

    def truncate_fuse_3(self, path: bytes | None, length: int, fip: Any) -> int:  # mfusepy's forgets the descriptor
        return int(self.ftruncate(path, length, fip))


def serve(made: Mounted, directory: str, refresh: float, options: dict[str, Any]) -> None:
    """Until it is unmounted."""
    _Fuse(made, directory, foreground=True, fsname="daelstrom-flexa", subtype="flexa",
          attr_timeout=refresh, entry_timeout=refresh, **options)  # fmt: skip
