# SPDX-License-Identifier: Apache-2.0
"""Cipher, its algorithms and modes: pyca/cryptography's bytes and manners."""

import os
import warnings

import pytest
from conftest import poisoned
from hypothesis import given
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from cryptography.hazmat.primitives import padding as their_padding
    from cryptography.hazmat.primitives.ciphers import Cipher as Theirs
    from cryptography.hazmat.primitives.ciphers import algorithms as their_algorithms
    from cryptography.hazmat.primitives.ciphers import modes as their_modes

    try:
        from cryptography.hazmat.decrepit.ciphers import modes as decrepit
    except ImportError:
        decrepit = their_modes

from daelstrom.exceptions import AlreadyFinalized, AlreadyUpdated, InvalidTag, NotYetFinalized, UnsupportedAlgorithm
from daelstrom.hazmat.backends import default_backend
from daelstrom.hazmat.primitives import padding
from daelstrom.hazmat.primitives.ciphers import (
    AEADCipherContext,
    AEADDecryptionContext,
    AEADEncryptionContext,
    Cipher,
    CipherContext,
    algorithms,
    modes,
)

IV = bytes(range(50, 66))
NAMES = ["ECB", "CBC", "CFB", "OFB", "CTR", "GCM", "XTS"]


def mode_of(module, name, iv=IV):
    found = getattr(decrepit if module is their_modes and name in ("CFB", "OFB") else module, name)
    return found() if name == "ECB" else found(iv)


def key_of(name, bits=256):
    return bytes(range(200, 200 + bits // 8)) if name != "XTS" else bytes(range(2 * 16 if bits < 256 else 64))


def ours(name, bits=256):
    return Cipher(algorithms.AES(key_of(name, bits)), mode_of(modes, name))


def theirs(name, bits=256):
    return Theirs(their_algorithms.AES(key_of(name, bits)), mode_of(their_modes, name))


def feed(context, pieces):
    return b"".join([context.update(piece) for piece in pieces] + [context.finalize()])


@pytest.mark.parametrize("bits", [128, 192, 256])
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_pieces_of_any_size_make_pycas_bytes(name, bits, data):
    if name == "XTS" and bits == 192:
        bits = 128
    least = 16 if name == "XTS" else 0
    pieces = data.draw(st.lists(st.binary(min_size=least, max_size=100), max_size=6))
    if name in ("ECB", "CBC"):
        pieces.append(bytes(-sum(map(len, pieces)) % 16))
    encryptor = ours(name, bits).encryptor()
    secret = feed(encryptor, pieces)
    other = theirs(name, bits).encryptor()
    # Piece by piece, since in XTS each is a data unit.
    assert secret == feed(other, pieces)
    decryptor = ours(name, bits).decryptor()
    if name == "GCM":
        assert encryptor.tag == other.tag
        assert decryptor.update(secret) + decryptor.finalize_with_tag(encryptor.tag) == b"".join(pieces)
    elif name != "XTS":
        assert feed(decryptor, [secret]) == b"".join(pieces)
    elif pieces:
        assert decryptor.update(secret[: len(pieces[0])]) == pieces[0]


@pytest.mark.parametrize("name", NAMES)
def test_each_update_gives_out_what_pycas_does(name):
    """The same sizes at the same time, not only the same sum."""
    for direction in ("encryptor", "decryptor"):
        mine, other = getattr(ours(name), direction)(), getattr(theirs(name), direction)()
        for size in (20, 17, 16, 33, 64) if name == "XTS" else (0, 1, 14, 1, 16, 17, 33, 5000, 100001, 9):
            piece = os.urandom(size)
            assert mine.update(piece) == other.update(piece), (direction, size)


@pytest.mark.parametrize("name", NAMES)
def test_update_into(name):
    least = 15 if name in ("ECB", "CBC") else 0
    mine, other = ours(name).encryptor(), theirs(name).encryptor()
    for size in (16, 48, 4096):
        piece = os.urandom(size)
        out = poisoned(size + least + 3)
        written = mine.update_into(piece, out)
        assert out[:written] == other.update(piece)
        assert out[written:] == b"\xa5" * (len(out) - written)
        if size + least:
            with pytest.raises(ValueError, match=f"at least {size + least} bytes for this payload"):
                mine.update_into(piece, bytearray(size + least - 1))
    with pytest.raises(BufferError, match="read-only"):
        mine.update_into(b"x" * 16, bytes(64))


def test_finalized_contexts_refuse_more():
    for name in NAMES:
        context = ours(name).encryptor()
        context.update(bytes(32))
        assert context.finalize() == b""
        for call in (lambda: context.update(b"x" * 16), lambda: context.update_into(b"x" * 16, bytearray(64)),
                     context.finalize):  # fmt: skip
            with pytest.raises(AlreadyFinalized, match="already finalized"):
                call()


@pytest.mark.parametrize("name", ["ECB", "CBC"])
def test_ragged_ends_are_refused(name):
    for direction in ("encryptor", "decryptor"):
        context = getattr(ours(name), direction)()
        context.update(bytes(17))
        with pytest.raises(ValueError, match="not a multiple of the block length"):
            context.finalize()


def test_gcm_in_pieces():
    key, data, aad = bytes(32), os.urandom(1000), [b"one", b"", b"two"]
    mine = Cipher(algorithms.AES(key), modes.GCM(IV)).encryptor()
    other = Theirs(their_algorithms.AES(key), their_modes.GCM(IV)).encryptor()
    with pytest.raises(NotYetFinalized, match="finalize encryption before"):
        mine.tag
    for part in aad:
        mine.authenticate_additional_data(part)
        other.authenticate_additional_data(part)
    secret = mine.update(data)
    assert secret == other.update(data)
    with pytest.raises(AlreadyUpdated):
        mine.authenticate_additional_data(b"late")
    mine.finalize(), other.finalize()
    assert mine.tag == other.tag
    with pytest.raises(AlreadyFinalized):
        mine.authenticate_additional_data(b"late")

    def decryptor(tag=None, least=16):
        context = Cipher(algorithms.AES(key), modes.GCM(IV, tag, least)).decryptor()
        context.authenticate_additional_data(b"onetwo")
        return context

    context = decryptor(mine.tag)
    assert context.update(secret) + context.finalize() == data
    with pytest.raises(ValueError, match="only once"):
        decryptor(mine.tag).finalize_with_tag(mine.tag)
    with pytest.raises(ValueError, match="must be provided when decrypting"):
        decryptor().finalize()
    # Tags that are shorter, of a size that is known before, or only in the end.
    for size in (12, 13, 15):
        context = decryptor(mine.tag[:size], size)
        assert context.update(secret) + context.finalize() == data
    for size in (4, 5, 8, 12, 15, 16):
        context = decryptor(None, 4)
        assert context.update(secret[:10]) + context.update(secret[10:]) == data
        if size in (4, 8, 12, 15, 16):
            assert context.finalize_with_tag(mine.tag[:size]) == b""
        wrong = bytearray(mine.tag[:4])
        wrong[0] ^= 1
        context = decryptor(None, 4)
        context.update(secret)
        with pytest.raises(InvalidTag):
            context.finalize_with_tag(wrong)
    context = decryptor()
    context.update(secret[:-1])
    with pytest.raises(InvalidTag):
        context.finalize_with_tag(mine.tag)
    with pytest.raises(AlreadyFinalized):
        context.update(b"")
    with pytest.raises(ValueError, match="must be 16 bytes or longer"):
        decryptor().finalize_with_tag(bytes(15))
    with pytest.raises(ValueError, match="more than 16"):
        decryptor().finalize_with_tag(bytes(17))


@pytest.mark.parametrize("least", [16, 4])  # which a decryptor does in two ways
@pytest.mark.parametrize("direction", ["encryptor", "decryptor"])
def test_an_update_that_is_refused_is_none(direction, least):
    """Additional data may still follow it, and the message goes on as if nothing had been asked."""
    key, data = bytes(32), os.urandom(100)
    other = Theirs(their_algorithms.AES(key), their_modes.GCM(IV)).encryptor()
    other.authenticate_additional_data(b"onetwo")
    secret = other.update(data) + other.finalize()
    context = getattr(Cipher(algorithms.AES(key), modes.GCM(IV, None, least)), direction)()
    context.authenticate_additional_data(b"one")
    both = memoryview(bytearray(64))
    with pytest.raises(ValueError, match="overlap"):
        context.update_into(both[:32], both[8:])
    with pytest.raises(ValueError, match="at least"):
        context.update_into(both, bytearray(8))
    context.authenticate_additional_data(b"two")
    if direction == "encryptor":
        assert context.update(data) + context.finalize() == secret
        assert context.tag == other.tag
    else:
        assert context.update(secret) + context.finalize_with_tag(other.tag) == data
    with pytest.raises(AlreadyFinalized):
        context.authenticate_additional_data(b"late")


def test_what_modes_and_algorithms_refuse():
    for size in (15, 17, 0):
        with pytest.raises(ValueError, match=rf"Invalid key size \({8 * size}\) for AES"):
            algorithms.AES(bytes(size))
    with pytest.raises(ValueError, match="Invalid key size"):
        algorithms.AES128(bytes(32))
    with pytest.raises(ValueError, match="Invalid key size"):
        algorithms.AES256(bytes(16))
    aes = algorithms.AES(bytes(32))
    assert (aes.name, aes.key_size, aes.block_size, aes.key) == ("AES", 256, 128, bytes(32))
    for name in ("CBC", "CFB", "OFB"):
        with pytest.raises(ValueError, match=rf"Invalid IV size \(15\) for {name}"):
            Cipher(aes, getattr(modes, name)(bytes(15)))
        with pytest.raises(TypeError, match="initialization_vector must be bytes-like"):
            getattr(modes, name)("x" * 16)
        assert getattr(modes, name)(IV).initialization_vector == IV and getattr(modes, name)(IV).name == name
    with pytest.raises(ValueError, match=r"Invalid nonce size \(12\) for CTR"):
        Cipher(aes, modes.CTR(bytes(12)))
    with pytest.raises(TypeError, match="nonce must be bytes-like"):
        modes.CTR("x" * 16)
    with pytest.raises(ValueError, match="16 bytes"):
        modes.XTS(bytes(15))
    with pytest.raises(ValueError, match="256-bit key for AES-128-XTS"):
        Cipher(algorithms.AES(bytes(16)), modes.XTS(IV))
    with pytest.raises(ValueError, match="Only 128, 192, and 256 bit keys"):
        Cipher(algorithms.AES(bytes(64)), modes.CTR(IV))
    with pytest.raises(ValueError):  # equal halves
        Cipher(algorithms.AES(bytes(64)), modes.XTS(IV)).encryptor()
    for size in (7, 129):
        with pytest.raises(ValueError, match="between 8 and 128"):
            modes.GCM(bytes(size))
    with pytest.raises(ValueError, match="16 bytes or longer"):
        modes.GCM(IV, bytes(15))
    with pytest.raises(ValueError, match=">= 4"):
        modes.GCM(IV, None, 3)
    with pytest.raises(ValueError, match="must be None when encrypting"):
        Cipher(aes, modes.GCM(IV, bytes(16))).encryptor()
    with pytest.raises(TypeError, match="CipherAlgorithm"):
        Cipher(b"", modes.CTR(IV))
    with pytest.raises(ValueError, match="at least a full block"):
        ours("XTS").encryptor().update(bytes(15))
    with pytest.raises(UnsupportedAlgorithm, match="CFB8"):
        modes.CFB8(IV)
    for name in ("TripleDES", "ChaCha20", "Camellia", "Blowfish", "ARC4", "SM4", "SEED", "IDEA", "CAST5"):
        with pytest.raises(UnsupportedAlgorithm, match=f"no {name}"):
            getattr(algorithms, name)(bytes(16))


def test_reset_nonce():
    mine, other = ours("CTR").encryptor(), theirs("CTR").encryptor()
    for context in (mine, other):
        context.update(b"some bytes, not whole blocks")
        context.reset_nonce(bytes(16))
    assert mine.update(bytes(100)) == other.update(bytes(100))
    with pytest.raises(ValueError, match="16 bytes long"):
        mine.reset_nonce(bytes(15))
    for name in ("ECB", "CBC", "CFB", "OFB", "GCM", "XTS"):
        with pytest.raises(UnsupportedAlgorithm, match="does not support resetting"):
            ours(name).encryptor().reset_nonce(bytes(16))


def test_contexts_are_of_pycas_kinds():
    assert isinstance(ours("CTR").encryptor(), CipherContext)
    assert not isinstance(ours("CTR").encryptor(), AEADCipherContext)
    assert isinstance(ours("GCM").encryptor(), AEADEncryptionContext)
    assert isinstance(ours("GCM").decryptor(), AEADDecryptionContext)
    assert not hasattr(ours("CTR").encryptor(), "tag")
    assert not hasattr(ours("GCM").decryptor(), "tag")
    assert Cipher(algorithms.AES(bytes(16)), modes.ECB(), backend=default_backend()).encryptor()


def test_a_counter_wraps():
    start = b"\xff" * 16
    mine = Cipher(algorithms.AES(bytes(16)), modes.CTR(start)).encryptor()
    other = Theirs(their_algorithms.AES(bytes(16)), their_modes.CTR(start)).encryptor()
    assert mine.update(bytes(64)) == other.update(bytes(64))


def test_the_modes_that_pyca_has_moved():
    from daelstrom.hazmat.decrepit.ciphers import modes as moved

    assert moved.CFB is modes.CFB and moved.OFB is modes.OFB


@given(pieces=st.lists(st.binary(max_size=40), max_size=5))
def test_padding_is_pycas(pieces):
    mine, other = padding.PKCS7(128).padder(), their_padding.PKCS7(128).padder()
    padded = b"".join([mine.update(piece) for piece in pieces] + [mine.finalize()])
    assert padded == b"".join([other.update(piece) for piece in pieces] + [other.finalize()])
    back = padding.PKCS7(128).unpadder()
    cut = len(padded) // 2
    assert back.update(padded[:cut]) + back.update(padded[cut:]) + back.finalize() == b"".join(pieces)
    with pytest.raises(AlreadyFinalized):
        back.update(b"")


def test_bad_padding_is_refused():
    for last in (bytes(16), b"\x11" * 16, b"x" * 15 + b"\x02", b""):
        context = padding.PKCS7(128).unpadder()
        context.update(last)
        with pytest.raises(ValueError):
            context.finalize()
    with pytest.raises(ValueError, match="blocks of 128"):
        padding.PKCS7(64)


def test_aes_of_one_size_says_it_and_takes_no_two_keys():
    for ours, theirs in ((algorithms.AES128, their_algorithms.AES128), (algorithms.AES256, their_algorithms.AES256)):
        assert ours.key_size == theirs.key_size and ours(bytes(ours.key_size // 8)).key_size == ours.key_size
    for key in (algorithms.AES256(bytes(range(32))), algorithms.AES128(bytes(range(16)))):
        with pytest.raises(TypeError, match="do not support XTS"):
            Cipher(key, modes.XTS(bytes(16)))


@pytest.mark.parametrize("size", range(4, 17))
def test_tags_of_every_size_that_pyca_takes(size):
    key, iv, text, aad = bytes(range(32)), bytes(range(12)), b"some text, more than a block of it", b"aad"
    theirs = Theirs(their_algorithms.AES(key), their_modes.GCM(iv)).encryptor()
    theirs.authenticate_additional_data(aad)
    secret = theirs.update(text) + theirs.finalize()
    for right in (True, False):
        tag = theirs.tag[:size] if right else theirs.tag[: size - 1] + bytes([theirs.tag[size - 1] ^ 1])
        for early in (True, False):
            context = Cipher(algorithms.AES(key), modes.GCM(iv, tag if early else None, min_tag_length=4)).decryptor()
            context.authenticate_additional_data(aad)
            assert context.update(secret[:7]) + context.update(secret[7:]) == text
            if right:
                context.finalize() if early else context.finalize_with_tag(tag)
            else:
                with pytest.raises(InvalidTag):
                    context.finalize() if early else context.finalize_with_tag(tag)


def test_objects_of_pycas_are_named():
    """As programs have them in which some of the imports were swapped."""
    with pytest.raises(TypeError, match="AES is of cryptography: import it from daelstrom"):
        Cipher(their_algorithms.AES(bytes(16)), modes.CTR(bytes(16)))
    with pytest.raises(TypeError, match="CTR is of cryptography: import it from daelstrom"):
        Cipher(algorithms.AES(bytes(16)), their_modes.CTR(bytes(16)))
    with pytest.raises(TypeError, match="mode is str; it is one of daelstrom's modes$"):
        Cipher(algorithms.AES(bytes(16)), "ctr")
    assert padding.PKCS7(128).block_size == 128
