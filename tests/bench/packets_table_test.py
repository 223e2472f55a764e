# SPDX-License-Identifier: Apache-2.0
"""scripts/packets_table: that the page holds the result's figures, copes with none, and that --check notices."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
loader = importlib.machinery.SourceFileLoader("packets_table", str(ROOT / "scripts/packets_table"))
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("packets_table", loader))
loader.exec_module(script)

PAGE = "# A page\n\n" + script.MARKERS[0] + "old\n" + script.MARKERS[1] + "\nThe rest.\n"


def row(backend, gbps, **fields):
    base = {"backend": backend, "bits": 128, "size": 1024, "where": "packets", "working_set": script.HOT, "threads": 1,
            "gbps": {"median": gbps, "min": gbps, "max": gbps}, "ns": 1024 / gbps, "cycles": 2600 / gbps,
            "mpps": 1000 * gbps / 1024}
    return {field: value for field, value in {**base, **fields}.items() if value is not None}


AGAINST = {"ceiling": {"name": "memcpy", "gbps": 100.0}, "ratio": 0.17,
           "against": [{"name": "OpenSSL EVP", "gbps": 3.3, "ratio": 5.31},
                       {"name": "libipsec-mb", "gbps": 8.5, "ratio": 2.06}]}
FILLED = "daelstrom, keystream by cuda"
ROWS = [row("memcpy", 100.0), row("OpenSSL EVP", 3.3), row("libipsec-mb", 8.5), row(FILLED, 17.5, hits=0.96, partial=0.01, **AGAINST),
        row(FILLED, 6.6, size=None, mix="imix", wasted=0.17), row(FILLED, 1.0, working_set=4 << 20),
        row(FILLED, 16.0, bits=256, **AGAINST),
        row(FILLED, 12.3, where="budgets", budget=1 << 20), row(FILLED, 8.3, where="budgets", budget=64 << 20),
        row(FILLED, 31.0, where="cores", threads=2), row("libipsec-mb", 17.0, where="cores", threads=2),
        row(FILLED, 9.9, where="arrivals", sas=1000, arrival="losses", hits=0.75, partial=0.05),
        row(FILLED, 1.1, where="latency", load=10, p50_ns=140.4, p99_ns=1234.5, p999_ns=99000.0),
        row("AES, LibTomCrypt", 0.4, where="parts", size=1024)]
RESULT = {"machine": {"cpu": "Some CPU", "cores": 16, "gpu": "Some GPU"}, "version": "0.1.0",
          "date": "2026-01-02T03:04:05Z", "rows": ROWS}


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page, self.result = (pathlib.Path(folder.name, name) for name in ("page.md", "packets.json"))
        self.page.write_text(PAGE)
        self.result.write_text(json.dumps(RESULT))

    def run_script(self, *arguments):
        self.errors = io.StringIO()
        with contextlib.redirect_stderr(self.errors):
            return script.main(["--page", str(self.page), *arguments])

    def test_figures_are_the_results(self):
        self.assertEqual(self.run_script(str(self.result)), 0)
        text = self.page.read_text()
        for line in [f"| {FILLED} | 17.5 | 6.60 | 58.5 | 149 | 97% | 5.31 | 2.06 |  |",
                     "| Keystream in flight, GB/s at 1024 bytes (from keystream) | 1 MiB | 64 MiB |",
                     f"| {FILLED}, AES-128 | 12.3 | 8.30 |",
                     "| libipsec-mb, AES-128 | 17.0 |",
                     f"| {FILLED}, losses | 9.90 (80%) |",
                     f"| {FILLED}, AES-128, 1024 bytes | 140 / 1,234 / 99,000 |",
                     "| AES, LibTomCrypt | 2,560 | 6,500 |  |  |"]:
            self.assertIn(line + "\n", text)
        self.assertIn("one Some GPU with 16 cores of Some CPU", text)
        self.assertIn("17% was not needed", text)
        self.assertTrue(text.startswith("# A page\n") and text.endswith("\nThe rest.\n"))
        self.assertNotIn("old", text)
        for before, line in zip(text.splitlines(), text.splitlines()[1:]):
            if before.startswith("|") and line.startswith("|"):
                self.assertEqual(before.count("|"), line.count("|"), line)

    def test_check_passes_after_writing_and_fails_after_a_change(self):
        self.assertEqual(self.run_script("--check", str(self.result)), 1)
        self.assertEqual(self.page.read_text(), PAGE)
        self.run_script(str(self.result))
        self.assertEqual(self.run_script("--check", str(self.result)), 0)
        self.page.write_text(self.page.read_text().replace("| 17.5 |", "| 27.5 |"))
        self.assertEqual(self.run_script("--check", str(self.result)), 1)
        self.assertIn("page.md", self.errors.getvalue())

    def test_faults_are_told_in_one_line_and_change_nothing(self):
        self.assertEqual(self.run_script(str(self.result.with_name("none.json"))), 1)
        self.result.write_text(json.dumps({**RESULT, "rows": []}))
        self.assertEqual(self.run_script(str(self.result)), 1)
        self.assertIn("none of the rows", self.errors.getvalue())
        self.assertEqual(self.page.read_text(), PAGE)
        self.page.write_text("no markers")
        self.result.write_text(json.dumps(RESULT))
        self.assertEqual(self.run_script(str(self.result)), 1)
        self.assertIn("packets:begin", self.errors.getvalue())


class Page(unittest.TestCase):
    def test_the_page_has_what_the_committed_result_says_or_nothing(self):
        self.assertEqual(script.main(["--check"]), 0)


if __name__ == "__main__":
    unittest.main()
