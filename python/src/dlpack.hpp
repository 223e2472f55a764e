// SPDX-License-Identifier: Apache-2.0
// The layout of DLPack 1.3, as far as it is used here: data that another library's tensor shows.
#pragma once

#include <cstdint>

namespace daelpy::dlpack {

enum Device : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
inline constexpr std::uint8_t kHandles = 3;  // the type of elements that are no numbers

struct Tensor {
    void* data;
    struct {
        std::int32_t type, id;
    } device;
    std::int32_t ndim;
    struct {
        std::uint8_t code, bits;
        std::uint16_t lanes;
    } dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements; null: contiguous, in versions before 1.2
    std::uint64_t byte_offset;
};

struct Managed {  // in a capsule "dltensor"
    Tensor tensor;
    void* context;
    void (*deleter)(Managed*);
};

struct Version {
    std::uint32_t major, minor;
};
inline constexpr std::uint64_t kReadOnly = 1;
struct ManagedVersioned {  // in a capsule "dltensor_versioned"
    Version version;
    void* context;
    void (*deleter)(ManagedVersioned*);
    std::uint64_t flags;
    Tensor tensor;
};

// What a type's __dlpack_c_exchange_api__ leads to: the same without a call of Python, and the
// stream that the producer is working on.
struct ExchangeHeader {
    Version version;
    ExchangeHeader* previous;
};
struct Exchange {
    ExchangeHeader header;
    int (*allocate)(Tensor*, ManagedVersioned**, void*, void (*)(void*, const char*, const char*));
    int (*managed_from_object)(void*, ManagedVersioned**);
    int (*managed_to_object)(ManagedVersioned*, void**);
    int (*tensor_from_object)(void*, Tensor*);  // may be null
    int (*current_stream)(std::int32_t type, std::int32_t id, void** stream);
};

}  // namespace daelpy::dlpack
