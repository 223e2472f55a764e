# SPDX-License-Identifier: Apache-2.0
"""Whether what was sealed opens again, before it takes the place of the only copy of its plaintext."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from .. import _core
from ..exceptions import FormatError, InternalError, InvalidTag

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Checked"]

_GATHERED, _TAG = 8 << 20, 16


class Checked:
    """A sink before another one. It opens what goes by, a stream of `total` bytes of plaintext, and is finished only if
    they are those that were `told`. One thread at a time."""

    def __init__(self, sink: Any, keys: _core.SealedKeys, aad: Buffer, total: int, engine: _core.Engine | None) -> None:
        self._sink, self._keys, self._aad, self._engine = sink, keys.sealing(), aad, engine
        self._total, self._at, self._held = total, 0, bytearray()
        self._opener: _core.SealedOpener | None = None
        self._told, self._opened = hashlib.sha256(), hashlib.sha256()
        self.appear, self.discard = sink.appear, sink.discard

    def told(self, plain: Buffer) -> None:
        self._told.update(plain)

    def write(self, data: Any) -> None:
        self._sink.write(data)
        self._held += data
        if len(self._held) > _GATHERED:
            whole = (len(self._held) - 1) // self._keys.segment  # the last segment of all is none of them
            room = whole * (self._keys.segment - _TAG)
            self._open(room if self._at else room - self._keys.head_size, whole * self._keys.segment)

    def finish(self) -> None:
        self._open(self._total - self._at, len(self._held))
        if self._at != self._total or self._opened.digest() != self._told.digest():
            raise InternalError("what was sealed opens to something else, and is thrown away")
        self._sink.finish()

    def _open(self, size: int, sealed: int) -> None:
        try:
            if self._opener is None:
                head = bytes(self._held[: self._keys.head_size])
                self._opener = _core.SealedOpener(self._keys, self._aad, head, False, engine=self._engine)
            self._opened.update(self._opener.open(self._at, size, self._total, bytes(self._held[:sealed])))
        except (InvalidTag, FormatError, ValueError) as error:
            raise InternalError(f"what was sealed does not open, and is thrown away: {error}") from None
        del self._held[:sealed]
        self._at += size
