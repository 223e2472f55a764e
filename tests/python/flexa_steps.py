# SPDX-License-Identifier: Apache-2.0
"""Folders without stores, whose changes are steps: every order of several callers' steps is gone through, with callers
who die before any of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

from daelstrom.flexa import FileKeys, FlexA, moves
from daelstrom.flexa.folders import Folder, Link


class Died(BaseException):
    pass


class Tree:
    """What is named: `{"a": {"x": "a file"}, "b": {}}`; files by their words."""

    def __init__(self, what: dict[str, Any]) -> None:
        self.keys: dict[bytes, FileKeys] = {}
        self.words: dict[bytes, str] = {}  # of files, and of folders, whose words are their first names
        self.folders: dict[bytes, Folder] = {}
        self.root = self._new("", what)[1]
        self.alive = set(self.words)

    def _new(self, word: str, what: dict[str, Any] | None = None) -> tuple[bytes, FileKeys]:
        number = FileKeys.new_number()
        keys = FileKeys.of_number(number)
        self.keys[keys.verify], self.words[keys.verify] = keys, word
        if what is None:
            return number, keys
        links = {}
        for leaf, below in what.items():
            kind = "file" if isinstance(below, str) else "directory"
            one, there = self._new(below) if isinstance(below, str) else self._new(leaf, below)
            signed: Any = SimpleNamespace(manifest=SimpleNamespace(size=0, time=0.0, version=1))
            links[leaf] = Link.to(kind, one, keys, there, signed)
        self.folders[keys.verify] = Folder(links)
        return number, keys

    def copy(self) -> Tree:
        made = object.__new__(Tree)
        made.__dict__.update(self.__dict__, folders=dict(self.folders), alive=set(self.alive))
        return made

    def told(self, folder: Folder) -> Any:
        """What stands in a folder, but for what is random."""

        def told(link: Link | None) -> Any:
            return link and (self.words[link.verify], tuple(moves._tokens(link)), told(moves.kept(link)))

        return folder.removed, tuple((leaf, told(link)) for leaf, link in sorted(folder.links.items()))

    def look(self) -> Any:
        return tuple(sorted(self.alive)), tuple(self.told(folder) for _, folder in sorted(self.folders.items()))

    def client(self, step: Callable[[str, FileKeys], Folder | None] = lambda kind, keys: None) -> FlexA:
        """Whose steps are asked for first; what that answers stood there when the step was made, in an earlier life."""
        tree = self

        class Editor:
            def read(self, keys: FileKeys) -> Folder:
                return step("read", keys) or tree.folders[keys.verify]

            def edit(self, keys: FileKeys, change: Any, *, remove: bool = False, missing: Any = None) -> Any:
                before = step("edit", keys)
                folder = before or tree.folders[keys.verify]
                if folder.removed:
                    raise FileNotFoundError("the folder was removed")
                links = dict(folder.links)
                answer = change(links)
                if before is None:
                    tree.folders[keys.verify] = Folder(links, remove)
                return answer

        made = object.__new__(FlexA)
        made.__dict__.update(
            _ring=SimpleNamespace(root=self.root, kind="directory"), _editor=Editor(),
            _client=SimpleNamespace(group=SimpleNamespace(check_process=lambda: None), bury=lambda keys: None,
                                    remove=lambda keys: tree.alive.discard(keys.verify)),
        )  # fmt: skip
        return made

    def names(self) -> dict[str, list[tuple[str, Link]]]:
        """Of each file and folder: its names, and their entries."""
        found: dict[str, list[tuple[str, Link]]] = {}

        def walk(keys: FileKeys, path: str, above: set[bytes]) -> None:
            for leaf, link in self.folders[keys.verify].links.items():
                name = f"{path}/{leaf}".lstrip("/")
                found.setdefault(self.words[link.verify], []).append((name, link))
                if link.kind == "directory":
                    assert link.verify not in above, f"{name} is in itself"
                    walk(link.keys(keys), name, above | {link.verify})

        walk(self.root, "", {self.root.verify})
        return found

    def is_alive(self, word: str) -> bool:
        return any(self.words[verify] == word for verify in self.alive)


class Paused(BaseException):
    pass


@dataclasses.dataclass
class Caller:
    """One who stands before his next step. To go on, he begins again, and meets what he met before."""

    call: Callable[[FlexA], Any]
    name: str
    met: list[tuple[str, Folder]]
    ended: bool = False
    told: Any = None

    def go_on(self, tree: Tree, reads: bool) -> Caller:
        made = dataclasses.replace(self, met=list(self.met))
        left, at = [1 if made.met else 0], [0]  # the first of his steps is his look
        edits = [0]

        def step(kind: str, keys: FileKeys) -> Folder | None:
            pauses = kind == "edit" or (reads and edits[0] > 0)
            edits[0] += kind == "edit"
            at[0] += 1
            if at[0] <= len(self.met):
                return made.met[at[0] - 1][1]
            if pauses and left[0] == 0:
                raise Paused
            left[0] -= pauses
            made.met.append((kind, tree.folders[keys.verify]))
            return None

        # Keys cost time to make; `names` makes them.
        with (
            mock.patch.object(moves.secrets, "token_hex", lambda size: self.name),
            mock.patch.object(Link, "keys", lambda link, folder: tree.keys[link.verify]),
        ):
            try:
                made.call(tree.client(step))
            except Paused:
                return made
            except Exception as error:
                made.told = error
        made.ended = True
        return made


@dataclasses.dataclass
class End:
    tree: Tree
    told: list[Any]  # of each caller: None, what it raised, or Died
    steps: str

    @property
    def died(self) -> bool:
        return any(isinstance(one, Died) for one in self.told)


def ends(tree: Tree, calls: list[Callable[[FlexA], Any]], *, deaths: int = 0, reads: bool = False) -> Iterator[End]:
    """Of all orders of steps, of which the first of each caller is his look at what is there, and the others are his
    changes, and with `reads` what he reads between them. Where two orders come to the same, one of them goes on."""
    known: set[Any] = set()
    left = [(tree, [Caller(call, f"t{number}", []) for number, call in enumerate(calls)], deaths, "")]
    while left:
        tree, callers, deaths, steps = left.pop()
        here = (deaths, tree.look(), *((tuple((kind, tree.told(folder)) for kind, folder in one.met), one.ended, repr(one.told))
                                       for one in callers))  # fmt: skip
        if here in known:
            continue
        known.add(here)
        going = [number for number, caller in enumerate(callers) if not caller.ended]
        if not going:
            yield End(tree, [caller.told for caller in callers], steps.strip())
        for number in going:
            copy = tree.copy()
            made = callers[number].go_on(copy, reads)
            left.append((copy, [*callers[:number], made, *callers[number + 1 :]], deaths, f"{steps} {number}"))
            if deaths:
                made = dataclasses.replace(callers[number], ended=True, told=Died())
                left.append((tree.copy(), [*callers[:number], made, *callers[number + 1 :]], deaths - 1, f"{steps} {number}†"))
