#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole handshake against one that is written here once more, from docs/vpn.md, over PyPI `noiseprotocol`: both
patterns, both roles, cookies and hints, the keys of ESP. Status 77: no noiseprotocol here.

Runs with the Python of .venv, where scripts/setup installs noiseprotocol, on the program handshake_steps."""
import hashlib
import hmac
import os
import pathlib
import secrets
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    import noise_vectors
except ImportError as absent:
    print(f"SKIP: no noiseprotocol: {absent}; scripts/setup installs it into .venv")
    sys.exit(77)

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors/vpn/noise.json"
SOURCE = bytes([192, 0, 2, 7, 0x11, 0x94])
PROLOGUE, NAME = noise_vectors.PROLOGUE, noise_vectors.PATTERNS


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()[:16]


def mac_key(public):
    return sha256(b"daelstrom vpn 1 mac", public)


def hkdf(secret, salt, info, size):
    return HKDF(algorithm=hashes.SHA256(), length=size, salt=salt, info=info).derive(secret)


def timestamp(seconds=None):
    nanoseconds = time.time_ns() if seconds is None else int(seconds * 1e9)
    return struct.pack(">QI", 2**62 + nanoseconds // 10**9, nanoseconds % 10**9)


def with_macs(body, receiver, cookie=None):
    """MAC1, and MAC2 where there is a cookie."""
    body += mac(mac_key(receiver), body)
    return body + (mac(cookie, body) if cookie else bytes(16))


def esp_keys(connection, initiator_spi, responder_spi):
    """Key and salt to the responder, and to the initiator; of the initiator's connection."""
    info = b"daelstrom vpn 1 esp" + struct.pack(">II", initiator_spi, responder_spi)
    salt = connection.get_handshake_hash()
    return [hkdf(state.k, salt, info, 36)
            for state in (connection.noise_protocol.cipher_state_encrypt, connection.noise_protocol.cipher_state_decrypt)]


class Steps:
    """The C++ end."""

    def __init__(self, private, free=100):
        self.process = subprocess.Popen([os.environ["DAEL_HANDSHAKE_STEPS"], private.hex(), str(free)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def say(self, *words):
        """What was answered: a list of words for each line."""
        print(*(word.hex() if isinstance(word, bytes) else word for word in words),
              file=self.process.stdin, flush=True)
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the program ended: {self.process.wait()}")
            if line == ".\n":
                return lines
            lines.append(line.split())


class Interop(unittest.TestCase):
    def setUp(self):
        self.own, self.other = secrets.token_bytes(32), secrets.token_bytes(32)  # of Python, of C++
        self.own_public, self.other_public = noise_vectors.public(self.own), noise_vectors.public(self.other)
        self.spi, self.number = 0x11223344, 0xdeadbeef

    def shared(self, pattern):
        return secrets.token_bytes(32) if pattern == "IKpsk2" else None

    def initiation(self, pattern, psk, stamp=None, cookie=None):
        connection = noise_vectors.end(NAME[pattern], True, self.own, None, PROLOGUE, self.other_public, psk)
        head = struct.pack(">IBxxxI", 0, 3 if psk else 1, self.number)
        body = head + bytes(connection.write_message((stamp or timestamp(1_700_000_000)) + struct.pack(">I", self.spi)))
        return connection, with_macs(body, self.other_public, cookie)

    def check_keys(self, install, to_peer, from_peer):
        """`install` as the C++ end says it: its sending side first."""
        self.assertEqual(bytes.fromhex(install[4] + install[5]), to_peer)
        self.assertEqual(bytes.fromhex(install[7] + install[8]), from_peer)

    def test_python_begins(self):
        for pattern in NAME:
            with self.subTest(pattern), Steps(self.other) as steps:
                psk = self.shared(pattern)
                self.assertEqual(steps.say("peer", self.own_public, *([psk] if psk else [])), [["peer", "0"]])
                connection, message = self.initiation(pattern, psk)
                self.assertEqual(len(message), 156)
                said = steps.say("receive", SOURCE, message)
                self.assertEqual(said[0], ["outcome", "initiation", "answered"])
                reply = bytes.fromhex(said[2][1])
                self.assertEqual((said[2][0], len(reply)), ("reply", 100))
                zero, kind, _, receiver = struct.unpack(">IBxxxII", reply[:16])
                self.assertEqual((zero, kind, receiver), (0, 4 if psk else 2, self.number))
                self.assertEqual(reply[68:84], mac(mac_key(self.own_public), reply[:68]))
                self.assertEqual(reply[84:], bytes(16))
                responder_spi, = struct.unpack(">I", connection.read_message(reply[16:68]))
                install = said[1]
                self.assertEqual(install[0], "install")
                self.assertEqual((install[2], int(install[3]), int(install[6])), ("responder", self.spi, responder_spi))
                to_responder, to_initiator = esp_keys(connection, self.spi, responder_spi)
                self.check_keys(install, to_initiator, to_responder)
                self.assertEqual(len(said), 3, "it is used once this end has used it")
                self.assertEqual(steps.say("received", 0, install[1]), [["use", install[1], "responder"]])
                # The same again, and one from before.
                self.assertEqual(steps.say("receive", SOURCE, message), [["outcome", "replayed"]])
                _, older = self.initiation(pattern, psk, timestamp(1_699_999_999))
                self.assertEqual(steps.say("receive", SOURCE, older), [["outcome", "replayed"]])
                steps.say("pass", 1000)
                _, newer = self.initiation(pattern, psk, timestamp(1_700_000_001))
                self.assertEqual(steps.say("receive", SOURCE, newer)[0][1], "initiation")

    def respond(self, pattern, psk, message, cookie=None):
        connection = noise_vectors.end(NAME[pattern], False, self.own, None, PROLOGUE, psk=psk)
        payload = bytes(connection.read_message(message[12:124]))
        sender, = struct.unpack(">I", message[8:12])
        body = struct.pack(">IBxxxII", 0, 4 if psk else 2, self.number, sender)
        body += bytes(connection.write_message(struct.pack(">I", self.spi)))
        return connection, payload, with_macs(body, self.other_public, cookie)

    def test_python_answers(self):
        for pattern in NAME:
            with self.subTest(pattern), Steps(self.other) as steps:
                psk = self.shared(pattern)
                steps.say("peer", self.own_public, *([psk] if psk else []))
                steps.say("pass", 500)
                lost = bytes.fromhex(steps.say("want", 0)[0][1])
                (what, message), = steps.say("pass", 6000)
                self.assertEqual(what, "send")
                message = bytes.fromhex(message)
                self.assertNotEqual(message[12:44], lost[12:44], "another ephemeral key each time")
                self.assertEqual(len(message), 156)
                self.assertEqual(message[:8], struct.pack(">IBxxx", 0, 3 if psk else 1))
                self.assertEqual(message[124:140], mac(mac_key(self.own_public), message[:124]))
                self.assertEqual(message[140:], bytes(16))
                connection, payload, reply = self.respond(pattern, psk, message)
                seconds, nanoseconds, initiator_spi = struct.unpack(">QII", payload)
                self.assertIn(seconds - 2**62, range(1_700_000_000, 1_700_000_010))
                self.assertLess(nanoseconds, 10**9)
                self.assertLess(self.respond(pattern, psk, lost)[1][:12], payload[:12])
                said = steps.say("receive", SOURCE, reply)
                self.assertEqual([line[0] for line in said], ["outcome", "install", "use"])
                self.assertEqual(said[0][1:], ["response", "accepted"])
                install = said[1]
                self.assertEqual((install[2], int(install[3]), int(install[6])), ("initiator", self.spi, initiator_spi))
                # The responder's connection: it sends to the initiator.
                to_initiator, to_responder = esp_keys(connection, initiator_spi, self.spi)
                self.check_keys(install, to_responder, to_initiator)

    def open_cookie(self, reply, message):
        self.assertEqual(len(reply), 60)
        zero, kind, receiver = struct.unpack(">IBxxxI", reply[:12])
        self.assertEqual((zero, kind, receiver), (0, 5, self.number))
        key = hkdf(sha256(b"daelstrom vpn 1 cookie", self.other_public), reply[12:28], b"daelstrom vpn 1 cookie", 32)
        with self.assertRaises(InvalidTag):
            AESGCM(key).decrypt(bytes(12), reply[28:], bytes(16))
        return AESGCM(key).decrypt(bytes(12), reply[28:], message[-32:-16])

    def test_cookies_for_python(self):
        with Steps(self.other, free=0) as steps:
            steps.say("peer", self.own_public)
            _, message = self.initiation("IK", None)
            said = steps.say("receive", SOURCE, message)
            self.assertEqual([line[0] for line in said], ["outcome", "reply"])
            cookie = self.open_cookie(bytes.fromhex(said[1][1]), message)
            self.assertEqual(len(cookie), 16)
            _, message = self.initiation("IK", None, cookie=cookie)
            elsewhere = SOURCE[:-1] + b"\x95"
            self.assertEqual(steps.say("receive", elsewhere, message)[0], ["outcome", "cookie", "asked", "for"])
            self.assertEqual(steps.say("receive", SOURCE, message)[0], ["outcome", "initiation", "answered"])

    def test_cookies_of_python(self):
        with Steps(self.other) as steps:
            steps.say("peer", self.own_public)
            message = bytes.fromhex(steps.say("want", 0)[0][1])
            cookie, salt = secrets.token_bytes(16), secrets.token_bytes(16)
            key = hkdf(sha256(b"daelstrom vpn 1 cookie", self.own_public), salt, b"daelstrom vpn 1 cookie", 32)
            reply = struct.pack(">IBxxx", 0, 5) + message[8:12] + salt
            wrong = reply + AESGCM(key).encrypt(bytes(12), cookie, bytes(16))
            self.assertEqual(steps.say("receive", SOURCE, wrong), [["outcome", "forged"]])
            reply += AESGCM(key).encrypt(bytes(12), cookie, message[124:140])
            said = steps.say("receive", SOURCE, reply)
            self.assertEqual(said[0], ["outcome", "cookie", "accepted"])
            again = bytes.fromhex(said[1][1])
            self.assertEqual(again[140:], mac(cookie, again[:140]))
            self.assertNotEqual(again[12:44], message[12:44], "another ephemeral key")

    def test_hints(self):
        with Steps(self.other) as steps:
            steps.say("peer", self.own_public)
            message = bytes.fromhex(steps.say("want", 0)[0][1])
            _, _, reply = self.respond("IK", None, message)
            steps.say("receive", SOURCE, reply)
            steps.say("pass", 2000)
            hint = struct.pack(">IBxxxI", 0, 6, self.spi)
            hint += mac(mac_key(self.own_public), hint)
            said = steps.say("receive", SOURCE, hint)
            self.assertEqual([line[0] for line in said], ["outcome", "send"])
            # And one of the C++ end's.
            packet = struct.pack(">II", 0x55667788, 1) + bytes(28)
            said = steps.say("unknown", packet)
            expected = struct.pack(">IBxxxI", 0, 6, 0x55667788)
            self.assertEqual(said, [["reply", (expected + mac(mac_key(self.other_public), expected)).hex()]])

    def test_wrong_secrets_and_strangers(self):
        with Steps(self.other) as steps:
            steps.say("peer", self.own_public, secrets.token_bytes(32))
            _, message = self.initiation("IK", None)
            self.assertEqual(steps.say("receive", SOURCE, message), [["outcome", "unknown", "peer"]])
            connection, message = self.initiation("IKpsk2", secrets.token_bytes(32))
            said = steps.say("receive", SOURCE, message)
            self.assertEqual(said[0][1], "initiation")
            with self.assertRaises(InvalidTag):
                connection.read_message(bytes.fromhex(said[2][1])[16:68])
            steps.say("pass", 10_000)
            message = bytes.fromhex(steps.say("want", 0)[0][1])
            _, _, reply = self.respond("IKpsk2", secrets.token_bytes(32), message)
            self.assertEqual(steps.say("receive", SOURCE, reply), [["outcome", "forged"]])

    def test_vectors_are_what_noiseprotocol_writes(self):
        self.assertEqual(VECTORS.read_text(), noise_vectors.text())


if __name__ == "__main__":
    unittest.main()
