# SPDX-License-Identifier: Apache-2.0
"""Every step of what writes files: each call that changes a file fails, as on a broken or a full disk, and is met by
SIGKILL and by SIGTERM; each allocation fails. The old file or the new one is there whole, and the program says what happened."""
import itertools
import json
import os
import pathlib
import signal

from harness import IV, CliTest, data, key, openssl_enc, sanitized

LIBRARY = os.environ.get("DAELSTROM_STEPS_LIBRARY", "")
ONE = ("--backend", "openssl", "--threads", "1")
SAID = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM}
# What fails without harm: there is another way, or what is lost is worth a warning at most.
SPARED = {"open", "fallocate", "link", "unlink", "fchmod", "fchown", "fsetxattr"}
OLD = b"precious"


class StepsTest(CliTest):
    def setUp(self):
        if not os.path.exists(LIBRARY) or sanitized():
            self.skipTest("nothing that can stand before the C library was built, or may be loaded here")
        super().setUp()

    def run_step(self, step, *command, environment=()):
        """What the program answers, and the calls that it made."""
        read, write = os.pipe()
        with open(read, "rb") as log:
            try:
                env = dict(os.environ, LD_PRELOAD=LIBRARY, DAELSTROM_STEP=step, DAELSTROM_STEPS=str(write),
                           XDG_CACHE_HOME=str(self.dir / "cache"), **dict(environment))
                ran = self.run_program(*command, env=env, pass_fds=[write])
            finally:
                os.close(write)
            return ran, log.read().decode().split("\n")[:-1]


class Files(StepsTest):
    def walk(self, command, targets, *, prepare=lambda: None, environment=()):
        """`targets`: the files that the command makes, and what says whether a new one is whole."""
        def now():
            return {name: self.read(name) if os.path.exists(self.dir / name) else None for name in targets}

        def hidden():
            return [path for path in self.dir.rglob(".daelstrom-*")]

        prepare()
        old = now()
        ran, calls = self.run_step("none 0", *command, environment=environment)
        self.assertEqual((ran.returncode, ran.stderr), (0, b""), command)
        self.assertTrue({"write"} <= set(calls), calls)
        for name, content in now().items():
            self.assertTrue(targets[name](content), (command, name))
        self.assertEqual(hidden(), [])
        for kind in ("EIO", "ENOSPC", "kill", "term"):
            for number, call in enumerate(calls):
                where = (command, kind, number, call, calls)
                prepare()
                ran, _ = self.run_step(f"{kind} {number}", *command, environment=environment)
                then = now()
                new = {name for name, content in then.items() if content != old[name]}
                for name in new:
                    self.assertTrue(then[name] is not None and targets[name](then[name]), (where, name, ran.stderr))
                if kind in SIGNALS:
                    self.assertEqual(ran.returncode, -SIGNALS[kind], where)
                    self.assertLessEqual(len(hidden()), kind == "kill", where)
                elif ran.returncode == 0:
                    # Of this file; what is synced last is the folder, once it is in its place.
                    rest = itertools.takewhile(lambda later: later != "open", calls[number + 1:])
                    last = not {"fsync", "rename"} & set(rest)
                    self.assertTrue(call in SPARED or (call == "fsync" and last), where)
                    self.assertTrue(all(targets[name](then[name]) for name in targets), where)
                else:
                    self.check_failure(1, SAID[kind], ran.returncode, ran.stderr, where)
                    self.assertLess(len(new), len(targets), where)
                if kind in SAID:
                    self.assertLessEqual(len(hidden()), call == "unlink", where)
                for path in hidden():
                    path.unlink()
        return calls

    def over(self, *names):
        """What puts the files there that are to be replaced."""
        def prepare():
            for name in names:
                self.write(name, OLD)
        return prepare

    def without(self, *names):
        def prepare():
            for name in names:
                (self.dir / name).unlink(missing_ok=True)
        return prepare

    def both(self, command, name, whole, force=("-f",)):
        """Where nothing is, and over a file."""
        self.walk(command, {name: whole}, prepare=self.without(name))
        self.walk((*command, *force), {name: whole}, prepare=self.over(name))

    def test_decrypt(self):
        for mode in ("ctr", "cbc"):
            iv = ("--iv", IV)
            self.write("ciphertext", openssl_enc(mode, 128, data(100_001)))
            self.both(("decrypt", *ONE, "--mode", mode, "--key-file", "key128", *iv, "ciphertext", "-o", "out"), "out",
                      lambda content: content == data(100_001))

    def test_decrypt_of_a_size_that_is_not_known(self):
        self.write("word", b"open sesame\n")
        self.ok("encrypt", "--openssl", "--password-file", "word", "word", "-o", "ciphertext")
        self.both(("decrypt", *ONE, "--openssl", "--password-file", "word", "ciphertext", "--sync", "-o", "out"), "out",
                  lambda content: content == b"open sesame\n")

    def test_open_and_reseal(self):
        self.write("plain", data(5000))
        self.ok("seal", "--key-file", "key256", "plain", "-o", "sealed")
        sealed = self.read("sealed")
        self.both(("open", *ONE, "--key-file", "key256", "sealed", "-o", "out"), "out",
                  lambda content: content == data(5000))
        self.write("fresh", bytes(range(0x90, 0xb0)))
        self.walk(("reseal", *ONE, "--key-file", "key256", "--new-key-file", "fresh", "sealed"),
                  {"sealed": lambda content: content != sealed and len(content) == len(sealed)},
                  prepare=lambda: self.write("sealed", sealed))

    def test_bench(self):
        self.both(("bench", "--backend", "openssl", "--mode", "ctr", "--bits", "128", "--size", "4K", "--repeats", "1",
                   "--scale", "1024", "--json", "figures"), "figures", lambda content: json.loads(content)["rows"])

    def test_lab(self):
        whole = {"run/picture.json": lambda content: json.loads(content)["rows"],
                 "run/picture.png": lambda content: content.endswith(b"IEND\xaeB`\x82")}
        command = ("lab", "run", "picture", "--quick", "--repeats", "1", "--out", "run")
        if not (pathlib.Path(os.environ["DAELSTROM"]).with_name("daelstrom-lab")).exists():
            self.skipTest("daelstrom-lab was not built")
        self.ok(*command, stdout=None)
        if not (self.dir / "run/picture.png").exists():  # built without libpng
            del whole["run/picture.png"]
        calls = self.walk(command, whole, prepare=self.over(*whole))
        self.assertEqual(calls.count("rename"), len(whole))  # each is put in its place at one go

    def test_provider(self):
        module = os.environ.get("DAELSTROM_PROVIDER_MODULE", "")
        if not os.path.exists(module):
            self.skipTest("the provider was not built")
        command = ("provider", "install", "--module", module, "--config", "below/openssl.cnf")
        whole = {"below/openssl.cnf": lambda content: content.endswith(b"default_properties = ?provider=daelstrom\n")}

        def nothing():
            (self.dir / "below/openssl.cnf").unlink(missing_ok=True)
            if (self.dir / "below").exists():
                (self.dir / "below").rmdir()

        def ours():
            (self.dir / "below").mkdir(exist_ok=True)
            self.write("below/openssl.cnf", b"# Written by `daelstrom provider install`, once\n")
        self.walk(command, whole, prepare=nothing)
        self.walk(command, whole, prepare=ours)
        ours()
        for kind in ("EIO", "ENOSPC"):
            ran, calls = self.run_step(f"{kind} 0", "provider", "uninstall", "--config", "below/openssl.cnf")
            self.check_failure(1, SAID[kind], ran.returncode, ran.stderr)
            self.assertEqual(calls, ["unlink"])
            self.assertTrue((self.dir / "below/openssl.cnf").exists())

    def test_calibrate(self):
        """It measures for seconds: its steps are walked in tests/files/calibration_steps_test.cpp."""
        (self.dir / "cache/daelstrom").mkdir(parents=True)
        environment = {"OCL_ICD_VENDORS": str(self.dir / "none")}  # whose cache of kernels has steps of its own
        for kind in ("EIO", "term"):
            self.write("cache/daelstrom/calibration.json", OLD)
            ran, calls = self.run_step(f"{kind} rename", "calibrate", "-q", environment=environment)
            self.assertIn("rename", calls)
            self.assertEqual(os.listdir(self.dir / "cache/daelstrom"), ["calibration.json"])
            stored = self.read("cache/daelstrom/calibration.json")
            if kind == "EIO":
                self.check_failure(1, "': Input/output error", ran.returncode, ran.stderr)
                self.assertEqual(stored, OLD)
            else:
                self.assertEqual(ran.returncode, -signal.SIGTERM)
                self.assertTrue(json.loads(stored)["hosts"])


class Memory(StepsTest):
    def test_files_that_wait_for_the_disk_together(self):
        """Each is there, or counted as failed, whichever allocation fails."""
        names = ("a", "b", "c")
        for name in names:
            self.write(name, data(100))
        command = ("seal", *ONE, "--key-file", "key256", "-f", "--json", *names)
        failed = set()
        for number in range(100_000):
            for name in names:
                self.write(f"{name}.sealed", OLD)
            ran, calls = self.run_step(f"memory {number}", *command)
            if "no memory" not in calls:
                break
            said = ran.stderr.decode()
            self.assertIn(ran.returncode, (0, 1), (number, said))
            new = [name for name in names if self.read(f"{name}.sealed") != OLD]
            told = [json.loads(line)["input"] for line in ran.stdout.decode().splitlines()]
            self.assertLessEqual(set(told), set(new), (number, said))
            self.assertFalse([path for path in os.listdir(self.dir) if path.startswith(".daelstrom-")], number)
            if ran.returncode == 0:
                self.assertEqual(tuple(new), names, (number, said))
            else:
                failed.add(len(names) - len(told))
                last = said.splitlines()[-1]
                count = len(names) - len(told)
                self.assertTrue(last == "daelstrom: memory ran out; close other programs" or
                                f"{count} failed" in last, (number, told, said))
        self.assertEqual(ran.returncode, 0)
        self.assertIn(1, failed)
