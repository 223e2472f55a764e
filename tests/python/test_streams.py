# SPDX-License-Identifier: Apache-2.0
"""Sealed data in memory and through file objects, and keysets that are made and changed."""

import contextlib
import io
import linecache
import os
import random
import socket
import sys
import threading

import pytest
from test_files_state import data, in_child

import daelstrom
from daelstrom import exceptions, files, keysets

KEY = bytes(range(32))
NO_TAG = (exceptions.InvalidTag, exceptions.FormatError)


class Pieces(io.RawIOBase):
    """Gives and takes a part of what is asked."""

    def __init__(self, data=b""):
        self.data, self.chance = bytearray(data), random.Random(7)

    def readable(self):
        return True

    def read(self, size=-1):
        part = bytes(self.data[: self.chance.randrange(1, size + 1)])
        del self.data[: len(part)]
        return part

    def write(self, data):
        part = data[: self.chance.randrange(1, len(data) + 1)]
        self.data += part
        return len(part)


@pytest.mark.parametrize("segment", ["4K", "1M"])
def test_there_and_back(tmp_path, segment):
    for size in (0, 1, 4039, 4040, 4041, 8120, (8 << 20) - 2048 * 16 - 40, 9_000_000):
        plain = random.Random(size).randbytes(size)
        sealed = daelstrom.seal(plain, key=KEY, segment=segment, aad=b"v1")
        assert daelstrom.open_bytes(sealed, key=KEY, segment=segment, aad=b"v1") == plain
        (tmp_path / "file").write_bytes(sealed)
        assert daelstrom.open(tmp_path / "file", key=KEY, aad=b"v1").read() == plain
        to = Pieces()
        with daelstrom.seal_stream(to, key=KEY, segment=segment) as file:
            file.write(plain[: size // 2])
            file.write(plain[size // 2 :])
        with daelstrom.open_stream(Pieces(to.data), key=KEY, segment=segment) as file:
            assert file.read(size // 3) == plain[: size // 3] and file.read() == plain[size // 3 :] and file.read() == b""


def test_ways_to_seal(tmp_path):
    identity, recipient = files.generate_identity()
    keyset = keysets.Keyset.generate("AES128_GCM_HKDF_4KB")
    for seals, opens in (({"recipients": recipient}, {"identities": identity}), ({"keyset": keyset.json()}, {"keyset": keyset.json()}),
                         ({"recipients": files.Recipients.of_passphrase(b"hop", 10)}, {"passphrase": "hop"})):  # fmt: skip
        sealed = daelstrom.seal(b"text" * 3000, **seals)
        assert daelstrom.open_bytes(sealed, **opens) == b"text" * 3000
        with pytest.raises((ValueError, TypeError, *NO_TAG)):
            daelstrom.open_bytes(sealed, key=KEY)
    with pytest.raises(ValueError, match="no envelope"):
        daelstrom.open_bytes(daelstrom.seal(b"x", key=KEY), identities=identity)
    with pytest.raises(TypeError):
        daelstrom.seal(b"x", key=KEY, passphrase="y")


def test_damage_and_ends():
    plain = random.Random(3).randbytes(30_000)
    sealed = daelstrom.seal(plain, key=KEY, segment="4K")
    for cut in (0, 1, 55, 56, 4096, 8192, 4 * 4096, len(sealed) - 1):
        with pytest.raises(NO_TAG):
            daelstrom.open_bytes(sealed[:cut], key=KEY, segment="4K")
    with pytest.raises(NO_TAG):
        daelstrom.open_bytes(sealed + b"\0", key=KEY, segment="4K")
    for made in (bytes(56), daelstrom.seal(b"", key=bytes(32), segment="4K")):
        file = daelstrom.open_stream(io.BytesIO(made), key=KEY, segment="4K")
        for _ in range(2):
            with pytest.raises((ValueError, *NO_TAG)):
                file.read(1)
    out = io.BytesIO()
    with pytest.raises(KeyError), daelstrom.seal_stream(out, key=KEY) as file:
        file.write(bytes(9_000_000))
        raise KeyError
    with pytest.raises(NO_TAG):
        daelstrom.open_bytes(out.getvalue(), key=KEY, segment="1M")


def test_through_a_socket():
    one, other = socket.socketpair()
    plain = random.Random(4).randbytes(3_000_000)

    def sends():
        with one, one.makefile("wb") as raw, daelstrom.seal_stream(raw, key=KEY, segment="4K") as file:
            file.write(plain)

    thread = threading.Thread(target=sends)
    thread.start()
    with other, other.makefile("rb") as raw, daelstrom.open_stream(raw, key=KEY, segment="4K") as file:
        assert file.read() == plain
    thread.join()


def test_a_child_that_is_forked_amid_a_read():
    """What it reads is an error, and its close ends; its parent reads on."""
    plain = data(3_000_000)
    sealed = daelstrom.seal(plain, key=KEY, segment="4K")
    reads, writes = os.pipe()
    inside = threading.Event()

    class Pipe(io.FileIO):
        def read(self, size=-1):
            inside.set()
            return super().read(size)

    with Pipe(reads, "rb") as raw, open(writes, "wb", buffering=0) as to:
        file, got = daelstrom.open_stream(raw, key=KEY, segment="4K"), []
        thread = threading.Thread(target=lambda: got.append(file.read(10)))
        thread.start()
        inside.wait()

        def child():
            for _ in range(2):
                for reads_on in (lambda: file.read(1), lambda: file.readline(), lambda: file.raw.read(1)):
                    with pytest.raises(ValueError, match="fork"):
                        reads_on()
            file.close()
            return file.closed

        def sends():
            with to:
                for at in range(0, len(sealed), 30_000):
                    to.write(sealed[at : at + 30_000])

        sender = threading.Thread(target=sends)
        try:
            assert in_child(child) == 0
        finally:
            sender.start()
            thread.join()
        assert in_child(child) == 0  # with what was read ahead
        assert got == [plain[:10]] and file.read() == plain[10:] and file.read() == b""
        sender.join()
        file.close()
        assert in_child(lambda: file.closed) == 0


def test_keysets(tmp_path):
    keyset = keysets.Keyset.generate()
    (old,) = keyset.keys()
    assert old.primary and old.status == "enabled" and old.shape.startswith("AES256_GCM_HKDF_1MB")
    sealed = daelstrom.seal(b"old", keyset=keyset.json())
    new = keyset.add()
    keyset.promote(new)
    assert [key.id for key in keyset.keys() if key.primary] == [new]
    assert daelstrom.open_bytes(sealed, keyset=keyset.json()) == b"old"
    keyset.disable(old.id)
    assert keysets.Keyset(keyset.json().decode()).keys() == keyset.keys()
    with pytest.raises(NO_TAG):
        daelstrom.open_bytes(sealed, keyset=keyset.json())
    for refused in (lambda: keyset.disable(new), lambda: keyset.remove(new), lambda: keyset.promote(old.id),
                    lambda: keyset.enable(1 if old.id != 1 and new != 1 else 2), lambda: keyset.add("AES512"),
                    lambda: keysets.Keyset("{"), lambda: keysets.Keyset(b"")):  # fmt: skip
        with pytest.raises(ValueError):
            refused()
    keyset.enable(old.id)
    keyset.remove(old.id)
    path = tmp_path / "keyset.json"
    usual = os.umask(0)
    try:
        keyset.save(path)
    finally:
        os.umask(usual)
    assert path.stat().st_mode & 0o777 == 0o600 and keysets.Keyset(path.read_bytes()).keys() == keyset.keys()
    with pytest.raises(FileExistsError):
        keyset.save(path)
    keyset.add()
    keyset.save(path, replace=True)
    assert len(keysets.Keyset(path.read_bytes()).keys()) == 2


def test_an_interrupt_at_any_line_leaves_no_hole():
    """The interpreter's reader drops what it has of a call that an exception ends."""
    plain = bytes(range(256)) * 1200
    sealed = daelstrom.seal(plain, key=KEY, segment="4K")
    interrupted = 0
    for n in range(200):
        file, left = daelstrom.open_stream(io.BytesIO(sealed), key=KEY), [n]

        def line(frame, event, arg, left=left):
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            # The line that sees to it, and where nothing is called: no signal is taken there.
            if event == "line" and "_turn()" not in text and not text.startswith(("return", "failed, self._failed")):
                left[0] -= 1
                if left[0] == -1:
                    raise KeyboardInterrupt
            return line

        read = [file.read(100)]
        sys.settrace(lambda frame, event, arg, line=line: line if frame.f_code.co_name in ("readinto", "_open_more", "_some") else None)
        try:
            read += [file.read(100_000) for _ in range(2)]
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(None)
        with contextlib.suppress(ValueError):
            while part := file.read(3000):
                read.append(part)
        assert plain.startswith(b"".join(read)), n
        if left[0] >= 0:
            break
    assert interrupted == n > 5, n
