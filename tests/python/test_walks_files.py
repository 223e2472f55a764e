# SPDX-License-Identifier: Apache-2.0
"""Random walks over sealed files and objects, against a store that answers what it likes: what is read is of one version,
or an error; what is written is wholly there, or not at all. tests/python/walks.py says how to walk on."""

import contextlib
import gc
import io
import os
import warnings
import zlib

import pytest

fsspec = pytest.importorskip("fsspec", reason="no fsspec")

from fsspec.implementations.memory import MemoryFile  # noqa: E402
from test_fsspec_state import KEY, NO_TAG, Aside, Full, Parts, Store, wrapped  # noqa: E402
from walks import walks  # noqa: E402

import daelstrom  # noqa: E402
import daelstrom.fs  # noqa: E402

FAILS = (OSError, KeyError, *NO_TAG)


def content(chance):
    """Lines, so that all ways to read have something to find; of sizes around segments of 4 KiB."""
    size = chance.choice([0, 1, 4039, 4040, 4041, 8120, chance.randrange(30_000), chance.randrange(30_000)])
    plain = bytearray(chance.randbytes(size))
    for _ in range(size // 700):
        plain[chance.randrange(size)] = 10
    return bytes(plain)


class Seen:
    """What an open file, or one call, has shown so far: the versions that it may be of."""

    def __init__(self, versions):
        self.may, self.shown = list(versions), False

    good = 0  # reads that came to something

    def another(self, version):
        """Which is there now, and may be what it is of if it has shown nothing yet."""
        if not self.shown:
            self.may.append(version)

    def range(self, at, wanted, got):
        """`wanted` bytes from `at` on; None: to the end."""
        self.may = [one for one in self.may if (one[at:] if wanted is None else one[at : at + wanted]) == got]
        self.shown = self.shown or len(got) != 0
        Seen.good += len(got) != 0
        assert self.may, f"{len(got)} bytes at {at} are of no version, or of another one than before"

    def some(self, at, most, got):
        """Any of them, but at the end none."""
        self.may = [one for one in self.may if one[at : at + len(got)] == got and (got or at >= len(one) or most == 0)]
        self.shown = self.shown or len(got) != 0
        Seen.good += len(got) != 0
        assert self.may and len(got) <= most, f"{len(got)} bytes at {at} are of no version, or of another one than before"

    def line(self, at, got):
        self.may = [one for one in self.may if io.BytesIO(one[at:]).readline() == got]
        self.shown = self.shown or len(got) != 0
        Seen.good += len(got) != 0
        assert self.may, f"a line at {at} is of no version, or of another one than before"


def read_on(chance, file, seen):
    """One step of whoever reads."""
    at = file.tell()
    how = chance.randrange(12)
    size = chance.choice([0, 1, 10, 4000, 9000, 70_000])
    if how < 3:
        seen.range(at, size, file.read(size))
    elif how == 3:
        seen.range(at, None, file.read())
    elif how == 4:
        seen.line(at, file.readline())
    elif how == 5:
        into = bytearray(size)
        got = file.readinto(into)
        seen.range(at, size, bytes(into[:got]))
    elif how == 6:
        seen.some(at, 1 << 20, file.peek())
        assert file.tell() == at
    elif how == 7:
        there = chance.randrange(35_000)
        seen.range(there, size, file.read_at(there, size))
    elif how == 8:
        file.verify()
        seen.may = [one for one in seen.may if len(one) == file.size]
        assert seen.may, "verified, and of no version's size"
    elif how == 9:
        back = chance.randrange(1, 9000)
        with contextlib.suppress(ValueError):
            place = file.seek(-back, io.SEEK_END)
            got = file.read(50)
            seen.may = [one for one in seen.may if len(one) - back == place]
            assert seen.may, "counted from an end that is none"
            seen.range(place, 50, got)
    else:
        file.seek(chance.randrange(33_000))


class Liar(Parts):
    """Answers of any version, any length, or an error."""

    def __init__(self, chance):
        super().__init__()
        self.chance, self.kept, self.lies = chance, [], False

    def sealed(self, path):
        return self.store[path].getvalue()

    def put(self, path, whole):
        super().put(path, whole)
        self.kept.append((path, bytes(whole)))

    def info(self, path, **kwargs):
        told = super().info(path, **kwargs)
        if self.lies and self.chance.random() < 0.2:
            whole = self.chance.choice([one for name, one in self.kept if name == path])
            told = dict(told, size=self.chance.choice([len(whole), max(0, len(whole) - 1), 56, 4096 * self.chance.randrange(1, 9)]))
        return told

    def cat_file(self, path, start=None, end=None, **kwargs):
        if not self.lies:
            return super().cat_file(path, start, end, **kwargs)
        how = self.chance.random()
        if how < 0.03:
            raise Full(5, "Input/output error")
        whole = self.sealed(path)
        if how < 0.3:
            whole = self.chance.choice([one for name, one in self.kept if name == path])
        part = whole[start:end]
        if how < 0.33 and part:
            part = part[: self.chance.randrange(len(part))]
        elif how < 0.36:
            part = part + b"\0"
        elif how < 0.4 and part:
            bad = bytearray(part)
            bad[self.chance.randrange(len(bad))] ^= 1 << self.chance.randrange(8)
            part = bytes(bad)
        return part


def test_reading_from_a_store_that_lies():
    before = Seen.good
    for chance in walks("fsspec reads", 60):
        target = Liar(chance)
        fs = wrapped(target, segment="4K")
        paths, versions = ["/a", "/b"], {"/a": [], "/b": []}
        for path in paths:
            for _ in range(chance.randrange(1, 4)):
                versions[path].append(content(chance))
                fs.pipe_file(path, versions[path][-1])
        target.lies = True
        for _ in range(6):
            path = chance.choice(paths)
            with contextlib.suppress(*FAILS):
                file = fs.open(path, block_size=chance.choice([1, 4096, None]))
                seen = Seen(versions[path])
                for _ in range(12):
                    if chance.random() < 0.1:
                        versions[path].append(content(chance))
                        target.lies = False
                        wrapped(target, segment="4K").pipe_file(path, versions[path][-1])
                        target.lies = True
                        seen.another(versions[path][-1])
                    with contextlib.suppress(*FAILS):
                        read_on(chance, file, seen)
                    if chance.random() < 0.05:
                        file.close()
                        with pytest.raises(ValueError, match="closed"):
                            file.read()
                        break
            asked = [(chance.choice(paths), chance.randrange(33_000), chance.randrange(33_000)) for _ in range(4)]
            got = fs.cat_ranges(*map(list, zip(*asked)), max_gap=chance.choice([None, 5000]))
            seen = {path: Seen(versions[path]) for path in paths}
            for (path, start, end), one in zip(asked, got):
                if isinstance(one, Exception):
                    assert isinstance(one, FAILS), repr(one)
                else:
                    seen[path].range(start, max(0, end - start), one)
            with contextlib.suppress(*FAILS):
                start, end = chance.choice([(None, None), (-50, None), (-9000, -20), (100, None), (None, -4000)])
                got = fs.cat_file(path, start, end)
                assert got in [one[start:end] for one in versions[path]]
            with contextlib.suppress(*FAILS):
                assert fs.cat(paths, on_error="return").keys() == set(paths)
            for name, one in fs.get_mapper("/").getitems(["a", "b", "none"], on_error="return").items():
                assert isinstance(one, Exception) or one in versions["/" + name]
    assert Seen.good > before


@pytest.mark.parametrize("packed", [None, "gzip"])
def test_text_from_a_store_that_lies(packed):
    """From where somebody sought to, it has no hole, whatever failed meanwhile."""
    good = refused = 0
    for chance in walks(f"fsspec text, {packed}", 150):
        target = Liar(chance)
        fs = wrapped(target, segment="4K")
        versions = []
        for _ in range(chance.randrange(1, 4)):
            versions.append("".join("\n" if one < 1 else chr(32 + one % 90) for one in content(chance)))
            with fs.open("/a", "w", compression=packed, newline="\n") as file:
                file.write(versions[-1])
        target.lies = True
        for _ in range(8):
            with contextlib.suppress(*FAILS):
                file = fs.open("/a", "r", compression=packed, newline="\n", block_size=chance.choice([1, 4096, None]))
                may, read, failed = list(versions), "", False
                for _ in range(15):
                    size, how = chance.choice([1, 100, 4000, 20_000]), chance.randrange(6)
                    try:
                        if how == 0 or (failed and chance.random() < 0.3):
                            file.seek(0)
                            read, failed = "", False
                            continue
                        got = file.readline() if how < 3 else next(file) if how == 3 else file.read(size) if how == 4 else file.read()
                    except StopIteration:
                        got, how = "", 5
                    except (*FAILS, ValueError, EOFError, zlib.error) as error:
                        refused += "an exception cost" in str(error)
                        failed = True
                        continue
                    read += got
                    good += len(got) != 0
                    may = [one for one in may if (one == read if how == 5 else one.startswith(read))]
                    assert may, f"{len(got)} characters are of no version, of another one than before, or not those that come next"
    assert good and refused


def write_on(chance, begin, whole):
    """Writes all of something by one of many ways, and ends well or badly; whether it ended well."""
    how = chance.choice(["wb", "wb", "w", "gzip", "bz2", "gzip w"])
    plain = whole if how == "wb" else bytes(32 + one % 90 for one in whole)
    pieces = sorted(chance.randrange(len(plain) + 1) for _ in range(chance.randrange(4)))
    ends = chance.choice(["with", "with", "close", "raise", "discard", "forget"])
    done = False
    with warnings.catch_warnings(), contextlib.suppress(Full, ZeroDivisionError, FileExistsError):
        warnings.simplefilter("ignore", ResourceWarning)
        file = begin("w" if how.endswith("w") else "wb", how.split()[0] if how[0] in "gb" else None)
        with contextlib.ExitStack() as stack:
            if ends in ("with", "raise"):
                stack.enter_context(file)
            at = 0
            for to in [*pieces, len(plain)]:
                file.write(plain[at:to].decode("latin-1") if how.endswith("w") else plain[at:to])
                at = to
            if ends == "raise":
                raise ZeroDivisionError
            if ends == "discard":
                file.discard()
            if ends == "close":
                file.close()
        done = ends in ("with", "close")
    if ends == "forget":
        file = None
        gc.collect()
    packed = "gzip" if "gzip" in how else "bz2" if "bz2" in how else None
    return (plain, packed) if done else None


def opens(fs, path):
    return lambda mode, packed: fs.open(path, mode, compression=packed, **({"encoding": "latin-1"} if mode == "w" else {}))


@pytest.mark.parametrize("kind", ["memory", "parts", "local"])
def test_writing_to_targets_that_fail(kind, tmp_path):
    for chance in walks(f"fsspec writes, {kind}", 6):
        target = {"memory": Store, "parts": Parts, "local": lambda: fsspec.filesystem("file")}[kind]()
        fs = wrapped(Aside(target) if kind == "parts" else target, segment=chance.choice(["4K", "1M"]))
        folder = str(tmp_path) if kind == "local" else ""
        is_there = {}

        def there(path, fs=fs, is_there=is_there):
            if path not in is_there:
                assert not fs.exists(path)
                return
            plain, packed = is_there[path]
            with fs.open(path, compression=packed) as file:
                assert file.read() == plain

        for path in (f"{folder}/a", f"{folder}/b"):
            with contextlib.suppress(FileNotFoundError):
                fs.rm_file(path)
        for _ in range(10):
            path = f"{folder}/{chance.choice('ab')}"
            if kind == "parts" and chance.random() < 0.4:
                target.fails = chance.randrange(2)
            whole = chance.randbytes(chance.choice([0, 10, 5000, 200_000]))
            if chance.random() < 0.3:
                wrote = {}
                with contextlib.suppress(LookupError), fs.transaction:
                    for one in {path, f"{folder}/{chance.choice('ab')}"}:
                        if ended := write_on(chance, opens(fs, one), whole):
                            wrote[one] = ended
                        there(one)
                    # A file that nobody closed is not finished, and neither is what it is a part of.
                    if chance.random() < 0.5 or not all(file.closed for file in fs.transaction.files):
                        wrote.clear()
                        raise LookupError
                is_there.update(wrote)
            else:
                if ended := write_on(chance, opens(fs, path), whole):
                    is_there[path] = ended
            if kind == "parts":
                target.fails = None
                assert target.under_way == 0
            for one in (f"{folder}/a", f"{folder}/b"):
                there(one)
            if kind == "local":
                assert set(os.listdir(folder)) == {os.path.basename(one) for one in is_there}


def test_files_that_change_under_their_readers(tmp_path):
    path = tmp_path / "file"
    for chance in walks("sealed files", 15):
        versions, sealed = [], []
        for _ in range(2):
            versions.append(content(chance))
            with daelstrom.open(path, "wb", key=KEY, segment="4K") as file:
                file.write(versions[-1])
            sealed.append(path.read_bytes())
        for _ in range(4):
            with contextlib.suppress(*FAILS), daelstrom.open(path, key=KEY) as file:
                seen = Seen(versions)
                for _ in range(15):
                    if chance.random() < 0.15:  # in place, as nobody should
                        whole = bytearray(chance.choice(sealed))
                        if chance.random() < 0.5 and whole:
                            whole[chance.randrange(len(whole))] ^= 1
                        path.write_bytes(whole[: chance.choice([len(whole), chance.randrange(len(whole) + 1)])])
                    with contextlib.suppress(*FAILS):
                        read_on(chance, file, seen)
            path.write_bytes(sealed[-1])
