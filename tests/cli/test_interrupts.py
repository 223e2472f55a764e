# SPDX-License-Identifier: Apache-2.0
"""Signals, full disks, broken pipes, vanishing files: a clear end, and nothing left behind."""
import contextlib
import os
import pathlib
import resource
import signal
import subprocess
import time

from harness import CHUNK, IV, PROGRAM, CliTest, data, openssl_enc, sanitized

ENCRYPT = ("encrypt", "--key-file", "key128", "--iv", IV)
SLOWLY = ("--backend", "reference", "--threads", "1")
# In a mount namespace of its own: a file system of 8 MiB, and where asked for, a /proc that is empty, so
# that files without a name cannot be given one. Shows what is left on it, and passes the status on.
SMALL_DISK = """
mount -t tmpfs -o size=8m daelstrom-test disk
{prepare}
"$@"
status=$?
ls -A disk > left
exit $status
"""


def can_mount():
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0


class Scarcity(CliTest):
    def test_no_more_threads(self):
        self.write("plain", data(5 * CHUNK))
        if os.geteuid() == 0:  # the limit does not bind root
            if any(not os.stat(p).st_mode & 1 for p in pathlib.Path(PROGRAM).resolve().parents):
                self.skipTest("another user cannot reach the program to run it")
            self.dir.chmod(0o777)
            nobody = {"user": 65534, "group": 65534, "extra_groups": []}
            for name in "key128", "plain":
                os.chown(self.dir / name, 65534, 65534)
        else:
            nobody = {}
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")  # which takes a thread
        self.fails(1, "cannot start a thread", *ENCRYPT, "--backend", "openssl", "plain", "-o", "out", **nobody,
                   env=env, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))


class Signals(CliTest):
    def interrupted(self, sign, *command, wait_for=lambda: None, **options):
        before = self.listing()
        with subprocess.Popen([PROGRAM, *command], cwd=self.dir, stdin=subprocess.PIPE,
                              stderr=subprocess.PIPE, **options) as program:
            program.stdin.write(data(5 * CHUNK))  # more than a pipe holds: it is being read
            program.stdin.flush()
            program.send_signal(sign)
            status = program.wait(30)
            said = program.stderr.read()
            with contextlib.suppress(BrokenPipeError):
                program.stdin.close()
        self.assertEqual((status, said), (-sign, b""))
        self.assertEqual(self.listing(), before)

    def test_every_signal_leaves_nothing(self):
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self.interrupted(sign, *ENCRYPT, "-o", "out")

    def test_an_overwritten_file_stays_as_it_was(self):
        self.write("out", b"precious")
        self.interrupted(signal.SIGINT, *ENCRYPT, "-f", "-o", "out")

    def test_killed_while_it_is_busy(self):
        """A large file on the slow backend: the signal comes in the middle of the work."""
        with open(self.dir / "large", "wb") as large:
            large.truncate(200 << 20)
        names = set(os.listdir(self.dir))
        with subprocess.Popen([PROGRAM, *ENCRYPT, *SLOWLY, "large", "-o", "out"],
                              cwd=self.dir) as program:
            time.sleep(0.5)
            self.assertIsNone(program.poll())
            program.send_signal(signal.SIGINT)
            self.assertEqual(program.wait(30), -signal.SIGINT)
        self.assertEqual(set(os.listdir(self.dir)), names)

    def test_a_temporary_name_is_removed(self):
        """Where files without a name cannot be had (no /proc), the dot name goes."""
        if not can_mount():
            self.skipTest("mount namespaces are not allowed here")
        (self.dir / "disk").mkdir()
        os.mkfifo(self.dir / "in")
        script = SMALL_DISK.format(prepare="mount -t tmpfs none /proc").replace('"$@"\n', """
"$@" < in &
exec 3> in
head -c 1000 /dev/zero >&3
until [ "$(ls -A disk)" ]; do sleep 0.05; done
ls -A disk > during
kill -TERM $!
wait $!
""")
        ran = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", PROGRAM, *ENCRYPT, "-o", "disk/out"],
                             cwd=self.dir, capture_output=True, timeout=60)
        self.assertEqual(ran.returncode, 128 + signal.SIGTERM, ran.stderr)
        self.assertRegex(self.read("during"), rb"\A\.daelstrom-[0-9a-f]{16}\.part\n\Z")
        self.assertEqual(self.read("left"), b"")

    def test_an_ignored_signal_stays_ignored(self):
        with subprocess.Popen([PROGRAM, *ENCRYPT, "-o", "out"], cwd=self.dir, stdin=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as program:
            program.stdin.write(data(5 * CHUNK))
            program.send_signal(signal.SIGHUP)
        self.assertEqual(program.returncode, 0)
        self.assertTrue(self.read("out") == openssl_enc("ctr", 128, data(5 * CHUNK)))


class FullDisk(CliTest):
    def on_small_disk(self, *command, prepare="", given=b""):
        if not can_mount():
            self.skipTest("mount namespaces are not allowed here")
        (self.dir / "disk").mkdir()
        ran = subprocess.run(["unshare", "-rm", "sh", "-c", SMALL_DISK.format(prepare=prepare), "sh", PROGRAM,
                              *command], cwd=self.dir, input=given, capture_output=True, timeout=60)
        return ran, self.read("left").decode().split()

    def test_a_full_disk(self):
        """Known and unknown size, with and without a temporary name, new and overwritten."""
        self.write("plain", data(20 << 20))
        for prepare in ("",) if sanitized() else ("", "mount -t tmpfs none /proc"):
            for given, source in ((b"", ["plain"]), (data(20 << 20), [])):
                ran, left = self.on_small_disk(*ENCRYPT, *source, "-o", "disk/out", prepare=prepare, given=given)
                self.check_failure(1, "'disk/out': No space left on device; free some space", ran.returncode,
                                   ran.stderr)
                self.assertEqual(left, [])
                (self.dir / "disk").rmdir()

    def test_the_file_that_was_there_survives(self):
        self.write("plain", data(20 << 20))
        ran, left = self.on_small_disk(*ENCRYPT, "plain", "-f", "-o", "disk/out", prepare="echo old > disk/out")
        self.check_failure(1, "No space left", ran.returncode, ran.stderr)
        self.assertEqual(left, ["out"])

    def test_without_unnamed_files_all_else_is_the_same(self):
        if sanitized():
            self.skipTest("a sanitizer does not do without /proc")
        for prepare, options in (("", []), ("echo old > disk/out", ["-f"])):
            ran, left = self.on_small_disk(*ENCRYPT, *options, "-o", "disk/out",
                                           prepare=prepare + "\nmount -t tmpfs none /proc", given=data(1000))
            self.assertEqual((ran.returncode, ran.stderr, left), (0, b"", ["out"]))
            (self.dir / "disk").rmdir()

    def test_dev_full(self):
        self.fails(1, "cannot write to '/dev/full': No space left", *ENCRYPT, "-o", "/dev/full", given=data(100))
        with open("/dev/full", "wb") as full:
            self.fails(1, "cannot write to standard output: No space left", *ENCRYPT, given=data(100), stdout=full)
            self.fails(1, "cannot write to standard output", "devices", stdout=full)
            self.fails(1, "cannot write to standard output", "--help", stdout=full)

    def test_a_limit_on_the_size_of_files(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        self.fails(1, "'out': File too large; .*ulimit", *ENCRYPT, "-o", "out", given=data(5 << 20), preexec_fn=limit)


class Pipes(CliTest):
    def test_a_broken_pipe_ends_it_quietly(self):
        for size in (CHUNK // 2, 20 * CHUNK):
            self.write("plain", data(size))
            with subprocess.Popen([PROGRAM, *ENCRYPT, "plain"], cwd=self.dir, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as program:
                self.assertEqual(program.stdout.read(1), openssl_enc("ctr", 128, b"\0"))
                program.stdout.close()
                self.assertEqual((program.wait(30), program.stderr.read()), (-signal.SIGPIPE, b""))

    def test_a_reader_that_leaves_ends_a_source_that_never_does(self):
        with subprocess.Popen(["bash", "-c", f"yes | '{PROGRAM}' {' '.join(ENCRYPT)} | head -c 1 | wc -c; "
                               "echo ${PIPESTATUS[1]}"], cwd=self.dir, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as shell:
            out, said = shell.communicate(timeout=60)
        self.assertEqual((out.split(), said), ([b"1", str(128 + signal.SIGPIPE).encode()], b""))

    def test_where_the_signal_is_ignored_it_is_an_error(self):
        self.write("plain", data(20 * CHUNK))
        with subprocess.Popen([PROGRAM, *ENCRYPT, "plain"], cwd=self.dir, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, restore_signals=False) as program:
            program.stdout.read(1)
            program.stdout.close()
            self.check_failure(1, "standard output: Broken pipe", program.wait(30), program.stderr.read())

    def test_a_failure_does_not_wait_for_a_source_that_is_silent(self):
        """Standard output is full, standard input open and idle: the reader must not hold the end up."""
        with open("/dev/full", "wb") as full:
            program = subprocess.Popen([PROGRAM, *ENCRYPT], cwd=self.dir, stdin=subprocess.PIPE, stdout=full,
                                       stderr=subprocess.PIPE)
        with program:
            program.stdin.write(data(2 * CHUNK))  # two chunks: the first goes out when the second has come
            program.stdin.flush()
            self.check_failure(1, "No space left", program.wait(30), program.stderr.read())


class Vanishing(CliTest):
    def test_a_file_that_is_cut_while_it_is_read(self):
        size = 200 << 20
        with open(self.dir / "large", "wb") as large:
            large.truncate(size)
        with subprocess.Popen([PROGRAM, *ENCRYPT, *SLOWLY, "large", "-o", "out"], cwd=self.dir,
                              stderr=subprocess.PIPE) as program:
            time.sleep(0.3)
            os.truncate(self.dir / "large", 0)
            self.check_failure(1, f"'large' was cut from {size} to 0 bytes while it was read", program.wait(300),
                               program.stderr.read())
        self.assertEqual({name for name in os.listdir(self.dir) if not name.startswith("key")}, {"large"})
