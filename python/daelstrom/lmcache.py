# SPDX-License-Identifier: Apache-2.0
"""LMCache's serde on all cores. Importing this module registers three types beside LMCache's own ``aesgcm``, with the
same options (``master_key_path``, ``aes_bits``, ``max_workers``):

* ``daelstrom``: each chunk opens only under the key that it was stored under, and random nonces do not run out
  (`daelstrom.kvcache`, version 0xD2); reads version 0xD1 as well. ``cipher`` names another than ``aes_bits`` does;
* ``daelstrom_bound``: the same, but writes version 0xD1, for stores that an older daelstrom reads, too;
* ``daelstrom_aesgcm``: reads and writes what ``aesgcm`` does, chunk for chunk.

Needs LMCache, 0.5 or later, in a process that imports this module before it makes its L2 adapters.
"""

from __future__ import annotations

import os
from typing import Any

from lmcache.v1.distributed.serde import (
    AsyncSerdeProcessor,
    Deserializer,
    SerdeProcessor,
    Serializer,
    get_registered_serde_types,
    register_serde_factory,
)

from . import kvcache

__all__ = ["ChunkDeserializer", "ChunkSerializer", "register"]


def _bound(sealer: kvcache.ChunkSealer, key: Any) -> bytes | None:
    if sealer.version == kvcache.PLAIN_VERSION:
        return None
    return kvcache.bound_data(key.chunk_hash, key.model_name, key.kv_rank, key.object_group_id, key.cache_salt)


class ChunkSerializer(Serializer):  # type: ignore[misc]
    """From a chunk's memory to its frame's."""

    def __init__(self, sealer: kvcache.ChunkSealer) -> None:
        self._sealer = sealer

    def serialize(self, src: Any, dst: Any, key: Any) -> int:
        return self._sealer.seal(_memory(src), _memory(dst), key.cache_salt, _bound(self._sealer, key))

    def estimate_serialized_size(self, layout_desc: Any) -> int:
        """The frame's size, exactly."""
        total = self._sealer.overhead
        for shape, dtype in zip(layout_desc.shapes, layout_desc.dtypes, strict=True):
            elements = 1
            for extent in shape:
                elements *= int(extent)
            total += elements * dtype.itemsize
        return total


class ChunkDeserializer(Deserializer):  # type: ignore[misc]
    """From a frame's memory to its chunk's, which is wiped if the frame is not authentic: LMCache then has a miss."""

    def __init__(self, sealer: kvcache.ChunkSealer) -> None:
        self._sealer = sealer

    def deserialize(self, src: Any, dst: Any, key: Any) -> None:
        self._sealer.open(_memory(src), _memory(dst), key.cache_salt, _bound(self._sealer, key))


def _memory(of: Any) -> memoryview:
    # ctypes' format "<B" is one that memoryview itself cannot index.
    return memoryview(of.byte_array).cast("B")


def _make(version: int, options: dict[str, Any]) -> SerdeProcessor:
    provider = options.get("key_provider", "hkdf")
    if provider != "hkdf":
        raise ValueError(f"key_provider is {provider!r}; there is 'hkdf'")
    path = str(options.get("master_key_path", ""))
    if not path:
        raise ValueError("master_key_path is missing: a file that holds the master key, 16 bytes or more")
    with open(os.path.expanduser(path), "rb") as file:
        master = file.read()
    bits, cipher = int(options.get("aes_bits", 128)), options.get("cipher")
    sealer = kvcache.ChunkSealer(kvcache.derived_keys(master, version, bits, cipher))
    # One task has all cores; more workers overlap its beginning and end.
    workers = int(options.get("max_workers", 1))
    return AsyncSerdeProcessor(ChunkSerializer(sealer), ChunkDeserializer(sealer), max_workers=workers)


def register() -> None:
    """Adds the three types, where they are not there yet."""
    for name, version in (
        ("daelstrom", kvcache.LONG_VERSION),
        ("daelstrom_bound", kvcache.BOUND_VERSION),
        ("daelstrom_aesgcm", kvcache.PLAIN_VERSION),
    ):
        if name not in get_registered_serde_types():
            register_serde_factory(name, lambda options, version=version: _make(version, options))


register()
