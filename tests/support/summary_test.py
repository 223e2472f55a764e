#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/test_summary counts cases, and no failure escapes it."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(__file__).resolve().parents[2] / "scripts/test_summary"
ENTRY = '<testcase name="{}" classname="{}" time="1.5" status="{}"><system-out>{}</system-out></testcase>'
PASSED = '<testcase name="A/x" classname="S" status="run" result="completed" time="0.25" />'
FAILED = '<testcase name="B" classname="S" status="run" result="completed" time="0"><failure message="" /></testcase>'
SKIPPED = ('<testcase name="C" classname="S" status="run" result="skipped" time="0">'
           '<skipped message="a_test.cpp:7&#x0A;no device here" /></testcase>')
LEFT_OUT = '<testcase name="D" classname="S" status="notrun" result="suppressed" time="0" />'


class Summary(unittest.TestCase):
    def ask(self, entries, *arguments):
        """The exit status and the lines for entries of (name, status, output, cases or None)."""
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder) / "dev.xml"
            run.with_suffix("").mkdir()
            run.write_text("<testsuite>" + "".join(
                ENTRY.format(name, name, status, output) for name, status, output, _ in entries) + "</testsuite>")
            for name, _, _, cases in entries:
                if cases is not None:
                    (run.with_suffix("") / f"{name}.xml").write_text(
                        "<testsuites><testsuite>" + "".join(cases) + "</testsuite></testsuites>")
            ran = subprocess.run([sys.executable, SUMMARY, *arguments, run], capture_output=True, text=True)
        self.assertEqual(ran.stderr, "")
        return ran.returncode, ran.stdout.splitlines()

    def test_counts_cases_and_gives_reasons(self):
        status, lines = self.ask([("a_test", "run", "", [PASSED, PASSED, SKIPPED, LEFT_OUT]),
                                  ("a_test.gpu", "notrun", "", [SKIPPED, SKIPPED]),
                                  ("a_test.opengl", "notrun", "", []),
                                  ("cli.files", "run", "", None),
                                  ("tink.interop", "notrun", "SKIP: no Tink", None)])
        self.assertEqual(status, 0)
        self.assertEqual(lines[-1], "3 passed, 0 failed, 4 skipped")
        self.assertIn("       3  no device here", lines)
        self.assertIn("       1  no Tink", lines)

    def test_a_failed_case_fails_the_sum(self):
        status, lines = self.ask([("a_test", "fail", "", [PASSED, FAILED])])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_program_that_dies_or_fails_at_its_end_counts_as_a_failure(self):
        status, lines = self.ask([("died_test", "fail", "", None), ("leaks_test", "fail", "", [PASSED])])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 2 failed, 0 skipped"))

    def test_nothing_passed_is_a_failure(self):
        status, lines = self.ask([("a_test", "notrun", "", [SKIPPED])])
        self.assertEqual((status, lines[-1]), (1, "0 passed, 0 failed, 1 skipped"))

    def test_names_the_slowest(self):
        _, lines = self.ask([("a_test", "run", "", [PASSED]), ("cli.files", "run", "", None)], "--slowest", "1")
        self.assertIn("     1.5 s  dev: cli.files", lines)
        self.assertNotIn("S.A/x", "".join(lines))


if __name__ == "__main__":
    unittest.main()
