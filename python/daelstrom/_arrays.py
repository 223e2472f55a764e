# SPDX-License-Identifier: Apache-2.0
"""The few operations on arrays that daelstrom's own arithmetic takes, alike for numpy, cupy and torch.

Each is one rounding of IEEE 754 or none, so that results are the same to the bit wherever an array lies.
"""

from __future__ import annotations

from typing import Any, Protocol


class Arrays(Protocol):
    """What there is of each library."""

    gathers: bool  # whether working on a few elements alone saves time, as it does on the host

    def flat(self, array: Any) -> Any:
        """The elements of a contiguous array, in one row, in the same memory."""

    def kind(self, array: Any) -> str:
        """The name of its type: "float64"."""

    def view(self, array: Any, kind: str) -> Any:
        """The same bits as another type of the same size."""

    def cast(self, array: Any, kind: str) -> Any:
        """The same numbers as another type."""

    def empty(self, count: int, kind: str, like: Any) -> Any:
        """New memory where `like` lies."""

    def counting(self, first: int, count: int, like: Any) -> Any:
        """`count` whole numbers of 64 bits from `first` on, where `like` lies."""

    def where(self, condition: Any, yes: Any, no: Any) -> Any: ...
    def indices(self, condition: Any) -> Any:
        """Where it is true."""

    def chunk(self, array: Any) -> int:
        """Elements to work on at a time: what fits a cache, or keeps a GPU busy."""


_HOST_CHUNK, _DEVICE_CHUNK = 1 << 16, 1 << 24


class _NumpyLike:
    def __init__(self, module: Any, chunk: int) -> None:
        self.gathers = chunk == _HOST_CHUNK
        self._module = module
        self._chunk = chunk

    def flat(self, array: Any) -> Any:
        if not array.flags.c_contiguous:
            raise BufferError("out is not contiguous")
        return array.reshape(-1)

    def kind(self, array: Any) -> str:
        return str(array.dtype)

    def view(self, array: Any, kind: str) -> Any:
        return array.view(kind)

    def cast(self, array: Any, kind: str) -> Any:
        return array.astype(kind)

    def empty(self, count: int, kind: str, like: Any) -> Any:
        return self._module.empty(count, kind)

    def counting(self, first: int, count: int, like: Any) -> Any:
        return self._module.arange(first, first + count, dtype="int64")

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return self._module.where(condition, yes, no)

    def indices(self, condition: Any) -> Any:
        return self._module.flatnonzero(condition)

    def chunk(self, array: Any) -> int:
        return self._chunk


class _Torch:
    gathers = False

    def __init__(self, module: Any) -> None:
        self._module = module

    def flat(self, array: Any) -> Any:
        if not array.is_contiguous():
            raise BufferError("out is not contiguous")
        return array.detach().view(-1)

    def kind(self, array: Any) -> str:
        return str(array.dtype).removeprefix("torch.")

    def view(self, array: Any, kind: str) -> Any:
        return array.view(getattr(self._module, kind))

    def cast(self, array: Any, kind: str) -> Any:
        return array.to(getattr(self._module, kind))

    def empty(self, count: int, kind: str, like: Any) -> Any:
        return self._module.empty(count, dtype=getattr(self._module, kind), device=like.device)

    def counting(self, first: int, count: int, like: Any) -> Any:
        return self._module.arange(first, first + count, dtype=self._module.int64, device=like.device)

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return self._module.where(condition, yes, no)

    def indices(self, condition: Any) -> Any:
        return self._module.nonzero(condition).view(-1)

    def chunk(self, array: Any) -> int:
        return _DEVICE_CHUNK if array.is_cuda else _HOST_CHUNK


def arrays_of(array: Any) -> Arrays:
    """The library that an array is of."""
    library = type(array).__module__.partition(".")[0]
    if library == "numpy":
        import numpy

        return _NumpyLike(numpy, _HOST_CHUNK)
    if library == "cupy":
        import cupy

        return _NumpyLike(cupy, _DEVICE_CHUNK)
    if library == "torch":
        import torch

        return _Torch(torch)
    raise TypeError(f"out is {type(array).__name__}; give an array of numpy, cupy or torch")
