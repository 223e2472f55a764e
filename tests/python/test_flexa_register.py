# SPDX-License-Identifier: Apache-2.0
"""How the newest version is found where stores lie, rest or are slow, what that may cost, and what comes after a
version: replicas, and what is tidied away."""

from __future__ import annotations

import dataclasses
import errno
import os
import struct
import threading
import time

import pytest

pytest.importorskip("fsspec")
from flexa_faults import of_file, without

from daelstrom.flexa import FileKeys, RollBack
from daelstrom.flexa.manifest import Ballot, Malformed, Manifest, Name, Signed
from daelstrom.flexa.portions import homes
from daelstrom.flexa.register import Register

BIG = os.urandom(3_300_000)
MIB = 1 << 20


def rest(files, host):
    """One call that a store refuses: it is left out for some seconds, though it answers again at once."""
    host.fail("down")
    files.ls()
    host.heal()


# Who was left out.
def test_who_rests_is_asked_before_a_file_is_lost(stores):
    files = stores.open()
    files.put("f", b"data")
    keys = files._at("f").keys
    without(stores.hosts[0], keys)  # two have it: one will rest, and one loses it
    rest(files, stores.hosts[1])
    without(stores.hosts[2], keys)
    assert files._client.opened(keys).read(0, 4) == b"data"


def test_who_rests_is_asked_where_another_hands_nothing_out(stores):
    files = stores.open()
    files.put("f", b"data")
    keys = files._at("f").keys
    rest(files, stores.hosts[1])
    false_manifests(stores.hosts[2], keys, 1, 300)
    stores.hosts[2].fail("silent")
    assert files._client.current(keys).manifest.version == 1
    assert files._client.opened(keys).read(0, 4) == b"data"


def test_who_rests_is_asked_before_a_roll_back_is_said(stores, tmp_path):
    files = stores.open(seen=tmp_path / "seen")
    files.put("f", b"old")
    keys = files._at("f").keys
    client = files._client
    files.flush()
    before = {host: dict(host.objects) for host in stores.hosts}
    files.put("f", b"new")
    files.flush()
    rest(files, stores.hosts[1])
    for host in (stores.hosts[0], stores.hosts[2]):
        host.objects = dict(before[host])
    assert client.opened(keys).read(0, 3) == b"new"
    for host in stores.hosts:
        host.objects = dict(before[host])
    with pytest.raises(RollBack):
        client.current(keys)


# What a store that lies may cost.
def false_manifests(host, keys, count, size, version=9):
    where = f"{host.name}/place/{keys.name}"
    host.false = {f"{where}/{Name('m', version, Ballot(number + 1, b'z' * 16))}": size for number in range(count)}


def test_a_size_that_one_store_alone_lists_buys_no_time(stores):
    """Each false manifest is said to have 20 MiB, for which an honest store would have 20 seconds more."""
    stores.open().put("f", b"data")
    keys = stores.open()._at("f").keys
    host = stores.hosts[0]
    false_manifests(host, keys, 3, 20 * MIB)
    host.pause = 30
    reader = FileKeys(keys.verify, keys.public, keys.read_key())
    for who in (keys, reader):
        client = stores.open({0: 1.0})._client
        begun = time.monotonic()
        assert client.opened(who).read(0, 4) == b"data"
        assert time.monotonic() - begun < 15
        assert {fault.store for fault in client.group.faults} == {f"faulty://{host.name}/place"}
    host.healed.set()


def test_a_store_that_takes_its_time_for_rubbish_is_given_up(stores):
    """It answers within the deadline, each time with what no manifest is."""
    stores.open().put("f", b"data")
    keys = stores.open()._at("f").keys
    host = stores.hosts[0]
    false_manifests(host, keys, 9, 300)
    host.pause = 1.5
    client = stores.open({0: 2.0})._client
    begun = time.monotonic()
    assert client.opened(keys).read(0, 4) == b"data"
    assert time.monotonic() - begun < 9  # of thirteen
    assert client.write(keys, lambda to: to.write(memoryview(b"more")), client.current(keys)).manifest.version == 2


def large(client, keys):
    """A manifest of 4 MiB, without the content that it would be of."""
    cutter = client.cutter(keys, None)
    cutter.write(memoryview(b"x" * 40_000))
    manifest = cutter.finish((), 1.0)
    blocks = 4 * MIB // 32
    changed = {"sealed": blocks * MIB, "size": (blocks - 1) * MIB, "hashes": bytes(32 * blocks)}
    return dataclasses.replace(manifest, **changed).encode()


def slowly(monkeypatch, client, where):
    """Stores that take their time for what is large: more than their deadline, less than they have for its size."""
    for store in where:
        objects = store._made()
        get = objects.get

        def slow(folder, name, start=None, end=None, get=get):
            answer = get(folder, name, start, end)
            if len(answer) > MIB:
                time.sleep(4.5)
            return answer

        monkeypatch.setattr(objects, "get", slow)


@pytest.mark.parametrize("gone", [False, True])
def test_large_manifests_have_the_time_of_their_size(stores, monkeypatch, gone):
    """Where two list it; and where a store is gone, and one alone has it yet."""
    client = stores.open()._client
    keys = FileKeys.of_number(FileKeys.new_number())
    made = client.register(keys).create(large(client, keys))
    assert len(made.raw) > 4 * MIB
    if gone:
        stores.hosts[2].fail("down")
        without(stores.hosts[1], keys)
    client = stores.open(deadline=3)._client
    slowly(monkeypatch, client, client.group.primaries)
    assert client.current(keys).digest == made.digest


def test_a_hanging_store_does_not_hold_a_manifest_back(stores):
    """Another that lists it is asked after `hedge`, and no fault of theirs is noted."""
    stores.open().put("f", b"data")
    files = stores.open(deadline=20)
    keys = files._at("f").keys
    for host in stores.hosts[:1]:
        where = of_file(host, keys, "m-")[0]
        host.false, host.pause = {where: len(host.objects[where][0])}, 16
    begun = time.monotonic()
    assert files._client.opened(keys).read(0, 4) == b"data"
    assert time.monotonic() - begun < 12
    stores.hosts[0].healed.set()


# Which store is asked for a block.
def test_the_order_in_which_stores_are_asked(four):
    """Primaries, then secondaries; whoever was slow or failed lately last."""
    files = four.open()
    files.put("f", BIG)
    files.flush()
    files = four.open()
    opened = files._client.opened(files._at("f").keys)
    primaries = homes(files._client.group, 0)
    hosts = {f"faulty://{host.name}/place": host for host in four.hosts}
    first, second = (hosts[store.url] for store in primaries)
    secondary = four.hosts[3]

    def asked():
        before = [host.calls.get("get", 0) for host in (first, second, secondary)]
        assert opened.ciphertext(0, MIB)
        return [host.calls.get("get", 0) - then for host, then in zip((first, second, secondary), before)]

    assert asked() == [1, 0, 0]
    first.fail("corrupt")
    assert asked() == [1, 1, 0]
    assert asked() == [0, 1, 0]
    second.fail("cut")
    assert asked() == [0, 1, 1]
    assert asked() == [0, 0, 1]
    secondary.fail("down")
    first.heal()
    assert asked() == [1, 0, 1]


# What comes after a version.
def test_the_newest_of_two_versions_is_settled(four, monkeypatch):
    """Two threads write one file, and the first one comes last to have its version settled."""
    files = four.open()
    client = files._client
    files.put("f", BIG)
    files.flush()
    keys = files._at("f").keys
    held, decided, go, write = threading.Event(), threading.Event(), threading.Event(), Register.write

    def late(self, body, version):
        made = write(self, body, version)
        if version == 2:
            decided.set()
            go.wait(10)
        return made

    monkeypatch.setattr(Register, "write", late)
    client.background.add("hold", held.wait)
    base = client.current(keys)
    first = threading.Thread(target=client.write, args=(keys, lambda to: to.write(memoryview(BIG[1:])), base))
    first.start()
    assert decided.wait(10)
    newest = client.write(keys, lambda to: to.write(memoryview(BIG[2:])), client.current(keys))
    go.set()
    first.join()
    held.set()
    files.flush()
    secondary = four.hosts[3]
    assert [path for path in of_file(secondary, keys, "m-") if newest.name in path]
    assert {Name.parse(path.rpartition("/")[2]).version for path in of_file(secondary, keys, "d-")} == {3}
    assert not files.verify().faults


def test_a_version_that_was_replaced_is_nobodys_fault(four):
    """Another client has made a newer one, and tidied, before the copies of this one were made."""
    files, other = four.open(), four.open()
    files.put("f", BIG)
    files.flush()
    keys = files._at("f").keys
    held = threading.Event()
    files._client.background.add("hold", held.wait)
    files.put("f", BIG[1:])
    old, secondary = files._client.current(keys), four.hosts[3]
    secondary.fail("down")  # and shows nothing newer
    for cut in (2, 3):
        other.put("f", BIG[cut:])
        other.flush()
    secondary.heal()
    files._client.group.faults.clear()
    held.set()
    files.flush()
    assert not [fault for fault in files.faults if fault.store.startswith(f"faulty://{secondary.name}/")]
    other.put("f", BIG[4:])
    other.flush()
    files._client.replicate(keys, old, files._client.group.secondaries[0])  # who is later still
    assert len(of_file(secondary, keys, "m-")) == 1 and not other.verify().faults


def test_nothing_comes_to_a_secondary_after_it_was_removed(four, monkeypatch):
    files = four.open()
    client = files._client
    begun, go = threading.Event(), threading.Event()
    replicate = client.replicate

    def late(keys, made, store):
        if made.manifest.size == len(BIG):
            begun.set()
            go.wait(10)
        replicate(keys, made, store)

    monkeypatch.setattr(client, "replicate", late)
    files.put("f", BIG)
    keys = files._at("f").keys
    assert begun.wait(10)
    thread = threading.Thread(target=files.rm, args=("f",))
    thread.start()
    thread.join(1)
    monkeypatch.setattr("daelstrom.flexa.portions.Ciphertext.run",
                        lambda self, run, stores: {i: bytes(self.manifest.block_size(i)) for i in run})  # fmt: skip
    go.set()
    thread.join()
    files.flush()
    assert not [host.name for host in four.hosts if of_file(host, keys)]


def test_what_was_seen_is_in_memory_where_no_file_can_be_made(stores, tmp_path, monkeypatch):
    stores.open().put("f", b"data")
    path, plain = str(tmp_path / "seen"), os.open

    def refuse(name, *given, **named):
        if name == path:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return plain(name, *given, **named)

    monkeypatch.setattr(os, "open", refuse)
    files = stores.open(seen=path)
    assert files.cat("f") == b"data" and [path in fault.what for fault in files.faults] == [True]
    assert files._client.seen.newest(files._at("f").keys.name)[0] == 1


@pytest.mark.parametrize("value", ["Infinity", "NaN", "9" * 400, '"x"', "null"])
def test_a_time_that_is_none_is_malformed(value):
    keys = FileKeys.of_number(FileKeys.new_number())
    body = Manifest(1, 1, bytes(16), 0, 10, 12.5, bytes(32), (), bytes(10), b"").encode()
    assert Manifest.decode(body).time == 12.5
    text = body[4:-10].replace(b"12.5", value.encode())
    with pytest.raises(Malformed):
        Signed.make(keys, Ballot(0, bytes(16)), struct.pack(">I", len(text)) + text + bytes(10))


def test_what_was_seen_is_not_shared_with_a_child(stores, tmp_path):
    files = stores.open(seen=tmp_path / "seen")
    files.put("f", b"data")
    keys = files._at("f").keys
    child = os.fork()
    if child == 0:
        try:
            files._client.current(keys)
        except RuntimeError:
            os._exit(7)
        except BaseException:
            os._exit(8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert files.cat("f") == b"data"
