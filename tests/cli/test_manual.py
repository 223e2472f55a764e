# SPDX-License-Identifier: Apache-2.0
"""--help, the manual and the completions: there, in step with each other, and every example works."""
import json
import os
import re
import shutil
import subprocess

from harness import PROGRAM, CliTest, data, key, openssl
from test_recipients import BOB

# Needs more than a scratch folder: time, or a device.
NOT_RUN = {"bench": "it measures for seconds; its own tests run it",
           "lab": "it is a program of its own, and measures; its own tests run it",
           "flexa": "it is the Python package's; tests/python/test_flexa_program.py runs it",
           "vpn": "it takes an interface and another end; its own tests run it",
           "calibrate": "it measures for seconds; the planner's tests run it"}


class HelpTest(CliTest):
    def help_of(self, *command):
        return self.ok(*command, "--help").decode()

    def commands(self):
        section = self.help_of().split("\nCommands:\n")[1].split("\n\n")[0]
        return re.findall(r"^  (\S+)", section, re.M)

    def options(self, command):
        section = self.help_of(command).split("\nOptions:\n")[1].split("\n\n")[0]
        return re.findall(r"^ {2,6}(?:-\w, )?(--[\w-]+)", section, re.M)


class Manual(HelpTest):
    def shell(self, command, **options):
        environment = dict(os.environ, PATH=f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}")
        return subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.dir, env=environment,
                              capture_output=True, text=True, timeout=120, **options)

    def test_every_command_has_help_on_lines_that_fit(self):
        self.assertTrue({"seal", "open", "rewrap", "reseal", "keygen", "keyset", "info", "encrypt", "decrypt",
                         "explain", "devices", "calibrate", "bench", "lab", "completion", "help"} <= set(self.commands()))
        self.assertIn("daelstrom seal [OPTIONS] [INPUT...]\n", self.help_of("seal"))
        self.assertIn("daelstrom encrypt [OPTIONS] [INPUT]\n", self.help_of("encrypt"))
        for command in self.commands():
            text = self.help_of(command)
            self.assertTrue(text.startswith(f"Usage: daelstrom {command} "), text)
            self.assertIn("--help", self.options(command))
            for line in text.split("\nExamples:\n")[0].splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_version(self):
        self.assertRegex(self.ok("--version").decode(), r"\Adaelstrom \d+\.\d+\.\d+\n\Z")

    def test_every_example_runs(self):
        self.write("key", key(256))
        self.write("key.hex", key(128).hex().encode() + b"\n")
        self.write("password", b"pw\n")
        self.write("identity", BOB[0].encode() + b"\n")
        self.write("team", BOB[1].encode() + b"\n")
        self.write("passphrase", b"correct horse\n")
        self.write("better", b"battery staple\n")
        self.write("notes.txt", data(12345))
        (self.dir / "photos").mkdir()
        self.write("photos/one", data(100))
        openssl("enc", "-aes-256-cbc", "-pbkdf2", "-iter", "100000", "-pass", f"file:{self.dir / 'password'}",
                "-in", self.dir / "notes.txt", "-out", self.dir / "secret.enc")
        devices = {backend["name"].split(":")[0]: backend["present"]
                   for backend in json.loads(self.ok("devices", "--json"))}
        seen = set()
        for command in self.commands():
            examples = re.findall(r"^  \$ (.+)", self.help_of(command), re.M)
            self.assertTrue(examples, command)
            for example in examples if command not in NOT_RUN else []:
                ran = self.shell(example)
                wants = re.search(r"--backend (\w+)", example)
                if wants and not devices.get(wants[1]):
                    self.assertIn("not available", ran.stderr, example)
                    continue
                self.assertEqual(ran.returncode, 0, (example, ran.stderr))
                seen.add(command)
        self.assertEqual(seen, set(self.commands()) - set(NOT_RUN))
        for made in ("notes.out", "secret.txt", "notes.opened", "notes.mine"):
            self.assertEqual(self.read(made), data(12345), made)

    def test_the_manual_holds_every_command_and_option(self):
        page = self.ok("man").decode()
        if shutil.which("man"):
            formatted = subprocess.run(["man", "--warnings", "-l", "-"], input=page.encode(), capture_output=True,
                                       env=dict(os.environ, MANWIDTH="200", LC_ALL="C.UTF-8"))
            self.assertEqual((formatted.returncode, formatted.stderr), (0, b""))
            text = formatted.stdout.decode()
        else:
            text = page.replace("\\-", "-")
        for command in self.commands():
            self.assertRegex(text, rf"(?m)daelstrom {command} \[OPTIONS\]")
            for option in self.options(command):
                self.assertIn(option, text)

    def test_the_built_manual_is_the_programs(self):
        built = os.path.join(os.path.dirname(PROGRAM), "../apps/daelstrom/daelstrom.1")
        if not os.path.exists(built):
            self.skipTest("the program stands apart from its build")
        with open(built, "rb") as page:
            self.assertEqual(page.read(), self.ok("man"))


class Completion(HelpTest):
    def complete(self, line):
        """What bash offers at the end of `line`."""
        words = line.split(" ")
        script = ("source <(daelstrom completion bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _daelstrom; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        environment = dict(os.environ, PATH=f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}")
        ran = subprocess.run(["bash", "-c", script, "bash", *words], cwd=self.dir, env=environment,
                             capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(ran.stderr, "")
        return set(ran.stdout.split("\n")) - {""}

    def test_bash(self):
        self.assertEqual(self.complete("daelstrom enc"), {"encrypt"})
        self.assertTrue(set(self.commands()) <= self.complete("daelstrom "))
        for command in self.commands():
            self.assertTrue(set(self.options(command)) <= self.complete(f"daelstrom {command} -"), command)
        self.assertEqual(self.complete("daelstrom encrypt --mode c"), {"cbc", "cfb", "ctr"})
        self.assertEqual(self.complete("daelstrom encrypt -m e"), {"ecb"})
        # --mode=c, as bash takes it apart and as it does where COMP_WORDBREAKS has no =.
        self.assertEqual(self.complete("daelstrom encrypt --mode = c"), {"cbc", "cfb", "ctr"})
        self.assertEqual(self.complete("daelstrom encrypt --mode ="), {"ecb", "cbc", "cfb", "ofb", "ctr"})
        self.assertEqual(self.complete("daelstrom encrypt --mode=c"), {"--mode=cbc", "--mode=cfb", "--mode=ctr"})
        self.assertEqual(self.complete("daelstrom encrypt --key-file=key1"), {"--key-file=key128", "--key-file=key192"})
        self.assertEqual(self.complete("daelstrom keyset pro"), {"promote"})
        self.assertEqual(self.complete("daelstrom help keyg"), {"keygen"})
        self.assertEqual(self.complete("daelstrom encrypt --key-file key1"), {"key128", "key192"})
        self.assertEqual(self.complete("daelstrom encrypt --iv "), set())
        self.assertEqual(self.complete("daelstrom encrypt key2"), {"key256"})
        self.assertEqual(self.complete("daelstrom completion z"), {"zsh"})
        self.assertEqual({word for word in self.complete("daelstrom completion ") if word[0] == "-"}, set())

    def test_zsh_and_fish_take_theirs(self):
        for shell, check in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            script = self.ok("completion", shell).decode()
            for command in self.commands():
                self.assertIn(command, script)
                for option in self.options(command):
                    self.assertIn(option if shell == "zsh" else f"-l {option[2:]}", script)
            if shutil.which(shell):
                self.write("script", script.encode())
                subprocess.run([shell, *check, self.dir / "script"], check=True)

    def test_an_unknown_shell(self):
        self.fails(2, "no completion for 'tcsh'; there are bash, zsh and fish", "completion", "tcsh")
        self.fails(2, "SHELL", "completion")
