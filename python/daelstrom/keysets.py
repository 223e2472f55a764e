# SPDX-License-Identifier: Apache-2.0
"""Tink's keysets for sealed data, made and changed, for the rotation of keys: a key is added and spread, then promoted, so
that it seals; what the old one sealed is sealed anew, and then the old one is disabled. As ``daelstrom keyset`` does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from . import _core
from ._appear import Appearing
from ._turns import Turns

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Keyset", "KeysetKey"]

_STATUS = {1: "enabled", 2: "disabled", 3: "destroyed"}
_USUAL = "AES256_GCM_HKDF_1MB"


class KeysetKey(NamedTuple):
    """What may be shown of a key."""

    id: int
    status: str
    primary: bool
    type: str
    shape: str


class Keyset(Turns):
    """A keyset, whose text (`json`) is what ``keyset=`` takes everywhere here, and Tink reads. It holds secrets.

    *Threads*: any number, in turn.
    *close() during use*: there is nothing to close; it is wiped with the last reference.
    *Children of fork()* have a copy of their own.
    """

    def __init__(self, json: str | Buffer | None = None) -> None:
        """Of a keyset's text; without one a new keyset without keys."""
        text = json.encode() if isinstance(json, str) else json
        self._keyset = _core.SealedKeyset.create() if text is None else _core.SealedKeyset.parse(text)
        self._begin_turns()

    @classmethod
    def generate(cls, template: str = _USUAL) -> Keyset:
        """With one new key, which seals."""
        made = cls()
        made.add(template)
        return made

    def keys(self) -> list[KeysetKey]:
        """What may be shown of each key, in the order of the text."""
        with self._turn():
            rows = self._keyset.entries()
        return [KeysetKey(id, _STATUS.get(status, str(status)), primary, kind, shape) for id, status, primary, kind, shape in rows]

    def add(self, template: str = _USUAL) -> int:
        """A new random key, enabled; its number. `template`: Tink's AES256_GCM_HKDF_1MB, AES256_GCM_HKDF_4KB,
        AES128_GCM_HKDF_1MB or AES128_GCM_HKDF_4KB. It seals once it is promoted, or if there was none before."""
        with self._turn():
            return self._keyset.add(template)

    def promote(self, id: int) -> None:
        """From now on this one seals. ValueError for a number that there is not, and what is disabled."""
        with self._turn():
            self._keyset.promote(id)

    def enable(self, id: int) -> None:
        with self._turn():
            self._keyset.enable(id)

    def disable(self, id: int) -> None:
        """What it sealed opens no more, until it is enabled. Not the one that seals: ValueError."""
        with self._turn():
            self._keyset.disable(id)

    def remove(self, id: int) -> None:
        """For good. Not the one that seals: ValueError."""
        with self._turn():
            self._keyset.remove(id)

    def json(self) -> bytes:
        """The text, with its secrets."""
        with self._turn():
            return self._keyset.json()

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """The text, to a file that its owner alone can read (0600): a new one, or with `replace` in the place of the
        one that is there now (OSError, ESTALE, where somebody else has put another one there meanwhile)."""
        file = Appearing(path, replace=replace, secret=True)
        try:
            file.write(self.json())
            file.appear()
        finally:
            file.discard()
