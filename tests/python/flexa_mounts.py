# SPDX-License-Identifier: Apache-2.0
"""A FlexA on three folders, mounted, and its calls without a kernel."""

import contextlib
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import pytest

from daelstrom.flexa import FlexA, Keyring


UNMOUNT = shutil.which("fusermount3") or shutil.which("fusermount")
_NOT_HERE = "permitted", "denied", "fuse device", "modprobe", "takes mfusepy"  # what is said where nothing can be mounted


def data(size, seed=0):
    return random.Random(size * 7 + seed).randbytes(size)


def made(tmp_path):
    stores = [str(tmp_path / f"store{i}") for i in range(3)]
    keyring = Keyring.create(tmp_path / "keyring", primaries=stores, options={one: {"sync": False} for one in stores}, passphrase="x", work=4)
    FlexA.init(keyring)
    (tmp_path / "words").write_text("x\n")
    return FlexA(keyring=str(tmp_path / "keyring"), passphrase="x", seen=False)


@contextlib.contextmanager
def mounted(tmp_path, most=8 << 30):
    if importlib.util.find_spec("mfusepy") is None:
        pytest.skip("no mfusepy")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no /dev/fuse that this user may open")
    if UNMOUNT is None:
        pytest.skip("no fusermount3 (Debian's fuse3)")
    folder, log = tmp_path / "mounted", tmp_path / "mount.log"
    folder.mkdir()
    (tmp_path / "keyring.spool").mkdir()
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-B", "-m", "daelstrom.flexa", "--keyring", str(tmp_path / "keyring"), "--passphrase-file", str(tmp_path / "words"),
             "mount", str(folder), "--spool", str(tmp_path / "keyring.spool"), "--spool-size", str(most)], stdout=out, stderr=out,
        )  # fmt: skip
    hangs = threading.Timer(900, process.kill)  # which ends all calls that wait for it
    hangs.start()
    try:
        deadline = time.monotonic() + 60
        while not os.path.ismount(folder):
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text()
                if process.poll() is not None and any(word in said for word in _NOT_HERE):
                    pytest.skip(f"FUSE may not be mounted here: {said.strip().splitlines()[-1]}")
                raise AssertionError(said)
            time.sleep(0.02)
        yield folder
        subprocess.run([UNMOUNT, "-u", str(folder)], check=True)
        assert process.wait(60) == 0, log.read_text()
        assert not os.listdir(tmp_path / "keyring.spool")
    finally:
        subprocess.run([UNMOUNT, "-u", "-z", str(folder)], stderr=subprocess.DEVNULL)
        process.kill()
        process.wait()
        hangs.cancel()


def begun(call):
    """By a thread for which nobody waits for ever (`ended`)."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def ended(*threads):
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def run(*command, **how):
    return subprocess.run([str(one) for one in command], check=True, capture_output=True, text=True, timeout=180, **how).stdout


def soon(holds):
    """What the kernel tells after close(), and what others did."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextlib.contextmanager
def calls(tmp_path, flexa, most=8 << 30, refresh=1.0):
    """What the kernel calls."""
    pytest.importorskip("mfusepy", reason="no mfusepy or no libfuse", exc_type=(ImportError, OSError))
    from daelstrom.flexa._fuse import Mounted

    (tmp_path / "spool").mkdir()
    yield Mounted(flexa, refresh=refresh, spool=str(tmp_path / "spool"), spool_size=most)
    assert not os.listdir(tmp_path / "spool")


@contextlib.contextmanager
def away(tmp_path, numbers=(0, 1)):
    """Without some stores."""
    for number in numbers:
        os.rename(tmp_path / f"store{number}", tmp_path / f"away{number}")
    try:
        yield
    finally:
        for number in numbers:
            os.rename(tmp_path / f"away{number}", tmp_path / f"store{number}")
