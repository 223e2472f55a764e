// SPDX-License-Identifier: Apache-2.0
// How a thread block shares out a GCM message, on the host, one thread after the other: every block
// is somebody's once, and the threads' sums make the tag that OpenSSL makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/gcm_team.hpp"
#include "modes/ghash.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using kernels::kLanes;
using kernels::kTeamBlocks;
using kernels::kTeamWarps;
using kernels::TeamRows;
using modes::Element;
using test::Bytes;

struct Sizes {
    std::size_t aad, data;
};

// Around all that a row, a warp's part of it and a block can hold.
std::vector<Sizes> sizes() {
    std::vector<Sizes> all;
    for (const std::size_t aad : {0, 1, 15, 16, 17, 33, 500, 4096})
        for (const std::size_t data : {0,    1,    15,   16,   17,   31,   511,  512,  513,  3601,
                                       4079, 4080, 4081, 4095, 4096, 4097, 8191, 8192, 8193, 32768})
            all.push_back({aad, data});
    return all;
}

// 16 bytes from a block on, zeros after the end.
Element block_of(const Bytes& bytes, std::int32_t block, int size) {
    Block filled{};
    std::copy_n(bytes.begin() + block * 16, size, filled.begin());
    return modes::load_element(filled.data());
}

TEST(GcmTeam, EveryBlockIsOneThreadsInOrder) {
    for (const auto& [aad, data] : sizes()) {
        std::vector<int> seen((aad + 15) / 16 + (data + 15) / 16);
        const auto aad_blocks = static_cast<std::int32_t>((aad + 15) / 16);
        for (std::uint32_t place = 0; place < kTeamBlocks; ++place) {
            const TeamRows rows(aad, data, place);
            ASSERT_EQ(rows.count, (seen.size() + kTeamBlocks - 1) / kTeamBlocks);
            for (std::uint32_t row = 0; row < rows.count; ++row) {
                const std::int32_t block = rows.aad_block(row);
                ASSERT_EQ(rows.data_block(row), block - aad_blocks);
                const int expected = block < 0 || block >= aad_blocks
                                         ? 0
                                         : static_cast<int>(std::min<std::size_t>(
                                               16, aad - static_cast<std::size_t>(block) * 16));
                ASSERT_EQ(rows.aad_here(row), expected);
                if (block >= 0) ++seen.at(static_cast<std::size_t>(block));
                // The last block ends the last row.
                if (row + 1 == rows.count && place + 1 == kTeamBlocks) {
                    ASSERT_EQ(static_cast<std::size_t>(block) + 1, seen.size());
                }
            }
        }
        ASSERT_EQ(std::ranges::count(seen, 1), static_cast<std::ptrdiff_t>(seen.size()));
    }
}

// As the kernel has it: a sum for each thread, by Horner's rule with H^256; for each warp; for all.
Element team_hash(const Element& h, const Bytes& aad, const Bytes& data) {
    const Element h256 = modes::power(h, std::uint64_t{1} << kernels::kTeamSquare);
    Element hash{};
    for (std::uint32_t warp = 0; warp < kTeamWarps; ++warp) {
        Element its{};
        for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
            const TeamRows rows(aad.size(), data.size(), warp * kLanes + lane);
            Element sum{};
            for (std::uint32_t row = 0; row < rows.count; ++row) {
                Element x{};
                if (const int here = rows.aad_here(row); here != 0)
                    x = block_of(aad, rows.aad_block(row), here);
                else if (const std::int32_t block = rows.data_block(row); block >= 0)
                    x = block_of(data, block,
                                 std::min(16, static_cast<int>(data.size()) - block * 16));
                sum = modes::add(modes::multiply(sum, h256), x);
            }
            its = modes::add(its,
                             modes::multiply(sum, modes::power(h, kernels::team_lane_power(lane))));
        }
        hash = modes::add(hash,
                          modes::multiply(its, modes::power(h, kLanes * kernels::team_leap(warp))));
    }
    return hash;
}

TEST(GcmTeam, SumsMakeTheTagOfOpenSsl) {
    test::Random random(8);
    for (const auto& [aad_size, data_size] : sizes()) {
        const Bytes key = random.bytes(16 + 8 * random.below(3)), aad = random.bytes(aad_size),
                    plain = random.bytes(data_size), nonce = random.bytes(12);
        const test::Sealed sealed = test::gcm_oracle(key, nonce, aad, plain);
        const auto encrypted = [&](const Block& block) {
            const Bytes out = test::oracle(key, {Mode::ecb, Direction::encrypt, {}, 0}, block);
            return modes::load_element(out.data());
        };
        const Element h = encrypted(Block{});
        Block j0{}, lengths{};
        std::ranges::copy(nonce, j0.begin());
        j0[15] = 1;
        for (std::size_t i = 0; i < 8; ++i) {
            lengths[7 - i] = static_cast<std::uint8_t>(aad_size * 8 >> (8 * i));
            lengths[15 - i] = static_cast<std::uint8_t>(data_size * 8 >> (8 * i));
        }
        const Element tag = modes::add(
            team_hash(h, aad, sealed.ciphertext),
            modes::add(modes::multiply(modes::load_element(lengths.data()), h), encrypted(j0)));
        ASSERT_TRUE(modes::equal(tag, modes::load_element(sealed.tag.data())))
            << aad_size << " bytes of AAD, " << data_size << " of data";
    }
}

}  // namespace
