# SPDX-License-Identifier: Apache-2.0
"""Objects of a store as sealed streams: one version that is read, and one that is written. For `daelstrom.fs`."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import sys
import threading
from typing import TYPE_CHECKING, Any

from fsspec.core import OpenFile
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.mapping import FSMap
from fsspec.spec import AbstractBufferedFile

from . import _core
from ._reader import FIRST_AHEAD, MOST_AHEAD, SealedReader, Source
from ._writer import SealedWriter, write_all
from .exceptions import FormatError, InvalidTag

if TYPE_CHECKING:
    from types import FrameType

    from typing_extensions import Buffer

    from .fs import DaelstromFileSystem

__all__ = ["ObjectReader", "ObjectWriter", "Upload", "Version", "asked_by_mapping", "left_by_an_exception", "mark_of", "named", "replaced"]

# What the targets' listings have that changes when an object does.
_MARKS = ("ETag", "etag", "md5", "mtime", "ino", "LastModified", "last_modified", "updated", "modified", "created",
          "generation", "VersionId", "version_id")  # fmt: skip


def mark_of(info: dict[str, Any]) -> tuple[Any, ...]:
    return (info.get("size"), *(info.get(name) for name in _MARKS))


def named(error: Exception, path: str) -> Exception:
    """The same, and which object it was."""
    if isinstance(error, (InvalidTag, FormatError)) and path not in str(error):
        return type(error)(f"{path!r}: {error}")
    return error


def replaced(path: str) -> OSError:
    return OSError(errno.ESTALE, "the object was replaced while it was read; open it again", path)


class Version:
    """One version of one object: its size and its mark as they were when it was opened, and the opener that its
    beginning made when the first bytes were read. Another version's segments do not open under it. A `Source`; any
    number of threads at once.
    """

    def __init__(self, fs: DaelstromFileSystem, path: str, info: dict[str, Any]) -> None:
        self._fs, self.path, self._info, self.mark = fs, path, info, mark_of(info)
        self.size = fs._total(path, info)
        self._opener: _core.SealedOpener | None = None

    def around(self, at: int, size: int) -> tuple[int, int]:
        """Where the whole segments begin that hold `size` bytes from byte `at` on, and how many bytes they have."""
        return self._fs._keys.plain_range(at, size, self.size)

    def read(self, at: int, size: int) -> bytes:
        try:
            opener, sealed = self._fetch(at, size)
            return opener.open(at, size, self.size, sealed)
        except InvalidTag as error:
            raise self._why(error) from None

    def read_into(self, at: int, out: Buffer) -> None:
        try:
            opener, sealed = self._fetch(at, memoryview(out).nbytes)
            opener.open_to(at, self.size, sealed, out)
        except InvalidTag as error:
            raise self._why(error) from None

    def check_size(self) -> None:
        self.read(self.size, 0)

    def _fetch(self, at: int, size: int) -> tuple[_core.SealedOpener, Any]:
        """The opener, and the bytes of the stream that a range takes: by one call of the target, with the beginning
        where that is not known yet."""
        keys, opener, sealed_size = self._fs._keys, self._opener, self._info["size"]
        begin, length = keys.sealed_range(at, size, self.size)
        ranges = [(begin, begin + length)]
        head = min(keys.head_size, sealed_size)
        apart = opener is None and (begin != 0 or length < head)
        if apart:
            ranges.insert(0, (0, head))
        answers = self._fs.fs.cat_ranges(
            [self.path] * len(ranges), [a for a, _ in ranges], [b for _, b in ranges], on_error="return"
        )
        for answer, (a, b) in zip(answers, ranges):
            if isinstance(answer, Exception):
                raise answer
            if len(answer) != b - a:
                raise InvalidTag(f"{self.path!r} has another size than the target's listing said")
        if opener is None:
            made = self._fs._opener_of(self.path, self._info, answers[0] if apart else answers[0][:head])
            with _pinning:  # the first one holds, for all threads
                if self._opener is None:
                    self._opener = made
                opener = self._opener
        return opener, answers[-1]

    def _why(self, error: InvalidTag) -> Exception:
        """Of what does not authenticate: that there is another object by now, if the target says so."""
        self._fs.invalidate_cache(self.path)
        try:
            info = self._fs.fs.info(self.path)
        except Exception as gone:
            return gone
        return replaced(self.path) if mark_of(info) != self.mark else named(error, self.path)


# For one assignment each.
_pinning = threading.Lock()


def _in_child() -> None:
    global _pinning
    _pinning = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


class ObjectReader(SealedReader):
    """An object as a file, with what fsspec's files have. It is of the version that was there when it was opened: one
    that is replaced raises an `OSError` (ESTALE) or `InvalidTag`. Threads, close(), children of fork(): as
    `SealedReader`."""

    def __init__(
        self, fs: DaelstromFileSystem, path: str, source: Source, details: dict[str, Any] | None, block_size: int | None
    ) -> None:
        self.fs, self.path = fs, path
        self.blocksize = block_size or AbstractBufferedFile.DEFAULT_BLOCK_SIZE
        self._details = details
        local = isinstance(source, _core.SealedFile)
        first = FIRST_AHEAD if local else max(1, self.blocksize)
        super().__init__(source, path, first=first, most=max(first, MOST_AHEAD))

    @property
    def details(self) -> dict[str, Any]:
        """The target's entry, with the plaintext's size."""
        if self._details is None:
            self._details = self.fs.info(self.path)
        return self._details

    def info(self) -> dict[str, Any]:
        return self.details

    @property
    def full_name(self) -> str:
        return str(self.fs.unstrip_protocol(self.path))

    @property
    def loc(self) -> int:
        return self.tell()

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.read_at(start, max(0, end - start))

    def __reduce_ex__(self, protocol: Any) -> Any:
        source = self._raw.open_source()
        mark = source.mark if isinstance(source, Version) else None
        return _reopened, (self.fs, self.path, self.blocksize, self.tell(), self.size, mark)


def _reopened(
    fs: DaelstromFileSystem, path: str, block_size: int, at: int, size: int, mark: tuple[Any, ...] | None
) -> ObjectReader:
    """In another process: the same version, or none."""
    file: ObjectReader = fs.open(path, "rb", block_size=block_size)
    source = file._raw.open_source()
    if file.size != size or (isinstance(source, Version) and mark is not None and source.mark != mark):
        file.close()
        raise replaced(path)
    file.seek(at)
    return file


class ObjectWriter(SealedWriter):
    """An object that is written, with what fsspec's files have: it is there when this is closed, or when the
    transaction ends, or never. Threads, close(), children of fork(): as `SealedWriter`; an upload that a parent has
    begun goes on whatever a child does."""

    def __init__(self, fs: DaelstromFileSystem, path: str, mode: str, sink: Any, autocommit: bool) -> None:
        self.fs, self.path = fs, path
        self.blocksize = AbstractBufferedFile.DEFAULT_BLOCK_SIZE
        super().__init__(sink, path, mode, fs._keys, fs._bound(path), fs._engine, autocommit=autocommit)

    @property
    def full_name(self) -> str:
        return str(self.fs.unstrip_protocol(self.path))

    @property
    def loc(self) -> int:
        return self.tell()

    def close(self) -> None:
        if not self.closed and left_by_an_exception():
            self.discard()
            return
        super().close()
        if self.autocommit and not self._theirs:
            self.fs._appeared(self.path)

    def commit(self) -> None:
        super().commit()
        self.fs._appeared(self.path)


def left_by_an_exception() -> bool:
    """Whether it is ``with fsspec.open(...)`` that closes, after an exception in its block: it does not tell, and would
    make a finished object of a beginning."""
    frame: FrameType | None = sys._getframe()  # C may have called, with nobody behind it
    for _ in range(10):
        if frame is None:
            break
        if frame.f_code is OpenFile.__exit__.__code__:
            return any(one is not None for one in frame.f_locals.get("args", ()))
        frame = frame.f_back
    return False


def asked_by_mapping() -> tuple[bool, bool]:
    """Whether it is FSMap.getitems that called our caller, and whether it shall omit: it does so by itself, of what is
    returned, whatever failed. To zarr that is a chunk of fill values."""
    frame = sys._getframe().f_back
    caller = None if frame is None else frame.f_back
    mapping = caller is not None and caller.f_code is FSMap.getitems.__code__
    return mapping, mapping and caller is not None and caller.f_locals.get("on_error") == "omit"


class Upload:
    """A sink: the target's own file, which it commits or discards. Nothing is seen of it before."""

    _file: Any = None

    def __init__(self, fs: DaelstromFileSystem, path: str, mode: str, options: dict[str, Any]) -> None:
        self._process, self._committing = os.getpid(), False
        if isinstance(fs.fs, MemoryFileSystem):  # whose files are seen from their first byte on
            self._file = _Gathered(fs.fs, path, mode)
            return
        if not fs._commits:
            _check_commits(fs.fs, path)
            fs._commits = True
        self._file = fs.fs.open(path, mode, autocommit=False, **options)

    def write(self, data: memoryview) -> None:
        write_all(self._file, data)

    def finish(self) -> None:
        self._file.close()

    def appear(self) -> None:
        self._committing = True
        self._file.commit()
        self._file = None

    def discard(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        if self._process != os.getpid():  # a child's copy: that of the parent goes on
            if isinstance(file, AbstractBufferedFile):
                file.closed = True
            else:  # what Python has gathered of it goes nowhere
                with contextlib.suppress(Exception), open(os.devnull, "wb") as nowhere:
                    os.dup2(nowhere.fileno(), file.fileno())
            _parents.append(file)
            return
        # What failed amid being committed may be gone already, or be there.
        with contextlib.suppress(*([Exception] if self._committing else [])):
            if isinstance(file, AbstractBufferedFile):
                file.closed = True  # so that nothing finishes it
            else:
                file.close()
            file.discard()

    def __del__(self) -> None:
        self.discard()


_parents: list[Any] = []  # never to be finished here


def _check_commits(fs: Any, path: str) -> None:
    """That files of a target can be taken back. To ask costs a file for a moment, under a name that nobody has; those
    that are uploaded in parts send nothing yet."""
    name = f"{path}.{secrets.token_hex(8)}"
    file = fs.open(name, "wb", autocommit=False)
    missing = [one for one in ("commit", "discard") if not callable(getattr(file, one, None))]
    try:
        if isinstance(file, AbstractBufferedFile):
            file.closed = True
        else:
            file.close()
        if not missing:
            file.discard()
    finally:
        with contextlib.suppress(FileNotFoundError):
            if missing and fs.exists(name):
                fs.rm_file(name)
    if missing:
        raise io.UnsupportedOperation(
            f"{type(fs).__name__}: its files have no {' and no '.join(missing)}, so that what was half written could "
            "not be taken back; pipe_file() writes whole objects"
        )


class _Gathered:
    """For a target in memory: put there whole."""

    def __init__(self, fs: Any, path: str, mode: str) -> None:
        self._fs, self._path, self._mode, self._data = fs, path, mode, bytearray()

    def write(self, data: Buffer) -> int:
        self._data += data
        return memoryview(data).nbytes

    def close(self) -> None:
        pass

    def commit(self) -> None:
        self._fs.pipe_file(self._path, bytes(self._data), mode="create" if self._mode == "xb" else "overwrite")

    def discard(self) -> None:
        self._data = bytearray()
