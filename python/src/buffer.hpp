// SPDX-License-Identifier: Apache-2.0
// The bytes behind a Python object, wherever they lie: what speaks the buffer protocol (bytes,
// bytearray, memoryview, mmap, numpy), and tensors by DLPack or the CUDA array interface. Nothing
// is copied, and whoever the bytes belong to is held until the Memory goes: by a buffer, a managed
// tensor, or a reference. Made and destroyed under the interpreter's lock.
#pragma once

#include "errors.hpp"

namespace daelpy {

enum class Access { read, write };

class Memory {
  public:
    Memory() = default;
    // `name` is what messages call it. Throws TypeError for what has no bytes; BufferError for what
    // is not contiguous, is read-only, holds addresses (arrays of Python's objects), has values
    // that are not computed yet (torch's conjugates), or lies on a device of a kind that daelstrom
    // does not know.
    Memory(nb::handle object, Access access, const char* name) : Memory() {
        take(object, access, name);
    }
    ~Memory() { release(); }
    Memory(Memory&& other) noexcept { *this = std::move(other); }
    Memory& operator=(Memory&& other) noexcept;

    std::uint8_t* data = nullptr;
    std::uint64_t size = 0;
    bool on_device = false;
    void* stream = nullptr;  // the producer's current one; null: the device's default stream
    int device = -1;         // its number; negative where the producer does not say
    // Whether freed memory is handed on in the order of its stream: by torch and cupy. Of others it
    // has to be kept until the work is done.
    bool in_stream_order = false;

    // Held for ever: work that could not be waited for may still be under way there.
    void keep_for_good() const noexcept { held_ = Held::nothing; }

  private:
    void take(nb::handle object, Access access, const char* name);
    void take_buffer(nb::handle object, Access access, const char* name);
    void take_tensor(nb::handle object, Access access, const char* name);
    void take_interface(nb::handle object, Access access, const char* name);
    void release() noexcept;

    void hold(nb::handle object) noexcept;

    enum class Held : std::uint8_t { nothing, object, buffer, dlpack, dlpack_versioned };
    mutable Held held_ = Held::nothing;
    void* tensor_ = nullptr;  // or the object
    Py_buffer buffer_;
};

// Bytes that no None stands for.
Memory optional_memory(nb::handle object, const char* name);

// New bytes, not filled in yet, and where they lie.
nb::bytes new_bytes(std::uint64_t size);
std::uint8_t* inside(const nb::object& bytes);

// The stream that a caller names: a number, torch's, cupy's, or what has __cuda_stream__.
void* stream_of(nb::handle stream);

// New memory where `like` lies: bytes on the host, its framework's tensor of bytes elsewhere and
// for frameworks' tensors on the host.
bool is_tensor(nb::handle object);
nb::object new_like(nb::handle like, std::uint64_t size);
// A tensor of the same shape and type.
nb::object empty_like(nb::handle like);

}  // namespace daelpy
