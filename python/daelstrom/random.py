# SPDX-License-Identifier: Apache-2.0
"""Random numbers from AES in counter mode: fast, unpredictable to those who lack the key, and the same to the bit in
host memory and on a GPU.

>>> from daelstrom.random import Generator
>>> generator = Generator(bytes(16))
>>> generator.bytes(4).hex()
'66e94bd4'
>>> Generator.from_seed(7).integers(1, 7, size=5).tolist()
[3, 2, 1, 3, 1]
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
from typing import TYPE_CHECKING, Any, TypedDict

from . import _core
from ._arrays import Arrays, arrays_of
from ._normal import normal_of_bits

if TYPE_CHECKING:
    from ._types import HostBuffer, Stream

_END = 1 << 64  # bytes of one stream, and streams of one key
_MASK53 = (1 << 53) - 1
_MASK63 = (1 << 63) - 1

Size = Any  # a number, or a tuple of them


class State(TypedDict):
    """Where a generator stands. The key is not in it."""

    stream: int
    position: int


class Generator:
    """The keystream of AES-CTR under a key, as bytes and numbers.

    A key has 2^64 streams of 2^64 bytes each: the counter block is the stream's number in 8 bytes and the block's in
    8 more, big-endian. Each call takes what it needs from the stream: one 64-bit word for a ``float64``, a normal
    deviate or an integer (seldom more), 32 bits for a ``float32``; words begin at multiples of their size. Threads may
    share a generator; which of them gets which numbers is then a matter of chance.

    Without a key it takes one from the operating system, and another one in a child of ``fork()``. With a key, a child
    goes on with its parent's numbers: ``jump`` sets them apart.
    """

    def __init__(self, key: HostBuffer | None = None, *, engine: _core.Engine | None = None) -> None:
        self._process = None if key is not None else os.getpid()
        self._key = _core.Key(os.urandom(32) if key is None else key)
        self._engine = engine
        self._stream = 0
        self._position = 0
        self._lock = threading.Lock()

    @classmethod
    def from_seed(cls, seed: int | str | bytes, *, engine: _core.Engine | None = None) -> Generator:
        """A generator for experiments that are to be repeated: its key is a hash of the seed, and as easy to guess."""
        if isinstance(seed, int):
            seed = str(seed)
        text = seed.encode() if isinstance(seed, str) else bytes(seed)
        return cls(hashlib.sha256(b"daelstrom.random\0" + text).digest(), engine=engine)

    @property
    def state(self) -> State:
        """Where it stands, to be kept and set again in a generator with the same key."""
        with self._lock:
            return {"stream": self._stream, "position": self._position}

    @state.setter
    def state(self, state: State) -> None:
        stream, position = int(state["stream"]), int(state["position"])
        if not (0 <= stream < _END and 0 <= position <= _END):
            raise ValueError("stream and position are numbers from 0 to 2^64")
        with self._lock:
            self._stream, self._position = stream, position

    def jump(self, streams: int = 1) -> Generator:
        """Goes on at the beginning of the stream so many further on."""
        with self._lock:
            if not 0 <= self._stream + streams < _END:
                raise OverflowError("a key has 2^64 streams; take another key")
            self._stream, self._position = self._stream + streams, 0
        return self

    def jumped(self, streams: int = 1) -> Generator:
        """Another generator, with the same key, at the beginning of the stream so many further on: one for each
        thread, process or GPU."""
        other = type(self).__new__(type(self))
        other._process, other._key, other._engine = self._process, self._key, self._engine
        other._stream, other._position, other._lock = self._stream, 0, threading.Lock()
        return other.jump(streams)

    def _take(self, size: int, word: int) -> tuple[bytes, int]:
        """The next `size` bytes, from a multiple of `word` on: the stream's first counter block, and the offset."""
        if self._process is not None and self._process != os.getpid():
            self._lock = threading.Lock()  # whoever held it is not in this process
            self._process, self._stream, self._position = os.getpid(), 0, 0
            self._key = _core.Key(os.urandom(32))
        with self._lock:
            at = -(-self._position // word) * word
            if at + size > _END:
                raise OverflowError("the stream has ended; jump() to another one")
            self._position = at + size
            return self._stream.to_bytes(8, "big") + bytes(8), at

    def _fill_from(self, counter: bytes, offset: int, out: Any, stream: Stream = None) -> None:
        _core.keystream(self._key, counter, offset, out, stream=stream, engine=self._engine)

    def bytes(self, size: int) -> bytes:
        """So many random bytes."""
        counter, offset = self._take(size, 1)
        out = bytearray(size)
        self._fill_from(counter, offset, out)
        return bytes(out)

    def fill(self, out: Any, *, stream: Stream = None) -> Any:
        """Fills any memory with random bits."""
        size = _nbytes(out)
        counter, offset = self._take(size, 1)
        self._fill_from(counter, offset, out, stream)
        return out

    def random(self, size: Size = None, dtype: Any = "float64", *, out: Any = None) -> Any:
        """Numbers from 0 up to, and without, 1: multiples of 2^-53, as ``float32`` of 2^-24."""
        if size is None and out is None:
            return ((self._word() >> 11) & _MASK53) * 2.0**-53
        out = _output(size, dtype, out)
        arrays = arrays_of(out)
        kind = arrays.kind(out)
        if kind not in ("float64", "float32"):
            raise TypeError(f"out is of {kind}; random numbers are of float64 or float32")
        word, bits_kind, shift, mask, scale = (
            (8, "int64", 11, _MASK53, 2.0**-53) if kind == "float64" else (4, "int32", 8, 0xFFFFFF, 2.0**-24)
        )
        row = arrays.flat(out)
        counter, offset = self._take(len(row) * word, word)
        self._fill_from(counter, offset, row)
        bits = arrays.view(row, bits_kind)
        step = arrays.chunk(row)
        for at in range(0, len(row), step):
            part = slice(at, at + step)
            row[part] = arrays.cast((bits[part] >> shift) & mask, kind) * scale
        return out

    def uniform(
        self, low: float = 0.0, high: float = 1.0, size: Size = None, dtype: Any = "float64", *, out: Any = None
    ) -> Any:
        """Numbers from ``low`` up to ``high``."""
        if size is None and out is None:
            return low + (high - low) * self.random()
        out = self.random(size, dtype, out=out)
        row = arrays_of(out).flat(out)
        row *= high - low
        row += low
        return out

    def normal(
        self, loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: Any = "float64", *, out: Any = None
    ) -> Any:
        """Normal deviates with that mean and standard deviation, from 64 bits each whatever their type."""
        if size is None and out is None:
            return float(self.normal(loc, scale, 1)[0])
        out = _output(size, dtype, out)
        arrays = arrays_of(out)
        kind = arrays.kind(out)
        if not kind.startswith(("float", "bfloat")):
            raise TypeError(f"out is of {kind}; normal deviates are floating-point numbers")

        def transform(words: Any) -> Any:
            return normal_of_bits(arrays, words) * scale + loc

        self._transformed(arrays, out, transform)
        return out

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Size = None,
        dtype: Any = "int64",
        *,
        endpoint: bool = False,
        out: Any = None,
    ) -> Any:
        """Whole numbers from ``low`` up to, and without, ``high``; with one argument, from 0. Each is exactly as
        likely as the others."""
        if high is None:
            low, high = 0, low
        count = high - low + (1 if endpoint else 0)
        if count < 1:
            raise ValueError(f"no numbers from {low} to {high}")
        if not (-(1 << 63) <= low and low + count <= 1 << 63) or 1 << 63 < count < 1 << 64:
            raise ValueError("numbers have 64 bits and a sign, and there are at most 2^63 of them, or all 2^64")
        if size is None and out is None:
            return int(self._integer(low, count))
        out = _output(size, dtype, out)
        arrays = arrays_of(out)
        _check_fits(arrays.kind(out), low, low + count - 1)
        if count == 1 << 64:
            return self.fill(out)
        # Of 2^63 numbers as many as `count` divides; the others are drawn again, after all else.
        limit = (1 << 63) - (1 << 63) % count
        row = arrays.flat(out)
        again: list[Any] = []

        def transform(words: Any, at: int = 0) -> Any:
            numbers = (words >> 1) & _MASK63
            if limit < 1 << 63:
                bad = arrays.indices(numbers >= limit)
                if len(bad):
                    again.append(bad + at)
            return numbers % count + low

        self._transformed(arrays, out, transform, places=True)
        while again:
            places, again = again, []
            for where in places:
                words = self._words(arrays, len(where), row)
                numbers = (words >> 1) & _MASK63
                row[where] = arrays.cast(numbers % count + low, arrays.kind(out))
                bad = arrays.indices(numbers >= limit)
                if len(bad):
                    again.append(where[bad])
        return out

    def _word(self) -> int:
        counter, offset = self._take(8, 8)
        out = bytearray(8)
        self._fill_from(counter, offset, out)
        return int(struct.unpack("<q", out)[0])

    def _integer(self, low: int, count: int) -> int:
        if count == 1 << 64:
            return self._word()
        limit = (1 << 63) - (1 << 63) % count
        while True:
            number = (self._word() >> 1) & _MASK63
            if number < limit:
                return number % count + low

    def _words(self, arrays: Arrays, count: int, like: Any) -> Any:
        words = arrays.empty(count, "int64", like)
        counter, offset = self._take(8 * count, 8)
        self._fill_from(counter, offset, words)
        return words

    def _transformed(self, arrays: Arrays, out: Any, transform: Any, places: bool = False) -> None:
        """Fills `out` with what becomes of 64-bit words, some at a time."""
        row = arrays.flat(out)
        kind = arrays.kind(out)
        step = arrays.chunk(row)
        counter, offset = self._take(8 * len(row), 8)
        words = arrays.empty(min(step, len(row)), "int64", row)
        for at in range(0, len(row), step):
            part = words[: len(row) - at]
            self._fill_from(counter, offset + 8 * at, part)
            row[at : at + step] = arrays.cast(transform(part, at) if places else transform(part), kind)


def _output(size: Size, dtype: Any, out: Any) -> Any:
    if out is not None:
        if size is not None:
            raise ValueError("give size or out, not both")
        return out
    import numpy

    return numpy.empty(size, dtype)


def _nbytes(out: Any) -> int:
    value = getattr(out, "nbytes", None)
    return value if isinstance(value, int) else memoryview(out).nbytes


def _check_fits(kind: str, low: int, last: int) -> None:
    bits = int(kind.lstrip("uint") or 0) if kind.lstrip("u").startswith("int") else 0
    if not bits:
        raise TypeError(f"out is of {kind}; whole numbers are of int8 to int64, or uint8 to uint32")
    least, most = (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if low < least or last > most:
        raise ValueError(f"numbers from {low} to {last} do not fit {kind}")
