# SPDX-License-Identifier: Apache-2.0
"""scripts/readme_table: that the pages hold the results' figures, and that --check notices a change; and
scripts/merge_rows, which puts results together."""
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
import page_tables


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


script, merge = load("readme_table"), load("merge_rows")

PAGE = f"# A project\n\n{page_tables.BEGIN}old\n{page_tables.END}\nThe rest.\n"


def row(**fields):
    base = {"backend": "cuda:0", "mode": "ctr", "direction": "encrypt", "bits": 128, "size": 1 << 30,
            "messages": 1, "where": "device", "measure": "kernel", "placement": "apart", "threads": 1,
            "gbps": {"median": 951.7, "min": 940.0, "max": 953.0}, "seconds": 0.00113, "samples": 15,
            "ceiling": {"name": "copy within device memory", "gbps": 1903.0}, "ratio": 0.5}
    return {**base, **fields}


def rate(median):
    return {"median": median, "min": median, "max": median}


def result(rows):
    return {"machine": {"cpu": "Some CPU", "cores": 16, "memory": 1, "gpu": "Some GPU",
                        "multiprocessors": 132, "gpu_memory": 1, "driver": "580.1", "cuda_runtime": "13.0"},
            "date": "2026-01-02T03:04:05Z", "version": "0.1.0", "commit": "c", "compiler": "c",
            "suite": "h200", "skipped": [], "rows": rows}


CPU = {"backend": "cpu", "isa": "avx512", "where": "cache", "measure": "call", "size": 16384,
       "ceiling": {"name": "libipsec-mb called directly", "gbps": 24.5}, "ratio": 0.97,
       "against": [{"name": "OpenSSL EVP called directly", "gbps": 10.8, "ratio": 2.21}]}
ROWS = [row(), row(bits=256, gbps=rate(655.2)), row(placement="in place", gbps=rate(1.0)),
        row(size=4096, gbps=rate(2.0)), row(measure="launch", size=4096, gbps=rate(3.0)),
        row(**CPU, gbps=rate(23.9)), row(**{**CPU, "isa": "sse"}, gbps=rate(9.87))]


DEVICE = {"keys": 1, "where": "device", "measure": "kernel"}
SECOND = [row(mode="gcm", **DEVICE, gbps=rate(811.0)), row(mode="gcm", bits=256, **DEVICE, gbps=rate(599.0)),
          row(mode="gcm", direction="decrypt", **DEVICE, gbps=rate(777.0)),
          row(mode="gmac", **DEVICE, gbps=rate(2345.0)),
          row(mode="gcm", size=1024, messages=65536, **DEVICE, gbps=rate(512.0)),
          row(mode="gcm", size=1024, messages=65536, **{**DEVICE, "keys": 65536}, gbps=rate(303.0)),
          row(mode="xts", sector=512, gbps=rate(606.0)), row(mode="xts", sector=4096, gbps=rate(707.0)),
          row(mode="gcm", **{**CPU, "size": 1024, "messages": 256, "keys": 1}, gbps=rate(9.12)),
          row(mode="gcm", **{**CPU, "size": 1024, "messages": 256, "keys": 1, "measure": "backend"}, gbps=rate(9.34)),
          row(mode="gcm", **{**CPU, "keys": 1}, gbps=rate(14.1)),
          row(mode="gcm", **{**CPU, "size": 1 << 20, "messages": 1024, "keys": 1, "where": "host", "threads": 16,
                             "ceiling": {"name": "memcpy, 16 threads", "gbps": 50.0}, "against": []},
              gbps=rate(44.4))]


SEALED = {"machine": {"cpu": "Other CPU", "cores": 2}, "age": "1.1.1",
          "rows": [{"name": "cp", "size": 4 << 30, "gbps": 1.5}, {"name": "daelstrom seal", "size": 4 << 30, "gbps": 2.199},
                   {"name": "openssl enc -aes-256-ctr -pbkdf2 (no authentication)", "size": 4 << 30, "gbps": 0.659},
                   {"name": "age", "size": 4 << 30, "gbps": 0.876}]}


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.readme, self.page, self.result, self.sealed = (
            pathlib.Path(folder.name, name) for name in ("README.md", "page.md", "result.json", "sealed.json"))
        self.readme.write_text(PAGE)
        self.page.write_text(PAGE)
        self.result.write_text(json.dumps(result(ROWS)))

    def run_script(self, *arguments):
        self.errors = io.StringIO()
        with contextlib.redirect_stderr(self.errors):
            return script.main(["--readme", str(self.readme), "--page", str(self.page),
                                "--sealed", str(self.sealed), *arguments])

    def test_figures_hardware_and_ceilings_are_the_results(self):
        self.assertEqual(self.run_script(str(self.result)), 0)
        text = self.page.read_text()
        self.assertIn("| AES-128, GB/s | AES-192, GB/s | AES-256, GB/s | Ceiling, in the same turns | Ceiling, GB/s |", text)
        self.assertIn("| CTR | 952 |  | 655 | copy within device memory | 1903 | 50% |  |", text)
        self.assertIn("| CTR | 23.9 |  |  | libipsec-mb called directly | 24.5 | 97% | 2.2 |", text)
        self.assertIn("Some GPU (132 multiprocessors, driver 580.1, CUDA 13.0) with 16 cores of Some CPU", text)
        self.assertIn("[all rows](result.json)", text)
        self.assertNotIn("9.87", text)  # not the best instruction set
        self.assertTrue(text.startswith("# A project\n") and text.endswith("\nThe rest.\n"))
        self.assertNotIn("old", text)
        # Every line has as many cells as the titles have.
        table = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual({line.count("|") for line in table}, {9})

    def test_gcm_and_xts_have_a_table_of_their_own(self):
        self.run_script(str(self.result))
        before = self.page.read_text()
        self.assertNotIn("GCM", before)
        self.result.write_text(json.dumps(result(ROWS + SECOND)))
        self.assertEqual(self.run_script(str(self.result)), 0)
        text = self.page.read_text()
        copy = "copy within device memory | 1903 | 50% | "
        cpu = "libipsec-mb called directly | 24.5 | 97% | 2.2"
        second = f"""
|  | AES-128, GB/s | AES-256, GB/s | Ceiling, in the same turns | Ceiling, GB/s | AES-128, of the ceiling | AES-128, times OpenSSL's EVP |
|---|--:|--:|---|--:|--:|--:|
| **GPU memory, 1 GiB** | | | | | | |
| GCM | 811 | 599 | {copy} |
| GCM, opening | 777 |  | {copy} |
| GMAC | 2345 |  | {copy} |
| XTS encryption, sectors of 512 bytes | 606 |  | {copy} |
| XTS encryption, sectors of 4 KiB | 707 |  | {copy} |
| **GPU memory, batches in one call** | | | | | | |
| GCM, 65,536 messages of 1 KiB, one key | 512 |  | {copy} |
| GCM, 65,536 messages of 1 KiB, a key each | 303 |  | {copy} |
| **Host memory, 16 CPU threads** | | | | | | |
| GCM, 1,024 messages of 1 MiB, one key | 44.4 |  | memcpy, 16 threads | 50.0 | 97% |  |
| **One CPU core, new nonces in each call** | | | | | | |
| GCM, 256 messages of 1 KiB, one key | 9.12 |  | {cpu} |
| GCM, a message of 16 KiB | 14.1 |  | {cpu} |
"""
        self.assertIn(second + "\n" + page_tables.END, text)
        self.assertEqual(text.replace(second, ""), before)  # the first table is as it was

    def test_small_work_lists_mixes_and_addresses_have_their_lines(self):
        batch = {**DEVICE, "mode": "gcm", "messages": 65536, "size": 1024}
        fill = {"ceiling": {"name": "fill of 16 bytes", "gbps": 1.0}, "ratio": 0.25}
        rows = [row(**batch, gbps=rate(500.0)), row(**batch, list="device", gbps=rate(480.0)),
                row(**batch, list="device, bound", gbps=rate(499.0)),
                row(**batch, direction="decrypt", gbps=rate(450.0)),
                row(**{**batch, "size": 1500, "mix": "imix", "keys": 64}, gbps=rate(222.0)),
                row(mode="gcm", **DEVICE, gbps=rate(800.0)),
                row(mode="gcm", **DEVICE, placement="both 8 off", gbps=rate(700.0)),
                row(placement="input 1 off", gbps=rate(654.0)),
                row(mode="gcm", where="device", measure="keys", keys=1, size=48, seconds=32.1e-6, **fill),
                row(mode="gcm", where="device", measure="keys", keys=4096, size=48, bits=256, seconds=1e-3, **fill),
                row(measure="launch", size=65536, seconds=3.5e-6, **fill),
                row(where="pinned", measure="async", size=16384, seconds=14e-6, **fill)]
        self.result.write_text(json.dumps(result(ROWS + rows)))
        self.assertEqual(self.run_script(str(self.result)), 0)
        text = self.page.read_text()
        for line in ("| **CTR in GPU memory, 1 GiB, not aligned to 16 bytes** |", "| input 1 off | 654 |",
                     "| GCM, 65,536 messages of 1 KiB, one key | 500 |",
                     "| GCM, 65,536 messages of 1 KiB, one key, list in device memory | 480 |",
                     "| GCM, 65,536 messages of 1 KiB, one key, list in device memory, none longer | 499 |",
                     "| GCM, opening, 65,536 messages of 1 KiB, one key | 450 |",
                     "| GCM, 65,536 messages of 64 to 1,500 bytes, 64 keys | 222 |",
                     "| GCM | 800 |", "| GCM, data 8 bytes past a multiple of 16 | 700 |",
                     "| Preparing a GCM key | 32.1 |  | fill of 16 bytes | 8.03 |",
                     "| CTR of 64 KiB in GPU memory, launches in a row, each | 3.50 |",
                     "| CTR of 16 KiB in page-locked host memory | 14.0 |"):
            self.assertIn(line, text)
        self.assertNotIn("4,096 GCM keys", text)  # of which there is no AES-128 row
        self.assertEqual(self.run_script("--check", str(self.result)), 0)

    def test_the_front_page_has_three_figures_with_what_stands_beside_them(self):
        self.result.write_text(json.dumps(result(ROWS + SECOND)))
        self.sealed.write_text(json.dumps(SEALED))
        self.assertEqual(self.run_script(str(self.result)), 0)
        rows = [line for line in self.readme.read_text().splitlines() if line.startswith("|")][2:]
        self.assertEqual(rows, [
            "| `daelstrom seal` of a file of 4 GiB, 2 cores of Other CPU | **2.20** | "
            "age 1.1.1: 0.88, `openssl enc`, which does not authenticate: 0.66 |",
            "| AES-128-GCM, 256 messages of 1 KiB in one call, one core of Some CPU | **9.12** | OpenSSL's EVP: 10.8 |",
            "| AES-128-GCM of 1 GiB in the memory of one Some GPU | **811** | a copy within device memory: 1903 |"])

    def test_new_modes_have_gcm_and_the_copy_beside_them(self):
        batch = {**DEVICE, "size": 1024, "messages": 1 << 20}
        gcm = {"ceiling": {"name": "gcm-256, the same engine", "gbps": 11.1}, "ratio": 0.9, "against": []}
        rows = [row(mode="gcm", **batch, gbps=rate(543.0)), row(mode="gcm", **DEVICE, gbps=rate(742.0)),
                row(mode="aegis128l", **batch, gbps=rate(1014.0)),
                row(mode="aegis128l", direction="decrypt", **batch, gbps=rate(1002.0)),
                row(mode="aegis128l", **{**batch, "keys": 1 << 20}, gbps=rate(798.0)),
                row(mode="aegis128x4", **{**batch, "size": 1 << 20, "messages": 1024}, gbps=rate(830.0)),
                row(mode="aegis128l", **{**batch, "size": 1500, "mix": "imix"}, gbps=rate(1111.0)),
                row(mode="gcm_siv", **{**batch, "bits": 256}, gbps=rate(222.0)),
                row(mode="xaes256gcm", **{**CPU, "bits": 256, "size": 1024, "messages": 256, "keys": 1, **gcm},
                    gbps=rate(9.99))]
        self.result.write_text(json.dumps(result(ROWS + rows)))
        self.assertEqual(self.run_script(str(self.result)), 0)
        copy = "copy within device memory | 1903 | 50%"
        self.assertIn(f"""
| **GPU memory, batches in one call** | | | | | | |
| AEGIS-128L, 1,048,576 messages of 1 KiB, one key | 1014 | 1002 | 543 | {copy} |
| AEGIS-128L, 1,048,576 messages of 1 KiB, a key each | 798 |  |  | {copy} |
| AEGIS-128L, 1,048,576 messages of 64 to 1,500 bytes, one key | 1111 |  |  | {copy} |
| AEGIS-128X4, 1,024 messages of 1 MiB, one key | 830 |  |  | {copy} |
| GCM-SIV-256, 1,048,576 messages of 1 KiB, one key | 222 |  |  | {copy} |
| **One CPU core** | | | | | | |
| XAES-256-GCM, 256 messages of 1 KiB, one key | 9.99 |  | 11.1 |  |  |  |
""", self.page.read_text())
        self.assertIn("| AEGIS-128L, 1,048,576 messages of 1 KiB in one call, in the memory of one Some GPU | **1014** | "
                      "AES-128-GCM of the same: 543, a copy within device memory: 1903 |", self.readme.read_text())

    def test_rows_of_a_part_take_the_place_of_the_same_and_others_follow(self):
        whole, part = result(ROWS), result([row(gbps=rate(1.5)), row(mode="aegis128l", **DEVICE, gbps=rate(2.5))])
        made = merge.merged(whole, part)
        self.assertEqual([line["gbps"]["median"] for line in made["rows"]],
                         [1.5, *(line["gbps"]["median"] for line in ROWS[1:]), 2.5])
        self.assertEqual([told["modes"] for told in made["parts"]], [["aegis128l", "ctr"]])
        self.assertEqual(merge.merged(made, part), made)
        with self.assertRaises(ValueError):
            merge.merged(whole, {**part, "machine": {**part["machine"], "gpu": "Another GPU"}})
        kept = (ROOT / "bench/results/h200.json").read_text()
        again = merge.text(json.loads(kept))
        self.assertEqual((json.loads(again), len(again.splitlines())), (json.loads(kept), len(kept.splitlines())))

    def test_check_passes_after_writing_and_fails_after_a_change(self):
        self.sealed.write_text(json.dumps(SEALED))
        self.assertEqual(self.run_script("--check", str(self.result)), 1)
        self.assertEqual(self.page.read_text(), PAGE)
        self.assertEqual(self.readme.read_text(), PAGE)
        self.run_script(str(self.result))
        self.assertEqual(self.run_script("--check", str(self.result)), 0)
        for page, was, now in ((self.page, "| 952 |", "| 1952 |"), (self.readme, "**2.20**", "**4.20**")):
            text = page.read_text()
            self.assertIn(was, text)
            page.write_text(text.replace(was, now))
            self.assertEqual(self.run_script("--check", str(self.result)), 1)
            self.assertIn(page.name, self.errors.getvalue())
            page.write_text(text)

    def test_faults_are_told_in_one_line_and_change_nothing(self):
        self.result.write_text(json.dumps(result([])))
        self.assertEqual(self.run_script(str(self.result)), 1)
        self.assertIn("none of the rows", self.errors.getvalue())
        self.assertEqual(self.page.read_text(), PAGE)
        self.assertEqual(self.readme.read_text(), PAGE)
        self.result.write_text("{")
        self.assertEqual(self.run_script(str(self.result)), 1)
        self.result.write_text(json.dumps(result(ROWS)))
        for page in (self.readme, self.page):
            page.write_text("no markers")
            self.assertEqual(self.run_script(str(self.result)), 1)
            self.assertIn("bench:begin", self.errors.getvalue())
            page.write_text(PAGE)


class Pages(unittest.TestCase):
    def test_the_pages_have_what_the_committed_results_say(self):
        self.assertEqual(script.main(["--check"]), 0)


if __name__ == "__main__":
    unittest.main()
