# SPDX-License-Identifier: Apache-2.0
"""Encrypted weights in the CryptoTensors format (docs/python/weights.md): into memory that is there already, into
numpy arrays, and out of them. `daelstrom.torch` has the same for torch and GPUs.

Tensors are opened where they lie: on the host the file is read into their memory and decrypted in place by all cores,
on a GPU ciphertext is copied there and decrypted by it. Each byte is verified before a call returns; one that fails
leaves zeros.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from ._appear import Appearing
from .cryptotensors import CHUNK, DTYPES, Encrypted, Header, Keys, Tensor, read_header
from .exceptions import FormatError, InvalidTag

if TYPE_CHECKING:
    import numpy
    from typing_extensions import Self

# Bytes that are moved at a time; 0: what suits most machines.
_WINDOW = 0

__all__ = ["Keys", "WeightFile", "load_file", "save_file", "write_file"]

Path = str | os.PathLike[str]

_NUMPY = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?", "C64": "<c8",
}  # fmt: skip
_OF_NUMPY = {name.replace("<", "").replace("?", "b1"): dtype for dtype, name in _NUMPY.items()}


class WeightFile:
    """An encrypted file of tensors, its header verified. Any number of threads at once."""

    def __init__(
        self, path: Path, key: Any, *, ignore_policy: bool = False, engine: _core.Engine | None = None
    ) -> None:
        self.name = os.fspath(path)
        self._engine = engine
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            keys = Keys.of(key)
            self.header, self._data = read_header(self._fd, keys, ignore_policy=ignore_policy)
            names = [name for name, tensor in self.header.tensors.items() if tensor.encrypted]
            self._key_of = {name: index for index, name in enumerate(names)}
            _, master = keys.master(self.header.encryption_key)
            opened = _core.weights_unwrap(
                master, [self.header.tensors[name].encrypted.wrapped for name in names], engine=engine  # type: ignore[union-attr]
            ) if names else None  # fmt: skip
            if isinstance(opened, int):
                raise InvalidTag(f"{self.name!r}: the key of tensor {names[opened]!r} does not open: another master key")
            self._keys = opened if opened is not None else _core.KeySet([master], engine=engine)
        except BaseException:
            os.close(self._fd)
            self._fd = -1
            raise

    @property
    def metadata(self) -> dict[str, str]:
        """What the writer said of the file, without the format's own."""
        return dict(self.header.metadata)

    def keys(self) -> list[str]:
        """The tensors' names, in the order of their data."""
        return list(self.header.tensors)

    def __getitem__(self, name: str) -> Tensor:
        return self.header.tensors[name]

    def load_into(self, outputs: Mapping[str, Any], *, allow_plain: bool = False, stream: Any = None) -> None:
        """Opens tensors into memory of their sizes: buffers, or tensors, all on the host or all on one GPU.

        Tensors that the writer left unencrypted are not authenticated by anything in the format, and are refused
        unless `allow_plain`. Raises `InvalidTag`, which names the tensor and the chunk; all outputs are then wiped.
        """
        if self._fd < 0:
            raise ValueError("the file is closed")
        rows = []
        for name, out in outputs.items():
            tensor = self.header.tensors.get(name)
            if tensor is None:
                raise KeyError(f"{self.name!r} has no tensor {name!r}")
            at = self._data + tensor.begin
            size = _size(out)
            if size != tensor.size:
                raise ValueError(f"tensor {name!r} has {tensor.size} bytes; its output has {size}")
            if tensor.encrypted is None:
                if not allow_plain:
                    raise FormatError(
                        f"tensor {name!r} is not encrypted, and so not authenticated: anybody may have changed it. "
                        "allow_plain=True loads it all the same"
                    )
                rows.append((at, out, -1, b"", b"", 0))
            elif tensor.encrypted.iv:  # what has no bytes is not encrypted in version 1
                e, chunk = tensor.encrypted, self.header.chunk or 0
                rows.append((at, out if size else None, self._key_of[name], e.iv, e.tags, chunk))
        failed = _core.weights_open(self._keys, self._fd, rows, stream=stream, window=_WINDOW)
        if failed is not None:
            row, chunk = failed
            (name,) = (n for n, t in self.header.tensors.items() if self._data + t.begin == rows[row][0] and _is(t, rows[row]))
            raise InvalidTag(f"{self.name!r}: chunk {chunk} of tensor {name!r} is not authentic: it was altered")

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()


def _is(tensor: Tensor, row: Any) -> bool:
    return tensor.encrypted is not None and tensor.encrypted.tags is row[4]


def _size(out: Any) -> int:
    nbytes = getattr(out, "nbytes", None)
    return int(nbytes) if nbytes is not None else memoryview(out).nbytes


def load_file(
    path: Path, *, key: Any, allow_plain: bool = False, ignore_policy: bool = False, engine: _core.Engine | None = None
) -> dict[str, numpy.ndarray[Any, Any]]:
    """All tensors of a file as numpy arrays. `key`: what `Keys.of` takes: a JWK set, or the path of one."""
    import numpy

    with WeightFile(path, key, ignore_policy=ignore_policy, engine=engine) as file:
        arrays = {name: numpy.empty(tensor.shape, _numpy_type(name, tensor.dtype)) for name, tensor in file.header.tensors.items()}
        file.load_into({name: array.reshape(-1) for name, array in arrays.items()}, allow_plain=allow_plain)
        return arrays


def save_file(
    tensors: Mapping[str, numpy.ndarray[Any, Any]],
    path: Path,
    *,
    key: Any,
    metadata: Mapping[str, str] | None = None,
    chunk_size: int = CHUNK,
    engine: _core.Engine | None = None,
) -> None:
    """Writes numpy arrays, encrypted and signed. The file appears when it is whole."""
    import numpy

    rows: dict[str, tuple[str, tuple[int, ...], Any]] = {}
    for name, array in tensors.items():
        kind = array.dtype.newbyteorder("=").str[1:] if array.dtype.names is None else ""
        dtype = _OF_NUMPY.get(kind) or ("BF16" if array.dtype.name == "bfloat16" else None)
        if dtype is None:
            raise ValueError(f"{name!r} has the dtype {array.dtype}, which the format has not")
        little = numpy.ascontiguousarray(array, array.dtype.newbyteorder("<") if dtype != "BF16" else None)
        rows[name] = (dtype, tuple(array.shape), little.reshape(-1).view("u1") if little.size else None)
    write_file(rows, path, key=key, metadata=metadata, chunk_size=chunk_size, engine=engine)


def write_file(
    tensors: Mapping[str, tuple[str, tuple[int, ...], Any]],
    path: Path,
    *,
    key: Any,
    metadata: Mapping[str, str] | None = None,
    chunk_size: int = CHUNK,
    stream: Any = None,
    engine: _core.Engine | None = None,
) -> None:
    """Writes tensors given as (dtype, shape, memory): memory is bytes in C order, on the host or on one GPU, and None
    for a tensor that has none."""
    if not isinstance(chunk_size, int) or chunk_size <= 0:
        raise ValueError(f"chunk_size is {chunk_size!r}; it is a number of bytes above 0")
    for name, value in (metadata or {}).items():
        if name.startswith("__") or not isinstance(name, str) or not isinstance(value, str):
            raise ValueError(f"metadata {name!r}: names and values are strings, and names do not begin with __")
    if "__metadata__" in tensors:
        raise ValueError("no tensor may be named __metadata__")
    keys = Keys.of(key)
    enc, master = keys.master()
    sign, signer = keys.signer()
    placed, at = {}, 0
    # Large elements first, so that all are aligned.
    for name, (dtype, shape, memory) in sorted(tensors.items(), key=lambda item: (-DTYPES[item[1][0]], item[0])):
        size = 0 if memory is None else _size(memory)
        placed[name] = Tensor(dtype, shape, at, at + size)
        at += size
    header = Header(placed, dict(metadata or {}), chunk_size, _named(enc), _named(sign))
    own, wrapped = _core.weights_keys(master, len(placed), engine=engine) if placed else (None, [])
    tags = {}
    for (name, tensor), key_of_it in zip(placed.items(), wrapped):
        tags[name] = bytearray(16 * header.chunks(tensor))
        # Each tensor has a key of its own; a counter that begins at 0 does not pass its end.
        tensor.encrypted = Encrypted(key_of_it, os.urandom(8) + bytes(4), bytes(tags[name]))
    begin = len(header.write(signer))  # tags have the same size, whatever they are
    file = Appearing(path, replace=True)
    try:
        rows = []
        for index, (name, tensor) in enumerate(placed.items()):
            assert tensor.encrypted is not None
            memory = tensors[name][2] if tensor.size else None
            rows.append((begin + tensor.begin, memory, index, tensor.encrypted.iv, tags[name], chunk_size))
        if own is not None:
            _core.weights_seal(own, file.fileno(), rows, stream=stream, window=_WINDOW)
        for name, tensor in placed.items():
            assert tensor.encrypted is not None
            tensor.encrypted.tags = bytes(tags[name])
        file.write(header.write(signer))
        file.appear()
    except BaseException:
        file.discard()
        raise


def _named(jwk: Mapping[str, Any]) -> dict[str, Any]:
    """What a header tells of a key: nothing secret."""
    return {name: jwk[name] for name in ("kty", "alg", "kid", "jku") if jwk.get(name) is not None}


def _numpy_type(name: str, dtype: str) -> Any:
    if dtype in _NUMPY:
        return _NUMPY[dtype]
    if dtype == "BF16":
        try:
            import ml_dtypes

            return ml_dtypes.bfloat16
        except ImportError:
            pass
    raise ValueError(f"tensor {name!r} has the dtype {dtype}, which numpy has not; daelstrom.torch loads it")

