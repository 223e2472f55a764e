# SPDX-License-Identifier: Apache-2.0
"""What a worker of a cluster needs (Dask, a pool of processes): an engine of its own in each process, started anew or
forked, that keeps to the part of the machine which it was given, beside others that do the same."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys

import daelstrom
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from daelstrom import AESGCM, Engine

KEY = bytes(range(32))
SIZE = (3 << 20) + 5


def sets() -> list[str]:
    """Engines as a worker may have one: what is here of them. Nothing is started."""
    here = {row["name"] for row in daelstrom.list_backends() if row["present"]}
    return [*(f"{device}+openssl" for device in ("cuda:0", "opencl:0") if device in here), "openssl"]


def plain(number: int) -> bytes:
    return (number.to_bytes(4, "big") * (SIZE // 4 + 1))[:SIZE]


def expected(number: int) -> bytes:
    encryptor = Cipher(algorithms.AES(KEY), modes.CTR(number.to_bytes(8, "big") + bytes(8))).encryptor()
    return encryptor.update(plain(number))


_engine: Engine | None = None


def begin(name: str) -> None:
    """Once in each worker."""
    global _engine
    _engine = Engine(name, cpu_share=0.5, device_memory=32 << 20)


def work(number: int) -> tuple[int, bool]:
    """A task: its data comes and goes by the pool's own way, keys by none of ours."""
    assert _engine is not None
    secret = daelstrom.ctr(KEY, number.to_bytes(8, "big") + bytes(8), plain(number), engine=_engine)
    sealed = AESGCM(KEY, engine=_engine).encrypt(number.to_bytes(12, "big"), secret)
    return os.getpid(), AESGCM(KEY).decrypt(number.to_bytes(12, "big"), sealed) == secret == expected(number)


@pytest.mark.parametrize("name", sets())
def test_workers_that_are_started_anew(name: str) -> None:
    """Two at once, on the same devices; and where a worker is lost another takes its place."""
    spawn = multiprocessing.get_context("spawn")
    for _ in range(2):
        with concurrent.futures.ProcessPoolExecutor(2, spawn, initializer=begin, initargs=(name,)) as pool:
            done = list(pool.map(work, range(8)))
        assert all(right for _, right in done)
        assert os.getpid() not in {pid for pid, _ in done}


def test_workers_that_are_forked_after_the_engine_was_used() -> None:
    """As some pools do by default: the host's part goes on in the child; a device of the parent's is refused there."""
    name = sets()[0]
    before = Engine(name)
    daelstrom.ctr(KEY, bytes(16), plain(0), engine=before)
    usual = daelstrom.ctr(KEY, bytes(16), bytes(100))

    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = b"host" if daelstrom.ctr(KEY, bytes(16), bytes(100)) == usual else b"wrong"
            try:
                right = daelstrom.ctr(KEY, bytes(16), plain(0), engine=before)
                said += b", right" if right == _ctr(plain(0)) else b", wrong"
            except daelstrom.exceptions.DeviceError:
                said += b", refused"
            os.write(write, said)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        assert answer.read() in (b"host, right", b"host, refused")
    os.waitpid(child, 0)
    assert daelstrom.ctr(KEY, bytes(16), plain(0), engine=before) == _ctr(plain(0))


def _ctr(data: bytes) -> bytes:
    return Cipher(algorithms.AES(KEY), modes.CTR(bytes(16))).encryptor().update(data)


def test_a_worker_sees_the_devices_that_it_is_given() -> None:
    """CUDA_VISIBLE_DEVICES, by which clusters hand out GPUs: with none the library has none, and says so."""
    script = (
        "import daelstrom, sys\n"
        "try: daelstrom.Engine('cuda:0')\n"
        "except daelstrom.exceptions.BackendError as e: print('none:', e)\n"
        "print(len(daelstrom.ctr(bytes(16), bytes(16), bytes(1 << 20), engine=daelstrom.Engine('all'))))\n"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    said = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("none:") and said.stdout.endswith(f"{1 << 20}\n"), said


def test_what_a_worker_leaves_to_others_is_checked() -> None:
    for wrong in ({"cpu_share": 0}, {"cpu_share": 1.5}, {"cpu_share": float("nan")}):
        with pytest.raises(ValueError, match="cpu_share"):
            Engine("openssl", **wrong)
    for wrong in ({"device_memory": -1}, {"copy_rate": "fast"}):
        with pytest.raises(TypeError):
            Engine("openssl", **wrong)
