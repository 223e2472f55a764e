// SPDX-License-Identifier: Apache-2.0
// A device is asked for answers that are known, in every way in which it can be asked; the one made
// of threads computes AES.
#include <gtest/gtest.h>

#include "core/known_answers.hpp"
#include "support/host_device.hpp"

namespace dael::test {
namespace {

using core::Question;
using By = Question::By;

class KnownAnswers : public testing::Test {
  protected:
    void TearDown() override {
        core::spoil_answers({});
        core::forget_answers();
    }
    Result<bool> ask(const Question& question) {
        return core::ask(
            device_, [&](std::span<const Key> keys) { return device_.tables(keys); }, question);
    }
    HostDevice device_;
};

TEST_F(KnownAnswers, InEveryModeAndWay) {
    for (const int bits : {128, 192, 256})
        for (const Mode mode : kModes)
            for (const Direction direction : {Direction::encrypt, Direction::decrypt})
                for (const By by : {By::message, By::reach, By::batch, By::placed, By::list})
                    for (const std::uint32_t keys : {1u, 2u})
                        for (const std::uint32_t shift : {0u, 1u}) {
                            const bool gcm = authenticates(mode);
                            if (mode == Mode::xts && bits == 192) continue;
                            // One message alone has no code.
                            if (gcm && (by == By::message || by == By::reach)) continue;
                            Question q{.name = "q",
                                       .cipher = {mode, direction},
                                       .bits = bits,
                                       .by = by,
                                       .sizes = {1040, 48, 96},
                                       .aad = gcm ? 21u : 0u,
                                       .keys = keys,
                                       .shift = shift};
                            const auto right = ask(q);
                            if (right.code() == Code::unsupported) continue;
                            ASSERT_TRUE(right) << right.error().message;
                            EXPECT_TRUE(*right)
                                << name(mode) << ' ' << name(direction) << ' ' << bits << ' '
                                << static_cast<int>(by) << ' ' << keys << ' ' << shift;
                            core::spoil_answers("q");
                            EXPECT_FALSE(*ask(q));
                            core::spoil_answers({});
                        }
}

// Asked once, in each form; what is wrong once is left alone, whatever is asked of it then.
TEST_F(KnownAnswers, AreRemembered) {
    const Question q{.name = "ctr", .cipher = {Mode::ctr}, .sizes = {100}};
    int asked = 0;
    const auto believe = [&](const std::string& device, const std::string& form, bool right) {
        return core::believe(device, form, q, [&]() -> Result<bool> {
            EXPECT_TRUE(core::asking());
            EXPECT_TRUE(core::believe(device, form, q, [] { return Result<bool>(false); }));
            ++asked;
            return right;
        });
    };
    EXPECT_TRUE(believe("a", "1", true));
    EXPECT_TRUE(believe("a", "1", false));  // not asked again
    EXPECT_EQ(asked, 1);
    EXPECT_TRUE(believe("a", "2", true));
    EXPECT_EQ(asked, 2);
    const auto wrong = believe("a", "3", false);
    EXPECT_EQ(wrong.code(), Code::device);
    EXPECT_NE(wrong.error().message.find("a: computes wrongly: ctr, AES-128"), std::string::npos);
    EXPECT_EQ(believe("a", "1", true).code(), Code::device);
    EXPECT_EQ(core::believed("a").code(), Code::device);
    EXPECT_TRUE(core::believed("b"));
    EXPECT_TRUE(believe("b", "3", true));
    EXPECT_FALSE(core::asking());
    // What could not be asked is neither.
    const auto failed = core::believe("c", "", q, [] {
        return Error{Code::out_of_memory, "no memory"};
    });
    EXPECT_EQ(failed.code(), Code::out_of_memory);
    EXPECT_TRUE(core::believed("c"));
}

}  // namespace
}  // namespace dael::test
