# SPDX-License-Identifier: Apache-2.0
"""Words: which command and which option was probably meant, `help`, -V, `explain`, and what is measured where."""
import json
import os

from harness import CliTest, key

FAILED, USAGE = 1, 2


class Hints(CliTest):
    def hint(self, pattern, *arguments):
        self.fails(USAGE, pattern, *arguments)

    def test_key_password_passphrase(self):
        self.hint("unknown option '--password-file'; a passphrase is meant: --passphrase-file; see", "seal",
                  "--password-file", "p")
        self.hint("a passphrase is meant: --passphrase-fd", "open", "--password-fd", "3")
        self.hint("a passphrase is meant: --passphrase-file", "rewrap", "--password-file=p")
        self.hint("a password goes with OpenSSL's format, --openssl --password-file; a passphrase with `daelstrom seal`",
                  "encrypt", "--passphrase-file", "p")
        self.hint("keysets are for `daelstrom seal`", "decrypt", "--keyset", "k")
        self.hint("it is called --keyset", "seal", "--keyset-file", "k")
        for command, options in (("seal", "--key-file, --keyset, --passphrase-file"), ("rewrap", "--passphrase-file"),
                                 ("encrypt", "--key-file, or --openssl with --password-file")):
            for option in ("-K", "-k", "--key", "--pass"):
                self.hint(f"unknown option '{option}'; secrets are not for the command line, give {options};", command,
                          option, key(128).hex())

    def test_options_of_other_commands_and_slips(self):
        self.hint("sealing is AES-GCM always; leave it out", "seal", "--mode", "gcm")
        self.hint("sealing makes its own nonces", "seal", "--iv", "00")
        self.hint("it is called --iterations", "decrypt", "--openssl", "--iter", "5")
        self.hint("recipients are for `daelstrom seal`", "encrypt", "-r", "age1")
        self.hint("identities are for `daelstrom open`", "decrypt", "-i", "me")
        self.hint("a passphrase is asked for where nothing else is named", "seal", "-p")
        self.hint("`daelstrom open` opens", "seal", "-d")
        self.hint("it is called --form", "encrypt", "--isa", "sse")
        self.hint("is --output meant?", "seal", "--ouput", "x")
        self.hint("is --threads meant?", "encrypt", "--thread", "2")
        self.hint("unknown option '--frobnicate'; see", "encrypt", "--frobnicate")
        self.hint("no command is called 'sael'; is seal meant?", "sael")
        self.hint("no command is called 'decypt'; is decrypt meant?", "decypt")
        self.hint("say what to do: seal, open,")

    def test_too_many_arguments(self):
        self.hint("too many arguments; devices takes none; see daelstrom devices --help", "devices", "cuda")
        self.hint("too many arguments; encrypt takes INPUT and no more", "encrypt", "a", "b")
        self.hint("too many arguments; completion takes SHELL and no more", "completion", "bash", "zsh")

    def test_gcm_points_to_seal(self):
        for mode in ("gcm", "GCM", "aes-256-gcm"):
            self.hint(f"unknown mode '{mode}'; there are ecb, .*; AES-GCM is what `daelstrom seal`", "encrypt",
                      "--mode", mode)
        self.hint(r"unknown mode 'xts'; there are ecb, cbc, cfb, ofb, ctr\n", "decrypt", "--mode", "xts")

    def test_an_iv_that_is_none(self):
        self.write("plain", b"x")
        for text in ("zz", "0x" + "00" * 15, "00" * 15 + " 0", "z" * 32):
            self.hint("the IV is not hexadecimal; give 32 of the digits", "encrypt", "--key-file", "key128", "--iv",
                      text, "plain")
        self.hint("the IV has 2 hexadecimal digits", "encrypt", "--key-file", "key128", "--iv", "aF", "plain")

    def test_modes_of_bench(self):
        self.hint("--mode: no 'nope'; there are ctr, ecb, cbc, cfb, ofb, xts, gmac, gcm", "bench", "--mode", "nope")


class Help(CliTest):
    def test_help_is_help(self):
        self.assertEqual(self.ok("help"), self.ok("--help"))
        for command in ("seal", "keyset", "help", "man"):
            self.assertEqual(self.ok("help", command), self.ok(command, "--help"), command)
        self.fails(USAGE, "no command is called 'sael'; is seal meant?", "help", "sael")

    def test_a_file_that_is_called_as_a_command_is(self):
        for name in ("seal", "open", "info"):
            self.write(name, b"x")
            self.assertIn(f"{name}: ", self.ok("info", name).decode())
            self.assertEqual(self.ok("decrypt", "--key-file", "key128", given=self.ok("encrypt", "--key-file", "key128",
                                                                                      name)), b"x")

    def test_version(self):
        self.assertEqual(self.ok("-V"), self.ok("--version"))

    def test_the_hidden_command_has_help_too(self):
        self.assertTrue(self.ok("man", "--help").decode().startswith("Usage: daelstrom man "))

    def test_seal_and_open_come_first(self):
        text = self.ok("--help").decode()
        commands = text.split("\nCommands:\n")[1].split("\n")
        self.assertEqual([line.split()[0] for line in commands[:2]], ["seal", "open"])
        self.assertLess(text.index("daelstrom seal"), text.index("encrypt"))


class Explain(CliTest):
    def explain(self, *arguments):
        return self.ok("explain", "--backend", "openssl", *arguments).decode()

    def test_every_mode_and_seal(self):
        for mode in ("ecb", "cbc", "cfb", "ofb", "ctr", "xts", "gcm"):
            bits = ("--bits", "256")
            self.assertIn(f"For {mode} encryption with a 256-bit key, openssl", self.explain("--size", "64M", "--mode",
                                                                                          mode, *bits))
        text = self.explain("--size", "64M", "--mode", "seal", "--bits", "256")
        self.assertIn("a message for each segment of 1 MiB: 65 of them here", text)  # the tags take room too
        self.assertIn("For gcm encryption with a 256-bit key", text)
        self.fails(USAGE, "unknown mode 'nope'; there are ecb, .*gcm.*, and seal", "explain", "--size", "1", "--mode",
                   "nope")
        self.fails(USAGE, "seal takes keys of 128 or 256 bits", "explain", "--size", "1", "--mode", "seal", "--bits",
                   "192")

    def test_an_impossible_job_is_a_failure(self):
        self.fails(FAILED, "No backend here can do ctr .* openssl: the data lies in device memory", "explain",
                   "--backend", "openssl", "--size", "64M", "--from", "device")

    def test_a_calibration_counts_with_the_limits_of_memory(self):
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.dir / "cache"))
        ran = self.run_program("calibrate", env=environment)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        figures = json.loads((self.dir / "cache/daelstrom/calibration.json").read_text())
        self.assertGreaterEqual(figures["memory_all"], figures["memory_core"])
        figures["memory_core"] = figures["memory_all"] = 0.125
        (self.dir / "cache/daelstrom/calibration.json").write_text(json.dumps(figures))
        (self.dir / "cache/daelstrom/calibration.json").chmod(0o600)
        text = self.run_program("explain", "--backend", "openssl", "--size", "1G", env=environment).stdout.decode()
        self.assertIn("0.125 GB/s, limited by memory, which must be read and written (measured here)", text)


class Devices(CliTest):
    def test_why_there_is_no_cuda(self):
        row = next(row for row in json.loads(self.ok("devices", "--json")) if row["name"].startswith("cuda"))
        if row["present"] or "this build has no CUDA" not in row["missing"]:
            self.skipTest("this build has CUDA")
        self.assertRegex(row["missing"], r"DAELSTROM_CUDA was OFF|nvcc was not found")
