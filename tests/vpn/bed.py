# SPDX-License-Identifier: Apache-2.0
"""Network namespaces with a wire between them, and tunnels in them. Made and removed by each test."""
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from relay_words import Words

PROGRAM = os.environ["DAELSTROM"]
RELAY = os.environ.get("VPN_RELAY", "")  # relay.cpp
OPTIONS = {name: os.environ.get(name, "") for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")}
PATIENCE = 60  # seconds; nothing takes so long, but a machine may be busy
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def lacks():
    """What is missing here for a test bed; empty: nothing."""
    if os.geteuid() != 0:
        return "namespaces take root"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    for program in ("ip", "ping"):
        if not shutil.which(program):
            return f"{program} is not installed (iproute2, iputils-ping)"
    probe = subprocess.run(["ip", "netns", "add", f"dvprobe{os.getpid()}"], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", f"dvprobe{os.getpid()}"], capture_output=True)
    return probe.stderr.strip()


LACKS = lacks()


def within(namespace, call):
    """call() in a thread that is in the namespace; sockets that it makes stay there."""
    answer = []

    def run():
        try:
            with open(f"/run/netns/{namespace}") as where:
                if libc.setns(where.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            answer.append(call())
        except BaseException as fault:  # it is raised again in the thread that asked
            answer.append(fault)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(answer[0], BaseException):
        raise answer[0]
    return answer[0]


def wait_for(condition, what, patience=PATIENCE):
    """Until the condition holds; returns what it was. Fails after so long, which says nothing of speed."""
    end = time.monotonic() + patience
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience} s for {what}")
        time.sleep(0.02)


class End:
    """One end of a tunnel: a process in a namespace."""

    def __init__(self, bed, namespace, words, interface="dael0"):
        self.bed, self.namespace, self.words, self.interface = bed, namespace, words, interface
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(["ip", "netns", "exec", self.namespace, PROGRAM, "vpn", *map(str, self.words)],
                                        cwd=self.bed.dir, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.said = ""
        while True:
            line = self.process.stderr.readline()
            self.said += line
            if line.endswith(" is up\n"):
                break
            if not line:
                raise AssertionError(f"the tunnel did not start: {self.said}")
        # What it says later: so that it never waits for a reader.
        process = self.process
        self.reader = threading.Thread(target=self.read_on, args=(process,), daemon=True)
        self.reader.start()

    def read_on(self, process):
        for line in process.stderr:
            self.said += line

    @property
    def pid(self):
        return self.process.pid  # `ip netns exec` becomes the program

    def status(self):
        return json.loads(self.words_of_status("--json"))

    def words_of_status(self, *options):
        return self.bed.run(self.namespace, PROGRAM, "vpn", "status", self.interface, *options).stdout

    def peer(self, number=0):
        return self.status()["peers"][number]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """As `down` does it; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE)
        finally:
            self.process.kill()
        self.reader.join(PATIENCE)
        self.process.stderr.close()
        return code


@functools.cache
def sanitized():
    """Whether the program is built with a sanitizer, which makes it slow, and has no seccomp then (sandbox.cpp)."""
    program = pathlib.Path(PROGRAM).read_bytes()
    return b"__asan_init" in program or b"__tsan_init" in program


# For what a sanitizer sees elsewhere as well, or says nothing of.
not_sanitized = unittest.skipIf(sanitized(), "NOT RUN: it adds nothing under a sanitizer")


class Relay(Words):
    """A bad network: relay.cpp in a namespace, from a port of it to another."""

    def __init__(self, namespace, listen, server, **rates):
        self.process = subprocess.Popen(["ip", "netns", "exec", namespace, RELAY, listen, server,
                                         *(f"{name}={value}" for name, value in rates.items())],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word = self.process.stdout.readline()
        assert word.startswith("ready "), word

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


@unittest.skipIf(LACKS, f"NOT RUN: {LACKS}")
class BedTest(unittest.TestCase):
    """Namespaces by a letter: self.namespace("a")."""
    count = 0

    def setUp(self):
        BedTest.count += 1
        self.prefix = f"dv{os.getpid() % 100000}{BedTest.count}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="daelstrom-vpn-"))
        self.dir.chmod(0o711)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        # What sanitizers say goes to files, where nothing of it is lost: also of those in the background, of other
        # users, and of guardians.
        self.reports = self.dir / "reports"
        self.reports.mkdir()
        self.reports.chmod(0o1777)
        for name, given in OPTIONS.items():
            os.environ[name] = f"{given}:log_path={self.reports}/of".removeprefix(":")
        self.made, self.ends = [], []
        self.addCleanup(self.take_down)

    def take_down(self):
        """Every end that runs still must end well, and no sanitizer has had anything to say."""
        faults = []
        for end in self.ends:
            running = end.process.poll() is None
            if not end.process.stderr.closed:
                code = end.stop()
                if running and code != 0:
                    faults.append((code, end.said))
        self.ends.clear()
        for namespace in self.made:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True)
        self.made.clear()
        try:
            wait_for(lambda: not self.processes(), "every process of a tunnel's to end")
        except AssertionError as fault:
            faults.append(fault)
        faults += [report.read_text() for report in self.reports.iterdir()]
        if faults:
            self.fail("\n".join(map(str, faults)))

    def processes(self):
        """Those that run the program in this test's folder."""
        def is_one(process):
            try:
                return (process / "exe").samefile(PROGRAM) and (process / "cwd").samefile(self.dir)
            except OSError:  # it has ended
                return False
        return [process for process in pathlib.Path("/proc").iterdir() if process.name.isdigit() and is_one(process)]

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def namespace(self, letter):
        name = self.prefix + letter
        if name not in self.made:
            self.ip("netns", "add", name)
            self.made.append(name)
            self.ip("-n", name, "link", "set", "lo", "up")
            # No router's word changes what a test sees.
            self.sysctl(name, "net/ipv6/conf/default/accept_dad", 0)
        return name

    def sysctl(self, namespace, name, value):
        def write():
            pathlib.Path("/proc/thread-self/net")  # sysctls are the reading thread's namespace's
            pathlib.Path("/proc/sys", name).write_text(str(value))
        within(namespace, write)

    def wire(self, one, other, number=1):
        """A wire between two namespaces: 192.0.NUMBER.1 and .2, 2001:db8:NUMBER::1 and ::2."""
        a, b = self.namespace(one), self.namespace(other)
        self.ip("link", "add", f"v{number}", "netns", a, "type", "veth", "peer", "name", f"v{number}", "netns", b)
        for i, name in ((1, a), (2, b)):
            self.ip("-n", name, "addr", "add", f"192.0.{number}.{i}/24", "dev", f"v{number}")
            self.ip("-n", name, "addr", "add", f"2001:db8:{number}::{i}/64", "dev", f"v{number}", "nodad")
            self.ip("-n", name, "link", "set", f"v{number}", "up")
        return a, b

    def run(self, namespace_or_result=None, *words, **options):
        if not words:  # unittest's own
            return super().run(namespace_or_result)
        options.setdefault("check", True)
        return subprocess.run(["ip", "netns", "exec", namespace_or_result, *map(str, words)], cwd=self.dir,
                              capture_output=True, text=True, timeout=PATIENCE * 2, **options)

    def program(self, *words, **options):
        return subprocess.run([PROGRAM, "vpn", *map(str, words)], cwd=self.dir, capture_output=True, text=True,
                              timeout=PATIENCE, **options)

    def key(self, name):
        """A private key's file; returns the public key."""
        ran = self.program("genkey", "-f", "-o", f"{name}.key")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout.strip()

    def config(self, name, *, address, peers, port=4500, **more):
        """Writes NAME.toml, whose private key is NAME.key; peers are tables."""
        lines = [f'private_key_file = "{name}.key"', f"address = {json.dumps(address)}", f"port = {port}"]
        tables = {key: value for key, value in more.items() if isinstance(value, dict)}
        lines += [f"{key} = {json.dumps(value)}" for key, value in more.items() if key not in tables]
        for table, settings in tables.items():
            lines += [f"[{table}]"] + [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        for peer in peers:
            lines += ["[[peer]]"] + [f"{key} = {json.dumps(value)}" for key, value in peer.items()]
        path = self.dir / f"{name}.toml"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)
        return path.name

    def up(self, namespace, *words, **options):
        end = End(self, namespace, words, **options)
        self.ends.append(end)
        return end

    def pair(self, *, more=(), a_more=(), b_more=(), outside="192.0.1.2:4500", b_calls=None,
             wired=False):
        """Two ends, one at each side of a wire: 10.1.0.1 and fd01::1 call 10.1.0.2 and fd01::2."""
        a, b = (self.namespace("a"), self.namespace("b")) if wired else self.wire("a", "b")
        self.keys = {"a": self.key("a"), "b": self.key("b")}
        peer_a = {"public_key": self.keys["a"], "allowed": ["10.1.0.1/32", "fd01::1/128"]}
        if b_calls:
            peer_a["endpoint"] = b_calls
        self.config("a", address=["10.1.0.1/24", "fd01::1/64"],
                    peers=[{"public_key": self.keys["b"], "endpoint": outside, "allowed": ["10.1.0.2/32", "fd01::2/128"]}],
                    **dict(more), **dict(a_more))
        self.config("b", address=["10.1.0.2/24", "fd01::2/64"], peers=[peer_a], **dict(more), **dict(b_more))
        end_b = self.up(b, "up", "b.toml")
        end_a = self.up(a, "up", "a.toml")
        return end_a, end_b

    def pair_over(self, *, more=(), **rates):
        """The same with a bad network between them: a's packets pass a relay at b's side."""
        a, b = self.wire("a", "b")
        self.relay = Relay(b, "192.0.1.2:5000", "127.0.0.1:4500", **rates)
        self.addCleanup(self.relay.end)
        ends = self.pair(more=more, outside="192.0.1.2:5000", wired=True)
        for end in ends:  # none of these queues is what a test is about
            self.ip("-n", end.namespace, "link", "set", "dael0", "txqueuelen", "20000")
        return ends

    def ping(self, namespace, address, count=1, *words, check=True):
        ran = self.run(namespace, "ping", "-n", "-c", count, "-i", "0.01", "-W", "2", *words, address, check=False)
        if check:
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.returncode == 0

    def wait_for_ping(self, namespace, address):
        wait_for(lambda: self.ping(namespace, address, check=False), f"a ping to {address}")

    def send_bytes(self, source, target, address, size, seed=1):
        """So many bytes by TCP from one namespace to an address of another; they must come as they were."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        block = hashlib.shake_128(seed.to_bytes(4, "big")).digest(1 << 20)

        def listen():
            server = socket.create_server((address, 0), family=family)
            server.settimeout(PATIENCE)
            return server
        with within(target, listen) as server:
            got = hashlib.sha256()
            total = []

            def receive():
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(PATIENCE)
                    count = 0
                    while data := connection.recv(1 << 18):
                        got.update(data)
                        count += len(data)
                    total.append(count)
            reader = threading.Thread(target=receive)
            reader.start()
            sent = hashlib.sha256()

            def connect():
                client = socket.socket(family, socket.SOCK_STREAM)
                client.settimeout(PATIENCE)
                client.connect(server.getsockname()[:2])
                return client
            try:
                with within(source, connect) as client:
                    left = size
                    while left > 0:
                        part = block[:min(left, len(block) - left % 4093)]
                        client.sendall(part)
                        sent.update(part)
                        left -= len(part)
            finally:
                reader.join(PATIENCE * 2)
            self.assertEqual(total, [size])
            self.assertEqual(got.digest(), sent.digest())

    def interfaces(self, namespace):
        return {link["ifname"] for link in json.loads(self.run(namespace, "ip", "-j", "link").stdout)}

    def assert_nothing_is_lost(self, *ends):
        for end in ends:
            status = end.status()
            bad = {name: count for name, count in status["drops"].items() if count}
            self.assertLessEqual(set(bad), {"no_peer"}, status)  # the host's own multicast
