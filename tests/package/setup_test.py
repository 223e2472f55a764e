# SPDX-License-Identifier: Apache-2.0
"""scripts/setup, on a machine that is made up: what it asks for, whom, and how often. Nothing is installed: the
commands that it calls are stand-ins, in a copy of scripts/ that has a .venv of its own."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534


class Setup(unittest.TestCase):
    def setUp(self):
        self.clone = pathlib.Path(tempfile.mkdtemp(prefix="daelstrom-setup-"))
        self.addCleanup(shutil.rmtree, self.clone)
        self.clone.chmod(0o755)
        shutil.copytree(SOURCE / "scripts", self.clone / "scripts")
        self.bin = self.clone / "bin"
        self.bin.mkdir()
        self.calls = self.clone / "calls"
        self.stand_in("nvidia-smi", "exit 9")

    def stand_in(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/bash\necho {name} \"$@\" >>{self.calls}\n{script}\n")
        path.chmod(0o755)

    def installed(self, is_it):
        self.stand_in("dpkg-query", "echo installed" if is_it else "exit 1")

    def setup(self, *arguments, root=True):
        if not root and os.geteuid() == 0:
            os.chown(self.clone, NOBODY, NOBODY)
            self.calls.touch()
            self.calls.chmod(0o666)
        user = {} if root or os.geteuid() != 0 else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        environment = {"PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.clone), "LC_ALL": "C"}
        return subprocess.run([str(self.clone / "scripts/setup"), *arguments], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, cwd="/", **user)

    def test_without_root_the_one_line_is_whole_and_nothing_is_begun(self):
        self.installed(False)
        self.stand_in("apt-get", "exit 1")
        self.stand_in("sudo", "exit 1")
        for arguments, packages in ((("--ask", "program"), {"cmake", "g++", "libssl-dev", "libcli11-dev"}),
                                    (("--ask",), {"cmake", "clang", "shellcheck", "pocl-opencl-icd", "dpkg-dev"})):
            ran = self.setup(*arguments, root=False)
            self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
            self.assertIn("without a terminal", ran.stderr)
            line = re.search(r"^    sudo apt-get install --no-install-recommends (.*)$", ran.stderr, re.M)
            self.assertTrue(line, ran.stderr)
            self.assertLessEqual(packages, set(line[1].split()))
        # What only ./check uses is not asked for by the demo.
        ran = self.setup("--ask", "program", root=False)
        for package in ("clang", "shellcheck", "pocl-opencl-icd", "libgtest-dev"):
            self.assertNotIn(package, ran.stderr)
        self.assertFalse((self.clone / ".venv").exists())
        self.assertNotIn("apt-get install", self.calls.read_text())

    def test_a_sudo_that_needs_no_password_is_taken(self):
        self.installed(False)
        self.stand_in("apt-get", "exit 1")
        self.stand_in("sudo", "exit 0")
        self.assertEqual(self.setup("--ask", "program", root=False).returncode, 0)

    def test_a_second_run_ends_at_once(self):
        self.installed(True)
        self.stand_in("cmake", "echo cmake version 3.31.0")
        first = self.setup("program")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("Everything needed is installed.", first.stdout)
        self.calls.unlink()
        second = self.setup("program")
        self.assertEqual(second.stdout, "Everything needed is installed already.\n")
        self.assertNotIn("dpkg-query", self.calls.read_text() if self.calls.exists() else "")
        # What the recipe is made of has changed: done again.
        with open(self.clone / "scripts/requirements.txt", "a", encoding="utf-8") as file:
            file.write("# another\n")
        self.assertIn("Everything needed is installed.", self.setup("program").stdout)

    def test_strongswans_service_is_disabled_also_after_a_run_that_broke_off(self):
        """It comes with what the tests need, and would listen to everybody. What was there before is left alone."""
        self.stand_in("systemctl", "")
        self.stand_in("python3", "exit 1")  # so far, and no further
        disables = "systemctl disable --now strongswan.service\n"
        self.installed(False)
        self.stand_in("apt-get", "exit 1")
        self.assertEqual(self.setup().returncode, 1)
        before, _, _ = self.calls.read_text().partition("apt-get")
        self.assertIn("systemctl mask --runtime strongswan.service\n", before)
        self.assertNotIn(disables, self.calls.read_text())
        # apt had come as far as this package.
        self.installed(True)
        self.setup()
        self.assertIn(disables, self.calls.read_text())
        self.assertIn("systemctl unmask --runtime strongswan.service\n", self.calls.read_text())
        self.calls.unlink()
        self.setup()
        self.assertNotIn("systemctl", self.calls.read_text())

    def test_an_unknown_word_is_refused(self):
        self.assertEqual(self.setup("everything").returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
