# SPDX-License-Identifier: Apache-2.0
"""Any one store fails in any way: nothing is lost, no wrong byte is returned, the report names the store, and `repair`
makes it whole. Two of them fail: an error says so, and nothing is lost either."""

from __future__ import annotations

import os
import threading
import time

import pytest

pytest.importorskip("fsspec")
from flexa_faults import Stores

from daelstrom.flexa import Conflict, FileKeys, Lost, Unavailable, Uncertain
from daelstrom.flexa.manifest import Ballot, Name, Signed, make_candidacy

BIG = os.urandom(3_300_000)
FAULTS = ["down", "hang", "full", "corrupt", "cut", "drops", "stale", "forgets", "flaky", "silent", "invents"]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("fault", FAULTS)
def test_one_store_fails(stores, fault, number):
    hasty = {number: 0.5} if fault == "hang" else {}
    files = stores.open()
    files.put("d/big", BIG)
    files.put("small", b"one")
    host = stores.hosts[number]
    host.fail(fault)
    files = stores.open(hasty)
    assert files.cat("d/big") == BIG and files.cat("small") == b"one"
    files.put("d/big", BIG[::-1])
    files.put("small", b"two")
    files.put("d/new", b"three")
    files.rm("small")
    assert files.cat("d/big") == BIG[::-1] and [entry.name for entry in files.ls("d")] == ["d/big", "d/new"]
    files.flush()
    assert all(one.store.startswith(f"faulty://{host.name}/") for one in files.faults)
    if fault not in ("drops", "stale", "invents"):
        assert files.faults
    host.heal()
    report = stores.open().repair(deep=True, grace=0)
    assert report.ok and all(host.name in fault.store for fault in report.faults)
    again = stores.open().verify()
    assert again.ok and not again.faults and again.files == 4
    # Now another one may fail.
    stores.hosts[(number + 1) % 3].fail("down")
    files = stores.open()
    assert files.cat("d/big") == BIG[::-1] and files.cat("d/new") == b"three"


@pytest.mark.parametrize("fault", ["down", "hang", "full", "drops", "forgets"])
def test_a_store_fails_amid_a_write(stores, fault):
    for puts in range(0, 7, 2):
        files = stores.open({puts % 3: 0.5} if fault == "hang" else {})
        stores.hosts[puts % 3].fail_after(puts, fault)
        data = os.urandom(2_200_000)
        files.put("f", data)
        assert files.cat("f") == data
        stores.heal()
        files = stores.open()
        assert files.cat("f") == data
        assert files.repair().ok


def test_a_lost_store_comes_back_whole(stores):
    files = stores.open()
    files.put_many({f"d/{number}": os.urandom(700_000 * number) for number in range(4)})
    whole = {name: data for name, (data, _) in stores.hosts[1].objects.items()}
    stores.hosts[1].lose()
    assert not stores.open().verify().ok
    # Interrupted, and begun anew.
    stores.hosts[1].fail_after(5, "down")
    report = stores.open().repair()
    assert not report.ok and 0 < report.restored
    stores.heal()
    before = stores.hosts[1].calls["put"]
    report = stores.open().repair()
    assert report.ok and report.restored == stores.hosts[1].calls["put"] - before - 1  # and the mark
    there = {name: data for name, (data, _) in stores.hosts[1].objects.items()}
    assert there == {name: data for name, data in whole.items() if name in there}
    assert not stores.open().verify().faults


def test_a_corrupted_store_is_found_and_mended(stores):
    files = stores.open()
    files.put("f", BIG)
    files.put("small", b"1")
    host = stores.hosts[2]
    for name, (data, at) in list(host.objects.items()):
        if "/flexa-" not in name:
            host.objects[name] = (bytes([data[0] ^ 1]) + data[1:], at)
    assert files.cat("f") == BIG and files.cat("small") == b"1"
    report = stores.open().verify()
    assert not report.ok and {fault.store for fault in report.faults} == {f"faulty://{host.name}/place"}
    assert stores.open().repair(deep=True).ok
    assert not stores.open().verify().faults


def test_a_hanging_store_costs_one_deadline(stores):
    stores.open().put("f", BIG)
    stores.hosts[0].fail("hang")
    files = stores.open({0: 2.0})
    files.cat("f")
    begun = time.monotonic()
    for _ in range(5):
        assert files.cat("f") == BIG
    assert time.monotonic() - begun < 6  # it is left out for as long
    assert files.status()["stores"][0]["state"] == "hung"


def test_who_refuses_is_left_in_peace_while_two_answer(stores):
    """Each look at a version would wait for its refusal otherwise; where one of the two goes too, it is asked again."""
    writer, files, host = stores.open(), stores.open(), stores.hosts[1]
    writer.put("f", b"data")
    writer.flush()
    host.fail("down")
    for _ in range(6):
        assert files.cat("f") == b"data"
    assert host.calls_of_fault == 1 and {fault.store for fault in files.faults} == {f"faulty://{host.name}/place"}
    host.heal()
    stores.hosts[2].fail("down")
    assert files.cat("f") == b"data"
    files.put("f", b"more")
    assert files.cat("f") == b"more"


def test_no_more_is_read_of_a_manifest_than_is_listed(stores):
    """A store has other objects in the place of those that it lists: of each, what was listed comes over, and no more."""
    files = stores.open()
    files.put("f", b"old")
    files.put("f", b"data")
    host = stores.hosts[0]
    sizes = {name: len(data) for name, (data, _) in host.objects.items()}
    candidacy = str(Name("c", 2, Ballot(9, b"z" * 16)))
    where = f"{host.name}/place/{files._at('f').keys.name}/{candidacy}"
    host.objects[where], sizes[where] = (b"", 0.0), 120
    for name, (data, at) in list(host.objects.items()):
        if "/m-" in name or "/c-" in name:
            host.objects[name] = data + bytes(5_000_000), at
    host.sizes = sizes
    files = stores.open()
    assert files.cat("f") == b"data" and files.info("f").version == 2
    assert not stores.open().verify().ok
    assert host.most_read < 10_000 and host.calls["get"]


def test_secondaries_serve_where_primaries_do_not(tmp_path):
    stores = Stores(tmp_path, secondaries=1)
    files = stores.open()
    files.put("f", BIG)
    files.flush()
    for host in stores.hosts[:3]:
        for name in [name for name in host.objects if "/d-" in name]:
            del host.objects[name]
    assert files.cat("f") == BIG
    assert stores.open().repair().ok and not stores.open().verify().faults
    stores.close()


def test_two_stores_gone(stores):
    files = stores.open()
    files.put("f", b"data")
    for host in stores.hosts[:2]:
        host.fail("down")
    files = stores.open()
    for call in (lambda: files.cat("f"), lambda: files.put("f", b"x"), lambda: files.put("g", b"x"), lambda: files.ls(),
                 lambda: files.rm("f")):  # fmt: skip
        with pytest.raises(Unavailable):
            call()
    stores.heal()
    assert stores.open().cat("f") == b"data" and [entry.name for entry in stores.open().ls()] == ["f"]


def test_nobody_knows_is_what_is_said(stores):
    """The answers of two stores are lost when the manifest is there, on one of them or on none."""
    files = stores.open()
    files.put("f", b"old")
    client, keys = files._client, files._at("f").keys
    base = client.current(keys)
    # The puts of a small version are its candidacy, then its manifest.
    for host in stores.hosts[:2]:
        host.fail_after(1, "down")
    with pytest.raises(Uncertain):
        client.write(keys, lambda to: to.write(memoryview(b"new")), base)
    stores.heal()
    seen = {stores.open().cat("f") for _ in range(3)}
    assert seen in ({b"old"}, {b"new"})
    assert seen == {b"new"}  # the third store has it, and whoever comes completes it


def test_a_stray_manifest_is_completed_by_readers_too(stores):
    files = stores.open()
    files.put("f", b"old")
    keys = files._at("f").keys
    client = files._client
    base = client.current(keys)
    cutter = client.cutter(keys, base)
    cutter.write(memoryview(b"new"))
    body = cutter.finish((base.digest,), 1.0).encode()
    stray = Signed.make(keys, Ballot(1, b"p" * 16), body)
    store = client.group.primaries[1]
    store.wait(store.put(keys.name, stray.name, stray.raw))
    reader = FileKeys(keys.verify, keys.public, keys.read_key())
    other = stores.open()._client
    assert other.opened(reader, other.current(reader)).read(0, 3) == b"new"
    assert sum(any(stray.name in name for name in host.objects) for host in stores.hosts) == 3


def test_somebody_about_to_write_is_waited_for_by_readers_alone(stores):
    """A candidate who is gone, with a ballot above that of the version: who can write decides, who cannot says so."""
    files = stores.open()
    files.put("f", b"old")
    files.put("f", b"new")
    keys = files._at("f").keys
    ballot = Ballot(9, b"z" * 16)
    for store in files._client.group.primaries:
        store.wait(store.put(keys.name, str(Name("c", 2, ballot)), make_candidacy(keys, 2, ballot)))
    reader = FileKeys(keys.verify, keys.public, keys.read_key())
    with pytest.raises(Uncertain):
        stores.open()._client.current(reader)
    assert stores.open().cat("f") == b"new"
    assert stores.open()._client.current(reader).manifest.version == 2


def test_an_abandoned_write_is_collected_and_its_writer_told(stores):
    files = stores.open()
    files.put("f", BIG)
    late = files.open("f", "wb")
    late.write(BIG * 20)  # portions are on the stores
    new = files.open("g", "wb")
    new.write(BIG * 20)
    pieces = sum("/d-" in name for host in stores.hosts for name in host.objects)
    assert stores.open().repair(grace=3600).removed == 0
    report = stores.open().repair(grace=0)
    assert report.ok and report.removed > 0
    assert sum("/d-" in name for host in stores.hosts for name in host.objects) < pieces
    with pytest.raises(Conflict):
        late.close()
    assert files.cat("f") == BIG
    new.discard()


def test_a_file_whose_portions_are_gone_is_lost_and_said_to_be(stores):
    files = stores.open()
    files.put("f", BIG)
    files.put("g", BIG)
    name = files._at("f").keys.name
    for host in stores.hosts[:2]:
        for path in [path for path in host.objects if name in path and "/d-" in path]:
            del host.objects[path]
    with pytest.raises(Lost):
        stores.open().cat("f")
    report = stores.open().repair()
    assert not report.ok and "f" in report.lost and "g" not in report.lost
    assert files.cat("g") == BIG


def test_reads_and_writes_while_a_store_comes_and_goes(stores):
    files = stores.open()
    files.put("f", BIG)
    stop = threading.Event()

    def trouble():
        while not stop.is_set():
            stores.hosts[1].fail("down")
            stop.wait(0.05)
            stores.hosts[1].heal()
            stop.wait(0.05)

    thread = threading.Thread(target=trouble)
    thread.start()
    try:
        for count in range(12):
            files.put("f", BIG[count:])
            assert files.cat("f") == BIG[count:]
    finally:
        stop.set()
        thread.join()
