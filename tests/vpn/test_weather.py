# SPDX-License-Identifier: Apache-2.0
"""A tunnel over a bad network: a relay between its ends that loses, repeats, delays, alters and forges."""
import socket
import time
import unittest

from bed import RELAY, BedTest, not_sanitized, sanitized, wait_for, within

SO_RCVBUFFORCE = 33
COUNT = 4000 if sanitized() else 100_000  # packets each way
SLACK = 40  # datagrams that carry no inner packet: handshakes, keepalives


@unittest.skipUnless(RELAY, "NOT RUN: VPN_RELAY names no relay")
class Weather(BedTest):
    def ear(self, namespace, address):
        def make():
            ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            ear.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            ear.bind((address, 0))
            return ear
        return within(namespace, make)

    def pour(self, source, target, address, count):
        """So many numbered packets; those that came, in order of arrival. No more are under way at once than queues
        hold, so that what is lost is what the relay lost."""
        mouth = within(source, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with self.ear(target, address) as ear, mouth:
            mouth.connect(ear.getsockname())
            ear.setblocking(False)
            seen = []

            def listen():
                try:
                    while True:
                        body = ear.recv(2000)
                        number = int.from_bytes(body[:4], "big")
                        self.assertEqual(body, self.body(number))
                        seen.append(number)
                except BlockingIOError:
                    pass
            for number in range(count):
                mouth.send(self.body(number))
                if number % 32 == 31:
                    listen()
                    patience = time.monotonic() + 1
                    while number - len(seen) / 0.9 > 1500 and time.monotonic() < patience:
                        time.sleep(0.001)
                        listen()
            last = -1
            while last != len(seen):
                last = len(seen)
                time.sleep(0.5)
                listen()
        return seen

    @staticmethod
    def body(number):
        return number.to_bytes(4, "big") + bytes([number % 251]) * (20 + number * 7 % 600)

    def test_a_hundred_thousand_packets_each_way(self):
        """With 1% lost, 5% out of order, 1% twice, old ones again and some altered: what the relay did not lose or alter
        arrives, once, as it was."""
        end_a, end_b = self.pair_over()
        self.ping(end_a.namespace, "10.1.0.2", 3)
        self.relay.say("loss 0.01"), self.relay.say("order 0.05"), self.relay.say("duplicate 0.01")
        self.relay.say("replay 0.01"), self.relay.say("corrupt 0.001"), self.relay.say("truncate 0.001")
        for source, target, address, way in ((end_a, end_b, "10.1.0.2", "out"), (end_b, end_a, "10.1.0.1", "in")):
            before = self.relay.stats()[way]
            received = target.peer()["received_packets"]
            seen = self.pour(source.namespace, target.namespace, address, COUNT)
            self.assertEqual(len(set(seen)), len(seen), "none comes twice")
            after = self.relay.stats()[way]
            did = {name: after[name] - before[name] for name in after}
            self.assertGreater(min(did["lost"], did["late"], did["twice"], did["again"], did["altered"]), 0, did)
            whole = did["seen"] - did["lost"] - did["altered"]
            self.assertLessEqual(abs(whole - len(seen)), SLACK, (did, target.status()))
            self.assertLessEqual(len(seen), target.peer()["received_packets"] - received)
            self.assertLessEqual(abs(did["seen"] - COUNT), SLACK, did)
            verdicts = target.status()["verdicts"]
            self.assertGreater(verdicts["replayed"], 0)
            self.assertGreater(verdicts["bad_icv"], 0)

    def test_tcp_in_bad_weather(self):
        end_a, end_b = self.pair_over(loss=0.005, order=0.05, duplicate=0.01, corrupt=0.001)
        wait_for(lambda: self.ping(end_a.namespace, "10.1.0.2", check=False), "the tunnel to be up")
        size = 200_000 if sanitized() else 3_000_000
        self.send_bytes(end_a.namespace, end_b.namespace, "10.1.0.2", size)
        self.send_bytes(end_b.namespace, end_a.namespace, "fd01::1", size)

    def test_a_port_that_changes(self):
        """As behind a NAT that forgets: both ways go on, without a handshake."""
        end_a, end_b = self.pair_over()
        self.ping(end_a.namespace, "10.1.0.2", 3)
        sessions = end_b.peer()["sessions"]
        for _ in range(20):
            self.relay.say("port")
            self.ping(end_a.namespace, "10.1.0.2", 2)
            self.ping(end_b.namespace, "10.1.0.1", 1)
        self.relay.say("every 100")
        size = 300_000 if sanitized() else 2_000_000
        self.send_bytes(end_a.namespace, end_b.namespace, "10.1.0.2", size)
        self.send_bytes(end_b.namespace, end_a.namespace, "fd01::1", size)
        self.assertEqual(end_b.peer()["sessions"], sessions)
        self.assertGreaterEqual(end_b.peer()["moves"], 20)

    def test_forgers(self):
        """Garbage and altered copies of what passes, from the same address: nothing of it moves a peer or gets in."""
        end_a, end_b = self.pair_over()
        self.ping(end_a.namespace, "10.1.0.2", 3)
        where = end_b.peer()["endpoint"]
        before = end_b.peer()["received_packets"]
        for _ in range(10):
            self.relay.say("forge 200"), self.relay.say("garbage 200 300")
            self.ping(end_a.namespace, "10.1.0.2", 1)
        status = end_b.status()
        self.assertEqual(status["peers"][0]["endpoint"], where)
        self.assertEqual(status["peers"][0]["received_packets"], before + 10)
        # A number that came is refused before anything is computed.
        self.assertGreater(status["verdicts"]["bad_icv"] + status["verdicts"]["replayed"], 1000)

    @not_sanitized
    def test_congestion_is_told_inside(self):
        """RFC 6040: a mark that the outer packet got is the inner one's, where it can have it, else it is dropped."""
        end_a, end_b = self.pair_over()
        self.ping(end_a.namespace, "10.1.0.2", 3)
        with self.ear(end_b.namespace, "10.1.0.2") as ear, \
                within(end_a.namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as mouth:
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            ear.settimeout(60)
            for mark, rate, expected in ((2, 0, 2), (1, 0, 1), (0, 0, 0), (2, 1, 3), (1, 1, 3)):
                self.relay.say(f"ce {rate}")
                mouth.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, mark)
                mouth.sendto(b"x", ear.getsockname())
                _, ancillary, _, _ = ear.recvmsg(100, 100)
                self.assertEqual(ancillary[0][2][0] & 3, expected, (mark, rate))

    @not_sanitized
    def test_an_end_that_is_away_for_a_while(self):
        end_a, end_b = self.pair_over()
        self.ping(end_a.namespace, "10.1.0.2", 3)
        self.relay.say("down 1")
        self.assertFalse(self.ping(end_a.namespace, "10.1.0.2", 3, check=False))
        self.relay.say("down 0")
        wait_for(lambda: self.ping(end_a.namespace, "10.1.0.2", check=False), "the network to be back")
        self.ping(end_b.namespace, "10.1.0.1", 3)
