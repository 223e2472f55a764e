# SPDX-License-Identifier: Apache-2.0
"""FlexA as a mounted folder, by the programs that people use, and what of a file is written when."""

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import threading

import pytest

pytest.importorskip("fsspec", reason="no fsspec")
from flexa_mounts import away, data, made, mounted, run, soon  # noqa: E402

from daelstrom.flexa import FlexA, Unavailable  # noqa: E402
from daelstrom.flexa.draft import Draft, Spool  # noqa: E402


def test_programs(tmp_path):
    source = tmp_path / "source"
    for i in range(6):
        (source / f"d{i % 2}").mkdir(parents=True, exist_ok=True)
        (source / f"d{i % 2}" / f"f{i}").write_bytes(data(i * 40_000))
    (source / "large").write_bytes(data(9_000_001))
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        run("cp", "-r", source, folder / "copied")
        run("diff", "-r", source, folder / "copied")
        assert flexa.cat("copied/large") == data(9_000_001) and flexa.info("copied/large").version == 1
        run("mv", folder / "copied" / "large", folder / "copied" / "d0" / "moved")
        run("cp", folder / "copied" / "d0" / "moved", folder / "copied" / "large")
        run("sh", "-c", f"tar cf - -C {source} . | tar xf - -C {folder / 'copied'}")
        run("rm", folder / "copied" / "d0" / "moved")
        run("diff", "-r", source, folder / "copied")
        before = flexa.info("copied/large").version
        run("cp", source / "large", folder / "copied" / "large")
        assert flexa.info("copied/large").version == before + 1  # from one whole version to the next
        if shutil.which("rsync"):
            run("rsync", "-a", f"{source}/", folder / "synced")
            (source / "d0" / "f0").write_bytes(b"other")
            run("rsync", "-a", "--delete", f"{source}/", folder / "synced")
            run("diff", "-r", source, folder / "synced")
        repository = tmp_path / "repository"
        run("git", "init", "-q", "-b", "main", repository)
        shutil.copytree(source / "d1", repository / "d1")
        run("git", "-C", repository, "add", ".")
        run("git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x")
        run("git", "clone", "-q", "--no-hardlinks", "--template=", repository, folder / "clone")
        assert run("git", "-C", folder / "clone", "status", "--short") == ""
        run("git", "-C", folder / "clone", "fsck")
        import sqlite3

        with contextlib.closing(sqlite3.connect(tmp_path / "base")) as base:
            base.execute("create table t(a)")
            base.executemany("insert into t values (?)", [(i,) for i in range(5000)])
            base.commit()
        shutil.copy(tmp_path / "base", folder / "base")
        with contextlib.closing(sqlite3.connect(f"file:{folder}/base?mode=ro", uri=True)) as base:
            assert base.execute("select sum(a), count(*) from t where a > 100").fetchone() == (sum(range(101, 5000)), 4899)
        assert os.statvfs(folder).f_blocks > 0 and {one.name for one in flexa.ls()} >= {"copied", "clone", "base"}
        run("rm", "-r", folder / "copied")
        assert not flexa.exists("copied")


def test_what_is_written_when(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        file = folder / "file"
        with open(file, "wb") as out:
            out.write(b"x" * 6_000_000)  # some of it is on its way already
            out.flush()
            assert not flexa.exists("file") and file.stat().st_size == 6_000_000
            with open(file, "rb") as back:
                assert back.read(3) == b"xxx"
        assert flexa.cat("file") == b"x" * 6_000_000
        # In place: a new version when it is closed, the old one until then.
        with open(file, "r+b") as out:
            out.seek(1000)
            out.write(b"inside")
            out.flush()
            assert flexa.cat("file", 1000, 1006) == b"xxxxxx"
            os.fsync(out.fileno())
            assert flexa.cat("file", 1000, 1006) == b"inside"
            out.seek(0, 2)
            out.write(b"end")
        assert flexa.info("file").size == 6_000_003 and flexa.cat("file", -3) == b"end"
        run("sh", "-c", f"printf more >> {file}")
        assert flexa.cat("file", -7) == b"endmore"
        os.truncate(file, 5)
        assert flexa.cat("file") == b"xxxxx" == file.read_bytes()
        # By a shell, whose own descriptor is closed before anything is written.
        run("sh", "-c", f"(sleep 0.2; echo later) > {file}")
        assert flexa.cat("file") == b"later\n"
        file.touch()
        (folder / "empty").touch()
        with open(folder / "sparse", "wb") as out:
            out.seek(3_000_000)
            out.write(b"!")
        assert flexa.cat("sparse") == bytes(3_000_000) + b"!"
        with open(folder / "back", "w+b") as out:  # as git's packs are
            out.write(data(2_000_000))
            assert os.pread(out.fileno(), 500_000, 1_000_000) == data(2_000_000)[1_000_000:1_500_000]
        # Renamed over, while it is open, and removed.
        with open(folder / "new", "wb") as out:
            out.write(b"new")
            os.rename(folder / "new", file)
            out.write(b"er")
        assert flexa.cat("file") == b"newer" and not flexa.exists("new")
        with open(folder / "gone", "wb") as out:
            out.write(b"gone")
            os.unlink(folder / "gone")
            out.write(b"gone")
        soon(lambda: sorted(os.listdir(folder)) == sorted(one.name for one in flexa.ls()) == ["back", "empty", "file", "sparse"])
        for error, call in (
            (FileNotFoundError, lambda: os.unlink(folder / "none")),
            (FileNotFoundError, lambda: open(folder / "no" / "file", "w")),
            (PermissionError, lambda: os.symlink("a", folder / "link")),
            (PermissionError, lambda: os.link(file, folder / "link")),
            (OSError, lambda: open(folder / ("n" * 256), "w")),
            (NotADirectoryError, lambda: os.rmdir(file)),
        ):
            with pytest.raises(error):
                call()
        (folder / "a" / "b").mkdir(parents=True)
        with pytest.raises(OSError, match="not empty"):
            os.rmdir(folder / "a")
        os.rename(folder / "a", folder / "c")
        (folder / "c" / "b" / "f").write_bytes(b"x")
        # Somebody else's.
        flexa.put("c/other", b"theirs")
        soon((folder / "c" / "other").exists)
        assert (folder / "c" / "other").read_bytes() == b"theirs"


def test_a_store_goes_while_it_is_mounted(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        (folder / "before").write_bytes(data(12_000_000))
        with open(folder / "during", "wb") as out, open(folder / "before", "rb") as back:
            out.write(data(8_000_000))
            assert back.read(1000) == data(12_000_000)[:1000]
            os.rename(tmp_path / "store1", tmp_path / "away")
            out.write(data(8_000_000))
            assert back.read() == data(12_000_000)[1000:]
        assert (folder / "during").read_bytes() == data(8_000_000) * 2
        os.rename(tmp_path / "store2", tmp_path / "away2")
        with pytest.raises(OSError):
            (folder / "nowhere").write_bytes(b"x")
        os.rename(tmp_path / "away2", tmp_path / "store2")
        os.rename(tmp_path / "away", tmp_path / "store1")
    with FlexA(keyring=str(tmp_path / "keyring"), passphrase="x", seen=False) as again:
        again.repair()
        assert again.verify().ok and not again.exists("nowhere")


def test_a_mount_is_killed_amid_a_write(tmp_path):
    with made(tmp_path) as flexa:
        flexa.put("file", b"old")
        with pytest.raises((subprocess.CalledProcessError, OSError)), mounted(tmp_path) as folder:
            with open(folder / "file", "wb", buffering=0) as out:
                out.write(data(9_000_000))
                process = next(int(one) for one in os.listdir("/proc") if one.isdigit() and _is(one, str(folder)))
                os.kill(process, signal.SIGKILL)
                out.write(data(1_000_000))
        assert flexa.cat("file") == b"old"


def _is(number, folder):
    with contextlib.suppress(OSError):
        with open(f"/proc/{number}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        return folder.encode() in words and b"mount" in words
    return False


def test_large_files_are_not_kept(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path, most=5_000_000) as folder:
        with open(folder / "file", "wb") as out:
            for i in range(10):
                out.write(data(1_000_000, i))
            out.flush()
            with pytest.raises(OSError):
                os.pwrite(out.fileno(), b"x", 5)
        whole = b"".join(data(1_000_000, i) for i in range(10))
        assert (folder / "file").read_bytes() == whole == flexa.cat("file")


def test_random_writes_against_a_model(tmp_path):
    """A draft and its spool: writes, reads and truncations anywhere, with commits between them."""
    source = random.Random(5)
    with made(tmp_path) as flexa:
        for round in range(4):
            name = f"f{round}"
            draft = Draft(flexa, name, new=True, folder=str(tmp_path), most=1 << 30)
            model = bytearray()
            for step in range(40):
                kind = source.randrange(10)
                if kind < 6:
                    at = len(model) if source.random() < 0.6 else source.randrange(len(model) + 100_000)
                    written = source.randbytes(source.choice((1, 4096, 131072, 1_500_000)))
                    draft.write(at, written)
                    if len(model) < at:
                        model += bytes(at - len(model))
                    model[at : at + len(written)] = written
                elif kind < 8:
                    at, size = source.randrange(len(model) + 10), source.choice((1, 70_000, 2_000_000))
                    assert draft.read(at, size) == model[at : at + size]
                elif kind == 8:
                    size = source.choice((0, len(model) // 2, len(model) + 70_000))
                    draft.truncate(size)
                    model = model[:size] + bytes(max(0, size - len(model)))
                else:
                    draft.commit()
                    assert flexa.cat(name) == model
            draft.commit()
            draft.close()
            assert flexa.cat(name) == model


def test_a_commit_that_fails_leaves_what_was(tmp_path):
    """By whatever it fails, in whichever state: nothing of it is committed later."""
    with made(tmp_path) as flexa:
        for most in (1 << 20, 1 << 30):
            for error in (RuntimeError("disk"), MemoryError(), OSError(5, "x")):
                flexa.put("file", b"old content")
                draft = Draft(flexa, "file", new=False, folder=str(tmp_path), most=most)
                draft.truncate(0)
                for i in range(5):
                    draft.write(i << 20, data(1 << 20))
                real, flexa._client.seen.accept = flexa._client.seen.accept, lambda *of, error=error: _raise(error)
                with pytest.raises(type(error)):
                    draft.commit()
                flexa._client.seen.accept = real
                for _ in range(2):
                    with pytest.raises(OSError):
                        draft.commit()
                    with pytest.raises(OSError):
                        draft.write(0, b"x")
                draft.close()
                assert len(flexa.cat("file")) in (11, 5 << 20)  # what the stores have decided, never less


def _raise(error):
    raise error


def test_two_change_a_file_in_place(tmp_path):
    with made(tmp_path) as flexa, FlexA(keyring=str(tmp_path / "keyring"), passphrase="x", seen=False) as other:
        flexa.put("file", b"a" * 10)
        one, two = (Draft(at, "file", new=False, folder=None, most=1 << 20) for at in (flexa, other))
        one.write(0, b"1")
        two.write(9, b"2")
        one.commit()
        with pytest.raises(OSError, match="somebody else"):
            two.commit()
        one.write(1, b"1")
        one.commit()
        assert other.cat("file") == b"11" + b"a" * 8


def test_listings_that_are_old(tmp_path):
    """What is read is all of the file, whatever a listing says of its size."""
    with made(tmp_path) as flexa:
        flexa.put("file", b"short")
        real, flexa._editor.edit = flexa._editor.edit, lambda *of, **how: _raise(Unavailable("two were away for a moment"))
        flexa.put("file", data(100_000))
        flexa._editor.edit = real
        assert flexa.ls()[0].size == 5
        with mounted(tmp_path) as folder:
            for _ in range(2):
                assert (folder / "file").read_bytes() == data(100_000)
            assert (folder / "file").stat().st_size == 100_000
            run("cmp", folder / "file", folder / "file")
            flexa.put("file", b"x")  # now listings know it
            soon(lambda: (folder / "file").stat().st_size == 1)
            flexa.put("file", data(50_000))
            assert (folder / "file").read_bytes() == data(50_000)  # at once
            flexa.put("file", data(50_000, 1))  # as large as before: nothing of the old pages
            assert (folder / "file").read_bytes() == data(50_000, 1)


def test_who_comes_second_is_told(tmp_path):
    """Lock files, and renames that shall replace nothing."""
    import ctypes

    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        with pytest.raises(FileExistsError):
            with open(folder / "lock", "xb") as out:
                out.write(b"mine")
                flexa.put("lock", b"theirs")
        assert flexa.cat("lock") == b"theirs"
        (folder / "a").write_bytes(b"a")
        (folder / "b").write_bytes(b"b")
        libc = ctypes.CDLL(None, use_errno=True)
        names = [os.fsencode(folder / name) for name in ("a", "b", "c")]
        for flags, error in ((1, errno.EEXIST), (2, errno.EINVAL)):
            assert libc.renameat2(-100, names[0], -100, names[1], flags) == -1 and ctypes.get_errno() == error
        assert flexa.cat("a") == b"a" and flexa.cat("b") == b"b"
        assert libc.renameat2(-100, names[0], -100, names[2], 1) == 0 and flexa.cat("c") == b"a"
        # With two stores away, close() says what became of an emptied file.
        with away(tmp_path), pytest.raises(OSError):
            open(folder / "c", "wb").close()
        assert flexa.cat("c") == b"a"


def test_the_spool_has_no_plaintext_on_the_disk(tmp_path):
    spool = Spool(str(tmp_path))
    spool.write(0, b"secret words " * 200_000)
    spool._settle()
    on_disk = os.pread(spool._file, spool.size + 65536, 0)
    assert len(on_disk) >= spool.size - 65536 and b"secret" not in on_disk and len(set(on_disk[:4096])) > 200
    assert spool.read(1_000_000, 26) == (b"secret words " * 200_000)[1_000_000:1_000_026]
    assert os.listdir(tmp_path) == []
    spool.close()


def test_many_at_once(tmp_path):
    with made(tmp_path) as flexa, mounted(tmp_path) as folder:
        failed = []

        def work(number):
            try:
                for i in range(4):
                    path = folder / f"{number}-{i}"
                    path.write_bytes(data(300_000, number))
                    assert path.read_bytes() == data(300_000, number)
                    os.rename(path, folder / f"{number}")
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed and sorted(os.listdir(folder)) == [str(number) for number in range(4)]
        assert all(flexa.cat(str(number)) == data(300_000, number) for number in range(4))
