# SPDX-License-Identifier: Apache-2.0
"""What tasks do in workers. Nothing secret is among their arguments, their results and what they raise."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from typing import Any, NamedTuple

from distributed import get_worker
from fsspec.implementations.local import LocalFileSystem

from .._appear import Appearing
from .._objects import ObjectWriter, Upload, Version, mark_of
from ..exceptions import FormatError, InvalidTag
from ..fs import DaelstromFileSystem
from ._checked import Checked
from ._held import Changed, Held, NeedsKeys, held_by
from ._ranges import SharedStream

__all__ = ["Item", "Part", "do", "folder_of", "head_of"]

_BLOCK = 8 << 20
SCATTERED = ".daelstrom-parts-"  # in the names of folders that hold parts of an object


class Item(NamedTuple):
    """A whole object."""

    verb: str
    source: str
    target: str | None


class Part(NamedTuple):
    """Bytes `begin` to `end` of the plaintext of an object of `total`. Without an end (-1) its parts, which lie in
    `names`, are put together."""

    verb: str
    source: str
    target: str | None
    mark: tuple[Any, ...]  # of the source
    head: bytes  # of a sealed source: by its digest, as another one's ranges are none of this one's, whatever marks say
    header: bytes  # of what is sealed
    number: int
    begin: int
    end: int
    total: int
    names: tuple[str, ...] = ()


def do(job: str, units: list[Item | Part]) -> list[tuple[str, int, str, bool, str]]:
    """Of each unit: its outcome, the bytes of plaintext, the error or the name of what was made, whether once more may
    help, and who did it."""
    worker = get_worker()
    held = held_by(worker, job)
    out = []
    with held:
        for unit in units:
            try:
                outcome, size, name = _item(held, unit) if isinstance(unit, Item) else _part(held, job, unit)
                out.append((outcome, size, name, False, worker.address))
            except NeedsKeys:
                raise  # the job is over, or was taken for that
            except Exception as error:
                out.append(("failed", 0, held.words(error), _may_pass(error), worker.address))
    return out


_FOR_GOOD = (InvalidTag, FormatError, ValueError, TypeError, NotImplementedError, FileNotFoundError, FileExistsError,
             PermissionError, IsADirectoryError, NotADirectoryError)  # fmt: skip


def _may_pass(error: Exception) -> bool:
    return not isinstance(error, _FOR_GOOD)


def _copy(held: Held, source: Any, sink: Any) -> int:
    """To the end, which sealed sources verify."""
    total = 0
    with memoryview(bytearray(_BLOCK)) as block:
        while size := source.readinto(block):
            held.check()
            sink(block[:size])
            total += size
    return total


def _afresh(fs: Any, path: str) -> None:
    fs.invalidate_cache(path)
    fs.invalidate_cache(fs._parent(path))


def _still(fs: Any, path: str, mark: tuple[Any, ...]) -> None:
    _afresh(fs, path)
    if mark_of(fs.info(path)) != mark:
        raise Changed(f"{path!r} was replaced while it was read")


def head_of(fs: Any, path: str, keys: Any, size: int) -> tuple[bytes, bytes]:
    """What a sealed object begins with, by which its keys are made; and the digest of that."""
    head = bytes(fs.cat_file(path, start=0, end=min(keys.head_size, size)))
    return head, hashlib.sha256(head).digest()


def _sink(fs: DaelstromFileSystem, path: str, mode: str, in_place: bool) -> Any:
    """Where what is written goes; of several writers of one object the last one wins, as in stores, but that what is
    sealed anew in its place replaces only what it was made from."""
    if not isinstance(fs.fs, LocalFileSystem):
        return Upload(fs, path, mode, {})
    fs.fs.makedirs(fs.fs._parent(path), exist_ok=True)
    return Appearing(path, replace=mode != "xb", last=mode != "xb" and not in_place)


@contextlib.contextmanager
def _appearing(sink: Any, check: Any = lambda: None) -> Any:
    """What is there when the block ends well, and otherwise never was. `check` is called as late as can be."""
    try:
        yield sink.write
        sink.finish()
        check()
        sink.appear()
    finally:
        sink.discard()


def _sides(held: Held, unit: Item | Part) -> tuple[Any, str, DaelstromFileSystem, str]:
    """Where it is read and where it is written; what is plain there is wrapped too, for its `fs`."""
    if unit.verb == "encrypt":
        reads, path = held.plain(unit.source)
    else:
        reads, path = held.sealed(unit.source, held.old)
    writes, to = held.sealed(unit.target or unit.source, held.old if unit.verb == "decrypt" else held.new or held.old)
    return reads, path, writes, to


_DID = {"encrypt": "encrypted", "decrypt": "decrypted", "verify": "verified", "rekey": "rekeyed"}


def _in_place(unit: Item | Part) -> bool:
    return unit.target is None or unit.target == unit.source


def _item(held: Held, unit: Item) -> tuple[str, int, str]:
    reads, path, writes, to = _sides(held, unit)
    target = reads.fs if isinstance(reads, DaelstromFileSystem) else reads
    _afresh(target, path)
    mark = mark_of(target.info(path))
    if unit.verb == "verify":
        with reads.open(path, "rb") as source:
            return _DID[unit.verb], _copy(held, source, len), ""
    in_place = _in_place(unit)
    existing = "replace" if in_place else held.settings.existing
    _afresh(writes.fs, to)
    if existing == "skip" and writes.fs.exists(to):
        return "skipped", 0, ""
    mode = "wb" if existing == "replace" else "xb"
    try:
        with reads.open(path, "rb") as source:
            if unit.verb == "decrypt":
                with _appearing(_sink(writes, to, mode, False), lambda: _still(target, path, mark)) as sink:
                    size = _copy(held, source, sink)
            elif in_place:
                size = _anew(held, source, writes, to, lambda: _still(target, path, mark))
            else:
                with writes.open(to, mode) as out:
                    size = _copy(held, source, out.write)
                    _still(target, path, mark)
                    if unit.verb == "encrypt" and mark[0] not in (None, size):
                        raise Changed(f"{path!r} has {mark[0]} bytes, of which {size} could be read")
    except FileExistsError:
        # By an earlier attempt of this job, perhaps, whose worker was lost before it told.
        size = _same(held, unit, reads, path, writes, to)
        return ("there", size, "") if size >= 0 else _refuse(to)
    except (InvalidTag, FormatError):
        if unit.verb == "rekey" and in_place:  # an earlier attempt has done it, if it opens with the new key
            with contextlib.suppress(InvalidTag, FormatError), writes.open(to, "rb") as source:
                return "there", _copy(held, source, len), ""
        raise
    return _DID[unit.verb], size, ""


def _anew(held: Held, source: Any, writes: DaelstromFileSystem, to: str, check: Any) -> int:
    """In the place of the only copy: what was sealed is opened once more before."""
    sink = _sink(writes, to, "wb", True)
    try:
        checked = Checked(sink, writes._keys, writes._bound(to), source.size, held.engine)
    except BaseException:
        sink.discard()
        raise

    def both(block: memoryview) -> None:
        checked.told(block)
        out.write(block)

    with ObjectWriter(writes, to, "wb", checked, True) as out:
        size = _copy(held, source, both)
        check()
    return size


def _refuse(path: str) -> Any:
    raise FileExistsError(17, "something else is there already", path)


def _same(held: Held, unit: Item | Part, reads: Any, path: str, writes: DaelstromFileSystem, to: str) -> int:
    """The size of the plaintext where target and source have the same one, else -1."""
    there = writes.fs if unit.verb == "decrypt" else writes
    try:
        with reads.open(path, "rb") as a, there.open(to, "rb") as b:
            size = 0
            while True:
                held.check()
                one = a.read(_BLOCK)
                if one != b.read(len(one) or 1):
                    return -1
                if not one:
                    return size
                size += len(one)
    except (InvalidTag, FormatError):
        return -1


def folder_of(path: str, job: str) -> str:
    """Where the parts of an object lie meanwhile."""
    return f"{path}{SCATTERED}{job}"


def _joins(fs: Any, count: int) -> bool:
    """Whether the store puts so many parts together by itself, all or nothing. All but S3 take few."""
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
    return callable(getattr(fs, "merge", None)) and (count <= 32 or "s3" in protocols)


def _read(reads: Any, path: str, unit: Part) -> bytes:
    """The part's plaintext, of the version that was there when the object was begun, and of no other."""
    fs = reads.fs if isinstance(reads, DaelstromFileSystem) else reads
    if unit.verb == "encrypt":
        plain: bytes = fs.cat_file(path, start=unit.begin, end=unit.end)
        if len(plain) != unit.end - unit.begin:
            raise Changed(f"{path!r} has another size than it had")
        _still(fs, path, unit.mark)
        return plain
    _still(fs, path, unit.mark)
    info = fs.info(path)
    version = Version(reads, path, info)
    head, digest = head_of(fs, path, reads._keys, info["size"])
    if digest != unit.head:
        raise Changed(f"{path!r} was replaced while it was read")
    version._opener = reads._opener_of(path, info, head)  # under which no other version's segments open
    try:
        plain = version.read(unit.begin, unit.end - unit.begin)
        if unit.end == unit.total:
            version.check_size()
    except (InvalidTag, OSError):
        _still(fs, path, unit.mark)
        if head_of(fs, path, reads._keys, info["size"])[1] != unit.head:
            raise Changed(f"{path!r} was replaced while it was read") from None
        raise
    _still(fs, path, unit.mark)
    return plain


def _part(held: Held, job: str, unit: Part) -> tuple[str, int, str]:
    reads, path, writes, to = _sides(held, unit)
    # An earlier header's parts are others.
    folder = f"{folder_of(to, job)}/{unit.header[1:9].hex() or 'plain'}"
    if unit.end < 0:
        _still(reads.fs if isinstance(reads, DaelstromFileSystem) else reads, path, unit.mark)
        return _join(held, unit, (reads, path), writes, to)
    plain = _read(reads, path, unit)
    size = unit.end - unit.begin
    if unit.verb == "verify":
        return _DID[unit.verb], size, ""
    attempt = secrets.token_hex(8)
    place = f"{folder}/{unit.number:06}"
    fs, keys = writes.fs, held.new or held.old
    assert keys is not None
    held.check()
    if unit.verb == "decrypt":
        made: Any = plain
        _for_its_owner(fs, folder_of(to, job))
    else:
        stream = SharedStream(keys, writes._bound(to), unit.header, held.engine)
        # Nothing is sealed before all attempts at this part are seen to agree on its plaintext: another one would be
        # under the same nonces. Who writes the second claim sees the first one.
        claim = stream.claim(plain)
        fs.makedirs(place, exist_ok=True)
        fs.pipe_file(f"{place}/claim-{attempt}", claim)
        fs.invalidate_cache(place)
        claims = [name for name in fs.ls(place, detail=False) if name.rpartition("/")[2].startswith("claim-")]
        if not any(name.endswith(attempt) for name in claims):
            raise OSError(5, "the store does not list what was just written; ranges of one object take one that does", to)
        if any(fs.cat_file(name) != claim for name in claims):
            raise Changed(f"{path!r} read otherwise than in an earlier attempt")
        made = bytes(stream.seal(unit.begin, plain, unit.end == unit.total))
        if _in_place(unit):
            stream.check(unit.begin, plain, unit.total, made)
        held.check()
    fs.makedirs(place, exist_ok=True)
    name = f"{place}/part-{attempt}"
    fs.pipe_file(name, made)
    try:
        held.check()
    except NeedsKeys:  # nobody waits for it, nor removes it, perhaps: the client has done so already
        with contextlib.suppress(Exception):
            fs.rm_file(name)
        raise
    if _joins(fs, 1) and fs.cat_file(name) != made:  # nobody looks at it again
        raise OSError(5, "the store does not give back what was written", name)
    return "part", size, f"{keys.tag(made)} {name}"


def _for_its_owner(fs: Any, folder: str) -> None:
    """Plaintext lies in it, of an object that others, perhaps, shall not read."""
    if isinstance(fs, LocalFileSystem):
        fs.makedirs(fs._parent(folder), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _join(held: Held, unit: Part, source: tuple[Any, str], writes: DaelstromFileSystem, to: str) -> tuple[str, int, str]:
    if unit.verb == "verify":
        return _DID[unit.verb], unit.total, ""
    fs = writes.fs
    keys = held.new or held.old
    assert keys is not None
    wanted = unit.total if unit.verb == "decrypt" else keys.keys.sealing().sealed_size(unit.total)
    fs.invalidate_cache()
    parts = [one.partition(" ")[::2] for one in unit.names]
    if sum(int(fs.info(name)["size"]) for _, name in parts) != wanted:
        raise Changed(f"the parts of {to!r} are not as they were written")
    in_place = _in_place(unit)
    existing = "replace" if in_place else held.settings.existing
    if existing != "replace" and fs.exists(to):
        size = _same(held, unit, *source, writes, to)
        return ("there", size, "") if size >= 0 else _refuse(to)
    held.check()
    if _joins(fs, len(parts)):
        fs.merge(to, [name for _, name in parts])
    else:
        sink = _sink(writes, to, "wb" if existing == "replace" else "xb", in_place)
        with _appearing(sink, lambda: _still(fs, to, unit.mark) if in_place else None) as write:
            for tag, name in parts:
                held.check()
                made = fs.cat_file(name)
                if keys.tag(made) != tag:
                    raise Changed(f"the parts of {to!r} are not as they were written")
                write(memoryview(made))
    fs.invalidate_cache()
    return _DID[unit.verb], unit.total, ""
