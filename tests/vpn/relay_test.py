# SPDX-License-Identifier: Apache-2.0
"""The relay does what its rates say, or the tests that use it would show nothing."""

import os
import select
import socket
import subprocess
import unittest

from relay_words import Words

RELAY = os.environ["VPN_RELAY"]


class Relay(Words):
    """The relay, a server behind it, and a client before it."""

    def __init__(self, *options, six=False):
        family, host, shown = (
            (socket.AF_INET6, "::1", "[::1]") if six else (socket.AF_INET, "127.0.0.1", "127.0.0.1")
        )
        self.server = socket.socket(family, socket.SOCK_DGRAM)
        self.client = socket.socket(family, socket.SOCK_DGRAM)
        for one in self.server, self.client:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            one.bind((host, 0))
        self.process = subprocess.Popen(
            [RELAY, f"{shown}:0", f"{shown}:{self.server.getsockname()[1]}", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        ready = self.process.stdout.readline().split()
        assert ready[0] == "ready", ready
        self.client.connect((host, int(ready[1])))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(10) == 0
        self.process.stdout.close()
        self.server.close()
        self.client.close()

    def sent(self, packets):
        """What of these arrives at the server, in order, and whence. The last always does: it is
        sent, without any rate, until it is there."""
        got, end = [], b"end of it"
        before = self.stats()["out"]["seen"]
        for packet in packets:
            self.client.send(packet)
            if len(packet) > 9 and select.select([self.server], [], [], 0)[0]:
                got.append(self.server.recvfrom(70000))
        while self.stats()["out"]["seen"] < before + len(packets):
            pass
        for name in "loss order duplicate replay corrupt truncate delay jitter down".split():
            assert self.say(f"{name} 0") == "ok"
        # What was kept back goes first, within milliseconds.
        while self.stats()["out"]["passed"] < self.expected():
            pass
        self.client.send(end)
        while True:
            packet = self.server.recvfrom(70000)
            if packet[0] == end:
                return [p for p, _ in got], [where for _, where in got]
            got.append(packet)

    def expected(self):
        out = self.stats()["out"]
        return out["seen"] - out["lost"] + out["twice"] + out["again"]


def packets(count, size=100):
    return [i.to_bytes(4, "big") + os.urandom(size) for i in range(count)]


class RelayTest(unittest.TestCase):
    def test_without_rates_all_passes(self):
        for six in False, True:
            with Relay(six=six) as relay:
                some = packets(2000)
                got, whence = relay.sent(some)
                self.assertEqual(got, some)
                self.assertEqual(len(set(whence)), 1)
                self.assertNotEqual(whence[0][1], relay.client.getsockname()[1])
                # And back.
                for packet in some[:500]:
                    relay.server.sendto(packet, whence[0])
                    self.assertEqual(relay.client.recv(2000), packet)
                # Long ones, too.
                long = [os.urandom(n) for n in (1, 1400, 9000, 60000)]
                self.assertEqual(relay.sent(long)[0], long)
                # What does not come from the server goes nowhere.
                stranger = socket.socket(relay.server.family, socket.SOCK_DGRAM)
                stranger.sendto(b"x", whence[0])
                relay.server.sendto(b"y", whence[0])
                self.assertEqual(relay.client.recv(2000), b"y")
                stranger.close()

    def test_loss_is_as_often_and_the_same_again(self):
        some = packets(4000)
        seen = []
        for seed in 5, 5, 6:
            with Relay(f"seed={seed}", "out.loss=0.1") as relay:
                seen.append(relay.sent(some)[0])
                self.assertEqual(relay.stats()["out"]["lost"], 4000 - len(seen[-1]))
        self.assertTrue(3400 < len(seen[0]) < 3800, len(seen[0]))
        self.assertEqual(seen[0], seen[1])
        self.assertNotEqual(seen[0], seen[2])

    def test_order_and_duplicates(self):
        some = packets(3000)
        with Relay("order=0.05") as relay:
            got, _ = relay.sent(some)
            self.assertNotEqual(got, some)
            self.assertEqual(sorted(got), sorted(some))
            late = sum(a > b for a, b in zip(got, got[1:]))
            self.assertTrue(50 < late < 300, late)
        with Relay("duplicate=0.1") as relay:
            got, _ = relay.sent(some)
            self.assertEqual(sorted(set(got)), sorted(some))
            self.assertTrue(3200 < len(got) < 3400, len(got))
        with Relay("replay=0.1") as relay:
            got, _ = relay.sent(some)
            self.assertEqual(sorted(set(got)), sorted(some))
            self.assertTrue(3200 < len(got) < 3400, len(got))
        with Relay("delay=20", "jitter=30") as relay:
            got, _ = relay.sent(some[:500])
            self.assertEqual(sorted(got), sorted(some[:500]))

    def test_what_is_altered(self):
        some = packets(2000)
        with Relay("corrupt=0.1") as relay:
            got, _ = relay.sent(some)
            other = [(a, b) for a, b in zip(some, got) if a != b]
            self.assertTrue(120 < len(other) < 280, len(other))
            for a, b in other:
                bits = bin(int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).count("1")
                self.assertEqual((len(a), bits), (len(b), 1))
        with Relay("truncate=0.1") as relay:
            got, _ = relay.sent(some)
            short = [(a, b) for a, b in zip(some, got) if len(b) < len(a)]
            self.assertTrue(120 < len(short) < 280, len(short))
            self.assertTrue(all(a.startswith(b) for a, b in short))

    def test_ports_change(self):
        with Relay() as relay:
            first = relay.sent(packets(10))[1]
            self.assertEqual(relay.say("port"), "ok")
            second = relay.sent(packets(10))[1]
            self.assertEqual(len(set(first + second)), 2)
            # The old one leads nowhere, the new one does.
            relay.server.sendto(b"old", first[0])
            relay.server.sendto(b"new", second[0])
            self.assertEqual(relay.client.recv(100), b"new")
            self.assertEqual(relay.say("every 100"), "ok")
            self.assertGreater(len(set(relay.sent(packets(1000))[1])), 5)

    def test_ecn_passes_and_is_marked(self):
        for six in False, True:
            level, name, ask = (
                (socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_RECVTCLASS)
                if six
                else (socket.IPPROTO_IP, socket.IP_TOS, 13)
            )
            with Relay(six=six) as relay:
                relay.server.setsockopt(level, ask, 1)
                for tos in 0, 1, 2, 3, 0x2E << 2:
                    for rate in 0, 1:
                        relay.say(f"ce {rate}")
                        relay.client.setsockopt(level, name, tos)
                        relay.client.send(b"x")
                        _, control, _, _ = relay.server.recvmsg(100, 100)
                        self.assertEqual(control[0][2][0], tos | 3 if rate and tos & 3 else tos)

    def test_garbage_and_down(self):
        with Relay() as relay:
            last = packets(1)[0]
            relay.sent([last])
            self.assertEqual(relay.say("garbage 300 50"), "ok")
            got = [relay.server.recv(2000) for _ in range(300)]
            self.assertEqual({len(p) for p in got}, {50})
            self.assertEqual(len(set(got)), 300)
            relay.sent([last])
            relay.client.send(last)
            self.assertEqual(relay.server.recv(2000), last)
            self.assertEqual(relay.say("forge 200"), "ok")
            got = [relay.server.recv(2000) for _ in range(200)]
            self.assertEqual({p[:9] for p in got}, {last[:9]})
            self.assertEqual(len(set(got)), 200)
            self.assertNotIn(last, got)
            self.assertEqual(relay.say("down 1"), "ok")
            self.assertEqual(relay.sent(packets(50))[0], [])

    def test_what_is_not_understood(self):
        with Relay() as relay:
            for line in "", "loss", "loss x", "nothing 1", "garbage 1", "loss -1", "up.loss 1":
                self.assertEqual(relay.say(line), "not understood")
        for options in ([], ["1.2.3.4:5"], ["1:2", "3:4"], ["127.0.0.1:0", "127.0.0.1:1", "x=1"]):
            run = subprocess.run([RELAY, *options], stdin=subprocess.DEVNULL, capture_output=True)
            self.assertEqual(run.returncode, 2)


if __name__ == "__main__":
    unittest.main()
