# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces with a wire between them, and tunnels over it, each an interface at either end. Whatever ends
the process that made them, a helper that waits for that removes them."""
import contextlib
import os
import pathlib
import subprocess
import tempfile
import time

PATIENCE = 30  # seconds, until something is there
MTU = 1420
LINKS = {
    "whole": "a batch of UDP GSO crosses in one piece",
    "cut": "the sender's kernel cuts it into packets, the receiver's GRO joins them",
}
GUARD = """trap '' INT TERM HUP; read -r _
for n in $1a $1b; do ip netns pids $n | xargs -r kill -9; ip netns del $n; done
rm -rf "$2" /var/run/wireguard/$1*"""


def run(*words, **options):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, **options).stdout


def processor(pid):
    """Seconds of all threads of a process so far, of the user's and the kernel's: its clock, which has nanoseconds."""
    return time.clock_gettime((~pid) << 3 | 2)


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited {PATIENCE} s for {what}")
        time.sleep(0.02)


class Bed:
    """Namespaces a and b, 192.0.2.1 and 192.0.2.2, and what was started in them."""

    def __init__(self, link):
        self.prefix = f"vm{os.getpid()}"
        self.spaces = self.prefix + "a", self.prefix + "b"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="daelstrom-vpn-bench-"))
        self.guard = subprocess.Popen(["sh", "-c", GUARD, "sh", self.prefix, self.dir], stdin=subprocess.PIPE,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.processes = []
        try:
            a, b = self.spaces
            for name in self.spaces:
                run("ip", "netns", "add", name)
            run("ip", "link", "add", "wire", "netns", a, "type", "veth", "peer", "name", "wire", "netns", b)
            for i, name in enumerate(self.spaces, 1):
                run("ip", "-n", name, "link", "set", "lo", "up")
                run("ip", "-n", name, "addr", "add", f"192.0.2.{i}/24", "dev", "wire")
                run("ip", "-n", name, "link", "set", "wire", "up")
                if link == "cut":
                    # veth has GRO for what came in packets, and only where its sender has no TSO.
                    self.within(i - 1, "ethtool", "-K", "wire", "tx-udp-segmentation", "off", "tso", "off", "gro", "on")
        except BaseException:
            self.close()
            raise

    def within(self, end, *words, **options):
        return run("ip", "netns", "exec", self.spaces[end], *words, **options)

    def start(self, end, *words, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options
        process = subprocess.Popen(["ip", "netns", "exec", self.spaces[end], *map(str, words)], **options)
        self.processes.append(process)
        return process

    def close(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        self.guard.stdin.close()
        self.guard.wait()


class Contender:
    """A tunnel between 10.98.N.1 and 10.98.N.2; `processes` are its ends."""
    count = 0

    def __init__(self, bed, name):
        Contender.count += 1
        self.bed, self.name, self.number = bed, name, Contender.count % 250
        self.port = 4500 + self.number
        self.processes = []

    def address(self, end):
        return f"10.98.{self.number}.{end + 1}"

    def ready(self):
        wait_for(lambda: subprocess.run(["ip", "netns", "exec", self.bed.spaces[0], "ping", "-c1", "-W1", self.address(1)],
                                        capture_output=True).returncode == 0, f"a ping through {self.name}")
        for end in (0, 1):
            self.bed.start(end, "iperf3", "-s", "-B", self.address(end))
            wait_for(lambda: self.address(end) in self.bed.within(end, "ss", "-Hltn"), "iperf3's server")
        return self

    def spent(self):
        return [processor(p.pid) for p in self.processes]


class Daelstrom(Contender):
    """With these switches off at the ends that have any; with keystream made ahead of packets by a backend."""

    def __init__(self, bed, name, program, off=((), ()), keystream=None):
        super().__init__(bed, name)
        self.program, self.interface = program, f"dael{self.number}"
        public = []
        for end in (0, 1):
            public.append(run(program, "vpn", "genkey", "-o", bed.dir / f"{self.number}.{end}.key").strip())
        for end in (0, 1):
            lines = [f'private_key_file = "{self.number}.{end}.key"', f'interface = "{self.interface}"', f"mtu = {MTU}",
                     f'address = "{self.address(end)}/24"', f"port = {self.port}",
                     *([f'keystream = "{keystream}"'] if keystream else []), "[switches]",
                     *(["sandbox = false"] if keystream not in (None, "cpu") else []), *(f"{switch} = false" for switch in off[end]),
                     "[[peer]]", f'public_key = "{public[1 - end]}"', f'allowed = "{self.address(1 - end)}"',
                     f'endpoint = "192.0.2.{2 - end}:{self.port}"']
            path = bed.dir / f"{self.number}.{end}.toml"
            path.write_text("\n".join(lines) + "\n")
            self.processes.append(bed.start(end, program, "vpn", "up", path))
        self.ready()

    def status(self, end):
        return self.bed.within(end, self.program, "vpn", "status", self.interface, "--json")


class Roof(Contender):
    def __init__(self, bed, name, program):
        super().__init__(bed, name)
        for end in (0, 1):
            self.processes.append(bed.start(end, program, f"roof{self.number}", self.port,
                                            f"192.0.2.{2 - end}:{self.port}", f"{self.address(end)}/24", MTU))
        self.ready()


class WireguardGo(Contender):
    def __init__(self, bed, name, program):
        super().__init__(bed, name)
        keys = [run("wg", "genkey").strip() for _ in (0, 1)]
        public = [run("wg", "pubkey", input=key).strip() for key in keys]
        # Its control sockets lie in a folder that all namespaces share.
        interfaces = [f"{bed.prefix}{end}" for end in (0, 1)]
        for end in (0, 1):
            self.processes.append(bed.start(end, program, "-f", interfaces[end], env=os.environ | {"LOG_LEVEL": "error"}))
            wait_for(pathlib.Path(f"/var/run/wireguard/{interfaces[end]}.sock").exists, "wireguard-go")
            bed.within(end, "wg", "set", interfaces[end], "private-key", "/dev/stdin", "listen-port", self.port,
                       "peer", public[1 - end], "allowed-ips", f"{self.address(1 - end)}/32",
                       "endpoint", f"192.0.2.{2 - end}:{self.port}", input=keys[end])
            run("ip", "-n", bed.spaces[end], "addr", "add", f"{self.address(end)}/24", "dev", interfaces[end])
            run("ip", "-n", bed.spaces[end], "link", "set", interfaces[end], "mtu", MTU, "up")
        self.ready()
