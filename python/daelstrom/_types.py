# SPDX-License-Identifier: Apache-2.0
"""Types that the package's annotations share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Union, runtime_checkable

if TYPE_CHECKING:
    from typing_extensions import Buffer as _Buffer
    from typing_extensions import TypeAlias


@runtime_checkable
class DLPackTensor(Protocol):
    """A tensor of torch, cupy, jax or any other library with DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...


@runtime_checkable
class CudaArray(Protocol):
    """An array with the CUDA array interface, as numba has it."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


if TYPE_CHECKING:
    # Bytes wherever they lie. HostBuffer: what the buffer protocol shows, numpy's arrays and mmap among them.
    HostBuffer: TypeAlias = _Buffer
    Buffer = Union[HostBuffer, DLPackTensor, CudaArray]

# A stream of torch or cupy, what has __cuda_stream__, or a pointer.
Stream = Union[int, Any, None]
