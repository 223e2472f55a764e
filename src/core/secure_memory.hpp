// SPDX-License-Identifier: Apache-2.0
// Memory for secrets: left out of core dumps where the kernel can, wiped on release, and for keys
// locked against swapping where the limit allows.
//
// Keys are many and small, and a process may have some 65,000 mappings: so they share pages, and
// pages share a few mappings whose number grows with the logarithm of the keys'. Pages that nobody
// uses go back to the system.
//
// After fork() a child has its parent's secrets, to use and to release, but the kernel does not
// hand on that they are locked.
#pragma once

#include <cstddef>

namespace dael::core {

// What an unprivileged process may lock is soon used up (8 MiB, often less), so only keys ask for
// it.
enum class Swapping { prevented, allowed };

// Zeroed, and aligned to 64 bytes; null when memory ran out. Thread-safe, also beside fork().
void* secure_allocate(std::size_t size, Swapping swapping = Swapping::prevented) noexcept;
// `size` as it was asked for.
void secure_release(void* memory, std::size_t size) noexcept;

}  // namespace dael::core
