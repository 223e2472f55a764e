// SPDX-License-Identifier: Apache-2.0
// Lists of keystream's runs for tests, and what OpenSSL makes of one.
#pragma once

#include <vector>

#include "core/keystream_maker.hpp"
#include "support/oracle.hpp"

namespace dael::test {

// Slot by slot, each from the counter that the definition gives it.
inline Bytes keystream_oracle(std::span<const std::uint8_t> key, const core::KeystreamRun& run) {
    Bytes all;
    Use use;
    use.start = run.first;
    const Bytes zeros(std::size_t{run.blocks} * 16);
    for (std::uint32_t slot = 0; slot < run.slots; ++slot) {
        const Bytes one = oracle(key, use, zeros);
        all.insert(all.end(), one.begin(), one.end());
        for (std::size_t byte = 12; byte-- > 0;)  // the next: 2^32 more
            if (++use.start[byte] != 0) break;
    }
    return all;
}

// Runs of all shapes under `keys` keys, none of which has a place in memory yet.
inline std::vector<core::KeystreamRun> random_runs(Random& random, std::size_t count,
                                                   std::uint32_t keys) {
    std::vector<core::KeystreamRun> runs(count);
    for (core::KeystreamRun& run : runs) {
        run.first = random.block();
        // Some carry: out of 32 bits, 64, all.
        if (random.below(2)) std::fill(run.first.begin() + 12, run.first.end() - 1, 0xff);
        if (random.below(3) == 0) std::fill(run.first.begin() + 4, run.first.begin() + 12, 0xff);
        if (random.below(8) == 0) run.first.fill(0xff);
        run.key = static_cast<std::uint32_t>(random.below(keys));
        run.blocks = 1 + static_cast<std::uint32_t>(random.below(random.below(2) ? 8 : 100));
        run.slots = 1 + static_cast<std::uint32_t>(random.below(random.below(2) ? 3 : 70));
        if (random.below(4) == 0) {  // a stream
            run.blocks *= run.slots;
            run.slots = 1;
        }
    }
    return runs;
}

}  // namespace dael::test
