# SPDX-License-Identifier: Apache-2.0
"""`daelstrom bench` as a user meets it: bench_cli_test.py PROGRAM [CLASS ...]."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
SMALL = ["--backend", "openssl", "--mode", "ctr", "--bits", "192", "--size", "4K", "--repeats", "2"]


def bench(*arguments):
    return subprocess.run([PROGRAM, "bench", *arguments], capture_output=True, text=True, timeout=120)


class Bench(unittest.TestCase):
    def test_json_on_standard_output_and_nothing_beside_it(self):
        ran = bench(*SMALL, "--json", "-")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        rows = json.loads(ran.stdout)["rows"]
        self.assertEqual({row["where"] for row in rows}, {"cache", "host"})
        for row in rows:
            self.assertEqual((row["backend"], row["mode"], row["bits"], row["size"], row["samples"]),
                             ("openssl", "ctr", 192, 4096, 2))

    def test_what_no_cache_holds_is_not_said_to_be_in_one(self):
        ran = bench(*SMALL[:-4], "--size", "2M", "--size", "4K", "--repeats", "2", "--json", "-")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        rows = json.loads(ran.stdout)["rows"]
        self.assertEqual({(row["where"], row["size"]) for row in rows},
                         {("cache", 4096), ("host", 4096), ("host", 2 << 20)})

    def test_table_and_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "figures.json")
            ran = bench(*SMALL, "--json", str(path))
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertIn("ctr-192", ran.stdout)
            self.assertTrue(json.loads(path.read_text())["rows"])
            path.write_text("precious")
            ran = bench(*SMALL, "--json", str(path))
            self.assertEqual((ran.returncode, path.read_text()), (1, "precious"))
            self.assertIn("exists; -f overwrites it", ran.stderr)
            self.assertEqual(bench(*SMALL, "--json", str(path), "-f").returncode, 0)
            self.assertTrue(json.loads(path.read_text())["rows"])

    def test_gcm_alone(self):
        ran = bench("--backend", "openssl", "--mode", "gcm", "--bits", "128", "--repeats", "2", "--scale", "64",
                    "--json", "-")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        rows = json.loads(ran.stdout)["rows"]
        self.assertEqual({(row["mode"], row["keys"]) for row in rows}, {("gcm", 1)})
        self.assertEqual({(row["where"], row["measure"], row["size"], row["messages"]) for row in rows},
                         {("cache", "call", 16384, 1), ("cache", "call", 1024, 256), ("host", "call", 1 << 20, 2)})

    def test_generations_are_the_labs(self):
        ran = bench("--suite", "generations")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("daelstrom lab run generations", ran.stderr)

    def test_packets_are_one_comparison(self):
        for arguments in ["--backend", "cpu"], ["--mode", "ctr"], ["--threads", "1"]:
            with self.subTest(arguments=arguments):
                ran = bench("--suite", "packets", *arguments)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""))
                self.assertIn("leave out --backend", ran.stderr)
        ran = bench("--suite", "packets", "--scale", "256", "--bits", "128", "--size", "512", "--repeats", "3",
                    "--json", "-")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        rows = [row for row in json.loads(ran.stdout)["rows"] if row["where"] == "packets"]
        self.assertEqual({(row["bits"], row["size"]) for row in rows}, {(128, 512)})
        self.assertIn("memcpy", {row["backend"] for row in rows})

    def test_devices_are_the_hosts_threads_where_there_are_none(self):
        for word, arguments in ("xts", ["--mode", "xts"]), ("--form", ["--form", "sse"]):
            with self.subTest(arguments=arguments):
                ran = bench("--suite", "devices", *arguments)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""))
                self.assertIn(word, ran.stderr)
        ran = bench("--suite", "devices", "--backend", "openssl", "--scale", "256", "--repeats", "2", "--json", "-")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        report = json.loads(ran.stdout)
        self.assertEqual({(row["mode"], row["bits"], row["backend"], row["where"]) for row in report["rows"]},
                         {("ctr", 256, "openssl", "host"), ("gcm", 128, "openssl", "host")})
        self.assertTrue(any("several devices" in line for line in report["skipped"]), report["skipped"])

    def test_faults_name_the_thing_and_leave_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            nowhere = str(pathlib.Path(folder, "no", "figures.json"))
            for status, word, arguments in [
                    (2, "abacus", ["--backend", "abacus"]),
                    (2, "cwc", ["--mode", "cwc"]),
                    (2, "huge", ["--suite", "huge"]),
                    (2, "avx9", ["--form", "avx9"]),
                    (2, "1000", ["--size", "1000"]),
                    (2, "129", ["--bits", "129"]),
                    (1, "no/figures.json", [*SMALL, "--json", nowhere])]:
                with self.subTest(arguments=arguments):
                    ran = bench(*arguments)
                    self.assertEqual(ran.returncode, status, ran.stderr)
                    self.assertIn(word, ran.stderr)
                    self.assertEqual(ran.stdout, "")
                    self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


if __name__ == "__main__":
    unittest.main()
