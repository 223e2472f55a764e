# SPDX-License-Identifier: Apache-2.0
"""Many messages in one call: AES-GCM over lists of buffers, or over one buffer with offsets."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .exceptions import InvalidTag

if TYPE_CHECKING:
    from ._types import Buffer, HostBuffer, Stream

_ENCRYPT, _DECRYPT = 0, 1
_AUTHENTICATION = 16  # a status of the C interface
_MOST_NAMED = 8


def _keys(keys: Any, engine: _core.Engine | None) -> _core.KeySet:
    if isinstance(keys, _core.KeySet):
        return keys
    if isinstance(keys, _core.AESGCM):
        return keys.keys
    if isinstance(keys, (list, tuple)):
        return _core.KeySet(keys, engine=engine)
    return _core.KeySet([keys], engine=engine)


def _packed_numbers(numbers: Any, kind: str) -> Any:
    """Plain lists of numbers as bytes; arrays as they are, if their numbers have the size that is read."""
    if isinstance(numbers, (list, tuple, range)):
        return struct.pack(f"={len(numbers)}{kind}", *numbers)
    dtype = getattr(numbers, "dtype", None)
    size = {"q": 8, "I": 4}[kind]
    if dtype is not None and getattr(dtype, "itemsize", size) != size:
        raise TypeError(f"numbers of {8 * size} bits are read here, and these are {dtype}")
    return numbers


def seal_batch(
    keys: _core.KeySet | _core.AESGCM | HostBuffer | Sequence[HostBuffer],
    nonces: Sequence[Buffer] | Buffer,
    data: Sequence[Buffer] | Any,
    associated_data: HostBuffer | Sequence[HostBuffer | None] | None = None,
    *,
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

    >>> from daelstrom import NonceCounter, open_batch, seal_batch
    >>> nonces = NonceCounter(b"me01").take(3)
    >>> sealed = seal_batch(bytes(16), nonces, [b"one", b"two", b"three"])
    >>> [len(one) for one in sealed]
    [19, 19, 21]
    >>> open_batch(bytes(16), nonces, sealed)
    [b'one', b'two', b'three']
    """
    results, codes = _run(_ENCRYPT, keys, nonces, data, associated_data, offsets, key_index, out, stream, engine)
    _refuse_other(codes)
    return results


def open_batch(
    keys: _core.KeySet | _core.AESGCM | HostBuffer | Sequence[HostBuffer],
    nonces: Sequence[Buffer] | Buffer,
    data: Sequence[Buffer] | Any,
    associated_data: HostBuffer | Sequence[HostBuffer | None] | None = None,
    *,
    offsets: Any = None,
    key_index: Any = None,
    out: Any = None,
    status: Any = None,
    stream: Stream = None,
    engine: _core.Engine | None = None,
) -> Any:
    """Opens what :func:`seal_batch` made; the arguments are its own.

    Where a message does not authenticate, ``InvalidTag`` says which in ``indices``, and nothing is handed out. With
    ``status``, an array of 32-bit numbers in the host's memory, one for each message, the others are opened all the
    same: it is filled with 0 for those that are well and 16 for those that are not, and these are ``None`` in a list
    and no plaintext in an array.
    """
    results, codes = _run(_DECRYPT, keys, nonces, data, associated_data, offsets, key_index, out, stream, engine)
    if status is None:
        _refuse_forged(codes, results, data if offsets is None else None, out)
        return results
    view = memoryview(status).cast("B")
    if len(view) != len(codes):
        raise ValueError(f"status is {len(view)} bytes; {len(codes) // 4} messages take 4 each")
    view[:] = codes
    if isinstance(results, list) and out is None:
        numbers = memoryview(codes).cast("i")
        results = [result if code == 0 else None for result, code in zip(results, numbers)]
    return results


def _run(
    direction: int,
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
        data = data if isinstance(data, (list, tuple)) else list(data)
        out = out if out is None or isinstance(out, (list, tuple)) else list(out)
    else:
        offsets = _packed_numbers(offsets, "q")
    if key_index is not None:
        key_index = _packed_numbers(key_index, "I")
    return _core.run_batch(_keys(keys, engine), direction, nonces, data, aad, offsets, key_index, out, stream)


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


def sealed_offsets(offsets: Any) -> Any:
    """Where sealed messages lie: each of those that ``offsets`` delimit becomes 16 bytes longer, from 0 on.

    >>> sealed_offsets([0, 3, 3, 10])
    [0, 19, 35, 58]
    """
    if isinstance(offsets, (list, tuple, range)):
        return [at - offsets[0] + 16 * i for i, at in enumerate(offsets)]
    import numpy

    at = numpy.asarray(offsets, dtype=numpy.int64)
    return at - at[0] + 16 * numpy.arange(len(at), dtype=numpy.int64)


def opened_offsets(offsets: Any) -> Any:
    """Where the messages lie once they are opened: the reverse of :func:`sealed_offsets`.

    >>> opened_offsets([0, 19, 35, 58])
    [0, 3, 3, 10]
    """
    if isinstance(offsets, (list, tuple, range)):
        return [at - offsets[0] - 16 * i for i, at in enumerate(offsets)]
    import numpy

    at = numpy.asarray(offsets, dtype=numpy.int64)
    return at - at[0] - 16 * numpy.arange(len(at), dtype=numpy.int64)
