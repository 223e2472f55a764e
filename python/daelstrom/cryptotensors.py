# SPDX-License-Identifier: Apache-2.0
"""The CryptoTensors format (PyPI ``cryptotensors`` 0.2): safetensors whose tensors are encrypted and whose header is
signed. This module reads and writes headers; `daelstrom.weights` and `daelstrom.torch` move tensors.

    file     = length of the header, 8 bytes, little-endian | header, JSON, padded with spaces to 8 | data
    header   = {"__metadata__": {...}, "<tensor>": {"dtype", "shape", "data_offsets"}, ...}

``__metadata__`` has, each a string that is JSON itself but for the last:

    __crypto_keys__  the version, the keys' algorithms and names, bytes of a chunk
    __encryption__   for each encrypted tensor: its own key, wrapped by the master key, and IVs and tags, in base64
    __policy__       programs in Rego, for whoever loads or hands out keys
    __signature__    Ed25519, of the header without this member, written again in one way (`canonical`)

A tensor is cut into chunks of 2 MiB (version 2; version 1: one), each AES-GCM under the tensor's own key with the IV
``base_iv[0:8] || base_iv[8:12] + number`` and no additional data. What holds the chunks together is the signature,
since it covers IVs and tags: a file is opened here only with the key that its signature is verified with.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._appear import write_secret
from .exceptions import FormatError, InvalidSignature, UnsupportedAlgorithm

__all__ = ["CHUNK", "DTYPES", "Encrypted", "Header", "Keys", "Tensor", "read_header"]

CHUNK = 2 << 20
_MOST_HEADER = 100_000_000
_MOST_EXTENTS = 64  # numpy's, and more than torch's tensors have in practice
_RESERVED = ("__crypto_keys__", "__encryption__", "__policy__", "__signature__")
_ALLOW = "package model\nallow = true"

#: Bits of an element, by the names that headers have.
DTYPES = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16,
    "U16": 16, "F8_E8M0": 8, "F8_E4M3": 8, "F8_E5M2": 8, "I8": 8, "U8": 8, "BOOL": 8, "F6_E3M2": 6, "F6_E2M3": 6,
    "F4": 4,
}  # fmt: skip
_BITS = {"aes128gcm": 128, "aes256gcm": 256}


def _unbase64(text: Any, what: str) -> bytes:
    try:
        if not isinstance(text, str):
            raise ValueError
        # JWKs have the alphabet for URLs and no padding (RFC 7515), cryptotensors the usual one.
        text = text.translate({ord("-"): "+", ord("_"): "/"})
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (ValueError, binascii.Error):
        raise FormatError(f"{what} is not base64") from None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _algorithm(name: Any) -> int:
    """Bits of the key."""
    bits = _BITS.get(str(name).replace("-", "").lower())
    if bits is None:
        raise UnsupportedAlgorithm(f"tensors are encrypted with {name!r}; daelstrom has aes128gcm and aes256gcm")
    return bits


@dataclass
class Keys:
    """The keys of files, as JWKs: ``{"kty": "oct", "alg": "aes256gcm", "kid": ..., "k": ...}`` encrypts,
    ``{"kty": "okp", "alg": "ed25519", "kid": ..., "x": ..., "d": ...}`` signs (`d`) and verifies (`x`)."""

    encryption: list[dict[str, Any]] = field(default_factory=list, repr=False)
    signing: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, given: Any) -> Keys:
        """From a JWK set, as a dict, as a list or in a file; or from ``{"enc_key": ..., "sign_key": ...}``."""
        if isinstance(given, Keys):
            return given
        if isinstance(given, (str, bytes, os.PathLike)):
            with open(given, "rb") as file:
                given = json.loads(file.read())
        if isinstance(given, Mapping) and ("enc_key" in given or "sign_key" in given):
            given = [given[name] for name in ("enc_key", "sign_key") if given.get(name) is not None]
        elif isinstance(given, Mapping):
            given = given.get("keys", [given])
        keys = cls()
        for jwk in given:
            kind = str(jwk.get("kty", "")).lower()
            if kind not in ("oct", "okp"):
                raise FormatError(f"a key's kty is {jwk.get('kty')!r}; it is 'oct' or 'okp'")
            (keys.encryption if kind == "oct" else keys.signing).append(dict(jwk))
        return keys

    @classmethod
    def generate(cls, bits: int = 256) -> Keys:
        """New keys: `to_dict()` is what to keep of them."""
        seed = os.urandom(32)
        if bits not in (128, 256):
            raise ValueError(f"bits is {bits}; it is 128 or 256")
        enc = {"kty": "oct", "alg": f"aes{bits}gcm", "k": _base64(os.urandom(bits // 8))}
        sign = {"kty": "okp", "alg": "ed25519", "x": _base64(_core.ed25519_public(seed)), "d": _base64(seed)}
        return cls([enc], [sign])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JWK set with its secrets to a new file that its owner alone can read (0600); what is there already
        is left alone: FileExistsError. `of(path)` reads it."""
        write_secret(path, json.dumps(self.to_dict()).encode())

    def to_dict(self) -> dict[str, Any]:
        """The JWK set, with its secrets."""
        return {"keys": [*self.encryption, *self.signing]}

    @staticmethod
    def _one(keys: Sequence[dict[str, Any]], named: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
        """The one that a header names; the only one there is."""
        name = (named or {}).get("kid")
        fitting = [key for key in keys if key.get("kid") == name] if name is not None and len(keys) > 1 else list(keys)
        if len(fitting) != 1:
            called = f" named {name!r}" if name is not None else ""
            raise ValueError(f"{len(fitting)} keys to {what}{called} are given; exactly one is needed")
        return fitting[0]

    def master(self, named: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], _core.Key]:
        """The key that wraps the tensors' own."""
        jwk = self._one(self.encryption, named, "encrypt with")
        raw = _unbase64(jwk.get("k"), "the encryption key's k")
        bits = _algorithm((named or {}).get("alg") or jwk.get("alg"))
        if len(raw) * 8 != bits:
            raise ValueError(f"the encryption key has {len(raw)} bytes; aes{bits}gcm takes {bits // 8}")
        return jwk, _core.Key(raw)

    def verifier(self, named: Mapping[str, Any] | None = None) -> bytes:
        """The public key."""
        jwk = self._one(self.signing, named, "verify signatures with")
        if jwk.get("x") is None:
            return _core.ed25519_public(_unbase64(jwk.get("d"), "the signing key's d"))
        return _unbase64(jwk["x"], "the signing key's x")

    def signer(self) -> tuple[dict[str, Any], bytes]:
        """The secret key, which is a seed."""
        jwk = self._one(self.signing, None, "sign with")
        if jwk.get("d") is None:
            raise ValueError("the signing key has no d: it verifies, and cannot sign")
        return jwk, _unbase64(jwk["d"], "the signing key's d")


@dataclass
class Encrypted:
    """How a tensor is encrypted."""

    wrapped: tuple[bytes, bytes, bytes]  # its key: ciphertext, IV, tag
    iv: bytes
    tags: bytes


@dataclass
class Tensor:
    dtype: str
    shape: tuple[int, ...]
    begin: int  # in the data
    end: int
    encrypted: Encrypted | None = None

    @property
    def size(self) -> int:
        return self.end - self.begin


@dataclass
class Header:
    tensors: dict[str, Tensor]  # in the order of their data
    metadata: dict[str, str]  # the user's own
    chunk: int | None = CHUNK  # None: version 1, a tensor is one chunk
    encryption_key: dict[str, Any] = field(default_factory=dict)  # as the file names it
    signing_key: dict[str, Any] = field(default_factory=dict)
    policy: dict[str, str] = field(default_factory=lambda: {"local": _ALLOW, "remote": _ALLOW})

    def chunks(self, tensor: Tensor) -> int:
        return 1 if self.chunk is None else max(1, -(-tensor.size // self.chunk))

    def write(self, signer: bytes) -> bytes:
        """The header, signed, with its length in front."""
        keys: dict[str, Any] = {"enc": self.encryption_key, "sign": self.signing_key}
        keys["version"] = "1" if self.chunk is None else "2"
        if self.chunk is not None:
            keys["chunk_size"] = self.chunk
        metadata = {
            **self.metadata,
            "__crypto_keys__": _json(keys),
            "__encryption__": _json({name: _told(t.encrypted, self.chunk) for name, t in sorted(self.tensors.items())
                                     if t.encrypted is not None}),
            "__policy__": _json(self.policy),
        }  # fmt: skip
        metadata["__signature__"] = _base64(_core.ed25519_sign(signer, canonical(metadata, self.tensors)))
        text = canonical(metadata, self.tensors)
        text += b" " * (-len(text) % 8)
        if len(text) > _MOST_HEADER:
            raise ValueError(f"the header has {len(text)} bytes, and may have {_MOST_HEADER}: take larger chunks")
        return len(text).to_bytes(8, "little") + text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _told(e: Encrypted, chunk: int | None) -> dict[str, str]:
    key, iv, tag = map(_base64, e.wrapped)
    names = ("iv", "tag") if chunk is None else ("base_iv", "tags")
    return {"wrapped_key": key, "key_iv": iv, "key_tag": tag, names[0]: _base64(e.iv), names[1]: _base64(e.tags)}


def canonical(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> bytes:
    """The header as it is signed: metadata first and sorted (by UTF-8), tensors in the order of their data."""
    sorted_metadata = dict(sorted(metadata.items(), key=lambda item: item[0].encode()))
    return _json({
        "__metadata__": sorted_metadata,
        **{name: {"dtype": t.dtype, "shape": list(t.shape), "data_offsets": [t.begin, t.end]}
           for name, t in tensors.items()},
    }).encode()  # fmt: skip


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise FormatError("a name stands twice in the header")
    return made


def _parsed(text: str | bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except FormatError:
        raise
    except (ValueError, RecursionError):
        raise FormatError(f"{what} is not JSON") from None
    if not isinstance(value, dict):
        raise FormatError(f"{what} is not an object of JSON")
    return value


def _object(of: dict[str, Any], name: str) -> dict[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def size_of(dtype: str, shape: Sequence[int]) -> int | None:
    """Bytes that a shape makes; None where they are not whole, or more than any file has. `dtype` is one of `DTYPES`,
    extents are 0 or more. A header is anybody's until its signature is verified: no product grows without a bound."""
    bits = DTYPES[dtype]
    for extent in [0] if 0 in shape else shape:
        bits *= extent
        if bits >= 1 << 66:
            return None
    return None if bits % 8 else bits // 8


def _tensor(name: str, entry: Any) -> Tensor:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"tensor {name!r} does not have dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FormatError(f"tensor {name!r} has the dtype {dtype!r}, which is unknown")
    if not isinstance(shape, list) or len(shape) > _MOST_EXTENTS or not all(map(_whole, shape)):
        raise FormatError(f"tensor {name!r} has no shape, or one of more than {_MOST_EXTENTS} extents")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_whole, offsets)) or offsets[0] > offsets[1]:
        raise FormatError(f"tensor {name!r} has no offsets")
    if size_of(dtype, shape) != offsets[1] - offsets[0]:
        raise FormatError(f"tensor {name!r} has {offsets[1] - offsets[0]} bytes, which its shape and dtype do not make")
    return Tensor(dtype, tuple(shape), *offsets)


def read_header(
    source: Callable[[int, int], bytes], size: int, keys: Keys, *, ignore_policy: bool = False
) -> tuple[Header, int]:
    """The header of a file of `size` bytes, verified, and where the data begin. ``source(at, size)`` reads.

    Raises `FormatError`, `InvalidSignature`, and `UnsupportedAlgorithm` where ChaCha20-Poly1305 or a policy that is
    not the usual one (allow) is asked for: daelstrom has no Rego.
    """
    start = source(0, 8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(_MOST_HEADER, size - 8):
        raise FormatError("not a safetensors file: it is shorter than its header, or the header too long")
    parts: list[bytes] = []
    have = 0
    while have < length:
        part = source(8 + have, length - have)
        if not part:
            raise FormatError("the file ends within its header")
        parts.append(part)
        have += len(part)
    text = b"".join(parts)
    entries = _parsed(text, "the header")
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError("__metadata__ is not made of strings")
    missing = [name for name in _RESERVED if name not in metadata]
    if missing:
        raise FormatError(
            f"the file is not encrypted: __metadata__ has no {', '.join(missing)}. (safetensors loads it, if it should be)"
        )
    tensors = {name: _tensor(name, entry) for name, entry in entries.items()}
    tensors = dict(sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)))
    at = 0
    for name, tensor in tensors.items():
        if tensor.begin != at:
            raise FormatError(f"tensor {name!r} does not begin where the one before it ends")
        at = tensor.end
    if 8 + length + at != size:
        raise FormatError(f"the file has {size} bytes; its header speaks of {8 + length + at}")

    told = _parsed(metadata["__crypto_keys__"], "__crypto_keys__")
    enc, sign = _object(told, "enc"), _object(told, "sign")
    signature = _unbase64(metadata["__signature__"], "__signature__")
    unsigned = {name: value for name, value in metadata.items() if name != "__signature__"}
    try:
        signed = canonical(unsigned, tensors)
    except UnicodeEncodeError:
        raise FormatError("the header is not Unicode") from None
    if not _core.ed25519_verify(keys.verifier(sign), signed, signature):
        raise InvalidSignature("the header's signature does not verify: another key, or an altered header")

    # From here on, what the header says is what its signer said.
    if told.get("version") not in ("1", "2"):
        raise UnsupportedAlgorithm(f"the file is of version {told.get('version')!r}; daelstrom has 1 and 2")
    chunk = None if told["version"] == "1" else told.get("chunk_size", CHUNK)
    if chunk is not None and (not _whole(chunk) or chunk == 0):
        raise FormatError(f"chunk_size is {chunk!r}")
    policy = _parsed(metadata["__policy__"], "__policy__")
    if policy.get("local") != _ALLOW and not ignore_policy:
        raise UnsupportedAlgorithm(
            "the file has a policy for whoever loads it, in Rego, which daelstrom does not run; ignore_policy=True loads "
            "it all the same"
        )
    header = Header(tensors, {}, chunk, enc, sign, policy)
    header.metadata = {name: value for name, value in metadata.items() if name not in _RESERVED}
    for name, entry in _parsed(metadata["__encryption__"], "__encryption__").items():
        if name not in tensors or not isinstance(entry, dict):
            raise FormatError(f"__encryption__ speaks of {name!r}, which is no tensor here")
        names = ("wrapped_key", "key_iv", "key_tag", *(("iv", "tag") if chunk is None else ("base_iv", "tags")))
        key, key_iv, key_tag, iv, tags = (_unbase64(entry.get(one, ""), f"{name!r}: {one}") for one in names)
        of = tensors[name]
        # Version 1 does not encrypt what has no bytes.
        wanted = (0, 0) if chunk is None and of.size == 0 else (12, 16 * header.chunks(of))
        if (len(iv), len(tags)) != wanted:
            raise FormatError(f"tensor {name!r} has {len(tags)} bytes of tags and {len(iv)} of IV; it takes {wanted}")
        of.encrypted = Encrypted((key, key_iv, key_tag), iv, tags)
    return header, 8 + length
