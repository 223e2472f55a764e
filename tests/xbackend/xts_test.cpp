// SPDX-License-Identifier: Apache-2.0
// XTS on every backend against OpenSSL: every sector length, many sectors in one call, in place,
// unaligned, next to guard pages; and what is refused.
#include "support/guarded.hpp"
#include "support/modes_test.hpp"

namespace {

using namespace dael;
using namespace dael::test;

Cipher in_sectors(Direction direction, std::size_t sector) {
    return {Mode::xts, direction, 16, 0, static_cast<std::uint32_t>(sector)};
}

class Xts : public ModesTest {
  protected:
    void SetUp() override {
        ModesTest::SetUp();
        if (!IsSkipped() && !HasFatalFailure() && !can(Mode::xts, Direction::encrypt))
            GTEST_SKIP() << GetParam().name << " has no XTS, and says so";
    }

    void check(const Bytes& raw, Direction direction, const xts::Sectors& sectors, std::size_t size,
               std::size_t in_at = 0, std::size_t out_at = 0, bool in_place = false) {
        ModesTest::check(in_sectors(direction, sectors.size),
                         {.size = size,
                          .in_at = in_at,
                          .out_at = out_at,
                          .in_place = in_place,
                          .start = xts::start(sectors)},
                         raw);
    }

    Bytes key128_ = random_.bytes(32), key256_ = random_.bytes(64);
};

TEST_P(Xts, EverySectorLength) {
    std::vector<std::size_t> sizes;
    for (std::size_t size = 16; size <= 2048; size = next_length(size)) sizes.push_back(size);
    for (const std::size_t size : {4096, 4097, 4104, 4111, 4112, 4160}) sizes.push_back(size);
    for (const std::size_t size : sizes)
        for (const Direction direction : kDirections)
            for (const Bytes* raw : {&key128_, &key256_}) {
                check(*raw, direction, {size * 12345, static_cast<std::uint32_t>(size)}, size, 0, 0,
                      size % 2 == 0);
                if (HasFatalFailure()) return;
            }
}

// Consecutive sectors in one call, the last of them whole or short: what single calls would give
// is what the oracle makes, sector by sector.
TEST_P(Xts, ManySectors) {
    const std::vector<std::uint32_t> lengths{16,  17,   31,   32,   48,   100,  160,
                                             256, 496,  511,  512,  513,  520,  527,
                                             528, 1024, 1040, 2048, 4096, 4104, 8192};
    for (const std::uint32_t length : lengths)
        for (const std::size_t count : {2, 3, 31, 32, 33, 70}) {
            if (sampled() && count > 32) continue;
            if (slow() && length * count > 3000) continue;
            for (const std::uint32_t rest : {0u, 16u, length / 2 + 8, length - 1}) {
                if (rest >= length || (rest != 0 && rest < 16)) continue;
                const Bytes& raw = count % 2 ? key128_ : key256_;
                for (const Direction direction : kDirections) {
                    check(raw, direction, {random_.number() >> 8, length}, length * count + rest, 0,
                          0, random_.below(2) == 0);
                    if (HasFatalFailure()) return;
                }
            }
        }
}

TEST_P(Xts, EveryAlignment) {
    for (std::size_t in_at = 0; in_at < 16; ++in_at)
        for (std::size_t out_at = 0; out_at < 16; ++out_at)
            for (const std::uint32_t length : {48, 512, 523}) {
                if (sampled() && (in_at + out_at) % 5 != 0) continue;
                const Direction direction = kDirections[(in_at ^ out_at) & 1];
                check(key256_, direction, {7, length}, 3 * length + 21, in_at, out_at);
                if (in_at == out_at)
                    check(key128_, direction, {7, length}, 3 * length + 21, in_at, 0, true);
                if (HasFatalFailure()) return;
            }
}

// Numbers that carry out of every byte, and up to the last one there is.
TEST_P(Xts, SectorNumbersCarry) {
    for (int bits = 1; bits <= 127; bits += 7) {
        const auto edge = (static_cast<unsigned __int128>(1) << bits) - 1;
        check(key128_, kDirections[bits % 2],
              {static_cast<std::uint64_t>(edge), 32, static_cast<std::uint64_t>(edge >> 64)}, 160);
        if (HasFatalFailure()) return;
    }
    check(key128_, Direction::encrypt, {~std::uint64_t{0} - 4, 16, ~std::uint64_t{0}}, 80);
}

// Enough for several threads and several chunks; sectors from short to longer than a chunk; and
// tweaks that step far within a sector.
TEST_P(Xts, LargeData) {
    struct Shape {
        std::uint32_t sector;
        std::size_t size;
    };
    std::vector<Shape> shapes{{16, 300'000},          {512, (3 << 20) + 512 + 77},
                              {520, 520 * 5001},      {4096, (5 << 20) + 4096 + 1234},
                              {4111, 4111 * 1000},    {100'000, 2'950'000},
                              {1 << 20, 5 << 20},     {(1 << 20) + 1, 3 << 20},
                              {xts::kMax, xts::kMax}, {xts::kMax - 3, (17 << 20) + 5}};
    if (sampled())
        shapes = {{16, 300'000},
                  {512, (1 << 20) + 512 + 77},
                  {4111, 4111 * 100},
                  {(1 << 20) + 1, (2 << 20) + 77}};
    if (slow()) shapes = {{4096, 10'000}};
    for (const auto& [sector, size] : shapes)
        for (const Direction direction : kDirections) {
            check(sector % 2 ? key128_ : key256_, direction, {1'000'000, sector}, size, 0, 0,
                  direction == Direction::decrypt);
            if (HasFatalFailure()) return;
        }
}

TEST_P(Xts, AgainstGuardPages) {
    report_faults();
    const Key key = *Key::import_xts(key128_);
    Guarded in(4096), out(4096);
    for (std::size_t size = 16; size <= (slow() ? 70u : 1100u); size = next_length(size))
        for (const std::size_t sector : {std::size_t{48}, std::size_t{512}, size}) {
            if (size % sector != 0 && size % sector < 16) continue;
            for (const bool at_end : {false, true}) {
                now_running(GetParam().name + " xts, " + std::to_string(size) +
                            " bytes in sectors of " + std::to_string(sector));
                const auto from = at_end ? in.at_end(size) : in.at_begin(size);
                const auto to = at_end ? out.at_end(size) : out.at_begin(size);
                const Bytes content = pattern(size, sector);
                std::ranges::copy(content, from.begin());
                std::ranges::fill(out.all(), Poisoned::kPoison);
                const Direction direction = kDirections[size % 2];
                const xts::Sectors sectors{size, static_cast<std::uint32_t>(sector)};
                ASSERT_TRUE(subject().run(
                    in_sectors(direction, sector), key,
                    {from.data(), to.data(), size, nullptr, 0, nullptr, xts::start(sectors)}));
                ASSERT_EQ(difference(oracle_xts(key128_, direction, sectors, content), to), "")
                    << size << " in " << sector;
            }
        }
}

TEST_P(Xts, RefusesWhatHasNoMeaning) {
    const Key key = *Key::import_xts(key128_);
    Bytes in = pattern(1200), out(1200, Poisoned::kPoison);
    const Bytes untouched = out;
    const auto run = [&](const xts::Sectors& sectors, std::size_t size) {
        return subject().run(
            in_sectors(Direction::encrypt, sectors.size), key,
            {in.data(), out.data(), size, nullptr, 0, nullptr, xts::start(sectors)});
    };
    const auto expect = [&](const Result<>& done, Code code, const char* said) {
        ASSERT_EQ(done.code(), code) << said;
        EXPECT_NE(done.error().message.find(said), std::string::npos) << done.error().message;
    };
    for (const std::uint32_t size : {0u, 15u, static_cast<std::uint32_t>(xts::kMax) + 1})
        expect(run({0, size}, 1024), Code::invalid_argument, "sector size");
    for (const std::size_t rest : {1, 8, 15})
        expect(run({0, 512}, 1024 + rest), Code::ragged_length, "at least 16");
    expect(run({0, 512}, 5), Code::ragged_length, "at least 16");
    expect(run({~std::uint64_t{0}, 512, ~std::uint64_t{0}}, 1024), Code::limit, "2^128");
    const Cipher cipher = in_sectors(Direction::encrypt, 512);
    expect(subject().run(cipher, key, {in.data(), in.data() + 8, 512}), Code::overlap, "overlap");
    expect(subject().run(cipher, key, {in.data(), nullptr, 512}), Code::invalid_argument, "null");
    EXPECT_EQ(out, untouched);
    EXPECT_EQ(in, pattern(1200));
    EXPECT_TRUE(run({0, 512}, 0));
    EXPECT_TRUE(run({~std::uint64_t{0}, 512, ~std::uint64_t{0}}, 512));  // the very last number
}

DAEL_FOR_EVERY_BACKEND(Xts);

// What the public calls say about themselves.
TEST(XtsEngine, AutoRunsOnTheHost) {
    auto engine = Engine::open({.backend = "auto", .threads = 3, .calibrated = false});
    ASSERT_TRUE(engine);
    const Bytes raw = random_bytes(32, 1);
    const Key key = *Key::import_xts(raw);
    const Bytes in = pattern(4 << 20);
    Bytes out(in.size());
    const auto ran = xts::encrypt(*engine, key, {.first = 9, .size = 4096}, in, out);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->backend, "openssl");
    EXPECT_LE(ran->threads, 3);
    EXPECT_EQ(ran->chunks, 0u);
    EXPECT_EQ(difference(oracle_xts(raw, Direction::encrypt, {9, 4096}, in), out), "");
    ASSERT_TRUE(xts::decrypt(*engine, key, {9, 4096}, out, out));
    EXPECT_EQ(difference(in, out), "");
    const auto unequal =
        xts::encrypt(*engine, key, {}, HostIn(in).first(512), HostOut(out).first(513));
    EXPECT_EQ(unequal.code(), Code::invalid_argument);
}

TEST(XtsEngine, AHostEngineDoesNotReachDeviceMemory) {
    Engine engine = *Engine::open({.backend = "openssl"});
    const Key key = *Key::import_xts(random_bytes(32, 2));
    std::uint8_t bytes[16] = {};
    const auto ran = xts::encrypt(engine, key, {}, DeviceIn{bytes, 16}, DeviceOut{bytes, 16}, {});
    EXPECT_EQ(ran.code(), Code::unsupported);
    EXPECT_NE(ran.error().message.find("device memory"), std::string::npos);
}

}  // namespace
