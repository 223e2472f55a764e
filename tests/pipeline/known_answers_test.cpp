// SPDX-License-Identifier: Apache-2.0
// A device is asked for answers that are known, in every way in which it can be asked; the one made
// of threads computes AES.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/guard.hpp"
#include "core/known_answers.hpp"
#include "support/bytes.hpp"
#include "support/host_device.hpp"
#include "support/short_memory_child.hpp"
#include "support/test_batch.hpp"

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
                            if (mode == Mode::xts
                                    ? bits == 192
                                    : !std::ranges::count(KeysFor(mode).sizes, bits / 8))
                                continue;
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

// A backend that could not be opened for want of memory is opened when there is some: it judges.
TEST_F(KnownAnswers, AreJudgedByTheSameAfterALackOfMemory) {
    if (!kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    const auto judge = []() -> Result<std::string> {
        DAEL_LET(host, core::judge({Mode::ctr}, 128));
        return host->profile().name;
    };
    const auto usual = judge();
    ASSERT_TRUE(usual) << usual.error().message;
    // A child has judges of its own, which it opens.
    expect_in_children_with_little_memory([&](long nth, bool& failed) {
        fail_allocation(nth);
        const auto first = core::guarded([&] { return judge(); });
        failed = fail_allocation(0);
        const auto then = judge();
        return (first || first.code() == Code::out_of_memory) && then && *then == *usual;
    });
}

// A device that asks before it runs, and remembers what it has heard, as those on GPUs do.
class Careful {
  public:
    explicit Careful(std::string name)
        : device_({.name = std::move(name)}), stream_(*device_.create_stream()) {}
    ~Careful() {
        device_.destroy_stream(stream_);
        EXPECT_EQ(device_.live(), 0u);
    }
    Result<> run() {
        DAEL_TRY(believe());
        void* const memory = *device_.allocate(64);
        const Key key = *Key::import(Bytes(16, 1));
        auto* const at = static_cast<std::uint8_t*>(memory);
        const Message message{.in = nullptr, .out = at, .size = 64, .start = {}};
        auto ran = device_.run({Mode::ctr}, {std::span(&key, 1), nullptr}, message, stream_);
        EXPECT_TRUE(device_.fill(memory, 0, 64, stream_));
        EXPECT_TRUE(device_.wait(stream_));
        device_.release(memory);
        return ran;
    }

  private:
    Result<> believe() {
        if (believed_ && heard_.all()) return {};
        const std::uint32_t verdicts = core::verdicts;
        const Question q{.name = "ctr", .cipher = {Mode::ctr}, .by = By::message, .sizes = {100}};
        DAEL_TRY(core::believe(device_.name(), "", q, [&] {
            return core::ask(
                device_, [&](std::span<const Key> keys) { return device_.tables(keys); }, q);
        }));
        believed_ = true;
        heard_.of(verdicts);
        return {};
    }

    HostDevice device_;
    Stream stream_;
    bool believed_ = false;
    core::Heard heard_;
};

// One that computes wrongly costs the others a look, not one at each of their calls.
TEST_F(KnownAnswers, OfOneDeviceAreNoConcernOfOthers) {
    Careful one("threads:0"), other("threads:1");
    const auto looks = [](Careful& device, int runs) {
        const std::uint64_t before = core::beliefs;
        for (int i = 0; i < runs; ++i) EXPECT_TRUE(device.run());
        return core::beliefs - before;
    };
    EXPECT_EQ(looks(one, 3), 1u);
    EXPECT_EQ(looks(other, 3), 1u);
    for (int verdict = 0; verdict < 2; ++verdict) {
        const Question q{.name = "ctr", .cipher = {Mode::ctr}, .sizes = {100}};
        const std::string third = "threads:" + std::to_string(2 + verdict);
        EXPECT_FALSE(core::believe(third, "", q, [] { return Result<bool>(false); }));
        EXPECT_EQ(looks(one, 3), 1u);
        EXPECT_EQ(looks(other, 3), 1u);
        EXPECT_EQ(looks(one, 3), 0u);
    }
    // Its own, which somebody else has found out, it hears of at once and each time.
    const Question q{.name = "ecb", .cipher = {Mode::ecb}, .sizes = {96}};
    EXPECT_FALSE(core::believe("threads:0", "", q, [] { return Result<bool>(false); }));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(one.run().code(), Code::device);
    EXPECT_EQ(looks(other, 3), 1u);
    EXPECT_EQ(one.run().code(), Code::device);
}

}  // namespace
}  // namespace dael::test
