# SPDX-License-Identifier: Apache-2.0
"""What happens to files: names, permissions, links, pipes, and that a file appears whole or not at all."""
import os
import pathlib
import re
import shutil
import stat
import struct
import subprocess
import tempfile
import threading
import time

from harness import CHUNK, IV, PROGRAM, CliTest, data, openssl_enc, sanitized

WITH_IV = ("--key-file", "key128", "--iv", IV)


class Names(CliTest):
    def setUp(self):
        super().setUp()
        self.write("plain", data(100))
        self.expected = openssl_enc("ctr", 128, data(100))

    def test_refuses_to_overwrite_without_f(self):
        self.write("out", b"precious")
        self.fails(1, "'out' exists; -f overwrites it", "encrypt", *WITH_IV, "plain", "-o", "out")
        self.ok("encrypt", *WITH_IV, "plain", "-o", "out", "-f")
        self.assertEqual(self.read("out"), self.expected)

    def test_refuses_its_input_as_output(self):
        os.link(self.dir / "plain", self.dir / "hard")
        os.symlink("plain", self.dir / "soft")
        for name in ("plain", "./plain", "hard", "soft"):
            self.fails(1, "is the input itself", "encrypt", *WITH_IV, "plain", "-o", name, "-f")
        with open(self.dir / "plain", "ab") as appending:
            self.fails(1, "standard output is the input itself", "encrypt", *WITH_IV, "plain", stdout=appending)
        with open(self.dir / "plain", "rb") as reading:
            self.fails(1, "is the input itself", "encrypt", *WITH_IV, "-o", "plain", "-f", stdin=reading)

    def test_overwriting_behind_a_link_keeps_the_link(self):
        self.write("target", b"old")
        os.symlink("target", self.dir / "link")
        self.fails(1, "exists", "encrypt", *WITH_IV, "plain", "-o", "link")
        self.ok("encrypt", *WITH_IV, "plain", "-o", "link", "-f")
        self.assertTrue((self.dir / "link").is_symlink())
        self.assertEqual(self.read("target"), self.expected)

    def test_a_dangling_link_is_not_followed(self):
        os.symlink("nowhere", self.dir / "link")
        self.fails(1, "exists", "encrypt", *WITH_IV, "plain", "-o", "link")

    def test_a_link_that_names_standard_output(self):
        """Whatever standard output is: its bytes go there, and the link stays."""
        for link_to in ("/proc/self/fd/1", "/dev/fd/1"):
            link = self.dir / "stdout"
            link.unlink(missing_ok=True)
            os.symlink(link_to, link)
            for force in ((), ("-f",)):
                with open(self.dir / "log", "w+b") as log, tempfile.TemporaryFile(dir=self.dir) as unnamed:
                    log.write(b"before ")
                    log.flush()
                    for out in (log, unnamed):
                        ran = self.run_program("encrypt", *WITH_IV, "plain", "-o", "stdout", *force, stdout=out)
                        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
                    unnamed.seek(0)
                    self.assertEqual(unnamed.read(), self.expected)
                    self.assertEqual(os.stat(self.dir / "log").st_ino, os.fstat(log.fileno()).st_ino)
                self.assertEqual(self.read("log"), b"before " + self.expected)
                self.assertTrue(link.is_symlink())
        with open(self.dir / "plain", "ab") as appending:
            self.fails(1, "is the input itself", "encrypt", *WITH_IV, "plain", "-o", "stdout", stdout=appending)

    def test_a_descriptor_that_only_reads(self):
        with open(self.dir / "plain", "rb") as reading:
            self.fails(1, "not open for writing", "encrypt", *WITH_IV, "-o", f"/dev/fd/{reading.fileno()}",
                       given=b"x", pass_fds=[reading.fileno()])

    def test_a_name_of_as_many_bytes_as_names_may_have(self):
        for name in ("日" * 85, "a" * 255):
            for force in ((), ("-f",)):
                self.ok("encrypt", *WITH_IV, "plain", "-o", name, *force)
                self.assertEqual(self.read(name), self.expected)

    def test_other_directories_and_odd_names(self):
        (self.dir / "sub").mkdir()
        for name in ("sub/out", str(self.dir / "sub/absolute"), "with space", "-dash", "line\nbreak"):
            self.ok("encrypt", *WITH_IV, f"--output={name}", "plain")
            self.assertEqual((self.dir / name).read_bytes(), self.expected)

    def test_an_input_named_like_an_option(self):
        self.write("--mode", data(100))
        self.assertEqual(self.ok("encrypt", *WITH_IV, "--", "--mode"), self.expected)


class Permissions(CliTest):
    def mode_of(self, name):
        return stat.S_IMODE((self.dir / name).stat().st_mode)

    def test_a_new_file_follows_its_input_and_the_umask(self):
        self.write("plain", data(10))
        for mode, expected in ((0o600, 0o600), (0o644, 0o640), (0o666, 0o640), (0o755, 0o640)):
            (self.dir / "plain").chmod(mode)
            self.ok("encrypt", *WITH_IV, "plain", "-o", f"out{mode}", umask=0o027)
            self.assertEqual(self.mode_of(f"out{mode}"), expected)
        self.ok("encrypt", *WITH_IV, "-o", "piped", given=b"x", umask=0o027)
        self.assertEqual(self.mode_of("piped"), 0o640)

    def as_another(self, **who):
        if os.geteuid() != 0 or any(not os.stat(p).st_mode & 1 for p in pathlib.Path(PROGRAM).resolve().parents):
            self.skipTest("another user cannot run the program")
        self.dir.chmod(0o777)
        os.chown(self.dir / "key128", 65534, 65534)
        return {"user": 65534, "group": 100, "extra_groups": [], **who}

    def test_another_group_is_not_let_in(self):
        """Who was in the input's group is not who is in the caller's."""
        nobody, member = self.as_another(), self.as_another(extra_groups=[4321])
        self.write("plain", data(10))
        os.chown(self.dir / "plain", 65534, 4321)
        for mode, without in ((0o640, 0o600), (0o644, 0o644), (0o604, 0o600)):
            (self.dir / "plain").chmod(mode)
            self.ok("encrypt", *WITH_IV, "plain", "-o", f"{mode}", umask=0o022, **nobody)
            self.assertEqual((self.mode_of(f"{mode}"), (self.dir / f"{mode}").stat().st_gid), (without, 100))
            self.ok("encrypt", *WITH_IV, "plain", "-o", f"{mode}kept", umask=0o022, **member)
            self.assertEqual((self.mode_of(f"{mode}kept"), (self.dir / f"{mode}kept").stat().st_gid), (mode, 4321))

    def test_a_lists_mask_is_not_what_the_group_may(self):
        self.write("plain", data(10))
        entries = [(1, 6, 0xffffffff), (2, 6, 5555), (4, 0, 0xffffffff), (16, 6, 0xffffffff), (32, 0, 0xffffffff)]
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        try:
            os.setxattr(self.dir / "plain", "system.posix_acl_access", acl)
        except OSError as fault:
            self.skipTest(f"this file system keeps none: {fault}")
        self.assertEqual(self.mode_of("plain"), 0o660)
        self.ok("encrypt", *WITH_IV, "plain", "-o", "out", umask=0o022)
        self.assertEqual(self.mode_of("out"), 0o600)

    def test_an_overwritten_file_keeps_its_own(self):
        self.write("plain", data(10))
        self.write("out", b"old")
        (self.dir / "out").chmod(0o604)
        self.ok("encrypt", *WITH_IV, "plain", "-o", "out", "-f")
        self.assertEqual(self.mode_of("out"), 0o604)

    def warns(self, pattern, *arguments, **options):
        ran = self.run_program(*arguments, **options)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stderr.decode(), r"\Adaelstrom: warning: [^\n]+\n\Z")
        self.assertRegex(ran.stderr.decode(), pattern)

    def test_an_overwritten_file_keeps_its_owner_and_group(self):
        if os.geteuid() != 0:
            self.skipTest("only root may give files away")
        self.write("plain", data(10))
        self.write("out", b"old")
        os.chown(self.dir / "out", 1234, 5678)
        (self.dir / "out").chmod(0o640)
        self.ok("encrypt", *WITH_IV, "plain", "-o", "out", "-f")
        status = (self.dir / "out").stat()
        self.assertEqual((status.st_uid, status.st_gid, self.mode_of("out")), (1234, 5678, 0o640))

    def test_an_owner_and_group_that_cannot_be_kept_draw_a_warning(self):
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        if os.geteuid() != 0 or any(not os.stat(p).st_mode & 1 for p in pathlib.Path(PROGRAM).resolve().parents):
            self.skipTest("another user cannot run the program")
        self.dir.chmod(0o777)
        self.write("plain", data(10))
        self.write("out", b"old")
        (self.dir / "out").chmod(0o640)
        for name in "key128", "plain":
            os.chown(self.dir / name, 65534, 65534)
        self.warns("'out' could not keep its owner and group", "encrypt", *WITH_IV, "plain", "-o", "out", "-f",
                   **nobody)
        self.assertEqual((self.dir / "out").stat().st_uid, 65534)
        self.assertEqual(self.mode_of("out"), 0o600)  # the new group is not the one that could read it
        self.ok("encrypt", *WITH_IV, "plain", "-o", "out", "-f", "-q", **nobody)

    def test_an_overwritten_file_keeps_its_attributes_and_lists(self):
        self.write("plain", data(10))
        self.write("out", b"old")
        path = self.dir / "out"
        # Version 2; owner rw, user 1234 r, group nothing, mask r, others nothing (acl(5)).
        entries = [(1, 6, 0xffffffff), (2, 4, 1234), (4, 0, 0xffffffff), (16, 4, 0xffffffff), (32, 0, 0xffffffff)]
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        try:
            os.setxattr(path, "user.note", b"for May")
            os.setxattr(path, "system.posix_acl_access", acl)
        except OSError as fault:
            self.skipTest(f"this file system keeps none: {fault}")
        self.ok("encrypt", *WITH_IV, "plain", "-o", "out", "-f")
        self.assertEqual(os.getxattr(path, "user.note"), b"for May")
        self.assertEqual(os.getxattr(path, "system.posix_acl_access"), acl)
        self.assertEqual(self.mode_of("out"), 0o640)

    def test_a_list_of_the_folder_lets_nobody_new_in(self):
        self.write("plain", data(10))
        self.write("out", b"old")
        (self.dir / "out").chmod(0o640)
        entries = [(1, 6, 0xffffffff), (2, 6, 1234), (4, 0, 0xffffffff), (16, 6, 0xffffffff), (32, 0, 0xffffffff)]
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        try:
            os.setxattr(self.dir, "system.posix_acl_default", acl)
        except OSError as fault:
            self.skipTest(f"this file system keeps none: {fault}")
        self.ok("encrypt", *WITH_IV, "plain", "-o", "out", "-f")
        self.assertNotIn("system.posix_acl_access", os.listxattr(self.dir / "out"))

    def test_other_names_of_an_overwritten_file_draw_a_warning(self):
        self.write("plain", data(10))
        self.write("out", b"old")
        os.link(self.dir / "out", self.dir / "other")
        self.warns("'out' had other names", "encrypt", *WITH_IV, "plain", "-o", "out", "-f")
        self.assertEqual(self.read("other"), b"old")

    def calls(self, *command):
        """What the program asks of the disk, in order."""
        if not shutil.which("strace"):
            self.skipTest("there is no strace")
        if sanitized():
            self.skipTest("the leak check cannot trace a program that is traced")
        self.write("plain", data(10))
        subprocess.run(["strace", "-f", "-e", "trace=fsync,syncfs,linkat,rename,renameat,renameat2", "-o", "calls",
                        PROGRAM, *command], cwd=self.dir, check=True, stdout=subprocess.DEVNULL)
        return re.findall(r"(fsync|syncfs|linkat|rename)\w*\(", self.read("calls").decode())

    def test_a_file_that_takes_anothers_place_reaches_the_disk_first(self):
        self.write("out", b"old")
        # The link comes before: btrfs brings a file without a name to the disk by halves.
        self.assertEqual(self.calls("encrypt", *WITH_IV, "plain", "-o", "out", "-f")[-4:],
                         ["linkat", "fsync", "rename", "fsync"])

    def test_new_keys_are_on_the_disk(self):
        for command in (("keygen", "-o", "new"), ("keyset", "create", "keys.json")):
            self.assertEqual(self.calls(*command)[-3:], ["linkat", "fsync", "fsync"])
        self.assertEqual(self.calls("encrypt", *WITH_IV, "plain", "-o", "without")[-1], "linkat")
        self.assertEqual(self.calls("encrypt", *WITH_IV, "plain", "-o", "with", "--sync")[-3:],
                         ["linkat", "fsync", "fsync"])

    def test_many_files_wait_for_the_disk_together(self):
        for i in range(10):
            self.write(f"{i}", data(10))
            self.write(f"{i}.sealed", b"old")
        calls = self.calls("seal", "--key-file", "key128", "-f", *map(str, range(10)))
        self.assertEqual([call for call in calls if call.endswith(("sync", "syncfs"))], ["syncfs", "syncfs"])
        self.assertEqual(calls.count("rename"), 10)
        self.assertEqual(calls[0], "syncfs")
        for i in range(10):
            self.assertEqual(self.ok("open", "--key-file", "key128", f"{i}.sealed", "-o", "-"), data(10))


class Lacking(CliTest):
    """Folders without hard links, without flags of renameat2, without permissions, without unnamed files; what
    stands for them is a library that answers for the kernel."""

    def test_new_and_overwritten_files_come_to_their_places(self):
        library = os.environ.get("DAELSTROM_LACKING", "")
        if not os.path.exists(library) or sanitized():
            self.skipTest("nothing that can stand for such folders was built, or may be loaded here")
        self.write("plain", data(100))
        expected = openssl_enc("ctr", 128, data(100))
        for lacks in ("unnamed", "links", "unnamed links", "flags", "unnamed flags", "links flags",
                      "unnamed links flags", "rights", "unnamed rights"):
            env = dict(os.environ, LD_PRELOAD=library, DAELSTROM_LACKS=lacks)
            before = set(self.listing())
            self.ok("encrypt", *WITH_IV, "plain", "-o", "out", env=env)
            self.fails(1, "exists", "encrypt", *WITH_IV, "plain", "-o", "out", env=env)
            self.write("old", b"old")
            ran = self.run_program("encrypt", *WITH_IV, "plain", "-o", "old", "-f", env=env)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual((self.read("out"), self.read("old")), (expected, expected), lacks)
            self.ok("keygen", "-o", "key", env=env)
            self.assertEqual(stat.S_IMODE((self.dir / "key").stat().st_mode), 0o600)
            self.assertEqual(set(self.listing()) - before, {"out", "old", "key"})
            for name in ("out", "old", "key"):
                (self.dir / name).unlink()


class Streams(CliTest):
    def test_a_file_appears_only_when_complete(self):
        before = set(self.listing())
        program = subprocess.Popen([PROGRAM, "encrypt", *WITH_IV, "-o", "out"], cwd=self.dir,
                                   stdin=subprocess.PIPE)
        program.stdin.write(data(3 * CHUNK))
        program.stdin.flush()
        visible = {name for name in set(self.listing()) - before if not name.startswith(".daelstrom-")}
        program.stdin.write(data(1))
        program.stdin.close()
        self.assertEqual(program.wait(60), 0)
        self.assertEqual(visible, set())
        self.assertEqual(set(self.listing()) - before, {"out"})
        self.assertTrue(self.read("out") == openssl_enc("ctr", 128, data(3 * CHUNK) + data(1)))

    def test_named_pipes_and_devices_are_written_as_they_are(self):
        os.mkfifo(self.dir / "pipe")
        got = []
        reader = threading.Thread(target=lambda: got.append(self.read("pipe")), daemon=True)
        reader.start()
        self.ok("encrypt", *WITH_IV, "-o", "pipe", given=data(CHUNK + 1))
        reader.join(60)
        self.assertTrue(got[0] == openssl_enc("ctr", 128, data(CHUNK + 1)))
        self.ok("encrypt", *WITH_IV, "-o", "/dev/null", given=data(100))
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_file_that_is_half_read_already(self):
        self.write("plain", data(1000))
        with open(self.dir / "plain", "rb", buffering=0) as half_read:
            half_read.read(300)
            self.assertEqual(self.ok("encrypt", *WITH_IV, stdin=half_read),
                             openssl_enc("ctr", 128, data(1000)[300:]))

    def test_a_slow_pipe(self):
        command = f"(printf abc; sleep 0.3; printf defg) | '{PROGRAM}' encrypt --key-file key128 --iv {IV}"
        made = subprocess.run(["sh", "-c", command], cwd=self.dir, check=True, capture_output=True).stdout
        self.assertEqual(made, openssl_enc("ctr", 128, b"abcdefg"))

    def test_a_full_pipe_that_does_not_block(self):
        """Whoever made the pipe non-blocking: the program waits for room, and does not spin."""
        self.write("plain", data(CHUNK))
        read, write = os.pipe()
        os.set_blocking(write, False)
        with subprocess.Popen([PROGRAM, "encrypt", *WITH_IV, "plain"], cwd=self.dir, stdout=write) as program:
            os.close(write)
            time.sleep(2)
            with open(f"/proc/{program.pid}/stat") as stat_file:
                user, system = stat_file.read().rpartition(")")[2].split()[11:13]
            with open(read, "rb") as pipe:
                self.assertEqual(pipe.read(), openssl_enc("ctr", 128, data(CHUNK)))
        self.assertEqual(program.returncode, 0)
        self.assertLess((int(user) + int(system)) / os.sysconf("SC_CLK_TCK"), 1)

    def test_files_of_the_kernel_that_state_a_wrong_size(self):
        self.assertEqual(self.ok("encrypt", *WITH_IV, "/proc/self/limits")[:4],
                         openssl_enc("ctr", 128, b"Limi"))

    def test_memory_does_not_grow_with_the_file(self):
        """Half a gibibyte of zeros within the address space that a small file takes, and a little."""
        if sanitized():
            self.skipTest("a sanitizer reserves terabytes of address space")
        size = 512 << 20
        with open(self.dir / "large", "wb") as large:
            large.truncate(size)
        command = f"ulimit -v 400000; exec '{PROGRAM}' encrypt --threads 2 --key-file key128 large"
        with subprocess.Popen(["sh", "-c", command], cwd=self.dir, stdout=subprocess.PIPE) as program:
            total = sum(len(part) for part in iter(lambda: program.stdout.read(1 << 20), b""))
        self.assertEqual((program.returncode, total), (0, size + 16))


class Secrets(CliTest):
    def test_a_key_from_standard_input_or_a_descriptor(self):
        self.write("plain", data(100))
        expected = openssl_enc("ctr", 128, data(100))
        from_stdin = self.ok("encrypt", "--key-file", "-", "--iv", IV, "plain", given=self.read("key128"))
        self.assertEqual(from_stdin, expected)
        with open(self.dir / "key128", "rb") as handle:
            fd = handle.fileno()
            self.assertEqual(self.ok("encrypt", "--key-fd", fd, "--iv", IV, "plain", pass_fds=[fd]), expected)

    def test_a_password_from_a_descriptor_is_its_first_line(self):
        self.write("passwords", b"first\nsecond\n")
        with open(self.dir / "passwords", "rb") as handle:
            fd = handle.fileno()
            cipher = self.ok("encrypt", "--openssl", "--password-fd", fd, given=data(40), pass_fds=[fd])
        self.write("password", b"first")
        self.assertEqual(self.ok("decrypt", "--openssl", "--password-file", "password", given=cipher), data(40))

    def test_a_secret_that_others_can_read_draws_a_warning(self):
        for mode, who in (0o644, "everybody"), (0o640, "its group"):
            (self.dir / "key128").chmod(mode)
            ran = self.run_program("encrypt", *WITH_IV, given=b"x")
            self.assertEqual((ran.returncode, ran.stdout), (0, openssl_enc("ctr", 128, b"x")))
            self.assertRegex(ran.stderr.decode(),
                             rf"\Adaelstrom: warning: [^\n]*key file 'key128', which is open to {who}; chmod 600")
            self.ok("encrypt", "-q", *WITH_IV, given=b"x")
        self.write("word", b"first")
        (self.dir / "word").chmod(0o644)
        self.assertIn(b"password file 'word'", self.run_program("encrypt", "--openssl", "--password-file", "word",
                                                                given=b"x").stderr)

    def test_no_secret_comes_from_the_environment(self):
        environment = dict(os.environ, DAELSTROM_KEY="00" * 16, DAELSTROM_PASSWORD="pw", KEY="00" * 16)
        self.write("plain", b"x")
        self.fails(1, "no terminal", "encrypt", "plain", env=environment, start_new_session=True)

    def test_the_program_leaves_no_core(self):
        if not shutil.which("sh"):
            self.skipTest("there is no sh")
        program = subprocess.Popen(["sh", "-c", f"ulimit -c unlimited 2>/dev/null; exec '{PROGRAM}' encrypt "
                                    "--key-file key128"], cwd=self.dir, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        program.stdout.read(16)  # the IV: the key has been read
        with open(f"/proc/{program.pid}/limits", encoding="ascii") as limits:
            core = next(line for line in limits if line.startswith("Max core file size")).split()
        program.stdin.close()
        program.stdout.close()
        program.wait(60)
        self.assertEqual(core[4:6], ["0", "0"])
