// SPDX-License-Identifier: Apache-2.0
// The cpu backend at every level that this machine has, against libcrypto called directly: lengths,
// alignments, work in place, many messages at once, counters that wrap, threads.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "core/registry.hpp"
#include "support/test_batch.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using test::KeyRing;
using test::Random;
using test::Shape;
using test::TestBatch;

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
        auto opened = core::open_backend("cpu", {.form = GetParam()});
        if (opened.code() == Code::backend_absent)
            GTEST_SKIP() << missing(opened.error(), GetParam());
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
    }

    std::string fault_of(TestBatch& batch) {
        return batch.fault_of([this](const Cipher& cipher, std::span<const Key> keys,
                                     std::span<const Message> messages, std::span<Code> codes) {
            return backend_->run(cipher, {keys}, messages, codes);
        });
    }

    std::unique_ptr<core::Backend> backend_;
    Random random_{20};
    const KeyRing ring_{random_, 6};
};

template <class Function>
void for_every_cipher(Function function) {
    for (const Mode mode : kModes38a)
        for (const Direction direction : test::kDirections) {
            function(Cipher{mode, direction});
            if (testing::Test::HasFatalFailure()) return;
        }
}

TEST_P(CpuBackend, SaysWhatItRunsOn) {
    EXPECT_EQ(backend_->profile().name, "cpu");
    const std::string& description = backend_->profile().description;
    const std::string isa = GetParam();
    const std::string title = isa == "sse" ? "SSE" : isa == "avx2" ? "AVX2" : "AVX-512";
    EXPECT_NE(description.find(", " + title + " with "), std::string::npos) << description;
    EXPECT_EQ(description.rfind("libipsec-mb ", 0), 0u) << description;
}

TEST_P(CpuBackend, EveryLengthTo600AndAroundItsLimits) {
    for_every_cipher([this](const Cipher& cipher) {
        std::vector<std::size_t> sizes;
        for (std::size_t size = 0; size <= 600; ++size) sizes.push_back(size);
        for (const std::size_t edge : {2048, 4096, 16384, 30720, 65520, 65536, 131040})
            for (const std::size_t size : {edge - 16, edge - 1, edge, edge + 1, edge + 16})
                sizes.push_back(size);
        for (const std::size_t size : sizes) {
            TestBatch batch(random_, ring_, cipher);
            batch.add(test::any_shape(cipher, size, random_));
            ASSERT_EQ(fault_of(batch), "");
        }
    });
}

// Past the longest job, 16 MiB, where pieces must be joined.
TEST_P(CpuBackend, LongMessages) {
    for (const Mode mode : {Mode::cbc, Mode::ctr})
        for (const bool in_place : {false, true}) {
            if (in_place && test::kSanitized) continue;
            const Cipher cipher{mode, Direction::decrypt};
            TestBatch batch(random_, ring_, cipher);
            batch.add(Shape{.size = (std::size_t{32} << 20) + 48, .in_place = in_place})
                .add(Shape{.size = 16});
            ASSERT_EQ(fault_of(batch), "");
        }
}

// Keys of every size among them: those of one size go side by side.
TEST_P(CpuBackend, ManyMessagesOfMixedLengthsAndKeys) {
    for_every_cipher([this](const Cipher& cipher) {
        for (const std::size_t count : {2, 3, 16, 17, 129, 300}) {
            std::vector<std::size_t> sizes(count);
            for (auto& size : sizes)
                size = random_.below(7) == 0 ? random_.below(70000) : random_.below(5000);
            TestBatch batch(random_, ring_, cipher);
            batch.add_sizes(sizes);
            ASSERT_EQ(fault_of(batch), "");
        }
    });
}

// One is hashed while the next is enciphered: every length beside others, a list of one key and of
// runs of keys, AAD of up to a block and more, tags of all sizes.
TEST_P(CpuBackend, ShortMessagesOfGcmBesideEachOther) {
    Random random(23);
    const KeyRing ring(random, 3);
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size <= 1700; ++size) sizes.push_back(size);
    int round = 0;
    for (const auto tag : std::to_array<std::uint8_t>({16, 12, 4}))
        for (const Direction direction : {Direction::encrypt, Direction::decrypt})
            for (const std::size_t run : {sizes.size(), std::size_t{1}, std::size_t{7}}) {
                TestBatch batch(random, ring, {Mode::gcm, direction, tag});
                for (std::size_t i = 0; i < sizes.size(); ++i)
                    batch.add({.size = sizes[i],
                               .in_at = i % 5 == 0 ? i % 64 : 0,
                               .out_at = i % 3 == 0 ? i % 61 : 0,
                               .in_place = i % 7 == 3,
                               .aad_size = i % 4 == 0 ? i / 4 % 19 : 0,
                               .key = static_cast<std::uint32_t>(i / run % 3)});
                if (direction == Direction::decrypt)
                    for (std::size_t i = static_cast<std::size_t>(round); i < batch.size(); i += 5)
                        batch.forge(i);
                ASSERT_EQ(fault_of(batch), "") << "runs of " << run << ", tags of " << int{tag};
                for (std::size_t i = sizes.size(); i > 1; --i)
                    std::swap(sizes[i - 1], sizes[random.below(i)]);
                ++round;
            }
}

TEST_P(CpuBackend, CountersOfShortMessagesWrapBesideEachOther) {
    Random random(29);
    const KeyRing ring({random.bytes(16)});
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        TestBatch batch(random, ring, {Mode::gcm, direction});
        for (std::uint32_t left = 0; left < 100; ++left)
            for (const std::uint32_t bits : {0xffu, 0xffffffffu}) {
                Block j0 = random.block();
                const std::uint32_t low = bits - left;
                for (std::size_t i = 0; i < 4; ++i)
                    j0[15 - i] = static_cast<std::uint8_t>(low >> (8 * i));
                batch.add({.size = 700 + left, .start = j0});
            }
        ASSERT_EQ(fault_of(batch), "");
    }
}

// The library's counter has 32 bits; ours has 128 (SP 800-38A B.1). All ones from byte `from` on,
// so that the carry runs through every byte up to it, and past the top for from = 0.
TEST_P(CpuBackend, CtrCarriesThroughEveryByteFromEverySkip) {
    for (std::size_t from = 0; from < 16; ++from) {
        for (const unsigned before : {0u, 1u, 15u, 16u, 40u}) {  // blocks before the carry
            Block counter = random_.block();
            std::fill(counter.begin() + static_cast<std::ptrdiff_t>(from), counter.end(),
                      std::uint8_t{0xff});
            counter[15] = static_cast<std::uint8_t>(0xff - before);
            TestBatch batch(random_, ring_, {Mode::ctr, Direction::encrypt});
            for (std::uint8_t skip = 0; skip < 16; ++skip)
                for (const std::size_t size : {1, 5, 16, 17, 640, 1601})
                    for (const bool keystream : {false, true})
                        batch.add(Shape{.size = size,
                                        .in_place = size % 2 == 0,
                                        .keystream = keystream,
                                        .start = counter,
                                        .skip = skip});
            ASSERT_EQ(fault_of(batch), "") << "from " << from << ", before " << before;
        }
    }
}

TEST_P(CpuBackend, ServesManyThreadsAtOnce) {
    std::vector<std::thread> threads;
    std::vector<std::string> faults(4);
    for (unsigned t = 0; t < faults.size(); ++t)
        threads.emplace_back([&, t] {
            Random random(t);
            for (unsigned round = 0; round < 20 && faults[t].empty(); ++round) {
                TestBatch batch(random, ring_,
                                {kModes38a[round % kModes38a.size()], Direction::encrypt});
                batch.add_sizes(std::vector<std::size_t>(5, 4096));
                faults[t] = fault_of(batch);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(faults, std::vector<std::string>(4));
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuBackend, testing::Values("sse", "avx2", "avx512"),
                         [](const auto& isa) { return std::string(isa.param); });

TEST(CpuBackendOpen, TakesTheBestByDefault) {
    const auto best = core::open_backend("cpu");
    if (best.code() == Code::backend_absent) GTEST_SKIP() << missing(best.error(), "sse");
    ASSERT_TRUE(best) << best.error().message;
    std::string last;
    for (const char* isa : {"sse", "avx2", "avx512"})
        if (const auto forced = core::open_backend("cpu", {.form = isa}))
            last = (*forced)->profile().description;
    EXPECT_EQ((*best)->profile().description, last);
}

TEST(CpuBackendOpen, RefusesAnUnknownInstructionSetByName) {
    if (const auto best = core::open_backend("cpu"); !best)
        GTEST_SKIP() << missing(best.error(), "sse");
    for (const char* isa : {"avx", "AVX2", "neon", "avx512 "}) {
        const auto refused = core::open_backend("cpu", {.form = isa});
        ASSERT_FALSE(refused) << isa;
        EXPECT_EQ(refused.code(), Code::invalid_argument);
        EXPECT_EQ(refused.error().message,
                  "no instruction set '" + std::string(isa) + "'; there are sse, avx2, avx512");
    }
}

}  // namespace
