# SPDX-License-Identifier: Apache-2.0
"""Documents in the lab's schema with invented figures, such as a machine with a GPU would write: what the report is tested
on where there is none."""
import json
import random
import struct
import zlib

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MACHINE = {"cpu": "A processor", "cores": 16, "memory": 128 * GIB, "gpu": "A GPU", "multiprocessors": 132, "gpu_memory": 140 * GIB,
           "driver": "580.1", "cuda_runtime": "13.0"}
THIRTEEN = [(16, "constant", "constant", "registers", 4, 5.0), (16, "shared", "constant", "registers", 4, 34.4),
            (16, "shared", "shared", "registers", 4, 35.2), (16, "shared", "shared", "registers", 1, 21.54),
            (16, "shared", "shared", "soa", 4, 29.9), (16, "shared", "shared", "aos", 4, 21.7), (8, "shared", "constant", "aos", 4, 26.9),
            (8, "shared", "shared", "aos", 4, 23.9), (8, "shared", "constant", "soa", 4, 23.4), (4, "shared", "constant", "aos", 4, 25.3),
            (4, "shared", "shared", "aos", 4, 25.0), (4, "shared", "constant", "soa", 4, 17.1), (1, "shared", "shared", "aos", 4, 2.9)]


def row(point, gbps, figures=None, ceiling=None, against=()):
    seconds = point.get("size", MIB) / gbps / 1e9
    made = {**point, "gbps": {"median": gbps, "min": gbps * 0.96, "max": gbps * 1.02}, "seconds": seconds, "samples": 3, **(figures or {}),
            "series": [seconds] * 3}
    if ceiling:
        made.update(ceiling={"name": ceiling[0], "gbps": ceiling[1]}, ratio=gbps / ceiling[1])
    if against:
        made["against"] = [{"name": name, "gbps": rate, "ratio": gbps / rate} for name, rate in against]
    return made


def document(suite, rows, **more):
    return {"machine": MACHINE, "date": "2026-01-02T03:04:05Z", "version": "0.1.0", "commit": "0123456789ab", "compiler": "GNU 12.2.0",
            "suite": suite, "skipped": [], "format": 1, "openssl": "OpenSSL 3.0.19", "load_before": 12, "load_after": 40, "seconds": 30,
            "gpu_before": "clocks.sm=1980 MHz; power.draw=75 W", **more, "rows": rows}


def cipher(mode="ecb", direction="encrypt", bits=128, **more):
    return {"mode": mode, "direction": direction, "bits": bits, **more}


def placement():
    copy = ("copy within device memory", 2000.0)
    rows = []
    for number, (size, tables, keys, state, count, gbit) in enumerate(THIRTEEN, 1):
        rows.append(row({"study_part": "own kernels", "where": "kernels", "backend": "cuda:0", "kernel": str(number),
                         **cipher(size=256 * MIB, bytes_per_thread=size, tables=tables, table_count=count, keys=keys, state=state)},
                        300 - 20.0 * number, {"gbps_2017": gbit / 8}, copy))
    for place, key in (("rank", lambda r: -r["gbps"]["median"]), ("rank_2017", lambda r: -r["gbps_2017"])):
        for index, one in enumerate(sorted(rows, key=key), 1):
            one[place] = float(index)
    for name, rate in (("persistent grid", 310.0), ("banks, 4 tables", 770.0), ("computed S-box", 95.0)):
        rows.append(row({"study_part": "own kernels", "where": "kernels", "backend": "cuda:0", "kernel": name,
                         **cipher(size=256 * MIB, tables="banks", table_count=4, keys="constant", state="registers")}, rate, {}, copy))
    rows.append(row({"study_part": "the library", "where": "library", "backend": "cuda:0", "kernel": "daelstrom",
                     **cipher("ctr", size=256 * MIB)}, 936.0, {}, copy))
    return document("placement", rows)


def granularity():
    return document("granularity", [
        row({"where": "kernels", "backend": "cuda:0", "kernel": "2", **cipher(size=256 * MIB, threads=threads),
             **({"blocks_per_thread": each} if each else {})}, 150 + threads / 8 + 5 * each)
        for threads in (64, 128, 256, 512, 1024) for each in (1, 2, 4, 8, 0)])


def sizes():
    rows = []
    for mode, direction in (("ctr", "encrypt"), ("ecb", "encrypt"), ("cbc", "decrypt")):
        for size in (16 * KIB, 256 * KIB, 4 * MIB, 64 * MIB, GIB):
            work = cipher(mode, direction, size=size, messages=1, placement="apart")
            grown = size / (size + 2 * MIB)
            for threads in (1, 4, 16):
                for backend, rate in (("openssl", 9.0), ("cpu", 16.0)):
                    rows.append(row({"backend": backend, **work, "where": "host", "measure": "call", "threads": threads}, rate * threads ** 0.8,
                                    {"crossover": 1.0} if backend == "cpu" and size == 16 * KIB else {}, ("memcpy", 120.0)))
            device = {"backend": "cuda:0", **work, "threads": 1}
            rows.append(row({**device, "where": "device", "measure": "kernel"}, 930 * grown + 0.1, {}, ("copy within device memory", 2100.0)))
            for where in ("pinned", "pageable"):
                rows.append(row({**device, "where": where, "measure": "async"}, 45 * grown + 0.1, {"crossover": 1.0} if size == 4 * MIB else {},
                                ("copies both ways at once", 48.0)))
                rows.append(row({**device, "where": where, "measure": "total"}, 12 * grown + 0.1))
    for isa, rate in (("avx512", 16.6), ("sse", 7.1)):
        rows.append(row({"backend": "cpu", "isa": isa, **cipher("ctr", size=16 * KIB, messages=1, placement="apart"), "where": "cache",
                         "measure": "call", "threads": 1}, rate, {}, ("OpenSSL EVP called directly", 6.5)))
    return document("sizes", rows)


def overlap():
    rows = []
    for where in ("pinned", "pageable"):
        for ways in ("in", "out", "both"):
            for chunk in (64 * KIB, MIB, 16 * MIB, 64 * MIB):
                for streams in (1, 2, 4, 8):
                    rate = (20 if where == "pinned" else 9) + 4.0 * streams - abs(chunk - MIB) / (20 * MIB)
                    rows.append(row({"study_part": "streams", "where": where, "backend": "cuda:0",
                                     **cipher(size=256 * MIB, measure="async", ways=ways, chunk=chunk, streams=streams)}, rate,
                                    {"hidden": 0.1 * streams} if streams > 1 else {}, ("the copies alone, in sequence", 25.0)))
        rows.append(row({"study_part": "the library", "where": where, "backend": "cuda:0",
                         **cipher(size=256 * MIB, measure="async", ways="both")}, 44.0))
    return document("overlap", rows)


def packets():
    rows = []
    names = {"memcpy": 60.0, "LibTomCrypt": 0.25, "OpenSSL EVP": 3.0, "libipsec-mb": 8.5, "daelstrom, direct": 10.0,
             "daelstrom, keystream by cuda": 17.0}
    for bits in (128, 256):
        for name, rate in names.items():
            for size in (64, 256, 1024, 1500):
                rows.append(row({"backend": name, "where": "packets", "measure": "call", "working_set": 16384, "bits": bits, "size": size,
                                 "threads": 1}, rate * size / (size + 200), {"ns": size / rate, "mpps": 1.0, "cycles": 100.0, "hits": 0.9},
                                ("memcpy", 60.0), [("OpenSSL EVP", 3.0)]))
    for threads in (1, 2, 4):
        rows += [row({"backend": name, "where": "cores", "bits": 128, "size": 1024, "threads": threads}, rate * threads, {"ns": 1.0})
                 for name, rate in names.items()]
    rows += [row({"backend": name, "where": "latency", "bits": 128, "size": 1024, "load": 50}, 1.0, {"p50_ns": 130.0, "p99_ns": 9000.0})
             for name in ("libipsec-mb", "daelstrom, direct")]
    rows += [row({"backend": name, "where": "parts", "bits": 128, "size": 1024}, rate, {"ns": 1024 / rate})
             for name, rate in (("memcpy", 60.0), ("GHASH, libipsec-mb", 21.0), ("AES, LibTomCrypt", 0.28))]
    return document("packets", rows)


def devices():
    rows = []
    for mode, bits, top in (("ctr", 256, 90.0), ("gcm", 128, 84.0)):
        point = {"backend": "cuda:0+cpu", **cipher(mode, bits=bits, size=MIB, messages=1000), "where": "pinned"}
        for share, rate in ((0, 48.0), (50, top), (100, 40.0)):
            rows.append(row({**point, "study_part": "fixed share", **({"cpu_share": share} if share else {})}, rate,
                            {"gpu_joules_per_gb": 400 / rate, "cpu_joules_per_gb": 300 / rate}))
        rows.append(row({**point, "study_part": "scheduler"}, top * 0.95, {"cpu_percent": 46.0, "of_best": 0.95}))
    return document("devices", rows)


def energy():
    rows = [row({"backend": "cuda:0", **cipher(mode, bits=bits, size=256 * MIB), "where": "device", "study_part": "device"}, rate,
                {"gpu_joules_per_gb": joules, "gpu_watts": 690.0, "gpu_idle_watts": 75.0, "sm_mhz": 1790.0, "memory_mhz": 3201.0,
                 "celsius": 55.0, "clock_reasons": 4.0 if mode == "gcm" else 0.0})
            for mode, bits, rate, joules in (("ctr", 128, 930.0, 0.62), ("gcm", 128, 745.0, 0.92), ("gcm", 256, 550.0, 1.2))]
    rows += [row({"backend": "cpu", **cipher("ctr", size=64 * MIB), "where": "host", "study_part": "host"}, 90.0, {"cpu_joules_per_gb": 3.1})]
    return document("energy", rows)


def files():
    rows = []
    for megabytes, data in ((59, "ramp"), (118, "constant"), (295, "random")):
        for part, program, backend, rate in (("no cipher", "read and written", "", 3.0), ("encrypted", "daelstrom encrypt", "cpu", 2.2),
                                             ("encrypted", "daelstrom encrypt", "cuda", 2.0), ("no cipher", "openssl enc -none", "", 1.4),
                                             ("encrypted", "openssl enc", "openssl", 0.7)):
            seconds = megabytes / rate / 1000
            rows.append(row({"study_part": part, "where": "files", **({"backend": backend} if backend else {}), "program": program,
                             **cipher(size=megabytes * 1000000), "data": data}, rate, {"cpu_seconds": 2 * seconds, "load": 2.0},
                            ("read and written", 3.0)))
    return document("files", rows)


def timing():
    def case(part, t, must_leak=0, **point):
        return row({"study_part": part, "where": part, "size": 256, **point}, 1.0,
                   {"t": t, "threshold": 10.0, "inputs": 20000.0, "leaks": float(t >= 10), "must_leak": float(must_leak)})

    return document("timing", [
        case("control", 812.0, 1, kernel="comparison that ends early", varied="data"),
        *(case("host", t, backend=backend, mode=mode, varied=varied) for backend, mode, varied, t in (
            ("reference", "ecb", "data", 1.2), ("cpu", "ctr", "key", 0.7), ("openssl", "gcm", "data", 2.2))),
        case("own kernels", 140.0, 1, backend="cuda:0", kernel="2", varied="data"),
        case("own kernels", 1.9, backend="cuda:0", kernel="banks, 4 tables", varied="data")])


def png(side, panels):
    """A picture of panels in a row, of noise."""
    noise = random.Random(1)
    lines = b"".join(b"\0" + noise.randbytes(4 * side * panels) for _ in range(side))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side * panels, side, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def picture():
    rows = [row({"backend": "auto", **cipher(mode, size=4 * 512 * 512), "where": "host", "study_part": "picture"}, 5.0, {"repeats": repeats})
            for mode, repeats in (("ecb", 99.7), ("cbc", 0.0), ("ctr", 0.0))]
    return document("picture", rows, picture="picture.png")


def unknown():
    """A study that no section of the report knows."""
    return document("rotation", [row({"backend": "cpu", **cipher("ctr", size=size), "where": "host", "turns": turns}, 1.0 + turns)
                                 for size in (KIB, MIB, GIB) for turns in (1, 2)], skipped=["rotation: <nothing> to the left"])


STUDIES = (placement, granularity, sizes, overlap, devices, files, packets, energy, timing, picture, unknown)


def write(folder, studies=STUDIES):
    """A run of the lab: a document of each, and the picture."""
    folder.mkdir(exist_ok=True)
    for study in studies:
        made = study()
        (folder / f"{made['suite']}.json").write_text(json.dumps(made), encoding="utf-8")
    (folder / "picture.png").write_bytes(png(512, 4))
