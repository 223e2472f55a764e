// SPDX-License-Identifier: Apache-2.0
// A driver whose compiler errs: here the kernels are told of more rounds than AES-128 has. It is
// found out before anything is encrypted, in each mode, and left alone from then on.
#include "core/known_answers.hpp"
#include "opencl/fixture.hpp"

namespace dael::test {
namespace {

class OpenClKnownAnswers : public OpenClTest {
  protected:
    void SetUp() override {
        core::forget_answers();
        OpenClTest::SetUp();
    }
    void TearDown() override {
        core::spoil_answers({});
        core::forget_answers();
    }
};

TEST_F(OpenClKnownAnswers, ADriverThatErrsIsLeftAlone) {
    const Key key = std::move(*Key::import(Bytes(16, 7)));
    const std::span keys(&key, 1);
    auto tables = opencl::OpenClKeys::create(*device_, keys);
    ASSERT_TRUE(tables) << tables.error().message;
    std::uint8_t* const memory = allocate(8192);
    const Bytes before = get(memory, 8192);
    device_->programs().define("-DDAEL_ROUNDS=12");
    const Message m{
        .in = memory, .out = memory + 2048, .size = 1024, .tag = memory + 7000, .start = {}};
    const auto refused = [](const Result<>& ran) {
        EXPECT_EQ(ran.code(), Code::device);
        EXPECT_NE(ran ? std::string::npos : ran.error().message.find("computes wrongly"),
                  std::string::npos);
    };
    for (const Mode mode : {Mode::ctr, Mode::gcm}) {
        core::forget_answers();
        if (mode == Mode::gcm) {
            auto batch = device_->prepare({mode}, {keys, tables->get()}, {&m, 1});
            ASSERT_TRUE(batch) << batch.error().message;
            refused(device_->run(**batch, {}));
        } else {
            refused(device_->run({mode}, {keys, nullptr}, m, {}));
        }
        EXPECT_EQ(get(memory, 8192), before);
    }
    // Also once it is right again, in this process; and whoever asks hears why.
    device_->programs().define("");
    refused(device_->usable());
    DAEL_EXPECT_REFUSED(try_open(""), Code::device, "computes wrongly: ");
    refused(device_->run({Mode::ecb}, {keys, nullptr}, m, {}));
    core::forget_answers();
    EXPECT_TRUE(device_->run({Mode::ecb}, {keys, nullptr}, m, {}));
}

// What another engine has believed before, it does not believe any more.
TEST_F(OpenClKnownAnswers, EveryEngineLeavesItAlone) {
    const Key key = std::move(*Key::import(Bytes(16, 7)));
    std::uint8_t* const memory = allocate(1024);
    const Message m = message(memory, memory, 1024);
    ASSERT_TRUE(run({Mode::ctr}, key, m));
    const Bytes before = get(memory, 1024);
    const auto other = open();
    core::spoil_answers("ecb encryption");
    const auto theirs = other->memory().allocate(64);
    ASSERT_TRUE(theirs);
    auto* const there = static_cast<std::uint8_t*>(*theirs);
    DAEL_EXPECT_REFUSED(
        other->run({Mode::ecb}, {std::span(&key, 1), nullptr}, message(there, there, 64), {}),
        Code::device, "computes wrongly: ecb encryption");
    core::spoil_answers({});
    DAEL_EXPECT_REFUSED(run({Mode::ctr}, key, m), Code::device, "computes wrongly: ecb encryption");
    EXPECT_EQ(get(memory, 1024), before);
}

// A device of another name that computes wrongly costs this one a look, not one at each launch.
TEST_F(OpenClKnownAnswers, OfAnotherDeviceCostALookAndNoMore) {
    const Key key = std::move(*Key::import(Bytes(16, 7)));
    std::uint8_t* const memory = allocate(1024);
    const Message m = message(memory, memory, 1024);
    ASSERT_TRUE(run({Mode::ctr}, key, m));
    EXPECT_FALSE(core::believe("another", "", {.name = "ctr"}, [] { return Result<bool>(false); }));
    const std::uint64_t before = core::beliefs;
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(run({Mode::ctr}, key, m));
    EXPECT_EQ(core::beliefs - before, 1u);
}

}  // namespace
}  // namespace dael::test
