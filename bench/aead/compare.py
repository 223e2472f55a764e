#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""AEGIS, XAES-256-GCM and AES-GCM-SIV on one core, in turns with others: our AES-GCM, libaegis, tink-go, and OpenSSL's
GCM-SIV.

    bench/aead/compare.py --build build/dev [--tink PROGRAM] [--libaegis FILE] [--newer "LOADER ..."]
                         [--json bench/results/aead.json]

`--tink` is tink.go, built: in a folder of its own, `go mod init tink && go get github.com/tink-crypto/tink-go/v2 && go
build tink.go`. `--newer` is put before the program that asks EVP, where this system's OpenSSL is older than 3.2: a loader
with the libraries of a newer system. `--libaegis` is that library, shared: of the sources in PyPI's `aeg`, `gcc -O3 -shared
-fPIC -Iinclude -o libaegis.so` of all its files. What is not there is left out. All are kept on one core; in each turn everyone seals
for a tenth of a second, and the ratios are the medians of the turns'.
"""
import argparse
import datetime
import json
import os
import pathlib
import shlex
import statistics
import subprocess

TURNS = 15


class Contestant:
    def __init__(self, name, command):
        self.name, self.times = name, []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "GOMAXPROCS": "1"})

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def heat(what, size, contestants, turns):
    """The first is whom the others are held against."""
    for turn in range(turns + 1):
        for one in contestants:
            nanoseconds = one.turn()
            if turn != 0:  # the first warms up
                one.times.append(nanoseconds)
    for one in contestants:
        one.process.stdin.close()
        one.process.wait()
    first, *others = contestants
    row = {"what": what, "size": size, "ns": statistics.median(first.times),
           "gbps": size / statistics.median(first.times), "against": []}
    for other in others:
        row["against"].append({
            "name": other.name, "gbps": size / statistics.median(other.times),
            "ratio": statistics.median(theirs / ours for ours, theirs in zip(first.times, other.times, strict=True))})
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default="build/dev")
    parser.add_argument("--tink")
    parser.add_argument("--libaegis")
    parser.add_argument("--newer", default="")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    program = str(options.build / "bench/aead/aead_messages")

    def ours(mode, bits, size, count, name=None):
        return Contestant(name or f"our {mode}-{bits}", [program, "ours", mode, str(bits), str(size), str(count)])

    def evp(name, size):
        return Contestant("OpenSSL's " + name, [*shlex.split(options.newer), program, "evp", name, str(size)])

    has_siv = subprocess.run([*shlex.split(options.newer), program, "evp", "AES-128-GCM-SIV", "16"], check=False,
                             stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    rows = []
    for count in (256, 1):
        contestants = [ours("xaes256gcm", 256, 1024, count), ours("gcm", 256, 1024, count)]
        if options.tink:
            contestants.append(Contestant("tink-go", [options.tink, "1024"]))
        rows.append(heat(f"XAES-256-GCM, {count} in one call", 1024, contestants, options.turns))
    for mode, bits in (("aegis128l", 128), ("aegis256", 256), ("aegis128x2", 128), ("aegis128x4", 128)):
        for size, count in ((16384, 1), (1024, 256)):
            contestants = [ours(mode, bits, size, count), ours("gcm", bits, size, count)]
            if options.libaegis:
                contestants.append(Contestant("libaegis", [program, "libaegis", options.libaegis, mode, str(size)]))
            rows.append(heat(f"{mode}, {count} in one call", size, contestants, options.turns))
    for bits in (128, 256):
        for size, count in ((16384, 1), (1024, 1), (1024, 256)):
            contestants = [ours("gcm_siv", bits, size, count), ours("gcm", bits, size, count)]
            if has_siv:
                contestants.append(evp(f"AES-{bits}-GCM-SIV", size))
            rows.append(heat(f"AES-{bits}-GCM-SIV, {count} in one call", size, contestants, options.turns))
    for row in rows:
        print(f"{row['what']} of {row['size']} bytes: {row['gbps']:.2f} GB/s; " + "; ".join(
            f"{other['ratio']:.2f} of {other['name']} ({other['gbps']:.2f})" for other in row["against"]))
    if options.json:
        cpu = next(line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                   if line.startswith("model name"))
        date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        head = json.dumps({"machine": {"cpu": cpu}, "date": date}, separators=(",", ":"))[:-1]
        options.json.write_text(head + ',"rows":[\n' + lines + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
