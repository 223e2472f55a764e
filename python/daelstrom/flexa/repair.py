# SPDX-License-Identifier: Apache-2.0
"""What the stores should hold, and do not: found, and put there again from the others. Piece by piece, in constant
memory; what is there already is not put again, so that a repair that was interrupted goes on when it is begun anew."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import re
import time
from collections.abc import Callable
from typing import Any

from .client import Client
from .errors import Conflict, Fault, FlexaError, Lost
from .folders import Editor, Link
from .keys import FileKeys
from .manifest import Name, Signed
from .moves import kept, unmark
from .portions import Ciphertext, homes
from .store import Store, StoreError

__all__ = ["Report", "check_file", "check_tree"]

_TRIES = 5  # versions of one file that are looked at
_VERIFY = re.compile(r"[0-9a-f]{96}\Z")
Listing = dict[str, Any]


@dataclasses.dataclass
class Report:
    """What was looked at and found. `faults` names the store of each; `restored` pieces and manifests were put where
    they were missing, `removed` objects were of no use to anybody."""

    files: int = 0
    bytes: int = 0
    restored: int = 0
    removed: int = 0
    faults: list[Fault] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was wrong, or all of it is mended."""
        return not self.lost and not any(fault for fault in self.faults if not fault.what.endswith(_MENDED))


_MENDED = "(mended)"


def _portions(client: Client, store: Store) -> tuple[int, ...]:
    primaries = client.group.primaries
    return tuple(k for k in range(3) if store in homes(client.group, k)) if store in primaries else (0, 1, 2)


def check_file(
    client: Client, keys: FileKeys, name: str, report: Report, *, mend: bool, deep: bool,
    progress: Callable[[int], Any] | None = None,
) -> Signed:  # fmt: skip
    """One file on all stores. `deep`: what is there is read and held against the manifest; else only its size is."""
    for _ in range(_TRIES):
        found = Report()
        signed = _check_version(client, keys, name, found, mend=mend, deep=deep, progress=progress)
        # What is wrong with a version that somebody has replaced meanwhile is nobody's business.
        if not found.faults or client.current(keys).digest == signed.digest:
            break
    else:
        found.lost, found.faults = [], [Fault("", name, f"it was replaced {_TRIES} times while it was looked at")]
    report.files += 1
    report.bytes += signed.manifest.size
    report.restored += found.restored
    report.removed += found.removed
    report.faults += found.faults
    report.lost += found.lost
    return signed


def _check_version(
    client: Client, keys: FileKeys, name: str, report: Report, *, mend: bool, deep: bool,
    progress: Callable[[int], Any] | None,
) -> Signed:  # fmt: skip
    signed = client.current(keys)
    manifest = signed.manifest
    stores = client.group.stores
    lists = client.group.each(keys.name, lambda store: store.ls(keys.name), stores)
    for store in stores:
        if store not in lists:
            report.faults.append(Fault(store.url, name, store.said or "no answer"))
    source = Ciphertext(client.group, keys, manifest)
    for store, listing in lists.items():
        mine = _portions(client, store)
        whole = True
        for portion, piece in manifest.pieces() if manifest.inline is None else ():
            if portion in mine:
                whole &= _piece(client, source, keys, name, store, listing, portion, piece, report, mend=mend, deep=deep)
                if progress is not None:
                    progress(sum(map(manifest.block_size, manifest.piece(portion, piece))))
        if whole:
            _manifest(keys, name, signed, store, listing, report, mend=mend)
    if mend:
        report.removed += client.register(keys).tidy(signed)
    return signed


def _piece(
    client: Client, source: Ciphertext, keys: FileKeys, file: str, store: Store, listing: Listing, portion: int,
    piece: int, report: Report, *, mend: bool, deep: bool,
) -> bool:  # fmt: skip
    manifest = source.manifest
    blocks = manifest.piece(portion, piece)
    name, size = manifest.piece_name(portion, piece), sum(map(manifest.block_size, blocks))
    wrong = ""
    if name not in listing:
        wrong = f"{name} is missing"
    elif listing[name][0] != size:
        wrong = f"{name} has another size"
    elif deep:
        try:
            source.check(blocks, store.wait(store.get(keys.name, name, 0, size, size)))
        except Exception as error:
            wrong = f"{name}: {error}"
    if not wrong:
        return True
    if not mend:
        report.faults.append(Fault(store.url, file, wrong))
        return False
    others = [one for one in homes(client.group, portion) + client.group.secondaries if one is not store]
    try:
        _put(keys, store, name, _whole(source, blocks, others, store))
    except Lost:
        if file not in report.lost:
            report.lost.append(file)
        report.faults.append(Fault(store.url, file, f"{wrong}, and nobody else has it"))
        return False
    except Exception as error:
        report.faults.append(Fault(store.url, file, f"{wrong}, and could not be put there: {error}"))
        return False
    report.restored += 1
    report.faults.append(Fault(store.url, file, f"{wrong} {_MENDED}"))
    return True


def _whole(source: Ciphertext, blocks: list[int], others: list[Store], store: Store) -> bytes:
    """A piece, of the others; or of what each has of it, the store itself too."""
    try:
        found = source.run(blocks, others)
    except Lost:
        if len(blocks) == 1:
            raise
        found = {}
        for block in blocks:
            found.update(source.run([block], [*others, store]))
    return b"".join(found[i] for i in blocks)


def _put(keys: FileKeys, store: Store, name: str, data: bytes) -> None:
    """What a store takes and does not show is not mended."""
    listing = store.wait(store.put_ls(keys.name, name, data))
    if listing.get(name, (-1, None))[0] != len(data):
        raise StoreError("it took it, and does not show it")


def _manifest(
    keys: FileKeys, file: str, signed: Signed, store: Store, listing: Listing, report: Report, *, mend: bool
) -> None:
    wrong = "" if signed.name in listing else f"{signed.name} is missing"
    if not wrong:
        try:
            if store.wait(store.get(keys.name, signed.name, 0, len(signed.raw) + 1, len(signed.raw))) != signed.raw:
                wrong = f"{signed.name} is not what it was"
        except Exception as error:
            wrong = f"{signed.name}: {error}"
    if not wrong:
        return
    if mend:
        try:
            _put(keys, store, signed.name, signed.raw)
        except Exception as error:
            report.faults.append(Fault(store.url, file, f"{wrong}, and could not be put there: {error}"))
            return
        report.restored += 1
        wrong += f" {_MENDED}"
    report.faults.append(Fault(store.url, file, wrong))


Look = Callable[[str, FileKeys, str, Callable[[], bool]], "Signed | None"]
Wrong = Callable[[str, Exception], None]


@dataclasses.dataclass(frozen=True)
class _Entry:
    folder: FileKeys
    time: float  # when the folder was changed last
    leaf: str
    link: Link
    stands: bool  # else it is kept by what has replaced it


def _walk(
    editor: Editor, keys: FileKeys, kind: str, name: str, look: Look, wrong: Wrong,
    is_named: Callable[[], bool] = lambda: True, entries: list[_Entry] | None = None,
) -> None:  # fmt: skip
    """A file, or a folder and all that is below it: of the version that `look` has seen, and of no other. `look` is
    given what tells whether a name leads there now; `wrong` is told what cannot be gone into."""
    signed = look(name, keys, kind, is_named)
    if signed is None or kind != "directory" or not keys.can_read:
        return
    try:
        links = editor.of(keys, signed).links
    except Exception as error:
        wrong(name, error)
        return
    for leaf, first in sorted(links.items()):
        path = f"{name}/{leaf}".lstrip("/")
        link: Link | None = first
        while link is not None:
            if entries is not None:
                entries.append(_Entry(keys, signed.manifest.time, leaf, link, link is first))

            def named(leaf: str = leaf, link: Link = link) -> bool:
                if link.leaving or not is_named():
                    return False  # it has another name by now, or had
                folder = editor.read(keys)
                there = folder.links.get(leaf)
                return not folder.removed and there is not None and there.verify == link.verify and not there.leaving

            try:
                below = link.keys(keys)
            except Exception as error:
                wrong(path, error)
            else:
                _walk(editor, below, link.kind, path, look, wrong, named, entries)
            link = kept(link)  # it is there again, if the move that has replaced it is refused


def check_tree(
    client: Client, editor: Editor, keys: FileKeys, kind: str, name: str, *, mend: bool, deep: bool,
    grace: float | None = None, progress: Callable[[int], Any] | None = None,
) -> Report:  # fmt: skip
    """`grace`: what nobody refers to is removed once it is so many seconds old; None: it is left."""
    report = Report()
    if mend:
        for store in client.group.stores:
            try:  # one that lost everything is one of ours again
                store.wait(store.begin(again=True))
            except Exception as error:
                report.faults.append(Fault(store.url, "", f"{error}"))
    versions: dict[str, bytes] = {}
    failed: list[str] = []

    def wrong(path: str, error: Exception) -> None:  # of this one; the others are looked at all the same
        report.faults.append(Fault("", path, f"{type(error).__name__}: {error}"))
        failed.append(path)

    def look(path: str, one: FileKeys, what: str, is_named: Callable[[], bool]) -> Signed | None:
        try:
            signed = check_file(client, one, path, report, mend=mend, deep=deep, progress=progress)
            if mend and grace is not None and one.can_write:
                signed = _end_abandoned(client, one, path, signed, grace, report)
        except Lost as error:
            if _is_true(is_named):  # else it was removed meanwhile, or by the name that it has since
                report.lost.append(path)
                report.faults.append(Fault("", path, str(error)))
            elif what == "directory":
                failed.append(path)  # what is below it is not known
            return None
        except Exception as error:
            wrong(path, error)
            return None
        if what == "directory":
            versions[one.name] = signed.digest
        return signed

    try:
        _walk(editor, keys, kind, name, look, wrong)
        if mend and grace is not None and not report.lost and not failed:
            _collect(client, editor, keys, kind, name, versions, grace, report)
    except Exception as error:
        report.faults.append(Fault("", name, f"{type(error).__name__}: {error}"))
    return report


def _is_true(is_named: Callable[[], bool]) -> bool:
    try:
        return is_named()
    except Lost:  # its folder is gone
        return False
    except FlexaError:  # for all that is known
        return True


def _end_abandoned(client: Client, keys: FileKeys, file: str, signed: Signed, grace: float, report: Report) -> Signed:
    """Portions of a version that nobody has finished: whoever was writing it may be alive, so it is first made
    impossible, by a version that is this one again."""
    manifest = signed.manifest
    lists = client.group.each(keys.name, lambda store: store.ls(keys.name), client.group.stores)
    later = [times[1] for listing in lists.values() for text, times in listing.items()
             if (name := Name.parse(text)) is not None and name.version > manifest.version]  # fmt: skip
    aside = [(store, text) for store, listing in lists.items() for text, (_, at) in listing.items()
             if text.startswith("t-") and _is_old(at, grace)]  # fmt: skip
    for store, text in aside:
        try:
            store.wait(store.rm(keys.name, text))
            report.removed += 1
        except Exception as error:
            report.faults.append(Fault(store.url, file, f"{text} could not be removed: {error}"))
    if not later or not all(_is_old(at, grace) for at in later):
        return signed
    again = dataclasses.replace(manifest, version=manifest.version + 1, history=(signed.digest, *manifest.history))
    register = client.register(keys)
    try:
        made = register.write(again.encode(), again.version)
    except Conflict:  # he was alive, and has finished it
        return client.current(keys)
    for store in client.group.primaries:
        if store in register.missing:
            report.faults.append(Fault(store.url, file, f"{made.name} could not be put there"))
    for store in client.group.secondaries:
        try:
            client.replicate(keys, made, store)
        except Exception as error:
            report.faults.append(Fault(store.url, file, f"{made.name} could not be put there: {error}"))
    report.removed += client.register(keys).tidy(made)
    return made


def _is_old(at: float | None, grace: float) -> bool:
    return grace <= 0 or (at is not None and time.time() - at > grace)


def _collect(
    client: Client, editor: Editor, keys: FileKeys, kind: str, name: str, versions: dict[str, bytes], grace: float,
    report: Report,
) -> None:  # fmt: skip
    """Files that no folder names. Between two walks that find every folder unchanged there was a moment when all of
    them stood as they were seen, so that nothing was on its way from one to another."""
    named: set[str] = set()
    same = True

    def look(path: str, one: FileKeys, what: str, is_named: Callable[[], bool]) -> Signed | None:
        nonlocal same
        named.add(one.name)
        if what != "directory" or not same or one.name not in versions:  # it was gone already, and its name is leaving
            return None
        signed = client.current(one)
        same = signed.digest == versions.get(one.name)
        return signed if same else None

    def wrong(path: str, error: Exception) -> None:
        raise error  # what is below it is not known

    entries: list[_Entry] = []
    _walk(editor, keys, kind, name, look, wrong, entries=entries)
    if not same:
        return
    for store in client.group.stores:
        try:
            for file in store.wait(store.ls("")):
                if _VERIFY.match(file) and file not in named:
                    inside = store.wait(store.ls(file))
                    if all(_is_old(at, grace) for _, at in inside.values()):
                        store.wait(store.rm_folder(file))
                        report.removed += len(inside) or 1
        except Exception as error:
            report.faults.append(Fault(store.url, "", f"what nobody names could not be removed: {error}"))
    _unmark(client, editor, entries, grace)


def _unmark(client: Client, editor: Editor, entries: list[_Entry], grace: float) -> None:
    """What a move that was interrupted has left: a mark on its file's only name, which would keep the file from going
    with it. Where the file is gone already the mark says so."""
    names = collections.Counter(one.link.verify for one in entries)
    for one in entries:
        if one.stands and one.link.leaving and names[one.link.verify] == 1 and _is_old(one.time, grace):
            with contextlib.suppress(Conflict, Lost, FileNotFoundError):  # somebody is at it
                client.current(one.link.keys(one.folder))
                editor.edit(one.folder, lambda links, one=one: unmark(links, one.leaf, one.link))  # type: ignore[misc]
