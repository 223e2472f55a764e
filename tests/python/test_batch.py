# SPDX-License-Identifier: Apache-2.0
"""Many messages at once: lists, arrays with offsets, keys by number, nonces that count."""

import os

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
        (lambda: seal_batch(KEYS[0], bytes(13), [b"one"]), "nonces is 13 bytes"),
        (lambda: seal_batch(KEYS[0], nonces, [b"one", b"two"], [b"aad"]), "1 associated_data for 2"),
        (lambda: seal_batch(KEYS[0], nonces, b"onetwo", offsets=[0, 3, 7]), "offsets reach to 7; data is 6"),
        (lambda: seal_batch(KEYS[0], nonces, b"onetwo", offsets=[0, 3, 2]), "message 1 is from 3 to 2"),
        (lambda: seal_batch(KEYS[0], nonces, b"onetwo", offsets=[-1, 3, 6]), "message 0 is from -1"),
        (lambda: seal_batch(KEYS[0], [], b"", offsets=[]), "one number more"),
        (lambda: open_batch(KEYS[0], nonces, bytes(40), offsets=[0, 15, 40]), "16 bytes or more"),
        (lambda: open_batch(KEYS[0], nonces, [bytes(15), bytes(16)]), "message 0 is 15 bytes"),
        (lambda: seal_batch(KEYS[0], nonces, [b"one", b"two"], out=[bytearray(19)]), "1 outputs for 2"),
        (lambda: seal_batch(KEYS[0], nonces, [b"one", b"two"], out=[bytearray(19)] * 2 and
                            [bytearray(19), bytearray(18)]), "output 1 is 18 bytes"),
        (lambda: seal_batch([], nonces, [b"one", b"two"]), "one key or more"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=what):
            call()
    with pytest.raises(TypeError, match="64 bits"):
        seal_batch(KEYS[0], nonces, b"onetwo", offsets=numpy.array([0, 3, 6], numpy.int32))
    assert seal_batch(KEYS[0], [], []) == []
    assert len(seal_batch(KEYS[0], [], b"", offsets=[0])) == 0


def test_a_ready_key_does_for_batches():
    ready = AESGCM(KEYS[1])
    nonces = nonces_of(3)
    assert seal_batch(ready, nonces, [b"a", b"b", b"c"]) == seal_batch(KEYS[1], nonces, [b"a", b"b", b"c"])
