// SPDX-License-Identifier: Apache-2.0
// Memory for secrets: whole pages of its own, left out of core dumps where the kernel can, wiped on
// release, and for keys locked against swapping where the limit allows.
#pragma once

#include <cstddef>

namespace dael::core {

// What an unprivileged process may lock is soon used up (8 MiB, often less), so only keys ask for
// it.
enum class Swapping { prevented, allowed };

// Zeroed; null when memory ran out. Thread-safe.
void* secure_allocate(std::size_t size, Swapping swapping = Swapping::prevented) noexcept;
void secure_release(void* memory, std::size_t size) noexcept;

}  // namespace dael::core
