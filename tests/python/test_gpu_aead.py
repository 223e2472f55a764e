# SPDX-License-Identifier: Apache-2.0
"""On a GPU: AEGIS, XAES-256-GCM and AES-GCM-SIV of arrays there, that go with their launch or are too long for that,
against the same on the host, whose vectors test_aead.py has."""

import os

import pytest

import daelstrom
from daelstrom import AEGIS128L, AEGIS128X2, AEGIS128X4, AEGIS256, AESGCMSIV, XAES256GCM
from daelstrom.exceptions import InvalidTag

MOST = 64 << 10  # of what goes along

if not any(row["present"] and str(row["name"]).startswith("cuda") for row in daelstrom.list_backends()):
    pytest.skip("needs an NVIDIA GPU and a build with CUDA", allow_module_level=True)
torch = pytest.importorskip("torch", reason="needs PyTorch (pip install torch)")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no GPU", allow_module_level=True)

KINDS = [
    (AEGIS128L, 16, 16, 16),
    (AEGIS128L, 16, 16, 32),
    (AEGIS256, 32, 32, 16),
    (AEGIS256, 32, 32, 32),
    (AEGIS128X2, 16, 16, 16),
    (AEGIS128X4, 16, 16, 32),
    (XAES256GCM, 32, 24, 16),
    (AESGCMSIV, 16, 12, 16),
    (AESGCMSIV, 32, 12, 16),
]


def there(data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda() if data else empty(0)


def empty(size, fill=0xA5):
    return torch.full((size,), fill, dtype=torch.uint8, device="cuda")


def raw(tensor):
    return tensor.cpu().numpy().tobytes()


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0].__name__}-{8 * kind[1]}-{8 * kind[3]}")
def one(request):
    """A key of a kind, and a nonce."""
    kind, key_size, nonce_size, tag = request.param
    return kind(os.urandom(key_size), tag_length=tag), os.urandom(nonce_size)


def test_lengths_as_on_the_host(one):
    key, nonce = one
    for size in (0, 1, 15, 16, 17, 255, 4096, 4097, MOST - 33, MOST, MOST + 1, 1_000_003):
        plain = os.urandom(size)
        for aad in (None, b"a", os.urandom(33), os.urandom(1025), there(b"-there")[1:]):
            on_host = raw(aad) if isinstance(aad, torch.Tensor) else aad
            expected = key.encrypt(nonce, plain, on_host)
            sealed = key.encrypt(nonce, there(plain), aad)
            assert raw(sealed) == expected
            assert raw(key.decrypt(nonce, sealed, aad)) == plain
        room = there(plain + bytes(key.tag_length))  # in place
        assert key.encrypt_into(nonce, room[:size], None, room) == size + key.tag_length
        assert raw(room) == key.encrypt(nonce, plain, None)
        assert key.decrypt_into(nonce, room, None, room[:size]) == size
        assert raw(room)[:size] == plain


def test_what_is_altered_is_refused_and_shows_nothing(one):
    key, nonce = one
    for size in (1, 16, 4096, MOST + 1):
        plain = os.urandom(size)
        sealed = key.encrypt(nonce, there(plain), b"aad")
        for at in sorted({0, size // 2, size - 1, size, size + key.tag_length - 1}):
            forged = sealed.clone()
            forged[at] ^= 0x40
            before, out = raw(forged), empty(size)
            with pytest.raises(InvalidTag):
                key.decrypt_into(nonce, forged, b"aad", out)
            assert raw(out) in (bytes(size), b"\xa5" * size)
            with pytest.raises(InvalidTag):
                key.decrypt_into(nonce, forged, b"aad", forged[:size])
            assert raw(forged) in (before, bytes(size) + before[size:])
        with pytest.raises(InvalidTag):
            key.decrypt(nonce, sealed, b"aae")
        assert raw(key.decrypt(nonce, sealed, b"aad")) == plain


def test_addresses_of_any_kind(one):
    key, nonce = one
    plain, tag = os.urandom(5000), key.tag_length
    expected = key.encrypt(nonce, plain, b"aad")
    for at, to in ((0, 5), (3, 3), (8, 1), (15, 0)):
        source, target = there(bytes(at) + plain), empty(to + 5000 + tag + 3)
        key.encrypt_into(nonce, source[at:], b"aad", target[to : to + 5000 + tag])
        assert raw(target) == b"\xa5" * to + expected + b"\xa5" * 3
        back = empty(at + 5000 + 3)
        key.decrypt_into(nonce, target[to : to + 5000 + tag], b"aad", back[at : at + 5000])
        assert raw(back) == b"\xa5" * at + plain + b"\xa5" * 3


def test_batches_small_and_large(one):
    key, nonce = one
    for count in (1, 32, 33):
        plain = [os.urandom(i * 97 % 3000) for i in range(count)]
        nonces = [os.urandom(len(nonce)) for _ in range(count)]
        for aad in (None, [b"b" * i for i in range(count)]):
            expected = daelstrom.seal_batch(key, nonces, plain, aad)
            sealed = daelstrom.seal_batch(key, nonces, [there(p) for p in plain], aad)
            assert [raw(s) for s in sealed] == expected
            assert [raw(p) for p in daelstrom.open_batch(key, nonces, sealed, aad)] == plain
            sealed[count // 2][-1] ^= 1
            with pytest.raises(InvalidTag) as refused:
                daelstrom.open_batch(key, nonces, sealed, aad)
            assert refused.value.indices == (count // 2,)
