// SPDX-License-Identifier: Apache-2.0
// That messages of a batch do not share memory which one of them writes to.
#pragma once

#include <daelstrom/daelstrom.h>

#include <cstdint>
#include <span>

namespace daelpy {

// Throws ValueError, which names two messages, where the output of one overlaps the output, the
// data, the tag or the additional data of another, or its own without being in place. `seals`:
// outputs have their tags behind them, of `tag` bytes. `without`: numbers, going up, of those that
// are not run. Nothing is touched before.
void check_apart(std::span<const dael_message> messages, std::span<const std::size_t> without,
                 bool seals, std::uint64_t tag);

}  // namespace daelpy
