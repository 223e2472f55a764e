// SPDX-License-Identifier: Apache-2.0
// The cpu backend at every level that this machine has, against libcrypto called directly: lengths,
// alignments, work in place, many messages at once, counters that wrap, threads.
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include <daelstrom/key.hpp>

#include "core/key_schedule.hpp"
#include "core/registry.hpp"
#include "support/oracle.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using test::Bytes;
using test::random_block;
using test::random_bytes;

// libcrypto itself, not the backend of that name.
Bytes expected(Mode mode, Direction direction, const Key& key, const Block& iv,
               std::span<const std::uint8_t> in, std::size_t skip = 0) {
    const auto raw = key.schedule().key();
    return test::oracle(raw, {mode, direction, iv, skip}, in);
}

// Whether this CPU has the instructions, by the compiler's word and not the backend's.
bool cpu_has(const std::string& isa) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) return false;
    if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    if (isa == "avx512")
        return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return __builtin_cpu_supports("sse4.2");
#else
    return isa.empty();
#endif
}

// Why there is nothing to test, or nothing. A level that the CPU has but the backend denies is a
// fault, unless the build lacks libipsec-mb altogether.
std::string missing(const Error& error, const std::string& isa) {
    if (error.message.find("this build") == std::string::npos) {
        EXPECT_FALSE(cpu_has(isa)) << error.message;
    }
    return error.message;
}

class CpuBackend : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        auto opened = core::open_backend("cpu", {GetParam(), 0});
        if (opened.code() == Code::backend_absent)
            GTEST_SKIP() << missing(opened.error(), GetParam());
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
    }

    void expect_right(Mode mode, Direction direction, const Key& key,
                      std::span<const std::size_t> sizes, std::size_t misalign, bool in_place,
                      unsigned seed) {
        std::vector<Bytes> in, out;
        std::vector<core::Segment> segments;
        for (const std::size_t size : sizes) {
            in.push_back(random_bytes(size + misalign, seed + static_cast<unsigned>(in.size())));
            out.push_back(in_place ? in.back() : Bytes(size + misalign + 1, 0x5a));
        }
        for (std::size_t i = 0; i < in.size(); ++i) {
            const std::uint8_t* from = (in_place ? out[i] : in[i]).data() + misalign;
            segments.push_back({from, out[i].data() + misalign, sizes[i],
                                random_block(seed + 99 + static_cast<unsigned>(i)), 0});
        }
        const auto result = backend_->run({mode, direction, &key}, segments);
        ASSERT_TRUE(result) << result.error().message;
        for (std::size_t i = 0; i < in.size(); ++i) {
            const auto want =
                expected(mode, direction, key, segments[i].iv, std::span(in[i]).subspan(misalign));
            ASSERT_TRUE(std::equal(want.begin(), want.end(),
                                   out[i].begin() + static_cast<std::ptrdiff_t>(misalign)))
                << name(mode) << " " << name(direction) << " " << key.bits() << " size " << sizes[i]
                << " message " << i << " of " << in.size();
            if (!in_place) {
                ASSERT_EQ(out[i].back(), 0x5a) << "wrote past the end";
            }
        }
    }

    std::unique_ptr<core::Backend> backend_;
};

template <class Function>
void for_every_cipher(Function function) {
    for (const std::size_t key_size : {16, 24, 32}) {
        const auto key = Key::import(random_bytes(key_size, 7));
        ASSERT_TRUE(key);
        for (const Mode mode : kModes)
            for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
                function(mode, direction, *key);
                if (testing::Test::HasFatalFailure()) return;
            }
    }
}

std::size_t fit(Mode mode, std::size_t size) {
    return whole_blocks_only(mode) ? size / 16 * 16 : size;
}

TEST_P(CpuBackend, SaysWhatItRunsOn) {
    EXPECT_EQ(backend_->name(), "cpu");
    const std::string description = backend_->description();
    const std::string isa = GetParam();
    const std::string title = isa == "sse" ? "SSE" : isa == "avx2" ? "AVX2" : "AVX-512";
    EXPECT_NE(description.find(", " + title + " with "), std::string::npos) << description;
    EXPECT_EQ(description.rfind("libipsec-mb ", 0), 0u) << description;
}

TEST_P(CpuBackend, EveryLengthTo600AndAroundItsLimits) {
    for_every_cipher([this](Mode mode, Direction direction, const Key& key) {
        std::vector<std::size_t> sizes;
        for (std::size_t size = 0; size <= 600; ++size) sizes.push_back(size);
        for (const std::size_t edge : {2048, 4096, 30720, 65520, 65536, 131040})
            for (const std::size_t size : {edge - 16, edge - 1, edge, edge + 1, edge + 16})
                sizes.push_back(size);
        for (const std::size_t size : sizes) {
            const std::size_t one[] = {fit(mode, size)};
            expect_right(mode, direction, key, one, size % 16, size % 2 == 0,
                         static_cast<unsigned>(size));
            if (HasFatalFailure()) return;
        }
    });
}

// Past the longest job, 16 MiB, where pieces must be joined.
TEST_P(CpuBackend, LongMessages) {
    const auto key = Key::import(random_bytes(16, 7));
    ASSERT_TRUE(key);
    const std::size_t sizes[] = {(std::size_t{32} << 20) + 48, 16};
    for (const Mode mode : {Mode::cbc, Mode::ctr})
        for (const bool in_place : {false, true}) {
            if (in_place && test::kSanitized) continue;
            expect_right(mode, Direction::decrypt, *key, sizes, 0, in_place, 3);
        }
}

TEST_P(CpuBackend, ManyMessagesOfMixedLengths) {
    for_every_cipher([this](Mode mode, Direction direction, const Key& key) {
        std::mt19937 random(5);
        for (const std::size_t count : {2, 3, 16, 17, 129, 300}) {
            std::vector<std::size_t> sizes(count);
            for (auto& size : sizes)
                size = fit(mode, random() % 7 == 0 ? random() % 70000 : random() % 5000);
            expect_right(mode, direction, key, sizes, count % 16, count % 2 == 0,
                         static_cast<unsigned>(count));
            if (HasFatalFailure()) return;
        }
    });
}

// The library's counter has 32 bits; ours has 128 (SP 800-38A B.1). All ones from byte `from` on,
// so that the carry runs through every byte up to it, and past the top for from = 0.
TEST_P(CpuBackend, CtrCarriesThroughEveryByteFromEverySkip) {
    const auto key = Key::import(random_bytes(16, 1));
    ASSERT_TRUE(key);
    for (std::size_t from = 0; from < 16; ++from) {
        for (const unsigned before : {0u, 1u, 15u, 16u, 40u}) {  // blocks before the carry
            Block counter = random_block(static_cast<unsigned>(from));
            std::fill(counter.begin() + static_cast<std::ptrdiff_t>(from), counter.end(),
                      std::uint8_t{0xff});
            counter[15] = static_cast<std::uint8_t>(0xff - before);
            for (std::uint8_t skip = 0; skip < 16; ++skip) {
                for (const std::size_t size : {1, 5, 16, 17, 640, 1601}) {
                    const Bytes in = random_bytes(size, skip);
                    Bytes out = in;
                    const core::Segment segment{out.data(), out.data(), size, counter, skip};
                    ASSERT_TRUE(backend_->run({Mode::ctr, Direction::encrypt, &*key},
                                              std::span(&segment, 1)));
                    ASSERT_EQ(out, expected(Mode::ctr, Direction::encrypt, *key, counter, in, skip))
                        << "from " << from << ", before " << before << ", skip " << int{skip}
                        << ", size " << size;
                }
            }
        }
    }
}

TEST_P(CpuBackend, ServesManyThreadsAtOnce) {
    const auto key = Key::import(random_bytes(32, 1));
    ASSERT_TRUE(key);
    std::vector<std::thread> threads;
    std::vector<int> right(4);
    for (std::size_t t = 0; t < right.size(); ++t)
        threads.emplace_back([&, t] {
            for (unsigned round = 0; round < 20; ++round) {
                const Mode mode = kModes[round % kModes.size()];
                const Bytes in = random_bytes(4096, round);
                Bytes out(in.size());
                const core::Segment segment{in.data(), out.data(), in.size(), random_block(round),
                                            0};
                right[t] +=
                    backend_->run({mode, Direction::encrypt, &*key}, std::span(&segment, 1)) &&
                    out == expected(mode, Direction::encrypt, *key, segment.iv, in);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, std::vector<int>(4, 20));
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuBackend, testing::Values("sse", "avx2", "avx512"),
                         [](const auto& isa) { return std::string(isa.param); });

TEST(CpuBackendOpen, TakesTheBestByDefault) {
    const auto best = core::open_backend("cpu");
    if (best.code() == Code::backend_absent) GTEST_SKIP() << missing(best.error(), "sse");
    ASSERT_TRUE(best) << best.error().message;
    std::string last;
    for (const char* isa : {"sse", "avx2", "avx512"})
        if (const auto forced = core::open_backend("cpu", {isa, 0}))
            last = (*forced)->description();
    EXPECT_EQ((*best)->description(), last);
}

TEST(CpuBackendOpen, RefusesAnUnknownInstructionSetByName) {
    if (const auto best = core::open_backend("cpu"); !best)
        GTEST_SKIP() << missing(best.error(), "sse");
    for (const char* isa : {"avx", "AVX2", "neon", "avx512 "}) {
        const auto refused = core::open_backend("cpu", {isa, 0});
        ASSERT_FALSE(refused) << isa;
        EXPECT_EQ(refused.code(), Code::invalid_argument);
        EXPECT_EQ(refused.error().message,
                  "no instruction set '" + std::string(isa) + "'; there are sse, avx2, avx512");
    }
}

}  // namespace
