# SPDX-License-Identifier: Apache-2.0
"""What stands on the stores besides ciphertext: manifests and candidacies, each signed (docs/flexa.md, "Formats").

Nothing is parsed before its signature is verified; every number is held against a bound all the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import struct
from typing import Any

from .errors import FlexaError
from .keys import FileKeys

__all__ = ["BLOCK", "INLINE", "MOST_BLOCKS", "PIECE", "Ballot", "Manifest", "Name", "Signed"]

BLOCK = 1 << 20  # bytes of ciphertext with a hash of their own: a segment of the sealed stream
PIECE = 16  # blocks of a portion in one object
INLINE = 32 << 10  # a stream up to this size stands in its manifest
MOST_BLOCKS = 1 << 22  # 4 TiB
MOST_MANIFEST = (MOST_BLOCKS * 32) + (1 << 20)
_HISTORY = 16  # digests of earlier versions that a manifest names
_MOST_VERSION = 1 << 62

_MANIFEST, _CANDIDACY = b"daelstrom flexa manifest 1\n", b"daelstrom flexa candidacy 1\n"
_BALLOT = struct.Struct(">I16s")
CANDIDACY = len(_CANDIDACY) + 64  # bytes of one


class Malformed(FlexaError):
    """Something signed, or pretending to be, is not what it should be."""


@dataclasses.dataclass(frozen=True, order=True)
class Ballot:
    """Who proposes a version, and in which turn: the greater one goes before."""

    number: int
    proposer: bytes

    def __str__(self) -> str:
        return f"{self.number:08x}-{self.proposer.hex()}"


_FORMS = {
    "m": re.compile(r"m-([0-9a-f]{16})-([0-9a-f]{8})-([0-9a-f]{32})\Z"),
    "c": re.compile(r"c-([0-9a-f]{16})-([0-9a-f]{8})-([0-9a-f]{32})\Z"),
    "d": re.compile(r"d-([0-9a-f]{16})-([0-9a-f]{32})-([012])-([0-9a-f]{8})\Z"),
}


@dataclasses.dataclass(frozen=True)
class Name:
    """An object of a file: a manifest "m", a candidacy "c" or a piece of a portion "d"."""

    kind: str
    version: int
    ballot: Ballot | None = None
    writer: bytes = b""
    portion: int = 0
    piece: int = 0

    @staticmethod
    def parse(name: str) -> Name | None:
        form = _FORMS.get(name[:1])
        found = form.match(name) if form else None
        if found is None:
            return None
        version = int(found[1], 16)
        if not 0 < version < _MOST_VERSION:
            return None
        if name[0] == "d":
            return Name("d", version, None, bytes.fromhex(found[2]), int(found[3]), int(found[4], 16))
        return Name(name[0], version, Ballot(int(found[2], 16), bytes.fromhex(found[3])))

    def __str__(self) -> str:
        if self.kind == "d":
            return f"d-{self.version:016x}-{self.writer.hex()}-{self.portion}-{self.piece:08x}"
        return f"{self.kind}-{self.version:016x}-{self.ballot}"


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A version: what its ciphertext is. `written` and `writer` name its portions, which a later version may take over."""

    version: int
    written: int
    writer: bytes
    size: int  # of the plaintext
    sealed: int  # of the stream
    time: float
    valid_write: bytes
    history: tuple[bytes, ...]  # digests of the versions before, the newest first
    inline: bytes | None
    hashes: bytes  # SHA-256 of each block, one behind the other

    @property
    def blocks(self) -> int:
        return len(self.hashes) // 32

    def hash_of(self, block: int) -> bytes:
        return self.hashes[32 * block : 32 * block + 32]

    def block_size(self, block: int) -> int:
        return min(BLOCK, self.sealed - block * BLOCK)

    def piece(self, portion: int, piece: int) -> list[int]:
        """The blocks of one piece of a portion, in their order: portion k has the blocks k, k + 3, k + 6, ..."""
        first = portion + 3 * PIECE * piece
        return list(range(first, min(first + 3 * PIECE, self.blocks), 3))

    def pieces(self) -> list[tuple[int, int]]:
        """(portion, piece) of all that there are."""
        return [(k, j) for k in range(3) for j in range(-(-len(range(k, self.blocks, 3)) // PIECE))]

    def piece_name(self, portion: int, piece: int) -> str:
        return str(Name("d", self.written, None, self.writer, portion, piece))

    def encode(self) -> bytes:
        header = {
            "history": [one.hex() for one in self.history[:_HISTORY]], "inline": self.inline is not None,
            "sealed": self.sealed, "size": self.size, "time": self.time, "valid_write": self.valid_write.hex(),
            "version": self.version, "writer": self.writer.hex(), "written": self.written,
        }  # fmt: skip
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        return struct.pack(">I", len(text)) + text + (self.hashes if self.inline is None else self.inline)

    @staticmethod
    def decode(body: bytes) -> Manifest:
        try:
            (length,) = struct.unpack_from(">I", body)
            if length > 1 << 16:
                raise ValueError("its header is too long")
            header, rest = json.loads(body[4 : 4 + length]), bytes(body[4 + length :])
            inline = rest if header["inline"] else None
            made = Manifest(
                _number(header["version"], 1, _MOST_VERSION - 1), _number(header["written"], 1, _MOST_VERSION),
                _hex(header["writer"], 16), _number(header["size"], 0, MOST_BLOCKS * BLOCK),
                _number(header["sealed"], 1, MOST_BLOCKS * BLOCK), _finite(header["time"]), _hex(header["valid_write"], 32),
                tuple(_hex(one, 32) for one in header["history"][:_HISTORY]), inline, b"" if inline is not None else rest,
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, OverflowError, struct.error, RecursionError) as error:
            raise Malformed(f"a manifest is not what it should be: {error}") from None
        if inline is not None:
            fits = len(inline) == made.sealed <= INLINE
        else:
            fits = len(rest) == 32 * -(-made.sealed // BLOCK)
        if not fits or made.written > made.version:
            raise Malformed("a manifest does not fit together")
        return made

    def digest(self, verify: bytes) -> bytes:
        """What tells this version from every other, whoever proposed it."""
        return digest_of(verify, self.encode())


def digest_of(verify: bytes, body: bytes) -> bytes:
    return hashlib.sha256(verify + body).digest()


def _number(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r} is no number from {least} to {most}")
    return value


def _finite(value: Any) -> float:
    made = float(value)
    if not math.isfinite(made):
        raise ValueError(f"{value!r} is no time")
    return made


def _hex(value: Any, size: int) -> bytes:
    made = bytes.fromhex(value)
    if len(made) != size:
        raise ValueError(f"{value!r} has not {size} bytes")
    return made


@dataclasses.dataclass(frozen=True)
class Signed:
    """A manifest as it lies on a store: proposed in a ballot, and signed with it."""

    ballot: Ballot
    body: bytes
    raw: bytes
    manifest: Manifest
    digest: bytes

    @property
    def name(self) -> str:
        return str(Name("m", self.manifest.version, self.ballot))

    @staticmethod
    def make(keys: FileKeys, ballot: Ballot, body: bytes) -> Signed:
        head = _BALLOT.pack(ballot.number, ballot.proposer)
        signature = keys.sign(_MANIFEST + keys.verify + head + body)
        raw = _MANIFEST + signature + head + body
        return Signed(ballot, body, raw, Manifest.decode(body), digest_of(keys.verify, body))

    @staticmethod
    def read(keys: FileKeys, name: Name, raw: bytes) -> Signed:
        """Raises `Malformed` unless it is genuine, of this file, and what its name says."""
        begin = len(_MANIFEST) + 64
        if not raw.startswith(_MANIFEST) or not begin + _BALLOT.size < len(raw) <= MOST_MANIFEST:
            raise Malformed("no manifest")
        if not keys.check(_MANIFEST + keys.verify + raw[begin:], raw[len(_MANIFEST) : begin]):
            raise Malformed("a manifest's signature does not verify")
        ballot = Ballot(*_BALLOT.unpack_from(raw, begin))
        body = raw[begin + _BALLOT.size :]
        manifest = Manifest.decode(body)
        if Name("m", manifest.version, ballot) != name:
            raise Malformed("a manifest stands under another's name")
        return Signed(ballot, body, raw, manifest, digest_of(keys.verify, body))


def _candidacy_text(keys: FileKeys, version: int, ballot: Ballot) -> bytes:
    return _CANDIDACY + keys.verify + struct.pack(">Q", version) + _BALLOT.pack(ballot.number, ballot.proposer)


def make_candidacy(keys: FileKeys, version: int, ballot: Ballot) -> bytes:
    return _CANDIDACY + keys.sign(_candidacy_text(keys, version, ballot))


def check_candidacy(keys: FileKeys, name: Name, raw: bytes) -> bool:
    assert name.ballot is not None
    if len(raw) != CANDIDACY or not raw.startswith(_CANDIDACY):
        return False
    return keys.check(_candidacy_text(keys, name.version, name.ballot), raw[len(_CANDIDACY) :])
