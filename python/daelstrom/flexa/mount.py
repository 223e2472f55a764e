# SPDX-License-Identifier: Apache-2.0
"""FlexA as a folder of this machine, through FUSE: ``daelstrom flexa mount DIR``. Needs mfusepy and libfuse."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable
from typing import Any

from .errors import FlexaError
from .files import FlexA

__all__ = ["add_mount", "mount"]


def mount(
    flexa: FlexA,
    directory: str | os.PathLike[str],
    *,
    refresh: float = 1.0,
    spool: str | None = None,
    spool_size: int = 8 << 30,
    allow_other: bool = False,
    read_only: bool = False,
    ready: Callable[[], Any] | None = None,
) -> None:
    """Mounts it until it is unmounted (``fusermount3 -u DIR``), or a signal ends the process; then it is closed.

    `refresh`: seconds for which listings are believed. `spool`: a folder for what is written and not yet, or not in
    order, in AES-256-XTS under keys of this process; up to `spool_size` bytes of each file. `ready` is called when it
    is mounted."""
    try:
        from . import _fuse
    except (ImportError, OSError) as error:  # OSError: no libfuse
        raise FlexaError(f"mounting takes mfusepy (pip install daelstrom[flexa]) and libfuse (Debian's fuse3): {error}") from None
    if not os.path.isdir(directory):
        raise NotADirectoryError(20, os.strerror(20), os.fspath(directory))
    made = _fuse.Mounted(flexa, refresh=refresh, spool=spool, spool_size=spool_size, read_only=read_only, ready=ready)
    options: dict[str, Any] = {"allow_other": True, "default_permissions": True} if allow_other else {}
    if made.read_only:
        options["ro"] = True
    try:
        _fuse.serve(made, os.path.abspath(directory), refresh, options)
    except RuntimeError as error:  # libfuse has said why
        raise FlexaError(f"{os.fspath(directory)!r} could not be mounted ({error})") from None


def add_mount(commands: Any) -> None:
    """To the commands of the program."""
    one = commands.add_parser("mount", help="mount it as a folder, until it is unmounted: fusermount3 -u DIR")
    one.add_argument("directory", metavar="DIR")
    one.add_argument("--read-only", action="store_true")
    one.add_argument("--allow-other", action="store_true", help="let other users in, too (user_allow_other in /etc/fuse.conf)")
    one.add_argument("--refresh", type=float, default=1.0, metavar="SECONDS",
                     help="for which listings are believed (default: 1)")  # fmt: skip
    one.add_argument("--spool", metavar="DIR", help="where files lie while they are written, encrypted (default: $TMPDIR)")
    one.add_argument("--spool-size", type=int, default=8 << 30, metavar="BYTES",
                     help="of each file; what is larger is written in order (default: 8 GiB)")  # fmt: skip
    one.set_defaults(run=_run)


def _run(flexa: FlexA, given: argparse.Namespace) -> int:
    logging.basicConfig(format="daelstrom flexa: %(message)s")
    where = given.directory
    mount(flexa, where, refresh=given.refresh, spool=given.spool, spool_size=given.spool_size,
          allow_other=given.allow_other, read_only=given.read_only,
          ready=lambda: print(f"mounted; fusermount3 -u {where} unmounts it", flush=True))  # fmt: skip
    return 0
