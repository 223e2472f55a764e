# SPDX-License-Identifier: Apache-2.0
"""Encrypted weights: the CryptoTensors format both ways with the package itself, on the host and on devices."""

import base64
import json
import os
import random
import struct

import pytest

numpy = pytest.importorskip("numpy", reason="no numpy")

import daelstrom  # noqa: E402
from daelstrom import _core, cryptotensors, weights  # noqa: E402
from daelstrom.exceptions import FormatError, InvalidSignature, InvalidTag, UnsupportedAlgorithm  # noqa: E402

KEYS = weights.Keys.generate()


def some_tensors(seed=0):
    make = numpy.random.default_rng(seed)
    return {
        "layer.0.weight": make.random((300, 700)),
        "layer.0.bias": make.random(700).astype("f4"),
        "half": make.random((3, 5, 7)).astype("f2"),
        "scalar": numpy.float32(2.5).reshape(()),
        "bytes": make.integers(0, 256, 4097, "u1"),
        "flags": make.integers(0, 2, 19).astype(bool),
        "complex": (make.random(9) + 1j * make.random(9)).astype("c8"),
        "empty": numpy.zeros((0, 4), "i8"),
        "called \"é\"\n\x7f\u2028": numpy.arange(-5, 5, dtype="i2"),
    }


def same(one, other):
    assert set(one) == set(other)
    for name in one:
        assert one[name].dtype == other[name].dtype and one[name].shape == other[name].shape, name
        assert one[name].tobytes() == other[name].tobytes(), name


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "weights.safetensors"
    weights.save_file(some_tensors(), path, key=KEYS, metadata={"by": "tests é"}, chunk_size=100_000)
    return path


def header_of(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def rewrite(path, header, data):
    text = json.dumps(header, ensure_ascii=False).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def signed(path, header, data, keys=KEYS):
    """What somebody who may sign would write."""
    metadata = {name: value for name, value in header["__metadata__"].items() if name != "__signature__"}
    tensors = {name: cryptotensors.Tensor(t["dtype"], tuple(t["shape"]), *t["data_offsets"])
               for name, t in header.items() if name != "__metadata__"}  # fmt: skip
    signature = _core.ed25519_sign(keys.signer()[1], cryptotensors.canonical(metadata, tensors))
    header["__metadata__"]["__signature__"] = base64.b64encode(signature).decode()
    rewrite(path, header, data)


@pytest.mark.parametrize("chunk", [1, 777, 100_000, 2 << 20])
def test_there_and_back(tmp_path, chunk):
    tensors = some_tensors()
    if chunk == 1:
        tensors = {name: tensors[name] for name in ("half", "scalar", "empty")}
    path = tmp_path / "file"
    for bits in (128, 256):
        keys = weights.Keys.generate(bits)
        weights.save_file(tensors, path, key=keys, metadata={"by": "us"}, chunk_size=chunk)
        same(weights.load_file(path, key=keys), tensors)
        with weights.WeightFile(path, keys) as file:
            assert file.metadata == {"by": "us"}
            assert set(file.keys()) == set(tensors)
            assert all(file[name].begin % array.itemsize == 0 for name, array in tensors.items())
    assert daelstrom.weights is weights


@pytest.fixture
def small_windows(monkeypatch):
    """64 KiB in place of 32 MiB, so that a little data takes the way of much."""
    monkeypatch.setattr(weights, "_WINDOW", 64 << 10)


@pytest.mark.parametrize("chunk", [10_000, 64 << 10, 300_000])
def test_larger_than_the_windows(tmp_path, small_windows, chunk):
    big = numpy.frombuffer(random.Random(1).randbytes(2_500_001), "u1")
    tensors = {"a": big[:1_000_000], "b": big[1_000_000:], **some_tensors()}
    weights.save_file(tensors, tmp_path / "file", key=KEYS, chunk_size=chunk)
    same(weights.load_file(tmp_path / "file", key=KEYS), tensors)


def test_nothing_of_a_plaintext_is_in_the_file(saved):
    raw = saved.read_bytes()
    for array in some_tensors().values():
        plain = array.tobytes()
        assert len(plain) < 16 or all(plain[at : at + 16] not in raw for at in range(0, len(plain) - 16, 5000))
    for secret in ("k", "d"):
        jwk = (KEYS.encryption if secret == "k" else KEYS.signing)[0]
        assert jwk[secret].encode() not in raw and base64.b64decode(jwk[secret]) not in raw


def test_some_of_them_into_memory_that_is_there(saved):
    tensors = some_tensors()
    with weights.WeightFile(saved, KEYS) as file:
        out = {name: bytearray(b"\xee" * tensors[name].nbytes) for name in ("bytes", "half")}
        file.load_into(out)
        assert all(bytes(out[name]) == tensors[name].tobytes() for name in out)
        with pytest.raises(KeyError, match="none"):
            file.load_into({"none": bytearray(1)})
        with pytest.raises(ValueError, match="4097 bytes"):
            file.load_into({"bytes": bytearray(4096)})
    with pytest.raises(ValueError, match="closed"):
        file.load_into({})


def test_an_altered_chunk_is_named_and_all_is_wiped(saved):
    header, data = header_of(saved)
    begin, end = header["layer.0.weight"]["data_offsets"]
    bad = bytearray(data)
    bad[begin + 250_000] ^= 8  # in chunk 2 of 100,000 bytes
    rewrite(saved, header, bytes(bad))
    tensors = some_tensors()
    with weights.WeightFile(saved, KEYS) as file:
        out = {name: bytearray(b"\xee" * tensors[name].nbytes) for name in ("bytes", "layer.0.weight")}
        with pytest.raises(InvalidTag, match="chunk 2 of tensor 'layer.0.weight'"):
            file.load_into(out)
        assert not any(any(memory) for memory in out.values())
        file.load_into({"bytes": out["bytes"]})  # which is whole
    with pytest.raises(InvalidTag):
        weights.load_file(saved, key=KEYS)


def test_an_empty_tensor_has_a_tag_too(saved):
    header, data = header_of(saved)
    entries = json.loads(header["__metadata__"]["__encryption__"])
    entries["empty"]["tags"] = base64.b64encode(bytes(16)).decode()
    header["__metadata__"]["__encryption__"] = json.dumps(entries)
    signed(saved, header, data)
    with pytest.raises(InvalidTag, match="'empty'"):
        weights.load_file(saved, key=KEYS)


def test_chunks_cannot_be_swapped(tmp_path):
    array = numpy.frombuffer(random.Random(2).randbytes(4000), "u1")
    weights.save_file({"a": array, "b": array[::-1].copy()}, tmp_path / "file", key=KEYS, chunk_size=1000)
    header, data = header_of(tmp_path / "file")
    for swapped in (data[1000:2000] + data[:1000] + data[2000:], data[4000:] + data[:4000]):
        rewrite(tmp_path / "file", header, swapped)
        with pytest.raises(InvalidTag):
            weights.load_file(tmp_path / "file", key=KEYS)


def test_the_header_is_verified(saved):
    original, data = header_of(saved)

    def change(what):
        header = json.loads(json.dumps(original))
        what(header)
        rewrite(saved, header, data)

    def shape(h):
        h["half"]["shape"] = [5, 3, 7]

    def names(h):
        h["bytes2"] = h.pop("bytes")

    def own(h):
        h["__metadata__"]["by"] = "somebody else"

    def policy(h):
        h["__metadata__"]["__policy__"] = "{}"

    for what in (shape, names, own, policy):
        change(what)
        with pytest.raises(InvalidSignature):
            weights.load_file(saved, key=KEYS)
    rewrite(saved, original, data)  # written another way, but the same
    weights.load_file(saved, key=KEYS)
    with pytest.raises(InvalidSignature):
        weights.load_file(saved, key={"enc_key": KEYS.encryption[0], "sign_key": weights.Keys.generate().signing[0]})
    with pytest.raises(InvalidTag, match="master key"):
        weights.load_file(saved, key={"enc_key": weights.Keys.generate().encryption[0], "sign_key": KEYS.signing[0]})
    change(lambda h: h["__metadata__"].pop("__signature__"))
    with pytest.raises(FormatError, match="not encrypted"):
        weights.load_file(saved, key=KEYS)


def test_headers_that_make_no_sense(saved, tmp_path):
    original, data = header_of(saved)
    raw = saved.read_bytes()
    for bad in (b"", raw[:7], raw[:100], raw[:-1], raw + b"x", struct.pack("<Q", 1 << 60) + raw[8:],
                struct.pack("<Q", 10) + b"[1,2,3,4] ", struct.pack("<Q", 2) + b"{}"):  # fmt: skip
        saved.write_bytes(bad)
        with pytest.raises(FormatError):
            weights.load_file(saved, key=KEYS)

    def bad_header(what):
        header = json.loads(json.dumps(original))
        what(header)
        rewrite(saved, header, data)
        with pytest.raises((FormatError, InvalidSignature)):
            weights.load_file(saved, key=KEYS)

    for value in ([1, 2], ["x"], [-1], [1.0], "x", None):
        bad_header(lambda h, value=value: h["half"].update(shape=value))
    bad_header(lambda h: h["half"].update(dtype="F12"))
    bad_header(lambda h: h["half"].update(more=1))
    bad_header(lambda h: h["half"].update(data_offsets=[0]))
    bad_header(lambda h: h["__metadata__"].update(by=3))
    text = json.dumps(original).replace('"half":', '"half": {}, "half":', 1).encode()
    saved.write_bytes(struct.pack("<Q", len(text)) + text + data)
    with pytest.raises(FormatError, match="twice"):
        weights.load_file(saved, key=KEYS)


def test_what_a_signer_could_do_wrong(saved):
    original, data = header_of(saved)

    def resigned(name, what, error, match):
        header = json.loads(json.dumps(original))
        value = json.loads(header["__metadata__"][name])
        what(value)
        header["__metadata__"][name] = json.dumps(value)
        signed(saved, header, data)
        with pytest.raises(error, match=match):
            weights.load_file(saved, key=KEYS)

    def edit(entry):
        return lambda value: value["half"].update(entry)

    resigned("__crypto_keys__", lambda v: v.update(version="3"), UnsupportedAlgorithm, "version")
    resigned("__crypto_keys__", lambda v: v["enc"].update(alg="chacha20poly1305"), UnsupportedAlgorithm, "chacha20")
    resigned("__crypto_keys__", lambda v: v.update(chunk_size=0), FormatError, "chunk_size")
    resigned("__encryption__", edit({"tags": base64.b64encode(bytes(32)).decode()}), FormatError, "'half' has 32 bytes")
    resigned("__encryption__", edit({"base_iv": "AAAA"}), FormatError, "of IV")
    resigned("__encryption__", edit({"tags": "*"}), FormatError, "base64")
    resigned("__encryption__", edit({"wrapped_key": "AAAA"}), ValueError, "wrapped key")
    # The counter in a tensor's IVs would pass its end.
    resigned("__encryption__", lambda v: v["layer.0.weight"].update(base_iv=base64.b64encode(b"\xff" * 12).decode()),
             ValueError, "counter")  # fmt: skip
    resigned("__encryption__", lambda v: v.pop("half"), FormatError, "'half' is not encrypted")
    resigned("__policy__", lambda v: v.update(local="package model\nallow = false"), UnsupportedAlgorithm, "Rego")
    same(weights.load_file(saved, key=KEYS, ignore_policy=True), some_tensors())


def test_keys_are_chosen_by_name(saved, tmp_path):
    named = weights.Keys([dict(KEYS.encryption[0], kid="e")], [dict(KEYS.signing[0], kid="s")])
    other = weights.Keys.generate()
    ring = weights.Keys([dict(other.encryption[0], kid="e2"), *named.encryption],
                        [dict(other.signing[0], kid="s2"), *named.signing])  # fmt: skip
    weights.save_file(some_tensors(), saved, key=named)
    same(weights.load_file(saved, key=ring), some_tensors())
    (tmp_path / "jwks").write_text(json.dumps(ring.to_dict()))
    same(weights.load_file(saved, key=tmp_path / "jwks"), some_tensors())
    # As JWKs have it: the alphabet for URLs, without padding.
    told = json.loads(json.dumps(ring.to_dict()).translate({ord("+"): "-", ord("/"): "_", ord("="): None}))
    same(weights.load_file(saved, key=told), some_tensors())
    public = [{name: value for name, value in named.signing[0].items() if name != "d"}]
    same(weights.load_file(saved, key=[*named.encryption, *public]), some_tensors())
    with pytest.raises(ValueError, match="no d"):
        weights.save_file(some_tensors(), saved, key=[*named.encryption, *public])
    with pytest.raises(ValueError, match="2 keys"):
        weights.save_file(some_tensors(), saved, key=ring)
    with pytest.raises(ValueError, match="0 keys to verify"):
        weights.load_file(saved, key=named.encryption)
    assert "k" not in repr(KEYS) or KEYS.encryption[0]["k"] not in repr(KEYS)


def test_writing_says_what_is_wrong_and_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    for tensors, how, error in (
        ({"a": numpy.array(["x"])}, {}, "dtype"), ({"__metadata__": numpy.zeros(1)}, {}, "__metadata__"),
        ({"a": numpy.zeros(1)}, {"metadata": {"__x": "y"}}, "metadata"), ({"a": numpy.zeros(1)}, {"chunk_size": 0}, "chunk_size"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=error):
            weights.save_file(tensors, path, key=KEYS, **how)
    assert os.listdir(tmp_path) == []


# The package itself.


@pytest.fixture
def theirs():
    package = pytest.importorskip("cryptotensors", reason="no cryptotensors: scripts/setup installs it, up to Python 3.13")
    import cryptotensors.numpy

    return package


def config(package, keys, writes=False, **more):
    kind = package.SerializeCryptoConfig if writes else package.DeserializeCryptoConfig
    return kind(enc_key=keys.encryption[0], sign_key=keys.signing[0], **more).to_dict()


def they_load(package, path, keys):
    with package.safe_open(path, framework="np", config=config(package, keys)) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def for_them(tensors):
    return {name: array for name, array in tensors.items() if array.dtype.kind != "c"}  # which they do not take


@pytest.mark.parametrize("bits", [128, 256])
def test_they_read_what_we_write(theirs, tmp_path, bits):
    keys = weights.Keys.generate(bits)
    for chunk in (1000, 2 << 20):
        weights.save_file(for_them(some_tensors()), tmp_path / "file", key=keys, metadata={"é": "x"}, chunk_size=chunk)
        tensors, metadata = they_load(theirs, tmp_path / "file", keys)
        same(tensors, for_them(some_tensors()))
        assert metadata == {"é": "x"}


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("bits", [128, 256])
def test_we_read_what_they_write(theirs, tmp_path, bits, version):
    keys = weights.Keys.generate(bits)
    keys.encryption[0]["kid"], keys.signing[0]["kid"] = "ké", "s"
    for chunk in {"1": [None], "2": [None, 999]}[version]:
        theirs.numpy.save_file(for_them(some_tensors()), tmp_path / "file", metadata={"é": "x"},
                               config=config(theirs, keys, True, version=version, chunk_size=chunk))  # fmt: skip
        same(weights.load_file(tmp_path / "file", key=keys), for_them(some_tensors()))
        with weights.WeightFile(tmp_path / "file", keys) as file:
            assert file.metadata == {"é": "x"}


def test_what_they_wrote_for_others_is_refused(theirs, tmp_path):
    chacha = dict(KEYS.encryption[0], alg="chacha20poly1305")
    theirs.numpy.save_file(for_them(some_tensors()), tmp_path / "file",
                           config=theirs.SerializeCryptoConfig(enc_key=chacha, sign_key=KEYS.signing[0]).to_dict())  # fmt: skip
    with pytest.raises(UnsupportedAlgorithm, match="chacha20poly1305"):
        weights.load_file(tmp_path / "file", key=[chacha, KEYS.signing[0]])


def test_tensors_that_they_left_in_the_clear(theirs, tmp_path):
    """Nothing authenticates these: a changed byte is seen by neither side, so that we ask before."""
    path = tmp_path / "file"
    tensors = {"secret": numpy.arange(100.0), "clear": numpy.arange(100, dtype="u1")}
    theirs.numpy.save_file(tensors, path, config=config(theirs, KEYS, True, tensors=["secret"]))
    with pytest.raises(FormatError, match="'clear' is not encrypted"):
        weights.load_file(path, key=KEYS)
    same(weights.load_file(path, key=KEYS, allow_plain=True), tensors)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert they_load(theirs, path, KEYS)[0]["clear"][-1] == 99 ^ 1


def test_a_file_whose_encryption_was_taken_away(theirs, saved):
    """Given the keys, they load what is not encrypted, and so whatever somebody put there; here it is refused."""
    header, data = header_of(saved)
    header["__metadata__"] = {"by": "whoever"}
    rewrite(saved, header, data)
    assert they_load(theirs, saved, KEYS)[0]["bytes"].tobytes() != some_tensors()["bytes"].tobytes()
    with pytest.raises(FormatError, match="not encrypted"):
        weights.load_file(saved, key=KEYS)


def test_tensors_that_lie_at_the_same_place(theirs, tmp_path):
    """Those without elements: in the order in which the file has them, which is the one that was signed."""
    tensors = {f"e{i}": numpy.zeros((0, i), "f4") for i in range(6)}
    theirs.numpy.save_file(tensors, tmp_path / "file", config=config(theirs, KEYS, True))
    same(weights.load_file(tmp_path / "file", key=KEYS), tensors)
    weights.save_file(tensors, tmp_path / "file", key=KEYS)
    same(weights.load_file(tmp_path / "file", key=KEYS), tensors)


def test_what_their_other_call_hands_out_is_refused_here(theirs, saved):
    """deserialize() gives the ciphertext of a tensor that does not authenticate."""
    weights.save_file({"w": numpy.arange(100.0)}, saved, key=KEYS)
    raw = bytearray(saved.read_bytes())
    raw[-1] ^= 1
    saved.write_bytes(raw)
    named = weights.Keys([dict(KEYS.encryption[0], kid="deserialized")], [dict(KEYS.signing[0], kid="deserialized")])
    theirs.register_direct_key_provider(keys=[*named.encryption, *named.signing])
    ((name, got),) = theirs.deserialize(bytes(raw))
    assert name == "w" and bytes(got["data"]) == bytes(raw[-800:])
    with pytest.raises(InvalidTag):
        weights.load_file(saved, key=KEYS)


# On a device: PoCL's is the host's processor, and takes the same way as a GPU.


@pytest.fixture(scope="module")
def device():
    for backend in daelstrom.list_backends():
        if backend["name"].startswith("opencl") and backend["present"]:
            return daelstrom.Engine("opencl")
    pytest.skip("no OpenCL device (pocl-opencl-icd)")


def on_device(engine, file):
    return {name: _core.DeviceMemory(file[name].size, engine=engine) if file[name].size else b"" for name in file.keys()}


def off_device(memory):
    if isinstance(memory, bytes):
        return memory
    out = bytearray(b"\xee" * memory.nbytes)
    memory.copy_out(out)
    return bytes(out)


def test_into_a_devices_memory_and_out_of_it(saved, device, tmp_path):
    tensors = some_tensors()
    with weights.WeightFile(saved, KEYS, engine=device) as file:
        out = on_device(device, file)
        file.load_into(out)
        told = {name: (file[name].dtype, file[name].shape) for name in file.keys()}
    assert {name: off_device(memory) for name, memory in out.items()} == {n: t.tobytes() for n, t in tensors.items()}
    weights.write_file({name: (*told[name], memory or None) for name, memory in out.items()}, tmp_path / "again",
                       key=KEYS, chunk_size=5000, engine=device)  # fmt: skip
    same(weights.load_file(tmp_path / "again", key=KEYS), tensors)


def test_a_device_is_wiped_where_a_chunk_is_not_authentic(saved, device):
    header, data = header_of(saved)
    bad = bytearray(data)
    bad[header["bytes"]["data_offsets"][0] + 5] ^= 1
    rewrite(saved, header, bytes(bad))
    with weights.WeightFile(saved, KEYS, engine=device) as file:
        out = on_device(device, file)
        with pytest.raises(InvalidTag, match="chunk 0 of tensor 'bytes'"):
            file.load_into(out)
        assert not any(any(off_device(memory)) for memory in out.values())


@pytest.mark.parametrize("chunk", [10_000, 300_000])
def test_more_than_the_devices_windows(device, tmp_path, small_windows, chunk):
    big = numpy.frombuffer(random.Random(3).randbytes(1_500_000), "u1")
    tensors = {"a": big[:600_001], "b": big[600_001:], **some_tensors()}
    weights.save_file(tensors, tmp_path / "file", key=KEYS, chunk_size=chunk)
    with weights.WeightFile(tmp_path / "file", KEYS, engine=device) as file:
        out = on_device(device, file)
        file.load_into(out)
        told = {name: (file[name].dtype, file[name].shape, memory or None) for name, memory in out.items()}
    assert all(off_device(out[name]) == tensors[name].tobytes() for name in out)
    weights.write_file(told, tmp_path / "again", key=KEYS, chunk_size=chunk, engine=device)
    same(weights.load_file(tmp_path / "again", key=KEYS), tensors)


# torch.


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="no torch")


def torch_tensors(torch, device="cpu"):
    torch.manual_seed(1)
    made = {"w": torch.randn(300, 70), "bf": torch.randn(1001).bfloat16(), "i": torch.arange(10), "s": torch.tensor(2.5),
            "empty": torch.zeros(0, 3), "bool": torch.tensor([True, False]), "f8": torch.randn(33).to(torch.float8_e4m3fn)}  # fmt: skip
    return {name: tensor.to(device) for name, tensor in made.items()}


def equal(torch, one, other):
    assert set(one) == set(other)
    for name in one:
        assert one[name].dtype == other[name].dtype and one[name].shape == other[name].shape
        assert one[name].cpu().reshape(-1).view(torch.uint8).equal(other[name].cpu().reshape(-1).view(torch.uint8)), name


def test_torch(torch, tmp_path):
    import daelstrom.torch as ours

    tensors = torch_tensors(torch)
    ours.save_file(tensors, tmp_path / "file", key=KEYS, chunk_size=5000)
    loaded = ours.load_file(tmp_path / "file", key=KEYS)
    equal(torch, loaded, tensors)
    with pytest.raises(ValueError, match="contiguous"):
        ours.save_file({"t": torch.zeros(3, 4).T}, tmp_path / "file", key=KEYS)
    equal(torch, ours.load_file(tmp_path / "file", key=KEYS), tensors)


def test_torch_and_the_package(torch, theirs, tmp_path):
    import cryptotensors.torch as package

    import daelstrom.torch as ours

    tensors = torch_tensors(torch)
    del tensors["empty"]  # which they write, and cannot read
    package.save_file(tensors, tmp_path / "theirs", config=config(theirs, KEYS, True))
    equal(torch, ours.load_file(tmp_path / "theirs", key=KEYS), tensors)
    ours.save_file(tensors, tmp_path / "ours", key=KEYS)
    with theirs.safe_open(tmp_path / "ours", framework="pt", config=config(theirs, KEYS)) as file:
        equal(torch, {name: file.get_tensor(name) for name in file.keys()}, tensors)


def cuda(torch):
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    if not any(b["name"].startswith("cuda") and b["present"] for b in daelstrom.list_backends()):
        pytest.skip("this build of daelstrom finds no CUDA device")


def test_torch_on_a_gpu(torch, tmp_path):
    cuda(torch)
    import daelstrom.torch as ours

    tensors = {**torch_tensors(torch), "big": torch.randint(0, 255, (300 << 20,), dtype=torch.uint8)}
    ours.save_file(tensors, tmp_path / "host", key=KEYS)
    loaded = ours.load_file(tmp_path / "host", device="cuda", key=KEYS)
    assert all(tensor.is_cuda for tensor in loaded.values())
    equal(torch, loaded, tensors)
    ours.save_file(loaded, tmp_path / "gpu", key=KEYS)
    equal(torch, ours.load_file(tmp_path / "gpu", key=KEYS), tensors)
    header, data = header_of(tmp_path / "host")
    bad = bytearray(data)
    bad[-1] ^= 1
    rewrite(tmp_path / "host", header, bytes(bad))
    with pytest.raises(InvalidTag):
        ours.load_file(tmp_path / "host", device="cuda", key=KEYS)


def test_no_plaintext_on_the_host(torch, tmp_path):
    """What is loaded onto a GPU is nowhere in this process's memory."""
    cuda(torch)
    import subprocess
    import sys

    import daelstrom.torch as ours

    # A needle that neither process holds in one piece: 64 bytes made of a counter, all over the tensor.
    needle = bytes(b ^ 0x5A for b in bytes(range(1, 65)))
    plain = torch.frombuffer(bytearray(needle * (1 << 20)), dtype=torch.uint8)
    ours.save_file({"w": plain}, tmp_path / "file", key=KEYS)
    (tmp_path / "jwks").write_text(json.dumps(KEYS.to_dict()))
    program = r"""
import sys, torch, daelstrom.torch as ours
tensor = ours.load_file(sys.argv[1], device="cuda", key=sys.argv[2])["w"]
torch.cuda.synchronize()
masked = bytes(range(1, 65))
def found():
    hits = 0
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights, *rest = line.split()
            if rights[0] != "r" or "[v" in line or "/dev/" in line: continue
            begin, end = (int(x, 16) for x in span.split("-"))
            at = begin
            while at < end:
                try:
                    memory.seek(at); block = memory.read(min(1 << 24, end - at))
                except (OSError, ValueError, OverflowError): break
                if not block: break
                # Compared masked, so that the search itself holds no needle: two bytes, then the rest.
                start = block.find(bytes((masked[0] ^ 0x5A, masked[1] ^ 0x5A)))
                while start >= 0:
                    if all(block[start + i] == masked[i] ^ 0x5A for i in range(min(24, len(block) - start))) and len(block) - start >= 24:
                        hits += 1
                        break
                    start = block.find(bytes((masked[0] ^ 0x5A, masked[1] ^ 0x5A)), start + 1)
                at += len(block)
    return hits
before = found()
copy = tensor[:4096].cpu()
after = found()
print(before, after)
"""
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path / "file"), str(tmp_path / "jwks")],
                         capture_output=True, text=True, env=os.environ)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    before, after = map(int, ran.stdout.split())
    assert before == 0, "the plaintext is in the host's memory"
    assert after > 0, "the search would not have found it"
