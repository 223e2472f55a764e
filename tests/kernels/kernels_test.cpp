// SPDX-License-Identifier: Apache-2.0
// The maths of the CUDA kernels, compiled for the host: every table layout, lane by lane, against
// OpenSSL.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include <daelstrom/device/detail/rounds.hpp>

#include "core/key_schedule.hpp"
#include "core/registry.hpp"
#include "kernels/counter_cache.hpp"
#include "modes/counter.hpp"

namespace {

using namespace dael;
using kernels::Words4;

template <int kTables, bool kInverse>
std::vector<std::uint32_t> table_image() {
    using Image = kernels::Tables<kTables, kInverse>;
    const auto t0 = kInverse ? kernels::make_decrypt_table() : kernels::make_encrypt_table();
    const auto inverse_sbox = kernels::make_inverse_sbox();
    std::vector<std::uint32_t> image(Image::kBytes / 4);
    for (std::uint32_t run = 0; run < Image::kRuns; ++run)
        std::fill_n(image.begin() + Image::run_offset(run) / 4, kernels::kLanes,
                    Image::run_word(run, t0.data(), inverse_sbox.data()));
    return image;
}

Key random_key(std::mt19937& random, std::size_t bytes) {
    std::vector<std::uint8_t> raw(bytes);
    for (auto& byte : raw) byte = static_cast<std::uint8_t>(random());
    return std::move(*Key::import(raw));
}

kernels::RoundKeys round_keys(const Key& key, bool inverse) {
    kernels::RoundKeys keys;
    std::memcpy(keys.w, inverse ? key.schedule().decrypt.data() : key.schedule().encrypt.data(),
                sizeof keys.w);
    return keys;
}

Words4 random_words(std::mt19937& random) {
    return {static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random()),
            static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random())};
}

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

// One block by OpenSSL.
Block oracle(const Key& key, Direction direction, const Block& in) {
    static const auto openssl = std::move(*core::open_backend("openssl"));
    Block out;
    const Message message{.in = in.data(), .out = out.data(), .size = in.size()};
    EXPECT_TRUE(openssl->run({Mode::ecb, direction}, {std::span(&key, 1)}, {&message, 1}, {}));
    return out;
}

template <int kTables, int kRounds>
void check_block_cipher() {
    std::mt19937 random(1000 * kTables + kRounds);
    const auto forward_image = table_image<kTables, false>();
    const auto inverse_image = table_image<kTables, true>();
    const auto* forward_bytes = reinterpret_cast<const unsigned char*>(forward_image.data());
    const auto* inverse_bytes = reinterpret_cast<const unsigned char*>(inverse_image.data());
    for (int sample = 0; sample < 64; ++sample) {
        const Key key = random_key(random, 4 * (kRounds - 6));
        const auto lane = static_cast<std::uint32_t>(sample % 32);
        const kernels::Tables<kTables, false> forward(forward_bytes, lane);
        const kernels::Tables<kTables, true> inverse(inverse_bytes, lane);
        const Words4 block = random_words(random), mask = random_words(random);
        const Words4 encrypted =
            kernels::crypt_masked<kRounds>(forward, round_keys(key, false), block, mask);
        EXPECT_EQ(bytes(encrypted ^ mask), oracle(key, Direction::encrypt, bytes(block)));
        const Words4 decrypted =
            kernels::crypt_masked<kRounds>(inverse, round_keys(key, true), block, mask);
        EXPECT_EQ(bytes(decrypted ^ mask), oracle(key, Direction::decrypt, bytes(block)));
    }
}

template <int kTables, int kRounds>
void check_counter_cache() {
    std::mt19937 random(2000 * kTables + kRounds);
    const auto image = table_image<kTables, false>();
    const auto* image_bytes = reinterpret_cast<const unsigned char*>(image.data());
    for (const std::uint32_t low : {0u, 0x00ffff80u, 0xfffffe00u, 0x12345678u}) {
        const Key key = random_key(random, 4 * (kRounds - 6));
        const auto keys = round_keys(key, false);
        Words4 counter = random_words(random);
        const kernels::Tables<kTables, false> one_lane(image_bytes, 5);
        kernels::CounterWalk<kTables> walk(one_lane, keys, counter);
        for (std::uint32_t n = 0; n < 300; ++n) {  // crosses groups of 256, and 65,536
            const std::uint32_t value = low + n;
            counter.w = kernels::byte_swap(value);
            const kernels::Tables<kTables, false> tables(image_bytes, n % 32);
            const kernels::CounterCache<kTables> cache(tables, keys, counter);
            const Words4 state = cache.high(value) ^ cache.middle(value) ^ cache.low(value & 255);
            const Words4 keystream =
                kernels::finish_masked<kRounds, 3>(tables, keys, state, Words4{});
            ASSERT_EQ(bytes(keystream), oracle(key, Direction::encrypt, bytes(counter))) << value;
            if (n % 4 == 1) ASSERT_EQ(bytes(walk.state(value)), bytes(state)) << value;
        }
    }
}

template <int kTables>
void check_layout() {
    check_block_cipher<kTables, 10>();
    check_block_cipher<kTables, 12>();
    check_block_cipher<kTables, 14>();
    check_counter_cache<kTables, 10>();
    check_counter_cache<kTables, 12>();
    check_counter_cache<kTables, 14>();
}

TEST(KernelMaths, FourTables) {
    check_layout<4>();
}
TEST(KernelMaths, TwoTables) {
    check_layout<2>();
}
TEST(KernelMaths, OneTable) {
    check_layout<1>();
}

// The promise of SIDE-CHANNELS.md: a lane's lookups stay in the lane's own bank, whatever the data.
// `offset`: of the image in shared memory, where a kernel has something else before it.
template <int kTables, bool kInverse>
void check_banks(std::uint32_t offset = 0) {
    // An image in which every word is the bank it lies in: any lookup then tells which bank it
    // read.
    std::vector<std::uint32_t> image((offset + kernels::Tables<kTables, kInverse>::kBytes) / 4);
    for (std::uint32_t i = 0; i < image.size(); ++i) image[i] = (i % 32) * 0x01010101u;
    const auto* image_bytes = reinterpret_cast<const unsigned char*>(image.data());
    std::mt19937 random(3);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const auto tables = offset == 0
                                ? kernels::Tables<kTables, kInverse>(image_bytes, lane)
                                : kernels::Tables<kTables, kInverse>(image_bytes, offset, lane);
        const std::uint32_t own = lane * 0x01010101u;
        for (int sample = 0; sample < 256; ++sample) {
            const Words4 w = random_words(random);
            EXPECT_EQ(tables.column(w.x, w.x, w.x, w.x, own), own);  // an odd number of equal terms
            EXPECT_EQ(tables.template term<0>(w.x), own);
            EXPECT_EQ(tables.template term<1>(w.y), own);
            EXPECT_EQ(tables.template term<2>(w.z), own);
            EXPECT_EQ(tables.template term<3>(w.w), own);
            EXPECT_EQ(tables.last_column(w.x, w.y, w.z, w.w), own);
        }
    }
}

TEST(KernelMaths, EveryLookupStaysInItsOwnBank) {
    check_banks<4, false>();
    check_banks<4, true>();
    check_banks<2, false>();
    check_banks<2, true>();
    check_banks<1, false>();
    check_banks<1, true>();
    check_banks<4, false>(65536);  // GCM's groups of 64
}

TEST(KernelMaths, CountersCarryAndWrap) {
    std::mt19937 random(4);
    for (int ones = 0; ones <= 16; ++ones) {
        Block start = bytes(random_words(random));
        std::fill(start.end() - ones, start.end(), std::uint8_t{0xff});
        for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{255},
                                          std::uint64_t{0xffffffff}, ~std::uint64_t{0}})
            EXPECT_EQ(bytes(kernels::counter_block(words(start), index)),
                      modes::counter_add(start, index));
    }
}

}  // namespace
