#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one file of tests: run.py test_openssl. Status 77: all of it was skipped."""
import pathlib
import sys
import unittest

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    for test, reason in result.skipped:
        print(f"SKIP: {test.id()}: {reason}")
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
