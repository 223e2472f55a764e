// SPDX-License-Identifier: Apache-2.0
// <daelstrom/device/aes.cuh>, compiled for the host: without tables, and by every layout of tables
// as each lane of a warp sees it, against OpenSSL.
#include <gtest/gtest.h>

#include <cstring>

#include <daelstrom/device/aes.cuh>

#include "support/oracle.hpp"

namespace {

using namespace dael::test;
using namespace dael::device;
using dael::Cipher;
using dael::Direction;
using dael::Mode;

// The tables as a thread block fills them: `threads` threads, and a view for each lane.
template <class Tables>
class FilledTables {
  public:
    explicit FilledTables(std::uint32_t threads) : image_(Tables::kBytes / sizeof(Block)) {
        std::memset(image_.data(), 0xa5, Tables::kBytes);
        for (std::uint32_t thread = 0; thread < threads; ++thread)
            Tables::fill(image_.data(), thread, threads);
    }
    Tables lane(std::uint32_t lane) const { return Tables::view(image_.data(), lane); }

  private:
    std::vector<Block> image_;
};

Bytes bytes(const Block& block) {
    Bytes out(16);
    store_block(out.data(), block);
    return out;
}
Bytes ecb(const Bytes& key, Direction direction, const Bytes& in) {
    return oracle(key, Use{.mode = Mode::ecb, .direction = direction}, in);
}
Bytes exclusive_or(Bytes a, const Bytes& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] ^= b[i];
    return a;
}

// Each test runs for every key size.
template <class Bits>
class DeviceHeader : public testing::Test {
  protected:
    static constexpr int kBits = Bits::value;
    Random random_{kBits};
    Bytes key_ = random_.bytes(kBits / 8);
};
using KeySizes = testing::Types<std::integral_constant<int, 128>, std::integral_constant<int, 192>,
                                std::integral_constant<int, 256>>;
struct SizeNames {
    template <class Bits>
    static std::string GetName(int) {
        return std::to_string(Bits::value);
    }
};
TYPED_TEST_SUITE(DeviceHeader, KeySizes, SizeNames);

// FIPS 197, appendix A: the last word of each example's key expansion.
TEST(DeviceHeaderKeys, PublishedExpansions) {
    const Bytes key128{0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6,
                       0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
    EXPECT_EQ(expand_key<128>(NoTables{}, key128.data()).w[43], 0xa60c63b6u);
    EXPECT_EQ(expand_key(NoTables{}, load_block(key128.data())).w[43], 0xa60c63b6u);
    const Bytes key192{0x8e, 0x73, 0xb0, 0xf7, 0xda, 0x0e, 0x64, 0x52, 0xc8, 0x10, 0xf3, 0x2b,
                       0x80, 0x90, 0x79, 0xe5, 0x62, 0xf8, 0xea, 0xd2, 0x52, 0x2c, 0x6b, 0x7b};
    EXPECT_EQ(expand_key<192>(NoTables{}, key192.data()).w[51], 0x02220001u);
    const Bytes key256{0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae,
                       0xf0, 0x85, 0x7d, 0x77, 0x81, 0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61,
                       0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4};
    EXPECT_EQ(expand_key<256>(NoTables{}, key256.data()).w[59], 0x1e636c70u);
}

TYPED_TEST(DeviceHeader, BlocksWithoutTables) {
    constexpr int kSize = TypeParam::value;
    for (int sample = 0; sample < 256; ++sample) {
        const Bytes raw = this->random_.bytes(kSize / 8), in = this->random_.bytes(16),
                    mask = this->random_.bytes(16);
        const auto key = expand_key<kSize>(NoTables{}, raw.data());
        const Block block = load_block(in.data());
        const Bytes expected = ecb(raw, Direction::encrypt, in);
        EXPECT_EQ(bytes(NoTables{}.encrypt(key, block)), expected);
        EXPECT_EQ(bytes(NoTables{}.encrypt_xor(key, block, load_block(mask.data()))),
                  exclusive_or(expected, mask));
        EXPECT_EQ(bytes(NoTables{}.decrypt(invert_key(key), block)),
                  ecb(raw, Direction::decrypt, in));
    }
}

template <int kTables, int kBits>
void check_tables(Random& random, std::uint32_t threads) {
    const FilledTables<SharedTables<kTables>> forward(threads);
    const FilledTables<SharedInverseTables<kTables>> inverse(threads);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const SharedTables<kTables> aes = forward.lane(lane);
        const SharedInverseTables<kTables> unaes = inverse.lane(lane);
        const Bytes raw = random.bytes(kBits / 8), in = random.bytes(16);
        const auto key = expand_key<kBits>(aes, raw.data());
        const Block block = load_block(in.data());
        EXPECT_EQ(bytes(aes.encrypt(key, block)), ecb(raw, Direction::encrypt, in)) << lane;
        EXPECT_EQ(bytes(unaes.decrypt(invert_key(key), block)), ecb(raw, Direction::decrypt, in))
            << lane;
    }
}

// However many threads fill the tables: fewer than rows, a number that is no divisor, more.
TYPED_TEST(DeviceHeader, BlocksByTables) {
    for (const std::uint32_t threads : {32u, 96u, 1024u}) {
        check_tables<4, TestFixture::kBits>(this->random_, threads);
        check_tables<2, TestFixture::kBits>(this->random_, threads);
        check_tables<1, TestFixture::kBits>(this->random_, threads);
    }
}

// The key expansion's lookups, too, stay in the lane's own bank (KernelMaths has the cipher's): in
// tables in which every word is the bank it lies in, any lookup tells which bank it read.
template <int kTables>
void check_banks() {
    std::vector<std::uint32_t> image(SharedTables<kTables>::kBytes / 4);
    for (std::uint32_t i = 0; i < image.size(); ++i) image[i] = (i % 32) * 0x01010101u;
    Random random(7);
    for (std::uint32_t lane = 0; lane < 32; ++lane)
        for (int sample = 0; sample < 256; ++sample)
            EXPECT_EQ(SharedTables<kTables>::view(image.data(), lane)
                          .sub_word(static_cast<std::uint32_t>(random.number())),
                      lane * 0x01010101u);
}
TEST(DeviceHeaderKeys, ExpansionStaysInItsOwnBank) {
    check_banks<4>();
    check_banks<2>();
    check_banks<1>();
}

TYPED_TEST(DeviceHeader, CounterModeAtEveryOffsetAndSize) {
    const auto key = expand_key<TestFixture::kBits>(NoTables{}, this->key_.data());
    dael::Block iv;
    iv.fill(0xff);
    iv[15] = 0xfd;  // carries through every byte, and wraps at 2^128
    const Block counter = load_block(iv.data());
    for (std::size_t size = 0; size <= 70; ++size)
        for (std::uint64_t offset = 0; offset <= 34; ++offset)
            for (const std::size_t in_place : {0u, 1u}) {
                const Bytes plain = pattern(size, offset);
                const std::size_t at = (size + offset) % 16;
                Poisoned out(size, at);
                if (in_place) std::ranges::copy(plain, out.data());
                ctr(NoTables{}, key, counter, offset, in_place ? out.data() : plain.data(),
                    out.data(), size);
                ASSERT_EQ(
                    difference(oracle(this->key_,
                                      Use{.mode = Mode::ctr, .start = iv, .offset = offset}, plain),
                               out.span()),
                    "")
                    << size << " bytes from " << offset;
                ASSERT_TRUE(out.intact()) << size << " bytes from " << offset;
            }
}

TYPED_TEST(DeviceHeader, CounterModeByManyWorkers) {
    const auto key = expand_key<TestFixture::kBits>(NoTables{}, this->key_.data());
    const dael::Block iv = this->random_.block();
    const Bytes plain = pattern(2011);
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{4096},
                                       (std::uint64_t{1} << 40) + 7, ~std::uint64_t{0} - 4000}) {
        const Bytes expected =
            oracle(this->key_, Use{.mode = Mode::ctr, .start = iv, .offset = offset}, plain);
        for (const std::uint64_t workers : {1u, 2u, 32u, 1000u}) {
            Poisoned out(plain.size(), workers % 16);
            for (std::uint64_t worker = workers; worker-- > 0;)
                ctr(NoTables{}, key, load_block(iv.data()), offset, plain.data(), out.data(),
                    plain.size(), worker, workers);
            EXPECT_EQ(difference(expected, out.span()), "") << workers << " from " << offset;
            EXPECT_TRUE(out.intact());
        }
    }
}

// Guo, Katz, Wang and Yu's constructions (ePrint 2019/074, 7.2 to 7.4), from OpenSSL's blocks.
TYPED_TEST(DeviceHeader, FixedKeyHashes) {
    const auto key = expand_key<TestFixture::kBits>(NoTables{}, this->key_.data());
    const auto pi = [&](const Bytes& x) { return ecb(this->key_, Direction::encrypt, x); };
    for (int sample = 0; sample < 64; ++sample) {
        const Bytes x = this->random_.bytes(16), tweak = this->random_.bytes(16);
        const Block block = load_block(x.data());
        EXPECT_EQ(bytes(mmo(NoTables{}, key, block)), exclusive_or(pi(x), x));

        Bytes turned(16);  // L, bytes 8 to 15, goes below; L ^ R above
        for (std::size_t i = 0; i < 8; ++i) {
            turned[i] = x[8 + i];
            turned[8 + i] = x[8 + i] ^ x[i];
        }
        EXPECT_EQ(bytes(sigma(block)), turned);
        EXPECT_EQ(bytes(mmo_sigma(NoTables{}, key, block)), exclusive_or(pi(turned), turned));

        const Bytes y = pi(x);
        EXPECT_EQ(bytes(tmmo(NoTables{}, key, block, load_block(tweak.data()))),
                  exclusive_or(pi(exclusive_or(y, tweak)), y));
    }
}

TEST(DeviceHeaderTables, WhatFits) {
    for (const auto& [kilobytes, forward, inverse] : {std::tuple{227, 4, 4},
                                                      {163, 4, 4},
                                                      {159, 4, 2},
                                                      {99, 2, 2},
                                                      {95, 2, 1},
                                                      {64, 2, 1},
                                                      {63, 1, 0},
                                                      {32, 1, 0},
                                                      {31, 0, 0},
                                                      {0, 0, 0}}) {
        const auto bytes_there = static_cast<std::size_t>(kilobytes) * 1024;
        EXPECT_EQ(tables_that_fit(bytes_there), forward) << kilobytes;
        EXPECT_EQ(tables_that_fit(bytes_there, true), inverse) << kilobytes;
    }
}

}  // namespace
