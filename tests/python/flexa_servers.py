# SPDX-License-Identifier: Apache-2.0
"""Real servers for FlexA's stores, each a process of its own: S3 (versitygw, a Go program, which DAELSTROM_VERSITYGW or the
PATH has; else PyPI's moto, which keeps objects in its memory), SFTP (OpenSSH's sshd, else rclone's), WebDAV (rclone's).
"""

import contextlib
import importlib.util
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

HOST = "127.0.0.1"
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
VERSITYGW = os.environ.get("DAELSTROM_VERSITYGW") or shutil.which("versitygw")
RCLONE = shutil.which("rclone")


def free_port():
    """None of those that connections get for their own ends: one of these would have it while its server is away."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with contextlib.suppress(OSError), contextlib.closing(socket.socket()) as free:
            free.bind((HOST, port))
            return port


class Server:
    """`url` and `options` are what FlexA takes; `objects`, where its files are seen on the disk, if anywhere. `keeps`:
    what it has outlives it."""

    keeps = True

    def __init__(self, folder, number):
        self.folder, self.number = pathlib.Path(folder) / f"{type(self).__name__.lower()}{number}", number
        self.folder.mkdir(parents=True)
        self.port, self.process, self.objects = free_port(), None, None
        self.prepare()
        self.start()

    def prepare(self):
        pass

    def ready(self):
        pass

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.port)):
                break
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError((self.folder / "log").read_text(errors="replace"))
            time.sleep(0.05)
        self.ready()

    def kill(self):
        for one in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.process.wait()

    def hang(self):
        for one in self.family():
            os.kill(one, signal.SIGSTOP)

    def go_on(self):
        for one in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)

    def family(self):
        """It and what it has started."""
        found = [self.process.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/children") as file:
                        found += [int(one) for one in file.read().split()]
        return found


class S3(Server):
    keeps = bool(VERSITYGW)

    def prepare(self):
        if not VERSITYGW and not (importlib.util.find_spec("moto") and importlib.util.find_spec("flask_cors")):
            pytest.skip("no S3 server: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0, or pip install moto flask flask-cors")
        self.bucket = f"bucket{self.number}"
        self.url = f"s3://{self.bucket}/flexa"
        self.options = {"key": "tester", "secret": "of this one",
                        "client_kwargs": {"endpoint_url": f"http://{HOST}:{self.port}", "region_name": "us-east-1"}}  # fmt: skip
        if VERSITYGW:
            (self.folder / "data" / self.bucket).mkdir(parents=True)
            self.objects = self.folder / "data" / self.bucket / "flexa"

    def command(self):
        if VERSITYGW:
            return [VERSITYGW, "--keep-alive", "--quiet", "--access", "tester", "--secret", "of this one", "--port", f"{HOST}:{self.port}", "posix", str(self.folder / "data")]
        return [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(self.port)]

    def ready(self):
        if not VERSITYGW:
            urllib.request.urlopen(urllib.request.Request(f"http://{HOST}:{self.port}/{self.bucket}", method="PUT")).close()


class Sftp(Server):
    def prepare(self):
        if not SSHD and not RCLONE:
            pytest.skip("no SFTP server: apt-get install rclone")
        (self.folder / "data").mkdir()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        root = self.folder / "data" if SSHD else pathlib.Path("/")
        self.url = f"sftp://{HOST}:{self.port}{root}/flexa"
        self.options = {"username": user, "client_keys": [str(self.folder / "user")], "known_hosts": None, "config": None}
        self.objects = self.folder / "data" / "flexa"
        if SSHD:
            if os.getuid() == 0:
                os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
            # rights of the folders above are the test's affair
            (self.folder / "config").write_text(
                f"Port {self.port}\nListenAddress {HOST}\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/user.pub\n"
                "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
                "PermitRootLogin yes\nMaxStartups 100\nMaxSessions 100\nSubsystem sftp internal-sftp\n"
            )

    def command(self):
        if SSHD:
            return [SSHD, "-D", "-e", "-f", str(self.folder / "config")]
        return [RCLONE, "serve", "sftp", str(self.folder / "data"), "--addr", f"{HOST}:{self.port}", "--key", str(self.folder / "host"),
                "--authorized-keys", str(self.folder / "user.pub"), "--vfs-cache-mode", "writes", "--vfs-write-back", "0s",
                "--dir-cache-time", "0s", "--poll-interval", "0", "--config", os.devnull, "--cache-dir", str(self.folder / "cache")]  # fmt: skip


class Dav(Server):
    def prepare(self):
        if not RCLONE:
            pytest.skip("no WebDAV server: apt-get install rclone")
        (self.folder / "data").mkdir()
        self.url = f"webdav://flexa{self.number}"
        self.objects = self.folder / "data" / f"flexa{self.number}"
        self.options = {"base_url": f"http://{HOST}:{self.port}/", "auth": ["tester", "of this"], "timeout": 20}

    def command(self):
        return [RCLONE, "serve", "webdav", str(self.folder / "data"), "--addr", f"{HOST}:{self.port}", "--user", "tester", "--pass", "of this",
                "--vfs-cache-mode", "off", "--dir-cache-time", "0s", "--poll-interval", "0", "--config", os.devnull]  # fmt: skip


class Local:
    """A folder."""

    keeps = True

    def __init__(self, folder, number):
        self.url = str(pathlib.Path(folder) / f"local{number}")
        self.objects, self.options = pathlib.Path(self.url), {"sync": False}

    def kill(self):
        os.rename(self.url, self.url + ".away")

    def start(self):
        os.rename(self.url + ".away", self.url)

    def family(self):
        return []


KINDS = {"s3": S3, "sftp": Sftp, "dav": Dav, "local": Local}


@contextlib.contextmanager
def servers(folder, *kinds):
    """One of each, in their order."""
    started = []
    try:
        for number, kind in enumerate(kinds):
            started.append(KINDS[kind](folder, number))
        yield started
    finally:
        for one in started:
            if one.family():
                one.go_on()
                one.kill()
