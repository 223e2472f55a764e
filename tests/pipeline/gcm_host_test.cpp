// SPDX-License-Identifier: Apache-2.0
// The engine's GCM calls on host threads: how batches are shared out, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include <daelstrom/engine.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/gcm_test.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using pipeline::GcmWork;

std::vector<GcmMessage> messages_of(std::initializer_list<std::uint64_t> sizes) {
    std::vector<GcmMessage> messages;
    for (const std::uint64_t size : sizes) messages.emplace_back().size = size;
    return messages;
}

TEST(GcmShares, CoverEveryMessageOnceHeaviestFirst) {
    Random random(1);
    std::vector<GcmMessage> messages(5000);
    for (auto& message : messages) message.size = random.below(5000);
    messages[4999].size = 50 << 20;
    messages[17].size = ~std::uint64_t{0};  // refused later; until then it must not overflow
    const GcmWork work(Direction::encrypt, messages, kTagSize);
    const auto shares = pipeline::share_out(work, 4);
    EXPECT_GE(shares.size(), 6u);
    EXPECT_TRUE(
        std::ranges::is_sorted(shares, std::ranges::greater{}, &pipeline::GcmShare::weight));
    std::vector<int> seen(messages.size());
    for (const auto& share : shares)
        for (std::size_t i = share.begin; i < share.end; ++i) ++seen[i];
    EXPECT_EQ(std::ranges::count(seen, 1), 5000);
    EXPECT_EQ(shares[0].begin, 17u);
    EXPECT_EQ(shares[1].begin, 4999u);
}

TEST(GcmShares, ThreadsAreWokenForEnoughWorkOnly) {
    const auto threads = [](const std::vector<GcmMessage>& messages, int most) {
        return pipeline::threads_worth(GcmWork(Direction::encrypt, messages, kTagSize), most);
    };
    EXPECT_EQ(threads({}, 8), 1);
    EXPECT_EQ(threads(messages_of({64 << 10}), 8), 1);
    EXPECT_EQ(threads(messages_of({64 << 20}), 8), 1);  // a message is never cut
    EXPECT_EQ(threads(messages_of({1 << 20, 1 << 20, 1 << 20}), 8), 3);
    EXPECT_EQ(threads(std::vector<GcmMessage>(10000), 8), 8);  // nothing but first and last steps
    EXPECT_EQ(threads(std::vector<GcmMessage>(10000), 1), 1);
}

class GcmEngine : public testing::Test {
  protected:
    Result<KeySet> keys(Engine& engine) { return engine.prepare_keys(std::span(&key_, 1)); }

    const Key key_ = *Key::import(random_bytes(16, 1));
    Bytes data_ = Bytes(100), tag_ = Bytes(16), iv_ = Bytes(12);
    GcmMessage message_{data_.data(), data_.data(), 100, nullptr, 0, tag_.data(), {}, 0};
    Code result_ = Code::internal;
};

TEST_F(GcmEngine, TheCallIsRefusedAsAWhole) {
    Engine engine = *Engine::open({.backend = "openssl"});
    Engine other = *Engine::open({.backend = "openssl"});
    const auto set = keys(engine), of_other = keys(other);
    ASSERT_TRUE(set && of_other);
    EXPECT_EQ(set->size(), 1u);
    const std::span messages(&message_, 1);
    const std::span results(&result_, 1);
    EXPECT_EQ(engine.prepare_keys({}).code(), Code::invalid_argument);
    EXPECT_EQ(engine.seal_batch(*of_other, messages, results).code(), Code::invalid_argument);
    EXPECT_EQ(engine.seal_batch(*set, messages, {}).code(), Code::invalid_argument);
    EXPECT_EQ(engine.open_batch(*set, {}, results).code(), Code::invalid_argument);
    EXPECT_EQ(engine.seal_batch(*set, messages, results, 11).code(), Code::invalid_argument);
    EXPECT_EQ(data_, Bytes(100));
    EXPECT_TRUE(engine.seal_batch(*set, {}, {}));
    EXPECT_TRUE(engine.seal_batch(*set, messages, results));
    EXPECT_EQ(result_, Code::ok);
}

TEST_F(GcmEngine, OneMessageSaysWhatIsWrongWithIt) {
    Engine engine = *Engine::open({.backend = "openssl"});
    const auto refusal = [&](std::span<const std::uint8_t> iv, HostIn in, HostOut out,
                             std::span<std::uint8_t> tag) {
        const auto ran = engine.gcm_seal(key_, iv, {}, in, out, tag);
        return ran ? std::string() : ran.error().message;
    };
    EXPECT_EQ(refusal(iv_, data_, data_, tag_), "");
    EXPECT_NE(refusal({}, data_, data_, tag_).find("IV is empty"), std::string::npos);
    EXPECT_NE(refusal(iv_, data_, HostOut(data_).first(9), tag_).find("must be the same"),
              std::string::npos);
    EXPECT_NE(refusal(iv_, data_, data_, HostOut(tag_).first(3)).find("tag of 3 bytes"),
              std::string::npos);
    EXPECT_NE(refusal(iv_, data_, data_, HostOut(data_).first(16)).find("tag overlaps"),
              std::string::npos);
    tag_[0] ^= 1;
    const auto opened = engine.gcm_open(key_, iv_, {}, data_, data_, tag_);
    EXPECT_EQ(opened.code(), Code::authentication);
    EXPECT_NE(opened.error().message.find("does not match"), std::string::npos);
}

TEST_F(GcmEngine, AutoTakesTheFirstHostBackend) {
    Engine engine = *Engine::open({.calibrated = false});
    const auto set = keys(engine);
    ASSERT_TRUE(set);
    const auto ran = engine.seal_batch(*set, std::span(&message_, 1), std::span(&result_, 1));
    ASSERT_TRUE(ran);
    EXPECT_EQ(ran->backend, core::open_backend("cpu") ? "cpu" : "openssl");
    EXPECT_EQ(ran->chunks, 0u);
}

// A backend without GCM: the next one serves, and without a next one the reason is said.
class WithoutGcm final : public core::Backend {
  public:
    std::string_view name() const override { return "plain"; }
    std::string description() const override { return "no GCM"; }
    bool supports(Mode, Direction, std::size_t) const override { return true; }
    Result<> run(const core::Operation&, std::span<const core::Segment>) override { return {}; }
};

TEST_F(GcmEngine, ABackendWithoutGcmSaysSo) {
    Engine engine = pipeline::make_engine(std::make_unique<WithoutGcm>());
    const auto set = keys(engine);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.code(), Code::unsupported);
    EXPECT_NE(set.error().message.find("plain"), std::string::npos);
    EXPECT_EQ(engine.gcm_sealer(key_, iv_).code(), Code::unsupported);
}

}  // namespace
