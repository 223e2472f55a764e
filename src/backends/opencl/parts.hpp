// SPDX-License-Identifier: Apache-2.0
// The buffers that a launch can reach: those of a batch's messages that share them.
#pragma once

#include <optional>
#include <utility>

#include "backends/opencl/memory.hpp"

namespace dael::opencl {

// Results, byte by byte, of messages whose tag has yet to be made or compared.
inline constexpr std::uint8_t kNotRun = 0xff;

// Where messages of modes that authenticate lie; none: no message needs it.
struct Buffers {
    std::optional<Region> in, out, aad, tag;

    // Whether one launch can have those of both.
    bool fit(const Buffers& more) const {
        return same(in, more.in) && same(out, more.out) && same(aad, more.aad) &&
               same(tag, more.tag);
    }
    void add(const Buffers& more) {
        if (!in) in = more.in;
        if (!out) out = more.out;
        if (!aad) aad = more.aad;
        if (!tag) tag = more.tag;
    }

  private:
    static bool same(const std::optional<Region>& a, const std::optional<Region>& b) {
        return !a || !b || a->same_memory(*b);
    }
};

// The buffer of `size` bytes, of which there may be none, and where in it they begin.
inline Result<> find_part(const OpenClMemory& memory, const void* address, std::uint64_t size,
                          std::optional<Region>& region, std::uint64_t& offset) {
    if (size == 0) return {};
    DAEL_LET(found, memory.find(address, size));
    offset = found.offset;
    region = std::move(found);
    return {};
}

}  // namespace dael::opencl
