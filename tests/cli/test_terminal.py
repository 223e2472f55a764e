# SPDX-License-Identifier: Apache-2.0
"""On a terminal: prompts without echo, progress, and no ciphertext unless it is asked for."""
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import termios
import time

from harness import CHUNK, IV, PROGRAM, CliTest, data, key, openssl, openssl_enc, sanitized


class Terminal:
    """A program on a terminal of its own, and what it shows there."""

    def __init__(self, test, *arguments, on_terminal=(), **options):
        self.master, slave = pty.openpty()
        test.addCleanup(os.close, self.master)
        test.addCleanup(os.close, slave)
        self.slave = slave
        for stream in ("stdin", "stdout", "stderr"):
            options.setdefault(stream, slave if stream in on_terminal else subprocess.PIPE)
        self.program = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=test.dir, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0), **options)
        test.addCleanup(self.program.kill)
        self.shown = b""

    def read_until(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in self.shown and time.monotonic() < end:
            self.read_some(0.1)
        if text not in self.shown:
            raise AssertionError(f"the terminal never showed {text!r}, but {self.shown!r}")

    def read_some(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.shown += os.read(self.master, 65536)

    def answer(self, question, line):
        self.read_until(question)
        os.write(self.master, line + b"\n")

    def finish(self, given=None):
        """Standard output, standard error and the status; what the terminal shows is all in `shown`."""
        out, err = self.program.communicate(given, timeout=60)
        while select.select([self.master], [], [], 0.1)[0]:
            self.read_some(0)
        return out, err, self.program.returncode

    def echoes(self):
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)


class Prompts(CliTest):
    def setUp(self):
        super().setUp()
        self.password = b"correct horse"
        self.secrets.append(self.password)

    def test_a_key_is_asked_for_twice_and_not_shown(self):
        terminal = Terminal(self, "encrypt", "--iv", IV)
        terminal.read_until(b"Key (hexadecimal): ")
        self.assertFalse(terminal.echoes())
        terminal.answer(b"Key (hexadecimal): ", key(128).hex().encode())
        terminal.answer(b"once more: ", key(128).hex().encode())
        self.assertEqual(terminal.finish(data(100)), (openssl_enc("ctr", 128, data(100)), b"", 0))
        self.assertNotIn(key(128).hex().encode(), terminal.shown)
        self.assertTrue(terminal.echoes())

    def test_decryption_asks_once(self):
        terminal = Terminal(self, "decrypt", "--iv", IV)
        terminal.answer(b"Key (hexadecimal): ", key(256).hex().encode())
        self.assertEqual(terminal.finish(openssl_enc("ctr", 256, data(99))), (data(99), b"", 0))
        self.assertNotIn(b"once more", terminal.shown)

    def test_a_password(self):
        terminal = Terminal(self, "encrypt", "--openssl")
        terminal.answer(b"Password: ", self.password)
        terminal.answer(b"once more: ", self.password)
        cipher, err, status = terminal.finish(data(64))
        self.assertEqual((err, status), (b"", 0))
        self.write("password", self.password)
        self.assertEqual(openssl("enc", "-d", "-aes-256-ctr", "-pbkdf2", "-pass", f"file:{self.dir / 'password'}",
                                 given=cipher), data(64))
        self.assertNotIn(self.password, terminal.shown)

    def test_answers_that_will_not_do(self):
        for question, answers, pattern in (
                ("--iv=" + IV, [key(128).hex().encode(), key(192).hex().encode()], "do not match"),
                ("--iv=" + IV, [b"0123", b"0123"], "that is no key"),
                ("--iv=" + IV, [b"zz" * 16, b"zz" * 16], "that is no key"),
                ("--openssl", [b"", b""], "password is empty")):
            self.secrets += [answer for answer in answers if answer]
            before = self.listing()
            terminal = Terminal(self, "encrypt", question, "-o", "out")
            terminal.answer(b": ", answers[0])
            terminal.answer(b"once more: ", answers[1])
            _, err, status = terminal.finish(b"x")
            self.check_failure(1, pattern, status, err)
            self.assertEqual(self.listing(), before)

    def test_ctrl_c_gives_the_echo_back(self):
        before = self.listing()
        terminal = Terminal(self, "encrypt", "-o", "out")
        terminal.read_until(b"Key (hexadecimal): ")
        self.assertFalse(terminal.echoes())
        os.write(terminal.master, b"\x03")
        self.assertEqual(terminal.program.wait(30), -signal.SIGINT)
        self.assertTrue(terminal.echoes())
        self.assertEqual(self.listing(), before)
        terminal.finish()

    def test_nobody_is_asked_in_vain(self):
        """What can be refused is refused before a key is typed."""
        self.write("out", b"precious")
        for arguments, pattern in ((["-o", "out"], "exists"), (["absent"], "cannot open"),
                                   (["--mode", "xts"], "unknown mode"), (["--backend", "abacus"], "no backend")):
            terminal = Terminal(self, "encrypt", *arguments)
            _, err, status = terminal.finish(b"")
            self.assertIn(status, (1, 2))
            self.check_failure(status, pattern, status, err)
            self.assertEqual(terminal.shown, b"")


class Ciphertext(CliTest):
    def test_it_is_refused_unless_asked_for(self):
        self.write("plain", b"x")
        for options in ([], ["-o", "/dev/tty"]):
            terminal = Terminal(self, "encrypt", "--key-file", "key128", *options, "plain", on_terminal=["stdout"])
            _, err, status = terminal.finish()
            self.check_failure(1, "-o - if you mean it", status, err)
            self.assertEqual(terminal.shown, b"")
        terminal = Terminal(self, "encrypt", "-m", "ecb", "--key-file", "key128", "-o", "-", "plain",
                            on_terminal=["stdout"])
        self.assertEqual(terminal.finish()[1:], (b"", 0))
        self.assertGreaterEqual(len(terminal.shown), 16)

    def test_plaintext_may_be_shown(self):
        terminal = Terminal(self, "decrypt", "--key-file", "key128", "--iv", IV, on_terminal=["stdout"])
        self.assertEqual(terminal.finish(openssl_enc("ctr", 128, b"read me"))[1:], (b"", 0))
        self.assertEqual(terminal.shown, b"read me")


class Progress(CliTest):
    def setUp(self):
        super().setUp()
        chunks = 2 if sanitized() else 3
        self.mib = chunks * CHUNK >> 20
        with open(self.dir / "large", "wb") as large:
            large.truncate(chunks * CHUNK)
        encrypt = ["encrypt", "--key-file", "key128", "large", "-f", "-o", "out", "--backend"]
        self.fast = [*encrypt, "openssl"]
        # The slow backend: on a terminal nothing is shown of what is done within 300 ms.
        self.command = [*encrypt, "reference", "--threads", "1"]

    def test_on_a_terminal(self):
        terminal = Terminal(self, *self.command, on_terminal=["stderr"])
        self.assertEqual(terminal.finish()[2], 0)
        shown = terminal.shown.decode()
        self.assertRegex(shown, rf"\r'large'  (4|8) MiB of {self.mib} MiB  (33|50|66|67)%  [0-9.]+ MB/s  \d+:\d\d left\x1b\[K")
        self.assertRegex(shown, rf"'large'  {self.mib} MiB in [0-9.]+ m?s, [0-9.]+ MB/s on reference.*\r?\n\Z")

    def test_quiet_and_no_progress(self):
        for option in ("--quiet", "--no-progress"):
            terminal = Terminal(self, *self.command, option, on_terminal=["stderr"])
            self.assertEqual(terminal.finish()[2], 0)
            self.assertEqual(terminal.shown, b"")

    def test_into_a_log_only_when_asked(self):
        self.assertEqual(self.run_program(*self.command).stderr, b"")
        lines = self.run_program(*self.fast, "--progress").stderr.decode().splitlines()
        self.assertRegex(lines[0], rf"\A'large'  4 MiB of {self.mib} MiB  (33|50)%  ")
        self.assertRegex(lines[-1], rf"\A'large'  {self.mib} MiB in .* on openssl")
        self.assertFalse(any("\r" in line or "\x1b" in line for line in lines))

    def test_as_json_for_another_program(self):
        ran = self.run_program(*self.fast, "--json", "--progress")
        lines = [json.loads(line) for line in ran.stderr.splitlines()]
        size = self.mib << 20
        self.assertEqual({line["total"] for line in lines}, {size})
        self.assertEqual(sorted(line["done"] for line in lines), [line["done"] for line in lines])
        self.assertEqual((lines[0]["what"], lines[-1]["done"]), ("'large'", size))
        self.assertEqual(json.loads(ran.stdout)["read"], size)

    def test_a_failure_clears_the_line(self):
        with open(self.dir / "large", "rb") as large:
            terminal = Terminal(self, "decrypt", "--progress", "-m", "cbc", "--iv", IV, "--key-file", "key128",
                                "-o", "out", stdin=large, on_terminal=["stderr"])
            self.assertEqual(terminal.finish()[2], 1)
        self.assertRegex(terminal.shown, rb"\r\x1b\[Kdaelstrom: wrong padding[^\n]+\n\Z")
