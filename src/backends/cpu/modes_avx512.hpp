// SPDX-License-Identifier: Apache-2.0
// Modes whose blocks are independent, by AVX-512, four blocks a vector: AES-CTR, ECB, and the
// decryption of CBC and CFB (SP 800-38A 6.1 to 6.5). libipsec-mb does them too, by jobs, which cost
// more than a short message does; here a message is one call, and nothing is set up, locked or
// stored.
//
// Constant time: no branch and no address depends on anything but sizes, and on where a counter's
// lower half wraps, which is public.
#pragma once

#include <cstddef>
#include <cstdint>

#include <daelstrom/message.hpp>

#include "core/key_schedule.hpp"

namespace dael::cpu {

// AVX-512 and VAES have it (Level::avx512, vectorised()).
constexpr bool has_avx512_code(Mode mode, Direction direction) noexcept {
    return mode == Mode::ctr || mode == Mode::ecb ||
           ((mode == Mode::cbc || mode == Mode::cfb) && direction == Direction::decrypt);
}
// A message that modes::check has passed, in a mode that has_avx512_code().
void run_avx512(Mode mode, Direction direction, const core::KeySchedule& key,
                const Message& message) noexcept;

}  // namespace dael::cpu
