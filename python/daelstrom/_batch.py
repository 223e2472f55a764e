# SPDX-License-Identifier: Apache-2.0
"""Many messages in one call, in AES-GCM and the other modes that authenticate: lists of buffers, or one buffer with
offsets."""

from __future__ import annotations

import operator
import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from .aead import BY_NAME, Aead
from .exceptions import InvalidTag

if TYPE_CHECKING:
    from ._types import Buffer, HostBuffer, Stream

_ENCRYPT, _DECRYPT = 0, 1
_AUTHENTICATION = 16  # a status of the C interface
_MOST_NAMED = 8
_IN_FRONT = 24  # bytes of XAES-256-GCM's nonces, where they lie in front of their messages


def _keys(keys: Any, engine: _core.Engine | None) -> _core.KeySet:
    if isinstance(keys, _core.KeySet):
        return keys
    if isinstance(keys, (_core.AESGCM, Aead)):
        return keys.keys
    if isinstance(keys, (list, tuple)):
        return _core.KeySet(tuple(keys), engine=engine)
    return _core.KeySet([keys], engine=engine)


class _Mode(NamedTuple):
    name: str
    number: int  # a dael_mode
    tag: int


_GCM = _Mode("gcm", 5, 16)


def _mode(keys: Any, name: str | None, tag: int | None) -> _Mode:
    """By its name, or what ``keys`` is for."""
    if isinstance(keys, Aead):
        its = _Mode(next(known for known, kind in BY_NAME.items() if type(keys) is kind), keys.mode, keys.tag_length)
    elif isinstance(keys, _core.AESGCM) or name in (None, "gcm"):
        its = _GCM
    elif name not in BY_NAME:
        raise ValueError(f'mode is "{name}"; there are gcm, {", ".join(BY_NAME)}')
    else:
        kind = BY_NAME[name]
        return _Mode(name, kind.mode, kind.check_tag(16 if tag is None else tag))
    if name not in (None, its.name):
        raise ValueError(f'mode is "{name}", and keys are of {its.name}')
    if tag not in (None, its.tag):
        raise ValueError(f"tag_length is {tag}; here {its.name} has {its.tag}")
    return its


_RANGES = {"q": (-1 << 63, (1 << 63) - 1), "I": (0, (1 << 32) - 1)}


def _packed_numbers(numbers: Any, kind: str, name: str) -> Any:
    """Plain lists of numbers as bytes; arrays as they are, if their numbers have the size that is read."""
    size = {"q": 8, "I": 4}[kind]
    if isinstance(numbers, (list, tuple, range)):
        given = [operator.index(number) for number in numbers]
        least, most = _RANGES[kind]
        for at, number in enumerate(given):
            if not least <= number <= most:
                raise ValueError(f"{name}[{at}] is {number}; it is a number from {least} to {most}")
        return struct.pack(f"={len(given)}{kind}", *given)
    dtype = getattr(numbers, "dtype", None)
    if dtype is None and not isinstance(numbers, (bytes, bytearray)):
        try:
            view = memoryview(numbers)
        except TypeError:
            return numbers  # a tensor, or what is refused by its name
        dtype = _ARRAYS.get(view.format.lstrip("@=<"), view.format) if view.format != "B" else None
    kinds = str(dtype).rpartition(".")[2]
    if dtype is not None and kinds not in (f"int{8 * size}", f"uint{8 * size}"):
        raise TypeError(f"{name} are whole numbers of {8 * size} bits, and these are {kinds}")
    return numbers


# The words of memoryview and array.array for the types that may be meant.
_ARRAYS = {
    code: f"{'u' if code.isupper() else ''}int{8 * struct.calcsize(code)}" for code in "bBhHiIlLqQ"
}


def _items(given: Any, name: str) -> tuple[Any, ...]:
    """The items of a list, each asked for once: what happens to the list afterwards is its owner's affair."""
    if isinstance(given, (list, tuple)):
        kind = type(given)
        if kind not in (list, tuple) and kind.__iter__ in (list.__iter__, tuple.__iter__):
            return tuple(given[i] for i in range(len(given)))  # its own __getitem__ says what they are
        return tuple(given)
    if isinstance(given, (str, bytes, bytearray, set, frozenset, dict)) or (
        isinstance(given, memoryview) and given.ndim < 2
    ):
        raise TypeError(f"{name} is {type(given).__name__}; give a list of buffers, or offsets= for messages in one")
    try:
        return tuple(given)
    except TypeError as error:
        if hasattr(type(given), "__iter__") or hasattr(type(given), "__getitem__"):
            raise
        raise TypeError(f"{name} is {type(given).__name__}; give a list of buffers") from error


def _one_or_each(given: Any, name: str) -> Any:
    """A buffer for all, or the items of a list."""
    return _items(given, name) if isinstance(given, (list, tuple)) else given


def seal_batch(
    keys: _core.KeySet | _core.AESGCM | Aead | HostBuffer | Sequence[HostBuffer],
    nonces: Sequence[Buffer] | Buffer | None,
    data: Sequence[Buffer] | Any,
    associated_data: HostBuffer | Sequence[HostBuffer | None] | None = None,
    *,
    mode: str | None = None,
    tag_length: int | None = None,
    offsets: Any = None,
    key_index: Any = None,
    out: Any = None,
    stream: Stream = None,
    engine: _core.Engine | None = None,
) -> Any:
    """Seals many messages at once, each as ``ciphertext || tag``.

    ``data`` is a list of buffers, and the result a list; or it is one buffer, of which message ``i`` is
    ``data[offsets[i]:offsets[i + 1]]``, and the result lies in one array, in the same order, 16 bytes longer for each
    message: :func:`sealed_offsets` says where. ``nonces`` are 12 bytes for each message, one behind the other
    (``NonceCounter.take``), or a list of nonces of any size. ``key_index`` has a number of 32 bits for each message
    where ``keys`` are several. ``associated_data`` are those of all messages, or a list. Data, and ``out``, may lie in
    the host's memory or all of them on one GPU.

    ``mode`` is "gcm", or "aegis128l", "aegis256", "aegis128x2", "aegis128x4", "xaes256gcm" or "gcm_siv", whose nonces
    have the mode's size alone; an object of one of their classes as ``keys`` says it too. AEGIS has a ``tag_length``
    of 16 or 32, by which its messages become longer. In "xaes256gcm" ``nonces`` may be ``None``: 24 random bytes of the
    operating system's are then each message's nonce, and lie in front of it, so that it is 40 bytes longer; data lie
    in the host's memory, and there is no ``out``.

    >>> from daelstrom import NonceCounter, open_batch, seal_batch
    >>> nonces = NonceCounter(b"me01").take(3)
    >>> sealed = seal_batch(bytes(16), nonces, [b"one", b"two", b"three"])
    >>> [len(one) for one in sealed]
    [19, 19, 21]
    >>> open_batch(bytes(16), nonces, sealed)
    [b'one', b'two', b'three']
    >>> open_batch(bytes(32), None, seal_batch(bytes(32), None, [b"a message"], mode="xaes256gcm"), mode="xaes256gcm")
    [b'a message']
    """
    its = _mode(keys, mode, tag_length)
    results, codes = _run(_ENCRYPT, its, keys, nonces, data, associated_data, offsets, key_index, out, stream, engine)
    _refuse_other(codes)
    return results


def open_batch(
    keys: _core.KeySet | _core.AESGCM | Aead | HostBuffer | Sequence[HostBuffer],
    nonces: Sequence[Buffer] | Buffer | None,
    data: Sequence[Buffer] | Any,
    associated_data: HostBuffer | Sequence[HostBuffer | None] | None = None,
    *,
    mode: str | None = None,
    tag_length: int | None = None,
    offsets: Any = None,
    key_index: Any = None,
    out: Any = None,
    status: Any = None,
    stream: Stream = None,
    engine: _core.Engine | None = None,
) -> Any:
    """Opens what :func:`seal_batch` made; the arguments are its own. Without ``nonces`` they lie in front.

    Where a message does not authenticate, ``InvalidTag`` says which in ``indices``, and nothing is handed out. With
    ``status``, an array of 32-bit numbers in the host's memory, one for each message, the others are opened all the
    same: it is filled with 0 for those that are well and 16 for those that are not, and these are ``None`` in a list
    and no plaintext in an array.
    """
    its = _mode(keys, mode, tag_length)
    results, codes = _run(_DECRYPT, its, keys, nonces, data, associated_data, offsets, key_index, out, stream, engine)
    if status is None:
        _refuse_forged(codes, results, data if offsets is None else None, out)
        return results
    view = memoryview(status).cast("B")
    if len(view) != len(codes):
        raise ValueError(f"status is {len(view)} bytes; {len(codes) // 4} messages take 4 each")
    view[:] = codes
    if out is None and offsets is not None and any(codes):
        _clear(results, offsets, codes, its.tag + (0 if nonces is not None else _IN_FRONT))
    if isinstance(results, list) and out is None:
        numbers = memoryview(codes).cast("i")
        results = [result if code == 0 else None for result, code in zip(results, numbers)]
    return results


def _clear(results: Any, offsets: Any, codes: bytes, overhead: int) -> None:
    """In memory that was made for the results nothing stands where there is no plaintext: on a GPU it would be what lay
    there before."""
    places = opened_offsets(
        offsets if isinstance(offsets, (list, tuple, range)) else list(_numbers(offsets)), overhead
    )
    for i, code in enumerate(memoryview(codes).cast("i")):
        if code and places[i] != places[i + 1]:
            part = results[places[i] : places[i + 1]]
            results[places[i] : places[i + 1]] = bytes(len(part)) if isinstance(results, bytearray) else 0


def _numbers(packed: Any) -> Any:
    return packed.tolist() if hasattr(packed, "tolist") else memoryview(packed).cast("B").cast("q")


def _run(
    direction: int,
    mode: _Mode,
    keys: Any,
    nonces: Any,
    data: Any,
    aad: Any,
    offsets: Any,
    key_index: Any,
    out: Any,
    stream: Any,
    engine: _core.Engine | None,
) -> tuple[Any, bytes]:
    if offsets is None:
        data = _items(data, "data")
        out = out if out is None else _items(out, "out")
    else:
        offsets = _packed_numbers(offsets, "q", "offsets")
    if key_index is not None:
        key_index = _packed_numbers(key_index, "I", "key_index")
    in_front = nonces is None
    if in_front:
        if mode.name != "xaes256gcm":
            raise TypeError(f"nonces is None, and {mode.name} takes them; random ones are drawn for xaes256gcm alone")
        nonces = b""
        if direction == _ENCRYPT:
            if out is not None:
                raise ValueError("out is given and nonces are None; their messages are new memory")
            packed = isinstance(offsets, (bytes, bytearray, memoryview))
            count = len(data) if offsets is None else (memoryview(offsets).nbytes // 8 if packed else len(offsets)) - 1
            nonces = os.urandom(_IN_FRONT * max(count, 0))
    nonces, aad = _one_or_each(nonces, "nonces"), _one_or_each(aad, "associated_data")
    return _core.run_batch(
        _keys(keys, engine),
        direction,
        nonces,
        data,
        aad,
        offsets,
        key_index,
        out,
        stream,
        mode.number,
        mode.tag,
        in_front,
    )


def _refuse_other(codes: bytes) -> None:
    if not any(codes):
        return
    for index, code in enumerate(memoryview(codes).cast("i")):
        if code not in (0, _AUTHENTICATION):
            try:
                _core.raise_code(code)
            except Exception as error:
                raise type(error)(f"message {index}: {error}") from None


def _refuse_forged(codes: bytes, results: Any, data: Any, out: Any) -> None:
    if not any(codes):
        return
    _refuse_other(codes)
    forged = tuple(i for i, code in enumerate(memoryview(codes).cast("i")) if code)
    named = ", ".join(map(str, forged[:_MOST_NAMED])) + (", ..." if len(forged) > _MOST_NAMED else "")
    error = InvalidTag(f"{len(forged)} of {len(codes) // 4} messages do not authenticate: {named}")
    error.indices = forged
    raise error


def sealed_offsets(offsets: Any, overhead: int = 16) -> Any:
    """Where sealed messages lie: each of those that ``offsets`` delimit becomes ``overhead`` bytes longer, from 0 on:
    16 or 32 of its tag, or 40 where XAES-256-GCM's nonce lies in front of it.

    >>> sealed_offsets([0, 3, 3, 10])
    [0, 19, 35, 58]
    """
    if isinstance(offsets, (list, tuple, range)):
        return [at - offsets[0] + overhead * i for i, at in enumerate(offsets)]
    import numpy

    at = numpy.asarray(offsets, dtype=numpy.int64)
    return at - at[0] + overhead * numpy.arange(len(at), dtype=numpy.int64)


def opened_offsets(offsets: Any, overhead: int = 16) -> Any:
    """Where the messages lie once they are opened: the reverse of :func:`sealed_offsets`. What is shorter than a tag,
    and so not authentic, is nothing there.

    >>> opened_offsets([0, 19, 35, 58])
    [0, 3, 3, 10]
    """
    if isinstance(offsets, (list, tuple, range)):
        places = [0]
        for begin, end in zip(offsets, offsets[1:]):
            places.append(places[-1] + max(end - begin - overhead, 0))
        return places
    import numpy

    at = numpy.asarray(offsets, dtype=numpy.int64)
    return numpy.concatenate(([0], numpy.cumsum(numpy.maximum(numpy.diff(at) - overhead, 0)))).astype(numpy.int64)
