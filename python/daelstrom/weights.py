# SPDX-License-Identifier: Apache-2.0
"""Encrypted weights in the CryptoTensors format (docs/python/weights.md): into memory that is there already, into
numpy arrays, and out of them. `daelstrom.torch` has the same for torch and GPUs.

Tensors are opened where they lie: on the host the file is read into their memory and decrypted in place by all cores,
on a GPU ciphertext is copied there and decrypted by it. Each byte is verified before a call returns; one that fails
leaves zeros.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from ._appear import Appearing
from ._turns import Turns
from ._writer import bytes_of
from .cryptotensors import CHUNK, DTYPES, Encrypted, Header, Keys, Tensor, read_header, size_of
from .exceptions import FormatError, InvalidTag

if TYPE_CHECKING:
    import numpy
    from typing_extensions import Self

# Bytes that are moved at a time; 0: what suits most machines.
_WINDOW = 0

__all__ = ["Keys", "Slice", "WeightFile", "load", "load_file", "safe_open", "save_file", "write_file"]

Path = str | os.PathLike[str]

_NUMPY = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?", "C64": "<c8",
}  # fmt: skip
_OF_NUMPY = {name.replace("<", "").replace("?", "b1"): dtype for dtype, name in _NUMPY.items()}


class WeightFile(Turns):
    """An encrypted file of tensors, its header verified. It is the file that was opened, whatever has its name since.

    *Threads*: any number at once; they do not wait for each other.
    *close() during use*: a load that is under way ends well; a later one is a ValueError.
    *Children of fork()* load on from the same file.
    """

    _fd = -1

    def __init__(
        self, path: Path, key: Any, *, ignore_policy: bool = False, engine: _core.Engine | None = None
    ) -> None:
        self._begin(os.fspath(path), os.open(path, os.O_RDONLY | os.O_CLOEXEC), key, ignore_policy, engine)

    @classmethod
    def of_bytes(
        cls, data: Any, key: Any, *, ignore_policy: bool = False, engine: _core.Engine | None = None
    ) -> Self:
        """What such a file's bytes hold, which are copied."""
        file = cls.__new__(cls)
        fd = os.memfd_create("weights", os.MFD_CLOEXEC)
        try:
            with bytes_of(data) as view:
                done = 0
                while done < len(view):
                    done += os.pwrite(fd, view[done : done + (1 << 30)], done)
        except BaseException:
            os.close(fd)
            raise
        file._begin("<bytes>", fd, key, ignore_policy, engine)
        return file

    def _begin(self, name: str, fd: int, key: Any, ignore_policy: bool, engine: _core.Engine | None) -> None:
        self.name, self._fd, self._engine = name, fd, engine
        self._begin_turns()
        try:
            keys = Keys.of(key)
            size = os.fstat(fd).st_size
            self.header, self._data = read_header(
                lambda at, size: os.pread(fd, size, at), size, keys, ignore_policy=ignore_policy
            )
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
            self.close()
            raise

    @property
    def metadata(self) -> dict[str, str]:
        """What the writer said of the file, without the format's own."""
        return dict(self.header.metadata)

    def keys(self) -> list[str]:
        """The tensors' names, in the order of their data."""
        return list(self.header.tensors)

    def __getitem__(self, name: str) -> Tensor:
        tensor = self.header.tensors.get(name)
        if tensor is None:
            raise KeyError(f"{self.name!r} has no tensor {name!r}")
        return tensor

    def chunks_around(self, name: str, at: int, size: int) -> tuple[int, int]:
        """Where the chunks begin that hold `size` bytes of a tensor from byte `at` on, and how many bytes they have:
        what `load_part` opens. Of version 1 that is all of the tensor."""
        tensor = self[name]
        if at < 0 or size < 0 or at + size > tensor.size:
            raise ValueError(f"tensor {name!r} has {tensor.size} bytes; {size} from byte {at} on pass its end")
        chunk = self.header.chunk
        if chunk is None or tensor.encrypted is None:
            return 0, tensor.size
        if size == 0 and tensor.size != 0:
            return at, 0
        first = at // chunk * chunk
        return first, min(tensor.size, -(-(at + size) // chunk) * chunk) - first

    def load_part(self, name: str, at: int, out: Any, *, allow_plain: bool = False, stream: Any = None) -> None:
        """Opens some chunks of a tensor, from byte `at` on, into memory of their size (`chunks_around`). Errors: as
        `load_into`."""
        size = _size(out)
        if self.chunks_around(name, at, size) != (at, size):
            raise ValueError(f"bytes {at} to {at + size} of tensor {name!r} are not whole chunks of it")
        self._load({name: (at, out)}, allow_plain, stream)

    def load_into(self, outputs: Mapping[str, Any], *, allow_plain: bool = False, stream: Any = None) -> None:
        """Opens tensors into memory of their sizes: buffers, or tensors, all on the host or all on one GPU.

        Tensors that the writer left unencrypted are not authenticated by anything in the format, and are refused
        unless `allow_plain`. Raises `InvalidTag`, which names the tensor and the chunk; all outputs are then wiped.
        """
        for name, out in outputs.items():
            if (size := _size(out)) != self[name].size:
                raise ValueError(f"tensor {name!r} has {self[name].size} bytes; its output has {size}")
        self._load({name: (0, out) for name, out in outputs.items()}, allow_plain, stream)

    def _load(self, outputs: Mapping[str, tuple[int, Any]], allow_plain: bool, stream: Any) -> None:
        rows: list[tuple[Any, ...]] = []
        of: list[tuple[str, int]] = []
        for name, (begin, out) in outputs.items():
            tensor, size = self[name], _size(out)
            at = self._data + tensor.begin + begin
            if size == 0 and tensor.size != 0:
                continue
            if tensor.encrypted is None:
                if not allow_plain:
                    raise FormatError(
                        f"tensor {name!r} is not encrypted, and so not authenticated: anybody may have changed it. "
                        "allow_plain=True loads it all the same"
                    )
                rows.append((at, out, -1, b"", b"", 0))
                of.append((name, 0))
            elif tensor.encrypted.iv:  # what has no bytes is not encrypted in version 1
                e, chunk = tensor.encrypted, self.header.chunk or 0
                first = begin // chunk if chunk else 0
                tags = e.tags[16 * first : 16 * (first + max(1, -(-size // chunk)))] if chunk else e.tags
                count = int.from_bytes(e.iv[8:], "big") + first
                if count >> 32:
                    raise FormatError(f"the IVs of tensor {name!r} pass their counter's end")
                iv = e.iv[:8] + count.to_bytes(4, "big")
                rows.append((at, out if size else None, self._key_of[name], iv, tags, chunk))
                of.append((name, first))
        with self._turn():
            if self._fd < 0:
                raise ValueError("the file is closed")
            keys, fd = self._keys, os.dup(self._fd)
        try:
            failed = _core.weights_open(keys, fd, rows, stream=stream, window=_WINDOW)
        finally:
            os.close(fd)
        if failed is not None:
            row, number = failed
            name, first = of[row]
            raise InvalidTag(f"{self.name!r}: chunk {first + number} of tensor {name!r} is not authentic: it was altered")

    def close(self) -> None:
        with self._turn():
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if self._fd >= 0:
            self.close()

    def __repr__(self) -> str:
        return f"<daelstrom.WeightFile name={self.name!r}{' closed' if self._fd < 0 else ''}>"


class Slice:
    """A tensor of an open file that is loaded in parts: ``part[10:20]``, ``part[:, 5]``. Of its first dimension only the
    chunks are read and opened that hold what is wanted. Threads, close(), fork(): as `WeightFile`."""

    def __init__(self, file: WeightFile, name: str, made: Callable[[str, str, tuple[int, ...], Any], Any], plain: bool) -> None:
        self._file, self._name, self._made, self._plain = file, name, made, plain
        self._tensor = file[name]

    def get_shape(self) -> list[int]:
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        return self._tensor.dtype

    def __getitem__(self, index: Any) -> Any:
        shape = self._tensor.shape
        rest = index if isinstance(index, tuple) else (index,)
        first, begin, stop = rest[0] if rest else Ellipsis, 0, shape[0] if shape else 1
        if isinstance(first, slice) and first.step in (None, 1) and shape:
            begin, stop, _ = first.indices(shape[0])
            stop = max(begin, stop)
            rest = (slice(None), *rest[1:])
        elif isinstance(first, int) and shape:
            begin = first + shape[0] if first < 0 else first
            if not 0 <= begin < shape[0]:
                raise IndexError(f"{first} is no index of {shape[0]} rows of {self._name!r}")
            stop, rest = begin + 1, (0, *rest[1:])
        row = self._tensor.size // shape[0] if shape and shape[0] else self._tensor.size
        at, size = self._file.chunks_around(self._name, begin * row, (stop - begin) * row)
        held = bytearray(size)
        self._file.load_part(self._name, at, held, allow_plain=self._plain)
        wanted = held[begin * row - at : stop * row - at]
        part = self._made(self._name, self._tensor.dtype, (stop - begin, *shape[1:]) if shape else shape, wanted)
        return part[rest] if shape else part


class safe_open:  # noqa: N801 (safetensors' name)
    """As safetensors' `safe_open`, with a key: tensors one by one, or parts of them, all verified.

    `framework`: "np" or "pt". `device`: for "pt". Threads, close() (`__exit__`) and children of fork(): as `WeightFile`.
    """

    def __init__(
        self,
        filename: Path,
        framework: str = "np",
        device: Any = "cpu",
        *,
        key: Any,
        allow_plain: bool = False,
        ignore_policy: bool = False,
        engine: _core.Engine | None = None,
    ) -> None:
        if framework in ("pt", "torch", "pytorch"):
            from . import torch

            self._made, self._get = torch.made_of(device), torch.getter(device)
        elif framework in ("np", "numpy"):
            self._made, self._get = _made, _get
        else:
            raise ValueError(f"framework is {framework!r}; it is 'np' or 'pt'")
        self._file, self._plain = WeightFile(filename, key, ignore_policy=ignore_policy, engine=engine), allow_plain

    def keys(self) -> list[str]:
        return sorted(self._file.keys())

    def offset_keys(self) -> list[str]:
        """The names in the order of their data."""
        return self._file.keys()

    def metadata(self) -> dict[str, str] | None:
        return self._file.metadata or None

    def get_tensor(self, name: str) -> Any:
        return self._get(self._file, name, self._plain)

    def get_slice(self, name: str) -> Slice:
        return Slice(self._file, name, self._made, self._plain)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()


def _made(name: str, dtype: str, shape: tuple[int, ...], data: Any) -> Any:
    import numpy

    return numpy.frombuffer(data, _numpy_type(name, dtype)).reshape(shape)


def _get(file: WeightFile, name: str, allow_plain: bool) -> Any:
    return _arrays(file, [name], allow_plain)[name]


def _arrays(file: WeightFile, names: Iterable[str], allow_plain: bool) -> dict[str, Any]:
    import numpy

    arrays = {name: numpy.empty(file[name].shape, _numpy_type(name, file[name].dtype)) for name in names}
    file.load_into({name: array.reshape(-1) for name, array in arrays.items()}, allow_plain=allow_plain)
    return arrays


def _size(out: Any) -> int:
    nbytes = getattr(out, "nbytes", None)
    return int(nbytes) if nbytes is not None else memoryview(out).nbytes


def load_file(
    path: Path, *, key: Any, allow_plain: bool = False, ignore_policy: bool = False, engine: _core.Engine | None = None
) -> dict[str, numpy.ndarray[Any, Any]]:
    """All tensors of a file as numpy arrays. `key`: what `Keys.of` takes: a JWK set, or the path of one."""
    with WeightFile(path, key, ignore_policy=ignore_policy, engine=engine) as file:
        return _arrays(file, file.keys(), allow_plain)


def load(
    data: Any, *, key: Any, allow_plain: bool = False, ignore_policy: bool = False, engine: _core.Engine | None = None
) -> dict[str, numpy.ndarray[Any, Any]]:
    """As `load_file`, of a file's bytes."""
    with WeightFile.of_bytes(data, key, ignore_policy=ignore_policy, engine=engine) as file:
        return _arrays(file, file.keys(), allow_plain)


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
    for name, (dtype, shape, memory) in tensors.items():
        if dtype not in DTYPES:
            raise ValueError(f"tensor {name!r} has the dtype {dtype!r}, which the format has not")
        if len(shape) > 64 or not all(isinstance(extent, int) and extent >= 0 for extent in shape):
            raise ValueError(f"tensor {name!r} has the shape {shape!r}; it is up to 64 numbers of 0 or more")
        size = 0 if memory is None else _size(memory)
        if size_of(dtype, shape) != size:
            raise ValueError(f"tensor {name!r} has {size} bytes, which {dtype} of the shape {tuple(shape)} are not")
    keys = Keys.of(key)
    enc, master = keys.master()
    sign, signer = keys.signer()
    placed, at = {}, 0
    # Large elements first, so that all are aligned.
    for name, (dtype, shape, memory) in sorted(tensors.items(), key=lambda item: (-DTYPES[item[1][0]], item[0])):
        size = 0 if memory is None else _size(memory)
        placed[name] = Tensor(dtype, tuple(shape), at, at + size)
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
    finally:
        file.discard()


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

