# SPDX-License-Identifier: Apache-2.0
"""What a job's workers must know and nobody else: keys, and the options of the stores. It leaves the client in one
piece, sealed to the workers' own recipients, and is unpacked in a worker's memory."""

from __future__ import annotations

import base64
import hmac
import io
import json
import os
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core, files, streams
from .._appear import read_key_file

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Keys", "Settings", "Spec", "opened", "read", "sealed"]

_LENGTHS = struct.Struct(">III")


class Spec(NamedTuple):
    """A key or a keyset as it was given."""

    secret: bytes
    keyset: bool
    segment: str | None

    def __repr__(self) -> str:
        return f"<a {'keyset' if self.keyset else 'key'}>"


class Settings(NamedTuple):
    """What goes with the keys. `storage` has the stores' options, by protocol, which may be secrets."""

    storage: dict[str, dict[str, Any]]
    aad: bytes
    bind_names: bool
    existing: str
    device: str

    def __repr__(self) -> str:
        return f"<settings for {', '.join(self.storage) or 'any store'}>"


def read(
    key: Buffer | None, key_file: Any, keyset: str | Buffer | None, keyset_file: Any, segment: int | str | None
) -> Spec:
    """One of the four, checked; a file is read here and now."""
    ways = {"key": key, "key_file": key_file, "keyset": keyset, "keyset_file": keyset_file}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        raise TypeError(f"one of key=, key_file=, keyset= and keyset_file= is needed; given: {given}")
    if key_file is not None:
        key = read_key_file(key_file)
    if keyset_file is not None:
        with open(os.path.expanduser(keyset_file), "rb") as file:
            keyset = file.read()
    if isinstance(keyset, str):
        keyset = keyset.encode()
    files.sealed_keys(key, keyset, segment)  # refuses what is none
    size = files.segment_size(segment)
    secret = key if keyset is None else keyset
    assert secret is not None
    return Spec(bytes(secret), keyset is not None, {0: None, 4096: "4K", 1 << 20: "1M"}[size])


class Keys:
    """Of one `Spec`, in a worker: what opens and seals, and for ranges of one stream the primary key itself.

    *Threads*: any number. *close() during use*: not allowed. *Children of fork()* have a copy of their own.
    """

    def __init__(self, secret: Buffer, keyset: bool, segment: str | None) -> None:
        self.keyset = keyset
        if keyset:
            self.keys = _core.SealedKeys.of_keyset(secret)
            self.secret, self.size, self.hash = _primary(bytes(secret))
        else:
            self.keys = _core.SealedKeys.of_key(secret, files.segment_size(segment))
            self.secret, self.size, self.hash = bytearray(secret), len(memoryview(secret)), "sha256"
        self._tags = bytearray(hmac.digest(self.secret, b"daelstrom.dist part", "sha256"))

    def tag(self, part: Buffer) -> str:
        """By which a part is known again, and which tells those who have no key nothing."""
        return hmac.digest(self._tags, part, "sha256").hex()

    def close(self) -> None:
        _core.wipe(self.secret)
        _core.wipe(self._tags)


def _primary(keyset: bytes) -> tuple[bytearray, int, str]:
    """The key that seals, the size of those that are derived from it, and by which hash. `keyset` was taken already."""

    def either(of: dict[str, Any], name: str) -> Any:
        snake = "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)
        return of.get(name, of.get(snake))

    text = json.loads(keyset)
    primary = int(either(text, "primaryKeyId"))
    found = next(one for one in text["key"] if int(either(one, "keyId")) == primary)
    fields = _fields(base64.b64decode(either(found, "keyData")["value"]))
    parameters = _fields(bytes(fields[2]))
    return bytearray(fields[3]), int(parameters[2]), {1: "sha1", 3: "sha256", 4: "sha512"}[int(parameters[3])]


def _fields(message: bytes) -> dict[int, Any]:
    """Of a message of protobuf that holds numbers and byte strings alone."""
    out: dict[int, Any] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            out[tag >> 3] = number()
        else:
            size = number()
            out[tag >> 3] = message[at : at + size]
            at += size
    return out


def sealed(old: Spec | None, new: Spec | None, settings: Settings, recipients: list[str], job: str) -> bytes:
    """All of it, for these workers, and as part of this job alone."""
    told = {
        "storage": settings.storage, "aad": settings.aad.hex(), "bind_names": settings.bind_names,
        "existing": settings.existing, "device": settings.device,
        "specs": [None if one is None else [one.keyset, one.segment] for one in (old, new)],
    }  # fmt: skip
    try:
        text = json.dumps(told).encode()
    except TypeError as error:
        raise TypeError(f"storage_options go to the workers as JSON: {error}") from None
    secrets = [b"" if one is None else one.secret for one in (old, new)]
    packed = bytearray(_LENGTHS.pack(len(secrets[0]), len(secrets[1]), len(text)))
    for part in (*secrets, text):
        packed += part
    try:
        return streams.seal(packed, recipients=recipients, aad=job.encode(), segment="4K")
    finally:
        _core.wipe(packed)


def opened(blob: bytes, identity: str, job: str) -> tuple[Keys | None, Keys | None, Settings]:
    """In a worker, what `sealed` was given."""
    packed = bytearray(len(blob))
    size = 0
    try:
        with streams.open_stream(io.BytesIO(blob), identities=identity, aad=job.encode(), segment="4K") as file:
            with memoryview(packed) as view:
                while more := file.readinto(view[size:]):
                    size += more
        with memoryview(packed) as view:
            first, second, rest = _LENGTHS.unpack_from(view)
            at = _LENGTHS.size
            told = json.loads(bytes(view[at + first + second : at + first + second + rest]))
            parts = [view[at : at + first], view[at + first : at + first + second]]
            made = [None if how is None else Keys(part, *how) for how, part in zip(told["specs"], parts)]
            for part in parts:
                part.release()
    finally:
        _core.wipe(packed)
    settings = Settings(
        told["storage"], bytes.fromhex(told["aad"]), told["bind_names"], told["existing"], told["device"]
    )
    return made[0], made[1], settings
