# SPDX-License-Identifier: Apache-2.0
"""`info`, and what `decrypt` refuses by name."""
import base64
import json
import os

from harness import CliTest, IV, data, key, openssl

FAILED, USAGE = 1, 2
LARGE, SMALL = 1 << 20, 4096
NO_LINE_END = "-> X25519 " + "A" * 43


def age_file(payload, *stanzas):
    """A file with an age head of that form; nothing in it is good."""
    lines = ["age-encryption.org/v1"]
    for stanza in stanzas:
        lines += [f"-> {stanza}", base64.b64encode(bytes(32)).decode().rstrip("=")]
    return ("\n".join([*lines, "--- " + "B" * 43]) + "\n").encode() + payload


class InfoTest(CliTest):
    def info(self, content, name="file"):
        self.write(name, content)
        listed = json.loads(self.ok("info", "--json", name))
        self.assertEqual([entry.pop("file") for entry in listed], [name])
        return listed[0]

    def words(self, content, name="file"):
        self.write(name, content)
        return self.ok("info", name).decode()


class Info(InfoTest):
    def test_streams(self):
        for bits, header in ((128, 24), (256, 40)):
            for size in (0, 1, 4000, 5 * SMALL, LARGE + 7):
                for name, segment in (("4K", SMALL), ("1M", LARGE)):
                    with self.subTest(bits=bits, size=size, segment=name):
                        sealed = self.ok("seal", "--key-file", f"key{bits}", "--segment", name, given=data(size))
                        found = self.info(sealed)
                        self.assertEqual((found["kind"], found["size"]), ("stream", len(sealed)))
                        self.assertEqual((found["stream"]["offset"], found["stream"]["key_bits"]), (0, bits))
                        fit = next(fit for fit in found["stream"]["fits"] if fit["segment"] == segment)
                        room = segment - 16
                        segments = 1 if size <= room - header else 1 + -(-(size - (room - header)) // room)
                        self.assertEqual((fit["plaintext"], fit["segments"]), (size, segments))
        words = self.words(self.ok("seal", "--key-file", "key256", given=data(100)))
        self.assertRegex(words, r"\Afile: looks like what seal makes with a key\n  size: +156 bytes\n")
        self.assertRegex(words, r"\n  segments of 1M: +1, would hold 100 bytes of plaintext\n")
        self.assertRegex(words, r"\n  sure: +no: .* one file of random bytes in 128 ")

    def test_from_a_pipe_there_are_no_sizes(self):
        sealed = self.ok("seal", "--key-file", "key128", given=data(100))
        found = json.loads(self.ok("info", "--json", "-", given=sealed))[0]
        self.assertEqual(found, {"file": "-", "kind": "stream", "stream": {"offset": 0, "key_bits": 128, "fits": []}})
        self.assertIn("standard input: looks like what seal makes", self.ok("info", "-", given=sealed).decode())

    def test_what_no_stream_can_be(self):
        for content in (bytes([40]), bytes([40]) + bytes(39), bytes([40]) + bytes(54), bytes([24]) + bytes(30),
                        bytes([25]) + bytes(100), os.urandom(4)):
            self.assertEqual(self.info(content)["kind"], "unknown", content)
        self.assertEqual(self.info(bytes([40]) + bytes(55))["kind"], "stream")
        self.assertEqual(self.info(b"")["kind"], "empty")

    def test_what_encrypt_makes_is_not_recognised(self):
        made = self.ok("encrypt", "--key-file", "key128", "--iv", IV, given=data(100))
        self.assertEqual(self.info(made), {"kind": "unknown", "size": 100})
        self.assertRegex(self.words(made), r"nothing that can be recognised\n.*\n.*what `daelstrom encrypt` makes")

    def test_age_files(self):
        recipients = ("X25519 " + "A" * 43, "X25519 " + "C" * 43, "ssh-ed25519 abc def")
        head = age_file(b"", *recipients)
        found = self.info(head + bytes(16 + 100 + 16))
        self.assertEqual(found, {"kind": "age", "size": len(head) + 132, "plaintext": 100, "age": {
            "header": len(head), "stanzas": {"X25519": 2, "ssh-ed25519": 1}}})
        self.assertEqual(self.info(head + bytes(16 + 70000 + 32))["plaintext"], 70000)
        words = self.words(head + bytes(132))
        self.assertRegex(words, r"recipients: +2 of type X25519, 1 of type ssh-ed25519\n")
        found = self.info(age_file(bytes(40), "scrypt " + "S" * 22 + " 18"))
        self.assertEqual(found["age"]["work_factor"], 18)
        self.assertRegex(self.words(age_file(bytes(40), "scrypt " + "S" * 22 + " 18")),
                         r"scrypt: +2\^18, 256 MiB of memory\n")
        self.assertEqual(self.info(b"-----BEGIN AGE ENCRYPTED FILE-----\n")["kind"], "armored age")
        self.assertEqual(self.info(b"AGE-SECRET-KEY-1QQQQ\n")["kind"], "age identity")

    def test_a_stream_behind_an_age_head(self):
        stream = self.ok("seal", "--key-file", "key256", given=data(5000))
        head = age_file(bytes(64), "scrypt " + "S" * 22 + " 17")
        found = self.info(head + stream)
        self.assertEqual((found["kind"], found["stream"]["offset"]), ("sealed", len(head)))
        self.assertEqual({fit["segment"]: fit["plaintext"] for fit in found["stream"]["fits"]}[LARGE], 5000)
        self.assertRegex(self.words(head + stream), rf"passphrase or for recipients\n(.*\n)*.*from byte {len(head)} on")

    def test_what_seal_makes_for_people(self):
        self.write("pass", b"pw\n")
        self.write("plain", data(5000))
        made = {"scrypt": self.ok("seal", "--passphrase-file", "pass", "--cost", "11", "--segment", "4K", "plain", "-o", "-")}
        recipients = [self.ok("keygen", "--format", "age", "-o", name).decode().strip() for name in ("one", "two")]
        made["X25519"] = self.ok("seal", "-r", recipients[0], "-r", recipients[1], "--segment", "4K", "plain", "-o", "-")
        for type_, sealed in made.items():
            found = self.info(sealed)
            self.assertEqual((found["kind"], found["age"]["stanzas"]), ("sealed", {type_: 2 if type_ == "X25519" else 1}))
            self.assertEqual(found["age"].get("work_factor"), 11 if type_ == "scrypt" else None)
            self.assertEqual(sealed[found["stream"]["offset"]], 40)
            self.assertEqual({fit["segment"]: fit["plaintext"] for fit in found["stream"]["fits"]}[SMALL], 5000)
            self.fails(FAILED, "was sealed, or is a file of age's: `daelstrom open`", "decrypt", "--key-file", "key256",
                       "-o", "out", given=sealed)
        self.assertEqual(self.info(self.read("one"))["kind"], "age identity")

    def test_age_heads_that_are_none(self):
        good = age_file(b"", "X25519 " + "A" * 43)
        for end in range(len("age-encryption.org/v1\n"), len(good)):
            self.assertNotIn("age", self.info(good[:end]) if end % 7 == 0 else {})
        for content in (good.replace(b"-> ", b"=> "), good.replace(b"v1", b"v2"), good.replace(b"\n---", b"\n-"),
                        b"age-encryption.org/v1\n--- " + b"B" * 43 + b"\n"):
            self.assertNotIn("age", self.info(content), content)
        # What came from outside is shown on one line, whatever it is.
        self.assertIn(r"of type \x1b[2J", self.words(age_file(bytes(40), "\x1b[2J x")))

    def test_a_head_of_many_recipients(self):
        head = age_file(b"", *["X25519 " + "A" * 43] * 3000)
        self.assertEqual(self.info(head + bytes(132))["age"]["stanzas"], {"X25519": 3000})

    def test_openssl(self):
        self.write("password", b"pw\n")
        made = openssl("enc", "-aes-128-cbc", "-pbkdf2", "-pass", f"file:{self.dir / 'password'}", given=data(100))
        self.assertEqual(self.info(made), {"kind": "openssl", "size": 128})
        self.assertIn("what openssl enc makes with a password", self.words(made))

    def test_keysets_show_no_secret(self):
        self.ok("keyset", "create", "keys.json")
        text = self.read("keys.json")
        value = json.loads(text)["key"][0]["keyData"]["value"].encode()
        self.secrets.append(value)
        found = self.info(text)
        self.assertEqual(found["kind"], "keyset")
        self.assertEqual([key_["template"] for key_ in found["keyset"]["keys"]], ["AES256_GCM_HKDF_1MB"])
        for arguments in (["keys.json"], ["--json", "keys.json"], ["-"]):
            shown = self.ok("info", *arguments, given=text)
            self.assertIn(b"AES256_GCM_HKDF_1MB", shown)
            self.assertNotIn(value, shown)
        self.assertEqual(self.info(b'{"encryptedKeyset": "AA=="}')["kind"], "encrypted keyset")
        self.assertEqual(self.info(b'{"a": 1}')["kind"], "unknown")
        self.assertEqual(self.info(b"{" * 100_000)["kind"], "unknown")

    def test_several_files(self):
        self.write("one", b"")
        self.write("two", b"Salted__" + bytes(24))
        (self.dir / "folder").mkdir()
        ran = self.run_program("info", "one", "absent", "folder", "two", "odd\nname")
        self.assertEqual(ran.returncode, FAILED)
        self.assertEqual([line for line in ran.stdout.decode().split("\n") if line and line[0] != " "],
                         ["one: looks like nothing: it is empty", "two: looks like what openssl enc makes with a password"])
        self.assertEqual(ran.stderr.decode().count("\n"), 3)
        for name in ("absent", "folder", r"odd\x0aname"):
            self.assertIn(f"'{name}'", ran.stderr.decode())
        self.fails(USAGE, "FILE", "info")

    def test_a_name_that_is_no_text(self):
        name = b"\xff\xfe".decode(errors="surrogateescape")
        (self.dir / name).write_bytes(b"")
        self.assertEqual(json.loads(self.ok("info", "--json", name))[0]["file"],
                         {"bytes": base64.b64encode(b"\xff\xfe").decode()})
        shown = self.ok("info", name)
        self.assertTrue(shown.startswith(rb"\xff\xfe: "), shown)

    def test_names_that_play_tricks_are_spelt_out(self):
        """What a terminal obeys, what turns a line around, and no two names alike."""
        for name, shown in (("c1 \x9b2J", r"c1 \xc2\x9b2J"), ("rlo \u202egpj", r"rlo \xe2\x80\xaegpj"),
                            ("a\u2066b\u2069", r"a\xe2\x81\xa6b\xe2\x81\xa9"), (r"back\x1bslash", r"back\\x1bslash"),
                            ("esc\x1b", r"esc\x1b"), ("Grüße \u4f60\u597d", "Grüße \u4f60\u597d")):
            ran = self.run_program("info", name)
            self.assertEqual((ran.returncode, ran.stderr.decode().count(f"'{shown}'")), (FAILED, 1), ran.stderr)

    def test_only_the_beginning_is_read(self):
        with open(self.dir / "large", "wb") as large:
            large.write(bytes([40]))
            large.truncate(1 << 40)
        found = json.loads(self.ok("info", "--json", "large"))[0]
        self.assertEqual([fit["segment"] for fit in found["stream"]["fits"]], [LARGE, SMALL])


class Decrypt(InfoTest):
    """What surely is something else is refused; what only looks so is not."""

    def refused(self, pattern, content, *options):
        for mode in ("ctr", "cbc"):
            for iv in ([], ["--iv", IV]):
                self.fails(FAILED, pattern, "decrypt", "-m", mode, "--key-file", "key256", *iv, *options, "-o", "out",
                           given=content)

    def test_what_was_sealed(self):
        for size in (0, 100, 5000, LARGE + 5):
            for segment in ("4K", "1M"):
                sealed = self.ok("seal", "--key-file", "key256", "--segment", segment, given=data(size))
                self.refused("was sealed with this key: `daelstrom open` opens it", sealed)
        self.write("sealed", sealed)
        self.fails(FAILED, "'sealed' was sealed with this key", "decrypt", "--key-file", "key256", "sealed", "-o", "out")
        self.refused("was sealed, or is a file of age's", age_file(bytes(64), "X25519 " + "A" * 43) + sealed)
        self.refused("is a file of age's in letters", b"-----BEGIN AGE ENCRYPTED FILE-----\nAAAA\n")
        self.refused("is from openssl enc with a password: give --openssl", b"Salted__" + bytes(24))
        self.write("password", b"pw\n")
        self.fails(FAILED, "was sealed, or is a file of age's", "decrypt", "--openssl", "--password-file", "password",
                   given=age_file(bytes(64), "X25519 " + "A" * 43))

    def test_one_file_in_128_begins_like_it(self):
        for first in (24, 40):
            iv = bytes([first]) + bytes(15)
            for size in (0, 1, 100, 70_000, 3 * LARGE):
                made = self.ok("encrypt", "--key-file", "key256", "--iv", iv.hex(), given=data(size))
                self.assertTrue(self.ok("decrypt", "--key-file", "key256", given=iv + made) == data(size))
                self.write("file", iv + made)
                self.assertTrue(self.ok("decrypt", "--key-file", "key256", "file") == data(size))
        made = self.ok("encrypt", "--key-file", "key192", "--iv", iv.hex(), given=data(100))
        self.assertEqual(self.ok("decrypt", "--key-file", "key192", given=iv + made), data(100))


class Open(InfoTest):
    def test_it_says_what_something_else_looks_like(self):
        self.write("pass", b"pw\n")
        self.ok("keyset", "create", "keys.json")
        for content, pattern in ((b"Salted__" + bytes(24), "it looks like what openssl enc makes with a password, which "
                                                           "`daelstrom decrypt --openssl` takes"),
                                 (self.read("keys.json"), "it looks like a keyset of Tink's"),
                                 (b"AGE-SECRET-KEY-1QQQ\n", "it looks like an identity of age's, which is a secret key"),
                                 (b"-----BEGIN AGE ENCRYPTED FILE-----\n", "it looks like a file of age's in letters")):
            self.write("other", content)
            for options in (["--key-file", "key256"], ["--passphrase-file", "pass"]):
                for input_ in (["other"], []):
                    self.fails(FAILED, pattern, "open", *options, *input_, "-o", "out", given=content)
                self.fails(FAILED, pattern, "open", *options, "--range", "0-1", "other", "-o", "out")

    def test_a_range_that_ends_behind_the_end(self):
        self.write("sealed", self.ok("seal", "--key-file", "key256", given=data(100)))
        for text in ("0-100", "99-100", "5-18446744073709551615"):
            self.fails(FAILED, "holds 100 bytes of plaintext; the range ends behind them: A- reads up to the end", "open",
                       "--key-file", "key256", "--range", text, "sealed", "-o", "out")
        self.assertEqual(self.ok("open", "--key-file", "key256", "--range", "0-99", "-o", "-", "sealed"), data(100))


class Results(CliTest):
    def test_what_was_sealed_and_opened_as_json(self):
        self.write("plain", data(1000))
        made = json.loads(self.ok("seal", "--json", "--key-file", "key256", "plain", "-o", "made",
                                  "--backend", "openssl"))
        self.assertLess(made.pop("seconds"), 60)
        self.assertEqual(made, {"command": "seal", "input": "plain", "output": "made", "read": 1000,
                                "written": 1056, "backend": "openssl", "threads": 1})
        back = json.loads(self.ok("open", "--json", "--key-file", "key256", "made", "-o", "back"))
        self.assertEqual((back["command"], back["input"], back["read"], back["written"]), ("open", "made", 1056, 1000))
        part = json.loads(self.ok("open", "--json", "--key-file", "key256", "--range", "10-19", "made", "-o", "part"))
        self.assertEqual((part["written"], self.read("part")), (10, data(1000)[10:20]))

    def test_a_line_for_each_of_many_files(self):
        for name in ("one", "two"):
            self.write(name, data(1000))
        sealed = [json.loads(line) for line in self.ok("seal", "--json", "--key-file", "key256", "one", "two").splitlines()]
        self.assertEqual({(done["command"], done["input"], done["output"], done["written"]) for done in sealed},
                         {("seal", "one", "one.sealed", 1056), ("seal", "two", "two.sealed", 1056)})
        done = json.loads(self.ok("reseal", "--json", "--key-file", "key256", "--new-key-file", "key128", "one.sealed"))
        self.assertEqual((done["command"], done["input"], done["output"]), ("reseal", "one.sealed", "one.sealed"))
        self.fails(USAGE, "--json writes to standard output", "seal", "--json", "--key-file", "key256", given=b"x")

    def test_what_was_done_as_json(self):
        self.write("plain", data(1000))
        made = json.loads(self.ok("encrypt", "--json", "--key-file", "key128", "plain", "-o", "made",
                                  "--backend", "openssl"))
        self.assertLess(made.pop("seconds"), 60)
        self.assertEqual(made, {"command": "encrypt", "input": "plain", "output": "made", "read": 1000,
                                "written": 1016, "backend": "openssl", "threads": 1})
        back = json.loads(self.ok("decrypt", "--json", "--key-file", "key128", "-o", "back", given=self.read("made")))
        self.assertEqual((back["input"], back["read"], back["written"]), ("-", 1016, 1000))
        for output in ([], ["-o", "-"]):
            self.fails(USAGE, "--json writes to standard output, where the data would go too", "encrypt", "--json",
                       "--key-file", "key128", "plain", *output)
