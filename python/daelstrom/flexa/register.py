# SPDX-License-Identifier: Apache-2.0
"""The versions of one file, each decided once by Disk Paxos over the three primaries.

E. Gafni, L. Lamport, "Disk Paxos", Distributed Computing 16 (2003): whoever proposes writes objects of his own and
then reads everybody's; stores do nothing but hold objects and list them. docs/flexa.md ("How a version is decided")
has the argument; the names here are the paper's where it has one.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from .errors import Conflict, Lost, RollBack, Unavailable, Uncertain
from .group import QUORUM, Group
from .keys import FileKeys
from .manifest import CANDIDACY, MOST_MANIFEST, Ballot, Malformed, Name, Signed, check_candidacy, digest_of, make_candidacy
from .seen import Seen
from .store import Job, Store, StoreError

__all__ = ["Register"]

_TRIES = 14
_SHORT = 3  # times that too few stores answer
_MOST_BAD = 8  # false names of one store, before nothing of it counts
_AT_ONCE = 64  # objects that are removed
_UNPROVEN = 1 << 20  # bytes of a manifest for which one store alone gets time beyond its deadline
Found = TypeVar("Found")
Listing = dict[str, tuple[int, "float | None"]]
Lists = dict[Store, Listing]
Holders = dict[Store, int]  # of an object, with the size that each lists; more is not asked for


def names(listing: Listing, kind: str) -> list[Name]:
    """Of those that are not too large to be one."""
    fitting = (text for text, (size, _) in listing.items() if size <= MOST_MANIFEST)
    return [name for name in map(Name.parse, fitting) if name is not None and name.kind == kind]


class _Silent(Exception):
    """Stores that list a manifest, and do not hand it out: nobody may go on as if it were not there."""

    def __init__(self, stores: list[Store]) -> None:
        self.stores = stores


class Register:
    """One call's view of one file: made for it, and forgotten. One thread at a time."""

    def __init__(self, group: Group, keys: FileKeys, seen: Seen) -> None:
        self._group, self.keys, self._seen = group, keys, seen
        self._file = keys.name
        self._known: dict[str, Signed] = {}  # verified
        self._vanished = self._tried = False
        self.missing: set[Store] = set()  # primaries without what was written last
        self._candidacies: set[str] = set()  # verified
        self._lists: Lists = {}  # as they were listed last
        self._wasted: dict[Store, float] = {}  # seconds that went for what a store listed, and has not

    # Reading.
    def current(self) -> Signed:
        """The newest version that is decided. What stands on one store alone is completed first."""
        before, waited = self._seen.newest(self._file), False
        for attempt in range(_TRIES):
            lists = self._lists = self._group.quorum(self._file, self._ls, every=attempt > 0)
            rested = attempt == 0 and len(lists) < len(self._group.primaries)
            if rested and self._is_doubtful(lists):
                continue
            self._vanished = False
            try:
                found = self._without_silent(lists, lambda lists=lists: self._newest(lists, strict=False))  # type: ignore[misc]
                if self._vanished and attempt < 3:  # a newer one took its place meanwhile
                    continue
                if found is None:
                    raise Lost(self._group.why(f"no store has a version of {self._file}"))
                if self._is_decided(found, lists):
                    return self._accept(found, before)
            except (Lost, RollBack, Unavailable):
                if rested:  # whoever was left out may answer by now, and know better
                    continue
                raise
            if self.keys.can_write:
                if not waited:  # whoever is about to is quicker than two who compete
                    waited = True
                    self._wait(attempt)
                    continue
                try:
                    made = self.propose(found.manifest.version, found.body)
                except Conflict:  # there is a newer one by now
                    self._wait(attempt)
                    continue
                if made.ballot.number:  # decided by these very calls, and nothing newer is there
                    return self._accept(made, before)
                continue
            # What whoever proposed it would do next.
            lacking = [store for store in lists if found.name not in lists[store]]
            self._group.each(self._file, lambda store: store.put(self._file, found.name, found.raw), lacking)
            self._wait(attempt)
        raise Uncertain(f"which version of {self._file} is the newest is not decided, and whoever was about to is gone: "
                        "somebody with its write key must read it, or repair it")  # fmt: skip

    def _accept(self, found: Signed, before: tuple[int, bytes] | None = None) -> Signed:
        self._seen.accept(self._file, found.manifest.version, found.digest, before)
        return found

    def _ls(self, store: Store) -> Job:
        return store.ls(self._file)

    def _newest(self, lists: Lists, *, strict: bool = True) -> Signed | None:
        """Of the highest version that is genuine, what was proposed in the highest ballot."""
        bad: dict[Store, int] = dict.fromkeys(lists, 0)
        passed: set[Name] = set()
        while True:
            where: dict[Name, Holders] = {}
            for store, listing in lists.items():
                if bad[store] <= _MOST_BAD:
                    for name in names(listing, "m"):
                        if name not in passed:
                            where.setdefault(name, {})[store] = listing[str(name)][0]
            if not where:
                return None
            top = max(where, key=lambda name: (name.version, name.ballot))
            found = self._signed(top, where[top], strict=strict)
            if found is not None:
                return found
            passed.add(top)
            for store in where[top]:
                bad[store] += 1
                if bad[store] > _MOST_BAD:
                    self._group.note(store, self._file, Malformed("it lists manifests that it has not got"))

    def _signed(self, name: Name, holders: Holders, *, strict: bool = True) -> Signed | None:
        """A manifest; None: nobody has a genuine one of that name. Who proposes believes no listing whose manifest is
        gone by now (`strict`); who reads looks again (`_vanished`)."""
        text = str(name)
        known = self._known.get(text)
        if known is not None:
            return known
        begun: dict[Store, float] = {}
        jobs: dict[Store, Job] = {}
        false: list[bytes] = []

        def ask(store: Store) -> Job:
            size = holders[store]
            begun[store] = time.monotonic()
            jobs[store] = store.get(self._file, text, 0, (size or MOST_MANIFEST) + 1, self._allowed(text, size))
            return jobs[store]

        def check(raw: bytes) -> Signed:
            try:
                return Signed.read(self.keys, name, raw)
            except Malformed:
                false.append(raw)
                raise

        left = [store for store in holders if not self._is_wasting(store)]
        found: Signed | None = None
        with contextlib.suppress(Lost):
            found = self._known[text] = self._group.fetch(self._file, text, left, ask, check, quietly=True)
        silent = [store for store in holders if store not in left]
        for store, job in jobs.items():
            if found is not None and not job.done.is_set():
                continue  # another one was quicker
            error = self._error_of(store, job, false)
            if error is None:
                continue
            self._waste(store, begun[store])
            if isinstance(error, FileNotFoundError):
                self._vanished = True
                if strict:
                    silent.append(store)
                continue
            self._group.note(store, self._file, error)
            if not isinstance(error, Malformed):
                silent.append(store)
        if found is None and silent:
            raise _Silent(silent)
        return found

    @staticmethod
    def _error_of(store: Store, job: Job, false: list[bytes]) -> Exception | None:
        if not job.done.is_set() or job.given_up:
            return StoreError(f"no answer within {job.limit:.1f} s")
        try:
            raw = store.answer(job)
        except Exception as error:
            return error
        return Malformed("a manifest is not what it should be") if any(raw is one for one in false) else None

    # What a store that lies may cost.
    def _allowed(self, text: str, size: int) -> int:
        """Bytes for which a store has time beyond its deadline. What one of three lists alone may be false, however large
        it is said to be, and the two others decide without it."""
        if len(self._lists) < len(self._group.primaries) or self._agree(self._lists, text, size):
            return size
        return min(size, _UNPROVEN)

    @staticmethod
    def _agree(lists: Lists, text: str, size: int) -> bool:
        return sum(text in listing and listing[text][0] == size for listing in lists.values()) >= QUORUM

    def _is_doubtful(self, lists: Lists) -> bool:
        """Whether a third listing is wanted to tell what is large from what is said to be."""
        large = [(str(name), listing[str(name)][0]) for listing in lists.values() for name in names(listing, "m")]
        return any(size > _UNPROVEN and not self._agree(lists, text, size) for text, size in large)

    def _waste(self, store: Store, begun: float) -> None:
        self._wasted[store] = self._wasted.get(store, 0.0) + time.monotonic() - begun

    def _is_wasting(self, store: Store) -> bool:
        """One that has cost a deadline is not asked again: it did not answer."""
        return self._wasted.get(store, 0.0) >= store.deadline

    def _without_silent(self, lists: Lists, call: Callable[[], Found]) -> Found:
        """What a store lists and does not hand out makes it one of those that did not answer."""
        while True:
            try:
                return call()
            except _Silent as silent:
                for store in silent.stores:
                    lists.pop(store, None)
                if len(lists) < QUORUM:
                    raise Unavailable(self._group.why(f"{len(lists)} of three primaries answer")) from None

    def _is_decided(self, found: Signed, lists: Lists) -> bool:
        """Whether at two primaries it stood there when no higher candidacy did."""
        if found.manifest.version == 1 and found.ballot.number == 0:
            return True  # whoever made the file alone can have proposed anything, and did so once
        holders = [store for store in lists if found.name in lists[store]]
        if len(holders) < QUORUM:
            return False
        # Once more: a listing shows its end later than its beginning, and what it shows now came after.
        again = {s: listing for s, listing in self._group.each(self._file, self._ls, holders).items() if found.name in listing}
        return len(self._without_rival(again, found.manifest.version, found.ballot)[0]) >= QUORUM

    def _without_rival(self, lists: Lists, version: int, ballot: Ballot) -> tuple[list[Store], Ballot | None]:
        """The stores that show no higher ballot; and the highest one that others show."""
        good, highest = [], None
        for store, listing in lists.items():
            try:
                rival = self._rival(store, listing, version, ballot)
            except _Silent:
                continue
            if rival is None:
                good.append(store)
            elif highest is None or rival > highest:
                highest = rival
        return good, highest

    def _rival(self, store: Store, listing: Listing, version: int, ballot: Ballot) -> Ballot | None:
        """The highest ballot above ours that anybody has begun for this version, as one store shows it."""
        false = 0
        for name in sorted(names(listing, "m") + names(listing, "c"), key=lambda name: name.ballot, reverse=True):  # type: ignore[arg-type,return-value]
            assert name.ballot is not None
            if name.version != version:
                continue
            if name.ballot <= ballot:
                break
            if name.kind == "m":
                genuine = self._signed(name, {store: listing[str(name)][0]}) is not None
            else:
                genuine = self._candidate(name, store)
            if genuine:
                return name.ballot
            false += 1
            if false > _MOST_BAD:
                raise _Silent([store])
        return None

    def _candidate(self, name: Name, store: Store) -> bool:
        """Whether a candidacy is genuine."""
        text = str(name)
        if text not in self._candidacies:
            if self._is_wasting(store):
                raise _Silent([store])
            begun = time.monotonic()
            try:
                raw = store.wait(store.get(self._file, text, 0, CANDIDACY + 1))
            except Exception as error:
                # Gone, too, is no answer: whoever it was may have given up, or been decided and tidied away since.
                if not isinstance(error, FileNotFoundError):
                    self._group.note(store, self._file, error)
                raise _Silent([store]) from None
            if not check_candidacy(self.keys, name, raw):
                self._waste(store, begun)
                self._group.note(store, self._file, Malformed("a candidacy's signature does not verify"))
                return False
            self._candidacies.add(text)
        return True

    # Writing.
    def create(self, body: bytes) -> Signed:
        """The first version of a file whose number nobody else can know yet: there is nobody to agree with."""
        made = Signed.make(self.keys, Ballot(0, os.urandom(16)), body)
        done = self._group.each(self._file, lambda store: store.put(self._file, made.name, made.raw))
        if len(done) < QUORUM:
            raise Unavailable(self._group.why(f"{len(done)} of three primaries took a new file"))
        self.missing = set(self._group.primaries) - set(done)
        return self._accept(made)

    def write(self, body: bytes, version: int) -> Signed:
        """Has `body` decided as this version, or raises: `Conflict` (it is not, and will not be), `Unavailable` (nor
        that), `Uncertain`."""
        made = self.propose(version, body)
        if made.body != body:
            raise Conflict(f"somebody else has written version {version} of {self._file} first")
        return self._accept(made)

    def propose(self, version: int, body: bytes) -> Signed:
        """Has a version decided, as `body` or as what somebody else proposed before."""
        self._tried = False
        try:
            return self._propose(version, body)
        except (Unavailable, ValueError) as error:  # ValueError: it is closed meanwhile
            if self._tried:
                raise Uncertain(f"whether version {version} of {self._file} is decided is not known: {error}") from None
            raise

    def _propose(self, version: int, body: bytes) -> Signed:
        proposer, number, short = os.urandom(16), 0, 0
        for attempt in range(_TRIES):
            number += 1
            ballot = Ballot(number, proposer)
            name = str(Name("c", version, ballot))
            # Phase 1: say so, then look at what everybody else has said.
            lists = self._put_and_look(name, make_candidacy(self.keys, version, ballot))
            newer, accepted = self._look(lists, version, ballot)
            good, rival = self._without_rival(lists, version, ballot)
            if newer is None and len(good) >= QUORUM:
                # Phase 2: what may have been decided goes before what is wished.
                made = Signed.make(self.keys, ballot, body if accepted is None else accepted.body)
                self._tried = self._tried or made.body == body
                lists = self._put_and_look(made.name, made.raw)
                newer, _ = self._look(lists, version, ballot)
                good, rival = self._without_rival(lists, version, ballot)
                if newer is None and len(good) >= QUORUM:
                    self.missing = set(self._group.primaries) - set(lists)
                    return made
            else:
                self._take_back(name, lists)
            if newer is not None:
                return self._overtaken(newer, version, body)
            if rival is not None:
                number = max(number, rival.number)
            else:
                short += 1
                if short == _SHORT:
                    break
            self._wait(attempt)
        raise Unavailable(self._group.why(f"version {version} of {self._file} could not be decided; nothing was written"))

    def _put_and_look(self, name: str, data: bytes) -> Lists:
        """The listings of those that show what they were given."""
        lists = self._lists = self._group.each(self._file, lambda store: store.put_ls(self._file, name, data))
        for store in [store for store, listing in lists.items() if name not in listing]:
            self._group.note(store, self._file, Malformed("it took an object, and does not show it"))
            del lists[store]
        return lists

    def _look(self, lists: Lists, version: int, ballot: Ballot) -> tuple[Signed | None, Signed | None]:
        """A newer version; what was proposed for this one in the highest ballot below ours. A store whose words cannot
        be read is none of those that answered: it is taken out of `lists`."""
        while True:
            try:
                return self._look_once(lists, version, ballot)
            except _Silent as silent:
                for store in silent.stores:
                    lists.pop(store, None)

    def _look_once(self, lists: Lists, version: int, ballot: Ballot) -> tuple[Signed | None, Signed | None]:
        newest = self._newest(lists)
        if newest is not None and newest.manifest.version > version:
            return newest, None
        where: dict[Name, Holders] = {}
        false: dict[Store, int] = {}
        for store, listing in lists.items():
            for name in names(listing, "m"):
                if name.version == version and name.ballot is not None and name.ballot < ballot:
                    where.setdefault(name, {})[store] = listing[str(name)][0]
        for name in sorted(where, key=lambda name: name.ballot, reverse=True):  # type: ignore[arg-type,return-value]
            accepted = self._signed(name, where[name])
            if accepted is not None:
                return None, accepted
            for store in where[name]:
                false[store] = false.get(store, 0) + 1
                if false[store] > _MOST_BAD:
                    raise _Silent([store])
        return None, None

    def _overtaken(self, newer: Signed, version: int, body: bytes) -> Signed:
        """A later version tells by its history what this one was decided to be."""
        digest = self._digest(body)
        behind = newer.manifest.version - 1 - version
        history = newer.manifest.history
        if behind < len(history):
            if history[behind] == digest:
                return Signed.make(self.keys, Ballot(0, bytes(16)), body)  # decided, and superseded
            raise Conflict(f"somebody else has written version {version} of {self._file} first")
        if self._tried:
            raise Uncertain(f"whether version {version} of {self._file} was ours is not known: there are many since")
        raise Conflict(f"somebody else has written version {version} of {self._file}, and more")

    def _digest(self, body: bytes) -> bytes:
        return digest_of(self.keys.verify, body)

    def _take_back(self, name: str, lists: Lists) -> None:
        self._group.each(self._file, lambda store: store.rm(self._file, name), list(lists))

    def _wait(self, attempt: int) -> None:
        time.sleep(random.uniform(0.0, min(1.0, 0.01 * 2**attempt)))

    # What is over.
    def tidy(self, decided: Signed, stores: Iterable[Store] | None = None) -> int:
        """Removes what this version has made useless, from stores that have its manifest: whoever is still busy with
        an earlier one sees it there. Manifests of the version before stay, for listings that began before it came."""
        lists = self._group.each(self._file, self._ls, self._group.stores if stores is None else stores)
        removed = 0
        for store, listing in lists.items():
            if decided.name not in listing:
                continue
            useless = [str(name) for name in map(Name.parse, listing) if name is not None and is_over(name, decided)]
            for at in range(0, len(useless), _AT_ONCE):
                for job in [store.rm(self._file, name) for name in useless[at : at + _AT_ONCE]]:
                    try:
                        store.wait(job)
                        removed += 1
                    except Exception as error:
                        self._group.note(store, self._file, error)
        return removed


def is_over(name: Name, decided: Signed) -> bool:
    manifest = decided.manifest
    if name.kind == "m":
        return name.version < manifest.version - 1
    if name.kind == "c":
        return name.version < manifest.version
    return name.version <= manifest.version and (name.version, name.writer) != (manifest.written, manifest.writer)
