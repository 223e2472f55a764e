# SPDX-License-Identifier: Apache-2.0
"""Encrypted weights: headers of strangers, what is refused before it is written, parts of tensors, bytes, threads, close()
during use, children of fork()."""

import json
import os
import struct
import threading
import time

import pytest

numpy = pytest.importorskip("numpy", reason="no numpy")

from test_files_state import in_child  # noqa: E402
from test_weights import KEYS, header_of, rewrite, same, some_tensors  # noqa: E402

from daelstrom import weights  # noqa: E402
from daelstrom.exceptions import FormatError, InvalidTag  # noqa: E402


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "weights.safetensors"
    weights.save_file(some_tensors(), path, key=KEYS, chunk_size=10_000)
    return path


def test_headers_of_strangers(saved):
    """Refused before any key is tried, in time that grows with the header's size and no faster."""
    header, data = header_of(saved)
    name = "layer.0.bias"
    shapes = [[2**62] * 20, [2**63 - 1] * 200_000, [3] * 200_000, [1] * 200_000, [2**62, 0], [-1], [1.5], [True], [2**64], "x", None, {}]
    begun = time.process_time()
    for wrong in [*({"shape": shape} for shape in shapes), *({"dtype": dtype} for dtype in ([], {}, None, 5, "F33", ["F32"])),
                  *({"data_offsets": offsets} for offsets in ([], [0], [0, 2**63], [5, 4], ["0", "4"], None, {}, [0.0, 4.0]))]:  # fmt: skip
        rewrite(saved, {**header, name: {**header[name], **wrong}}, data)
        with pytest.raises(FormatError):
            weights.WeightFile(saved, KEYS)
    assert time.process_time() - begun < 60  # minutes each, where a product grows without a bound
    for wrong in ({"__crypto_keys__": "[]"}, {"__crypto_keys__": "x"}, {"__signature__": "?"}, {"__encryption__": 5}):
        rewrite(saved, {**header, "__metadata__": {**header["__metadata__"], **wrong}}, data)
        with pytest.raises(FormatError):
            weights.WeightFile(saved, KEYS)
    for whole in (b"", b"\0" * 8, struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 99) + b"{}", struct.pack("<Q", 4) + b"[[[["):
        saved.write_bytes(whole)
        with pytest.raises(FormatError):
            weights.WeightFile(saved, KEYS)


def test_what_nobody_could_load_is_not_written(tmp_path):
    path = tmp_path / "file"
    for dtype, shape, memory in [("F32", (5,), bytes(16)), ("F32", (3,), None), ("F33", (1,), bytes(4)), ("F32", (-1,), None),
                                 ("F4", (3,), bytes(1)), ("U8", (2**62, 2**62), bytes(8)), ("F32", (1.0,), bytes(4)),
                                 ("U8", (1,) * 65, bytes(1))]:  # fmt: skip
        with pytest.raises(ValueError, match="'a'"):
            weights.write_file({"a": (dtype, shape, memory)}, path, key=KEYS)
    assert os.listdir(tmp_path) == []
    weights.write_file({"a": ("F32", [2, 0], None), "b": ("F4", (4,), b"ab")}, path, key=KEYS)
    with weights.WeightFile(path, KEYS) as file:
        assert file["a"].shape == (2, 0) and file["b"].size == 2


def test_tensors_one_by_one_and_in_parts(saved):
    tensors = some_tensors()
    with weights.safe_open(saved, "np", key=KEYS) as file:
        assert file.keys() == sorted(tensors) and set(file.offset_keys()) == set(tensors) and file.metadata() is None
        same({name: file.get_tensor(name) for name in file.keys()}, tensors)
        for name, whole in tensors.items():
            part = file.get_slice(name)
            assert part.get_shape() == list(whole.shape)
            indices = [Ellipsis, slice(None)] if whole.shape else [Ellipsis]
            if whole.shape and whole.shape[0] > 2:
                indices += [0, -1, slice(1, 3), slice(-2, None), slice(2, 1), slice(None, None, 2), slice(10**9, None), [0, 2], (slice(1, 2),)]
            if whole.ndim > 1:
                indices += [(slice(None), 1), (slice(None), slice(1, 3)), (Ellipsis, 2)] if whole.shape[1] > 2 else []
            for index in indices:
                if whole.shape and whole.shape[0] == 0 and not isinstance(index, (slice, type(Ellipsis))):
                    continue
                expected = whole[index]
                assert part[index].shape == expected.shape and part[index].tobytes() == expected.tobytes(), (name, index)
        with pytest.raises(IndexError):
            file.get_slice("layer.0.bias")[700]
        with pytest.raises(KeyError):
            file.get_tensor("none")
    with pytest.raises(ValueError, match="closed"):
        file.get_tensor("layer.0.bias")
    with pytest.raises(ValueError, match="'np' or 'pt'"):
        weights.safe_open(saved, "tf", key=KEYS)


def test_a_part_is_of_the_chunks_that_hold_it(saved):
    whole = some_tensors()["layer.0.weight"]
    with weights.WeightFile(saved, KEYS) as file:
        begin, (_, data) = file["layer.0.weight"].begin, header_of(saved)
    bad = bytearray(data)
    bad[begin + 55_000] ^= 1  # chunk 5
    rewrite_data(saved, bad)
    with weights.safe_open(saved, key=KEYS) as file:
        part = file.get_slice("layer.0.weight")
        assert part[:8].tobytes() == whole[:8].tobytes() and part[20:].tobytes() == whole[20:].tobytes()
        with pytest.raises(InvalidTag, match="chunk 5 of tensor 'layer.0.weight'"):
            part[9:10]
        with pytest.raises(ValueError, match="whole chunks"):
            file._file.load_part("layer.0.weight", 5, bytearray(10_000))


def rewrite_data(path, data):
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) - len(data)] + data)


def test_of_bytes(saved):
    raw = saved.read_bytes()
    same(weights.load(raw, key=KEYS), some_tensors())
    same(weights.load(memoryview(bytearray(raw)), key=KEYS), some_tensors())
    with pytest.raises(FormatError):
        weights.load(raw[:-1], key=KEYS)
    with pytest.raises(InvalidTag):
        weights.load(raw[:-1] + bytes((raw[-1] ^ 1,)), key=KEYS)
    torch = pytest.importorskip("torch", reason="no torch")
    import daelstrom.torch

    loaded = daelstrom.torch.load(raw, key=KEYS)
    assert loaded["layer.0.bias"].dtype == torch.float32 and (loaded["half"].numpy() == some_tensors()["half"]).all()


def test_close_while_another_thread_loads(saved):
    """What is under way ends well, by a descriptor that nobody else has by then."""
    wrong, tensors = [], some_tensors()
    for _ in range(60):
        file, begun = weights.WeightFile(saved, KEYS), threading.Event()

        def loads(file=file, begun=begun):
            try:
                while True:
                    out = bytearray(file["layer.0.weight"].size)
                    file.load_into({"layer.0.weight": out})
                    if out != tensors["layer.0.weight"].tobytes():
                        wrong.append(1)
                    begun.set()
            except ValueError as error:
                if "closed" not in str(error):
                    wrong.append(error)
            finally:
                begun.set()

        thread = threading.Thread(target=loads)
        thread.start()
        begun.wait()
        file.close()
        others = [os.open("/dev/zero", os.O_RDONLY) for _ in range(4)]
        thread.join()
        for other in others:
            os.close(other)
    assert not wrong


def test_children_load(saved):
    tensors = some_tensors()
    with weights.WeightFile(saved, KEYS) as file:

        def child():
            out = bytearray(file["half"].size)
            file.load_into({"half": out})
            file.close()
            return out == tensors["half"].tobytes()

        with file._turn():  # as another thread would
            assert in_child(child) == 0


def test_keys_are_saved_for_their_owner_alone(tmp_path):
    path = tmp_path / "model.jwks"
    usual = os.umask(0)
    try:
        KEYS.save(path)
    finally:
        os.umask(usual)
    assert path.stat().st_mode & 0o777 == 0o600 and json.loads(path.read_text()) == KEYS.to_dict()
    with pytest.raises(FileExistsError):
        KEYS.save(path)
    weights.save_file({"a": numpy.arange(3.0)}, tmp_path / "w", key=path)
    assert (weights.load_file(tmp_path / "w", key=KEYS)["a"] == [0, 1, 2]).all()
