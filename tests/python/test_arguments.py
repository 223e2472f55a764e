# SPDX-License-Identifier: Apache-2.0
"""A walk over what may be given for each argument: every kind of memory, of size and of mistake, lists that change, memory
that others write to. A call gives the bytes that pyca/cryptography gives, or refuses with a message, and then nothing that
it was given has changed. In test_device.py's package the same goes on beside the device made of threads."""

import array
import ctypes
import mmap
import sys
import threading

import numpy
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM as Theirs
from Crypto.Cipher import AES
from walks import walks

import daelstrom
from daelstrom import AESGCM, Key, KeySet, open_batch, seal_batch
from daelstrom.ciphers import Cipher, algorithms, modes
from daelstrom.exceptions import DaelstromError, InvalidTag
from daelstrom.random import Generator

ERRORS = (TypeError, ValueError, BufferError, InvalidTag, DaelstromError, OverflowError, IndexError)


class Shown:
    """By DLPack alone."""

    def __init__(self, array, lie=None):
        self.array, self.lie = array, lie

    def __dlpack_device__(self):
        if self.lie == "device raises":
            raise RuntimeError("no device")
        return (2, 7) if self.lie == "another device" else self.array.__dlpack_device__()

    def __dlpack__(self, **how):
        if self.lie == "raises":
            raise BufferError("it is not shown")
        if self.lie == "no capsule":
            return 5
        if self.lie == "a used capsule":
            capsule = self.array.__dlpack__()
            numpy.from_dlpack(Once(capsule))
            return capsule
        return self.array.__dlpack__(**how)


class Once:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **how):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def mapped(data):
    room = mmap.mmap(-1, max(len(data), 1))
    room[: len(data)] = data
    return memoryview(room)[: len(data)]


def numbers(kind):
    """As an array of those numbers, where they fill it."""
    size = numpy.dtype(kind).itemsize

    def make(data):
        whole = numpy.frombuffer(bytearray(data), numpy.uint8)
        return whole.view(kind) if len(data) % size == 0 and len(data) else whole

    return make


def rows(data):
    for by in (7, 5, 3, 2):
        if len(data) and len(data) % by == 0:
            return numpy.frombuffer(bytearray(data), numpy.uint8).reshape(by, -1)
    return numpy.frombuffer(bytearray(data), numpy.uint8).reshape(1, -1)


# All of them can be written to; bytes() of the second tells what lies in the first.
GOOD = {
    "bytearray": bytearray,
    "memoryview": lambda data: memoryview(bytearray(data)),
    "a part": lambda data: memoryview(bytearray(b"abc" + data + b"de"))[3 : 3 + len(data)],
    "mmap": mapped,
    "array": lambda data: array.array("B", data),
    "ctypes": lambda data: (ctypes.c_uint8 * len(data)).from_buffer(bytearray(data)) if data else bytearray(),
    "numpy": lambda data: numpy.frombuffer(bytearray(data), numpy.uint8),
    "rows": rows,
    "float64": numbers("f8"),
    "complex64": numbers("c8"),
    "dates": numbers("M8[s]"),
    "big-endian": numbers(">i4"),
    "structure": numbers([("a", "<i4"), ("b", "u1", (4,))]),
    "bool": lambda data: numpy.frombuffer(bytearray(data), numpy.uint8).view("V1"),
    "dlpack": lambda data: Shown(numpy.frombuffer(bytearray(data), numpy.uint8)),
}


def held(given):
    """The bytes that lie there."""
    given = getattr(given, "array", given)
    return given.tobytes() if isinstance(given, numpy.ndarray) else bytes(memoryview(given).cast("B")) if (
        memoryview(given).nbytes
    ) else b""


def wrong(random, size):
    """What is no memory of that size, or none at all."""
    wide = numpy.zeros((max(size, 2), 4), numpy.uint8)
    return random.choice([
        lambda: None, lambda: "text", lambda: 3, lambda: -1, lambda: 1.5, lambda: object(), lambda: [1, 2], lambda: (),
        lambda: {}, lambda: (i for i in range(3)), lambda: ..., lambda: int, lambda: bytes, lambda: True, lambda: 1 << 200,
        lambda: wide[:, 1], lambda: wide.T[::2], lambda: wide[::-1], lambda: memoryview(bytes(2 * size + 2))[::2],
        lambda: numpy.array([None] * max(size // 8, 1), object), lambda: (ctypes.c_void_p * max(size // 8, 1))(),
        lambda: (ctypes.py_object * 1)(), lambda: Shown(wide[:, 1]), lambda: Shown(wide, "raises"),
        lambda: Shown(wide, "no capsule"), lambda: Shown(wide, "a used capsule"), lambda: Shown(wide, "another device"),
        lambda: Shown(wide, "device raises"), lambda: released(size), lambda: bytearray(size + 1),
        lambda: bytes(size), lambda: numpy.broadcast_to(numpy.zeros(1, numpy.uint8), (size + 1,)),
        lambda: numpy.float64(1.5), lambda: numpy.zeros(()), lambda: numpy.zeros((0, 4)), lambda: memoryview(b""),
    ])()  # fmt: skip


def released(size):
    view = memoryview(bytearray(size))
    view.release()
    return view


class Case:
    def __init__(self, random):
        self.random = random
        self.key = random.randbytes(random.choice([16, 24, 32]))
        self.nonce = random.randbytes(random.choice([12] * 6 + [8, 13, 16, 60, 128]))
        self.size = random.choice([0, 1, 15, 16, 17, 64, 100, 256, 1000, 2047, 2048, 5000, 24 * 35])
        self.data = random.randbytes(self.size)
        self.aad = random.choice([None, b"", b"additional", random.randbytes(300)])
        self.kept = []  # (what was given, what lay there)
        self.faults = 0

    def given(self, data, spoil=0.03):
        """As some kind of memory; now and then as what it must not be."""
        if self.random.random() < spoil:
            self.faults += 1
            return wrong(self.random, len(data))
        made = bytes(data) if self.random.random() < 0.2 else self.random.choice(list(GOOD.values()))(data)
        self.kept.append((made, bytes(data)))
        return made

    def room(self, size, spoil=0.05):
        if self.random.random() < spoil:
            self.faults += 1
            return wrong(self.random, size)
        return self.random.choice(list(GOOD.values()))(b"\xa5" * size)

    def optional(self, data, spoil=0.03):
        return None if data is None else self.given(data, spoil)

    def unchanged(self):
        for made, data in self.kept:
            assert held(made) == data


def attempt(case, call, expected, out=None, what=""):
    """Right, or refused and nothing touched."""
    try:
        got = call()
    except ERRORS as refused:
        assert case.faults, f"{what}: {refused!r}"
        assert str(refused), what
        if isinstance(out, bytearray):
            assert set(out) <= {0xA5, 0}, what  # nothing of the message
    else:
        if not case.faults:  # what was given wrongly may have made sense
            assert got == expected or (hasattr(got, "tobytes") and held(got) == expected) or (
                out is not None and held(out) == expected), what
    case.unchanged()


def one_gcm(case):
    sealed = Theirs(case.key).encrypt(case.nonce, case.data, case.aad)
    key = case.given(case.key)
    try:
        ready = AESGCM(key)
    except ERRORS:
        assert case.faults
        return
    if case.faults:
        # What was given instead may be a key in its own right.
        return
    way = case.random.randrange(6)
    nonce, aad = case.given(case.nonce), case.optional(case.aad)
    if way == 0:
        data = case.given(case.data)
        if isinstance(getattr(data, "array", None), numpy.ndarray):
            return  # results of an unknown library need out=
        attempt(case, lambda: ready.encrypt(nonce, data, aad), sealed, what="encrypt")
    elif way == 1:
        data = case.given(sealed)
        if isinstance(getattr(data, "array", None), numpy.ndarray):
            return
        attempt(case, lambda: ready.decrypt(nonce, data, aad), case.data, what="decrypt")
    elif way == 2:
        data, out = case.given(case.data), case.room(len(sealed))
        attempt(case, lambda: ready.encrypt_into(nonce, data, aad, out) and held(out), sealed, out, "encrypt_into")
    elif way == 3:
        data, out = case.given(sealed), case.room(case.size)
        attempt(case, lambda: (ready.decrypt_into(nonce, data, aad, out), held(out))[1], case.data, out, "decrypt_into")
    elif way == 4:
        forged = bytearray(sealed)
        forged[case.random.randrange(len(forged))] ^= 1 << case.random.randrange(8)
        out = case.random.choice([GOOD["bytearray"], GOOD["numpy"], GOOD["memoryview"]])(b"\xa5" * case.size)
        data = case.given(bytes(forged), 0)
        with pytest.raises(ERRORS):
            ready.decrypt_into(nonce, data, aad, out)
        assert set(held(out)) <= ({0xA5, 0} if case.faults else {0})
        case.unchanged()
    else:
        room = bytearray(case.data + bytes(16))
        view = memoryview(room)
        if not case.faults:
            ready.encrypt_into(nonce, view[: case.size], aad, view)
            assert room == sealed
            ready.decrypt_into(nonce, view, aad, view[: case.size])
            assert room[: case.size] == case.data


def one_mode(case):
    counter = case.random.randbytes(16)
    expected = AES.new(case.key, AES.MODE_CTR, nonce=b"", initial_value=counter).encrypt(case.data)
    at = min(case.random.choice([0, 0, 1, 16, case.size // 2]), case.size)
    key, start = case.given(case.key), case.given(counter)
    data, out = case.given(case.data[at:]), case.room(case.size - at)
    if case.random.random() < 0.03:
        case.faults += 1
        at = case.random.choice([-1, 1 << 64, None, "0", 1.5])
    if case.faults:
        expected = None
    else:
        expected = expected[at:]
    attempt(case, lambda: held(daelstrom.ctr(key, start, data, offset=at, out=out)), expected, out, "ctr")


def some_messages(case):
    random = case.random
    count = random.choice([0, 1, 2, 5, 20])
    keys = [random.randbytes(random.choice([16, 32])) for _ in range(random.choice([1, 1, 3]))]
    index = [random.randrange(len(keys)) for _ in range(count)] if len(keys) > 1 else None
    nonces = [i.to_bytes(12, "big") for i in range(count)]
    texts = [random.randbytes(random.choice([0, 1, 16, 100, 3000])) for _ in range(count)]
    aads = random.choice([None, b"aad", [random.choice([None, b"", b"some"]) for _ in range(count)]])
    per = aads if isinstance(aads, list) else [aads] * count
    key_of = lambda i: keys[index[i] if index else 0]  # noqa: E731
    sealed = [Theirs(key_of(i)).encrypt(nonces[i], texts[i], per[i]) for i in range(count)]
    which, opens = random.choice([list, tuple, lambda given: (one for one in given)]), random.random() < 0.5
    given, wanted = (sealed, texts) if opens else (texts, sealed)
    aad = [case.optional(one, 0.01) for one in aads] if isinstance(aads, list) else case.optional(aads)
    numbers = None if index is None else random.choice([list, tuple, lambda of: numpy.array(of, numpy.uint32),
                                                        lambda of: array.array("I", of)])(index)  # fmt: skip
    if random.random() < 0.05:
        case.faults += 1
        numbers = random.choice([[0] * (count + 1), [5] * count, [-1] * count, "0", 3, [None], numpy.zeros(count, "f4"),
                                 [1 << 40] * count, b"abc"])  # fmt: skip
        if count == 0:
            return
    call = open_batch if opens else seal_batch
    if random.random() < 0.5:
        made = [case.given(one, 0.01) for one in given]
        made = [bytes(held(one)) if isinstance(one, Shown) and one.lie is None else one for one in made]
        outs = None
        if random.random() < 0.5:
            outs = [case.room(len(one), 0.01) for one in wanted]
        bag = b"".join(nonces) if random.random() < 0.5 else [case.given(one, 0.01) for one in nonces]
        expected = None if case.faults else wanted

        def run():
            got = call(KeySet(keys) if random.random() < 0.3 else keys, bag, which(made), aad, key_index=numbers, out=outs)
            return [held(one) for one in got]

        attempt(case, run, expected, what=call.__name__)
    else:
        offsets = [0]
        for one in given:
            offsets.append(offsets[-1] + len(one))
        if random.random() < 0.1:
            case.faults += 1
            offsets = random.choice([[], [5, 3], [0, 1 << 62], [-1, 0], [0.0, 1.0], "0", None, [1 << 70], offsets + [1 << 20],
                                     offsets[:-1] + [offsets[-1] + 1]])  # fmt: skip
            if offsets is None:
                return
        joined = case.given(b"".join(given))
        out = None if random.random() < 0.5 else case.room(sum(map(len, wanted)))
        if isinstance(getattr(joined, "array", None), numpy.ndarray) and out is None:
            joined = held(joined)
        expected = None if case.faults else b"".join(wanted)
        attempt(case, lambda: held(call(keys, b"".join(nonces), joined, aad, offsets=offsets, key_index=numbers, out=out)),
                expected, what=call.__name__ + " in one")  # fmt: skip


def a_context(case):
    start = case.random.randbytes(16)
    expected = AES.new(case.key, AES.MODE_CTR, nonce=b"", initial_value=start).encrypt(case.data)
    context = Cipher(algorithms.AES(case.key), modes.CTR(start)).encryptor()
    got, at = b"", 0
    while at < case.size:
        size = case.random.choice([1, 15, 16, 100, case.size])
        case.faults = 0
        data = case.given(case.data[at : at + size])
        try:
            if case.random.random() < 0.5:
                piece = context.update(data)
            else:
                out = case.room(len(case.data[at : at + size]))
                if case.faults:
                    continue
                assert context.update_into(data, out) == len(case.data[at : at + size])
                piece = held(out)
        except ERRORS:
            assert case.faults
            continue  # and the context is as it was
        if case.faults:
            return  # something else was taken for data
        got, at = got + piece, at + size
        case.unchanged()
    assert got == expected


def a_generator(case):
    expected = AES.new(case.key, AES.MODE_CTR, nonce=b"", initial_value=bytes(16)).encrypt(bytes(case.size))
    generator, out = Generator(case.key), case.room(case.size, 0.3)
    attempt(case, lambda: held(generator.fill(out)), None if case.faults else expected, what="fill")
    if not case.faults:
        assert generator.state["position"] == case.size


CALLS = [one_gcm, one_gcm, one_mode, some_messages, some_messages, a_context, a_generator]


def test_right_or_refused():
    for random in walks("arguments", 3):
        for _ in range(250):
            random.choice(CALLS)(Case(random))


def test_beside_threads_that_change_what_was_given():
    """The bytes are then nobody's; what is asked is that nothing else happens."""
    stop, rooms = threading.Event(), [bytearray(5000), array.array("B", bytes(3000)), [b"item" * 300] * 50]

    def change():
        i = 0
        while not stop.is_set():
            i += 1
            rooms[0][i % len(rooms[0])] = i % 256
            for room in rooms[:2]:
                try:
                    room.extend(b"more")
                    del room[-4:]
                except (BufferError, MemoryError):
                    pass  # it is being read
            rooms[2][i % len(rooms[2])] = bytes([i % 256]) * (i % 3000)
            if i % 7 == 0:
                rooms[2].append(rooms[2].pop(0))

    threads = [threading.Thread(target=change) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    try:
        ready, key = AESGCM(bytes(16)), Key(bytes(16))
        for random in walks("arguments that change", 1):
            for i in range(300):
                try:
                    nonces = [j.to_bytes(12, "big") for j in range(50)]
                    if i % 3 == 0:
                        items = list(rooms[2])
                        got = seal_batch(ready, nonces, items)
                        assert got == [Theirs(bytes(16)).encrypt(n, one, None) for n, one in zip(nonces, items)]
                    elif i % 3 == 1:
                        seal_batch(ready, nonces, rooms[2], rooms[2])
                    else:
                        daelstrom.ctr(key, bytes(16), random.choice(rooms[:2]), out=bytearray(len(rooms[0])))
                except (ValueError, BufferError):
                    pass
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)


def test_numbers_are_named():
    counter = daelstrom.NonceCounter(b"abcd", first=numpy.uint64(7))
    for wrong, error, what in ((-1, ValueError, "is -1; it is a number from 0 to 2"), (1 << 64, ValueError, "is 18446744073709551616"),
                               (None, TypeError, "is NoneType; it is a whole number"), (1.5, TypeError, "is float"),
                               ("7", TypeError, "is str")):  # fmt: skip
        for call, name in ((lambda: daelstrom.ctr(bytes(16), bytes(16), b"x", offset=wrong), "offset"),
                           (lambda: daelstrom.NonceCounter(b"abcd", wrong), "first"),
                           (lambda: counter.take(wrong), "count")):  # fmt: skip
            with pytest.raises(error, match=f"^{name} {what}"):
                call()
    assert counter.unused == 7
    with pytest.raises(ValueError, match=r"Key\.xts\(\)"):
        daelstrom.crypt("xts", "encrypt", Key(bytes(range(32))), bytes(16), sector=16)
