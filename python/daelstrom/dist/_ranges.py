# SPDX-License-Identifier: Apache-2.0
"""One sealed stream, made by several: any run of its segments (docs/format.md), by whoever knows its header."""

from __future__ import annotations

import hmac
import os
from typing import TYPE_CHECKING

from .. import _core
from .._batch import seal_batch
from ..exceptions import InternalError, InvalidTag, UnsupportedAlgorithm

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._secrets import Keys

__all__ = ["SharedStream", "cuts"]

_TAG, _PREFIX = 16, 7
_MOST_SEGMENTS = 1 << 32


def new_header(size: int) -> bytes:
    """For keys that are derived in `size` bytes: salt and prefix at random."""
    return bytes([1 + size + _PREFIX]) + os.urandom(size + _PREFIX)


class SharedStream:
    """A stream under one header, whose segments are sealed in any order and by several.

    The same segment is sealed to the same bytes by everybody: who would seal another plaintext in its place would use
    a nonce twice. `claim` tells plaintexts apart, for those who must agree on one before anything is sealed.

    *Threads*: any number. *close() during use*: there is nothing to close. *Children of fork()* have a copy.
    """

    def __init__(self, keys: Keys, aad: Buffer, header: bytes, engine: _core.Engine | None = None) -> None:
        if keys.hash != "sha256":
            raise UnsupportedAlgorithm(f"ranges of one object take keys with SHA-256; this one has {keys.hash.upper()}")
        if len(header) != 1 + keys.size + _PREFIX or header[0] != len(header):
            raise ValueError("the header is not one of this key's")
        self._header, self._prefix = header, header[-_PREFIX:]
        self._segment = keys.keys.sealing().segment
        info = bytes(aad)
        # HKDF (RFC 5869): at most 32 bytes, which is one block.
        extracted = hmac.digest(header[1 : 1 + keys.size], keys.secret, "sha256")
        derived = bytearray(hmac.digest(extracted, info + b"\x01", "sha256")[: keys.size])
        self._claims = hmac.digest(extracted, b"daelstrom.dist claim" + info + b"\x02", "sha256")
        self._keys = _core.KeySet([derived], engine=engine)
        _core.wipe(derived)
        self._check(keys, aad, engine)

    def _check(self, keys: Keys, aad: Buffer, engine: _core.Engine | None) -> None:
        """That the library opens what is made here, before anything leaves. The last segment of an empty stream is
        one that no stream has that is cut into ranges."""
        whole = self.seal(0, b"", True)
        self._opener = _core.SealedOpener(keys.keys.sealing(), aad, whole, True, engine=engine)
        if self._opener.open(0, 0, 0, whole) != b"":
            raise InternalError("a stream that was made by ranges does not open")

    def claim(self, plain: Buffer) -> bytes:
        """The same for equal plaintexts, and nothing to who has no key."""
        return hmac.digest(self._claims, plain, "sha256")

    def check(self, at: int, plain: Buffer, total: int, sealed: Buffer) -> None:
        """That `sealed` opens, by the library's own opening, before it takes the place of the only copy of `plain`."""
        try:
            right = self._opener.open(at, memoryview(plain).nbytes, total, sealed) == plain
        except InvalidTag:
            right = False
        if not right:
            raise InternalError("what was sealed does not open to what it was, and is thrown away")

    def seal(self, at: int, plain: Buffer, last: bool) -> bytearray:
        """`plain` lies at byte `at` of the plaintext, where a segment begins, and ends where one ends, or the stream
        (`last`)."""
        room = self._segment - _TAG
        index, over = divmod(at + len(self._header), room) if at else (0, 0)
        if over:
            raise ValueError(f"no segment begins at byte {at}")
        with memoryview(plain).cast("B") as view:
            parts: list[memoryview] = []
            begin = 0
            while begin < len(view) or not parts:
                size = room if at or begin else room - len(self._header)
                parts.append(view[begin : begin + size])
                begin += size
            if index + len(parts) > _MOST_SEGMENTS:
                raise ValueError("a stream has at most 2^32 segments")
            if not last and begin != len(view):
                raise ValueError(f"no segment ends at byte {at + len(view)}")
            head = 0 if at else len(self._header)
            out = bytearray(head + len(view) + _TAG * len(parts))
            out[:head] = self._header[:head]
            with memoryview(out) as to:
                places, begin = [], head
                for part in parts:
                    places.append(to[begin : begin + len(part) + _TAG])
                    begin += len(part) + _TAG
                ends = len(parts) - 1 if last else -1
                nonces = b"".join(
                    self._prefix + (index + i).to_bytes(4, "big") + bytes([i == ends]) for i in range(len(parts))
                )
                seal_batch(self._keys, nonces, parts, out=places)
                for place in (*places, *parts):
                    place.release()
            return out


def cuts(keys: _core.SealedKeys, total: int, part: int, most: int) -> list[tuple[int, int]]:
    """A plaintext of `total` bytes in ranges that begin where segments do, of `part` or more, as stores ask of all but
    the last one, and not much more; at most `most` of them."""
    keys = keys.sealing()
    part = max(part, -(-total // most)) + keys.head_size
    room = -(-part // (keys.segment - _TAG)) * (keys.segment - _TAG)
    borders = [0, *range(room - keys.head_size, total, room), total]
    return list(zip(borders, borders[1:]))
