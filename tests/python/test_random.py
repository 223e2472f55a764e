# SPDX-License-Identifier: Apache-2.0
"""The generator: AES's keystream, and numbers that follow from it alone."""

import copy
import linecache
import os
import pickle
import statistics
import sys
import threading
import traceback

import numpy
import pytest
from Crypto.Cipher import AES
from hypothesis import given
from hypothesis import strategies as st

from daelstrom.random import Generator

KEY = bytes(range(32))


def keystream(size, stream=0):
    other = AES.new(KEY, AES.MODE_CTR, nonce=b"", initial_value=stream.to_bytes(8, "big") + bytes(8))
    return other.encrypt(bytes(size))


@given(st.lists(st.integers(0, 200), max_size=10))
def test_bytes_are_the_keystream(sizes):
    generator = Generator(KEY)
    assert b"".join(generator.bytes(size) for size in sizes) == keystream(sum(sizes))
    assert generator.state == {"stream": 0, "position": sum(sizes)}


def test_numbers_follow_from_the_keystream():
    words = numpy.frombuffer(keystream(8000), "<u8")
    random = Generator(KEY).random(1000)
    assert (random == (words >> 11) * 2.0**-53).all()
    singles = numpy.frombuffer(keystream(4000), "<u4")
    assert (Generator(KEY).random(1000, "float32") == (singles >> 8).astype("f4") * numpy.float32(2**-24)).all()
    assert (Generator(KEY).uniform(-3.0, 5.0, 1000) == random * 8.0 + -3.0).all()
    inverse = statistics.NormalDist(10, 3).inv_cdf  # the same algorithm, by others
    expected = [inverse(((int(word) >> 12) + 0.5) * 2.0**-52) for word in words]
    normal = Generator(KEY).normal(10.0, 3.0, 1000)
    assert numpy.allclose(normal, expected, rtol=0, atol=1e-13)
    assert (Generator(KEY).normal(10.0, 3.0, 1000, "float32") == normal.astype("f4")).all()
    whole = Generator(KEY).integers(-5, 10, 1000)
    assert (whole == (words >> 1).astype("i8") % 15 - 5).all()
    assert (Generator(KEY).integers(256, size=1000, dtype="uint8") == ((words >> 1) % 256)).all()
    assert (Generator(KEY).integers(-(1 << 63), 1 << 63, 1000) == words.view("i8")).all()


def test_single_numbers_are_those_of_arrays():
    one, many = Generator(KEY), Generator(KEY)
    assert [one.random() for _ in range(20)] == many.random(20).tolist()
    assert [one.integers(100) for _ in range(20)] == many.integers(100, size=20).tolist()
    assert [one.normal() for _ in range(20)] == many.normal(size=20).tolist()
    assert [one.uniform(1, 2) for _ in range(20)] == many.uniform(1, 2, 20).tolist()


def test_the_tails_of_the_normal_distribution():
    """Bits that random numbers do not reach: both ends, and where one function goes over into the next."""
    from daelstrom._arrays import arrays_of
    from daelstrom._normal import normal_of_bits

    inverse = statistics.NormalDist().inv_cdf
    counts = [0, 1, 2, 1000, 1 << 20, 1 << 30, 1 << 40, (1 << 52) - 1, (1 << 51) - 1, 1 << 51]
    counts += [round(p * 2**52) + d for p in (0.075, 0.925, 1.3887943864964021e-11) for d in (-1, 0, 1)]
    words = numpy.array(counts, "<u8") << 12
    got = normal_of_bits(arrays_of(words), words.view("i8"))
    for count, value in zip(counts, got):
        assert value == pytest.approx(inverse((count + 0.5) * 2.0**-52), rel=4e-15)
    assert got[0] == -got[7]


def test_they_are_distributed_as_they_should_be():
    generator = Generator(KEY)
    normal = generator.normal(size=400_000)
    assert abs(normal.mean()) < 0.008 and abs(normal.std() - 1) < 0.006
    assert abs((normal**4).mean() - 3) < 0.08
    counts = numpy.bincount(generator.integers(10, size=100_000), minlength=10)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 40  # chi squared, 9 degrees of freedom
    uniform = generator.random(100_000)
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.005


def test_numbers_are_drawn_again_where_they_would_be_uneven():
    """Of 2^63 numbers a third is left over for this count."""
    count = 3 * (1 << 61)
    numbers = Generator(KEY).integers(count, size=1000)
    assert numbers.min() >= 0 and numbers.max() < count
    words = numpy.frombuffer(keystream(8 * 2000), "<u8") >> 1
    expected, extra = [], 1000
    fresh = list(words[:1000])
    places = [i for i, word in enumerate(fresh) if word >= count]
    while places:
        for i in places:
            fresh[i] = words[extra]
            extra += 1
        places = [i for i in places if fresh[i] >= count]
    expected = [int(word) for word in fresh]
    assert numbers.tolist() == expected
    generator = Generator(KEY)
    generator.integers(count, size=1000)
    assert generator.state["position"] == 8 * extra


def test_streams_and_states():
    generator = Generator(KEY)
    generator.bytes(5)
    state = generator.state
    after = generator.random(10)
    other = Generator(KEY)
    other.state = state
    assert (other.random(10) == after).all()
    assert generator.jump().bytes(100) == keystream(100, 1)
    assert generator.jump(5).state == {"stream": 6, "position": 0}
    assert generator.jumped(2).bytes(100) == keystream(100, 8)
    assert generator.bytes(100) == keystream(100, 6)
    for state in ({"stream": -1, "position": 0}, {"stream": 0, "position": 1 << 65}):
        with pytest.raises(ValueError):
            generator.state = state
    generator.state = {"stream": (1 << 64) - 1, "position": (1 << 64) - 8}
    with pytest.raises(OverflowError, match="jump"):
        generator.random(2)
    with pytest.raises(OverflowError, match="another key"):
        generator.jump()


def test_arrays_are_filled_where_they_lie():
    array = numpy.full((10, 10), -1.0)
    assert Generator(KEY).random(out=array) is array
    assert (array.reshape(-1) == Generator(KEY).random(100)).all()
    assert Generator(KEY).fill(array) is array
    assert array.tobytes() == keystream(800)
    room = bytearray(100)
    Generator(KEY).fill(memoryview(room)[3:])
    assert room == bytes(3) + keystream(97)
    large = Generator(KEY).normal(size=(3, 70_001))  # several chunks
    assert (large.reshape(-1)[-5:] == Generator(KEY).normal(size=210_003)[-5:]).all()
    with pytest.raises(BufferError, match="contiguous"):
        Generator(KEY).random(out=array[:, 1])


def test_what_makes_no_sense_is_refused():
    generator = Generator(KEY)
    for call, error, what in (
        (lambda: generator.random(3, "int64"), TypeError, "int64"),
        (lambda: generator.normal(size=3, dtype="int64"), TypeError, "int64"),
        (lambda: generator.integers(3, 3), ValueError, "no numbers from 3 to 3"),
        (lambda: generator.integers(0, 300, 3, "uint8"), ValueError, "do not fit uint8"),
        (lambda: generator.integers(-1, 3, 3, "uint8"), ValueError, "do not fit uint8"),
        (lambda: generator.integers(3, size=3, dtype="float64"), TypeError, "float64"),
        (lambda: generator.integers(0, 1 << 64), ValueError, "at most 2\\^63"),
        (lambda: generator.random(3, out=numpy.zeros(3)), ValueError, "not both"),
        (lambda: generator.random(out=[1, 2]), TypeError, "out is list"),
        (lambda: Generator(bytes(5)), ValueError, "16, 24 or 32"),
    ):
        with pytest.raises(error, match=what):
            call()
    assert generator.state["position"] == 0


def test_seeds_and_keys_of_their_own():
    assert (Generator.from_seed(1).bytes(8) == Generator.from_seed("1").bytes(8) != Generator.from_seed(2).bytes(8))
    assert Generator().bytes(16) != Generator().bytes(16)


def in_child(work):
    """What a child of fork() writes."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, work())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(write)
    with open(read, "rb") as file:
        got = file.read()
    assert os.waitpid(pid, 0)[1] == 0
    return got


def by_threads(draw, count):
    got = []
    threads = [threading.Thread(target=lambda: got.append(draw())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return b"".join(got)


def test_a_child_has_another_key_if_nobody_chose_it():
    generator, chosen = Generator(), Generator(KEY)
    childs = in_child(lambda: generator.bytes(16) + chosen.bytes(16))
    assert childs[:16] != generator.bytes(16) and childs[16:] == chosen.bytes(16)


@pytest.mark.parametrize("drawn_before", [0, 1])
def test_threads_of_a_child_have_one_new_key(drawn_before):
    """All of them at once, however the interpreter takes turns, and children of children."""
    generator, interval = Generator(), sys.getswitchinterval()
    drawn = {generator.bytes(16) for _ in range(drawn_before)}
    count = len(drawn)
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            barrier = threading.Barrier(4)

            def draw():
                barrier.wait(30)
                return generator.bytes(16) + generator.bytes(16)

            got = in_child(lambda: by_threads(draw, 4))
            drawn |= {got[at : at + 16] for at in range(0, 128, 16)}
            count += 8
    finally:
        sys.setswitchinterval(interval)
    drawn.add(generator.bytes(16))
    assert len(drawn) == count + 1


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize("lines", range(25))
def test_an_interrupt_between_any_two_lines_repeats_nothing(lines):
    """In a child, while it takes its new key: whatever was done before, the numbers are not its parent's and are drawn
    once."""
    generator = Generator()
    seen = {generator.bytes(16)}

    def work():
        left = [lines]

        def trace(frame, event, argument):
            # A lock's block is left on its first line, where no signal is looked at.
            if frame.f_code.co_filename.endswith("random.py") and event == "line" and "with self._turn" not in (
                linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            ):
                left[0] -= 1
                if left[0] < 0:
                    sys.settrace(None)
                    raise Interrupt
            return trace

        got = b""
        sys.settrace(trace)
        try:
            got = generator.bytes(16)
        except Interrupt:
            pass
        finally:
            sys.settrace(None)
        return got + by_threads(lambda: generator.bytes(16), 2) + generator.bytes(16)

    got = in_child(work)
    drawn = {got[at : at + 16] for at in range(0, len(got), 16)}
    assert len(drawn) == len(got) // 16 and not drawn & seen


def test_a_fork_amid_the_calls_of_other_threads():
    """The child finds no lock taken, with a key and without one."""
    generators, stop = [Generator(), Generator(KEY)], threading.Event()

    def draw():
        while not stop.is_set():
            for one in generators:
                one.bytes(8)
                one.state

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert len(in_child(lambda: b"".join(one.bytes(8) for one in generators))) == 16
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_copies_would_repeat_and_are_not_made():
    for generator in (Generator(), Generator(KEY)):
        for copier in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"not copied or pickled.*jumped\(\)"):
                copier(generator)
    own = Generator()
    assert own.jumped().bytes(16) != own.bytes(16)
    mine = own.jumped()
    assert in_child(lambda: mine.bytes(16)) != mine.bytes(16)  # of a key of the process's too


def test_counts_at_the_ends_of_64_bits():
    """2^63 numbers: of each 64 bits as many as it takes, like a single number's."""
    words = numpy.frombuffer(keystream(8 * 1000), "<u8") >> 1
    for low in (0, -(1 << 62), -(1 << 63)):
        got = Generator(KEY).integers(low, low + (1 << 63), 1000)
        assert got.tolist() == [int(word) + low for word in words]
        one = Generator(KEY)
        assert [one.integers(low, low + (1 << 63)) for _ in range(20)] == got[:20].tolist()
    assert (Generator(KEY).integers(0, numpy.iinfo("int64").max, 1000, endpoint=True) == words).all()
    for count in ((1 << 63) - 1, (1 << 62) + 1, 1 << 62):
        got, one = Generator(KEY).integers(count, size=1), Generator(KEY)
        assert got[0] < count and one.integers(count) == got[0]
    for wrong in (1.5, "7", None):
        with pytest.raises(TypeError):
            Generator(KEY).integers(0, wrong) if wrong is not None else Generator(KEY).integers(None)


def test_what_is_refused_takes_nothing():
    generator = Generator(KEY)
    fixed = numpy.zeros(4)
    fixed.flags.writeable = False
    for wrong in (numpy.array([None, 1], object), fixed, numpy.zeros((4, 4))[:, 1], b"bytes", "text", None):
        with pytest.raises((TypeError, BufferError)):
            generator.fill(wrong)
    with pytest.raises(ValueError):
        generator.bytes(-1)
    assert generator.state == {"stream": 0, "position": 0}


def test_threads_share_without_repeats():
    generator, got = Generator(KEY), []
    threads = [threading.Thread(target=lambda: got.extend(generator.bytes(16) for _ in range(200))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = keystream(16 * 800)
    assert sorted(got) == sorted(whole[i : i + 16] for i in range(0, len(whole), 16))
