// SPDX-License-Identifier: Apache-2.0
// What GCM means, apart from any backend: GHASH's field, J0, what is refused, and tags.
#include <gtest/gtest.h>

#include "core/ghash_math.hpp"
#include "modes/gcm.hpp"
#include "support/bytes.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using core::FieldElement;

FieldElement element(Random& random) {
    return {random.number(), random.number()};
}

FieldElement element(std::string_view hex) {
    return core::load_element(from_hex(hex).data());
}

TEST(GhashMath, IsAField) {
    Random random(1);
    for (int i = 0; i < 200; ++i) {
        const FieldElement a = element(random), b = element(random), c = element(random);
        EXPECT_EQ(core::multiply(a, b), core::multiply(b, a));
        EXPECT_EQ(core::multiply(core::multiply(a, b), c), core::multiply(a, core::multiply(b, c)));
        EXPECT_EQ(core::multiply(a, b ^ c), core::multiply(a, b) ^ core::multiply(a, c));
        EXPECT_EQ(core::multiply(a, core::kFieldOne), a);
        EXPECT_EQ(core::multiply(a, core::inverse(a)), core::kFieldOne);
        EXPECT_EQ(core::multiply(a, {0, std::uint64_t{1}}),  // by x^127, the hard way
                  [&] {
                      FieldElement shifted = a;
                      for (int bit = 0; bit < 127; ++bit) shifted = core::times_x(shifted);
                      return shifted;
                  }());
    }
    EXPECT_EQ(core::inverse({}), FieldElement{});
}

TEST(GhashMath, PowersAreRepeatedProducts) {
    Random random(2);
    const FieldElement a = element(random);
    FieldElement product = core::kFieldOne;
    for (std::uint64_t exponent = 0; exponent < 300; ++exponent) {
        EXPECT_EQ(core::power(a, exponent), product);
        product = core::multiply(product, a);
    }
}

TEST(GhashMath, BlocksThereAndBack) {
    const Bytes bytes = from_hex("00112233445566778899aabbccddeeff");
    const FieldElement a = core::load_element(bytes.data());
    EXPECT_EQ(a.high, 0x0011223344556677u);
    EXPECT_EQ(a.low, 0x8899aabbccddeeffu);
    Bytes back(16);
    core::store_element(back.data(), a);
    EXPECT_EQ(back, bytes);
}

// McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, test case 2.
TEST(GhashMath, ThePapersIntermediateValues) {
    const FieldElement h = element("66e94bd4ef8a2c3b884cfa59ca342b2e");
    const Bytes c = from_hex("0388dace60b6a392f328c2b971b2fe78");
    FieldElement y = core::ghash(h, {}, c.data(), c.size());
    EXPECT_EQ(y, element("5e2ec746917062882c85b0685353deb7"));
    y = core::ghash(h, y, modes::lengths_block(0, 16).data(), 16);
    EXPECT_EQ(y, element("f38cbb1ad69223dcc3457ae5b6b0f885"));
}

// Test cases 5 (an IV of 8 bytes) and 6 (60 bytes): Y0.
TEST(InitialCounter, ThePapersVectors) {
    const FieldElement h = element("b83b533708bf535d0aa6e52980d53b78");
    EXPECT_EQ(to_hex(modes::initial_counter(h, from_hex("cafebabefacedbaddecaf888"))),
              "cafebabefacedbaddecaf88800000001");
    EXPECT_EQ(to_hex(modes::initial_counter(h, from_hex("cafebabefacedbad"))),
              "c43a83c4c4badec4354ca984db252f7d");
    EXPECT_EQ(to_hex(modes::initial_counter(
                  h, from_hex("9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728c3c0"
                              "c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b"))),
              "3bab75780a31c059f83d2a44752f9864");
}

// Lengths that are no multiple of a block, against the padding by hand.
TEST(GhashMath, FillsUpWithZeros) {
    Random random(5);
    const FieldElement h = element(random);
    for (std::size_t size = 0; size <= 70; ++size) {
        const Bytes bytes = random.bytes(size);
        Bytes padded = bytes;
        padded.resize((size + 15) / 16 * 16);
        EXPECT_EQ(core::ghash(h, {}, bytes.data(), size),
                  core::ghash(h, {}, padded.data(), padded.size()));
    }
}

TEST(InitialCounter, AnIvForEveryCounter) {
    Random random(3);
    for (int i = 0; i < 20; ++i) {
        const FieldElement h = element(random);
        const Block wanted = random.block();
        const Block iv = modes::iv_for_counter(h, wanted);
        EXPECT_EQ(modes::initial_counter(h, iv), wanted);
    }
}

TEST(EqualTags, EveryBitOfEverySizeCounts) {
    Random random(4);
    for (std::size_t size = 0; size <= 40; ++size) {
        const Bytes a = random.bytes(size);
        EXPECT_TRUE(modes::equal_tags(a.data(), Bytes(a).data(), size));
        for (std::size_t bit = 0; bit < 8 * size; ++bit) {
            Bytes b = a;
            b[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
            EXPECT_FALSE(modes::equal_tags(a.data(), b.data(), size)) << size << " " << bit;
        }
    }
}

class GcmCheck : public testing::Test {
  protected:
    Bytes memory_ = Bytes(400);
    const Bytes iv_ = Bytes(12);
    core::GcmSegment good_{memory_.data(),
                           memory_.data() + 100,
                           100,
                           memory_.data() + 200,
                           20,
                           iv_.data(),
                           iv_.size(),
                           memory_.data() + 300,
                           kTagSize,
                           0};

    Code code_of(auto change) const {
        core::GcmSegment changed = good_;
        change(changed);
        const auto result = modes::check(changed, 3);
        EXPECT_TRUE(result || !result.error().message.empty());
        return result.code();
    }
};

TEST_F(GcmCheck, TakesWhatIsRight) {
    EXPECT_EQ(code_of([](auto&) {}), Code::ok);
    EXPECT_EQ(code_of([](auto& s) { s.out = const_cast<std::uint8_t*>(s.in); }), Code::ok);
    EXPECT_EQ(code_of([](auto& s) { s.key = 2; }), Code::ok);
    EXPECT_EQ(code_of([](auto& s) { s.tag = s.out + 100; }), Code::ok);  // right after the output
    EXPECT_EQ(code_of([](auto& s) { s.tag = s.out - 16; }), Code::ok);
    EXPECT_EQ(code_of([](auto& s) {
                  s.in = s.out = nullptr;
                  s.size = 0;
                  s.aad = nullptr;
                  s.aad_size = 0;
              }),
              Code::ok);
    for (const std::size_t size : {4, 8, 12, 13, 14, 15, 16})
        EXPECT_EQ(code_of([&](auto& s) { s.tag_size = size; }), Code::ok) << size;
}

TEST_F(GcmCheck, RefusesWhatIsNot) {
    for (const std::size_t size : {0, 1, 2, 3, 5, 6, 7, 9, 10, 11, 17, 32})
        EXPECT_EQ(code_of([&](auto& s) { s.tag_size = size; }), Code::invalid_argument) << size;
    EXPECT_EQ(code_of([](auto& s) { s.key = 3; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& s) { s.iv_size = 0; }), Code::iv_size);
    EXPECT_EQ(code_of([](auto& s) { s.iv = nullptr; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& s) { s.in = nullptr; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& s) { s.out = nullptr; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& s) { s.aad = nullptr; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& s) { s.tag = nullptr; }), Code::invalid_argument);
}

TEST_F(GcmCheck, RefusesOverlaps) {
    EXPECT_EQ(code_of([](auto& s) { s.in = s.out + 99; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& s) { s.in = s.out - 99; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& s) { s.tag = s.out + 99; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& s) { s.tag = s.out - 15; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& s) { s.aad = s.out + 40; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& s) { s.aad = s.out - 19; }), Code::overlap);
}

TEST_F(GcmCheck, HoldsTheLimits) {
    EXPECT_EQ(kGcmMostData, 68719476704u);  // (2^39 - 256) / 8
    EXPECT_EQ(code_of([](auto& s) { s.size = kGcmMostData + 1; }), Code::limit);
    EXPECT_EQ(code_of([](auto& s) { s.size = ~std::uint64_t{0}; }), Code::limit);
    EXPECT_EQ(code_of([](auto& s) { s.aad_size = kGcmMostAad + 1; }), Code::limit);
    EXPECT_TRUE(modes::check_data_size(kGcmMostData));
    EXPECT_TRUE(modes::check_aad_size(kGcmMostAad));
}

}  // namespace
