// SPDX-License-Identifier: Apache-2.0
// For callers of vector code that has more that is secret than the processor has registers, so that
// the compiler keeps some of it on the stack, and leaves it there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <daelstrom/key.hpp>

namespace dael::cpu {

__attribute__((noinline)) inline void write_over_stack() noexcept {
    // More than such a function and what it calls have, which is about a kilobyte.
    std::array<std::uint8_t, 2048> below;
    wipe(below.data(), below.size());
}

// Writes over what a function has left that this one's caller has called.
__attribute__((always_inline)) inline void clear_stack() noexcept {
    write_over_stack();
    asm volatile("");  // no jump to it in place of the call, from where the caller's frame is gone
}

}  // namespace dael::cpu
