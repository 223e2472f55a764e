#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/age_cctv.json: the headers of the age vectors of CCTV, the Community Cryptography Test Vectors,
with what becomes of them.

    go mod download c2sp.org/CCTV/age@v0.0.0-20251208015420-e9274a7bdbfd
    tests/age/cctv_vectors.py $(go env GOMODCACHE)/c2sp.org/!c!c!t!v/age@*/testdata > tests/vectors/age_cctv.json

Left out are armored files, which daelstrom does not read, and those about payloads: of a payload, what is as long as that
of an envelope is kept."""
import json
import pathlib
import sys
import zlib

PAYLOAD = 64  # bytes behind an envelope's header


def main():
    vectors = []
    for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        words, file = path.read_bytes().split(b"\n\n", 1)
        facts = {}
        for line in words.decode().splitlines():
            name, _, value = line.partition(": ")
            facts.setdefault(name, []).append(value)
        if "armored" in facts or path.name.startswith("stream_"):
            continue
        if facts.get("compressed") == ["zlib"]:
            file = zlib.decompress(file)
        end = file.find(b"\n---")
        end = file.find(b"\n", end + 1) + 1 if end >= 0 else 0
        vectors.append({"name": path.name, "expect": facts["expect"][0], "identities": facts.get("identity", []),
                        "passphrases": facts.get("passphrase", []),
                        "file": file[:end + PAYLOAD if end else 4000].hex()})
    json.dump({"source": "c2sp.org/CCTV/age, v0.0.0-20251208015420-e9274a7bdbfd, under the Zero-Clause BSD licence; "
                         "headers alone, by tests/age/cctv_vectors.py", "vectors": vectors}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
