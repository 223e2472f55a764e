#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/age.json: what the program age makes of 32 bytes, and of other plaintexts.

    tests/age/make_vectors.py > tests/vectors/age.json

Every run makes other keys. `key` is the plaintext; without one, the file holds something else, which is refused."""
import json
import os
import subprocess
import sys
import tempfile

from age_tools import age, age_with_passphrase, keygen


def ssh_recipient(kind, folder):
    """Of a stanza that daelstrom does not know: with another argument, or of several lines."""
    path = os.path.join(folder, kind)
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path], check=True)
    with open(path + ".pub", encoding="ascii") as public:
        return public.read().strip()


def main():
    ours, other, third = keygen(), keygen(), keygen()
    vectors = []

    def add(name, file, key=None, **secret):
        vectors.append({"name": name, **secret, "file": file.hex(), **({"key": key.hex()} if key else {})})

    def to(*recipients, plain):
        return age(*(word for recipient in recipients for word in ("-r", recipient)), given=plain)

    with tempfile.TemporaryDirectory() as folder:
        key = os.urandom(32)
        add("one recipient", to(ours[1], plain=key), key, identity=ours[0])
        key = os.urandom(32)
        add("the second of three recipients", to(other[1], ours[1], third[1], plain=key), key, identity=ours[0])
        key = os.urandom(32)
        ssh = [ssh_recipient(kind, folder) for kind in ("ed25519", "rsa")]
        add("beside SSH keys", to(ssh[0], ssh[1], ours[1], plain=key), key, identity=ours[0])
        key = os.urandom(32)
        add("a passphrase", age_with_passphrase(b"correct horse", "-p", given=key), key, passphrase="correct horse")
        for size in (33, 100, 1000):
            add(f"{size} bytes", to(ours[1], plain=os.urandom(size)), identity=ours[0])
        add("a passphrase, 50 bytes", age_with_passphrase(b"x", "-p", given=os.urandom(50)), passphrase="x")
    version = subprocess.run(["age", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    json.dump({"source": f"age {version} of Debian, by tests/age/make_vectors.py", "vectors": vectors}, sys.stdout,
              indent=1)
    print()


if __name__ == "__main__":
    main()
