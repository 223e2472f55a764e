# SPDX-License-Identifier: Apache-2.0
"""`daelstrom lab` as a user meets it: lab_cli_test.py PROGRAM [CLASS ...]."""
import copy
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


def lab(*arguments):
    return subprocess.run([PROGRAM, "lab", *map(str, arguments)], capture_output=True, text=True, timeout=240)


class Lab(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_study(self, name, *options):
        ran = lab("run", name, "--quick", "--out", self.folder / "run", *options)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertIn(f"suite {name}", ran.stdout)
        document = json.loads((self.folder / "run" / f"{name}.json").read_text())
        self.assertEqual((document["suite"], document["format"], document["quick"]), (name, 1, 1))
        for field in "machine", "date", "version", "commit", "compiler", "openssl", "skipped", "load_before":
            self.assertIn(field, document)
        for row in document["rows"]:
            self.assertEqual(len(row["series"]), row["samples"], row)
            self.assertGreater(row["seconds"], 0)
            self.assertLessEqual(row["gbps"]["min"], row["gbps"]["median"])
            self.assertLessEqual(row["gbps"]["median"], row["gbps"]["max"])
        return document


class Program(Lab):
    def test_list(self):
        ran = lab("list")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        names = [line.split()[0] for line in ran.stdout.splitlines()]
        self.assertEqual(set(names), {"placement", "granularity", "sizes", "overlap", "devices", "files", "energy", "packets",
                                      "generations", "picture", "timing"})

    def test_picture(self):
        document = self.run_study("picture")
        repeats = {row["mode"]: row.get("repeats") for row in document["rows"]}
        self.assertGreater(repeats["ecb"], 50)
        self.assertEqual((repeats["cbc"], repeats["ctr"]), (0, 0))
        if "picture" in document:
            head = (self.folder / "run" / document["picture"]).read_bytes()[:24]
            self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
            width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
            self.assertEqual(width, 4 * height)
        else:
            self.assertTrue(any("libpng" in line for line in document["skipped"]))

    def test_files(self):
        document = self.run_study("files")
        here = [row for row in document["rows"] if row["program"] == "daelstrom encrypt"]
        self.assertEqual(len({row["size"] for row in here}), 8)
        self.assertEqual({row["data"] for row in here}, {"ramp", "constant", "random"})
        for row in document["rows"]:
            self.assertEqual(row["study_part"], "no cipher" if "read" in row["program"] or "none" in row["program"]
                             else "encrypted", row)
            self.assertGreater(row["cpu_seconds"], 0)
            self.assertGreater(row["load"], 0)
        # Nothing but the document is left.
        self.assertEqual([path.name for path in (self.folder / "run").iterdir()], ["files.json"])

    def test_energy_is_measured_or_said_to_be_absent(self):
        document = self.run_study("energy")
        for part, joules, word in ("device", "gpu_joules_per_gb", "GPU"), ("host", "cpu_joules_per_gb", "processor"):
            rows = [row for row in document["rows"] if row["study_part"] == part]
            for row in rows:
                self.assertGreater(row[joules], 0)
            self.assertTrue(rows or any(word in line for line in document["skipped"]), document["skipped"])

    def test_scale(self):
        document = self.run_study("sizes", "--scale", "1024")
        self.assertEqual(document["scale"], 1024)
        self.assertLessEqual(max(row["size"] for row in document["rows"]), 1 << 20)

    def test_compare(self):
        before = self.run_study("picture")
        after = copy.deepcopy(before)
        after["commit"] = "another"
        for figure in "median", "min", "max":
            after["rows"][0]["gbps"][figure] = 10 * before["rows"][0]["gbps"]["max"]
        after["rows"][1]["size"] += 16
        (self.folder / "after.json").write_text(json.dumps(after))
        ran = lab("compare", self.folder / "run", self.folder / "after.json")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertIn("not the same: commit\n", ran.stdout)
        rows = [line for line in ran.stdout.splitlines() if "GB/s" in line]
        self.assertEqual(["*" in line for line in rows], [True, False], ran.stdout)
        self.assertIn("1 rows only in the first", ran.stdout)
        self.assertIn("1 rows only in the second", ran.stdout)

    def test_exhibits_behind_options(self):
        for behind, words in (["devices", "--json"], ["--json", "devices"]), (["devices"], ["--", "devices"]):
            with self.subTest(words=words):
                ran = lab(*words)
                self.assertEqual((ran.returncode, ran.stderr, ran.stdout), (0, "", lab(*behind).stdout))
                self.assertIn("opengl", ran.stdout)
        help_text = lab("encrypt", "--help").stdout
        self.assertIn("gl-float", help_text)
        self.assertEqual(lab("--help", "encrypt").stdout, help_text)
        # What the lab's own options take is none.
        for words in (["--out", "devices", "list"], ["-o", "aes", "list"]):
            with self.subTest(words=words):
                ran = lab(*words)
                self.assertEqual(ran.returncode, 2)
                self.assertIn("leave", ran.stderr)
        # An exhibit tells of what it has not itself.
        ran = lab("-q", "devices")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertNotIn("there are list, run", ran.stderr)

    def test_without_the_labs_program(self):
        alone = self.folder / "daelstrom"
        shutil.copy(PROGRAM, alone)
        for arguments in ["lab", "list"], ["lab", "aes", "--help"], ["aes", "-e", "-p", "secret", "-i", "-", "-o", "-"]:
            with self.subTest(arguments=arguments):
                ran = subprocess.run([alone, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
                self.assertEqual((ran.returncode, ran.stdout), (1, ""), ran.stderr)
                self.assertIn("is not there; build it: ", ran.stderr)
                self.assertNotIn("secret", ran.stderr)

    def test_faults_name_the_thing(self):
        wrong = self.folder / "wrong.json"
        wrong.write_text('{"suite": "picture", "rows": [{"gbps": {"median": 1}}]}')
        (self.folder / "empty").mkdir()
        for status, word, arguments in [
                (2, "abacus", ["run", "abacus"]),
                (2, "which study", ["run"]),
                (2, "juggle", ["juggle"]),
                (2, "takes no names", ["list", "picture"]),
                (2, "leave them out", ["list", "--quick"]),
                (2, "leave them out", ["list", "--scale", "2"]),
                (2, "two runs", ["compare", wrong]),
                (1, "nowhere", ["compare", self.folder / "nowhere", wrong]),
                (2, "one folder", ["report", "-o", wrong]),
                (2, "give -o", ["report", self.folder]),
                (2, "leave it out", ["list", "-o", wrong]),
                (2, "not median", ["compare", wrong, wrong]),
                (2, "there is no document", ["compare", self.folder / "empty", wrong]),
                (1, "--out", ["run", "picture", "--quick", "--out", wrong])]:
            with self.subTest(arguments=arguments):
                ran = lab(*arguments)
                self.assertEqual((ran.returncode, ran.stdout), (status, ""), ran.stderr)
                self.assertIn(word, ran.stderr)
                self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)


class Report(Lab):
    """Where there is no Python package, or no Python. What the report says is tested with the package."""

    def setUp(self):
        super().setUp()
        # A copy of the program that no build lies around, and a Python that has the standard library alone.
        self.program = self.folder / "bin" / "daelstrom-lab"
        self.program.parent.mkdir()
        shutil.copy(pathlib.Path(PROGRAM).with_name("daelstrom-lab"), self.program)
        (self.folder / "path").mkdir()

    def report(self):
        return subprocess.run([self.program, "report", "run", "-o", "page"], cwd=self.folder, capture_output=True, text=True,
                              env={"PATH": str(self.folder / "path"), "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})

    def test_without_python(self):
        ran = self.report()
        self.assertEqual((ran.returncode, ran.stdout), (1, ""), ran.stderr)
        self.assertIn("needs Python", ran.stderr)

    def test_without_the_package(self):
        python = self.folder / "path" / "python3"
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -E -S "$@"\n')
        python.chmod(0o755)
        # Nothing is taken from the folder in which somebody happens to be.
        (self.folder / "daelstrom_lab").mkdir()
        (self.folder / "daelstrom_lab" / "__init__.py").touch()
        (self.folder / "daelstrom_lab" / "__main__.py").write_text("raise SystemExit(5)")
        ran = self.report()
        self.assertEqual((ran.returncode, ran.stdout), (1, ""), ran.stderr)
        self.assertIn("has no 'daelstrom_lab'", ran.stderr)
        self.assertIn("--target python_package", ran.stderr)


class Generations(Lab):
    def test_generations(self):
        report = self.run_study("generations", "--repeats", "1")
        found = {}
        for row in report["rows"]:
            self.assertEqual(row["measure"], "call" if row["where"] == "host" else "kernel", row)
            if row["where"] != "device" or row.get("data"):
                self.assertEqual((row["mode"], row["direction"], row["bits"]), ("ecb", "encrypt", 128))
                found.setdefault((row["where"], row["backend"], row.get("isa")), []).append(row.get("data", "random"))
        if ("host", "cpu", None) not in found:
            self.assertTrue(any(line.startswith("kinds of data,") for line in report["skipped"]), report["skipped"])
        for kinds in found.values():  # of the cpu twice, with all threads and with one
            self.assertEqual(set(kinds) - {"random"}, {"ramp", "constant"}, found)
        if ("host", "opengl", "gl-int") in found:
            for form in "gl-int", "gl-float":
                self.assertCountEqual(found["host", "opengl", form], ["random", "ramp", "constant"])


class Kernels(Lab):
    def test_placement(self):
        document = self.run_study("placement")
        if not document["rows"]:
            self.assertTrue(any(line.startswith("opencl") for line in document["skipped"]), document["skipped"])
            self.skipTest("this machine has no OpenCL")
        own = {row["kernel"]: row for row in document["rows"] if row["study_part"] == "own kernels"}
        thirteen = {str(number) for number in range(1, 14)}
        self.assertTrue(thirteen <= set(own), own.keys())
        for rank in "rank", "rank_2017":
            self.assertEqual({own[kernel][rank] for kernel in thirteen}, set(range(1, 14)))
        self.assertEqual(own["3"]["rank_2017"], 1)
        self.assertEqual(own["13"]["bytes_per_thread"], 1)
        for later in ("persistent grid", "banks, 1 table", "banks, 2 tables", "computed S-box", "bitsliced",
                      "counter mode, shared", "counter caching, shared"):
            self.assertIn(later, own)
        self.assertEqual({row["mode"] for row in document["rows"] if row["study_part"] == "the library"},
                         {"ecb", "ctr"})

    def test_overlap(self):
        document = self.run_study("overlap")
        if not document["rows"]:
            self.assertTrue(any(line.startswith("opencl") for line in document["skipped"]), document["skipped"])
            self.skipTest("this machine has no OpenCL")
        streams = [row for row in document["rows"] if row["study_part"] == "streams"]
        self.assertEqual({(row["where"], row["ways"]) for row in streams},
                         {(where, ways) for where in ("pinned", "pageable") for ways in ("in", "out", "both")})
        self.assertEqual({row["streams"] for row in streams}, {1, 2})
        for row in streams:
            self.assertFalse(row["streams"] == 1 and "hidden" in row, row)

    def test_devices(self):
        document = self.run_study("devices")
        if not document["rows"]:
            self.assertTrue(any(line.startswith("opencl") for line in document["skipped"]), document["skipped"])
            self.skipTest("this machine has no OpenCL")
        for words in ("GPU", "NVML"), ("processor",):
            kind = "gpu" if "GPU" in words else "cpu"
            self.assertTrue(all(row.get(f"{kind}_joules_per_gb", 0) > 0 for row in document["rows"])
                            or any(line.startswith("energy of ") and any(word in line for word in words)
                                   for line in document["skipped"]), document["skipped"])
        for backend in {row["backend"] for row in document["rows"]}:
            self.assertIn(backend.rsplit("+", 1)[1], ("cpu", "openssl"))
            for mode in "ctr", "gcm":
                rows = [row for row in document["rows"] if (row["backend"], row["mode"]) == (backend, mode)]
                self.assertEqual([row.get("cpu_share", 0) for row in rows if row["study_part"] == "fixed share"], [0, 50, 100])
                scheduler = [row for row in rows if row["study_part"] == "scheduler"]
                self.assertEqual(len(scheduler), 1)
                self.assertTrue(0 <= scheduler[0]["cpu_percent"] <= 100)
                best = max(row["gbps"]["median"] for row in rows if row["study_part"] == "fixed share")
                self.assertAlmostEqual(scheduler[0]["of_best"], scheduler[0]["gbps"]["median"] / best, places=3)

    def test_timing(self):
        document = self.run_study("timing")
        control = [row for row in document["rows"] if row["study_part"] == "control"]
        self.assertEqual([row["must_leak"] for row in control], [1])
        if not control[0]["leaks"]:
            self.assertTrue(any("must be found" in line for line in document["skipped"]), document["skipped"])
        host = {row["backend"] for row in document["rows"] if row["study_part"] == "host"}
        self.assertTrue({"openssl", "reference"} <= host, host)
        for row in document["rows"]:
            self.assertEqual(row["leaks"], int(row["t"] >= row["threshold"]), row)
            self.assertGreater(row["difference"], -1, row)
        # To tell the longer from the shorter is what the control is for.
        self.assertNotEqual(control[0]["difference"], 0)


if __name__ == "__main__":
    unittest.main()
