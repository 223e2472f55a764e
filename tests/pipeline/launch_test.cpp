// SPDX-License-Identifier: Apache-2.0
// A few messages that travel with their launch, on a device made of threads: what may go at once,
// where codes may lie, and what is refused before anything is launched.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include <daelstrom/gcm.hpp>

#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"
#include "support/test_batch.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kRoom = 4096;  // of device memory for each message

class Launch : public testing::Test {
  protected:
    void SetUp() override {
        open();
        stream_ = *device_.create_stream();
        memory_ = static_cast<std::uint8_t*>(*device_.allocate(kMaxLaunched * kRoom));
        pinned_ = static_cast<std::uint32_t*>(*device_.allocate_pinned(kMaxLaunched * 4));
        there_ = static_cast<std::uint32_t*>(*device_.allocate(kMaxLaunched * 4));
        for (std::uint32_t i = 0; i < kMaxLaunched; ++i) add(i * 37 % 1500, i % 3 == 0 ? 0 : i);
    }
    void TearDown() override {
        (void)device_.wait(stream_);
        keys_.reset();
        engine_.reset();
        wipe(memory_, kMaxLaunched * kRoom);
        wipe(there_, kMaxLaunched * 4);
        wipe(pinned_, kMaxLaunched * 4);
        device_.release(memory_);
        device_.release(there_);
        device_.release_pinned(pinned_);
        device_.destroy_stream(stream_);
        expect_clean(device_);
    }
    void open() {
        engine_.emplace(pipeline::make_engine(std::make_unique<HostDeviceBackend>(device_)));
        keys_.emplace(*engine_->keys(ring_.keys));
    }
    // Data at the beginning of a message's room, its AAD at 2048, its tag at 3072.
    void add(std::size_t size, std::size_t aad_size) {
        std::uint8_t* const room = memory_ + list_.size() * kRoom;
        plain_.push_back(random_.bytes(size));
        aad_.push_back(random_.bytes(aad_size));
        std::ranges::copy(plain_.back(), room);
        std::ranges::copy(aad_.back(), room + 2048);
        Message m{.in = room, .out = room, .size = size, .aad = room + 2048, .aad_size = aad_size};
        m.tag = room + 3072;
        m.start = random_.block();
        m.key = static_cast<std::uint32_t>(list_.size() % 3);
        list_.push_back(m);
    }
    std::string fault(const std::vector<Bytes>& expected) {
        for (std::size_t i = 0; i < list_.size(); ++i)
            if (const auto wrong = difference(expected[i], {list_[i].out, list_[i].size});
                !wrong.empty())
                return std::to_string(i) + ": " + wrong;
        return "";
    }
    Code launch(const Cipher& cipher, std::span<const Message> list,
                const LaunchOptions& options = {}) {
        const auto ran = engine_->launch(cipher, *keys_, list, stream_, options);
        if (!ran) why_ = ran.error().message;
        return ran.code();
    }

    HostDevice device_{{.delay = std::chrono::microseconds(300)}};
    Random random_{17};
    const KeyRing ring_{random_, 3};
    std::optional<Engine> engine_;
    std::optional<KeySet> keys_;
    Stream stream_;
    std::uint8_t* memory_ = nullptr;
    std::uint32_t *pinned_ = nullptr, *there_ = nullptr;  // a code each
    std::vector<Message> list_;
    std::vector<Bytes> plain_, aad_;
    std::string why_;
};

TEST_F(Launch, SealsAndOpensAndNeedsNothingAfterwards) {
    std::vector<Bytes> sealed;
    for (const Message& m : list_)
        sealed.push_back(oracle(ring_.raw[m.key], gcm::sealing(), m).out);
    for (const bool host_aad : {false, true})
        for (std::uint32_t* const codes : {pinned_, there_}) {
            // The list, the AAD and the options go as soon as the call returns.
            const auto run = [&](const Cipher& cipher, std::uint32_t* to) {
                std::vector<Message> list = list_;
                std::vector<Bytes> aad = aad_;
                LaunchOptions options{.codes = to, .host_aad = host_aad};
                for (std::size_t i = 0; host_aad && i < list.size(); ++i)
                    list[i].aad = aad[i].data();
                const int calls = device_.calls();
                EXPECT_EQ(launch(cipher, list, options), Code::ok) << why_;
                EXPECT_LE(device_.calls() - calls, 2) << "the launch, and tables once";
                std::ranges::fill(list, Message{});
                for (Bytes& bytes : aad) std::ranges::fill(bytes, std::uint8_t{0});
                options = {};
            };
            run(gcm::sealing(), nullptr);
            ASSERT_TRUE(device_.wait(stream_));
            ASSERT_EQ(fault(sealed), "");
            std::fill_n(codes, list_.size(), ~0u);
            list_[5].tag[2] ^= 1;
            run(gcm::opening(), codes);
            ASSERT_TRUE(device_.wait(stream_));
            for (std::size_t i = 0; i < list_.size(); ++i)
                EXPECT_EQ(static_cast<Code>(codes[i]), i == 5 ? Code::authentication : Code::ok);
            EXPECT_EQ(difference(sealed[5], {list_[5].out, list_[5].size}), "") << "as it was";
            std::ranges::copy(plain_[5], list_[5].out);
            ASSERT_EQ(fault(plain_), "");
        }
}

TEST_F(Launch, CounterModeAlone) {
    std::vector<Bytes> expected;
    for (Message& m : list_) {
        m.aad_size = 0;
        m.tag = nullptr;
        m.start[12] = 0;
        m.skip = static_cast<std::uint8_t>(m.size % 16);
        expected.push_back(oracle(ring_.raw[m.key], {Mode::gcm_ctr}, m).out);
    }
    EXPECT_EQ(launch({Mode::gcm_ctr}, list_), Code::ok) << why_;
    ASSERT_TRUE(device_.wait(stream_));
    EXPECT_EQ(fault(expected), "");
}

TEST_F(Launch, TheSetMayGoAtOnce) {
    const Bytes expected = oracle(ring_.raw[0], gcm::sealing(), list_[9]).out;
    EXPECT_EQ(launch(gcm::sealing(), {&list_[9], 1}), Code::ok) << why_;
    keys_.reset();
    EXPECT_EQ(difference(expected, {list_[9].out, list_[9].size}), "");
}

TEST_F(Launch, TakesAegis) {
    const KeyRing ring(random_, 3, Mode::aegis128l);
    keys_.emplace(*engine_->keys(ring.keys));
    const Cipher seal{Mode::aegis128l}, open{Mode::aegis128l, Direction::decrypt};
    std::vector<Answer> answers;
    for (const Message& m : list_) answers.push_back(oracle(ring.raw[m.key], seal, m));
    EXPECT_EQ(launch(seal, list_), Code::ok) << why_;
    ASSERT_TRUE(device_.wait(stream_));
    for (std::size_t i = 0; i < list_.size(); ++i) {
        EXPECT_EQ(difference(answers[i].out, {list_[i].out, list_[i].size}), "") << i;
        EXPECT_EQ(difference(answers[i].tag, {list_[i].tag, 16}), "") << i;
    }
    list_[4].tag[1] ^= 1;
    EXPECT_EQ(launch(open, list_), Code::invalid_argument) << "without codes";
    EXPECT_EQ(launch(open, list_, {.codes = there_}), Code::ok) << why_;
    ASSERT_TRUE(device_.wait(stream_));
    for (std::size_t i = 0; i < list_.size(); ++i) {
        EXPECT_EQ(static_cast<Code>(there_[i]), i == 4 ? Code::authentication : Code::ok);
        EXPECT_EQ(difference(i == 4 ? answers[i].out : plain_[i], {list_[i].out, list_[i].size}),
                  "")
            << i;
    }
}

TEST_F(Launch, WhatIsRefused) {
    const auto refused = [&](Code code, const char* words, const Cipher& cipher,
                             std::span<const Message> list, const LaunchOptions& options = {}) {
        EXPECT_EQ(launch(cipher, list, options), code) << words;
        EXPECT_NE(why_.find(words), std::string::npos) << why_;
    };
    std::uint32_t code = 0;
    const std::span<const Message> all(list_);
    for (const Mode mode : kModes)
        if (mode != Mode::gcm && mode != Mode::gcm_ctr && mode != Mode::xts && !authenticates(mode))
            refused(Code::unsupported, "prepare()", {mode}, {});
    refused(Code::invalid_argument, "codes is null", gcm::opening(), all);
    refused(Code::invalid_argument, "page-locked", gcm::opening(), all.first(1), {.codes = &code});

    std::vector<Message> list = list_;
    list.push_back(list.front());
    refused(Code::limit, "prepare() a batch", gcm::sealing(), list);
    list = {list_[3], list_[6], list_[3]};
    list[2].size = 1;
    refused(Code::limit, "messages 0 and 2", gcm::sealing(), list);
    list[2].start[0] ^= 1;
    list[1].key = 3;
    refused(Code::invalid_argument, "message 1", gcm::sealing(), list);
    list[1].key = 0;
    list[1].tag = nullptr;
    refused(Code::invalid_argument, "message 1", gcm::sealing(), list);

    Bytes aad(kMaxLaunchedAad / 2 + 1);
    list = {list_[1], list_[2]};
    for (Message& m : list) {
        m.aad = aad.data();
        m.aad_size = aad.size();
    }
    refused(Code::limit, "AAD", gcm::sealing(), list, {.host_aad = true});
    refused(Code::invalid_argument, "", gcm::sealing(), list);  // that is no device's memory

    device_.capture(stream_);
    refused(Code::limit, "replay", gcm::sealing(), all);
    EXPECT_EQ(launch(gcm::opening(), all, {.codes = pinned_}), Code::ok) << why_;
    device_.capture({});
    auto other = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device_));
    const auto strange = other.launch(gcm::sealing(), *keys_, all, stream_);
    EXPECT_EQ(strange.code(), Code::invalid_argument);
    const int calls = device_.calls();
    EXPECT_EQ(launch(gcm::sealing(), {}), Code::ok) << why_;
    EXPECT_EQ(device_.calls(), calls);
}

TEST(LaunchElsewhere, SaysWhatToDo) {
    HostDevice device({.reads_lists = false});
    Random random(3);
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        const KeyRing ring(random, 1);
        const KeySet keys = *engine.keys(ring.keys);
        auto* const memory = static_cast<std::uint8_t*>(*device.allocate(64));
        const Message m{.in = memory, .out = memory, .size = 16, .tag = memory + 32};
        const auto ran = engine.launch(gcm::sealing(), keys, {&m, 1}, {});
        EXPECT_EQ(ran.code(), Code::unsupported);
        EXPECT_NE(ran.error().message.find("prepare()"), std::string::npos);
        wipe(memory, 64);
        device.release(memory);
    }
    expect_clean(device);
    Engine host = *Engine::open({.backend = "openssl"});
    const KeyRing ring(random, 1);
    const KeySet keys = *host.keys(ring.keys);
    EXPECT_EQ(host.launch(gcm::sealing(), keys, {}, {}).code(), Code::unsupported);
}

}  // namespace
