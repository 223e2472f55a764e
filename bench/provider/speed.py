#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`openssl speed` with OpenSSL's default provider and with daelstrom, in turns, and the ratio of the two.

    bench/provider/speed.py --module build/dev/provider/daelstrom.so [--json FILE]
                            [--nothing build/dev/bench/provider/nothing.so]
                            [--ciphers aes-256-ctr,aes-256-gcm] [--sizes 16,1024,67108864] [--turns 3] [--seconds 1]
                            [--at-once 6 | --processes 16]

Prints a line for each cipher, direction and size: GB/s (10^9) of both, the best of the turns, and how many times
daelstrom's is the default's. Leave the machine alone meanwhile. `openssl speed` works in place, in one context,
and gives AES-GCM its key anew for each operation. `--nothing` adds the floor: a provider that encrypts nothing,
so that what remains is what OpenSSL itself takes for a call. `--at-once` measures that many lines at a time, each on
a core of its own that it does not leave, every second core: for sizes that stay on the calling thread. `--processes`
has `openssl speed` start that many processes, and adds up what they do (-multi). What a message costs that has an IV,
a key or a context of its own: messages.cpp.
"""
import argparse
import concurrent.futures
import itertools
import os
import queue
import pathlib
import re
import subprocess
import tempfile

from results import begun, keep

CIPHERS = "aes-256-ecb,aes-256-cbc,aes-256-cfb,aes-256-ofb,aes-256-ctr,aes-256-gcm,aes-256-xts,aes-128-ctr,aes-128-gcm"
SIZES = "16,64,256,1024,1500,2048,4096,16384,65536,1048576,16777216,67108864"


def configuration(module, name="daelstrom"):
    return (f"openssl_conf = init\n[init]\nproviders = providers\nalg_section = algorithms\n[providers]\n"
            f"default = default_sect\nmine = mine_sect\n[default_sect]\nactivate = 1\n[mine_sect]\n"
            f"module = {module}\nactivate = 1\n[algorithms]\ndefault_properties = ?provider={name}\n")


def speed(cell, prefix, options, environment):
    """Bytes a second; 0 where openssl refuses it."""
    cipher, decrypt, size = cell
    ran = subprocess.run([*prefix, "openssl", "speed", "-mr", "-elapsed", "-seconds", str(options.seconds), "-bytes",
                          str(size), *(["-multi", str(options.processes)] if options.processes else []),
                          *(["-decrypt"] if decrypt else []), "-evp", cipher],
                         env=environment, check=False, capture_output=True, text=True)
    found = re.search(r"^\+F:\d+:[^:]+:([\d.]+)", ran.stdout, re.M)
    return float(found[1]) if found else 0.0


def line(cell, sides, prefix, options):
    """The best of the turns of each side, in GB/s."""
    best = [0.0] * len(sides)
    for _, (side, environment) in itertools.product(range(options.turns), enumerate(sides)):
        best[side] = max(best[side], speed(cell, prefix, options, environment) / 1e9)
    cipher, decrypt, size = cell
    if not all(best[:2]):
        print(f"{cipher:12} {size:9}  not measured: openssl speed refuses it", flush=True)
        return None
    direction = "decrypt" if decrypt else "encrypt"
    floor = {"nothing": best[2]} if any(best[2:]) else {}
    print(f"{cipher:12} {direction} {size:9}  default {best[0]:8.3f}  daelstrom {best[1]:8.3f}  {best[1] / best[0]:6.2f}x"
          + (f"  nothing {best[2]:8.3f}" if floor else ""), flush=True)
    return {"cipher": cipher, "direction": direction, "size": size, "default": best[0], "daelstrom": best[1]} | floor


def lines(cells, sides, options):
    """A row for each cell, in their order, as many at once as there are cores to be had for them."""
    if not options.at_once:
        return [line(cell, sides, [], options) for cell in cells]
    free = queue.SimpleQueue()
    for core in sorted(os.sched_getaffinity(0))[::2][:options.at_once]:
        free.put(core)

    def on_a_core(cell):
        core = free.get()
        try:
            return line(cell, sides, ["taskset", "-c", str(core)], options)
        finally:
            free.put(core)

    with concurrent.futures.ThreadPoolExecutor(free.qsize()) as pool:
        return list(pool.map(on_a_core, cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", required=True, type=pathlib.Path)
    parser.add_argument("--nothing", type=pathlib.Path)
    parser.add_argument("--ciphers", default=CIPHERS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=1)
    several = parser.add_mutually_exclusive_group()
    several.add_argument("--at-once", type=int, default=0)
    several.add_argument("--processes", type=int, default=0)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    for module in filter(None, (options.module, options.nothing)):
        if not module.exists():
            parser.error(f"{module} is not there: build it first")
    version = subprocess.run(["openssl", "version"], check=True, capture_output=True, text=True).stdout.strip()
    about = begun()
    with tempfile.TemporaryDirectory() as folder:
        config, floor = pathlib.Path(folder, "daelstrom.cnf"), pathlib.Path(folder, "nothing.cnf")
        config.write_text(configuration(options.module.resolve()))
        theirs = {name: value for name, value in os.environ.items() if name != "OPENSSL_CONF"}
        # As after the first moments of a process: the engine is open at once, a key after 16 KiB.
        sides = [theirs, {"DAELSTROM_PROVIDER_WARMUP": "1"} | theirs | {"OPENSSL_CONF": str(config)}]
        if options.nothing:
            floor.write_text(configuration(options.nothing.resolve(), "nothing"))
            sides.append(theirs | {"OPENSSL_CONF": str(floor)})
        print(f"{version}, {os.cpu_count()} processors")
        # What feeds back encrypts in order; `openssl speed -decrypt` of GCM does not end its messages.
        cells = [(cipher, decrypt, int(size)) for cipher in options.ciphers.split(",")
                 for decrypt in ((False, True) if re.search("ecb|cbc|cfb", cipher) else (False,))
                 for size in options.sizes.split(",")
                 # XTS refuses a data unit of more (SP 800-38E), and `openssl speed` counts refusals as work done.
                 if "xts" not in cipher or int(size) <= 16 << 20]
        rows = [row for row in lines(cells, sides, options) if row]
    if options.json:
        ways = {name: value for name in ("at_once", "processes") if (value := getattr(options, name))}
        keep(options.json, "speed", about | ways, rows)


if __name__ == "__main__":
    main()
