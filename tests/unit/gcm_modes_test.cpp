// SPDX-License-Identifier: Apache-2.0
// What GCM means, apart from any backend: GHASH's field, J0, what is refused, and tags.
#include <gtest/gtest.h>

#include "modes/gcm.hpp"
#include "modes/traits.hpp"
#include "support/oracle.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using modes::Element;

Element element(Random& random) {
    return modes::load_element(random.block().data());
}

Element element(std::string_view hex) {
    return modes::load_element(from_hex(hex).data());
}

std::string text(const Element& a) {
    Block bytes;
    modes::store_element(bytes.data(), a);
    return to_hex(bytes);
}

// a times x, by the definition: one bit on, and what leaves at x^128 comes back as x^7 + x^2 + x
// + 1.
Element times_x(const Element& a) {
    Block b;
    modes::store_element(b.data(), a);
    unsigned carry = 0;
    for (auto& byte : b) {
        const unsigned next = byte & 1u;
        byte = static_cast<std::uint8_t>(byte >> 1 | carry << 7);
        carry = next;
    }
    if (carry) b[0] ^= 0xe1;
    return modes::load_element(b.data());
}

TEST(GhashMath, IsAField) {
    Random random(1);
    Element far = modes::kOne;  // x^127
    for (int bit = 0; bit < 127; ++bit) far = times_x(far);
    for (int i = 0; i < 200; ++i) {
        const Element a = element(random), b = element(random), c = element(random);
        using modes::add, modes::multiply;
        EXPECT_EQ(text(multiply(a, b)), text(multiply(b, a)));
        EXPECT_EQ(text(multiply(multiply(a, b), c)), text(multiply(a, multiply(b, c))));
        EXPECT_EQ(text(multiply(a, add(b, c))), text(add(multiply(a, b), multiply(a, c))));
        EXPECT_EQ(text(multiply(a, modes::kOne)), text(a));
        EXPECT_EQ(text(multiply(a, modes::inverse(a))), text(modes::kOne));
        Element shifted = a;
        for (int bit = 0; bit < 127; ++bit) shifted = times_x(shifted);
        EXPECT_EQ(text(multiply(a, far)), text(shifted));
    }
    EXPECT_EQ(text(modes::inverse({})), text({}));
}

TEST(GhashMath, PowersAreRepeatedProducts) {
    Random random(2);
    const Element a = element(random);
    Element product = modes::kOne;
    for (std::uint64_t exponent = 0; exponent < 300; ++exponent) {
        EXPECT_EQ(text(modes::power(a, exponent)), text(product));
        product = modes::multiply(product, a);
    }
}

// McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, test case 2.
TEST(GhashMath, ThePapersIntermediateValues) {
    const Element h = element("66e94bd4ef8a2c3b884cfa59ca342b2e");
    const Bytes c = from_hex("0388dace60b6a392f328c2b971b2fe78");
    Element y = modes::ghash(h, {}, c.data(), c.size());
    EXPECT_EQ(text(y), text(element("5e2ec746917062882c85b0685353deb7")));
    y = modes::ghash(h, y, modes::lengths_block(0, 16).data(), 16);
    EXPECT_EQ(text(y), text(element("f38cbb1ad69223dcc3457ae5b6b0f885")));
}

// Test cases 5 (an IV of 8 bytes) and 6 (60 bytes): Y0.
TEST(PreCounter, ThePapersVectors) {
    const Element h = element("b83b533708bf535d0aa6e52980d53b78");
    EXPECT_EQ(to_hex(modes::pre_counter(h, from_hex("cafebabefacedbaddecaf888"))),
              "cafebabefacedbaddecaf88800000001");
    EXPECT_EQ(to_hex(modes::pre_counter(h, from_hex("cafebabefacedbad"))),
              "c43a83c4c4badec4354ca984db252f7d");
    EXPECT_EQ(to_hex(modes::pre_counter(
                  h, from_hex("9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728c3c0"
                              "c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b"))),
              "3bab75780a31c059f83d2a44752f9864");
}

// Lengths that are no multiple of a block, against the padding by hand.
TEST(GhashMath, FillsUpWithZeros) {
    Random random(5);
    const Element h = element(random);
    for (std::size_t size = 0; size <= 70; ++size) {
        const Bytes bytes = random.bytes(size);
        Bytes padded = bytes;
        padded.resize((size + 15) / 16 * 16);
        EXPECT_EQ(text(modes::ghash(h, {}, bytes.data(), size)),
                  text(modes::ghash(h, {}, padded.data(), padded.size())));
    }
}

TEST(PreCounter, AnIvForEveryCounter) {
    Random random(3);
    for (int i = 0; i < 20; ++i) {
        const Element h = element(random);
        const Block wanted = random.block();
        const Block iv = modes::iv_for(h, wanted);
        EXPECT_EQ(modes::pre_counter(h, iv), wanted);
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

TEST(HashSubkey, IsTheCipherOfZeros) {
    for (const std::size_t size : {16, 24, 32}) {
        const Bytes raw = random_bytes(size, 9);
        const auto key = Key::import(raw);
        ASSERT_TRUE(key);
        EXPECT_EQ(text(modes::hash_subkey(key->schedule())),
                  to_hex(oracle(raw, Use{Mode::ecb, Direction::encrypt}, Bytes(16))));
    }
}

TEST(Starts, NoncesAreToldFromOtherIvs) {
    Random random(6);
    const Bytes nonce = random.bytes(12);
    gcm::Nonce array;
    std::ranges::copy(nonce, array.begin());
    const Block start = gcm::start(array);
    EXPECT_TRUE(modes::is_of_nonce(start));
    EXPECT_EQ(start, modes::pre_counter(element(random), nonce));
    Message message;
    message.start = random.block();
    gcm::set_start(message, nonce.data());
    EXPECT_EQ(message.start, start);
    for (std::size_t bit = 96; bit < 128; ++bit) {
        Block other = start;
        other[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
        EXPECT_FALSE(modes::is_of_nonce(other));
    }
}

class GcmCheck : public testing::Test {
  protected:
    const Key key = *Key::import(Bytes(16));
    Bytes memory_ = Bytes(400);
    const Message good_{.in = memory_.data(),
                        .out = memory_.data() + 100,
                        .size = 100,
                        .aad = memory_.data() + 200,
                        .aad_size = 20,
                        .tag = memory_.data() + 300};

    Code code_of(auto change) const {
        Message changed = good_;
        change(changed);
        const auto result = modes::check(gcm::sealing(), changed, 3);
        EXPECT_EQ(modes::takes(gcm::sealing(), changed, 3), static_cast<bool>(result));
        EXPECT_TRUE(result || !result.error().message.empty());
        return result.code();
    }
};

TEST_F(GcmCheck, TakesWhatIsRight) {
    EXPECT_EQ(code_of([](auto&) {}), Code::ok);
    EXPECT_EQ(code_of([](auto& m) { m.out = const_cast<std::uint8_t*>(m.in); }), Code::ok);
    EXPECT_EQ(code_of([](auto& m) { m.key = 2; }), Code::ok);
    EXPECT_EQ(code_of([](auto& m) { m.tag = m.out + 100; }), Code::ok);  // right after the output
    EXPECT_EQ(code_of([](auto& m) { m.tag = m.out - 16; }), Code::ok);
    EXPECT_EQ(code_of([](auto& m) {
                  m.in = m.out = nullptr;
                  m.size = 0;
                  m.aad = nullptr;
                  m.aad_size = 0;
              }),
              Code::ok);
    for (const std::size_t size : {4, 8, 12, 13, 14, 15, 16})
        EXPECT_TRUE(modes::check(gcm::sealing(size), key)) << size;
}

TEST_F(GcmCheck, RefusesWhatIsNot) {
    for (const std::size_t size : {0, 1, 2, 3, 5, 6, 7, 9, 10, 11, 17, 32})
        EXPECT_EQ(modes::check(gcm::sealing(size), key).code(), Code::invalid_argument) << size;
    EXPECT_EQ(code_of([](auto& m) { m.key = 3; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& m) { m.in = nullptr; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& m) { m.out = nullptr; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& m) { m.aad = nullptr; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& m) { m.tag = nullptr; }), Code::invalid_argument);
    EXPECT_EQ(code_of([](auto& m) { m.skip = 1; }), Code::invalid_argument);
}

TEST_F(GcmCheck, RefusesOverlaps) {
    EXPECT_EQ(code_of([](auto& m) { m.in = m.out + 99; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& m) { m.in = m.out - 99; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& m) { m.tag = m.out + 99; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& m) { m.tag = m.out - 15; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& m) { m.aad = m.out + 40; }), Code::overlap);
    EXPECT_EQ(code_of([](auto& m) { m.aad = m.out - 19; }), Code::overlap);
}

TEST_F(GcmCheck, HoldsTheLimits) {
    EXPECT_EQ(gcm::kMaxData, 68719476704u);  // (2^39 - 256) / 8
    for (const std::uint64_t size : {gcm::kMaxData + 1, ~std::uint64_t{0}})
        EXPECT_EQ(code_of([&](auto& m) {
                      m.in = m.out;
                      m.size = size;
                  }),
                  Code::limit);
    EXPECT_EQ(code_of([](auto& m) { m.aad_size = gcm::kMaxAad + 1; }), Code::limit);
}

}  // namespace
