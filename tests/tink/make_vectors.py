#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/tink/streaming.json: what stock Tink (PyPI `tink`) makes of known plaintexts.

    .venv/bin/python tests/tink/make_vectors.py > tests/vectors/tink/streaming.json

Keys, salts and nonces are random, so that every run writes others. Plaintexts are byte i = i mod 251, so that
only their sizes are stored."""
import base64
import io
import json
import secrets
import sys

import tink
from tink import secret_key_access, streaming_aead
from tink.proto import aes_gcm_hkdf_streaming_pb2, common_pb2

TYPE = "type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey"


def pattern(size):
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def key_message(key, segment, derived, hash_type):
    message = aes_gcm_hkdf_streaming_pb2.AesGcmHkdfStreamingKey(version=0, key_value=key)
    message.params.ciphertext_segment_size = segment
    message.params.derived_key_size = derived
    message.params.hkdf_hash_type = getattr(common_pb2, hash_type)
    return message.SerializeToString()


def keyset(*keys, primary=0):
    """Tink's JSON of (key, segment, derived size, hash) each."""
    entries = [{"keyData": {"typeUrl": TYPE, "value": base64.b64encode(key_message(*key)).decode(),
                            "keyMaterialType": "SYMMETRIC"},
                "status": "ENABLED", "keyId": 1000 + i, "outputPrefixType": "RAW"} for i, key in enumerate(keys)]
    return json.dumps({"primaryKeyId": 1000 + primary, "key": entries})


def primitive(json_keyset):
    handle = tink.json_proto_keyset_format.parse(json_keyset, secret_key_access.TOKEN)
    return handle.primitive(streaming_aead.StreamingAead)


def seal(json_keyset, plain, aad):
    class Kept(io.BytesIO):
        def close(self):
            self.kept = self.getvalue()
            super().close()
    out = Kept()
    with primitive(json_keyset).new_encrypting_stream(out, aad) as stream:
        stream.write(plain)
    return out.kept


def unseal(json_keyset, cipher, aad):
    with primitive(json_keyset).new_decrypting_stream(io.BytesIO(cipher), aad) as stream:
        return stream.read()


def main():
    streaming_aead.register()
    shapes = [(16, 4096, 16, "SHA256"), (32, 4096, 32, "SHA256"), (16, 1 << 20, 16, "SHA256"),
              (32, 1 << 20, 32, "SHA256"), (16, 64, 16, "SHA1"), (32, 64, 32, "SHA1"), (48, 100, 32, "SHA512"),
              (64, 57, 32, "SHA256")]
    vectors = []
    for size, segment, derived, hash_type in shapes:
        room, header = segment - 16, derived + 8
        sizes = {0, 1, 100, room - header - 1, room - header, room - header + 1}
        if segment <= 4096:
            sizes |= {2 * room - header, 2 * room - header + 1}
        for plain_size in sorted(s for s in sizes if 0 <= s < 20000):
            key = secrets.token_bytes(size)
            aad = b"" if plain_size % 2 else b"associated data of " + str(plain_size).encode()
            json_keyset = keyset((key, segment, derived, hash_type))
            cipher = seal(json_keyset, pattern(plain_size), aad)
            assert unseal(json_keyset, cipher, aad) == pattern(plain_size)
            vectors.append({"name": f"{8 * derived} bits, {segment} bytes, {hash_type}, {plain_size}",
                            "keyset": json_keyset, "key": key.hex(), "segment": segment, "derived": derived,
                            "hash": hash_type, "aad": aad.hex(), "size": plain_size, "ciphertext": cipher.hex()})
    json.dump({"source": "tink 1.16.1 from PyPI, by tests/tink/make_vectors.py; plaintext byte i is i mod 251",
               "vectors": vectors}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
