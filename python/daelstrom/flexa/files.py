# SPDX-License-Identifier: Apache-2.0
"""FlexA as its users see it: files by names."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NoReturn

from .._appear import Appearing
from .._reader import SealedReader
from .cache import Cache
from .client import Client
from .errors import Conflict, Fault, FlexaError, Lost, RollBack, Unavailable
from .folders import Editor, Folder, Link
from .group import Group
from .keyring import Keyring
from .keys import FileKeys
from .manifest import Signed
from .moves import move
from .portions import Opened
from .repair import Report, check_tree
from .seen import Seen
from .store import Store
from .writing import FlexaWriter, Putting, Written, feed, parts_of, writable

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer, Self

__all__ = ["Entry", "FlexA"]

_WINDOW = 24 << 20  # plaintext that is fetched at a time: eight blocks of each portion
_AT_ONCE = 16
_TOGETHER = 1000  # new files that come into a folder by one change
Progress = Callable[[int], Any]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A name, and what it leads to. Size and time of a file in a listing are those of the last version that was put by
    this name; `info` has the file's own."""

    name: str
    type: str
    size: int
    mtime: float
    version: int


class _At:
    """Where a name leads: the folder that it is in, and its entry there, if any. The root has neither."""

    def __init__(
        self, name: str, folder: FileKeys | None, leaf: str, link: Link | None, keys: FileKeys | None, kind: str,
        above: tuple[Link, ...] = (),
    ) -> None:  # fmt: skip
        self.name, self.folder, self.leaf, self.link, self._keys, self.kind = name, folder, leaf, link, keys, kind
        self.above = above  # the folders on the way, but the root

    @property
    def there(self) -> bool:
        return self._keys is not None or self.link is not None

    @property
    def keys(self) -> FileKeys:
        if self._keys is None:
            if self.link is None or self.folder is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.name)
            self._keys = self.link.keys(self.folder)
        return self._keys

    def parent(self) -> FileKeys:
        if self.folder is None:
            raise PermissionError(errno.EPERM, "this is the root", self.name)
        return self.folder


class FlexA:
    """Files under names, on three primary stores and any number of secondaries.

    *Threads*: any number; changes of one folder at the same time become one version of it.
    *close()* waits for the copies to secondaries; what other threads are amid ends with a ValueError or well.
    *Children of fork()* make their own (RuntimeError). Not pickled, since its keys would be.
    """

    def __init__(
        self,
        primaries: Sequence[str] | None = None,
        secondaries: Sequence[str] | None = None,
        keyring: Keyring | str | os.PathLike[str] | None = None,
        *,
        passphrase: str | Buffer | None = None,
        identities: Any = None,
        options: dict[str, dict[str, Any]] | None = None,
        deadline: float = 10.0,
        hedge: float = 0.5,
        seen: bool | str | os.PathLike[str] = True,
        cache: str | os.PathLike[str] | None = None,
        cache_size: int = 1 << 30,
        engine: Any = None,
    ) -> None:
        """`keyring`: its file, with what opens it, or an open one. `primaries` and `secondaries` are the keyring's
        unless given; `options` are fsspec's, by store. `deadline`: seconds that a store has to answer, and one more for
        each MiB; `hedge`: seconds after which another store is asked too. `seen`: whether, or in which file, it is
        remembered which versions were seen (beside the keyring, with ``.seen`` behind its name); `cache`: a folder for
        up to `cache_size` bytes of ciphertext."""
        if keyring is None:
            raise TypeError("FlexA takes a keyring: Keyring.create() makes one")
        if not isinstance(keyring, Keyring):
            keyring = Keyring.open(keyring, passphrase=passphrase, identities=identities)
        self._ring = keyring
        given = {**keyring.options, **(options or {})}

        def store(url: str) -> Store:
            return Store(url, given.get(url), deadline=deadline, marker=keyring.marker)

        group = Group([store(url) for url in (primaries or keyring.primaries)],
                      [store(url) for url in (keyring.secondaries if secondaries is None else secondaries)], hedge)  # fmt: skip
        beside = None if keyring.path is None else keyring.path + ".seen"
        path = (beside if seen else None) if isinstance(seen, bool) else seen
        held = None if cache is None else Cache(cache, cache_size)
        self._client = Client(group, Seen(path), held, engine)
        self._editor = Editor(self._client)

    @classmethod
    def init(cls, keyring: Keyring, **how: Any) -> None:
        """Makes a FlexA of three empty stores: marks them, and puts an empty root folder there. Again after it was
        interrupted: goes on."""
        with cls(keyring=keyring, **how) as made:
            for store in made._client.group.stores:
                again = False
                try:
                    store.wait(store.ls(""))
                    again = True
                except Exception:  # not marked yet
                    again = False
                store.wait(store.begin(again=again))
            made._make_root()

    def _make_root(self) -> None:
        root = self._ring.root
        try:
            self._client.current(root)
        except Lost:
            cutter = self._client.cutter(root, None)
            cutter.write(memoryview(Folder({}).encode()))
            body = cutter.finish((), time.time()).encode()
            self._client.register(root).propose(1, body)  # somebody else's is as good: both are empty

    @classmethod
    def of_share(
        cls, path: str | os.PathLike[str], *, identities: Any = None, options: dict[str, dict[str, Any]] | None = None,
        passphrase: str | Buffer | None = None, **how: Any,
    ) -> FlexA:  # fmt: skip
        """What somebody shared: a folder as the root, or one file, whose name here is "" or its own."""
        return cls(keyring=Keyring.of_share(path, identities=identities, options=options, passphrase=passphrase), **how)

    # Where names lead.
    def _at(self, name: str) -> _At:
        self._client.group.check_process()
        parts, root = parts_of(name), self._ring.root
        if self._ring.kind == "file":
            if parts not in ([], [self._ring.name]):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            return _At(self._ring.name, None, "", None, root, "file")
        at = _At("", None, "", None, root, "directory")
        for depth, leaf in enumerate(parts):
            here = "/".join(parts[: depth + 1])
            if at.kind != "directory":
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), at.name)
            link = self._links(at).get(leaf)
            if link is None and depth + 1 < len(parts):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), here)
            above = at.above if at.link is None else (*at.above, at.link)
            at = _At(here, at.keys, leaf, link, None, link.kind if link is not None else "", above)
        return at

    def _links(self, at: _At) -> dict[str, Link]:
        try:
            return self._editor.read(at.keys).links
        except Lost:
            if at.link is not None and at.link.leaving:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), at.name) from None
            raise

    def _there(self, name: str, kind: str = "") -> _At:
        at = self._at(name)
        if not at.there:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        if kind == "file" and at.kind != "file":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if kind == "directory" and at.kind != "directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return at

    # Reading.
    def _opened(self, name: str) -> Opened:
        at, signed = self._version(name, "file")
        return self._client.opened(at.keys, signed)

    def _version(self, name: str, kind: str = "") -> tuple[_At, Signed]:
        """Where a name leads, and the version that is there."""
        at = self._there(name, kind)
        while True:
            try:
                signed = self._client.current(at.keys)
                _check_version(at, signed.manifest.version)
                return at, signed
            except Lost:  # removed between the look at its folder and this, or replaced
                before, at = at, self._there(name, kind)
                if before.link is None or at.link is None or at.link.verify == before.link.verify:
                    if at.link is not None and at.link.leaving:
                        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
                    raise

    def cat(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """All of a file, or a range as fsspec has it: negative numbers count from the end."""
        for again in (True, False):
            opened = self._opened(name)
            begin, stop, _ = slice(start, end).indices(opened.size)
            try:
                return opened.read(begin, max(0, stop - begin))
            except OSError as error:
                if error.errno != errno.ESTALE or not again:
                    raise
        raise AssertionError

    def cat_many(self, names: Iterable[str]) -> dict[str, bytes | Exception]:
        """Several at once, whose folders are read once each: of each its bytes, or what kept it from being had."""
        wanted = list(dict.fromkeys(names))
        folders: dict[str, tuple[_At, dict[str, Link]]] = {}
        for folder in {name.rpartition("/")[0] for name in wanted}:
            with contextlib.suppress(OSError, FlexaError):
                at = self._there(folder, "directory")
                folders[folder] = at, self._links(at)

        def one(name: str) -> bytes | Exception:
            folder, _, leaf = name.rpartition("/")
            try:
                if folder in folders and (link := folders[folder][1].get(leaf)) is not None and link.kind == "file":
                    at = _At(name, folders[folder][0].keys, leaf, link, None, "file")
                    with contextlib.suppress(OSError, FlexaError):  # moved or removed since, perhaps: by its name, then
                        opened = self._client.opened(at.keys)
                        _check_version(at, opened.manifest.version)
                        return opened.read(0, opened.size)
                return self.cat(name)
            except Exception as error:
                return error

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip(wanted, pool.map(one, wanted)))

    def get(self, name: str, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        """To a file, which appears when all of it is there and verified."""
        opened = self._opened(name)
        file = Appearing(path, replace=True, last=True)
        try:
            for part in _windows(opened):
                file.write(part)
                if progress is not None:
                    progress(len(part))
            file.appear()
        finally:
            file.discard()

    def open(self, name: str, mode: str = "rb") -> SealedReader | FlexaWriter:
        """A file: ``"rb"`` to read it, of the version that is there now; ``"wb"`` to make or replace it, ``"xb"`` to make
        it. What is written counts when it is closed."""
        if mode == "rb":
            return SealedReader(self._opened(name), name)
        if mode not in ("wb", "xb"):
            raise ValueError(f"mode is {mode!r}; there are 'rb', 'wb' and 'xb'")
        return FlexaWriter(Putting(self, name, mode == "xb", None), name, mode)

    def info(self, name: str) -> Entry:
        at, signed = self._version(name)
        manifest = signed.manifest
        size = manifest.size if at.kind == "file" else 0
        return Entry(at.name, at.kind, size, manifest.time, manifest.version)

    def exists(self, name: str) -> bool:
        try:
            return self._at(name).there
        except (FileNotFoundError, NotADirectoryError):
            return False

    def ls(self, name: str = "") -> list[Entry]:
        """What is in a folder, by name; of a file, itself."""
        at = self._there(name)
        if at.kind == "file":
            return [self.info(name)]
        prefix = at.name + "/" if at.name else ""
        return [
            Entry(prefix + leaf, link.kind, link.size if link.kind == "file" else 0, link.time, link.version)
            for leaf, link in sorted(self._links(at).items())
        ]

    # Writing.
    def put(
        self, name: str, source: Buffer | str | os.PathLike[str] | Any, *, exclusive: bool = False,
        progress: Progress | None = None,
    ) -> Written:  # fmt: skip
        """A file, or its next version, from bytes, from a file's path, or from what has ``read()``. Folders on the way
        are made."""
        putting = Putting(self, name, exclusive, progress, parents=True)
        try:
            feed(putting.cutter, source)
        except BaseException:
            putting.discard()
            raise
        return putting.commit()

    def put_many(self, files: Mapping[str, Any]) -> list[Written]:
        """Several at once; what is new in a folder comes into it by one change, or one for each thousand. Where one
        fails, others may be there."""
        names: dict[str, list[str]] = {}
        known: set[str] = set()
        for name in files:
            parts = parts_of(name)
            if "/".join(parts) in known:
                raise ValueError(f"{name!r} is among these files twice")
            known.add("/".join(parts))
            names.setdefault("/".join(parts[:-1]), []).append(name)
        written: dict[str, Written] = {}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for folder, inside in sorted(names.items()):
                missing: set[Store] = set()
                if folder:
                    self._mkdir(folder, True, True, missing)
                for begin in range(0, len(inside), _TOGETHER):
                    self._put_new(pool, folder, inside[begin : begin + _TOGETHER], files, written)
                written.update({name: written[name].but(missing) for name in inside if name in written})
            old = [name for name in files if name not in written]
            written.update(zip(old, pool.map(lambda name: self.put(name, files[name]), old)))
        return [written[name] for name in files]

    def _put_new(
        self, pool: ThreadPoolExecutor, folder: str, names: list[str], files: Mapping[str, Any], written: dict[str, Written]
    ) -> None:
        """Those of a folder that are not there yet."""
        at = self._there(folder, "directory")
        writable(at.keys, folder)
        links = self._links(at)
        puttings = [(name, leaf) for name in names if (leaf := parts_of(name)[-1]) not in links]
        jobs = [pool.submit(Putting.create, self, at.keys, leaf, files[name]) for name, leaf in puttings]
        for job in wait(jobs, return_when=FIRST_EXCEPTION).not_done:
            job.cancel()
        wait(jobs)
        gone = [job.result()[0] for job in jobs if not job.cancelled() and job.exception() is None]
        try:
            made = [job.result() for job in jobs]
        except BaseException:
            for link in gone:
                self._client.remove(link.keys(at.keys))
            raise
        refused: list[str] = []

        def add(links: dict[str, Link]) -> None:
            refused[:] = [leaf for _, leaf in puttings if leaf in links]
            links.update({leaf: link for (_, leaf), (link, _) in zip(puttings, made) if leaf not in refused})

        gone = []
        missing: set[Store] = set()
        try:
            self._editor.edit(at.keys, add, missing=missing)
        except (Conflict, Unavailable, FileNotFoundError):  # for certain: they have no names
            gone = [link for link, _ in made]
            raise
        else:
            gone = [link for (_, leaf), (link, _) in zip(puttings, made) if leaf in refused]
            if refused:
                raise Conflict(errno.EEXIST, "somebody else has made a file of this name meanwhile", f"{folder}/{refused[0]}")
        finally:
            for link in gone:
                self._client.remove(link.keys(at.keys))
        for (name, _), (_, done) in zip(puttings, made):
            written[name] = dataclasses.replace(done, name=name).but(missing)

    def mkdir(self, name: str, parents: bool = False, exist_ok: bool = False) -> None:
        self._mkdir(name, parents, exist_ok, set())

    def _mkdir(self, name: str, parents: bool, exist_ok: bool, missing: set[Store]) -> None:
        """To `missing` stores come that lack something of what was made."""
        parts = parts_of(name)
        for depth in range(1 if parents else len(parts), len(parts) + 1):
            last = depth == len(parts)
            at = self._at("/".join(parts[:depth]))
            if at.there:
                if at.kind != "directory" or (last and not exist_ok):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), at.name)
                continue
            folder, leaf = at.parent(), at.leaf
            writable(folder, at.name)
            number = FileKeys.new_number()
            keys = FileKeys.of_number(number)
            link = Link.to("directory", number, folder, keys, self._editor.create(keys, missing))

            def add(links: dict[str, Link], leaf: str = leaf, link: Link = link, name: str = at.name) -> None:
                if leaf in links:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
                links[leaf] = link

            try:
                self._editor.edit(folder, add, missing=missing)
            except FileExistsError:
                self._client.remove(keys)
                if (last and not exist_ok) or self._there(at.name).kind != "directory":
                    raise
            except (Conflict, Unavailable, FileNotFoundError):
                self._client.remove(keys)
                raise
        if not parts and not exist_ok:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)

    def rm(self, name: str, recursive: bool = False) -> None:
        """What has another name, or is about to, loses this one alone."""
        at = self._there(name)
        folder = at.parent()
        writable(folder, name)
        gone: list[FileKeys] = []
        wanted = at.link
        assert wanted is not None
        if at.kind == "directory":
            if not wanted.leaving:
                self._empty(at.keys, name, recursive, gone)
            elif not recursive:
                with contextlib.suppress(Lost):  # it went by its other name
                    inside = self._editor.read(at.keys)
                    _check_empty(inside.links, name)
                    if not inside.removed:
                        # To close it is to spoil it under its other name; else something may come into it meanwhile.
                        said = "it is being moved, or a move of it was interrupted: repair it, or remove it with all in it"
                        raise Conflict(errno.EBUSY, said, name)

        def remove(links: dict[str, Link]) -> bool:
            there = links.get(at.leaf)
            if there is None or there.verify != wanted.verify:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            del links[at.leaf]
            return bool(there.leaving)

        leaving = self._editor.edit(folder, remove)
        if at.kind == "file" and not leaving:
            gone.append(at.keys)
        if at.kind == "directory" and not wanted.leaving:
            self._client.bury(at.keys)
        for keys in gone:
            self._client.remove(keys)

    def _empty(self, keys: FileKeys, name: str, recursive: bool, gone: list[FileKeys]) -> None:
        """Nothing comes into a folder any more, and what is in it goes."""

        def close(links: dict[str, Link]) -> dict[str, Link]:
            if not recursive:
                _check_empty(links, name)
            return dict(links)

        folder = self._editor.read(keys)
        links = folder.links if folder.removed else self._editor.edit(keys, close, remove=True)
        for leaf, link in links.items():
            if link.leaving:
                continue
            below = link.keys(keys)
            if link.kind == "directory":
                self._empty(below, f"{name}/{leaf}", recursive, gone)
                self._client.bury(below)
            else:
                gone.append(below)

    def mv(self, old: str, new: str, replace: bool = False) -> None:
        """Within a folder at once. From one to another there is a moment with both names, never one with none;
        `Uncertain`: both may be there, and the same move once more ends that."""
        move(self, old, new, replace)

    # People, and stores.
    def share(
        self, name: str, path: str | os.PathLike[str], *, read: bool = True, recipients: Any = None,
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Writes a small file with what it takes to read a file or a folder (all of it), or only to check it."""
        at = self._there(name)
        self._ring.share(path, at.keys, at.kind, at.leaf, read=read, recipients=recipients, options=options)

    def verify(self, name: str = "", deep: bool = True, progress: Progress | None = None) -> Report:
        """Whether every store has what it should; with `deep` all of it is read."""
        at = self._there(name)
        return check_tree(self._client, self._editor, at.keys, at.kind, at.name, mend=False, deep=deep, progress=progress)

    def repair(
        self, name: str = "", deep: bool = False, grace: float | None = 86400.0, progress: Progress | None = None
    ) -> Report:
        """Puts what is missing where it should be; with `deep` what is corrupted, too. Of everything: removes what is of
        no use and older than `grace` seconds (None: nothing)."""
        at = self._there(name)
        everything = at.folder is None and self._ring.kind == "directory" and at.keys.can_write
        return check_tree(self._client, self._editor, at.keys, at.kind, at.name, mend=True, deep=deep,
                          grace=grace if everything else None, progress=progress)  # fmt: skip

    def status(self) -> dict[str, Any]:
        group = self._client.group
        rooms = group.each("", lambda store: store.room(), group.stores)
        stores = [
            {"url": store.url, "role": "primary" if store in group.primaries else "secondary",
             "state": "ok" if store in rooms else store.state if store.state != "ok" else "failing",
             "said": "" if store in rooms else store.said,
             "room": None if rooms.get(store) is None else {"total": rooms[store][0], "free": rooms[store][1]}}
            for store in group.stores
        ]  # fmt: skip
        return {"stores": stores, "pending": self._client.background.waiting,
                "faults": [dataclasses.asdict(fault) for fault in list(group.faults)[-50:]]}  # fmt: skip

    def statvfs(self) -> tuple[int, int] | None:
        """Bytes in all and free, of the fullest store that tells it."""
        group = self._client.group
        rooms = [room for room in group.each("", lambda store: store.room()).values() if room is not None]
        return min(rooms, key=lambda room: room[1], default=None)

    @property
    def faults(self) -> list[Fault]:
        """What stores did wrong and the others made good, the newest last."""
        return list(self._client.group.faults)

    def flush(self) -> None:
        """Waits until secondaries have what primaries have."""
        self._client.group.check_process()
        self._client.background.drain()

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("FlexA is not pickled, since its keys would be; open the keyring where it is needed")


def _check_empty(links: dict[str, Link], name: str) -> None:
    if links:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), name)


def _check_version(at: _At, version: int) -> None:
    """What a listing knows of a file, who has not seen the file knows too."""
    if at.kind == "file" and at.link is not None and version < at.link.version:
        raise RollBack(f"the stores show version {version} of {at.name}; its folder knows version {at.link.version}")


def _windows(opened: Opened) -> Iterator[memoryview]:
    """All of a file's plaintext, of which the next part is fetched while one is opened and used."""
    starts = list(range(0, opened.size, _WINDOW)) or [0]
    sizes = [min(_WINDOW, opened.size - at) for at in starts]
    out = bytearray(min(_WINDOW, opened.size))

    def fetch(number: int) -> tuple[int, bytes]:
        begin, length = opened.sealed_range(starts[number], sizes[number])
        return begin, opened.ciphertext(begin, length)

    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(fetch, 0)
        for number, at in enumerate(starts):
            begin, sealed = ahead.result()
            if number + 1 < len(starts):
                ahead = pool.submit(fetch, number + 1)
            with memoryview(out)[: sizes[number]] as view:
                opened.open_to(at, begin, sealed, view)
                yield view
