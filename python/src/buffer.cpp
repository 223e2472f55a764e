// SPDX-License-Identifier: Apache-2.0
#include "buffer.hpp"

#include <nanobind/stl/string.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "dlpack.hpp"

namespace daelpy {
namespace {

[[noreturn]] void buffer_error(const std::string& message) {
    PyErr_SetString(PyExc_BufferError, message.c_str());
    throw nb::python_error();
}
[[noreturn]] void not_contiguous(const std::string& name) {
    buffer_error(name +
                 " is not contiguous; pass a contiguous copy of it (numpy.ascontiguousarray, "
                 "tensor.contiguous())");
}
[[noreturn]] void read_only(const std::string& name) {
    buffer_error(name + " is read-only, and is to be written to");
}

[[noreturn]] void addresses(const std::string& name) {
    buffer_error(name +
                 " holds Python's objects, or addresses, and not their bytes; pass bytes, or an "
                 "array of numbers");
}

std::string class_of(nb::handle object) {
    return nb::cast<std::string>(
        nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__"));
}

// A capsule or a number: producers have shown both.
const dlpack::Exchange* exchange_at(PyObject* found) {
    if (PyCapsule_CheckExact(found))
        return static_cast<const dlpack::Exchange*>(
            PyCapsule_GetPointer(found, "dlpack_exchange_api"));
    if (PyLong_Check(found)) return static_cast<const dlpack::Exchange*>(PyLong_AsVoidPtr(found));
    return nullptr;
}

// What is asked of a type once.
struct Library {
    PyTypeObject* type = nullptr;
    const dlpack::Exchange* api = nullptr;  // if it has one that is understood here
    bool lazy =
        false;  // torch's: what is_conj() and is_neg() say is still to be done to its values
};

// Types are looked up once by each thread and kept; there are few of them.
const Library& library_of(PyObject* object) {
    static thread_local std::array<Library, 8> known;
    PyTypeObject* const type = Py_TYPE(object);
    Library& entry = known[(reinterpret_cast<std::uintptr_t>(type) >> 6) % known.size()];
    if (entry.type == type) return entry;
    const dlpack::Exchange* api = nullptr;
    PyObject* const found =
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
    if (found) {
        api = exchange_at(found);
        Py_DECREF(found);
    }
    PyErr_Clear();
    if (api && api->header.version.major != 1) api = nullptr;
    const bool lazy = nb::hasattr(reinterpret_cast<PyObject*>(type), "is_conj");
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // so that its address names no other one
    entry = {type, api, lazy};
    return entry;
}

bool says(nb::handle object, const char* question) {
    const nb::object method = nb::getattr(object, question, nb::none());
    if (method.is_none()) return false;
    return nb::cast<bool>(PyCallable_Check(method.ptr()) ? method() : method);
}

// torch's __dlpack__ refuses these; its C exchange API shows the memory as it lies.
void refuse_lazy(nb::handle object, Access access, const std::string& name) {
    if (says(object, "is_conj"))
        buffer_error(name + " is a conjugate that is not computed yet; pass " + name +
                     ".resolve_conj()");
    if (says(object, "is_neg"))
        buffer_error(name + " is a negative that is not computed yet; pass " + name +
                     ".resolve_neg()");
    if (access == Access::write && says(object, "requires_grad"))
        buffer_error(name +
                     " requires grad, and autograd would not know that it was written to; "
                     "pass " +
                     name + ".detach()");
}

// A buffer's format (PEP 3118): objects, pointers, functions, ctypes' strings.
bool holds_addresses(const char* format) {
    for (const char* at = format; at && *at; ++at) {
        if (*at == ':') {  // a field's name
            at = std::strchr(at + 1, ':');
            if (!at) return false;
        } else if (*at == 'Z') {  // before d, f or g a complex number
            if (!std::strchr("dfg", at[1]) || at[1] == 0) return true;
            ++at;
        } else if (std::strchr("O&XPz", *at)) {
            return true;
        }
    }
    return false;
}

// Whether an array, whose type has no name in the buffer protocol as numpy's datetime64 has not,
// says that it holds objects: True, False, or None where nothing is said.
nb::object holds_objects(nb::handle object) {
    const nb::object dtype = nb::getattr(object, "dtype", nb::none());
    return nb::getattr(dtype, "hasobject", nb::none());
}

bool gives_a_tensor(nb::handle object) {
    return nb::hasattr(object, "__dlpack__") || nb::hasattr(object, "__cuda_array_interface__");
}

// Fresh memory is filled in by the system when it is first touched, at 2 MiB a time where that is
// wished for: at 4 KiB a time that takes longer than the encryption.
void in_large_pages(std::uint8_t* memory, std::uint64_t size) {
    constexpr std::uint64_t kWorth = 4 << 20, kPage = 4096;
    if (size < kWorth) return;
    const std::uint64_t before = -reinterpret_cast<std::uintptr_t>(memory) % kPage;
    // A wish: where it is not granted, small pages do.
    (void)madvise(memory + before, (size - before) / kPage * kPage, MADV_HUGEPAGE);
}

// A function of daelstrom/_tensors.py, looked up once and kept: that takes longer than its work.
// Threads that come here for the first time may all look; a lock would have to be waited for while
// an import lets others run.
class Helper {
  public:
    explicit constexpr Helper(const char* name) : name_(name) {}
    template <class... Arguments>
    nb::object operator()(Arguments... arguments) {
        return through_python([&] {
            PyObject* function = found_.load(std::memory_order_acquire);
            if (!function) function = find();
            return nb::object(nb::handle(function)(arguments...));
        });
    }

  private:
    PyObject* find() {
        nb::object fresh = nb::module_::import_("daelstrom._tensors").attr(name_);
        PyObject* function = nullptr;
        if (!found_.compare_exchange_strong(function, fresh.ptr())) return function;
        return fresh.release().ptr();  // for as long as the process lives
    }
    const char* const name_;
    std::atomic<PyObject*> found_{nullptr};
};

}  // namespace

nb::bytes new_bytes(std::uint64_t size) {
    PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (!made) throw nb::python_error();
    auto bytes = nb::steal<nb::bytes>(made);
    in_large_pages(inside(bytes), size);
    return bytes;
}

std::uint8_t* inside(const nb::object& bytes) {
    return reinterpret_cast<std::uint8_t*>(PyBytes_AsString(bytes.ptr()));
}

Memory& Memory::operator=(Memory&& other) noexcept {
    release();
    data = std::exchange(other.data, nullptr);
    size = std::exchange(other.size, 0);
    on_device = other.on_device;
    stream = other.stream;
    device = other.device;
    in_stream_order = other.in_stream_order;
    held_ = std::exchange(other.held_, Held::nothing);
    tensor_ = other.tensor_;
    buffer_ = other.buffer_;
    return *this;
}

void Memory::release() noexcept {
    switch (std::exchange(held_, Held::nothing)) {
        case Held::nothing:
            break;
        case Held::object:
            Py_DECREF(static_cast<PyObject*>(tensor_));
            break;
        case Held::buffer:
            PyBuffer_Release(&buffer_);
            break;
        case Held::dlpack: {
            auto* const managed = static_cast<dlpack::Managed*>(tensor_);
            if (managed->deleter) managed->deleter(managed);
            break;
        }
        case Held::dlpack_versioned: {
            auto* const managed = static_cast<dlpack::ManagedVersioned*>(tensor_);
            if (managed->deleter) managed->deleter(managed);
            break;
        }
    }
}

void Memory::hold(nb::handle object) noexcept {
    Py_INCREF(object.ptr());
    tensor_ = object.ptr();
    held_ = Held::object;
}

void Memory::take(nb::handle object, Access access, const char* name) {
    PyObject* const o = object.ptr();
    if (PyBytes_Check(o) && access == Access::read) {
        data = reinterpret_cast<std::uint8_t*>(PyBytes_AsString(o));
        size = static_cast<std::uint64_t>(PyBytes_Size(o));
        return hold(object);
    }
    through_python([&] {
        if (PyObject_CheckBuffer(o))
            take_buffer(object, access, name);
        else
            take_tensor(object, access, name);
    });
}

void Memory::take_buffer(nb::handle object, Access access, const char* name) {
    PyObject* const o = object.ptr();
    const int writable = access == Access::write ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    const int told = PyByteArray_CheckExact(o) ? PyBUF_SIMPLE : PyBUF_ND | PyBUF_FORMAT;
    if (PyObject_GetBuffer(o, &buffer_, told | writable) != 0) {
        PyErr_Clear();
        // What stands against it: asked for again with less demanded.
        if (PyObject_GetBuffer(o, &buffer_, PyBUF_FULL_RO) == 0) {
            const bool whole = PyBuffer_IsContiguous(&buffer_, 'C') != 0,
                       fixed = buffer_.readonly != 0, foul = holds_addresses(buffer_.format);
            PyBuffer_Release(&buffer_);
            if (foul) addresses(name);
            if (!whole) not_contiguous(name);
            if (fixed && access == Access::write) read_only(name);
            buffer_error(std::string(name) + " cannot be read as plain bytes");
        }
        nb::python_error refused;
        const nb::object objects = holds_objects(object);
        if (objects.is(nb::handle(Py_True))) addresses(name);
        if (!objects.is(nb::handle(Py_False)) || PyObject_GetBuffer(o, &buffer_, writable) != 0) {
            PyErr_Clear();
            const nb::object flags = nb::getattr(object, "flags", nb::none());
            if (nb::getattr(flags, "c_contiguous", nb::none()).is(nb::handle(Py_False)))
                not_contiguous(name);
            if (access == Access::write &&
                nb::getattr(flags, "writeable", nb::none()).is(nb::handle(Py_False)))
                read_only(name);
            // Arrays of CuPy and JAX have the protocol, and refuse it where they lie on a GPU.
            if (gives_a_tensor(object)) return take_tensor(object, access, name);
            refused.restore();
            throw nb::python_error();
        }
    }
    held_ = Held::buffer;
    if (told != PyBUF_SIMPLE && holds_addresses(buffer_.format)) addresses(name);
    data = static_cast<std::uint8_t*>(buffer_.buf);
    size = static_cast<std::uint64_t>(buffer_.len);
}

namespace {

void understand(Memory& memory, const dlpack::Tensor& tensor, const char* name) {
    constexpr std::uint64_t kMax = std::uint64_t{1} << 48;  // more than there is of memory
    std::uint64_t elements = 1;
    for (int i = 0; i < tensor.ndim; ++i) {
        if (tensor.shape[i] == 0) elements = 0;
        if (tensor.shape[i] <= 0) continue;
        const auto extent = static_cast<std::uint64_t>(tensor.shape[i]);
        elements = elements > kMax / extent ? kMax + 1 : elements * extent;
    }
    for (int i = 0; i < tensor.ndim; ++i)
        if (tensor.shape[i] < 0 || elements > kMax)
            buffer_error(std::string(name) + " is said to have a shape that nothing has");
    if (tensor.dtype.code == dlpack::kHandles) addresses(name);
    if (elements != 0 && tensor.strides) {
        std::int64_t expected = 1;
        for (int i = tensor.ndim - 1; i >= 0; --i) {
            if (tensor.shape[i] != 1 && tensor.strides[i] != expected) not_contiguous(name);
            expected *= tensor.shape[i];
        }
    }
    const std::uint64_t bits = elements * tensor.dtype.bits * tensor.dtype.lanes;
    if (bits % 8 != 0) buffer_error(std::string(name) + " ends within a byte");
    memory.size = bits / 8;
    if (memory.size != 0 && !tensor.data)
        buffer_error(std::string(name) +
                     " has no memory of its own (a meta tensor, or a fake one)");
    memory.data = static_cast<std::uint8_t*>(tensor.data);
    if (memory.data) memory.data += tensor.byte_offset;
    memory.device = tensor.device.id;
    switch (tensor.device.type) {
        case dlpack::cpu:
        case dlpack::cuda_host:
            memory.on_device = false;
            return;
        case dlpack::cuda:
        case dlpack::cuda_managed:
            memory.on_device = true;
            return;
        default:
            buffer_error(std::string(name) + " lies on a device of DLPack's kind " +
                         std::to_string(tensor.device.type) +
                         "; daelstrom takes tensors of the host and of CUDA");
    }
}

}  // namespace

namespace {

// A library that has an interface for its tensors, and does not show this one: why, in words.
[[noreturn]] void not_shown(nb::handle object, const char* name) {
    nb::object said = nb::none();
    if (PyErr_Occurred()) {
        const nb::python_error raised;
        said = nb::borrow(raised.value());
    }
    static constinit Helper refuse("refuse");
    refuse(object, name, said);
    buffer_error(std::string(name) + " is not shown by its library");
}

}  // namespace

void Memory::take_tensor(nb::handle object, Access access, const char* name) {
    const Library library = library_of(object.ptr());
    if (library.lazy) refuse_lazy(object, access, name);
    if (const dlpack::Exchange* const api = library.api) {
        dlpack::Tensor tensor;
        in_stream_order = library.lazy;
        if (api->tensor_from_object) {
            if (api->tensor_from_object(object.ptr(), &tensor) != 0) not_shown(object, name);
            hold(object);
        } else {
            dlpack::ManagedVersioned* managed = nullptr;
            if (api->managed_from_object(object.ptr(), &managed) != 0) not_shown(object, name);
            held_ = Held::dlpack_versioned;
            tensor_ = managed;
            tensor = managed->tensor;
            if (access == Access::write && (managed->flags & dlpack::kReadOnly)) read_only(name);
        }
        understand(*this, tensor, name);
        if (on_device && api->current_stream &&
            api->current_stream(tensor.device.type, tensor.device.id, &stream) != 0)
            throw nb::python_error();
        return;
    }
    if (!nb::hasattr(object, "__dlpack__")) {
        if (nb::hasattr(object, "__cuda_array_interface__"))
            return take_interface(object, access, name);
        if (PyUnicode_Check(object.ptr()))
            type_error(std::string(name) + " is str; give bytes, of text what its encode() makes");
        type_error(std::string(name) + " is " + class_of(object) +
                   "; give bytes, or what has the buffer protocol, __dlpack__ or "
                   "__cuda_array_interface__");
    }
    // (capsule, stream): the producer's order is kept, or its stream waited for.
    static constinit Helper take("take");
    const nb::object taken = take(object, name);
    const nb::object capsule = taken[0];
    stream = PyLong_AsVoidPtr(nb::object(taken[1]).ptr());
    in_stream_order = nb::cast<bool>(taken[2]);
    // Renamed at once: from here on the tensor is ours to release.
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
        auto* const managed = static_cast<dlpack::ManagedVersioned*>(
            PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
        PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
        held_ = Held::dlpack_versioned;
        tensor_ = managed;
        if (managed->version.major != 1)
            buffer_error(std::string(name) + " is shown by DLPack " +
                         std::to_string(managed->version.major) + "; daelstrom knows 0 and 1");
        if (access == Access::write && (managed->flags & dlpack::kReadOnly)) read_only(name);
        understand(*this, managed->tensor, name);
    } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
        auto* const managed =
            static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
        PyCapsule_SetName(capsule.ptr(), "used_dltensor");
        held_ = Held::dlpack;
        tensor_ = managed;
        understand(*this, managed->tensor, name);
    } else {
        type_error(std::string(name) + ": __dlpack__ gave no DLPack capsule");
    }
}

// https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3 and before
void Memory::take_interface(nb::handle object, Access access, const char* name) {
    static constinit Helper read_interface("read_interface");
    const nb::tuple read = nb::borrow<nb::tuple>(read_interface(object, name));
    if (!nb::cast<bool>(read[2])) not_contiguous(name);
    if (access == Access::write && nb::cast<bool>(read[3])) read_only(name);
    data = static_cast<std::uint8_t*>(PyLong_AsVoidPtr(nb::object(read[0]).ptr()));
    size = nb::cast<std::uint64_t>(read[1]);
    stream = PyLong_AsVoidPtr(nb::object(read[4]).ptr());
    in_stream_order = nb::cast<bool>(read[5]);
    on_device = true;
    hold(object);
}

Memory optional_memory(nb::handle object, const char* name) {
    return object.is_none() ? Memory() : Memory(object, Access::read, name);
}

void* stream_of(nb::handle stream) {
    static constinit Helper of("stream");
    const nb::object number = PyLong_CheckExact(stream.ptr()) ? nb::borrow(stream) : of(stream);
    void* const pointer = PyLong_AsVoidPtr(number.ptr());
    if (!pointer && PyErr_Occurred()) throw nb::python_error();
    return pointer;
}

bool is_tensor(nb::handle object) {
    return !PyBytes_CheckExact(object.ptr()) && !PyObject_CheckBuffer(object.ptr());
}

nb::object new_like(nb::handle like, std::uint64_t size) {
    static constinit Helper new_bytes("new_bytes");
    return new_bytes(like, size);
}

nb::object empty_like(nb::handle like) {
    static constinit Helper empty("empty_like");
    return empty(like);
}

}  // namespace daelpy
