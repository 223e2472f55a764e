# SPDX-License-Identifier: Apache-2.0
"""AESGCM: pyca/cryptography's bytes and manners, over every kind of host memory."""

import mmap
import os
import pickle
import subprocess
import sys
import tempfile

import cryptography.exceptions
import numpy
import pytest
from conftest import SIZES, poisoned
from cryptography.hazmat.primitives.ciphers.aead import AESGCM as Theirs
from Crypto.Cipher import AES
from hypothesis import given
from hypothesis import strategies as st

import daelstrom
from daelstrom import AESGCM
from daelstrom.exceptions import DaelstromError, InvalidTag

KEYS = [bytes(range(size)) for size in (16, 24, 32)]
NONCE = bytes(range(100, 112))


@pytest.mark.parametrize("key", KEYS, ids=["128", "192", "256"])
@pytest.mark.parametrize("size", SIZES)
def test_seals_and_opens_as_pyca_does(key, size):
    data = os.urandom(size)
    ours, theirs = AESGCM(key), Theirs(key)
    for aad in (None, b"", b"additional data"):
        sealed = ours.encrypt(NONCE, data, aad)
        assert type(sealed) is bytes
        assert sealed == theirs.encrypt(NONCE, data, aad)
        assert ours.decrypt(NONCE, sealed, aad) == data
        out = poisoned(size + 16)
        assert ours.encrypt_into(NONCE, data, aad, out) == size + 16
        assert out == sealed
        back = poisoned(size)
        assert ours.decrypt_into(NONCE, sealed, aad, back) == size
        assert back == data


@given(
    key=st.sampled_from([16, 24, 32]).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
    nonce=st.binary(min_size=8, max_size=128),
    data=st.binary(max_size=5000),
    aad=st.none() | st.binary(max_size=300),
)
def test_any_message_is_pycas_and_pycryptodomes(key, nonce, data, aad):
    sealed = AESGCM(key).encrypt(nonce, data, aad)
    assert sealed == Theirs(key).encrypt(nonce, data, aad)
    other = AES.new(key, AES.MODE_GCM, nonce=nonce)
    other.update(aad or b"")
    assert sealed == b"".join(other.encrypt_and_digest(data))
    assert AESGCM(key).decrypt(nonce, sealed, aad) == data


@given(data=st.binary(min_size=0, max_size=200), bit=st.integers(min_value=0))
def test_every_flipped_bit_is_refused_and_wipes_what_was_given_for_the_plaintext(data, bit):
    ours = AESGCM(KEYS[0])
    sealed = bytearray(ours.encrypt(NONCE, data, b"aad"))
    bit %= 8 * len(sealed)
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(InvalidTag):
        ours.decrypt(NONCE, sealed, b"aad")
    out = poisoned(len(data))
    with pytest.raises(InvalidTag):
        ours.decrypt_into(NONCE, sealed, b"aad", out)
    assert out == bytes(len(data))


@pytest.mark.parametrize("size", [1, 100, 5000, 1 << 20])
def test_in_place_a_forgery_leaves_its_ciphertext_and_no_plaintext(size):
    ours = AESGCM(KEYS[2])
    room = bytearray(size + 16)
    view = memoryview(room)
    view[:size] = plain = os.urandom(size)
    ours.encrypt_into(NONCE, view[:size], None, room)
    assert room == Theirs(KEYS[2]).encrypt(NONCE, plain, None)
    room[-1] ^= 1
    before = bytes(room)
    with pytest.raises(InvalidTag):
        ours.decrypt_into(NONCE, room, None, view[:size])
    assert room == before
    room[-1] ^= 1
    assert ours.decrypt_into(NONCE, room, None, view[:size]) == size
    assert room[:size] == plain


def test_pycas_expectations():
    ours = AESGCM(KEYS[0])
    for size in (0, 1, 7, 129):
        with pytest.raises(ValueError, match="between 8 and 128"):
            ours.encrypt(bytes(size), b"", None)
        with pytest.raises(ValueError, match="between 8 and 128"):
            ours.decrypt(bytes(size), bytes(16), None)
    for size in range(16):
        # The nonce is looked at first.
        for call in (lambda nonce: ours.decrypt(nonce, bytes(size), None),
                     lambda nonce: ours.decrypt_into(nonce, bytes(size), None, bytearray(size))):  # fmt: skip
            for nonce, error in ((None, TypeError), ("text", TypeError), (bytes(3), ValueError)):
                with pytest.raises(error):
                    call(nonce)
        with pytest.raises(InvalidTag):
            ours.decrypt(NONCE, bytes(size), None)
        with pytest.raises(InvalidTag):
            ours.decrypt_into(NONCE, bytes(size), None, bytearray(size))
    for size in (18, 20):
        with pytest.raises(ValueError, match="must be 19 bytes"):
            ours.encrypt_into(NONCE, b"abc", None, bytearray(size))
    sealed = ours.encrypt(NONCE, b"abc", None)
    for size in (2, 4):
        with pytest.raises(ValueError, match="must be 3 bytes"):
            ours.decrypt_into(NONCE, sealed, None, bytearray(size))
    for wrong in ("text", None, 3, object()):
        with pytest.raises(TypeError):
            ours.encrypt(NONCE, wrong, None)
        with pytest.raises(TypeError):
            ours.encrypt(wrong, b"data", None)
        with pytest.raises(TypeError):
            AESGCM(wrong)
        if wrong is not None:
            with pytest.raises(TypeError):
                ours.encrypt(NONCE, b"data", wrong)
    with pytest.raises(TypeError):
        ours.encrypt()
    with pytest.raises(TypeError):
        AESGCM()
    for size in (0, 8, 15, 17, 31, 33, 64):
        with pytest.raises(ValueError, match="16, 24 or 32"):
            AESGCM(bytes(size))
    for bits in (0, 100, 129, 512):
        with pytest.raises(ValueError, match="128, 192, or 256"):
            AESGCM.generate_key(bits)
    with pytest.raises(TypeError):
        AESGCM.generate_key("256")
    for bits in (128, 192, 256):
        one, two = AESGCM.generate_key(bits), AESGCM.generate_key(bit_length=bits)
        assert len(one) * 8 == bits and one != two
    assert ours.decrypt(nonce=NONCE, data=sealed, associated_data=None) == b"abc"


def test_exceptions_have_pycas_names():
    for name in ("InvalidTag", "UnsupportedAlgorithm", "AlreadyFinalized", "AlreadyUpdated", "NotYetFinalized",
                 "InvalidKey", "InvalidSignature"):
        assert issubclass(getattr(daelstrom.exceptions, name), DaelstromError)
        assert hasattr(cryptography.exceptions, name)


def test_except_clauses_of_pycas_hold_where_it_is_loaded():
    """As in programs in which only some of the imports were swapped; by the compiled module and by Python."""
    with pytest.raises(cryptography.exceptions.InvalidTag) as raised:
        AESGCM(KEYS[0]).decrypt(NONCE, bytes(20))
    assert isinstance(raised.value, InvalidTag) and type(raised.value).__name__ == "InvalidTag"
    with pytest.raises(cryptography.exceptions.InvalidTag) as raised:
        daelstrom.open_batch(KEYS[0], [NONCE], [bytes(20)])
    again = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(again, cryptography.exceptions.InvalidTag) and again.indices == (0,)
    assert str(again) == str(raised.value)
    for name in ("UnsupportedAlgorithm", "AlreadyFinalized", "AlreadyUpdated", "NotYetFinalized", "InvalidKey"):
        made = getattr(daelstrom.exceptions, name)("words")
        assert isinstance(made, getattr(cryptography.exceptions, name)) and str(made) == "words"
    assert type(daelstrom.exceptions.LimitError("words")) is daelstrom.exceptions.LimitError

    class Mine(InvalidTag):
        pass

    assert type(Mine("words")) is Mine
    ran = subprocess.run(
        [sys.executable, "-c", "import sys, daelstrom\n"
         "assert type(daelstrom.InvalidTag('')) is daelstrom.InvalidTag and 'cryptography' not in sys.modules"],
        capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", ["AESCCM", "AESOCB3", "AESSIV", "ChaCha20Poly1305"])
def test_what_is_absent_says_so(name):
    from daelstrom.hazmat.primitives.ciphers import aead

    absent = getattr(aead, name)
    with pytest.raises(daelstrom.exceptions.UnsupportedAlgorithm, match=f"no {name}; take AESGCM"):
        absent(bytes(32))
    with pytest.raises(daelstrom.exceptions.UnsupportedAlgorithm, match=name):
        absent.generate_key(256)


def mapped(data):
    file = tempfile.TemporaryFile()
    file.write(data)
    file.flush()
    return mmap.mmap(file.fileno(), len(data))


KINDS = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": lambda data: memoryview(bytearray(data)),
    "a part of a memoryview": lambda data: memoryview(b"xyz" + data + b"uvw")[3:-3],
    "mmap": mapped,
    "numpy of bytes": lambda data: numpy.frombuffer(data, numpy.uint8),
    "numpy of numbers": lambda data: numpy.frombuffer(data, numpy.float64).reshape(2, -1),
    "numpy in Fortran's order": lambda data: numpy.frombuffer(data, numpy.uint8).reshape(1, -1, order="F"),
    "a structured array": lambda data: numpy.frombuffer(data, [("a", "<i4"), ("b", "<f4")]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_buffer_is_read_where_it_lies(kind):
    data, ours = os.urandom(4096), AESGCM(KEYS[1])
    expected = Theirs(KEYS[1]).encrypt(NONCE, data, b"aad")
    given = KINDS[kind](data)
    assert ours.encrypt(NONCE, given, b"aad") == expected
    assert ours.decrypt(NONCE, KINDS[kind](expected + bytes(0)), b"aad") == data if kind in (
        "bytes", "bytearray", "memoryview", "a part of a memoryview", "mmap", "numpy of bytes") else True
    assert ours.encrypt(KINDS["bytearray"](NONCE), given, KINDS["memoryview"](b"aad")) == expected


@pytest.mark.parametrize("kind", ["bytearray", "memoryview", "mmap"])
def test_any_writable_buffer_is_written_where_it_lies(kind):
    data, ours = os.urandom(4096), AESGCM(KEYS[1])
    expected = Theirs(KEYS[1]).encrypt(NONCE, data, None)
    out = KINDS[kind](b"\xa5" * 4112)
    assert ours.encrypt(NONCE, data, out=out) is out
    assert bytes(out) == expected
    array = numpy.full((514, 8), 0xA5, numpy.uint8)
    assert ours.encrypt(NONCE, data, out=array) is array
    assert array.tobytes() == expected
    back = numpy.full(512, -1.0)
    assert ours.decrypt(NONCE, array, out=back) is back
    assert back.tobytes() == data


def test_what_is_not_contiguous_or_read_only_is_refused_by_name():
    ours, wide = AESGCM(KEYS[0]), numpy.zeros((8, 8), numpy.uint8)
    for call, name in (
        (lambda: ours.encrypt(NONCE, wide[:, 1]), "data is not contiguous"),
        (lambda: ours.encrypt(NONCE, wide.T[::2]), "data is not contiguous"),
        (lambda: ours.encrypt(wide[:, 1][:12], b""), "nonce is not contiguous"),
        (lambda: ours.encrypt(NONCE, b"", wide[::2, 0]), "associated_data is not contiguous"),
        (lambda: ours.encrypt(NONCE, bytes(16), out=wide[:, ::2]), "out is not contiguous"),
        (lambda: ours.encrypt_into(NONCE, bytes(16), None, wide[:, ::2]), "buf is not contiguous"),
        (lambda: AESGCM(wide[:2, :8].T), "key is not contiguous"),
        (lambda: ours.encrypt(NONCE, bytes(16), out=bytes(32)), "out is read-only"),
        (lambda: ours.encrypt_into(NONCE, bytes(16), None, memoryview(bytes(32))), "buf is read-only"),
    ):
        with pytest.raises(BufferError, match=name):
            call()
    with pytest.raises(ValueError, match="out is 20 bytes; this call makes 32"):
        ours.encrypt(NONCE, bytes(16), out=bytearray(20))


def test_overlapping_memory_is_refused_or_in_place():
    ours, room = AESGCM(KEYS[0]), bytearray(100)
    view = memoryview(room)
    with pytest.raises(ValueError, match="overlap"):
        ours.encrypt_into(NONCE, view[4:20], None, view[0:32])
    assert ours.encrypt_into(NONCE, view[:16], None, view[:32]) == 32


def test_what_is_refused_costs_no_ciphertext():
    ours = AESGCM(KEYS[0])
    room = bytearray(4) + bytearray(ours.encrypt(NONCE, b"a message, of which there is one copy"))
    before, view = bytes(room), memoryview(room)
    for sealed, out in ((view[4:], view[:-20]), (view[4:], view[5:-15])):
        with pytest.raises(ValueError, match="overlap"):
            ours.decrypt_into(NONCE, sealed, None, out)
        with pytest.raises(ValueError, match="overlap"):
            ours.decrypt(NONCE, sealed, None, out=out)
        assert room == before
    assert ours.decrypt(NONCE, view[4:]) == b"a message, of which there is one copy"


def test_an_engine_by_name_makes_the_same():
    data = os.urandom(3000)
    expected = Theirs(KEYS[2]).encrypt(NONCE, data, b"aad")
    for row in daelstrom.list_backends():
        name = str(row["name"])
        if not row["present"] or name.startswith(("opencl", "cuda")):
            continue
        ours = AESGCM(KEYS[2], engine=daelstrom.Engine(name, threads=1))
        assert ours.encrypt(NONCE, data, b"aad") == expected, name
        assert ours.decrypt(NONCE, expected, b"aad") == data


def test_a_device_and_the_host_together_make_the_same():
    if not any(row["present"] and row["name"] == "opencl:0" for row in daelstrom.list_backends()):
        pytest.skip("no OpenCL device (pocl-opencl-icd)")
    engine, size = daelstrom.Engine("opencl:0+openssl"), (8 << 20) + 5  # of GCM in parts, from 8 MiB on
    assert set(engine.backends()) == {"opencl:0", "openssl"}
    data, counter = os.urandom(size), os.urandom(16)
    ours, theirs = AESGCM(KEYS[2], engine=engine), Theirs(KEYS[2])
    sealed = theirs.encrypt(NONCE, data, b"aad")
    assert ours.encrypt(NONCE, data, b"aad") == sealed
    assert ours.decrypt(NONCE, sealed, b"aad") == data
    with pytest.raises(InvalidTag):
        ours.decrypt(NONCE, sealed[:-20] + bytes([sealed[-20] ^ 1]) + sealed[-19:], b"aad")
    expected = AES.new(KEYS[2], AES.MODE_CTR, nonce=counter[:8], initial_value=counter[8:]).encrypt(data)
    assert daelstrom.ctr(KEYS[2], counter, data, engine=engine) == expected
    buffer = bytearray(data)
    daelstrom.ctr(KEYS[2], counter, buffer, out=buffer, engine=engine)  # in place
    assert buffer == expected
    with pytest.raises(ValueError, match="twice"):
        daelstrom.Engine("opencl:0+opencl:0")


def test_a_key_object_serves_many():
    key = daelstrom.Key(KEYS[2])
    assert key.bits == 256 and not key.is_xts
    assert AESGCM(key).encrypt(NONCE, b"x") == AESGCM(KEYS[2]).encrypt(NONCE, b"x")
    assert KEYS[2].hex() not in repr(key)
