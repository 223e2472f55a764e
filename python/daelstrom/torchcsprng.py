# SPDX-License-Identifier: Apache-2.0
"""torchcsprng's ``encrypt`` and ``decrypt``, byte for byte, for tensors of today's torch: ``import
daelstrom.torchcsprng as csprng``. Arrays of numpy and cupy are taken too.

Its generators, which ended with torch 1.8, took the place of torch's own; ``daelstrom.random.Generator`` fills tensors
instead.

Safety: in ``ctr`` each message begins with counter 0, so a key encrypts one message and no more. For other needs there
are ``daelstrom.ctr`` and ``AESGCM``.
"""

from __future__ import annotations

from typing import Any, NoReturn

from . import _core
from ._arrays import Arrays, arrays_of
from .exceptions import UnsupportedAlgorithm

__all__ = ["create_mt19937_generator", "create_random_device_generator", "decrypt", "encrypt", "supports_cuda"]

_BLOCK = 16
_KEY_SIZES = {"aes128": 16, "aes192": 24, "aes256": 32}
_ECB = 0
_STEP = 1 << 22  # blocks whose counters are made at a time


def supports_cuda() -> bool:
    """Whether this build of daelstrom has CUDA, and there is a GPU."""
    return any(row["present"] for row in _core.list_backends() if str(row["name"]).startswith("cuda"))


def encrypt(input: Any, output: Any, key: Any, cipher: str, mode: str) -> Any:
    """Encrypts a tensor of any type into another one, whose bytes are the input's, rounded up to whole blocks; what is
    missing of the last one is taken as zeros. ``cipher`` is "aes128" (here also "aes192" and "aes256"), ``mode`` "ecb"
    or "ctr", with a little-endian counter that begins with 0."""
    size, room = _nbytes(input), _nbytes(output)
    rounded = -(-size // _BLOCK) * _BLOCK
    if room != rounded:
        raise RuntimeError(
            f"output size in bytes({room}) is not equal to input size in bytes rounded to block size({rounded})"
        )
    return _crypt(input, output, key, cipher, mode, decrypts=False)


def decrypt(input: Any, output: Any, key: Any, cipher: str, mode: str) -> Any:
    """The reverse: ``output`` may be up to 15 bytes shorter than ``input``."""
    size, room = _nbytes(input), _nbytes(output)
    if not 0 <= size - room < _BLOCK:
        raise RuntimeError(
            "output tensor size in bytes must be less then or equal to input tensor size in bytes, "
            "the difference must be less than block size"
        )
    if size % _BLOCK:
        raise RuntimeError("input tensor size in bytes must divisible by cipher block size in bytes")
    return _crypt(input, output, key, cipher, mode, decrypts=True)


def create_random_device_generator(token: str = "") -> NoReturn:
    """Absent: raises UnsupportedAlgorithm."""
    _no_generators()


def create_mt19937_generator(seed: int = 0) -> NoReturn:
    """Absent: raises UnsupportedAlgorithm."""
    _no_generators()


def _no_generators() -> NoReturn:
    raise UnsupportedAlgorithm(
        "torch's generators have no place for others since torch 1.9; daelstrom.random.Generator(key) fills tensors: "
        "generator.normal(out=tensor)"
    )


def _nbytes(array: Any) -> int:
    return int(array.nbytes)


def _crypt(input: Any, output: Any, key: Any, cipher: str, mode: str, decrypts: bool) -> Any:
    if cipher not in _KEY_SIZES:
        raise RuntimeError(f'encrypt/decrypt supports "aes128" cipher, "{cipher}" is not supported.')
    if mode not in ("ecb", "ctr"):
        raise RuntimeError(f'encrypt/decrypt supports "ecb" and "ctr" modes, "{mode}" is not supported.')
    arrays = arrays_of(input)
    devices = {str(getattr(array, "device", "")) for array in (input, output, key)}
    if len(devices) > 1:
        raise RuntimeError("input, output and key tensors must have the same device")
    ready = _import_key(arrays, key, _KEY_SIZES[cipher])
    # The message in whole blocks, in memory of its own where it has to be completed or lies scattered.
    source = arrays.view(arrays.flat(_contiguous(input)), "uint8")
    size = -(-len(source) // _BLOCK) * _BLOCK
    target = output if _is_contiguous(output) else None
    work = arrays.empty(size, "uint8", input)
    work[: len(source)] = source
    work[len(source) :] = 0
    if size:
        if mode == "ecb":
            _core.crypt(_ECB, int(decrypts), ready, None, work, out=work)
        else:
            _add_keystream(arrays, ready, work)
    room = _nbytes(output)
    if target is not None:
        arrays.view(arrays.flat(target), "uint8")[:] = work[:room]
    else:
        output[...] = arrays.view(work[:room], arrays.kind(output)).reshape(output.shape)
    return output


def _import_key(arrays: Arrays, key: Any, size: int) -> _core.Key:
    raw = arrays.view(arrays.flat(_contiguous(key)), "uint8")
    if len(raw) != size:
        raise RuntimeError(f"key tensor must have {size} bytes({8 * size} bits)")
    return _core.Key(bytes(raw.tolist()))


def _add_keystream(arrays: Arrays, key: _core.Key, work: Any) -> None:
    """The counter is little-endian, in the block's first 8 bytes: the blocks are made, encrypted and added."""
    words = arrays.view(work, "int64")
    blocks = len(work) // _BLOCK
    for at in range(0, blocks, _STEP):
        count = min(_STEP, blocks - at)
        counters = arrays.empty(2 * count, "int64", work)
        counters[1::2] = 0
        counters[0::2] = arrays.counting(at, count, work)
        _core.crypt(_ECB, 0, key, None, counters, out=counters)
        words[2 * at : 2 * (at + count)] ^= counters


def _is_contiguous(array: Any) -> bool:
    if hasattr(array, "is_contiguous"):
        return bool(array.is_contiguous())
    return bool(array.flags.c_contiguous)


def _contiguous(array: Any) -> Any:
    if hasattr(array, "contiguous"):
        return array.contiguous()
    return array if array.flags.c_contiguous else array.copy()
