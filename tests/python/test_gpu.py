# SPDX-License-Identifier: Apache-2.0
"""On a GPU: torch's, cupy's and jax's memory, the order of streams, several GPUs. test_torch.py has the calls."""

import gc
import os
import re
import threading

import numpy
import pytest
from conftest import SOURCE

import daelstrom
from daelstrom import AESGCM, Engine, aescuda
from daelstrom.random import Generator

KEY, NONCE = bytes(range(16)), bytes(range(12))

if not any(row["present"] and str(row["name"]).startswith("cuda") for row in daelstrom.list_backends()):
    pytest.skip("needs an NVIDIA GPU and a build with CUDA", allow_module_level=True)
torch = pytest.importorskip("torch", reason="needs PyTorch (pip install torch)")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no GPU", allow_module_level=True)


def raw(tensor):
    return tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def expected_ctr(plain):
    return daelstrom.ctr(KEY, bytes(16), plain, engine=Engine("openssl"))


def test_work_is_in_the_order_of_the_current_stream():
    plain = torch.randint(0, 256, (5_000_016,), dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    ready, key = AESGCM(KEY), daelstrom.Key(KEY)
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        with torch.cuda.stream(stream):
            moving, room = torch.empty_like(plain), torch.empty(len(plain) + 16, dtype=torch.uint8, device="cuda")
            for _ in range(20):
                moving.copy_(plain)
                daelstrom.ctr(key, bytes(16), moving, out=moving)
                secret = moving.clone()
                daelstrom.ctr(key, bytes(16), moving, out=moving)
                assert not torch.equal(secret, plain)
                assert torch.equal(moving, plain)
                ready.encrypt_into(NONCE, moving, None, room)
                moving.zero_()
                ready.decrypt_into(NONCE, room, None, moving)
                assert torch.equal(moving, plain)


def test_memory_may_be_freed_right_after_the_call():
    """torch gives it to the next one who asks; what was launched before has read it by then."""
    plain = torch.randint(0, 256, (64 << 20,), dtype=torch.uint8, device="cuda")
    secret = torch.empty_like(plain)
    expected = daelstrom.ctr(KEY, bytes(16), plain)
    for _ in range(10):
        copy = plain.clone()
        daelstrom.ctr(KEY, bytes(16), copy, out=secret)
        del copy
        torch.zeros(64 << 20, dtype=torch.uint8, device="cuda")
        assert torch.equal(secret, expected)
        secret.zero_()


def test_a_named_stream_follows_the_current_one_and_is_followed():
    plain = torch.randint(0, 256, (64 << 20,), dtype=torch.uint8, device="cuda")
    expected = daelstrom.ctr(KEY, bytes(16), plain)
    side = torch.cuda.Stream()
    for stream in (side, side.cuda_stream):
        for _ in range(10):
            moving = torch.empty_like(plain)
            moving.copy_(plain)
            daelstrom.ctr(KEY, bytes(16), moving, out=moving, stream=stream)
            assert torch.equal(moving, expected)
            sealed = AESGCM(KEY).encrypt(NONCE, moving, stream=stream)
            del moving
            assert torch.equal(AESGCM(KEY).decrypt(NONCE, sealed, stream=stream), expected)


def test_many_calls_and_threads():
    """More launches than are kept ready, from threads on streams of their own."""
    ready, faults = AESGCM(KEY), []

    def work(number):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                plain = torch.full((10_000 + number,), number, dtype=torch.uint8, device="cuda")
                sealed = [ready.encrypt(i.to_bytes(12, "big"), plain, bytes(i * 50)) for i in range(60)]
                for i in (0, 7, 59):
                    again = AESGCM(KEY).encrypt(i.to_bytes(12, "big"), raw(plain), bytes(i * 50))
                    assert raw(sealed[i]) == again
                for i, one in enumerate(sealed):
                    assert torch.equal(ready.decrypt(i.to_bytes(12, "big"), one, bytes(i * 50)), plain)
        except BaseException as fault:
            faults.append(repr(fault))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_additional_data_on_either_side():
    plain = torch.zeros(1000, dtype=torch.uint8, device="cuda")
    expected = AESGCM(KEY).encrypt(NONCE, bytes(1000), b"aad" * 1000)
    assert raw(AESGCM(KEY).encrypt(NONCE, plain, b"aad" * 1000)) == expected
    there = torch.tensor(list(b"aad" * 1000), dtype=torch.uint8, device="cuda")
    assert raw(AESGCM(KEY).encrypt(NONCE, plain, there)) == expected
    assert raw(AESGCM(KEY).encrypt(bytes(range(20)), plain)) == AESGCM(KEY).encrypt(bytes(range(20)), bytes(1000))


def test_a_forgery_leaves_no_plaintext():
    plain = torch.full((1 << 20,), 7, dtype=torch.uint8, device="cuda")
    sealed = AESGCM(KEY).encrypt(NONCE, plain)
    sealed[12345] ^= 1
    out = torch.full_like(plain, 0xA5)
    with pytest.raises(daelstrom.exceptions.InvalidTag):
        AESGCM(KEY).decrypt_into(NONCE, sealed, None, out)
    assert not (out == 7).view(-1, 64).all(1).any()


def test_the_other_modes():
    plain = torch.randint(0, 256, (16 * 4099,), dtype=torch.uint8, device="cuda")
    data = raw(plain)
    for mode, how in (("ecb", {}), ("cbc", {"iv": bytes(16)}), ("cfb", {"iv": bytes(16)})):
        secret = daelstrom.crypt(mode, "encrypt", KEY, data, **how)
        there = torch.tensor(list(secret), dtype=torch.uint8, device="cuda")
        assert torch.equal(daelstrom.crypt(mode, "decrypt", KEY, there, **how), plain)
    assert raw(daelstrom.crypt("ecb", "encrypt", KEY, plain)) == daelstrom.crypt("ecb", "encrypt", KEY, data)
    key = bytes(range(32))
    secret = daelstrom.crypt("xts", "encrypt", key, data, sector=4096)
    assert raw(daelstrom.crypt("xts", "encrypt", key, plain, sector=4096)) == secret
    with pytest.raises(daelstrom.exceptions.UnsupportedAlgorithm):
        daelstrom.crypt("cbc", "encrypt", KEY, plain, iv=bytes(16))


def test_both_sides_of_the_bus_are_not_mixed():
    plain = torch.zeros(16, dtype=torch.uint8, device="cuda")
    with pytest.raises(ValueError, match="data lies on a device and out in the host's memory"):
        daelstrom.ctr(KEY, bytes(16), plain, out=bytearray(16))
    with pytest.raises(ValueError, match="data lies in the host's memory and out on a device"):
        AESGCM(KEY).encrypt(NONCE, b"", out=plain)


def test_keys_are_made_ready_and_let_go():
    plain = torch.zeros(100, dtype=torch.uint8, device="cuda")
    for _ in range(20):
        AESGCM(os.urandom(16)).encrypt(NONCE, plain)
    gc.collect()
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(200):
        AESGCM(os.urandom(16)).encrypt(NONCE, plain)
    gc.collect()
    torch.cuda.synchronize()
    assert free - torch.cuda.mem_get_info()[0] < 64 << 20


def test_a_child_of_fork_is_told():
    plain = torch.zeros(100, dtype=torch.uint8, device="cuda")
    ready = AESGCM(KEY)
    ready.encrypt(NONCE, plain)
    pid = os.fork()
    if pid == 0:
        try:
            assert ready.decrypt(NONCE, ready.encrypt(NONCE, b"host")) == b"host"
            daelstrom.ctr(KEY, bytes(16), Pointer(plain.data_ptr()), out=Pointer(plain.data_ptr()))
        except daelstrom.exceptions.DaelstromError:
            os._exit(0)
        except BaseException:
            os._exit(2)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(ready.encrypt(NONCE, plain)) == 116


class Pointer:
    def __init__(self, at):
        self.__cuda_array_interface__ = {"shape": (100,), "typestr": "|u1", "data": (at, False), "version": 2}


def test_several_gpus():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs 2 GPUs")
    for device in ("cuda:0", "cuda:1"):
        plain = torch.full((100_000,), 3, dtype=torch.uint8, device=device)
        assert raw(daelstrom.ctr(KEY, bytes(16), plain)) == expected_ctr(bytes([3]) * 100_000)
        sealed = AESGCM(KEY).encrypt(NONCE, plain)
        assert sealed.device == plain.device
        assert torch.equal(AESGCM(KEY).decrypt(NONCE, sealed), plain)


def test_gpup_is_a_launch_of_that_shape():
    plain = os.urandom(1_000_003)
    expected = aescuda.encrypt(plain, KEY, bytes(8), 5)
    there = torch.tensor(list(plain[:100_003]), dtype=torch.uint8, device="cuda")
    for shape in ((1, 1), (1, 32), (64, 256), (132, 1024), (1000, 33)):
        size = 3_000 if shape == (1, 1) else len(plain)
        assert aescuda.encrypt(plain[:size], KEY, bytes(8), 5, gpup=shape) == expected[:size], shape
        if shape != (1, 1):
            assert raw(aescuda.encrypt(there, KEY, bytes(8), 5, gpup=shape)) == expected[:100_003]


def test_cupy():
    cupy = pytest.importorskip("cupy", reason="needs cupy")
    plain = cupy.arange(10_000, dtype=cupy.float32)
    data = cupy.asnumpy(plain).tobytes()
    sealed = AESGCM(KEY).encrypt(NONCE, plain, b"aad")
    assert isinstance(sealed, cupy.ndarray) and sealed.dtype == cupy.uint8
    assert cupy.asnumpy(sealed).tobytes() == AESGCM(KEY).encrypt(NONCE, data, b"aad")
    back = cupy.empty_like(plain)
    assert AESGCM(KEY).decrypt(NONCE, sealed, b"aad", out=back) is back
    assert (back == plain).all()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        secret = daelstrom.ctr(KEY, bytes(16), plain * 1)
    daelstrom.ctr(KEY, bytes(16), back, out=back, stream=stream)
    stream.synchronize()
    assert cupy.asnumpy(secret).tobytes() == expected_ctr(data) == cupy.asnumpy(back).tobytes()
    with pytest.raises(BufferError, match="not contiguous"):
        AESGCM(KEY).encrypt(NONCE, plain[::2])
    for kind in ("float64", "float32"):
        there = Generator(KEY).normal(out=cupy.empty(10_001, kind))
        assert cupy.asnumpy(there).tobytes() == Generator(KEY).normal(size=10_001, dtype=kind).tobytes()
    there = Generator(KEY).integers(0, 3 << 61, out=cupy.empty(1000, "int64"))
    assert cupy.asnumpy(there).tolist() == Generator(KEY).integers(0, 3 << 61, 1000).tolist()


def test_jax():
    jax = pytest.importorskip("jax", reason="needs jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax finds no GPU")
    plain = jax.numpy.arange(10_000, dtype=jax.numpy.float32) * 1.5
    data = numpy.asarray(plain).tobytes()
    sealed = torch.empty(len(data) + 16, dtype=torch.uint8, device="cuda")
    assert AESGCM(KEY).encrypt(NONCE, plain, out=sealed) is sealed
    assert raw(sealed) == AESGCM(KEY).encrypt(NONCE, data)
    secret = torch.empty(len(data), dtype=torch.uint8, device="cuda")
    daelstrom.ctr(KEY, bytes(16), plain, out=secret)
    assert raw(secret) == expected_ctr(data)
    assert jax.dlpack.from_dlpack(secret).shape == (len(data),)


def test_the_cuda_array_interface():
    plain = torch.randint(0, 256, (1000,), dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()

    class Shown:
        __cuda_array_interface__ = plain.__cuda_array_interface__

    out = torch.zeros(1000, dtype=torch.uint8, device="cuda")
    daelstrom.ctr(KEY, bytes(16), Shown(), out=out)
    torch.cuda.synchronize()
    assert raw(out) == expected_ctr(raw(plain))
    sealed = torch.zeros(1016, dtype=torch.uint8, device="cuda")
    AESGCM(KEY).encrypt(NONCE, Shown(), out=sealed)
    torch.cuda.synchronize()
    assert raw(sealed) == AESGCM(KEY).encrypt(NONCE, raw(plain))


@pytest.mark.parametrize("page", ["first-steps.md", "tensors.md", "from-torchcsprng.md", "from-pycryptodome.md"])
def test_examples_of_documents(page):
    """Those that need a GPU among them."""
    path = SOURCE / "docs" / "python" / page
    names = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.S):
        exec(compile(block, str(path), "exec"), names)


def test_what_makes_no_sense_is_refused_there_too():
    room = torch.zeros(1000, dtype=torch.uint8, device="cuda")
    with pytest.raises(ValueError, match="overlap"):
        AESGCM(KEY).encrypt_into(NONCE, room[16:116], None, room[0:116])
    with pytest.raises(ValueError, match="overlap"):
        daelstrom.ctr(KEY, bytes(16), room[16:116], out=room[0:100])
    with pytest.raises(ValueError, match="overlap"):
        AESGCM(KEY).encrypt_into(NONCE, room[:100], room[50:60], room[:116])
