// SPDX-License-Identifier: Apache-2.0
// The time of the backend cpu's own code must not depend on keys, data or keystream, nor, of a
// packet that is refused, on where its tag is wrong. The controls are reference_timing_test's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <daelstrom/key.hpp>

#include "backends/cpu/gcm_avx512.hpp"
#include "backends/cpu/ipsec_mb.hpp"
#include "backends/cpu/modes_avx512.hpp"
#include "backends/cpu/xor_ghash.hpp"
#include "timing/timed.hpp"

namespace {

using namespace dael;
using namespace dael::timing;

constexpr std::size_t kSize = 250;  // with a last block that is not whole
constexpr Block kStart{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 1};

// Whole blocks of a message or of its keystream, and room for what is written.
struct Bytes {
    alignas(64) std::array<std::uint8_t, 272> at{};
    void fill(const Input& with) noexcept {
        for (std::size_t i = 0; i < at.size(); i += 16) std::memcpy(at.data() + i, with.data(), 16);
    }
};

core::KeySchedule schedule_of(const Input& key) {
    core::KeySchedule schedule;
    core::expand_key({key.data(), 16}, schedule);
    return schedule;
}

bool has_avx512_code() {
    return cpu::available(cpu::Level::avx512) && cpu::vectorised(cpu::Level::avx512);
}

TEST(CpuTiming, ModesDoNotDependOnKeyOrData) {
    if (!has_avx512_code()) GTEST_SKIP() << "needs AVX-512 and VAES";
    static Bytes in, out;
    for (const auto& [mode, direction] : {std::pair{Mode::ctr, Direction::encrypt},
                                          {Mode::ecb, Direction::encrypt},
                                          {Mode::ecb, Direction::decrypt},
                                          {Mode::cbc, Direction::decrypt},
                                          {Mode::cfb, Direction::decrypt}}) {
        const auto run = [&, mode = mode, direction = direction](const core::KeySchedule& key) {
            Message m{in.at.data(), out.at.data(), 256};
            m.start = kStart;
            cpu::run_avx512(mode, direction, key, m);
            keep(out);
        };
        const core::KeySchedule key = schedule_of(random_input());
        expect_constant_time("a mode", [&](const Input& data) {
            in.fill(data);
            run(key);
        });
        expect_constant_time("a mode with its key",
                             [&](const Input& bytes) { run(schedule_of(bytes)); });
    }
}

TEST(CpuTiming, GcmDoesNotDependOnKeyOrData) {
    if (!has_avx512_code()) GTEST_SKIP() << "needs AVX-512 and VAES";
    static Bytes in, out;
    static cpu::Powers powers;
    Block tag;
    const core::KeySchedule key = schedule_of(random_input());
    for (const auto direction : {Direction::encrypt, Direction::decrypt}) {
        const auto run = [&](const core::KeySchedule& its_key) {
            cpu::gcm_avx512::message(direction, its_key, powers, kStart, kStart.data(), 12,
                                     in.at.data(), out.at.data(), kSize, tag.data(), tag.size());
            keep(out);
            keep(tag);
        };
        cpu::gcm_avx512::expand(key, powers, cpu::kPowers);
        expect_constant_time("GCM", [&](const Input& data) {
            in.fill(data);
            run(key);
        });
        expect_constant_time("GCM with its key", [&](const Input& bytes) {
            const core::KeySchedule other = schedule_of(bytes);
            cpu::gcm_avx512::expand(other, powers, 20);
            run(other);
        });
    }
}

// Messages whose hashes overlap with the next one's encryption.
TEST(CpuTiming, GcmOfAListDoesNotDependOnKeyOrData) {
    if (!has_avx512_code()) GTEST_SKIP() << "needs AVX-512 and VAES";
    static Bytes in;
    static std::array<Bytes, 3> outs;
    static cpu::Powers powers;
    std::array<Block, 3> tags;
    std::array<Message, 3> list;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t sizes[] = {256, 40, 270};
        list[i] = {in.at.data(), outs[i].at.data(), sizes[i]};
        list[i].start = kStart;
        list[i].start[0] = static_cast<std::uint8_t>(i);
    }
    const core::KeySchedule key = schedule_of(random_input());
    for (const auto direction : {Direction::encrypt, Direction::decrypt}) {
        const auto run = [&](const core::KeySchedule& its_key) {
            cpu::gcm_avx512::messages(direction, its_key, powers, list, tags.data(), kBlockSize);
            keep(outs);
            keep(tags);
        };
        cpu::gcm_avx512::expand(key, powers, cpu::kPowers);
        expect_constant_time("GCM of a list", [&](const Input& data) {
            in.fill(data);
            run(key);
        });
        expect_constant_time("GCM of a list with its key", [&](const Input& bytes) {
            const core::KeySchedule other = schedule_of(bytes);
            cpu::gcm_avx512::expand(other, powers, 20);
            run(other);
        });
    }
}

class FusedTiming : public testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        if (GetParam() && !has_avx512_code()) GTEST_SKIP() << "needs AVX-512 and VAES";
        if (!cpu::available(cpu::Level::sse)) GTEST_SKIP() << "needs AES-NI";
        xor_ghash_.expand(schedule_of(random_input()), powers_);
        packet_.in = in_.at.data();
        packet_.out = out_.at.data();
        packet_.size = kSize;
        packet_.aad = kStart.data();
        packet_.aad_size = 8;
        packet_.tag = tag_.data();
        packet_.keystream = keystream_.at.data();
        packet_.blocks = 17;
    }
    const cpu::XorGhash& xor_ghash_ = GetParam() ? cpu::kXorGhashAvx512 : cpu::kXorGhashPclmul;
    Bytes in_, out_, keystream_;
    Block tag_{};
    cpu::Powers powers_;
    core::CipherPacket packet_;
};

TEST_P(FusedTiming, SealingDoesNotDependOnDataOrKeystream) {
    const auto seal = [&] {
        xor_ghash_.seal(powers_, packet_);
        keep(out_);
        keep(tag_);
    };
    expect_constant_time("sealing", [&](const Input& data) {
        in_.fill(data);
        seal();
    });
    expect_constant_time("sealing", [&](const Input& bytes) {
        keystream_.fill(bytes);
        seal();
    });
}

TEST_P(FusedTiming, SealingDoesNotDependOnTheHashSubkey) {
    std::copy_n(random_input().begin(), 32, in_.at.begin());
    expect_constant_time("powers and sealing", [&](const Input& bytes) {
        xor_ghash_.expand(schedule_of(bytes), powers_);
        xor_ghash_.seal(powers_, packet_);
        keep(tag_);
    });
}

TEST_P(FusedTiming, OpeningDoesNotDependOnDataOrKeystream) {
    const auto open = [&] {
        // Nearly always wrong, so that what is refused is timed.
        keep(xor_ghash_.open(powers_, packet_));
    };
    expect_constant_time("refusing", [&](const Input& data) {
        in_.fill(data);
        open();
    });
    expect_constant_time("refusing", [&](const Input& bytes) {
        keystream_.fill(bytes);
        open();
    });
    expect_constant_time("refusing", [&](const Input& bytes) {
        std::memcpy(tag_.data(), bytes.data(), tag_.size());
        open();
    });
}

TEST_P(FusedTiming, RefusingDoesNotDependOnWhereTheTagIsWrong) {
    in_.fill(random_input());
    keystream_.fill(random_input());
    xor_ghash_.seal(powers_, packet_);
    in_ = out_;
    const Block right = tag_;
    ASSERT_TRUE(xor_ghash_.open(powers_, packet_));
    static std::mt19937 random(4);
    for (const std::size_t fixed_at : {std::size_t{0}, std::size_t{15}}) {
        const auto wrong = [&](std::size_t at) {
            Input input{};
            std::copy(right.begin(), right.end(), input.begin());
            input[at] ^= 0x40;
            return input;
        };
        const double t = smallest_of(kAttempts, [&] {
            return time(
                wrong(fixed_at), [&] { return wrong(random() % 16); },
                [&](const Input& in) {
                    std::memcpy(tag_.data(), in.data(), tag_.size());
                    keep(xor_ghash_.open(powers_, packet_));
                });
        });
        EXPECT_LT(t, kThreshold) << "a refusal tells by its time where the tag is wrong";
    }
}

INSTANTIATE_TEST_SUITE_P(Widths, FusedTiming, testing::Bool(),
                         [](const auto& width) { return width.param ? "bits512" : "bits128"; });

}  // namespace
