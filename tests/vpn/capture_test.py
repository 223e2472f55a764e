#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a tunnel sends is standard ESP in UDP: scapy's IPsec layer (PyPI `scapy`) opens a capture of it with the session
keys that the tunnel was told to log. Status 77: no scapy here, or no namespaces.

Runs with the Python of .venv, where scripts/setup installs scapy."""
import csv
import logging
import socket
import struct
import sys
import unittest

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
try:
    from scapy.layers.inet import ICMP, IP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.ipsec import ESP, SecurityAssociation
except ImportError as absent:
    print(f"SKIP: no scapy: {absent}; scripts/setup installs it into .venv")
    sys.exit(77)

from bed import LACKS, BedTest, within

if LACKS:
    print(f"SKIP: NOT RUN: {LACKS}")
    sys.exit(77)
SO_RCVBUFFORCE, ETH_P_ALL = 33, 3


class Capture(BedTest):
    def test_scapy_opens_it(self):
        log = self.dir / "keys"
        end_a, end_b = self.pair(more={"switches": {"udp_gso": False}}, a_more={"debug_log_session_keys": str(log)})
        self.assertIn("SESSION KEYS ARE WRITTEN", end_a.said)
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)
        wire = within(end_b.namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)))
        with wire:
            wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
            wire.bind(("v1", 0))
            for size in (0, 1, 2, 3, 100, 1300):
                self.ping(end_a.namespace, "10.1.0.2", 1, "-s", size)
                self.ping(end_a.namespace, "fd01::2", 1, "-s", size)
            wire.setblocking(False)
            frames = []
            try:
                while True:
                    frames.append(wire.recv(65536))
            except BlockingIOError:
                pass
        sas = {}
        for row in csv.reader(log.read_text().splitlines()):
            spi, key = int(row[3], 16), bytes.fromhex(row[5][2:])
            self.assertEqual(len(key), 36)
            sas[spi] = SecurityAssociation(ESP, spi=spi, crypt_algo="AES-GCM", crypt_key=key, esn_en=True, esn=0,
                                           tunnel_header=IP(src="192.0.2.1", dst="192.0.2.2"))
        opened = {4: 0, 6: 0}
        numbers = {spi: [] for spi in sas}
        for frame in frames:
            outer = IP(frame[14:]) if frame[12:14] == b"\x08\x00" else None
            if outer is None or outer.proto != 17:
                continue
            content = bytes(outer.payload)[8:]
            if content[:4] == bytes(4):
                continue  # a handshake
            spi, number = struct.unpack(">II", content[:8])
            self.assertIn(spi, sas, "an SPI of no session that was logged")
            numbers[spi].append(number)
            plain = sas[spi].decrypt(IP(src=outer.src, dst=outer.dst, proto=50) / ESP(content))
            if isinstance(plain, IP) and ICMP in plain:
                self.assertIn(plain.src, ("10.1.0.1", "10.1.0.2"))
                opened[4] += 1
            elif isinstance(plain, IPv6):
                self.assertIn(plain.src, ("fd01::1", "fd01::2"))
                opened[6] += 1
        self.assertEqual(opened, {4: 12, 6: 12}, "six pings each and their answers")
        for spi, seen in numbers.items():
            self.assertEqual(seen, list(range(seen[0], seen[0] + len(seen))), f"each number once: {spi:#x}")
            self.assertLessEqual(seen[0], 2, "what confirmed the session came first")


if __name__ == "__main__":
    unittest.main(verbosity=2)
