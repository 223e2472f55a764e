// SPDX-License-Identifier: Apache-2.0
// GHASH of long messages as they are encrypted, on the host: what a warpgroup's lanes have of a
// unit, as the tensor cores are given it and count it, and what its rows are worth in the end.
#include "kernels/gcm_fused.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "support/bytes.hpp"
#include "tensor_counts.hpp"

namespace {

using namespace dael;
using kernels::kFusedOwn;
using kernels::kFusedUnit;
using kernels::Words4;
using test::word;

Words4 power(const Words4& h, std::uint32_t n) {
    Words4 product = kernels::gf_one();
    for (std::uint32_t i = 0; i < n; ++i) product = kernels::gf_multiply(product, h);
    return product;
}

std::vector<std::uint32_t> matrices(const Words4& h) {
    std::vector<std::uint32_t> words(kernels::kFusedWords, 0xdeadbeef);
    test::for_each_word(power(h, kernels::kFusedStatePower),
                        [&](std::uint32_t output, std::uint32_t of, std::uint32_t bits) {
                            words[kernels::fused_state_index(output, of)] = bits;
                            words[kernels::fused_zero_index(output, of)] = 0;
                        });
    for (std::uint32_t slot = 0; slot < kernels::kFusedSlots; ++slot)
        for (std::uint32_t t = 0; t < kernels::kQuadBlocks; ++t)
            test::for_each_word(power(h, kernels::fused_power(slot, t)),
                                [&](std::uint32_t output, std::uint32_t of, std::uint32_t bits) {
                                    words[kernels::fused_block_index(slot, t, output, of)] = bits;
                                });
    return words;
}

TEST(GcmFused, EveryWordOfTheMatricesHasOnePlace) {
    std::set<std::uint32_t> places;
    for (std::uint32_t output = 0; output < 128; ++output)
        for (std::uint32_t of = 0; of < 4; ++of) {
            for (std::uint32_t slot = 0; slot < kernels::kFusedSlots; ++slot)
                for (std::uint32_t t = 0; t < kernels::kQuadBlocks; ++t)
                    places.insert(kernels::fused_block_index(slot, t, output, of));
            places.insert(kernels::fused_state_index(output, of));
            places.insert(kernels::fused_zero_index(output, of));
        }
    EXPECT_EQ(places.size(), kernels::kFusedWords);
    EXPECT_EQ(*places.rbegin(), kernels::kFusedWords - 1);
}

// Two units and more, the first of which begins with zeros.
TEST(GcmFused, HashesAMessageBySixtyFourRows) {
    test::Random random(11);
    Words4 h;
    std::memcpy(&h, random.block().data(), sizeof h);
    const auto words = matrices(h);
    for (const std::uint32_t blocks : {512u, 1024u, 1000u, 513u, 1u}) {
        const std::uint32_t units = (blocks + kFusedUnit - 1) / kFusedUnit,
                            lead = units * kFusedUnit - blocks;
        std::vector<Words4> data(blocks);
        Words4 expected{};
        for (Words4& x : data) {
            std::memcpy(&x, random.block().data(), sizeof x);
            expected = kernels::gf_multiply(expected ^ x, h);
        }
        Words4 sum{};
        for (std::uint32_t warp = 0; warp < 4; ++warp) {
            std::uint32_t state[32][2] = {};
            for (std::uint32_t unit = 0; unit < units; ++unit) {
                const auto own = [&](std::uint32_t lane, std::uint32_t k) {
                    const std::uint32_t at =
                        unit * kFusedUnit + warp * kernels::kFusedWarp + kernels::kLanes * k + lane;
                    return at < lead ? Words4{} : data[at - lead];
                };
                std::uint32_t operands[1 + 2 * kernels::kFusedSlots][32][4];
                for (std::uint32_t lane = 0; lane < 32; ++lane)
                    for (std::uint32_t r = 0; r < 4; ++r) {
                        operands[0][lane][r] = r < 2 ? state[lane][r] : 0;
                        for (std::uint32_t slot = 0; slot < kernels::kFusedSlots; ++slot) {
                            const Words4 x = own(lane, 2 * slot + r % 2);
                            operands[1 + 2 * slot][lane][r] = word(x, r / 2);
                            operands[2 + 2 * slot][lane][r] = word(x, 2 + r / 2);
                        }
                    }
                for (std::uint32_t lane = 0; lane < 32; ++lane) {
                    std::uint32_t counts[64] = {}, packed[2] = {};
                    for (std::uint32_t i = 0; i < std::size(operands); ++i)
                        test::count(counts, operands[i], lane,
                                    words.data() + kernels::quad_index(i, 0, 0, 0));
                    // As in the kernel, 64 columns at a time.
                    std::uint32_t halves[2][32];
                    for (std::uint32_t i = 0; i < 64; ++i) halves[i / 32][i % 32] = counts[i];
                    kernels::pack_parities(packed, halves[0], 0);
                    kernels::pack_parities(packed, halves[1], 64);
                    state[lane][0] = packed[0];
                    state[lane][1] = packed[1];
                }
            }
            for (std::uint32_t r = 0; r < kernels::kQuadWarpRows; ++r) {
                const auto its = [&](std::uint32_t t) { return state[4 * (r % 8) + t][r / 8]; };
                const std::uint32_t row = warp * kernels::kQuadWarpRows + r;
                sum = sum ^ kernels::gf_multiply({its(0), its(1), its(2), its(3)},
                                                 power(h, kernels::fused_row_power(row)));
            }
        }
        for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(word(sum, i), word(expected, i)) << blocks;
    }
}

// Five operands of up to 256 ones, of which the state's has half.
TEST(GcmFused, ParitiesOfTheLargestCounts) {
    for (const std::uint32_t value : {1152u, 1151u}) {
        std::uint32_t counts[32], words[2] = {};
        std::fill(std::begin(counts), std::end(counts), value);
        kernels::pack_parities(words, counts, 0);
        kernels::pack_parities(words, counts, 64);
        EXPECT_EQ(words[0], value % 2 ? ~0u : 0u);
        EXPECT_EQ(words[1], value % 2 ? ~0u : 0u);
    }
}

}  // namespace
