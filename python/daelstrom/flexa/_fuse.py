# SPDX-License-Identifier: Apache-2.0
"""What the kernel asks of a mounted FlexA. Needs mfusepy and libfuse; `mount` has the call."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..exceptions import DaelstromError
from ._libfuse import errors, mfusepy, serve
from ._pages import Hidden, Pages, Reading
from .draft import Draft
from .files import Entry, FlexA

__all__ = ["Mounted", "serve"]

_log = logging.getLogger("daelstrom.flexa.mount")
_NAME_MOST = 255
_HIDDEN = re.compile(r"\.fuse_hidden[0-9a-f]{16}")  # what libfuse calls a file that lost its name and is open yet


class Mounted(mfusepy.Operations):  # type: ignore[misc]
    """What the kernel asks, in libfuse's threads.

    *Threads*: any number. *close() during use*: libfuse's threads have ended before. *Children of fork()*: none; a
    mount is one process.
    """

    use_ns = True

    def __init__(
        self, flexa: FlexA, *, refresh: float, spool: str | None, spool_size: int, read_only: bool = False,
        ready: Callable[[], Any] | None = None,
    ) -> None:  # fmt: skip
        self._flexa, self._refresh, self._spool, self._most = flexa, refresh, spool, spool_size
        self.read_only = read_only or not flexa._ring.root.can_write
        self._lock = threading.Lock()
        # What a listing says of a file, and what the file itself does.
        self._known: dict[str, tuple[Entry, Entry]] = {}
        self._listed: dict[str, tuple[float, dict[str, Entry]]] = {}
        self._drafts: dict[str, Draft] = {}
        self._handles: dict[int, Reading | Draft] = {}
        self._appending: set[int] = set()
        self._looking: set[int] = set()  # who only reads what others are writing
        self._pages = Pages()
        self._keeps: dict[int, bool] = {}
        self._hidden: dict[str, Hidden] = {}
        self._hid: dict[int, str] = {}  # of libfuse's threads, what each hid by its last call
        self._next, self._changes = 1, 0
        self._begun = time.time()
        self._ready = ready

    def _called(self, name: str) -> None:
        """By libfuse, which makes one rename follow the other where it hides something (`_hide`)."""
        if name != "rename":
            self._hid.pop(threading.get_ident(), None)

    def init(self, path: str) -> None:
        if self._ready is not None:
            self._ready()

    # What is there.

    def _folder(self, name: str) -> dict[str, Entry]:
        with self._lock:
            when, found = self._listed.get(name, (-math.inf, {}))
            changes = self._changes
        if time.monotonic() - when < self._refresh:
            return found
        prefix = len(name) + 1 if name else 0
        now = time.monotonic()
        try:
            listed = {entry.name[prefix:]: entry for entry in self._flexa.ls(name)}
        except NotADirectoryError:
            listed = {}
        with self._lock:
            if len(self._listed) > 10_000:
                self._listed.clear()
            if changes == self._changes:  # otherwise it may be what was there before
                self._listed[name] = (now, listed)
        return listed

    def _changed(self, *names: str) -> None:
        """Where something was made or removed."""
        with self._lock:
            self._changes += 1
            for name in names:
                self._listed.pop(name.rpartition("/")[0], None)

    def _entry(self, name: str) -> Entry:
        folder, _, leaf = name.rpartition("/")
        listed = self._folder(folder).get(leaf)
        if listed is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        with self._lock:
            said, known = self._known.get(name, (None, listed))
            if said != listed:
                self._known.pop(name, None)
                return listed
        return known

    def _learn(self, name: str, true: Entry) -> None:
        """What the file itself says, where its listing is older: by the size and the time that it is told, the kernel cuts
        what it reads, and keeps what it has read."""
        folder, _, leaf = name.rpartition("/")
        listed = self._folder(folder).get(leaf, true)
        with self._lock:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[name] = (listed, true)

    def _draft(self, name: str) -> Draft | None:
        """What is being written by a name. One that has failed is only its descriptors' any more."""
        with self._lock:
            draft = self._drafts.get(name)
            if draft is not None and draft.failed is not None:
                del self._drafts[name]
                self._pages.forget(name)  # what was written and is nowhere
                return None
            return draft

    @contextlib.contextmanager
    def _holding(self, wanted: Callable[[str], bool]) -> Iterator[list[Draft]]:
        """The drafts of some names, to which nobody does anything meanwhile."""

        def look() -> list[Draft]:
            with self._lock:
                return sorted((draft for name, draft in self._drafts.items() if wanted(name)), key=id)

        with contextlib.ExitStack() as held:
            while True:
                found = look()
                for draft in found:
                    held.enter_context(draft.lock)
                if found == look():
                    break
                held.close()
            yield [draft for draft in found if self._draft(draft.name) is draft]

    def _named(self, draft: Draft, name: str | None) -> None:
        """Has it found by another name, or by none."""
        old = draft.name
        if name is not None:
            draft.renamed(name)
        with self._lock:
            if self._drafts.get(old) is draft:
                del self._drafts[old]
            if name is not None:
                self._drafts[name] = draft
        if name is None:
            draft.orphan()

    @errors
    def getattr(self, path: str | None, fh: int | None = None) -> dict[str, Any]:
        held = None if fh is None else self._handles.get(fh)
        if isinstance(held, Reading) and self._pages.of(held.name)[0] == held.stood and not self._is_written(held.name):
            return self._file(held.name, held.true.size, held.true.mtime)
        if isinstance(held, Draft):
            return self._file(held.name, held.size, held.mtime)
        name = held.name if isinstance(held, Reading) else (path or "/")[1:]
        if not name:
            return self._attributes(stat.S_IFDIR | 0o700, 0, self._begun)
        name = self._led(name)
        draft = self._draft(name)
        if draft is not None:
            return self._file(name, draft.size, draft.mtime)
        entry = self._entry(name)
        if entry.type == "directory":
            return self._attributes(stat.S_IFDIR | 0o700, entry.size, entry.mtime)
        return self._file(name, entry.size, entry.mtime)

    def _led(self, name: str) -> str:
        """Of what the kernel knows by its hidden name yet, the name that it has again."""
        hidden = self._hidden.get(name)
        return hidden.name if hidden is not None and hidden.back else name

    def _file(self, name: str, size: int, when: float) -> dict[str, Any]:
        self._pages.tell(name, size)
        return self._attributes(stat.S_IFREG | 0o600, size, when)

    def _attributes(self, mode: int, size: int, when: float) -> dict[str, Any]:
        nanoseconds = int(when * 1e9)
        if self.read_only:
            mode &= ~0o222
        return {
            "st_mode": mode, "st_size": size, "st_nlink": 1, "st_uid": os.getuid(), "st_gid": os.getgid(),
            "st_mtime": nanoseconds, "st_ctime": nanoseconds, "st_atime": nanoseconds,
            "st_blocks": -(-size // 512), "st_blksize": 1 << 20,
        }  # fmt: skip

    @errors
    def readdir(self, path: str, fh: int) -> list[str]:
        name = path[1:]
        names = set(self._folder(name))
        with self._lock:
            names.update(
                one.rpartition("/")[2] for one, draft in self._drafts.items()
                if one.rpartition("/")[0] == name and draft.failed is None and not draft.nameless
            )  # fmt: skip
        return [".", "..", *sorted(names)]

    @errors
    def statfs(self, path: str) -> dict[str, int]:
        total, free = self._flexa.statvfs() or (1 << 50, 1 << 50)
        size = 1 << 12
        return {"f_bsize": size, "f_frsize": size, "f_blocks": total // size, "f_bfree": free // size,
                "f_bavail": free // size, "f_files": 1 << 32, "f_ffree": 1 << 32, "f_namemax": _NAME_MOST}  # fmt: skip

    # Files.

    def _handle(self, made: Reading | Draft, keeps: bool) -> int:
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._handles[number], self._keeps[number] = made, keeps
        return number

    def _is_known(self, name: str, true: Entry) -> None:
        """That the kernel was told the size that a file has; otherwise it asks for the attributes again, and then opens it
        again (LOOKUP_REVAL)."""
        entry = self._entry(name)
        if (entry.size, entry.mtime) != (true.size, true.mtime):
            self._learn(name, true)
        if self._pages.size(name) not in (None, true.size):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)

    def _reading(self, name: str) -> Reading:
        reading = Reading(self._flexa.open(name, "rb"))
        try:
            self._is_known(name, reading.true)
        except BaseException:
            reading.file.close()
            raise
        return reading

    def keeps(self, fh: int) -> bool:
        with self._lock:
            return self._keeps.pop(fh, False)

    def _is_written(self, name: str) -> bool:
        draft = self._draft(name)
        return draft is not None and draft.dirty

    def _read(self, reading: Reading, at: int, size: int) -> bytes:
        """What comes into the kernel's pages is of one version: what this mount has written, for those who had the file
        open before too; of what others have written, for those who came since."""
        draft = self._draft(reading.name)
        if draft is not None:
            with draft.lock:
                if draft.dirty and self._draft(reading.name) is draft:  # nor has it ended meanwhile
                    return draft.read(at, size)
        with reading.lock:  # in order as a rule, for which the file reads ahead
            version, ours = self._pages.of(reading.name)
            if version != reading.stood:
                now = Reading(self._flexa.open(reading.name, "rb")) if ours else reading
                if now.stood != version:
                    if now is not reading:
                        now.file.close()
                    raise OSError(errno.ESTALE, "it was replaced while it was read; open it again", reading.name)
                reading.file.close()
                reading.be(now.file)
            return reading.read(at, size)

    def _write_to(self, name: str, *, new: bool = False, flags: int = 0) -> Draft:
        """With one reference more, which `_left` takes back. One that ends just now is waited for: nobody gets it."""
        while True:
            draft = self._draft(name)
            if draft is None:
                draft = Draft(self._flexa, name, new=new, folder=self._spool, most=self._most)
                try:
                    if not new and not flags & os.O_TRUNC:
                        self._is_known(name, Entry(name, "file", draft.size, draft.mtime, draft.version))
                    with self._lock:
                        if name not in self._drafts:
                            draft.references = 1
                            self._drafts[name] = draft
                            return draft
                finally:
                    if draft.references == 0:
                        draft.close()
                continue
            if new and flags & os.O_EXCL:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            with self._lock:
                if draft.references and self._drafts.get(name) is draft:
                    draft.references += 1
                    return draft
            with draft.lock:
                pass

    def _fits(self, name: str) -> None:
        if len(os.fsencode(name.rpartition("/")[2])) > _NAME_MOST:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    def _writable(self) -> None:
        if self.read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    @errors
    def open(self, path: str, flags: int) -> int:
        name = self._led(path[1:])
        looking = flags & os.O_ACCMODE == os.O_RDONLY
        if looking:
            draft = self._draft(name)
            if draft is None or not draft.readable:
                reading = self._reading(name)
                return self._handle(reading, self._pages.opened(name, reading.stood))
        else:
            self._writable()
        number = self._opened(self._write_to(name, flags=flags), flags)
        if looking:
            self._looking.add(number)
        return number

    def _opened(self, draft: Draft, flags: int) -> int:
        try:
            keeps = draft.references > 1 or self._pages.opened(draft.name, draft.stood)
            if flags & os.O_TRUNC:
                draft.anew()
                self._pages.tell(draft.name, 0)  # the kernel takes it for that
            number = self._handle(draft, keeps)
        except BaseException:
            self._left(draft)
            raise
        if flags & os.O_APPEND:
            self._appending.add(number)
        return number

    @errors
    def create(self, path: str, mode: int, flags: int = 0) -> int:
        self._writable()
        name = path[1:]
        self._fits(name)
        return self._opened(self._write_to(name, new=True, flags=flags), flags)

    @errors
    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        held = self._handles[fh]
        return self._read(held, offset, size) if isinstance(held, Reading) else held.read(offset, size)

    def _to_write(self, fh: int) -> Draft:
        draft = self._handles[fh]
        if not isinstance(draft, Draft):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return draft

    @errors
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        # Where its end is the kernel may not know, if somebody else has written it.
        draft = self._to_write(fh)
        written = draft.write(-1 if fh in self._appending else offset, data)
        self._pages.tell(draft.name, offset + written, least=True)
        return written

    @errors
    def truncate(self, path: str | None, length: int, fh: int | None = None) -> int:
        self._writable()
        if fh is not None or path is None:
            self._to_write(fh or 0).truncate(length)
            return 0
        draft = self._write_to(self._led(path[1:]), flags=os.O_TRUNC)
        try:
            draft.truncate(length)
            if draft.references == 1:  # otherwise it is open, perhaps just now to be written anew: it waits for its close
                self._commit(draft)
        finally:
            self._left(draft)
        return 0

    def _commit(self, draft: Draft) -> None:
        with draft.lock:  # nor has it another name, or readers, before all of this is so
            if draft.nameless or not draft.dirty and draft.failed is None:
                return
            try:
                draft.commit()
            finally:  # it may be there even where nobody knows
                self._changed(draft.name)
            self._pages.written(draft.name, draft.stood)
            with contextlib.suppress(OSError, DaelstromError):
                if draft.version != self._entry(draft.name).version:
                    self._learn(draft.name, self._flexa.info(draft.name))

    @errors
    def flush(self, path: str, fh: int) -> int:
        """Of close(), which hears what became of it. Who has only read ends nothing that another is writing."""
        held = self._handles.get(fh)
        if isinstance(held, Draft) and fh not in self._looking:
            self._commit(held)
        return 0

    @errors
    def fsync(self, path: str, datasync: int, fh: int) -> int:
        held = self._handles.get(fh)
        if isinstance(held, Draft):
            self._commit(held)
        return 0

    @errors
    def release(self, path: str, fh: int) -> int:
        with self._lock:
            held = self._handles.pop(fh, None)
            self._appending.discard(fh)
            self._looking.discard(fh)
            self._keeps.pop(fh, None)
        if isinstance(held, Draft):
            self._left(held)
        elif held is not None:
            held.file.close()
        return 0

    def _left(self, draft: Draft) -> None:
        """By one of its descriptors; with the last one it ends."""
        with draft.lock:
            with self._lock:
                draft.references -= 1
                if draft.references:
                    return
            try:
                if draft.failed is None:
                    self._commit(draft)
            except Exception as error:  # whom nobody waits for
                _log.warning("what was written to %r is lost: %s", draft.name, error)
                raise
            finally:
                self._named(draft, None)
                draft.close()

    # Names.

    @errors
    def mkdir(self, path: str, mode: int) -> int:
        self._writable()
        self._fits(path)
        self._flexa.mkdir(path[1:])
        self._changed(path[1:])
        return 0

    @errors
    def unlink(self, path: str) -> int:
        self._writable()
        name = path[1:]
        hidden = self._hidden.pop(name, None)
        if hidden is not None and (hidden.back is not None or not hidden.stored):
            if hidden.back is False:
                self._give_back(hidden, name)
            return 0
        with self._holding(lambda one: one == name) as drafts:
            if all(not draft.new for draft in drafts):
                self._flexa.rm(name)
            for draft in drafts:
                self._named(draft, None)
        self._changed(name)
        return 0

    @errors
    def rmdir(self, path: str) -> int:
        self._writable()
        name = path[1:]
        with self._lock:
            inside = [draft for one, draft in self._drafts.items() if one.startswith(name + "/")]
            if any(draft.failed is None and not draft.nameless for draft in inside):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), name)
        if self._flexa.info(name).type != "directory":  # by now
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        self._flexa.rm(name)
        with self._lock:
            self._listed.pop(name, None)
        self._changed(name)
        return 0

    @errors
    def rename(self, old: str, new: str, replace: bool = True) -> int:
        self._writable()
        self._fits(new)
        source, target = old[1:], new[1:]
        hid = self._hid.pop(threading.get_ident(), "")
        if _HIDDEN.fullmatch(target.rpartition("/")[2]):
            self._hide(source, target)
            return 0
        try:
            self._rename(source, target, replace)
        except Exception:
            hidden = self._hidden.get(hid)
            if hidden is not None and hidden.name == target:
                self._give_back(hidden, hid)
            raise
        return 0

    def _rename(self, source: str, target: str, replace: bool) -> None:
        if source == target:
            return
        with self._holding(lambda one: one in (source, target) or one.startswith(source + "/")) as drafts:
            gone = [draft for draft in drafts if draft.name == target]
            moving = [draft for draft in drafts if draft not in gone]
            if gone and not replace:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            for draft in moving:
                self._commit(draft)
            self._flexa.mv(source, target, replace=replace)
            for draft in gone:
                self._named(draft, None)
            for draft in moving:
                self._named(draft, target + draft.name[len(source) :])
            for name in [one for one in list(self._hidden) if one.startswith(source + "/")]:
                hidden = self._hidden.pop(name)
                self._hidden[target + name[len(source) :]] = hidden
                hidden.name = target + hidden.name[len(source) :]
            self._moved(source, target)

    def _moved(self, source: str, target: str) -> None:
        def now(name: str) -> str:
            return target + name[len(source) :] if name == source or name.startswith(source + "/") else name

        self._pages.moved(now, target)
        with self._lock:
            self._changes += 1
            self._listed.clear()
            for held in self._handles.values():
                if isinstance(held, Reading):
                    held.name = now(held.name)

    def _hide(self, name: str, hidden: str) -> None:
        """Of an open file, libfuse's way to remove it, and to have something else take its name: it does that next, by
        the same thread. What is written from now on goes nowhere."""
        with self._holding(lambda one: one == name) as drafts:
            stored = all(not draft.new for draft in drafts)
            if stored:
                self._flexa.mv(name, hidden)
            for draft in drafts:
                draft.nameless = True
                self._named(draft, hidden)
            self._hidden[hidden] = Hidden(name, stored)
            self._hid[threading.get_ident()] = hidden
            self._moved(name, hidden)

    def _give_back(self, hidden: Hidden, by: str) -> None:
        """What should have taken its name has not: it has it again, now or when it is closed."""
        hidden.back = False
        with self._holding(lambda one: one == by) as drafts:
            try:
                if hidden.stored:
                    self._flexa.mv(by, hidden.name)
            except Exception as error:
                _log.warning("%r could not be replaced, and is %r now: %s", hidden.name, by, error)
                return
            for draft in drafts:
                draft.nameless = False
                self._named(draft, hidden.name)
            hidden.back = True
            self._moved(by, hidden.name)

    # What FlexA does not keep, and programs are content without.

    @errors
    def chmod(self, path: str, mode: int) -> int:
        return 0

    @errors
    def chown(self, path: str, uid: int, gid: int) -> int:
        return 0

    @errors
    def utimens(self, path: str, times: Any = None) -> int:
        return 0

    def symlink(self, target: str, source: str) -> int:
        raise mfusepy.FuseOSError(errno.EPERM)

    def link(self, target: str, source: str) -> int:
        raise mfusepy.FuseOSError(errno.EPERM)

    def destroy(self, path: str) -> None:
        with self._lock:
            drafts, self._drafts = list(self._drafts.values()), {}
        for draft in drafts:
            if draft.dirty and draft.failed is None:
                _log.warning("%r was never closed, and what was written to it is thrown away", draft.name)
            draft.close()
        self._flexa.close()
