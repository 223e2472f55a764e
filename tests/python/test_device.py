# SPDX-License-Identifier: Apache-2.0
"""Device memory without a GPU: the package's own ways there, on a device made of threads that notices what a GPU would
forgive (tests/support/host_device.hpp)."""

import gc
import importlib.machinery
import importlib.util
import os
import sys
import threading

import numpy
import pytest
from walks import walks

from daelstrom import (
    AEGIS256,
    AESGCM,
    AESGCMSIV,
    XAES256GCM,
    KeySet,
    _core,
    ctr,
    open_batch,
    seal_batch,
)
from daelstrom.aead import BY_NAME
from daelstrom.exceptions import DeviceError, InvalidTag, UnsupportedAlgorithm

try:
    _loader = importlib.machinery.ExtensionFileLoader("daelstrom._threads", str(_core.__file__))
    _threads = importlib.util.module_from_spec(importlib.util.spec_from_loader(_loader.name, _loader))
    _loader.exec_module(_threads)
except ImportError:
    pytest.skip("needs the package that tests have, with the device made of threads", allow_module_level=True)

KEY, NONCE = bytes(range(16)), bytes(range(12))
MOST, MOST_AAD = 64 << 10, 1024  # of a message with its additional data; of those in the host's memory
SIZES = [0, 1, 15, 16, 17, 255, 256, 4095, 4096, 4097, 32769, MOST - 1, MOST, MOST + 1, 100_000]


class Room:
    """Memory of the device, as an array that shows itself by the CUDA array interface, on a stream."""

    def __init__(self, device, data, stream=0):
        data = bytes(data) if not isinstance(data, int) else b"\xa5" * data
        self.device, self.whole = device, device.allocate(max(1, len(data)))
        self.at, self.size, self.stream, self.parent = self.whole, len(data), stream, None
        _threads.write(self.at, data)

    def part(self, begin, end):
        part = object.__new__(Room)
        part.__dict__.update(self.__dict__, at=self.at + begin, size=end - begin, parent=self, whole=None)
        return part

    def __del__(self):
        if self.whole:
            self.device.release(self.whole, max(1, self.size))

    def read(self):
        self.device.wait(self.stream)
        return _threads.read(self.at, self.size)

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.at, False), "version": 3,
                "stream": self.stream or None}  # fmt: skip


@pytest.fixture
def device():
    made = _threads.device()
    yield made
    assert not made.violations()


@pytest.fixture
def ready(device):
    yield AESGCM(KEY, engine=device.engine())


def opened_into(ready, room, aad, out, nonce=NONCE):
    """Whether it is authentic."""
    try:
        ready.decrypt_into(nonce, room, aad, out)
    except InvalidTag:
        return False
    return True


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("aad", [None, b"", b"some", bytes(range(256)) * 4, bytes(1025)])
def test_sealed_and_opened(device, ready, size, aad):
    plain = os.urandom(size)
    expected = AESGCM(KEY).encrypt(NONCE, plain, aad)
    room = Room(device, plain + bytes(16))
    ready.encrypt_into(NONCE, room.part(0, size), aad, room)
    assert room.read() == expected
    back = Room(device, size)
    assert ready.decrypt(NONCE, room, aad, out=back) is back
    assert back.read() == plain
    forged = Room(device, expected[:-1] + bytes((expected[-1] ^ 1,)))
    out = Room(device, size)
    assert not opened_into(ready, forged, aad, out)
    assert out.read() == b"\xa5" * size
    assert not opened_into(ready, forged, aad, forged.part(0, size))
    assert forged.read()[:size] == expected[:size]  # in place the ciphertext stays
    assert opened_into(ready, room, aad, room.part(0, size)) and room.read()[:size] == plain


def test_a_short_one_is_one_launch_and_allocates_once(device, ready):
    room, back = Room(device, 4096 + 16), Room(device, 4096)
    ready.encrypt_into(NONCE, back, None, room)
    ready.decrypt_into(NONCE, room, None, back)
    live, kernels = device.live(), device.kernels()
    for _ in range(20):
        ready.encrypt_into(NONCE, back, b"aad", room)
        ready.decrypt_into(NONCE, room, b"aad", back)
    assert (device.live(), device.kernels()) == (live, kernels + 40)
    assert back.read() == b"\xa5" * 4096


@pytest.mark.parametrize("kind, tag", [(kind, tag) for kind in BY_NAME.values() for tag in kind.tags])
def test_the_other_modes(kind, tag):
    device = _threads.device()
    key = os.urandom(kind.bits[0] // 8)
    ours = kind(key, tag_length=tag, engine=device.engine())
    nonce = os.urandom({AEGIS256: 32, XAES256GCM: 24, AESGCMSIV: 12}.get(kind, 16))
    for size, aad in ((0, None), (1, b"some"), (4096, bytes(1025)), (MOST + 1, b"")):
        plain = os.urandom(size)
        expected = kind(key, tag_length=tag).encrypt(nonce, plain, aad)
        room = Room(device, plain + bytes(tag))
        ours.encrypt_into(nonce, room.part(0, size), aad, room)
        assert room.read() == expected
        back = Room(device, size)
        there = Room(device, aad or b"")  # additional data on the device
        assert ours.decrypt(nonce, room, there, out=back) is back
        assert back.read() == plain
        forged, out = Room(device, expected[:-1] + bytes((expected[-1] ^ 1,))), Room(device, size)
        assert not opened_into(ours, forged, aad, out, nonce)
        assert out.read() in (bytes(size), b"\xa5" * size)
        assert not opened_into(ours, forged, aad, forged.part(0, size), nonce)
        assert forged.read()[:size] == expected[:size]  # in place the ciphertext stays
    keys, sizes = [os.urandom(len(key)) for _ in range(2)], [0, 5, 3000, 17]
    plain = [os.urandom(size) for size in sizes]
    nonces = [os.urandom(len(nonce)) for _ in sizes]
    how = {"mode": next(name for name, its in BY_NAME.items() if its is kind), "tag_length": tag,
           "key_index": [0, 1, 1, 0]}  # fmt: skip
    rooms = [Room(device, text + bytes(tag)) for text in plain]
    texts = [room.part(0, len(text)) for room, text in zip(rooms, plain)]
    theirs = KeySet(keys, engine=device.engine())
    seal_batch(theirs, nonces, texts, b"aad", out=rooms, **how)
    assert [room.read() for room in rooms] == seal_batch(keys, nonces, plain, b"aad", **how)
    open_batch(theirs, nonces, rooms, b"aad", out=texts, **how)
    assert [text.read() for text in texts] == plain
    if kind is XAES256GCM:
        with pytest.raises(ValueError, match="lie on a device"):
            open_batch(theirs, None, rooms, out=[Room(device, max(len(text) - 24, 0)) for text in plain], **how)
    # Additional data of the host's memory are copied, and that is waited for; they are no secret.
    assert device.violations() <= {"copy_in with pageable memory", "device memory released unwiped"}


def test_additional_data_on_the_device(device, ready):
    for size, aad_size in ((5, 2000), (MOST - 100, 100), (MOST - 100, 101), (0, MOST)):
        plain, aad = os.urandom(size), os.urandom(aad_size)
        room, there = Room(device, plain + bytes(16)), Room(device, aad)
        ready.encrypt_into(NONCE, room.part(0, size), there, room)
        assert room.read() == AESGCM(KEY).encrypt(NONCE, plain, aad)
        assert opened_into(ready, room, there, room.part(0, size)) and room.read()[:size] == plain


def test_arguments_may_go_at_once(device):
    """Nonce and additional data are read before the call returns, and the key while work goes on."""
    room = Room(device, bytes(1000 + 16))
    aad, nonce = bytearray(b"a" * 700), bytearray(NONCE)
    sealing = AESGCM(KEY, engine=device.engine())
    sealing.encrypt_into(nonce, room.part(0, 1000), aad, room)
    aad[:], nonce[:] = bytes(700), bytes(12)
    del sealing
    gc.collect()
    assert room.read() == AESGCM(KEY).encrypt(NONCE, bytes(1000), b"a" * 700)


def test_streams(device, ready):
    """Behind the producer's work, also on a stream that is named, whose work the producer then waits for."""
    streams = [device.stream() for _ in range(3)]
    expected = AESGCM(KEY).encrypt(NONCE, bytes(4096))
    for producer in (0, streams[0]):
        for named in (None, streams[1], streams[2], producer):
            room = Room(device, bytes(4096 + 16), producer)
            ready.encrypt_into(NONCE, room.part(0, 4096), None, room, stream=named)
            ctr(KEY, bytes(16), room, out=room, engine=device.engine())
            ctr(KEY, bytes(16), room, out=room, engine=device.engine())
            assert opened_into(ready, room, None, room.part(0, 4096))
            assert room.read() == bytes(4096) + expected[-16:]
    for stream in streams:
        device.end_stream(stream)


def test_threads(device):
    engine, faults = device.engine(), []
    ready = AESGCM(KEY, engine=engine)

    def work(number):
        try:
            mine = device.stream()
            for i in range(15):
                plain, nonce = bytes((number,)) * (i * 331), bytes((number, i)) + bytes(10)
                room = Room(device, plain + bytes(16), mine)
                ready.encrypt_into(nonce, room.part(0, len(plain)), b"aad", room)
                out = Room(device, len(plain), mine)
                assert opened_into(ready, room, b"aad", out, nonce) and out.read() == plain
                assert not opened_into(ready, room, b"other", out, nonce)
            device.end_stream(mine)
        except BaseException as fault:
            faults.append(repr(fault))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33])
@pytest.mark.parametrize("aad", [None, b"a" * 30, b"c" * 1100])
def test_small_batches(count, aad):
    device = _threads.device()
    keys = [os.urandom(bits // 8) for bits in (128, 192, 256)]
    ready, how = KeySet(keys, engine=device.engine()), {"associated_data": aad, "key_index": [i % 3 for i in range(count)]}
    plain, nonces = [os.urandom(i * 97) for i in range(count)], [os.urandom(12) for _ in range(count)]
    rooms = [Room(device, one + bytes(16)) for one in plain]
    parts = [room.part(0, room.size - 16) for room in rooms]
    seal_batch(ready, nonces, parts, out=rooms, **how)
    assert [room.read() for room in rooms] == seal_batch(KeySet(keys), nonces, plain, **how)
    forged = count // 2
    tag = rooms[forged].read()[-16:]
    _threads.write(rooms[forged].at + parts[forged].size, bytes(16))
    with pytest.raises(InvalidTag) as refused:
        open_batch(ready, nonces, rooms, out=parts, **how)
    assert refused.value.indices == (forged,)
    assert [part.read() for i, part in enumerate(parts) if i != forged] == plain[:forged] + plain[forged + 1 :]
    assert open_batch(ready, nonces[forged : forged + 1], [Room(device, parts[forged].read() + tag)],
                      out=[parts[forged]], associated_data=aad, key_index=[forged % 3])[0].read() == plain[forged]  # fmt: skip
    # Those that do not go along copy their additional data and wait for that; they are no secret.
    along = aad is None or (count <= 32 and count * len(aad) <= MOST_AAD)
    assert device.violations() <= (
        set() if along else {"copy_in with pageable memory", "device memory released unwiped"}
    )


@pytest.mark.parametrize("call", ["run list", "wait for stream", "allocate_pinned", "tables"])
def test_a_device_that_fails(call):
    device = _threads.device(fail_at=1, fail_call=call)
    ready = AESGCM(KEY, engine=device.engine())
    room = Room(device, AESGCM(KEY).encrypt(NONCE, b"plain"))
    out = Room(device, 5)
    with pytest.raises(DeviceError, match=f"{call} failed"):
        ready.decrypt_into(NONCE, room, None, out)
    device.wait(0)
    assert opened_into(ready, room, None, out) and out.read() == b"plain"
    assert not device.violations()


def test_what_makes_no_sense(device, ready):
    room = Room(device, bytes(1000))
    with pytest.raises(ValueError, match="overlap"):
        ready.encrypt_into(NONCE, room.part(16, 116), None, room.part(0, 116))
    with pytest.raises(ValueError, match="overlap"):
        ready.encrypt_into(NONCE, room.part(0, 100), room.part(50, 60), room.part(0, 116))
    with pytest.raises(ValueError, match="nonce"):
        ready.encrypt_into(room.part(0, 12), room.part(0, 100), None, room.part(0, 116))
    host = AESGCM(KEY, engine=_core.Engine("openssl"))
    with pytest.raises(UnsupportedAlgorithm, match="device memory"):
        host.encrypt_into(NONCE, room.part(0, 100), None, room.part(0, 116))
    assert room.read() == bytes(1000)


def test_all_is_given_back():
    device = _threads.device()
    for size in (100, MOST + 1):
        room = Room(device, bytes(size + 16))
        ready = AESGCM(KEY, engine=device.engine())
        ready.encrypt_into(NONCE, room.part(0, size), b"aad", room)
        ready.decrypt_into(NONCE, room, b"aad", room.part(0, size))
        assert device.live() > 1
        del ready, room
        gc.collect()
    assert device.live() == 0


class Ordered(Room):
    """As cupy's, whose freed memory is handed on in the order of its stream: no call waits for it."""


Ordered.__module__ = "cupy.device_made_of_threads"


@pytest.mark.parametrize("size", [64, 4096, MOST + 100])
def test_each_tensor_comes_behind_its_own_producers_work(size):
    """Data, output and additional data of three streams, each with work under way that changes or reads them."""
    device = _threads.device()
    ready, engine = AESGCM(KEY, engine=device.engine()), device.engine()
    streams = [device.stream() for _ in range(4)]
    plain, aad = os.urandom(size), os.urandom(64)
    for round in range(5):
        for named in (None, streams[3]):
            data, out = Ordered(device, plain, streams[0]), Ordered(device, size + 16, streams[1])
            there, copy = Ordered(device, aad, streams[2]), Ordered(device, size + 16, streams[1])
            for room in (data, there):
                for _ in range(3):  # an odd number of times, and then what is wanted
                    ctr(KEY, bytes(16), room, out=room, engine=engine)
            ctr(KEY, bytes(16), out, out=copy, engine=engine)  # reads what was there before
            ready.encrypt_into(NONCE, data, there, out, stream=named)
            later = Ordered(device, size + 16, streams[1])
            ctr(KEY, bytes(16), out, out=later, engine=engine)  # and what is there now
            ctr(KEY, bytes(16), there, out=there, engine=engine)  # not before it was read
            ctr(KEY, bytes(16), data, out=data, engine=engine)
            expected = AESGCM(KEY).encrypt(NONCE, ctr(KEY, bytes(16), plain), ctr(KEY, bytes(16), aad))
            assert copy.read() == ctr(KEY, bytes(16), b"\xa5" * (size + 16))
            assert out.read() == expected and later.read() == ctr(KEY, bytes(16), expected)
            assert data.read() == plain and there.read() == aad
    for stream in streams:
        device.end_stream(stream)
    # Lists of messages are no secret.
    assert device.violations() <= {"device memory released unwiped", "page-locked memory released unwiped"}


def test_batches_come_behind_the_work_of_each_of_their_producers(device):
    count, size = 12, 3000
    keys, engine = KeySet([KEY], engine=device.engine()), device.engine()
    streams = [device.stream() for _ in range(4)]
    plain, nonces = [os.urandom(size) for _ in range(count)], [os.urandom(12) for _ in range(count)]
    data = [Ordered(device, ctr(KEY, bytes(16), one), streams[i % 3]) for i, one in enumerate(plain)]
    outs = [Ordered(device, size + 16, streams[3 - i % 4]) for i in range(count)]
    copies = [Ordered(device, size + 16, out.stream) for out in outs]
    for room in data:
        ctr(KEY, bytes(16), room, out=room, engine=engine)
    for out, copy in zip(outs, copies):
        ctr(KEY, bytes(16), out, out=copy, engine=engine)
    seal_batch(keys, nonces, data, out=outs)
    assert [out.read() for out in outs] == seal_batch(KEY, nonces, plain)
    assert {copy.read() for copy in copies} == {ctr(KEY, bytes(16), b"\xa5" * (size + 16))}
    for stream in streams:
        device.end_stream(stream)


def test_memory_of_other_libraries_is_kept_until_the_work_is_done(device):
    """Which freed at once would be somebody else's amid the work: XLA's and RMM's order is not that of a stream."""
    engine, stream = device.engine(), device.stream()
    ready = AESGCM(KEY, engine=engine)
    for _ in range(10):
        out = Ordered(device, 4096 + 16, stream)
        room = Room(device, bytes(4096), stream)
        ready.encrypt_into(NONCE, room, None, out)
        _threads.write(room.at, b"\xff" * 4096)  # whose it is next; without waiting for a stream
        del room
        assert out.read() == AESGCM(KEY).encrypt(NONCE, bytes(4096))
        room, out = Room(device, bytes(4096), stream), Ordered(device, 4096, stream)
        ctr(KEY, bytes(16), room, out=out, engine=engine)
        _threads.write(room.at, b"\xff" * 4096)
        assert out.read() == ctr(KEY, bytes(16), bytes(4096))
    device.end_stream(stream)


def test_what_could_not_be_waited_for_is_kept_for_good():
    device = _threads.device(fail_at=1, fail_call="wait for stream")
    ready = AESGCM(KEY, engine=device.engine())
    room, out = Room(device, bytes(100)), Ordered(device, 116)
    before = sys.getrefcount(room)
    with pytest.raises(DeviceError, match="wait for stream failed"):
        ready.encrypt_into(NONCE, room, None, out)
    assert sys.getrefcount(room) == before + 1
    device.wait(0)
    assert out.read() == AESGCM(KEY).encrypt(NONCE, bytes(100))


@pytest.mark.parametrize("wait", [1, 2])
def test_what_a_batch_left_there_and_could_not_wait_for_is_kept(wait):
    """Its additional data and its list of messages, which work that is under way may still read; once the device
    answers again nothing of it is given back."""
    device = _threads.device()
    keys, count = KeySet([KEY], engine=device.engine()), 40
    nonces, rooms = [os.urandom(12) for _ in range(count)], [Room(device, bytes(1000)) for _ in range(count)]
    outs, aad = [Room(device, 1016) for _ in range(count)], [os.urandom(100) for _ in range(count)]
    seal_batch(keys, nonces, rooms, out=outs, associated_data=aad)
    device.wait(0)
    before = device.live()
    device.fail(wait, "wait for stream", 100)
    with pytest.raises(DeviceError, match="wait for stream failed"):
        seal_batch(keys, nonces, rooms, out=outs, associated_data=aad)
    device.fail(0)
    device.wait(0)
    assert device.live() >= before + wait  # the data; and the list, which there is by the second wait
    assert "device memory released while a stream uses it" not in device.violations()
    seal_batch(keys, nonces, rooms, out=outs, associated_data=aad)
    assert [out.read() for out in outs] == seal_batch(KEY, nonces, [bytes(1000)] * count, associated_data=aad)


def test_empty_tensors_have_no_memory_to_ask_of(device):
    """Theirs is null, which is no device's, and their number is."""
    class Empty(Ordered):
        @property
        def __cuda_array_interface__(self):
            return {**super().__cuda_array_interface__, "data": (0, False)}

    Empty.__module__ = Ordered.__module__
    ready, stream = AESGCM(KEY, engine=device.engine()), device.stream()
    nothing, out = Empty(device, b"", stream), Ordered(device, 16)
    for named in (None, stream, device.stream()):
        ready.encrypt_into(NONCE, nothing, b"aad", out, stream=named)
        assert out.read() == AESGCM(KEY).encrypt(NONCE, b"", b"aad")
        ready.decrypt_into(NONCE, out, b"aad", nothing, stream=named)
        seal_batch(ready, [NONCE], [nothing], out=[out], stream=named)
        assert out.read() == AESGCM(KEY).encrypt(NONCE, b"")
        ctr(KEY, bytes(16), nothing, out=nothing, stream=named, engine=device.engine())


def test_records_that_are_cut_short_beside_others(device):
    ready, nonces = AESGCM(KEY, engine=device.engine()), [os.urandom(12) for _ in range(3)]
    sealed = seal_batch(KEY, nonces, [b"one", b"two", b"three"])
    rooms = [Room(device, one) for one in (sealed[0], sealed[1][:7], sealed[2])]
    outs = [Room(device, max(room.size - 16, 0)) for room in rooms]
    status = bytearray(12)
    open_batch(ready, nonces, rooms, out=outs, status=status)
    assert [out.read() for out in outs] == [b"one", b"", b"three"]
    assert list(memoryview(status).cast("i")) == [0, 16, 0]


class Capsules:
    """A tensor of the device by DLPack, as libraries without the C exchange API show theirs; those of "jax" say nothing of
    streams."""

    def __init__(self, room):
        self.room = room

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None, **how):
        raise BufferError("this tensor is not shown")


def test_right_or_refused():
    """A walk over what may be given where data lie on a device: rooms of several streams, in place and not, host memory
    among them, other rooms' parts, and what is no memory."""
    for random in walks("arguments on a device", 2):
        device = _threads.device()
        engine = device.engine()
        streams = [0] + [device.stream() for _ in range(3)]
        key = random.randbytes(random.choice([16, 24, 32]))
        ready, keys = AESGCM(key, engine=engine), KeySet([key], engine=engine)

        def room(data):
            return random.choice([Room, Ordered])(device, data, random.choice(streams))

        def wrong(size):
            return random.choice([
                lambda: bytearray(size), lambda: None, lambda: "text", lambda: 5, lambda: Capsules(None), lambda: room(size + 1),
                lambda: room(bytes(max(size - 1, 0))), lambda: numpy.array([None] * 3, object),
            ])()  # fmt: skip

        for i in range(60):
            size = random.choice([0, 1, 16, 100, 4096, MOST + 1])
            plain, nonce = random.randbytes(size), random.randbytes(12)
            aad = random.choice([None, b"", b"aad", random.randbytes(1100)])
            sealed = AESGCM(key).encrypt(nonce, plain, aad)
            there = aad if aad is None or random.random() < 0.6 else room(aad)
            stream = random.choice([None, None] + streams)
            way = random.randrange(6)
            try:
                if way == 0:
                    data, out = room(plain), room(size + 16)
                    ready.encrypt_into(nonce, data, there, out, stream=stream)
                    assert out.read() == sealed and data.read() == plain
                elif way == 1:
                    data, out = room(sealed), room(size)
                    ready.decrypt_into(nonce, data, there, out, stream=stream)
                    assert out.read() == plain and data.read() == sealed
                elif way == 2:
                    whole = room(plain + bytes(16))
                    ready.encrypt_into(nonce, whole.part(0, size), there, whole, stream=stream)
                    assert whole.read() == sealed
                elif way == 3:
                    forged = bytearray(sealed)
                    forged[random.randrange(len(forged))] ^= 1
                    data, out = room(bytes(forged)), room(size)
                    with pytest.raises(InvalidTag):
                        ready.decrypt_into(nonce, data, there, out, stream=stream)
                    assert out.read() == b"\xa5" * size
                elif way == 4:
                    data, out = room(plain), room(size)
                    ctr(key, nonce + bytes(4), data, out=out, stream=stream, engine=engine)
                    assert out.read() == ctr(key, nonce + bytes(4), plain)
                else:
                    texts = [random.randbytes(random.choice([0, 5, 300])) for _ in range(random.choice([1, 3, 40]))]
                    nonces = [random.randbytes(12) for _ in texts]
                    outs = [room(len(one) + 16) for one in texts]
                    seal_batch(keys, nonces, [room(one) for one in texts], aad, out=outs, stream=stream)
                    assert [out.read() for out in outs] == seal_batch(key, nonces, texts, aad)
            except BufferError as refused:
                raise AssertionError(f"refused: {refused}")
            # And a mistake in one place, which touches nothing.
            data, out = room(plain), room(size + 16)
            given = {"nonce": nonce, "data": data, "associated_data": there, "buf": out}
            place = random.choice(list(given))
            given[place] = wrong({"nonce": 12, "data": size, "associated_data": 10, "buf": size + 16}[place])
            try:
                ready.encrypt_into(**given, stream=stream)
            except (TypeError, ValueError, BufferError, OverflowError, DeviceError, UnsupportedAlgorithm) as refused:
                assert str(refused)
                assert out.read() == b"\xa5" * (size + 16)
        for stream in streams[1:]:
            device.end_stream(stream)
        del ready, keys
        gc.collect()
        assert device.violations() <= {"device memory released unwiped", "page-locked memory released unwiped",
                                       "copy_in with pageable memory"}  # fmt: skip
