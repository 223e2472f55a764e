// SPDX-License-Identifier: Apache-2.0
// CTR's counter and offset: 128 bits, big-endian, wrapping (SP 800-38A 6.5 and B.1). Vector code
// and counter caching keep parts of it apart; these tests put the carry between every two of its
// bytes.
#include "modes/counter.hpp"
#include "modes/traits.hpp"
#include "support/modes_test.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class XCounter : public ModesTest {
  protected:
    void SetUp() override {
        ModesTest::SetUp();
        if (!IsSkipped() && !can(Mode::ctr, Direction::encrypt))
            GTEST_SKIP() << GetParam().name << " has no counter mode";
    }
    void check_ctr(const Block& start, std::uint64_t offset, std::size_t size) {
        const Bytes raw = random_.bytes(kKeySizes[random_.below(3)]);
        const Bytes in = pattern(size, random_.below(251));
        Poisoned out(in, random_.below(2) * random_.below(16));
        const bool in_place = random_.below(2) == 0;
        const Key key = *Key::import(raw);
        const Message message = modes::from_offset(
            {in_place ? out.data() : in.data(), out.data(), size, nullptr, 0, nullptr, start},
            offset);
        const auto done = subject().run({Mode::ctr}, key, message);
        ASSERT_TRUE(done) << done.error().message;
        ASSERT_EQ(
            difference(oracle(raw, {Mode::ctr, Direction::encrypt, start, offset}, in), out.span()),
            "")
            << size << " bytes from " << offset;
        ASSERT_TRUE(out.intact());
    }
};

// `ones` bytes of 0xff at the end, less `before` blocks: the carry into byte 15 - ones comes
// `before` + 1 blocks on. With 16 bytes, the whole counter wraps to zero.
Block just_before_carry(int ones, std::uint64_t before, Random& random) {
    Block block = random.block();
    for (int i = 0; i < 16 - ones; ++i) block[static_cast<std::size_t>(i)] &= 0x7f;
    std::fill(block.end() - ones, block.end(), std::uint8_t{0xff});
    std::uint64_t low = 0;
    for (int i = 8; i < 16; ++i) low = low << 8 | block[static_cast<std::size_t>(i)];
    low -= before;  // borrows from random bytes when `ones` is small: still a carry, further on
    for (int i = 15; i >= 8; --i, low >>= 8)
        block[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(low);
    return block;
}

TEST_P(XCounter, CarriesThroughEveryByteAndWraps) {
    const std::vector<std::uint64_t> distances =
        slow() ? std::vector<std::uint64_t>{0, 3}
        : sampled()
            ? std::vector<std::uint64_t>{0, 3, 16, 31, 254}
            : std::vector<std::uint64_t>{0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 130, 254};
    for (int ones = 1; ones <= 16; ++ones)
        for (const std::uint64_t before : distances) {
            check_ctr(just_before_carry(ones, before, random_), 0,
                      slow() ? 100 : 4096 + random_.below(64));
            if (HasFatalFailure())
                FAIL() << "carry out of " << ones << " bytes, " << before << " blocks on";
        }
}

// Larger than what one thread block, one vector loop or one thread takes at once.
TEST_P(XCounter, CarriesInTheMiddleOfLargeMessages) {
    const std::size_t size = slow() ? 6005 : (std::size_t{sampled() ? 256u : 1024u} << 10) + 37;
    for (const int ones : {2, 4, 8, 12, 16})
        for (const std::uint64_t before :
             {std::uint64_t{100}, std::uint64_t{size / 32}, std::uint64_t{size / 16 - 2}}) {
            check_ctr(just_before_carry(ones, before, random_), 0, size);
            if (HasFatalFailure())
                FAIL() << "carry out of " << ones << " bytes, " << before << " blocks on";
        }
}

TEST_P(XCounter, EverySmallOffset) {
    for (std::uint64_t offset = 0; offset <= 40; ++offset)
        for (const std::size_t size : {0, 1, 15, 16, 17, 31, 32, 33, 100, 1000}) {
            if (slow() && size > 33) continue;
            check_ctr(random_.block(), offset, size);
            if (HasFatalFailure()) return;
        }
}

TEST_P(XCounter, LargeOffsets) {
    for (int bit = 8; bit < 64; ++bit)
        for (const std::uint64_t about : {-17, -1, 0, 1, 16, 19}) {
            if (slow() && about != 1) continue;
            const std::uint64_t offset = (std::uint64_t{1} << bit) + about;
            check_ctr(random_.block(), offset, slow() ? 40 : 300 + random_.below(400));
            if (HasFatalFailure()) return;
        }
    // The last bytes that an offset can name, with a counter that wraps on the way.
    Block all_ones;
    all_ones.fill(0xff);
    check_ctr(all_ones, ~std::uint64_t{0} - 500, 500);
}

// A batch whose messages carry, under one key and under several.
TEST_P(XCounter, CarriesInABatch) {
    for (const std::size_t key_count : {1, 3}) {
        const Cipher cipher{Mode::ctr};
        const KeyRing keys = ring(cipher, key_count);
        TestBatch batch(random_, keys, cipher);
        for (int ones = 1; ones <= 16; ++ones)
            for (const std::uint64_t before : {0, 5})
                batch.add({.size = slow() ? 100u : 700 + random_.below(300),
                           .start = just_before_carry(ones, before, random_)});
        check(batch);
    }
}

// gcm_ctr counts 32 bits, and is refused where they would wrap: up to there every byte is right.
TEST_P(XCounter, GcmCtrLastsToItsLastBlock) {
    if (!can(Mode::gcm_ctr, Direction::encrypt)) GTEST_SKIP() << "no gcm_ctr";
    for (const std::size_t blocks : {1, 2, 7, 16, 33, 64}) {
        Block start = random_.block();
        std::fill(start.end() - 4, start.end(), std::uint8_t{0xff});
        start.back() = static_cast<std::uint8_t>(0x100 - blocks);
        for (const std::uint8_t skip : {std::uint8_t{0}, std::uint8_t{5}}) {
            check({Mode::gcm_ctr}, {.size = 16 * blocks - skip, .start = start, .skip = skip});
            if (HasFatalFailure()) return;
            Bytes data(16 * blocks - skip + 1);
            const Key key = *Key::import(pattern(16));
            Message message{data.data(), data.data(), data.size(), nullptr, 0, nullptr, start};
            message.skip = skip;
            EXPECT_EQ(subject().run({Mode::gcm_ctr}, key, message).code(), Code::limit);
            EXPECT_EQ(data, Bytes(data.size()));
        }
    }
}

DAEL_FOR_EVERY_BACKEND(XCounter);

}  // namespace
