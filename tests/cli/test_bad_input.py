# SPDX-License-Identifier: Apache-2.0
"""Bad input: a clear error on one line, the right exit status, nothing written, no secret shown."""
import json
import os
import pathlib
import subprocess

from harness import CHUNK, IV, MODES, PROGRAM, CliTest, data, key, openssl_enc, sanitized

FAILED, USAGE = 1, 2
TO_FILE = ("-o", "out")


def out_of_range(option, value, least, digits):
    """What is said of a number; CLI11 puts the range into words in several ways."""
    return rf"{option}: Value {value} not in range \[?{least} (to|-) \d{{{digits}}}\]?;"


class CommandLine(CliTest):
    def setUp(self):
        super().setUp()
        self.write("plain", data(100))

    def refused(self, pattern, *arguments, status=USAGE):
        self.fails(status, pattern, "encrypt", "--key-file", "key128", "plain", *TO_FILE, *arguments)

    def test_unknown_mode_backend_device_form(self):
        self.refused("unknown mode 'xts'; there are ecb, cbc, cfb, ofb, ctr", "--mode", "xts")
        self.refused("no backend 'abacus'; there are .*openssl", "--backend", "abacus")
        self.refused(r"no backend 'a\\x0ab'; there are", "--backend", "a\nb")
        self.refused(r"no backend 'x{60,70}\.\.\.'; there are", "--backend", "x" * 10_000)
        rows = json.loads(self.run_program("devices", "--json").stdout)
        if any(row["name"] == "cpu" and row["present"] for row in rows):  # not without libipsec-mb
            self.refused(r"has no form 'y{60,70}\.\.\.'", "--backend", "cpu", "--form", "y" * 10_000)
        self.refused("must be a device number", "--backend", "cuda:x")
        self.refused("not available", "--device", "4000", status=FAILED)
        self.refused("opencl:4000", "--backend", "opencl", "--device", "4000", status=FAILED)
        self.refused("form 'sse' has no meaning for 'openssl'", "--form", "sse", "--backend", "openssl")
        self.refused("form 'gl-int' has no meaning for 'reference'", "--form", "gl-int", "--backend", "reference")
        for drawn in ["--backend", "opengl"], ["--backend", "opengl:1", "--form", "gl-int"], ["--form", "gl-float"]:
            self.refused("of the lab: `daelstrom lab encrypt --backend opengl`", *drawn)
        self.refused("add --backend cuda or opencl", "--form", "tables=1")
        self.refused("--device chooses a GPU, but --backend is 'openssl'", "--backend", "openssl", "--device", "0")
        self.refused("--device chooses a GPU, but --backend is 'cuda:0\\+cpu'", "--backend", "cuda:0+cpu", "--device", "1")
        self.fails(USAGE, "--device chooses a GPU, but DAELSTROM_BACKEND is 'openssl'", "encrypt", "--key-file", "key128",
                   "plain", "--device", "0", env=dict(os.environ, DAELSTROM_BACKEND="openssl"))
        ran = self.run_program("encrypt", "--key-file", "key128", "plain", *TO_FILE, "--form", "mmx")
        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn("out", self.listing())

    def test_lists_of_devices(self):
        mend = "; give all, a number, or names as `daelstrom devices` lists them, with one comma between: cuda:0,cpu"
        for given, why in (("", "nothing is named"), ("cuda:0,,cpu", "a name is missing"), ("0,", "a name is missing"),
                           (",cpu", "a name is missing"), ("all,cpu", "all stands by itself"),
                           ("cuda:0,auto", "auto stands by itself"), ("abacus", "'abacus' is not a device"),
                           ("0, 1", "' 1' is not a device"), ("4096", "numbers go from 0 to 4095"),
                           ("-1", "'-1' is not a device"), ("0,99999999999", "numbers go from 0 to 4095")):
            self.refused(f"--device '{given}': {why}{mend}\n\\Z", "--device", given)
        self.refused("--device 'cuda:0,cpu': 'cuda:0' is not of the backend opencl, which --backend names", "--backend",
                     "opencl", "--device", "cuda:0,cpu")
        self.refused("'cuda:4000' is not available", "--device", "4000,openssl", status=FAILED)
        self.refused("'opencl:4000' is not available", "--backend", "opencl", "--device", "openssl,4000", status=FAILED)
        self.refused("has 2 that work on the host's threads; name one of them", "--device", "openssl,reference")
        self.refused("has 2 that work on the host's threads", "--backend", "openssl+reference")
        self.refused("no backend ''; there are", "--backend", "openssl+")

    def test_an_absent_backend_is_never_replaced(self):
        self.refused("'cuda:4000' is not available", "--backend", "cuda:4000", status=FAILED)
        self.fails(FAILED, "'cuda:4000' is not available", "encrypt", "--key-file", "key128", "plain",
                   env=dict(os.environ, DAELSTROM_BACKEND="cuda:4000"))

    def test_iv(self):
        self.refused("the IV has 30 hexadecimal digits; AES takes 32", "--iv", "00" * 15)
        self.refused("the IV has 34 hexadecimal digits", "--iv", "00" * 17)
        self.refused("the IV is not hexadecimal", "--iv", "0g" * 16)
        self.refused("the IV has 0 hexadecimal digits", "--iv", "")
        self.refused("ecb takes no IV", "--iv", IV, "--mode", "ecb")

    def test_offset(self):
        self.refused("'ten' is not a size", "--iv", IV, "--offset", "ten")
        self.refused("'-5' is not a size", "--iv", IV, "--offset=-5")
        self.refused("'99999999999T' is not a size", "--iv", IV, "--offset", "99999999999T")
        self.refused("passes 2\\^64", "--iv", IV, "--offset", str(2**64 - 50), status=FAILED)
        self.refused("--offset is for ctr", "--iv", IV, "--offset", "1", "--mode", "cbc")
        self.refused("say which one with --iv", "--offset", "1")

    def test_options_that_do_not_go_together(self):
        self.refused("--no-padding is for ecb and cbc", "--no-padding")
        self.refused("--openssl", "--openssl")
        self.refused("--openssl", "--bits", "128")
        self.refused("--openssl", "--password-file", "plain")
        self.refused("--key-fd", "--key-fd", "3")
        self.refused("--progress", "--progress", "--no-progress")

    def test_numbers(self):
        for option, value in (("--threads", "0"), ("--threads", "x"), ("--device", "x"), ("--key-fd", "x")):
            self.refused(option, option, value)
        self.fails(USAGE, out_of_range("--key-fd", -1, 0, 7), "encrypt", "--key-fd", "-1")
        self.fails(USAGE, out_of_range("--messages", 0, 1, 13), "explain", "--size", "1", "--messages", "0")
        for option, value in (("--bits", "100"), ("--iterations", "0"), ("--iterations", "99999999999")):
            self.fails(USAGE, option, "encrypt", "--openssl", "--password-file", "key128", option, value)

    def test_extra_arguments(self):
        self.refused("too many arguments", "another")
        self.refused("unknown option '--frobnicate'", "--frobnicate=" + key(128).hex())
        self.fails(USAGE, "say what to do: seal, open")
        self.fails(USAGE, "no command is called 'encode'", "encode")
        self.fails(USAGE, "unknown option '--frobnicate'", "--frobnicate")

    def test_a_secret_on_the_command_line_is_not_echoed(self):
        for option in ("-K", "-k", "--key", "--password", "--pass"):
            self.fails(USAGE, "secrets are not for the command line", "encrypt", option, key(128).hex())
        self.fails(USAGE, "too many", "encrypt", "plain", key(256).hex())

    def test_secret_and_data_from_one_standard_input(self):
        self.fails(USAGE, "standard input cannot be both", "encrypt", "--key-file", "-", *TO_FILE)
        self.fails(USAGE, "standard input cannot be both", "encrypt", "--key-fd", "0", *TO_FILE)
        self.fails(USAGE, "standard input cannot be both", "decrypt", "--openssl", "--password-file", "-")

    def test_what_came_in_cannot_draw_on_the_terminal(self):
        self.fails(FAILED, r"'evil\\x1b\[2J\\x0aname'", "encrypt", "--key-file", "key128", "evil\x1b[2J\nname")
        self.fails(USAGE, r"\\x0a", "encrypt", "--threads", "1\n2")


class Keys(CliTest):
    def test_wrong_lengths(self):
        self.write("plain", b"x")
        for size in (0, 1, 15, 17, 23, 25, 31, 33, 64, 5000):
            self.write("key", bytes([0x80]) * size)
            self.fails(FAILED, "an AES key is 16, 24 or 32|holds more than", "encrypt", "--key-file", "key",
                       "plain", *TO_FILE)

    def test_hexadecimal_that_is_none(self):
        secret = "0123456789abcdef0123456789abcdeg"  # 32 characters: a raw key of 32 bytes
        self.write("key", (secret + "\n").encode())  # 33: no key at all
        self.secrets.append(secret.encode())
        self.fails(FAILED, "key file 'key' is 33 bytes", "encrypt", "--key-file", "key", *TO_FILE)

    def test_files_that_cannot_be_read(self):
        self.fails(FAILED, "cannot open key file 'absent'", "encrypt", "--key-file", "absent", *TO_FILE)
        self.fails(FAILED, "cannot read key file '/'", "encrypt", "--key-file", "/", *TO_FILE)
        self.fails(FAILED, "cannot read file descriptor 77", "encrypt", "--key-fd", "77", *TO_FILE)

    def test_an_empty_password(self):
        self.write("password", b"\nsecond line\n")
        self.fails(FAILED, "password is empty", "encrypt", "--openssl", "--password-file", "password", *TO_FILE)


class Inputs(CliTest):
    def refused(self, pattern, name, status=FAILED):
        self.fails(status, pattern, "encrypt", "--key-file", "key128", name, *TO_FILE)

    def test_a_directory(self):
        (self.dir / "folder").mkdir()
        self.refused("'folder' is a directory", "folder")
        self.fails(FAILED, "'folder' is a directory", "encrypt", "--key-file", "key128", "-o", "folder", "-f",
                   given=b"x")

    def test_no_such_file(self):
        self.refused("cannot open 'absent': No such file", "absent")
        self.refused("cannot open ''", "")
        self.fails(FAILED, "cannot create 'absent/out'", "encrypt", "--key-file", "key128", "-o", "absent/out",
                   given=b"x")
        self.fails(FAILED, "names no file|is a directory|cannot create", "encrypt", "--key-file", "key128", "-o",
                   "new/", given=b"x")

    def test_a_file_whose_reading_fails(self):
        self.refused("cannot read '/proc/self/mem'", "/proc/self/mem")

    def test_standard_streams_that_are_closed(self):
        before = self.listing()
        ran = self.run_program("encrypt", "--key-file", "key128", *TO_FILE, stdin=None,
                               preexec_fn=lambda: os.close(0))
        self.check_failure(FAILED, "standard input", ran.returncode, ran.stderr)
        self.assertEqual(self.listing(), before)

    def test_progress_never_goes_into_the_output(self):
        """Whatever is closed, no file gets a number that messages are written to."""
        self.write("plain", data(100))
        for closed in (2,), (1, 2), (0, 1, 2):
            ran = self.run_program("encrypt", "--progress", "--key-file", "key128", "--iv", IV, "plain", "-f", *TO_FILE,
                                   stdin=None, stdout=None,
                                   preexec_fn=lambda closed=closed: [os.close(fd) for fd in closed])
            self.assertEqual(ran.returncode, 0, closed)
            self.assertEqual(self.read("out"), openssl_enc("ctr", 128, data(100)), closed)

    def test_output_that_nobody_would_get_is_a_failure(self):
        ran = self.run_program("encrypt", "--key-file", "key128", given=b"x", stdout=None,
                               preexec_fn=lambda: os.close(1))
        self.check_failure(FAILED, "cannot write to standard output", ran.returncode, ran.stderr)

    def test_a_thread_that_finds_no_memory(self):
        """Which limit stands in the way: the address space here, not the number of processes."""
        if sanitized():
            self.skipTest("a sanitizer reserves terabytes of address space")
        self.write("plain", data(100))
        advice = set()
        for limit in range(20_000, 120_000, 4_000):
            command = f"ulimit -v {limit}; exec '{PROGRAM}' encrypt --key-file key128 --threads 2 plain"
            ran = subprocess.run(["sh", "-c", command], cwd=self.dir, capture_output=True)
            advice |= {word for word in ("ulimit -u", "ulimit -v") if word.encode() in ran.stderr}
        self.assertNotIn("ulimit -u", advice)

    def test_an_unreadable_file_and_an_unwritable_folder(self):
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        if nobody and any(not os.stat(p).st_mode & 1 for p in pathlib.Path(PROGRAM).resolve().parents):
            self.skipTest("another user cannot reach the program to run it")
        self.dir.chmod(0o755)
        self.write("private", b"x")
        (self.dir / "private").chmod(0)
        for name in self.write("public", b"x"), "key128":
            os.chown(self.dir / name, nobody.get("user", -1), -1)
        (self.dir / "locked").mkdir(mode=0o555)
        self.fails(FAILED, "cannot open 'private': Permission denied", "encrypt", "--key-file", "key128",
                   "private", **nobody)
        self.fails(FAILED, "cannot create 'locked/out': Permission denied", "encrypt", "--key-file", "key128",
                   "public", "-o", "locked/out", **nobody)


class Lengths(CliTest):
    def test_ragged_without_padding(self):
        for mode in ("ecb", "cbc"):
            for command in ("encrypt", "decrypt"):
                for size in (1, 15, 17, CHUNK + 1):
                    options = ["--no-padding", "--mode", mode, "--key-file", "key128"]
                    if mode == "cbc":
                        options += ["--iv", IV]
                    self.write("data", data(size))
                    pattern = f"holds {size} bytes of data, which is not a multiple of 16; {mode}"
                    self.fails(FAILED, pattern, command, *options, "data")
                    self.fails(FAILED, pattern, command, *options, "data", *TO_FILE)
                    self.fails(FAILED, pattern, command, *options, *TO_FILE, given=data(size))

    def test_padded_ciphertext_of_an_impossible_length(self):
        for size in (0, 1, 15, 17, CHUNK + 5):
            self.fails(FAILED, f"holds {size} bytes of data, but padded ciphertext", "decrypt", "-m", "cbc", "--iv",
                       IV, "--key-file", "key128", *TO_FILE, given=data(size))

    def test_truncated_stored_iv(self):
        for mode in MODES[1:]:
            for size in (0, 1, 15):
                self.fails(FAILED, f"truncated: it ends after {size} of the 16 bytes", "decrypt", "-m", mode,
                           "--key-file", "key128", *TO_FILE, given=data(size))

    def test_truncated_or_foreign_salted(self):
        self.write("password", b"pw")
        for content in (b"", b"Salted__", b"Salted__1234567"):
            self.fails(FAILED, "is truncated", "decrypt", "--openssl", "--password-file", "password", *TO_FILE,
                       given=content)
        self.fails(FAILED, "does not begin with Salted__", "decrypt", "--openssl", "--password-file", "password",
                   *TO_FILE, given=b"salted__12345678and more")


class Padding(CliTest):
    """One message for every fault; nothing of the last chunk comes out."""

    def decrypts(self, plain, *options):
        """Decrypts what openssl made of `plain` without padding it."""
        for mode in ("cbc", "ecb"):
            cipher = openssl_enc(mode, 128, plain, padding=False)
            yield cipher, ["-m", mode, "--key-file", "key128", *(["--iv", IV] if mode == "cbc" else []), *options]

    def test_every_fault_has_the_same_message(self):
        good = bytes(range(100, 116))
        faults = [good[:-1] + bytes([count]) for count in (0, 17, 32, 127, 128, 255)]
        for count in range(2, 17):  # right count, one byte of the padding wrong, at either end
            padded = bytearray(good[:16 - count] + bytes([count]) * count)
            for at in {16 - count, 14}:
                faults.append(bytes(padded[:at]) + bytes([padded[at] ^ 1]) + bytes(padded[at + 1:]))
        messages = set()
        for last in faults[::5 if sanitized() else 1]:
            for cipher, options in self.decrypts(data(64) + last):
                before = self.listing()
                for output in ((), TO_FILE):
                    ran = self.run_program("decrypt", *options, *output, given=cipher)
                    self.check_failure(FAILED, "wrong padding", ran.returncode, ran.stderr)
                    self.assertEqual(ran.stdout, b"")
                    self.assertEqual(self.listing(), before)
                    messages.add(ran.stderr)
        self.assertEqual(len(messages), 1, messages)

    def test_standard_output_gets_all_but_the_last_chunk(self):
        plain = data(2 * CHUNK + 4096)
        for cipher, options in self.decrypts(plain):
            ran = self.run_program("decrypt", *options, given=cipher)
            self.check_failure(FAILED, "wrong padding", ran.returncode, ran.stderr)
            self.assertTrue(ran.stdout == plain[:2 * CHUNK])
        for cipher, options in self.decrypts(data(2 * CHUNK)):  # a chunk that is full and yet the last
            ran = self.run_program("decrypt", *options, given=cipher)
            self.check_failure(FAILED, "wrong padding", ran.returncode, ran.stderr)
            self.assertTrue(ran.stdout == data(CHUNK))

    def test_wrong_key(self):
        cipher = openssl_enc("cbc", 128, data(100))
        self.write("key-other", bytes(16))
        self.fails(FAILED, "wrong padding", "decrypt", "-m", "cbc", "--iv", IV, "--key-file", "key-other", *TO_FILE,
                   given=cipher)


