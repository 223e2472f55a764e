# SPDX-License-Identifier: Apache-2.0
"""Stores that fail on command: an fsspec file system, ``faulty://HOST/...``, whose hosts are lost, lie or hang."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from daelstrom.flexa import FileKeys, FlexA, Keyring

READING, WRITING = {"get", "ls", "exists"}, {"put", "mv", "rm"}


class Host:
    """`fault`: None, or what goes wrong with each call:

    down      every call fails                      full     puts fail
    hang      no call comes back before `heal`      slow     calls take a while
    corrupt   what is read has a byte changed       cut      what is read lacks its end
    drops     puts are answered, and not done       stale    shows what was there when that began; puts vanish
    forgets   puts are done, and an error answered  flaky    calls fail at random, before or after they are done
    silent    lists, and hands nothing out          invents  lists manifests and candidacies that are not there
    """

    all: dict[str, Host] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.objects: dict[str, tuple[bytes, float]] = {}
        self.fault: str | None = None
        self.shown: dict[str, tuple[bytes, float]] | None = None
        self.random = random.Random(0)
        self.healed = threading.Event()
        self.calls: dict[str, int] = {}
        self.after: int | None = None  # calls of puts until `then` sets in
        self.then: str | None = None
        self.calls_of_fault = 0  # since it set in
        self.sizes: dict[str, int] = {}  # that it lists, where they are not the true ones
        self.most_read = 0
        self.false: dict[str, int] = {}  # paths that it lists, with sizes, and has not
        self.pause = 0.0  # seconds until it hands out rubbish for one of those
        Host.all[name] = self

    def fail(self, fault: str) -> None:
        with self.lock:
            self.healed = threading.Event()
            self.shown = dict(self.objects) if fault == "stale" else None
            self.fault, self.calls_of_fault = fault, 0

    def fail_after(self, puts: int, fault: str) -> None:
        self.after, self.then = puts, fault

    def heal(self) -> None:
        with self.lock:
            self.fault = self.shown = self.after = self.then = None
            self.false = {}
            self.healed.set()

    def lose(self) -> None:
        with self.lock:
            self.objects.clear()

    def call(self, kind: str, do: Any) -> Any:
        with self.lock:
            self.calls[kind] = self.calls.get(kind, 0) + 1
            if kind == "put" and self.after is not None:
                self.after -= 1
                if self.after < 0:
                    then, self.after, self.then = self.then, None, None
                    assert then is not None
                    self.fail(then)
            fault, healed = self.fault, self.healed
            self.calls_of_fault += 1
        if fault == "hang":
            healed.wait(600)
        if fault == "slow":
            time.sleep(0.002 * self.random.random())
        if fault == "down" or (fault == "full" and kind == "put") or (fault == "silent" and kind == "get"):
            raise OSError(28 if fault == "full" else 5, f"{self.name} is {fault}")
        if fault in ("drops", "stale") and kind in WRITING:
            return None
        if fault == "flaky" and self.random.random() < 0.3:
            raise OSError(5, "before")
        with self.lock:
            answer = do()
        if fault == "forgets" and kind in WRITING or (fault == "flaky" and self.random.random() < 0.3):
            raise OSError(5, "after")
        if kind == "get" and fault == "corrupt" and answer:
            at = self.random.randrange(len(answer))
            answer = answer[:at] + bytes([answer[at] ^ 1 << self.random.randrange(8)]) + answer[at + 1 :]
        if kind == "get" and fault == "cut":
            answer = answer[:-1]
        return answer


class FaultyFileSystem(AbstractFileSystem):
    protocol = "faulty"
    cachable = False

    def _host(self, path: str) -> Host:
        return Host.all[self._strip_protocol(path).split("/")[0]]

    def _see(self, host: Host) -> dict[str, tuple[bytes, float]]:
        return host.objects if host.shown is None else host.shown

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        host, path = self._host(path), self._strip_protocol(path)
        host.call("put", lambda: host.objects.__setitem__(path, (bytes(value), time.time())))

    def cat_file(self, path, start=None, end=None, **kwargs):
        host, path = self._host(path), self._strip_protocol(path)
        if path in host.false:
            host.call("get", lambda: None)
            host.healed.wait(host.pause)
            return b"rubbish"

        def get():
            if path not in self._see(host):
                raise FileNotFoundError(path)
            return self._see(host)[path][0][start:end]

        data = host.call("get", get)
        host.most_read = max(host.most_read, len(data))
        return data

    def ls(self, path, detail=True, **kwargs):
        host, path = self._host(path), self._strip_protocol(path).rstrip("/")

        def look():
            found = {}
            for name, (data, at) in self._see(host).items():
                if name.startswith(path + "/"):
                    leaf, _, below = name[len(path) + 1 :].partition("/")
                    entry = {"name": f"{path}/{leaf}", "size": 0 if below else host.sizes.get(name, len(data)), "mtime": at}
                    found[leaf] = {**entry, "type": "directory" if below else "file"}
            for name, size in host.false.items():
                if name.startswith(path + "/"):
                    leaf = name[len(path) + 1 :]
                    found.setdefault(leaf, {"name": name, "size": size, "mtime": 0.0, "type": "file"})
            if host.fault == "invents" and len(path.rpartition("/")[2]) == 96:
                for n in range(12):
                    for kind in "mc":
                        name = f"{kind}-{host.random.randrange(1, 50):016x}-{n + 9:08x}-{host.random.randbytes(16).hex()}"
                        found[name] = {"name": f"{path}/{name}", "size": 300, "mtime": 0.0, "type": "file"}
            if not found:
                raise FileNotFoundError(path)
            return list(found.values())

        found = host.call("ls", look)
        return found if detail else [one["name"] for one in found]

    def info(self, path, **kwargs):
        host, path = self._host(path), self._strip_protocol(path).rstrip("/")

        def look():
            if path in self._see(host):
                return {"name": path, "size": len(self._see(host)[path][0]), "type": "file"}
            if any(name.startswith(path + "/") for name in self._see(host)):
                return {"name": path, "size": 0, "type": "directory"}
            raise FileNotFoundError(path)

        return host.call("exists", look)

    def mv(self, path1, path2, **kwargs):
        host, old, new = self._host(path1), self._strip_protocol(path1), self._strip_protocol(path2)

        def move():
            if old not in host.objects:
                raise FileNotFoundError(old)
            host.objects[new] = host.objects.pop(old)

        host.call("mv", move)

    def rm_file(self, path):
        host, path = self._host(path), self._strip_protocol(path)

        def remove():
            if path not in host.objects:
                raise FileNotFoundError(path)
            del host.objects[path]

        host.call("rm", remove)

    def rm(self, path, recursive=False, maxdepth=None):
        host, path = self._host(path), self._strip_protocol(path).rstrip("/")

        def remove():
            for name in [name for name in host.objects if name == path or name.startswith(path + "/")]:
                del host.objects[name]

        host.call("rm", remove)

    def makedirs(self, path, exist_ok=False):
        pass


fsspec.register_implementation("faulty", FaultyFileSystem, clobber=True)
_made = 0


class Stores:
    """Three hosts, and as many more as are asked for, with a keyring of theirs."""

    def __init__(self, folder: Any, secondaries: int = 0) -> None:
        global _made
        _made += 1
        self.hosts = [Host(f"h{_made}x{number}") for number in range(3 + secondaries)]
        urls = [f"faulty://{host.name}/place" for host in self.hosts]
        self.path = f"{folder}/ring{_made}"
        self.ring = Keyring.create(self.path, primaries=urls[:3], secondaries=urls[3:], passphrase="words", work=10)
        self.open_ones: list[FlexA] = []
        FlexA.init(self.ring, seen=False)

    def open(self, hasty: dict[int, float] | None = None, **how: Any) -> FlexA:
        """`hasty`: the deadlines of some. The others have one that they keep on a busy machine."""
        made = FlexA(keyring=self.ring, **{"deadline": 60, "hedge": 0.05, "seen": False, **how})
        for number, deadline in (hasty or {}).items():
            made._client.group.stores[number].deadline = deadline
        self.open_ones.append(made)
        return made

    def heal(self) -> None:
        for host in self.hosts:
            host.heal()

    def close(self) -> None:
        self.heal()
        for one in self.open_ones:
            one.close()
        for host in self.hosts:
            del Host.all[host.name]


def of_file(host: Host, keys: FileKeys, kind: str = "") -> list[str]:
    return [path for path in host.objects if f"/{keys.name}/{kind}" in path]


def without(host: Host, keys: FileKeys) -> None:
    for path in of_file(host, keys):
        del host.objects[path]
