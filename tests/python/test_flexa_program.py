# SPDX-License-Identifier: Apache-2.0
"""FlexA at a terminal: ``python -m daelstrom.flexa``, and `daelstrom flexa`, which starts it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("fsspec")
from daelstrom.flexa import Keyring
from daelstrom.flexa.__main__ import main

PROGRAM = os.environ.get("DAELSTROM", "")


class Terminal:
    """Calls of `main`, or of a program."""

    def __init__(self, folder, captured, monkeypatch) -> None:
        self.folder, self.captured, self.monkeypatch = folder, captured, monkeypatch
        (folder / "words").write_text("five words or so\n")
        monkeypatch.chdir(folder)
        self.program = []
        self.ring = ["-k", "ring", "--passphrase-file", "words"]

    def run(self, *words, ring=True, given=b"", status=0, env=None):
        words = [*(self.ring if ring else []), *words]
        if self.program:
            ran = subprocess.run([*self.program, *words], input=given, timeout=60, capture_output=True, env=env)
            code, out, self.said = ran.returncode, ran.stdout, ran.stderr.decode()
        else:
            self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
            try:
                code = main(words)
            except SystemExit as left:
                code = left.code
            sys.stdout.flush()
            out, said = self.captured.readouterr()
            self.said = said.decode()
        assert code == status, (words, self.said)
        return out


@pytest.fixture
def terminal(tmp_path, capfdbinary, monkeypatch):
    made = Terminal(tmp_path, capfdbinary, monkeypatch)
    made.run("init", "--cost", "10", "s0", "s1", "s2")
    return made


def test_what_is_put_is_got(terminal):
    data = os.urandom(3_000_000)
    (terminal.folder / "plain").write_bytes(data)
    terminal.run("put", "plain", "a/b")
    terminal.run("put", "-", "a/in", given=b"piped")
    terminal.run("get", "a/b", "out")
    assert (terminal.folder / "out").read_bytes() == data
    assert terminal.run("cat", "a/in") == b"piped"
    assert terminal.run("cat", "--range", "1000-2000", "a/b") == data[1000:2000]
    terminal.run("put", "plain", "words", "several")
    assert terminal.run("ls", "several") == b"plain\nwords\n"
    assert [(one["name"], one["size"]) for one in json.loads(terminal.run("ls", "--json", "a"))] == [("a/b", 3_000_000), ("a/in", 5)]
    assert re.search(rb"^ +5 \d{4}-\d\d-\d\d .* in$", terminal.run("ls", "-l", "a"), re.M)
    terminal.run("mv", "a/in", "a/on")
    terminal.run("mkdir", "-p", "c/d")
    terminal.run("rm", "a/on")
    terminal.run("rm", "-r", "c")
    assert terminal.run("ls") == b"a/\nseveral/\n"
    terminal.run("put", "--new", "plain", "a/b", status=1)
    assert "File exists" in terminal.said
    terminal.run("cat", "nothing", status=1)
    assert terminal.said == "daelstrom flexa: nothing: No such file or directory\n"
    terminal.run("frobnicate", status=2)


def test_a_store_is_lost(terminal):
    terminal.run("put", "words", "w")
    subprocess.run(["rm", "-r", terminal.folder / "s1"], check=True)
    assert terminal.run("cat", "w") == b"five words or so\n"
    assert str(terminal.folder / "s1") in terminal.said
    assert b"failing" in terminal.run("status", status=1)
    assert b"s1" in terminal.run("verify", status=1)
    assert b"restored" in terminal.run("repair")
    report = json.loads(terminal.run("verify", "--json"))
    assert report["ok"] and report["files"] == 2 and not report["faults"]
    assert all(store["state"] == "ok" for store in json.loads(terminal.run("status", "--json"))["stores"])
    os.rename(terminal.folder / "s2", terminal.folder / "gone")
    terminal.run("replace", "s2", "new")
    terminal.run("repair")
    assert terminal.run("verify").startswith(b"2 files")


def test_shares(terminal):
    terminal.run("put", "words", "d/w")
    terminal.run("share", "d", "theirs", "--read")
    terminal.run("share", "d/w", "check", "--verify")
    assert terminal.run("--share", "theirs", "cat", "w", ring=False) == b"five words or so\n"
    terminal.run("--share", "theirs", "put", "words", "x", ring=False, status=1)
    assert terminal.run("--share", "check", "verify", ring=False).startswith(b"1 files, 17 bytes: 0 faults")
    terminal.run("--share", "check", "cat", "w", ring=False, status=1)


def test_keyrings(terminal):
    (terminal.folder / "words").write_text("others\n")
    terminal.run("ls", status=1)
    assert "number" not in terminal.said and "Traceback" not in terminal.said
    (terminal.folder / "words").write_text("five words or so\n")
    terminal.run("init", "--cost", "10", "s0", "s1", "s3", status=1)  # it has other stores
    terminal.run("init", "--cost", "10", "s0", "s1", "s2")
    terminal.monkeypatch.setenv("DAELSTROM_FLEXA", "/nowhere")
    terminal.run("--passphrase-file", "words", "ls", ring=False, status=1)
    assert "/nowhere" in terminal.said


def test_options_stand_before_the_action_or_behind_it(terminal):
    assert terminal.run("ls", "-k", "ring", "--passphrase-file", "words", ring=False) == b""
    assert terminal.run("-k", "ring", "ls", "--deadline", "5", "--passphrase-file", "words", ring=False) == b""
    for wrong in (["--share", "x", "ls"], ["-i", "x", "ls"], ["--deadline", "0", "ls"], ["--deadline", "nan", "ls"],
                  ["--cache-size", "-1", "ls"], ["cat", "--range", "x-y", "n"], ["cat", "--range", "9-3", "n"],
                  ["repair", "--grace", "-1"], ["init", "--cost", "21", "a", "b", "c"]):  # fmt: skip
        terminal.run(*wrong, status=2)
        assert "usage:" in terminal.said and "Traceback" not in terminal.said


def test_files_and_places_of_every_kind(terminal):
    (terminal.folder / "a folder").mkdir()
    os.mkfifo(terminal.folder / "pipe")
    terminal.run("put", "a folder", "x", status=1)
    assert "a folder: this is a folder" in terminal.said
    terminal.run("put", "words", "d/")
    terminal.run("put", "words", "d", status=1)
    assert "d/ puts it in there" in terminal.said
    terminal.run("put", "-", "words", "d", status=1)
    assert "no name of its own" in terminal.said
    writer = subprocess.Popen(["sh", "-c", "printf piped > pipe"], cwd=terminal.folder)
    terminal.run("put", "pipe", "of a pipe")
    assert writer.wait(10) == 0 and terminal.run("get", "of a pipe", "-") == b"piped"
    for name in (" two  spaces ", "-dash", "--help", "žluťoučký", "new\nline", "x" * 255):
        terminal.run("put", "--", "words", name)
        assert terminal.run("cat", "--", name) == b"five words or so\n"
        terminal.run("rm", "--", name)
    terminal.run("put", "--", "words", "x" * 256, status=1)
    terminal.run("mkdir", "-p", "d")
    terminal.run("mkdir", "d", status=1)
    (terminal.folder / "there").write_text("old")
    os.chmod(terminal.folder / "there", 0o600)
    terminal.run("get", "nothing", "there", status=1)
    terminal.run("get", "d", "there", status=1)
    assert (terminal.folder / "there").read_text() == "old"
    terminal.run("get", "d/words", "a folder")
    assert (terminal.folder / "a folder" / "words").read_bytes() == b"five words or so\n"


def test_what_is_read_of_a_file_that_is_lost_is_nowhere(terminal):
    data = os.urandom(5_000_000)
    (terminal.folder / "plain").write_bytes(data)
    terminal.run("put", "plain", "p")
    (terminal.folder / "plain").write_text("old")
    for store in ("s0", "s1", "s2"):
        for piece in (terminal.folder / store).glob("*/d-*"):
            piece.write_bytes(bytes(piece.stat().st_size))
    before = sorted(os.listdir(terminal.folder))
    terminal.run("get", "p", "plain", status=1)
    terminal.run("get", "p", "other", status=1)
    assert (terminal.folder / "plain").read_text() == "old" and sorted(os.listdir(terminal.folder)) == before
    assert terminal.run("cat", "p", status=1) == b"" and "Traceback" not in terminal.said


def test_passphrases(terminal, monkeypatch):
    (terminal.folder / "empty").write_text("\n")
    terminal.run("-k", "ring", "--passphrase-file", "empty", "ls", ring=False, status=1)
    assert "empty" in terminal.said
    # What is piped in is what is put, and no passphrase.
    ran = subprocess.run([sys.executable, "-m", "daelstrom.flexa", "-k", "ring", "put", "-", "x"], input=b"five words or so\n",
                         capture_output=True, start_new_session=True, timeout=60)  # fmt: skip
    assert ran.returncode == 1 and b"--passphrase-file" in ran.stderr and b"Traceback" not in ran.stderr
    assert terminal.run("ls") == b""


def test_a_share_for_others(terminal):
    from daelstrom.files import generate_identity

    identity, recipient = generate_identity()
    (terminal.folder / "me").write_text(identity)
    (terminal.folder / "their words").write_text("hush hush\n")
    terminal.run("put", "words", "d/w")
    terminal.run("share", "d", "sealed", "--read", "-r", recipient)
    terminal.run("share", "d/w", "worded", "--read", "--new-passphrase-file", "their words")
    terminal.run("share", "d/w", "both", "--read", "-p", "-r", recipient, status=1)
    assert terminal.run("--share", "sealed", "-i", "me", "cat", "w", ring=False) == b"five words or so\n"
    terminal.run("--share", "sealed", "cat", "w", ring=False, status=1)
    assert "--identity" in terminal.said
    terminal.run("--share", "sealed", "--passphrase-file", "words", "cat", "w", ring=False, status=1)
    assert "--identity" in terminal.said
    assert terminal.run("--share", "worded", "--passphrase-file", "their words", "cat", "", ring=False) == b"five words or so\n"
    os.mkdir(terminal.folder / "to")
    terminal.run("--share", "worded", "--passphrase-file", "their words", "get", "", "to", ring=False)
    assert (terminal.folder / "to" / "w").read_bytes() == b"five words or so\n"
    terminal.run("--share", "worded", "--passphrase-file", "words", "cat", "w", ring=False, status=1)
    terminal.run("-k", "sealed", "--passphrase-file", "words", "ls", ring=False, status=1)
    (terminal.folder / "open").write_text("{}")
    terminal.run("-k", "open", "--passphrase-file", "words", "ls", ring=False, status=1)
    assert "--share" in terminal.said


def test_places_that_are_none(terminal):
    folder = terminal.folder
    (folder / "full").mkdir()
    (folder / "full" / "of").write_text("something")
    (folder / "file").write_text("")
    os.symlink("s0", folder / "link")
    for places, why in ((("n0", "n1", "n1"), "twice"), (("n0", "n1", "n1/"), "twice"), (("n0", "n0/in", "n1"), "one is in"),
                        (("link", "s0", "n1"), "one place"), (("n0", "n1", "full"), "something is there"), (("n0", "n1", "s0"), "something is there"),
                        (("n0", "n1", "file"), "file"), (("n0", "n1", "sftp://me:hush@host/x"), "password"),
                        (("n0", "n1", "nonsense://x"), "nonsense"), (("n0", "n1", "sftp://me:hu/sh@host/x"), "password")):  # fmt: skip
        terminal.run("-k", "another", "--passphrase-file", "words", "init", "--cost", "10", *places, ring=False, status=1)
        assert why in terminal.said and "Traceback" not in terminal.said and "hush" not in terminal.said
        assert not (folder / "another").exists()  # so that it can be begun again
    for text, why in (("[]", "options"), ("{", "options"), ('{"n9": {}}', "n9"), ('{"n0": 5}', "options")):
        (folder / "options").write_text(text)
        terminal.run("-k", "another", "--passphrase-file", "words", "init", "--options", "options", "n0", "n1", "n2", ring=False, status=1)
        assert why in terminal.said and not (folder / "another").exists()


def test_options_of_stores_are_kept_and_changed(terminal):
    (terminal.folder / "options").write_text('{"n0": {"sync": false}}')
    ring = ["-k", "another", "--passphrase-file", "words"]
    terminal.run(*ring, "init", "--cost", "10", "--options", "options", "n0", "n1", "n2", ring=False)
    terminal.run(*ring, "init", "--options", "options", "n0", "n1", "n2", ring=False)
    (terminal.folder / "options").write_text('{"sync": true}')
    terminal.run(*ring, "replace", "n0", "n0", ring=False, status=1)
    terminal.run(*ring, "replace", "n0", "n0", "--options", "options", ring=False)
    url = str(terminal.folder / "n0")
    assert Keyring.open("another", passphrase="five words or so").options == {url: {"sync": True}}
    for text in ('{"n0": 5}', '{"n0": {}}'):  # nothing of the new one
        (terminal.folder / "options").write_text(text)
        new = "n0" if "5" in text else "n8"
        terminal.run(*ring, "replace", "n0", new, "--options", "options", ring=False, status=1)
        assert "no options of" in terminal.said
    (terminal.folder / "options").write_text('{"n0": {"sync": true}}')
    terminal.run(*ring, "replace", "n0", "n0", "--options", "options", ring=False)
    assert Keyring.open("another", passphrase="five words or so").options == {url: {"sync": True}}
    terminal.run(*ring, "replace", "n7", "n8", ring=False, status=1)
    assert url in terminal.said
    terminal.run(*ring, "replace", "n0", "n1/in", ring=False, status=1)
    terminal.run(*ring, "replace", "n0", "s0", ring=False, status=1)
    assert "something is there" in terminal.said
    os.rename(terminal.folder / "n0", terminal.folder / "moved")
    terminal.run(*ring, "replace", "n0", "moved", ring=False)
    assert terminal.run(*ring, "verify", ring=False)


def test_an_identity_replaces_a_store(terminal):
    from daelstrom.files import generate_identity

    identity, recipient = generate_identity()
    (terminal.folder / "me").write_text(identity)
    ring = ["-k", "another", "-i", "me"]
    terminal.run("-k", "another", "init", "-r", recipient, "n0", "n1", "n2", ring=False)
    terminal.run(*ring, "replace", "n0", "n3", ring=False, status=1)
    assert "--recipient" in terminal.said
    terminal.run(*ring, "replace", "n0", "n3", "-r", recipient, ring=False)
    terminal.run(*ring, "repair", ring=False)
    terminal.run("-k", "another", "ls", ring=False, status=1)
    assert "--identity" in terminal.said


def test_what_is_written_nowhere_failed(terminal):
    terminal.run("put", "words", "w")
    words = [sys.executable, "-m", "daelstrom.flexa", *terminal.ring]
    for action in (["ls"], ["cat", "w"], ["ls", "--json"]):
        with open("/dev/full", "wb") as full:
            ran = subprocess.run([*words, *action], stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert ran.returncode == 1 and b"No space left" in ran.stderr and b"Traceback" not in ran.stderr and b"ignored" not in ran.stderr
        ran = subprocess.run(["sh", "-c", 'exec "$@" >&- <&-', "sh", *words, *action], stderr=subprocess.PIPE, timeout=60)
        assert ran.returncode == (1 if "cat" in action else 0) and b"Traceback" not in ran.stderr
    ran = subprocess.run(["sh", "-c", 'exec "$@" <&- 2>&-', "sh", *words, "put", "-", "x"], timeout=60)
    assert ran.returncode == 1
    (terminal.folder / "byte").write_bytes(b"x")
    terminal.run("put", "byte", "žluť")
    ran = subprocess.run([*words, "ls"], env={**os.environ, "PYTHONIOENCODING": "latin-1"}, capture_output=True, timeout=60)
    assert ran.returncode == 0 and ran.stdout.startswith(b"w\n")


def test_input_that_does_not_block_is_all_put(terminal):
    words = [sys.executable, "-m", "daelstrom.flexa", *terminal.ring]
    inside, outside = os.pipe()
    os.set_blocking(inside, False)
    ran = subprocess.Popen([*words, "put", "-", "x"], stdin=inside)
    for part in (b"one ", b"two ", b"three"):
        os.write(outside, part)
        time.sleep(0.5)
    os.close(outside)
    assert ran.wait(60) == 0 and terminal.run("cat", "x") == b"one two three"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_and_leave_nothing(terminal, number):
    words = [sys.executable, "-m", "daelstrom.flexa", *terminal.ring]
    ran = subprocess.Popen([*words, "put", "-", "x"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    ran.stdin.write(bytes(60 << 20))  # pieces of 16 MiB are put meanwhile
    ran.stdin.flush()
    for _ in range(600):
        if list(terminal.folder.glob("s*/*/d-*")):
            break
        time.sleep(0.1)
    else:
        raise AssertionError("no piece was put")
    ran.send_signal(number)
    assert ran.wait(60) == 128 + number
    assert ran.stderr.read() == b"daelstrom flexa: interrupted\n"
    assert terminal.run("ls") == b"" and not list(terminal.folder.glob("s*/*/[dt]-*"))


def test_a_signal_twice_waits_for_nobody(terminal):
    code = ("import sys, threading, time; from daelstrom.flexa import __main__ as m\n"
            "def wait(*_):\n    try:\n        print('here', flush=True); time.sleep(60)\n    finally:\n        print('still', flush=True); time.sleep(60)\n"
            "m._put = wait; sys.exit(m.main(sys.argv[1:]))\n")  # fmt: skip
    ran = subprocess.Popen([sys.executable, "-c", code, *terminal.ring, "put", "words", "x"], stdout=subprocess.PIPE)
    assert ran.stdout.readline() == b"here\n"
    ran.send_signal(signal.SIGINT)
    assert ran.stdout.readline() == b"still\n"
    ran.send_signal(signal.SIGINT)
    assert ran.wait(30) == 130


def test_the_program_starts_it(terminal):
    if not PROGRAM:
        pytest.skip("the program is not built")
    environment = {**os.environ, "DAELSTROM_PYTHON": sys.executable}
    terminal.program = [PROGRAM, "flexa"]
    terminal.run("put", "words", "w", env=environment)
    assert terminal.run("cat", "w", env=environment) == b"five words or so\n"
    terminal.run("cat", "x", env=environment, status=1)
    # Not what lies in the folder that somebody stands in.
    (terminal.folder / "daelstrom").mkdir()
    (terminal.folder / "daelstrom" / "__init__.py").write_text("raise SystemExit('mine')")
    assert terminal.run("cat", "w", env=environment) == b"five words or so\n"
    terminal.run("ls", env={**environment, "PYTHONPATH": "/nowhere"}, status=1)
    assert "pip install 'daelstrom[flexa]'" in terminal.said or "daelstrom flexa" in terminal.said
    terminal.run("ls", env={**environment, "DAELSTROM_PYTHON": "/nowhere/python"}, status=1)
    assert "pip install" in terminal.said


def test_the_program_and_this_have_the_same_options(terminal):
    if not PROGRAM:
        pytest.skip("the program is not built")
    theirs = subprocess.run([PROGRAM, "flexa", "--help"], capture_output=True, text=True, check=True).stdout
    ours = terminal.run("--help", ring=False).decode()
    options = set(re.findall(r"(--[\w-]+)", ours.partition("options:")[2]))
    assert options == set(re.findall(r"(--[\w-]+)", theirs.partition("\nOptions:\n")[2].partition("\nExamples:")[0]))
    actions = set(re.findall(r"^    (\w+)", ours, re.M)) | {"mount"}
    told = re.search(r"^  ACTION\s(.*?); each has", theirs, re.S | re.M)[1]
    assert actions == set(re.findall(r"\w+", told)) - {"or"}
