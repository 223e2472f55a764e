# SPDX-License-Identifier: Apache-2.0
"""The programs `age` and `age-keygen`, as the tests and make_vectors.py use them."""
import fcntl
import os
import pty
import select
import shutil
import subprocess
import termios
import time


def there():
    return all(shutil.which(program) for program in ("age", "age-keygen"))


def keygen():
    """An identity and its recipient."""
    identity = subprocess.run(["age-keygen"], check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    recipient = subprocess.run(["age-keygen", "-y"], input=identity, check=True, capture_output=True,
                               text=True).stdout.strip()
    return identity, recipient


def age(*arguments, given=b"", **options):
    return subprocess.run(["age", *map(str, arguments)], input=given, check=True, capture_output=True,
                          **options).stdout


def age_with_passphrase(passphrase, *arguments, given=b""):
    """What age makes of `given`: it takes passphrases from the terminal alone, so it gets one of its own."""
    master, slave = pty.openpty()
    program = subprocess.Popen(["age", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))
    try:
        program.stdin.write(given)
        program.stdin.close()
        program.stdin = None
        asked, shown, end = 0, b"", time.monotonic() + 60
        while program.poll() is None and time.monotonic() < end:
            if select.select([master], [], [], 0.05)[0]:
                shown += os.read(master, 4096)
            # "Enter passphrase: ", and "Confirm passphrase: " where it encrypts.
            while shown.count(b"passphrase") > asked and shown.rstrip().endswith(b":"):
                asked += 1
                os.write(master, passphrase + b"\n")
                shown += b"\n"
        out, err = program.communicate(timeout=10)
    finally:
        program.kill()
        os.close(master)
        os.close(slave)
    if program.returncode != 0:
        raise AssertionError(f"age {arguments} with a passphrase: {err!r}, {shown!r}")
    return out
