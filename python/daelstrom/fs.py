# SPDX-License-Identifier: Apache-2.0
"""Sealed data behind any fsspec file system: ``daelstrom::s3://bucket/name``. Needs fsspec.

Each object is a sealed stream (docs/format.md), so that ranges are read by themselves and sizes follow from the
target's listing. Keys and keysets only: with an envelope of its own in each object, listings would not tell sizes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import struct
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec.asyn import sync
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.compression import compr
from fsspec.config import apply_config
from fsspec.core import get_compression
from fsspec.implementations.chained import ChainedFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

from . import _core, files
from ._appear import Appearing, read_key_file
from ._objects import ObjectReader, ObjectWriter, Upload, Version, asked_by_mapping, mark_of, named, replaced
from ._turns import Turns
from ._writer import Compressed, Text, bytes_of
from .exceptions import FormatError, InvalidTag

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["DaelstromFileSystem"]

_KEPT = 256  # derived keys of the objects that were read last
_FILES = ("key_file", "keyset_file")
# fsspec's own, which every file system takes.
_OPTIONS = {"skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths", "asynchronous", "loop"}
_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


def _secret(name: str, path: str) -> bytes:
    """Of a key file or a keyset's."""
    if name == "key_file":
        return read_key_file(path)
    with open(path, "rb") as file:
        return file.read()


def _fingerprint(secret: bytes) -> str:
    """Tells keys apart, and nothing of them."""
    return hashlib.sha256(b"daelstrom.fs key file" + secret).hexdigest()[:32]


class _ByContent(type(ChainedFileSystem)):  # type: ignore[misc]
    """fsspec hands out one instance for equal options. A file's name is the same option in every folder, and whatever
    the file holds by now: here it is made absolute, and what the file holds is an option too."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        kwargs = dict(apply_config(cls, kwargs))
        for name in _FILES:
            if kwargs.get(name) is not None:
                path = os.path.abspath(os.path.expanduser(os.fsdecode(kwargs[name])))
                holds = _fingerprint(_secret(name, path))
                if kwargs.setdefault("key_file_holds", holds) != holds:
                    raise ValueError(f"{path!r} holds another key than where this file system was made")
                kwargs[name] = path
        return super().__call__(*args, **kwargs)


class DaelstromFileSystem(Turns, ChainedFileSystem, metaclass=_ByContent):  # type: ignore[misc]
    """What it writes is sealed, what it reads is opened; sizes are the plaintext's, and are authentic once an object's
    end is verified: what reads to an end, or counts from it, verifies it.

    `key` (16 or 32 bytes), `key_file`, `keyset` (Tink's JSON) or `keyset_file`: fsspec keeps a file system's options
    and passes them on (to workers, into JSON), so that a file's name is the better one to give. `segment`: "1M" or
    "4K", of all objects here. `aad` is bound to every object; with `bind_names` its path is too, so that an object
    that was put in another's place does not open. `key_file_holds` is made here: it tells whether a key file is the
    same one in another process.

    *Threads*: any number at once, as far as the target's file system has it so. What one call answers of an object is
    of one version of it.
    *close() during use*: a file system has none; its files say it for themselves.
    *Children of fork()*: as the target's file system has it (those of asynchronous clients start anew by fsspec's
    rules); nothing here is locked in a child.
    """

    protocol = "daelstrom"
    async_impl = False
    _unsealed: int | None = None  # the size of what is no sealed stream
    _engine: _core.Engine | None = None

    def __init__(
        self,
        fs: Any = None,
        fo: str | None = None,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        *,
        key: Buffer | None = None,
        key_file: str | None = None,
        keyset: str | Buffer | None = None,
        keyset_file: str | None = None,
        key_file_holds: str | None = None,
        segment: int | str | None = None,
        aad: Buffer = b"",
        bind_names: bool = False,
        **options: Any,
    ) -> None:
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise TypeError(f"there is no option {', '.join(unknown)}; a target's own go into target_options=, or under its name")
        super().__init__(**options)
        if getattr(self, "_opened", None) is not None:  # fsspec hands out one instance for equal options
            return
        ways = {"key": key, "key_file": key_file, "keyset": keyset, "keyset_file": keyset_file}
        given = [name for name, value in ways.items() if value is not None]
        if len(given) != 1:
            raise TypeError(f"one of key=, key_file=, keyset= and keyset_file= is needed; given: {given}")
        for name, path in (("key_file", key_file), ("keyset_file", keyset_file)):
            if path is not None:
                secret = _secret(name, path)
                if _fingerprint(secret) != key_file_holds:
                    raise ValueError(f"{path!r} was replaced just now; once more")
                key, keyset = (secret, None) if name == "key_file" else (None, secret)
        keys = files.sealed_keys(key, keyset, segment)
        # A bare key opens both sizes of segments; here one of them holds, or listings would not tell sizes.
        self._keys = keys.sealing() if key is not None else keys
        self._aad, self._bind_names = bytes(aad), bind_names
        if fs is None:
            if target_protocol is None and fo is None:
                raise TypeError("no file system to wrap: give fs=, target_protocol=, or a URL as in daelstrom::s3://...")
            protocol = target_protocol or fsspec.utils.get_protocol(fo)
            # Folders appear with what is put into them, as they do in object stores.
            usual = {"auto_mkdir": True} if protocol in ("file", "local") else {}
            fs = fsspec.filesystem(protocol, **{**usual, **(target_options or {})})
        self.fs = fs
        self._opened: OrderedDict[str, tuple[Any, _core.SealedOpener]] = OrderedDict()
        self._begin_turns()
        self._commits = False  # known of the target's files
        self.root_marker, self.sep = fs.root_marker, fs.sep
        self._strip_protocol = self._strip  # of the target's URLs, which only the instance knows
        self._parent = fs._parent

    def _strip(self, path: Any) -> Any:
        if isinstance(path, list):
            return [self._strip(one) for one in path]
        path = fsspec.utils.stringify_path(path)
        for prefix in ("daelstrom::", "daelstrom://"):
            path = path.removeprefix(prefix)
        return self.fs._strip_protocol(path)

    def to_dict(self, *, include_password: bool = True) -> dict[str, Any]:
        """As fsspec has it; without the key where passwords are left out."""
        told: dict[str, Any] = super().to_dict(include_password=include_password)
        if not include_password:
            for name in ("key", "keyset"):
                told.pop(name, None)
        return told

    # What the target tells.

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        """The target's entry with the plaintext's size; None for what is no sealed stream of these keys."""
        if info.get("type") != "file":
            return info
        told = dict(info, size=self._unsealed, sealed_size=info.get("size"))
        with contextlib.suppress(FormatError):
            if info.get("size") is not None:
                told["size"] = self._keys.plain_size(info["size"])
        return told

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        return self._told(self.fs.info(self._strip(path), **kwargs))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        entries = self.fs.ls(self._strip(path), detail=detail, **kwargs)
        return [self._told(entry) for entry in entries] if detail else entries

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **kwargs: Any
    ) -> Any:
        found = self.fs.find(self._strip(path), maxdepth=maxdepth, withdirs=withdirs, detail=detail, **kwargs)
        return {name: self._told(entry) for name, entry in found.items()} if detail else found

    def exists(self, path: str, **kwargs: Any) -> bool:
        return bool(self.fs.exists(self._strip(path), **kwargs))

    def isdir(self, path: str) -> bool:
        return bool(self.fs.isdir(self._strip(path)))

    def isfile(self, path: str) -> bool:
        return bool(self.fs.isfile(self._strip(path)))

    def created(self, path: str) -> Any:
        return self.fs.created(self._strip(path))

    def modified(self, path: str) -> Any:
        return self.fs.modified(self._strip(path))

    def ukey(self, path: str) -> Any:
        return self.fs.ukey(self._strip(path))

    def checksum(self, path: str) -> Any:
        return self.fs.checksum(self._strip(path))

    def invalidate_cache(self, path: str | None = None) -> None:
        if not hasattr(self, "fs"):
            return
        stripped = None if path is None else self._strip(path)
        with self._lock:
            if stripped is None:
                self._opened.clear()
            else:
                self._opened.pop(stripped, None)
        self.fs.invalidate_cache(stripped)

    # What the target does.

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        self.fs.mkdir(self._strip(path), create_parents=create_parents, **kwargs)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.fs.makedirs(self._strip(path), exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        self.fs.rmdir(self._strip(path))

    def rm_file(self, path: str) -> None:
        self.fs.rm_file(self._strip(path))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        self.fs.rm(self._strip(path), recursive=recursive, maxdepth=maxdepth)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        if self._bind_names and self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
        elif self._bind_names:  # sealed anew, for its new name
            # At once within a transaction too, as targets copy, and as `mv` removes what was copied.
            with self.open(path1, "rb") as source, self.open(path2, "wb", autocommit=True) as to:
                _copy(source, to)
        else:
            self.fs.cp_file(self._strip(path1), self._strip(path2), **kwargs)
        self.invalidate_cache(path2)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        if truncate or not self.exists(path):
            self.pipe_file(path, b"")
        else:
            self.fs.touch(self._strip(path), truncate=False, **kwargs)

    def sign(self, path: str, expiration: int = 100, **kwargs: Any) -> str:
        raise NotImplementedError("a signed URL would lead to what is sealed, not to the plaintext")

    # Reading.

    def _bound(self, path: str) -> bytes:
        if not self._bind_names:
            return self._aad
        return struct.pack(">Q", len(self._aad)) + self._aad + path.encode()

    def _infos(self, paths: Iterable[str]) -> dict[str, Any]:
        """Each one's entry, or what kept it from being had; at once where the target can."""
        wanted = list(dict.fromkeys(paths))
        if len(wanted) > 1 and _concurrent(self.fs):

            async def gather() -> list[Any]:
                return await asyncio.gather(*map(self.fs._info, wanted), return_exceptions=True)

            return dict(zip(wanted, sync(self.fs.loop, gather)))
        found: dict[str, Any] = {}
        for path in wanted:
            try:
                found[path] = self.fs.info(path)
            except Exception as error:
                found[path] = error
        return found

    def _total(self, path: str, info: Any) -> int:
        if isinstance(info, Exception):
            raise info
        if info.get("type") == "directory":
            raise IsADirectoryError(21, os.strerror(21), path)
        if info.get("size") is None:
            raise FormatError(f"{path!r}: the target does not tell its size")
        try:
            return self._keys.plain_size(info["size"])
        except FormatError as error:
            raise FormatError(f"{path!r}: {error}") from None

    def _read(
        self, requests: Sequence[tuple[str, int | None, int | None]], max_gap: int | None = None,
        batch_size: int | None = None, **kwargs: Any,
    ) -> list[Any]:  # fmt: skip
        """Bytes, or an exception, for each range: everything that it takes is fetched in one call of the target, and
        what is of one object is of one version, whose opener and size they are all opened with."""
        infos = self._infos(path for path, _, _ in requests)
        out: list[Any] = [b""] * len(requests)
        by_path: dict[str, list[tuple[int, int, int | None]]] = {}
        totals: dict[str, int] = {}
        by_size: dict[str, list[int]] = {}  # what is true only if the size is
        for i, (path, start, end) in enumerate(requests):
            try:
                total = totals[path] = self._total(path, infos[path])
            except Exception as error:
                out[i] = error
                continue
            begin, stop, _ = slice(start, end).indices(total)
            if begin < stop:
                by_path.setdefault(path, []).append((begin, stop, i))
            if _depends(start, end, begin, stop, total):
                by_size.setdefault(path, []).append(i)
        for path in by_size:
            by_path.setdefault(path, []).append((totals[path], totals[path], None))
        # Ranges that share segments, or lie no farther apart than max_gap, are fetched and opened as one.
        joined: list[tuple[str, int, int, list[tuple[int, int, int | None]]]] = []
        for path, ranges in by_path.items():
            ranges.sort(key=lambda one: one[:2])
            sealed_end = -1
            for begin, stop, of in ranges:
                at, size = self._keys.sealed_range(begin, stop - begin, totals[path])
                if sealed_end >= 0 and (at < sealed_end or at - sealed_end <= (max_gap or -1)):
                    _, first, latest, parts = joined[-1]
                    parts.append((begin, stop, of))
                    joined[-1] = (path, first, max(latest, stop), parts)
                    sealed_end = max(sealed_end, at + size)
                else:
                    joined.append((path, begin, stop, [(begin, stop, of)]))
                    sealed_end = at + size
        fetches = [(path, *self._keys.sealed_range(begin, stop - begin, totals[path])) for path, begin, stop, _ in joined]
        openers: dict[str, Any] = {path: self._known(path, infos[path]) for path in by_path}
        unknown = [path for path, opener in openers.items() if opener is None]
        heads = [(path, 0, min(self._keys.head_size, infos[path]["size"])) for path in unknown]
        every = heads + fetches
        if batch_size is not None and _concurrent(self.fs):
            kwargs["batch_size"] = batch_size
        fetched = self.fs.cat_ranges(
            [path for path, _, _ in every], [at for _, at, _ in every], [at + size for _, at, size in every],
            on_error="return", **kwargs,
        ) if every else []  # fmt: skip
        for (path, _, size), head in zip(heads, fetched):
            try:
                openers[path] = self._opener_of(path, infos[path], _whole(path, head, size))
            except Exception as error:
                openers[path] = error
        for (path, begin, stop, parts), fetch, sealed in zip(joined, fetches, fetched[len(heads) :]):
            try:
                if isinstance(openers[path], Exception):
                    raise openers[path]
                plain = openers[path].open(begin, stop - begin, totals[path], _whole(path, sealed, fetch[2]))
                for at, to, of in parts:
                    if of is not None:
                        out[of] = plain[at - begin : to - begin]
            except Exception as error:
                for _, _, of in parts:
                    for fails in by_size[path] if of is None else [of]:
                        out[fails] = named(error, path)
        return out

    def _known(self, path: str, info: dict[str, Any]) -> _core.SealedOpener | None:
        with self._lock:
            found = self._opened.get(path)
            if found is None or found[0] != mark_of(info):
                return None
            self._opened.move_to_end(path)
            return found[1]

    def _opener_of(self, path: str, info: dict[str, Any], head: Any) -> _core.SealedOpener:
        whole = len(head) == info["size"]
        opener = _core.SealedOpener(self._keys, self._bound(path), head, whole, engine=self._engine)
        if opener.plain_size(info["size"]) != self._keys.plain_size(info["size"]):
            raise FormatError(
                f"{path!r} has segments of another size than the key that seals here, so that listings would not tell "
                "its size; keep such objects apart"
            )
        with self._lock:
            self._opened[path] = (mark_of(info), opener)
            while len(self._opened) > _KEPT:
                self._opened.popitem(last=False)
        return opener

    def _ranges(
        self, requests: Sequence[tuple[str, int | None, int | None]], max_gap: int | None = None,
        batch_size: int | None = None, **kwargs: Any,
    ) -> list[Any]:  # fmt: skip
        out = self._read(requests, max_gap, batch_size, **kwargs)
        # What was replaced since the target listed it does not authenticate: once more, all that is wanted of it, with
        # a fresh listing.
        changed = {path for (path, _, _), one in zip(requests, out) if isinstance(one, InvalidTag)}
        if changed:
            for path in changed:
                self.invalidate_cache(path)
            again = [i for i, (path, _, _) in enumerate(requests) if path in changed]
            for i, one in zip(again, self._read([requests[i] for i in again], max_gap, batch_size, **kwargs)):
                out[i] = one
        return out

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        (out,) = self._ranges([(self._strip(path), start, end)], **kwargs)
        if isinstance(out, Exception):
            raise out
        return bytes(out)

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """Ranges of many objects, fetched concurrently where the target can.

        Ranges that share segments are fetched once, and those that lie up to `max_gap` bytes apart with what is
        between. `batch_size`: how many are under way at a time, of a target that works concurrently.
        """
        if not isinstance(paths, list):
            raise TypeError("paths is a list")
        starts = list(starts) if isinstance(starts, Iterable) else [starts] * len(paths)
        ends = list(ends) if isinstance(ends, Iterable) else [ends] * len(paths)
        if len(starts) != len(paths) or len(ends) != len(paths):
            raise ValueError("paths, starts and ends are of different lengths")
        if on_error not in ("return", "raise"):
            raise ValueError(f"on_error is {on_error!r}; it is 'return' or 'raise'")
        stripped = [self._strip(path) for path in paths]
        out = self._ranges(list(zip(stripped, starts, ends)), max_gap, batch_size, **kwargs)
        if on_error == "raise":
            for one in out:
                if isinstance(one, Exception):
                    raise one
        return out

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        """The objects' bytes, by their paths. ``on_error="omit"`` omits what is not there: what is there and is not
        authentic, or cannot be read, raises."""
        paths = self.expand_path(path, recursive=recursive)
        if len(paths) == 1 and not isinstance(path, list) and paths[0] == self._strip(path):
            return self.cat_file(paths[0], **kwargs)
        paths = [one for one in paths if not recursive or not self.isdir(one)]
        mapping, omit = asked_by_mapping()
        on_error = "omit" if omit else on_error
        out: dict[str, Any] = {}
        for name, got in zip(paths, self._ranges([(one, None, None) for one in paths], **kwargs)):
            if not isinstance(got, Exception) or on_error == "return":
                out[name] = got
            elif on_error == "raise" or not isinstance(got, _MISSING):
                raise got
            elif mapping:
                out[name] = got
        return out

    # Writing, and files.

    def pipe_file(self, path: str, value: Buffer, mode: str = "overwrite", **kwargs: Any) -> None:
        stripped = self._strip(path)
        with bytes_of(value) as view:
            if self._intrans or isinstance(self.fs, LocalFileSystem):
                with self.open(stripped, "xb" if mode == "create" else "wb", **kwargs) as file:
                    file.write(view)
                return
            sealer = _core.Sealer(self._keys, self._bound(stripped), engine=self._engine)
            sealed = bytearray(sealer.room(len(view), True))
            sealer.seal(view, sealed, True)
        self.fs.pipe_file(stripped, bytes(sealed), mode=mode, **kwargs)
        self._appeared(stripped)

    def get_file(
        self, rpath: str, lpath: Any = None, callback: Any = DEFAULT_CALLBACK, outfile: Any = None, **kwargs: Any
    ) -> None:
        """To a file of this machine, which appears when all of the object is verified. A file object of the caller's,
        or what is no regular file, is written to as the bytes come."""
        outfile = lpath if outfile is None and hasattr(lpath, "write") else outfile
        if outfile is None and self.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return
        with self.open(rpath, "rb", **kwargs) as source:
            callback.set_size(source.size)
            if outfile is not None:
                _copy(source, outfile, callback)
                return
            lpath = os.fspath(lpath)
            if os.path.exists(lpath) and not os.path.isfile(lpath) and not os.path.isdir(lpath):
                with open(lpath, "wb") as device:
                    _copy(source, device, callback)
                return
            os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
            file = Appearing(lpath, replace=True)
            try:
                _copy(source, file, callback)
                file.finish()
                file.appear()
            finally:
                file.discard()

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """As fsspec's; what is written, as text or compressed too, is there once its file is closed, or never."""
        stripped = self._strip(path)
        text = "b" not in mode
        told = {name: kwargs.pop(name, None) for name in ("encoding", "errors", "newline")} if text else {}
        compression = get_compression(stripped, compression)
        compress = compr[compression] if compression is not None else None
        autocommit = kwargs.pop("autocommit", not self._intrans)
        file: Any = self._open(
            stripped, mode.replace("t", "") + "b" if text else mode, block_size, autocommit, cache_options, **kwargs
        )
        if not isinstance(file, ObjectWriter):
            if text or compress is not None:
                file.layered()
            file = compress(file, mode="r") if compress is not None else file
            return io.TextIOWrapper(file, **told) if text else file
        if not autocommit:
            self.transaction.files.append(file)
        with contextlib.ExitStack() as unless:
            unless.callback(file.discard)
            top = Compressed(file, compress) if compress is not None else file
            made = Text(top, **told) if text else top
            unless.pop_all()
            return made

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> ObjectReader | ObjectWriter:
        path = self._strip(path)
        if mode not in ("rb", "wb", "xb"):
            raise ValueError(f"mode is {mode!r}; sealed objects are read, or written from their beginning")
        local = isinstance(self.fs, LocalFileSystem)
        if mode == "rb":
            unknown = sorted(set(kwargs) - {"cache_type", "size"})  # which are fsspec's; reading ahead is ours
            if unknown:
                raise TypeError(f"there is no option {', '.join(unknown)} for reading")
            block = block_size if isinstance(block_size, int) else None
            info = self.fs.info(path)
            if local:
                self._total(path, info)
                return ObjectReader(self, path, files.of_key(path, self._keys, self._bound(path), self._engine), None, block)
            return ObjectReader(self, path, Version(self, path, info), self._told(info), block)
        if mode == "xb" and self.fs.exists(path):
            raise FileExistsError(17, os.strerror(17), path)
        if local and self.fs.auto_mkdir:
            self.fs.makedirs(self.fs._parent(path), exist_ok=True)
        # Of several writers of one object the last one wins, as in stores.
        new = mode == "xb"
        sink = Appearing(path, replace=not new, last=not new) if local else Upload(self, path, mode, kwargs)
        return ObjectWriter(self, path, mode, sink, autocommit)

    def _appeared(self, path: str) -> None:
        self.invalidate_cache(path)
        self.fs.invalidate_cache(self.fs._parent(path))

    def du(self, path: str, total: bool = True, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any) -> Any:
        """As fsspec's; what is no sealed object counts 0, and has None where each is told."""
        sizes = dict(self.find(path, maxdepth=maxdepth, withdirs=withdirs, detail=True, **kwargs))
        if withdirs and self.isdir(path):
            info = self.info(path)
            sizes[info["name"]] = info
        told = {name: info["size"] for name, info in sizes.items()}
        return sum(size or 0 for size in told.values()) if total else told

    def tree(self, *args: Any, **kwargs: Any) -> str:
        """As fsspec's; what is no sealed object is shown with 0 bytes."""
        shown = object.__new__(type(self))
        shown.__dict__.update(self.__dict__, _unsealed=0)
        return str(ChainedFileSystem.tree(shown, *args, **kwargs))

    def read_block(self, fn: str, offset: int, length: int | None, delimiter: bytes | None = None) -> bytes:
        """As fsspec's. A block that the object's end makes shorter is told once that end is verified."""
        with self.open(fn, "rb") as file:
            if length is None or offset + length > file.size:
                file.verify()
        return bytes(super().read_block(fn, offset, length, delimiter))


def _depends(start: int | None, end: int | None, begin: int, stop: int, total: int) -> bool:
    """Whether what a slice is follows from the object's size, without that its bytes tell: counted from the end, or
    empty because the object would end before it."""
    if begin < stop:
        return stop < total and ((start or 0) < 0 or (end or 0) < 0)
    return not (0 <= (start or 0) and end is not None and 0 <= end <= (start or 0))


def _concurrent(fs: Any) -> bool:
    """Whether its client is asynchronous. A folder of another file system says so whatever that is."""
    while isinstance(fs, DirFileSystem):
        fs = fs.fs
    return bool(fs.async_impl)


def _whole(path: str, answer: Any, size: int) -> Any:
    if isinstance(answer, Exception):
        raise answer
    if len(answer) != size:
        raise InvalidTag(f"{path!r} has another size than the target's listing says")
    return answer


def _copy(source: Any, to: Any, callback: Any = DEFAULT_CALLBACK) -> None:
    while block := source.read(8 << 20):
        to.write(block)
        callback.relative_update(len(block))


# The package's entry point says the same to fsspec; this is for where it is not installed.
fsspec.register_implementation("daelstrom", DaelstromFileSystem, clobber=True)
