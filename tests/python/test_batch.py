# SPDX-License-Identifier: Apache-2.0
"""Many messages at once: lists, arrays with offsets, keys by number, nonces that count."""

import array
import gc
import os
import threading

import numpy
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM as Theirs
from hypothesis import given
from hypothesis import strategies as st

from daelstrom import (
    AESGCM,
    KeySet,
    NonceCounter,
    open_batch,
    opened_offsets,
    seal_batch,
    sealed_offsets,
)
from daelstrom.exceptions import InvalidTag, LimitError

KEYS = [bytes(range(16)), bytes(range(24)), bytes(range(32))]


def nonces_of(count):
    return [i.to_bytes(12, "big") for i in range(count)]


@given(messages=st.lists(st.binary(max_size=3000), max_size=30), aad=st.none() | st.binary(max_size=50))
def test_lists_are_sealed_as_pyca_seals_each(messages, aad):
    nonces = nonces_of(len(messages))
    sealed = seal_batch(KEYS[0], nonces, messages, aad)
    assert sealed == [Theirs(KEYS[0]).encrypt(n, m, aad) for n, m in zip(nonces, messages)]
    assert open_batch(KEYS[0], b"".join(nonces), sealed, aad) == messages


@given(st.data())
def test_arrays_with_offsets_are_the_same_messages(data):
    sizes = data.draw(st.lists(st.integers(0, 2000), max_size=20))
    offsets = numpy.concatenate([[3], 3 + numpy.cumsum(sizes)]).astype(numpy.int64)
    text = numpy.frombuffer(os.urandom(int(offsets[-1]) + 5), numpy.uint8)
    nonces = nonces_of(len(sizes))
    sealed = seal_batch(KEYS[2], nonces, text, b"aad", offsets=offsets)
    assert isinstance(sealed, numpy.ndarray) and sealed.dtype == numpy.uint8
    places = sealed_offsets(offsets)
    for i, nonce in enumerate(nonces):
        message = text[offsets[i] : offsets[i + 1]].tobytes()
        assert sealed[places[i] : places[i + 1]].tobytes() == Theirs(KEYS[2]).encrypt(nonce, message, b"aad")
    assert len(sealed) == places[-1]
    back = open_batch(KEYS[2], nonces, sealed, b"aad", offsets=places)
    assert (opened_offsets(places) == offsets - 3).all()
    assert back.tobytes() == text[3 : offsets[-1]].tobytes()


def test_each_message_has_its_key_and_its_additional_data():
    count = 100
    keys = KeySet(KEYS)
    assert len(keys) == 3
    index = numpy.arange(count, dtype=numpy.uint32) % 3
    nonces, messages = nonces_of(count), [os.urandom(i) for i in range(count)]
    aad = [None if i % 5 == 0 else str(i).encode() for i in range(count)]
    sealed = seal_batch(keys, nonces, messages, aad, key_index=index)
    for i in range(count):
        assert sealed[i] == Theirs(KEYS[i % 3]).encrypt(nonces[i], messages[i], aad[i])
    assert open_batch(keys, nonces, sealed, aad, key_index=list(index)) == messages
    keys.replace(1, bytes(16))
    sealed[1] = Theirs(bytes(16)).encrypt(nonces[1], b"another", b"1")
    assert open_batch(keys, nonces[1:2], sealed[1:2], b"1", key_index=[1]) == [b"another"]
    for wrong, what in (([0] * 99, "99 numbers of keys"), ([3] * 100, "has key 3; there are 3")):
        with pytest.raises(ValueError, match=what):
            seal_batch(keys, nonces, messages, key_index=wrong)
    with pytest.raises(TypeError, match="32 bits"):
        seal_batch(keys, nonces, messages, key_index=index.astype(numpy.int64))


def test_forgeries_are_named_and_give_nothing_away():
    count = 50
    nonces, messages = nonces_of(count), [os.urandom(100) for _ in range(count)]
    sealed = seal_batch(KEYS[0], nonces, messages)
    forged = [bytearray(one) for one in sealed]
    for i in (7, 31):
        forged[i][i] ^= 1
    with pytest.raises(InvalidTag, match="2 of 50 messages do not authenticate: 7, 31") as caught:
        open_batch(KEYS[0], nonces, forged)
    assert caught.value.indices == (7, 31)
    status = numpy.full(count, -1, numpy.int32)
    opened = open_batch(KEYS[0], nonces, forged, status=status)
    assert [i for i in range(count) if opened[i] is None] == [7, 31] == list(numpy.flatnonzero(status))
    assert all(opened[i] == messages[i] for i in range(count) if i not in (7, 31))
    offsets = list(range(0, 116 * count + 1, 116))
    out = numpy.full(100 * count, 0xA5, numpy.uint8)
    assert open_batch(KEYS[0], nonces, b"".join(forged), offsets=offsets, out=out, status=status) is out
    for i in range(count):
        expected = bytes(100) if i in (7, 31) else messages[i]
        assert out[100 * i : 100 * i + 100].tobytes() == expected
    outs = [bytearray(b"\xa5" * 100) for _ in range(count)]
    with pytest.raises(InvalidTag):
        open_batch(KEYS[0], nonces, forged, out=outs)
    assert outs[7] == bytes(100)
    with pytest.raises(ValueError, match="status is 4 bytes"):
        open_batch(KEYS[0], nonces, forged, status=numpy.zeros(1, numpy.int32))


def test_nonces_that_count_never_repeat():
    counter = NonceCounter(b"abcd")
    assert counter.next() == b"abcd" + bytes(8)
    assert counter.take(2) == b"abcd" + (1).to_bytes(8, "big") + b"abcd" + (2).to_bytes(8, "big")
    assert counter.unused == 3
    assert NonceCounter(b"abcd", counter.unused).next() == b"abcd" + (3).to_bytes(8, "big")
    last = NonceCounter(b"abcd", (1 << 64) - 3)  # the last number is never handed out
    with pytest.raises(LimitError):
        last.take(3)
    assert len(last.take(2)) == 24
    with pytest.raises(LimitError):
        last.next()
    with pytest.raises(ValueError, match="fixed is 3 bytes; it takes 4"):
        NonceCounter(b"abc")


def test_a_nonce_used_twice_is_refused():
    nonce = bytes(12)
    with pytest.raises(LimitError):
        seal_batch(KEYS[0], [nonce, nonce], [b"one", b"two"])
    assert len(seal_batch(KeySet(KEYS), [nonce, nonce], [b"one", b"two"], key_index=[0, 1])) == 2


def test_what_makes_no_sense_is_refused():
    nonces = nonces_of(2)
    for call, what in (
        (lambda: seal_batch(KEYS[0], nonces, [b"one"]), "2 nonces for 1 messages"),
        (lambda: seal_batch(KEYS[0], bytes(12), [b"one", b"two"]), "2 messages take 12 each"),
        (lambda: seal_batch(KEYS[0], bytes(13), [b"one"]), "nonces are 13 bytes"),
        (lambda: seal_batch(KEYS[0], nonces, [b"one", b"two"], [b"aad"]), "1 associated_data for 2"),
        (lambda: seal_batch(KEYS[0], nonces, b"onetwo", offsets=[0, 3, 7]), "offsets reach to 7; data is 6"),
        (lambda: seal_batch(KEYS[0], nonces, b"onetwo", offsets=[0, 3, 2]), "message 1 is from 3 to 2"),
        (lambda: seal_batch(KEYS[0], nonces, b"onetwo", offsets=[-1, 3, 6]), "message 0 is from -1"),
        (lambda: seal_batch(KEYS[0], [], b"", offsets=[]), "one number more"),
        (lambda: seal_batch(KEYS, nonces, [b"one", b"two"]), "keys are 3, and no key_index"),
        (lambda: seal_batch(KeySet(KEYS), nonces, [b"one", b"two"]), "keys are 3, and no key_index"),
        (lambda: seal_batch(KEYS[0], nonces, [b"one", b"two"], key_index=[0, -1]), r"key_index\[1\] is -1"),
        (lambda: seal_batch(KEYS[0], nonces, b"onetwo", offsets=[0, 3, 1 << 63]), r"offsets\[2\] is 9223372036854775808"),
        (lambda: seal_batch(KEYS[0], nonces, [b"one", b"two"], out=[bytearray(19)]), "1 outputs for 2"),
        (lambda: seal_batch(KEYS[0], nonces, [b"one", b"two"], out=[bytearray(19)] * 2 and
                            [bytearray(19), bytearray(18)]), "output 1 is 18 bytes"),
        (lambda: seal_batch([], nonces, [b"one", b"two"]), "one key or more"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=what):
            call()
    for wrong in (numpy.array([0, 3, 6], numpy.int32), numpy.array([0.0, 3.0, 6.0]), array.array("i", [0, 3, 6]),
                  array.array("d", [0, 3, 6]), numpy.array([0, 3, 6], ">i8")):  # fmt: skip
        with pytest.raises(TypeError, match="64 bits"):
            seal_batch(KEYS[0], nonces, b"onetwo", offsets=wrong)
    with pytest.raises(TypeError, match="integer"):
        seal_batch(KEYS[0], nonces, b"onetwo", offsets=[0, 3.0, 6])
    with pytest.raises(TypeError, match="32 bits"):
        seal_batch(KEYS[0], nonces, [b"one", b"two"], key_index=numpy.zeros(2, "f4"))
    for wrong in (b"onetwo", bytearray(6), memoryview(b"onetwo"), "onetwo", {b"one", b"two"}, 3, None):
        with pytest.raises(TypeError, match=f"data is {type(wrong).__name__}; give a list of buffers"):
            seal_batch(KEYS[0], nonces, wrong)
    assert seal_batch(KEYS[0], nonces, b"onetwo", offsets=array.array("q", [0, 3, 6])).nbytes == 38
    assert seal_batch(KEYS[0], [], []) == []
    assert len(seal_batch(KEYS[0], [], b"", offsets=[0])) == 0


def test_a_ready_key_does_for_batches():
    ready = AESGCM(KEYS[1])
    nonces = nonces_of(3)
    assert seal_batch(ready, nonces, [b"a", b"b", b"c"]) == seal_batch(KEYS[1], nonces, [b"a", b"b", b"c"])


class Lazy(list):
    """A list whose items are made when they are asked for, and are nobody else's then."""

    def __init__(self, count, make):
        super().__init__([None] * count)
        self.make = make

    def __getitem__(self, i):
        return self.make(i)


class Iterated(list):
    def __init__(self, count, make):
        super().__init__([None] * count)
        self.make = make

    def __iter__(self):
        return (self.make(i) for i in range(len(self)))


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("kind", [Lazy, Iterated, lambda count, make: (make(i) for i in range(count))])
def test_lists_that_make_their_items_are_sealed_as_they_say(kind, size):
    count = 20
    nonces = nonces_of(count)
    message, aad = (lambda i: bytes([i]) * size), (lambda i: b"%d" % i * size)
    expected = [Theirs(KEYS[0]).encrypt(nonces[i], message(i), aad(i)) for i in range(count)]
    lists = kind if isinstance(kind, type) else lambda count, make: list(kind(count, make))
    assert seal_batch(KEYS[0], lists(count, nonces.__getitem__), kind(count, message), lists(count, aad)) == expected
    assert open_batch(KEYS[0], nonces, kind(count, expected.__getitem__), [aad(i) for i in range(count)]) == [
        message(i) for i in range(count)
    ]


def test_lists_that_change_meanwhile():
    """What a call was given when it began is what it seals, whatever becomes of the lists."""
    count, size = 300, 20_000
    nonces = nonces_of(count)
    expected = [Theirs(KEYS[0]).encrypt(nonces[i], bytes([i % 127]) * size, b"%d" % i * 500) for i in range(count)]
    for change in (list.clear, lambda given: given.__setitem__(slice(None), [b"another"] * count)):
        data, aad = [bytes([i % 127]) * size for i in range(count)], [b"%d" % i * 500 for i in range(count)]
        mine, begun = list(nonces), threading.Event()

        def meanwhile():
            begun.wait()
            for given in (data, aad, mine):
                change(given)
            gc.collect()
            return [b"\xee" * size for _ in range(count)]

        thread = threading.Thread(target=meanwhile)
        thread.start()
        got = []
        begun.set()
        try:
            got = seal_batch(KEYS[0], mine, data, aad)
        except (TypeError, ValueError):
            pass  # the change came first
        thread.join()
        assert got in ([], expected) or len(got) != count or got == [
            Theirs(KEYS[0]).encrypt(n, b"another", b"another") for n in nonces
        ]


def test_a_list_that_its_own_items_change():
    """A tensor's __dlpack__ runs code of Python's amid the call."""
    count = 5
    nonces, data = nonces_of(count), [bytes([i]) * 3000 for i in range(count)]

    class Clearing:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **how):
            given.clear()
            gc.collect()
            junk.extend(b"\xee" * 3000 for _ in range(20))
            return self.array.__dlpack__(**how)

    junk = []
    given = [bytes(bytearray(one)) for one in data[:4]] + [Clearing(numpy.frombuffer(bytearray(data[4]), numpy.uint8))]
    out = [bytearray(3016) for _ in range(count)]
    assert seal_batch(KEYS[0], nonces, given, out=out) == [
        Theirs(KEYS[0]).encrypt(n, one, None) for n, one in zip(nonces, data)
    ]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_record_that_is_cut_short_is_one_that_is_not_authentic(position):
    nonces, messages = nonces_of(3), [b"one", b"", b"three"]
    sealed = seal_batch(KEYS[0], nonces, messages)
    for size in (0, 1, 15):
        given = list(sealed)
        given[position] = given[position][:size]
        with pytest.raises(InvalidTag) as refused:
            open_batch(KEYS[0], nonces, given)
        assert refused.value.indices == (position,)
        status = numpy.full(3, -1, numpy.int32)
        opened = open_batch(KEYS[0], nonces, given, status=status)
        assert opened == [None if i == position else message for i, message in enumerate(messages)]
        assert [bool(code) for code in status] == [i == position for i in range(3)]
        offsets = [0]
        for one in given:
            offsets.append(offsets[-1] + len(one))
        packed = open_batch(KEYS[0], nonces, b"".join(given), offsets=offsets, status=status)
        places = opened_offsets(offsets)
        assert places == opened_offsets(numpy.array(offsets)).tolist()
        for i, message in enumerate(messages):
            assert packed[places[i] : places[i + 1]].tobytes() == (b"" if i == position else message)
    assert open_batch(KEYS[0], nonces[:1], [b"short"], status=numpy.zeros(1, numpy.int32)) == [None]


def test_outputs_that_overlap_are_refused_before_anything_is_touched():
    room = bytearray(range(200))
    before, view, nonces = bytes(room), memoryview(room), nonces_of(2)
    for data, out, what in (
        ([b"abcd", b"efgh"], [view[0:20], view[19:39]], "output of message 1 overlaps the output of message 0"),
        ([view[0:4], view[20:24]], [view[0:20], view[21:41]], "output of message 1 overlaps the data of message 1"),
        ([view[0:4], view[4:8]], [view[0:20], view[20:40]], "output of message 0 overlaps the data of message 1"),
        ([b"abcd", b"efgh"], [view[20:40], view[20:40]], "output of message 1 overlaps the output of message 0"),
        ([view[4:8], b"efgh"], [view[0:20], view[40:60]], "output of message 0 overlaps the data of message 0"),
    ):
        with pytest.raises(ValueError, match=what):
            seal_batch(KEYS[0], nonces, data, out=out)
        assert room == before
    with pytest.raises(ValueError, match="output of message 0 overlaps the additional data of message"):
        seal_batch(KEYS[0], nonces, [b"abcd", b"efgh"], view[10:12], out=[view[0:20], view[20:40]])
    with pytest.raises(ValueError, match="overlaps the additional data of message 1"):
        seal_batch(KEYS[0], nonces, [b"abcd", b"efgh"], [None, view[10:12]], out=[view[0:20], view[20:40]])
    assert room == before
    seal_batch(KEYS[0], nonces, [view[0:4], view[20:24]], out=[view[0:20], view[20:40]])  # in place, each by itself
    assert bytes(room[:40]) == b"".join(
        Theirs(KEYS[0]).encrypt(n, before[at : at + 4], None) for n, at in zip(nonces, (0, 20))
    )
    open_batch(KEYS[0], nonces, [view[0:20], view[20:40]], out=[view[0:4], view[20:24]])
    assert room[:4] == before[:4] and room[20:24] == before[20:24]


def test_what_is_refused_costs_no_ciphertext():
    """The natural attempt to open in place, of which there is one copy."""
    offsets, nonces = [0, 48, 96], nonces_of(2)
    packed = bytearray(seal_batch(KEYS[0], nonces, b"x" * 96, offsets=offsets))
    before = bytes(packed)
    with pytest.raises(ValueError, match="overlaps"):
        open_batch(KEYS[0], nonces, packed, offsets=sealed_offsets(offsets), out=memoryview(packed)[:96])
    assert packed == before
    out = bytearray(b"\xa5" * 96)
    for wrong in ({"key_index": [0, 1]}, {"associated_data": [b"one"]}):
        with pytest.raises(ValueError):
            open_batch(KEYS[0], nonces, packed, offsets=sealed_offsets(offsets), out=out, **wrong)
    assert out == b"\xa5" * 96


def test_a_set_whose_keys_are_replaced_while_others_use_it():
    """Each message is of one key, the old or the new, by nonces of any size; or the replacement is refused."""
    keys, done, faults = KeySet([KEYS[0]]), threading.Event(), []
    message, nonce = bytes(3000), bytes(range(60))
    allowed = {Theirs(key).encrypt(nonce, message, None) for key in (KEYS[0], KEYS[2])}

    def use():
        while not done.is_set():
            got = seal_batch(keys, [nonce], [message])[0]
            if got not in allowed:
                faults.append(got)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    refused = 0
    for i in range(300):
        try:
            keys.replace(0, KEYS[2 * (i % 2)])
        except RuntimeError as error:
            assert "in use by another thread" in str(error)
            refused += 1
    done.set()
    for thread in threads:
        thread.join()
    assert not faults
    keys.replace(0, KEYS[2])
    assert seal_batch(keys, [nonce], [message]) == [Theirs(KEYS[2]).encrypt(nonce, message, None)]
    with pytest.raises(ValueError, match="index is 1; the set has 1 keys"):
        keys.replace(1, KEYS[0])
    with pytest.raises(ValueError, match="an AESGCM's"):
        AESGCM(KEYS[0]).keys.replace(0, KEYS[1])


def test_new_arrays_hold_nothing_where_there_is_no_plaintext():
    nonces, offsets = nonces_of(3), [0, 116, 232, 348]
    packed = bytearray(seal_batch(KEYS[0], nonces, b"x" * 300, offsets=[0, 100, 200, 300]))
    packed[150] ^= 1
    for given in (offsets, tuple(offsets), numpy.array(offsets), array.array("q", offsets)):
        got = open_batch(KEYS[0], nonces, packed, offsets=given, status=numpy.zeros(3, numpy.int32))
        assert bytes(got) == b"x" * 100 + bytes(100) + b"x" * 100
