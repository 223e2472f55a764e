# SPDX-License-Identifier: Apache-2.0
"""FlexA as a file system of fsspec's: ``flexa://folder/name``, which pandas, pyarrow, zarr and dask read and write."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.spec import AbstractFileSystem

from .._objects import asked_by_mapping, left_by_an_exception
from .._reader import SealedReader
from .._writer import Compressed, Text, bytes_of
from .files import Entry, FlexA
from .writing import FlexaWriter

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["FlexaFileSystem"]

_AT_ONCE = 16
_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class FlexaFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """`keyring`: its file. `passphrase`, `passphrase_file` or `identities_file` opens it: fsspec keeps a file system's
    options and passes them on (to workers, into JSON), so that a file's name is the better one to give. `cache`,
    `cache_size`, `deadline` and `hedge`: as `FlexA` has them.

    *Threads*: any number. *close() during use*: as `FlexA`'s; a file system that fsspec keeps is never closed by it.
    *Children of fork()* make their own, which fsspec does by itself for file systems that it keeps.
    """

    protocol = "flexa"
    root_marker = ""

    def __init__(
        self,
        keyring: str | os.PathLike[str] | None = None,
        *,
        passphrase: str | None = None,
        passphrase_file: str | None = None,
        identities_file: str | None = None,
        cache: str | None = None,
        cache_size: int = 1 << 30,
        deadline: float = 10.0,
        hedge: float = 0.5,
        fo: FlexA | None = None,
        **options: Any,
    ) -> None:
        """`fo`: an open `FlexA` instead, for this process alone."""
        super().__init__(**options)
        if getattr(self, "flexa", None) is not None:  # fsspec hands out one instance for equal options
            return
        if fo is not None:
            self.flexa = fo
            return
        if keyring is None:
            raise TypeError("keyring= is needed: the file that Keyring.create() or `daelstrom flexa init` made")
        ways = [one for one in (passphrase, passphrase_file, identities_file) if one is not None]
        if len(ways) != 1:
            raise TypeError("one of passphrase=, passphrase_file= and identities_file= opens a keyring")
        identities = None
        if passphrase_file is not None:
            with open(os.path.expanduser(passphrase_file), encoding="utf-8") as file:
                passphrase = file.readline().rstrip("\n")
        if identities_file is not None:
            with open(os.path.expanduser(identities_file), encoding="utf-8") as file:
                identities = file.read()
        self.flexa = FlexA(keyring=os.path.expanduser(keyring), passphrase=passphrase, identities=identities,
                           cache=cache, cache_size=cache_size, deadline=deadline, hedge=hedge)  # fmt: skip

    def close(self) -> None:
        self.flexa.close()

    def to_dict(self, *, include_password: bool = True) -> dict[str, Any]:
        told: dict[str, Any] = super().to_dict(include_password=include_password)
        if not include_password:
            told.pop("passphrase", None)
        return told

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = fsspec.utils.stringify_path(path)
        return path.removeprefix("flexa://").strip("/")

    # What is there.

    def _told(self, entry: Entry) -> dict[str, Any]:
        return {"name": entry.name, "type": entry.type, "size": entry.size, "mtime": entry.mtime, "version": entry.version}

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        return self._told(self.flexa.info(self._strip_protocol(path)))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """Sizes are those of what was put by that name last; `info` asks the file."""
        entries = self.flexa.ls(self._strip_protocol(path))
        return [self._told(entry) if detail else entry.name for entry in entries]

    def exists(self, path: str, **kwargs: Any) -> bool:
        return self.flexa.exists(self._strip_protocol(path))

    def modified(self, path: str) -> Any:
        import datetime

        return datetime.datetime.fromtimestamp(self.info(path)["mtime"], datetime.timezone.utc)

    created = modified  # of this version

    def ukey(self, path: str) -> str:
        entry = self.info(path)
        return f"{entry['name']} {entry['version']} {entry['mtime']}"

    checksum = ukey

    # What changes.

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        self.flexa.mkdir(self._strip_protocol(path), parents=create_parents)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.flexa.mkdir(self._strip_protocol(path), parents=True, exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        stripped = self._strip_protocol(path)
        if not self.isdir(stripped):
            raise NotADirectoryError(20, os.strerror(20), path)
        self.flexa.rm(stripped)

    def rm_file(self, path: str) -> None:
        stripped = self._strip_protocol(path)
        if self.isdir(stripped):
            raise IsADirectoryError(21, os.strerror(21), path)
        self.flexa.rm(stripped)

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        if maxdepth is not None or isinstance(path, list) or any(letter in str(path) for letter in "*?["):
            for one in reversed(self.expand_path(path, recursive=recursive, maxdepth=maxdepth)):
                with contextlib.suppress(FileNotFoundError):
                    self.flexa.rm(one)
            return
        self.flexa.rm(self._strip_protocol(path), recursive=recursive)

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **kwargs: Any) -> None:
        """As one change; what is there is replaced."""
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        if path2.endswith("/") or self.isdir(new):
            new = f"{new}/{old.rpartition('/')[2]}".lstrip("/")
        self.flexa.mv(old, new, replace=True)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Read and sealed anew: two files never share keys."""
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        with self.flexa.open(self._strip_protocol(path1), "rb") as source:
            self.flexa.put(self._strip_protocol(path2), source)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        if truncate or not self.exists(path):
            self.flexa.put(self._strip_protocol(path), b"")
        else:
            raise NotImplementedError("a time changes with a version alone")

    # Whole objects, and ranges.

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        return self.flexa.cat(self._strip_protocol(path), start, end)

    def _each(self, call: Any, given: list[tuple[Any, ...]]) -> list[Any]:
        def one(arguments: tuple[Any, ...]) -> Any:
            try:
                return call(*arguments)
            except Exception as error:
                return error

        if len(given) < 2:
            return [one(arguments) for arguments in given]
        with ThreadPoolExecutor(min(_AT_ONCE, len(given))) as pool:
            return list(pool.map(one, given))

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """At once; what is of one file is of one version of it."""
        starts = list(starts) if isinstance(starts, Iterable) else [starts] * len(paths)
        ends = list(ends) if isinstance(ends, Iterable) else [ends] * len(paths)
        if len(starts) != len(paths) or len(ends) != len(paths):
            raise ValueError("paths, starts and ends are of different lengths")
        stripped = [self._strip_protocol(path) for path in paths]
        names = list(dict.fromkeys(stripped))
        with contextlib.ExitStack() as stack:
            files = dict(zip(names, self._each(lambda name: self.flexa.open(name, "rb"), [(name,) for name in names])))
            for file in files.values():
                if not isinstance(file, Exception):
                    stack.callback(file.close)

            def read(name: str, start: int | None, end: int | None) -> bytes:
                file = files[name]
                if isinstance(file, Exception):
                    raise file
                begin, stop, _ = slice(start, end).indices(file.size)
                return bytes(file.read_at(begin, max(0, stop - begin)))

            out = self._each(read, list(zip(stripped, starts, ends)))
        if on_error == "raise":
            for one in out:
                if isinstance(one, Exception):
                    raise one
        return out

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        """``on_error="omit"`` omits what is not there: what is there and cannot be read raises."""
        paths = self.expand_path(path, recursive=recursive)
        if len(paths) == 1 and not isinstance(path, list) and paths[0] == self._strip_protocol(path):
            return self.cat_file(paths[0], **kwargs)
        paths = [one for one in paths if not recursive or not self.isdir(one)]
        mapping, omit = asked_by_mapping()
        on_error = "omit" if omit else on_error
        out: dict[str, Any] = {}
        for name, got in self.flexa.cat_many(paths).items():
            if not isinstance(got, Exception) or on_error == "return":
                out[name] = got
            elif on_error == "raise" or not isinstance(got, _NO_FILE):
                raise got
            elif mapping:
                out[name] = got
        return out

    def pipe_file(self, path: str, value: Buffer, mode: str = "overwrite", **kwargs: Any) -> None:
        if self._intrans:
            with self.open(path, "xb" if mode == "create" else "wb") as file:
                file.write(value)
            return
        with bytes_of(value) as view:
            self.flexa.put(self._strip_protocol(path), view, exclusive=mode == "create")

    def pipe(self, path: Any, value: Any = None, **kwargs: Any) -> None:
        """Several at once: what is in one folder is one change of it, or a few."""
        if isinstance(path, dict) and not self._intrans and not kwargs:
            self.flexa.put_many({self._strip_protocol(name): data for name, data in path.items()})
            return
        super().pipe(path, value, **kwargs)

    def get_file(
        self, rpath: str, lpath: Any, callback: Any = DEFAULT_CALLBACK, outfile: Any = None, **kwargs: Any
    ) -> None:
        """To a file of this machine, which appears when all of it is verified; to a file object as it comes."""
        if outfile is None and not hasattr(lpath, "write"):
            if self.isdir(rpath):
                os.makedirs(lpath, exist_ok=True)
                return
            os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
            callback.set_size(self.info(rpath)["size"])
            self.flexa.get(self._strip_protocol(rpath), lpath, progress=callback.relative_update)
            return
        with self.open(rpath, "rb") as source:
            callback.set_size(source.size)
            while block := source.read(8 << 20):
                (outfile or lpath).write(block)
                callback.relative_update(len(block))

    def put_file(self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, mode: str = "overwrite", **kwargs: Any) -> None:
        if os.path.isdir(lpath):
            self.makedirs(rpath, exist_ok=True)
            return
        callback.set_size(os.path.getsize(lpath))
        self.flexa.put(self._strip_protocol(rpath), os.fspath(lpath), exclusive=mode == "create",
                       progress=callback.relative_update)  # fmt: skip

    # Files.

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
        stripped = self._strip_protocol(path)
        text = "b" not in mode
        told = {name: kwargs.pop(name, None) for name in ("encoding", "errors", "newline")} if text else {}
        compression = get_compression(stripped, compression)
        compress = compr[compression] if compression is not None else None
        mode = mode.replace("t", "") + "b" if text else mode
        file: Any = self._open(stripped, mode, autocommit=kwargs.pop("autocommit", not self._intrans))
        if mode == "rb":
            if text or compress is not None:
                file.layered()
            file = compress(file, mode="r") if compress is not None else file
            return io.TextIOWrapper(file, **told) if text else file
        if not file.autocommit:
            self.transaction.files.append(file)
        with contextlib.ExitStack() as unless:
            unless.callback(file.discard)
            top = Compressed(file, compress) if compress is not None else file
            made = Text(top, **told) if text else top
            unless.pop_all()
            return made

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, autocommit: bool = True, **kwargs: Any) -> Any:
        path = self._strip_protocol(path)
        if mode == "rb":
            return _Reader(self, path)
        if mode not in ("wb", "xb"):
            raise ValueError(f"mode is {mode!r}; files are read, or written from their beginning")
        parent = path.rpartition("/")[0]
        if parent:
            self.flexa.mkdir(parent, parents=True, exist_ok=True)
        file = self.flexa.open(path, mode)
        assert isinstance(file, FlexaWriter)
        return _Writer(self, path, file, autocommit)


class _Reader(SealedReader):
    """With what fsspec's files have. Threads, close(), children of fork(): as `SealedReader`."""

    def __init__(self, fs: FlexaFileSystem, path: str) -> None:
        self.fs, self.path = fs, path
        super().__init__(fs.flexa._opened(path), path)

    @property
    def details(self) -> dict[str, Any]:
        return {"name": self.path, "size": self.size, "type": "file"}

    def info(self) -> dict[str, Any]:
        return self.details

    @property
    def full_name(self) -> str:
        return str(self.fs.unstrip_protocol(self.path))

    @property
    def loc(self) -> int:
        return self.tell()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _reopened, (self.fs, self.path, self.tell())


def _reopened(fs: FlexaFileSystem, path: str, at: int) -> _Reader:
    file = _Reader(fs, path)
    file.seek(at)
    return file


class _Writer(io.BufferedIOBase):
    """A `FlexaWriter` with what fsspec's files have: it counts when it is closed, or where it belongs to a transaction,
    when that ends. Threads, close(), children of fork(): as `FlexaWriter`."""

    def __init__(self, fs: FlexaFileSystem, path: str, file: FlexaWriter, autocommit: bool) -> None:
        self.fs, self.path, self.autocommit, self._file = fs, path, autocommit, file

    def writable(self) -> bool:
        return self._file.writable()

    def write(self, data: Buffer, /) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    loc = property(tell)

    def close(self) -> None:
        if self.closed:
            return
        if left_by_an_exception():
            self.discard()
            return
        super().close()
        if self.autocommit:
            self._file.close()

    def commit(self) -> None:
        if not self.closed:
            self.discard()
            raise ValueError(f"{self.path!r} was not closed before its transaction ended, and is thrown away")
        self._file.close()

    def discard(self) -> None:
        self._file.discard()
        super().close()

    def forgotten(self) -> None:
        if not self.closed:
            self.discard()

    def __exit__(self, kind: Any, error: Any, trace: Any, /) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.forgotten()


# The package's entry point says the same to fsspec; this is for where it is not installed.
fsspec.register_implementation("flexa", FlexaFileSystem, clobber=True)
