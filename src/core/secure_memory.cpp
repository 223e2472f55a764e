// SPDX-License-Identifier: Apache-2.0
#include "core/secure_memory.hpp"

#include <cstdint>
#include <cstring>
#include <mutex>

#include <daelstrom/key.hpp>

#include "core/over_fork.hpp"
#include "core/secret_arenas.hpp"

namespace dael {

void wipe(void* memory, std::size_t size) noexcept {
    if (size != 0) explicit_bzero(memory, size);
}

namespace core {
namespace {

// Never destroyed, since keys may outlive all that is.
constinit std::mutex mutex;
constinit SecretArenas arenas;

[[gnu::constructor(101)]] void hold_arenas_over_fork() {
    hold_over_fork<mutex>();
}

}  // namespace

void* secure_allocate(std::size_t size, Swapping swapping) noexcept {
    if (swapping == Swapping::prevented && size <= SecretArenas::kLargest) {
        const std::lock_guard lock(mutex);
        return arenas.allocate(size);
    }
    void* memory = map_secret(size);
    if (memory && swapping == Swapping::prevented) lock_secret(memory, size);
    return memory;
}

void secure_release(void* memory, std::size_t size) noexcept {
    wipe(memory, size);
    {
        const std::lock_guard lock(mutex);
        if (arenas.release(static_cast<std::uint8_t*>(memory), size)) return;
    }
    // Should the system refuse, then nothing but an address is lost: what was there is wiped.
    (void)unmap_secret(memory, size);
}

}  // namespace core
}  // namespace dael
