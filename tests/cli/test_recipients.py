# SPDX-License-Identifier: Apache-2.0
"""Sealed for recipients: `seal -r` and `-R`, `open -i`, and `rewrap` between recipients and passphrases. Beside the
program age itself: tests/age."""
from harness import CliTest, data, processor_time
from test_terminal import Terminal

FAILED, USAGE = 1, 2
# Pairs of age's own documentation and tests.
ALICE = ("AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU",
         "age1cy0su9fwf3gf9mw868g5yut09p6nytfmmnktexz2ya5uqg9vl9sss4euqm")
BOB = ("AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX",
       "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj")
CHEAP = ("--cost", "10")
FOR_ALICE = ("-r", ALICE[1])
PASSPHRASE = ("--passphrase-file", "password")


def size_for(count):
    """Bytes in front of what is sealed for so many (docs/format.md)."""
    return 22 + count * (10 + 43 + 1 + 43 + 1) + 4 + 43 + 1 + 64


class RecipientsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("alice", b"# created: long ago\n# public key: " + ALICE[1].encode() + b"\n" + ALICE[0].encode() + b"\n")
        self.write("bob", BOB[0].encode() + b"\n")
        self.write("password", b"correct horse\n")
        self.secrets += [ALICE[0].encode(), BOB[0].encode(), b"correct horse"]
        self.plain = data(100_000)

    def refused(self, pattern, sealed, *options, status=FAILED):
        """From a pipe and from a file, to a file: one line, and nothing is there."""
        self.fails(status, pattern, "open", *options, "-o", "never", given=sealed)
        self.write("damaged", sealed)
        self.fails(status, pattern, "open", *options, "damaged", "-o", "never")


class RoundTrips(RecipientsTest):
    def test_one_and_several(self):
        self.write("people", f"# friends\n{BOB[1]}\n\n".encode())
        self.write("alone", ALICE[1].encode())
        for options, count, opens in (
                (FOR_ALICE, 1, ("alice",)), (("--recipient", BOB[1]), 1, ("bob",)), (("-R", "people"), 1, ("bob",)),
                ((*FOR_ALICE, "-r", BOB[1]), 2, ("alice", "bob")), ((*FOR_ALICE, "-R", "people"), 2, ("alice", "bob")),
                (("-R", "people", "--recipients-file", "alone", *FOR_ALICE), 3, ("alice", "bob"))):
            with self.subTest(options=options):
                sealed = self.ok("seal", *options, given=self.plain)
                self.assertEqual(len(sealed), size_for(count) + 40 + len(self.plain) + 16)
                self.assertEqual(sealed[size_for(count)], 40)
                for name in ("alice", "bob"):
                    if name in opens:
                        self.assertTrue(self.ok("open", "-i", name, given=sealed) == self.plain)
                    else:
                        self.refused(f"the identity opens none of its {count} stanzas", sealed, "-i", name)
                self.assertTrue(self.ok("open", "-i", "alice", "-i", "bob", given=sealed) == self.plain)

    def test_files_and_streams(self):
        self.write("plain", self.plain)
        self.ok("seal", *FOR_ALICE, "--segment", "4K", "--aad", "name", "plain")
        self.ok("open", "-i", "alice", "--aad", "name", "plain.sealed", "-o", "opened")
        self.assertTrue(self.read("opened") == self.plain)
        self.assertEqual(self.ok("open", "-i", "alice", "--aad", "name", "--range", "5000-5099", "plain.sealed"),
                         self.plain[5000:5100])
        self.assertTrue(self.ok("open", "--identity", "-", "--aad", "name", "plain.sealed", "-o", "-",
                                given=self.read("alice")) == self.plain)
        self.fails(FAILED, "other associated data", "open", "-i", "alice", "plain.sealed", "-o", "never")
        sealed = self.ok("seal", "-R", "-", "plain", "-o", "-", given=BOB[1].encode())
        self.assertTrue(self.ok("open", "-i", "bob", given=sealed) == self.plain)

    def test_many_files_each_with_a_key_of_its_own(self):
        names = [f"file{i}" for i in range(5)]
        for i, name in enumerate(names):
            self.write(name, data(1000 + i))
        self.assertEqual(self.run_program("seal", *FOR_ALICE, "-q", *names).returncode, 0)
        fronts = {self.read(name + ".sealed")[:size_for(1)] for name in names}
        self.assertEqual(len(fronts), len(names))
        for name in names:
            (self.dir / name).rename(self.dir / (name + ".before"))
        self.assertEqual(self.run_program("open", "-i", "alice", "-q", *(name + ".sealed" for name in names)).returncode, 0)
        for name in names:
            self.assertEqual(self.read(name), self.read(name + ".before"))


class Refusals(RecipientsTest):
    def test_another_kind_of_secret(self):
        for_alice = self.ok("seal", *FOR_ALICE, given=self.plain)
        by_passphrase = self.ok("seal", *PASSPHRASE, *CHEAP, given=self.plain)
        by_key = self.ok("seal", "--key-file", "key256", given=self.plain)
        self.refused("was sealed for recipients, not with a passphrase; give -i", for_alice, *PASSPHRASE)
        self.refused("was sealed for recipients, not with a passphrase; give -i", for_alice)
        self.refused("was sealed for recipients, not with a key; give -i", for_alice, "--key-file", "key256")
        self.refused("was sealed with a passphrase, not for recipients; leave -i out", by_passphrase, "-i", "alice")
        self.refused("was not sealed for recipients; was it sealed with a key", by_key, "-i", "alice")

    def test_damage(self):
        sealed = self.ok("seal", *FOR_ALICE, given=self.plain)
        for size in (1, 21, 100, size_for(1) - 1):
            self.refused("ends within the envelope in front of sealed data", sealed[:size], "-i", "alice")
        at = size_for(1) - 70  # in the header's MAC, where another digit of base64 has to stand
        other = b"A" if sealed[at:at + 1] != b"A" else b"B"
        self.refused("header of the envelope in front was altered", sealed[:at] + other + sealed[at + 1:], "-i", "alice")
        for at, says in ((40, "opens none of its 1 stanzas|line 2 of the age header|line 3 of the age header"),
                         (size_for(1) - 1, "age -d opens it"), (20, "another version"),
                         (size_for(1) + 50, "segment 0 is not authentic")):
            flipped = bytes([sealed[at] ^ (0x03 if at == 20 else 1)])
            self.refused(says, sealed[:at] + flipped + sealed[at + 1:], "-i", "alice")
        self.refused("cut off", sealed[:size_for(1)], "-i", "alice")

    def test_what_is_no_recipient(self):
        wrong = ALICE[1][:-1] + "q"
        for options, says in ((("-r", wrong), "--recipient: this recipient was copied wrongly"),
                              (("-r", "somebody"), "--recipient: no recipient; one is age1"),
                              (("-r", ALICE[0]), "a secret key stands where its recipient belongs"),
                              (("-r", "ssh-ed25519 AAAA"), "an SSH key"), (("-R", "alice"), "'alice': line 3: a secret"),
                              (("-R", "absent"), "cannot open 'absent'")):
            self.fails(FAILED, says, "seal", *options, "-o", "never", given=b"x")
        self.write("none", b"# nobody\n")
        self.fails(FAILED, "'none': there is no recipient", "seal", "-R", "none", "-o", "never", given=b"x")

    def test_what_is_no_identity(self):
        sealed = self.ok("seal", *FOR_ALICE, given=self.plain)
        self.write("wrong", ALICE[0][:-1].encode() + b"Q\n")
        self.secrets.append(ALICE[0][:-1].encode())
        self.write("encrypted", self.ok("seal", *FOR_ALICE, given=b""))
        self.write("recipient", ALICE[1].encode())
        for name, says in (("wrong", "identity file 'wrong': line 1: this secret key was copied wrongly"),
                           ("encrypted", "'encrypted': line 1: the identities are encrypted; age -d"),
                           ("recipient", "a recipient stands where its secret key belongs"),
                           ("absent", "cannot open identity file 'absent'"), ("key256", "no secret key")):
            self.fails(FAILED, says, "open", "-i", name, "-o", "never", given=sealed)

    def test_files_as_people_have_them(self):
        """With the marks and ends of lines of Windows, in UTF-16 as PowerShell writes it, and with keys of other kinds
        beside the one that opens."""
        text = f"# public key: {ALICE[1]}\n{ALICE[0]}\n"
        plugin = "AGE-PLUGIN-YUBIKEY-1QQPQQQQQQQQQQQQQQQQQQQQQ\n"
        post_quantum = "AGE-SECRET-KEY-PQ-1HZLGZUPT4ETPKDEV8HSGFDCYZ4E522W0A7PU2LHT8EH9W6YLNC3SW78XKG\n"
        sealed = self.ok("seal", *FOR_ALICE, given=b"hello")
        for i, content in enumerate((text.replace("\n", "\r\n").encode(), text.encode("utf-8-sig"),
                                     ALICE[0].encode("utf-8-sig"), text.encode("utf-16"),
                                     b"\xff\xfe" + text.encode("utf-16-le"), b"\xfe\xff" + text.encode("utf-16-be"),
                                     ("# Grüße, \N{GRINNING FACE}\n" + text).encode("utf-16"), (plugin + text).encode(),
                                     (text + post_quantum + plugin).encode())):
            self.write(f"id{i}", content)
            self.assertEqual(self.ok("open", "-i", f"id{i}", given=sealed), b"hello", content)
        for i, content in enumerate((ALICE[1].encode("utf-8-sig"), (ALICE[1] + "\r\n").encode("utf-16"),
                                     b"# to Alice\r\n" + ALICE[1].encode() + b"\r\n")):
            self.write(f"to{i}", content)
            self.assertEqual(self.ok("open", "-i", "alice", given=self.ok("seal", "-R", f"to{i}", given=b"x")), b"x")
        self.write("plugin", plugin.encode())
        self.fails(FAILED, "an identity of one of age's plugins", "open", "-i", "plugin", "-o", "never", given=sealed)
        self.write("small", ALICE[0].lower().encode())
        self.fails(FAILED, "small letters", "open", "-i", "small", "-o", "never", given=sealed)
        for recipient, says in ((ALICE[1].upper(), "capitals"), ("age1tag1" + "q" * 60, "hardware key"),
                                ("age1yubikey1" + "q" * 60, "one of age's plugins"),
                                ("age1pq1" + "q" * 1900, "post-quantum recipient was copied wrongly")):
            self.fails(FAILED, says, "seal", "-r", recipient, "-o", "never", given=b"x")

    def test_post_quantum(self):
        """With OpenSSL 3.5 there and back; with an older one, words that say so."""
        made = self.run_program("keygen", "--format", "age-pq", "-o", "pq")
        if made.returncode == 0:
            self.write("to", made.stdout)
            sealed = self.ok("seal", "-R", "to", given=self.plain)
            self.assertTrue(self.ok("open", "-i", "pq", given=sealed) == self.plain)
            self.refused("the identity opens none of its 1 stanzas", sealed, "-i", "alice")
            self.fails(FAILED, "age1pq1...* beside others", "seal", "-R", "to", *FOR_ALICE, "-o", "never", given=b"x")
            return
        needs = "age's post-quantum keys need OpenSSL 3.5, which has ML-KEM; this is OpenSSL 3"
        self.check_failure(FAILED, needs, made.returncode, made.stderr)
        self.assertFalse((self.dir / "pq").exists())
        self.write("pq", b"AGE-SECRET-KEY-PQ-1HZLGZUPT4ETPKDEV8HSGFDCYZ4E522W0A7PU2LHT8EH9W6YLNC3SW78XKG\n")
        self.fails(FAILED, needs, "open", "-i", "pq", "-o", "never", given=self.ok("seal", *FOR_ALICE, given=b"x"))

    def test_options_that_do_not_go_together(self):
        self.write("plain", b"x")
        for other in (("--key-file", "key256"), ("--keyset", "k"), PASSPHRASE, CHEAP, ("--passphrase-fd", "5")):
            self.fails(USAGE, "excludes", "seal", *FOR_ALICE, *other, "plain")
            self.fails(USAGE, "excludes", "seal", "-R", "people", *other, "plain")
        for other in (("--key-file", "key256"), ("--keyset", "k"), PASSPHRASE, ("--max-cost", "20")):
            self.fails(USAGE, "excludes", "open", "-i", "alice", *other, "plain")
        self.fails(USAGE, "unknown option '-i'", "seal", "-i", "alice", "plain")
        self.fails(USAGE, "unknown option '-r'", "open", *FOR_ALICE, "plain")
        self.fails(USAGE, "standard input cannot be both", "open", "-i", "-")
        self.fails(USAGE, "standard input cannot be both", "seal", "-R", "-")

    def test_an_identity_that_others_can_read(self):
        (self.dir / "alice").chmod(0o644)
        ran = self.run_program("open", "-i", "alice", given=self.ok("seal", *FOR_ALICE, given=b"hello"))
        self.assertEqual((ran.returncode, ran.stdout), (0, b"hello"))
        self.assertRegex(ran.stderr.decode(), r"\Adaelstrom: warning: others can read or change identity file 'alice'")


class Rewrap(RecipientsTest):
    def setUp(self):
        super().setUp()
        self.write("sealed", self.ok("seal", *FOR_ALICE, given=self.plain))
        self.stream = self.read("sealed")[size_for(1):]

    def opens(self, *options):
        self.assertTrue(self.ok("open", *options, "sealed", "-o", "-") == self.plain)
        self.assertTrue(self.read("sealed").endswith(self.stream))

    def test_every_way(self):
        self.ok("rewrap", "-i", "alice", "-r", BOB[1], "sealed")
        self.opens("-i", "bob")
        self.fails(FAILED, "sealed for other recipients", "open", "-i", "alice", "sealed", "-o", "never")
        self.ok("rewrap", "-i", "bob", "--new-passphrase-file", "password", *CHEAP, "sealed")
        self.opens(*PASSPHRASE)
        self.write("people", f"{ALICE[1]}\n{BOB[1]}\n".encode())
        self.ok("rewrap", *PASSPHRASE, "-R", "people", "sealed")
        self.opens("-i", "alice")
        self.opens("-i", "bob")
        self.assertEqual(len(self.read("sealed")), size_for(2) + len(self.stream))

    def test_through_a_pipe_and_to_another_file(self):
        changed = self.ok("rewrap", "-i", "alice", "-r", BOB[1], given=self.read("sealed"))
        self.assertTrue(self.ok("open", "-i", "bob", given=changed) == self.plain)
        self.ok("rewrap", "-i", "alice", "-r", BOB[1], "sealed", "-o", "other")
        self.assertTrue(self.ok("open", "-i", "bob", "other", "-o", "-") == self.plain)
        self.opens("-i", "alice")

    def test_the_new_passphrase_is_asked_for(self):
        terminal = Terminal(self, "rewrap", "-i", "alice", *CHEAP, "sealed")
        terminal.answer(b"New passphrase: ", b"correct horse")
        terminal.answer(b"New passphrase, once more: ", b"correct horse")
        self.assertEqual(terminal.finish()[1:], (b"", 0))
        self.assertNotIn(b"Passphrase: ", terminal.shown.replace(b"New passphrase", b""))
        self.opens(*PASSPHRASE)

    def test_folders(self):
        """A tree whose recipients change: every file that takes it, and what does not is named."""
        for name in ("in/a", "in/below/b"):
            (self.dir / name).parent.mkdir(parents=True, exist_ok=True)
            self.write(name, name.encode())
        self.write("in/note.txt", b"left alone")
        self.ok("seal", *FOR_ALICE, "in/a", "in/below/b")
        for name in ("in/a", "in/below/b"):
            (self.dir / name).unlink()
        streams = [self.read(f"{name}.sealed")[size_for(1):] for name in ("in/a", "in/below/b")]
        self.write("in/bare.sealed", self.ok("seal", "--key-file", "key256", given=b"x"))
        ran = self.run_program("rewrap", "-i", "alice", "-r", BOB[1], "--recursive", "in")
        self.assertEqual((ran.returncode, ran.stdout), (FAILED, b""))
        self.assertRegex(ran.stderr.decode(), r"\Adaelstrom: 'in/bare.sealed' was not sealed for recipients[^\n]*\n"
                                              r"daelstrom: 2 files wrapped anew, 1 left alone, 1 failed\n\Z")
        for name, stream in zip(("in/a", "in/below/b"), streams):
            self.assertEqual(self.ok("open", "-i", "bob", f"{name}.sealed", "-o", "-"), name.encode())
            self.assertTrue(self.read(f"{name}.sealed").endswith(stream))
            self.fails(FAILED, "sealed for other recipients", "open", "-i", "alice", f"{name}.sealed", "-o", "never")

    def test_scrypt_is_paid_once_for_files_of_one_call(self):
        for i in range(8):
            self.write(f"{i}", bytes([i]))
        names = [f"{i}.sealed" for i in range(8)]
        self.ok("seal", *PASSPHRASE, *map(str, range(8)))
        self.write("new", b"battery staple\n")
        begin = processor_time()
        self.ok("rewrap", *PASSPHRASE, "--new-passphrase-file", "new", names[0], "-o", "one")
        one = processor_time() - begin
        begin = processor_time()
        self.ok("rewrap", *PASSPHRASE, "--new-passphrase-file", "new", *names)
        self.assertLess(processor_time() - begin, 3 * one)
        self.assertEqual(len({self.read(name)[:214] for name in names}), 1)
        begin = processor_time()
        self.assertEqual(self.run_program("rewrap", *PASSPHRASE, "-r", BOB[1], *names).returncode, FAILED)
        self.assertLess(processor_time() - begin, 3 * one)
        for i, name in enumerate(names):
            self.assertEqual(self.ok("open", "--passphrase-file", "new", name, "-o", "-"), bytes([i]))

    def test_reseal_shuts_out_for_good(self):
        """Who has kept the old envelope, and with it the data key, opens the new file no more than anybody else."""
        key = self.read("sealed")[:size_for(1)]
        self.ok("reseal", "-i", "alice", "-r", BOB[1], "sealed")
        self.assertTrue(self.ok("open", "-i", "bob", "sealed", "-o", "-") == self.plain)
        self.assertFalse(self.read("sealed").endswith(self.stream))
        self.fails(FAILED, "sealed for other recipients", "open", "-i", "alice", "sealed", "-o", "never")
        self.fails(FAILED, "is not authentic", "open", "-i", "alice", "-o", "never",
                   given=key + self.read("sealed")[size_for(1):])
        self.ok("reseal", "-i", "bob", "-r", BOB[1], *FOR_ALICE, "sealed")
        for name in ("alice", "bob"):
            self.assertTrue(self.ok("open", "-i", name, "sealed", "-o", "-") == self.plain)
        for options, pattern in ((("-i", "alice"), "-r RECIPIENT"), (FOR_ALICE, "-i IDENTITY"),
                                 (("-i", "alice", *FOR_ALICE, "--key-file", "key256"), "excludes")):
            self.fails(USAGE, pattern, "reseal", *options, "sealed")
        self.write("bare", self.ok("seal", "--key-file", "key256", given=b"x"))
        self.fails(FAILED, "was it sealed with a key", "reseal", "-i", "alice", *FOR_ALICE, "bare")
        damaged = bytearray(self.read("sealed"))
        damaged[-1] ^= 1
        self.write("sealed", damaged)
        self.fails(FAILED, "is not authentic", "reseal", "-i", "alice", *FOR_ALICE, "sealed")

    def test_a_failure_changes_nothing(self):
        self.fails(FAILED, "sealed for other recipients", "rewrap", "-i", "bob", "-r", BOB[1], "sealed")
        self.fails(FAILED, "was sealed for recipients, not with a passphrase", "rewrap", *PASSPHRASE, "-r", BOB[1],
                   "sealed")
        self.fails(FAILED, "no recipient", "rewrap", "-i", "alice", "-r", "bob", "sealed")
        self.write("bare", self.ok("seal", "--key-file", "key256", given=b"x"))
        self.fails(FAILED, "was it sealed with a key. daelstrom reseal changes that", "rewrap", "-i", "alice", "-r",
                   BOB[1], "bare")
        for options in (("-i", "alice", *PASSPHRASE), ("-i", "alice", "--max-cost", "19"),
                        (*FOR_ALICE, "--new-passphrase-file", "password"), (*FOR_ALICE, *CHEAP)):
            self.fails(USAGE, "excludes", "rewrap", *options, "sealed")
        self.fails(USAGE, "standard input cannot be both", "rewrap", "-i", "-", *FOR_ALICE)
