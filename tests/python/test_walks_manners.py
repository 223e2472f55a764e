# SPDX-License-Identifier: Apache-2.0
"""Readers of every kind (files, objects, local ones, streams) beside a plain file of the interpreter's: reads that take what
there happens to be, rooms of every shape, positions counted from anywhere, and closed files; and what layers upon them lose
of a read that fails. test_files_as_io.py has the writers."""

import array
import contextlib
import errno
import io
import operator

import numpy
import pytest

fsspec = pytest.importorskip("fsspec", reason="no fsspec")

from test_files_state import Failing, data  # noqa: E402
from test_fsspec_state import KEY, Store, wrapped  # noqa: E402
from walks import walks  # noqa: E402

import daelstrom  # noqa: E402
from daelstrom import streams  # noqa: E402


class Number:
    def __index__(self):
        return 5


def numbers(chance):
    return chance.choice([0, 1, 5, 100, 4040, 70_000, -1, -2, True, None, 1.0, 1.5, "3", b"3", numpy.int64(7), numpy.float64(2), Number(),
                          1 << 63, 1 << 64, -(1 << 70), (), chance.randrange(20_000), -chance.randrange(20_000)])  # fmt: skip


ROOMS = [
    lambda: bytearray(5), lambda: bytearray(9000), lambda: bytearray(), lambda: memoryview(bytearray(20))[3:9], lambda: array.array("i", [1, 2]),
    lambda: numpy.zeros((4, 5)), lambda: numpy.zeros((0, 4)), lambda: memoryview(bytearray(8)).cast("B", (2, 4)),
    lambda: b"five!", lambda: memoryview(b"abc"), lambda: memoryview(bytearray(20))[::2], lambda: numpy.zeros((4, 5), numpy.uint8).T,
    lambda: "text", lambda: None, lambda: 5,
]  # fmt: skip


def does(call):
    """What came, or the type of the error."""
    try:
        return "came", call()
    except Exception as error:
        return "raised", error


def alike(ours, theirs, closed):
    if ours[0] == "raised" == theirs[0]:
        one, other = ours[1], theirs[1]
        return (
            isinstance(one, type(other))
            or (isinstance(one, ValueError) and isinstance(other, OSError) and other.errno == errno.EINVAL)
            # Both look, at what is closed and at what is given: either may be first.
            or (closed and isinstance(one, ValueError))
            # memoryview's own word for what numpy calls a ValueError
            or (isinstance(one, BufferError) and "contiguous" in str(one) and isinstance(other, ValueError))
        )
    return ours[0] == theirs[0] and type(ours[1]) is type(theirs[1]) and ours[1] == theirs[1]


def asks(chance, ours, theirs, seeks, plain):
    """One question to both."""
    closed = theirs.closed
    how = chance.choice(["read", "read", "read1", "peek", "readline", "readlines", "readinto", "readinto1", "seek", "seek", "seek", "tell",
                         "truncate", "next", "readable", "seekable", "writable", "isatty", "flush", "write", "enter"])  # fmt: skip
    if how in ("seek", "tell", "seekable") and not seeks:
        return
    if how in ("read1", "peek"):  # as much as there happens to be
        size, at = numbers(chance), None if closed else theirs.tell()
        got, expected = does(lambda: getattr(ours, how)(size)), does(lambda: getattr(theirs, how)(size))
        assert got[0] == expected[0] and (got[0] == "came" or alike(got, expected, closed)), (how, size, got, expected)
        if got[0] == "came":
            asked = len(plain) if how == "peek" or operator.index(size) < 0 else operator.index(size)
            assert plain[at : at + asked].startswith(got[1]) and (not got[1]) == (not expected[1]), (how, size)
            theirs.seek(at + len(got[1]) * (how == "read1"))
    elif how in ("readinto", "readinto1"):
        make = chance.choice(ROOMS)
        mine, other = make(), make()
        if how == "readinto1" and not closed and getattr(mine, "__len__", int)() > 5000:
            return
        got, expected = does(lambda: getattr(ours, how)(mine)), does(lambda: getattr(theirs, how)(other))
        assert got[0] == expected[0], (how, got, expected, mine)
        if got[0] == "raised" or how == "readinto":
            assert alike(got, expected, closed), (how, got, expected, mine)
            assert mine is None or isinstance(mine, (str, int)) or numpy.asarray(mine).tobytes() == numpy.asarray(other).tobytes()
        elif got[1] != expected[1]:
            assert bool(got[1]) == bool(expected[1])
            theirs.seek(got[1] - expected[1], io.SEEK_CUR)
    else:
        given = {
            "seek": lambda: (numbers(chance), chance.choice([0, 0, 1, 1, 2, 2, numbers(chance)])),
            "read": lambda: (numbers(chance),), "readline": lambda: (numbers(chance),), "readlines": lambda: (numbers(chance),),
            "truncate": lambda: (5,), "write": lambda: (b"x",),
        }.get(how, tuple)()  # fmt: skip
        if how == "seek" and any(one in (3, 4) for one in given[1:] if isinstance(one, int)):
            return  # holes, which files may tell of
        name = {"next": "__next__", "enter": "__enter__"}.get(how, how)
        got, expected = does(lambda: getattr(ours, name)(*given)), does(lambda: getattr(theirs, name)(*given))
        if how == "enter" and got[0] == expected[0] == "came":
            assert got[1] is ours
        else:
            assert alike(got, expected, closed), (how, given, got, expected)
    if seeks:
        assert alike(does(ours.tell), does(theirs.tell), closed), (how, ours, theirs)


def test_readers_answer_as_plain_files_do(tmp_path):
    for chance in walks("manners of readers", 15):
        plain = bytearray(data(chance.choice([0, 1, 4040, 10_000, 150_000])))
        for _ in range(len(plain) // 500):
            plain[chance.randrange(len(plain))] = 10
        plain = bytes(plain)
        (tmp_path / "plain").write_bytes(plain)
        sealed = streams.seal(plain, key=KEY, segment="4K")
        (tmp_path / "sealed").write_bytes(sealed)
        fs, local = wrapped(Store(), segment="4K"), wrapped(fsspec.filesystem("file"), segment="4K")
        fs.pipe_file("/x", plain)
        for begin, seeks in ((lambda: daelstrom.open(tmp_path / "sealed", key=KEY), True), (lambda fs=fs: fs.open("/x"), True),
                             (lambda local=local: local.open(str(tmp_path / "sealed")), True),
                             (lambda sealed=sealed: streams.open_stream(io.BytesIO(sealed), key=KEY), False)):  # fmt: skip
            with begin() as ours, open(tmp_path / "plain", "rb") as theirs:
                for _ in range(60):
                    asks(chance, ours, theirs, seeks, plain)
                if chance.random() < 0.5:
                    ours.close()
                    theirs.close()
                    for _ in range(20):
                        asks(chance, ours, theirs, seeks, plain)


def test_arrays_of_objects_are_no_bytes(tmp_path):
    (tmp_path / "sealed").write_bytes(streams.seal(bytes(10_000), key=KEY))
    file = daelstrom.open(tmp_path / "sealed", key=KEY)
    for reader in (file, file.raw, streams.open_stream(open(tmp_path / "sealed", "rb"), key=KEY)):
        file.seek(0)
        for ready in (0, 1):
            if ready:
                reader.read(1)  # and the rest of the buffer is at hand
            objects = numpy.array([None, 1, "two"], object)
            for into in ("readinto", "readinto1", "open_into"):
                if hasattr(reader, into):
                    with pytest.raises((TypeError, ValueError, BufferError)):
                        getattr(reader, into)(objects)
            assert list(objects) == [None, 1, "two"]


@pytest.mark.parametrize("layer", ["text", "lines", "gzip", "gzip text"])
def test_layers_go_on_behind_nothing_that_they_lost(tmp_path, layer):
    """The interpreter's text, and fsspec's decompression, forget what they had of a call that fails."""
    text = "".join(f"line {i}\n" for i in range(90_000))
    fs = wrapped(Store(), segment="4K")
    packed = "gzip" if "gzip" in layer else None
    with fs.open("/x", "w", compression=packed) as file:
        file.write(text)
    for at in range(1, 4):
        file = fs.open("/x", "rb" if layer == "gzip" else "r", compression=packed, block_size=1)
        empty, got = file.read(0), ""
        below = lowest(file)
        below._raw._first = below._raw._most = below._raw._ahead = 4096
        source = below._raw._source = Failing(below._raw._source, at, OSError(5, "once"))
        failed = 0
        for _ in range(100_000):
            try:
                part = file.readline() if layer == "lines" else file.read(60_000)
            except (OSError, ValueError) as error:
                failed += 1
                assert failed == 1 or "seek()" in str(error)
                if failed == 3:
                    break
                if layer in ("text", "lines"):  # what is refused says nothing of where to go on
                    with pytest.raises((ValueError, OSError)):
                        lowest(file).seek(-1)
                continue
            assert not failed, "what came next is not what comes next"
            if part == empty:
                break
            got += part.decode() if layer == "gzip" else part
        assert failed and text.startswith(got)
        assert source.left < 0
        if packed:  # whose own position may be where it would be looked for
            file = fs.open("/x", "r", compression=packed)
        file.seek(0)
        assert file.read() == text


def lowest(file):
    """The sealed reader below what is layered upon it."""
    while not isinstance(file, daelstrom.files.SealedReader):
        for name in ("buffer", "fileobj", "_fp", "raw"):
            with contextlib.suppress(AttributeError):
                file = getattr(file, name)
                break
    return file
