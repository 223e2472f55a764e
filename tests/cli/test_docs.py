# SPDX-License-Identifier: Apache-2.0
"""Runs the shell examples of the documents: each ```sh block after a line <!-- run -->, in the order of the
document, in one scratch folder per document, with the program on the PATH. <!-- run, fails: STATUS --> is
for one that must fail, <!-- run, needs: PROGRAM --> for one that is left out where that is not installed. A line
`#> text` after a command is what it prints."""
import os
import re
import shutil
import subprocess

from harness import PROGRAM, SOURCE, CliTest, data

BLOCK = re.compile(r"^<!-- run(?:, fails: (\d+))?(?:, needs: (\w+))? -->\n+```sh\n(.*?)^```$", re.M | re.S)


class Documents(CliTest):
    def run_document(self, document, folder):
        blocks = BLOCK.findall(document.read_text(encoding="utf-8"))
        environment = dict(os.environ, PATH=f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
        environment.pop("DAELSTROM_BACKEND", None)
        for status, needed, block in blocks:
            if needed and not shutil.which(needed):
                print(f"SKIP: a part of {document.name} was NOT RUN: {needed} is not installed")
                continue
            expected = [line[3:] for line in block.splitlines() if line.startswith("#> ")]
            ran = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=environment,
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
            self.assertEqual(ran.returncode, int(status or 0), (document.name, block, ran.stderr))
            printed = (ran.stdout + ran.stderr).splitlines()
            for line in expected:
                self.assertIn(line, printed, (document.name, block))
        return len(blocks)

    def test_every_document(self):
        counts = {}
        for document in [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md")), *sorted((SOURCE / "lab").rglob("*.md"))]:
            name = str(document.relative_to(SOURCE))
            folder = self.dir / name.replace("/", "-")
            folder.mkdir()
            (folder / "notes.txt").write_bytes(data(100_000))
            with self.subTest(document=name):
                counts[name] = self.run_document(document, folder)
        self.assertGreaterEqual(counts["docs/cli.md"], 25, counts)
        self.assertGreaterEqual(counts["lab/README.md"], 1, counts)
