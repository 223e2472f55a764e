#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program age opens what stands in front of daelstrom's sealed files, and daelstrom what age makes of a key.
Status 77: no age here."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "cli")]
from age_tools import age, age_with_passphrase, keygen, there

if not there():
    print("SKIP: NOTHING WAS TESTED AGAINST AGE: it is not installed; on Debian: apt-get install age")
    sys.exit(77)

from harness import CliTest, data

KEY_IN_FRONT = 16 + 32 + 16  # behind the header's last line: a nonce, the key and a tag


def envelope_size(sealed):
    """As docs/format.md tells it."""
    return sealed.index(b"\n", sealed.index(b"\n---") + 1) + 1 + KEY_IN_FRONT


class Age(CliTest):
    def setUp(self):
        super().setUp()
        self.pairs = [keygen() for _ in range(3)]
        for i, (identity, recipient) in enumerate(self.pairs):
            self.write(f"id{i}", identity.encode() + b"\n")
            self.secrets.append(identity.encode())
        self.write("password", b"correct horse\n")
        self.plain = data(3_000_000)

    def opens_by_age_alone(self, sealed, key):
        """With the key that age took out, from the stream behind the envelope."""
        self.assertEqual(len(key), 32)
        self.write("key", key)
        opened = self.ok("open", "--key-file", "key", given=sealed[envelope_size(sealed):])
        self.assertTrue(opened == self.plain)

    def test_what_daelstrom_seals_for_recipients(self):
        for count in (1, 3):
            options = [word for _, recipient in self.pairs[:count] for word in ("-r", recipient)]
            sealed = self.ok("seal", *options, given=self.plain)
            self.assertEqual(sealed[:22], b"age-encryption.org/v1\n")
            self.assertEqual(sealed[envelope_size(sealed)], 40)
            for i in range(count):
                key = age("-d", "-i", self.dir / f"id{i}", given=sealed[:envelope_size(sealed)])
                self.opens_by_age_alone(sealed, key)
                self.assertTrue(self.ok("open", "-i", f"id{i}", given=sealed) == self.plain)

    def test_what_daelstrom_seals_with_a_passphrase(self):
        sealed = self.ok("seal", "--passphrase-file", "password", "--cost", "12", given=self.plain)
        key = age_with_passphrase(b"correct horse", "-d", given=sealed[:envelope_size(sealed)])
        self.opens_by_age_alone(sealed, key)

    def test_what_age_makes(self):
        """A key of ours that age encrypted, in front of the stream under it."""
        key = os.urandom(32)
        self.write("key", key)
        for segment in ("4K", "1M"):
            stream = self.ok("seal", "--key-file", "key", "--segment", segment, given=self.plain)
            front = age("-r", self.pairs[0][1], "-r", self.pairs[1][1], given=key)
            for name in ("id0", "id1"):
                self.assertTrue(self.ok("open", "-i", name, given=front + stream) == self.plain)
            self.fails(1, "opens none of its 2 stanzas", "open", "-i", "id2", "-o", "never", given=front + stream)
        front = age_with_passphrase(b"correct horse", "-p", given=key)
        self.assertTrue(self.ok("open", "--passphrase-file", "password", given=front + stream) == self.plain)

    def test_identities_and_recipients_as_age_keygen_writes_them(self):
        subprocess.run(["age-keygen", "-o", str(self.dir / "made")], check=True, stderr=subprocess.DEVNULL)
        (self.dir / "made").chmod(0o600)
        recipient = subprocess.run(["age-keygen", "-y", str(self.dir / "made")], check=True,
                                   capture_output=True).stdout
        self.write("people", b"# friends\n\n" + recipient + self.pairs[0][1].encode() + b"\r\n")
        sealed = self.ok("seal", "-R", "people", given=b"hello")
        for name in ("made", "id0"):
            self.assertEqual(self.ok("open", "-i", name, given=sealed), b"hello")
        self.write("several", self.read("id2") + b"# and\n" + self.read("made"))
        self.assertEqual(self.ok("open", "-i", "several", given=sealed), b"hello")

    def test_post_quantum(self):
        """age 1.3's hybrid keys, where both sides have them: Debian's age is older, and OpenSSL before 3.5 too."""
        made = self.run_program("keygen", "--format", "age-pq", "-o", "ours")
        if b"OpenSSL 3.5" in made.stderr:
            self.skipTest(made.stderr.decode().strip())
        theirs = subprocess.run(["age-keygen", "-pq"], capture_output=True)
        if theirs.returncode != 0:
            self.skipTest("this age has no post-quantum keys; 1.3 has")
        self.assertEqual((made.returncode, made.stderr), (0, b""))
        self.write("theirs", theirs.stdout)
        self.write("to", made.stdout + b"".join(line.removeprefix(b"# public key: ") + b"\n"
                                                for line in theirs.stdout.splitlines() if b"age1pq1" in line))
        sealed = self.ok("seal", "-R", "to", given=self.plain)
        key = os.urandom(32)
        self.write("key", key)
        front = age("-R", self.dir / "to", given=key)
        stream = self.ok("seal", "--key-file", "key", given=self.plain)
        for name in ("ours", "theirs"):
            taken = age("-d", "-i", self.dir / name, given=sealed[:envelope_size(sealed)])
            self.opens_by_age_alone(sealed, taken)
            self.assertTrue(self.ok("open", "-i", name, given=front + stream) == self.plain)

    def test_what_age_holds_besides(self):
        """An age file that is no sealed data: refused, and age opens it."""
        for size in (10, 33, 1000, 200_000):
            file = age("-r", self.pairs[0][1], given=data(size))
            self.fails(1, "age -d", "open", "-i", "id0", "-o", "never", given=file)
            self.assertTrue(age("-d", "-i", self.dir / "id0", given=file) == data(size))

    def test_another_envelope(self):
        sealed = self.ok("seal", "-r", self.pairs[0][1], given=self.plain)
        self.write("sealed", sealed)
        self.ok("rewrap", "-i", "id0", "-r", self.pairs[1][1], "-r", self.pairs[2][1], "sealed")
        changed = self.read("sealed")
        self.assertTrue(changed[envelope_size(changed):] == sealed[envelope_size(sealed):])
        self.opens_by_age_alone(changed, age("-d", "-i", self.dir / "id2", given=changed[:envelope_size(changed)]))
        self.fails(1, "sealed for other recipients", "open", "-i", "id0", "sealed", "-o", "never")


if __name__ == "__main__":
    unittest.main(verbosity=2)
