# SPDX-License-Identifier: Apache-2.0
"""`daelstrom lab encrypt --backend opengl`, `decrypt` and `devices`; and that `daelstrom` itself has nothing of it."""
import json
import os
import re
import subprocess

from harness import CHUNK, PROGRAM, CliTest, data, iv_options, key, openssl_enc

REQUIRED = set(os.environ.get("DAELSTROM_TEST_REQUIRE", "").replace(",", " ").split())
LAB = r"of the lab: `daelstrom lab encrypt --backend opengl`"


class Drawing(CliTest):
    def setUp(self):
        super().setUp()
        rows = json.loads(self.ok("lab", "devices", "--json"))
        if not any(row["name"].startswith("opengl") and row["present"] for row in rows):
            missing = [row["missing"] for row in rows if row["name"] == "opengl"]
            if REQUIRED & {"all", "opengl_gl_int"}:
                self.fail(missing)
            self.skipTest(f"no driver to draw with: {missing}")

    def drawn(self, command, *arguments, given):
        return self.ok("lab", command, "--backend", "opengl", *arguments, given=given)

    def test_openssl_makes_the_same(self):
        for size, key_sizes in (0, [256]), (1, [256]), (16, [192]), (100_003, [128, 192, 256]), (CHUNK + 5, [128]):
            plain = data(size)
            for bits in key_sizes:
                for mode in "ecb", "ctr":
                    options = ["-m", mode, "--key-file", f"key{bits}", *iv_options(mode)[0]]
                    cipher = openssl_enc(mode, bits, plain)
                    self.assertTrue(self.drawn("encrypt", *options, given=plain) == cipher, (mode, bits, size))
                    self.assertTrue(self.drawn("decrypt", *options, given=cipher) == plain, (mode, bits, size))
                    if mode == "ecb":
                        self.assertTrue(self.drawn("encrypt", "--form", "gl-float", *options, given=plain) == cipher,
                                        (bits, size))

    def test_files_between_it_and_the_program(self):
        self.write("plain", data(200_000))
        self.ok("lab", "encrypt", "--backend", "opengl", "--key-file", "key256", "plain", "-o", "drawn")
        self.ok("decrypt", "--key-file", "key256", "drawn", "-o", "again")
        self.assertEqual(self.read("again"), data(200_000))
        self.ok("encrypt", "--key-file", "key256", "plain", "-o", "secret")
        done = json.loads(self.ok("lab", "decrypt", "--json", "--backend", "opengl", "--key-file", "key256", "secret",
                                  "-o", "again2"))
        self.assertEqual(done["backend"], "opengl:0")
        self.assertEqual(self.read("again2"), data(200_000))

    def test_every_example_runs(self):
        self.write("notes.txt", data(12345))
        self.write("key", key(256))
        for command in "encrypt", "decrypt", "devices":
            examples = re.findall(r"^  \$ (.+)", self.ok("lab", command, "--help").decode(), re.M)
            self.assertTrue(examples, command)
            for example in examples:
                subprocess.run(["bash", "-euo", "pipefail", "-c", example], cwd=self.dir, check=True, capture_output=True,
                               env=dict(os.environ, PATH=f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"))
        self.assertEqual(self.read("notes.again"), data(12345))
        self.assertEqual(self.read("notes.ecb"), openssl_enc("ecb", 256, data(12345)))

    def test_by_the_environment(self):
        environment = dict(os.environ, DAELSTROM_BACKEND="opengl")
        options = ["-m", "ecb", "--key-file", "key128"]
        self.assertEqual(self.ok("lab", "encrypt", *options, given=data(100), env=environment),
                         openssl_enc("ecb", 128, data(100)))

    def test_the_thesis_command_draws(self):
        self.write("plain", data(1000))
        self.ok("aes", "-q", "-e", "--backend", "opengl", "-p", "pw", "-i", "plain", "-o", "out")
        self.ok("aes", "-q", "-d", "-p", "pw", "-i", "out", "-o", "again")
        self.assertEqual(self.read("again"), data(1000))

    def test_what_it_has_not_is_refused_with_the_mend(self):
        self.fails(1, "gl-int has ecb and ctr both ways", "lab", "encrypt", "--backend", "opengl", "-m", "cbc",
                   "--key-file", "key128", "key192", "-o", "out")


class Refusals(CliTest):
    """With a driver or without one."""

    def setUp(self):
        super().setUp()
        self.write("plain", data(100))

    def test_bad_input(self):
        for status, word, *arguments in ((1, "opengl:4000", "--backend", "opengl", "--device", "4000"),
                                         (2, "add --backend opengl", "--form", "gl-float"),
                                         (2, "see daelstrom lab encrypt --help", "--bckend", "opengl")):
            self.fails(status, word, "lab", "encrypt", "--key-file", "key128", "plain", "-o", "out", *arguments)

    def test_the_program_names_the_lab(self):
        for command in "encrypt", "decrypt", "seal":
            for arguments in ["--backend", "opengl"], ["--backend", "opengl:0"], ["--form", "gl-int"]:
                self.fails(2, LAB, command, "--key-file", "key128", "plain", "-o", "out", *arguments)
        self.fails(2, LAB, "explain", "--size", "64M", "--backend", "opengl")
        self.fails(2, LAB, "encrypt", "--key-file", "key128", "plain", "-o", "out",
                   env=dict(os.environ, DAELSTROM_BACKEND="opengl"))

    def test_only_the_lab_has_it(self):
        for command in "encrypt", "decrypt":
            self.assertNotRegex(self.ok(command, "--help").decode(), "opengl|gl-int")
            shown = self.ok("lab", command, "--help").decode()
            self.assertIn(f"Usage: daelstrom lab {command} [OPTIONS] [INPUT]\n", shown)
            self.assertRegex(shown, r"auto\|.*\|opengl")
            self.assertIn("gl-float", shown)
            for line in shown.split("\nExamples:\n")[0].splitlines():
                self.assertLessEqual(len(line), 100, line)

        def listed(*command):
            return [row["name"].partition(":")[0] for row in json.loads(self.ok(*command, "--json"))]
        ours, labs = listed("devices"), listed("lab", "devices")
        self.assertEqual(labs[:len(ours)], ours)
        self.assertEqual(set(labs[len(ours):]), {"opengl"})
