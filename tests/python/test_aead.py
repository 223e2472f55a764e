# SPDX-License-Identifier: Apache-2.0
"""AEGIS, XAES-256-GCM and AES-GCM-SIV: their documents' vectors, pyca's AESGCMSIV, what is refused."""

import copy
import json
import os
import pathlib
import pickle
import threading

import daelstrom
import numpy
import pytest
from conftest import SIZES, poisoned
from cryptography.exceptions import UnsupportedAlgorithm as Absent
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers import aead as pyca
from daelstrom import (
    AEGIS128L,
    AEGIS128X2,
    AEGIS128X4,
    AEGIS256,
    AESGCM,
    AESGCMSIV,
    XAES256GCM,
    KeySet,
    open_batch,
    opened_offsets,
    seal_batch,
    sealed_offsets,
)
from daelstrom.exceptions import InvalidTag
from daelstrom.hazmat.primitives.ciphers import aead as swapped
from hypothesis import given
from hypothesis import strategies as st

VECTORS = pathlib.Path(__file__).parent.parent / "vectors"
CLASSES = {
    "aegis128l": AEGIS128L,
    "aegis256": AEGIS256,
    "aegis128x2": AEGIS128X2,
    "aegis128x4": AEGIS128X4,
    "xaes256gcm": XAES256GCM,
    "gcm_siv": AESGCMSIV,
}
KEYS = {
    AEGIS128L: (16, 16),
    AEGIS256: (32, 32),
    AEGIS128X2: (16, 16),
    AEGIS128X4: (16, 16),
    XAES256GCM: (32, 24),
    AESGCMSIV: (32, 12),
}
EACH = pytest.mark.parametrize("kind", KEYS)


@pytest.mark.parametrize("file", ["aegis.json", "xaes.json", "gcm-siv.json"])
def test_vectors(file):
    for v in json.loads((VECTORS / file).read_text())["vectors"]:
        h = {name: bytes.fromhex(v[name]) for name in ("key", "nonce", "aad", "plaintext", "ciphertext")}
        for tag in filter(None, (bytes.fromhex(v["tag128"]), bytes.fromhex(v["tag256"]))):
            one = CLASSES[v["mode"]](h["key"], tag_length=len(tag))
            if v["refused"]:
                with pytest.raises(InvalidTag):
                    one.decrypt(h["nonce"], h["ciphertext"] + tag, h["aad"])
                continue
            assert one.encrypt(h["nonce"], h["plaintext"], h["aad"]) == h["ciphertext"] + tag
            assert one.decrypt(h["nonce"], h["ciphertext"] + tag, h["aad"]) == h["plaintext"]


def xaes(key, nonce, data, aad):
    """C2SP's XAES-256-GCM over pyca's AES: CMAC's K1, two blocks of it for GCM's key, and the rest of the nonce."""
    aes = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    doubled = int.from_bytes(aes.update(bytes(16)), "big") << 1
    k1 = doubled & (1 << 128) - 1 ^ (0x87 if doubled >> 128 else 0)
    blocks = (bytes((0, i, ord("X"), 0)) + nonce[:12] for i in (1, 2))
    derived = b"".join(aes.update((int.from_bytes(block, "big") ^ k1).to_bytes(16, "big")) for block in blocks)
    return pyca.AESGCM(derived).encrypt(nonce[12:], data, aad)


def theirs(kind, tag=16):
    """(key, nonce, data, aad) -> ciphertext || tag of somebody else's: libaegis, or OpenSSL by way of pyca."""
    if kind is AESGCMSIV:
        try:
            pyca.AESGCMSIV(bytes(16))
        except Absent as error:
            pytest.skip(str(error))
        return lambda key, nonce, data, aad: pyca.AESGCMSIV(key).encrypt(nonce, data, aad)
    if kind is XAES256GCM:
        return xaes
    aeg = pytest.importorskip("aeg", reason="no aeg, which has libaegis (scripts/setup)")
    module = __import__(f"aeg.{kind.__name__.lower()}", fromlist=["encrypt"])
    assert aeg
    return lambda key, nonce, data, aad: bytes(module.encrypt(key, nonce, data, aad, maclen=tag))


OTHERS = [(kind, tag) for kind in (AEGIS128L, AEGIS256, AEGIS128X2, AEGIS128X4) for tag in (16, 32)]
OTHERS += [(XAES256GCM, 16), (AESGCMSIV, 16)]


@pytest.mark.parametrize("kind, tag", OTHERS)
def test_seals_and_opens_as_others_do(kind, tag):
    other = theirs(kind, tag)
    for key_size in (bits // 8 for bits in kind.bits):
        key, nonce = os.urandom(key_size), os.urandom(KEYS[kind][1])
        ours = kind(key, tag_length=tag)
        for size in SIZES + list(range(130)):
            data = os.urandom(size)
            for aad in (None, b"additional data"):
                sealed = ours.encrypt(nonce, data, aad)
                assert type(sealed) is bytes
                assert sealed == other(key, nonce, data, aad)
                assert ours.decrypt(nonce, sealed, aad) == data


@pytest.mark.parametrize("kind, tag", OTHERS)
def test_any_message_is_the_others(kind, tag):
    other, key, nonce = theirs(kind, tag), os.urandom(KEYS[kind][0]), os.urandom(KEYS[kind][1])

    @given(data=st.binary(max_size=3000), aad=st.none() | st.binary(max_size=400), bit=st.integers(min_value=0))
    def any_message(data, aad, bit):
        ours = kind(key, tag_length=tag)
        sealed = bytearray(ours.encrypt(nonce, data, aad))
        assert sealed == other(key, nonce, data, aad)
        sealed[bit // 8 % len(sealed)] ^= 1 << bit % 8
        out = poisoned(len(data))
        with pytest.raises(InvalidTag):
            ours.decrypt_into(nonce, sealed, aad, out)
        assert out == bytes(len(data))

    any_message()


def test_siv_refuses_as_pyca_does():
    assert swapped.AESGCMSIV is AESGCMSIV
    theirs(AESGCMSIV)
    ours, other = AESGCMSIV(bytes(16)), pyca.AESGCMSIV(bytes(16))
    assert AESGCMSIV(bytes(32)).encrypt(bytes(12), b"", None) == pyca.AESGCMSIV(bytes(32)).encrypt(bytes(12), b"", None)
    for call in (
        lambda one: one.encrypt(bytes(11), b"", None),
        lambda one: one.encrypt(bytes(13), b"", None),
        lambda one: one.decrypt(bytes(11), bytes(3), None),
        lambda one: one.decrypt(bytes(12), bytes(3), None),
        lambda one: one.decrypt(bytes(12), bytes(16), None),
        lambda one: one.encrypt_into(bytes(12), b"abc", None, bytearray(18)),
        lambda one: one.encrypt("text", b"", None),
        lambda one: one.encrypt(bytes(12), None, None),
        lambda one: one.encrypt(bytes(12), b"", 3),
        lambda one: type(one)(bytes(17)),
        lambda one: type(one)(None),
        lambda one: type(one).generate_key(100),
        lambda one: type(one).generate_key("256"),
    ):
        with pytest.raises(Exception) as expected:
            call(other)
        with pytest.raises(type(expected.value)) as said:
            call(ours)
        if str(expected.value).startswith(("Nonce", "buffer")):
            assert str(said.value) == str(expected.value)


@EACH
def test_there_and_back(kind):
    key_size, nonce_size = KEYS[kind]
    key, nonce = bytes(range(key_size)), bytes(range(nonce_size))
    for size in (0, 1, 100, 5000):
        data = bytes(i % 251 for i in range(size))
        sealed = kind(key).encrypt(nonce, data, b"v1")
        assert len(sealed) == size + 16
        assert kind(daelstrom.Key(key)).decrypt(nonce, sealed, b"v1") == data
        assert kind(key).encrypt(nonce, bytearray(data), memoryview(b"v1")) == sealed
        for wrong in (b"v2", None):
            with pytest.raises(InvalidTag):
                kind(key).decrypt(nonce, sealed, wrong)
        room = bytearray(size + 16)
        room[:size] = data
        assert kind(key).encrypt_into(nonce, memoryview(room)[:size], b"v1", room) == size + 16
        assert room == sealed
        if size:
            forged = bytearray(sealed)
            forged[-1] ^= 1
            before = bytes(forged)
            with pytest.raises(InvalidTag):
                kind(key).decrypt_into(nonce, forged, b"v1", memoryview(forged)[:size])
            assert forged == before
            apart = bytearray(b"\xa5" * size)
            with pytest.raises(InvalidTag):
                kind(key).decrypt_into(nonce, forged, b"v1", apart)
            assert apart == bytes(size)
        assert kind(key).decrypt_into(nonce, room, b"v1", memoryview(room)[:size]) == size
        assert room[:size] == data


@EACH
def test_what_is_refused(kind):
    key_size, nonce_size = KEYS[kind]
    one = kind(bytes(range(key_size)))
    with pytest.raises(ValueError, match="Nonce"):
        one.encrypt(bytes(nonce_size + 1), b"data")
    with pytest.raises(ValueError, match="24"):
        kind(bytes(range(24)))
    with pytest.raises(ValueError, match="XTS"):
        kind(daelstrom.Key.xts(bytes(range(32))))
    with pytest.raises(ValueError, match="tag_length is 12"):
        kind(bytes(range(key_size)), tag_length=12)
    with pytest.raises(InvalidTag):
        one.decrypt(bytes(nonce_size), bytes(15))
    with pytest.raises(ValueError, match="buffer must be 20 bytes"):
        one.encrypt_into(bytes(nonce_size), b"data", None, bytearray(19))
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            refused(one)
    key = kind.generate_key(256) if kind is AESGCMSIV else kind.generate_key()
    assert len(key) == key_size
    kind(key)


@EACH
def test_results_go_where_they_are_wanted(kind):
    key, nonce = os.urandom(KEYS[kind][0]), os.urandom(KEYS[kind][1])
    ours, data = kind(key), os.urandom(4096)
    sealed = ours.encrypt(nonce, data, b"aad")
    for given in (bytearray(data), memoryview(data), numpy.frombuffer(data, numpy.float64)):
        assert ours.encrypt(bytearray(nonce), given, memoryview(b"aad")) == sealed
    out = numpy.full(4112, 0xA5, numpy.uint8)
    assert ours.encrypt(nonce, data, b"aad", out=out) is out
    assert out.tobytes() == sealed
    back = numpy.full(512, -1.0)
    assert ours.decrypt(nonce, out, b"aad", out=back) is back
    assert back.tobytes() == data
    with pytest.raises(ValueError, match="out is 20 bytes; this call makes 4112"):
        ours.encrypt(nonce, data, out=bytearray(20))
    with pytest.raises(BufferError, match="out is read-only"):
        ours.encrypt(nonce, data, out=bytes(4112))
    room = bytearray(100)
    with pytest.raises(ValueError, match="overlap"):
        ours.encrypt_into(nonce, memoryview(room)[4:20], None, memoryview(room)[:32])


@EACH
def test_an_engine_by_name_makes_the_same(kind):
    key, nonce, data = os.urandom(KEYS[kind][0]), os.urandom(KEYS[kind][1]), os.urandom(3000)
    expected = kind(key).encrypt(nonce, data, b"aad")
    for name in ("reference", "cpu"):
        if any(row["name"] == name and row["present"] for row in daelstrom.list_backends()):
            ours = kind(key, engine=daelstrom.Engine(name, threads=1))
            assert ours.encrypt(nonce, data, b"aad") == expected
            assert ours.decrypt(nonce, expected, b"aad") == data


@EACH
def test_threads_share_one(kind):
    key = os.urandom(KEYS[kind][0])
    ours, wrong = kind(key), []

    def work(number):
        for i in range(50):
            nonce, data = bytes([number, i]).ljust(KEYS[kind][1], b"n"), os.urandom(3000)
            if ours.decrypt(nonce, ours.encrypt(nonce, data)) != data or len(ours.keys) != 1:
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


BATCHES = [(name, tag) for name, kind in CLASSES.items() for tag in kind.tags]


@pytest.mark.parametrize("name, tag", BATCHES)
def test_batches_are_their_messages(name, tag):
    kind = CLASSES[name]
    sizes = [0, 1, 16, 100, 5000, 31]
    keys = [os.urandom(KEYS[kind][0]) for _ in range(3)]
    nonces = [os.urandom(KEYS[kind][1]) for _ in sizes]
    which = [i % 3 for i in range(len(sizes))]
    data = [os.urandom(size) for size in sizes]
    how = {"mode": name, "tag_length": tag, "key_index": which}
    expected = [
        kind(keys[which[i]], tag_length=tag).encrypt(nonces[i], data[i], b"aad") for i in range(len(sizes))
    ]
    for given in (keys, KeySet(keys)):
        assert seal_batch(given, nonces, data, b"aad", **how) == expected
        assert seal_batch(given, b"".join(nonces), data, b"aad", **how) == expected
        assert open_batch(given, nonces, expected, b"aad", **how) == data
    offsets = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    packed = seal_batch(keys, nonces, b"".join(data), b"aad", offsets=offsets, **how)
    assert bytes(packed) == b"".join(expected)
    places = sealed_offsets(offsets, tag)
    assert opened_offsets(places, tag) == offsets and places == list(sealed_offsets(numpy.array(offsets), tag))
    assert bytes(open_batch(keys, nonces, packed, b"aad", offsets=places, **how)) == b"".join(data)
    # In place, where there is room for tags; and an object that says the mode.
    one = kind(keys[0], tag_length=tag)
    rooms = [bytearray(text + bytes(tag)) for text in data]
    views = [memoryview(room)[: len(text)] for room, text in zip(rooms, data)]
    seal_batch(one, nonces, views, out=rooms)
    assert rooms == [one.encrypt(nonces[i], data[i]) for i in range(len(sizes))]
    rooms[3][-1] ^= 1
    before = bytes(rooms[3])
    with pytest.raises(InvalidTag) as refused:
        open_batch(one, nonces, rooms, out=views)
    assert refused.value.indices == (3,) and rooms[3] == before and views[4] == data[4]
    status = bytearray(4 * len(sizes))
    forged = [*expected[:2], expected[2][:-1] + bytes([expected[2][-1] ^ 1]), expected[3][: tag - 1], *expected[4:]]
    opened = open_batch(keys, nonces, forged, b"aad", status=status, **how)
    assert opened == [*data[:2], None, None, *data[4:]]
    assert list(memoryview(status).cast("i")) == [0, 0, 16, 16, 0, 0]


def test_outputs_with_tags_of_32_bytes_are_apart():
    one, room = AEGIS128L(bytes(16), tag_length=32), bytearray(200)
    view = memoryview(room)
    with pytest.raises(ValueError, match="overlaps"):
        seal_batch(one, [bytes(16), b"n" * 16], [bytes(8), bytes(8)], out=[view[:40], view[39:79]])
    seal_batch(one, [bytes(16), b"n" * 16], [bytes(8), bytes(8)], out=[view[:40], view[40:80]])


def test_xaes_draws_nonces_and_lays_them_in_front():
    key, data = os.urandom(32), [os.urandom(size) for size in (0, 1, 24, 5000)]
    one = XAES256GCM(key)
    sealed = seal_batch(one, None, data, b"aad")
    assert len({message[:24] for message in sealed}) == len(data)
    for message, text in zip(sealed, data):
        assert len(message) == len(text) + 40
        assert one.decrypt(message[:24], message[24:], b"aad") == text
    assert open_batch(key, None, sealed, b"aad", mode="xaes256gcm") == data
    assert seal_batch(one, None, data, b"aad") != sealed
    offsets = [0, 0, 1, 25, 5025]
    for given in (offsets, numpy.array(offsets)):
        packed = seal_batch(one, None, b"".join(data), offsets=given)
        places = sealed_offsets(offsets, 40)
        assert len(packed) == places[-1]
        assert bytes(open_batch(one, None, packed, offsets=places)) == b"".join(data)
    assert seal_batch(one, None, []) == [] and open_batch(one, None, []) == []
    # What is too short for a nonce and a tag, and what was altered, in each part.
    for at in (0, 23, 24, -1):
        forged = bytearray(sealed[2])
        forged[at] ^= 1
        status = bytearray(16)
        opened = open_batch(one, None, [sealed[0], forged, sealed[1][:39], sealed[3]], b"aad", status=status)
        assert opened == [data[0], None, None, data[3]]
    # In one buffer, the second altered, and the third's last byte cut off.
    packed = bytearray(seal_batch(one, None, b"".join(data), offsets=offsets))
    packed[41] ^= 1
    status = bytearray(16)
    opened = open_batch(one, None, packed, offsets=[0, 40, 81, 144, 144 + 39], status=status)
    assert bytes(opened) == bytes(1 + 23)
    assert list(memoryview(status).cast("i")) == [0, 16, 16, 16]
    out = [bytearray(len(text)) for text in data]
    assert open_batch(one, None, sealed, b"aad", out=out) == out == data
    with pytest.raises(ValueError, match="no|new memory"):
        seal_batch(one, None, data, out=[bytearray(len(text) + 40) for text in data])
    for other in (AESGCM(key), AEGIS256(key), key):
        with pytest.raises(TypeError, match="nonces is None"):
            seal_batch(other, None, data)


def test_what_batches_refuse():
    one, data = AEGIS128L(bytes(16)), [b"data"]
    for call, words in (
        (lambda: seal_batch(one, [bytes(16)], data, mode="gcm"), "keys are of aegis128l"),
        (lambda: seal_batch(one, [bytes(16)], data, tag_length=32), "tag_length is 32"),
        (lambda: seal_batch(AESGCM(bytes(16)), [bytes(12)], data, mode="aegis128l"), "keys are of gcm"),
        (lambda: seal_batch(bytes(16), [bytes(12)], data, tag_length=32), "tag_length is 32"),
        (lambda: seal_batch(bytes(16), [bytes(12)], data, mode="aegis"), "there are gcm, aegis128l"),
        (lambda: seal_batch(bytes(16), [bytes(16)], data, mode="aegis128l", tag_length=12), "tag_length is 12"),
        (lambda: seal_batch(one, [bytes(12)], data), "Nonce must be 16 bytes long"),
        (lambda: seal_batch(one, bytes(12), data), "1 messages take 16 each"),
        (lambda: seal_batch(bytes(32), [bytes(16)], data, mode="aegis128l"), "AEGIS-128L takes keys of 16"),
        (lambda: seal_batch(one, [bytes(16)] * 2, data * 2), "nonce|start|repeat"),
        (lambda: daelstrom.crypt("aegis128l", "encrypt", bytes(16), b""), "seal_batch"),
    ):
        with pytest.raises((ValueError, daelstrom.exceptions.LimitError), match=words):
            call()
    siv = AESGCMSIV(bytes(16))  # whose nonces may repeat
    assert seal_batch(siv, [bytes(12)] * 2, data * 2) == [siv.encrypt(bytes(12), b"data")] * 2
