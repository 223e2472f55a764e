# SPDX-License-Identifier: Apache-2.0
"""The ciphertext of a file in three portions: cut while it is sealed, and put together while it is opened.

Block i of the sealed stream belongs to portion i mod 3. Portion k lies on primaries k and k - 1 (mod 3), in pieces of
up to 16 blocks that are an object each; secondaries have all three.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _core
from .._writer import Chunks
from .cache import Cache
from .errors import FlexaError, Lost, Unavailable
from .group import Group
from .keys import FileKeys
from .manifest import BLOCK, INLINE, MOST_BLOCKS, PIECE, Manifest, Name, Signed
from .store import Job, Store

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Ciphertext", "Cutter", "Opened", "aad_of", "homes"]

_IN_FLIGHT = 6  # pieces that are being put
Progress = Callable[[int], Any]


def homes(group: Group, portion: int) -> list[Store]:
    """The primaries that hold a portion."""
    return [group.primaries[portion], group.primaries[(portion - 1) % 3]]


def aad_of(keys: FileKeys, version: int, writer: bytes) -> bytes:
    """What a sealed stream is bound to: its file, and who wrote it for which version."""
    return b"daelstrom flexa 1" + keys.verify + version.to_bytes(8, "big") + writer


class Cutter:
    """Takes plaintext, and puts portions where they belong; with `finish` it knows what a manifest says of them. One
    thread at a time. Nothing of it counts before a manifest names it."""

    def __init__(self, group: Group, keys: FileKeys, version: int, engine: Any = None, progress: Progress | None = None) -> None:
        if keys.sealed is None or not keys.can_write:
            raise PermissionError("this file may not be written here: its write key is not known")
        self._group, self._keys, self._file, self._progress = group, keys, keys.name, progress
        self.version, self.writer = version, os.urandom(16)
        self._chunks = Chunks(keys.sealed, aad_of(keys, version, self.writer), engine)
        self._hashes = bytearray()
        self._block = bytearray()
        self._open: dict[int, bytearray] = {}  # of each portion, the piece that is being filled
        self._blocks = self._sealed = 0
        self._jobs: list[tuple[str, int, list[tuple[Store, Job]]]] = []
        self._put: list[str] = []
        self.missing: set[Store] = set()  # stores that lack something of it
        self._failed: list[Store] = []

    def write(self, data: memoryview) -> None:
        self._chunks.write(data, self._cut)
        if self._progress is not None:
            self._progress(self._chunks.plain)

    def finish(self, history: tuple[bytes, ...], time: float) -> Manifest:
        self._chunks.finish(self._cut)
        inline = None
        if self._blocks == 0 and len(self._block) <= INLINE:
            inline, self._hashes = bytes(self._block), bytearray()
        else:
            if self._block:
                self._end_block()
            for portion in list(self._open):
                self._send(portion)
        while self._jobs:
            self._settle()
        assert self._keys.valid_write is not None
        return Manifest(self.version, self.version, self.writer, self._chunks.plain, self._sealed, time,
                        self._keys.valid_write, history, inline, bytes(self._hashes))  # fmt: skip

    def discard(self) -> None:
        """Takes back what was put, as far as the stores let it; `repair` collects the rest."""
        self._chunks.wipe()
        for _, _, puts in self._jobs:
            for store, job in puts:
                try:
                    store.wait(job)
                except Exception as error:
                    self._group.note(store, self._file, error)
        self._jobs = []
        jobs = [(store, store.rm(self._file, name)) for name in self._put for store in self._group.primaries]
        for store, job in jobs:
            try:
                store.wait(job)
            except Exception as error:
                self._group.note(store, self._file, error)

    def _cut(self, data: memoryview) -> None:
        self._sealed += len(data)
        while len(data):
            took = min(len(data), BLOCK - len(self._block))
            self._block += data[:took]
            data = data[took:]
            if len(self._block) == BLOCK:
                self._end_block()

    def _end_block(self) -> None:
        if self._blocks == MOST_BLOCKS:
            raise FlexaError(f"a file has at most {MOST_BLOCKS} blocks of 1 MiB")
        self._hashes += hashlib.sha256(self._block).digest()
        portion = self._blocks % 3
        piece = self._open.setdefault(portion, bytearray())
        piece += self._block
        self._block = bytearray()
        self._blocks += 1
        if len(piece) == PIECE * BLOCK:
            self._send(portion)

    def _send(self, portion: int) -> None:
        data = self._open.pop(portion)
        number = (self._blocks - 1 - portion) // 3 // PIECE  # of its last block, and so of all
        name = str(Name("d", self.version, None, self.writer, portion, number))
        while len(self._jobs) >= _IN_FLIGHT:
            self._settle()
        self._put.append(name)
        jobs = [(store, store.put(self._file, name, data)) for store in homes(self._group, portion)]
        self._jobs.append((name, portion, jobs))

    def _settle(self) -> None:
        name, _, puts = self._jobs.pop(0)
        there = 0
        for store, job in puts:
            try:
                store.wait(job)
                there += 1
            except Exception as error:
                self._group.note(store, self._file, error)
                self.missing.add(store)
        if there == 0 or len(self.missing) > 1:
            raise Unavailable(self._group.why(f"{name}: too few stores take the portions of {self._file}"))


class Ciphertext:
    """The ciphertext of one version, verified block by block against its manifest: for whoever has the verify key. Any
    number of threads."""

    def __init__(
        self, group: Group, keys: FileKeys, manifest: Manifest, cache: Cache | None = None,
        gone: Callable[[], Exception] | None = None,
    ) -> None:  # fmt: skip
        self._group, self._file, self.manifest, self._cache, self._gone = group, keys.name, manifest, cache, gone

    def ciphertext(self, begin: int, length: int) -> bytes:
        """Of the sealed stream, verified by the manifest: whole blocks are fetched, of each piece those that are
        wanted, from several stores at once."""
        if self.manifest.inline is not None:
            return self.manifest.inline[begin : begin + length]
        if length == 0:
            return b""
        first, last = begin // BLOCK, (begin + length - 1) // BLOCK
        blocks = self.blocks(range(first, last + 1))
        joined = b"".join(blocks[i] for i in range(first, last + 1))
        return joined[begin - first * BLOCK : begin - first * BLOCK + length]

    def blocks(self, wanted: range) -> dict[int, bytes]:
        self._group.check_process()
        manifest, found = self.manifest, {}
        if self._cache is not None:
            for i in wanted:
                data = self._cache.get(manifest.hash_of(i))
                if data is not None:
                    found[i] = data
        parts: dict[tuple[int, int], list[int]] = {}
        for i in wanted:
            if i not in found:
                parts.setdefault((i % 3, i // 3 // PIECE), []).append(i)
        runs = [run for (portion, piece), missing in parts.items() for run in _runs(missing)]
        if len(runs) == 1:
            found.update(self._fetch(runs[0]))
            return found
        answers: list[Any] = [None] * len(runs)

        def get(number: int) -> None:
            try:
                answers[number] = self._fetch(runs[number])
            except BaseException as error:
                answers[number] = error

        threads = [threading.Thread(target=get, args=(number,), daemon=True) for number in range(1, len(runs))]
        for thread in threads:
            thread.start()
        if runs:
            get(0)
        for thread in threads:
            thread.join()
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            found.update(answer)
        return found

    def check(self, run: list[int], data: bytes) -> dict[int, bytes]:
        """Blocks one behind the other, held against their hashes; `Lost` where one is not what it should be."""
        if len(data) != sum(map(self.manifest.block_size, run)):
            raise Lost(f"blocks {run[0]} to {run[-1]} are cut off")
        made, at = {}, 0
        for i in run:
            part = data[at : at + self.manifest.block_size(i)]
            if hashlib.sha256(part).digest() != self.manifest.hash_of(i):
                raise Lost(f"block {i} is not what its manifest says")
            made[i] = part
            at += len(part)
        return made

    def _fetch(self, run: list[int]) -> dict[int, bytes]:
        """Blocks that lie one behind the other in a piece."""
        primaries = homes(self._group, run[0] % 3)
        if run[0] // 3 % 2:  # both have their share of the reads
            primaries.reverse()
        primaries.sort(key=lambda store: store.state != "ok")
        try:
            made = self.run(run, primaries + self._group.secondaries)
        except Lost as lost:
            raise (self._gone() if self._gone is not None else lost) from lost
        if self._cache is not None:
            for i, data in made.items():
                self._cache.put(self.manifest.hash_of(i), data)
        return made

    def run(self, run: list[int], stores: list[Store]) -> dict[int, bytes]:
        """The same from certain stores, of which one after the other is asked."""
        name = self.manifest.piece_name(run[0] % 3, run[0] // 3 // PIECE)
        begin = run[0] // 3 % PIECE * BLOCK
        size = sum(map(self.manifest.block_size, run))

        def get(store: Store) -> Job:
            return store.get(self._file, name, begin, begin + size, size)

        return self._group.fetch(self._file, name, stores, get, lambda data: self.check(run, data))


class Opened(Ciphertext):
    """One version of a file as what a `SealedReader` reads from. Any number of threads; its stores refuse a child of
    fork()."""

    def __init__(
        self, group: Group, keys: FileKeys, signed: Signed, cache: Cache | None = None, engine: Any = None,
        gone: Callable[[], Exception] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(group, keys, signed.manifest, cache, gone)
        if keys.sealed is None:
            raise PermissionError("this file may be checked here, and not read: its read key is not known")
        self.signed, self._keys, self._engine, self._sealed = signed, keys, engine, keys.sealed
        self._opener: Any = None
        self._lock = threading.Lock()
        self.size = self.manifest.size
        if self._sealed.sealed_size(self.size) != self.manifest.sealed:
            raise FlexaError(f"{self._file}: a manifest whose sizes do not fit together")

    def around(self, at: int, size: int) -> tuple[int, int]:
        return self._sealed.plain_range(at, size, self.size)

    def check_size(self) -> None:
        """The size is the manifest's, whose signature was verified."""

    def read(self, at: int, size: int) -> bytes:
        out = bytearray(size)
        self.read_into(at, out)
        return bytes(out)

    def read_into(self, at: int, out: Buffer) -> None:
        with memoryview(out).cast("B") as view:
            begin, length = self.sealed_range(at, len(view))
            self.open_to(at, begin, self.ciphertext(begin, length), view)

    def sealed_range(self, at: int, size: int) -> tuple[int, int]:
        return self._sealed.sealed_range(at, size, self.size)

    def open_to(self, at: int, begin: int, sealed: bytes, out: memoryview) -> None:
        """Opens a range whose ciphertext is here already."""
        if self._opener is None:
            head = min(self._sealed.head_size, self.manifest.sealed)
            start = sealed[:head] if begin == 0 and len(sealed) >= head else self.ciphertext(0, head)
            whole = self.manifest.sealed <= self._sealed.head_size
            aad = aad_of(self._keys, self.manifest.written, self.manifest.writer)
            made = _core.SealedOpener(self._sealed, aad, start, whole, engine=self._engine)
            with self._lock:
                self._opener = self._opener or made
        self._opener.open_to(at, self.size, sealed, out)


def _runs(blocks: list[int]) -> list[list[int]]:
    """Of blocks of one portion, those that follow each other."""
    runs: list[list[int]] = []
    for i in blocks:
        if runs and runs[-1][-1] + 3 == i:
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs
