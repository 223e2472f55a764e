# SPDX-License-Identifier: Apache-2.0
"""Runs the shell examples of the documents that need an installation: each ```sh block after a line
<!-- run, installed -->, in one scratch folder per document. <!-- run, installed, needs: PROGRAM --> is left out
where that program does not work. The variables are those that docs/install.md names."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

BLOCK = re.compile(r"^<!-- run, installed(?:, needs: (\S+))? -->\n+```sh\n(.*?)^```$", re.M | re.S)


def works(program):
    return subprocess.run([program, "--version"], capture_output=True).returncode == 0 if shutil.which(program) else False


def main(source, build, prefix, shared, work):
    libraries = str(pathlib.Path(shared).parent)
    pc = next(pathlib.Path(prefix).rglob("daelstrom.pc")).parent
    ran = 0
    for document in sorted((source / "docs").glob("*.md")):
        blocks = BLOCK.findall(document.read_text(encoding="utf-8"))
        folder = work / document.stem
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        environment = dict(
            os.environ, HOME=str(folder), daelstrom=str(source), daelstrom_build=str(build), daelstrom_shared=shared,
            PKG_CONFIG_PATH=str(pc), CMAKE_PREFIX_PATH=str(prefix), LC_ALL="C.UTF-8")
        for needs, block in blocks:
            if needs and not works(needs):
                print(f"left out, no {needs} here: {block}")
                continue
            if needs:  # a toolchain may be found through the real home
                environment["HOME"] = os.environ.get("HOME", str(folder))
            print(block, flush=True)
            subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=environment, check=True,
                           stdin=subprocess.DEVNULL, timeout=300)
            ran += 1
    if ran < 5:
        sys.exit(f"only {ran} examples were found: has their mark changed?")


if __name__ == "__main__":
    main(*(pathlib.Path(folder) for folder in sys.argv[1:4]), sys.argv[4], pathlib.Path(sys.argv[5]))
