# SPDX-License-Identifier: Apache-2.0
"""What becomes of open files of a mount whose names go, come back and lead elsewhere, and of what is written to them."""

import errno
import os
import subprocess
import threading
import time

import pytest

pytest.importorskip("fsspec", reason="no fsspec")
from flexa_mounts import UNMOUNT, away, begun, calls, data, ended, made, mounted, soon  # noqa: E402

from daelstrom.flexa import FlexA  # noqa: E402

WRITE = os.O_WRONLY
HIDDEN = "/.fuse_hidden0000000200000001"


def put(mount, number, words, at=0):
    assert mount.write("/", words, at, number) == len(words)
    mount.flush("/", number)


def test_a_removed_name_is_free(tmp_path):
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        for flags in (0, os.O_EXCL):
            old = mount.create("/file", 0o600, WRITE)
            put(mount, old, b"old")
            mount.unlink("/file")
            new = mount.create("/file", 0o600, WRITE | flags)
            put(mount, new, b"new")
            assert flexa.cat("file") == b"new"
            put(mount, old, b"nowhere")
            mount.release("/file", new)
            mount.release("/file", old)
            assert flexa.cat("file") == b"new" and not mount._drafts
            mount.unlink("/file")
            assert not flexa.exists("file")


def test_who_comes_after_a_failure_begins_anew(tmp_path):
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        flexa.put("there", b"as it was")
        for name, old in (("/there", b"as it was"), ("/file", None)):
            first = mount.create(name, 0o600, WRITE) if old is None else mount.open(name, WRITE)
            mount.write(name, b"first", 0, first)
            with away(tmp_path), pytest.raises(OSError):
                mount.flush(name, first)
            with pytest.raises(OSError):
                mount.flush(name, first)
            if old is not None:
                assert mount.getattr(name)["st_size"] == len(old)
                back = mount.open(name, os.O_RDONLY)
                assert mount.read(name, 100, 0, back) == old
                mount.release(name, back)
            second = mount.create(name, 0o600, WRITE) if old is None else mount.open(name, WRITE | os.O_TRUNC)
            put(mount, second, b"second")
            mount.release(name, first)
            mount.release(name, second)
            assert flexa.cat(name[1:]) == b"second" and not mount._drafts


def test_who_comes_amid_an_end_that_fails(tmp_path):
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        first = mount.create("/file", 0o600, WRITE)
        mount.write("/file", b"first", 0, first)
        draft, amid, goes_on = mount._drafts["file"], threading.Event(), threading.Event()

        def fails():
            amid.set()
            goes_on.wait(60)
            draft.failed = OSError(errno.EIO, "for this")
            raise draft.failed

        draft.commit = fails
        ends = begun(lambda: pytest.raises(OSError, mount.release, "/file", first))
        amid.wait(60)
        numbers = []
        comes = begun(lambda: numbers.append(mount.create("/file", 0o600, WRITE)))
        time.sleep(0.2)
        goes_on.set()
        ended(ends, comes)
        put(mount, numbers[0], b"second")
        mount.release("/file", numbers[0])
        assert flexa.cat("file") == b"second" and not mount._drafts


def test_an_open_that_fails_leaves_nothing(tmp_path):
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        flexa.put("file", b"file")
        first = mount.open("/file", WRITE)
        mount._drafts["file"].anew = mount._drafts["file"].truncate = lambda *size: 1 / 0
        with pytest.raises(OSError):
            mount.open("/file", WRITE | os.O_TRUNC)
        mount.release("/file", first)
        assert not mount._drafts
        number = mount.open("/file", WRITE)
        put(mount, number, b"anew")
        mount.release("/file", number)
        assert flexa.cat("file") == b"anew"


def test_what_is_written_amid_a_rename(tmp_path):
    """A folder's too; and what was replaced is not written over it."""
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        flexa.mkdir("d")
        real = flexa.mv
        for old, new, to in (("/a", "/b", "/b"), ("/d/a", "/e/a", "/e/a"), ("/b", "/c", "/c")):
            if not flexa.exists(old[1:]):
                mount.release(old, mount.create(old, 0o600, WRITE))
            number = mount.open(old, WRITE)
            mount.write(old, b"1", 0, number)
            gone = mount.create("/c", 0o600, WRITE) if new == "/c" else None
            said = []

            def amid(*names, number=number, gone=gone, said=said, **how):
                real(*names, **how)
                both = [begun(lambda one=one: said.append(put(mount, one, b"2", 1))) for one in (number, gone) if one]
                time.sleep(0.3)
                said.append(both)

            flexa.mv = amid
            if new == "/e/a":
                mount.rename("/d", "/e")
            else:
                mount.rename(old, new)
            flexa.mv = real
            ended(*next(one for one in said if one))
            assert len(said) == 2 + bool(gone) and flexa.cat(to[1:]) == b"12" and not flexa.exists(old[1:])
            for one in (number, gone):
                if one:
                    mount.release(new, one)
            assert flexa.cat(to[1:]) == b"12" and not mount._drafts


def test_a_name_that_cannot_be_taken_stays(tmp_path):
    """libfuse hides what is open before something else takes its name."""
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        flexa.put("target", b"target")
        flexa.put("source", b"source")
        real = flexa.mv

        def fails(old, new, **how):
            if old == "source":
                raise OSError(errno.EIO, "for this")
            real(old, new, **how)

        for flags in (os.O_RDONLY, os.O_RDWR):
            number = mount.open("/target", flags)
            if flags:
                mount.write("/target", b"changed", 0, number)
            flexa.mv = fails
            mount.rename("/target", HIDDEN)
            with pytest.raises(OSError):
                mount.rename("/source", "/target")
            flexa.mv = real
            assert flexa.cat("target") == b"target" and mount.getattr(HIDDEN)["st_size"] == (7 if flags else 6)
            assert mount.read("/target", 100, 0, number) == (b"changed" if flags else b"target")
            again = mount.open(HIDDEN, os.O_RDONLY)  # by a kernel that knows it by that name yet
            mount.release("/", again)
            mount.flush("/", number)
            mount.release("/", number)
            mount.unlink(HIDDEN)
            assert flexa.cat("target") == (b"changed" if flags else b"target")
        # Nor does it where it cannot be given back yet.
        number = mount.open("/target", os.O_RDONLY)
        mount.rename("/target", HIDDEN)
        flexa.mv = lambda *names, **how: 1 / 0
        with pytest.raises(OSError):
            mount.rename("/source", "/target")
        flexa.mv = real
        mount.release("/", number)
        mount.unlink(HIDDEN)
        assert flexa.cat("target") == b"changed"
        # What was removed is not given back for another's failure.
        number = mount.open("/target", os.O_RDONLY)
        mount.rename("/target", HIDDEN)
        mount.getattr("/source")
        flexa.mv = fails
        with pytest.raises(OSError):
            mount.rename("/source", "/target")
        flexa.mv = real
        mount.release("/", number)
        mount.unlink(HIDDEN)
        assert [one.name for one in flexa.ls()] == ["source"]


def test_a_failed_file_is_moved_over_an_open_one(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        (folder / "target").write_bytes(b"as it was")
        with open(folder / "target", "rb") as back:
            out = os.open(folder / "source", os.O_WRONLY | os.O_CREAT)
            os.write(out, b"x")
            with away(tmp_path), pytest.raises(OSError):
                os.fsync(out)
            with pytest.raises(OSError):
                os.rename(folder / "source", folder / "target")
            with pytest.raises(OSError):
                os.close(out)
            assert back.read() == b"as it was"
        soon(lambda: os.listdir(folder) == ["target"])
        assert flexa.cat("target") == b"as it was" == (folder / "target").read_bytes()


def test_a_file_without_a_name(tmp_path):
    """As temporary ones are: it is nobody else's, and goes to no store."""
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        before = flexa.info("").version
        with open(folder / "file", "w+b", buffering=0) as file:
            os.unlink(folder / "file")
            for i in range(6):
                file.write(data(1_000_000, i))
            os.fsync(file.fileno())
            assert os.listdir(folder) == [] and os.fstat(file.fileno()).st_size == 6_000_000
            assert os.pread(file.fileno(), 1_000_000, 3_000_000) == data(1_000_000, 3)
            os.ftruncate(file.fileno(), 10)
            assert file.seek(0, 2) == 10 and os.pread(file.fileno(), 20, 0) == data(1_000_000)[:10]
        assert flexa.info("").version == before and flexa.ls() == []
        # What was there before, too, is read and changed until it is closed.
        (folder / "file").write_bytes(data(5_000_000))
        with open(folder / "file", "r+b", buffering=0) as file:
            os.rename(folder / "file", folder / "other")
            (folder / "file").write_bytes(b"another")
            os.unlink(folder / "other")
            os.pwrite(file.fileno(), b"in", 1000)
            assert os.pread(file.fileno(), 5_000_000, 0) == data(5_000_000)[:1000] + b"in" + data(5_000_000)[1002:]
        soon(lambda: [one.name for one in flexa.ls()] == ["file"])
        assert flexa.cat("file") == b"another"


def test_somebody_else_writes_it_too(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        log = folder / "log"
        flexa.put("log", b"1\n")
        assert log.stat().st_size == 2  # which the kernel keeps for a while
        flexa.put("log", b"1\n2\n")
        with open(log, "ab") as file:
            file.write(b"3\n")
        assert flexa.cat("log") == b"1\n2\n3\n" == log.read_bytes()
        # What is changed in place is what was opened.
        file = os.open(log, os.O_RDWR)
        flexa.put("log", b"others'")
        with pytest.raises(OSError):
            os.pwrite(file, b"mine", 0)
            os.fsync(file)
        with pytest.raises(OSError):
            os.close(file)
        assert flexa.cat("log") == b"others'"
        # Whoever writes all of it does so.
        file = os.open(log, os.O_WRONLY | os.O_TRUNC)
        flexa.put("log", b"others' again")
        os.write(file, b"mine")
        os.close(file)
        assert flexa.cat("log") == b"mine"
        # A folder that is a file by now.
        (folder / "name").mkdir()
        flexa.rm("name")
        flexa.put("name", b"file")
        with pytest.raises(NotADirectoryError):
            os.rmdir(folder / "name")
        assert flexa.cat("name") == b"file"
        # A file that is read while it is replaced: of one version, or not at all.
        (folder / "large").write_bytes(data(9_000_000))
        with open(folder / "large", "rb", buffering=0) as back:
            got = back.read(1000)
            flexa.put("large", data(9_000_000, 1))
            flexa.flush()
            try:
                while part := back.read(1_000_000):
                    got += part
                assert got == data(9_000_000)
            except OSError:
                assert got == data(9_000_000)[: len(got)]


def test_names_of_any_bytes(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        name = os.fsencode(folder) + b"/\xff\xe9"
        with open(name, "wb") as file:
            file.write(b"x")
        assert os.listdir(os.fsencode(folder)) == [b"\xff\xe9"] and flexa.cat("\udcff\udce9") == b"x"
        for long in (lambda: os.mkdir(folder / ("n" * 256)), lambda: os.rename(name, folder / ("n" * 256))):
            with pytest.raises(OSError) as told:
                long()
            assert told.value.errno == errno.ENAMETOOLONG


def test_a_large_file_is_begun_anew_while_it_is_open(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path, most=5_000_000) as folder:
        with open(folder / "file", "wb", buffering=0) as file:
            for i in range(7):
                file.write(data(1_000_000, i))
            file.truncate(0)
            file.seek(0)
            file.write(data(1_000_000))
        assert flexa.cat("file") == data(1_000_000)


def test_unmounted_with_open_files(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        with open(folder / "file", "wb") as file:
            file.write(data(100_000))
            file.flush()
            assert subprocess.run([UNMOUNT, "-u", folder], capture_output=True).returncode
        assert flexa.cat("file") == data(100_000)


def test_a_short_read_is_an_error(tmp_path):
    """To the kernel it would be the file's end."""
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        flexa.put("file", b"0123456789")
        number = mount.open("/file", os.O_RDONLY)
        assert mount.read("/file", 100, 5, number) == b"56789" and mount.read("/file", 100, 10, number) == b""
        mount._handles[number].file = type("", (), {"seek": lambda *of: 0, "read": lambda *of: b"0", "name": "file", "close": lambda of: 0})()
        with pytest.raises(OSError):
            mount.read("/file", 100, 0, number)
        mount.release("/file", number)


def test_with_another_that_cannot_write(tmp_path):
    with made(tmp_path) as flexa:
        flexa.put("d/file", b"x")
        flexa.share("d", tmp_path / "share")
        with FlexA.of_share(tmp_path / "share", seen=False) as theirs, calls(tmp_path, theirs) as mount:
            for call in (
                lambda: mount.create("/new", 0o600, WRITE), lambda: mount.open("/file", WRITE), lambda: mount.unlink("/file"),
                lambda: mount.rename("/file", "/new"), lambda: mount.mkdir("/new", 0o700), lambda: mount.truncate("/file", 0),
            ):  # fmt: skip
                with pytest.raises(OSError) as told:
                    call()
                assert told.value.errno == errno.EROFS
            number = mount.open("/file", os.O_RDONLY)
            assert mount.read("/file", 10, 0, number) == b"x"
            mount.release("/file", number)


def test_two_versions_are_open(tmp_path):
    """The kernel keeps one set of pages for both of them."""
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        versions = [data(30_000, i) for i in range(4)]
        (folder / "file").write_bytes(versions[0])
        with open(folder / "file", "rb", buffering=0) as old:
            flexa.put("file", versions[1])
            with open(folder / "file", "rb", buffering=0) as new:
                try:
                    assert old.read() == versions[0]
                except OSError as error:
                    assert error.errno == errno.ESTALE
                assert new.read() == versions[1]
        # What was written and is not there, nobody reads.
        out = os.open(folder / "file", os.O_RDWR)
        assert os.pread(out, 30_000, 0) == versions[1]
        os.pwrite(out, b"never there", 100)
        with away(tmp_path), pytest.raises(OSError):
            os.fsync(out)
        assert (folder / "file").read_bytes() == versions[1]
        with pytest.raises(OSError):
            os.close(out)
        assert (folder / "file").read_bytes() == versions[1] == flexa.cat("file")
        # Through this mount a file is changed under those who read it, as elsewhere.
        with open(folder / "file", "rb", buffering=0) as back, open(folder / "file", "r+b", buffering=0) as out:
            out.write(versions[2][:10_000])
            assert back.read() == versions[2][:10_000] + versions[1][10_000:]
            out.write(versions[2][10_000:])
            out.close()
            assert os.pread(back.fileno(), 30_000, 0) == versions[2]
            (folder / "file").write_bytes(versions[3] + b"more")
            assert os.pread(back.fileno(), 40_000, 0) == versions[3] + b"more"


def test_who_only_reads_ends_nothing(tmp_path):
    """What another is writing yet becomes no version when a reader closes."""
    with made(tmp_path) as flexa, calls(tmp_path, flexa, most=5_000_000) as mount:
        for pieces in (2, 7):  # kept, and on its way
            name = f"/{pieces}"
            out = mount.create(name, 0o600, WRITE)
            for i in range(pieces):
                mount.write(name, data(1_000_000, i), i * 1_000_000, out)
            back = mount.open(name, os.O_RDONLY)
            mount.flush(name, back)
            mount.release(name, back)
            assert not flexa.exists(name[1:])
            put(mount, out, b"end", pieces * 1_000_000)
            mount.release(name, out)
            assert flexa.cat(name[1:]) == b"".join(data(1_000_000, i) for i in range(pieces)) + b"end" and not mount._drafts
            assert flexa.info(name[1:]).version == 1


def test_listings_are_believed_for_longer_than_the_machine_is_up(tmp_path):
    with made(tmp_path) as flexa, calls(tmp_path, flexa, refresh=1e12) as mount:
        flexa.put("file", b"x")
        assert mount.getattr("/file")["st_size"] == 1 and "file" in mount.readdir("/", 0)


def test_emptied_by_who_opens_it(tmp_path):
    """The kernel knows its size then, and asks no more."""
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        flexa.put("file", b"as it was")
        mount.getattr("/file")
        number = mount.open("/file", WRITE | os.O_TRUNC)
        put(mount, number, b"new")
        mount.release("/file", number)
        number = mount.open("/file", os.O_RDONLY)
        assert mount.read("/file", 10, 0, number) == b"new"
        mount.release("/file", number)


def test_many_files_are_opened_beside_one(tmp_path, monkeypatch):
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        monkeypatch.setattr("daelstrom.flexa._pages._MOST", 3)
        flexa.put_many({str(i): b"x" for i in range(6)})
        number = mount.open("/0", os.O_RDONLY)
        for i in range(1, 6):
            mount.release("/", mount.open(f"/{i}", os.O_RDONLY))
            assert mount.read("/0", 1, 0, number) == b"x"
        mount.release("/0", number)


def test_who_reads_amid_an_end(tmp_path):
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        flexa.put("file", b"old")
        back = mount.open("/file", os.O_RDONLY)
        assert mount.read("/file", 3, 0, back) == b"old"
        out = mount.open("/file", WRITE | os.O_TRUNC)
        mount.write("/file", b"new", 0, out)
        real, got, threads = mount._pages.written, [], []

        def amid(*of):
            threads.append(begun(lambda: got.append(mount.read("/file", 3, 0, back))))
            time.sleep(0.3)
            real(*of)

        mount._pages.written = amid
        mount.flush("/file", out)
        ended(*threads)
        assert got == [b"new"]
        mount.release("/file", out)
        mount.release("/file", back)


def test_a_folder_moves_with_what_is_hidden_in_it(tmp_path):
    with made(tmp_path) as flexa, calls(tmp_path, flexa) as mount:
        flexa.put_many({"d/target": b"target", "source": b"x"})
        number = mount.open("/d/target", os.O_RDONLY)
        mount.rename("/d/target", "/d" + HIDDEN)
        real = flexa.mv
        flexa.mv = lambda old, new, **how: 1 / 0 if old == "source" else real(old, new, **how)
        with pytest.raises(OSError):
            mount.rename("/source", "/d/target")
        mount.rename("/d", "/e")
        assert mount.getattr("/e" + HIDDEN)["st_size"] == 6 and mount.read("/", 10, 0, number) == b"target"
        mount.release("/", number)
        mount.unlink("/e" + HIDDEN)
        assert flexa.cat("e/target") == b"target" and not mount._hidden
