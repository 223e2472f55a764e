# SPDX-License-Identifier: Apache-2.0
"""What sealed files hold between calls: ends that nobody verified, interrupts at every line, threads, close() during use,
children of fork(), and text that is not finished."""

import contextlib
import faulthandler
import gc
import io
import linecache
import os
import random
import sys
import threading
import time

import pytest

import daelstrom
from daelstrom import exceptions
from daelstrom._turns import Turns

KEY = bytes(range(32))
NO_TAG = (exceptions.InvalidTag, exceptions.FormatError)


def data(size):
    return random.Random(size).randbytes(size)


def write(path, plain, **how):
    with daelstrom.open(path, "wb", key=KEY, **how) as file:
        file.write(plain)


WAYS = {
    "read": lambda f: f.read(),
    "read some": lambda f: f.read(10),
    "read1": lambda f: f.read1(10),
    "readall": lambda f: f.raw.readall(),
    "readinto": lambda f: f.readinto(bytearray(10)),
    "readinto1": lambda f: f.readinto1(bytearray(10)),
    "readline": lambda f: f.readline(),
    "readlines": lambda f: f.readlines(),
    "next": lambda f: next(f, None),
    "list": list,
    "peek": lambda f: f.peek(1),
    "read_at": lambda f: f.read_at(0, 1),
    "read_at, beyond": lambda f: f.read_at(7, 1),
    "from the end": lambda f: (f.seek(0, io.SEEK_END), f.read()),
    "beyond the end": lambda f: (f.seek(9), f.read(1)),
    "verify": lambda f: f.verify(),
    "open_into": lambda f: f.open_into(bytearray(0)),
    "as text": lambda f: io.TextIOWrapper(f).read(),
    "lines of text": lambda f: list(io.TextIOWrapper(f)),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_empty_before_it_is_verified(tmp_path, way):
    path = tmp_path / "file"
    for made in (bytes(56), b"\x28" + bytes(55)):  # any bytes of the size of nothing sealed; the second has its header
        path.write_bytes(made)
        with pytest.raises(NO_TAG):
            WAYS[way](daelstrom.open(path, key=KEY, segment="1M"))
    write(path, b"")
    WAYS[way](daelstrom.open(path, key=KEY))
    with pytest.raises(NO_TAG):
        WAYS[way](daelstrom.open(path, key=bytes(32)))


def test_no_end_before_it_is_verified(tmp_path):
    """A file that was cut off at a segment's end: what it still has is authentic, that it ends there is not."""
    path, plain = tmp_path / "file", data(40_000)
    write(path, plain, segment="4K")
    path.write_bytes(path.read_bytes()[: 5 * 4096])
    for ends in (lambda f: f.read_at(f.size, 1), lambda f: (f.seek(f.size), f.read(1)), lambda f: (f.seek(f.size), f.readline()),
                 lambda f: (f.seek(10**9), f.readinto(bytearray(1))), lambda f: (f.seek(-9000, io.SEEK_END), f.read(5)),
                 lambda f: (f.read(100), f.seek(-9000, io.SEEK_END), f.seek(1, io.SEEK_CUR), f.read(1)),
                 lambda f: (f.seek(-12_000, io.SEEK_END), f.peek(1))):  # fmt: skip
        with daelstrom.open(path, key=KEY) as file:
            assert file.read(10) == plain[:10]
            with pytest.raises(exceptions.InvalidTag):
                ends(file)
            assert file.read_at(9000, 10) == plain[9000:9010]
            assert file.read_at(0, 0) == b"" and (file.seek(0), file.read(0)) == (0, b"")


def test_damage_leaves_zeros_in_what_was_being_filled(tmp_path):
    path = tmp_path / "file"
    write(path, data(9 << 20))
    bad = bytearray(path.read_bytes())
    bad[8 << 20] ^= 1
    path.write_bytes(bad)
    for at in (0, 100, 3 << 20):
        into = bytearray(b"\xee" * ((9 << 20) - at))
        with daelstrom.open(path, key=KEY) as file:
            file.seek(at)
            with pytest.raises(exceptions.InvalidTag):
                file.readinto(into)
        assert not any(into)


class Interrupts:
    """KeyboardInterrupt at the n-th line of the package's files that move bytes."""

    def __init__(self, at):
        self.left, self.done = at, False

    def __enter__(self):
        sys.settrace(self.call)
        return self

    def __exit__(self, kind, *more):
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def call(self, frame, event, arg):
        name = frame.f_code.co_filename
        return self.line if "daelstrom" in name and name.endswith(("_reader.py", "_writer.py", "_appear.py", "files.py")) else None

    def line(self, frame, event, arg):
        # Where a lock is given back, and where nothing is done, the interpreter takes no signal; a trace is asked all
        # the same.
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and "_turn()" not in text and text != "try:":
            self.left -= 1
            if self.left < 0 and not self.done:
                self.done = True
                raise KeyboardInterrupt
        return self.line


def test_an_interrupt_at_any_line_of_reading(tmp_path):
    path, plain = tmp_path / "file", data(5_000_000)
    write(path, plain)
    for n in range(1000):
        file, trace = daelstrom.open(path, key=KEY), Interrupts(n)
        file.read(10)
        with trace:
            file.seek(2_500_000)
            file.read(10)
            file.seek(3_600_000)
            file.read(70_000)
        for at in (0, 2_500_000, 3_600_001):
            file.seek(at)
            assert file.read(10) == plain[at : at + 10], n
        file.close()
        if not trace.done:
            break
    assert 20 < n < 999


def test_no_byte_is_missed_after_an_interrupt_at_any_line(tmp_path):
    """Whoever catches it and reads on has what comes next, wherever the position is."""
    path, plain = tmp_path / "file", data(400_000)
    write(path, plain)
    for n in range(1000):
        with daelstrom.open(path, key=KEY) as file:
            trace, got = Interrupts(n), b""
            while len(got) < 300_000:
                with trace:
                    got += file.read(100_000)
                with trace:
                    got += file.readline()
            assert got == plain[: len(got)], n
            for at in (350_000, 10):
                with trace:
                    file.seek(at)
                with trace:
                    file.peek(1)
                at = file.tell()
                assert file.read(70_000) == plain[at : at + 70_000], n
        if not trace.done:
            break
    assert 20 < n < 999


class Failing:
    """A source that raises once: at its n-th call."""

    def __init__(self, source, at, error):
        self.source, self.left, self.error = source, at, error
        self.size, self.around, self.check_size = source.size, source.around, source.check_size

    def fails(self):
        self.left -= 1
        if self.left == -1:
            raise self.error

    def read(self, at, size):
        self.fails()
        return self.source.read(at, size)

    def read_into(self, at, out):
        self.fails()
        self.source.read_into(at, out)


def filled(read, size):
    into = bytearray(size)
    return bytes(into[: read(into)])


READS = {
    "read": lambda f: f.read(700_000),
    "all": lambda f: f.read(),
    "read1": lambda f: f.read1(100_000),
    "readinto": lambda f: filled(f.readinto, 700_000),
    "readinto1": lambda f: filled(f.readinto1, 100_000),
    "readline": lambda f: f.readline(),
    "next": lambda f: next(f, b""),
    "readlines": lambda f: b"".join(f.readlines(500_000)),
    "peek": lambda f: f.read(len(f.peek(1))),
}


@pytest.mark.parametrize("error", [OSError(5, "once"), KeyboardInterrupt()], ids=["error", "interrupt"])
@pytest.mark.parametrize("way", READS)
def test_no_byte_is_missed_after_a_source_failed_once(tmp_path, way, error):
    path, plain = tmp_path / "file", data(3_000).replace(b"\n", b"-") * 600
    plain = plain[:1_200_000] + b"\n" + plain[1_200_000:]
    write(path, plain)
    for at in range(100):
        with daelstrom.open(path, key=KEY) as file:
            got = file.read(10)
            source = file.raw._source = Failing(file.raw._source, at, error)
            for _ in range(1000):
                try:
                    part = READS[way](file)
                except type(error) as raised:
                    assert raised is error and file.tell() == len(got)
                    continue
                got += part
                if not part:
                    break
            assert got == plain
        if source.left >= 0:
            break
    assert 0 < at < 99


def test_lines_up_to_a_hint(tmp_path):
    path = tmp_path / "file"
    write(path, b"ab\nc\n\nlonger\nend")
    for hint in (None, -1, 0, 1, 3, 4, 5, 6, 7, 12, 13, 14, 99):
        expected = io.BufferedReader(io.BytesIO(b"ab\nc\n\nlonger\nend"))
        with daelstrom.open(path, key=KEY) as file:
            while lines := file.readlines(hint):
                assert lines == expected.readlines(hint)
            assert expected.read() == b""


def test_an_interrupt_at_any_line_of_writing(tmp_path):
    path, old, new = tmp_path / "file", b"old", data(9_000_000)
    seen = set()
    before = len(os.listdir("/proc/self/fd"))
    for n in range(1000):
        write(path, old)
        trace = Interrupts(n)
        with trace:
            with daelstrom.open(path, "wb", key=KEY) as file:
                file.write(new[:8_500_000])
                file.write(new[8_500_000:])
        file = None
        assert os.listdir(tmp_path) == ["file"], n
        read = daelstrom.open(path, key=KEY).read()
        assert read in (old, new), n
        seen.add(len(read))
        if not trace.done:
            break
    assert 20 < n < 999 and seen == {len(old), len(new)}
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_close_in_another_thread(tmp_path):
    """Whoever reads meanwhile has what is in the file, or is told that it is closed."""
    path, plain = tmp_path / "file", b"\x55" * 2_000_000
    write(path, plain)
    wrong = []
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(150):
            file = daelstrom.open(path, key=KEY)
            file.read(1)
            begun = threading.Event()

            def reads(file=file, begun=begun):
                try:
                    for at in range(1, 2_000_000, 1000):
                        got = file.read_at(at, 9) if at % 3000 == 1 else (file.seek(at), file.read(9))[1]
                        begun.set()
                        if got != plain[:9]:
                            wrong.append(got)
                except ValueError as error:
                    if "closed" not in str(error):
                        wrong.append(error)
                begun.set()

            thread = threading.Thread(target=reads)
            thread.start()
            begun.wait()
            file.close()
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert not wrong


def test_writers_of_several_threads(tmp_path):
    path = tmp_path / "file"
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with daelstrom.open(path, "wb", key=KEY, segment="4K") as file:

            def writes(which):
                for i in range(1500):
                    file.write(b"%d %06d %s\n" % (which, i, b"x" * (i % 7 * 900)))

            threads = [threading.Thread(target=writes, args=(which,)) for which in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(usual)
    lines = daelstrom.open(path, key=KEY).read().splitlines()
    for which in range(4):
        mine = [line for line in lines if line.startswith(b"%d " % which)]
        assert mine == [b"%d %06d %s" % (which, i, b"x" * (i % 7 * 900)) for i in range(1500)]
    assert len(lines) == 6000


def test_a_signal_handler_that_calls_what_it_interrupts(tmp_path):
    """Not what is under way anew, nor a lock that nobody gives back."""
    path = tmp_path / "file"
    file = daelstrom.open(path, "wb", key=KEY)


    put = file._stream.write

    def interrupted(view, sink):
        for call in (lambda: file.write(b"no"), file.close, file.discard):
            with pytest.raises(RuntimeError, match="amid"):
                call()
        put(view, sink)

    file._stream.write = interrupted
    file.write(b"yes")
    file._stream.write = put
    file.close()
    assert daelstrom.open(path, key=KEY).read() == b"yes"


def in_child(does):
    """The status of a child that does it; 9 if it hangs."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if does() else 2
        finally:
            os._exit(status)
    for _ in range(2000):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 9


def test_a_child_that_is_forked_amid_a_read(tmp_path):
    path, plain = tmp_path / "file", data(3_000_000)
    write(path, plain)
    file = daelstrom.open(path, key=KEY)
    source, inside, go_on = file.raw._source, threading.Event(), threading.Event()

    class Slow:
        size, around, check_size = source.size, source.around, source.check_size

        def read(self, at, size):
            return source.read(at, size)

        def read_into(self, at, out):
            if not inside.is_set():
                inside.set()
                go_on.wait()
            source.read_into(at, out)

    file.raw._source = Slow()
    thread = threading.Thread(target=lambda: file.read(100))
    thread.start()
    inside.wait()

    def reads():
        good = file.read_at(5, 5) == plain[5:10]
        file.seek(1_000_000)
        good = good and file.read(9) == plain[1_000_000:1_000_009] and file.readline() != b""
        file.close()
        return good

    try:
        assert in_child(reads) == 0
    finally:
        go_on.set()
        thread.join()
    assert file.tell() == 100 and file.read(5) == plain[100:105]


def test_one_that_cannot_begin_anew_in_a_child(tmp_path, monkeypatch):
    """The others' locks are free there all the same, its own too; and what was being closed is closed."""
    path, plain = tmp_path / "file", data(300_000)
    write(path, plain)

    class Refuses(Turns):
        def __init__(self):
            self._begin_turns()

        def _in_child(self):
            raise KeyError("of this one")

    first = Refuses()
    file, closing = daelstrom.open(path, key=KEY), daelstrom.open(path, key=KEY)
    last = Refuses()
    locked, go_on = threading.Event(), threading.Event()

    def holds():
        with first._turn(), file._turn(), file.raw._turn(), closing.raw._turn(), last._turn():
            closing.raw._source = None
            locked.set()
            go_on.wait()

    thread = threading.Thread(target=holds)
    thread.start()
    locked.wait()
    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: said.append(one.exc_type))

    def child():
        for one in (first, last):
            with one._turn():
                pass
        with pytest.raises(ValueError, match="closed"):
            closing.read(1)
        closing.close()
        return said == [KeyError] and file.read(9) == plain[:9] and closing.closed

    try:
        assert in_child(child) == 0
    finally:
        go_on.set()
        thread.join()


@pytest.mark.parametrize("ends", ["discard", "close", "with", "forget", "write"])
def test_what_a_child_does_to_its_parents_file(tmp_path, ends):
    path = tmp_path / "file"
    write(path, b"old")
    held = [daelstrom.open(path, "wb", key=KEY)]
    held[0].write(b"begun ")

    def child():
        file = held[0]
        if ends == "discard":
            file.discard()
        elif ends == "with":
            file.__exit__(KeyError, KeyError(), None)
        elif ends == "forget":
            held.clear()
            del file
            gc.collect()
        else:
            with pytest.raises(ValueError, match="parent"):
                file.close() if ends == "close" else file.write(b"x")
        return True

    assert in_child(child) == 0
    held[0].write(b"and finished")
    held[0].close()
    assert daelstrom.open(path, key=KEY).read() == b"begun and finished"
    assert os.listdir(tmp_path) == ["file"]


def test_text_that_is_not_finished(tmp_path):
    path = tmp_path / "file"
    write(path, b"old")
    file = daelstrom.open(path, "wt", key=KEY)
    file.write("half")
    with pytest.warns(ResourceWarning, match="never closed"):
        del file
        gc.collect()
    file = daelstrom.open(path, "wt", key=KEY, encoding="ascii")
    file.write("half")
    file._writer._stream.write = lambda view, put: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    with pytest.raises(OSError, match="No space"):
        file.close()
    with pytest.raises(UnicodeEncodeError), daelstrom.open(path, "wt", key=KEY, encoding="ascii") as file:
        file.write("half é")
    assert daelstrom.open(path, key=KEY).read() == b"old"
    with daelstrom.open(path, "wt", key=KEY) as file:
        file.write("new")
    file.close()
    assert daelstrom.open(path, key=KEY).read() == b"new" and os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["é" * 120, "日" * 80, "🙂" * 60, "x" * 250])
def test_names_of_many_bytes(tmp_path, name):
    for plain in (b"new", b"newer"):
        write(tmp_path / name, plain)
        assert daelstrom.open(tmp_path / name, key=KEY).read() == plain
    assert os.listdir(tmp_path) == [name]


def test_whatever_has_bytes_is_written(tmp_path):
    numpy = pytest.importorskip("numpy", reason="no numpy")
    path = tmp_path / "file"
    given = [b"a", bytearray(b"b"), memoryview(b"c"), numpy.empty((0, 4)), numpy.arange(6.0).reshape(2, 3),
             numpy.array(["2020-01-02"], "M8[D]"), numpy.array(7, "u2")]  # fmt: skip
    with daelstrom.open(path, "wb", key=KEY) as file:
        for one in given:
            assert file.write(one) == memoryview(one.tobytes() if hasattr(one, "tobytes") else one).nbytes
        for refused in ("text", 5, None, numpy.arange(6).reshape(2, 3).T):
            with pytest.raises((TypeError, BufferError, ValueError)):
                file.write(refused)
    expected = b"".join(one.tobytes() if hasattr(one, "tobytes") else bytes(one) for one in given)
    assert daelstrom.open(path, key=KEY).read() == expected


def test_pickling_says_what_to_do(tmp_path):
    import pickle

    write(tmp_path / "file", b"text")
    with pytest.raises(TypeError, match="its key would be"):
        pickle.dumps(daelstrom.open(tmp_path / "file", key=KEY))
    with daelstrom.open(tmp_path / "file", "wb", key=KEY) as file, pytest.raises(TypeError, match="one process"):
        pickle.dumps(file)


def test_what_replaces_a_file_is_like_it(tmp_path):
    """By the library's own way to put files in their places, whose tests have the rest."""
    path = tmp_path / "file"
    write(path, b"old")
    with contextlib.suppress(OSError):
        os.setxattr(path, "user.kept", b"yes")
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    os.chmod(path, 0o640)
    was = path.stat()
    had = os.listxattr(path)
    write(path, b"new")
    now = path.stat()
    assert (now.st_uid, now.st_gid, now.st_mode) == (was.st_uid, was.st_gid, was.st_mode) and os.listxattr(path) == had
    assert now.st_ino != was.st_ino and daelstrom.open(path, key=KEY).read() == b"new"


def test_a_file_that_somebody_else_puts_there_meanwhile_stays(tmp_path):
    path = tmp_path / "file"
    for old in (False, True):
        slow = daelstrom.open(path, "wb", key=KEY)
        slow.write(b"slow")
        write(path, b"quick")
        with pytest.raises(OSError):
            slow.close()
        assert slow.closed and daelstrom.open(path, key=KEY).read() == b"quick" and os.listdir(tmp_path) == ["file"]


def test_key_files_that_are_made_here(tmp_path):
    path = tmp_path / "key"
    usual = os.umask(0)
    try:
        for bits in (128, 192, 256):
            daelstrom.generate_key_file(path, bits)
            assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_size == bits // 8
            with pytest.raises(FileExistsError):
                daelstrom.generate_key_file(path)
            path.unlink()
    finally:
        os.umask(usual)
    with pytest.raises(ValueError, match="128, 192 or 256"):
        daelstrom.generate_key_file(path, 64)
    assert os.listdir(tmp_path) == []


def test_chunks_of_a_cache_in_a_child_that_is_forked_amid_a_look_at_its_keys():
    from daelstrom import kvcache

    inside, go_on = threading.Event(), threading.Event()

    def key_of(salt):
        if salt == "slow":
            inside.set()
            go_on.wait()
        return bytes(16)

    sealer = kvcache.ChunkSealer(key_of)
    thread = threading.Thread(target=lambda: sealer._cipher("slow", sealer._frame))
    thread.start()
    inside.wait()
    frame, plain = bytearray(5 + kvcache.OVERHEAD), bytearray(5)

    def seals():
        sealer.seal(b"chunk", frame, "other", b"bound")
        sealer.open(frame, plain, "other", b"bound")
        return plain == b"chunk"

    try:
        with sealer._lock:  # as another thread may have it
            assert in_child(seals) == 0
        assert seals()  # nobody waits for somebody else's key
    finally:
        go_on.set()
        thread.join()


def test_text_has_no_hole_after_an_exception(tmp_path):
    """The interpreter's text drops the beginning of a line whose end could not be read, and would go on behind it."""
    path = tmp_path / "file"
    text = "".join(f"{number:06} {'x' * (number % 3000)}\n" for number in range(2000))
    write(path, text.encode(), segment="4K")
    whole = path.read_bytes()
    with daelstrom.open(path, "rt", key=KEY) as file:
        read, refused = [], 0
        for _ in range(3):
            read.append(file.readline())
        changed = bytearray(whole)
        changed[300_000] ^= 1
        path.write_bytes(changed)
        with pytest.raises(exceptions.InvalidTag):
            while True:
                read.append(file.readline())
        assert text.startswith("".join(read)) and len(read) > 50
        path.write_bytes(whole)
        for way in (file.readline, file.read, lambda: file.read(1), lambda: next(file), lambda: list(file)):
            with contextlib.suppress(ValueError):
                got = way()  # what was decoded before the exception
                got = got if isinstance(got, str) else "".join(got)
                read.append(got)
                continue
            refused += 1
        assert text.startswith("".join(read)) and refused
        for way in (lambda: file.seek(file.tell()), lambda: file.seek(0, 1)):  # a position behind what was lost
            with pytest.raises((ValueError, OSError)):  # next() disables tell()
                way()
            with pytest.raises(ValueError, match="seek"):
                file.read()
        file.seek(0)
        assert file.read() == text


def test_a_key_comes_through_a_pipe_of_another_thread(tmp_path):
    """Who reads it lets that thread run."""
    from daelstrom._appear import read_key_file

    pipe = tmp_path / "key"
    os.mkfifo(pipe, 0o600)

    def write():
        with open(pipe, "wb") as file:
            file.write(bytes(range(32)))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    faulthandler.dump_traceback_later(60, exit=True)  # nobody else could end a wait with the lock held
    try:
        key = read_key_file(pipe)
    finally:
        faulthandler.cancel_dump_traceback_later()
    writer.join()
    assert key == bytes(range(32))
