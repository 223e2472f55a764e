// SPDX-License-Identifier: Apache-2.0
// Random bytes of the kernel's generator, which needs no state of ours: nothing to seed, to lock,
// or to share with a child of fork().
#pragma once

#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>

namespace dael::core {

// Good for keys. Errors: internal, with the system's reason.
Result<> fill_random(std::span<std::uint8_t> bytes);

}  // namespace dael::core
