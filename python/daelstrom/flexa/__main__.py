# SPDX-License-Identifier: Apache-2.0
"""What ``daelstrom flexa`` starts: FlexA at a terminal. Exit status: 0 done, 1 it failed, 2 the command line is wrong,
128 and the signal's number if one ended it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from .. import _core, exceptions
from ._terminal import Piped, Progress, Stopped, ask, first_line, said, seconds, shown, signals, size, span, streams
from .errors import FlexaError
from .files import FlexA
from .keyring import Keyring, check_stores, read_file, takes_passphrase
from .mount import add_mount
from .store import Store

__all__ = ["main"]

_CHUNK = 8 << 20
_EMPTY = ("t-", ".", "lost+found")  # begin names of what may be in a place that counts as empty


def _default_keyring() -> str:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.environ.get("DAELSTROM_FLEXA") or os.path.join(home, "daelstrom", "flexa.keyring")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="daelstrom flexa",
        description="Files sealed here and kept on three stores, of which any one may be lost, corrupted or lying "
        "(docs/flexa.md). Stores are folders, or what fsspec reaches: s3://, sftp://, webdav://, ...",
    )
    _add_common(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    one = commands.add_parser("init", help="make a keyring, and a FlexA on three stores that are empty")
    one.add_argument("primaries", nargs=3, metavar="URL", help="the three primaries")
    one.add_argument("--secondary", action="append", default=[], metavar="URL", help="a store of full replicas; repeat")
    one.add_argument("-r", "--recipient", action="append", metavar="RECIPIENT", help="seal the keyring for an age recipient")
    one.add_argument("--options", metavar="FILE", help="JSON: for each URL what fsspec takes to reach it; kept in the keyring")
    one.add_argument("--cost", type=int, default=0, choices=range(1, 21), metavar="N", help="log2 of scrypt's N, up to 20 (default: 17)")

    one = commands.add_parser("put", help="put files there")
    one.add_argument("source", nargs="+", metavar="FILE", help="what to put; - is standard input")
    one.add_argument("name", metavar="NAME", help="where: a name, or of several files a folder")
    one.add_argument("--new", action="store_true", help="not in the place of one that is there")

    one = commands.add_parser("get", help="get a file; it appears when all of it is verified")
    one.add_argument("name", metavar="NAME")
    one.add_argument("file", nargs="?", metavar="FILE", help="where to (default: its own name, here); - is standard output")

    one = commands.add_parser("cat", help="write a file to standard output")
    one.add_argument("name", metavar="NAME")
    one.add_argument("--range", type=span, metavar="FROM-TO", help="bytes, the second one not included")

    one = commands.add_parser("ls", help="list a folder")
    one.add_argument("name", nargs="?", default="", metavar="NAME")
    one.add_argument("-l", "--long", action="store_true", help="with size, time and version")
    one.add_argument("--json", action="store_true")

    one = commands.add_parser("mkdir", help="make a folder")
    one.add_argument("name", metavar="NAME")
    one.add_argument("-p", "--parents", action="store_true", help="and those it is in, where they are missing")

    one = commands.add_parser("rm", help="remove a file or a folder")
    one.add_argument("name", nargs="+", metavar="NAME")
    one.add_argument("-r", "--recursive", action="store_true", help="a folder with all that is in it")

    one = commands.add_parser("mv", help="rename")
    one.add_argument("old", metavar="OLD")
    one.add_argument("new", metavar="NEW")
    one.add_argument("-f", "--force", action="store_true", help="in the place of a file that is there")

    for name, text in (("verify", "whether every store has what it should, unharmed"),
                       ("repair", "put what is missing where it should be")):  # fmt: skip
        one = commands.add_parser(name, help=text)
        one.add_argument("name", nargs="?", default="", metavar="NAME")
        one.add_argument("--json", action="store_true")
        if name == "verify":
            one.add_argument("--quick", action="store_true", help="look at what is there and how large, and read nothing")
        else:
            one.add_argument("--deep", action="store_true", help="read all of it, and replace what is corrupted")
            one.add_argument("--grace", type=_grace, default=86400.0, metavar="SECONDS",
                             help="age of what nobody refers to, before it is removed (default: a day)")  # fmt: skip

    one = commands.add_parser("share", help="give somebody what it takes to read a file or a folder, in a small file")
    one.add_argument("name", metavar="NAME")
    one.add_argument("file", metavar="FILE")
    rights = one.add_mutually_exclusive_group(required=True)
    rights.add_argument("--read", action="store_true", help="to read it")
    rights.add_argument("--verify", action="store_true", help="to check it, and no more")
    one.add_argument("-r", "--recipient", action="append", metavar="RECIPIENT", help="seal it for an age recipient; repeat")
    one.add_argument("-p", "--passphrase", action="store_true", help="seal it with a passphrase, which is asked for")
    one.add_argument("--new-passphrase-file", metavar="FILE", help="seal it with the passphrase that is the first line of this file")

    one = commands.add_parser("status", help="how the stores fare")
    one.add_argument("--json", action="store_true")
    one = commands.add_parser("replace", help="another place for a store that is gone; then repair")
    one.add_argument("old", metavar="OLD")
    one.add_argument("new", metavar="NEW", help="the same one, with --options: it is reached in another way")
    one.add_argument("--options", metavar="FILE", help="JSON: what fsspec takes to reach it; kept in the keyring")
    one.add_argument("-r", "--recipient", action="append", metavar="RECIPIENT",
                     help="of a keyring that an identity opens: for whom it is, all of them")  # fmt: skip
    add_mount(commands)
    for one in commands.choices.values():
        _add_common(one.add_argument_group("options of all actions"), again=True)
    return parser


def _add_common(parser: Any, *, again: bool = False) -> None:
    """Before an action, or behind it."""

    def add(*names: str, default: Any = None, **how: Any) -> None:
        parser.add_argument(*names, default=argparse.SUPPRESS if again else default, **how)

    add("-k", "--keyring", metavar="FILE", help="the keyring (default: $DAELSTROM_FLEXA, or ~/.config/daelstrom/flexa.keyring)")
    add("--passphrase-file", metavar="FILE", help="a file whose first line is the passphrase of the keyring or the share")
    add("-i", "--identity", metavar="FILE", help="a file with the age identity that opens the keyring or the share")
    add("--share", metavar="FILE", help="use what somebody shared instead of a keyring")
    add("--deadline", type=seconds, default=10.0, metavar="SECONDS", help="that a store has to answer (default: 10)")
    add("--cache", metavar="DIR", help="keep ciphertext that was read in this folder")
    add("--cache-size", type=size, default=1 << 30, metavar="BYTES", help="of the cache, at most (default: 1 GiB)")
    add("--no-progress", action="store_true", default=False, help="no progress on a terminal")


def _given(words: list[str] | None) -> argparse.Namespace:
    parser = _parser()
    given = parser.parse_args(words)
    for one, other in (("share", "keyring"), ("passphrase_file", "identity")):
        if getattr(given, one) and getattr(given, other):
            parser.error(f"--{one.replace('_', '-')} and --{other}: one of the two")
    if given.share and given.command in ("init", "replace"):
        parser.error(f"{given.command} takes a keyring, and no share")
    return given


def _grace(text: str) -> float:
    return 0.0 if float(text) == 0 else seconds(text)


def _identities(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1 << 20)


# Keyrings and shares.
def _store(url: str) -> str:
    return url if "://" in url else os.path.abspath(url)


def _options(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            held = json.load(file)
        if not isinstance(held, dict):
            raise TypeError("names and values are wanted")
    except (TypeError, ValueError) as error:
        raise FlexaError(f"{path} is no JSON of options: {error}") from None
    return held


def _init(given: argparse.Namespace, path: str) -> None:
    stores, others = [_store(url) for url in given.primaries], [_store(url) for url in given.secondary]
    options = None if given.options is None else {_store(url): one for url, one in _options(given.options).items()}
    check_stores([*stores, *others], options)
    _check_apart([*stores, *others])
    if os.path.lexists(path):  # it was interrupted: with the same stores it goes on
        ring = _ring(given, path)
        if (ring.primaries, ring.secondaries) != (tuple(stores), tuple(others)):
            raise FileExistsError(17, "there is a keyring already, with other stores", path)
        if options is not None and options != ring.options:
            raise FileExistsError(17, "there is a keyring already, with other options: daelstrom flexa replace URL URL --options", path)
    else:
        _look(given, [*stores, *others], options)  # before there is a keyring with a place that is none
        folder = os.path.dirname(os.path.abspath(path))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        how: dict[str, Any] = {}
        if given.recipient:
            how["recipients"] = given.recipient
        else:
            how["passphrase"] = _passphrase(given, "the new keyring", twice=True)
        try:
            ring = Keyring.create(path, primaries=stores, secondaries=others, options=options, work=given.cost, **how)
        finally:
            if "passphrase" in how:
                _core.wipe(how["passphrase"])
    try:
        FlexA.init(ring, deadline=given.deadline)
    except BaseException:
        print(f"daelstrom flexa: the keyring {path} is made, not all of its stores are: the same once more goes on", file=sys.stderr)
        raise
    print(f"The keyring is {path}. Without it, and what opens it, nothing can be read again: keep a copy elsewhere.")


def _check_apart(urls: Sequence[str]) -> None:
    folders = [(url, os.path.realpath(url)) for url in urls if "://" not in url]
    for number, (url, at) in enumerate(folders):
        for other, there in folders[:number]:
            if os.path.commonpath([at, there]) in (at, there):
                raise FlexaError(f"{url} and {other} are one place, or one is in the other: what fails there fails for both")


def _look(given: argparse.Namespace, urls: Sequence[str], options: dict[str, Any] | None, marker: str = "") -> None:
    """Whether places can be reached, and are free."""
    stores = [Store(url, (options or {}).get(url), deadline=given.deadline, marker=marker) for url in urls
              if "://" in url or os.path.lexists(url)]  # a folder will be made
    jobs = [store.submit(lambda store=store: store._do(lambda at: at.ls(""), check=False)) for store in stores]  # type: ignore[misc]
    wrong = []
    for store, job in zip(stores, jobs):
        try:
            there = store.wait(job)
            if marker not in there and not all(name.startswith(_EMPTY) for name in there):
                wrong.append(f"{store.url}: something is there already; a store is a place of its own, and empty")
        except (exceptions.DaelstromError, OSError) as error:
            wrong.append(f"{store.url}: {error}")
        finally:
            store.close()
    if wrong:
        raise FlexaError("; ".join(wrong))


def _passphrase(given: argparse.Namespace, what: str, *, twice: bool = False) -> bytearray:
    return first_line(given.passphrase_file) if given.passphrase_file else ask(what, "--passphrase-file", twice=twice)


def _opens(given: argparse.Namespace, path: str, what: str) -> dict[str, Any]:
    """What opens a keyring or a share."""
    if given.identity:
        return {"identities": _identities(given.identity)}
    data = read_file(path)
    if not _core.is_envelope(data[:22]):
        return {}
    if not takes_passphrase(data):
        raise FlexaError(f"{path} is sealed for age recipients: --identity FILE names what opens it")
    return {"passphrase": _passphrase(given, what)}


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except (exceptions.InvalidTag, exceptions.FormatError, exceptions.LimitError) as error:
        raise FlexaError(f"{path}: {error}") from None


def _ring(given: argparse.Namespace, path: str) -> Keyring:
    try:
        how = _opens(given, path, f"the keyring {path}")
    except FileNotFoundError:
        raise FlexaError(f"there is no keyring {path}: daelstrom flexa init makes one, --keyring FILE names another") from None
    try:
        if not how:
            raise FlexaError(f"{path} is no keyring" + (": --share FILE takes shares" if read_file(path)[:1] == b"{" else ""))
        with _naming(path):
            return Keyring.open(path, **how)
    finally:
        _core.wipe(how.get("passphrase", bytearray()))


def _share_of(given: argparse.Namespace) -> Keyring:
    how = _opens(given, given.share, f"the share {given.share}")
    try:
        with _naming(given.share):
            return Keyring.of_share(given.share, **how)
    finally:
        _core.wipe(how.get("passphrase", bytearray()))


def _replace(given: argparse.Namespace, path: str) -> None:
    old, new = _store(given.old), _store(given.new)
    if given.identity and not given.recipient:
        raise FlexaError("for whom the keyring is does not stand in it: --recipient names them, all of them")
    if given.recipient and not given.identity:
        raise FlexaError("--recipient is for a keyring that --identity opens; daelstrom rewrap changes what opens one")
    options = None if given.options is None else _options(given.options)
    if options and {_store(url) for url in options} <= {old, new}:  # as init takes them
        options = {_store(url): one for url, one in options.items()}.get(new)
        if not isinstance(options, dict):
            raise FlexaError(f"{given.options} has no options of {new}")
    how: dict[str, Any] = _opens(given, path, f"the keyring {path}")
    try:
        with _naming(path):
            ring = Keyring.open(path, **how)
        if new != old:
            check_stores([new])
            _check_apart([new, *(url for url in (*ring.primaries, *ring.secondaries) if url != old)])
            _look(given, [new], {new: options}, ring.marker)
        ring.replace(old, new, options=options, recipients=given.recipient, **how)
    finally:
        _core.wipe(how.get("passphrase", bytearray()))
    print("The keyring has the new options." if old == new else "The keyring has the new place. Now: daelstrom flexa repair")


def _share(flexa: FlexA, given: argparse.Namespace) -> None:
    ways = [given.recipient, given.passphrase, given.new_passphrase_file]
    if sum(map(bool, ways)) > 1:
        raise FlexaError("a share is sealed for recipients, or with one passphrase")
    whom = given.recipient
    if given.passphrase or given.new_passphrase_file:
        words = first_line(given.new_passphrase_file) if given.new_passphrase_file else ask(
            "the share", "--new-passphrase-file", twice=True)  # fmt: skip
        whom = _core.Recipients.of_passphrase(words)
        _core.wipe(words)
    flexa.share(given.name, given.file, read=given.read, recipients=whom)


# Files.
def _put(flexa: FlexA, given: argparse.Namespace) -> None:
    several = len(given.source) > 1 or given.name.endswith("/")
    for source in given.source:
        if several and source == "-":
            raise FlexaError("standard input has no name of its own: give one, without others")
        if source != "-" and stat.S_ISDIR(os.stat(source).st_mode):
            raise IsADirectoryError(21, "this is a folder; put takes files", source)
    for source in given.source:
        name, length = given.name, None
        if several:
            name = f"{given.name.rstrip('/')}/{os.path.basename(source)}"
        with contextlib.ExitStack() as stack:
            data: Any = streams.input() if source == "-" else source
            if source != "-":
                status = os.stat(source)
                length = status.st_size
                if stat.S_ISFIFO(status.st_mode):  # <(some program)
                    data, length = Piped(stack.enter_context(open(source, "rb", buffering=0))), None
            progress = stack.enter_context(Progress(given.no_progress, length))
            try:
                written = flexa.put(name, data, exclusive=given.new, progress=progress.show)
            except IsADirectoryError:
                raise IsADirectoryError(21, f"this is a folder; {name.rstrip('/')}/ puts it in there", name) from None
        for url in written.missing:
            print(shown(f"daelstrom flexa: {url} lacks some of {name}: daelstrom flexa repair"), file=sys.stderr)


def _get(flexa: FlexA, given: argparse.Namespace) -> None:
    if given.file == "-":
        given.range = None
        _cat(flexa, given)
        return
    leaf = given.name.rstrip("/").rpartition("/")[2] or flexa._ring.name
    to = given.file or leaf
    if os.path.isdir(to):
        to = os.path.join(to, leaf)
    with Progress(given.no_progress, None) as progress:
        if progress.on:
            progress = Progress(False, flexa.info(given.name).size)
        with progress:
            flexa.get(given.name, to, progress=progress.add)


def _cat(flexa: FlexA, given: argparse.Namespace) -> None:
    out = streams.output()
    with flexa.open(given.name) as file:
        begin, end = given.range or (0, None)
        length: int = file.size  # type: ignore[union-attr]
        left = (length if end is None else min(end, length)) - begin
        file.seek(begin)
        while left > 0 and (data := file.read(min(left, _CHUNK))):
            out.write(data)
            left -= len(data)
    out.flush()


def _ls(flexa: FlexA, given: argparse.Namespace) -> None:
    entries = flexa.ls(given.name)
    if given.json:
        print(json.dumps([vars(entry) for entry in entries]))
        return
    for entry in entries:
        name = shown(entry.name.rpartition("/")[2] + ("/" if entry.type == "directory" else ""))
        if given.long:
            when = "?"
            with contextlib.suppress(OverflowError, ValueError, OSError):  # a stranger's
                when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.mtime))
            print(f"{entry.size:>14} {when:>19} {entry.version:>4} {name}")
        else:
            print(name)


def _check(flexa: FlexA, given: argparse.Namespace) -> int:
    with Progress(given.no_progress, None) as progress:
        if given.command == "verify":
            report = flexa.verify(given.name, deep=not given.quick, progress=progress.add)
        else:
            report = flexa.repair(given.name, deep=given.deep, grace=given.grace, progress=progress.add)
    if given.json:
        print(json.dumps({"files": report.files, "bytes": report.bytes, "restored": report.restored, "removed": report.removed,
                          "faults": [vars(fault) for fault in report.faults], "lost": report.lost, "ok": report.ok}))  # fmt: skip
    else:
        for fault in report.faults:
            print(shown(str(fault)))
        print(f"{report.files} files, {report.bytes} bytes: {len(report.faults)} faults, {report.restored} restored, "
              f"{report.removed} removed{'' if not report.lost else ', LOST: ' + shown(', '.join(report.lost))}")  # fmt: skip
    return 0 if report.ok else 1


def _status(flexa: FlexA, given: argparse.Namespace) -> int:
    status = flexa.status()
    if given.json:
        print(json.dumps(status))
    else:
        for store in status["stores"]:
            room = f", {store['room']['free'] / 1e9:.1f} GB free" if store["room"] else ""
            said = ": " + store["said"] if store["said"] else ""
            print(shown(f"{store['role']:9} {store['state']:7} {store['url']}{room}{said}"))
    return 0 if all(store["state"] == "ok" for store in status["stores"]) else 1


def _run(given: argparse.Namespace) -> int:
    path = given.keyring or _default_keyring()
    if given.command == "init":
        _init(given, path)
        return 0
    if given.command == "replace":
        _replace(given, path)
        return 0
    ring = _share_of(given) if given.share else _ring(given, path)
    flexa = FlexA(keyring=ring, deadline=given.deadline, cache=given.cache, cache_size=given.cache_size)
    with flexa:
        if hasattr(given, "run"):  # a command of another module's
            return int(given.run(flexa, given) or 0)
        if given.command in ("verify", "repair"):
            return _check(flexa, given)
        if given.command == "status":
            return _status(flexa, given)
        if given.command == "put":
            _put(flexa, given)
        elif given.command == "get":
            _get(flexa, given)
        elif given.command == "cat":
            _cat(flexa, given)
        elif given.command == "ls":
            _ls(flexa, given)
        elif given.command == "mkdir":
            flexa.mkdir(given.name, parents=given.parents, exist_ok=given.parents)
        elif given.command == "rm":
            for name in given.name:
                flexa.rm(name, recursive=given.recursive)
        elif given.command == "mv":
            flexa.mv(given.old, given.new, replace=given.force)
        elif given.command == "share":
            _share(flexa, given)
        for url, what in dict.fromkeys((fault.store, fault.what) for fault in flexa.faults[-20:]):
            print(shown(f"daelstrom flexa: {url}: {what}"), file=sys.stderr)
    return 0


def main(words: list[str] | None = None) -> int:
    streams.take_closed()
    given = _given(words)
    try:
        # libfuse has signals of its own.
        with contextlib.nullcontext() if given.command == "mount" else signals():
            code = _run(given)
            streams.flush()
            return code
    except BrokenPipeError:
        streams.drop()
        return 1
    except KeyboardInterrupt as stop:
        print("daelstrom flexa: interrupted", file=sys.stderr)
        return 128 + stop.number if isinstance(stop, Stopped) else 130
    except (exceptions.DaelstromError, OSError, ValueError) as error:
        print(shown(f"daelstrom flexa: {said(error)}"), file=sys.stderr)
        with contextlib.suppress(OSError):
            streams.flush()
            return 1
        streams.drop()
        return 1


if __name__ == "__main__":
    sys.exit(main())
