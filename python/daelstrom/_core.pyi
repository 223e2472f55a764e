# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, final, overload

from ._types import Buffer, HostBuffer, Stream

def version() -> str:
    """The version of the library."""

def list_backends() -> list[dict[str, str | bool]]:
    """Every backend that daelstrom knows: its name, what there is of it here, or what is missing."""

def wipe(buffer: HostBuffer) -> None:
    """Overwrites memory with zeros, in a way that no compiler removes."""

def writable(buffer: Buffer) -> int:
    """The bytes of memory that may be written to; the errors of memory that may not."""

@final
class Engine:
    """What computes: a backend by name ("cpu", "openssl", "cuda", "cuda:1", "opencl", ...), several that work on each
    job together ("cuda:0+cuda:1+cpu", "all"), or, without a name, what suits each job best.

    Any number of threads may share one. It is never closed while something is made with it. A child of ``fork()``
    goes on with it in host memory; devices are its parent's, and refuse with DeviceError."""

    def __init__(
        self,
        backend: str = "",
        *,
        form: str = "",
        threads: int = 0,
        chunk: int = 0,
        calibrated: bool = True,
        cpu_share: float = 1.0,
        device_memory: int = 0,
        copy_rate: int = 0,
    ) -> None:
        """``form``: one of the backend's ways by name; ``threads``: of the host, 0 for all; ``chunk``: bytes that go to a
        device at a time, 0 for what was measured; ``calibrated``: whether what ``daelstrom calibrate`` measured counts.
        What it leaves to others: ``cpu_share``, the part of the cores that it may use, where ``threads`` is 0;
        ``device_memory``, bytes of each device's memory for staging, 0 for up to 1.25 GiB; ``copy_rate``, bytes a second
        across each device's bus, each way, 0 for any. They are for data in host memory.
        Raises BackendError for a backend that does not exist, or is not here."""

    def backends(self) -> list[str]:
        """The names of the backends that it has in use."""

@final
class Key:
    """A key of 16, 24 or 32 bytes, in locked memory that is wiped when it goes.

    It never changes: threads and children of ``fork()`` may use it. It is not copied or pickled."""

    def __init__(self, key: HostBuffer) -> None:
        """``key``: 16, 24 or 32 bytes, which are copied. Raises ValueError for another size."""

    @staticmethod
    def xts(key: HostBuffer) -> Key:
        """Two keys for XTS, one behind the other: 32 or 64 bytes."""

    @property
    def bits(self) -> int:
        """128, 192 or 256; of XTS those of each of its two keys."""

    @property
    def is_xts(self) -> bool:
        """Whether it is for XTS, and for nothing else."""


@final
class KeySet:
    """Keys made ready once, for batches whose messages name theirs by its number.

    Any number of threads may use a set at once; a key is replaced while nobody does. A child of ``fork()`` may use it
    in host memory, and replaces no key where another thread was using the set when it was forked."""

    def __init__(self, keys: Iterable[Key | HostBuffer], *, engine: Engine | None = None) -> None:
        """One key or more, each of any size."""

    def __len__(self) -> int: ...
    def replace(self, index: int, key: Key | HostBuffer, *, stream: Stream = None) -> None:
        """Puts another key in the place of one; on a GPU in the order of the stream. Raises RuntimeError while another
        thread uses the set."""

@final
class NonceCounter:
    """Nonces that never repeat: four bytes that stay, and a counter of eight. Who seals under one key in several
    processes, or again after a restart, gives each `fixed` bytes of its own, or goes on at `unused`.

    Any number of threads may draw from one. In a child of ``fork()``, where its parent counts the same, it raises
    LimitError. It is not copied or pickled."""

    def __init__(self, fixed: HostBuffer, first: int = 0) -> None:
        """``fixed``: 4 bytes; ``first``: the first number to hand out."""

    def next(self) -> bytes:
        """The next one, of 12 bytes. Raises LimitError when all numbers are used up."""

    def take(self, count: int) -> bytes:
        """So many, one behind the other: 12 bytes each. All of them or none, with LimitError."""

    @property
    def unused(self) -> int:
        """The first number that was not handed out yet."""

@final
class AESGCM:
    """AES-GCM with one key, made ready once: the calls of pyca/cryptography's AESGCM, for data that lies anywhere.

    Nonces must never repeat under one key. It never changes: any number of threads may use it at once, and a child of
    ``fork()`` too, in host memory. It is not copied or pickled. Calls on 2 KiB or more let other threads run; what they
    were given must stay as it is until they return."""

    def __init__(self, key: Key | HostBuffer, *, engine: Engine | None = None) -> None:
        """``key``: 16, 24 or 32 bytes, or a Key."""

    @staticmethod
    def generate_key(bit_length: int) -> bytes:
        """A new key from the operating system's random numbers: of 128, 192 or 256 bits."""

    @overload
    def encrypt(
        self, nonce: HostBuffer, data: HostBuffer, associated_data: HostBuffer | None = None, *, out: None = None
    ) -> bytes: ...
    @overload
    def encrypt(
        self,
        nonce: HostBuffer,
        data: Buffer,
        associated_data: Buffer | None = None,
        *,
        out: Any = None,
        stream: Stream = None,
    ) -> Any:
        """ciphertext || tag: bytes of bytes, a tensor of a tensor, or ``out``, memory of len(data) + 16 bytes. ``nonce``
        has 8 to 128 bytes, 12 as a rule."""

    @overload
    def decrypt(
        self, nonce: HostBuffer, data: HostBuffer, associated_data: HostBuffer | None = None, *, out: None = None
    ) -> bytes: ...
    @overload
    def decrypt(
        self,
        nonce: HostBuffer,
        data: Buffer,
        associated_data: Buffer | None = None,
        *,
        out: Any = None,
        stream: Stream = None,
    ) -> Any:
        """The plaintext, or InvalidTag; then ``out`` holds nothing of it."""

    def encrypt_into(
        self, nonce: HostBuffer, data: Buffer, associated_data: Buffer | None, buf: Any, *, stream: Stream = None
    ) -> int:
        """ciphertext || tag to ``buf``, which has len(data) + 16 bytes, and may begin with the data; how many they are."""

    def decrypt_into(
        self, nonce: HostBuffer, data: Buffer, associated_data: Buffer | None, buf: Any, *, stream: Stream = None
    ) -> int:
        """The plaintext to ``buf``; how many bytes it has. On InvalidTag `buf` is wiped; in place it holds the ciphertext
        again, and on a GPU what it held before. An argument that is refused leaves it as it was."""

    @property
    def keys(self) -> KeySet:
        """Its key as a set of one, for batches."""


@final
class Aead:
    """AEGIS, XAES-256-GCM or AES-GCM-SIV with one key: what daelstrom.aead's classes are made of."""

    def __init__(self, mode: int, key: Key | HostBuffer, tag: int, engine: Engine | None = None) -> None:
        """``mode``: a dael_mode, 8 to 13; the key and the tag's bytes are ones that it has."""

    def encrypt(
        self,
        nonce: HostBuffer,
        data: Buffer,
        associated_data: Buffer | None,
        out: Any = None,
        stream: Stream = None,
    ) -> Any:
        """ciphertext || tag: bytes of bytes, a tensor of a tensor, or ``out``."""

    def decrypt(
        self,
        nonce: HostBuffer,
        data: Buffer,
        associated_data: Buffer | None,
        out: Any = None,
        stream: Stream = None,
    ) -> Any:
        """The plaintext, or InvalidTag; then ``out`` holds nothing of it."""

    def encrypt_into(
        self, nonce: HostBuffer, data: Buffer, associated_data: Buffer | None, buf: Any, stream: Stream = None
    ) -> int:
        """ciphertext || tag to ``buf``, which has room for just that; how many bytes they are."""

    def decrypt_into(
        self, nonce: HostBuffer, data: Buffer, associated_data: Buffer | None, buf: Any, stream: Stream = None
    ) -> int:
        """The plaintext to ``buf``; how many bytes it has. On InvalidTag `buf` is wiped, or in place as it was."""

    @property
    def keys(self) -> KeySet:
        """Its key as a set of one, for batches."""

    @property
    def mode(self) -> int:
        """A dael_mode."""

    @property
    def tag(self) -> int:
        """Bytes of a tag."""


@overload
def ctr(
    key: Key | HostBuffer,
    counter: HostBuffer,
    data: HostBuffer,
    *,
    offset: int = 0,
    out: None = None,
    engine: Engine | None = None,
) -> bytes: ...
@overload
def ctr(
    key: Key | HostBuffer,
    counter: HostBuffer,
    data: Buffer,
    *,
    offset: int = 0,
    out: Any = None,
    stream: Stream = None,
    engine: Engine | None = None,
) -> Any:
    """Counter mode, both ways the same, from byte `offset` of the keystream on. No byte of it may be used twice.

    ``counter``: the first block, 16 bytes, which counts through all its 128 bits. ``out``: memory of the data's size,
    or the data's own."""

def keystream(
    key: Key | HostBuffer,
    counter: HostBuffer,
    offset: int,
    out: Any,
    *,
    stream: Stream = None,
    engine: Engine | None = None,
) -> None: ...
def shaped_ctr(
    key: HostBuffer, counter: HostBuffer, data: Buffer, blocks: int, threads: int, *, stream: Stream = None
) -> Any: ...
def crypt(
    mode: int,
    direction: int,
    key: Key | HostBuffer,
    start: HostBuffer | None,
    data: Buffer,
    *,
    sector: int = 0,
    out: Any = None,
    stream: Stream = None,
    engine: Engine | None = None,
) -> Any: ...
def pad(tail: bytes) -> bytes: ...
def unpad(last: bytes) -> int: ...

class CipherContext:
    """A message in pieces. One thread at a time: another one gets RuntimeError. A child of ``fork()`` has a copy; of a
    context that encrypts, parent or child alone may go on. It is not copied or pickled."""

    def update(self, data: HostBuffer) -> bytes:
        """What the next bytes make: as many of them, in ECB and CBC as many whole blocks as there are."""

    def update_into(self, data: HostBuffer, buf: Any) -> int:
        """The same to ``buf``, which has len(data) bytes or more, in ECB and CBC 15 more; how many were written."""

    def finalize(self) -> bytes:
        """Ends the message. Raises InvalidTag where GCM's does not match, ValueError where blocks are not whole."""

    def reset_nonce(self, nonce: HostBuffer) -> None:
        """Begins another message of CTR, with 16 bytes of counter block."""

class AEADCipherContext(CipherContext):
    """A message of GCM in pieces."""

    def authenticate_additional_data(self, data: HostBuffer) -> None:
        """Data that is authenticated and not encrypted: in pieces too, before the first update."""

class AEADEncryptionContext(AEADCipherContext):
    """GCM's encryption in pieces."""

    @property
    def tag(self) -> bytes:
        """16 bytes, after finalize()."""

class AEADDecryptionContext(AEADCipherContext):
    """GCM's decryption in pieces. Nothing that update() gave is authentic before the end."""

    def finalize_with_tag(self, tag: HostBuffer) -> bytes:
        """Ends the message, or raises InvalidTag."""


def begin(
    mode: int,
    direction: int,
    key: Key | HostBuffer,
    start: HostBuffer | None,
    *,
    tag: HostBuffer | None = None,
    min_tag_length: int = 16,
    engine: Engine | None = None,
) -> Any: ...
def run_batch(
    keys: KeySet,
    direction: int,
    nonces: Any,
    data: Any,
    aad: Any,
    offsets: Any,
    key_index: Any,
    out: Any,
    stream: Any,
    mode: int = 5,
    tag: int = 16,
    in_front: bool = False,
) -> tuple[Any, bytes]: ...
def raise_code(code: int) -> NoReturn: ...

# Sealed data (src/sealed*.cpp)

class SealedKeys:
    @staticmethod
    def of_key(key: Buffer, segment: int = 0) -> SealedKeys: ...
    @staticmethod
    def of_keyset(keyset: Buffer) -> SealedKeys: ...
    def sealing(self) -> SealedKeys: ...
    @property
    def segment(self) -> int: ...
    @property
    def head_size(self) -> int: ...
    def sealed_size(self, plain: int) -> int: ...
    def plain_size(self, sealed: int) -> int: ...
    def sealed_range(self, at: int, size: int, total: int) -> tuple[int, int]: ...
    def plain_range(self, at: int, size: int, total: int) -> tuple[int, int]: ...

class Recipients:
    @staticmethod
    def parse(recipients: Buffer) -> Recipients: ...
    @staticmethod
    def of_passphrase(passphrase: Buffer, work: int = 0) -> Recipients: ...

class Identities:
    @staticmethod
    def parse(identities: Buffer) -> Identities: ...
    @staticmethod
    def of_passphrase(passphrase: Buffer, most: int = 0) -> Identities: ...
    def recipients(self) -> Recipients: ...

class SealedKeyset:
    """A keyset that is made or changed. One thread at a time, which `daelstrom.keysets.Keyset` sees to."""

    @staticmethod
    def create() -> SealedKeyset: ...
    @staticmethod
    def parse(json: Buffer) -> SealedKeyset: ...
    def entries(self) -> list[tuple[int, int, bool, str, str]]: ...
    def add(self, template: str) -> int: ...
    def promote(self, id: int) -> None: ...
    def enable(self, id: int) -> None: ...
    def disable(self, id: int) -> None: ...
    def remove(self, id: int) -> None: ...
    def json(self) -> bytes: ...

def envelope_read(start: Buffer) -> tuple[int, int]: ...
def is_envelope(start: Buffer) -> bool: ...
def envelope_make(recipients: Recipients, segment: int = 0) -> tuple[bytes, SealedKeys]: ...
def envelope_open(identities: Identities, start: Buffer, segment: int = 0) -> SealedKeys: ...
def identity_make() -> tuple[str, str]: ...

class HostBytes:
    """What `memoryview` takes: the bytes of any buffer or tensor in the host's memory."""

    def __init__(self, data: Any) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

# Files that appear whole, and keys in files (src/place.cpp)

class PlacedFile:
    """A file on its way to its place (daelstrom_sealed.h): nothing is left of what is not committed."""

    def __init__(self, path: Any, existing: int, secret: bool = False, sync: bool = False) -> None: ...
    def fileno(self) -> int: ...
    def write(self, data: HostBuffer) -> None: ...
    def commit(self) -> list[str]: ...
    def discard(self) -> None: ...

def read_key_file(path: Any) -> tuple[bytes, int]: ...

class SealedFile:
    def __init__(
        self, keys: SealedKeys, aad: Buffer, descriptor: int, at: int, size: int, *, engine: Engine | None = None
    ) -> None: ...
    @property
    def segment(self) -> int: ...
    @property
    def size(self) -> int: ...
    def around(self, at: int, size: int) -> tuple[int, int]: ...
    def read(self, at: int, size: int) -> bytes: ...
    def read_into(self, at: int, out: Buffer) -> None: ...
    def check_size(self) -> None: ...
    def read_all(self, out: Any, *, stream: Any = None) -> None: ...

class SealedOpener:
    def __init__(
        self, keys: SealedKeys, aad: Buffer, head: Buffer, whole: bool, *, engine: Engine | None = None
    ) -> None: ...
    @property
    def segment(self) -> int: ...
    def plain_size(self, sealed: int) -> int: ...
    def open(self, at: int, size: int, total: int, sealed: Buffer) -> bytes: ...
    def open_to(self, at: int, total: int, sealed: Buffer, out: Buffer) -> None: ...

class Sealer:
    def __init__(self, keys: SealedKeys, aad: Buffer, *, engine: Engine | None = None) -> None: ...
    @property
    def segment(self) -> int: ...
    @property
    def header(self) -> int: ...
    def room(self, plain: int, last: bool) -> int: ...
    def seal(self, plain: Buffer, out: Buffer, last: bool) -> int: ...

# Encrypted weights (src/weights*.cpp, src/ed25519.cpp)

class DeviceMemory:
    def __init__(self, size: int, *, engine: Engine | None = None) -> None: ...
    def copy_in(self, host: Buffer) -> None: ...
    def copy_out(self, host: Buffer) -> None: ...
    @property
    def nbytes(self) -> int: ...

def ed25519_public(seed: Buffer) -> bytes: ...
def ed25519_sign(seed: Buffer, message: Buffer) -> bytes: ...
def ed25519_verify(public_key: Buffer, message: Buffer, signature: Buffer) -> bool: ...
def weights_unwrap(
    master: Key, wrapped: Sequence[tuple[bytes, bytes, bytes]], *, engine: Engine | None = None
) -> KeySet | int: ...
def weights_keys(
    master: Key, count: int, *, engine: Engine | None = None
) -> tuple[KeySet, list[tuple[bytes, bytes, bytes]]]: ...
def weights_open(
    keys: KeySet, descriptor: int, tensors: Sequence[tuple[Any, ...]], *, stream: Any = None, window: int = 0
) -> tuple[int, int] | None: ...
def weights_seal(
    keys: KeySet, descriptor: int, tensors: Sequence[tuple[Any, ...]], *, stream: Any = None, window: int = 0
) -> None: ...
