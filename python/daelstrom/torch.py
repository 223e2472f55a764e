# SPDX-License-Identifier: Apache-2.0
"""Encrypted weights for torch: `load_file` and `save_file` as safetensors.torch has them, with a key.

Onto a GPU, ciphertext goes from the file through page-locked memory to where each tensor lies, and is verified and
decrypted there: no plaintext is in the host's memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from . import _core
from .cryptotensors import CHUNK
from .weights import Keys, WeightFile, write_file

__all__ = ["Keys", "load", "load_file", "save_file"]

_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_OF_TYPES = {getattr(torch, name): dtype for dtype, name in _TYPES.items() if hasattr(torch, name)}


def _bytes(tensor: torch.Tensor) -> torch.Tensor | None:
    return tensor.reshape(-1).view(torch.uint8) if tensor.numel() else None


def load_file(
    path: str | os.PathLike[str],
    device: str | int | torch.device = "cpu",
    *,
    key: Any,
    allow_plain: bool = False,
    ignore_policy: bool = False,
    stream: Any = None,
    engine: _core.Engine | None = None,
) -> dict[str, torch.Tensor]:
    """All tensors of a file, on `device`. `key`: what `Keys.of` takes: a JWK set, or the path of one."""
    with WeightFile(path, key, ignore_policy=ignore_policy, engine=engine) as file:
        return _tensors(file, file.keys(), device, allow_plain, stream)


def load(
    data: Any,
    device: str | int | torch.device = "cpu",
    *,
    key: Any,
    allow_plain: bool = False,
    ignore_policy: bool = False,
    stream: Any = None,
    engine: _core.Engine | None = None,
) -> dict[str, torch.Tensor]:
    """As `load_file`, of a file's bytes."""
    with WeightFile.of_bytes(data, key, ignore_policy=ignore_policy, engine=engine) as file:
        return _tensors(file, file.keys(), device, allow_plain, stream)


def _type(name: str, dtype: str) -> torch.dtype:
    if dtype not in _TYPES or not hasattr(torch, _TYPES[dtype]):
        raise ValueError(f"tensor {name!r} has the dtype {dtype}, which this torch has not")
    return getattr(torch, _TYPES[dtype])


def _tensors(
    file: WeightFile, names: Iterable[str], device: Any, allow_plain: bool, stream: Any = None
) -> dict[str, torch.Tensor]:
    tensors, outputs = {}, {}
    for name in names:
        told = file[name]
        tensors[name] = torch.empty(told.shape, dtype=_type(name, told.dtype), device=device)
        view = _bytes(tensors[name])
        outputs[name] = b"" if view is None else view
    file.load_into(outputs, allow_plain=allow_plain, stream=stream)
    return tensors


def getter(device: Any) -> Callable[[WeightFile, str, bool], torch.Tensor]:
    """For `daelstrom.weights.safe_open`: a tensor on a device."""
    return lambda file, name, allow_plain: _tensors(file, [name], device, allow_plain)[name]


def made_of(device: Any) -> Callable[[str, str, tuple[int, ...], Any], torch.Tensor]:
    """For `daelstrom.weights.safe_open`: a part of a tensor on a device, of its bytes."""

    def made(name: str, dtype: str, shape: tuple[int, ...], data: Any) -> torch.Tensor:
        of = _type(name, dtype)
        flat = torch.frombuffer(data, dtype=of) if len(data) else torch.empty(0, dtype=of)
        return flat.reshape(shape).to(device)

    return made


def save_file(
    tensors: Mapping[str, torch.Tensor],
    path: str | os.PathLike[str],
    *,
    key: Any,
    metadata: Mapping[str, str] | None = None,
    chunk_size: int = CHUNK,
    stream: Any = None,
    engine: _core.Engine | None = None,
) -> None:
    """Writes tensors, encrypted and signed; those of a GPU are encrypted there. The file appears when it is whole."""
    rows: dict[str, tuple[str, tuple[int, ...], Any]] = {}
    for name, tensor in tensors.items():
        if tensor.dtype not in _OF_TYPES:
            raise ValueError(f"{name!r} has the dtype {tensor.dtype}, which the format has not")
        if not tensor.is_contiguous():
            raise ValueError(f"{name!r} is not contiguous; pass {name!r}.contiguous()")
        rows[name] = (_OF_TYPES[tensor.dtype], tuple(tensor.shape), _bytes(tensor.detach()))
    write_file(rows, path, key=key, metadata=metadata, chunk_size=chunk_size, stream=stream, engine=engine)
