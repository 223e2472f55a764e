# SPDX-License-Identifier: Apache-2.0
"""What FlexA holds between calls, where somebody else is quicker, and where a store is not what it was."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time

import pytest

pytest.importorskip("fsspec")
from daelstrom.flexa import FlexA, Keyring
from daelstrom.flexa.cache import Cache
from daelstrom.flexa.folders import Editor


@pytest.mark.parametrize("what", ["put", "mv"])
def test_a_folder_is_removed_while_somebody_writes_into_it(stores, monkeypatch, what):
    slow, quick = stores.open(), stores.open()
    slow.put("x", b"precious")
    slow.mkdir("d")
    folder = slow._at("d").keys.name
    edited = Editor._make

    def make(self, keys, group):
        if keys.name == folder and self is slow._editor:
            base = self.of(keys, self._client.current(keys))  # it looks, and sleeps
            monkeypatch.setattr(Editor, "_make", edited)
            assert base.links == {}
            current, old = self._client.current, [self._client.current(keys)]
            monkeypatch.setattr(self._client, "current", lambda keys: old.pop() if old and keys.name == folder else current(keys))
            quick.rm("d")
        return edited(self, keys, group)

    monkeypatch.setattr(Editor, "_make", make)
    with pytest.raises(Exception):
        slow.put("d/f", b"new") if what == "put" else slow.mv("x", "d/x")
    files = stores.open()
    assert [entry.name for entry in files.ls()] == ["x"] and files.cat("x") == b"precious"
    assert files.repair(grace=0).ok and files.verify().files == 2


def test_a_disk_that_is_mounted_no_more_is_not_filled(tmp_path):
    urls = [f"{tmp_path}/s{number}" for number in range(3)]
    ring = Keyring.create(tmp_path / "ring", primaries=urls, passphrase="w", work=10)
    FlexA.init(ring)
    with FlexA(keyring=ring, seen=False) as files:
        files.put("f", b"one")
        os.rename(urls[1], f"{tmp_path}/disk")
        os.mkdir(urls[1])
        written = files.put("f", b"x" * 100_000)
        assert written.missing == (urls[1],) and not os.listdir(urls[1])
        assert files.cat("f") == b"x" * 100_000 and any("not mounted" in fault.what for fault in files.faults)
        os.rmdir(urls[1])
        os.rename(f"{tmp_path}/disk", urls[1])
        assert files.repair().ok and files.put("f", b"two").missing == ()
        files.flush()
        shutil.rmtree(urls[2])  # lost, and restored by whoever has it open
        assert files.cat("f") == b"two" and files.repair().ok and not files.verify().faults


def test_what_is_missing_is_said_of_small_files_too(stores):
    files = stores.open()
    files.put("f", b"one")
    stores.hosts[2].fail("full")
    url = f"faulty://{stores.hosts[2].name}/place"
    assert files.put("f", b"two").missing == files.put("g", b"new").missing == (url,)


def test_one_that_invents_candidacies_is_soon_not_heard(stores):
    files = stores.open()
    files.put("f", b"one")
    files.put("f", b"two")
    host, name = stores.hosts[0], files._at("f").keys.name
    for number in range(1000):
        host.objects[f"{host.name}/place/{name}/c-{2:016x}-{number + 9:08x}-{os.urandom(16).hex()}"] = (b"x" * 91, 1.0)
        host.objects[f"{host.name}/place/{name}/m-{9:016x}-{number + 9:08x}-{os.urandom(16).hex()}"] = (b"x" * 91, 1.0)
    calls = host.calls.get("get", 0)
    assert stores.open().cat("f") == b"two"
    assert stores.open().put("f", b"three").version == 3
    assert host.calls["get"] - calls < 400


def test_a_writer_whose_write_failed_says_so_when_it_is_closed(stores):
    files = stores.open()
    file = files.open("f", "wb")
    for host in stores.hosts[:2]:
        host.fail("down")
    large = os.urandom(17 << 20)
    with pytest.raises(OSError):
        for _ in range(50):
            file.write(large)
    stores.heal()
    with pytest.raises(OSError) as caught:
        file.close()
    assert caught.value.errno == errno.EIO and file.closed
    file.close()
    assert not stores.open().exists("f")


def test_a_cache_removes_what_a_crash_left(tmp_path):
    old, new = f"t-{1:032x}", f"t-{2:032x}"
    for name, age in ((old, 7200), (new, 0), ("t-of-others", 7200)):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (time.time() - age, time.time() - age))
    cache = Cache(tmp_path, 1 << 20)
    assert sorted(os.listdir(tmp_path)) == [new, "t-of-others"]
    cache.put(hashlib.sha256(b"block").digest(), b"block")
    assert Cache(tmp_path, 1 << 20).get(hashlib.sha256(b"block").digest()) == b"block"
