#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scapy's IPsec layer (PyPI `scapy`) opens the ESP packets that daelstrom seals, and daelstrom those that scapy
seals. Status 77: no scapy here.

Runs with the Python of .venv, where scripts/setup installs scapy, on the shared library by its C interface."""
import ctypes
import itertools
import logging
import os
import random
import sys
import unittest

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
try:
    from scapy.layers.inet import ICMP, IP, TCP, UDP
    from scapy.layers.inet6 import IPv6
    from cryptography.hazmat.primitives.ciphers import algorithms, modes
    from scapy.layers.ipsec import CRYPT_ALGOS, ESP, CryptAlgo, SecurityAssociation
    from scapy.packet import Raw, raw
except ImportError as absent:
    print(f"SKIP: no scapy: {absent}; scripts/setup installs it into .venv")
    sys.exit(77)

OK, TRUNCATED, MALFORMED, UNKNOWN_SPI, TOO_OLD, REPLAYED, BAD_ICV = range(7)
PLAIN, UDP_FRAMING = 0, 1
HEADROOM, TAILROOM = 24, 21

# Scapy's AES-GCM has ICVs of 16 bytes only since it goes by another interface of cryptography's. The same over the
# interface that scapy still uses for other ciphers has the others, too.
CRYPT_ALGOS["AES-GCM by mode"] = CryptAlgo("AES-GCM by mode", cipher=algorithms.AES, mode=modes.GCM, block_size=1,
                                           iv_size=8, salt_size=4, icv_size=16,
                                           format_mode_iv=lambda sa, iv, **_: sa.crypt_salt + iv)


class Packet(ctypes.Structure):
    _fields_ = [("buffer", ctypes.POINTER(ctypes.c_uint8)), ("capacity", ctypes.c_uint32), ("offset", ctypes.c_uint32),
                ("size", ctypes.c_uint32), ("pad_to", ctypes.c_uint32), ("next_header", ctypes.c_uint8),
                ("verdict", ctypes.c_uint8), ("unused", ctypes.c_uint8 * 2), ("spi", ctypes.c_uint32),
                ("sequence", ctypes.c_uint64), ("user", ctypes.c_void_p)]


class Sa(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("spi", ctypes.c_uint32), ("salt", ctypes.c_uint8 * 4),
                ("icv_size", ctypes.c_uint8), ("short_seq", ctypes.c_uint8), ("no_window", ctypes.c_uint8),
                ("static_key", ctypes.c_uint8), ("udp_source", ctypes.c_uint16), ("udp_destination", ctypes.c_uint16),
                ("window", ctypes.c_uint32), ("counting_ivs", ctypes.c_uint32), ("direct", ctypes.c_uint32),
                ("limit", ctypes.c_uint64), ("soft_limit", ctypes.c_uint64)]


class Esp:
    """The C interface, as far as it is needed here."""

    def __init__(self):
        self.library = library = ctypes.CDLL(os.environ["DAELSTROM_LIBRARY"])
        library.dael_last_error.restype = ctypes.c_char_p
        engine, filler, esp = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("dael_engine_open", None, ctypes.byref(engine))
        self.call("dael_sa_filler_open", engine, None, ctypes.byref(filler))
        self.call("dael_esp_open", filler, None, ctypes.byref(esp))
        self.esp = esp

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != 0:
            raise RuntimeError(f"{name}: {self.library.dael_last_error().decode()}")

    def key(self, key):
        imported = ctypes.c_void_p()
        self.call("dael_key_import", key, ctypes.c_size_t(len(key)), ctypes.byref(imported))
        return imported

    @staticmethod
    def sa(spi, salt, icv, esn, ports=(0, 0)):
        return Sa(struct_size=ctypes.sizeof(Sa), spi=spi, salt=(ctypes.c_uint8 * 4)(*salt), icv_size=icv,
                  short_seq=not esn, udp_source=ports[0], udp_destination=ports[1])

    def receive_as(self, key, sa):
        imported = self.key(key)
        self.call("dael_esp_add", self.esp, imported, ctypes.byref(sa))
        self.library.dael_key_free(imported)

    def sender(self, key, sa):
        imported, sender = self.key(key), ctypes.c_void_p()
        self.call("dael_esp_sender_open", self.esp, imported, ctypes.byref(sa), ctypes.byref(sender))
        self.library.dael_key_free(imported)
        return sender

    @staticmethod
    def packet(content, before=0, after=0, **more):
        memory = (ctypes.c_uint8 * (before + len(content) + after))()
        ctypes.memmove(ctypes.byref(memory, before), content, len(content))
        packet = Packet(buffer=ctypes.cast(memory, ctypes.POINTER(ctypes.c_uint8)), capacity=len(memory),
                        offset=before, size=len(content), **more)
        packet.memory = memory  # keeps it
        return packet

    @staticmethod
    def content(packet):
        return bytes(packet.memory[packet.offset:packet.offset + packet.size])

    def seal(self, sender, payload, next_header, pad_to=0):
        packet = self.packet(payload, HEADROOM, TAILROOM + pad_to, next_header=next_header, pad_to=pad_to)
        self.call("dael_esp_encapsulate", sender, ctypes.byref(packet), ctypes.c_size_t(1), None, None)
        assert packet.verdict == OK, packet.verdict
        return self.content(packet), packet.sequence

    def open(self, content, framing=PLAIN):
        """Verdict, payload, next header."""
        packet = self.packet(content)
        self.call("dael_esp_decapsulate", self.esp, ctypes.byref(packet), ctypes.c_size_t(1), framing, None)
        return packet.verdict, self.content(packet), packet.next_header


class Interop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ours = Esp()
        cls.random = random.Random(4106)
        cls.spi = 0x1000

    def kinds(self):
        """Every key size, ICV and kind of sequence number: key, salt, ICV's size, ESN."""
        for size, icv, esn in itertools.product((16, 24, 32), (8, 12, 16), (False, True)):
            self.spi += 1
            with self.subTest(key=8 * size, icv=icv, esn=esn):
                yield self.spi, self.random.randbytes(size), self.random.randbytes(4), icv, esn

    def inner(self, version, size):
        data = Raw(self.random.randbytes(size))
        ip = IP(src="10.0.0.1", dst="10.0.0.2") if version == 4 else IPv6(src="fd00::1", dst="fd00::2")
        layer = self.random.choice([TCP(sport=1234, dport=443), UDP(sport=53, dport=5353)])
        return ip.__class__(raw(ip / layer / data))  # lengths and checksums filled in

    def theirs(self, spi, key, salt, icv, esn, **more):
        return SecurityAssociation(ESP, spi=spi, crypt_algo="AES-GCM" if icv == 16 else "AES-GCM by mode",
                                   crypt_key=key + salt, crypt_icv_size=icv, esn_en=esn, esn=0, **more)

    def test_scapy_opens_tunnels(self):
        for spi, key, salt, icv, esn in self.kinds():
            sender = self.ours.sender(key, self.ours.sa(spi, salt, icv, esn))
            for version, outer in ((4, IP(src="1.1.1.1", dst="2.2.2.2")), (6, IPv6(src="::1", dst="::2")),
                                   (4, IPv6(src="::1", dst="::2"))):
                theirs = self.theirs(spi, key, salt, icv, esn, tunnel_header=outer)
                for size in (0, 1, 2, 3, 100, 1300):
                    inner = self.inner(version, size)
                    sealed, number = self.ours.seal(sender, raw(inner), 4 if version == 4 else 41)
                    self.assertEqual(int.from_bytes(sealed[4:8], "big"), number)
                    carrier = outer.copy()
                    setattr(carrier, "proto" if carrier.version == 4 else "nh", 50)
                    opened = theirs.decrypt(carrier.__class__(raw(carrier / ESP(sealed))))
                    self.assertEqual(raw(opened), raw(inner))
            self.ours.library.dael_esp_sender_free(sender)

    def test_scapy_opens_transport(self):
        for spi, key, salt, icv, esn in self.kinds():
            sender = self.ours.sender(key, self.ours.sa(spi, salt, icv, esn))
            theirs = self.theirs(spi, key, salt, icv, esn)
            for version, size in itertools.product((4, 6), (0, 1, 2, 3, 700)):
                whole = self.inner(version, size)
                protocol = whole.proto if version == 4 else whole.nh
                sealed, _ = self.ours.seal(sender, raw(whole.payload), protocol)
                carrier = whole.copy()
                carrier.remove_payload()
                for field in ("len", "chksum", "plen"):
                    if field in carrier.fields:
                        del carrier.fields[field]
                setattr(carrier, "proto" if version == 4 else "nh", 50)
                opened = theirs.decrypt(carrier.__class__(raw(carrier / ESP(sealed))))
                self.assertEqual(raw(opened.payload), raw(whole.payload))
                self.assertEqual(opened.proto if version == 4 else opened.nh, protocol)
            self.ours.library.dael_esp_sender_free(sender)

    def test_scapy_opens_udp(self):
        for spi, key, salt, icv, esn in self.kinds():
            sender = self.ours.sender(key, self.ours.sa(spi, salt, icv, esn, (4500, 4501)))
            outer = IP(src="1.1.1.1", dst="2.2.2.2")
            theirs = self.theirs(spi, key, salt, icv, esn, tunnel_header=outer,
                                 nat_t_header=UDP(sport=4500, dport=4501))
            inner = self.inner(4, 500)
            sealed, _ = self.ours.seal(sender, raw(inner), 4)
            udp = UDP(sealed)
            self.assertEqual((udp.sport, udp.dport, udp.len, udp.chksum), (4500, 4501, len(sealed), 0))
            carrier = IP(raw(IP(src="1.1.1.1", dst="2.2.2.2", proto=17) / Raw(sealed)))
            carrier[UDP].remove_payload()
            opened = theirs.decrypt(carrier / ESP(sealed[8:]))
            self.assertEqual(raw(opened), raw(inner))
            self.ours.library.dael_esp_sender_free(sender)

    def test_scapy_finds_the_inner_packet_before_tfc_padding(self):
        spi, key, salt = 0x9000, self.random.randbytes(16), self.random.randbytes(4)
        sender = self.ours.sender(key, self.ours.sa(spi, salt, 16, True))
        theirs = self.theirs(spi, key, salt, 16, True, tunnel_header=IP(src="1.1.1.1", dst="2.2.2.2"))
        inner = self.inner(4, 60)
        sealed, _ = self.ours.seal(sender, raw(inner), 4, pad_to=700)
        self.assertEqual(len(sealed), 16 + 704 + 16)
        opened = theirs.decrypt(IP(raw(IP(src="1.1.1.1", dst="2.2.2.2", proto=50) / ESP(sealed))))
        self.assertEqual(raw(opened)[:opened.len], raw(inner))

    def test_opens_what_scapy_seals(self):
        for spi, key, salt, icv, esn in self.kinds():
            self.ours.receive_as(key, self.ours.sa(spi, salt, icv, esn))
            outer = IP(src="1.1.1.1", dst="2.2.2.2")
            tunnel = self.theirs(spi, key, salt, icv, esn, tunnel_header=outer)
            transport = self.theirs(spi, key, salt, icv, esn)
            udp = self.theirs(spi, key, salt, icv, esn, tunnel_header=outer,
                              nat_t_header=UDP(sport=4500, dport=4500))
            number = 0
            for version, size in itertools.product((4, 6), (0, 1, 2, 3, 64, 1200)):
                whole = self.inner(version, size)
                number += 1
                sealed = raw(tunnel.encrypt(whole, seq_num=number)[ESP])
                self.assertEqual(self.ours.open(sealed), (OK, raw(whole), 4 if version == 4 else 41))
                verdict, left, _ = self.ours.open(sealed)
                self.assertEqual(verdict, REPLAYED)
                self.assertNotIn(raw(whole)[:8], left)
                number += 1
                sealed = raw(transport.encrypt(whole, seq_num=number)[ESP])
                protocol = whole.proto if version == 4 else whole.nh
                self.assertEqual(self.ours.open(sealed), (OK, raw(whole.payload), protocol))
                number += 1
                packet = IP(raw(udp.encrypt(whole, seq_num=number)))
                self.assertEqual(self.ours.open(raw(packet.payload), UDP_FRAMING),
                                 (OK, raw(whole), 4 if version == 4 else 41))
                number += 1
                sealed = bytearray(raw(tunnel.encrypt(whole, seq_num=number)[ESP]))
                sealed[self.random.randrange(4, len(sealed))] ^= 1 << self.random.randrange(8)
                verdict, left, _ = self.ours.open(bytes(sealed))
                self.assertEqual(verdict, BAD_ICV)
                self.assertNotIn(raw(whole)[:8], left)

    def test_upper_halves(self):
        """Numbers around 2^32, whose upper half is in the AAD alone."""
        spi, key, salt = 0x9001, self.random.randbytes(32), self.random.randbytes(4)
        self.ours.receive_as(key, self.ours.sa(spi, salt, 16, True))
        theirs = self.theirs(spi, key, salt, 16, True, tunnel_header=IP(src="1.1.1.1", dst="2.2.2.2"))
        half = 1 << 32
        for number, expected in ((half - 3000, OK), (half - 2, OK), (half + 1, OK), (half - 1, OK), (half + 3, OK),
                                 (half - 2, REPLAYED), (half + 5000, OK), (half - 1, BAD_ICV)):
            inner = self.inner(4, 40)
            # A lower half or an `esn` of 0 would mean the association's own to them: 1, and 0.
            sealed = raw(theirs.encrypt(inner, seq_num=number % half, esn=number // half)[ESP])
            self.assertEqual(self.ours.open(sealed)[0], expected, number)


if __name__ == "__main__":
    unittest.main()
