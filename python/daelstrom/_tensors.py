# SPDX-License-Identifier: Apache-2.0
"""What the compiled module asks of other people's tensors, where they have no C interface for it."""

from __future__ import annotations

from typing import Any, NoReturn

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


def _in_stream_order(tensor: Any) -> bool:
    """Whether its library hands freed memory on in the order of the stream that is used here."""
    return _library(tensor) in ("torch", "cupy")


def take(tensor: Any, name: str) -> tuple[Any, int, bool]:
    """A DLPack capsule, the stream on which the tensor may be used, and whether its memory is handed on in that
    stream's order."""
    if getattr(tensor, "requires_grad", False) is True:
        tensor = tensor.detach()  # as it lies; what is to be written to was refused before
    try:
        if tensor.__dlpack_device__()[0] in _CPU:
            return _capsule(tensor), 0, True
        stream = _current_stream(tensor)
        # DLPack's word for CUDA's default stream is 1; 0 is refused as ambiguous.
        return _capsule(tensor, stream=stream or 1), stream, _in_stream_order(tensor)
    except (BufferError, RuntimeError, ValueError, NotImplementedError) as error:
        refuse(tensor, name, error)


def refuse(tensor: Any, name: str, error: Any) -> NoReturn:
    """Of a tensor that its library does not show as memory: why."""
    if isinstance(error, (MemoryError, TypeError)):
        raise error
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if getattr(tensor, "is_nested", False) is True:
        why = "is a nested tensor; pass its values"
    elif layout != "torch.strided":
        why = f"is a sparse tensor ({layout}); pass {name}.to_dense(), or its values"
    elif getattr(tensor, "is_quantized", False) is True:
        why = f"is a quantized tensor; pass {name}.int_repr()"
    elif getattr(tensor, "is_meta", False) is True:
        why = "is a meta tensor, which has a shape and no data"
    else:
        said = str(error).strip().partition("\n")[0] if error is not None else "no reason given"
        why = f"is not shown as memory by {_library(tensor)}: {said}"
    raise BufferError(f"{name} {why}") from error


def _capsule(tensor: Any, **how: Any) -> Any:
    try:
        return tensor.__dlpack__(max_version=(1, 0), **how)
    except TypeError:  # a producer from before DLPack 1.0
        return tensor.__dlpack__(**how)


_KINDS = "biufcmMVS"  # numpy's letters for types that are as many bytes as their number says


def read_interface(tensor: Any, name: str = "array") -> tuple[int, int, bool, bool, int, bool]:
    """Of the CUDA array interface: pointer, bytes, whether it is contiguous, whether it is read-only, stream, and
    whether its memory is handed on in that stream's order."""
    said = tensor.__cuda_array_interface__
    kind = said["typestr"]
    if kind[1] not in _KINDS:
        raise BufferError(f"{name} holds elements of type {kind!r}; pass an array of numbers")
    if said.get("mask") is not None:
        raise BufferError(f"{name} is masked; pass its data and its mask one by one")
    item = int(kind[2:])
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
    size = elements * item
    if not 0 <= size < 1 << 48 or (size and not pointer):
        raise BufferError(f"{name} is said to have {size} bytes at {pointer}")
    stream = int(said.get("stream") or 0)
    return int(pointer or 0), size, contiguous, bool(read_only), stream, _in_stream_order(tensor)


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
