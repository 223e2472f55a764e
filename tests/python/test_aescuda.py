# SPDX-License-Identifier: Apache-2.0
"""AESCuda and torchcsprng, byte for byte what they were: by PyCryptodome."""

import os

import numpy
import pytest
from Crypto.Cipher import AES
from Crypto.Util import Counter
from hypothesis import given
from hypothesis import strategies as st

import daelstrom
from daelstrom import aescuda, torchcsprng
from daelstrom.exceptions import BackendError, UnsupportedAlgorithm


@given(
    data=st.binary(max_size=3000),
    key=st.sampled_from([16, 24, 32]).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
    nonce=st.binary(min_size=8, max_size=8),
    offset=st.integers(0, (1 << 63)),
)
def test_aescuda_is_pycryptodome(data, key, nonce, offset):
    counter = Counter.new(64, prefix=nonce, initial_value=offset, little_endian=False)
    secret = AES.new(key, AES.MODE_CTR, counter=counter).encrypt(data)
    assert aescuda.encrypt(data, key, nonce, offset) == secret
    assert aescuda.decrypt(secret, key, nonce, ctr_offset=offset) == data


def test_aescuda_by_its_own_name_and_in_parts():
    import AESCuda

    assert AESCuda.encrypt is aescuda.encrypt and AESCuda.decrypt is aescuda.decrypt
    data, key, nonce = os.urandom(10_000), bytes(16), bytes(8)
    parts = b"".join(AESCuda.encrypt(data[at : at + 1600], key, nonce, at // 16) for at in range(0, 10_000, 1600))
    assert parts == AESCuda.encrypt(data, key, nonce)


def test_aescuda_refuses():
    for call, what in (
        (lambda: aescuda.encrypt(b"", bytes(16), bytes(7)), "nonce is 7 bytes; it takes 8"),
        (lambda: aescuda.encrypt(b"", bytes(15), bytes(8)), "16, 24 or 32"),
        (lambda: aescuda.encrypt(b"", bytes(16), bytes(8), -1), "ctr_offset is -1"),
        (lambda: aescuda.encrypt(b"", bytes(16), bytes(8), gpup=(0, 32)), "gpup is"),
        (lambda: aescuda.encrypt(b"", bytes(16), bytes(8), gpup=(1, 1025)), "gpup is"),
    ):
        with pytest.raises(ValueError, match=what):
            call()


def has_cuda():
    return any(row["present"] and str(row["name"]).startswith("cuda") for row in daelstrom.list_backends())


def test_gpup_asks_for_a_gpu():
    if has_cuda():
        data = os.urandom(100_000)
        assert aescuda.encrypt(data, bytes(16), bytes(8), gpup=(64, 256)) == aescuda.encrypt(data, bytes(16), bytes(8))
        return
    with pytest.raises(BackendError, match="cuda"):
        aescuda.encrypt(bytes(32), bytes(16), bytes(8), gpup=(64, 256))


def csprng_ctr(key, data):
    counter = Counter.new(128, initial_value=0, little_endian=True)
    return AES.new(key, AES.MODE_CTR, counter=counter).encrypt(data)


@pytest.mark.parametrize("cipher,bits", [("aes128", 128), ("aes192", 192), ("aes256", 256)])
@pytest.mark.parametrize("mode", ["ecb", "ctr"])
@pytest.mark.parametrize("kind,count", [("u1", 0), ("u1", 1), ("u1", 15), ("u1", 160), ("f4", 42), ("i8", 1001)])
def test_torchcsprng_on_arrays_of_any_type(cipher, bits, mode, kind, count):
    data = numpy.frombuffer(os.urandom(count * numpy.dtype(kind).itemsize), kind)
    key = numpy.frombuffer(os.urandom(bits // 8), numpy.int16)
    size = -(-data.nbytes // 16) * 16
    output = numpy.full(size // 8, -1, numpy.int64)
    assert torchcsprng.encrypt(data, output, key, cipher, mode) is output
    padded = data.tobytes() + bytes(size - data.nbytes)
    other = AES.new(key.tobytes(), AES.MODE_ECB).encrypt(padded) if mode == "ecb" else csprng_ctr(key.tobytes(), padded)
    assert output.tobytes() == other
    back = numpy.empty_like(data)
    assert torchcsprng.decrypt(output, back, key, cipher, mode) is back
    assert back.tobytes() == data.tobytes()


def test_torchcsprng_takes_scattered_arrays():
    whole = numpy.arange(64, dtype=numpy.int32).reshape(8, 8)
    key = numpy.arange(16, dtype=numpy.uint8)
    output = numpy.zeros((8, 16), numpy.int16)[:, ::2]
    torchcsprng.encrypt(whole[:, ::2], output, key, "aes128", "ctr")
    assert output.tobytes() == csprng_ctr(key.tobytes(), whole[:, ::2].tobytes())


def test_torchcsprng_refuses_as_it_did():
    key, data = numpy.zeros(16, numpy.uint8), numpy.zeros(20, numpy.uint8)
    for call, what in (
        (lambda: torchcsprng.encrypt(data, data.copy(), key, "aes128", "ecb"), r"output size in bytes\(20\) is not"),
        (lambda: torchcsprng.decrypt(data, data.copy(), key, "aes128", "ecb"), "must divisible by"),
        (lambda: torchcsprng.decrypt(numpy.zeros(32, "u1"), numpy.zeros(16, "u1"), key, "aes128", "ecb"),
         "difference must be less"),
        (lambda: torchcsprng.encrypt(key, key.copy(), data, "aes128", "ecb"), "must have 16 bytes"),
        (lambda: torchcsprng.encrypt(key, key.copy(), key, "aes1", "ecb"), '"aes1" is not supported'),
        (lambda: torchcsprng.encrypt(key, key.copy(), key, "aes128", "gcm"), '"gcm" is not supported'),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=what):
            call()
    assert torchcsprng.supports_cuda() == has_cuda()
    for absent in (torchcsprng.create_mt19937_generator, torchcsprng.create_random_device_generator):
        with pytest.raises(UnsupportedAlgorithm, match="daelstrom.random"):
            absent()
