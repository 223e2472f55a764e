// SPDX-License-Identifier: Apache-2.0
// The maths of the XTS kernels, compiled for the host: powers of x against a plain byte-wise
// doubling, AES without tables against OpenSSL, who takes which block, and a whole warp's walk.
#include "kernels/xts_tweak.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include <daelstrom/device/detail/table_free.hpp>

#include "core/key_schedule.hpp"
#include "core/registry.hpp"
#include "modes/traits.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using kernels::Words4;

Block bytes(const Words4& words) {
    Block block;
    std::memcpy(block.data(), &words, sizeof words);
    return block;
}
Words4 words(const Block& block) {
    Words4 w;
    std::memcpy(&w, block.data(), sizeof w);
    return w;
}

// IEEE 1619 5.2, byte by byte.
Block doubled(const Block& block) {
    Block result;
    unsigned carry = 0;
    for (std::size_t i = 0; i < 16; ++i) {
        result[i] = static_cast<std::uint8_t>(block[i] << 1 | carry);
        carry = block[i] >> 7;
    }
    if (carry) result[0] ^= 0x87;
    return result;
}
Block times_x_to(Block block, int n) {
    for (int i = 0; i < n; ++i) block = doubled(block);
    return block;
}

std::vector<Block> samples() {
    Random random(1);
    std::vector<Block> blocks;
    for (int bit = 0; bit < 128; ++bit) {  // linear: the single bits are proof, the others for luck
        Block block{};
        block[static_cast<std::size_t>(bit / 8)] = static_cast<std::uint8_t>(1 << bit % 8);
        blocks.push_back(block);
    }
    for (int i = 0; i < 8; ++i) blocks.push_back(random.block());
    Block ones;
    ones.fill(0xff);
    blocks.push_back(ones);
    return blocks;
}

TEST(XtsTweaks, PowersOfX) {
    for (const Block& block : samples()) {
        for (std::uint32_t n = 0; n < 32; ++n)
            ASSERT_EQ(bytes(kernels::times_x_to(words(block), n)),
                      times_x_to(block, static_cast<int>(n)))
                << n;
        ASSERT_EQ(bytes(kernels::times_x_to_32(words(block))), times_x_to(block, 32));
    }
}

TEST(XtsTweaks, Products) {
    Random random(2);
    for (const Block& a : samples()) {
        const Block b = random.block();
        Block sum{};  // a * b, by the bits of b
        for (int bit = 0; bit < 128; ++bit) {
            if (!(b[static_cast<std::size_t>(bit / 8)] >> bit % 8 & 1)) continue;
            const Block term = times_x_to(a, bit);
            for (std::size_t i = 0; i < 16; ++i) sum[i] ^= term[i];
        }
        ASSERT_EQ(bytes(kernels::tweak_multiply(words(a), words(b))), sum);
    }
}

TEST(XtsTweaks, LeapsWithinASector) {
    constexpr kernels::Leaps leaps = kernels::make_leaps();
    Random random(3);
    const Words4 start = words(random.block());
    Words4 stepped = start;
    for (std::uint32_t rows = 0; rows < 1u << 15; ++rows) {
        if (rows < 200 || rows % 1021 == 0 || (rows & (rows + 1)) == 0 ||
            (rows & (rows - 1)) == 0) {
            ASSERT_EQ(bytes(kernels::leap_rows(start, rows, leaps.data())), bytes(stepped)) << rows;
        }
        stepped = kernels::times_x_to_32(stepped);
    }
}

TEST(XtsTweaks, SectorNumbersCarry) {
    Random random(4);
    for (int ones = 0; ones <= 16; ++ones) {
        Block first = random.block();
        std::fill_n(first.begin(), ones, std::uint8_t{0xff});
        for (const std::uint64_t later :
             {std::uint64_t{0}, std::uint64_t{1}, random.number(), ~std::uint64_t{0}})
            EXPECT_EQ(bytes(kernels::sector_number(words(first), later)),
                      modes::sector_add(first, later));
    }
}

TEST(XtsTweaks, Splices) {
    Random random(5);
    const Block head = random.block(), rest = random.block();
    for (std::uint32_t count = 0; count < 16; ++count) {
        Block expected = rest;
        std::copy_n(head.begin(), count, expected.begin());
        EXPECT_EQ(bytes(kernels::splice(words(head), words(rest), count)), expected) << count;
    }
}

Block encrypt_table_free(const core::KeySchedule& key, const Block& in) {
    kernels::RoundKeys keys;
    std::memcpy(keys.w, key.encrypt.data(), sizeof keys.w);
    switch (key.rounds) {
        case 10:
            return bytes(kernels::encrypt_table_free<10>(keys, words(in)));
        case 12:
            return bytes(kernels::encrypt_table_free<12>(keys, words(in)));
        default:
            return bytes(kernels::encrypt_table_free<14>(keys, words(in)));
    }
}

TEST(TableFree, IsAes) {
    Random random(6);
    for (const std::size_t size : {16, 24, 32})
        for (int sample = 0; sample < 50; ++sample) {
            const Bytes raw = random.bytes(size);
            const Key key = *Key::import(raw);
            const Block in = random.block();
            const Block got = encrypt_table_free(key.schedule(), in);
            EXPECT_EQ(Bytes(got.begin(), got.end()),
                      oracle(raw, Use{Mode::ecb, Direction::encrypt, {}, 0}, in));
        }
}

TEST(XtsShape, EveryBlockHasOneLane) {
    for (std::uint32_t size = 16; size <= 3000; ++size) {
        const auto shape = kernels::xts_shape(size);
        ASSERT_EQ(shape.blocks * 16 + shape.tail, size);
        ASSERT_TRUE(shape.rows == 1 || shape.sectors == 1) << size;
        std::set<std::pair<std::uint32_t, std::uint32_t>> taken;
        for (std::uint32_t row = 0; row < shape.rows; ++row)
            for (std::uint32_t lane = 0; lane < 32; ++lane) {
                const auto place = kernels::xts_lane(shape, lane);
                ASSERT_LT(place.block, 32u) << size;  // what times_x_to takes
                const std::uint32_t block = place.block + 32 * row;
                if (place.sector >= shape.sectors || block >= shape.blocks) continue;
                ASSERT_TRUE(taken.emplace(place.sector, block).second) << size;
            }
        ASSERT_EQ(taken.size(), std::size_t{shape.sectors} * shape.blocks) << size;
        ASSERT_EQ(kernels::xts_rows(shape, 1), shape.rows);
        ASSERT_EQ(kernels::xts_rows(shape, shape.sectors + 1), 2 * shape.rows);
    }
}

// The kernel's walk over rows (src/backends/cuda/modes/xts.cu), with `warps` warps one after
// another, each lane after the other.
Bytes walk(const Bytes& raw, Direction direction, const xts::Sectors& sectors, const Bytes& in,
           std::uint64_t warps) {
    static constexpr kernels::Leaps kLeaps = kernels::make_leaps();
    const Key key = std::move(*Key::import_xts(raw));
    const auto one_block = [&](Block x, const Words4& tweak) {
        const Block t = bytes(tweak);
        for (std::size_t i = 0; i < 16; ++i) x[i] ^= t[i];
        const Bytes y = oracle(key.schedule().key(), Use{Mode::ecb, direction, {}, 0}, x);
        for (std::size_t i = 0; i < 16; ++i) x[i] = static_cast<std::uint8_t>(y[i] ^ t[i]);
        return x;
    };
    const auto shape = kernels::xts_shape(sectors.size);
    const std::uint64_t count = in.size() / sectors.size;
    const Words4 first = words(xts::start(sectors));
    const std::uint64_t rows = kernels::xts_rows(shape, count);
    Bytes out(in.size(), Poisoned::kPoison);
    for (std::uint64_t warp = 0; warp < warps; ++warp) {
        const std::uint64_t from = rows * warp / warps, to = rows * (warp + 1) / warps;
        std::uint64_t unit = from / shape.rows;
        auto row = static_cast<std::uint32_t>(from % shape.rows);
        for (std::uint64_t left = to - from; left != 0;) {
            std::vector<Words4> held;
            for (std::uint32_t lane = 0; lane < 32; ++lane)
                held.push_back(words(encrypt_table_free(
                    key.tweak(),
                    bytes(kernels::sector_number(first, unit * shape.sectors + lane)))));
            for (std::uint32_t next = 0; next < 32 / shape.sectors && left != 0; ++next, ++unit) {
                const auto here =
                    static_cast<std::uint32_t>(std::min<std::uint64_t>(shape.rows - row, left));
                left -= here;
                for (std::uint32_t lane = 0; lane < 32; ++lane) {
                    const auto place = kernels::xts_lane(shape, lane);
                    Words4 t = kernels::times_x_to(held[(next * shape.sectors + place.sector) % 32],
                                                   place.block);
                    t = kernels::leap_rows(t, row, kLeaps.data());
                    const std::uint64_t sector = unit * shape.sectors + place.sector;
                    if (place.sector >= shape.sectors || sector >= count) continue;
                    std::uint32_t block = place.block + 32 * row;
                    for (std::uint32_t i = 0; i < here; ++i, block += 32) {
                        if (block >= shape.blocks) continue;
                        const std::size_t at = sector * sectors.size + block * 16;
                        Words4 one = t, other = kernels::times_x_to(t, 1);
                        Block x;
                        std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(at), 16, x.begin());
                        if (shape.tail != 0 && block + 1 == shape.blocks) {
                            if (direction == Direction::decrypt) std::swap(one, other);
                            const Block y = one_block(x, one);
                            Block rest{};
                            std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(at + 16),
                                        shape.tail, rest.begin());
                            std::copy_n(y.begin(), shape.tail,
                                        out.begin() + static_cast<std::ptrdiff_t>(at + 16));
                            x = bytes(kernels::splice(words(rest), words(y), shape.tail));
                            one = other;
                        }
                        std::ranges::copy(one_block(x, one),
                                          out.begin() + static_cast<std::ptrdiff_t>(at));
                        t = kernels::times_x_to_32(t);
                    }
                }
                row = 0;
            }
        }
    }
    return out;
}

TEST(XtsWalk, IsXts) {
    const Bytes raw = random_bytes(32, 7);
    for (const std::size_t size :
         {16, 17, 31, 40, 100, 256, 271, 320, 496, 511, 512, 513, 528, 1024, 1040, 1555, 4096})
        for (const std::size_t count : {1, 3, 33, 70})
            for (const std::uint64_t warps : {1, 2, 7, 50}) {
                if (size * count > 40'000) continue;
                const Bytes in = pattern(size * count, size);
                const xts::Sectors sectors{~std::uint64_t{0} - 20, static_cast<std::uint32_t>(size),
                                           1};
                const Direction direction = count % 2 ? Direction::decrypt : Direction::encrypt;
                ASSERT_EQ(difference(oracle_xts(raw, direction, sectors, in),
                                     walk(raw, direction, sectors, in, warps)),
                          "")
                    << size << " x " << count << ", " << warps << " warps";
            }
}

}  // namespace
