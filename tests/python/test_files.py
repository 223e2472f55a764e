# SPDX-License-Identifier: Apache-2.0
"""daelstrom.open and open_into: sealed files from Python, against the program's format, stock Tink and damage."""

import base64
import gc
import io
import json
import os
import random
import subprocess
import sys
import threading
import zlib

import pytest

import daelstrom
from daelstrom import exceptions, files

KEY = bytes(range(32))
SEGMENTS = ("4K", "1M")


def data(size):
    return random.Random(size).randbytes(size)


def write(path, plain, piece=None, **how):
    how = how or {"key": KEY}
    with daelstrom.open(path, "wb", **how) as file:
        for at in range(0, len(plain), piece or max(1, len(plain))):
            assert file.write(plain[at : at + (piece or len(plain))]) in (piece, len(plain[at:]))
        assert file.tell() == len(plain)


def sizes(segment, key=32):
    room, header = (4096 if segment == "4K" else 1 << 20) - 16, 8 + key
    some = [0, 1, 4095, room - header - 1, room - header, room - header + 1, 2 * room - header, 2 * room - header + 1]
    return [*some, 3 * room] if segment == "1M" else [*some, 100 * room + 17]


@pytest.mark.parametrize("segment", SEGMENTS)
def test_there_and_back(tmp_path, segment):
    path = tmp_path / "file"
    for size in sizes(segment):
        plain = data(size)
        write(path, plain, key=KEY, segment=segment, aad=b"bound")
        assert path.stat().st_size == files.SealedKeys.of_key(KEY, files.segment_size(segment)).sealed_size(size)
        with daelstrom.open(path, key=KEY, aad=b"bound", verify=True) as file:
            assert file.size == size
            assert file.read() == plain
            assert file.read() == b""
        into = bytearray(b"\xee" * size)
        assert daelstrom.open_into(path, into, key=KEY, aad=b"bound") is into
        assert into == plain


def test_larger_than_the_windows(tmp_path):
    plain = data((33 << 20) + 12345)
    write(tmp_path / "file", plain, piece=3_333_333)
    with daelstrom.open(tmp_path / "file", key=KEY) as file:
        assert file.read() == plain
        for at, size in [(0, 9 << 20), (1, 20 << 20), ((8 << 20) - 100, 8 << 20), (5, len(plain) - 5), (len(plain), 0)]:
            assert file.read_at(at, size) == plain[at : at + size]
            into = bytearray(b"\xee" * size)
            file.seek(at)
            assert file.readinto(into) == size
            assert into == plain[at : at + size]


@pytest.mark.parametrize("segment", SEGMENTS)
def test_any_range(tmp_path, segment):
    plain = data(3_000_001)
    write(tmp_path / "file", plain, key=KEY, segment=segment)
    chance = random.Random(7)
    reference = io.BytesIO(plain)
    with daelstrom.open(tmp_path / "file", key=KEY) as file:
        for _ in range(400):
            at = chance.choice([chance.randrange(len(plain) + 9), file.tell(), max(0, file.tell() - 50)])
            size = chance.choice([0, 1, 100, 4080, 70_000, 1 << 20, -1 if chance.random() < 0.1 else 3])
            how = chance.randrange(4)
            assert file.seek(at) == reference.seek(at) == at
            if how == 0:
                assert file.read(size) == reference.read(size)
            elif how == 1:
                into, same = bytearray(max(size, 0)), bytearray(max(size, 0))
                assert file.readinto(into) == reference.readinto(same)
                assert into == same
            elif how == 2:
                peeked = file.peek(10)
                assert plain[at : at + len(peeked)] == peeked and bool(peeked) == (at < len(plain))
                assert file.tell() == at
            else:
                assert file.read_at(at, max(size, 0)) == plain[at : at + max(size, 0)]
            reference.seek(file.tell())


def test_a_file_as_python_has_them(tmp_path):
    text = "first\nsecond é\n\nlast"
    write(tmp_path / "file", text.encode())
    with daelstrom.open(tmp_path / "file", key=KEY) as file:
        assert file.readable() and file.seekable() and not file.writable()
        assert list(file) == io.BytesIO(text.encode()).readlines()
        assert file.seek(-4, io.SEEK_END) == len(text.encode()) - 4
        assert file.read1() == b"last"
        with pytest.raises(ValueError, match="negative"):
            file.seek(-1)
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"")
    assert io.TextIOWrapper(daelstrom.open(tmp_path / "file", key=KEY), encoding="utf-8").read() == text
    assert file.closed and "closed" in repr(file)
    for call in (file.read, file.tell, lambda: file.seek(0), lambda: file.read_at(0, 1), file.verify):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_text(tmp_path):
    path = tmp_path / "file"
    with daelstrom.open(path, "wt", key=KEY) as file:
        file.write("first é\nsecond\n" * 5000)
    with daelstrom.open(path, "rt", key=KEY) as file:
        assert file.readline() == "first é\n" and sum(1 for _ in file) == 9999
    with pytest.raises(KeyError), daelstrom.open(path, "wt", key=KEY) as file:
        file.write("never")
        raise KeyError
    assert daelstrom.open(path, key=KEY).read(8) == "first é".encode()
    with daelstrom.open(path, "wt", key=KEY, encoding="utf-16-le", newline="\r\n") as file:
        file.write("x\n")
    assert daelstrom.open(path, key=KEY).read() == "x\r\n".encode("utf-16-le")
    with pytest.raises(FileExistsError):
        daelstrom.open(path, "xt", key=KEY)


def test_from_many_threads(tmp_path):
    plain = data(5 << 20)
    write(tmp_path / "file", plain)
    wrong = []
    with daelstrom.open(tmp_path / "file", key=KEY) as file:

        def reads(seed):
            chance = random.Random(seed)
            for _ in range(40):
                at = chance.randrange(len(plain))
                size = chance.choice([10, 5000, 1 << 20])
                if file.read_at(at, size) != plain[at : at + size]:
                    wrong.append(at)

        threads = [threading.Thread(target=reads, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_damage_is_found_where_it_is_read(tmp_path):
    plain, path = data(40_000), tmp_path / "file"
    write(path, plain, key=KEY, segment="4K")
    good = path.read_bytes()
    bad = bytearray(good)
    bad[5 * 4096 + 9] ^= 1  # in segment 5
    path.write_bytes(bad)
    with daelstrom.open(path, key=KEY, verify=True) as file:
        assert file.read(4000) == plain[:4000]
        into = bytearray(b"\xee" * len(plain))
        file.seek(0)
        with pytest.raises(exceptions.InvalidTag, match="segment 5"):
            file.readinto(into)
        assert file.read_at(30_000, 100) == plain[30_000:30_100]
    into = bytearray(b"\xee" * len(plain))
    with pytest.raises(exceptions.InvalidTag):
        daelstrom.open_into(path, into, key=KEY)
    assert not any(into)


def test_a_file_that_was_cut_off_or_added_to(tmp_path):
    path = tmp_path / "file"
    write(path, data(40_000), key=KEY, segment="4K")
    good = path.read_bytes()
    for changed in (good[:-1], good[:8192], good + b"\0" * 100, good[:4096] + good[8192:]):
        path.write_bytes(changed)
        with daelstrom.open(path, key=KEY) as file:  # the beginning is what it was
            with pytest.raises(exceptions.InvalidTag):
                file.verify()
            with pytest.raises(exceptions.InvalidTag):
                file.read()
        with pytest.raises(exceptions.InvalidTag):
            daelstrom.open(path, key=KEY, verify=True)
    for changed in (b"", good[:39], good[:4096 + 3]):
        path.write_bytes(changed)
        with pytest.raises((exceptions.FormatError, exceptions.InvalidTag)):
            daelstrom.open(path, key=KEY, verify=True)


def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path):
    path = tmp_path / "file"
    write(path, data(3 << 20))
    with daelstrom.open(path, key=KEY) as file:
        os.truncate(path, 1 << 20)
        with pytest.raises(OSError, match="shorter"):
            file.read()


def test_other_keys_and_other_data(tmp_path):
    write(tmp_path / "file", b"text", key=KEY, aad=b"one")
    for how in ({"key": bytes(32), "aad": b"one"}, {"key": KEY, "aad": b"two"}, {"key": KEY}):
        with pytest.raises(exceptions.InvalidTag):
            daelstrom.open(tmp_path / "file", **how).read()
    with pytest.raises(exceptions.FormatError):
        daelstrom.open(tmp_path / "file", key=KEY[:16])


def tink_keyset(*keys, primary=0):
    """The JSON of keysets, byte by byte as Tink's protobuf has it."""
    rows = []
    for number, (key, segment) in enumerate(keys, 1):
        size = bytes((8,)) + bytes(varint(segment)) + bytes((16, len(key), 24, 3))
        value = bytes((18, len(size))) + size + bytes((26, len(key))) + key
        rows.append({"keyData": {"typeUrl": "type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey",
                                 "value": base64.b64encode(value).decode(), "keyMaterialType": "SYMMETRIC"},
                     "status": "ENABLED", "keyId": number, "outputPrefixType": "RAW"})  # fmt: skip
    return json.dumps({"primaryKeyId": primary + 1, "key": rows})


def varint(value):
    while value > 127:
        yield value & 127 | 128
        value >>= 7
    yield value


def test_keysets(tmp_path):
    old, new = (bytes([n]) * 32 for n in (1, 2))
    write(tmp_path / "file", b"text" * 3000, keyset=tink_keyset((old, 4096)))
    both = tink_keyset((old, 4096), (new, 4096), primary=1)
    assert daelstrom.open(tmp_path / "file", keyset=both).read() == b"text" * 3000
    write(tmp_path / "file", b"newer", keyset=both.encode())
    assert daelstrom.open(tmp_path / "file", key=new, segment="4K").read() == b"newer"
    with pytest.raises(exceptions.InvalidTag):
        daelstrom.open(tmp_path / "file", keyset=tink_keyset((old, 4096))).read()


def test_stock_tink(tmp_path):
    tink = pytest.importorskip("tink", reason="no Tink: scripts/setup installs it")
    from tink import secret_key_access, streaming_aead

    streaming_aead.register()
    for segment, size in ((4096, 50_000), (1 << 20, 2_500_000)):
        keyset = tink_keyset((KEY, segment))
        primitive = tink.json_proto_keyset_format.parse(keyset, secret_key_access.TOKEN).primitive(
            streaming_aead.StreamingAead)  # fmt: skip
        plain = data(size)
        write(tmp_path / "ours", plain, keyset=keyset, aad=b"bound")
        with (tmp_path / "ours").open("rb") as sealed, primitive.new_decrypting_stream(sealed, b"bound") as stream:
            assert stream.read() == plain
        theirs = io.BytesIO()
        theirs.close = lambda: None
        with primitive.new_encrypting_stream(theirs, b"bound") as stream:
            stream.write(plain)
        (tmp_path / "theirs").write_bytes(theirs.getvalue())
        assert daelstrom.open(tmp_path / "theirs", keyset=keyset, aad=b"bound", verify=True).read() == plain


def test_the_program(tmp_path):
    program = os.environ.get("DAELSTROM")
    if not program or not os.access(program, os.X_OK):
        pytest.skip("needs the program, which DAELSTROM names")
    plain = data(3_000_000)
    (tmp_path / "key").write_bytes(KEY)
    identity, recipient = files.generate_identity()
    (tmp_path / "identity").write_text(identity + "\n")
    os.chmod(tmp_path / "identity", 0o600)
    for ours, seals, opens in (
        ({"key": KEY, "aad": b"x"}, ["--key-file", "key", "--aad", "x"], ["--key-file", "key", "--aad", "x"]),
        ({"identities": identity}, ["-r", recipient], ["-i", "identity"]),
    ):

        def run(*words, given):
            return subprocess.run([program, *words], cwd=tmp_path, input=given, capture_output=True, check=True).stdout

        (tmp_path / "theirs").write_bytes(run("seal", *seals, "-o", "-", given=plain))
        assert daelstrom.open(tmp_path / "theirs", verify=True, **ours).read() == plain
        how = {"recipients": recipient} if "identities" in ours else ours
        write(tmp_path / "ours", plain, **how)
        assert run("open", *opens, given=(tmp_path / "ours").read_bytes()) == plain


def test_recipients_and_passphrases(tmp_path):
    path = tmp_path / "file"
    (me, my_name), (you, your_name) = files.generate_identity(), files.generate_identity()
    write(path, b"for two", recipients=[my_name, your_name])
    for identity in (me, you, [you, me], files.Identities.parse(me.encode())):
        assert daelstrom.open(path, identities=identity, verify=True).read() == b"for two"
    with pytest.raises(exceptions.InvalidTag):
        daelstrom.open(path, identities=files.generate_identity()[0])
    with pytest.raises(ValueError, match="recipients or with a passphrase"):
        daelstrom.open(path, key=KEY)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(exceptions.FormatError, match="cut off"):
        daelstrom.open(path, identities=me)
    with daelstrom.open(path, "wb", recipients=files.Recipients.of_passphrase("hop é".encode(), 10)) as file:
        file.write(b"by passphrase")
    assert daelstrom.open(path, passphrase="hop é").read() == b"by passphrase"
    with pytest.raises(exceptions.InvalidTag):
        daelstrom.open(path, passphrase="hop")
    write(path, b"by key")
    with pytest.raises(ValueError, match="no envelope"):
        daelstrom.open(path, passphrase="hop")


def test_what_is_not_finished_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    write(path, b"old")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(KeyError), daelstrom.open(path, "wb", key=KEY) as file:
        file.write(b"x" * (20 << 20))
        assert sorted(os.listdir(tmp_path)) == before
        raise KeyError
    assert file.closed
    with daelstrom.open(path, "wb", key=KEY) as file:
        file.write(b"new")
        file.discard()
    file = daelstrom.open(path, "wb", key=KEY)
    file.write(b"never closed")
    with pytest.warns(ResourceWarning, match="never closed"):
        del file
        gc.collect()
    assert sorted(os.listdir(tmp_path)) == before
    assert daelstrom.open(path, key=KEY).read() == b"old"


def test_a_process_that_dies_leaves_nothing(tmp_path):
    program = ("import os, sys, daelstrom\n"
               "file = daelstrom.open(sys.argv[1], 'wb', key=bytes(32)); file.write(bytes(20 << 20)); os._exit(9)")  # fmt: skip
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")]).returncode == 9
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full(tmp_path):
    """After a write that fails the file is closed, and there is none."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limit[1]))
    try:
        file = daelstrom.open(tmp_path / "file", "wb", key=KEY)
        with pytest.raises(OSError):
            file.write(bytes(30 << 20))
        assert file.closed
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert os.listdir(tmp_path) == []


def test_where_files_go(tmp_path):
    path = tmp_path / "file"
    write(path, b"1")
    os.chmod(path, 0o640)
    write(path, b"2")
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileExistsError):
        daelstrom.open(path, "xb", key=KEY)
    with daelstrom.open(tmp_path / "other", "xb", key=KEY) as file:
        file.write(b"3")
    link = tmp_path / "link"
    link.symlink_to(path)
    write(link, b"4")
    assert link.is_symlink() and daelstrom.open(path, key=KEY).read() == b"4"
    with pytest.raises(FileNotFoundError):
        daelstrom.open(tmp_path / "no" / "folder", "wb", key=KEY)
    with pytest.raises(IsADirectoryError):
        daelstrom.open(tmp_path, "wb", key=KEY)
    with pytest.raises(ValueError, match="no regular file"):
        daelstrom.open(os.devnull, "wb", key=KEY)
    with pytest.raises(io.UnsupportedOperation, match="not a regular file"):
        daelstrom.open(os.devnull, key=KEY)
    assert os.path.exists(os.devnull)


def test_wrong_uses_say_what_is_wrong(tmp_path):
    path = tmp_path / "file"
    write(path, b"text")
    for mode, how, error in (
        ("r", {"key": KEY}, "'rt'"), ("rb", {"key": KEY, "encoding": "latin-1"}, "for text"), ("ab", {"key": KEY}, "mode"), ("rb", {}, "one of key="),
        ("rb", {"key": KEY, "passphrase": "x"}, "one of key="), ("rb", {"recipients": "age1"}, "takes identities="),
        ("wb", {"identities": "AGE"}, "takes recipients="), ("wb", {"key": KEY, "verify": True}, "reading"),
        ("rb", {"key": KEY, "segment": 5}, "'4K' or '1M'"), ("rb", {"key": KEY[:20]}, "20 bytes"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=error):
            daelstrom.open(path, mode, **how)
    with pytest.raises(ValueError, match="the output 3"):
        daelstrom.open_into(path, bytearray(3), key=KEY)
    with pytest.raises(BufferError, match="read-only"):
        daelstrom.open_into(path, b"1234", key=KEY)


def test_no_descriptor_is_left_open(tmp_path):
    write(tmp_path / "file", b"text")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(1000):
        daelstrom.open(tmp_path / "file", key=KEY).close()
        daelstrom.open(tmp_path / "other", "wb", key=KEY).discard()
        with pytest.raises(exceptions.InvalidTag):
            daelstrom.open(tmp_path / "file", key=bytes(32))
    assert len(os.listdir("/proc/self/fd")) == before


def test_after_fork(tmp_path):
    """A child reads; a writer of its parent's is at its end there, since nonces would repeat."""
    write(tmp_path / "file", b"text" * 1000)
    reader, writer = daelstrom.open(tmp_path / "file", key=KEY), daelstrom.open(tmp_path / "other", "wb", key=KEY)
    child = os.fork()
    if child == 0:
        try:
            good = reader.read() == b"text" * 1000
            try:
                writer.write(bytes(20 << 20))
                good = False
            except ValueError as error:
                good = good and "parent" in str(error)
            os._exit(0 if good else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.write(b"the parent's")
    writer.close()
    assert daelstrom.open(tmp_path / "other", key=KEY).read() == b"the parent's"


def test_into_arrays(tmp_path):
    numpy = pytest.importorskip("numpy", reason="no numpy")
    array = numpy.random.default_rng(1).random((100, 300))
    with daelstrom.open(tmp_path / "file", "wb", key=KEY) as file:
        file.write(array)
    back = numpy.full_like(array, numpy.nan)
    assert daelstrom.open_into(tmp_path / "file", back, key=KEY) is back
    assert (back == array).all()
    with pytest.raises(BufferError, match="contiguous"):
        daelstrom.open_into(tmp_path / "file", numpy.empty((300, 200)).T[::2], key=KEY)


def test_checksums_of_what_two_ways_read(tmp_path):
    plain = data(9_999_999)
    write(tmp_path / "file", plain)
    with daelstrom.open(tmp_path / "file", key=KEY) as file:
        sums = [0, 0]
        while block := file.read(65536):
            sums[0] = zlib.crc32(block, sums[0])
        file.seek(0)
        block = bytearray(6 << 20)
        while got := file.readinto(block):
            sums[1] = zlib.crc32(memoryview(block)[:got], sums[1])
    assert sums == [zlib.crc32(plain)] * 2


# On a GPU.


def test_devices_that_it_is_not_for(tmp_path):
    """Of devices' memory it is CUDA's that files open into; OpenCL's stays what it was."""
    if not any(row["present"] and row["name"].startswith("opencl") for row in daelstrom.list_backends()):
        pytest.skip("no OpenCL device (pocl-opencl-icd)")
    engine, back = daelstrom.Engine("opencl"), bytearray(5000)
    write(tmp_path / "file", data(5000))
    out = daelstrom._core.DeviceMemory(5000, engine=engine)
    out.copy_in(b"\xee" * 5000)
    with pytest.raises(exceptions.UnsupportedAlgorithm, match="host memory"):
        daelstrom.open_into(tmp_path / "file", out, key=KEY, engine=engine)
    out.copy_out(back)
    assert back == b"\xee" * 5000


def test_into_a_gpu(tmp_path):
    torch = pytest.importorskip("torch", reason="no torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    if not any(row["present"] and row["name"].startswith("cuda") for row in daelstrom.list_backends()):
        pytest.skip("this build of daelstrom finds no CUDA device")
    for size in (1, 4096, (1 << 20) - 56, 70 << 20):
        plain = data(size)
        write(tmp_path / "file", plain)
        out = torch.full((size,), 0xEE, dtype=torch.uint8, device="cuda")
        daelstrom.open_into(tmp_path / "file", out, key=KEY)
        assert bytes(out.cpu().numpy()) == plain
        bad = bytearray((tmp_path / "file").read_bytes())
        bad[-1] ^= 1
        (tmp_path / "file").write_bytes(bad)
        out.fill_(0xEE)
        with pytest.raises(exceptions.InvalidTag):
            daelstrom.open_into(tmp_path / "file", out, key=KEY)
        # Wiped; or left as it was, where the first segment already shows that no key fits.
        assert not out.any() or (size < 1 << 20 and bool((out == 0xEE).all()))
