# SPDX-License-Identifier: Apache-2.0
"""What a byte costs through the tunnel, beside the same way without encryption (bench/vpn/roof.cpp).

It is time of these processes alone, not of the clock on the wall; in turns, so that what else goes on here meets both;
and by the median of the turns' ratios. On a quiet machine a few turns show it; on a busy one, where a turn's ratio may be
a third off, it takes more of them. (That bursts pay is test_tunnel.py's.)"""
import os
import socket
import statistics
import subprocess
import threading
import time
import unittest

from bed import PATIENCE, BedTest, sanitized, within

ROOF = os.environ.get("VPN_ROOF", "")
FEW, MOST = 9, 45  # turns
OF_ROOF = 0.5      # bytes by the processor's second; docs/vpn.md has what it is. Without vectors for AES it is below
BLOCK, BLOCKS = 1 << 20, 60
MTU = 1400


class Way:
    """A tunnel with a connection through it."""

    def __init__(self, spaces, address, pids):
        self.pids = pids
        listener = within(spaces[1], lambda: socket.create_server((address, 0)))
        with listener:
            listener.settimeout(PATIENCE)
            self.mouth = within(spaces[0], lambda: socket.create_connection(listener.getsockname(), PATIENCE))
            self.ear, _ = listener.accept()
        self.ear.settimeout(PATIENCE)
        self.here, self.there = bytes(BLOCK), bytearray(BLOCK)

    def close(self):
        self.mouth.close()
        self.ear.close()

    def spent(self):
        return sum(time.clock_gettime((~pid) << 3 | 2) for pid in self.pids)

    def cost(self):
        """Nanoseconds a byte, of both ends."""
        def send():
            for _ in range(BLOCKS):
                self.mouth.sendall(self.here)
        before = self.spent()
        sender = threading.Thread(target=send)
        sender.start()
        left = BLOCKS * BLOCK
        while left > 0:
            count = self.ear.recv_into(self.there, min(left, BLOCK))
            if count == 0:
                raise AssertionError("the connection ended")
            left -= count
        sender.join()
        return (self.spent() - before) / (BLOCKS * BLOCK) * 1e9


@unittest.skipIf(sanitized(), "NOT RUN: a sanitizer's time says nothing")
class Speed(BedTest):
    def roof(self, spaces):
        """10.2.0.1 and .2; the processes."""
        pids = []
        for i in (0, 1):
            process = subprocess.Popen(["ip", "netns", "exec", spaces[i], ROOF, "roof0", "4600", f"192.0.1.{2 - i}:4600",
                                        f"10.2.0.{i + 1}/24", str(MTU)], stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.assertEqual(process.stderr.readline(), "roof0 is up\n")
            pids.append(process.pid)
        return pids

    def test_what_encryption_adds(self):
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
            if not {"vaes", "avx512f"} <= set(info.read().split()):
                self.skipTest("NOT RUN: without vectors for AES the cipher is most of it")
        ends = self.pair(more={"mtu": MTU})
        offloads = ends[0].status()["offloads"]
        if not (offloads["tcp4"] and offloads["udp_gso"] and offloads["udp_gro"]):
            self.skipTest("NOT RUN: this kernel has no bursts")
        spaces = [end.namespace for end in ends]
        ways = {"ours": Way(spaces, "10.1.0.2", [end.pid for end in ends]), "roof": Way(spaces, "10.2.0.2", self.roof(spaces))}
        for way in ways.values():
            self.addCleanup(way.close)
            way.cost()  # connections begin slowly
        turns = []
        while len(turns) < MOST:
            for turn in range(FEW):
                order = list(ways) if turn % 2 == 0 else list(ways)[::-1]
                turns.append({name: ways[name].cost() for name in order})
            of_roof = statistics.median(cost["roof"] / cost["ours"] for cost in turns)
            told = f"{len(turns)} turns: {of_roof:.2f} of the roof; nanoseconds a byte: " \
                + ", ".join(f"{name} {statistics.median(cost[name] for cost in turns):.2f}" for name in ways)
            print(told)
            if of_roof >= OF_ROOF:
                return
        self.fail(told)
