// SPDX-License-Identifier: Apache-2.0
// The maths of GCM's CUDA kernels on the host: the field on 32-bit words, GHASH by binary matrices
// as the tensor cores are given them, and how long messages are shared out among workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/cuda/gcm/work.hpp"
#include "kernels/gcm_key.hpp"
#include "support/bytes.hpp"

namespace {

using namespace dael;
using kernels::Words4;
using test::Bytes;

Words4 words(const Block& block) {
    Words4 w;
    std::memcpy(&w, block.data(), sizeof w);
    return w;
}
bool equal(const Words4& a, const Words4& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}
// SP 800-38D 6.3, algorithm 1, bit by bit: bit 0 is the highest of the first byte.
Words4 product(const Words4& a, const Words4& b) {
    Block x, v, z{};
    std::memcpy(x.data(), &a, 16);
    std::memcpy(v.data(), &b, 16);
    for (std::size_t i = 0; i < 128; ++i) {
        if (x[i / 8] >> (7 - i % 8) & 1)
            for (std::size_t k = 0; k < 16; ++k) z[k] ^= v[k];
        const bool falls_out = v[15] & 1;
        for (std::size_t k = 16; k-- > 0;)
            v[k] = static_cast<std::uint8_t>(v[k] >> 1 | (k != 0 ? v[k - 1] << 7 : 0));
        if (falls_out) v[0] ^= 0xe1;
    }
    return words(z);
}
Words4 power(const Words4& base, std::uint64_t exponent) {
    Words4 result = kernels::gf_one();
    for (std::uint64_t i = 0; i < exponent; ++i) result = kernels::gf_multiply(result, base);
    return result;
}

TEST(Gf128, AgreesWithTheStandard) {
    test::Random random(1);
    for (int i = 0; i < 300; ++i) {
        const Words4 a = words(random.block()), b = words(random.block());
        ASSERT_TRUE(equal(kernels::gf_multiply(a, b), product(a, b)));
        ASSERT_TRUE(equal(kernels::gf_multiply(a, kernels::gf_one()), a));
    }
    for (std::uint32_t i = 0; i < 128; ++i)
        for (std::uint32_t k = 0; k < 128; k += 7)
            ASSERT_TRUE(equal(kernels::gf_multiply(kernels::gf_basis(i), kernels::gf_basis(k)),
                              product(kernels::gf_basis(i), kernels::gf_basis(k))));
}

TEST(Gf128, CarrylessProductsOfExtremes) {
    // All ones meet in the most places: eight in one, which must not carry.
    std::uint64_t expected = 0;
    for (int i = 0; i < 32; ++i) expected ^= std::uint64_t{0xffffffff} << i;
    EXPECT_EQ(kernels::clmul32(0xffffffff, 0xffffffff), expected);
    EXPECT_EQ(kernels::clmul32(0x80000000, 0x80000000), std::uint64_t{1} << 62);
    EXPECT_EQ(kernels::clmul32(0, 0xffffffff), 0u);
}

// Words at which sums of integer products come nearest to overflowing into their neighbours.
TEST(Gf128, ExtremesAndSumsOfProducts) {
    test::Random random(11);
    const auto word = [&]() -> std::uint32_t {
        const auto bytes = random.bytes(5);
        std::uint32_t any;
        std::memcpy(&any, bytes.data(), sizeof any);
        switch (bytes[4] % 8) {
            case 0:
                return ~0u;
            case 1:
                return 0x11111111u << any % 4;
            case 2:
                return ~(1u << any % 32);
            case 3:
                return ~(0x11111111u << any % 4);
            default:
                return any;
        }
    };
    const auto element = [&] { return Words4{word(), word(), word(), word()}; };
    const Words4 ones{~0u, ~0u, ~0u, ~0u};
    EXPECT_TRUE(equal(kernels::gf_multiply(ones, ones), product(ones, ones)));
    for (int i = 0; i < 20000; ++i) {
        const Words4 a = element(), b = element(), c = element(), d = element();
        ASSERT_TRUE(equal(kernels::gf_multiply(a, b), product(a, b)));
        ASSERT_TRUE(equal(kernels::gf_multiply_add(a, b, c, d), product(a, b) ^ product(c, d)));
    }
}

TEST(Gf128, Squares) {
    test::Random random(7);
    for (int i = 0; i < 300; ++i) {
        const Words4 a = words(random.block());
        ASSERT_TRUE(equal(kernels::gf_square(a), product(a, a)));
    }
    for (std::uint32_t i = 0; i < 128; ++i)
        ASSERT_TRUE(equal(kernels::gf_square(kernels::gf_basis(i)),
                          product(kernels::gf_basis(i), kernels::gf_basis(i))));
}

TEST(Gf128, ProductsWithOneBit) {
    test::Random random(8);
    for (std::uint32_t bit = 0; bit < 128; ++bit) {
        const Words4 a = words(random.block());
        ASSERT_TRUE(equal(kernels::gf_times_basis(a, bit), product(a, kernels::gf_basis(bit))));
    }
}

TEST(Gf128, ManySquaringsByOneMatrix) {
    test::Random random(9);
    const kernels::LeapRows rows = kernels::make_leap_rows();
    for (int i = 0; i < 20; ++i) {
        const Words4 a = words(random.block());
        Words4 expected = a;
        for (std::uint32_t k = 0; k < kernels::kLeapSquares; ++k)
            expected = kernels::gf_square(expected);
        std::uint32_t made[4] = {};
        for (std::uint32_t bit = 0; bit < 128; ++bit) {
            Words4 row;
            std::memcpy(&row, &rows[bit * 4], sizeof row);
            made[bit / 32] |= std::uint32_t{kernels::leap_bit(row, a)} << bit % 32;
        }
        EXPECT_TRUE(equal(Words4{made[0], made[1], made[2], made[3]}, expected));
    }
}

TEST(Gf128, Inverse) {
    test::Random random(2);
    for (int i = 0; i < 20; ++i) {
        const Words4 a = words(random.block());
        EXPECT_TRUE(equal(kernels::gf_multiply(a, kernels::gf_inverse(a)), kernels::gf_one()));
    }
    EXPECT_TRUE(equal(kernels::gf_inverse(Words4{}), Words4{}));
}

// The matrices' rows times a tile's columns, counted as wgmma counts them and laid out as it lays
// out its accumulators (PTX ISA, m64nNk256), then packed and exchanged by 128 threads that really
// run side by side.
class Tile {
  public:
    explicit Tile(const Words4& h) : fragments_(kernels::kFragmentWords) {
        for (std::uint32_t block = 0; block < kernels::kTileDepth; ++block) {
            const Words4 factor = power(h, kernels::tile_power(block));
            std::vector<Words4> columns;
            for (std::uint32_t bit = 0; bit < 128; ++bit)
                columns.push_back(kernels::gf_multiply(factor, kernels::gf_basis(bit)));
            for (std::uint32_t index = 0; index < kernels::kFragmentWords; ++index) {
                const kernels::FragmentWord w = kernels::fragment_word(index);
                if (w.block != block) continue;
                for (std::uint32_t bit = 0; bit < 32; ++bit) {
                    std::uint32_t column[4];
                    std::memcpy(column, &columns[32 * w.word + bit], 16);
                    fragments_[index] |= (column[w.output / 32] >> (w.output % 32) & 1) << bit;
                }
            }
        }
    }

    // One step: the product of every column.
    std::vector<Words4> multiply(const std::vector<Words4>& blocks) const {
        std::vector<Words4> columns(kernels::kTileColumns);
        for (std::uint32_t warp = 0; warp < 4; ++warp) {
            std::uint32_t sent[32];
            std::barrier meet(32);
            std::vector<std::jthread> lanes;
            for (std::uint32_t lane = 0; lane < 32; ++lane)
                lanes.emplace_back([&, lane] {
                    const std::uint32_t thread = warp * 32 + lane;
                    std::uint32_t packed[8] = {}, state[4];
                    for (std::uint32_t half = 0; half < 2; ++half) {
                        std::uint32_t counts[64];
                        count(counts, blocks, thread, half);
                        kernels::pack_counts<128>(packed, counts, 0, half);
                    }
                    kernels::exchange_rows(state, packed, thread,
                                           [&](std::uint32_t value, std::uint32_t distance) {
                                               sent[lane] = value;
                                               meet.arrive_and_wait();
                                               const std::uint32_t got = sent[lane ^ distance];
                                               meet.arrive_and_wait();
                                               return got;
                                           });
                    for (std::uint32_t i = 0; i < 4; ++i)
                        std::memcpy(reinterpret_cast<unsigned char*>(
                                        &columns[kernels::state_column(thread, i)]) +
                                        4 * warp,
                                    &state[i], 4);
                });
        }
        return columns;
    }

  private:
    void count(std::uint32_t (&counts)[64], const std::vector<Words4>& blocks, std::uint32_t thread,
               std::uint32_t half) const {
        const std::uint32_t lane = thread % 32;
        for (std::uint32_t i = 0; i < 64; ++i) {
            // Accumulator i: row group (+ 8), column 8 j + 2 quad (+ 1).
            const std::uint32_t row = lane / 4 + 8 * (i / 2 % 2),
                                column = i / 4 * 8 + lane % 4 * 2 + i % 2;
            counts[i] = 0;
            for (std::uint32_t step = 0; step < kernels::kFragmentSteps; ++step)
                for (std::uint32_t word = 0; word < 8; ++word) {  // of 256 bits
                    // Row r, word w of the operand lies in the thread of row % 8 and w % 4.
                    const std::uint32_t owner = thread / 32 * 32 + row % 8 * 4 + word % 4;
                    const std::uint32_t r = row / 8 + word / 4 * 2;
                    std::uint32_t bits[4];
                    std::memcpy(bits, &blocks[column + 128 * (2 * step + word / 4)], 16);
                    counts[i] += static_cast<std::uint32_t>(
                        std::popcount(fragments_[kernels::fragment_index(half, step, r, owner)] &
                                      bits[word % 4]));
                }
        }
    }
    std::vector<std::uint32_t> fragments_;
};

TEST(GhashTile, StepsOf1024BlocksAreGhash) {
    test::Random random(3);
    const Words4 h = words(random.block());
    const Tile tile(h);
    Words4 expected{};
    std::vector<Words4> state(kernels::kTileColumns);
    for (int step = 0; step < 2; ++step) {
        std::vector<Words4> blocks;
        for (std::uint32_t i = 0; i < kernels::kTileBlocks; ++i) {
            blocks.push_back(words(random.block()));
            expected = kernels::gf_multiply(expected ^ blocks.back(), h);
        }
        for (std::uint32_t n = 0; n < kernels::kTileColumns; ++n) blocks[n] = blocks[n] ^ state[n];
        state = tile.multiply(blocks);
    }
    Words4 sum{}, weight = kernels::gf_one();
    const Words4 inverse = kernels::gf_inverse(h);
    for (const Words4& column : state) {
        sum = sum ^ kernels::gf_multiply(column, weight);
        weight = kernels::gf_multiply(weight, inverse);
    }
    EXPECT_TRUE(equal(sum, expected));
}

TEST(GhashTile, EveryWordOfTheStateHasOneOwner) {
    std::vector<int> owners(kernels::kTileColumns * 4);
    for (std::uint32_t thread = 0; thread < kernels::kTileThreads; ++thread)
        for (std::uint32_t i = 0; i < 4; ++i)
            ++owners[kernels::state_column(thread, i) * 4 + thread / 32];
    EXPECT_EQ(owners, std::vector<int>(owners.size(), 1));
}

TEST(GhashTile, EveryWordOfTheFragmentsHasItsPlace) {
    for (std::uint32_t index = 0; index < kernels::kFragmentWords; ++index) {
        const kernels::FragmentWord w = kernels::fragment_word(index);
        ASSERT_EQ(kernels::fragment_place(w.block, w.output, w.word), index);
    }
}

TEST(GcmShares, CoverEveryUnitOnce) {
    for (const std::uint64_t units : {1, 2, 395, 396, 397, 65537, 100000007})
        for (const std::uint32_t all : {1u, 7u, 396u, 1848u}) {
            const std::uint32_t workers = cuda::busy_workers(all, units);
            EXPECT_EQ(cuda::share_start(units, workers, 0), 0u);
            EXPECT_EQ(cuda::share_start(units, workers, workers), units);
            for (std::uint32_t w = 0; w < workers; ++w) {
                const std::uint64_t from = cuda::share_start(units, workers, w),
                                    to = cuda::share_start(units, workers, w + 1);
                ASSERT_LT(from, to) << units << " units, worker " << w << " of " << workers;
                ASSERT_EQ(cuda::worker_of(units, workers, from), w);
                ASSERT_EQ(cuda::worker_of(units, workers, to - 1), w);
            }
        }
}

// A warp's lanes, asked one after another.
constexpr auto votes = [](auto asked) {
    std::uint32_t yes = 0;
    for (std::uint32_t lane = 0; lane < kernels::kLanes; ++lane) yes += asked(lane);
    return yes;
};

TEST(GcmShares, AMessageIsFoundInListsOfAnyLength) {
    test::Random random(6);
    for (const std::uint32_t count :
         {1u, 2u, 3u, 32u, 33u, 34u, 35u, 65u, 1088u, 1089u, 1090u, 4096u, 40000u}) {
        std::vector<std::uint64_t> starts{0};
        for (std::uint32_t i = 0; i < count; ++i)  // empty messages among them, and runs of these
            starts.push_back(starts.back() + random.below(3) * random.below(3));
        ++starts.back();  // so that there is a unit
        const cuda::UnitList list{starts.data(), 1};
        for (int i = 0; i < 500; ++i) {
            const std::uint64_t unit = i == 0   ? 0
                                       : i == 1 ? starts.back() - 1
                                                : random.below(starts.back());
            const auto above = std::upper_bound(starts.begin(), starts.end(), unit);
            ASSERT_EQ(cuda::message_of(list, count, unit, votes), above - starts.begin() - 1)
                << "unit " << unit << " of " << count << " messages";
        }
    }
}

TEST(GcmShares, AWalkFindsEveryMessage) {
    test::Random random(4);
    std::vector<std::uint64_t> starts{0};
    for (int i = 0; i < 200; ++i)
        starts.push_back(starts.back() + random.below(4) * random.below(3));
    const auto count = static_cast<std::uint32_t>(starts.size() - 1);
    const cuda::UnitList list{starts.data(), 1};
    for (std::uint64_t from = 0; from < starts.back(); from += 3) {
        cuda::Walk walk(list, count, from, votes);
        for (std::uint64_t unit = from; unit < starts.back(); ++unit) {
            walk.advance(list, unit);
            ASSERT_LE(starts[walk.message], unit);
            ASSERT_GT(starts[walk.message + 1], unit);
            ASSERT_EQ(walk.start, starts[walk.message]);
            ASSERT_EQ(walk.end, starts[walk.message + 1]);
        }
    }
}

// A whole batch's hashes by workers, tiles, leads and partials, against plain Horner.
TEST(GcmShares, PartialsJoinToEachMessagesHash) {
    test::Random random(5);
    const Words4 h = words(random.block());
    std::vector<Bytes> data;
    std::vector<Message> messages;
    for (const std::size_t size : {9000, 0, 16384, 16385, 50000, 8192, 100001, 32768}) {
        data.push_back(random.bytes(size));
        Message m;
        m.size = size;
        m.in = m.out = data.back().data();
        m.tag = m.out;
        messages.push_back(m);
    }
    const auto count = static_cast<std::uint32_t>(messages.size());
    for (const std::uint32_t all : {1u, 3u, 5u, 50u}) {
        cuda::GcmBatch batch{};
        batch.messages = messages.data();
        batch.count = count;
        batch.key_count = 1;
        batch.tag_size = 16;
        std::vector<std::uint64_t> starts{0};
        for (std::uint32_t i = 0; i < count; ++i)
            starts.push_back(starts.back() + cuda::units_of(batch, i).data);
        batch.data.starts = starts.data();
        const std::uint64_t tiles = starts.back();
        const std::uint32_t workers = cuda::busy_workers(all, tiles);
        std::vector<Words4> partials(workers + count);
        std::vector<int> written(partials.size());
        for (std::uint32_t w = 0; w < workers; ++w) {
            std::uint64_t tile = cuda::share_start(tiles, workers, w);
            const std::uint64_t to = cuda::share_start(tiles, workers, w + 1);
            cuda::Walk walk(batch.data, count, tile, votes);
            while (tile < to) {
                walk.advance(batch.data, tile);
                const cuda::HashItem item = cuda::hash_item(batch, cuda::Part::data, walk.message);
                const std::uint64_t last = std::min(to, walk.end);
                Words4 hash{};
                for (std::uint64_t i = (tile - walk.start) * kernels::kTileBlocks;
                     i < (last - walk.start) * kernels::kTileBlocks; ++i) {
                    Words4 x{};
                    if (i >= item.lead) {
                        const std::uint64_t at = (i - item.lead) * 16;
                        std::memcpy(&x, item.data + at,
                                    std::min<std::uint64_t>(16, item.size - at));
                    }
                    hash = kernels::gf_multiply(hash ^ x, h);
                }
                const std::uint64_t after = (walk.end - last) * kernels::kTileBlocks;
                partials[w + walk.message] = kernels::gf_multiply(hash, power(h, after));
                ++written[w + walk.message];
                tile = last;
            }
        }
        for (const int times : written) EXPECT_LE(times, 1);
        for (std::uint32_t m = 0; m < count; ++m) {
            if (starts[m] == starts[m + 1]) continue;
            Words4 joined{}, expected{};
            for (std::uint32_t w = cuda::worker_of(tiles, workers, starts[m]);
                 w <= cuda::worker_of(tiles, workers, starts[m + 1] - 1); ++w)
                joined = joined ^ partials[w + m];
            for (std::size_t at = 0; at < data[m].size(); at += 16) {
                Words4 x{};
                std::memcpy(&x, data[m].data() + at,
                            std::min<std::size_t>(16, data[m].size() - at));
                expected = kernels::gf_multiply(expected ^ x, h);
            }
            EXPECT_TRUE(equal(joined, expected))
                << "message " << m << ", " << workers << " workers";
        }
    }
}

// What a kernel may have put into a list that nobody has checked.
TEST(GcmLists, EntriesThatMakeNoSenseAreFound) {
    std::uint8_t bytes[64];
    auto* const top = reinterpret_cast<std::uint8_t*>(~std::uintptr_t{15});
    cuda::GcmBatch batch{};
    batch.key_count = 2;
    batch.tag_size = 16;
    const auto verdict = [&](auto spoil) {
        Message m{.in = bytes, .out = bytes, .size = 32, .tag = bytes, .key = 1};
        spoil(m);
        return cuda::validity(batch, m);
    };
    constexpr Code kOk = Code::ok, kInvalid = Code::invalid_argument, kLimit = Code::limit;
    EXPECT_EQ(verdict([](Message&) {}), kOk);
    EXPECT_EQ(verdict([](Message& m) { m.key = 2; }), kInvalid);
    EXPECT_EQ(verdict([](Message& m) { m = {}; }), kInvalid);  // nowhere to put the tag
    EXPECT_EQ(verdict([](Message& m) { m.in = nullptr; }), kInvalid);
    EXPECT_EQ(verdict([](Message& m) { m.out = nullptr; }), kInvalid);
    EXPECT_EQ(verdict([](Message& m) { m.tag = nullptr; }), kInvalid);
    EXPECT_EQ(verdict([&](Message& m) { m.out = top; }), kInvalid);
    EXPECT_EQ(verdict([&](Message& m) { m.out = top, m.size = 15; }), kOk);
    EXPECT_EQ(verdict([&](Message& m) { m.tag = top + 1; }), kInvalid);
    EXPECT_EQ(verdict([](Message& m) { m.aad_size = 1; }), kInvalid);
    EXPECT_EQ(verdict([](Message& m) { m.in = m.out = nullptr, m.size = 0; }), kOk);
    EXPECT_EQ(verdict([](Message& m) { m.size = gcm::kMaxData + 1; }), kLimit);
    EXPECT_EQ(verdict([](Message& m) { m.aad_size = ~std::uint64_t{0}; }), kLimit);
    EXPECT_EQ(verdict([](Message& m) { m.skip = 1; }), kInvalid);

    batch.tag_size = 0;                                   // counter mode alone
    EXPECT_EQ(verdict([](Message& m) { m = {}; }), kOk);  // nothing to do
    EXPECT_EQ(verdict([](Message& m) { m.in = m.tag = nullptr; }), kOk);
    EXPECT_EQ(verdict([](Message& m) { m.out = nullptr; }), kInvalid);
    EXPECT_EQ(verdict([](Message& m) { m.skip = 15; }), kOk);
    EXPECT_EQ(verdict([](Message& m) { m.skip = 16; }), kInvalid);
    EXPECT_EQ(verdict([](Message& m) { m.aad_size = 1; }), kInvalid);
    const auto counted_from = [&](std::uint8_t low, std::uint8_t skip) {
        return verdict([&](Message& m) {
            std::fill(m.start.begin() + 12, m.start.end(), std::uint8_t{0xff});
            m.start[15] = low;
            m.skip = skip;
        });
    };
    EXPECT_EQ(counted_from(0xfe, 0), kOk);  // two blocks are left
    EXPECT_EQ(counted_from(0xff, 0), kLimit);
    EXPECT_EQ(counted_from(0xfe, 1), kLimit);
    EXPECT_EQ(counted_from(0xfd, 1), kOk);
}

TEST(GcmShares, GroupsOfCountersHoldEveryBlock) {
    test::Random random(6);
    std::uint8_t byte = 0;
    for (int round = 0; round < 300; ++round) {
        Message m{.in = &byte,
                  .out = &byte,
                  .size = cuda::kShortMessage + 1 + random.below(100000),
                  .tag = &byte,
                  .start = random.block()};
        m.start[12] = 0;
        cuda::GcmBatch batch{};
        batch.messages = &m;
        batch.key_count = 1;
        batch.tag_size = round % 2 * 16;
        if (batch.tag_size == 0) m.skip = static_cast<std::uint8_t>(random.below(16));
        // Of GCM, J0 is not for the data.
        const std::uint64_t first =
            kernels::byte_swap(cuda::start_of(m).w) + (batch.tag_size != 0 ? 1u : 0u);
        const std::uint64_t last = first + (m.skip + m.size - 1) / 16;
        EXPECT_EQ(cuda::units_of(batch, 0).groups, last / 256 - first / 256 + 1);
    }
}

}  // namespace
