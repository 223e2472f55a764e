# SPDX-License-Identifier: Apache-2.0
"""Keyrings and shares: small files that say where the stores are and hold the keys of what one begins with."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import _core, streams
from .._appear import Appearing, write_secret
from .errors import FlexaError
from .keys import NUMBER, FileKeys

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Keyring", "check_stores", "read_file", "takes_passphrase"]

_KEYRING, _SHARE = "daelstrom flexa keyring 1", "daelstrom flexa share 1"
_MOST = 1 << 20
_MOST_WORK = 20  # log2 of scrypt's N: 1 GiB, some seconds
# A password may have a stroke or an @ in it; what stands behind a colon, up to a stroke, may be a port.
_PASSWORD = re.compile(r"[\w+.-]+://[^/@[]*:(?!\d*(?:/|\Z)).*@|[\w+.-]+://[^/@[]*:[^/@]*@")
Path = str | os.PathLike[str]

# What a share may say of how a store is reached. Other options can have a program run (ssh's proxy_command), a file
# read, or the reader's own credentials sent to whom the share names.
_S3 = {"key", "secret", "token", "anon", "use_ssl", "endpoint_url", "client_kwargs"}
_SSH = {"username", "password", "port", "known_hosts", "config"}
_DAV = {"base_url", "auth", "timeout"}
_SHARED = {"": {"sync"}, "file": {"sync"}, "s3": _S3, "s3a": _S3, "ssh": _SSH, "sftp": _SSH, "webdav": _DAV, "dav": _DAV}
# What a share's stores may be on. Others of fsspec's go through another file system, or keep what a reader has there.
_PLACES = {
    *_SHARED, "local", "memory", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "ocilake", "tos", "obs",
    "ftp", "http", "https",
}  # fmt: skip
# Hosts and users go into commands of the reader's own (ProxyCommand, Match exec in his ~/.ssh/config).
_HOST = re.compile(r"(?!-)(?:[\w.:\[\]+=,-]|@(?!-))*\Z")


class Keyring:
    """Where the stores are, and the keys of the root: a folder, or the one file that was shared.

    It is kept sealed, for a passphrase (scrypt) or age's recipients. It never changes: any number of threads; a child
    of fork() has a copy. Not pickled, since its keys would be."""

    def __init__(
        self, root: FileKeys, space: bytes, primaries: Sequence[str], secondaries: Sequence[str] = (), *,
        options: dict[str, dict[str, Any]] | None = None, path: Path | None = None, kind: str = "directory", name: str = "",
    ) -> None:  # fmt: skip
        if len(primaries) != 3:
            raise ValueError(f"FlexA has three primaries, not {len(primaries)}")
        _check_urls([*primaries, *secondaries])
        self.root, self.space, self.kind, self.name = root, space, kind, name
        self.primaries, self.secondaries = tuple(primaries), tuple(secondaries)
        self.options = {url: dict(given) for url, given in (options or {}).items()}
        self.path = None if path is None else os.path.abspath(path)

    @classmethod
    def create(
        cls, path: Path, *, primaries: Sequence[str], secondaries: Sequence[str] = (),
        options: dict[str, dict[str, Any]] | None = None, passphrase: str | Buffer | None = None,
        recipients: Any = None, work: int = 0,
    ) -> Keyring:  # fmt: skip
        """A new one, in a new file for its owner alone. `passphrase`, or age's `recipients`; `work`: log2 of scrypt's N
        (0: 17; 20 at most)."""
        check_stores([*primaries, *secondaries], options)
        number = bytearray(os.urandom(NUMBER))
        made = cls(FileKeys.of_number(number), os.urandom(16), primaries, secondaries, options=options, path=path)
        text = bytearray(json.dumps({
            "format": _KEYRING, "number": number.hex(), "space": made.space.hex(), "primaries": list(primaries),
            "secondaries": list(secondaries), "options": made.options,
        }).encode())  # fmt: skip
        try:
            write_secret(path, _sealed(text, passphrase, recipients, work))
        finally:
            _core.wipe(text)
            _core.wipe(number)
        return made

    @classmethod
    def open(
        cls, path: Path, *, passphrase: str | Buffer | None = None, identities: Any = None
    ) -> Keyring:
        """`passphrase`, or age's `identities`."""
        held = _json(_opened(path, read_file(path), passphrase, identities), path)
        try:
            if held["format"] != _KEYRING:
                raise ValueError("it is none")
            number = bytearray.fromhex(held["number"])
            made = cls(FileKeys.of_number(number), bytes.fromhex(held["space"]), held["primaries"], held["secondaries"],
                       options=held["options"], path=path)  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FlexaError(f"{os.fspath(path)!r} is no keyring: {error}") from None
        _core.wipe(number)
        return made

    def replace(
        self, old: str, new: str, *, passphrase: str | Buffer | None = None, identities: Any = None,
        recipients: Any = None, work: int = 0, options: dict[str, Any] | None = None,
    ) -> Keyring:  # fmt: skip
        """The same with another place for one store, in the same file, sealed anew; `repair` then fills it. `options`: what
        fsspec takes to reach the new one; with them `new` may be `old`. `recipients`: of a keyring that `identities` open,
        all that it is for; `work`: log2 of scrypt's N (0: as it was)."""
        if self.path is None:
            raise FlexaError("this keyring is in no file")
        if passphrase is None and recipients is None:
            raise TypeError("give recipients= too: whom the keyring is for does not stand in it")
        file = Appearing(self.path, replace=True, secret=True)  # what is there now, and not what comes there meanwhile
        text = bytearray()
        try:
            sealed = read_file(self.path)
            held = _json(_opened(self.path, sealed, passphrase, identities), self.path)
            there = [*held["primaries"], *held["secondaries"]]
            if old not in there:
                raise ValueError(f"{old!r} is no store of this keyring; they are {', '.join(there)}")
            if new in there and (new != old or options is None):
                raise ValueError(f"{new!r} is a store of this keyring already")
            for part in ("primaries", "secondaries"):
                held[part] = [new if url == old else url for url in held[part]]
            check_stores([*held["primaries"], *held["secondaries"]])
            held["options"].pop(old, None)
            if options:
                held["options"][new] = dict(options)
            text += json.dumps(held).encode()
            file.write(_sealed(text, passphrase if recipients is None else None, recipients, work or _core.envelope_read(sealed)[1]))
            file.appear()
        finally:
            _core.wipe(text)
            file.discard()
        return Keyring.open(self.path, passphrase=passphrase, identities=identities)

    def share(
        self, path: Path, keys: FileKeys, kind: str, name: str, *, read: bool, recipients: Any = None,
        options: dict[str, dict[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        """A file with what it takes to read one file or folder, or to check it, and no more. How the stores are reached
        (`options`) may have secrets, and is not in it unless given; some options a share may not have."""
        _check_options(options, [*self.primaries, *self.secondaries])
        for url, given in (options or {}).items():
            _check_shared(url, given)
        held = {"format": _SHARE, "kind": kind, "name": name, "space": self.space.hex(), "verify": keys.verify.hex(),
                "public": keys.public.hex(), "primaries": list(self.primaries), "secondaries": list(self.secondaries),
                "options": options or {}}  # fmt: skip
        if read:
            held["read"] = keys.read_key().hex()
        text = json.dumps(held, indent=1).encode()
        write_secret(path, text if recipients is None else _sealed(bytearray(text), None, recipients, 0))

    @classmethod
    def of_share(
        cls, path: Path, *, identities: Any = None, options: dict[str, dict[str, Any]] | None = None,
        passphrase: str | Buffer | None = None,
    ) -> Keyring:  # fmt: skip
        """What somebody shared; `identities` or `passphrase` if it is sealed for them. `options`: for each store what
        fsspec takes to reach it, in the place of what the share says."""
        data = read_file(path)
        if _core.is_envelope(data[:22]):
            if passphrase is None and identities is None:
                raise FlexaError(f"{os.fspath(path)!r} is sealed for {'a passphrase' if takes_passphrase(data) else 'recipients'}, "
                                 f"and takes {'passphrase=' if takes_passphrase(data) else 'identities='}")  # fmt: skip
            # A stranger's: scrypt gets no more than it usually does.
            data = streams.open_bytes(data, passphrase=passphrase, identities=identities)
        held = _json(data, path)
        try:
            if held["format"] != _SHARE or held["kind"] not in ("file", "directory"):
                raise ValueError("it is none")
            name = str(held["name"])
            if "/" in name or "\0" in name or name in (".", ".."):  # a file is got under it
                raise ValueError(f"{name!r} is no name")
            for url in (*held["primaries"], *held["secondaries"]):
                if url not in (options or {}):
                    _check_place(url)
            for url, given in held["options"].items():
                if url not in (options or {}):
                    _check_shared(url, given)
            read = bytes.fromhex(held["read"]) if "read" in held else None
            keys = FileKeys(bytes.fromhex(held["verify"]), bytes.fromhex(held["public"]), read)
            return cls(keys, bytes.fromhex(held["space"]), held["primaries"], held["secondaries"],
                       options={**held["options"], **(options or {})}, path=path, kind=held["kind"], name=name)  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FlexaError(f"{os.fspath(path)!r} is no share: {error}") from None

    @property
    def marker(self) -> str:
        """The object by which a store is known as one of this FlexA's."""
        return f"flexa-{self.space.hex()}"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a keyring is not pickled, since its keys would be; open its file where it is needed")

    def __repr__(self) -> str:
        return f"<daelstrom.flexa.Keyring {self.path!r}>"


def _sealed(text: bytearray, passphrase: str | Buffer | None, recipients: Any, work: int) -> bytes:
    if (passphrase is None) == (recipients is None):
        raise TypeError("give passphrase= or recipients=, one of the two")
    if passphrase is not None:
        secret = passphrase.encode() if isinstance(passphrase, str) else passphrase
        recipients = _core.Recipients.of_passphrase(secret, work)
    return streams.seal(text, recipients=recipients)


def _opened(path: Path, data: bytes, passphrase: str | Buffer | None, identities: Any) -> bytes:
    """Of a keyring, which is its reader's own: whatever work it was made with."""
    if (passphrase is None) == (identities is None):
        raise TypeError("give passphrase= or identities=, one of the two")
    if passphrase is not None:
        secret = passphrase.encode() if isinstance(passphrase, str) else passphrase
        identities = _core.Identities.of_passphrase(secret, _MOST_WORK)
    if not _core.is_envelope(data[:22]):
        raise FlexaError(f"{os.fspath(path)!r} is no keyring: it is not sealed")
    return streams.open_bytes(data, identities=identities)


def takes_passphrase(data: bytes) -> bool:
    """Of something sealed: whether a passphrase opens it, and not an identity."""
    return _core.is_envelope(data[:22]) and _core.envelope_read(data)[1] != 0


def read_file(path: Path) -> bytes:
    """All of a keyring's or a share's file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            data = os.pread(file, _MOST + 1, 0)
        finally:
            os.close(file)
    except OSError as error:  # a folder's and a pipe's do not say whose they are
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    if len(data) > _MOST:
        raise FlexaError(f"{os.fspath(path)!r} is too large for what it should be")
    return data


def _json(data: bytes, path: Path) -> Any:
    with contextlib.suppress(ValueError, RecursionError):
        held = json.loads(data)
        if isinstance(held, dict):
            return held
    raise FlexaError(f"{os.fspath(path)!r} is neither a keyring nor a share")


def _check_urls(urls: Sequence[str]) -> None:
    for url in urls:
        if not url or not isinstance(url, str):
            raise ValueError(f"{url!r} is no place of a store")
        if _PASSWORD.match(url):
            raise ValueError("a password does not belong into a URL, which is shown and shared; give it by options=")


def check_stores(urls: Sequence[str], options: dict[str, dict[str, Any]] | None = None) -> None:
    """Of a keyring that is about to be made."""
    _check_urls(urls)
    _check_options(options, urls)
    for url in urls:
        if sum(url.rstrip("/") == other.rstrip("/") for other in urls) > 1:
            raise ValueError(f"{url} stands there twice; each store is a place of its own")


def _check_options(options: dict[str, dict[str, Any]] | None, urls: Sequence[str]) -> None:
    for url in options or {}:
        if url not in urls:
            raise ValueError(f"there are options for {url!r}, which is none of the stores: {', '.join(urls)}")
    if any(not isinstance(given, dict) for given in (options or {}).values()):
        raise ValueError("options are, for each store, names and values")


def _check_place(url: str) -> None:
    """Of a share's store, if its reader says nothing of it."""
    scheme, there, rest = url.partition("://")
    if "::" in url or (there and scheme not in _PLACES):  # one file system of fsspec's through another, for one
        raise ValueError(f"{url!r} is no place that a share may name: it takes options= of the reader's own")
    if there and _SHARED.get(scheme) is _SSH and not _HOST.match(rest.partition("/")[0]):
        raise ValueError(f"{url!r} has no host that a share may name")


def _check_shared(url: str, given: dict[str, Any]) -> None:
    scheme = url.partition("://")[0] if "://" in url else ""
    for name, value in given.items():
        harmless = name in _SHARED.get(scheme, ())
        if name in ("known_hosts", "config"):  # files that are read otherwise
            harmless = harmless and value is None
        elif name == "username":
            harmless = harmless and isinstance(value, str) and bool(_HOST.match(value))
        elif name == "client_kwargs":
            harmless = harmless and set(value) <= {"endpoint_url", "region_name"}
        if not harmless:
            raise ValueError(f"a share may not have the option {name!r} for {url}: it takes options= of the reader's own")
    elsewhere = "endpoint_url" in given or "endpoint_url" in given.get("client_kwargs", {}) or "use_ssl" in given
    if elsewhere and not given.get("anon") and not (given.get("key") and given.get("secret")):
        raise ValueError(f"a share may not have the reader's own credentials sent to its endpoint of {url}")
