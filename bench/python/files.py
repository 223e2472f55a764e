#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times sealed files, KV chunks and encrypted weights through the Python package, beside what people use today, and
prints the rows as JSON: gigabytes of plaintext a second (median, min, max) and the processor's seconds.

    PYTHONPATH=build/release/python bench/python/files.py [--gib 2] [--device cuda] [--folder /dev/shm] [--only weights]

Everything is read from the page cache. What is not installed is named under "skipped"."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import daelstrom
from daelstrom import kvcache, weights

ROWS: list[dict[str, Any]] = []
SKIPPED: list[str] = []


def measure(what: str, by: str, size: int, job: Callable[[], object], samples: int = 7, **more: Any) -> float:
    """A row of `samples` runs, after one that is not counted. The median in GB/s."""
    job()
    walls, processor = [], []
    for _ in range(samples):
        cpu, wall = time.process_time(), time.perf_counter()
        job()
        walls.append(time.perf_counter() - wall)
        processor.append(time.process_time() - cpu)
    rates = [size / 1e9 / wall for wall in walls]
    gbps = {"median": round(statistics.median(rates), 3), "min": round(min(rates), 3), "max": round(max(rates), 3)}
    ROWS.append({"what": what, "by": by, "size": size, "gbps": gbps, "seconds": round(statistics.median(walls), 5),
                 "cpu_seconds": round(statistics.median(processor), 5), "samples": samples, **more})  # fmt: skip
    print(f"{what:28} {by:34} {gbps['median']:8.2f} GB/s  {ROWS[-1]['cpu_seconds']:8.3f} CPU s", file=sys.stderr)
    return gbps["median"]


def ratio(of: str, to: str, what: str) -> None:
    """Puts into the rows of `of` how many times `to`'s they are, in the same run."""
    if of == to:
        return
    base = [row for row in ROWS if row["what"] == what and row["by"] == to]
    for row in ROWS:
        if base and row["what"] == what and row["by"] == of:
            row["against"], row["times"] = to, round(row["gbps"]["median"] / base[-1]["gbps"]["median"], 2)
            print(f"{what:28} {of:34} {row['times']:8.2f} times {to}", file=sys.stderr)


def files(folder: str, gib: float) -> None:
    size = int(min(gib, 1) * (1 << 30))
    path, key, plain = os.path.join(folder, "sealed"), os.urandom(32), bytearray(os.urandom(1 << 20)) * (size >> 20)
    out = bytearray(size)

    def write() -> None:
        with daelstrom.open(path, "wb", key=key) as file:
            file.write(plain)

    def read() -> None:
        with daelstrom.open(path, key=key) as file:
            file.readinto(out)

    def write_plainly() -> None:
        with open(path + ".plain", "wb", buffering=0) as file:
            view = memoryview(plain)
            while view:
                view = view[file.write(view) :]

    def plainly() -> None:
        with open(path + ".plain", "rb", buffering=0) as file:
            file.readinto(out)

    measure("file, written", "daelstrom.open", size, write, 3)
    measure("file, read", "daelstrom.open", size, read)
    measure("file, written", "open, not encrypted", size, write_plainly, 3)
    ratio("daelstrom.open", "open, not encrypted", "file, written")
    measure("file, read", "open, not encrypted", size, plainly)
    ratio("daelstrom.open", "open, not encrypted", "file, read")
    if out != plain:
        raise SystemExit("what was read is not what was written")


def kv_chunks() -> None:
    size = 32 << 20
    try:
        import daelstrom.lmcache
        import torch
        from lmcache.v1.distributed.api import ObjectKey
        from lmcache.v1.distributed.serde import AesGcmDeserializer, AesGcmSerializer, HkdfKeyProvider
        from lmcache.v1.memory_management import MemoryFormat, MemoryObjMetadata, TensorMemoryObj
    except ImportError as missing:
        SKIPPED.append(f"LMCache's serde: {missing}")
        return

    def memory(bytes_: int) -> Any:
        raw = torch.randint(0, 255, (bytes_,), dtype=torch.uint8)
        meta = MemoryObjMetadata(raw.shape, raw.dtype, 0, bytes_, 1, fmt=MemoryFormat.UNDEFINED, shapes=[raw.shape],
                                 dtypes=[raw.dtype])  # fmt: skip
        return TensorMemoryObj(raw, meta, None)

    master, key = os.urandom(32), ObjectKey(os.urandom(32), "org/model", 0, 0, "tenant")
    provider = HkdfKeyProvider(master, 16, b"lmcache-l2-aesgcm-v1")
    pairs: dict[str, tuple[Any, Any]] = {"lmcache aesgcm": (AesGcmSerializer(provider), AesGcmDeserializer(provider))}
    for name, version in (
        ("daelstrom, version 1", kvcache.PLAIN_VERSION),
        ("daelstrom, bound", kvcache.BOUND_VERSION),
        ("daelstrom, AEGIS-128L", kvcache.LONG_VERSION),
    ):
        sealer = kvcache.ChunkSealer(kvcache.derived_keys(master, version))
        pairs[name] = (daelstrom.lmcache.ChunkSerializer(sealer), daelstrom.lmcache.ChunkDeserializer(sealer))
    plain, frame, back = memory(size), memory(size + kvcache.OVERHEAD), memory(size)
    for name, (serializer, deserializer) in pairs.items():
        samples = 5 if name.startswith("lmcache") else 21
        measure("KV chunk, stored", name, size, lambda s=serializer: s.serialize(plain, frame, key), samples)
        measure("KV chunk, loaded", name, size, lambda d=deserializer: d.deserialize(frame, back, key), samples)
        if not torch.equal(plain.raw_data, back.raw_data):
            raise SystemExit("a chunk came back as another")
        for what in ("KV chunk, stored", "KV chunk, loaded"):
            ratio(name, "lmcache aesgcm", what)


def model_weights(folder: str, gib: float, device: str) -> None:
    try:
        import torch
        from safetensors.torch import load_file as plain_load
        from safetensors.torch import save_file as plain_save

        import daelstrom.torch as ours
    except ImportError as missing:
        SKIPPED.append(f"weights: {missing}")
        return
    count = max(1, round(gib * (1 << 30) / (128 << 20)))
    noise = torch.randint(0, 1 << 62, ((128 << 20) // 8,))
    tensors = {f"layer.{i}.weight": noise ^ i for i in range(count)}
    size = count * (128 << 20)
    keys = weights.Keys.generate()
    plain, path = os.path.join(folder, "plain.safetensors"), os.path.join(folder, "encrypted.safetensors")
    plain_save(tensors, plain)
    ours.save_file(tensors, path, key=keys)
    last = tensors[f"layer.{count - 1}.weight"]
    tensors.clear()

    def run(load: Callable[[], dict[str, Any]]) -> Callable[[], None]:
        def job() -> None:
            loaded = load()
            if device != "cpu":
                torch.cuda.synchronize()
            if not torch.equal(loaded[f"layer.{count - 1}.weight"][-1000:].cpu(), last[-1000:]):
                raise SystemExit("weights came back as others")

        return job

    what = f"weights to {device}"
    # On the host it maps the file: what is not read yet counts as loaded. So it is copied out of the map.
    touched = (lambda t: {name: tensor.clone() for name, tensor in t.items()}) if device == "cpu" else lambda t: t
    measure(what, "safetensors, not encrypted", size, run(lambda: touched(plain_load(plain, device=device))), 5)
    measure(what, "daelstrom.torch", size, run(lambda: ours.load_file(path, device=device, key=keys)), 5)
    ratio("daelstrom.torch", "safetensors, not encrypted", what)
    try:
        import cryptotensors
    except ImportError as missing:
        SKIPPED.append(f"cryptotensors: {missing}")
        return
    config = cryptotensors.DeserializeCryptoConfig(enc_key=keys.encryption[0], sign_key=keys.signing[0]).to_dict()

    def theirs() -> dict[str, Any]:
        with cryptotensors.safe_open(path, framework="pt", device=device, config=config) as file:
            return {name: file.get_tensor(name) for name in file.keys()}

    measure(what, "cryptotensors", size, run(theirs), 3)
    ratio("daelstrom.torch", "cryptotensors", what)


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=1, help="size of the weights, in GiB")
    parser.add_argument("--device", default="cpu", help="where weights go: cpu, cuda, cuda:1")
    parser.add_argument("--folder", help="where files lie; a file system that is a page cache of its own is best")
    parser.add_argument("--only", choices=["files", "kv", "weights"], action="append")
    given = parser.parse_args()
    wanted = given.only or ["files", "kv", "weights"]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if "files" in wanted:
            files(folder, given.gib)
        if "kv" in wanted:
            kv_chunks()
        if "weights" in wanted:
            model_weights(folder, given.gib, given.device)
    machine = {"cpu": processor(), "cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    if given.device != "cpu":
        import torch

        machine["gpu"] = torch.cuda.get_device_name(given.device)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    print(json.dumps({"machine": machine, "date": now, "version": daelstrom.__version__, "skipped": SKIPPED, "rows": ROWS},
                     indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
