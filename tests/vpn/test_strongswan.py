# SPDX-License-Identifier: Apache-2.0
"""Somebody else's IPsec, strongSwan's in user space, with daelstrom's OpenSSL provider below it: contrib/strongswan."""
import json
import os
import pathlib
import re
import subprocess
import unittest

from bed import PATIENCE, PROGRAM, BedTest, wait_for

MODULE = os.environ.get("DAELSTROM_PROVIDER_MODULE")
TUNNEL = pathlib.Path(__file__).resolve().parents[2] / "contrib/strongswan/tunnel"
INSIDE = {"left": "10.91.1.1", "right": "10.91.2.1"}
SIZE = 100_000_000  # bytes of the large transfer


def lacks():
    """What is missing here for it; empty: nothing."""
    ran = subprocess.run([TUNNEL, "check"], capture_output=True, text=True, timeout=PATIENCE)
    return ran.stderr.strip() if ran.returncode else "" if MODULE else "the provider is not built"


LACKS = lacks()


def by_vectors():
    """Whether the provider does packets itself here, which takes AVX-512: elsewhere it leaves them to OpenSSL's code."""
    told = subprocess.run([PROGRAM, "provider", "status", "--json", "--module", MODULE], capture_output=True, text=True,
                          timeout=PATIENCE, check=True).stdout
    return json.loads(told)["daelstrom-vectors"] == "on"


@unittest.skipIf(LACKS, f"NOT RUN: {LACKS}")
class StrongSwan(BedTest):
    def setUp(self):
        super().setUp()
        self.before = self.there()

    def tunnel(self, *words, **options):
        # bash waits for nothing that it has started: charon stays.
        return subprocess.run([TUNNEL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=5 * PATIENCE, **options)

    def up(self, *words):
        self.name = f"{self.prefix}s"
        self.addCleanup(self.tunnel, "down", "-n", self.name)
        ran = self.tunnel("up", "-n", self.name, *words)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.dir_of_it = pathlib.Path(f"/var/lib/daelstrom-strongswan-{self.name}")
        return f"{self.name}-left", f"{self.name}-right"

    def down(self):
        """What the provider says that it did: updates, bytes, the same on all cores, failures; by side."""
        ran = self.tunnel("down", "-n", self.name)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(self.there(), self.before)
        counts = {}
        for line in ran.stdout.splitlines():
            found = re.fullmatch(r"(left|right): daelstrom provider \[\d+\]: done when it was given up: (\d+) updates of (\d+) "
                                 r"bytes on calling threads, (\d+) of (\d+) by all cores and devices, (\d+) failures", line)
            self.assertTrue(found, ran.stdout)  # it has nothing else to say
            self.assertNotIn(found[1], counts)
            counts[found[1]] = tuple(map(int, found.groups()[1:]))
        return counts

    def there(self):
        """What a tunnel may leave: namespaces, folders, processes (but one that has ended, whom init has not yet taken)."""
        processes = set()
        for process in pathlib.Path("/proc").iterdir():
            try:
                program = process.name.isdigit() and os.readlink(process / "exe")
                if program and "/daelstrom-strongswan-dv" in program and self.prefix in program:
                    processes.add(program)
            except OSError:
                pass
        return (sorted(path.name for path in pathlib.Path("/run/netns").glob(f"{self.prefix}*")),
                sorted(path.name for path in pathlib.Path("/var/lib").glob(f"daelstrom-strongswan-{self.prefix}*")), processes)

    def said(self, side):
        return (self.dir_of_it / side / "log").read_text()

    def test_a_hundred_megabytes(self):
        left, right = self.up("-m", MODULE)
        for side in INSIDE:
            self.assertIn("selected proposal: ESP:AES_GCM_16_256", self.said(side))
            self.assertRegex(self.said(side), r"providers loaded by OpenSSL:.* daelstrom")
        self.assertEqual((self.dir_of_it / "secret.conf").stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.dir_of_it.stat().st_mode & 0o777, 0o700)
        self.ping(left, INSIDE["right"], 20, "-I", INSIDE["left"])
        self.ping(right, INSIDE["left"], 20, "-I", INSIDE["right"])
        self.send_bytes(left, right, INSIDE["right"], SIZE)
        counts = self.down()
        self.assertEqual(set(counts), set(INSIDE))
        for side, (updates, count, parallel, _, failures) in counts.items():
            self.assertEqual((parallel, failures), (0, 0), counts)
            if by_vectors():  # each byte, in packets of at most 1,400
                self.assertGreaterEqual(count, SIZE, (side, counts))
                self.assertGreaterEqual(updates, SIZE // 1400, (side, counts))
        if not by_vectors():
            self.skipTest("NOT RUN: who did the work. All came through; without AVX-512 packets are OpenSSL's own code's")

    def test_against_openssl_itself(self):
        """At one end only: what ours seals the other's opens, and the other way round."""
        left, right = self.up("-m", MODULE, "-s", "left")
        self.assertNotIn("daelstrom", self.said("right").partition("loaded plugins")[0])
        for size in (1, 1000, 1344):  # up to the largest that goes whole
            self.ping(left, INSIDE["right"], 5, "-I", INSIDE["left"], "-s", str(size))
        self.send_bytes(left, right, INSIDE["right"], SIZE // 10, 1)
        self.send_bytes(right, left, INSIDE["left"], SIZE // 10, 2)
        counts = self.down()
        self.assertEqual(set(counts), {"left"})
        if by_vectors():
            self.assertGreaterEqual(counts["left"][1], SIZE // 10 * 2)

    def test_without_it(self):
        left, right = self.up("-w")
        self.assertNotIn("daelstrom", self.said("left").partition("loaded plugins")[0])
        self.send_bytes(left, right, INSIDE["right"], SIZE // 100)
        self.assertEqual(self.down(), {})

    def test_a_daemon_that_was_killed(self):
        """`down` takes away the rest."""
        self.up("-m", MODULE)
        pid = int((self.dir_of_it / "left/pid").read_text())
        os.kill(pid, 9)
        wait_for(lambda: not os.path.exists(f"/proc/{pid}/fd/0"), "charon's end")
        self.assertEqual(set(self.down()), {"right"})

    def test_what_is_refused(self):
        self.name = f"{self.prefix}s"
        for words, why in ((("up", "-n", self.name), "usage"), (("up", "-n", "../x", "-w"), "letters, digits"),
                           (("up", "-n", self.name, "-m", "/nonesuch"), "there is no /nonesuch"),
                           (("up", "-n", self.name, "-w", "-m", MODULE), "usage"),
                           (("up", "-n", self.name, "-w", "-s", "left"), "usage"),
                           (("down", "-n", self.name), "there is no tunnel"), (("down", "-n", self.name, "more"), "usage")):
            with self.subTest(words=words):
                ran = self.tunnel(*words)
                self.assertEqual((ran.returncode, ran.stdout), (1, ""))
                self.assertIn(why, ran.stderr)
        self.assertEqual(self.there(), self.before)

    def test_one_that_cannot_come_up(self):
        """A module that cannot be loaded: OpenSSL goes on without it in silence; not so this, and nothing stays."""
        self.name = f"{self.prefix}s"
        self.addCleanup(self.tunnel, "down", "-n", self.name)
        bad = self.dir / "bad.so"
        bad.write_bytes(b"no module")
        ran = self.tunnel("up", "-n", self.name, "-m", bad)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""), ran.stderr)
        self.assertIn("OpenSSL could not load", ran.stderr)
        self.assertEqual(self.there(), self.before)


if __name__ == "__main__":
    unittest.main()
