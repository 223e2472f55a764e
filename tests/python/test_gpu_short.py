# SPDX-License-Identifier: Apache-2.0
"""On a GPU: messages of GCM that go with their launch, and those beside them that are too long for that."""

import os
import random
import threading

import pytest

import daelstrom
from daelstrom import AESGCM, Engine
from daelstrom.exceptions import DaelstromError, InvalidTag

KEY, NONCE = bytes(range(16)), bytes(range(12))
MOST, MOST_AAD = 64 << 10, 1024  # of a message with its additional data; of those in the host's memory

if not any(row["present"] and str(row["name"]).startswith("cuda") for row in daelstrom.list_backends()):
    pytest.skip("needs an NVIDIA GPU and a build with CUDA", allow_module_level=True)
torch = pytest.importorskip("torch", reason="needs PyTorch (pip install torch)")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no GPU", allow_module_level=True)

SIZES = [0, 1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 8192, 16384, 32768, 32769, MOST - 1, MOST, MOST + 1, 100_000]


def there(data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda() if data else empty(0)


def empty(size, fill=0xA5):
    return torch.full((size,), fill, dtype=torch.uint8, device="cuda")


def raw(tensor):
    return tensor.cpu().numpy().tobytes()


@pytest.fixture(scope="module", params=[128, 192, 256])
def pair(request):
    """The key on a GPU, and by OpenSSL on the host."""
    key = os.urandom(request.param // 8)
    return AESGCM(key), AESGCM(key, engine=Engine("openssl"))


@pytest.mark.parametrize("size", SIZES)
def test_lengths(pair, size):
    ready, host = pair
    plain = os.urandom(size)
    for aad in (None, b"", b"a", os.urandom(33)):
        expected = host.encrypt(NONCE, plain, aad)
        sealed = ready.encrypt(NONCE, there(plain), aad)
        assert raw(sealed) == expected
        assert raw(ready.decrypt(NONCE, sealed, aad)) == plain
        room = there(plain + bytes(16))
        assert ready.encrypt_into(NONCE, room[:size], aad, room) == size + 16
        assert raw(room) == expected
        assert ready.decrypt_into(NONCE, room, aad, room[:size]) == size
        assert raw(room) == plain + expected[size:]


def test_additional_data_around_what_goes_along(pair):
    ready, host = pair
    for size, aad_size in [
        (100, 255), (100, 256), (100, 257), (100, MOST_AAD - 1), (100, MOST_AAD), (100, MOST_AAD + 1), (0, MOST_AAD),
        (MOST - 100, 100), (MOST - 100, 101), (MOST - MOST_AAD, MOST_AAD), (0, MOST), (16, MOST), (7, 70_000),
    ]:  # fmt: skip
        plain, aad = os.urandom(size), os.urandom(aad_size)
        expected = host.encrypt(NONCE, plain, aad)
        for additional in (aad, bytearray(aad), there(b"-" + aad)[1:]):
            sealed = ready.encrypt(NONCE, there(plain), additional)
            assert raw(sealed) == expected
            assert raw(ready.decrypt(NONCE, sealed, additional)) == plain
        wrong = bytearray(aad)
        wrong[aad_size // 2] ^= 1
        with pytest.raises(InvalidTag):
            ready.decrypt(NONCE, there(expected), wrong)


def test_nonces_of_any_size(pair):
    ready, host = pair
    for nonce in (bytes(8), os.urandom(11), os.urandom(13), os.urandom(128)):
        sealed = ready.encrypt(nonce, there(b"plain" * 9))
        assert raw(sealed) == host.encrypt(nonce, b"plain" * 9, None)
        assert raw(ready.decrypt(nonce, sealed)) == b"plain" * 9


def test_addresses_of_any_kind(pair):
    ready, host = pair
    plain = os.urandom(5000)
    for at in range(0, 17, 3):
        for to in range(0, 17, 5):
            source, target = there(bytes(at) + plain), empty(to + 5016 + 3)
            ready.encrypt_into(NONCE, source[at:], b"aad", target[to : to + 5016])
            assert raw(target) == b"\xa5" * to + host.encrypt(NONCE, plain, b"aad") + b"\xa5" * 3
            back = empty(at + 5000 + 3)
            ready.decrypt_into(NONCE, target[to : to + 5016], b"aad", back[at : at + 5000])
            assert raw(back) == b"\xa5" * at + plain + b"\xa5" * 3


@pytest.mark.parametrize("size", [0, 1, 16, 4096, MOST, MOST + 1])
def test_what_is_altered_is_refused_and_writes_no_plaintext(pair, size):
    ready, _ = pair
    plain = os.urandom(size)
    sealed = ready.encrypt(NONCE, there(plain), b"aad")
    for at in sorted({0, size // 2, max(0, size - 1), size, size + 15}):
        forged = sealed.clone()
        forged[at] ^= 0x40
        before, out = raw(forged), empty(size)
        with pytest.raises(InvalidTag):
            ready.decrypt_into(NONCE, forged, b"aad", out)
        assert size < 16 or not any(raw(out)[i : i + 16] == plain[i : i + 16] for i in range(0, size - 15, 16))
        with pytest.raises(InvalidTag):
            ready.decrypt_into(NONCE, forged, b"aad", forged[:size])
        assert raw(forged) == before  # in place the ciphertext stays
    for nonce, aad in ((bytes(12), b"aad"), (NONCE, b"aae"), (NONCE, None)):
        with pytest.raises(InvalidTag):
            ready.decrypt(nonce, sealed, aad)
    assert raw(ready.decrypt(NONCE, sealed, b"aad")) == plain


def test_order_on_several_streams():
    """What is queued before a call has been done when it reads, also where it takes long."""
    ready, host = AESGCM(KEY), AESGCM(KEY, engine=Engine("openssl"))
    plain = os.urandom(4096)
    expected, source = host.encrypt(NONCE, plain, None), there(plain)
    large = torch.randn(4096, 4096, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    for current in (torch.cuda.default_stream(), torch.cuda.Stream()):
        for named in (None, side, side.cuda_stream):
            with torch.cuda.stream(current):
                moving, sealed, back = empty(4096), empty(4112), empty(4096)
                for _ in range(5):
                    for _ in range(5):
                        large @ large
                    moving.copy_(source)
                    ready.encrypt_into(NONCE, moving, None, sealed, stream=named)
                    moving.zero_()
                    ready.decrypt_into(NONCE, sealed, None, back, stream=named)
                    assert raw(sealed) == expected and raw(back) == plain
                    sealed.zero_()
                    back.zero_()


def test_threads_with_one_key():
    ready, host, faults = AESGCM(KEY), AESGCM(KEY, engine=Engine("openssl")), []

    def work(number):
        choose = random.Random(number)
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for i in range(150):
                    nonce = bytes((number,)) + i.to_bytes(11, "big")
                    plain, aad = choose.randbytes(choose.choice(SIZES)), choose.randbytes(choose.choice((0, 9, 1500)))
                    sealed = ready.encrypt(nonce, there(plain), aad)
                    if i % 10 == 0:
                        assert raw(sealed) == host.encrypt(nonce, plain, aad)
                    if i % 3 == 0:
                        sealed[choose.randrange(len(sealed))] ^= 1
                        with pytest.raises(InvalidTag):
                            ready.decrypt(nonce, sealed, aad)
                    else:
                        assert raw(ready.decrypt(nonce, sealed, aad)) == plain
        except BaseException as fault:
            faults.append(repr(fault))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_more_at_once_than_have_codes():
    """Each thread waits behind long work, so that many openings are under way together."""
    ready = AESGCM(KEY)
    sealed = ready.encrypt(NONCE, there(b"plain"))
    large = torch.randn(8192, 8192, device="cuda")
    torch.cuda.synchronize()
    begin, results = threading.Barrier(80), []

    def work(number):
        mine = sealed.clone()
        if number % 2:
            mine[3] ^= 1
        begin.wait()
        try:
            results.append((number, raw(ready.decrypt(NONCE, mine))))
        except InvalidTag:
            results.append((number, None))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(80)]
    for _ in range(20):
        large @ large
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results, key=lambda one: one[0]) == [(n, None if n % 2 else b"plain") for n in range(80)]


def test_a_key_may_go_right_after_the_call():
    host = AESGCM(KEY, engine=Engine("openssl"))
    plain = os.urandom(4096)
    source = there(plain)
    for i in range(50):
        nonce = i.to_bytes(12, "big")
        sealed = AESGCM(KEY).encrypt(nonce, source)
        AESGCM(os.urandom(16)).encrypt(nonce, source)  # would take its memory
        assert raw(sealed) == host.encrypt(nonce, plain, None)


def test_small_batches():
    keys = [os.urandom(bits // 8) for bits in (128, 192, 256)]
    ready, host = daelstrom.KeySet(keys), daelstrom.KeySet(keys, engine=Engine("openssl"))
    for count in (1, 2, 31, 32, 33):
        plain = [os.urandom(i * 97 % 3000) for i in range(count)]
        nonces = [os.urandom(12) for _ in range(count)]
        which = [i % 3 for i in range(count)]
        for aad in (None, b"a" * 30, [b"b" * i for i in range(count)], b"c" * 1100):
            how = {"associated_data": aad, "key_index": which}
            expected = daelstrom.seal_batch(host, nonces, plain, **how)
            sealed = daelstrom.seal_batch(ready, nonces, [there(p) for p in plain], **how)
            assert [raw(s) for s in sealed] == expected
            assert [raw(p) for p in daelstrom.open_batch(ready, nonces, sealed, **how)] == plain
            sealed[count // 2][-1] ^= 1
            with pytest.raises(InvalidTag) as refused:
                daelstrom.open_batch(ready, nonces, sealed, **how)
            assert refused.value.indices == (count // 2,)


def test_what_encrypts_is_not_captured():
    ready, source, sealed = AESGCM(KEY), empty(100), empty(116)
    ready.encrypt_into(NONCE, source, None, sealed)
    torch.cuda.synchronize()
    with pytest.raises(DaelstromError, match="captured"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            ready.encrypt_into(NONCE, source, None, sealed)
    torch.cuda.synchronize()
    assert raw(ready.encrypt(NONCE, source)) == AESGCM(KEY).encrypt(NONCE, b"\xa5" * 100)


def test_a_batch_that_is_refused_ends_no_capture():
    ready, count = daelstrom.KeySet([KEY]), torch.zeros(1, device="cuda")
    plain, nonces = [empty(100) for _ in range(33)], [os.urandom(12) for _ in range(33)]
    daelstrom.seal_batch(ready, nonces, plain)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for messages in (2, 33):  # that go with their launch, and that do not
            with pytest.raises(DaelstromError, match="captured"):
                daelstrom.seal_batch(ready, nonces[:messages], plain[:messages])
        count += 1
    graph.replay()
    torch.cuda.synchronize()
    assert count.item() == 1
