// SPDX-License-Identifier: Apache-2.0
// Memory for keys: whole pages of its own, locked against swapping where the limit allows, left out
// of core dumps where the kernel can, wiped on release.
#pragma once

#include <cstddef>

namespace dael::core {

// Zeroed; null when memory ran out. Thread-safe.
void* secure_allocate(std::size_t size) noexcept;
void secure_release(void* memory, std::size_t size) noexcept;

}  // namespace dael::core
