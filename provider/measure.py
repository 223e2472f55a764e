#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`openssl speed` with OpenSSL's default provider and with daelstrom, in turns, and the ratio of the two.

    provider/measure.py --module build/dev/provider/daelstrom.so [--json FILE]
                        [--nothing build/dev/provider/measure/nothing.so]
                        [--ciphers aes-256-ctr,aes-256-gcm] [--sizes 16,1024,67108864] [--turns 3] [--seconds 1]

Prints a line for each cipher, direction and size: GB/s (10^9) of both, the best of the turns, and how many times
daelstrom's is the default's. Leave the machine alone meanwhile. `openssl speed` works in place, in one context,
and gives AES-GCM its key anew for each operation. `--nothing` adds the floor: a provider that encrypts nothing,
so that what remains is what OpenSSL itself takes for a call. What a message costs that has an IV, a key or a context
of its own: measure/messages.cpp.
"""
import argparse
import os
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


def speed(cipher, decrypt, size, seconds, environment):
    """Bytes a second; 0 where openssl refuses it."""
    ran = subprocess.run(["openssl", "speed", "-mr", "-elapsed", "-seconds", str(seconds), "-bytes", str(size),
                          *(["-decrypt"] if decrypt else []), "-evp", cipher],
                         env=environment, check=False, capture_output=True, text=True)
    found = re.search(r"^\+F:\d+:[^:]+:([\d.]+)", ran.stdout, re.M)
    return float(found[1]) if found else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", required=True, type=pathlib.Path)
    parser.add_argument("--nothing", type=pathlib.Path)
    parser.add_argument("--ciphers", default=CIPHERS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    version = subprocess.run(["openssl", "version"], check=True, capture_output=True, text=True).stdout.strip()
    about, rows = begun(), []
    with tempfile.TemporaryDirectory() as folder:
        config, floor = pathlib.Path(folder, "daelstrom.cnf"), pathlib.Path(folder, "nothing.cnf")
        config.write_text(configuration(options.module.resolve()))
        theirs = {name: value for name, value in os.environ.items() if name != "OPENSSL_CONF"}
        # As after the first moments of a process: the engine is open at once, a key after 16 KiB.
        ours = {"DAELSTROM_PROVIDER_WARMUP": "1"} | theirs | {"OPENSSL_CONF": str(config)}
        sides = [theirs, ours]
        if options.nothing:
            floor.write_text(configuration(options.nothing.resolve(), "nothing"))
            sides.append(theirs | {"OPENSSL_CONF": str(floor)})
        print(f"{version}, {os.cpu_count()} processors")
        for cipher in options.ciphers.split(","):
            # What feeds back encrypts in order; `openssl speed -decrypt` of GCM does not end its messages.
            for decrypt in (False, True) if re.search("ecb|cbc|cfb", cipher) else (False,):
                for size in map(int, options.sizes.split(",")):
                    best = [0.0] * len(sides)
                    for _ in range(options.turns):
                        for side, environment in enumerate(sides):
                            best[side] = max(best[side], speed(cipher, decrypt, size, options.seconds, environment))
                    if not all(best[:2]):
                        print(f"{cipher:12} {size:9}  not measured: openssl speed refuses it")
                        continue
                    direction = "decrypt" if decrypt else "encrypt"
                    print(f"{cipher:12} {direction} {size:9}  default {best[0] / 1e9:8.3f}  "
                          f"daelstrom {best[1] / 1e9:8.3f}  {best[1] / best[0]:6.2f}x"
                          + (f"  nothing {best[2] / 1e9:8.3f}" if options.nothing and best[2] else ""), flush=True)
                    rows.append({"cipher": cipher, "direction": direction, "size": size,
                                 "default": best[0] / 1e9, "daelstrom": best[1] / 1e9}
                                | ({"nothing": best[2] / 1e9} if options.nothing and best[2] else {}))
    if options.json:
        keep(options.json, "speed", about, rows)


if __name__ == "__main__":
    main()
