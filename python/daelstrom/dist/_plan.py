# SPDX-License-Identifier: Apache-2.0
"""Which objects, and where to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import fsspec

from ._held import filesystem
from ._worker import SCATTERED

__all__ = ["Found", "find", "whole"]

Sources = str | Iterable[str] | Mapping[str, str]


_PARTS = re.compile(re.escape(SCATTERED) + "0[0-9a-f]{14}(/|$)")  # of a job


class Found(NamedTuple):
    source: str
    target: str | None
    size: int | None  # as listed


def whole(url: Any) -> str:
    """The URL in full, so that it means the same to every worker."""
    url = fsspec.utils.stringify_path(url)
    if "::" in url:
        raise ValueError(f"{url!r}: chained URLs are not taken; sealed objects are opened without daelstrom:: here")
    if re.match(r"[a-z0-9+.-]+://[^/@]*:[^/]*@", url):
        raise ValueError("a URL with a password in it would be shown to the scheduler; storage_options are not")
    if "://" not in url:
        return str(fsspec.filesystem("file").unstrip_protocol(url)) + ("/" if url.endswith("/") else "")
    return str(url)


def find(sources: Sources, target: str | None, storage: dict[str, dict[str, Any]]) -> list[Found]:
    """Of URLs of objects, of folders (all below them), and patterns; or URLs with the one that each goes to. Those of
    folders and patterns keep their names below the folder, or below what comes before the first star."""
    found: list[Found] = []
    if isinstance(sources, Mapping):
        if target is not None:
            raise TypeError("target= goes with a list of sources; a mapping names each one's")
        for source, to in sources.items():
            fs, path = filesystem(whole(source), storage)
            fs.invalidate_cache()
            found.append(Found(whole(source), whole(to), fs.info(path).get("size")))
    else:
        for source in [sources] if isinstance(sources, (str, bytes)) or hasattr(sources, "__fspath__") else sources:
            found += _below(whole(source), None if target is None else whole(target), storage)
    names = [one.target or one.source for one in found]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} would be written more than once")
    return found


def _below(source: str, target: str | None, storage: dict[str, dict[str, Any]]) -> list[Found]:
    fs, path = filesystem(source, storage)
    fs.invalidate_cache()  # what this process listed once is not what is there
    pattern = any(letter in path for letter in "*?[")
    if pattern:
        entries = fs.glob(path, detail=True)
        root = path[: min(path.find(letter) for letter in "*?[" if letter in path)].rpartition("/")[0]
        if not entries:
            raise FileNotFoundError(2, "no object is named so", source)
    else:
        info = fs.info(path)
        if info["type"] != "directory":
            into = target is not None and target.endswith("/")
            to = _within(target, posixpath.basename(path), path) if target is not None and into else target
            return [Found(source, to, info.get("size"))]
        entries, root = fs.find(path, detail=True), path.rstrip("/")
    out = []
    for name, info in sorted(entries.items()):
        if info["type"] == "directory" or _PARTS.search(name):
            continue
        relative = name[len(root) :].lstrip("/")
        if relative == "" or (relative.endswith("/") and not info.get("size")):
            continue  # what marks a folder in a store
        to = None if target is None else _within(target, relative, name)
        out.append(Found(str(fs.unstrip_protocol(name)), to, info.get("size")))
    return out


def _within(target: str, relative: str, name: str) -> str:
    """In stores an object may be called ``../../home``: nobody's name leads out of the target."""
    if any(part in ("", ".", "..") or "\0" in part for part in relative.split("/")):
        raise ValueError(f"{name!r}: an object of this name goes to no folder; give a mapping that says where it goes")
    return f"{target.rstrip('/')}/{relative}"
