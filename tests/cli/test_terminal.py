# SPDX-License-Identifier: Apache-2.0
"""On a terminal: prompts without echo, progress, and no ciphertext unless it is asked for."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import termios
import time

from harness import CHUNK, IV, PROGRAM, CliTest, data, key, openssl, openssl_enc, sanitized


class Terminal:
    """A program on a terminal of its own, and what it shows there."""

    def __init__(self, test, *arguments, on_terminal=(), program=PROGRAM, **options):
        self.master, slave = pty.openpty()
        test.addCleanup(os.close, self.master)
        test.addCleanup(os.close, slave)
        self.slave = slave
        for stream in ("stdin", "stdout", "stderr"):
            options.setdefault(stream, slave if stream in on_terminal else subprocess.PIPE)
        self.program = subprocess.Popen([program, *map(str, arguments)], cwd=test.dir, start_new_session=True,
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

    def test_ctrl_z_without_a_shell(self):
        """Where nobody could let it go on, it is not stopped, but asks again."""
        terminal = Terminal(self, "decrypt", "--iv", IV)
        terminal.read_until(b"Key (hexadecimal): ")
        terminal.shown = b""
        os.write(terminal.master, b"\x1a")
        terminal.answer(b"Key (hexadecimal): ", key(256).hex().encode())
        self.assertEqual(terminal.finish(openssl_enc("ctr", 256, data(99))), (data(99), b"", 0))
        self.assertNotIn(key(256).hex().encode(), terminal.shown)

    def test_what_stopped_it_may_leave_the_echo_on(self):
        """SIGSTOP gives no time to tidy up, and the shell sets the terminal as it likes."""
        terminal = Terminal(self, "decrypt", "--iv", IV)
        terminal.read_until(b"Key (hexadecimal): ")
        terminal.shown = b""
        terminal.program.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, terminal.program.pid, os.WSTOPPED | os.WNOWAIT)
        state = termios.tcgetattr(terminal.slave)
        state[3] |= termios.ECHO
        termios.tcsetattr(terminal.slave, termios.TCSANOW, state)
        terminal.program.send_signal(signal.SIGCONT)
        terminal.read_until(b"Key (hexadecimal): ")
        self.assertFalse(terminal.echoes())
        terminal.answer(b"Key (hexadecimal): ", key(256).hex().encode())
        self.assertEqual(terminal.finish(openssl_enc("ctr", 256, data(99))), (data(99), b"", 0))
        self.assertNotIn(key(256).hex().encode(), terminal.shown)
        self.assertTrue(terminal.echoes())

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


class JobControl(CliTest):
    """At a shell, which stops the program and lets it go on."""

    PROMPT = b"ready> "

    def setUp(self):
        super().setUp()
        bash = shutil.which("bash")
        if not bash:
            self.skipTest("no bash, whose job control this takes")
        self.write("plain", data(1000))
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.dir), "TERM": "dumb", "PS1": self.PROMPT.decode(),
                       "P": PROGRAM}
        environment.update((name, value) for name, value in os.environ.items() if name.endswith("SAN_OPTIONS"))
        self.shell = Terminal(self, "--norc", "--noprofile", "-i", program=bash, env=environment,
                              on_terminal=("stdin", "stdout", "stderr"))
        self.shell.read_until(self.PROMPT)

    def type(self, line, until):
        """What the terminal shows of this, up to and with `until`."""
        self.shell.shown = b""
        os.write(self.shell.master, line)
        self.shell.read_until(until)
        return self.shell.shown

    def status(self):
        """That of the last command, and whether the terminal echoes for the next one."""
        # In two words, so that what is typed is not what is waited for.
        shown = self.type(b"echo status=$? $(stty -a < /dev/tty | grep -ow -- '-\\?echo')=t''ty\n", b"=tty")
        return re.search(rb"status=(\d+) (-?echo)=tty", shown).groups()

    def test_ctrl_z_and_fg_as_often_as_one_likes(self):
        secret = b"a passphrase that nobody may see"
        question, again = b"Passphrase: ", b"Passphrase, once more: "
        self.type(b"$P seal --cost 10 plain\n", question)
        for _ in range(2):
            os.write(self.shell.master, b"half of")
            self.assertIn(b"Stopped", self.type(b"\x1a", self.PROMPT))
            self.assertNotIn(b"half of", self.type(b"fg\n", question))
            self.assertFalse(self.shell.echoes())
        self.assertNotIn(secret, self.type(secret + b"\n", again))
        self.type(b"\x1a", self.PROMPT)
        self.type(b"fg\n", again)
        self.assertFalse(self.shell.echoes())
        self.assertNotIn(secret, self.type(secret + b"\n", self.PROMPT))
        self.assertEqual(self.status(), (b"0", b"echo"))
        self.write("passphrase", secret)
        self.assertEqual(self.ok("open", "--passphrase-file", "passphrase", "-o", "-", "plain.sealed"), data(1000))

    def test_begun_in_the_background(self):
        """Asks once it is in the foreground, and leaves the terminal alone until then."""
        secret = b"another one"
        self.type(b"$P seal --cost 10 plain &\n", self.PROMPT)
        while b"Stopped" not in self.type(b"jobs; echo t''old\n", b"told"):
            pass
        self.shell.read_until(self.PROMPT)
        self.assertEqual(self.status()[1], b"echo")
        self.type(b"fg\n", b"Passphrase: ")
        self.assertFalse(self.shell.echoes())
        self.assertNotIn(secret, self.type(secret + b"\n", b"once more: "))
        self.assertNotIn(secret, self.type(secret + b"\n", self.PROMPT))
        self.assertEqual(self.status(), (b"0", b"echo"))


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

    def test_plaintext_that_a_terminal_would_obey(self):
        """Whoever sealed it could set the title, clear the screen or answer back."""
        text = "Grüße, \N{HEBREW LETTER ALEF}\t\N{GRINNING FACE}\r\nand a second line\n"
        for plain, shown in ((text.encode(), text.replace("\r\n", "\n").replace("\n", "\r\n").encode()),
                             (b"", b""),
                             (b"title \x1b]0;owned\x07", None), (b"a\rb", None), (b"\x9b2J", None), (b"ab\x7f", None),
                             ("csi \x9b2J".encode(), None), (b"half a letter \xc3", None), (b"\xed\xa0\x80", None),
                             (b"x" * 5000 + b"\x1b[2J", None)):
            self.write("plain", plain)
            self.ok("seal", "--segment", "4K", "--key-file", "key128", "plain", "-o", "sealed", "-f")
            self.write("cipher", openssl_enc("ctr", 128, plain))
            for command in (["open", "--key-file", "key128"],
                            ["decrypt", "--key-file", "key128", "--iv", IV]):
                for options in ([], ["-o", "/dev/tty"]) if len(plain) < 5 else ([],):
                    name = "sealed" if command[0] == "open" else "cipher"
                    source = open(self.dir / name, "rb")
                    self.addCleanup(source.close)
                    terminal = Terminal(self, *command, *options, stdin=source, on_terminal=["stdout"])
                    _, err, status = terminal.finish()
                    if shown is None:
                        self.check_failure(1, "no plain text.*-o -", status, err, (plain[:20], command))
                    else:
                        self.assertEqual((err, status), (b"", 0))
                    # The terminal makes \r\n of \n.
                    self.assertEqual(terminal.shown.replace(b"\r\r\n", b"\r\n"), shown or b"", command)
        source = open(self.dir / "sealed", "rb")
        self.addCleanup(source.close)
        terminal = Terminal(self, "open", "--key-file", "key128", "-o", "-", stdin=source, on_terminal=["stdout"])
        self.assertEqual(terminal.finish()[1:], (b"", 0))
        self.assertTrue(terminal.shown.endswith(b"\x1b[2J"))

    def test_what_is_not_verified_is_not_shown(self):
        self.write("plain", b"a line\n" * 2000)
        self.ok("seal", "--segment", "4K", "--key-file", "key128", "plain", "-o", "sealed")
        self.write("sealed", self.read("sealed")[:-1])
        with open(self.dir / "sealed", "rb") as sealed:
            terminal = Terminal(self, "open", "--key-file", "key128", stdin=sealed, on_terminal=["stdout"])
            _, err, status = terminal.finish()
        self.check_failure(1, "is not authentic", status, err)
        self.assertEqual(terminal.shown, b"")


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
