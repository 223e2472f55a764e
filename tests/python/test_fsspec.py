# SPDX-License-Identifier: Apache-2.0
"""The fsspec file system: ranges, listings, writing, and pandas, pyarrow and zarr through it."""

import contextlib
import importlib.util
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

fsspec = pytest.importorskip("fsspec", reason="no fsspec")

import fsspec.implementations.memory  # noqa: E402

import daelstrom  # noqa: E402
from daelstrom import exceptions  # noqa: E402

KEY = bytes(range(32))


@pytest.fixture(autouse=True, scope="module")
def registered():
    # An installed package has an entry point; the build's folder has none.
    fsspec.register_implementation("daelstrom", "daelstrom.fs.DaelstromFileSystem", clobber=True)


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(0o600)
    return str(path)


@pytest.fixture(params=["memory", "file"])
def base(request, tmp_path):
    """Where a target keeps things, as a chained URL without the last part."""
    if request.param == "file":
        yield f"daelstrom::file://{tmp_path}/target"
    else:
        fsspec.filesystem("memory").store.clear()
        yield "daelstrom::memory://target"
        fsspec.filesystem("memory").store.clear()


def data(size):
    return random.Random(size).randbytes(size)


def wrapped(target, **options):
    from daelstrom.fs import DaelstromFileSystem

    return DaelstromFileSystem(fs=target, **{"key": KEY, **options}, skip_instance_cache=True)


class Counting(fsspec.implementations.memory.MemoryFileSystem):
    """The memory file system, and what was asked of it."""

    cachable = False
    store = {}
    pseudo_dirs = [""]

    def __init__(self):
        super().__init__()
        self.asked, self.calls = [], 0

    def cat_ranges(self, paths, starts, ends, **kwargs):
        self.calls += 1
        self.asked += zip(paths, starts, ends)
        return super().cat_ranges(paths, starts, ends, **kwargs)


@pytest.mark.parametrize("segment", ["4K", "1M"])
def test_by_url(base, key_file, segment):
    options = {"key_file": key_file, "segment": segment}
    plain = data(2_500_000)
    with fsspec.open(base + "/a/b", "wb", **options) as file:
        file.write(plain)
    with fsspec.open(base + "/a/b", "rb", **options) as file:
        assert file.size == len(plain)
        assert file.read() == plain
        file.seek(-5, 2)
        assert file.read() == plain[-5:]
    with fsspec.open(base + "/a/text", "wt", **options) as file:
        file.write("é\nsecond")
    with fsspec.open(base + "/a/text", "rt", **options) as file:
        assert file.readlines() == ["é\n", "second"]
    with fsspec.open(base.replace("daelstrom::", "") + "/a/b", "rb") as sealed:
        assert plain[100_000:100_016] not in sealed.read()


def test_sizes_are_the_plaintexts(base, key_file):
    fs, root = fsspec.core.url_to_fs(base, key_file=key_file, segment="4K")
    lengths = [0, 1, 4039, 4040, 4041, 8120, 100_000]
    for size in lengths:
        fs.pipe_file(f"{root}/dir/f{size}", data(size))
    told = {entry["name"].rpartition("/f")[2]: entry for entry in fs.ls(f"{root}/dir")}
    assert {int(name): entry["size"] for name, entry in told.items()} == {size: size for size in lengths}
    assert all(entry["sealed_size"] > entry["size"] for entry in told.values())
    for size in lengths:
        name = f"{root}/dir/f{size}"
        assert fs.size(name) == fs.info(name)["size"] == fs.open(name).size == size
        assert fs.cat_file(name) == data(size)
    assert {entry["size"] for entry in fs.find(root, detail=True).values()} == set(lengths)
    assert sorted(fs.glob(f"{root}/dir/f4*")) == sorted(f"{root}/dir/f{size}" for size in (4039, 4040, 4041))
    assert fs.du(root) == sum(lengths)
    assert fs.sizes([f"{root}/dir/f1", f"{root}/dir/f4041"]) == [1, 4041]
    fs.fs.pipe_file(f"{root}/dir/stray", b"not sealed")
    assert {e["name"].rpartition("/")[2]: e["size"] for e in fs.ls(f"{root}/dir")}["stray"] is None
    with pytest.raises(exceptions.FormatError, match="stray"):
        fs.cat_file(f"{root}/dir/stray")


def test_ranges_as_python_slices_them(base, key_file):
    fs, root = fsspec.core.url_to_fs(base, key_file=key_file, segment="4K")
    plain = data(50_000)
    fs.pipe_file(f"{root}/x", plain)
    chance = random.Random(3)
    bounds = [None, 0, 1, -1, -4080, 4039, 4040, 49_999, 50_000, 60_000, -60_000]
    for _ in range(200):
        start, end = (chance.choice([*bounds, chance.randrange(50_000)]) for _ in range(2))
        assert fs.cat_file(f"{root}/x", start, end) == plain[start:end], (start, end)
    assert fs.head(f"{root}/x", 10) == plain[:10]
    assert fs.tail(f"{root}/x", 10) == plain[-10:]
    assert fs.read_block(f"{root}/x", 4000, 100) == plain[4000:4100]


def test_many_ranges_in_one_call():
    target = Counting()
    fs = wrapped(target, segment="4K")
    plains = {name: data(60_000 + i) for i, name in enumerate(("/a", "/b"))}
    for name, plain in plains.items():
        fs.pipe_file(name, plain)
    target.asked.clear()
    target.calls = 0
    wanted = [("/a", 0, 10), ("/a", 5, 100), ("/b", 50_000, 60_000), ("/a", 30_000, 30_001), ("/b", -3, None),
              ("/a", 7, 7)]  # fmt: skip
    got = fs.cat_ranges(*map(list, zip(*wanted)))
    assert got == [plains[name][start:end] for name, start, end in wanted]
    assert target.calls == 1
    # Two headers; what shares segments comes once; whole segments and nothing else.
    assert len(target.asked) == 2 + 3
    assert all((end - start) <= 4 * 4096 for _, start, end in target.asked)
    # The next time, the headers are known.
    target.asked.clear()
    fs.cat_ranges(["/a"], [0], [10])
    assert len(target.asked) == 1
    # All the arguments: a number for each, gaps, errors returned or raised.
    assert fs.cat_ranges(["/a", "/b"], 3, 9) == [plains["/a"][3:9], plains["/b"][3:9]]
    target.asked.clear()
    far = [("/a", 0, 10), ("/a", 20_000, 20_010), ("/a", 50_000, 50_010)]
    assert fs.cat_ranges(*map(list, zip(*far)), max_gap=20_000, batch_size=2) == [plains[n][s:e] for n, s, e in far]
    assert len(target.asked) == 2
    missing = fs.cat_ranges(["/a", "/none"], [0, 0], [3, 3])
    assert missing[0] == plains["/a"][:3] and isinstance(missing[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(["/a", "/none"], [0, 0], [3, 3], on_error="raise")
    with pytest.raises(ValueError):
        fs.cat_ranges(["/a"], [0, 1], [3])
    with pytest.raises(TypeError):
        fs.cat_ranges("/a", 0, 1)


def test_damage_is_refused_and_named():
    target = Counting()
    fs = wrapped(target, segment="4K")
    plain = data(60_000)
    fs.pipe_file("/a", plain)
    sealed = bytearray(target.cat_file("/a"))
    sealed[3 * 4096 + 7] ^= 1
    target.pipe_file("/a", bytes(sealed))
    fs.invalidate_cache()
    assert fs.cat_file("/a", 0, 100) == plain[:100]
    with pytest.raises(exceptions.InvalidTag, match="'/a': segment 3"):
        fs.cat_file("/a", 12_300, 12_400)
    got = fs.cat_ranges(["/a", "/a", "/a"], [0, 12_300, 40_000], [9, 12_400, 40_009])
    assert got[0] == plain[:9] and got[2] == plain[40_000:40_009] and isinstance(got[1], exceptions.InvalidTag)
    for cut in (sealed[: 4 * 4096], sealed[:-1]):
        target.pipe_file("/a", bytes(cut))
        fs.invalidate_cache()
        with pytest.raises((exceptions.InvalidTag, exceptions.FormatError)):
            fs.cat_file("/a", -10, None)
        file = fs.open("/a")
        with pytest.raises((exceptions.InvalidTag, exceptions.FormatError)):
            file.verify()


def test_an_empty_file_is_verified():
    target = Counting()
    fs = wrapped(target)
    fs.touch("/empty")
    assert fs.cat_file("/empty") == b"" and fs.open("/empty").read() == b""
    sealed = bytearray(target.cat_file("/empty"))
    sealed[-1] ^= 1
    target.pipe_file("/empty", bytes(sealed))
    fs.invalidate_cache()
    with pytest.raises(exceptions.InvalidTag):
        fs.cat_file("/empty")


def test_what_the_target_replaced_meanwhile_is_read_anew():
    """A listing that is out of date must not become a plaintext that is cut off."""

    class Stale(Counting):
        stale = None

        def info(self, path, **kwargs):
            return dict(self.stale) if self.stale else super().info(path, **kwargs)

        def invalidate_cache(self, path=None):
            self.stale = None

    target = Stale()
    fs = wrapped(target, segment="4K")
    fs.pipe_file("/a", data(20_000))
    old = target.info("/a")
    wrapped(target, segment="4K").pipe_file("/a", data(30_001))
    target.stale = old
    assert fs.cat_file("/a") == data(30_001)


def test_names_that_are_bound():
    target = Counting()
    fs = wrapped(target, bind_names=True, aad=b"v1")
    fs.pipe({"/a": b"one" * 100, "/b": b"two" * 100})
    target.cp_file("/a", "/b")  # as somebody with the store's keys might
    fs.invalidate_cache()
    with pytest.raises(exceptions.InvalidTag):
        fs.cat_file("/b")
    fs.cp_file("/a", "/c")
    fs.mv("/c", "/d")
    assert fs.cat_file("/d") == b"one" * 100 and not fs.exists("/c")
    unbound = wrapped(target)
    unbound.pipe_file("/e", b"three")
    unbound.cp_file("/e", "/f")
    assert target.cat_file("/e") == target.cat_file("/f")
    assert unbound.cat(["/e", "/f"]) == {"/e": b"three", "/f": b"three"}


def test_what_is_not_finished_is_not_there(base, key_file):
    fs, root = fsspec.core.url_to_fs(base, key_file=key_file)
    fs.pipe_file(f"{root}/old", b"old")
    with pytest.raises(KeyError), fs.open(f"{root}/new", "wb") as file:
        file.write(bytes(12 << 20))
        raise KeyError
    assert not fs.exists(f"{root}/new")
    with pytest.raises(KeyError), fs.transaction:
        with fs.open(f"{root}/new", "wb") as file:
            file.write(bytes(12 << 20))
        raise KeyError
    assert not fs.exists(f"{root}/new")
    with fs.transaction:
        with fs.open(f"{root}/new", "wb") as file:
            file.write(b"new")
        assert not fs.exists(f"{root}/new")
    assert fs.cat_file(f"{root}/new") == b"new"
    assert fs.cat_file(f"{root}/old") == b"old"


def test_copies_and_folders(base, key_file, tmp_path):
    fs, root = fsspec.core.url_to_fs(base, key_file=key_file)
    (tmp_path / "local").write_bytes(data(70_000))
    fs.put_file(str(tmp_path / "local"), f"{root}/d/x")
    fs.get_file(f"{root}/d/x", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data(70_000)
    fs.cp_file(f"{root}/d/x", f"{root}/d/y")
    fs.mv(f"{root}/d/y", f"{root}/d/z")
    assert sorted(name.rpartition("/")[2] for name in fs.ls(f"{root}/d", detail=False)) == ["x", "z"]
    assert fs.isdir(f"{root}/d") and fs.isfile(f"{root}/d/z")
    fs.rm(f"{root}/d", recursive=True)
    assert not fs.exists(f"{root}/d/x")
    with pytest.raises(FileNotFoundError):
        fs.open(f"{root}/d/x")


@pytest.mark.parametrize("cache", ["simplecache", "filecache"])
def test_in_a_chain_and_in_another_process(tmp_path, key_file, cache):
    import pickle

    if cache == "simplecache" and tuple(map(int, fsspec.__version__.split(".")[:2])) < (2026, 9):
        pytest.skip("fsspec's simplecache opens no ranges before 2026.9")
    fsspec.filesystem("memory").store.clear()
    options = {"key_file": key_file, cache: {"cache_storage": str(tmp_path / "cache")}}
    with fsspec.open("daelstrom::memory://d/x", "wb", key_file=key_file) as file:
        file.write(data(30_000))
    with fsspec.open(f"daelstrom::{cache}::memory://d/x", "rb", **options) as file:
        assert file.read() == data(30_000)
    cached = [path.read_bytes() for path in (tmp_path / "cache").iterdir() if path.is_file()]
    assert cached and all(data(30_000)[:16] not in kept for kept in cached)
    fs, path = fsspec.core.url_to_fs("daelstrom::memory://d/x", key_file=key_file)
    again = pickle.loads(pickle.dumps(fs))
    assert again.cat_file(path) == data(30_000)
    assert KEY.hex() not in fs.to_json() and KEY not in pickle.dumps(fs)
    fsspec.filesystem("memory").store.clear()


def test_wrong_uses_say_what_is_wrong(key_file):
    fs = wrapped(Counting())
    fs.pipe_file("/a", b"text")
    for mode in ("ab", "r+b"):
        with pytest.raises(ValueError, match="mode"):
            fs.open("/a", mode)
    with pytest.raises(NotImplementedError, match="signed URL"):
        fs.sign("/a")
    with pytest.raises(TypeError, match="key_file"):
        fsspec.filesystem("daelstrom", target_protocol="memory")
    with pytest.raises(TypeError, match="no file system"):
        fsspec.filesystem("daelstrom", key=KEY)
    other = wrapped(Counting(), key=bytes(32))
    other.fs.store["/a"] = fs.fs.store["/a"]
    with pytest.raises(exceptions.InvalidTag):
        other.cat_file("/a")
    assert "key" not in fs.to_dict(include_password=False)
    small = wrapped(Counting(), segment="4K")
    small.pipe_file("/small", data(10_000))
    fs.invalidate_cache()
    with pytest.raises((exceptions.InvalidTag, exceptions.FormatError)):
        fs.cat_file("/small")


# Other people's readers.


def test_pandas(base, key_file):
    pandas = pytest.importorskip("pandas", reason="no pandas: scripts/setup installs it on Python 3.11 and later")
    frame = pandas.DataFrame({"a": range(50_000), "b": [i / 3 for i in range(50_000)], "c": list(map(str, range(50_000)))})
    options = {"key_file": key_file, "segment": "4K"}
    frame.to_csv(base + "/x.csv", index=False, storage_options=options)
    assert pandas.read_csv(base + "/x.csv", storage_options=options, dtype={"c": str}, float_precision="round_trip").equals(frame)
    pytest.importorskip("pyarrow", reason="no pyarrow: scripts/setup installs it on Python 3.11 and later")
    frame.to_parquet(base + "/x.parquet", storage_options=options)
    assert pandas.read_parquet(base + "/x.parquet", storage_options=options).equals(frame)
    assert (pandas.read_parquet(base + "/x.parquet", columns=["b"], storage_options=options).b == frame.b).all()


def test_pyarrow(base, key_file):
    arrow = pytest.importorskip("pyarrow", reason="no pyarrow: scripts/setup installs it on Python 3.11 and later")
    import pyarrow.dataset
    import pyarrow.fs
    import pyarrow.parquet

    fs, root = fsspec.core.url_to_fs(base, key_file=key_file)
    table = arrow.table({"part": [i % 3 for i in range(30_000)], "value": list(range(30_000))})
    arrow.parquet.write_to_dataset(table, f"{root}/set", partition_cols=["part"], filesystem=fs)
    through = arrow.fs.PyFileSystem(arrow.fs.FSSpecHandler(fs))
    read = arrow.dataset.dataset(f"{root}/set", filesystem=through, partitioning="hive").to_table()
    assert sorted(read["value"].to_pylist()) == list(range(30_000))
    infos = through.get_file_info(arrow.fs.FileSelector(f"{root}/set", recursive=True))
    assert {info.size for info in infos if info.is_file} == {fs.size(info.path) for info in infos if info.is_file}
    with through.open_input_file(infos[-1].path) as file:
        assert file.read_at(4, 0) == b"PAR1" and file.size() == infos[-1].size


def test_zarr(base, key_file):
    zarr = pytest.importorskip("zarr", reason="no zarr: scripts/setup installs it on Python 3.11 and later")
    import numpy

    options = {"key_file": key_file, "segment": "4K"}
    values = numpy.random.default_rng(5).random((300, 400))
    array = zarr.open(base + "/z", mode="w", shape=values.shape, chunks=(50, 100), dtype="f8", storage_options=options)
    array[:] = values
    again = zarr.open(base + "/z", mode="r", storage_options=options)
    assert (again[:] == values).all() and (again[45:206, 99:301] == values[45:206, 99:301]).all()


# A real S3 server: versitygw, a Go program. DAELSTROM_VERSITYGW names it where it is not on the PATH. Without it moto's,
# of PyPI, which holds the objects in its memory.


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    pytest.importorskip("s3fs", reason="no s3fs: pip install s3fs")
    program = os.environ.get("DAELSTROM_VERSITYGW") or shutil.which("versitygw")
    moto = importlib.util.find_spec("moto") and importlib.util.find_spec("flask_cors")
    if not program and not moto:
        pytest.skip("no S3 server: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0, or pip install moto[server]")
    folder = tmp_path_factory.mktemp("s3")
    (folder / "bucket").mkdir()
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "--access", "tester", "--secret", "of this", "--port", f"127.0.0.1:{port}", "posix", str(folder)]
    if not program:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder.parent / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            for _ in range(300):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            options = {"key": "tester", "secret": "of this",
                       "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}}  # fmt: skip
            if not program:  # which has no folders
                urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")).close()
            yield options
        finally:
            server.terminate()
            server.wait()


def test_s3(s3, key_file, tmp_path):
    fs, root = fsspec.core.url_to_fs("daelstrom::s3://bucket/here", key_file=key_file, s3=s3)
    assert root == "bucket/here"
    plain = data(21_000_000)
    with fs.open(f"{root}/big", "wb", block_size=5 << 20) as file:  # several parts
        file.write(plain)
    assert fs.size(f"{root}/big") == len(plain)
    assert fs.cat_file(f"{root}/big") == plain
    starts = [random.Random(i).randrange(len(plain)) for i in range(60)]
    got = fs.cat_ranges([f"{root}/big"] * 60, starts, [start + 5000 for start in starts], batch_size=8)
    assert got == [plain[start : start + 5000] for start in starts]
    with fs.open(f"{root}/big") as file:
        file.seek(20_999_990)
        assert file.read() == plain[-10:]
        file.verify()
    fs.pipe({f"{root}/n{i}": data(i) for i in range(20)})
    assert fs.cat([f"{root}/n{i}" for i in range(20)]) == {f"{root}/n{i}": data(i) for i in range(20)}
    assert {entry["size"] for entry in fs.ls(root, refresh=True)} == {*range(20), len(plain)}
    # Ends without a file, and without parts that lie about.
    with pytest.raises(KeyError), fs.open(f"{root}/never", "wb", block_size=5 << 20) as file:
        file.write(plain)
        raise KeyError
    fs.invalidate_cache()
    assert not fs.exists(f"{root}/never")
    assert fs.fs.list_multipart_uploads("bucket") == []
    # s3fs believes its listings; another writer's object is read all the same.
    fs.ls(root)
    other = wrapped(fsspec.filesystem("s3", **s3, skip_instance_cache=True))
    other.pipe_file(f"{root}/big", b"another, shorter")
    assert fs.cat_file(f"{root}/big") == b"another, shorter"


def test_s3_from_threads(s3, key_file):
    fs, root = fsspec.core.url_to_fs("daelstrom::s3://bucket/threads", key_file=key_file, s3=s3)
    plain = data(3_000_000)
    fs.pipe_file(f"{root}/x", plain)
    wrong = []

    def reads(seed):
        chance = random.Random(seed)
        for _ in range(10):
            start = chance.randrange(len(plain))
            if fs.cat_file(f"{root}/x", start, start + 100_000) != plain[start : start + 100_000]:
                wrong.append(start)

    threads = [threading.Thread(target=reads, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_s3_by_pandas_and_zarr(s3, key_file):
    pandas, zarr = (pytest.importorskip(name, reason=f"no {name}") for name in ("pandas", "zarr"))
    pytest.importorskip("pyarrow", reason="no pyarrow")
    import numpy

    options = {"key_file": key_file, "s3": s3}
    frame = pandas.DataFrame({"a": range(100_000)})
    frame.to_parquet("daelstrom::s3://bucket/x.parquet", storage_options=options)
    assert pandas.read_parquet("daelstrom::s3://bucket/x.parquet", storage_options=options).equals(frame)
    values = numpy.arange(40_000.0).reshape(200, 200)
    url = "daelstrom::s3://bucket/z.zarr"
    zarr.open(url, mode="w", shape=values.shape, chunks=(50, 50), dtype="f8", storage_options=options)[:] = values
    assert (zarr.open(url, mode="r", storage_options=options)[:] == values).all()


def test_the_class_is_found_by_its_entry_point():
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution("daelstrom")
    except PackageNotFoundError:
        text = pathlib.Path(os.environ.get("DAELSTROM_SOURCE", pathlib.Path(__file__).parents[2]), "pyproject.toml").read_text()
        assert '[project.entry-points."fsspec.specs"]\ndaelstrom = "daelstrom.fs:DaelstromFileSystem"' in text
    else:
        (point,) = (p for p in installed.entry_points if p.group == "fsspec.specs")
        assert point.name == "daelstrom" and point.load().protocol == "daelstrom"
    assert daelstrom.open is not open
