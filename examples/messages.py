#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From Python: seals ten thousand messages with AES-256-GCM in one call, under nonces that never repeat, opens them, and
refuses those of which somebody flipped a bit."""
import os
import time

from daelstrom import AESGCM, InvalidTag, NonceCounter, open_batch, seal_batch

key = AESGCM(AESGCM.generate_key(256))  # made ready once
nonces = NonceCounter(os.urandom(4))
messages = [os.urandom(1024) for _ in range(10_000)]

numbered = nonces.take(len(messages))
started = time.perf_counter()
sealed = seal_batch(key, numbered, messages, b"v1")
took = time.perf_counter() - started
print(f"sealed {len(sealed):,} messages of 1 KiB in {took * 1e3:.1f} ms, {len(messages) * 1024 / took / 1e9:.2f} GB/s")
assert open_batch(key, numbered, sealed, b"v1") == messages
print("opened them again, each verified")

sealed[42] = bytes([sealed[42][0] ^ 1]) + sealed[42][1:]
try:
    open_batch(key, numbered, sealed, b"v1")
except InvalidTag as refused:
    print(f"refused: {refused}")
    assert refused.indices == (42,)
else:
    raise SystemExit("an altered message was taken for a true one")
