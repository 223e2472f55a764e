# SPDX-License-Identifier: Apache-2.0
"""`daelstrom devices`: one line for each backend, also where asking a driver ends the process that asks; and several
of them on one file."""
import json
import os
import re

from harness import CliTest, data, sanitized

USAGE = 2


class Devices(CliTest):
    def listed(self, **environment):
        ran = self.run_program("devices", "--json", env=dict(os.environ, **environment))
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        return {row["name"]: row for row in json.loads(ran.stdout)}

    def test_every_backend_has_a_line(self):
        rows = self.listed()
        for kind in "reference", "openssl", "cpu", "cuda", "opencl":
            self.assertTrue(any(name.partition(":")[0] == kind for name in rows), (kind, rows))
        self.assertFalse([name for name in rows if name.startswith("opengl")])  # the lab's
        for row in rows.values():
            self.assertTrue(row["summary"])
            self.assertTrue(row["description"] if row["present"] else row["missing"], row)

    def test_a_driver_that_aborts_becomes_a_line(self):
        before = self.listed()
        if not any(name.startswith("opencl") and row["present"] for name, row in before.items()) or sanitized():
            self.skipTest("there is no OpenCL loader here whose drivers could misbehave")
        rows = self.listed(OCL_ICD_FILENAMES=os.environ["DAELSTROM_BAD_DRIVER"],
                           OCL_ICD_VENDORS=os.environ["DAELSTROM_BAD_DRIVER"])
        self.assertFalse(rows["opencl"]["present"])
        self.assertIn("Aborted", rows["opencl"]["missing"])
        others = {name for name in before if not name.startswith("opencl")}
        self.assertEqual({name for name in rows if name != "opencl"}, others)


class Together(CliTest):
    """An OpenCL device, PoCL if nothing else, and the host on one file, against the host alone."""

    def setUp(self):
        super().setUp()
        if sanitized() or not any(row["name"] == "opencl:0" and row["present"]
                                  for row in json.loads(self.ok("devices", "--json"))):
            self.skipTest("there is no OpenCL device here (pocl-opencl-icd), or a sanitizer that it does not bear")
        self.plain = data(2_000_003)
        self.write("plain", self.plain)
        self.key = ("--key-file", "key256")

    def done(self, *arguments, **options):
        """Runs the program, and returns what it says of who did it."""
        done = json.loads(self.ok(*arguments, "-f", "--json", **options))
        members = done["backend"].split("+")
        self.assertLessEqual(set(members), {"opencl:0", "openssl", "reference"}, done)
        self.assertEqual("percent" in done, len(members) > 1, done)
        if len(members) > 1:
            self.assertEqual(list(done["percent"]), members)
            self.assertAlmostEqual(sum(done["percent"].values()), 100, delta=1)
        return done

    def test_files_are_those_of_the_host_alone(self):
        iv = ("--iv", "ff" * 16)
        for mode in "ctr", "cbc":
            alone = self.ok("encrypt", "--mode", mode, *iv, *self.key, "--backend", "openssl", "plain")
            self.done("encrypt", "--mode", mode, *iv, *self.key, "--device", "opencl:0,openssl", "plain", "-o", "made")
            self.assertEqual(self.read("made"), alone, mode)
            self.done("decrypt", "--mode", mode, *iv, *self.key, "--device", "opencl:0,openssl", "made", "-o", "back")
            self.assertEqual(self.read("back"), self.plain, mode)

    def test_sealed_files_open_by_the_host_alone_and_the_other_way_round(self):
        together = ("--backend", "opencl", "--device", "0,openssl")
        self.done("seal", *self.key, *together, "plain", "-o", "made")
        self.assertEqual(self.ok("open", *self.key, "--backend", "openssl", "made", "-o", "-"), self.plain)
        self.ok("seal", *self.key, "--backend", "openssl", "plain", "-f", "-o", "made")
        self.done("open", *self.key, *together, "made", "-o", "back")
        self.assertEqual(self.read("back"), self.plain)
        self.write("made", self.read("made")[:-1])
        self.fails(1, "is not authentic", "open", *self.key, *together, "made", "-o", "never")

    def test_each_has_a_part_and_is_named(self):
        self.write("large", bytes(4 << 20))
        encrypt = ("encrypt", *self.key, "--device", "opencl:0,reference", "large")  # a host that is slow, too
        self.assertEqual(self.done(*encrypt, "-o", "made")["backend"], "opencl:0+reference")
        self.assertEqual(self.ok("decrypt", *self.key, "--backend", "openssl", "made", "-o", "-"), bytes(4 << 20))
        ran = self.run_program(*encrypt, "-o", "/dev/null", "--progress")
        self.assertRegex(ran.stderr.decode().splitlines()[-1], r" on opencl:0 \d+% and reference \d+%")

    def test_every_way_of_naming_them(self):
        small = ("encrypt", *self.key, "plain", "-o", "made")
        self.done(*small, "--backend", "opencl:0+openssl")
        self.done(*small, env=dict(os.environ, DAELSTROM_BACKEND="opencl:0+openssl"))
        self.assertEqual(self.done(*small, "--device", "opencl:0")["backend"], "opencl:0")
        self.assertEqual(self.done(*small, "--device", "openssl")["backend"], "openssl")
        self.ok(*small, "-f", "--device", "all")
        self.ok(*small, "-f", "--backend", "all")
        self.assertTrue(self.ok("explain", "--size", "64M", "--backend", "opencl", "--device", "all"))
        self.fails(USAGE, "has 'opencl:0' twice", *small, "-f", "--device", "opencl:0,opencl:0")
        self.fails(USAGE, "form 'tables=1' is for one backend", *small, "-f", "--device", "opencl:0,openssl", "--form",
                   "tables=1")

    def test_explain_says_who_would_do_how_much(self):
        lines = self.ok("explain", "--size", "1G", "--device", "opencl:0,openssl").decode().splitlines()
        head = next(line for line in lines if line.startswith("backend "))
        rows = [line for line in lines if re.match(r"(opencl:0|openssl|opencl:0\+openssl) ", line)]
        self.assertEqual({row.split()[0] for row in rows}, {"opencl:0", "openssl", "opencl:0+openssl"})
        for row in rows:
            self.assertRegex(row[:head.index("threads") + len("threads")], r" \d+\Z")  # below their headings
            shares = re.search(r"; opencl:0 (\d+)% and openssl (\d+)%\Z", row)
            self.assertEqual(bool(shares), row.startswith("opencl:0+openssl "), row)
            if shares:
                self.assertAlmostEqual(int(shares[1]) + int(shares[2]), 100, delta=1)
