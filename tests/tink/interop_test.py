#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stock Tink (PyPI `tink`) opens what daelstrom seals, and daelstrom what Tink seals. Status 77: no Tink here.

Runs with the Python of .venv, where scripts/setup installs Tink."""
import base64
import json
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "cli")]
try:
    import tink
    from tink import secret_key_access, streaming_aead
except ImportError as absent:
    print(f"SKIP: no Tink: {absent}; scripts/setup installs it into .venv")
    sys.exit(77)

from harness import CliTest, data
from make_vectors import keyset, seal, unseal

TEMPLATES = {name: getattr(streaming_aead.streaming_aead_key_templates, name)
             for name in ("AES128_GCM_HKDF_4KB", "AES256_GCM_HKDF_4KB", "AES128_GCM_HKDF_1MB", "AES256_GCM_HKDF_1MB")}


def generated(template):
    """A keyset as Tink itself makes and writes it."""
    handle = tink.new_keyset_handle(template)
    return tink.json_proto_keyset_format.serialize(handle, secret_key_access.TOKEN)


def raw_key(json_keyset):
    """The key_value of a keyset's only key: Tink's message ends with it."""
    value = base64.b64decode(json.loads(json_keyset)["key"][0]["keyData"]["value"])
    size = 16 if value[-17] == 16 and value[-18] == 0x1a else 32
    return value[-size:]


def sizes(name):
    segment, derived = (4096 if "4KB" in name else 1 << 20), (16 if "128" in name else 32)
    room, header = segment - 16, derived + 8
    return [0, 1, 4095, room - header - 1, room - header, room - header + 1, 2 * room - header,
            2 * room - header + 1, 3 * room, 5 * room + 17]


class Tink(CliTest):
    def setUp(self):
        super().setUp()
        streaming_aead.register()

    def test_both_ways_in_every_template(self):
        for name, template in TEMPLATES.items():
            text = generated(template)
            self.write("keyset", text.encode())
            self.write("key", raw_key(text))
            for size in sizes(name):
                with self.subTest(template=name, size=size):
                    aad = b"" if size % 2 else b"bound to this"
                    options = ["--aad", aad.decode()] if aad else []
                    ours = self.ok("seal", "--keyset", "keyset", *options, given=data(size))
                    self.assertTrue(unseal(text, ours, aad) == data(size))
                    theirs = seal(text, data(size), aad)
                    self.assertEqual(len(ours), len(theirs))
                    self.assertTrue(self.ok("open", "--keyset", "keyset", *options, given=theirs) == data(size))
                    # The bare key of the same template: --segment tells the two sizes apart.
                    segment = "4K" if "4KB" in name else "1M"
                    bare = self.ok("seal", "--key-file", "key", "--segment", segment, *options, given=data(size))
                    self.assertTrue(unseal(text, bare, aad) == data(size))
                    self.assertTrue(self.ok("open", "--key-file", "key", *options, given=theirs) == data(size))

    def test_what_tink_refuses_is_what_daelstrom_refuses(self):
        text = generated(TEMPLATES["AES128_GCM_HKDF_4KB"])
        self.write("keyset", text.encode())
        good = seal(text, data(10000), b"")
        changes = [good[:-1], good + b"\0", good[:4096], good[:4096 + 16], good[8192:], good[:4096] + good[8192:],
                   good[:5000] + bytes([good[5000] ^ 1]) + good[5001:], b"", good[:24]]
        for changed in changes:
            with self.assertRaises(Exception):
                unseal(text, changed, b"")
            ran = self.run_program("open", "--keyset", "keyset", "-o", "never", given=changed)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertNotIn("never", self.listing())

    def test_a_rotated_keyset(self):
        old, new = ((bytes([n]) * 32, 4096, 32, "SHA256") for n in (1, 2))
        before, after = keyset(old), keyset(old, new, primary=1)
        self.write("keyset", after.encode())
        theirs = seal(before, data(9000), b"x")
        self.assertEqual(self.ok("open", "--keyset", "keyset", "--aad", "x", given=theirs), data(9000))
        ours = self.ok("seal", "--keyset", "keyset", given=data(9000))
        self.assertEqual(unseal(after, ours, b""), data(9000))
        with self.assertRaises(Exception):
            unseal(before, ours, b"")

    def test_keysets_that_are_made_and_changed_here(self):
        """Stock Tink takes them after every change, and both take the same key for the primary one."""
        for template in TEMPLATES:
            self.ok("keyset", "create", "keyset", "-f", "--template", template)
            first = self.ok("seal", "--keyset", "keyset", given=data(9000))
            text = self.read("keyset").decode()
            self.assertEqual(unseal(text, first, b""), data(9000))
            self.assertEqual(len(seal(text, data(9000), b"")), len(first))
            old = json.loads(text)["primaryKeyId"]
            new = int(self.ok("keyset", "add", "keyset", "--template", template))
            for action, key, opens in (("promote", new, True), ("disable", old, False), ("enable", old, True),
                                       ("delete", old, False)):
                self.ok("keyset", action, "keyset", key)
                text = self.read("keyset").decode()
                sealed = self.ok("seal", "--keyset", "keyset", given=data(100))
                self.assertEqual(unseal(text, sealed, b""), data(100), action)
                self.assertEqual(self.ok("open", "--keyset", "keyset", given=seal(text, data(99), b"")), data(99))
                if opens:
                    self.assertEqual(unseal(text, first, b""), data(9000), action)
                else:
                    with self.assertRaises(Exception):
                        unseal(text, first, b"")

    def test_a_keyset_of_tinks_is_changed(self):
        """What stock Tink wrote stays what it is."""
        text = generated(TEMPLATES["AES256_GCM_HKDF_4KB"])
        self.write("keyset", text.encode())
        theirs = seal(text, data(9000), b"x")
        new = int(self.ok("keyset", "add", "keyset"))
        self.ok("keyset", "promote", "keyset", new)
        after = self.read("keyset").decode()
        self.assertEqual(json.loads(after)["key"][0], json.loads(text)["key"][0])
        self.assertEqual(unseal(after, theirs, b"x"), data(9000))
        self.assertEqual(unseal(after, self.ok("seal", "--keyset", "keyset", given=data(7)), b""), data(7))
        self.assertEqual(self.ok("keygen", "--format", "keyset", "-o", "made"), b"")
        self.assertEqual(self.ok("open", "--keyset", "made", given=seal(self.read("made").decode(), data(5), b"")), data(5))

    def test_other_hashes_and_sizes(self):
        for key in ((bytes(range(64)), 1000, 32, "SHA512"), (bytes(range(16)), 57, 16, "SHA1"),
                    (bytes(range(100)), 3 << 20, 16, "SHA256")):
            text = keyset(key)
            self.write("keyset", text.encode())
            plain = data(40000)
            self.assertTrue(unseal(text, self.ok("seal", "--keyset", "keyset", given=plain), b"") == plain)
            self.assertTrue(self.ok("open", "--keyset", "keyset", given=seal(text, plain, b"")) == plain)

    def test_long_associated_data(self):
        aad = os.urandom(100_000)
        self.write("aad", aad)
        text = generated(TEMPLATES["AES256_GCM_HKDF_1MB"])
        self.write("keyset", text.encode())
        ours = self.ok("seal", "--keyset", "keyset", "--aad-file", "aad", given=data(100))
        self.assertEqual(unseal(text, ours, aad), data(100))


if __name__ == "__main__":
    unittest.main(verbosity=2)
