#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""daelstrom takes the keysets that stock Tink (PyPI `tink`) takes, and refuses those that it refuses. Status 77: no
Tink here.

Each case is one change to a good keyset. Runs with the Python of .venv, where scripts/setup installs Tink."""
import base64
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "cli")]
try:
    from tink import streaming_aead
except ImportError as absent:
    print(f"SKIP: no Tink: {absent}; scripts/setup installs it into .venv")
    sys.exit(77)

from harness import CliTest
from make_vectors import TYPE, key_message, keyset, seal, unseal

PLAIN, GONE = b"hello", object()


def good(count=1):
    return json.loads(keyset(*((bytes([i + 1]) * 16, 64, 16, "SHA256") for i in range(count))))


def changed(value, *path, count=1, **more):
    """The text of a good keyset where what stands at `path` is `value`, or GONE. more: members of the last key."""
    keys = good(count)
    place = keys
    for step in path[:-1]:
        place = place[step]
    if value is GONE:
        del place[path[-1]]
    elif path:
        place[path[-1]] = value
    if more:
        keys["key"][-1].update(more)
    return json.dumps(keys)


def in_key(value, *path, **more):
    return changed(value, "key", 0, *path, **more)


def in_second(value, *path, **more):
    return changed(value, "key", 1, *path, count=2, **more)


def in_snake_case():
    keys = good()
    keys["primary_key_id"] = keys.pop("primaryKeyId")
    key = keys["key"][0]
    for other, name in (("key_data", "keyData"), ("key_id", "keyId"), ("output_prefix_type", "outputPrefixType")):
        key[other] = key.pop(name)
    for other, name in (("type_url", "typeUrl"), ("key_material_type", "keyMaterialType")):
        key["key_data"][other] = key["key_data"].pop(name)
    return json.dumps(keys)


def with_message(message):
    return in_key(base64.b64encode(message).decode(), "keyData", "value")


def enumerations():
    for name in ("RAW", "TINK", "LEGACY", "CRUNCHY", "UNKNOWN_PREFIX", "WITH_ID_REQUIREMENT", "raw", "nonsense", "",
                 0, 1, 2, 3, 4, 5, 99, -1, "3", "-1", "99", 3.0, "3.0", 2**31, [], {}, None, GONE):
        yield f"prefix {name!r}", in_key(name, "outputPrefixType")
        for status in ("DISABLED", "DESTROYED", 17):
            yield f"prefix {name!r} of a key that is {status}", in_second(name, "outputPrefixType", status=status)
    for name in ("SYMMETRIC", "ASYMMETRIC_PRIVATE", "ASYMMETRIC_PUBLIC", "REMOTE", "UNKNOWN_KEYMATERIAL", "nonsense",
                 "", 0, 1, 5, 99, -1, "1", 1.0, [], None, GONE):
        yield f"material {name!r}", in_key(name, "keyData", "keyMaterialType")
    for name in ("ENABLED", "DISABLED", "DESTROYED", "UNKNOWN_STATUS", "enabled", "", 0, 1, 2, 3, 4, 99, -1, "1", "3",
                 1.0, [], None, GONE):
        yield f"status {name!r}", in_key(name, "status")
        yield f"second status {name!r}", in_second(name, "status")


def numbers():
    for number in (0, "1000", "1000.0", "1e3", "1E+3", 1000.0, -1000, "-1000", "01000", "1000 ", " 1000", "0x3e8",
                   "1000x", "1000.5", 1000.5, 2**32 - 1, 2**32, 2**32 + 1000, 2**64 + 1000, "inf", "nan", "", ".",
                   True, [], {}, None, GONE):
        yield f"id {number!r}", in_key(number, "keyId")
        yield f"primary {number!r}", changed(number, "primaryKeyId")
    text = changed(None)
    for number in ("1e3", "1000.0", "10e2", "100000e-2", "01000", "+1000", "1000.", ".1e4", "1e", "--1000", "NaN",
                   "Infinity", "-Infinity", "1e999", "0x3e8"):
        yield f"primary as {number}", text.replace("1000", number, 1)
    for number in ("0", "-0", "0.0", "-0e7"):
        yield f"ids as {number}", text.replace("1000", number)
    for number in (1000, 7, None):
        keys = good()
        keys["primary_key_id"] = number
        yield f"primary in both spellings, then {number}", json.dumps(keys)
    keys = good()
    del keys["primaryKeyId"], keys["key"][0]["keyId"]
    yield "no ids at all", json.dumps(keys)


def members():
    yield "good", changed(None)
    yield "good, of two", changed(None, count=2)
    yield "in snake case", in_snake_case()
    text = changed(None)
    for name, other in (("twice", '"primaryKeyId": 1000, "primaryKeyId": 1000'),
                        ("twice, once null", '"primaryKeyId": null, "primaryKeyId": 1000'),
                        ("twice by escapes", '"primaryKeyId": 1000, "primary\\u004beyId": 1000'),
                        ("by escapes", '"primary\\u004beyId": 1000'), ("unknown", '"x": 1, "primaryKeyId": 1000'),
                        ("empty", '"": 1, "primaryKeyId": 1000'),
                        ("null and unknown", '"x": null, "primaryKeyId": 1000')):
        yield f"a member {name}", text.replace('"primaryKeyId": 1000', other)
    yield "a member of a key twice", text.replace('"keyId"', '"keyId": 1000, "keyId"')
    yield "a member of data twice", text.replace('"value"', '"value": "", "value"')
    yield "unknown in a key", in_key(1, "x")
    yield "unknown in data", in_key(1, "keyData", "x")
    for status in ("ENABLED", "DISABLED", "DESTROYED"):
        for data in (None, {}, {"typeUrl": "x"}, {"value": "AAAA"}, {"value": 5}, {"typeUrl": 5}, {"typeUrl": "\xe9"},
                     {"typeUrl": "\ud800"}, {"typeUrl": "\U0001f511"}, {"typeUrl": None, "value": None},
                     {"keyMaterialType": "x"}, 5, "x", GONE):
            yield f"data {data!r} of a key that is {status}", in_second(data, "keyData", status=status)
    for name, other in (("null", None), ("an object", {}), ("empty", []), ("of a number", [5]), ("of null", [None]),
                        ("of an empty object", [{}]), ("a string", "x")):
        yield f"keys {name}", changed(other, "key")
        yield f"keys {name} and one", changed(good()["key"] + other if isinstance(other, list) else other, "key")


def sets():
    def two(number, status="ENABLED", count=2):
        return changed(number, "key", count - 1, "keyId", count=count, status=status)
    yield "two with the primary's id", two(1000)
    yield "two with it, one disabled", two(1000, "DISABLED")
    yield "two with it, one destroyed", two(1000, "DESTROYED")
    yield "two with another id", two(1001, count=3)
    yield "another type", in_key(TYPE.replace("AesGcmHkdf", "AesCtrHmac"), "keyData", "typeUrl")
    yield "a second type", in_second(TYPE.replace("AesGcmHkdfStreaming", "AesGcm"), "keyData", "typeUrl")
    yield "a type without its front", in_key(TYPE.split("/")[1], "keyData", "typeUrl")


def texts():
    text = changed(None)
    for name, other in (("byte order mark", "\ufeff" + text), ("white space", " \n\t\r" + text + "\n\n"),
                        ("form feed", "\f" + text), ("more behind it", text + "x"), ("zero behind it", text + "\0"),
                        ("twice", text + text), ("comment", text + "//x"), ("comma", text[:-1] + ",}"),
                        ("single quotes", text.replace('"', "'")), ("tab in a string", text.replace("RAW", "RAW\t")),
                        ("no colon", text.replace(":", " ", 1)), ("an escape that is none", text.replace("RAW", "\\x41")),
                        ("cut", text[:-1]), ("empty", ""), ("null", "null"), ("number", "5"), ("[]", "[]"),
                        ("true", "true"), ("nul", "nul"), ("{}", "{}"), ("deep", "[" * 10000), ("[1]", "[1]")):
        yield f"text {name}", other


def values():
    value = good()["key"][0]["keyData"]["value"]
    for name, other in (("space", value[:5] + " " + value[5:]), ("newline", value[:5] + "\n" + value[5:]),
                        ("white space around", " \t" + value + "\r\n"), ("form feed", value[:9] + "\f\v" + value[9:]),
                        ("no padding", value.rstrip("=")), ("more padding", value + "=="), ("empty", ""), ("null", None),
                        ("number", 5), ("list", []), ("one more", value.rstrip("=") + "A"), ("cut", value[:20])):
        yield f"value {name}", in_key(other, "keyData", "value")
    yield "value with a raw newline", changed(None).replace(value, value[:5] + "\n" + value[5:])
    yield "value in escapes", changed(None).replace(value, "".join(f"\\u{ord(c):04x}" for c in value))
    slashes = base64.b64encode(key_message(b"\xff" * 16, 64, 16, "SHA256")).decode()
    yield "value in the other alphabet", in_key(slashes.replace("+", "-").replace("/", "_"), "keyData", "value")
    for name, status in (("disabled", "DISABLED"), ("enabled", "ENABLED")):
        keys = good(2)
        keys["key"][1].update(status=status)
        keys["key"][1]["keyData"]["value"] = "AAAA"
        yield f"value of no key, {name}", json.dumps(keys)


def messages():
    key = key_message(bytes(16), 64, 16, "SHA256")
    params, value = key[:8], key[8:]
    for name, message in (
            ("unknown number", key + b"\x48\x05"), ("unknown 32 bits", key + b"\x4d\0\0\0\0"),
            ("unknown 64 bits", key + b"\x49" + bytes(8)), ("unknown 64 bits cut", key + b"\x49" + bytes(7)),
            ("unknown group", key + b"\x4b\x08\x05\x4c"), ("group in a group", key + b"\x4b\x53\x08\x05\x54\x4c"),
            ("group without end", key + b"\x4b"), ("group with another's end", key + b"\x4b\x54"),
            ("groups in one another", key + b"\x4b" * 90 + b"\x4c" * 90), ("end of no group", key + b"\x4c"),
            ("wire type 6", key + b"\x4e"), ("wire type 7", key + b"\x4f"), ("field 0", key + b"\0\0"),
            ("field 0 of bytes", key + b"\x02\0"), ("largest field", key + b"\xf8\xff\xff\xff\x0f\0"),
            ("too large a field", key + b"\x88\x80\x80\x80\x80\x01\0"), ("overlong tag", b"\x92\0" + key[1:]),
            ("version of bytes", key + b"\x0a\0"), ("params a number", key + b"\x10\0"),
            ("value a number", key + b"\x18\0"), ("version 1", key + b"\x08\x01"),
            ("version 1, then 0", key + b"\x08\x01\x08\0"), ("version 2^32", key + b"\x08\x80\x80\x80\x80\x10"),
            ("version 2^32 + 1", key + b"\x08\x81\x80\x80\x80\x10"), ("value twice", key + b"\x1a\x10" + bytes(16)),
            ("value twice, short", key + b"\x1a\x01\0"), ("value first", value + params),
            ("params in two", b"\x12\x02\x08\x40\x12\x04\x10\x10\x18\x03" + value), ("no params", value),
            ("no value", params), ("number of 10 bytes", key + b"\x48" + b"\xff" * 9 + b"\x01"),
            ("number of 10 bytes, too large", key + b"\x48" + b"\xff" * 9 + b"\x7f"),
            ("number of 11 bytes", key + b"\x48" + b"\xff" * 10 + b"\x01"),
            ("segment of 2^32 + 64", b"\x12\x0a\x08\xc0\x80\x80\x80\x10\x10\x10\x18\x03" + value),
            ("negative hash", b"\x12\x0f\x08\x40\x10\x10\x18\x83" + b"\xff" * 8 + b"\x01" + value)):
        yield f"message: {name}", with_message(message)
    for size in range(len(key)):
        yield f"message cut after {size}", with_message(key[:size])
    for segment in (0, 40, 41, 57, 4096, 64 << 20, 1 << 31, (1 << 32) - 1):
        yield f"segments of {segment}", with_message(key_message(bytes(16), segment, 16, "SHA256"))
    for name in ("SHA1", "SHA224", "SHA256", "SHA384", "SHA512", "UNKNOWN_HASH"):
        yield name, with_message(key_message(bytes(16), 64, 16, name))
    for size, derived in ((0, 0), (15, 16), (16, 16), (16, 32), (24, 16), (24, 24), (32, 24), (31, 32), (100, 16)):
        yield f"{size} bytes for {derived}", with_message(key_message(bytes(size), 100, derived, "SHA256"))


# What Tink's Python takes and daelstrom does not, and why.
OURS_ALONE = {
    "more than 64 MiB a segment: an opener must find memory for it":
        with_message(key_message(bytes(16), (64 << 20) + 1, 16, "SHA256")),
    "what is neither base64 nor white space: Python passes over it":
        in_key("*" + good()["key"][0]["keyData"]["value"], "keyData", "value"),
    "numbers as Python alone writes them": changed("1_000", "primaryKeyId"),
    "more keys than an opener should have to try": changed(good()["key"] + [
        {"keyId": i, "status": "DESTROYED"} for i in range(1000)], "key"),
}


def verdict_of_tink(text):
    try:
        return seal(text, PLAIN, b"")
    except Exception:
        return None


class Keysets(CliTest):
    def setUp(self):
        super().setUp()
        streaming_aead.register()

    def verdict_of_ours(self, text):
        self.write("keyset", text.encode("utf-8", "surrogatepass"))
        ran = self.run_program("seal", "--keyset", "keyset", given=PLAIN)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        return ran.stdout if ran.returncode == 0 else None

    def check(self, cases):
        seen = 0
        for name, text in cases:
            with self.subTest(name):
                theirs, ours = verdict_of_tink(text), self.verdict_of_ours(text)
                self.assertEqual(ours is not None, theirs is not None, f"Tink {'takes' if theirs else 'refuses'} it")
                if theirs:
                    self.assertEqual(unseal(text, ours, b""), PLAIN)
                    self.assertEqual(self.ok("open", "--keyset", "keyset", given=theirs), PLAIN)
            seen += 1
        self.assertGreater(seen, 5)

    def test_enumerations(self):
        self.check(enumerations())

    def test_numbers(self):
        self.check(numbers())

    def test_members(self):
        self.check(members())

    def test_sets(self):
        self.check(sets())

    def test_texts(self):
        self.check(texts())

    def test_values(self):
        self.check(values())

    def test_messages(self):
        self.check(messages())

    # Python's base64 ends there up to 3.12 and reads on from 3.13 on, and so does Tink's verdict depend on it.
    def test_padding_amid_is_refused_whatever_python_says(self):
        value = good()["key"][0]["keyData"]["value"]
        self.assertIsNone(self.verdict_of_ours(in_key(value[:6] + "==" + value[6:], "keyData", "value")))
        self.assertIsNotNone(self.verdict_of_ours(in_key(value, "keyData", "value")))

    def test_what_is_refused_here_alone(self):
        for why, text in OURS_ALONE.items():
            with self.subTest(why):
                self.assertIsNotNone(verdict_of_tink(text))
                self.assertIsNone(self.verdict_of_ours(text))


if __name__ == "__main__":
    unittest.main(verbosity=2)
