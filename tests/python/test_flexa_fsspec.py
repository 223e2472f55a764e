# SPDX-License-Identifier: Apache-2.0
"""flexa:// through fsspec: ranges, listings, transactions, and pandas, pyarrow and zarr."""

import importlib.util
import io
import pickle
import random
import threading

import pytest

fsspec = pytest.importorskip("fsspec", reason="no fsspec")
from flexa_faults import Stores  # noqa: E402

import fsspec.implementations.dirfs  # noqa: E402

from daelstrom.flexa import FlexA, Keyring  # noqa: E402
from daelstrom.flexa.fs import FlexaFileSystem  # noqa: E402


def data(size):
    return random.Random(size).randbytes(size)


@pytest.fixture
def options(tmp_path):
    """What opens a FlexA on three folders."""
    stores = [str(tmp_path / f"store{i}") for i in range(3)]
    quick = {"sync": False}
    keyring = Keyring.create(tmp_path / "keyring", primaries=stores, options={one: quick for one in stores}, passphrase="for this", work=4)
    FlexA.init(keyring)
    (tmp_path / "words").write_text("for this\n")
    return {"keyring": str(tmp_path / "keyring"), "passphrase_file": str(tmp_path / "words")}


@pytest.fixture
def fs(options):
    made = FlexaFileSystem(**options, skip_instance_cache=True)
    yield made
    made.close()


def test_by_url(options):
    plain = data(2_500_000)
    with fsspec.open("flexa://a/b/c", "wb", **options) as file:
        file.write(plain)
    fs, path = fsspec.core.url_to_fs("flexa://a/b/c", **options)
    assert path == "a/b/c" and fs.size(path) == len(plain) and fs.cat_file(path) == plain
    with fsspec.open("flexa://a/b/c", **options) as file:
        file.seek(-7, 2)
        assert file.read() == plain[-7:] and file.loc == len(plain)
    with fsspec.open("flexa://a/text.gz", "wt", compression="infer", **options) as file:
        file.write("é\nsecond")
    with fsspec.open("flexa://a/text.gz", "rt", compression="infer", **options) as file:
        assert file.readlines() == ["é\n", "second"]
    assert fs.cat_file("a/text.gz")[:2] == b"\x1f\x8b"
    assert "for this" not in fs.to_json() and sorted(fs.find("")) == ["a/b/c", "a/text.gz"]
    again = pickle.loads(pickle.dumps(fs))
    assert again.cat_file(path, 5, 10) == plain[5:10]


def test_ranges(fs):
    files = {f"in/f{size}": data(size) for size in (0, 1, 100_000, 3_000_001)}
    fs.pipe(files)
    assert {name: fs.cat_file(name) for name in files} == files
    chosen, source = [], random.Random(1)
    for _ in range(60):
        name = source.choice(list(files))
        size = len(files[name])
        chosen.append((name, *sorted(source.randrange(-size - 3, size + 3) for _ in range(2))))
    got = fs.cat_ranges(*map(list, zip(*chosen)), on_error="raise")
    assert got == [files[name][start:end] for name, start, end in chosen]
    assert fs.cat_file("in/f100000", -5, None) == files["in/f100000"][-5:]
    assert isinstance(fs.cat_ranges(["in/none"], [0], [1])[0], FileNotFoundError)
    assert fs.cat(["in/f1", "in/none"], on_error="omit") == {"in/f1": files["in/f1"]}
    with pytest.raises(FileNotFoundError):
        fs.cat(["in/f1", "in/none"])
    assert fs.read_block("in/f100000", 10, 20) == files["in/f100000"][10:30]
    assert fs.head("in/f100000", 9) == files["in/f100000"][:9]
    mapping = fs.get_mapper("in")
    assert mapping["f1"] == files["in/f1"] and mapping.getitems(["f1", "x"], on_error="omit") == {"f1": files["in/f1"]}


def test_names(fs):
    fs.pipe({"a/1": b"one", "a/b/2": b"two", "c": b"three"})
    assert fs.isdir("a") and fs.isfile("c") and not fs.exists("d") and not fs.isdir("c")
    assert fs.ls("a", detail=False) == ["a/1", "a/b"]
    assert {(one["name"], one["type"], one["size"]) for one in fs.ls("")} == {("a", "directory", 0), ("c", "file", 5)}
    assert fs.glob("a/**") and set(fs.glob("*/1")) == {"a/1"} and fs.du("") == 11
    fs.mv("a/1", "a/b/")
    fs.mv("c", "a/b/2")
    assert fs.cat("a", recursive=True) == {"a/b/1": b"one", "a/b/2": b"three"}
    fs.cp_file("a/b/1", "copy")
    fs.copy("a", "other", recursive=True)
    assert fs.cat_file("copy") == b"one" and fs.cat_file("other/b/2") == b"three"
    with pytest.raises(OSError):
        fs.rmdir("a")
    with pytest.raises(IsADirectoryError):
        fs.rm_file("a")
    with pytest.raises(FileNotFoundError):
        fs.rm_file("none")
    fs.rm("a", recursive=True)
    fs.rm(["copy", "other"], recursive=True)
    assert fs.ls("") == []
    fs.touch("new")
    assert fs.size("new") == 0 and fs.modified("new").tzinfo is not None
    with pytest.raises(FileExistsError):
        fs.pipe_file("new", b"x", mode="create")
    marks = fs.ukey("new")
    fs.pipe_file("new", b"x")
    assert fs.ukey("new") != marks
    within = fsspec.implementations.dirfs.DirFileSystem("sub", fs)
    within.pipe_file("x", b"y")
    assert fs.cat_file("sub/x") == b"y"


def test_whole_or_not_at_all(fs, tmp_path):
    with pytest.raises(ZeroDivisionError):
        with fs.open("a", "wb") as file:
            file.write(b"x" * 3_000_000)
            1 / 0
    for mode, compression in (("w", None), ("wb", "gzip"), ("wb", None)):
        with pytest.raises(ZeroDivisionError):
            with fsspec.core.OpenFile(fs, "a", mode, compression) as file:
                file.write("x" if mode == "w" else b"x")
                1 / 0
    fs.open("a", "wb").write(b"forgotten")
    with pytest.raises(ZeroDivisionError):
        with fs.transaction:
            fs.pipe_file("a", b"x")
            1 / 0
    assert fs.ls("") == []
    with fs.transaction:
        with fs.open("b", "w") as file:
            file.write("text")
        fs.pipe_file("c", b"x")
        assert fs.ls("") == []
    assert fs.cat(["b", "c"]) == {"b": b"text", "c": b"x"}
    with fs.open("b") as reader:
        assert reader.read(1) == b"t"
        fs.pipe_file("b", data(3_000_000))
        with pytest.raises(OSError):
            fs.open("b", "xb")
    (tmp_path / "here").write_bytes(data(5000))
    fs.put(str(tmp_path / "here"), "there")
    fs.get("there", str(tmp_path / "down" / "back"))
    out = io.BytesIO()
    fs.get_file("there", out)
    assert (tmp_path / "down" / "back").read_bytes() == out.getvalue() == data(5000)


def test_many_threads(fs):
    fs.pipe({f"t/{i}": data(i * 1000) for i in range(8)})
    failed = []

    def work(number):
        try:
            for i in range(8):
                assert fs.cat_file(f"t/{i}") == data(i * 1000)
                fs.pipe_file(f"t/{number}-{i}", data(i))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(fs.ls("t")) == 8 + 32


def test_stores_that_missed_a_folder_are_said(tmp_path):
    """Of what is new, the file's own version is not all: folders lead to it."""
    stores = Stores(tmp_path)

    def through_a_file(files, name):
        with files.open(name, "wb") as file:
            file.write(b"x")
        return [file.written]

    ways = {
        "put": lambda files, name: [files.put(name, b"x")],
        "in a new folder": lambda files, name: [files.put(f"new/{name}/x", b"x")],
        "a file": through_a_file,
        "many": lambda files, name: files.put_many({f"{name}/{i}": b"x" for i in range(3)}),
        "again": lambda files, name: [files.put("old", b"x")],
    }

    def behind(files):
        """Those that lack the newest version of something."""
        files.flush()
        newest = {}
        for host in stores.hosts:
            for path in host.objects:
                file, leaf = path.split("/")[-2:]
                if leaf.startswith("m-"):
                    newest[file] = max(newest.get(file, ""), leaf[:18])
        return {
            f"faulty://{host.name}/place" for host in stores.hosts
            for file, version in newest.items()
            if not any(path.startswith(f"{host.name}/place/{file}/{version}") for path in host.objects)
        }  # fmt: skip

    said = 0
    try:
        stores.open().put("old", b"x")
        for first, (way, call) in enumerate(ways.items()):
            for puts in range(first % 2, 6, 2):
                files = stores.open()
                assert not behind(files)
                stores.hosts[puts % 3].fail_after(puts, "full")
                written = call(files, f"{way} {puts}")
                lack = behind(files)
                assert all(set(one.missing) == lack for one in written), (way, puts)
                said += len(lack)
                stores.heal()
                assert files.repair().ok
                files.close()
    finally:
        stores.close()
    assert said > 6


def test_a_pipe_that_does_not_block_has_not_ended(fs):
    class Pipe:
        def __init__(self, *parts):
            self.parts = list(parts)

        def read(self, size):
            return self.parts.pop(0)

    with pytest.raises(BlockingIOError):
        fs.flexa.put("file", Pipe(b"x" * 100_000, None))
    assert fs.ls("") == []
    fs.flexa.put("file", Pipe(b"x", b""))
    assert fs.cat_file("file") == b"x"


def test_bad_options(options):
    for wrong in ({}, {"keyring": options["keyring"]}, {**options, "passphrase": "x"}):
        with pytest.raises(TypeError):
            FlexaFileSystem(**wrong, skip_instance_cache=True)


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="no pandas")
def test_pandas_and_pyarrow(options):
    pandas = pytest.importorskip("pandas")
    dataset = pytest.importorskip("pyarrow.dataset")
    frame = pandas.DataFrame({"a": range(20_000), "b": [str(i) for i in range(20_000)]})
    frame.to_parquet("flexa://frames/one.parquet", storage_options=options, row_group_size=5000)
    frame.to_csv("flexa://frames/one.csv", storage_options=options, index=False)
    assert pandas.read_parquet("flexa://frames/one.parquet", storage_options=options).equals(frame)
    assert list(pandas.read_parquet("flexa://frames/one.parquet", storage_options=options, columns=["a"])) == ["a"]
    assert pandas.read_csv("flexa://frames/one.csv", storage_options=options, dtype={"b": str}).equals(frame)
    fs = fsspec.filesystem("flexa", **options)
    found = dataset.dataset("frames/one.parquet", filesystem=fs).to_table(filter=dataset.field("a") == 17_000)
    assert found["b"].to_pylist() == ["17000"]


def test_zarr(options):
    zarr = pytest.importorskip("zarr", reason="no zarr")
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(90_000, dtype="f4").reshape(300, 300)
    made = zarr.create_array("flexa://arrays/a", shape=values.shape, chunks=(100, 100), dtype="f4", storage_options=options)
    made[:] = values
    again = zarr.open_array("flexa://arrays/a", mode="r", storage_options=options)
    assert (again[:] == values).all() and (again[45:206, 99:301] == values[45:206, 99:301]).all()
