# SPDX-License-Identifier: Apache-2.0
"""Moves of FlexA's files: interrupted, beside others, and where stores fail."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("fsspec")
from flexa_steps import Died, Tree, ends

from daelstrom.flexa import Conflict, Unavailable, Uncertain, moves
from daelstrom.flexa.folders import Editor

LONG = "DAELSTROM_WALK_SECONDS" in os.environ


def at_edit(files, number, act):
    """Has `act` done before a client's n-th change of a folder."""
    edit, count = files._editor.edit, [0]

    def counted(*given, **how):
        count[0] += 1
        if count[0] == number:
            act()
        return edit(*given, **how)

    files._editor.edit = counted


def killed():
    raise KeyboardInterrupt


@pytest.mark.parametrize("number", [2, 3])
def test_a_move_that_was_interrupted_is_done_again(stores, number):
    files, again = stores.open(), stores.open()
    files.put_many({"a/x": b"x", "b/z": b"z"})
    at_edit(files, number, killed)
    with pytest.raises(KeyboardInterrupt):
        files.mv("a/x", "b/y")
    again.mv("a/x", "b/y", replace=True)
    assert [entry.name for entry in again.ls("a")] == [] and again.cat("b/y") == b"x"
    assert stores.open().verify().ok


@pytest.mark.parametrize("number", [2, 3])
def test_two_move_one_file(stores, number):
    first, second = stores.open(), stores.open()
    first.put_many({"a/x": b"x", "b/old": b"old", "c/w": b"w"})
    at_edit(first, number, lambda: second.mv("a/x", "c/z"))
    with pytest.raises(FileNotFoundError):
        first.mv("a/x", "b/old", replace=True)
    files = stores.open()
    assert [entry.name for entry in files.ls("a")] == [] and files.cat("c/z") == b"x" and files.cat("b/old") == b"old"
    files.rm("b/old")
    assert files.cat("c/z") == b"x" and stores.open().verify().ok


def test_a_name_whose_file_went_by_its_other_one_is_free(stores):
    files, other = stores.open(), stores.open()
    files.put_many({"a/x": b"x", "b/z": b"z"})
    at_edit(files, 3, killed)
    with pytest.raises(KeyboardInterrupt):
        files.mv("a/x", "b/y")
    assert other.cat("a/x") == other.cat("b/y") == b"x"
    link = other._at("b/y").link
    other._client.remove(other._at("b/y").keys)
    other._editor.edit(other._at("b").keys, lambda links: links.pop("y"))
    with pytest.raises(FileNotFoundError):
        other.cat("a/x")
    other.put("a/x", b"anew")
    files = stores.open()
    assert files.cat("a/x") == b"anew" and files._at("a/x").link.verify != link.verify
    assert not files._at("a/x").link.leaving and files.verify().ok


def test_a_move_over_a_name_that_leaves(stores):
    first, second = stores.open(), stores.open()
    first.put_many({"a/x": b"x", "a/z": b"z", "b/w": b"w"})
    at_edit(first, 3, lambda: second.mv("a/z", "a/x", replace=True))
    with pytest.raises(FileNotFoundError):
        first.mv("a/x", "b/y")
    files = stores.open()
    assert files.cat("a/x") == b"z" and not files.exists("b/y") and stores.open().verify().ok


def test_a_repair_beside_a_move(stores, monkeypatch):
    """What is on its way from a folder that is walked last to one that was walked first is nobody's for no walk."""
    files, other = stores.open(), stores.open()
    files.put("Z/x", os.urandom(100_000))
    files.mkdir("A")
    data = files.cat("Z/x")
    for host in stores.hosts:  # older than any grace
        host.objects = {name: (value, 1.0) for name, (value, _) in host.objects.items()}
    folder = files._at("A").keys.name
    of, seen = Editor.of, []

    def moved(self, keys, signed):
        answer = of(self, keys, signed)
        if keys.name == folder and self is files._editor and not seen:
            seen.append(True)
            other.mv("Z/x", "A/x")
        return answer

    monkeypatch.setattr(Editor, "of", moved)
    files.repair(grace=3600)
    assert seen and stores.open().cat("A/x") == data


@pytest.mark.parametrize("number, said", [(1, Unavailable), (2, Unavailable), (3, Uncertain), (4, None)])
def test_a_move_whose_end_fails(stores, number, said):
    files = stores.open()
    files.put_many({"a/x": b"x", "b/old": b"old"})

    def fail():
        for host in stores.hosts[:2]:
            host.fail("down")

    at_edit(files, number, fail)
    if said is None:
        files.mv("a/x", "b/old", replace=True)
    else:
        with pytest.raises(said) as told:
            files.mv("a/x", "b/old", replace=True)
        assert type(told.value) is said
    stores.heal()
    if said is Uncertain:
        assert "once more" in str(told.value) and isinstance(told.value.__cause__, Unavailable)
    again = stores.open()
    if said is not None:
        assert again.cat("a/x") == b"x" and again.cat("b/old") == (b"x" if number == 3 else b"old")
        again.mv("a/x", "b/old", replace=number < 3)
    assert not again.exists("a/x") and again.cat("b/old") == b"x"
    assert stores.open().repair(grace=0).ok and again.cat("b/old") == b"x" and again.verify().files == 4


def test_a_move_that_cannot_be_undone(stores):
    first, second = stores.open(), stores.open()
    first.put_many({"a/x": b"x", "b/old": b"old", "c/w": b"w"})

    def fail():
        for host in stores.hosts[:2]:
            host.fail("down")

    edit, count = first._editor.edit, [0]

    def counted(*given, **how):
        count[0] += 1
        if count[0] == 3:
            second.mv("a/x", "c/z")
        if count[0] == 4:
            fail()
        return edit(*given, **how)

    first._editor.edit = counted
    with pytest.raises(Uncertain, match="b/old may lead to it still"):
        first.mv("a/x", "b/old", replace=True)
    stores.heal()
    files = stores.open()
    files.rm("b/old")
    assert files.cat("c/z") == b"x"


def test_a_half_moved_file_is_moved_elsewhere(stores):
    """Neither name that is left takes the file with it."""
    files, other = stores.open(), stores.open()
    files.put_many({"a/x": b"x", "b/z": b"z", "c/w": b"w"})
    at_edit(files, 3, killed)
    with pytest.raises(KeyboardInterrupt):
        files.mv("a/x", "b/y")
    other.mv("a/x", "c/x")
    other.rm("b/y")
    assert other.cat("c/x") == b"x" and not other.exists("a/x")


def test_removing_a_half_moved_folder_leaves_its_other_name(stores):
    files, other = stores.open(), stores.open()
    files.put_many({"a/d/x": b"x", "b/z": b"z"})
    at_edit(files, 3, killed)
    with pytest.raises(KeyboardInterrupt):
        files.mv("a/d", "b/d")
    with pytest.raises(OSError):
        other.rm("a/d")
    other.mv("a/d/x", "b/d/x")  # the same name
    with pytest.raises(OSError, match="itself"):
        other.mv("a/d", "b/d/d")
    other.rm("a", recursive=True)
    other.put("b/d/y", b"y")
    assert other.cat("b/d/x") == b"x" and [entry.name for entry in other.ls()] == ["b"]


def test_nothing_comes_into_a_half_moved_folder_while_it_is_removed(stores):
    """Its mover has died before it made another name."""
    files, other = stores.open(), stores.open()
    files.mkdir("a/d", parents=True)
    files.mkdir("b")
    at_edit(files, 2, killed)
    with pytest.raises(KeyboardInterrupt):
        files.mv("a/d", "b/d")
    at_edit(other, 1, lambda: stores.open().put("a/d/f", b"f"))
    try:
        other.rm("a/d")
    except Conflict:
        stores.open().put("a/d/f", b"f")
    assert other.cat("a/d/f") == b"f"
    other.mv("a/d", "b/d")
    other.rm("b/d", recursive=True)
    assert other.ls("b") == [] and stores.open().repair(grace=0).ok


def test_a_file_that_is_replaced_while_it_is_looked_for(stores):
    files, other = stores.open(), stores.open()
    files.put_many({"x": b"new", "y": b"old"})
    current, keys = files._client.current, files._at("y").keys

    def slow(which):
        if which.name == keys.name and other.exists("x"):
            other.mv("x", "y", replace=True)
        return current(which)

    files._client.current = slow
    assert files.cat("y") == b"new"


def test_many_of_which_one_fails_leave_nothing(stores):
    files = stores.open()
    with pytest.raises(FileNotFoundError):
        files.put_many({"a/x": b"x" * 100_000, "a/y": b"y" * 100_000, "a/z": "/no/such/file"})
    for host in stores.hosts:
        assert len({name.split("/")[2] for name in host.objects if name.count("/") == 3}) == 2  # the folders
    with pytest.raises(ValueError, match="twice"):
        files.put_many({"a/x": b"x", "/a//x": b"y"})
    assert files.ls("a") == []


AROUND = {"a": {"x": "X"}, "b": {"old": "OLD"}, "c": {"w": "W"}}


def mv(old, new, replace=False):
    return lambda files: files.mv(old, new, replace)


def rm(name):
    return lambda files: files.rm(name, recursive=True)


def whole(end):
    """What is so, whoever has died. An entry that is not marked is its file's only name, and no name leads to nothing."""
    names = end.tree.names()
    for word, entries in names.items():
        assert end.tree.is_alive(word), (word, end)
        assert len(entries) == 1 or all(link.leaving for _, link in entries), (word, entries, end)
    return {word: [name for name, _ in entries] for word, entries in names.items()}


TWO = {
    "to one name": ("b/y", "b/y"),
    "to two names": ("b/y", "c/z"),
    "over one": ("b/old", "b/old"),
    "over one and elsewhere": ("b/old", "c/z"),
    "over two": ("b/old", "c/w"),
}


@pytest.mark.parametrize("deaths", [0, 2 if LONG else 1])
@pytest.mark.parametrize("pair", TWO)
def test_two_move_one_file_in_any_order(pair, deaths):
    targets, words = TWO[pair], {"b/old": "OLD", "c/w": "W"}
    calls = [mv("a/x", target, target in words) for target in targets]
    for end in ends(Tree(AROUND), calls, deaths=deaths):
        names = whole(end)
        done = [target for target, told in zip(targets, end.told) if told is None]
        assert len(done) <= 1 and names["X"], end
        if done:
            assert done[0] in names["X"], end
        for name, word in words.items():
            assert word in names or name in names["X"], end
            assert name not in done or word not in names, end
        if not end.died:
            assert len(done) == 1 and names["X"] == done, end
            assert not any(moves.kept(link) for entries in end.tree.names().values() for _, link in entries), end
            assert all(isinstance(told, (type(None), FileNotFoundError, Conflict)) for told in end.told), end
            for name, word in words.items():
                assert end.tree.is_alive(word) == (names.get(word) == [name]) == (name not in done), end
            continue
        # The same move once more.
        target = targets[next(number for number, told in enumerate(end.told) if isinstance(told, Died))]
        left = "a/x" in names["X"]
        try:
            mv("a/x", target, target in words)(end.tree.client())
        except (FileNotFoundError, Conflict):
            assert not left or target not in names["X"], end
        names = whole(end)["X"]
        assert target in names or not left, end
        assert len(names) == 1 or targets[0] != targets[1], end


THREE = {
    "to one name, and elsewhere": [mv("a/x", "b/old", True), mv("a/x", "b/old", True), mv("a/x", "c/z")],
    "and on": [mv("a/x", "b/y"), mv("a/x", "c/z"), mv("b/y", "c/y")],
    "and back": [mv("a/x", "b/y"), mv("b/y", "a/x"), mv("a/x", "b/y")],
    "renamed": [mv("a/x", "b/y"), mv("a/x", "a/q"), mv("b/y", "b/q")],
    "over its name": [mv("a/x", "b/y"), mv("b/old", "a/x", True), mv("c/w", "b/y", True)],
    "removed": [mv("a/x", "b/y"), mv("a/x", "b/y"), rm("a/x")],
    "removed where it comes": [mv("a/x", "b/y"), mv("a/x", "c/z"), rm("b/y")],
    "its folder removed": [mv("a/x", "b/y"), mv("a/x", "b/y"), rm("a")],
    "the other folder removed": [mv("a/x", "b/y"), mv("a/x", "c/z"), rm("b")],
}


@pytest.mark.parametrize("deaths", [0, 1] if LONG else [0])
@pytest.mark.parametrize("three", THREE if LONG else ["renamed"])
def test_three_in_any_order(three, deaths):
    taken = {
        "OLD": ("over", "to one", "the other"), "W": ("over its",), "X": ("removed", "over", "its folder", "the other"),
    }  # fmt: skip
    for end in ends(Tree(AROUND), THREE[three], deaths=deaths):
        names = whole(end)
        for word in ("X", "OLD", "W"):
            if not three.startswith(taken[word]):
                assert len(names[word]) == 1 or (word == "X" and names[word]), end
        if three.startswith("to one") and end.told[0] is not None and end.told[1] is not None and not end.died:
            assert names["OLD"] == ["b/old"], end
        if "removed" in three and isinstance(end.told[2], OSError) and not end.died:
            assert names["X"], end


CIRCLES = {
    "two": ({"a": {"f": "F"}, "b": {"g": "G"}}, [mv("a", "b/a"), mv("b", "a/b")]),
    "below": ({"a": {"f": "F", "s": {}}, "b": {"g": "G", "t": {}}}, [mv("a", "b/t/a"), mv("b", "a/s/b")]),
    "renamed": ({"p": {"a": {"f": "F"}}, "b": {"g": "G"}}, [mv("p/a", "b/a"), mv("b", "p/a/b"), mv("p/a", "p/c")]),
    "three": ({"a": {"f": "F"}, "b": {"g": "G"}, "c": {}}, [mv("a", "b/a"), mv("b", "c/b"), mv("c", "a/c")]),
}


@pytest.mark.parametrize("circle", CIRCLES if LONG else list(CIRCLES)[:2])
def test_folders_are_not_moved_into_each_other(circle):
    around, calls = CIRCLES[circle]
    for end in ends(Tree(around), calls, deaths=LONG, reads=True):
        names = whole(end)
        assert names["F"] and names["G"], end
        assert end.died or all(len(there) == 1 for there in names.values()), end
        assert not all(told is None for told in end.told), end


def test_what_entries_keep_of_interrupted_moves_is_bounded():
    """Each of them died before it left its source."""
    most = moves._DEEPEST
    tree = Tree({"a": {f"{number}": f"{number}" for number in range(most + 2)}, "b": {"x": "OLD"}})
    for number in range(most):
        left = [2]

        def step(kind, keys, left=left):
            left[0] -= kind == "edit"
            if left[0] < 0:
                raise Died

        with pytest.raises(Died):
            mv(f"a/{number}", "b/x", True)(tree.client(step))
    with pytest.raises(Conflict, match="too many"):
        mv(f"a/{most}", "b/x", True)(tree.client())
    names = tree.names()
    assert names["0"] and names[f"{most}"] == [(f"a/{most}", names[f"{most}"][0][1])] and not names[f"{most}"][0][1].leaving
    depth, one = 0, names[f"{most - 1}"][1][1]
    while (one := moves.kept(one)) is not None:
        depth += 1
    assert depth == most and tree.is_alive("OLD")
    for number in (*reversed(range(most)), most, most + 1):  # the last one's is ended as ever, and then there is room
        mv(f"a/{number}", "b/x", True)(tree.client())
    names = tree.names()
    assert names.keys() == {"a", "b", f"{most + 1}"} and names[f"{most + 1}"][0][0] == "b/x"
