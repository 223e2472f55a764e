#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/static_checks judges the commits of this repository, and none of one that has a copy of it inside."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECKS = pathlib.Path(__file__).resolve().parents[2] / "scripts/static_checks"
FOREIGN = "added the thing that we had talked about on that long afternoon in May."


@unittest.skipUnless(shutil.which("git"), "there is no git")
class Commits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(self, folder, *words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words], cwd=folder, check=True,
                       capture_output=True, env=self.env)

    def copy(self, folder):
        (folder / "scripts").mkdir(parents=True)
        shutil.copy(CHECKS, folder / "scripts")
        return folder

    def commits(self, folder):
        ran = subprocess.run([sys.executable, folder / "scripts/static_checks", "commits"], capture_output=True,
                             text=True, env=self.env)
        self.assertEqual(ran.stderr, "")
        return ran.returncode, ran.stdout

    def test_its_own(self):
        own = self.copy(self.folder / "own")
        self.git(own, "init")
        self.git(own, "commit", "--allow-empty", "-m", "Say what it does")
        self.assertEqual(self.commits(own)[0], 0)
        self.git(own, "commit", "--allow-empty", "-m", FOREIGN)
        status, said = self.commits(own)
        self.assertEqual(status, 1)
        self.assertIn(FOREIGN, said)
        # A work tree of it, and by a link.
        self.git(own, "worktree", "add", self.folder / "tree")
        self.assertEqual(self.commits(self.copy(self.folder / "tree"))[0], 1)
        (self.folder / "link").symlink_to(own)
        self.assertEqual(self.commits(self.folder / "link")[0], 1)

    def test_those_of_who_has_a_copy(self):
        inside = self.copy(self.folder / "theirs/vendor/daelstrom")
        self.git(self.folder / "theirs", "init")
        self.git(self.folder / "theirs", "commit", "--allow-empty", "-m", FOREIGN)
        self.assertEqual(self.commits(inside)[0], 0)


if __name__ == "__main__":
    unittest.main()
