# SPDX-License-Identifier: Apache-2.0
"""Thousands of objects, or a huge one by ranges, sealed, opened, verified or sealed anew on a Dask cluster. Needs
``dask[distributed]`` and fsspec (``pip install daelstrom[dist]``).

    report = dist.encrypt("s3://in/", "s3://out/", client=client, key_file="store.key")

Keys go from this process to each worker, sealed to a pair of keys that the worker made for itself; the graph, the
scheduler and logs have none. Objects are sealed streams as `daelstrom.fs` has them, and appear whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from distributed import Client, get_client

from . import _plan, _secrets
from ._plan import Sources
from ._report import DistError, Done, Report
from ._run import Job

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["DistError", "Done", "Report", "decrypt", "encrypt", "rekey", "verify"]

_EXISTING = ("fail", "skip", "replace")


def encrypt(sources: Sources, target: str | None = None, **how: Any) -> Report:
    """Seals objects.

    `sources`: the URL of an object, of a folder (all below it), a pattern with stars, a list of those, or a mapping
    from URLs to those that each goes to. `target`: the folder where they go to, by their names; of one object its own
    URL. What there may be in `how`, here and below:

    `client`: Dask's; else the current one. One of `key` (16 or 32 bytes), `key_file`, `keyset` (Tink's JSON) and
    `keyset_file`; `segment`, `aad`, `bind_names` as `daelstrom.fs.DaelstromFileSystem` takes them.
    `storage_options`: the stores' options by protocol, ``{"s3": {...}}``; they travel as the keys do.
    `existing`: what is there already is an error unless it is the same ("fail"), is left and not looked at ("skip":
    how a job that was broken off goes on), or is replaced ("replace").
    `part`: objects of more than twice as many bytes are cut. `retries`: how often more each piece of work is tried.
    `device`: "auto", "cuda" (each worker of a machine its own GPU), "cpu" or another of `daelstrom.Engine`'s.
    `dry_run`: nothing is done, and the report says what would be. `progress`: called with the bytes that are done, and
    all.

    What fails does not keep others from being done: the report has it; `Report.check()` raises.
    """
    return _job("encrypt", sources, target, how)


def decrypt(sources: Sources, target: str | None = None, **how: Any) -> Report:
    """Opens objects; what is written is verified to its end before it appears. Arguments: as `encrypt`."""
    return _job("decrypt", sources, target, how)


def verify(sources: Sources, **how: Any) -> Report:
    """Opens all of each object, and keeps nothing of it. Arguments: as `encrypt`."""
    return _job("verify", sources, None, how)


def rekey(
    sources: Sources,
    target: str | None = None,
    *,
    new_key: Buffer | None = None,
    new_key_file: Any = None,
    new_keyset: str | Buffer | None = None,
    new_keyset_file: Any = None,
    new_segment: int | str | None = None,
    **how: Any,
) -> Report:
    """Seals objects anew, with another key: in their places, or to `target`. `key`, `key_file`, `keyset` or
    `keyset_file` opens them, one of the others seals them. Other arguments: as `encrypt`. Objects that open with the
    new key alone are done, which an earlier run did."""
    new = _secrets.read(new_key, new_key_file, new_keyset, new_keyset_file, new_segment)
    return _job("rekey", sources, target, how, new)


def _job(verb: str, sources: Sources, target: str | None, how: dict[str, Any], new: _secrets.Spec | None = None) -> Report:
    return _go(verb, sources, target, new, **how)


def _go(
    verb: str,
    sources: Sources,
    target: str | None,
    new: _secrets.Spec | None,
    *,
    client: Client | None = None,
    key: Buffer | None = None,
    key_file: Any = None,
    keyset: str | Buffer | None = None,
    keyset_file: Any = None,
    segment: int | str | None = None,
    aad: Buffer = b"",
    bind_names: bool = False,
    storage_options: dict[str, dict[str, Any]] | None = None,
    existing: str = "fail",
    part: int = 64 << 20,
    retries: int = 3,
    device: str = "auto",
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    if existing not in _EXISTING:
        raise ValueError(f"existing is {existing!r}; it is 'fail', 'skip' or 'replace'")
    if part < 5 << 20:
        raise ValueError(f"part is {part}; it is 5 MiB or more, as stores put objects together of such parts")
    storage = dict(storage_options or {})
    if wrong := [name for name, options in storage.items() if not isinstance(options, dict)]:
        raise TypeError(f"storage_options[{wrong[0]!r}] is a mapping of options; they stand by their protocol")
    old = _secrets.read(key, key_file, keyset, keyset_file, segment)
    found = _plan.find(sources, target, storage)
    if verb in ("encrypt", "decrypt") and any(one.target is None or one.target == one.source for one in found):
        raise ValueError(f"{verb} takes target=, another place than where it reads")
    read = {one.source for one in found}
    both = next((one.target for one in found if one.target != one.source and one.target in read), None)
    if both is not None and existing == "replace":
        raise ValueError(f"{both!r} would be replaced, and is read too")
    settings = _secrets.Settings(storage, bytes(aad), bind_names, existing, device)
    cluster = client if client is not None or dry_run else get_client()
    job = Job(cluster, verb, found, old, new, settings,
              part=part, retries=retries, progress=progress)  # fmt: skip
    if dry_run:
        job.close()
        job.report.dry_run = True
        return job.report
    job.run()
    return job.report
