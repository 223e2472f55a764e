# SPDX-License-Identifier: Apache-2.0
"""What the fsspec file system and its files hold between calls: versions of objects, ends that nobody verified, what was
written in part, transactions, threads, close() during use, children of fork(), keys."""

import bz2
import contextlib
import errno
import gc
import gzip
import io
import json
import lzma
import os
import pickle
import random
import threading

import pytest

fsspec = pytest.importorskip("fsspec", reason="no fsspec")

import fsspec.implementations.memory  # noqa: E402
from test_files_state import in_child  # noqa: E402

import daelstrom  # noqa: E402
import daelstrom.fs  # noqa: E402
from daelstrom import exceptions  # noqa: E402

KEY = bytes(range(32))
NO_TAG = (exceptions.InvalidTag, exceptions.FormatError)


def data(size):
    return random.Random(size).randbytes(size)


class Store(fsspec.implementations.memory.MemoryFileSystem):
    """The memory file system with a store of its own, and how often it was asked for what."""

    cachable = False

    def __init__(self, **options):
        super().__init__(**options)
        self.store, self.pseudo_dirs = {}, [""]
        self.infos = self.gets = 0
        self.answers = None  # what to say instead of what is there

    def info(self, path, **kwargs):
        self.infos += 1
        return super().info(path, **kwargs)

    def cat_file(self, path, start=None, end=None, **kwargs):
        self.gets += 1
        if self.answers is not None:
            return self.answers(path, start, end)
        return super().cat_file(path, start, end, **kwargs)


def wrapped(target, **options):
    return daelstrom.fs.DaelstromFileSystem(fs=target, **{"key": KEY, **options}, skip_instance_cache=True)


@pytest.fixture(params=["memory", "file"])
def fs(request, tmp_path):
    """A file system and a folder in it."""
    if request.param == "memory":
        yield wrapped(Store()), "/d"
    else:
        os.mkdir(tmp_path / "d")
        yield wrapped(fsspec.filesystem("file", auto_mkdir=True)), str(tmp_path / "d")


def put(fs, path, sealed):
    fs.fs.pipe_file(path, sealed)
    fs.invalidate_cache()


WAYS = {
    "read": lambda fs, p, to: fs.open(p).read(),
    "read some": lambda fs, p, to: fs.open(p).read(5),
    "lines": lambda fs, p, to: list(fs.open(p)),
    "readline": lambda fs, p, to: fs.open(p).readline(),
    "readinto": lambda fs, p, to: fs.open(p).readinto(bytearray(9)),
    "peek": lambda fs, p, to: fs.open(p).peek(),
    "verify": lambda fs, p, to: fs.open(p).verify(),
    "text": lambda fs, p, to: fs.open(p, "r").read(),
    "read_text": lambda fs, p, to: fs.read_text(p),
    "gzip": lambda fs, p, to: fs.open(p, compression="gzip").read(),
    "cat_file": lambda fs, p, to: fs.cat_file(p),
    "a range beyond": lambda fs, p, to: fs.cat_file(p, 3, 9),
    "from the end": lambda fs, p, to: fs.cat_file(p, -9, -5),
    "a range of nothing": lambda fs, p, to: fs.cat_file(p, -5, 0),
    "cat": lambda fs, p, to: fs.cat(p),
    "cat a list": lambda fs, p, to: fs.cat([p]),
    "cat_ranges": lambda fs, p, to: fs.cat_ranges([p], [1], [5], on_error="raise"),
    "head": lambda fs, p, to: fs.head(p),
    "tail": lambda fs, p, to: fs.tail(p),
    "read_block": lambda fs, p, to: fs.read_block(p, 0, 5),
    "get_file": lambda fs, p, to: fs.get_file(p, to),
    "get": lambda fs, p, to: fs.get(p, to),
    "get to a file": lambda fs, p, to: fs.get_file(p, io.BytesIO()),
    "mapper": lambda fs, p, to: fs.get_mapper(os.path.dirname(p))["empty"],
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_empty_before_it_is_verified(fs, way, tmp_path):
    fs, root = fs
    to = str(tmp_path / "to")
    for made in (bytes(56), b"\x28" + bytes(55)):
        put(fs, f"{root}/empty", made)
        with pytest.raises(NO_TAG):
            WAYS[way](fs, f"{root}/empty", to)
        assert not os.path.exists(to)
    fs.pipe_file(f"{root}/empty", b"")
    WAYS[way](fs, f"{root}/empty", to)
    other = wrapped(fs.fs, key=bytes(32))
    with pytest.raises(NO_TAG):
        WAYS[way](other, f"{root}/empty", to + "2")
    assert not os.path.exists(to + "2")


def test_no_end_before_it_is_verified(fs):
    """Cut off at a segment's end: what follows from the size alone is not told."""
    fs, root = fs
    fs = wrapped(fs.fs, segment="4K")
    path, plain = f"{root}/x", data(40_000)
    fs.pipe_file(path, plain)
    put(fs, path, fs.fs.cat_file(path)[: 5 * 4096])
    for start, end in [(39_000, 39_010), (30_000, None), (-9000, -8990), (0, -9000), (-9000, 12_000), (None, None), (30_000, 40_000)]:
        with pytest.raises(exceptions.InvalidTag):
            fs.cat_file(path, start, end)
    assert fs.cat_file(path, 100, 200) == plain[100:200]
    assert fs.cat_file(path, 7, 7) == fs.cat_file(path, 200, 100) == b""
    got = fs.cat_ranges([path] * 3, [0, -9000, 8000], [9, -8990, 8009])
    assert (got[0], got[2]) == (plain[:9], plain[8000:8009]) and isinstance(got[1], exceptions.InvalidTag)
    with fs.open(path) as file:
        assert file.read(10) == plain[:10]
        for ends in (lambda: file.read_at(39_000, 1), lambda: (file.seek(39_000), file.read(1)), lambda: (file.seek(-9000, 2), file.read(5))):
            with pytest.raises(exceptions.InvalidTag):
                ends()


def test_an_open_object_is_of_one_version(fs):
    fs, root = fs
    path, size = f"{root}/x", 20 << 20
    old, new = b"A" * size, b"B" * size
    for shape in (new, b"B" * (size // 2), b"B" * (size + 999_999), b"", None):
        fs.pipe_file(path, old)
        file = fs.open(path)
        read = file.read(1 << 20)
        if shape is None:
            fs.rm_file(path)
        else:
            wrapped(fs.fs).pipe_file(path, shape)
        try:
            while got := file.read(3 << 20):
                read += got
            file.verify()
            assert read == old  # by the descriptor
        except (OSError, *NO_TAG) as error:
            assert read == old[: len(read)]
            assert shape is None or "replaced while it was read" in str(error), error
            with pytest.raises((OSError, *NO_TAG)):
                file.verify()
        file.close()


def test_a_store_that_answers_from_two_versions():
    target = Store()
    fs = wrapped(target, segment="4K")
    size = 200_000
    versions = []
    for letter in b"AB":
        fs.pipe_file("/x", bytes((letter,)) * size)
        versions.append(bytes(target.store["/x"].getvalue()))
    chance = random.Random(5)
    for turn in (lambda: chance.randrange(2), iter([0, 1] * 10_000).__next__):
        target.answers = lambda path, start, end, turn=turn: versions[turn()][start:end]
        seen = set()
        for _ in range(60):
            fs.invalidate_cache()
            with fs.open("/x", block_size=4096) as file, contextlib.suppress(OSError, *NO_TAG):
                for _ in range(8):
                    file.seek(chance.randrange(size))
                    seen.add(len(set(file.read(9000))))
            starts = [chance.randrange(size - 9) for _ in range(6)]
            got = fs.cat_ranges(["/x"] * 6, starts, [start + 9 for start in starts])
            assert len({one[:1] for one in got if isinstance(one, bytes)}) <= 1, got
        assert seen == {1}


def test_what_is_asked_of_a_store():
    """One listing for an open object, and its beginning once."""
    target = Store()
    fs = wrapped(target)
    plain = data(30 << 20)
    fs.pipe_file("/x", plain)
    fs.invalidate_cache()
    chance = random.Random(1)
    target.infos = target.gets = 0
    with fs.open("/x", block_size=1) as file:
        for _ in range(50):
            at = chance.randrange(len(plain))
            file.seek(at)
            assert file.read(100) == plain[at : at + 100]
    assert target.infos == 1 and target.gets <= 51
    target.infos = target.gets = 0
    with fs.open("/x") as file:
        assert b"".join(iter(lambda: file.read(1 << 20), b"")) == plain
    assert target.infos == 1 and target.gets <= 7


def test_more_objects_than_are_remembered(fs):
    fs, root = fs
    fs.pipe({f"{root}/{i}": b"%d" % i for i in range(300)})
    fs.invalidate_cache()
    names = [f"{root}/{i}" for i in range(300)]
    assert fs.cat(names) == {name: b"%d" % i for i, name in enumerate(names)}
    assert fs.cat_ranges(names, [0] * 300, [9] * 300) == [b"%d" % i for i in range(300)]
    assert len(fs.cat(root, recursive=True)) == 300
    fs.invalidate_cache()
    assert fs.get_mapper(root).getitems([str(i) for i in range(300)], on_error="omit") == {str(i): b"%d" % i for i in range(300)}


def test_nothing_is_omitted_but_what_is_not_there(fs):
    fs, root = fs
    fs.pipe({f"{root}/{name}": b"text" for name in "ab"})
    both = [f"{root}/a", f"{root}/none"]
    mapper = fsspec.mapping.FSMap(root, fs)
    assert mapper.getitems(["a", "none"], on_error="omit") == {"a": b"text"}
    assert fs.cat(both, on_error="omit") == {both[0]: b"text"}
    there = bytes(fs.fs.cat_file(f"{root}/b"))
    put(fs, f"{root}/b", there[:-1] + bytes([there[-1] ^ 1]))
    for asks in (lambda: mapper.getitems(["a", "b"], on_error="omit"), lambda: mapper.getitems(["a", "b"]),
                 lambda: fs.cat([f"{root}/a", f"{root}/b"], on_error="omit")):  # fmt: skip
        with pytest.raises(exceptions.InvalidTag):
            asks()
    assert isinstance(mapper.getitems(["a", "b"], on_error="return")["b"], exceptions.InvalidTag)
    assert isinstance(fs.cat([f"{root}/a", f"{root}/b"], on_error="return")[f"{root}/b"], exceptions.InvalidTag)


class Full(OSError):
    pass


class Parts(Store):
    """Uploads in parts, as object stores have them: what a file takes is seen when it is committed. `fails`: so many
    writes go well, then one does not, and later ones do again."""

    fails = None
    under_way = 0

    class File(fsspec.spec.AbstractBufferedFile):
        def _initiate_upload(self):
            self.parts = []
            self.fs.under_way += 1

        def _upload_chunk(self, final=False):
            if self.fs.fails == 0:
                self.fs.fails = None
                raise Full(errno.ENOSPC, "No space left on device")
            if self.fs.fails is not None:
                self.fs.fails -= 1
            self.parts.append(self.buffer.getvalue())
            if final and self.autocommit:
                self.commit()
            return True

        def commit(self):
            self.fs.under_way -= 1
            self.fs.put(self.path, b"".join(self.parts))

        def discard(self):
            if getattr(self, "parts", None) is not None:
                self.parts = None
                self.fs.under_way -= 1

    def put(self, path, whole):
        self.store[path] = fsspec.implementations.memory.MemoryFile(self, path, whole)

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        self.put(self._strip_protocol(path), value)

    def _open(self, path, mode="rb", block_size=None, autocommit=True, cache_options=None, **kwargs):
        if mode == "rb":
            return super()._open(path, mode, block_size, autocommit, cache_options, **kwargs)
        return self.File(self, path, mode, block_size or 1 << 20, autocommit, **kwargs)


class Aside(fsspec.AbstractFileSystem):
    """A file system that is not the memory's to those who ask, for what is special about that."""

    cachable = False

    def __init__(self, target):
        super().__init__()
        for name in ("info", "ls", "_open", "cat_file", "pipe_file", "rm_file", "exists"):
            setattr(self, name, getattr(target, name))


def test_a_write_that_fails_and_is_survived():
    """Nothing twice: the file is at its end, and there is none."""
    for fails in range(2):
        target = Parts()
        fs = wrapped(Aside(target))
        fs.pipe_file("/x", b"old")
        target.fails = fails
        plain = data(13_000_000)
        file = fs.open("/x", "wb")
        with pytest.raises(Full):
            for at in range(0, len(plain), 1 << 20):
                file.write(plain[at : at + (1 << 20)])
            file.close()
        assert file.closed
        file.close()
        assert fs.cat_file("/x") == b"old" and target.under_way == 0
        with pytest.raises(ValueError, match="closed"):
            file.write(b"more")


COMPRESSED = {"gzip": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress, "zip": None, None: bytes}


@pytest.mark.parametrize("compression", COMPRESSED)
@pytest.mark.parametrize("mode", ["wb", "w", "wt"])
def test_layers_finish_what_is_finished_and_nothing_else(fs, mode, compression):
    fs, root = fs
    path = f"{root}/x"
    text, binary = "line\n" * 10_000, "b" in mode

    def begin(**more):
        return fs.open(path, mode, compression=compression, **more)

    def reads():
        with fs.open(path, "rb", compression=compression) as file:
            return file.read()

    given = text.encode() if binary else text
    with begin() as file:
        file.write(given)
    assert reads() == text.encode()
    if COMPRESSED[compression]:
        assert COMPRESSED[compression](fs.cat_file(path)) == text.encode()
    old = fs.cat_file(path)
    with pytest.raises(KeyError), begin() as file:
        file.write(given)
        raise KeyError
    assert fs.cat_file(path) == old
    file = begin()
    file.write(given)
    with pytest.warns(ResourceWarning, match="never closed"):
        del file
        gc.collect()
    assert fs.cat_file(path) == old
    with pytest.raises(KeyError), fs.transaction:
        with begin() as file:
            file.write(given * 2)
        raise KeyError
    assert fs.cat_file(path) == old
    with fs.transaction:
        with begin() as file:
            file.write(given * 2)
        assert fs.cat_file(path) == old
    assert reads() == text.encode() * 2
    file = begin()
    file.write(given)
    file.close()
    assert fs.cat_file(path) == old or reads() == text.encode()
    if not binary:
        with pytest.raises(UnicodeEncodeError), begin(encoding="ascii") as file:
            file.write("half é")
        assert reads() == text.encode()


def test_transactions(fs):
    fs, root = fs
    fs.pipe_file(f"{root}/old", b"old")

    def all_ways():
        fs.pipe_file(f"{root}/one", b"1")
        fs.pipe({f"{root}/two": b"2", f"{root}/old": b"new"})
        fs.touch(f"{root}/three")
        fs.write_text(f"{root}/four", "4", encoding="utf-8")
        fs.write_bytes(f"{root}/five", b"5")

    with pytest.raises(KeyError), fs.transaction:
        all_ways()
        raise KeyError
    assert [name.rpartition("/")[2] for name in fs.find(root)] == ["old"] and fs.cat_file(f"{root}/old") == b"old"
    with fs.transaction:
        all_ways()
        assert fs.cat_file(f"{root}/old") == b"old"
    assert fs.cat(root, recursive=True) == {f"{root}/{name}": plain for name, plain in [
        ("one", b"1"), ("two", b"2"), ("old", b"new"), ("three", b""), ("four", b"4"), ("five", b"5")]}  # fmt: skip
    # What its own block threw away does not come back, and what nobody closed is not finished.
    with fs.transaction, contextlib.suppress(KeyError):
        with fs.open(f"{root}/old", "wb") as file:
            file.write(b"half")
            raise KeyError
    with pytest.raises(ValueError, match="not closed"), fs.transaction:
        file = fs.open(f"{root}/old", "wb")
        file.write(b"half")
    assert fs.cat_file(f"{root}/old") == b"new" and len(fs.find(root)) == 6


def test_targets_whose_files_cannot_be_taken_back():
    class Bare(Store):
        class File(io.BytesIO):
            def close(self):
                if not self.closed:
                    self.fs.store[self.path] = fsspec.implementations.memory.MemoryFile(self.fs, self.path, self.getvalue())
                super().close()

        def pipe_file(self, path, value, mode="overwrite", **kwargs):
            self.store[path] = fsspec.implementations.memory.MemoryFile(self, path, value)

        def _open(self, path, mode="rb", **kwargs):
            if mode == "rb":
                return super()._open(path, mode, **kwargs)
            file = self.File()
            file.fs, file.path = self, path
            return file

    target = Bare()
    fs = wrapped(Aside(target))
    fs.pipe_file("/x", b"old")
    for _ in range(2):
        with pytest.raises(io.UnsupportedOperation, match="no commit and no discard"):
            fs.open("/x", "wb")
    assert fs.cat_file("/x") == b"old" and list(target.store) == ["/x"]


def test_exclusive_creation(fs):
    fs, root = fs
    fs.pipe_file(f"{root}/x", b"old")
    with pytest.raises(FileExistsError):
        fs.open(f"{root}/x", "xb")
    with pytest.raises(FileExistsError):
        fs.pipe_file(f"{root}/x", b"new", mode="create")
    with pytest.raises(FileExistsError), fs.open(f"{root}/y", "xb") as file:
        file.write(b"slow")
        fs.pipe_file(f"{root}/y", b"quick")
    with fs.open(f"{root}/z", "xb") as file:
        file.write(b"only")
    assert fs.cat([f"{root}/{name}" for name in "xyz"]) == {f"{root}/x": b"old", f"{root}/y": b"quick", f"{root}/z": b"only"}


def test_get_leaves_no_beginning(fs, tmp_path):
    fs, root = fs
    to = tmp_path / "to"
    plain = data(12 << 20)
    fs.pipe_file(f"{root}/x", plain)
    fs.get(f"{root}/x", str(to))
    assert to.read_bytes() == plain
    bad = bytearray(fs.fs.cat_file(f"{root}/x"))
    bad[9 << 20] ^= 1
    put(fs, f"{root}/x", bytes(bad))
    to.write_bytes(b"old")
    with pytest.raises(exceptions.InvalidTag):
        fs.get(f"{root}/x", str(to))
    assert to.read_bytes() == b"old" and sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == ["to"]


def test_folders_of_bound_names(fs):
    fs, root = fs
    fs = wrapped(fs.fs, bind_names=True)
    fs.pipe({f"{root}/a/x": b"1", f"{root}/a/b/y": b"2"})
    fs.cp(f"{root}/a", f"{root}/c", recursive=True)
    fs.mv(f"{root}/c", f"{root}/e", recursive=True)
    assert fs.cat(f"{root}/e", recursive=True) == {f"{root}/e/x": b"1", f"{root}/e/b/y": b"2"}
    assert not fs.exists(f"{root}/c/x")


def test_bound_names_are_moved_within_a_transaction(fs):
    """The source goes at once, so its copy comes at once."""
    fs, root = fs
    fs = wrapped(fs.fs, bind_names=True)
    for fails in (True, False):
        fs.pipe_file(f"{root}/a", b"text")
        with contextlib.suppress(KeyError), fs.transaction:
            fs.mv(f"{root}/a", f"{root}/b")
            if fails:
                raise KeyError
        there = {name.rpartition("/")[2]: fs.cat_file(name) for name in fs.find(root)}
        assert there == {"b": b"text"}


def test_what_is_not_sealed_among_what_is(fs):
    fs, root = fs
    fs.pipe_file(f"{root}/x", b"12345")
    fs.fs.pipe_file(f"{root}/stray", b"not sealed")
    assert fs.du(root) == 5
    assert {name.rpartition("/")[2]: size for name, size in fs.du(root, total=False).items()} == {"x": 5, "stray": None}
    assert "stray" in fs.tree(root, display_size=True)


def test_options_that_there_are_not(fs):
    fs, root = fs
    for wrong in ({"bind_name": True}, {"segmnt": "4K"}, {"keyfile": "x"}):
        with pytest.raises(TypeError, match="no option"):
            wrapped(fs.fs, **wrong)
    fs.pipe_file(f"{root}/x", b"text")
    with pytest.raises(TypeError, match="no option"):
        fs.open(f"{root}/x", "rb", verfy=True)
    assert fs.open(f"{root}/x", cache_type="none", block_size=100).read() == b"text"


def test_key_files_are_told_apart_by_what_they_hold(tmp_path, monkeypatch):
    secrets = {"a": b"\xaa" * 32, "b": b"\xbb" * 32}
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "store.key").write_bytes(secrets[name])
        (tmp_path / name / "store.key").chmod(0o600)
    target = Store()
    made = []
    for name in "ab":
        monkeypatch.chdir(tmp_path / name)
        made.append(daelstrom.fs.DaelstromFileSystem(fs=target, key_file="store.key"))
        made[-1].pipe_file(f"/{name}", b"text")
    assert made[0] is not made[1]
    for name, fs in zip("ab", made):
        assert wrapped(target, key=secrets[name]).cat_file(f"/{name}") == b"text"
        assert daelstrom.fs.DaelstromFileSystem(fs=target, key_file=str(tmp_path / name / "store.key")) is fs
    # In a worker, which stands elsewhere; and where another key lies under that name.
    told = [pickle.dumps(fs.storage_options) for fs in made]
    assert all(secret not in one for secret in secrets.values() for one in told)
    (tmp_path / "a" / "store.key").write_bytes(KEY)
    assert daelstrom.fs.DaelstromFileSystem(fs=target, key_file=str(tmp_path / "a" / "store.key")) is not made[0]
    with pytest.raises(ValueError, match="holds another key"):
        daelstrom.fs.DaelstromFileSystem(**made[0].storage_options)
    assert made[0].cat_file("/a") == b"text"


def test_an_open_object_in_another_process(tmp_path):
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "key").chmod(0o600)
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    for url in ("daelstrom::memory://d/x", f"daelstrom::file://{tmp_path}/x"):
        fs, path = fsspec.core.url_to_fs(url, key_file=str(tmp_path / "key"))
        fs.pipe_file(path, b"0123456789")
        file = fs.open(path)
        file.seek(3)
        packed = pickle.dumps(file)
        assert KEY not in packed and pickle.loads(packed).read() == b"3456789"
    fs, path = fsspec.core.url_to_fs("daelstrom::memory://d/x", key_file=str(tmp_path / "key"))
    packed = pickle.dumps(fs.open(path))
    fs.pipe_file(path, b"abcdefghij")
    with pytest.raises(OSError, match="replaced"):
        pickle.loads(packed)
    memory.store.clear()


def test_children(fs):
    """They read; what their parent writes goes on, whatever they do; and they begin files of their own."""
    fs, root = fs
    targets = [(fs, root), (wrapped(Aside(Parts())), "/d")]
    for fs, root in targets:
        fs.pipe_file(f"{root}/x", data(3_000_000))
        reader, writer = fs.open(f"{root}/x"), fs.open(f"{root}/y", "wb")
        reader.read(7)
        writer.write(data(9_000_000))
        held = [fs.open(f"{root}/z", "wb")]
        held[0].write(b"the parent's")

        def child(fs=fs, root=root, reader=reader, writer=writer, held=held):
            good = reader.read(9) == data(3_000_000)[7:16] and fs.cat_file(f"{root}/x", 5, 9) == data(3_000_000)[5:9]
            with pytest.raises(ValueError, match="parent"):
                writer.write(bytes(9_000_000))
            writer.discard()
            held.clear()
            gc.collect()
            with fs.open(f"{root}/own", "wb") as file:
                file.write(b"own")
            return good and fs.cat_file(f"{root}/own") == b"own"

        assert in_child(child) == 0
        writer.close()
        held[0].close()
        assert fs.cat_file(f"{root}/y") == data(9_000_000) and fs.cat_file(f"{root}/z") == b"the parent's"


def test_a_child_that_is_forked_while_the_file_system_is_at_work():
    target = Store()
    fs = wrapped(target)
    fs.pipe_file("/x", b"text")
    inside, go_on = threading.Event(), threading.Event()
    usual = fs._opened

    class Slow(type(usual)):
        def get(self, *given):
            inside.set()
            go_on.wait()
            return super().get(*given)

    fs._opened = Slow(usual)
    thread = threading.Thread(target=lambda: fs.cat_file("/x"))
    thread.start()
    inside.wait()

    def child():
        go_on.set()
        return fs.cat_file("/x") == b"text"

    try:
        assert in_child(child) == 0
    finally:
        go_on.set()
        thread.join()


def test_writers_of_several_threads(fs):
    fs, root = fs
    for layer in (None, "gzip"):
        with fs.open(f"{root}/x", "wb", compression=layer) as file:

            def writes(which, file=file):
                for i in range(500):
                    file.write(b"%d %06d\n" % (which, i))

            threads = [threading.Thread(target=writes, args=(which,)) for which in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        lines = fs.open(f"{root}/x", compression=layer).read().splitlines()
        assert sorted(lines) == [b"%d %06d" % (which, i) for which in range(4) for i in range(500)]


def test_close_in_another_thread():
    target = Store()
    fs = wrapped(target, segment="4K")
    fs.pipe_file("/x", b"\x55" * 300_000)
    wrong = []
    for _ in range(60):
        file, begun = fs.open("/x", block_size=4096), threading.Event()

        def reads(file=file, begun=begun):
            try:
                for at in range(0, 300_000, 1000):
                    file.seek(at)
                    if file.read(9) != b"\x55" * 9:
                        wrong.append(at)
                    begun.set()
            except ValueError as error:
                if "closed" not in str(error):
                    wrong.append(error)

        thread = threading.Thread(target=reads)
        thread.start()
        begun.wait()
        file.close()
        thread.join()
    assert not wrong


def test_key_files_as_the_program_reads_them(tmp_path):
    path, target = tmp_path / "key", Store()
    wrapped(target, key=bytes(range(16))).pipe_file("/short", b"text")
    wrapped(target, key=KEY).pipe_file("/long", b"text")
    for spelled, name in [(bytes(range(16)), "/short"), (KEY, "/long"), (bytes(range(16)).hex().encode(), "/short"),
                          (KEY.hex().upper().encode() + b"\r\n", "/long"), (KEY.hex().encode() + b"\n", "/long")]:  # fmt: skip
        path.write_bytes(spelled)
        path.chmod(0o600)
        assert daelstrom.fs.DaelstromFileSystem(fs=target, key_file=str(path)).cat_file(name) == b"text"
    for wrong in (b"", b"x" * 31, KEY + b"\n", KEY.hex().encode() + b"0"):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="key"):
            daelstrom.fs.DaelstromFileSystem(fs=target, key_file=str(path))
    path.write_bytes(KEY)
    path.chmod(0o644)
    with pytest.warns(RuntimeWarning, match="others"):
        daelstrom.fs.DaelstromFileSystem(fs=target, key_file=str(path))
    with pytest.raises(FileNotFoundError):
        daelstrom.fs.DaelstromFileSystem(fs=target, key_file=str(tmp_path / "none"))


@pytest.mark.parametrize("mode", ["wb", "wt"])
@pytest.mark.parametrize("compression", [None, "gzip", "xz"])
def test_fsspecs_own_open(fs, mode, compression):
    """Which closes its files after an exception as it does without one."""
    fs, root = fs
    text = "line\n" * 1000
    given = text if "t" in mode else text.encode()
    opened = fsspec.core.OpenFile(fs, f"{root}/x", mode, compression, encoding="utf-8")
    with pytest.raises(KeyError), opened as file:
        file.write(given)
        raise KeyError
    assert not fs.exists(f"{root}/x")
    with opened as file:
        file.write(given)
    with pytest.raises(KeyError), opened as file:
        file.write(given[:9])
        raise KeyError
    with fs.open(f"{root}/x", compression=compression) as file:
        assert file.read() == text.encode()
    try:
        raise KeyError
    except KeyError:  # being handled, and not what ends the block
        with opened as file:
            file.write(given * 2)
    with fs.open(f"{root}/x", compression=compression) as file:
        assert file.read() == text.encode() * 2
