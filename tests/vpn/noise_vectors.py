#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/vpn/noise.json: handshakes of both patterns as PyPI `noiseprotocol`, an independent
implementation, has them, of both ends, with fixed ephemeral keys.

    .venv/bin/python tests/vpn/noise_vectors.py > tests/vectors/vpn/noise.json

All keys follow from the vector's number, so that every run writes the same; noise_test.py looks whether it does."""
import hashlib
import json
import sys
import warnings

from noise.connection import Keypair, NoiseConnection

PROLOGUE = b"daelstrom vpn 1"
PATTERNS = {"IK": b"Noise_IK_25519_AESGCM_SHA256", "IKpsk2": b"Noise_IKpsk2_25519_AESGCM_SHA256"}
PAYLOADS = [(16, 4), (0, 0), (1, 1), (15, 17), (64, 33), (300, 1000)]


def some_bytes(number, what, size=32):
    out = b""
    while len(out) < size:
        out += hashlib.sha256(f"{number} {what} {len(out)}".encode()).digest()
    return out[:size]


def end(name, initiator, static, ephemeral, prologue, remote=None, psk=None):
    """One side, ready to begin."""
    connection = NoiseConnection.from_name(name)
    connection.set_prologue(prologue)
    if psk is not None:
        connection.set_psks(psk=psk)
    connection.set_keypair_from_private_bytes(Keypair.STATIC, static)
    if ephemeral is not None:
        connection.set_keypair_from_private_bytes(Keypair.EPHEMERAL, ephemeral)
    if initiator:
        connection.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, remote)
        connection.set_as_initiator()
    else:
        connection.set_as_responder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an ephemeral key is fixed
        connection.start_handshake()
    return connection


def public(private):
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def vector(number, pattern, sizes):
    psk = some_bytes(number, "psk") if pattern == "IKpsk2" else None
    keys = {what: some_bytes(number, what) for what in
            ("initiator static", "responder static", "initiator ephemeral", "responder ephemeral")}
    prologue = PROLOGUE if number % 4 else b""
    remote = public(keys["responder static"])
    one = end(PATTERNS[pattern], True, keys["initiator static"], keys["initiator ephemeral"], prologue, remote, psk)
    two = end(PATTERNS[pattern], False, keys["responder static"], keys["responder ephemeral"], prologue, psk=psk)
    payloads = [some_bytes(number, f"payload {i}", size) for i, size in enumerate(sizes)]
    first = bytes(one.write_message(payloads[0]))
    assert two.read_message(first) == payloads[0]
    second = bytes(two.write_message(payloads[1]))
    assert one.read_message(second) == payloads[1]
    assert one.get_handshake_hash() == two.get_handshake_hash()
    out = {"pattern": pattern, "prologue": prologue, "psk": psk or b""}
    out |= {what.replace(" ", "_"): key for what, key in keys.items()}
    out |= {"payloads": payloads, "messages": [first, second], "hash": one.get_handshake_hash(),
            "to_responder": one.noise_protocol.cipher_state_encrypt.k,
            "to_initiator": one.noise_protocol.cipher_state_decrypt.k}
    return {name: value if isinstance(value, str) else
            [part.hex() for part in value] if isinstance(value, list) else value.hex()
            for name, value in out.items()}


def vectors():
    return [vector(2 * i + j + 1, pattern, sizes) for i, sizes in enumerate(PAYLOADS)
            for j, pattern in enumerate(PATTERNS)]


def text():
    return json.dumps({"from": "PyPI noiseprotocol 0.3.1, by tests/vpn/noise_vectors.py", "vectors": vectors()},
                      indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
