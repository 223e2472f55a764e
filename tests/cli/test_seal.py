# SPDX-License-Identifier: Apache-2.0
"""`seal`, `open` and `rewrap`: what comes back, what is refused, and what is left on the disk."""
import os
import signal
import stat
import subprocess
import threading
import time

from harness import PROGRAM, CliTest, data, key, processor_time, sanitized
from test_terminal import Terminal

FAILED, USAGE = 1, 2
ENVELOPE = 214  # bytes in front, with a passphrase (docs/format.md)
SMALL, LARGE = 4096, 1 << 20
CHEAP = ("--cost", "10")
KEY = ("--key-file", "key256")


def first_segment(size, header=40):
    return size - 16 - header


class SealTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("password", b"correct horse\n")
        self.write("other", b"battery staple\n")
        self.secrets += [b"correct horse", b"battery staple"]
        self.with_passphrase = ("--passphrase-file", "password")

    def seal(self, plain, *options):
        return self.ok("seal", *(options or KEY), given=plain)

    def refused(self, pattern, sealed, *options, status=FAILED):
        """From a pipe and from a file, to a file: one line, and nothing is there."""
        self.fails(status, pattern, "open", *(options or KEY), "-o", "never", given=sealed)
        self.write("damaged", sealed)
        self.fails(status, pattern, "open", *(options or KEY), "damaged", "-o", "never")


class RoundTrips(SealTest):
    def test_sizes_at_the_edges(self):
        for segment, name in ((SMALL, "4K"), (LARGE, "1M")):
            first, room = first_segment(segment), segment - 16
            for size in (0, 1, first - 1, first, first + 1, first + room, first + room + 1, first + 4 * room,
                         first + 5 * room + 1):
                with self.subTest(segment=segment, size=size):
                    sealed = self.seal(data(size), *KEY, "--segment", name)
                    segments = 1 if size <= first else 1 + -(-(size - first) // room)
                    self.assertEqual(len(sealed), 40 + size + 16 * segments)
                    self.assertTrue(self.ok("open", *KEY, given=sealed) == data(size))
                    self.write("plain", data(size))
                    self.ok("seal", *KEY, "--segment", name, "plain", "-o", "sealed", "-f")
                    self.ok("open", *KEY, "sealed", "-o", "opened", "-f")
                    self.assertTrue(self.read("opened") == data(size))

    def test_every_kind_of_secret(self):
        self.write("hex", key(128).hex().encode() + b"\n")
        with open(self.dir / "key128", "rb") as handle:
            by_fd = self.ok("seal", "--key-fd", handle.fileno(), given=data(100), pass_fds=[handle.fileno()])
        self.assertEqual(self.ok("open", "--key-file", "hex", given=by_fd), data(100))
        self.write("sealed", by_fd)
        self.assertEqual(self.ok("open", "--key-file", "-", "sealed", "-o", "-", given=key(128)), data(100))
        self.write("plain", data(100))
        sealed = self.ok("seal", "--passphrase-file", "-", *CHEAP, "plain", "-o", "-", given=b"correct horse\nmore\n")
        self.assertEqual(self.ok("open", *self.with_passphrase, given=sealed), data(100))
        self.assertEqual(len(sealed), ENVELOPE + 40 + 100 + 16)
        self.assertEqual(sealed[:22], b"age-encryption.org/v1\n")

    def test_every_backend_and_thread_count_opens_it(self):
        plain = data(5 * LARGE + 17)
        sealed = self.seal(plain)
        for options in (("--backend", "openssl"), ("--backend", "reference"), ("--threads", "1"), ("--threads", "7")):
            if "reference" in options:  # which is slow
                short = data(10000)
                self.assertTrue(self.ok("open", *KEY, *options, given=self.seal(short, *KEY, "--segment", "4K")) == short)
            else:
                self.assertTrue(self.ok("open", *KEY, *options, given=sealed) == plain)

    def test_associated_data(self):
        self.write("aad", b"\x00\xff" * 40000)
        for options in (("--aad", "name"), ("--aad-file", "aad"), ("--aad", "")):
            sealed = self.seal(data(9), *KEY, *options)
            self.assertEqual(self.ok("open", *KEY, *options, given=sealed), data(9))
            self.refused("another key or other associated data", sealed, *KEY, "--aad", "other")
        self.assertEqual(self.ok("open", *KEY, given=self.seal(data(9), *KEY, "--aad", "")), data(9))
        sealed = self.seal(data(9), *self.with_passphrase, *CHEAP, "--aad", "name")
        self.assertEqual(self.ok("open", *self.with_passphrase, "--aad", "name", given=sealed), data(9))
        self.refused("other associated data", sealed, *self.with_passphrase)

    def test_prompts(self):
        terminal = Terminal(self, "seal", *CHEAP)
        terminal.answer(b"Passphrase: ", b"correct horse")
        terminal.answer(b"Passphrase, once more: ", b"correct horse")
        sealed, err, status = terminal.finish(data(100))
        self.assertEqual((err, status), (b"", 0))
        self.write("sealed", sealed)  # which is looked at before anybody is asked
        terminal = Terminal(self, "open", "sealed", "-o", "-")
        terminal.answer(b"Passphrase: ", b"correct horse")
        self.assertEqual(terminal.finish(), (data(100), b"", 0))
        self.assertNotIn(b"correct horse", terminal.shown)
        self.fails(FAILED, "no terminal to ask for the passphrase; give --passphrase-file", "seal", given=b"x",
                   start_new_session=True)


class Damage(SealTest):
    def setUp(self):
        super().setUp()
        self.plain = data(3 * SMALL)
        self.sealed = self.seal(self.plain, *KEY, "--segment", "4K")  # segments 0 to 3

    def test_what_was_done_to_it_is_named(self):
        sealed = self.sealed
        flip = lambda at: sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1:]
        parts = [sealed[i:i + SMALL] for i in range(0, len(sealed), SMALL)]
        for pattern, damaged in (
                ("segment 0 is not authentic: another key", flip(5)),
                ("segment 0 is not authentic", flip(100)),
                ("segment 2 is not authentic: it was altered or moved", flip(2 * SMALL + 9)),
                ("segment 3, the last one, is not authentic", flip(len(sealed) - 1)),
                ("segment 1 is not authentic", parts[0] + parts[2] + parts[1] + parts[3]),
                ("segment 2 is not authentic", parts[0] + parts[1] + parts[1] + parts[2] + parts[3]),
                ("segment 1 is not authentic", parts[0] + parts[2] + parts[3]),
                ("segment 2, the last one", parts[0] + parts[1] + parts[2]),
                ("segment 3, the last one", sealed + b"x"),
                ("segment 3, the last one", sealed[:-1]),
                ("cut off", sealed[:3 * SMALL + 5]), ("cut off", sealed[:30]), ("cut off", b""),
                ("does not begin as sealed data", sealed[1:])):
            self.refused("(standard input|'damaged'): .*" + pattern, damaged)

    def test_standard_output_gets_verified_segments_only(self):
        plain = data(40 * LARGE)
        sealed = bytearray(self.seal(plain))
        sealed[30 * LARGE + 5] ^= 1
        ran = self.run_program("open", *KEY, "--threads", "2", given=bytes(sealed))
        self.check_failure(FAILED, "segment 30 is not authentic", ran.returncode, ran.stderr)
        self.assertGreater(len(ran.stdout), 0)
        self.assertLessEqual(len(ran.stdout), 30 * LARGE)
        self.assertTrue(plain.startswith(ran.stdout))

    def test_an_existing_output_survives_a_failure(self):
        self.write("out", b"precious")
        self.fails(FAILED, "segment 1", "open", *KEY, "-o", "out", "-f",
                   given=self.sealed[:5000] + bytes([self.sealed[5000] ^ 4]) + self.sealed[5001:])
        self.assertEqual(self.read("out"), b"precious")

    def test_other_secrets(self):
        self.write("wrong", bytes(32))
        self.refused("another key", self.sealed, "--key-file", "wrong")
        self.refused("does not begin as sealed data", self.sealed, "--key-file", "key128")
        self.refused("was not sealed with a passphrase", self.sealed, *self.with_passphrase)
        self.refused("was not sealed with a passphrase", b"", *self.with_passphrase)
        sealed = self.seal(self.plain, *self.with_passphrase, *CHEAP)
        self.refused("was sealed with a passphrase, not with a key", sealed)
        self.refused("another passphrase, or the envelope", sealed, "--passphrase-file", "other")
        for size in (1, 8, 50, ENVELOPE - 1):
            self.refused("ends within the envelope in front of sealed data", sealed[:size], *self.with_passphrase)
            self.refused("ends within the envelope in front of sealed data", sealed[:size])
        for size in (ENVELOPE, ENVELOPE + 39, len(sealed) - 1):
            self.refused("cut off|the only one", sealed[:size], *self.with_passphrase)
        for at in (8, 23, 40, 70, 110, 140, 160, 200):
            self.refused("altered|age header|another version|does not begin with|sealed with a key",
                         sealed[:at] + bytes([sealed[at] ^ 0x20]) + sealed[at + 1:], *self.with_passphrase)

    def test_a_cost_from_a_file_is_capped(self):
        sealed = self.seal(b"", *self.with_passphrase, *CHEAP)
        asks_for = lambda work: sealed.replace(b" 10\n", b" " + work + b"\n", 1)
        begin = processor_time()
        for work, says in ((b"21", "more than daelstrom ever takes"), (b"63", "more than daelstrom ever takes"),
                           (b"64", "work is not 1 to 63"), (b"010", "work is not 1 to 63"), (b"0", "is not 1 to 63")):
            self.refused(says, asks_for(work), *self.with_passphrase, "--max-cost", "20")
        # What has not been verified may not cost much, unless it is allowed.
        for work in (19, 20, 17, 11):
            self.refused(f"more than .*\\(--max-cost {work}\\)", asks_for(str(work).encode()), *self.with_passphrase,
                         "--max-cost", str(work - 1))
        self.write("sealed", asks_for(b"19"))
        self.fails(FAILED, "more than 256 MiB.*--max-cost 19", "open", *self.with_passphrase, "sealed", "-o", "-")
        self.fails(FAILED, "more than 256 MiB.*--max-cost 19", "rewrap", *self.with_passphrase,
                   "--new-passphrase-file", "other", "sealed")
        self.assertLess(processor_time() - begin, 10)


class Ranges(SealTest):
    def test_against_the_whole(self):
        plain = data(3 * SMALL)
        first = first_segment(SMALL)
        for options in (KEY, self.with_passphrase):
            extra = CHEAP if options != KEY else ()
            self.write("sealed", self.ok("seal", *options, *extra, "--segment", "4K", given=plain))
            for begin, end in ((0, 0), (0, 99), (first - 1, first), (first, first), (100, 2 * SMALL),
                               (len(plain) - 1, len(plain) - 1), (0, len(plain) - 1), (len(plain) - 5, ""),
                               (5000, "")):
                got = self.ok("open", *options, "--range", f"{begin}-{end}", "sealed")
                self.assertEqual(got, plain[begin:] if end == "" else plain[begin:end + 1], (begin, end))

    def test_only_what_is_touched_is_verified(self):
        sealed = bytearray(self.seal(data(3 * SMALL), *KEY, "--segment", "4K"))
        sealed[2 * SMALL + 5] ^= 1
        self.write("sealed", bytes(sealed))
        self.assertEqual(self.ok("open", *KEY, "--range", "0-4999", "sealed"), data(5000))
        self.fails(FAILED, "'sealed': segment 2 is not authentic", "open", *KEY, "--range", "8180-", "sealed", "-o", "out")
        # The end: cut at a segment's edge, a range that reaches it notices, one before it does not.
        self.write("sealed", bytes(sealed[:2 * SMALL]))
        self.assertEqual(self.ok("open", *KEY, "--range", "0-99", "sealed"), data(100))
        self.fails(FAILED, "segment 1, the last one", "open", *KEY, "--range", "0-", "sealed", "-o", "out")
        self.fails(FAILED, "segment 1, the last one", "open", *KEY, "--range", "90000-", "sealed", "-o", "out")

    def test_what_is_no_range(self):
        self.write("sealed", self.seal(data(100)))
        for text in ("", "-", "-5", "5", "5-4", "a-b", "1-2-3", "0-99999999999999999999", " 0-1", "0-1 ", "+0-1"):
            self.fails(USAGE, "is no range", "open", *KEY, f"--range={text}", "sealed")
        self.fails(FAILED, "holds 100 bytes of plaintext", "open", *KEY, "--range", "100-", "sealed")
        self.fails(FAILED, "can only be read from its beginning", "open", *KEY, "--range", "0-", given=b"x")
        self.write("empty", self.seal(b""))
        self.fails(FAILED, "holds 0 bytes", "open", *KEY, "--range", "0-", "empty")
        self.write("nothing", b"")
        self.fails(FAILED, "cut off", "open", *KEY, "--range", "0-", "nothing")
        self.write("short", self.seal(b"", *self.with_passphrase, *CHEAP)[:ENVELOPE])
        self.fails(FAILED, "cut off", "open", *self.with_passphrase, "--range", "0-", "short")


class Rewrap(SealTest):
    def setUp(self):
        super().setUp()
        self.write("sealed", self.seal(data(3 * LARGE), *self.with_passphrase, *CHEAP))
        self.before = self.read("sealed")
        self.change = ("rewrap", *CHEAP, "--passphrase-file", "password", "--new-passphrase-file", "other")

    def check(self, content):
        self.assertNotEqual(content[:ENVELOPE], self.before[:ENVELOPE])
        self.assertTrue(content[ENVELOPE:] == self.before[ENVELOPE:])
        self.assertTrue(self.ok("open", "--passphrase-file", "other", given=content) == data(3 * LARGE))
        self.refused("another passphrase", content, *self.with_passphrase)

    def test_in_place(self):
        (self.dir / "sealed").chmod(0o640)
        os.symlink("sealed", self.dir / "link")
        self.ok(*self.change, "link")
        self.assertTrue((self.dir / "link").is_symlink())
        self.assertEqual(stat.S_IMODE((self.dir / "sealed").stat().st_mode), 0o640)
        self.check(self.read("sealed"))

    def test_a_file_with_other_names(self):
        """They would keep the old passphrase."""
        os.link(self.dir / "sealed", self.dir / "link")
        self.fails(1, "'sealed' has 2 names .hard links., and the others would keep", *self.change, "sealed")
        ran = self.run_program(*self.change, "-f", "sealed")
        self.assertEqual(ran.returncode, 0)
        self.assertRegex(ran.stderr.decode(), r"\Adaelstrom: warning: 'sealed' had other names[^\n]+\n\Z")
        self.check(self.read("sealed"))
        self.assertEqual(self.read("link"), self.before)

    def test_to_another_file_and_through_a_pipe(self):
        self.ok(*self.change, "sealed", "-o", "new")
        self.check(self.read("new"))
        self.check(self.ok(*self.change, given=self.before))
        self.assertTrue(self.read("sealed") == self.before)
        self.fails(FAILED, "'new' exists", *self.change, "sealed", "-o", "new")

    def test_both_passphrases_from_one_stream(self):
        self.ok("rewrap", *CHEAP, "--passphrase-file", "-", "--new-passphrase-file", "-", "sealed",
                given=b"correct horse\nbattery staple\n")
        self.check(self.read("sealed"))

    def test_a_failure_changes_nothing(self):
        self.fails(FAILED, "another passphrase", "rewrap", "--passphrase-file", "other", "--new-passphrase-file",
                   "password", "sealed")
        self.write("bare", self.seal(data(10)))
        self.fails(FAILED, "was it sealed with a key. daelstrom reseal changes that", *self.change, "bare")
        self.write("empty", b"\n")
        self.fails(FAILED, "new passphrase is empty", "rewrap", *self.with_passphrase, "--new-passphrase-file", "empty",
                   "sealed")
        self.fails(FAILED, "cannot open 'absent'", *self.change, "absent")
        self.fails(FAILED, "is no regular file that can be replaced", *self.change, "/dev/null")
        self.fails(USAGE, "standard input cannot be both", "rewrap", "--passphrase-file", "-")

    def test_interrupted(self):
        with open(self.dir / "sealed", "ab") as sealed:
            sealed.truncate(400 << 20)
        before = set(os.listdir(self.dir))
        program = subprocess.Popen([PROGRAM, *self.change, "sealed"], cwd=self.dir)
        time.sleep(0.15)
        program.send_signal(signal.SIGTERM)
        if program.wait(60) == 0:
            self.skipTest("it was done before the signal came")
        self.assertEqual(program.returncode, -signal.SIGTERM)
        self.assertEqual(set(os.listdir(self.dir)), before)
        with open(self.dir / "sealed", "rb") as sealed:
            self.assertEqual(sealed.read(ENVELOPE), self.before[:ENVELOPE])

    def test_prompts(self):
        terminal = Terminal(self, "rewrap", *CHEAP, "sealed")
        terminal.answer(b"Passphrase: ", b"correct horse")
        terminal.answer(b"New passphrase: ", b"battery staple")
        terminal.answer(b"New passphrase, once more: ", b"battery staple")
        self.assertEqual(terminal.finish()[1:], (b"", 0))
        self.check(self.read("sealed"))


class CommandLine(SealTest):
    def test_options_that_do_not_go_together(self):
        self.write("plain", data(10))
        for options in (("--key-file", "key128", "--keyset", "k"), ("--key-file", "key128", "--passphrase-file", "p"),
                        ("--keyset", "k", "--passphrase-fd", "3"), ("--keyset", "k", "--segment", "4K"),
                        ("--aad", "x", "--aad-file", "y"), ("--key-file", "key128", "--cost", "12")):
            self.fails(USAGE, "excludes", "seal", *options, "plain")
        self.fails(USAGE, "'64K' is neither 4K nor 1M", "seal", *KEY, "--segment", "64K", "plain")
        for cost in ("9", "21", "x"):
            self.fails(USAGE, "--cost", "seal", *self.with_passphrase, "--cost", cost, "plain")
            self.fails(USAGE, "--max-cost", "open", *self.with_passphrase, "--max-cost", cost, "plain")
        self.fails(USAGE, "excludes", "open", *KEY, "--max-cost", "12", "plain")
        for option in ("--key-file", "--keyset", "--passphrase-file"):
            self.fails(USAGE, "standard input cannot be both", "seal", option, "-")
        self.fails(USAGE, "standard input cannot be both", "seal", *KEY, "--aad-file", "-")
        self.fails(USAGE, "secrets are not for the command line", "seal", "--passphrase", "correct horse")
        self.fails(USAGE, "unknown option '--range'", "seal", *KEY, "--range", "0-1", "plain")
        self.fails(USAGE, "unknown option '--segment'", "open", *KEY, "--segment", "4K", "plain")

    def test_keys_of_other_sizes(self):
        self.fails(FAILED, "the key is 24 bytes; seal and open take 16 or 32", "seal", "--key-file", "key192", "-o",
                   "out", given=b"x")
        self.write("odd", b"x" * 20)
        self.fails(FAILED, "an AES key is 16, 24 or 32", "seal", "--key-file", "odd", "-o", "out", given=b"x")

    def test_keysets_that_are_none(self):
        self.fails(FAILED, "cannot open keyset file 'absent'", "seal", "--keyset", "absent", "-o", "out", given=b"x")
        for content, pattern in ((b"", "not JSON"), (b"{}", "not as Tink writes it"), (b"x" * 70000, "holds more than"),
                                 (b'{"encryptedKeyset": "AA=="}', "is encrypted")):
            self.write("keyset", content)
            self.fails(FAILED, pattern, "seal", "--keyset", "keyset", "-o", "out", given=b"x")

    def test_ciphertext_is_not_for_a_terminal(self):
        for command in (["seal", *KEY], ["rewrap", *self.with_passphrase]):
            terminal = Terminal(self, *command, on_terminal=["stdout"])
            _, err, status = terminal.finish(b"x")
            self.assertEqual(status, FAILED)
            self.assertIn(b"ciphertext would go to the terminal", err)


class Streams(SealTest):
    def test_memory_does_not_grow_with_the_data(self):
        if sanitized():
            self.skipTest("a sanitizer reserves terabytes of address space")
        size = 512 << 20
        with open(self.dir / "large", "wb") as large:
            large.truncate(size)
        command = (f"ulimit -v 500000; '{PROGRAM}' seal --threads 2 --key-file key256 large -o - | "
                   f"'{PROGRAM}' open --threads 2 --key-file key256 | cmp - large")
        ran = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.dir, capture_output=True)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, b"", b""))

    def test_the_output_appears_when_all_is_verified(self):
        sealed = self.seal(data(12 * LARGE))
        before = set(self.listing())
        program = subprocess.Popen([PROGRAM, "open", *KEY, "-o", "out"], cwd=self.dir, stdin=subprocess.PIPE)
        program.stdin.write(sealed[:-1])
        program.stdin.flush()
        visible = {name for name in set(self.listing()) - before if not name.startswith(".daelstrom-")}
        program.stdin.write(sealed[-1:])
        program.stdin.close()
        self.assertEqual(program.wait(60), 0)
        self.assertEqual(visible, set())
        self.assertTrue(self.read("out") == data(12 * LARGE))

    def test_a_slow_pipe(self):
        """Bytes that come one by one: pieces are filled, however small the reads are."""
        sealed = self.seal(data(100))
        program = subprocess.Popen([PROGRAM, "open", *KEY], cwd=self.dir, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        for at in range(len(sealed)):
            program.stdin.write(sealed[at:at + 1])
            program.stdin.flush()
        program.stdin.close()
        self.assertEqual(program.stdout.read(), data(100))
        program.stdout.close()
        self.assertEqual(program.wait(60), 0)

    def test_a_failing_stage_ends_the_pipe(self):
        """A wrong segment early on: the program ends although its input goes on."""
        sealed = bytearray(self.seal(data(40 * LARGE)))
        sealed[100] ^= 1
        program = subprocess.Popen([PROGRAM, "open", *KEY, "-o", "out"], cwd=self.dir, stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        def feed():
            try:
                program.stdin.write(bytes(sealed))
            except BrokenPipeError:
                pass
        feeder = threading.Thread(target=feed)
        feeder.start()
        self.assertRegex(program.stderr.read(), b"segment 0")
        self.assertEqual(program.wait(60), FAILED)
        feeder.join()
        program.stderr.close()
        try:
            program.stdin.close()
        except BrokenPipeError:
            pass
        self.assertNotIn("out", self.listing())

    def test_progress(self):
        with open(self.dir / "large", "wb") as large:
            large.truncate(64 << 20)
        lines = self.run_program("seal", *KEY, "large", "-o", "out", "--progress").stderr.decode().splitlines()
        self.assertRegex(lines[-1], r"\A'large'  64 MiB in .* on \w+")
        self.assertEqual(self.run_program("open", *KEY, "out", "-o", "back", "--progress", "--quiet").stderr, b"")
