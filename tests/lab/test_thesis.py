# SPDX-License-Identifier: Apache-2.0
"""`daelstrom aes`: the key is the leading bytes of SHA-256 of the password; a random IV stands in front."""
import hashlib
import os
import pathlib
import re
import subprocess

from harness import PROGRAM, CliTest, data, openssl

PASSWORD = "tr0ub4dor&3 zebra"
WARNING = rb"\Adaelstrom: warning: a password on a command line can be seen [^\n]+\n\Z"


class Thesis(CliTest):
    def setUp(self):
        super().setUp()
        self.secrets.append(PASSWORD.encode())
        self.write("plain", data(1000))

    def aes(self, *arguments):
        ran = self.run_program("aes", *arguments)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stderr, WARNING)
        self.assertNotIn(PASSWORD.encode(), ran.stderr + ran.stdout)

    def test_openssl_decrypts_it_with_the_hash_as_key(self):
        digest = hashlib.sha256(PASSWORD.encode()).digest()
        for mode in ("ECB", "CTR", "CBC"):
            for bits in (128, 192, 256):
                self.aes("-e", "-m", mode, "-l", bits, "-p", PASSWORD, "-i", "plain", "-o", "out", "-f")
                out = self.read("out")
                iv, cipher = (b"", out) if mode == "ECB" else (out[:16], out[16:])
                plain = openssl("enc", "-d", f"-aes-{bits}-{mode.lower()}", "-K", digest[:bits // 8].hex(),
                                *(["-iv", iv.hex()] if iv else []), given=cipher)
                self.assertEqual(plain, data(1000), (mode, bits))
                self.aes("-d", "-m", mode, "-l", bits, "-p", PASSWORD, "-i", "out", "-o", "again", "-f")
                self.assertEqual(self.read("again"), data(1000), (mode, bits))

    def test_every_way_to_write_the_password(self):
        for number, way in enumerate((["-p", PASSWORD], ["-p" + PASSWORD], ["--password", PASSWORD],
                                      ["--password=" + PASSWORD])):
            self.aes("-e", *way, "-i", "plain", "-o", f"out{number}")
            self.aes("-dp" + PASSWORD, "-i", f"out{number}", "-o", f"again{number}")
            self.assertEqual(self.read(f"again{number}"), data(1000), way)

    def test_the_password_is_wiped_from_the_arguments(self):
        program = subprocess.Popen([PROGRAM, "aes", "-e", "-p", PASSWORD, "-i", "-", "-o", "-"], cwd=self.dir,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        program.stdout.read(16)  # the IV: the password has been read
        try:
            shown = pathlib.Path(f"/proc/{program.pid}/cmdline").read_bytes()
        except PermissionError:
            shown = None  # the program has shut this door altogether
        program.communicate(b"x")
        self.assertEqual(program.returncode, 0)
        if shown is not None:
            self.assertIn(b"\0-p\0" + b"x" * len(PASSWORD) + b"\0", shown)

    def test_the_example_runs(self):
        self.write("notes.txt", data(12345))
        (example,) = re.findall(r"^  \$ (.+)", self.ok("aes", "--help").decode(), re.M)
        subprocess.run(["bash", "-euo", "pipefail", "-c", example], cwd=self.dir, check=True, capture_output=True,
                       env=dict(os.environ, PATH=f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"))
        self.assertEqual(self.read("notes.back"), data(12345))

    def test_quiet(self):
        self.ok("aes", "-e", "-q", "-p", PASSWORD, "-i", "plain", "-o", "out")

    def test_bad_input(self):
        files = ["-i", "plain", "-o", "out"]
        self.fails(2, "say either -e .* or -d", "aes", "-p", PASSWORD, *files)
        self.fails(2, "say either -e .* or -d", "aes", "-e", "-d", "-p", PASSWORD, *files)
        self.fails(2, "aes takes ECB, CTR and CBC", "aes", "-e", "-m", "OFB", "-p", PASSWORD, *files)
        self.fails(2, "unknown mode 'GCM'", "aes", "-e", "-m", "GCM", "-p", PASSWORD, *files)
        self.fails(2, "--length", "aes", "-e", "-l", "512", "-p", PASSWORD, *files)
        self.fails(2, "--password", "aes", "-e", *files)
        self.fails(2, "password is empty", "aes", "-e", "-p", "", *files)
        self.fails(2, "--input", "aes", "-e", "-p", PASSWORD, "-o", "out")
