#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the Python package: on one core of the CPU beside pyca/cryptography and PyCryptodome, and on a GPU, in torch's
memory, beside the program's own rows.

    PYTHONPATH=build/dev/python .venv/bin/python bench/python/core.py [--json bench/results/python.json] [--part NAME]

Parts: host, gpu. What the machine lacks is left out, with a line that says so. In each turn everything is measured once,
and the medians of the turns are compared. Every result is compared with somebody else's first. With --json, rows of the
file that this run did not measure stay. DAELSTROM names the program, for the rows beside which a GPU's are put.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import daelstrom
from daelstrom import AESGCM

KEY, NONCE = bytes(range(16)), bytes(range(12))


def turns(calls, count, repeats):
    """Seconds of the CPU for one call, of each of several, in turns; of all threads together, so that none is hidden."""
    seconds = {name: [] for name in calls}
    for _ in range(count):
        for name, call in calls.items():
            begin = time.process_time()
            for _ in range(repeats):
                call()
            seconds[name].append((time.process_time() - begin) / repeats)
    return {name: {"median": statistics.median(values), "min": min(values), "max": max(values)}
            for name, values in seconds.items()}  # fmt: skip


def row(part, what, size, seconds, **more):
    """`seconds`: of daelstrom first, then of others."""
    ours, *others = seconds
    said = {"part": part, "what": what, "size": size, "seconds": seconds[ours], "beside": {}, **more}
    for name in others:
        said["beside"][name] = {**seconds[name], "times": seconds[name]["median"] / seconds[ours]["median"]}
    return said


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def host():
    """One core, data in host memory."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM as Pyca
    from Crypto.Cipher import AES

    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    engine = daelstrom.Engine(threads=1)
    ours, theirs = AESGCM(KEY, engine=engine), Pyca(KEY)
    machine = {"cpu": cpu_name(), "python": platform.python_version()}
    for size in (64, 1 << 10, 16 << 10, 16 << 20):
        data = os.urandom(size)
        sealed = theirs.encrypt(NONCE, data, None)
        assert ours.encrypt(NONCE, data, None) == sealed
        rooms = [bytearray(size + 16) for _ in range(3)]
        back = [bytearray(size) for _ in range(2)]
        repeats = max(3, min(20_000, (64 << 20) // (size + 4096)))

        def pycryptodome():
            cipher = AES.new(KEY, AES.MODE_GCM, nonce=NONCE)
            cipher.encrypt(data, output=memoryview(rooms[2])[:-16])
            cipher.digest()

        count = 15 if size < 1 << 20 else 9
        yield row("host", "AESGCM.encrypt_into", size, turns({
            "daelstrom": lambda: ours.encrypt_into(NONCE, data, None, rooms[0]),
            "cryptography": lambda: theirs.encrypt_into(NONCE, data, None, rooms[1]),
            "pycryptodome": pycryptodome}, count, repeats), **machine)  # fmt: skip
        yield row("host", "AESGCM.encrypt", size, turns({
            "daelstrom": lambda: ours.encrypt(NONCE, data, None),
            "cryptography": lambda: theirs.encrypt(NONCE, data, None)}, count, repeats), **machine)  # fmt: skip
        yield row("host", "AESGCM.decrypt_into", size, turns({
            "daelstrom": lambda: ours.decrypt_into(NONCE, sealed, None, back[0]),
            "cryptography": lambda: theirs.decrypt_into(NONCE, sealed, None, back[1])}, count, repeats),
            **machine)  # fmt: skip

    size, counter = 16 << 20, bytes(16)
    data, rooms = os.urandom(size), [bytearray(size) for _ in range(3)]
    key = daelstrom.Key(KEY)
    context = Cipher(algorithms.AES(KEY), modes.CTR(counter)).encryptor()
    assert daelstrom.ctr(key, counter, data) == context.update(data)

    def other_ctr():
        AES.new(KEY, AES.MODE_CTR, nonce=b"", initial_value=counter).encrypt(data, output=rooms[2])

    yield row("host", "ctr", size, turns({
        "daelstrom": lambda: daelstrom.ctr(key, counter, data, out=rooms[0], engine=engine),
        "cryptography": lambda: context.update_into(data, rooms[1]),
        "pycryptodome": other_ctr}, 9, 4), **machine)  # fmt: skip

    messages = [os.urandom(1024) for _ in range(4096)]
    nonces = daelstrom.NonceCounter(b"bnch").take(len(messages))
    keys = daelstrom.KeySet([KEY], engine=engine)
    cut = [nonces[at : at + 12] for at in range(0, len(nonces), 12)]
    assert daelstrom.seal_batch(keys, nonces, messages) == [theirs.encrypt(n, m, None) for n, m in zip(cut, messages)]
    yield row("host", "seal_batch of 4,096 messages", 1024, turns({
        "daelstrom": lambda: daelstrom.seal_batch(keys, nonces, messages),
        "cryptography": lambda: [theirs.encrypt(n, m, None) for n, m in zip(cut, messages)]}, 9, 3),
        messages=len(messages), **machine)  # fmt: skip


def programs_rows(size):
    """What `daelstrom bench` says of the same in C++: GB/s by mode and direction."""
    program = os.environ.get("DAELSTROM")
    if not program:
        return {}
    ran = subprocess.run(
        [program, "bench", "--backend", "cuda", "--mode", "ctr", "--mode", "gcm", "--bits", "128", "--size", str(size),
         "--json", "-"], capture_output=True, text=True)  # fmt: skip
    if ran.returncode:
        print("no rows of the program:", ran.stderr.strip()[-300:], file=sys.stderr)
        return {}
    found = {}
    for one in json.loads(ran.stdout)["rows"]:
        if (one["size"], one["messages"], one["where"], one["measure"]) == (size, 1, "device", "kernel"):
            which = (one["mode"], one["direction"])
            if which not in found or one["placement"] == "in place":
                found[which] = one["gbps"]["median"]
    return found


def gpu():
    """torch's tensors, by events of the GPU's own clock, and what a call costs."""
    import torch

    if not torch.cuda.is_available():
        raise ImportError("torch finds no GPU")
    machine = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "python": platform.python_version()}
    size = (4 << 30) if torch.cuda.mem_get_info()[0] > 10 << 30 else 256 << 20
    beside = programs_rows(size)
    key, ready = daelstrom.Key(KEY), AESGCM(KEY)
    # Checked at a size that the host sees to quickly.
    small = torch.randint(0, 256, (1 << 20,), dtype=torch.uint8, device="cuda")
    data = small.cpu().numpy().tobytes()
    assert daelstrom.ctr(key, bytes(16), small).cpu().numpy().tobytes() == daelstrom.ctr(key, bytes(16), data)
    assert ready.encrypt(NONCE, small).cpu().numpy().tobytes() == ready.encrypt(NONCE, data)

    room = torch.zeros(size + 16, dtype=torch.uint8, device="cuda")
    tensor = room[:size]
    other = torch.empty_like(tensor)

    def timed(call, repeats=5, count=9):
        values = []
        for _ in range(3):
            call()
        for _ in range(count):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(repeats):
                call()
            end.record()
            end.synchronize()
            values.append(begin.elapsed_time(end) / 1000 / repeats)
        return {"median": statistics.median(values), "min": min(values), "max": max(values)}

    copy = timed(lambda: other.copy_(tensor))
    calls = {
        ("ctr", "encrypt"): lambda: daelstrom.ctr(key, bytes(16), tensor, out=tensor),
        ("gcm", "encrypt"): lambda: ready.encrypt_into(NONCE, tensor, None, room),
    }
    for (mode, direction), call in calls.items():
        seconds = timed(call)
        said = {"part": "gpu", "what": f"{mode} in place, torch.uint8", "size": size, "seconds": seconds,
                "gbps": size / seconds["median"] / 1e9, "beside": {"a copy within device memory": copy}, **machine}
        if (mode, direction) in beside:
            said["beside"]["the program's row, GB/s"] = beside[mode, direction]
            said["of the program's row"] = said["gbps"] / beside[mode, direction]
        yield said
    values = []
    for _ in range(8):
        ready.encrypt_into(NONCE, tensor, None, room)
        torch.cuda.synchronize()  # sealing returns before it is done, and is not to be counted
        begin = time.perf_counter()
        ready.decrypt_into(NONCE, room, None, tensor)
        values.append(time.perf_counter() - begin)
    del values[0]  # which made memory ready
    took = statistics.median(values)
    yield {"part": "gpu", "what": "gcm opened in place, torch.uint8, to the end", "size": size,
           "seconds": {"median": took, "min": min(values), "max": max(values)}, "gbps": size / took / 1e9,
           **machine}  # fmt: skip

    yield from calls_of_4_kib(machine)


def calls_of_4_kib(machine):
    import torch

    key, ready = daelstrom.Key(KEY), AESGCM(KEY)
    little = torch.zeros(4096 + 16, dtype=torch.uint8, device="cuda")
    part = little[:4096]
    sealed, room = ready.encrypt(NONCE, part), torch.empty_like(part)
    ready.decrypt_into(NONCE, sealed, None, room)
    assert torch.equal(room, part)
    each = {
        "ctr in place": lambda: daelstrom.ctr(key, bytes(16), part, out=part),
        "gcm in place": lambda: ready.encrypt_into(NONCE, part, None, little),
        "gcm, a new tensor": lambda: ready.encrypt(NONCE, part),
        "gcm opened, to the end": lambda: ready.decrypt_into(NONCE, sealed, None, room),
        "torch.bitwise_not in place": lambda: torch.bitwise_not(part, out=part),
    }
    for name, call in each.items():
        for _ in range(200):
            call()
        torch.cuda.synchronize()
        values = []
        for _ in range(15):
            begin = time.perf_counter()
            for _ in range(500):
                call()
            torch.cuda.synchronize()
            values.append((time.perf_counter() - begin) / 500)
        seconds = {"median": statistics.median(values), "min": min(values), "max": max(values)}
        alone = []
        for _ in range(200):
            begin = time.perf_counter()
            call()
            torch.cuda.synchronize()
            alone.append(time.perf_counter() - begin)
        yield {"part": "gpu", "what": f"one call on 4 KiB: {name}", "size": 4096, "seconds": seconds,
               "and waited for": statistics.median(alone), **machine}  # fmt: skip


def show(said):
    seconds = said["seconds"]["median"]
    rate = said["size"] * said.get("messages", 1) / seconds / 1e9
    line = f"{said['what']:<46} {said['size']:>11} bytes {seconds * 1e6:>12.2f} us {rate:>8.2f} GB/s"
    for name, other in said.get("beside", {}).items():
        if isinstance(other, dict) and "times" in other:
            line += f"   {other['times']:.2f}x {name}"
    if "of the program's row" in said:
        line += f"   {said['of the program' + chr(39) + 's row']:.1%} of the program's row"
    if "and waited for" in said:
        line += f"   {said['and waited for'] * 1e6:.2f} us until it is done"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description="Measures the Python package.")
    parser.add_argument("--json", type=pathlib.Path, help="where the rows go")
    parser.add_argument("--part", action="append", choices=["host", "gpu"], help="only these")
    asked = parser.parse_args()
    rows = []
    for part in asked.part or ["host", "gpu"]:
        try:
            for said in {"host": host, "gpu": gpu}[part]():
                rows.append(said)
                show(said)
        except ImportError as missing:
            print(f"{part} is left out: {missing}")
    if asked.json and rows:
        measured = {said["part"] for said in rows}
        kept = json.loads(asked.json.read_text())["rows"] if asked.json.exists() else []
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        for said in rows:
            said.update(date=date, version=daelstrom.__version__)
        asked.json.write_text(
            json.dumps({"suite": "python", "rows": [r for r in kept if r["part"] not in measured] + rows}, indent=1)
            + "\n"
        )


if __name__ == "__main__":
    main()
