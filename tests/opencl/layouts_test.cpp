// SPDX-License-Identifier: Apache-2.0
// Every layout of tables, in both directions and at every key size, in shapes from the smallest to
// the oddest; what other tests over backends leave out.
#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class OpenClLayouts : public OpenClShapeTest {
  protected:
    void check(const Bytes& raw, Mode mode, Direction direction, std::size_t size) {
        const Key key = *Key::import(raw);
        const Bytes in = random_bytes(size, 3);
        const Block iv = random_block(static_cast<std::uint32_t>(size));
        auto* from = put(in);
        auto* to = allocate(size);
        const auto ran = run({mode, direction}, key, message(from, to, size, iv));
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(difference(oracle(raw, {mode, direction, iv, 0}, in), get(to, size)), "")
            << name(mode) << " " << name(direction) << ", " << raw.size() << " bytes of key";
        device_->memory().release(from);
        device_->memory().release(to);
    }
};

// Each size of keys both ways, and each cipher: all of them together are compared across backends,
// and here each is a program that a driver compiles for seconds.
TEST_P(OpenClLayouts, EveryKeySizeAndCipher) {
    const std::size_t size = computed() ? 16 * 333 : 16 * 3333;
    const Bytes raw128 = random_bytes(16, 9), raw192 = random_bytes(24, 9),
                raw256 = random_bytes(32, 9);
    check(raw128, Mode::ecb, Direction::encrypt, size);
    check(raw192, Mode::ecb, Direction::encrypt, size);
    check(raw256, Mode::ecb, Direction::encrypt, size);
    check(raw128, Mode::ecb, Direction::decrypt, size);
    check(raw192, Mode::cbc, Direction::decrypt, size);
    check(raw256, Mode::cbc, Direction::decrypt, size);
    check(raw192, Mode::ctr, Direction::encrypt, size + 11);
}

// From 4 MiB on CTR has a kernel of its own, where there are T-tables.
TEST_P(OpenClLayouts, LongCounterStreams) {
    if (computed()) GTEST_SKIP() << "without tables there is no such kernel";
    const bool first = GetParam() == std::string("tables=4,teams=1,held=1,groups=3");
    for (const std::size_t key : {16, 24, 32})
        if (first || key == 32)
            check(random_bytes(key, 9), Mode::ctr, Direction::encrypt,
                  (std::size_t{4} << 20) + 16 * 3 + 5);
}

TEST_P(OpenClLayouts, Xts) {
    const std::size_t sectors = computed() ? 1 : 20;  // of the longest
    struct Case {
        std::uint32_t sector;
        std::size_t size;
    };
    for (const auto& [sector, size] :
         {Case{512, 512 * 70}, Case{4096, 4096 * 9 + 512}, Case{100, 100 * 40 + 33},
          Case{70'000, 70'000 * sectors + 5000}})
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            const std::size_t half = direction == Direction::encrypt ? 16 : 32;
            const Bytes raw = random_bytes(2 * half, 4), in = random_bytes(size, 5);
            const Key key = *Key::import_xts(raw);
            const xts::Sectors numbers{99, sector, 1};
            auto* memory = put(in);
            const auto ran = run({.mode = Mode::xts, .direction = direction, .sector = sector}, key,
                                 message(memory, memory, size, xts::start(numbers)));
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(difference(oracle_xts(raw, direction, numbers, in), get(memory, size)), "")
                << sector << " " << half << " " << name(direction);
            device_->memory().release(memory);
        }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, OpenClLayouts,
    ::testing::Values("tables=4,teams=1,held=1,groups=3", "tables=2,teams=1,held=2,groups=1",
                      "tables=1,teams=8,held=1,groups=3", "tables=1,teams=2,held=2,groups=64",
                      "tables=0,teams=2,groups=3", "tables=-1,teams=1,groups=3",
                      "tables=-1,teams=8,groups=1"),
    [](const auto& instance) {
        std::string name = instance.param;
        std::ranges::replace(name, '-', 'm');
        std::erase_if(name, [](char c) { return c == '=' || c == ','; });
        return name;
    });

}  // namespace
