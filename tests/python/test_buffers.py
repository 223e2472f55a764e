# SPDX-License-Identifier: Apache-2.0
"""Tensors: DLPack in its three forms, and the CUDA array interface, from producers made here. Those of real libraries
are in test_torch.py and test_gpu.py."""

import array
import ctypes
import gc
import os
import re
import sys
import threading

import numpy
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM as Theirs

import daelstrom
from daelstrom import AESGCM
from daelstrom.ciphers import Cipher, algorithms, modes
from daelstrom.random import Generator

KEY, NONCE = bytes(range(16)), bytes(12)


class Tensor:
    """What has DLPack and no buffers; of numpy's memory, and by its capsules, with what the consumer asked for."""

    def __init__(self, array, versioned=True, **also):
        self.array, self.versioned, self.asked = array, versioned, []
        self.__dict__.update(also)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **how):
        self.asked.append(how)
        if not self.versioned:
            if "max_version" in how:
                raise TypeError("unexpected keyword argument max_version")
            return self.array.__dlpack__()
        return self.array.__dlpack__(**how)


@pytest.mark.parametrize("versioned", [True, False])
def test_tensors_are_read_and_written_where_they_lie(versioned):
    data = os.urandom(4096)
    expected = Theirs(KEY).encrypt(NONCE, data, None)
    source = Tensor(numpy.frombuffer(bytearray(data), numpy.float32).reshape(32, 32), versioned)
    target = Tensor(numpy.full(4112, 0xA5, numpy.uint8), versioned)
    assert AESGCM(KEY).encrypt(NONCE, source, out=target) is target
    assert target.array.tobytes() == expected
    back = Tensor(numpy.zeros((2, 512), numpy.float32), versioned)
    assert AESGCM(KEY).decrypt_into(NONCE, target, None, back) == 4096
    assert back.array.tobytes() == data
    part = Tensor(source.array[3:5], versioned)  # begins within
    assert AESGCM(KEY).encrypt(NONCE, part, out=bytearray(272)) == Theirs(KEY).encrypt(NONCE, data[384:640], None)


def test_tensors_are_given_back_once_and_not_kept():
    for versioned in (True, False):
        array = numpy.zeros(100, numpy.uint8)
        before = sys.getrefcount(array)
        for _ in range(50):
            AESGCM(KEY).encrypt(NONCE, Tensor(array, versioned), out=bytearray(116))
            with pytest.raises(ValueError):
                AESGCM(KEY).encrypt(NONCE, Tensor(array, versioned), out=bytearray(1))
        gc.collect()
        assert sys.getrefcount(array) == before
    with pytest.raises(BufferError, match="data is not contiguous"):
        AESGCM(KEY).encrypt(NONCE, Tensor(numpy.zeros((8, 8), numpy.uint8)[:, 1]), out=bytearray(24))


def test_a_read_only_tensor_is_not_written_to():
    fixed = numpy.zeros(116, numpy.uint8)
    fixed.flags.writeable = False
    with pytest.raises(BufferError, match="read-only|readonly"):
        AESGCM(KEY).encrypt(NONCE, bytes(100), out=Tensor(fixed))


def test_new_tensors_of_unknown_libraries_are_asked_for_by_out():
    with pytest.raises(TypeError, match="give out="):
        AESGCM(KEY).encrypt(NONCE, Tensor(numpy.zeros(16, numpy.uint8)))
    with pytest.raises(TypeError, match="give out="):
        daelstrom.ctr(KEY, bytes(16), Tensor(numpy.zeros(16, numpy.uint8)))


# The C exchange API: https://dmlc.github.io/dlpack/latest/c_api.html
class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]  # fmt: skip


FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
NOTHING = ctypes.c_void_p(None)


class Exchange(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
                ("allocate", ctypes.c_void_p), ("managed_from_object", ctypes.c_void_p),
                ("managed_to_object", ctypes.c_void_p), ("tensor_from_object", FROM_OBJECT),
                ("current_stream", ctypes.c_void_p)]  # fmt: skip


def exchanging(major, calls):
    """A type whose tensors are shown by the C exchange API alone."""

    def show(tensor, out):
        calls.append(tensor)
        if tensor.broken:
            return -1
        array = tensor.array
        tensor.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        tensor.strides = (ctypes.c_int64 * array.ndim)(*(stride // array.itemsize for stride in array.strides))
        out[0] = DLTensor(tensor.at, tensor.kind, 0, array.ndim, tensor.code, 8 * array.itemsize, 1, tensor.shape,
                          tensor.strides, 0)  # fmt: skip
        return 0

    api = Exchange(major, 0, None, None, None, None, FROM_OBJECT(show), None)
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    class Shown:
        keep = api
        __dlpack_c_exchange_api__ = capsule(ctypes.addressof(api), b"dlpack_exchange_api", None)

        def __init__(self, array, kind=1, broken=False, code=1, at=None, **also):
            self.array, self.kind, self.broken = array, kind, broken
            self.code, self.at = code, array.ctypes.data if at is None else at
            self.__dict__.update(also)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

    return Shown


def test_the_c_exchange_api_is_used_where_it_is_there():
    calls = []
    shown = exchanging(1, calls)
    data = os.urandom(64)
    tensor = shown(numpy.frombuffer(bytearray(data), numpy.uint8).reshape(4, 16))
    assert AESGCM(KEY).encrypt(NONCE, tensor, out=bytearray(80)) == Theirs(KEY).encrypt(NONCE, data, None)
    assert calls == [tensor]
    out = shown(numpy.zeros(80, numpy.uint8))
    AESGCM(KEY).encrypt(NONCE, data, out=out)
    assert out.array.tobytes() == Theirs(KEY).encrypt(NONCE, data, None)
    with pytest.raises(BufferError, match="not contiguous"):
        AESGCM(KEY).encrypt(NONCE, shown(numpy.zeros((8, 8), numpy.uint8)[::2]), out=bytearray(48))
    with pytest.raises(BufferError, match="device of DLPack's kind 8"):
        AESGCM(KEY).encrypt(NONCE, shown(numpy.zeros(8, numpy.uint8), kind=8), out=bytearray(24))


def test_an_exchange_api_of_another_kind_is_left_alone():
    calls = []
    tensor = exchanging(2, calls)(numpy.frombuffer(bytearray(b"some data"), numpy.uint8))
    assert AESGCM(KEY).encrypt(NONCE, tensor, out=bytearray(25)) == Theirs(KEY).encrypt(NONCE, b"some data", None)
    assert calls == []


class CudaArray:
    def __init__(self, **said):
        self.__cuda_array_interface__ = {"shape": (4, 4), "typestr": "<f4", "data": (0x7F0000000000, False),
                                         "version": 3, **said}  # fmt: skip


def test_the_cuda_array_interface_is_understood():
    from daelstrom._tensors import read_interface

    assert read_interface(CudaArray()) == (0x7F0000000000, 64, True, False, 0, False)
    assert read_interface(CudaArray(strides=(16, 4), stream=7)) == (0x7F0000000000, 64, True, False, 7, False)
    assert read_interface(CudaArray(strides=(4, 16)))[2] is False
    assert read_interface(CudaArray(shape=(0, 4), strides=(4, 16)))[1:3] == (0, True)
    assert read_interface(CudaArray(data=(4096, True)))[3] is True
    for wrong, what in (({"typestr": "|O8"}, "of type '|O8'"), ({"mask": CudaArray()}, "is masked"),
                        ({"data": (0, False)}, "64 bytes at 0"), ({"shape": (-4, 4)}, "-64 bytes"),
                        ({"shape": (1 << 60, 1)}, "is said to have")):  # fmt: skip
        with pytest.raises(BufferError, match=re.escape(what)):
            daelstrom.ctr(KEY, bytes(16), CudaArray(**wrong), out=CudaArray())
    with pytest.raises(BufferError, match="data is not contiguous"):
        daelstrom.ctr(KEY, bytes(16), CudaArray(strides=(4, 16)), out=CudaArray())
    with pytest.raises(BufferError, match="out is read-only"):
        daelstrom.ctr(KEY, bytes(16), CudaArray(), out=CudaArray(data=(0x7F0000000000, True)))
    with pytest.raises(ValueError, match="data lies on a device and out in the host's memory"):
        daelstrom.ctr(KEY, bytes(16), CudaArray(), out=bytearray(64))
    with pytest.raises(ValueError, match="associated_data lies on a device and data in the host's memory"):
        AESGCM(KEY).encrypt(NONCE, b"data", CudaArray())
    with pytest.raises(ValueError, match="key lies in a device's memory"):
        AESGCM(CudaArray(shape=(16,), typestr="|u1"))


def test_device_memory_on_an_engine_of_the_host_is_refused():
    engines = [daelstrom.Engine("openssl")]
    if any(row["name"] == "cpu" and row["present"] for row in daelstrom.list_backends()):
        engines.append(daelstrom.Engine("cpu"))  # not without libipsec-mb
    for engine in engines:
        with pytest.raises((daelstrom.exceptions.DaelstromError, ValueError)):
            daelstrom.ctr(KEY, bytes(16), CudaArray(), out=CudaArray(), engine=engine)
        with pytest.raises((daelstrom.exceptions.DaelstromError, ValueError)):
            AESGCM(KEY, engine=engine).encrypt_into(NONCE, CudaArray(), None, CudaArray(shape=(5, 4)))


def test_streams_are_what_they_say():
    from daelstrom._tensors import stream

    class Torchs:
        cuda_stream = 11

    class Cupys:
        ptr = 12

    class Protocol:
        def __cuda_stream__(self):
            return (0, 13)

    assert [stream(given) for given in (5, Torchs(), Cupys(), Protocol())] == [5, 11, 12, 13]
    with pytest.raises(TypeError, match="stream is object"):
        stream(object())


class Pair(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("what", ctypes.py_object)]


def of_objects():
    """Buffers whose bytes are addresses."""
    yield numpy.array([None, "text", 1], object)
    yield numpy.empty(2, [("a", "<i4"), ("b", object)])
    yield numpy.empty(2, [("a", "M8[s]"), ("b", object)])  # which has no format at all
    yield memoryview(numpy.array([None], object))
    yield (ctypes.py_object * 2)()
    yield (ctypes.c_void_p * 2)()
    yield (ctypes.POINTER(ctypes.c_int) * 2)()
    yield (ctypes.c_char_p * 2)()
    yield (ctypes.c_wchar_p * 2)()
    yield Pair()
    if hasattr(numpy, "dtypes") and hasattr(numpy.dtypes, "StringDType"):
        yield numpy.array(["text", "a longer text than those that lie within the array"], numpy.dtypes.StringDType())


def test_addresses_are_no_bytes():
    """They are neither read nor written to, and whatever a call is given instead of is named."""
    ready = AESGCM(KEY)
    for wrong in of_objects():
        size = memoryview(wrong).nbytes if not hasattr(wrong, "nbytes") else wrong.nbytes
        before = ctypes.string_at(wrong.ctypes.data if hasattr(wrong, "ctypes") else 0, size) if hasattr(wrong, "ctypes") else b""
        for call, name in (
            (lambda: ready.encrypt(NONCE, wrong), "data"),
            (lambda: ready.encrypt(NONCE, b"", wrong), "associated_data"),
            (lambda: ready.encrypt(NONCE, bytes(max(size - 16, 0)), out=wrong), "out"),
            (lambda: ready.encrypt_into(NONCE, bytes(max(size - 16, 0)), None, wrong), "buf"),
            (lambda: ready.encrypt(wrong, b""), "nonce"),
            (lambda: AESGCM(wrong), "key"),
            (lambda: daelstrom.ctr(KEY, bytes(16), bytes(size), out=wrong), "out"),
            (lambda: daelstrom.ctr(KEY, bytes(16), wrong), "data"),
            (lambda: daelstrom.seal_batch(KEY, [NONCE], [wrong]), "data"),
            (lambda: daelstrom.wipe(wrong), "buffer"),
            (lambda: Generator(KEY).fill(wrong), "out"),
            (lambda: Cipher(algorithms.AES(KEY), modes.CTR(bytes(16))).encryptor().update(wrong), "data"),
        ):
            with pytest.raises(BufferError, match=f"^{name} (holds Python's objects|is read-only)"):
                call()
        if before:
            assert ctypes.string_at(wrong.ctypes.data, size) == before


def test_numbers_without_a_name_in_the_buffer_protocol_are_bytes():
    """numpy's dates have none; a field may be called what an object's letter is."""
    for given in (numpy.arange(5).astype("M8[s]"), numpy.arange(5).astype("m8[ns]"),
                  numpy.zeros(3, [("O", "<i4"), ("&z", "M8[s]")]), numpy.zeros(3, [("O", "<i4"), ("z", "<c8")]),
                  numpy.arange(4).astype("c16"), numpy.arange(4).astype("f2"), numpy.array([True, False]),
                  numpy.array(["ab", "c"]), numpy.array([b"ab", b"c"]), array.array("d", [1, 2]),
                  (ctypes.c_int * 3)(1, 2, 3)):  # fmt: skip
        raw = given.tobytes() if hasattr(given, "tobytes") else bytes(given)
        assert AESGCM(KEY).encrypt(NONCE, given) == Theirs(KEY).encrypt(NONCE, raw, None)
    dates = numpy.zeros(4, "M8[s]")
    assert AESGCM(KEY).decrypt_into(NONCE, Theirs(KEY).encrypt(NONCE, bytes(range(32)), None), None, dates) == 32
    assert dates.tobytes() == bytes(range(32))
    fixed = numpy.zeros(4, "M8[s]")
    fixed.flags.writeable = False
    for wrong, what in ((dates[::2], "contiguous"), (fixed, "read-only|readonly")):
        with pytest.raises((BufferError, ValueError), match=what):
            daelstrom.ctr(KEY, bytes(16), bytes(wrong.nbytes), out=wrong)


def no():
    return False


def yes():
    return True


def test_values_that_are_not_computed_yet_are_refused_both_ways():
    """torch's conjugates and negatives share the memory of what they are made from."""
    array = numpy.arange(4).astype("c8")
    for make in (exchanging(1, []), Tensor):
        make = type(make.__name__, (make,), {"is_conj": lambda self: self.conj(), "is_neg": lambda self: self.neg(),
                                            "detach": lambda self: self})  # fmt: skip
        plain = {"conj": no, "neg": no, "requires_grad": False}
        sealed = Theirs(KEY).encrypt(NONCE, array.tobytes(), None)
        room = bytearray(48)
        assert AESGCM(KEY).encrypt(NONCE, make(array, **plain), out=room) == sealed
        assert AESGCM(KEY).encrypt(NONCE, make(array, **{**plain, "requires_grad": True}), out=room) == sealed
        for bits, what in (({"conj": yes}, r"data is a conjugate .* pass data\.resolve_conj\(\)"),
                           ({"neg": yes}, r"data is a negative .* pass data\.resolve_neg\(\)")):  # fmt: skip
            with pytest.raises(BufferError, match=what):
                AESGCM(KEY).encrypt(NONCE, make(array, **{**plain, **bits}), out=room)
        before = array.copy()
        for bits, what in (({"conj": yes}, r"out\.resolve_conj"), ({"neg": yes}, r"out\.resolve_neg"),
                           ({"requires_grad": True}, r"out requires grad.* out\.detach\(\)")):  # fmt: skip
            with pytest.raises(BufferError, match=what):
                AESGCM(KEY).encrypt(NONCE, bytes(16), out=make(array, **{**plain, **bits}))
        assert (array == before).all()


def test_tensors_that_are_no_memory_say_what_they_are():
    array = numpy.zeros(8, numpy.uint8)
    shown = exchanging(1, [])

    class Refusing(Tensor):
        def __dlpack__(self, **how):
            raise RuntimeError("what the library says\nand its backtrace")

    for make in (lambda **also: shown(array, broken=True, **also), lambda **also: Refusing(array, **also)):
        for also, what in (({"layout": "torch.sparse_coo"}, r"data is a sparse tensor .* data\.to_dense\(\)"),
                           ({"is_quantized": True}, "data is a quantized tensor"),
                           ({"is_nested": True}, "data is a nested tensor"), ({"is_meta": True}, "data is a meta tensor"),
                           ({}, "data is not shown as memory by ")):  # fmt: skip
            with pytest.raises(BufferError, match=what) as refused:
                AESGCM(KEY).encrypt(NONCE, make(**also), out=bytearray(24))
            assert "backtrace" not in str(refused.value)
    with pytest.raises(BufferError, match="data has no memory of its own"):
        AESGCM(KEY).encrypt(NONCE, shown(array, at=0), out=bytearray(24))
    with pytest.raises(BufferError, match="data holds Python's objects, or addresses"):
        AESGCM(KEY).encrypt(NONCE, shown(array, code=3), out=bytearray(24))
    assert AESGCM(KEY).encrypt(NONCE, shown(array[:0], at=0), out=bytearray(16)) == Theirs(KEY).encrypt(NONCE, b"", None)


def test_what_is_shown_is_held_meanwhile():
    """A tensor that the C exchange API only lends, and bytes that nobody else has."""
    calls = []
    tensor = exchanging(1, calls)(numpy.zeros(1 << 20, numpy.uint8))
    before = sys.getrefcount(tensor)
    started, seen = threading.Event(), []

    def call():
        started.set()
        daelstrom.ctr(KEY, bytes(16), tensor, out=bytearray(1 << 20), engine=daelstrom.Engine("reference", threads=1))

    thread = threading.Thread(target=call)
    thread.start()
    started.wait()
    while thread.is_alive() and not seen:
        seen += [1] if sys.getrefcount(tensor) > before + len(calls) else []
    thread.join()
    calls.clear()
    assert seen and sys.getrefcount(tensor) == before
