// SPDX-License-Identifier: Apache-2.0
// Where the result of one message goes, for AESGCM and the other modes that authenticate.
#pragma once

#include <optional>
#include <string>

#include "buffer.hpp"

namespace daelpy {

inline std::string sizes(const char* name, std::uint64_t has, std::uint64_t needs) {
    return std::string(name) + " is " + std::to_string(has) + " bytes; this call makes " +
           std::to_string(needs);
}

inline void same_place(const Memory& data, const Memory& out) {
    if (data.on_device != out.on_device)
        value_error(data.on_device ? "data lies on a device and out in the host's memory"
                                   : "data lies in the host's memory and out on a device");
}

// Where a result goes: what the caller gave, or new memory where the data lies.
struct Out {
    Out(nb::handle given, nb::handle like, const Memory& data, std::uint64_t size) {
        if (!given.is_none()) {
            object = nb::borrow(given);
        } else if (data.on_device || is_tensor(like)) {
            object = new_like(like, size);
        } else {
            object = new_bytes(size);
            bytes = inside(object);
            return;
        }
        memory.emplace(object, Access::write, "out");
        if (memory->size != size) value_error(sizes("out", memory->size, size));
        same_place(data, *memory);
        bytes = memory->data;
    }
    const Memory* given() const { return memory ? &*memory : nullptr; }
    nb::object object;
    std::optional<Memory> memory;
    std::uint8_t* bytes = nullptr;
};

// What `encrypt_into` and `decrypt_into` are given.
inline Memory into(nb::handle out, const Memory& data, std::uint64_t size) {
    Memory memory(out, Access::write, "buf");
    if (memory.size != size) value_error("buffer must be " + std::to_string(size) + " bytes");
    same_place(data, memory);
    return memory;
}

}  // namespace daelpy
