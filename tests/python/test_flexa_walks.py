# SPDX-License-Identifier: Apache-2.0
"""FlexA against models. Live writers and readers of one file while stores fail: what was acknowledged stays, and what
was refused never comes. Names, in any order of operations and faults.

DAELSTROM_WALK_SECONDS and DAELSTROM_WALK_SEED as for other walks."""

from __future__ import annotations

import os
import random
import threading
import time

import pytest

pytest.importorskip("fsspec")
from flexa_faults import Stores
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from walks import walks

from daelstrom.flexa import Conflict, FileKeys, Lost, Unavailable, Uncertain
from daelstrom.flexa.manifest import digest_of
from daelstrom.flexa.register import Register
from daelstrom.flexa.repair import Report, check_file

LONG = "DAELSTROM_WALK_SECONDS" in os.environ
HONEST = ("down", "hang", "full", "slow", "forgets", "flaky", "silent")
ANY = (*HONEST, "corrupt", "cut", "drops", "stale", "invents", "lose")


class History:
    """All that anybody was told about one file."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.decided: dict[int, bytes] = {}
        self.plain: dict[bytes, bytes] = {}  # of an attempt, by its digest
        self.refused: set[bytes] = set()
        self.acknowledged = 0
        self.uncertain = self.conflicts = self.unavailable = self.reads = 0

    def see(self, version: int, digest: bytes) -> None:
        with self.lock:
            assert self.decided.setdefault(version, digest) == digest, f"version {version} is two"
            assert digest not in self.refused, f"version {version} was refused"

    def see_all(self, signed) -> None:
        self.see(signed.manifest.version, signed.digest)
        for behind, digest in enumerate(signed.manifest.history):
            self.see(signed.manifest.version - 1 - behind, digest)


class Recorded(Register):
    history: History

    def write(self, body: bytes, version: int):
        digest = digest_of(self.keys.verify, body)
        with self.history.lock:
            self.history.plain[digest] = self.plain
        try:
            made = super().write(body, version)
        except (Conflict, Unavailable):
            with self.history.lock:
                self.history.refused.add(digest)
                assert digest not in self.history.decided.values(), "refused, and decided"
            raise
        assert made.digest == digest
        return made


class Walk:
    def __init__(self, folder, random_: random.Random) -> None:
        self.random = random_
        self.stores = Stores(folder, secondaries=random_.choice([0, 0, 1]))
        self.history = History()
        self.wild = random_.random() < 0.5
        self.writers = random_.choice([1, 2, 2, 3])
        self.number = FileKeys.new_number()
        self.errors: list[BaseException] = []
        self.turn, self.busy, self.switching = threading.Condition(), 0, False
        self.stop = threading.Event()
        first = self.client()
        signed = first.write(FileKeys.of_number(self.number), lambda to: to.write(memoryview(b"first")), None)
        self.history.plain[signed.digest] = b"first"
        self.history.see_all(signed)
        self.history.acknowledged = 1

    def client(self, deadline: float = 0.15):
        flexa = self.stores.open(deadline=deadline, hedge=0.03)
        history = self.history

        def register(keys, client=flexa._client):
            made = Recorded(client.group, keys, client.seen)
            made.history, made.plain = history, getattr(keys, "plain", b"")
            return made

        flexa._client.register = register
        return flexa._client

    def write(self, client, random_: random.Random) -> None:
        keys = FileKeys.of_number(self.number)
        size = random_.choice([10, 10, 100, 40_000, 1_300_000])
        keys.plain = random_.randbytes(16) * (size // 16 + 1)
        base = client.current(keys)
        self.history.see_all(base)
        made = client.write(keys, lambda to: to.write(memoryview(keys.plain)), base)
        self.history.see_all(made)
        with self.history.lock:
            self.history.acknowledged = max(self.history.acknowledged, made.manifest.version)

    def read(self, client, keys) -> None:
        before = self.history.acknowledged
        signed = client.current(keys)
        self.history.see_all(signed)
        assert signed.manifest.version >= before, f"version {before} was acknowledged, and {signed.manifest.version} is read"
        try:
            opened = client.opened(keys, signed)
            plain = opened.read(0, opened.size)
        except OSError as error:
            if error.errno != 116:  # ESTALE
                raise
            return
        assert plain == self.history.plain[signed.digest], "a wrong byte"
        self.history.reads += 1

    def live(self, seed: int, writes: bool) -> None:
        random_ = random.Random(seed)
        try:
            client = self.client()
            keys = FileKeys.of_number(self.number)
            reader = FileKeys(keys.verify, keys.public, keys.read_key())
            while not self.stop.is_set():
                with self.turn:
                    self.turn.wait_for(lambda: not self.switching)
                    self.busy += 1
                try:
                    if writes and random_.random() < 0.7:
                        self.write(client, random_)
                    else:
                        self.read(client, keys if writes else reader)
                except Conflict:
                    self.history.conflicts += 1
                except Uncertain:
                    self.history.uncertain += 1
                except Unavailable:
                    self.history.unavailable += 1
                    assert self.wild or self.writers > 1 or self.starved(client), "one store fails, and nobody can write"
                except Lost:
                    assert self.wild or self.starved(client), "one store fails, and a file is lost"
                finally:
                    with self.turn:
                        self.busy -= 1
                        self.turn.notify_all()
                time.sleep(random_.uniform(0, 0.01))
        except BaseException as error:
            self.errors.append(error)
            self.stop.set()

    def starved(self, client) -> bool:
        """Whether this machine was too busy for a store that does not fail to answer in time."""
        hanging = [host.name for host in self.stores.hosts if host.fault == "hang"]
        return any("no answer" in fault.what and fault.store[9:].split("/")[0] not in hanging for fault in client.group.faults)

    def run(self, steps: int) -> None:
        threads = [threading.Thread(target=self.live, args=(self.random.random(), number < self.writers), daemon=True)
                   for number in range(self.writers + 1)]  # fmt: skip
        for thread in threads:
            thread.start()
        for _ in range(steps):
            self.fail()
            self.stop.wait(self.random.uniform(0.05, 0.3))
            if self.stop.is_set():
                break
        self.stores.heal()
        self.stop.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "somebody hangs"
        if self.errors:
            raise self.errors[0]
        time.sleep(0.5)  # stores that were left out are asked again
        self.read(self.client(5), FileKeys.of_number(self.number))
        report = self.mend()
        assert report.ok, report
        self.stores.close()

    def mend(self) -> Report:
        client, report = self.client(5), Report()
        for store in client.group.stores:
            store.wait(store.begin(again=True))
        check_file(client, FileKeys.of_number(self.number), "", report, mend=True, deep=True)
        return report

    def fail(self) -> None:
        hosts = self.stores.hosts
        if self.wild:
            host = self.random.choice(hosts)
            host.heal()
            if self.random.random() < 0.6:
                host.fail(self.random.choice(HONEST))
            return
        # One at a time, and what it has missed, by writes that were under way too, is made good before the next one.
        with self.turn:
            self.switching = True
            assert self.turn.wait_for(lambda: self.busy == 0, 60), "somebody hangs"
        try:
            self.stores.heal()
            for client in self.stores.open_ones:
                client.flush()
            time.sleep(0.5)
            report = self.mend()
            assert report.ok, report
            fault, host = self.random.choice(ANY), self.random.choice(hosts)
            if fault == "lose":
                host.lose()
            else:
                host.fail(fault)
        finally:
            with self.turn:
                self.switching = False
                self.turn.notify_all()


def test_live_writers_and_failing_stores(tmp_path):
    told = {"reads": 0, "acknowledged": 0, "conflicts": 0, "uncertain": 0, "unavailable": 0}
    for random_ in walks("flexa", 5):
        walk = Walk(tmp_path, random_)
        walk.run(40 if LONG else 7)
        for name in told:
            told[name] += getattr(walk.history, name)
    print(told)
    assert told["reads"] and told["acknowledged"] > 10


NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "f"])
FOLDERS = st.sampled_from(["d", "d/e", "g"])
SIZES = st.sampled_from([0, 1, 100, 32_700, 40_000, 1_048_576 - 56, 2_500_000])


class Names(RuleBasedStateMachine):
    """One store at a time fails, and is mended before another does: then every call does what it would do if none had
    failed. Two clients take turns."""

    folder: str = ""

    @initialize()
    def begin(self) -> None:
        self.stores = Stores(self.folder, secondaries=1)
        self.open()
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = set()
        self.turn = 0

    def open(self) -> None:
        self.clients = [self.stores.open(hedge=0.03, seen=f"{self.stores.path}.seen") for _ in range(2)]

    @property
    def fx(self):
        self.turn += 1
        return self.clients[self.turn % 2]

    def parent_there(self, name: str) -> bool:
        parent = name.rpartition("/")[0]
        return not parent or parent in self.folders

    @rule(name=NAMES, size=SIZES, byte=st.integers(0, 255), exclusive=st.booleans())
    def put(self, name: str, size: int, byte: int, exclusive: bool) -> None:
        data = bytes([byte]) * size
        parents = [name[:at] for at, letter in enumerate(name) if letter == "/"]
        if name in self.folders or any(parent in self.files for parent in parents):
            with pytest.raises((IsADirectoryError, NotADirectoryError, FileExistsError)):
                self.fx.put(name, data)
            return
        if exclusive and name in self.files:
            with pytest.raises(FileExistsError):
                self.fx.put(name, data, exclusive=True)
            return
        self.fx.put(name, data, exclusive=exclusive)
        self.files[name] = data
        self.folders.update(parents)

    @rule(name=NAMES, start=st.integers(0, 3_000_000), size=st.integers(0, 2_000_000))
    def cat(self, name: str, start: int, size: int) -> None:
        if name in self.files:
            assert self.fx.cat(name, start, start + size) == self.files[name][start : start + size]
        else:
            with pytest.raises((FileNotFoundError, IsADirectoryError, NotADirectoryError)):
                self.fx.cat(name)

    @rule(name=FOLDERS)
    def mkdir(self, name: str) -> None:
        if self.parent_there(name) and name not in self.folders:
            self.fx.mkdir(name)
            self.folders.add(name)
        else:
            with pytest.raises((FileExistsError, FileNotFoundError)):
                self.fx.mkdir(name)

    @rule(name=st.one_of(NAMES, FOLDERS), recursive=st.booleans())
    def rm(self, name: str, recursive: bool) -> None:
        below = [one for one in (*self.files, *self.folders) if one.startswith(name + "/")]
        if name not in self.files and name not in self.folders:
            with pytest.raises((FileNotFoundError, NotADirectoryError)):
                self.fx.rm(name, recursive)
        elif below and not recursive:
            with pytest.raises(OSError):
                self.fx.rm(name)
        else:
            self.fx.rm(name, recursive)
            for one in (name, *below):
                self.files.pop(one, None)
                self.folders.discard(one)

    @rule(old=st.one_of(NAMES, FOLDERS), new=st.one_of(NAMES, FOLDERS), replace=st.booleans())
    def mv(self, old: str, new: str, replace: bool) -> None:
        there = (*self.files, *self.folders)
        blocked = new in there and not (replace and new in self.files and old in self.files)
        if old not in there or not self.parent_there(new) or (old != new and (blocked or (new + "/").startswith(old + "/"))):
            with pytest.raises((OSError,)):
                self.fx.mv(old, new, replace)
            return
        self.fx.mv(old, new, replace)
        for one in [one for one in there if one == old or one.startswith(old + "/")]:
            to = new + one[len(old) :]
            if one in self.files:
                self.files[to] = self.files.pop(one)
            else:
                self.folders.discard(one)
                self.folders.add(to)

    @rule(number=st.integers(0, 3), fault=st.sampled_from(ANY))
    def fail(self, number: int, fault: str) -> None:
        self.mend()
        host = self.stores.hosts[number]
        if fault == "lose":
            host.lose()
        else:
            for client in self.clients:
                client._client.group.stores[number].deadline = 1.5
            host.fail(fault)

    @rule()
    def mend(self) -> None:
        self.stores.heal()
        for client in self.clients:
            client.flush()
        self.open()  # the others leave out for a while what has hung
        report = self.stores.open().repair(deep=True, grace=0)
        assert report.ok, report
        again = self.stores.open().verify()
        assert again.ok and not again.faults, again
        folders = {"", *self.folders}
        assert again.files == len(self.files) + len(folders)
        for host in self.stores.hosts:  # and nothing else is left on any
            assert len({name.split("/")[2] for name in host.objects if name.count("/") == 3}) == again.files, host.name

    @invariant()
    def listings(self) -> None:
        if not hasattr(self, "clients"):
            return
        fx = self.fx
        found: dict[str, str] = {}
        left = [""]
        while left:
            for entry in fx.ls(left.pop()):
                found[entry.name] = entry.type
                if entry.type == "directory":
                    left.append(entry.name)
                else:
                    assert entry.size == len(self.files[entry.name])
        assert found == {**dict.fromkeys(self.files, "file"), **dict.fromkeys(self.folders, "directory")}

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            self.stores.close()


def test_names_and_failing_stores(tmp_path):
    Names.folder = str(tmp_path)
    seconds = float(os.environ.get("DAELSTROM_WALK_SECONDS", 0))
    begun = time.monotonic()
    while True:
        run_state_machine_as_test(
            Names, settings=settings(max_examples=60 if LONG else 8, stateful_step_count=40 if LONG else 14, deadline=None,
                                     database=None, print_blob=False, derandomize=not LONG)
        )  # fmt: skip
        if time.monotonic() - begun >= seconds:
            break
