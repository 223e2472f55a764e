#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What strongSwan's IPsec in user space gains from the provider (contrib/strongswan): TCP through a tunnel with AES-256-GCM
between two network namespaces, as root.

    bench/provider/strongswan.py --module build/dev/provider/daelstrom.so [--json FILE] [--turns 21] [--mb 50]

Ways: OpenSSL's own AES, daelstrom's, and strongSwan's plugin aesni, which asks neither. Each has a tunnel of its own, all are
up from the beginning to the end, and one works at a time: in a turn iperf3 sends --mb MB through each of them, in an order
that goes round. What a turn compares lies seconds apart.

Prints for each way the medians of the rate and of the seconds of processor time that both daemons took for a gigabyte that
came: user and kernel together (/proc/PID/task/*/schedstat), and the user's alone (/proc/PID/stat), where AES is; and of the
turns' ratios to OpenSSL's own. Both ends, the wire and iperf3 share the machine, so it is not the rate that tells. Leave the
machine alone meanwhile.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from results import begun, keep  # noqa: E402

TUNNEL = pathlib.Path(__file__).resolve().parents[2] / "contrib/strongswan/tunnel"
SIDES = ("left", "right")
INSIDE = {"left": "10.91.1.1", "right": "10.91.2.1"}


def tunnel(*words):
    ran = subprocess.run([TUNNEL, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(ran.stderr.strip())
    return ran.stdout


class Way:
    def __init__(self, name, words, open_ones):
        self.name, self.space, self.turns = name, f"daelbench{os.getpid()}{name}", []
        tunnel("up", "-n", self.space, *words)
        open_ones.callback(self.down)

    def down(self):
        """The provider says at the end of its process what it did."""
        done = tunnel("down", "-n", self.space)
        if self.name == "daelstrom" and done.count(" 0 failures") != 2:
            raise SystemExit(f"the provider failed, or said nothing: {done}")

    def processor_seconds(self):
        """Of both daemons, which end no thread while they run: all, and the user's."""
        every = user = 0.0
        for side in SIDES:
            pid = pathlib.Path(f"/var/lib/daelstrom-strongswan-{self.space}/{side}/pid").read_text().strip()
            process = pathlib.Path("/proc", pid)
            every += sum(int(path.read_text().split()[0]) for path in process.glob("task/*/schedstat")) / 1e9
            user += int(process.joinpath("stat").read_text().rpartition(")")[2].split()[11]) / os.sysconf("SC_CLK_TCK")
        return every, user

    def within(self, side, *words):
        return ["ip", "netns", "exec", f"{self.space}-{side}", *words]

    def send(self, size):
        """So many bytes through it: how many came, and the rate in bytes a second, as the receiver saw it."""
        server = subprocess.Popen(self.within("right", "iperf3", "-s", "-1", "-B", INSIDE["right"]), stdout=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 60
            while ":5201" not in subprocess.run(self.within("right", "ss", "-Hltn"), check=True, capture_output=True,
                                                text=True).stdout:
                if time.monotonic() > end:
                    raise SystemExit("iperf3 does not listen")
                time.sleep(0.02)
            told = subprocess.run(self.within("left", "iperf3", "-J", "-n", str(size), "-c", INSIDE["right"], "-B",
                                              INSIDE["left"]), check=True, capture_output=True, text=True, timeout=600).stdout
            server.wait(60)
        finally:
            server.kill()
            server.wait()
        got = json.loads(told)["end"]["sum_received"]
        return got["bytes"], got["bits_per_second"] / 8

    def turn(self, size):
        before = self.processor_seconds()
        came, rate = self.send(size)
        every, user = (round((now - then) / (came / 1e9), 3) for now, then in zip(self.processor_seconds(), before))
        self.turns.append({"mb_per_s": round(rate / 1e6, 2), "cpu_s_per_gb": every, "user_s_per_gb": user})


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", type=pathlib.Path, required=True)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--mb", type=int, default=50)
    options = parser.parse_args(arguments)
    tunnel("check")
    about = begun()
    with contextlib.ExitStack() as open_ones:
        ways = [Way(name, words, open_ones) for name, words in
                (("openssl", ["-w"]), ("daelstrom", ["-m", options.module]), ("aesni", ["-a"]))]
        for way in ways:
            way.send(options.mb * 10**5)
        for number in range(options.turns):
            first = number % len(ways)
            for way in ways[first:] + ways[:first]:
                way.turn(options.mb * 10**6)
            print(number + 1, *(f"{way.name} {way.turns[-1]['mb_per_s']:.1f} MB/s {way.turns[-1]['cpu_s_per_gb']:.2f} s/GB, "
                                f"{way.turns[-1]['user_s_per_gb']:.2f} user's" for way in ways),
                  sep="   ", flush=True)
    rows = []
    for way in ways:
        row = {"way": way.name, "mb": options.mb}
        for what in way.turns[0]:
            ratios = sorted(round(turn[what] / own[what], 3) for turn, own in zip(way.turns, ways[0].turns))
            row[what] = round(statistics.median(turn[what] for turn in way.turns), 2)
            row[f"{what}_ratio"] = statistics.median(ratios)
            row[f"{what}_middle_half"] = [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]]
        rows.append(row | {"turns": way.turns})
        print(f"{way.name:10}", *(f"{name} {row[what]:.2f} ({row[f'{what}_ratio']:.3f}x; {row[f'{what}_middle_half'][0]:.3f} to "
                                  f"{row[f'{what}_middle_half'][1]:.3f})" for what, name in
                                  (("mb_per_s", "MB/s"), ("cpu_s_per_gb", "s/GB"), ("user_s_per_gb", "user's s/GB"))), sep="   ")
    if options.json:
        keep(options.json, "strongswan", about, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
