# SPDX-License-Identifier: Apache-2.0
"""What `repair` does beside writers and movers, with stores that lie to it, and with what cannot be read."""

from __future__ import annotations

import dataclasses
import os

import pytest

pytest.importorskip("fsspec")
from flexa_faults import of_file, without

from daelstrom.flexa import Conflict
from daelstrom.flexa.moves import _Move
from daelstrom.flexa.portions import homes
from daelstrom.flexa.register import Register
from daelstrom.flexa.repair import Report, check_file

BIG = os.urandom(3_300_000)
MIB = 1 << 20


def test_what_two_have_half_of_is_put_together(stores):
    """A piece is corrupted on both of its stores, in other blocks."""
    files = stores.open()
    files.put("f", os.urandom(8 * MIB))
    keys = files._at("f").keys
    manifest = files._client.current(keys).manifest
    name = manifest.piece_name(0, 0)
    data = files.cat("f")
    urls = [store.url for store in homes(files._client.group, 0)]
    for at, host in enumerate(host for host in stores.hosts if f"faulty://{host.name}/place" in urls):
        path = next(path for path in of_file(host, keys) if path.endswith(name))
        raw, when = host.objects[path]
        host.objects[path] = raw[: at * MIB] + bytes([raw[at * MIB] ^ 1]) + raw[at * MIB + 1 :], when
    report = stores.open().repair(deep=True)
    assert report.ok and report.restored == 2, report
    assert stores.open().cat("f") == data and not stores.open().verify().faults


def test_what_a_store_takes_and_drops_is_not_said_to_be_mended(stores):
    files = stores.open()
    files.put("f", BIG)
    files.put("small", b"1")
    host = stores.hosts[0]
    for path in [path for path in host.objects if path.count("/") == 3]:
        del host.objects[path]
    host.fail("drops")
    report = stores.open().repair()
    assert not report.ok and {fault.store for fault in report.faults} == {f"faulty://{host.name}/place"}
    host.heal()
    assert stores.open().repair().ok and not stores.open().verify().faults


def test_a_file_that_goes_while_it_is_repaired_is_not_lost(stores, monkeypatch):
    """Removed, moved and removed by its new name, or with its folder: between the look at its folder and at itself."""
    files = stores.open()

    def gone(path, call):
        began = []

        def check(client, keys, name, report, **how):
            if name == path and not began:
                began.append(True)
                call()
            return check_file(client, keys, name, report, **how)

        monkeypatch.setattr("daelstrom.flexa.repair.check_file", check)
        report = stores.open().repair(grace=None)
        assert began and report.ok and not report.lost, report

    def moved():
        files.mv("a/f", "g")
        files.rm("g")

    for call in (lambda: files.rm("a/f"), moved, lambda: files.rm("a", recursive=True)):
        files.put("a/f", BIG)
        gone("a/f", call)
    # What is gone from the stores, and has its name, is.
    files.put("a/f", BIG)
    keys = files._at("a/f").keys
    for host in stores.hosts:
        without(host, keys)
    report = stores.open().repair(grace=None)
    assert report.lost == ["a/f"] and not report.ok


def test_a_folder_that_is_none_keeps_nobody_from_mending_the_rest(stores):
    files = stores.open()
    files.put_many({"d/f": b"1", "e/f": BIG, "g": b"2"})
    client, keys, below = files._client, files._at("d").keys, files._at("d/f").keys
    client.write(keys, lambda to: to.write(memoryview(b"no folder")), client.current(keys))
    for path in of_file(stores.hosts[0], files._at("e/f").keys):
        del stores.hosts[0].objects[path]
    report = stores.open().repair(grace=0)
    assert [fault.file for fault in report.faults if not fault.store] == ["d"] and not report.ok
    assert report.restored == 3 and stores.open().verify("e").ok
    assert all(of_file(host, below, "m-") for host in stores.hosts)  # what is below it is not taken for nobody's


def test_a_writer_who_goes_on_is_no_loss(stores, monkeypatch):
    """Each look at a file finds that its pieces were tidied away for a newer version."""
    files = stores.open()
    files.put("f", BIG)
    keys, client, left = files._at("f").keys, stores.open()._client, [0]

    def check(times):
        left[0] = times
        report = Report()
        check_file(client, keys, "f", report, mend=True, deep=True)
        return report

    def current(keys, plain=client.current):
        signed = plain(keys)
        if left[0] > 0:
            left[0] -= 1
            files.put("f", os.urandom(2_200_000))
            files.flush()
        return signed

    monkeypatch.setattr(client, "current", current)
    report = check(3)
    assert report.ok and not report.lost, report
    report = check(20)
    assert not report.ok and not report.lost and "replaced" in str(report.faults)


def test_a_version_made_by_repair_is_like_any_other(stores, tmp_path):
    """Listings know an older version of the file, keyrings have seen an older one, and a reader has it open."""
    files = stores.open(seen=tmp_path / "seen")
    files.put("d/f", BIG)
    late = files.open("d/f", "wb")
    late.write(os.urandom(60 * MIB))
    opened = files.open("d/f")
    report = stores.open().repair(grace=0)
    assert report.ok and report.removed > 0
    assert files.info("d/f").version == 2 and files.ls("d")[0].version == 1 and files.ls("d")[0].size == len(BIG)
    assert opened.read() == BIG and files.cat("d/f") == BIG
    with pytest.raises(Conflict):
        late.close()
    assert files.put("d/f", b"more").version == 3 and files.ls("d")[0].version == 3
    files.flush()
    again = stores.open(seen=tmp_path / "seen")
    assert again.cat("d/f") == b"more" and not again.verify().faults


def test_an_abandoned_write_beside_a_store_that_fails(four, tmp_path):
    """The report names the store, and what else there is to do is done."""
    files = four.open()
    files.put("d/f", BIG)
    files.flush()
    late = files.open("d/f", "wb")
    late.write(os.urandom(60 * MIB))
    host = four.hosts[3]
    host.fail("full")
    report = four.open().repair(grace=0)
    urls = {fault.store for fault in report.faults}
    assert urls == {f"faulty://{host.name}/place"} and not report.ok, report
    with pytest.raises(Conflict):
        late.close()
    host.heal()
    assert four.open().repair(grace=0).ok and not four.open().verify().faults


def test_a_writer_who_finishes_while_repair_would_end_him(stores, monkeypatch):
    files = stores.open()
    files.put("f", BIG)
    late = files.open("f", "wb")
    late.write(BIG * 20)
    write = Register.write

    def slower(self, body, version):
        monkeypatch.setattr(Register, "write", write)
        late.close()
        return write(self, body, version)

    monkeypatch.setattr(Register, "write", slower)
    report = stores.open().repair(grace=0)
    assert report.ok, report
    assert files.cat("f") == BIG * 20
    files.flush()
    assert not stores.open().verify().faults


def test_what_a_move_was_about_to_replace_is_kept_until_it_is_old(stores, monkeypatch):
    """The move died before its last step: what it has replaced stands in the entry, which has a mark."""
    files = stores.open()
    files.put("a/f", BIG)
    files.put("b/f", BIG[1:])
    old, new = files._at("b/f").keys, files._at("a/f").keys

    def die(self, links):
        raise OSError("gone")

    monkeypatch.setattr(_Move, "_settle", die)
    files.mv("a/f", "b/f", replace=True)
    monkeypatch.undo()
    without(stores.hosts[0], old)
    report = stores.open().repair(grace=3600)
    assert report.ok and report.restored == 3 and files._at("b/f").link.leaving, report
    assert all(of_file(host, old, "d-") for host in stores.hosts)
    assert stores.open().repair(grace=0).ok and not files._at("b/f").link.leaving
    assert files.cat("b/f") == BIG
    assert stores.open().repair(grace=0).ok and not any(of_file(host, old) for host in stores.hosts)
    files.rm("b/f")
    assert not any(of_file(host, new) for host in stores.hosts)


def mark(files, folder, leaf, leaving):
    files._editor.edit(
        files._at(folder).keys, lambda links: links.update({leaf: dataclasses.replace(links[leaf], leaving=leaving)})
    )


@pytest.mark.parametrize("leaving", ["=", "=AAAA", "=?", "= =e30=", "00112233aabbccdd =W10="])
def test_a_mark_that_no_move_has_made(stores, leaving):
    files = stores.open()
    files.put_many({"a/x": b"x", "a/y": b"y", "b/z": b"z"})
    mark(files, "a", "x", leaving)
    assert files.verify().files == 6 and stores.open().repair(grace=3600).ok
    files.mv("a/x", "b/z", replace=True)
    files.rm("b/z")
    assert stores.open().repair(grace=0).ok and files.verify().files == 4


def test_a_mark_on_what_is_gone_stays(stores):
    """Marks of before had the other name without one, which takes the file with it."""
    files = stores.open()
    files.put_many({"a/x": b"x", "b/z": b"z"})
    mark(files, "a", "x", "00112233aabbccdd")
    link, from_, to = files._at("a/x").link, files._at("a").keys, files._at("b").keys
    files._editor.edit(to, lambda links: links.update({"y": link.below(from_, to)}))
    files.rm("b/y")
    for _ in range(2):
        report = stores.open().repair(grace=0)
        assert report.ok and not report.lost, report
    with pytest.raises(FileNotFoundError):
        files.cat("a/x")
    files.put("a/x", b"anew")
    assert files.cat("a/x") == b"anew"


def test_what_is_below_a_marked_folder_that_is_not_found_stays(stores):
    files = stores.open()
    files.put("a/d/x", BIG)
    mark(files, "a", "d", "00112233aabbccdd")
    folder, file = files._at("a/d").keys, files._at("a/d/x").keys
    for host in stores.hosts[:2]:
        without(host, folder)
    stores.hosts[2].fail("down")
    stores.open().repair(grace=0)
    stores.heal()
    assert stores.open().repair(grace=0).ok and stores.open().cat("a/d/x") == BIG
    assert all(of_file(host, file) for host in stores.hosts)
