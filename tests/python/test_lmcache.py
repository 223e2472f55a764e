# SPDX-License-Identifier: Apache-2.0
"""Chunks of a KV cache in LMCache's frame: by themselves, and in the installed LMCache."""

import hashlib
import os
import pickle
import select
import time

import pytest

from daelstrom import kvcache
from daelstrom.exceptions import FormatError, InvalidTag

MASTER = bytes(range(40))


def frame_of(sealer, plain, salt="", bound=None):
    frame = bytearray(b"\xee" * (len(plain) + sealer.overhead))
    assert sealer.seal(plain, frame, salt, bound) == len(frame)
    return bytes(frame)


def opened(sealer, frame, size, salt="", bound=None):
    plain = bytearray(b"\xee" * size)
    sealer.open(frame, plain, salt, bound)
    return bytes(plain)


def sealer_of(version, bits=128, cipher=None):
    return kvcache.ChunkSealer(kvcache.derived_keys(MASTER, version, bits, cipher))


def both(bits=128):
    """By GCM."""
    return [sealer_of(version, bits) for version in (kvcache.PLAIN_VERSION, kvcache.BOUND_VERSION)]


def long_ones():
    return [sealer_of(kvcache.LONG_VERSION, cipher=cipher) for cipher in ("aegis128l", "aegis256", "xaes256gcm")]


def bound_of(sealer, name=b"chunk"):
    return None if sealer.version == kvcache.PLAIN_VERSION else kvcache.bound_data(name, "model", 3, 0, "")


def test_the_frame_is_what_it_says_by_another_implementation():
    hashes = pytest.importorskip("cryptography.hazmat.primitives.hashes", reason="no pyca/cryptography")
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    for bits in (128, 256):
        for sealer, info in zip(both(bits), (b"lmcache-l2-aesgcm-v1", b"daelstrom-l2-bound-v1")):
            key = HKDF(hashes.SHA256(), bits // 8, None, info + "tenant é".encode()).derive(MASTER)
            plain, bound = os.urandom(5000), bound_of(sealer)
            frame = frame_of(sealer, plain, "tenant é", bound)
            assert frame[0] == sealer.version
            assert AESGCM(key).decrypt(frame[1:13], frame[13:], bound) == plain
            nonce = os.urandom(12)
            theirs = bytes([sealer.version]) + nonce + AESGCM(key).encrypt(nonce, plain, bound)
            assert opened(sealer, theirs + b"padding", len(plain), "tenant é", bound) == plain


def test_the_long_frame_is_what_it_says():
    """By the modes' own calls, whose vectors test_aead.py has, and pyca's key derivation."""
    hashes = pytest.importorskip("cryptography.hazmat.primitives.hashes", reason="no pyca/cryptography")
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    from daelstrom import AEGIS128L, AEGIS256, XAES256GCM

    kinds = [(AEGIS128L, 16, 16, b"aegis128l"), (AEGIS256, 32, 32, b"aegis256"), (XAES256GCM, 32, 24, b"xaes256gcm")]
    for number, (sealer, (kind, key_size, nonce_size, name)) in enumerate(zip(long_ones(), kinds), 1):
        key = HKDF(hashes.SHA256(), key_size, None, b"daelstrom-l2-" + name + "-v2tenant é".encode()).derive(MASTER)
        plain, bound = os.urandom(5000), bound_of(sealer)
        head, begin = bytes([0xD2, number]), 2 + nonce_size
        frame = frame_of(sealer, plain, "tenant é", bound)
        assert sealer.overhead == begin + 16 <= kvcache.OVERHEAD and frame[:2] == head
        assert kind(key).decrypt(frame[2:begin], frame[begin:], head + bound) == plain
        nonce = os.urandom(nonce_size)
        theirs = head + nonce + kind(key).encrypt(nonce, plain, head + bound)
        assert opened(sealer, theirs + b"padding", len(plain), "tenant é", bound) == plain
        assert frame_of(sealer, plain, "tenant é", bound)[2:begin] != frame[2:begin]


def test_who_writes_one_version_reads_the_other():
    """Frames of both, and of each cipher, mixed in a store; and none of version 1."""
    plain = os.urandom(1000)
    writers = [both()[1], *long_ones()]
    frames = [frame_of(writer, plain, "t", bound_of(writer)) for writer in writers]
    for reader in writers:
        for frame, writer in zip(frames, writers):
            assert opened(reader, frame, 1000, "t", bound_of(reader)) == plain
        for room in (bytes(kvcache.OVERHEAD - len(frames[0]) + 1000), b""):  # as stores of one size have them
            assert opened(reader, frames[0] + room, 1000, "t", bound_of(reader)) == plain
        with pytest.raises(FormatError, match="version 0x1"):
            opened(reader, frame_of(both()[0], plain, "t"), 1000, "t", bound_of(reader))
    bound = bound_of(writers[1])
    for at, cipher in ((1, 2), (1, 3), (2, 1), (2, 3), (3, 1)):  # one cipher's frame passed off as another's
        forged = bytes([0xD2, cipher]) + frames[at][2:]
        with pytest.raises((InvalidTag, FormatError)):
            opened(writers[1], forged + bytes(40), 1000, "t", bound)
    with pytest.raises(FormatError, match="cipher 9"):
        opened(writers[1], bytes([0xD2, 9]) + frames[1][2:], 1000, "t", bound)


def test_frames_of_0xd1_keep_their_size_of_keys():
    """Whatever cipher is written now: `bits` says what was written before."""
    plain = os.urandom(1000)
    for bits in (128, 256):
        old = sealer_of(kvcache.BOUND_VERSION, bits)
        frame = frame_of(old, plain, "t", bound_of(old))
        for cipher in (None, "aegis128l", "aegis256", "xaes256gcm"):
            new = sealer_of(kvcache.LONG_VERSION, bits, cipher)
            assert opened(new, frame + bytes(40), 1000, "t", bound_of(new)) == plain
            assert opened(old, frame_of(new, plain, "t", bound_of(new)), 1000, "t", bound_of(old)) == plain
        with pytest.raises(InvalidTag):
            opened(sealer_of(kvcache.LONG_VERSION, 384 - bits), frame + bytes(40), 1000, "t", bound_of(old))


def test_keys_of_ones_own_open_their_frames_alone():
    mine = kvcache.ChunkSealer(lambda salt: bytes(32), kvcache.LONG_VERSION, cipher="aegis256")
    old = kvcache.ChunkSealer(lambda salt: bytes(16))
    assert (mine.version, old.version) == (0xD2, 0xD1)
    for sealer, other in ((mine, old), (old, mine)):
        frame = frame_of(sealer, b"chunk", "t", b"bound")
        assert opened(sealer, frame, 5, "t", b"bound") == b"chunk"
        with pytest.raises(FormatError, match="version"):
            opened(other, frame, 5, "t", b"bound")
    with pytest.raises(FormatError, match="cipher 1"):
        opened(mine, frame_of(long_ones()[0], b"chunk", "t", b"bound") + bytes(20), 5, "t", b"bound")


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 4095, 70000, 3 << 20])
def test_there_and_back(size):
    plain = os.urandom(size)
    for sealer in both() + long_ones():
        assert opened(sealer, frame_of(sealer, plain, "t", bound_of(sealer)), size, "t", bound_of(sealer)) == plain


def test_what_was_altered_is_refused_and_leaves_nothing():
    plain = os.urandom(1000)
    for sealer in both() + long_ones():
        frame = frame_of(sealer, plain, "t", bound_of(sealer))
        for at in (2, 12, 13, 500, len(frame) - 16, len(frame) - 1):
            bad = bytearray(frame)
            bad[at] ^= 4
            out = bytearray(b"\xee" * len(plain))
            with pytest.raises(InvalidTag):
                sealer.open(bad, out, "t", bound_of(sealer))
            assert not any(out)
        with pytest.raises(InvalidTag):
            opened(sealer, frame, 1000, "another", bound_of(sealer))
        with pytest.raises(FormatError, match="cut off"):
            opened(sealer, frame[:-1], 1000, "t", bound_of(sealer))
        for size in (0, 1, 2, sealer.overhead - 1):
            with pytest.raises(FormatError, match="cut off"):
                opened(sealer, frame[:size], 0, "t", bound_of(sealer))
        for version in {0, 1, 2, 0xD0, 0xD3} - {sealer.version}:
            with pytest.raises(FormatError, match="version"):
                opened(sealer, bytes([version]) + frame[1:], 1000, "t", bound_of(sealer))


def test_a_frame_in_another_ones_place():
    """What version 1 takes, and version 0xD1 refuses."""
    plains = [os.urandom(256), os.urandom(256)]
    plain_sealer, bound_sealer = both()
    frames = [frame_of(plain_sealer, plain) for plain in plains]
    assert opened(plain_sealer, frames[1], 256) == plains[1]  # whoever asked for the first
    names = [kvcache.bound_data(name, "model", 0, 0, "") for name in (b"one", b"two")]
    for sealer in (bound_sealer, *long_ones()):
        frames = [frame_of(sealer, plain, "", name) for plain, name in zip(plains, names)]
        assert opened(sealer, frames[0], 256, "", names[0]) == plains[0]
        with pytest.raises(InvalidTag):
            opened(sealer, frames[1], 256, "", names[0])


def test_each_part_of_the_key_is_bound():
    usual = (b"hash", "model", 1, 0, "salt")
    others = [(b"hasx", *usual[1:]), (b"hash", "model2", 1, 0, "salt"), (b"hash", "model", 2, 0, "salt"),
              (b"hash", "model", 1, 1, "salt"), (*usual[:4], "sal"), (b"hashm", "odel", 1, 0, "salt")]  # fmt: skip
    assert len({kvcache.bound_data(*key) for key in [usual, *others]}) == 7


def test_wrong_uses_say_what_is_wrong():
    plain, bound = both()
    with pytest.raises(ValueError, match="room for 28"):
        plain.seal(b"", bytearray(28), "", None)
    with pytest.raises(TypeError, match="takes bound data"):
        bound.seal(b"", bytearray(29), "", None)
    with pytest.raises(TypeError, match="binds nothing"):
        plain.seal(b"", bytearray(29), "", b"x")
    with pytest.raises(ValueError, match="master key is 0 bytes; version 0xd2 takes 16 or more"):
        kvcache.derived_keys(b"")
    with pytest.raises(ValueError, match="192"):
        kvcache.derived_keys(b"k", bits=192)
    with pytest.raises(ValueError, match="'aes'; it is 'aegis128l', 'aegis256', 'xaes256gcm'"):
        kvcache.derived_keys(MASTER, cipher="aes")
    with pytest.raises(ValueError, match="version 0xd1 has one cipher"):
        kvcache.derived_keys(MASTER, kvcache.BOUND_VERSION, cipher="aegis256")
    with pytest.raises(ValueError, match="version is 3"):
        kvcache.derived_keys(MASTER, 3)
    with pytest.raises(ValueError, match="others than those of the keys"):
        kvcache.ChunkSealer(kvcache.derived_keys(MASTER), kvcache.BOUND_VERSION)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(kvcache.derived_keys(MASTER))


# In LMCache itself.


@pytest.fixture(scope="module")
def lm():
    pytest.importorskip("lmcache.v1.distributed.serde", reason="LMCache is not installed", exc_type=ImportError)
    import daelstrom.lmcache

    return daelstrom.lmcache


@pytest.fixture
def processors(lm, tmp_path):
    from lmcache.v1.distributed.serde import SerdeConfig, create_serde_processor

    path = tmp_path / "master"
    path.write_bytes(MASTER)
    made = {name: create_serde_processor(SerdeConfig(name, {"master_key_path": str(path)}))
            for name in ("aesgcm", "daelstrom", "daelstrom_bound", "daelstrom_aesgcm")}  # fmt: skip
    yield made
    for processor in made.values():
        processor.close()


def memory(size, fill=None):
    import torch
    from lmcache.v1.memory_management import MemoryFormat, MemoryObjMetadata, TensorMemoryObj

    raw = torch.full((size,), 0xEE, dtype=torch.uint8)
    if fill is not None:
        raw[:] = torch.frombuffer(bytearray(fill), dtype=torch.uint8)
    meta = MemoryObjMetadata(raw.shape, raw.dtype, 0, size, 1, fmt=MemoryFormat.UNDEFINED, shapes=[raw.shape],
                             dtypes=[raw.dtype])  # fmt: skip
    return TensorMemoryObj(raw, meta, None)


def key(name, salt="tenant"):
    from lmcache.v1.distributed.api import ObjectKey

    return ObjectKey(hashlib.sha256(name).digest(), "org/model", 0x10001, 0, salt)


def done(processor, what, *lists):
    task = getattr(processor, f"submit_{what}")(*lists)
    fd = getattr(processor, f"get_{what}_event_fd")()
    deadline = time.monotonic() + 20
    while (result := getattr(processor, f"query_{what}_result")(task)) is None:
        assert time.monotonic() < deadline
        select.select([fd], [], [], 1)
    return result


def stored(processor, plain, name):
    import torch
    from lmcache.v1.distributed.api import MemoryLayoutDesc

    room = processor.estimate_serialized_size(MemoryLayoutDesc([torch.Size([len(plain)])], [torch.uint8]))
    assert len(plain) < room <= len(plain) + kvcache.OVERHEAD
    frame = memory(room)
    assert done(processor, "serialize", [memory(len(plain), plain)], [frame], [name])
    return frame


def loaded(processor, frame, size, name):
    out = memory(size)
    return bytes(out.raw_data.numpy()) if done(processor, "deserialize", [frame], [out], [name]) else None


def test_registered_as_its_own_are(lm):
    from lmcache.v1.distributed.serde import get_registered_serde_types

    assert {"aesgcm", "daelstrom", "daelstrom_bound", "daelstrom_aesgcm"} <= set(get_registered_serde_types())
    lm.register()  # twice is fine


def test_each_reads_what_the_other_wrote(processors):
    plain, name = os.urandom(100_000), key(b"chunk")
    theirs, ours = processors["aesgcm"], processors["daelstrom_aesgcm"]
    assert loaded(ours, stored(theirs, plain, name), len(plain), name) == plain
    assert loaded(theirs, stored(ours, plain, name), len(plain), name) == plain
    bound = processors["daelstrom"]
    assert loaded(bound, stored(bound, plain, name), len(plain), name) == plain
    assert loaded(bound, stored(theirs, plain, name), len(plain), name) is None
    older = processors["daelstrom_bound"]
    assert loaded(bound, stored(older, plain, name), len(plain), name) == plain
    assert loaded(older, stored(bound, plain, name), len(plain), name) == plain


def test_two_chunks_swapped_in_the_store(processors):
    """LMCache's present serde hands out one chunk for another; the bound one has a miss."""
    plains, names = [os.urandom(4096), os.urandom(4096)], [key(b"one"), key(b"two")]
    for which, took in (("aesgcm", True), ("daelstrom_aesgcm", True), ("daelstrom", False), ("daelstrom_bound", False)):
        processor = processors[which]
        frames = [stored(processor, plain, name) for plain, name in zip(plains, names)]
        assert loaded(processor, frames[0], 4096, names[0]) == plains[0]
        assert loaded(processor, frames[1], 4096, names[0]) == (plains[1] if took else None), which


def test_another_tenant_has_a_miss(processors):
    plain = os.urandom(4096)
    for processor in processors.values():
        frame = stored(processor, plain, key(b"one", "a"))
        assert loaded(processor, frame, 4096, key(b"one", "b")) is None


def test_options_are_checked(lm, tmp_path):
    from lmcache.v1.distributed.serde import SerdeConfig, create_serde_processor

    for options, error in (({}, "master_key_path"), ({"key_provider": "keyring"}, "keyring"),
                           ({"master_key_path": __file__, "cipher": "rot13"}, "rot13"),
                           ({"master_key_path": os.devnull}, "master key is 0 bytes")):  # fmt: skip
        with pytest.raises(ValueError, match=error):
            create_serde_processor(SerdeConfig("daelstrom", options))
