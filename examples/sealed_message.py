#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From Python, through ctypes: seals a message with AES-256-GCM under a nonce that never repeats, opens it again,
and refuses it once a bit of it was altered.

DAELSTROM_LIBRARY names libdaelstrom.so where the system does not find it by itself.
"""
import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint8, c_uint64, c_void_p

dael = ctypes.CDLL(os.environ.get("DAELSTROM_LIBRARY", "libdaelstrom.so.0.1"))
AUTHENTICATION = 16  # dael_status


class Ran(ctypes.Structure):  # dael_ran
    _fields_ = [("backend", ctypes.c_char * 32), ("threads", ctypes.c_int32), ("replaced", ctypes.c_uint32),
                ("chunks", c_uint64), ("unused", c_uint64 * 2)]


def declare(name, result, *arguments):
    function = getattr(dael, name)
    function.restype, function.argtypes = result, arguments


# Without these, ctypes takes every argument for an int, and cuts pointers in two.
declare("dael_last_error", c_char_p)
declare("dael_engine_open", c_int, c_void_p, POINTER(c_void_p))
declare("dael_engine_close", None, c_void_p)
declare("dael_key_import", c_int, c_void_p, c_size_t, POINTER(c_void_p))
declare("dael_key_free", None, c_void_p)
declare("dael_nonces_make", c_int, c_char_p, c_uint64, POINTER(c_void_p))
declare("dael_nonces_next", c_int, c_void_p, POINTER(c_uint8))
declare("dael_nonces_free", None, c_void_p)
declare("dael_wipe", None, c_void_p, c_size_t)
for call in ("dael_gcm_seal", "dael_gcm_open"):
    declare(call, c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t,
            c_void_p, c_size_t, POINTER(Ran))


def check(status):
    if status != 0:
        raise RuntimeError(dael.dael_last_error().decode())


secret = (c_uint8 * 32).from_buffer_copy(os.urandom(32))  # what os.urandom made is Python's, and not wiped
engine, key, nonces = c_void_p(), c_void_p(), c_void_p()
check(dael.dael_engine_open(None, byref(engine)))
check(dael.dael_key_import(secret, len(secret), byref(key)))
dael.dael_wipe(secret, len(secret))
check(dael.dael_nonces_make(b"me01", 0, byref(nonces)))

plain, aad = b"a message", b"v1"
sealed, tag, nonce, ran = (c_uint8 * len(plain))(), (c_uint8 * 16)(), (c_uint8 * 12)(), Ran()
check(dael.dael_nonces_next(nonces, nonce))
check(dael.dael_gcm_seal(engine, key, nonce, len(nonce), aad, len(aad), plain, sealed, len(plain), tag, len(tag), ran))
print("sealed on", ran.backend.decode())

opened = (c_uint8 * len(plain))()
arguments = (engine, key, nonce, len(nonce), aad, len(aad), sealed, opened, len(plain), tag, len(tag), None)
sealed[3] ^= 1  # what an attacker, or a bad disk, might do
refused = dael.dael_gcm_open(*arguments) == AUTHENTICATION
print("altered:", dael.dael_last_error().decode())
sealed[3] ^= 1
check(dael.dael_gcm_open(*arguments))
print("opened:", bytes(opened).decode())

dael.dael_engine_close(engine)  # in any order
dael.dael_nonces_free(nonces)
dael.dael_key_free(key)
raise SystemExit(0 if refused and bytes(opened) == plain else 1)
