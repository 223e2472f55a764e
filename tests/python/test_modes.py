# SPDX-License-Identifier: Apache-2.0
"""Whole messages in one call: ctr with its offset, and the other modes."""

import os

import numpy
import pytest
from conftest import SIZES
from Crypto.Cipher import AES
from hypothesis import given
from hypothesis import strategies as st

import daelstrom

KEY, IV = bytes(range(32)), bytes(range(16, 32))


def reference_ctr(data, offset=0):
    other = AES.new(KEY, AES.MODE_CTR, nonce=b"", initial_value=IV)
    other.encrypt(bytes(offset))
    return other.encrypt(bytes(data))


@pytest.mark.parametrize("size", SIZES)
def test_ctr_is_pycryptodomes(size):
    data = os.urandom(size)
    assert daelstrom.ctr(KEY, IV, data) == reference_ctr(data)
    out = bytearray(size)
    assert daelstrom.ctr(KEY, IV, data, out=out) is out
    assert out == reference_ctr(data)
    assert daelstrom.ctr(KEY, IV, out, out=out) is out  # in place
    assert out == data


@given(data=st.binary(max_size=300), offset=st.integers(0, 1000))
def test_ctr_from_any_byte(data, offset):
    assert daelstrom.ctr(KEY, IV, data, offset=offset) == reference_ctr(data, offset)


def test_a_key_an_offset_far_away_and_an_array():
    key = daelstrom.Key(KEY)
    array = numpy.arange(1000.0)
    secret = daelstrom.ctr(key, IV, array)
    assert secret == reference_ctr(array.tobytes())
    daelstrom.ctr(key, IV, array, out=array)
    assert array.tobytes() == secret
    far = 1 << 63
    counter = (int.from_bytes(IV, "big") + far // 16) % (1 << 128)
    other = AES.new(KEY, AES.MODE_CTR, nonce=b"", initial_value=counter)
    assert daelstrom.ctr(KEY, IV, bytes(100), offset=far) == other.encrypt(bytes(100))
    with pytest.raises(OverflowError):
        daelstrom.ctr(KEY, IV, bytes(100), offset=(1 << 64) - 50)


@pytest.mark.parametrize("mode", ["ecb", "cbc", "cfb", "ofb", "ctr"])
def test_the_modes_are_pycryptodomes(mode):
    data = os.urandom(16 * 321)
    other = {
        "ecb": lambda: AES.new(KEY, AES.MODE_ECB),
        "cbc": lambda: AES.new(KEY, AES.MODE_CBC, iv=IV),
        "cfb": lambda: AES.new(KEY, AES.MODE_CFB, iv=IV, segment_size=128),
        "ofb": lambda: AES.new(KEY, AES.MODE_OFB, iv=IV),
        "ctr": lambda: AES.new(KEY, AES.MODE_CTR, nonce=b"", initial_value=IV),
    }[mode]
    how = {} if mode == "ecb" else {"iv": IV}
    secret = daelstrom.crypt(mode, "encrypt", KEY, data, **how)
    assert secret == other().encrypt(data)
    assert daelstrom.crypt(mode, "decrypt", KEY, secret, **how) == data
    if mode in ("ecb", "cbc"):
        with pytest.raises(ValueError):
            daelstrom.crypt(mode, "encrypt", KEY, data[:-1], **how)


def test_xts_by_sectors():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key, data = bytes(range(64)), os.urandom(5 * 512)
    expected = b""
    for sector in range(5):
        context = Cipher(algorithms.AES(key), modes.XTS((7 + sector).to_bytes(16, "little"))).encryptor()
        expected += context.update(data[512 * sector : 512 * (sector + 1)])
    assert daelstrom.crypt("xts", "encrypt", key, data, sector=512, first_sector=7) == expected
    assert daelstrom.crypt("xts", "decrypt", daelstrom.Key.xts(key), expected, sector=512, first_sector=7) == data


def test_what_makes_no_sense_is_refused():
    for arguments, what in (
        (("cbc", "encrypt", KEY, bytes(16)), "cbc takes iv"),
        (("ecb", "encrypt", KEY, bytes(16), IV), "ecb takes no iv"),
        (("xts", "encrypt", bytes(range(32)), bytes(16)), "xts takes sector"),
        (("xts", "encrypt", bytes(range(32)), bytes(16), IV), "first_sector, not iv"),
        (("cts", "encrypt", KEY, bytes(16)), "mode is"),
        (("ecb", "both", KEY, bytes(16)), "direction is"),
    ):
        mode, direction, key, data, *iv = arguments
        with pytest.raises(ValueError, match=what):
            daelstrom.crypt(mode, direction, key, data, **({"iv": iv[0]} if iv else {}))
    with pytest.raises(ValueError, match="counter is 12 bytes; it takes 16"):
        daelstrom.ctr(KEY, bytes(12), b"data")
    with pytest.raises(ValueError, match="out is 3 bytes; data is 4"):
        daelstrom.ctr(KEY, IV, b"data", out=bytearray(3))


def test_engines_are_named_or_refused():
    with pytest.raises(daelstrom.exceptions.BackendError):
        daelstrom.Engine("quantum")
    with pytest.raises(ValueError, match="threads"):
        daelstrom.Engine(threads=-1)
    engine = daelstrom.Engine("openssl")
    assert engine.backends() == ["openssl"]
    assert daelstrom.ctr(KEY, IV, bytes(100), engine=engine) == reference_ctr(bytes(100))


def test_wipe():
    secret = bytearray(b"secret")
    daelstrom.wipe(secret)
    assert secret == bytes(6)
    with pytest.raises(BufferError):
        daelstrom.wipe(b"secret")


def test_sectors_and_their_numbers_are_whole():
    for sector, first, error, what in ((512, 1.5, TypeError, "integer"), (512, -1, ValueError, "first_sector is -1"),
                                       (512, 1 << 128, ValueError, "first_sector is"), (15, 0, ValueError, "sector is 15"),
                                       ((1 << 24) + 1, 0, ValueError, "sector is"), (16.0, 0, TypeError, "integer")):  # fmt: skip
        with pytest.raises(error, match=what):
            daelstrom.crypt("xts", "encrypt", bytes(range(32)), bytes(512), sector=sector, first_sector=first)
