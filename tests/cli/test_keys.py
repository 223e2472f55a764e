# SPDX-License-Identifier: Apache-2.0
"""`keygen` and `keyset`: files for their owner alone, keysets changed whole or not at all, no secret shown."""
import base64
import json
import os
import shutil
import stat
import subprocess

from harness import PROGRAM, CliTest, data, key
from test_terminal import Terminal

FAILED, USAGE = 1, 2


class KeyTest(CliTest):
    def mode(self, name):
        return stat.S_IMODE((self.dir / name).stat().st_mode)

    def keyset(self, name="keys.json"):
        return json.loads(self.read(name))

    def values(self, name="keys.json"):
        return [entry["keyData"]["value"] for entry in self.keyset(name)["key"]]


class Keygen(KeyTest):
    def test_every_format_and_size(self):
        (self.dir / "plain").write_bytes(data(100))
        for bits in (128, 192, 256):
            for format_, size in (("raw", bits // 8), ("hex", bits // 4 + 1)):
                name = f"{format_}{bits}"
                self.ok("keygen", "--format", format_, "--bits", bits, "-o", name)
                self.assertEqual((len(self.read(name)), self.mode(name)), (size, 0o600))
                self.ok("encrypt", "--key-file", name, "plain", "-o", name + ".aes")
                self.assertEqual(self.ok("decrypt", "--key-file", name, name + ".aes"), data(100))
        self.assertRegex(self.read("hex256"), rb"\A[0-9a-f]{64}\n\Z")
        self.assertEqual(len(self.ok("keygen")), 32)
        for bits in (128, 256):
            self.ok("keygen", "--format", "keyset", "--bits", bits, "-o", f"keyset{bits}")
            self.assertEqual(self.mode(f"keyset{bits}"), 0o600)
            sealed = self.ok("seal", "--keyset", f"keyset{bits}", "plain", "-o", "-")
            self.assertEqual(self.ok("open", "--keyset", f"keyset{bits}", given=sealed), data(100))

    def test_an_identity_of_age(self):
        (self.dir / "plain").write_bytes(data(100))
        recipient = self.ok("keygen", "--format", "age", "-o", "me").decode()
        self.assertRegex(recipient, r"\Aage1[0-9a-z]{58}\n\Z")
        self.assertRegex(self.read("me").decode(), rf"\A# public key: {recipient}AGE-SECRET-KEY-1[0-9A-Z]{{58}}\n\Z")
        self.assertEqual(self.mode("me"), 0o600)
        self.secrets.append(self.read("me").split(b"\n")[1])
        sealed = self.ok("seal", "-r", recipient.strip(), "plain", "-o", "-")
        self.assertEqual(self.ok("open", "-i", "me", given=sealed), data(100))
        self.ok("keygen", "--format", "age", "-o", "you")
        self.fails(FAILED, "identit", "open", "-i", "you", given=sealed)
        self.write("alone", self.ok("keygen", "--format", "age"))
        self.assertEqual(self.read("alone").count(b"\n"), 2)
        self.fails(USAGE, "identities of age have one size", "keygen", "--format", "age", "--bits", "128")
        if shutil.which("age"):
            encrypted = subprocess.run(["age", "-r", recipient.strip()], input=b"hello", cwd=self.dir, check=True,
                                       capture_output=True).stdout
            self.write("file.age", encrypted)
            ran = subprocess.run(["age", "-d", "-i", "me", "file.age"], cwd=self.dir, check=True, capture_output=True)
            self.assertEqual(ran.stdout, b"hello")

    def test_no_two_are_alike(self):
        self.assertEqual(len({self.ok("keygen") for _ in range(20)}), 20)
        digits = b"".join(self.ok("keygen", "--format", "hex").strip() for _ in range(20))
        self.assertEqual(set(digits), set(b"0123456789abcdef"))

    def test_it_is_private_whatever_the_umask_and_whatever_was_there(self):
        self.ok("keygen", "-o", "new", preexec_fn=lambda: os.umask(0))
        self.assertEqual(self.mode("new"), 0o600)
        (self.dir / "new").chmod(0o644)
        before = self.read("new")
        self.fails(FAILED, "'new' exists; -f overwrites it", "keygen", "-o", "new")
        self.ok("keygen", "-o", "new", "-f")
        self.assertEqual(self.mode("new"), 0o600)
        self.assertNotEqual(self.read("new"), before)

    def test_standard_output_that_others_can_read(self):
        with open(self.dir / "key", "wb") as out:
            os.fchmod(out.fileno(), 0o644)
            ran = self.run_program("keygen", stdout=out)
        self.assertEqual(ran.returncode, 0)
        self.assertRegex(ran.stderr.decode(), r"\Adaelstrom: warning: others can read .*standard output[^\n]*\n\Z")
        with open(self.dir / "key", "wb") as out:
            self.assertEqual(self.run_program("keygen", "-q", stdout=out).stderr, b"")

    def test_it_is_not_for_a_terminal(self):
        terminal = Terminal(self, "keygen", on_terminal=["stdout"])
        _, err, status = terminal.finish()
        self.check_failure(FAILED, "a secret would go to the terminal; give -o FILE", status, err)
        terminal = Terminal(self, "keygen", "--format", "hex", "-o", "-", on_terminal=["stdout"])
        self.assertEqual(terminal.finish()[1:], (b"", 0))
        self.assertRegex(terminal.shown, rb"\A[0-9a-f]{64}\r\n\Z")

    def test_what_there_is_not(self):
        self.fails(USAGE, "no 'pem'; there are raw, hex, keyset, age and age-pq", "keygen", "--format", "pem", "-o", "new")
        self.fails(USAGE, "keysets have keys of 128 or 256 bits", "keygen", "--format", "keyset", "--bits", "192")
        self.fails(USAGE, "--bits", "keygen", "--bits", "64")
        self.fails(USAGE, "too many arguments; keygen takes none", "keygen", "new")


class Keyset(KeyTest):
    def setUp(self):
        super().setUp()
        self.ok("keyset", "create", "keys.json")
        self.primary = self.keyset()["primaryKeyId"]
        self.secrets += [value.encode() for value in self.values()]

    def change(self, *arguments):
        return self.ok("keyset", *arguments[:1], "keys.json", *arguments[1:])

    def refused(self, pattern, *arguments, status=FAILED):
        self.fails(status, pattern, "keyset", *arguments[:1], "keys.json", *arguments[1:])

    def test_create(self):
        self.assertEqual(self.mode("keys.json"), 0o600)
        self.refused("'keys.json' exists; -f overwrites it", "create")
        before = self.values()
        self.change("create", "-f", "--template", "AES128_GCM_HKDF_4KB")
        self.assertNotEqual(self.values(), before)
        self.assertIn("AES128_GCM_HKDF_4KB", self.change("list").decode())

    def test_rotation(self):
        self.write("plain", data(5000))
        old = self.ok("seal", "--keyset", "keys.json", "plain", "-o", "-")
        added = int(self.change("add"))
        self.assertEqual(self.keyset()["primaryKeyId"], self.primary)
        self.change("promote", added)
        self.assertEqual(self.keyset()["primaryKeyId"], added)
        new = self.ok("seal", "--keyset", "keys.json", "plain", "-o", "-")
        for sealed in old, new:
            self.assertEqual(self.ok("open", "--keyset", "keys.json", given=sealed), data(5000))
        self.change("disable", self.primary)
        self.assertEqual(self.ok("open", "--keyset", "keys.json", given=new), data(5000))
        self.fails(FAILED, "not authentic", "open", "--keyset", "keys.json", given=old)
        self.change("enable", self.primary)
        self.assertEqual(self.ok("open", "--keyset", "keys.json", given=old), data(5000))
        self.change("delete", self.primary)
        self.assertEqual([entry["keyId"] for entry in self.keyset()["key"]], [added])

    def test_list_shows_everything_but_the_secrets(self):
        added = int(self.change("add", "--template", "AES128_GCM_HKDF_1MB"))
        self.change("disable", added)
        table = self.change("list").decode()
        self.assertEqual(table.split("\n"), [
            f"{self.primary:<12}enabled     primary  AES256_GCM_HKDF_1MB",
            f"{added:<12}disabled             AES128_GCM_HKDF_1MB", ""])
        listed = json.loads(self.change("list", "--json"))
        self.assertEqual(listed, {"keys": [
            {"id": self.primary, "status": "enabled", "primary": True, "type": "AesGcmHkdfStreamingKey",
             "template": "AES256_GCM_HKDF_1MB"},
            {"id": added, "status": "disabled", "primary": False, "type": "AesGcmHkdfStreamingKey",
             "template": "AES128_GCM_HKDF_1MB"}]})
        self.assertEqual(self.ok("keyset", "list", "-", given=self.read("keys.json")).decode(), table)
        for value in self.values():
            raw = base64.b64decode(value)[-16:]
            for shown in table, json.dumps(listed):
                self.assertNotIn(value, shown)
                self.assertNotIn(raw.hex(), shown)

    def test_what_is_refused_changes_nothing(self):
        added = int(self.change("add"))
        self.change("disable", added)
        self.refused(f"'keys.json': key {self.primary} is the primary one", "disable", self.primary)
        self.refused("cannot be removed; promote another one first", "delete", self.primary)
        self.refused(f"key {added} is not enabled; enable it first", "promote", added)
        self.refused("has no key 0", "enable", 0)
        self.refused("and the number of a key in it", "promote", status=USAGE)
        for number in ("x", "-1", "4294967296", "1x", ""):
            self.refused("number of a key", "promote", "--", number, status=USAGE)
        self.refused("keyset add takes a keyset and no key's number", "add", 5, status=USAGE)
        self.refused("no template 'AES192'; there are AES256_GCM_HKDF_1MB", "add", "--template", "AES192",
                     status=USAGE)
        self.refused("--template is for keyset create and keyset add", "list", "--template", "x", status=USAGE)
        self.refused("--json is for keyset list", "add", "--json", status=USAGE)
        self.refused("keyset: no 'rotate'; there are create, list, add", "rotate", status=USAGE)
        self.refused("too many arguments; keyset takes ACTION, KEYSET, NUMBER and no more", "list", 1, 2, status=USAGE)
        self.fails(USAGE, "KEYSET", "keyset", "list")
        self.fails(FAILED, "cannot open 'absent'", "keyset", "add", "absent")
        self.fails(FAILED, "cannot open keyset file 'absent'", "keyset", "list", "absent")
        self.fails(USAGE, "changes a file in place; name one", "keyset", "add", "-", given=self.read("keys.json"))
        self.fails(FAILED, "is no file that can be changed in place", "keyset", "add", "/dev/null")

    def test_files_that_are_no_keysets(self):
        for content, pattern in ((b"", "not JSON"), (b"{}", "not as Tink writes it"),
                                 (b'{"encryptedKeyset": "AA=="}', "is encrypted")):
            self.write("other", content)
            self.fails(FAILED, f"'other': the keyset .*{pattern}", "keyset", "list", "other")
            self.fails(FAILED, f"'other': the keyset .*{pattern}", "keyset", "add", "other")
        other = self.keyset()
        other["key"][0]["keyData"]["typeUrl"] = "type.googleapis.com/google.crypto.tink.AesGcmKey"
        self.write("other", json.dumps(other).encode())
        self.assertIn(b"AesGcmKey, which cannot be read", self.ok("keyset", "list", "other"))
        self.fails(FAILED, "of no use for sealing after this: .*another type", "keyset", "add", "other")

    def test_a_keyset_that_grows_too_large_to_be_read(self):
        one = self.keyset()["key"][0]
        many = [dict(one, keyId=i + 1) for i in range(150)]
        self.write("keys.json", json.dumps({"primaryKeyId": 1, "key": many}).encode())
        for _ in range(100):
            ran = self.run_program("keyset", "add", "keys.json")
            if ran.returncode != 0:
                break
        self.check_failure(FAILED, "more than 64 KiB; remove keys", ran.returncode, ran.stderr)
        self.ok("keyset", "list", "keys.json")

    def test_the_file_keeps_what_it_had(self):
        os.symlink("keys.json", self.dir / "link")
        self.ok("keyset", "add", "link")
        self.assertTrue((self.dir / "link").is_symlink())
        self.assertEqual((len(self.keyset()["key"]), self.mode("keys.json")), (2, 0o600))
        (self.dir / "keys.json").chmod(0o640)
        ran = self.run_program("keyset", "add", "keys.json")
        self.assertEqual((ran.returncode, self.mode("keys.json")), (0, 0o640))
        self.assertRegex(ran.stderr.decode(), r"warning: others can read .*keyset file 'keys.json'.*its group")
        self.assertEqual(self.run_program("keyset", "add", "-q", "keys.json").stderr, b"")
        (self.dir / "keys.json").chmod(0o600)
        os.link(self.dir / "keys.json", self.dir / "other")
        self.refused("has 2 names", "add")
        self.assertEqual(self.run_program("keyset", "add", "-f", "keys.json").returncode, 0)
        self.assertEqual((len(self.keyset()["key"]), len(self.keyset("other")["key"])), (5, 4))

    def test_of_many_changes_at_once_none_is_lost(self):
        self.ok("keyset", "create", "many.json")
        programs = [subprocess.Popen([PROGRAM, "keyset", "add", "many.json"], cwd=self.dir, stdout=subprocess.PIPE)
                    for _ in range(40)]
        said = [program.communicate(timeout=60)[0] for program in programs]
        self.assertEqual({program.returncode for program in programs}, {0})
        there = {entry["keyId"] for entry in self.keyset("many.json")["key"]}
        self.assertEqual(len(there), 41)
        self.assertLessEqual({int(number) for number in said}, there)

    def test_a_full_disk_leaves_the_old_one(self):
        before = self.read("keys.json")
        self.assertEqual(set(self.listing()), {"keys.json", "key128", "key192", "key256"})
        limit = lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_FSIZE, (100, 100))
        self.refused_with(limit)
        self.assertEqual(self.read("keys.json"), before)

    def refused_with(self, limit):
        self.fails(FAILED, "cannot write to 'keys.json': File too large", "keyset", "add", "keys.json",
                   preexec_fn=limit)


class Shared(KeyTest):
    def test_secrets_that_others_can_read_draw_a_warning(self):
        self.write("pass", b"a passphrase\n")
        self.write("plain", data(10))
        self.ok("keygen", "--format", "keyset", "-o", "keys.json")
        for mode, who in ((0o640, "its group"), (0o604, "everybody"), (0o620, "its group")):
            for option, name, what in (("--key-file", "key256", "key file"), ("--keyset", "keys.json", "keyset file"),
                                       ("--passphrase-file", "pass", "passphrase file")):
                (self.dir / name).chmod(mode)
                cheap = ("--cost", "10") if name == "pass" else ()
                ran = self.run_program("seal", option, name, *cheap, "plain", "-o", "-")
                self.assertEqual(ran.returncode, 0)
                self.assertRegex(ran.stderr.decode(), rf"\Adaelstrom: warning: .*{what} '{name}'.*{who}[^\n]*\n\Z")
                self.assertEqual(self.run_program("seal", "-q", option, name, *cheap, "plain", "-o", "-").stderr, b"")
        # Not for what is no regular file: a pipe's permissions say nothing.
        read_end, write_end = os.pipe()
        os.write(write_end, key(256))
        os.close(write_end)
        self.ok("seal", "--key-file", f"/dev/fd/{read_end}", "plain", "-o", "-", pass_fds=[read_end])
        os.close(read_end)
