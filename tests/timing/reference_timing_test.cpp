// SPDX-License-Identifier: Apache-2.0
// The reference's and the key schedule's time must not depend on key or data. And leaks that are
// planted on purpose must be found, or this test would prove nothing.
#include <gtest/gtest.h>

#include <random>

#include <daelstrom/key.hpp>
#include <daelstrom/unauthenticated.hpp>

#include "backends/reference/aes.hpp"
#include "backends/reference/gcm.hpp"
#include "core/key_schedule.hpp"
#include "modes/gcm.hpp"
#include "timing/timed.hpp"

namespace {

using namespace dael;
using namespace dael::timing;

TEST(ReferenceTiming, CipherDoesNotDependOnData) {
    const reference::ExpandedKey w(random_input());
    expect_constant_time("cipher",
                         [&](const Input& in) { keep(reference::cipher(first_block(in), w)); });
}

TEST(ReferenceTiming, InverseCipherDoesNotDependOnData) {
    const reference::ExpandedKey w(random_input());
    expect_constant_time("inv_cipher",
                         [&](const Input& in) { keep(reference::inv_cipher(first_block(in), w)); });
}

TEST(ReferenceTiming, KeyExpansionAndCipherDoNotDependOnTheKey) {
    const Block in = first_block(random_input());
    expect_constant_time("key expansion and cipher", [&](const Input& key) {
        keep(reference::cipher(in, reference::ExpandedKey(key)));
    });
}

TEST(ReferenceTiming, CoreKeyExpansionDoesNotDependOnTheKey) {
    core::KeySchedule schedule;
    expect_constant_time("expand_key", [&](const Input& in) {
        core::expand_key(in, schedule);
        keep(schedule);
    });
}

// Where padding is right, how long it is must not show.
TEST(PaddingTiming, UnpadDoesNotDependOnTheCount) {
    const auto padded = [](std::uint8_t count) {
        Input input{};
        std::fill(input.begin() + 16 - count, input.begin() + 16, count);
        return input;
    };
    static std::mt19937 random(2);
    for (const std::uint8_t fixed : {std::uint8_t{1}, std::uint8_t{16}}) {
        const double t = smallest_of(kAttempts, [&] {
            return time(
                padded(fixed), [&] { return padded(static_cast<std::uint8_t>(1 + random() % 16)); },
                [](const Input& in) { keep(dael::unpad(first_block(in))); });
        });
        EXPECT_LT(t, kThreshold) << "unpad tells a count of " << int{fixed} << " by its time";
    }
}

TEST(GcmTiming, TheFieldsProductDoesNotDependOnItsFactors) {
    const modes::Element h = modes::load_element(random_input().data());
    expect_constant_time("multiply", [&](const Input& in) {
        keep(modes::multiply(modes::load_element(in.data()), h));
        keep(modes::multiply(h, modes::load_element(in.data() + 16)));
    });
}

TEST(GcmTiming, TheReferencesTagDoesNotDependOnKeyOrData) {
    const Block j0 = gcm::start(gcm::Nonce{});
    expect_constant_time("the reference's GMAC", [&](const Input& in) {
        const reference::ExpandedKey w({in.data(), 16});
        keep(reference::gmac(w, j0, std::span(in).subspan(16)));
    });
}

// Where two tags differ must not show: fixed ones do in the first byte, or in the last.
TEST(GcmTiming, ComparingTagsDoesNotDependOnWhereTheyDiffer) {
    const Input secret = random_input();
    static std::mt19937 random(4);
    for (const std::size_t fixed_at : {std::size_t{0}, std::size_t{15}}) {
        const auto differing = [&](std::size_t at) {
            Input input = secret;
            input[at] ^= 0x40;
            return input;
        };
        const double t = smallest_of(kAttempts, [&] {
            return time(
                differing(fixed_at), [&] { return differing(random() % 16); },
                [&](const Input& in) { keep(modes::equal_tags(in.data(), secret.data(), 16)); });
        });
        EXPECT_LT(t, kThreshold) << "equal_tags tells by its time where tags differ";
    }
}

// Controls.

TEST(Control, FindsAnEarlyExit) {
    const Input secret = random_input();
    const double t = smallest_of(kAttempts, [&] {
        return time(secret, random_input, [&](const Input& in) { keep(leaky_equal(secret, in)); });
    });
    RecordProperty("t", std::to_string(t));
    EXPECT_GE(t, kThreshold)
        << "an early exit went unseen: this machine is too noisy to judge the rest";
}

// As small as it would be in earnest: one S-box layer more, in fifty, when a byte has a certain
// value.
TEST(Control, FindsOneStepTooManyInACipher) {
    const reference::ExpandedKey w(random_input());
    const double t = smallest_of(kAttempts, [&] {
        return time(Input{}, random_input, [&](const Input& in) {
            Block state = reference::cipher(first_block(in), w);
            if (in[0] == 0) reference::sub_bytes(state);
            keep(state);
        });
    });
    RecordProperty("t", std::to_string(t));
    EXPECT_GE(t, kThreshold)
        << "a small leak went unseen: this machine is too noisy to judge the rest";
}

TEST(Welch, SeesADifferenceOfMeansAndNoneWhereThereIsNone) {
    std::mt19937 random(3);
    std::normal_distribution<double> noise(1000, 20);
    Samples same, apart;
    for (int i = 0; i < 10000; ++i) {
        same.fixed.push_back(noise(random));
        same.random.push_back(noise(random));
        apart.fixed.push_back(noise(random) + 5);
        apart.random.push_back(noise(random));
    }
    EXPECT_LT(std::fabs(largest_t(same)), 5);
    // 5 apart, 20 wide, 10000 each: t = 5 / (20 * sqrt(2 / 10000)) = 17.7.
    EXPECT_NEAR(welch_t(apart, INFINITY), 17.7, 4);
    // A tail that drowns the means is cropped away.
    for (int i = 0; i < 300; ++i) {
        apart.fixed.push_back(1e6 * static_cast<double>(1 + random() % 50));
        apart.random.push_back(1e6 * static_cast<double>(1 + random() % 50));
    }
    EXPECT_LT(std::fabs(welch_t(apart, INFINITY)), 5);
    EXPECT_GT(largest_t(apart), kThreshold);
}

}  // namespace
