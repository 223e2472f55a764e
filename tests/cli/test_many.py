# SPDX-License-Identifier: Apache-2.0
"""Many files in one call of `seal`, `open` and `reseal`: which are taken, where they go, what a failure does."""
import base64
import ctypes
import errno
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import threading
import time

from harness import PROGRAM, CliTest, data, key, processor_time, sanitized
from test_interrupts import can_mount
from test_terminal import Terminal

FAILED, USAGE = 1, 2
ENVELOPE = 214  # bytes in front, with a passphrase (docs/format.md)
KEY = ("--key-file", "key256")
NEW = ("--key-file", "key128")
SMALL, LARGE = 4096, 1 << 20


def open_when_read(path, program):
    """A pipe's writing end, once the program reads it: if it ends before, or never does, that is a failure and no wait
    without end."""
    end = time.monotonic() + 60
    while True:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as fault:
            if fault.errno != errno.ENXIO:
                raise
        else:
            os.set_blocking(fd, True)
            return open(fd, "wb")
        if program.poll() is not None or time.monotonic() > end:
            said = program.stderr.read() if program.poll() is not None else b"and goes on"
            program.kill()
            raise AssertionError(f"the program does not read {path.name}: {program.poll()}, {said}")
        time.sleep(0.005)


def has_open(pid, file):
    """Whether the process has that file open, by now."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for name in names:
        try:
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), file):
                return True
        except OSError:  # closed meanwhile
            pass
    return False


class ManyTest(CliTest):
    def write(self, name, content):
        (self.dir / name).parent.mkdir(parents=True, exist_ok=True)
        return super().write(name, content)

    def files(self, folder="."):
        root = self.dir / folder
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())

    def partly(self, *arguments, status=FAILED, **options):
        """Runs the program, which does some of it; returns the lines that it says."""
        ran = self.run_program(*arguments, **options)
        self.assertEqual((ran.returncode, ran.stdout), (status, b""), ran.stderr)
        lines = ran.stderr.decode().splitlines()
        for line in lines:
            self.assertRegex(line, r"\Adaelstrom: [^\n]+\Z")
        return [line.removeprefix("daelstrom: ") for line in lines]

    def opens(self, name, content, *options):
        self.assertTrue(self.ok("open", *(options or KEY), name, "-o", "-") == content, name)


class BoundNames(ManyTest):
    """--bind-names: a file that was renamed, moved or exchanged with another does not open."""

    BOUND = (*KEY, "--bind-names")

    def setUp(self):
        super().setUp()
        for name in ("in/alice", "in/mallory", "in/below/alice"):
            self.write(name, name.encode())
        self.ok("seal", *self.BOUND, "--recursive", "in", "--output-dir", "out")

    def test_there_and_back(self):
        self.ok("open", *self.BOUND, "--recursive", "out", "--output-dir", "back")
        self.assertEqual([self.read(f"back/{name}") for name in self.files("back")],
                         [f"in/{name}".encode() for name in self.files("in")])
        self.assertEqual(self.ok("open", *self.BOUND, "out/alice.sealed", "-o", "-"), b"in/alice")
        self.assertEqual(self.ok("open", *self.BOUND, "--range", "3-4", "out/alice.sealed"), b"al")

    def test_exchanged_renamed_moved(self):
        os.rename(self.dir / "out/alice.sealed", self.dir / "out/x")
        os.rename(self.dir / "out/mallory.sealed", self.dir / "out/alice.sealed")
        os.rename(self.dir / "out/x", self.dir / "out/mallory.sealed")
        self.write("out/moved.sealed", self.read("out/below/alice.sealed"))
        said = self.partly("open", *self.BOUND, "--recursive", "out", "--output-dir", "back")
        self.assertEqual(said[-1], "1 file opened, 3 failed")
        self.assertTrue(all("is not authentic" in line for line in said[:-1]), said)
        self.assertEqual(self.files("back"), ["below/alice"])
        self.fails(FAILED, "is not authentic", "open", *self.BOUND, "out/below/alice.sealed", "-o", "never")
        self.fails(FAILED, "is not authentic", "open", *KEY, "out/below/alice.sealed", "-o", "never")

    def test_what_is_bound(self):
        """docs/format.md: --aad, a zero, and the name."""
        self.write("aad", b"May\0alice")
        sealed = self.ok("seal", *self.BOUND, "--aad", "May", "in/alice", "-o", "alice.sealed") or self.read("alice.sealed")
        self.assertEqual(self.ok("open", *KEY, "--aad-file", "aad", given=sealed), b"in/alice")
        self.write("aad", b"\0below/alice")
        self.assertEqual(self.ok("open", *KEY, "--aad-file", "aad", "out/below/alice.sealed", "-o", "-"), b"in/below/alice")
        self.ok("seal", *self.BOUND, "in/alice", "-o", "other")
        self.assertEqual(self.ok("open", *self.BOUND, "other", "-o", "-"), b"in/alice")

    def test_reseal_keeps_it(self):
        self.ok("reseal", *KEY, "--new-key-file", "key128", "--bind-names", "--recursive", "out")
        self.opens("out/mallory.sealed", b"in/mallory", *NEW, "--bind-names")

    def test_what_has_no_name(self):
        self.fails(USAGE, "no name", "seal", *self.BOUND, given=b"x")
        self.fails(USAGE, "no name", "seal", *self.BOUND, "in/alice", "-o", "-")
        self.fails(USAGE, "no name", "open", *self.BOUND, "-o", "never", given=self.read("out/alice.sealed"))


class Names(ManyTest):
    def test_one_file(self):
        self.write("plain", data(100))
        self.ok("seal", *KEY, "plain")
        self.opens("plain.sealed", data(100))
        os.remove(self.dir / "plain")
        self.ok("open", *KEY, "plain.sealed")
        self.assertEqual(self.read("plain"), data(100))
        self.fails(FAILED, "'plain' exists; -f overwrites it", "open", *KEY, "plain.sealed")
        self.fails(FAILED, "'plain.sealed' exists; -f overwrites it", "seal", *KEY, "plain")
        self.ok("seal", *KEY, "-f", "plain")
        self.assertEqual(self.ok("open", *KEY, given=self.ok("seal", *KEY, given=b"piped")), b"piped")
        self.assertEqual(self.ok("open", *KEY, "-", given=self.ok("seal", *KEY, "plain", "-o", "-")), data(100))

    def test_several_and_a_folder_for_them(self):
        contents = {"a": b"", "sub/b": data(1), "sub/deep/c d": data(5000), "-dash": data(9), "open": data(7)}
        for name, content in contents.items():
            self.write(name, content)
        self.ok("seal", *KEY, "--output-dir", "out", "--", *contents)
        self.assertEqual(self.files("out"), ["-dash.sealed", "a.sealed", "b.sealed", "c d.sealed", "open.sealed"])
        self.ok("seal", *KEY, "--", *contents)
        for name, content in contents.items():
            self.opens(f"./{name}.sealed", content)
        self.ok("seal", *KEY, "-f", "open", "a")  # a file that has the name of a command
        self.ok("open", *KEY, "out/a.sealed", "out/b.sealed", "--output-dir", "back/")
        self.assertEqual(self.files("back"), ["a", "b"])

    def test_names_that_tell_that_it_is_not_meant(self):
        self.write("x.sealed", self.ok("seal", *KEY, given=data(10)))
        self.write("x.tink", self.read("x.sealed"))
        self.write(".sealed", self.read("x.sealed"))
        self.fails(FAILED, "'x.sealed' ends in .sealed already; give -o FILE", "seal", *KEY, "x.sealed")
        for name in "x.tink", ".sealed":
            self.fails(FAILED, f"'{name}' does not end in .sealed; give -o FILE", "open", *KEY, name)
        self.ok("open", *KEY, "x.tink", "-o", "opened")
        self.ok("seal", *KEY, "x.sealed", "-o", "twice")
        os.mkfifo(self.dir / "pipe")
        self.fails(FAILED, "'pipe' is no regular file; give -o FILE", "seal", *KEY, "pipe")

    def test_what_the_command_line_cannot_mean(self):
        self.write("a", b"a")
        self.write("b", b"b")
        (self.dir / "d").mkdir()
        for pattern, arguments in (("-o names one output, and there are 2 inputs", ("a", "b", "-o", "c")),
                                   ("standard input cannot be one of several", ("a", "-")),
                                   ("standard input has no name", ("--output-dir", "d")),
                                   ("excludes", ("a", "-o", "c", "--output-dir", "d"))):
            self.fails(USAGE, pattern, "seal", *KEY, *arguments)
        self.fails(USAGE, "--range takes one input", "open", *KEY, "a", "b", "--range", "0-1")
        self.fails(FAILED, "'d' is a directory; --recursive takes the files in it", "seal", *KEY, "d")
        self.fails(FAILED, "-o names one output, and 'd' is a directory", "seal", *KEY, "--recursive", "d", "-o", "c")
        self.fails(FAILED, "cannot make the folder 'a'", "seal", *KEY, "b", "--output-dir", "a")
        self.fails(FAILED, "cannot make the folder 'no/where'", "seal", *KEY, "b", "--output-dir", "no/where")

    def test_outputs_that_collide_are_refused_before_anything_is_done(self):
        for name in "a", "d/a", "e/a", "b":
            self.write(name, name.encode())
        os.link(self.dir / "a", self.dir / "hard")
        for arguments in (("a", "a"), ("a", "./d/../a"), ("b", "a", "d/a", "--output-dir", "out"),
                          ("--recursive", "d", "e", "--output-dir", "out"), ("--recursive", "d", "d/a")):
            self.fails(FAILED, "would both go to '", "seal", *KEY, "-f", *arguments)
        # What is read must not be written, whatever its name and whatever becomes of it.
        self.write("a.sealed", self.ok("seal", *KEY, given=b"a"))
        for other in "a.sealed", "d/../a.sealed":
            self.fails(FAILED, "'a.sealed' is an input, and would be the output of 'a'", "seal", *KEY, "-f", "a", "b",
                       other)
        self.fails(FAILED, "'a' is an input, and would be the output of 'a.sealed'", "open", *KEY, "-f", "a.sealed", "a")
        # Behind a link lies what another output is.
        self.write("b.sealed", b"")
        os.remove(self.dir / "a.sealed")
        os.symlink("b.sealed", self.dir / "a.sealed")
        self.fails(FAILED, "would both go to '", "seal", *KEY, "-f", "a", "b")


class Folders(ManyTest):
    def setUp(self):
        super().setUp()
        self.contents = {"top": data(10), "x/one": data(2000), "x/.hidden": b"", "x/y/deep": data(300), "z/w": b"w"}
        for name, content in self.contents.items():
            self.write(f"in/{name}", content)

    def test_there_and_back(self):
        self.ok("seal", *KEY, "--recursive", "in/", "--output-dir", "out")
        self.assertEqual(self.files("out"), sorted(f"{name}.sealed" for name in self.contents))
        self.ok("open", *KEY, "--recursive", "out", "--output-dir", "back")
        self.assertEqual({name: self.read(f"back/{name}") for name in self.files("back")}, self.contents)

    def test_more_folders_than_the_usual_limit_of_descriptors(self):
        folders = [f"many/{i}" for i in range(300)]
        for folder in folders:
            self.write(f"{folder}/f", b"x")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        try:
            self.ok("seal", *KEY, "--recursive", *folders, "-q")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        self.assertEqual(sum(name.endswith(".sealed") for name in self.files("many")), 300)

    def test_beside_their_inputs_and_once_more(self):
        self.ok("seal", *KEY, "--recursive", "in")
        sealed = self.listing()
        self.assertEqual(self.partly("seal", *KEY, "--recursive", "in")[-1], "0 files sealed, 5 left alone, 5 failed")
        self.assertEqual(self.listing(), sealed)
        for name in self.contents:
            os.remove(self.dir / "in" / name)
        self.ok("open", *KEY, "--recursive", "in")
        self.assertEqual({name: self.read(f"in/{name}") for name in self.contents}, self.contents)
        self.assertEqual(self.partly("open", *KEY, "--recursive", "in", "-f", status=0),
                         ["5 files opened, 5 left alone"])
        self.ok("open", *KEY, "--recursive", "in", "-f", "-q")

    def test_links_and_what_is_no_file_are_left_alone(self):
        self.write("secret", b"outside")
        os.symlink("../secret", self.dir / "in/link")
        os.symlink("..", self.dir / "in/up")
        os.mkfifo(self.dir / "in/pipe")
        said = self.partly("seal", *KEY, "--recursive", "in", "--output-dir", "out", status=0)
        self.assertEqual(said, ["'in/link' is left alone: a symbolic link", "'in/pipe' is left alone: no regular file",
                                "'in/up' is left alone: a symbolic link", "5 files sealed, 3 left alone"])
        self.assertEqual(len(self.files("out")), 5)
        # One that is named is what it leads to.
        self.ok("seal", *KEY, "in/link")
        self.opens("in/link.sealed", b"outside")
        os.symlink("in", self.dir / "alias")
        self.assertEqual(self.partly("seal", *KEY, "-f", "--recursive", "alias", "--output-dir", "out", status=0)[-1],
                         "5 files sealed, 4 left alone")

    def test_folders_are_as_private_as_those_they_come_from(self):
        (self.dir / "in/x").chmod(0o700)
        (self.dir / "in").chmod(0o750)
        self.ok("seal", *KEY, "--recursive", "in", "--output-dir", "out", umask=0o022)
        modes = {name: stat.S_IMODE((self.dir / name).stat().st_mode) for name in ("out", "out/x", "out/x/y", "out/z")}
        self.assertEqual(modes, {"out": 0o750, "out/x": 0o700, "out/x/y": 0o755, "out/z": 0o755})
        (self.dir / "in/x/one").chmod(0o640)
        self.ok("seal", *KEY, "--recursive", "in", "--output-dir", "again", umask=0o022)
        self.assertEqual(stat.S_IMODE((self.dir / "again/x/one.sealed").stat().st_mode), 0o640)

    def test_folders_without_a_file_that_went_well_go_again(self):
        self.write("wrong", key(256)[::-1])
        self.ok("seal", *KEY, "--recursive", "in", "--output-dir", "sealed")
        said = self.partly("open", "--key-file", "wrong", "--recursive", "sealed", "--output-dir", "opened")
        self.assertEqual((len(said), said[-1]), (6, "0 files opened, 5 failed"))
        self.assertFalse((self.dir / "opened").exists())

    def test_an_unreadable_folder(self):
        if os.geteuid() == 0:
            self.skipTest("root reads everything")
        (self.dir / "in/x").chmod(0)
        self.addCleanup((self.dir / "in/x").chmod, 0o700)
        said = self.partly("seal", *KEY, "--recursive", "in", "--output-dir", "out")
        self.assertRegex(said[0], "cannot read the folder 'in/x': Permission denied")
        self.assertEqual(said[-1], "2 files sealed, 1 failed")


class Mallory(ManyTest):
    """Folders that others may change: exchanged with links all the time, nothing is read or written elsewhere."""

    def setUp(self):
        super().setUp()
        for i in range(150):
            self.write(f"in/sub/{i}", b"mallory's")
        self.write("elsewhere/secret", b"not mallory's")

    def attacked(self, *arguments, exchanged=("in/sub", "in/link"), to="elsewhere"):
        os.symlink(self.dir / to, self.dir / exchanged[1])
        libc, stop = ctypes.CDLL(None), threading.Event()
        names = [str(self.dir / name).encode() for name in exchanged]

        def exchange():
            while not stop.is_set():
                libc.renameat2(-100, names[0], -100, names[1], 2)

        thread = threading.Thread(target=exchange)
        thread.start()
        try:
            for _ in range(5):
                self.run_program(*arguments)
        finally:
            stop.set()
            thread.join()

    def test_nothing_is_written_elsewhere(self):
        self.ok("seal", *KEY, "--recursive", "in", "-q")
        for i in range(150):
            (self.dir / f"in/sub/{i}").unlink()
        self.attacked("open", *KEY, "--recursive", "in")
        self.assertEqual(self.files("elsewhere"), ["secret"])

    def test_nothing_is_read_elsewhere(self):
        self.attacked("seal", *KEY, "-f", "--recursive", "in", "--output-dir", "out")
        self.assertEqual(self.files("elsewhere"), ["secret"])
        self.assertNotIn("sub/secret.sealed", self.files("out"))
        self.assertNotIn("link/secret.sealed", self.files("out"))

    def test_the_folder_of_outputs(self):
        (self.dir / "out/sub").mkdir(parents=True)
        self.attacked("seal", *KEY, "--recursive", "in", "--output-dir", "out", exchanged=("out/sub", "out/link"))
        self.assertEqual(self.files("elsewhere"), ["secret"])
        shutil.rmtree(self.dir / "out")
        (self.dir / "out").mkdir()
        os.symlink(self.dir / "elsewhere", self.dir / "out/sub")
        self.fails(FAILED, "a link is on the way", "seal", *KEY, "--recursive", "in", "--output-dir", "out")
        self.assertEqual(self.files("elsewhere"), ["secret"])


class Failures(ManyTest):
    def test_one_that_fails_does_not_stop_the_others(self):
        for name in "a", "b", "c", "there":
            self.write(name, name.encode())
        (self.dir / "folder").mkdir()
        self.write("there.sealed", b"precious")
        said = self.partly("seal", *KEY, "absent", "a", "folder", "there", "b", "x.sealed", "c")
        self.assertEqual(said[:3], ["cannot open 'absent': No such file or directory",
                                    "'folder' is a directory; --recursive takes the files in it, and tar makes one "
                                    "file of it", "cannot open 'x.sealed': No such file or directory"])
        self.assertEqual(said[3:], ["'there.sealed' exists; -f overwrites it", "3 files sealed, 4 failed"])
        for name in "a", "b", "c":
            self.opens(f"{name}.sealed", name.encode())
        self.assertEqual(self.read("there.sealed"), b"precious")

    def test_a_damaged_file_among_many(self):
        for threads in "1", "2", "7":
            for i in range(40):
                self.write(f"{threads}/{i}", data(100 * i))
            self.ok("seal", *KEY, "--threads", threads, "--recursive", threads, "--output-dir", f"{threads}.out")
            sealed = bytearray(self.read(f"{threads}.out/17.sealed"))
            sealed[-1] ^= 1
            self.write(f"{threads}.out/17.sealed", sealed)
            said = self.partly("open", *KEY, "--threads", threads, "--recursive", f"{threads}.out", "--output-dir",
                               f"{threads}.back")
            self.assertRegex(said[0], rf"\A'{threads}.out/17.sealed': segment 0 is not authentic")
            self.assertEqual(said[1:], ["39 files opened, 1 failed"])
            self.assertEqual({int(name): self.read(f"{threads}.back/{name}") for name in self.files(f"{threads}.back")},
                             {i: data(100 * i) for i in range(40) if i != 17})

    def test_large_ones_among_small_ones(self):
        sizes = (0, 1, LARGE, 3 * LARGE + 5, 19 * LARGE + 1, 7, 33 * LARGE)
        for i, size in enumerate(sizes):
            self.write(f"in/{i}", data(size))
        for options in ((), ("--segment", "4K")):
            self.ok("seal", *KEY, "-f", *options, "--recursive", "in", "--output-dir", "out")
            self.ok("open", *KEY, "-f", "--recursive", "out", "--output-dir", "back")
            for i, size in enumerate(sizes):
                self.assertTrue(self.read(f"back/{i}") == data(size), (i, size))

    def test_files_that_state_a_wrong_size(self):
        """The kernel's own are longer than they say."""
        self.ok("seal", *KEY, "/proc/self/limits", "/proc/self/stat", "--output-dir", "out")
        self.assertIn(b"Max open files", self.ok("open", *KEY, "out/limits.sealed", "-o", "-"))

    def test_few_descriptors(self):
        """Those that wait for the disk hold some each."""
        for i in range(100):
            self.write(f"in/{i}", b"new")
            self.write(f"in/{i}.sealed", b"old")
        self.ok("seal", *KEY, "-f", "-q", "--threads", "2", "--recursive", "in",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
        self.opens("in/99.sealed", b"new")

    def test_a_full_disk(self):
        if not can_mount():
            self.skipTest("mount namespaces are not allowed here")
        (self.dir / "disk").mkdir()
        for i in range(4):
            self.write(f"in/{i}", data(3 << 20))
        script = 'mount -t tmpfs -o size=8m daelstrom-test disk; "$@"; status=$?; ls -A disk > left; exit $status'
        ran = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", PROGRAM, "seal", *KEY, "--recursive", "in",
                              "--output-dir", "disk"], cwd=self.dir, capture_output=True, timeout=60)
        lines = ran.stderr.decode().splitlines()
        left = self.read("left").split()
        self.assertEqual((ran.returncode, lines[-1]), (1, f"daelstrom: {len(left)} files sealed, {4 - len(left)} failed"
                                                       .replace("1 files", "1 file")), lines)
        self.assertIn(len(left), (1, 2))
        for line in lines[:-1]:
            self.assertIn("No space left on device; free some space", line)


class Secrets(ManyTest):
    def setUp(self):
        super().setUp()
        self.write("password", b"correct horse\n")
        self.secrets.append(b"correct horse")
        for i in range(6):
            self.write(f"in/{i}", data(100))

    def test_a_key_from_standard_input_is_for_all(self):
        self.ok("seal", "--key-file", "-", "--recursive", "in", "--output-dir", "out", given=key(256))
        self.opens("out/5.sealed", data(100))

    def test_a_passphrase_is_asked_for_once(self):
        terminal = Terminal(self, "seal", "--cost", "10", "--recursive", "in", "--output-dir", "out")
        terminal.answer(b"Passphrase: ", b"correct horse")
        terminal.answer(b"Passphrase, once more: ", b"correct horse")
        self.assertEqual(terminal.finish(), (b"", b"", 0))
        terminal = Terminal(self, "open", "--recursive", "out", "--output-dir", "back")
        terminal.answer(b"Passphrase: ", b"correct horse")
        self.assertEqual(terminal.finish(), (b"", b"", 0))
        self.assertEqual([self.read(f"back/{i}") for i in range(6)], 6 * [data(100)])

    def test_nobody_is_asked_in_vain(self):
        self.fails(FAILED, "would both go to", "seal", "in/1", "in/1", start_new_session=True)
        said = self.partly("seal", "in/absent", "in/gone", start_new_session=True)
        self.assertEqual(said[-1], "0 files sealed, 2 failed")

    def test_scrypt_is_paid_for_once(self):
        """All files of a call share their front, and no two of them the stream behind it."""
        begin = processor_time()
        self.ok("seal", "--passphrase-file", "password", "--recursive", "in", "--output-dir", "out")
        sealed = [self.read(f"out/{i}.sealed") for i in range(6)]
        self.assertEqual(len({one[:ENVELOPE] for one in sealed}), 1)
        self.assertEqual(len({one[ENVELOPE:ENVELOPE + 40] for one in sealed}), 6)
        self.assertEqual(len({one[-16:] for one in sealed}), 6)
        one = processor_time() - begin
        # Files of several calls side by side, and more of them than are remembered.
        for i in range(70):
            self.write(f"more/{i}", bytes([i]))
        for i in range(0, 70, 2):
            self.ok("seal", "--passphrase-file", "password", "--cost", "10", f"more/{i}", f"more/{i + 1}")
            os.remove(self.dir / f"more/{i}")
        begin = processor_time()
        self.ok("open", "--passphrase-file", "password", "--recursive", "out", "--output-dir", "back")
        self.assertEqual([self.read(f"back/{i}") for i in range(6)], 6 * [data(100)])
        self.assertLess(processor_time() - begin, 3 * one + 1)
        self.ok("open", "--passphrase-file", "password", "--recursive", "more", "--output-dir", "back", "-f", "-q")
        self.assertEqual([self.read(f"back/{i}") for i in range(70)], [bytes([i]) for i in range(70)])

    def test_a_wrong_passphrase_fails_each(self):
        self.write("other", b"battery staple\n")
        self.ok("seal", "--passphrase-file", "password", "--cost", "10", "--recursive", "in", "--output-dir", "out")
        said = self.partly("open", "--passphrase-file", "other", "--recursive", "out", "--output-dir", "back")
        self.assertEqual(said[-1], "0 files opened, 6 failed")
        self.assertTrue(all("another passphrase" in line for line in said[:-1]), said)

    def test_a_wrong_passphrase_is_paid_for_once(self):
        """What does not open an envelope is remembered as what does."""
        self.write("other", b"battery staple\n")
        for i in range(6, 12):
            self.write(f"in/{i}", data(100))
        self.ok("seal", "--passphrase-file", "password", "--recursive", "in", "--output-dir", "out")
        begin = processor_time()
        self.fails(FAILED, "another passphrase", "open", "--passphrase-file", "other", "out/1.sealed", "-o", "x")
        one = processor_time() - begin
        begin = processor_time()
        said = self.partly("open", "--passphrase-file", "other", "--recursive", "out", "--output-dir", "back")
        self.assertEqual(said[-1], "0 files opened, 12 failed")
        self.assertTrue(all("another passphrase" in line for line in said[:-1]), said)
        self.assertLess(processor_time() - begin, 4 * one)

    def test_a_slip_of_who_types_is_asked_for_again(self):
        self.ok("seal", "--passphrase-file", "password", "--cost", "10", "--recursive", "in", "--output-dir", "out")
        for arguments in (["--recursive", "out", "--output-dir", "back"], ["out/1.sealed", "-o", "-"]):
            terminal = Terminal(self, "open", *arguments)
            for slip in (b"battery staple", b"correct hrse"):
                terminal.answer(b"Passphrase: ", slip)
                terminal.shown = b""
            terminal.answer(b"Passphrase: ", b"correct horse")
            out, err, status = terminal.finish()
            self.assertEqual((out, status), (b"" if "--recursive" in arguments else data(100), 0))
            self.assertRegex(err, rb"\A(daelstrom: 'out/[01].sealed': another passphrase[^\n]*; try again\n){2}\Z")
        self.assertEqual([self.read(f"back/{i}") for i in range(6)], 6 * [data(100)])

    def test_three_slips_are_enough(self):
        """Then nothing was opened, and nobody waits for thousands of files that this does not open."""
        self.ok("seal", "--passphrase-file", "password", "--cost", "10", "--recursive", "in", "--output-dir", "out")
        before = self.listing()
        terminal = Terminal(self, "open", "--recursive", "out", "--output-dir", "back")
        for _ in range(3):
            terminal.answer(b"Passphrase: ", b"battery staple")
            terminal.shown = b""
        _, err, status = terminal.finish()
        self.assertEqual((err.count(b"another passphrase"), err.count(b"try again"), status), (3, 2, FAILED))
        self.assertEqual(self.listing(), before)

    def test_a_file_under_another_secret_is_named(self):
        self.ok("seal", *KEY, "in/0", "--output-dir", "out")
        self.ok("seal", "--passphrase-file", "password", "--cost", "10", "in/1", "--output-dir", "out")
        said = self.partly("open", *KEY, "--recursive", "out", "--output-dir", "back")
        self.assertRegex(said[0], "'out/1.sealed' was sealed with a passphrase")
        self.assertEqual(said[1:], ["1 file opened, 1 failed"])


class Interrupts(ManyTest):
    def interrupted(self, *command, sign=signal.SIGTERM):
        """Kills the program when some files are there; returns whether it was not done by then."""
        with subprocess.Popen([PROGRAM, *command], cwd=self.dir, stderr=subprocess.PIPE) as program:
            end = time.monotonic() + 30
            while not self.started() and program.poll() is None and time.monotonic() < end:
                time.sleep(0.002)
            program.send_signal(sign)
            status = program.wait(60)
            self.assertEqual(program.stderr.read(), b"")
        self.assertIn(status, (0, -sign))
        return status != 0

    def test_killed_as_files_get_their_names(self):
        """SIGKILL at the first and second of the calls that name, remove, sync or open up a file, for each command: the
        old or the new one is there, whole. A walk over every call of src/files is in tests/files."""
        if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode:
            self.skipTest("there is no strace, or it may not trace")
        if sanitized():
            self.skipTest("the leak check cannot trace a program that is traced")
        self.write("plain", b"new")
        self.write("fresh", key(256)[::-1])
        self.write("word", b"one")
        self.write("other", b"two")
        self.ok("seal", *KEY, "plain", "-o", "by_key")
        self.ok("seal", "--cost", "10", "--passphrase-file", "word", "plain", "-o", "by_word")
        self.ok("keyset", "create", "keyset")
        calls = ("linkat", "renameat2", "unlinkat", "fsync", "fchmod")
        commands = {  # each replaces the file named, or makes it
            "sealed": ("seal", *KEY, "-f", "plain", "-o", "sealed"),
            "opened": ("open", *KEY, "-f", "by_key", "-o", "opened"),
            "cipher": ("encrypt", *KEY, "-f", "plain", "-o", "cipher"),
            "by_key": ("reseal", *KEY, "--new-key-file", "fresh", "by_key"),
            "by_word": ("rewrap", "--cost", "10", "--passphrase-file", "word", "--new-passphrase-file", "other",
                        "by_word"),
            "keyset": ("keyset", "add", "keyset"),
            "key": ("keygen", "-f", "-o", "key"),
        }
        for name, command in commands.items():
            old = self.read(name) if (self.dir / name).exists() else b"old"
            self.write(name, old)
            (self.dir / name).chmod(0o600)
            self.ok(*command)
            whole, killed = len(self.read(name)), 0
            self.write(name, old)
            (self.dir / name).chmod(0o600)
            names = set(self.listing())
            for call in calls:
                for at in (1, 2):
                    ran = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                          f"inject={call}:signal=KILL:when={at}", PROGRAM, *command], cwd=self.dir,
                                         capture_output=True, timeout=60)
                    self.assertIn(ran.returncode, (0, -signal.SIGKILL), (name, call, at, ran.stderr))
                    killed += ran.returncode != 0
                    now = self.read(name)
                    if ran.returncode == 0 or now != old:
                        self.assertLess(abs(len(now) - whole), 9)  # numbers in a keyset have more or fewer digits
                        self.assertEqual(stat.S_IMODE((self.dir / name).stat().st_mode), 0o600)
                        self.write(name, old)
                    for left in set(self.listing()) - names:  # what is left is hidden, and for its owner alone
                        self.assertRegex(left, r"\A\.daelstrom-")
                        self.assertEqual(stat.S_IMODE((self.dir / left).stat().st_mode) & 0o077, 0)
                        (self.dir / left).unlink()
            self.assertGreater(killed, 0, name)

    def test_what_is_there_is_whole(self):
        for i in range(1500):
            self.write(f"in/{i}", data(1000 + i))
        for turn, sign in enumerate((signal.SIGINT, signal.SIGTERM)):
            out = f"out{turn}"
            self.started = lambda: (self.dir / out).exists() and len(os.listdir(self.dir / out)) > 20
            early = self.interrupted("seal", *KEY, "--recursive", "in", "--output-dir", out, sign=sign)
            names = self.files(out)
            self.assertTrue(names)
            self.assertFalse([name for name in names if not name.endswith(".sealed")])
            if early:
                self.assertLess(len(names), 1500)
            self.ok("open", *KEY, "--recursive", out, "--output-dir", f"back{turn}")
            for name in self.files(f"back{turn}"):
                self.assertEqual(self.read(f"back{turn}/{name}"), data(1000 + int(name)))

    def test_names_that_are_given_for_a_while_go(self):
        """Where a file takes another's place it has a dot name for a moment, in many threads at once."""
        for i in range(500):
            self.write(f"in/{i}.sealed", b"old")
            self.write(f"in/{i}", b"new")
        changed = self.dir / "in/0.sealed"
        self.started = lambda: changed.stat().st_size != 3
        self.interrupted("seal", *KEY, "-f", "--threads", "8", "--recursive", "in")
        names = self.files("in")
        self.assertEqual(len(names), 1000)
        self.assertFalse([name for name in names if name.startswith(".daelstrom-")])
        self.assertTrue({(self.dir / "in" / name).stat().st_size for name in names if name.endswith(".sealed")} <=
                        {3, 59})


    def test_where_files_always_have_names(self):
        """Without /proc a file cannot be made without a name: all that are being written must go."""
        if sanitized():
            self.skipTest("a sanitizer does not do without /proc")
        if not can_mount():
            self.skipTest("mount namespaces are not allowed here")
        for i in range(300):
            self.write(f"in/{i}", data(30_000))
        script = """
mount -t tmpfs none /proc
"$@" &
until [ "$(ls out 2> /dev/null | head -n 20 | wc -l)" = 20 ]; do :; done
kill -TERM $!
wait $!
"""
        ran = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", PROGRAM, "seal", *KEY, "--threads", "8",
                              "--backend", "reference", "--recursive", "in", "--output-dir", "out"], cwd=self.dir, capture_output=True, timeout=60)
        self.assertEqual(ran.returncode, 128 + signal.SIGTERM, ran.stderr)  # the slow backend keeps them open
        names = self.files("out")
        self.assertGreaterEqual(len(names), 20)
        self.assertFalse([name for name in names if name.startswith(".daelstrom-")])
        self.assertEqual({(self.dir / "out" / name).stat().st_size for name in names}, {30_056})


class Speed(ManyTest):
    def test_a_small_file_costs_little(self):
        """In processor time, which a busy machine changes less."""
        if sanitized():
            self.skipTest("a sanitizer makes what is measured")
        def cost(*arguments):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.ok(*arguments)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        for i in range(2000):
            self.write(f"in/{i}", data(2048))
        single = sorted(cost("seal", *KEY, f"in/{i}", "--output-dir", "single") for i in range(9))[4]
        # Of a few, since what the file system does now and then counts as ours.
        many = min(cost("seal", *KEY, "--recursive", "in", "--output-dir", f"many{i}") for i in range(3))
        self.assertEqual(len(self.files("many1")), 2000)
        self.assertLess(many, 2000 * single / 7)

    def test_a_file_takes_little_memory(self):
        """All names are known before the first file is begun: the key is asked for once the plan is made."""
        if sanitized():
            self.skipTest("a sanitizer takes memory of its own")
        os.mkfifo(self.dir / "fifo", 0o600)

        def most(folder):
            with subprocess.Popen([PROGRAM, "seal", "--key-file", "fifo", "--recursive", folder, "--output-dir",
                                   "out"], cwd=self.dir, stderr=subprocess.PIPE) as program:
                with open_when_read(self.dir / "fifo", program) as fifo:
                    with open(f"/proc/{program.pid}/status") as status:
                        lines = dict(line.split(":", 1) for line in status)
                    fifo.write(b"no key")
                program.stderr.read()
            self.assertEqual(program.returncode, FAILED)
            return int(lines["VmHWM"].split()[0]) << 10
        count = 20_000
        for i in range(count):
            self.write(f"in/{i % 10}/original-{i}", b"") if i < 200 else os.link(
                self.dir / f"in/{i % 10}/original-{i % 200}", self.dir / f"in/{i % 10}/another-{i}")
        self.write("one/file", b"")
        self.assertLess((most("in") - most("one")) / count, 200)

    def test_progress_counts_all(self):
        for i in range(3):
            self.write(f"in/{i}", data(LARGE))
        ran = self.run_program("seal", *KEY, "--recursive", "in", "--output-dir", "out", "--progress")
        self.assertRegex(ran.stderr.decode().splitlines()[-1], r"\A3 files  3.0 MiB in .* on \w+")


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def keyset(*keys, primary):
    """Tink's JSON, of (number, key, segment) each."""
    def entry(number, raw, segment):
        params = b"\x08" + varint(segment) + b"\x10" + varint(len(raw)) + b"\x18\x03"
        value = b"\x12" + varint(len(params)) + params + b"\x1a" + varint(len(raw)) + raw
        return {"keyId": number, "status": "ENABLED", "outputPrefixType": "RAW", "keyData": {
            "typeUrl": "type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey", "keyMaterialType": "SYMMETRIC",
            "value": base64.b64encode(value).decode()}}
    return json.dumps({"primaryKeyId": primary, "key": [entry(*one) for one in keys]}).encode()


class Reseal(ManyTest):
    OLD, FRESH = key(256), bytes(range(0x90, 0xb0))
    FROM_TO = ("reseal", "--key-file", "key256", "--new-key-file", "fresh")

    def setUp(self):
        super().setUp()
        self.write("fresh", self.FRESH)
        self.secrets += [self.FRESH, base64.b64encode(self.FRESH)]

    def under(self, name, content, options, sealing=()):
        self.write(name, self.ok("seal", *options, *sealing, given=content))

    def test_every_size_of_segment_into_every_other(self):
        sizes = (0, 1, 4039, 4040, 4041, 8120, 8121, 100_000, LARGE - 56, LARGE - 55, 3 * LARGE, 9 * LARGE + 77)
        for old, new in ((SMALL, LARGE), (LARGE, SMALL), (SMALL, SMALL), (5000, 3000), (3000, 70_000)):
            self.write("before", keyset((1, self.OLD, old), primary=1))
            self.write("after", keyset((1, self.OLD, old), (2, self.FRESH, new), primary=2))
            self.write("alone", keyset((2, self.FRESH, new), primary=2))
            for i, size in enumerate(sizes):
                self.under(f"{old}-{new}/{i}.sealed", data(size), ("--keyset", "before"))
            self.ok("reseal", "--keyset", "after", "--recursive", f"{old}-{new}")
            for i, size in enumerate(sizes):
                self.opens(f"{old}-{new}/{i}.sealed", data(size), "--keyset", "alone")
            said = self.partly("reseal", "--keyset", "after", "--recursive", f"{old}-{new}", status=0)
            self.assertRegex(said[0], "sealed' is sealed with the primary key already")
            self.assertEqual((len(said), said[-1]), (len(sizes) + 1, f"0 files sealed anew, {len(sizes)} left alone"))

    def test_bare_keys(self):
        for i, segment in enumerate(("4K", "1M")):
            self.under(f"{i}", data(50_000), KEY, ("--segment", segment))
        (self.dir / "0").chmod(0o640)
        os.symlink("0", self.dir / "link")
        self.ok(*self.FROM_TO, "link", "1")
        self.assertTrue((self.dir / "link").is_symlink())
        self.assertEqual(stat.S_IMODE((self.dir / "0").stat().st_mode), 0o640)
        for i in range(2):
            self.opens(f"{i}", data(50_000), "--key-file", "fresh")
            self.fails(FAILED, "is not authentic", "open", *KEY, f"{i}", "-o", "never")
        ran = self.run_program(*self.FROM_TO, "0")
        self.assertEqual((ran.returncode, ran.stderr), (0, b"daelstrom: '0' is sealed with the new key already\n"))
        self.ok("reseal", "--key-file", "fresh", "--new-key-file", "key128", "0")
        self.opens("0", data(50_000), *NEW)

    def test_associated_data_stays(self):
        self.under("x", data(10), KEY, ("--aad", "name"))
        self.fails(FAILED, "other associated data", *self.FROM_TO, "x")
        self.ok(*self.FROM_TO, "--aad", "name", "x")
        self.opens("x", data(10), "--key-file", "fresh", "--aad", "name")

    def test_what_cannot_be_opened_stays_as_it_was(self):
        """The damage is in the last segment: all of it is verified before anything is replaced."""
        self.under("good", data(10), KEY)
        sealed = bytearray(self.ok("seal", *KEY, given=data(9 * LARGE)))
        sealed[-1] ^= 1
        self.write("bad", sealed)
        self.write("cut", sealed[:5 * LARGE])
        self.under("other", data(10), NEW)
        self.write("empty", b"")
        self.write("password", b"pw\n")
        self.under("locked", data(10), ("--passphrase-file", "password", "--cost", "10"))
        self.under("hard", data(10), KEY)
        os.link(self.dir / "hard", self.dir / "hard2")
        before = self.listing()
        names = ("bad", "cut", "other", "empty", "locked", "hard", "/dev/null", "absent")
        for name, pattern in zip(names, ("segment 9, the last one, is not authentic", "segment 4, the last one",
                                         "does not begin as sealed data of any of these keys", "cut off", "`daelstrom rewrap`", "has 2 names",
                                         "no regular file that can be replaced", "cannot open 'absent'")):
            self.fails(FAILED, f"'{name}'.*{pattern}|{pattern}", *self.FROM_TO, name)
        said = self.partly(*self.FROM_TO, *names, "good")
        self.assertEqual(said[-1], "1 file sealed anew, 8 failed")
        after = self.listing()
        self.assertNotEqual(after.pop("good"), before.pop("good"))
        self.assertEqual(after, before)
        self.opens("good", data(10), "--key-file", "fresh")

    def test_what_somebody_wrote_meanwhile_stays(self):
        self.write("plain", data(40 << 20))
        self.write("newest", b"written last")
        self.ok("seal", *KEY, "plain", "-o", "f.sealed")
        self.ok("seal", *NEW, "newest")
        with subprocess.Popen([PROGRAM, "reseal", "--threads", "1", "--backend", "reference", *KEY, "--new-key-file",
                               "key128", "f.sealed"], cwd=self.dir, stderr=subprocess.PIPE) as program:
            opened = os.stat(self.dir / "f.sealed")
            while program.poll() is None and not has_open(program.pid, opened):
                time.sleep(0.001)
            os.rename(self.dir / "newest.sealed", self.dir / "f.sealed")
            said = program.stderr.read()
        if program.returncode != 0:
            self.assertIn(b"another file by now: nothing was replaced", said)
        self.opens("f.sealed", b"written last", *NEW)

    def test_a_link_in_its_place_is_not_followed(self):
        """The passphrase is asked for once the file has been opened: there the file is exchanged."""
        self.write("plain", data(1000))
        self.write("victim", b"precious")
        (self.dir / "victim").chmod(0o600)
        for name, word in (("old", b"one"), ("new", b"two")):
            self.write(name, word)
            (self.dir / name).chmod(0o600)
        for there in ("a link", "a newer file"):
            self.ok("seal", "--cost", "10", "--passphrase-file", "old", "plain", "-o", "f.sealed", "-f")
            os.mkfifo(self.dir / "fifo", 0o600)
            with subprocess.Popen([PROGRAM, "rewrap", "--cost", "10", "--passphrase-file", "fifo",
                                   "--new-passphrase-file", "new", "f.sealed"], cwd=self.dir,
                                  stderr=subprocess.PIPE) as program:
                with open_when_read(self.dir / "fifo", program) as fifo:
                    self.write("newer", b"newer")
                    if there == "a link":
                        os.symlink("victim", self.dir / "other")
                    else:
                        os.rename(self.dir / "newer", self.dir / "other")
                    os.rename(self.dir / "other", self.dir / "f.sealed")
                    fifo.write(b"one\n")
                said = program.stderr.read()
            self.assertEqual((program.returncode, self.read("victim")), (FAILED, b"precious"))
            self.assertIn(b"another file by now: nothing was replaced", said)
            self.assertEqual(self.read("f.sealed"), b"precious" if there == "a link" else b"newer")
            (self.dir / "fifo").unlink()
            (self.dir / "f.sealed").unlink()

    def test_only_sealed_names_in_folders(self):
        self.under("in/a.sealed", data(1), KEY)
        self.write("in/b.txt", b"text")
        self.assertEqual(self.partly(*self.FROM_TO, "--recursive", "in", status=0), ["1 file sealed anew, 1 left alone"])
        self.opens("in/a.sealed", data(1), "--key-file", "fresh")

    def test_what_the_command_line_cannot_mean(self):
        self.under("x", data(1), KEY)
        self.write("keyset", keyset((1, self.OLD, SMALL), primary=1))
        for pattern, arguments in (("name the files", KEY + ("--new-key-file", "fresh")),
                                   ("say which keys", (*KEY, "x")), ("say which keys", ("x",)),
                                   ("excludes", ("--keyset", "keyset", *KEY, "x")),
                                   ("cannot be both keys", ("--key-file", "-", "--new-key-file", "-", "x"))):
            self.fails(USAGE, pattern, "reseal", *arguments)
        self.fails(FAILED, "would both go to", *self.FROM_TO, "x", "./x")
        self.fails(FAILED, "24 bytes", "reseal", *KEY, "--new-key-file", "key192", "x")

    def test_interrupted(self):
        for i in range(300):
            self.write(f"in/{i}.sealed", b"")
        self.under("one", data(20_000), KEY)
        for i in range(300):
            self.write(f"in/{i}.sealed", self.read("one"))
        with subprocess.Popen([PROGRAM, *self.FROM_TO, "--threads", "4", "--recursive", "in"], cwd=self.dir) as program:
            time.sleep(0.1)
            program.send_signal(signal.SIGINT)
            self.assertIn(program.wait(60), (0, -signal.SIGINT))
        self.assertEqual(len(os.listdir(self.dir / "in")), 300)
        self.ok(*self.FROM_TO, "-q", "--recursive", "in")  # what was done is left alone, the rest follows
        self.ok("open", "--key-file", "fresh", "--recursive", "in", "--output-dir", "out")
        self.assertEqual({self.read(f"out/{i}") for i in range(300)}, {data(20_000)})
