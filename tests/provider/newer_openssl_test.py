# SPDX-License-Identifier: Apache-2.0
"""The provider's tests, and vectors of what the backend `openssl` has of it, with a newer OpenSSL than this system's, as
they are built: in the bare root of Debian 13 that scripts/try_bare makes (OpenSSL 3.5), where that is there. In a mount
namespace of their own; nothing stays mounted."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = [pathlib.Path(p) for p in os.environ["DAELSTROM_TEST_PROGRAMS"].split(":")]
ROOT = pathlib.Path(os.environ.get("DAELSTROM_BARE", SOURCE / "build/bare")) / "trixie"
INSIDE = """
    set -eu
    mount --rbind /dev "$root/dev"
    mount --rbind /proc "$root/proc"
    for folder; do mkdir -p "$root$folder"; mount --bind -o ro "$folder" "$root$folder"; done
    exec chroot "$root" "$program"
"""


def runs(program, **more):
    folders = sorted({str(p) for p in (SOURCE, program.parent, program.parents[2] / "provider")})
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", INSIDE, "sh", *folders],
                          env={"PATH": os.environ["PATH"], "root": str(ROOT), "program": str(program), **more},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


class NewerOpenSsl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (ROOT / ".complete").exists():
            raise unittest.SkipTest(f"there is no {ROOT}: scripts/try_bare 13 makes it")
        if os.geteuid() != 0 or not shutil.which("unshare"):
            raise unittest.SkipTest("chroot takes root, and unshare")
        if not list(ROOT.glob("usr/lib/*/libcrypto.so.3")):
            raise unittest.SkipTest(f"{ROOT} has no OpenSSL yet")
        if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise unittest.SkipTest("mounts are not allowed here")

    def test_all(self):
        for program in PROGRAMS:
            for vectors in ("on", "off"):
                with self.subTest(program=program.name, vectors=vectors):
                    done = runs(program, DAELSTROM_PROVIDER_VECTORS=vectors)
                    if re.search(r"version `\w+_[\d.]+' not found|cannot open shared object", done.stdout):
                        self.skipTest("built for a newer system than that one: " + done.stdout.strip()[-200:])
                    self.assertEqual(done.returncode, 0, done.stdout[-6000:])


if __name__ == "__main__":
    unittest.main()
