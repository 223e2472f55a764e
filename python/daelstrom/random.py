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
import operator
import os
import struct
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict

from . import _core
from ._arrays import Arrays, arrays_of
from ._normal import normal_of_bits
from ._turns import Turns

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


class Generator(Turns):
    """The keystream of AES-CTR under a key, as bytes and numbers.

    A key has 2^64 streams of 2^64 bytes each: the counter block is the stream's number in 8 bytes and the block's in
    8 more, big-endian. Each call takes what it needs from the stream: one 64-bit word for a ``float64``, a normal
    deviate or an integer (seldom more), 32 bits for a ``float32``; words begin at multiples of their size.

    Threads may share a generator; which of them gets which numbers is then a matter of chance, and none gets another's.
    What a call that fails or is interrupted had taken is not handed out again. Without a key it takes one from the
    operating system, and another one in a child of ``fork()``. With a key, a child goes on with its parent's numbers:
    ``jump`` sets them apart. It is not copied or pickled, since a copy would repeat its numbers: ``jumped`` makes
    others of the same key.
    """

    def __init__(self, key: HostBuffer | None = None, *, engine: _core.Engine | None = None) -> None:
        self._begin(None if key is None else _core.Key(key), 0, 0, key is None, engine)

    def _begin(
        self, key: _core.Key | None, stream: int, position: int, own: bool, engine: _core.Engine | None
    ) -> None:
        self._own = own  # the key is its own affair: another one in each process
        self._key = key  # none: still to be taken from the operating system
        self._process = os.getpid()
        self._engine = engine
        self._stream, self._position = stream, position
        self._begin_turns()

    def _in_child(self) -> None:
        super()._in_child()
        if self._own:
            self._key = None

    def _ready(self) -> _core.Key:
        """The key; with the lock held. A key is in place, and its position with it, before anything is taken of it."""
        key = self._key
        if key is None or (self._own and self._process != os.getpid()):
            self._key = None
            key = _core.Key(os.urandom(32))
            self._stream, self._position, self._process = 0, 0, os.getpid()
            self._key = key
        return key

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Generator is not copied or pickled: a copy would repeat its numbers. Make others by jumped(), or in "
            "another process Generator(key), with a stream of its own in `state`"
        )

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
        with self._turn():
            self._ready()
            return {"stream": self._stream, "position": self._position}

    @state.setter
    def state(self, state: State) -> None:
        stream, position = int(state["stream"]), int(state["position"])
        if not (0 <= stream < _END and 0 <= position <= _END):
            raise ValueError("stream is a number from 0 to 2^64 - 1, position one from 0 to 2^64")
        with self._turn():
            self._ready()
            self._stream, self._position = stream, position

    def jump(self, streams: int = 1) -> Generator:
        """Goes on at the beginning of the stream so many further on."""
        with self._turn():
            self._ready()
            self._stream, self._position = self._further(streams), 0
        return self

    def _further(self, streams: int) -> int:
        if not 0 <= self._stream + streams < _END:
            raise OverflowError("a key has 2^64 streams; take another key")
        return self._stream + streams

    def jumped(self, streams: int = 1) -> Generator:
        """Another generator, with the same key, at the beginning of the stream so many further on: one for each
        thread, process or GPU. Of a generator that was given no key, each process has its own."""
        other = type(self).__new__(type(self))
        with self._turn():
            other._begin(self._ready(), self._further(streams), 0, self._own, self._engine)
        return other

    def _take(self, size: int, word: int) -> tuple[_core.Key, bytes, int]:
        """The next `size` bytes, from a multiple of `word` on: the key, the stream's first counter block, and the
        offset. They are nobody else's."""
        if size < 0:
            raise ValueError(f"size is {size}; it is 0 or more")
        with self._turn():
            key = self._ready()
            at = -(-self._position // word) * word
            if at + size > _END:
                raise OverflowError("the stream has ended; jump() to another one")
            self._position = at + size
            return key, self._stream.to_bytes(8, "big") + bytes(8), at

    def _fill_from(self, taken: tuple[_core.Key, bytes, int], out: Any, stream: Stream = None, skip: int = 0) -> None:
        key, counter, offset = taken
        _core.keystream(key, counter, offset + skip, out, stream=stream, engine=self._engine)

    def bytes(self, size: int) -> bytes:
        """So many random bytes."""
        out = bytearray(operator.index(size))
        self._fill_from(self._take(len(out), 1), out)
        return bytes(out)

    def fill(self, out: Any, *, stream: Stream = None) -> Any:
        """Fills any memory with random bits."""
        size = _core.writable(out)
        self._fill_from(self._take(size, 1), out, stream)
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
        self._fill_from(self._take(len(row) * word, word), row)
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
        low, high = operator.index(low), operator.index(high)
        count = high - low + (1 if endpoint else 0)
        if size is not None and out is not None:
            raise ValueError("give size or out, not both")
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
            if count == 1 << 63:  # all of them, and a number that 64 bits and a sign do not hold
                return numbers + low
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
        out = bytearray(8)
        self._fill_from(self._take(8, 8), out)
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
        self._fill_from(self._take(8 * count, 8), words)
        return words

    def _transformed(self, arrays: Arrays, out: Any, transform: Any, places: bool = False) -> None:
        """Fills `out` with what becomes of 64-bit words, some at a time."""
        row = arrays.flat(out)
        kind = arrays.kind(out)
        step = arrays.chunk(row)
        words = arrays.empty(min(step, len(row)), "int64", row)
        taken = self._take(8 * len(row), 8)
        for at in range(0, len(row), step):
            part = words[: len(row) - at]
            self._fill_from(taken, part, skip=8 * at)
            row[at : at + step] = arrays.cast(transform(part, at) if places else transform(part), kind)


def _output(size: Size, dtype: Any, out: Any) -> Any:
    if out is not None:
        if size is not None:
            raise ValueError("give size or out, not both")
        return out
    import numpy

    return numpy.empty(size, dtype)


def _check_fits(kind: str, low: int, last: int) -> None:
    bits = int(kind.lstrip("uint") or 0) if kind.lstrip("u").startswith("int") else 0
    if not bits:
        raise TypeError(f"out is of {kind}; whole numbers are of int8 to int64, or uint8 to uint32")
    least, most = (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if low < least or last > most:
        raise ValueError(f"numbers from {low} to {last} do not fit {kind}")
