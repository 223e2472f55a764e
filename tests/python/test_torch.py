# SPDX-License-Identifier: Apache-2.0
"""torch's tensors: on the host wherever torch is, and on the GPU where there is one."""

import os

import numpy
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM as Theirs

torch = pytest.importorskip("torch", reason="needs PyTorch (pip install torch)")

import daelstrom
from daelstrom import AESGCM, torchcsprng
from daelstrom.random import Generator

KEY, NONCE = bytes(range(16)), bytes(range(12))
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
each_device = pytest.mark.parametrize("device", DEVICES)


def raw(tensor):
    return tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


@each_device
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_of_any_type_are_sealed_where_they_lie(device, dtype):
    tensor = torch.randn(33, 64, device=device).to(dtype)
    ready = AESGCM(KEY)
    sealed = ready.encrypt(NONCE, tensor, b"aad")
    assert sealed.device == tensor.device and sealed.dtype == torch.uint8
    assert raw(sealed) == Theirs(KEY).encrypt(NONCE, raw(tensor), b"aad")
    opened = ready.decrypt(NONCE, sealed, b"aad")
    assert opened.view(dtype).view(33, 64).equal(tensor)
    back = torch.empty_like(tensor)
    assert ready.decrypt(NONCE, sealed, b"aad", out=back) is back
    assert back.equal(tensor)
    with pytest.raises(daelstrom.exceptions.InvalidTag):
        ready.decrypt(NONCE, sealed, b"another")


@each_device
@pytest.mark.parametrize("size", [0, 1, 16, 1000, 4096, 5_000_016])
def test_in_place_and_from_any_byte(device, size):
    tensor = torch.randint(0, 256, (size,), dtype=torch.uint8, device=device)
    plain = raw(tensor)
    assert daelstrom.ctr(KEY, bytes(16), tensor, offset=5, out=tensor) is tensor
    assert raw(tensor) == daelstrom.ctr(KEY, bytes(16), plain, offset=5)
    secret = daelstrom.ctr(KEY, bytes(16), tensor, offset=5)
    assert secret.shape == tensor.shape and raw(secret) == plain
    room = torch.full((size + 16,), 0xA5, dtype=torch.uint8, device=device)
    room[:size] = secret
    assert AESGCM(KEY).encrypt_into(NONCE, room[:size], None, room) == size + 16
    assert raw(room) == Theirs(KEY).encrypt(NONCE, plain, None)
    assert AESGCM(KEY).decrypt_into(NONCE, room, None, room[:size]) == size
    assert raw(room[:size]) == plain


@each_device
def test_what_is_scattered_is_refused(device):
    tensor = torch.zeros(8, 8, device=device)
    for call in (lambda: AESGCM(KEY).encrypt(NONCE, tensor[:, 1]), lambda: daelstrom.ctr(KEY, bytes(16), tensor.t())):
        with pytest.raises(BufferError, match="data is not contiguous"):
            call()
    with pytest.raises(BufferError, match="out is not contiguous"):
        daelstrom.ctr(KEY, bytes(16), tensor, out=tensor.t())


@each_device
def test_random_numbers_are_the_same_to_the_bit_as_numpys(device):
    for kind in ("float64", "float32"):
        dtype = getattr(torch, kind)
        for call, arguments in (("random", ()), ("uniform", (-3.0, 7.0)), ("normal", (10.0, 3.0))):
            there = torch.empty(100_003, dtype=dtype, device=device)
            assert getattr(Generator(KEY), call)(*arguments, out=there) is there
            here = getattr(Generator(KEY), call)(*arguments, size=100_003, dtype=kind)
            assert raw(there) == here.tobytes(), (kind, call)
    for low, high in ((0, 10), (-(1 << 62), 1 << 61), (0, 3 << 61), (-(1 << 63), 1 << 63)):
        there = torch.empty(10_000, dtype=torch.int64, device=device)
        mine, other = Generator(KEY), Generator(KEY)
        mine.integers(low, high, out=there)
        assert raw(there) == other.integers(low, high, 10_000).tobytes()
        assert mine.state == other.state
    there = torch.empty(1001, dtype=torch.int32, device=device)
    assert Generator(KEY).integers(1, 7, out=there).cpu().tolist() == Generator(KEY).integers(1, 7, 1001).tolist()
    assert raw(Generator(KEY).fill(torch.empty(7, 5, device=device))) == Generator(KEY).bytes(140)
    half = torch.empty(1000, dtype=torch.bfloat16, device=device)
    assert abs(Generator(KEY).normal(out=half).float().mean()) < 0.2


@each_device
@pytest.mark.parametrize("mode", ["ecb", "ctr"])
def test_torchcsprngs_examples(device, mode):
    key = torch.empty(16, dtype=torch.uint8, device=device).random_(0, 256)
    initial = torch.empty(42, dtype=torch.float32, device=device).normal_(-24.0, 42.0)
    encrypted = torch.empty(22, dtype=torch.int64, device=device)
    torchcsprng.encrypt(initial, encrypted, key, "aes128", mode)
    host = numpy.zeros(22, numpy.int64)
    torchcsprng.encrypt(initial.cpu().numpy(), host, key.cpu().numpy(), "aes128", mode)
    assert raw(encrypted) == host.tobytes()
    decrypted = torch.empty_like(initial)
    torchcsprng.decrypt(encrypted, decrypted, key, "aes128", mode)
    assert decrypted.equal(initial)
    key = torch.empty(4, dtype=torch.float32, device=device).random_()
    initial = torch.empty(100, dtype=torch.bool, device=device).random_()
    encrypted = torch.empty(56, dtype=torch.int16, device=device)
    torchcsprng.encrypt(initial, encrypted, key, "aes128", mode)
    decrypted = torch.empty_like(initial)
    torchcsprng.decrypt(encrypted, decrypted, key, "aes128", mode)
    assert decrypted.equal(initial)


@each_device
def test_batches_of_tensors(device):
    nonces = [i.to_bytes(12, "big") for i in range(20)]
    tensors = [torch.randn(100 * i, device=device) for i in range(20)]
    sealed = daelstrom.seal_batch(KEY, nonces, tensors, b"aad")
    for nonce, tensor, one in zip(nonces, tensors, sealed):
        assert one.device == tensor.device
        assert raw(one) == Theirs(KEY).encrypt(nonce, raw(tensor), b"aad")
    opened = daelstrom.open_batch(KEY, nonces, sealed, b"aad")
    assert all(one.view(torch.float32).equal(tensor) for one, tensor in zip(opened, tensors))
    packed = torch.cat([tensor.view(torch.uint8) for tensor in tensors])
    offsets = torch.tensor([0] + [tensor.nbytes for tensor in tensors], dtype=torch.int64, device=device).cumsum(0)
    together = daelstrom.seal_batch(KEY, nonces, packed, b"aad", offsets=offsets)
    assert raw(together) == b"".join(map(raw, sealed))
    places = daelstrom.sealed_offsets(offsets.cpu().numpy())
    back = torch.full_like(packed, 0xA5)
    daelstrom.open_batch(KEY, nonces, together, b"aad", offsets=places, out=back)
    assert back.equal(packed)
    together[places[7]] ^= 1
    status = numpy.zeros(20, numpy.int32)
    back.fill_(0xA5)
    daelstrom.open_batch(KEY, nonces, together, b"aad", offsets=places, out=back, status=status)
    assert list(numpy.flatnonzero(status)) == [7]
    plain = raw(packed)
    got = raw(back)
    start, end = int(offsets[7]), int(offsets[8])
    assert got[:start] == plain[:start] and got[end:] == plain[end:] and plain[start : start + 32] not in got[start:end]
    with pytest.raises(daelstrom.exceptions.InvalidTag) as caught:
        daelstrom.open_batch(KEY, nonces, together, b"aad", offsets=places)
    assert caught.value.indices == (7,)
    keys = daelstrom.KeySet([KEY, bytes(32)])
    index = [i % 2 for i in range(20)]
    for i, one in enumerate(daelstrom.seal_batch(keys, nonces, tensors, key_index=index)):
        assert raw(one) == Theirs((KEY, bytes(32))[i % 2]).encrypt(nonces[i], raw(tensors[i]), None)


def test_a_tensor_is_given_back():
    tensor = torch.zeros(1 << 20, dtype=torch.uint8)
    import sys

    before = sys.getrefcount(tensor)
    for _ in range(20):
        AESGCM(KEY).encrypt(NONCE, tensor)
        daelstrom.ctr(KEY, bytes(16), tensor, out=tensor)
    assert sys.getrefcount(tensor) == before


def test_without_the_exchange_api(monkeypatch):
    """As with torch before 2.10: by capsules."""
    from daelstrom import _tensors

    tensor = torch.from_numpy(numpy.frombuffer(bytearray(os.urandom(100)), numpy.uint8))
    capsule, stream, _ = _tensors.take(tensor, "data")
    assert "dltensor" in repr(capsule) and stream == 0
