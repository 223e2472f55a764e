# SPDX-License-Identifier: Apache-2.0
"""What the tests of the program share: a scratch folder, the program, openssl, and what a good failure is."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["DAELSTROM"]
SOURCE = pathlib.Path(os.environ["DAELSTROM_SOURCE"])
MODES = ("ecb", "cbc", "cfb", "ofb", "ctr")
CHUNK = 4 << 20  # bytes that the program works on at a time (apps/daelstrom/cipher_job.cpp)
IV = "fffffffffffffffffffffffffffffffa"  # as a counter, it carries through every byte after 6 blocks


def data(size):
    """Bytes that repeat every 251, so that swapped blocks or chunks are seen."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def key(bits):
    return bytes(range(0x40, 0x40 + bits // 8))


def iv_options(mode, iv=IV):
    """The IV as the program and as openssl take it; ECB has none."""
    return ([], []) if mode == "ecb" else (["--iv", iv], ["-iv", iv])


def openssl(*arguments, given=b""):
    return subprocess.run(["openssl", *map(str, arguments)], input=given, check=True, capture_output=True).stdout


def openssl_enc(mode, bits, given, *, padding=True):
    return openssl("enc", f"-aes-{bits}-{mode}", "-K", key(bits).hex(), *iv_options(mode)[1],
                   *([] if padding else ["-nopad"]), given=given)


def processor_time():
    """Seconds that the programs so far have worked: a busy machine makes them wait, but not work longer."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sanitized():
    """Whether the program is built with a sanitizer, which wants /proc and terabytes of address space."""
    # g++ links the sanitizer's library, clang puts it into the program.
    return b"__asan_init" in pathlib.Path(PROGRAM).read_bytes() or \
        b"__tsan_init" in pathlib.Path(PROGRAM).read_bytes()


class CliTest(unittest.TestCase):
    maxDiff = 400

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="daelstrom-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.secrets = []
        for bits in (128, 192, 256):
            self.write(f"key{bits}", key(bits))
            self.secrets += [key(bits), key(bits).hex().encode()]

    def write(self, name, content):
        (self.dir / name).write_bytes(content)
        (self.dir / name).chmod(0o600)  # secrets that others can read draw a warning
        return name

    def read(self, name):
        return (self.dir / name).read_bytes()

    def listing(self):
        """Every file of the scratch folder with its content (or kind), to see that nothing was touched."""
        return {str(path.relative_to(self.dir)):
                path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else path.lstat().st_mode
                for path in self.dir.rglob("*")}

    def run_program(self, *arguments, given=b"", **options):
        if "stdin" not in options:
            options["input"] = given
        options.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.dir, timeout=120,
                              stderr=subprocess.PIPE, **options)

    def ok(self, *arguments, **options):
        """Runs the program, which must succeed and say nothing; returns its standard output."""
        ran = self.run_program(*arguments, **options)
        self.assertEqual((ran.returncode, ran.stderr), (0, b""), arguments)
        return ran.stdout

    def fails(self, status, pattern, *arguments, **options):
        """Runs the program, which must fail as it should: this exit status, one line of this pattern, no
        secret in it, and nothing written."""
        before = self.listing()
        ran = self.run_program(*arguments, **options)
        self.check_failure(status, pattern, ran.returncode, ran.stderr, arguments)
        self.assertFalse(ran.stdout, arguments)
        self.assertEqual(self.listing(), before, arguments)

    def check_failure(self, status, pattern, returncode, stderr, arguments=()):
        text = stderr.decode()
        self.assertEqual(returncode, status, (arguments, text))
        self.assertRegex(text, r"\Adaelstrom: [^\n]+\n\Z", arguments)
        self.assertRegex(text, pattern, arguments)
        for secret in self.secrets:
            self.assertNotIn(secret, stderr, arguments)
