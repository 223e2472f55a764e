# SPDX-License-Identifier: Apache-2.0
"""Moves. Within a folder: one version of it. From one to another, by changes of either folder in turn:

1. *mark*: the source's entry gets this move's token, a random one, behind those that it has;
2. *add*: the target's entry is made, with this token. One of the same file that is there with tokens which the source
   has too is the work of a move that was interrupted, or is about to be refused: it stays, with this token behind them.
   What was replaced is kept in the entry;
3. *leave*: the source's entry goes, if this token is its last one: of several movers who marked last has it;
4. *settle*: the target's entry loses its tokens and what it kept; that is removed then.

Who is refused in 3 takes his token off the target's entry; with the last one it goes, and what it kept is back.

*A file keeps a name.* Whoever gets past 3 has his token on the target's entry: nobody's undo takes that away, and if
somebody moves it on, it goes only when it is somewhere else. *Who was told that he has it is alone*: a token that is in
the source at 3 and not the last one is refused, so its mover undoes what he made.

*An entry without tokens is the file's only name*, so that what it leads to may go with it; what has tokens is only
taken off its folder, and `repair` finds what has no name. For: the source was the only name when it had no tokens; any
other is made by a mover whose token it had since; and where each of these was in the target's entry in 2, each of them
has made that one, and no other. Else the target keeps the tokens. Whoever dies leaves tokens, and entries that have some.

*Folders are not moved into each other*: after its mark, a mover looks at all entries from the root to where the folder
shall come, and none may have tokens. Of several who would close a circle, the last one to mark sees another's mark.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import errno
import os
import secrets
from typing import TYPE_CHECKING

from .errors import Conflict, FlexaError, Unavailable, Uncertain
from .folders import Folder, Link
from .writing import writable

if TYPE_CHECKING:
    from .files import FlexA, _At

__all__ = ["kept", "move", "unmark"]

_CERTAIN = (Conflict, Unavailable, FileNotFoundError)  # of a change: it was not made
_DEEPEST = 8  # entries in one another
Links = dict[str, Link]


def _tokens(link: Link) -> list[str]:
    return [word for word in link.leaving.split() if not word.startswith("=")]


def kept(link: Link) -> Link | None:
    """What an entry stands in the place of, until its move is over."""
    for word in link.leaving.split():
        if word.startswith("="):
            try:
                return next(iter(Folder.decode(base64.b64decode(word[1:])).links.values()), None)
            except (ValueError, FlexaError):  # nobody's move has made that
                break
    return None


def _depth(link: Link) -> int:
    """Each move over what an interrupted one has left keeps that whole, and with it what it keeps."""
    instead = kept(link)
    return 0 if instead is None else 1 + _depth(instead)


def _marked(link: Link, tokens: list[str], instead: Link | None = None) -> Link:
    """`leaving` is the tokens, and what was replaced."""
    words = list(tokens)
    if words and instead is not None:
        words.append("=" + base64.b64encode(Folder({"kept": instead}).encode()).decode())
    return dataclasses.replace(link, leaving=" ".join(words))


def unmark(links: Links, leaf: str, seen: Link) -> None:
    """Of an entry that was, when all folders were looked at, its file's only name. Movers who are amid it are refused."""
    if links.get(leaf) == seen:
        links[leaf] = _marked(seen, [])


def _told(link: Link, other: Link) -> Link:
    """An entry with what the other tells of a later version."""
    newer = other if other.version > link.version else link
    return dataclasses.replace(link, size=newer.size, time=newer.time, version=newer.version)


def _take_off(links: Links, leaf: str) -> None:
    """What it stood in the place of is back there."""
    instead = kept(links.pop(leaf))
    if instead is not None:
        links[leaf] = instead


def move(flexa: FlexA, old: str, new: str, replace: bool) -> None:
    source, target = flexa._there(old), flexa._at(new)
    link, from_, to = source.link, source.parent(), target.parent()
    assert link is not None
    writable(from_, old)
    writable(to, new)
    within = from_.name == to.name
    if within and source.leaf == target.leaf:
        return
    if source.kind == "directory" and any(one.verify == link.verify for one in target.above):
        raise OSError(errno.EINVAL, "a folder cannot be moved into itself", new)
    # After a move that was interrupted, what is there may be this very file.
    instead, same = target.link, target.link is not None and target.link.verify == link.verify
    if same:
        assert instead is not None
        instead = kept(instead) if replace else None  # that may be back
    elif instead is not None and (not replace or target.kind != "file" or source.kind != "file"):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
    one = _Move(flexa, old, new, source, target, instead)
    gone = one.within() if within else one.across()
    if gone is not None and not gone.leaving:  # else it has another name
        flexa._client.remove(gone.keys(to))


class _Move:
    """One call's."""

    def __init__(self, flexa: FlexA, old: str, new: str, source: _At, target: _At, instead: Link | None) -> None:
        assert source.link is not None
        self._flexa, self._edit, self._old, self._new = flexa, flexa._editor.edit, old, new
        self._from, self._to, self._instead = source.parent(), target.parent(), instead
        self._leaf, self._to_leaf, self._verify, self._kind = source.leaf, target.leaf, source.link.verify, source.kind
        self._token = secrets.token_hex(8)
        self._made = source.link
        self._marks: list[str] = []  # that the source has had
        self._met: list[str] = []  # that the target has

    def _source(self, links: Links) -> Link:
        there = links.get(self._leaf)
        if there is None or there.verify != self._verify:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._old)
        return there

    def _target(self, links: Links) -> Link | None:
        """What is there: nothing, what was there before, or this very file."""
        there = links.get(self._to_leaf)
        if there is not None and there.verify == self._verify:
            return there
        if (there and there.verify) != (self._instead and self._instead.verify):
            raise Conflict(errno.EEXIST, "somebody else has changed what is there meanwhile", self._new)
        return there

    def within(self) -> Link | None:
        """What was replaced."""

        def rename(links: Links) -> Link | None:
            there, gone = self._source(links), self._target(links)
            _take_off(links, self._leaf)
            links[self._to_leaf] = _marked(there, _tokens(there))
            return None if gone is not None and gone.verify == self._verify else gone

        gone: Link | None = self._edit(self._from, rename)
        return gone

    def across(self) -> Link | None:
        self._edit(self._from, self._mark)
        try:
            if self._kind == "directory":
                self._look()
        except Exception:
            self._stay()
            raise
        try:
            added = self._edit(self._to, self._add)
        except _CERTAIN:
            self._stay()
            raise
        except Uncertain as error:
            raise self._half(error) from error
        try:
            left = self._edit(self._from, self._leave)
        except FileNotFoundError:  # its folder was removed
            left = False
        except Exception as error:
            raise self._half(error) from error
        if not left:
            said = "somebody else has moved or removed it meanwhile"
            try:
                if added:
                    self._edit(self._to, self._undo)
            except FileNotFoundError:
                pass
            except Exception as error:
                raise Uncertain(errno.EIO, f"{said}, and {self._new} may lead to it still", self._old) from error
            raise FileNotFoundError(errno.ENOENT, said, self._old)
        gone: Link | None = None
        with contextlib.suppress(Exception):  # it is moved; tokens that it keeps do no harm
            gone = self._edit(self._to, self._settle) if added else None
        return gone

    def _half(self, error: Exception) -> Uncertain:
        said = f"{self._old} and {self._new} may both lead to it, and the same move once more ends that ({error})"
        return Uncertain(errno.EIO, said, self._old)

    def _mark(self, links: Links) -> None:
        there = self._source(links)
        self._marks = [*_tokens(there), self._token]
        self._made = there.below(self._from, self._to)
        links[self._leaf] = _marked(there, self._marks, kept(there))

    def _look(self) -> None:
        again = self._flexa._at(self._new)
        if again.parent().name != self._to.name or any(one.leaving or one.verify == self._verify for one in again.above):
            said = "a folder above it is being moved, or a move of it was interrupted and is to be made again"
            raise Conflict(errno.EBUSY, said, self._new)

    def _add(self, links: Links) -> bool:
        there, made = self._target(links), self._made
        self._met, instead = [], there
        if there is not None and there.verify == self._verify:
            self._met, instead = _tokens(there), kept(there)
            if not self._met:
                return False
            if not set(self._met) <= set(self._marks):
                raise Conflict(errno.EBUSY, "somebody else is moving it, or has begun to", self._new)
            made = _told(made, there)
        elif there is not None and _depth(there) >= _DEEPEST:
            said = "too many moves to this name were interrupted: it is to be removed first"
            raise Conflict(errno.EBUSY, said, self._new)
        links[self._to_leaf] = _marked(made, [*self._met, self._token], instead)
        return True

    def _stay(self) -> None:
        """Nothing was made. Whose token is gone has been refused, and what he made is this: then ours stays."""

        def stay(links: Links) -> None:
            there = links.get(self._leaf)
            if there is not None and there.verify == self._verify and set(self._marks) <= set(_tokens(there)):
                self._take_token(links, self._leaf, there)

        with contextlib.suppress(Exception):  # a token more does no harm
            self._edit(self._from, stay)

    def _take_token(self, links: Links, leaf: str, there: Link) -> None:
        links[leaf] = _marked(there, [one for one in _tokens(there) if one != self._token], kept(there))

    def _leave(self, links: Links) -> bool:
        there = links.get(self._leaf)
        if there is None or there.verify != self._verify or _tokens(there)[-1:] != [self._token]:
            return False
        self._made = there
        _take_off(links, self._leaf)
        return True

    def _undo(self, links: Links) -> None:
        there = links.get(self._to_leaf)
        if there is None or there.verify != self._verify or self._token not in _tokens(there):
            return
        if _tokens(there) == [self._token]:
            _take_off(links, self._to_leaf)
        else:
            self._take_token(links, self._to_leaf, there)

    def _settle(self, links: Links) -> Link | None:
        """What was replaced."""
        there, met = links.get(self._to_leaf), {*self._met, self._token}
        if there is None or there.verify != self._verify or not {self._token} <= set(_tokens(there)) <= met:
            return None
        tokens = [] if set(self._marks) <= met else list(dict.fromkeys((*self._met, *self._marks)))
        links[self._to_leaf] = _marked(_told(there, self._made), tokens)
        return kept(there)
