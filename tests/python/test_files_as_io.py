# SPDX-License-Identifier: Apache-2.0
"""Sealed files beside io.BufferedReader and io.BytesIO: random calls with right and wrong arguments give the same bytes and leave the
same position, or raise the same kind of exception; and what is refused costs nothing."""

import array
import gzip
import io

import pytest
from walks import walks

import daelstrom

KEY = bytes(range(32))


class Number:
    def __index__(self):
        return 5


def released():
    view = memoryview(bytearray(4))
    view.release()
    return view


NUMBERS = [0, 1, 3, 100, 4040, 9000, 50_000, -1, -2, -5000, None, Number(), 1.0, 1.5, "1", b"1", 1 << 63, 10**30]
BUFFERS = [lambda: bytearray(10), lambda: bytearray(9000), bytearray, lambda: array.array("i", [1, 2]), lambda: b"12",
           lambda: memoryview(b"123"), lambda: memoryview(bytearray(10))[::2], lambda: memoryview(bytearray(10))[2:7],
           released, lambda: 3, lambda: None, lambda: "x"]  # fmt: skip


def outcome(file, name, make):
    given = make()
    try:
        got = getattr(file, name)(*given)
        told = [bytes(one) for one in given if isinstance(one, (bytearray, memoryview, array.array))]
        what = (got is file or got, told)
    # OSError and OverflowError: which one it is for a position that is none differs within io.
    except (TypeError, ValueError, BufferError, OSError, OverflowError, StopIteration) as error:
        what = TypeError if isinstance(error, TypeError) else StopIteration if isinstance(error, StopIteration) else ValueError
    return what, None if file.closed else file.tell()


def a_read(chance):
    number, place, wrong = chance.choice(NUMBERS), chance.randrange(21_000), chance.random() < 0.5
    name = chance.choice(["read", "readline", "readlines", "readinto", "seek", "seek", "seek", "tell", "__next__", "write",
                          "readable", "writable", "seekable", "isatty", "flush", "__enter__", "fileno"])  # fmt: skip
    if name in ("read", "readline", "readlines"):
        return name, lambda: (number,)
    if name in ("readinto", "write"):
        buffer = chance.choice(BUFFERS)
        return name, lambda: (buffer(),)
    if name == "seek":
        whence = chance.choice([0, 0, 0, 0, 2, 3, -1, None, 1.0, "0"])
        if whence == 2:
            return name, lambda: (-(place % 20_000), 2)
        # Of two things that are wrong it may say either.
        return name, lambda: (number, 0) if whence == 0 and wrong else (place, whence)
    return name, lambda: ()


@pytest.mark.parametrize("kind", ["file", "object"])
def test_reading(tmp_path, kind):
    for chance in walks(f"reading as io does, {kind}", 40):
        plain = bytearray(chance.randbytes(20_000))
        for _ in range(30):
            plain[chance.randrange(len(plain))] = 10
        if kind == "file":
            with daelstrom.open(tmp_path / "file", "wb", key=KEY, segment="4K") as file:
                file.write(plain)
            ours = daelstrom.open(tmp_path / "file", key=KEY)
        else:
            pytest.importorskip("fsspec", reason="no fsspec")
            from test_fsspec_state import Store, wrapped

            fs = wrapped(Store(), segment="4K")
            fs.pipe_file("/x", plain)
            ours = fs.open("/x")
        model = io.BufferedReader(io.BytesIO(plain))
        for step in range(60):
            name, make = a_read(chance)
            if name == "write":
                assert outcome(ours, name, make)[0] is ValueError  # io.UnsupportedOperation
                continue
            if name == "writable":
                assert ours.writable() is False
                continue
            assert outcome(ours, name, make) == outcome(model, name, make), (name, make())
            if step == 50:
                ours.close()
                model.close()
                for name, make in [("read", tuple), ("readline", tuple), ("readlines", tuple), ("seek", lambda: (0,)), ("tell", tuple),
                                   ("readinto", lambda: (bytearray(1),)), ("__next__", tuple), ("__enter__", tuple),
                                   ("flush", tuple), ("isatty", tuple), ("readable", tuple), ("seekable", tuple), ("close", tuple)]:  # fmt: skip
                    assert outcome(ours, name, make) == outcome(model, name, make), name
                break


@pytest.mark.parametrize("kind", ["file", "stream", "object", "gzip"])
def test_writing(tmp_path, kind):
    """What is refused leaves the file as it is: it is written on."""
    fs = None
    if kind in ("object", "gzip"):
        pytest.importorskip("fsspec", reason="no fsspec")
        from test_fsspec_state import Store, wrapped

        fs = wrapped(Store(), segment="4K")
    for chance in walks(f"writing as io does, {kind}", 25):
        model, out = io.BytesIO(), io.BytesIO()
        ours = {"file": lambda: daelstrom.open(tmp_path / "file", "wb", key=KEY, segment="4K"),
                "stream": lambda out=out: daelstrom.seal_stream(out, key=KEY, segment="4K"), "object": lambda: fs.open("/x", "wb"),
                "gzip": lambda: fs.open("/x", "wb", compression="gzip")}[kind]()  # fmt: skip
        for _ in range(30):
            name = chance.choice(["write", "write", "write", "tell", "flush", "isatty", "writable", "__enter__", "writelines"])
            buffer = chance.choice(BUFFERS)
            make = {"write": lambda buffer=buffer: (buffer(),), "writelines": lambda buffer=buffer: ([b"a", buffer()],)}.get(name, tuple)
            assert outcome(ours, name, make) == outcome(model, name, make), (name, make())
            for absent in (lambda: ours.read(1), lambda: ours.seek(0), lambda: ours.truncate(), lambda: ours.detach()):
                with pytest.raises(io.UnsupportedOperation):
                    absent()
        plain = model.getvalue()
        for file in (ours, model):
            file.close()
        for name, make in [("write", lambda: (b"x",)), ("tell", tuple), ("flush", tuple), ("writable", tuple), ("__enter__", tuple), ("close", tuple)]:
            assert outcome(ours, name, make) == outcome(model, name, make), name
        if kind == "file":
            got = daelstrom.open(tmp_path / "file", key=KEY).read()
        elif kind == "stream":
            got = daelstrom.open_bytes(out.getvalue(), key=KEY)
        else:
            got = fs.cat_file("/x")
        assert (gzip.decompress(got) if kind == "gzip" else got) == plain


def test_objects_are_no_bytes(tmp_path):
    """io itself writes into them, and the interpreter crashes."""
    numpy = pytest.importorskip("numpy", reason="no numpy")
    with daelstrom.open(tmp_path / "file", "wb", key=KEY) as file:
        file.write(bytes(1000))
    sealed = io.BytesIO((tmp_path / "file").read_bytes())
    for file in (daelstrom.open(tmp_path / "file", key=KEY), daelstrom.open_stream(sealed, key=KEY)):
        for way in (file.readinto, file.readinto1):
            objects = numpy.array([None, "a"], dtype=object)
            with pytest.raises(TypeError, match="objects"):
                way(objects)
            assert list(objects) == [None, "a"]
            dates = numpy.ones(3, "M8[s]")
            assert way(dates) > 0
