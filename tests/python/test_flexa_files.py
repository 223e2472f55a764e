# SPDX-License-Identifier: Apache-2.0
"""FlexA's files where nothing fails: on folders, in memory, on file systems that rename; and who may do what."""

from __future__ import annotations

import errno
import io
import os
import pickle
import threading

import pytest

fsspec = pytest.importorskip("fsspec")
from flexa_faults import Stores

from daelstrom.exceptions import InvalidTag
from daelstrom.flexa import Conflict, FlexA, FlexaError, Keyring, Lost, RollBack, Uncertain
from daelstrom.flexa.manifest import BLOCK, INLINE, PIECE

# Around what stands in the manifest, around blocks, one of each portion, more than a piece of each.
OVERHEAD = 40 + 16
SIZES = [0, 1, INLINE - OVERHEAD, INLINE - OVERHEAD + 1, BLOCK - OVERHEAD, BLOCK - OVERHEAD + 1, 3 * BLOCK + 5]


@pytest.fixture
def stores(tmp_path):
    made = Stores(tmp_path, secondaries=1)
    yield made
    made.close()


def flexa_on(kind: str, tmp_path) -> FlexA:
    urls = [{"folder": f"{tmp_path}/s{number}", "file": f"file://{tmp_path}/s{number}", "memory": f"memory://{tmp_path}/s{number}"}[kind]
            for number in range(3)]  # fmt: skip
    ring = Keyring.create(tmp_path / "ring", primaries=urls, passphrase="w", work=10,
                          options={url: {"sync": False} for url in urls} if kind != "memory" else None)  # fmt: skip
    FlexA.init(ring)
    return FlexA(keyring=ring, seen=False)


@pytest.mark.parametrize("kind", ["folder", "file", "memory"])
def test_what_is_put_is_got(kind, tmp_path):
    with flexa_on(kind, tmp_path) as files:
        for size in SIZES:
            data = os.urandom(size)
            assert files.put(f"of/{size}", data).size == size
            assert files.cat(f"of/{size}") == data
            files.get(f"of/{size}", tmp_path / "out")
            assert (tmp_path / "out").read_bytes() == data
            with files.open(f"of/{size}") as file:
                assert file.size == size and file.read() == data
        assert [(entry.name, entry.size) for entry in files.ls("of")] == sorted((f"of/{size}", size) for size in SIZES)
        assert files.verify().ok and not files.faults


def test_more_than_a_piece_in_ranges(stores):
    files = stores.open()
    size = 3 * PIECE * BLOCK + 2 * BLOCK + 777
    data = os.urandom(1 << 20) * (size >> 20) + os.urandom(size & 0xFFFFF)
    told = []
    files.put("big", io.BytesIO(data), progress=told.append)
    assert told == sorted(told) and told[-1] == size
    with files.open("big") as file:
        for at, count in [(0, 1), (BLOCK - 60, 30), (size - 5, 5), (size - 5, 50), (47 * BLOCK, 3 * BLOCK), (5, 9 * BLOCK)]:
            assert file.read_at(at, count) == data[at : at + count]
    assert files.cat("big", -1000) == data[-1000:] and files.cat("big", 7, -7) == data[7:-7]
    files.flush()
    held = [sum(len(value) for value, _ in host.objects.values()) for host in stores.hosts]
    for one in held[:3]:
        assert 0.6 < one / size < 0.75
    assert 1.0 < held[3] / size < 1.01
    calls = stores.hosts[0].calls.get("get", 0)
    files.cat("big", 10 * BLOCK, 10 * BLOCK + 10)
    assert stores.hosts[0].calls.get("get", 0) - calls < 8


def test_versions_and_what_stays_of_them(stores):
    files = stores.open()
    for version in range(1, 6):
        assert files.put("f", os.urandom(200_000)).version == version
    assert files.info("f").version == 5
    files.flush()
    for host in stores.hosts:
        names = [name for name in host.objects if host.objects[name] and name.split("/")[2][:6] == files._at("f").keys.name[:6]]
        assert len([name for name in names if "/d-" in name]) <= 1
        assert len([name for name in names if "/m-" in name]) == 2


def test_a_reader_keeps_its_version_or_says_so(stores):
    files = stores.open()
    files.put("f", b"a" * (5 << 20))
    reader = files.open("f")
    assert reader.read(10) == b"a" * 10
    files.put("f", b"b" * (5 << 20))
    files.flush()
    reader.seek(3 << 20)
    with pytest.raises(OSError) as caught:
        reader.read(10)
    assert caught.value.errno == errno.ESTALE
    assert files.cat("f", 0, 3) == b"bbb"


def test_a_writer_counts_when_it_is_closed_or_never(stores):
    files = stores.open()
    with files.open("f", "wb") as file:
        file.write(b"one")
        assert not files.exists("f") and file.tell() == 3
    assert files.cat("f") == b"one" and file.written.version == 1
    with pytest.raises(KeyError), files.open("f", "wb") as file:
        file.write(b"x" * 3_000_000)
        raise KeyError
    files.open("f", "wb").discard()
    del file
    abandoned = files.open("g", "wb")
    abandoned.write(b"y")
    del abandoned
    assert files.cat("f") == b"one" and not files.exists("g")
    with pytest.raises(FileExistsError):
        files.open("f", "xb")
    with pytest.raises(FileExistsError):
        files.put("f", b"", exclusive=True)
    with pytest.raises(ValueError):
        file = files.open("h", "wb")
        file.close()
        file.write(b"")
    assert files.cat("h") == b""
    report = files.repair(grace=0)
    assert report.ok and files.verify().files == 3


def test_names(stores):
    files = stores.open()
    files.put("a/b/c", b"1")
    files.mkdir("e")
    for bad in ("..", "a/../b", "a/" + "x" * 256, "a\0b"):
        with pytest.raises(ValueError):
            files.put(bad, b"")
    with pytest.raises(NotADirectoryError):
        files.put("a/b/c/d", b"")
    with pytest.raises(IsADirectoryError):
        files.put("a/b", b"")
    with pytest.raises(IsADirectoryError):
        files.cat("a")
    with pytest.raises(FileNotFoundError):
        files.cat("a/x")
    with pytest.raises(FileNotFoundError):
        files.rm("x")
    with pytest.raises(OSError) as caught:
        files.rm("a")
    assert caught.value.errno == errno.ENOTEMPTY
    with pytest.raises(OSError):
        files.mv("a", "a/b/d")
    with pytest.raises(FileExistsError):
        files.mv("a/b/c", "e")
    files.put("f", b"2")
    with pytest.raises(FileExistsError):
        files.mv("f", "a/b/c")
    files.mv("f", "a/b/c", replace=True)
    assert files.cat("/a/b//c") == b"2" and not files.exists("f")
    files.mv("a", "e/a")
    assert files.cat("e/a/b/c") == b"2"
    files.rm("e", recursive=True)
    assert files.ls() == []
    odd = "Ünïcode \u202e 日本"
    files.put(odd, b"3")
    assert files.ls()[0].name == odd and files.cat(odd) == b"3"
    report = files.repair(grace=0)
    assert report.ok and files.verify().files == 2


def test_writers_of_one_name_and_of_one_folder(stores):
    first, second = stores.open(), stores.open()
    first.put("f", b"old")
    a, b = first.open("f", "wb"), second.open("f", "wb")
    a.write(b"a")
    b.write(b"b")
    a.close()
    with pytest.raises(Conflict):
        b.close()
    assert second.cat("f") == b"a"
    a, b = first.open("new", "wb"), second.open("new", "wb")
    a.close()
    with pytest.raises(Conflict):
        b.close()
    a = first.open("f", "wb")
    second.rm("f")
    with pytest.raises(Uncertain, match="removed or moved"):
        a.close()
    # Different names never are in each other's way.
    errors = []

    def put(files, number):
        try:
            for count in range(6):
                files.put(f"d/{number}.{count}", bytes([number, count]))
        except BaseException as error:
            errors.append(error)

    first.mkdir("d")
    threads = [threading.Thread(target=put, args=((first, second)[number % 2], number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(first.ls("d")) == 24
    assert all(first.cat(f"d/{n}.{c}") == bytes([n, c]) for n in range(4) for c in range(6))


def test_many_at_once_change_their_folder_seldom(stores):
    files = stores.open()
    made = files.put_many({f"d/{number}": bytes([number]) for number in range(60)})
    assert [one.name for one in made] == [f"d/{number}" for number in range(60)]
    assert [entry.size for entry in files.ls("d")] == [1] * 60 and files.info("d").version == 2
    again = files.put_many({"d/1": b"again", "d/new": b"2", "top": b"3"})
    assert [one.version for one in again] == [2, 1, 1] and files.cat("d/1") == b"again" and files.cat("top") == b"3"
    assert files.repair(grace=0).ok and files.verify().files == 64


def test_who_may_do_what(stores, tmp_path):
    files = stores.open()
    files.put("d/e/f", b"secret")
    files.put("g", b"other")
    options = {"seen": False, "options": {url: {} for url in (*files._ring.primaries, *files._ring.secondaries)}}
    files.share("d", tmp_path / "read")
    files.share("d", tmp_path / "verify", read=False)
    files.share("g", tmp_path / "file")
    files.flush()
    with FlexA.of_share(tmp_path / "read", **options) as reader:
        assert reader.cat("e/f") == b"secret" and [entry.name for entry in reader.ls("e")] == ["e/f"]
        assert reader.verify().ok and reader.repair().ok
        for call in (lambda: reader.put("e/f", b""), lambda: reader.put("new", b""), lambda: reader.rm("e/f"),
                     lambda: reader.mv("e/f", "x"), lambda: reader.mkdir("h"), lambda: reader.open("e/f", "wb")):  # fmt: skip
            with pytest.raises(PermissionError):
                call()
        files.put("d/e/f", b"newer")
        assert reader.cat("e/f") == b"newer"
    files.flush()
    with FlexA.of_share(tmp_path / "verify", **options) as checker:
        assert checker.verify().ok
        for call in (lambda: checker.ls(), lambda: checker.cat("e/f")):
            with pytest.raises(PermissionError):
                call()
    with FlexA.of_share(tmp_path / "file", **options) as one:
        assert one.cat("g") == one.cat("") == b"other" and one.ls()[0].name == "g"
        with pytest.raises(FileNotFoundError):
            one.cat("d")


def test_a_share_for_somebody(stores, tmp_path):
    from daelstrom.files import generate_identity

    identity, recipient = generate_identity()
    files = stores.open()
    files.put("g", b"other")
    files.share("g", tmp_path / "share", recipients=[recipient])
    assert b"faulty" not in (tmp_path / "share").read_bytes()
    known = {url: {} for url in (*files._ring.primaries, *files._ring.secondaries)}  # a file system of one's own
    with FlexA.of_share(tmp_path / "share", identities=identity, options=known, seen=False) as one:
        assert one.cat("g") == b"other"


def test_stores_see_ciphertext_under_hashes(stores):
    files = stores.open()
    files.put("a name", b"words that nobody else has" * 3000)
    files.put("small", b"words that nobody else has")
    files.flush()
    for host in stores.hosts:
        for name, (data, _) in host.objects.items():
            assert "name" not in name and b"words that" not in data and b"a name" not in data


def test_going_back_is_noticed(stores, tmp_path):
    files = stores.open(seen=tmp_path / "seen")
    files.put("f", b"one")
    then = [dict(host.objects) for host in stores.hosts]
    files.put("f", b"two")
    for host, old in zip(stores.hosts, then):
        host.objects = dict(old)
    with pytest.raises(RollBack):
        stores.open(seen=tmp_path / "seen").cat("f")
    assert stores.open(seen=False).cat("f") == b"one"  # who has seen nothing cannot know


def test_nothing_comes_of_nothing(stores):
    """A file that every store has lost is no empty one, and an emptied folder no folder."""
    files = stores.open()
    files.put("f", b"data")
    keys = files._at("f").keys
    for host in stores.hosts:
        for name in [name for name in host.objects if keys.name in name]:
            del host.objects[name]
    with pytest.raises(Lost):
        files.cat("f")
    with pytest.raises(Lost):
        files.info("f")
    for host in stores.hosts:
        host.lose()
    with pytest.raises(FlexaError):
        stores.open().ls()


def test_stores_of_others_are_left_alone(tmp_path):
    urls = [f"{tmp_path}/s{number}" for number in range(3)]
    os.mkdir(urls[1])
    with open(f"{urls[1]}/letter", "w") as file:
        file.write("mine")
    ring = Keyring.create(tmp_path / "ring", primaries=urls, passphrase="w", work=10)
    with pytest.raises(FlexaError, match="something else"):
        FlexA.init(ring)
    os.unlink(f"{urls[1]}/letter")
    FlexA.init(ring)
    FlexA.init(ring)
    other = Keyring.create(tmp_path / "other", primaries=urls, passphrase="w", work=10)
    with pytest.raises(FlexaError, match="another"):
        FlexA.init(other)
    with pytest.raises(FlexaError):
        FlexA(keyring=other, seen=False).ls()
    with pytest.raises(ValueError, match="twice"):
        FlexA(keyring=Keyring.create(tmp_path / "third", primaries=[urls[0]] * 3, passphrase="w", work=10))


def test_the_cache_is_bounded_and_verified(stores, tmp_path):
    files = stores.open(cache=tmp_path / "cache", cache_size=4 << 20)
    data = os.urandom(3_000_000)
    files.put("f", data)
    assert files.cat("f") == data
    calls = sum(host.calls.get("get", 0) for host in stores.hosts)
    assert files.cat("f") == data
    assert sum(host.calls.get("get", 0) for host in stores.hosts) - calls < 12  # manifests, and no piece
    for path in (tmp_path / "cache").iterdir():
        assert data[:32] not in path.read_bytes()
        path.write_bytes(b"x" * 1000)
    assert files.cat("f") == data
    for number in range(4):
        files.put(f"g{number}", os.urandom(2_500_000))
        files.cat(f"g{number}")
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 4 << 20


def test_a_child_opens_its_own(stores):
    files = stores.open()
    files.put("f", b"data")
    writer = files.open("g", "wb")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                files.cat("f")
            except (RuntimeError, FlexaError):
                code = 2
            writer.discard()
            try:
                writer.write(b"x")
            except ValueError:
                code += 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    writer.write(b"mine")
    writer.close()
    assert files.cat("g") == b"mine"


def test_it_is_neither_pickled_nor_used_closed(stores):
    files = stores.open()
    with pytest.raises(TypeError):
        pickle.dumps(files)
    files.close()
    with pytest.raises((ValueError, FlexaError)):
        files.cat("f")


def test_folders_do_not_let_anybody_out(tmp_path):
    """A store's folder with links in the place of what should be there."""
    files = flexa_on("folder", tmp_path)
    files.put("f", b"data")
    name = files._at("f").keys.name
    folder = tmp_path / "s0" / name
    (tmp_path / "elsewhere").mkdir()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert files.cat("f") == b"data"
    files.put("f", b"newer")
    assert files.cat("f") == b"newer" and not list((tmp_path / "elsewhere").iterdir())


def test_another_reader_s_forgery_is_refused(stores):
    """Whoever can read a file has its read key, and may write to the stores; a version of his is nobody's."""
    files = stores.open()
    files.put("f", os.urandom(3_000_000))
    name = files._at("f").keys.name
    for host in stores.hosts:
        for path, (data, at) in list(host.objects.items()):
            if name in path and "/d-" in path:
                host.objects[path] = (os.urandom(len(data)), at)
    with pytest.raises((Lost, InvalidTag)):
        files.cat("f")
