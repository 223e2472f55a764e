# SPDX-License-Identifier: Apache-2.0
"""What the compiled module asks of other people's tensors, where they have no C interface for it."""

from __future__ import annotations

from typing import Any

_CPU = (1, 3)  # DLPack's kinds of memory that the host reads: its own, and CUDA's page-locked


def _library(tensor: Any) -> str:
    return type(tensor).__module__.partition(".")[0]


def _current_stream(tensor: Any) -> int:
    """The stream that the tensor's library is working on; 0 is CUDA's default stream."""
    library = _library(tensor)
    if library == "torch":
        import torch

        return int(torch.cuda.current_stream(tensor.device).cuda_stream)
    if library == "cupy":
        import cupy

        with tensor.device:
            return int(cupy.cuda.get_current_stream().ptr)
    return 0


def take(tensor: Any) -> tuple[Any, int]:
    """A DLPack capsule, and the stream on which the tensor may be used."""
    if tensor.__dlpack_device__()[0] in _CPU:
        return _capsule(tensor), 0
    stream = _current_stream(tensor)
    # DLPack's word for CUDA's default stream is 1; 0 is refused as ambiguous.
    return _capsule(tensor, stream=stream or 1), stream


def _capsule(tensor: Any, **how: Any) -> Any:
    try:
        return tensor.__dlpack__(max_version=(1, 0), **how)
    except TypeError:  # a producer from before DLPack 1.0
        return tensor.__dlpack__(**how)


def read_interface(tensor: Any) -> tuple[int, int, bool, bool, int]:
    """Of the CUDA array interface: pointer, bytes, whether it is contiguous, whether it is read-only, stream."""
    said = tensor.__cuda_array_interface__
    item = int(said["typestr"][2:])
    shape = said["shape"]
    elements = 1
    for extent in shape:
        elements *= extent
    contiguous = True
    strides = said.get("strides")
    if strides is not None and elements:
        expected = item
        for extent, stride in zip(reversed(shape), reversed(strides)):
            contiguous = contiguous and (extent == 1 or stride == expected)
            expected *= extent
    pointer, read_only = said["data"]
    return int(pointer), elements * item, contiguous, bool(read_only), int(said.get("stream") or 0)


def stream(given: Any) -> int:
    """The pointer of a stream: a number, torch's, cupy's, or what has ``__cuda_stream__``."""
    if isinstance(given, int):
        return given
    protocol = getattr(given, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(given, name, None)
        if isinstance(value, int):
            return value
    raise TypeError(
        f"stream is {type(given).__name__}; give a stream of torch or cupy, or its pointer as a number"
    )


def new_bytes(like: Any, size: int) -> Any:
    """A tensor of so many bytes, of the library and on the device of another."""
    library = _library(like)
    if library == "torch":
        import torch

        return torch.empty(size, dtype=torch.uint8, device=like.device)
    if library == "cupy":
        import cupy

        with like.device:
            return cupy.empty(size, dtype=cupy.uint8)
    raise TypeError(
        f"daelstrom makes no new tensors of {library}; give out=, memory to write to"
    )


def empty_like(like: Any) -> Any:
    """A tensor of the same shape and type."""
    library = _library(like)
    if library == "torch":
        import torch

        return torch.empty_like(like, requires_grad=False)
    if library == "cupy":
        import cupy

        with like.device:
            return cupy.empty_like(like)
    raise TypeError(
        f"daelstrom makes no new tensors of {library}; give out=, memory to write to"
    )


def new_array(like: Any, size: int) -> Any:
    """Room for a batch's results: numpy's on the host, else a tensor of bytes where another one lies."""
    if _library(like) in ("torch", "cupy"):
        return new_bytes(like, size)
    try:
        import numpy
    except ImportError:
        return bytearray(size)
    return numpy.empty(size, numpy.uint8)
