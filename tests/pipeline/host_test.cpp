// SPDX-License-Identifier: Apache-2.0
// Host memory on host threads: how work is shared out, and that sharing it out changes no byte.
#include "pipeline/host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include <daelstrom/engine.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using pipeline::share_out;

constexpr Direction kDirections[] = {Direction::encrypt, Direction::decrypt};

std::vector<core::Segment> messages_of(std::size_t count, std::size_t size) {
    return std::vector<core::Segment>(count, core::Segment{nullptr, nullptr, size, {}, 0});
}

TEST(ShareOut, SequentialMessagesFillTheLanesWhereThereAreEnough) {
    for (const std::size_t count : {64, 100, 1000, 5000}) {
        const auto shares = share_out(Mode::cbc, Direction::encrypt, messages_of(count, 4096), 4);
        EXPECT_EQ(shares.segments.size(), count);
        for (std::size_t i = 0; i + 1 < shares.count(); ++i)
            EXPECT_GE(shares[i].size(), pipeline::kLanes) << count;
    }
}

TEST(ShareOut, FewSequentialMessagesAreDividedEvenly) {
    const auto shares = share_out(Mode::ofb, Direction::encrypt, messages_of(8, 1 << 20), 4);
    ASSERT_EQ(shares.count(), 4u);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(shares[i].size(), 2u);
}

TEST(ShareOut, SequentialMessagesComeLongestFirst) {
    auto messages = messages_of(40, 16);
    messages[33].size = 1 << 20;
    const auto shares = share_out(Mode::cfb, Direction::encrypt, messages, 2);
    EXPECT_EQ(shares[0][0].size, std::size_t{1} << 20);
}

TEST(ShareOut, SmallJobsStayOnOneThread) {
    EXPECT_EQ(pipeline::threads_worth(Mode::ctr, Direction::encrypt, 64 << 10, 1, 16), 1);
    EXPECT_EQ(pipeline::threads_worth(Mode::ctr, Direction::encrypt, 1 << 20, 1, 16), 8);
    EXPECT_EQ(pipeline::threads_worth(Mode::ctr, Direction::encrypt, 1 << 30, 1, 16), 16);
    EXPECT_EQ(pipeline::threads_worth(Mode::cbc, Direction::encrypt, 1 << 30, 1, 16), 1);
    EXPECT_EQ(pipeline::threads_worth(Mode::cbc, Direction::decrypt, 1 << 30, 1, 16), 16);
}

// Passes everything on to OpenSSL and notes what it was asked.
class Recorder final : public core::Backend {
  public:
    struct Notes {
        std::mutex mutex;
        std::vector<std::size_t> calls;  // segments of each call
        std::size_t bytes = 0;
    };
    explicit Recorder(Notes& notes, bool shared = true)
        : notes_(notes), shared_(shared), inner_(*core::open_backend("openssl")) {}
    std::string_view name() const override { return "recorder"; }
    std::string description() const override { return "OpenSSL, watched"; }
    bool supports(Mode, Direction, std::size_t) const override { return true; }
    Result<> run(const core::Operation& operation,
                 std::span<const core::Segment> segments) override {
        {
            const std::lock_guard lock(notes_.mutex);
            notes_.calls.push_back(segments.size());
            for (const auto& segment : segments) notes_.bytes += segment.size;
        }
        return inner_->run(operation, segments);
    }
    bool shared_by_threads() const override { return shared_; }

  private:
    Notes& notes_;
    const bool shared_;
    std::unique_ptr<core::Backend> inner_;
};

TEST(HostRun, LongMessagesAreCutForAllThreadsAndEveryByteIsRight) {
    const Bytes raw = random_bytes(32, 1);
    const Key key = *Key::import(raw);
    const Block iv = random_block(2);
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (const bool in_place : {false, true}) {
                Recorder::Notes notes;
                Engine engine =
                    pipeline::make_engine(std::make_unique<Recorder>(notes), {.threads = 4});
                Bytes in = random_bytes((1 << 20) + 48, 3);
                const Bytes expected = oracle(raw, {mode, direction, iv, 0}, in);
                Bytes apart(in.size());
                const HostOut out = in_place ? HostOut(in) : HostOut(apart);
                const auto ran = engine.run(key, {mode, direction, iv, 0}, in, out);
                ASSERT_TRUE(ran) << ran.error().message;
                EXPECT_EQ(ran->backend, "recorder");
                EXPECT_EQ(ran->chunks, 0u);
                EXPECT_TRUE(std::ranges::equal(out, expected)) << name(mode);
                EXPECT_EQ(notes.bytes, in.size());
                EXPECT_EQ(notes.calls.size() > 1, parallel_within_message(mode, direction));
            }
}

TEST(HostRun, BackendsThatAreParallelByThemselvesGetWholeMessages) {
    const Key key = *Key::import(random_bytes(16, 1));
    Recorder::Notes notes;
    Engine engine = pipeline::make_engine(std::make_unique<Recorder>(notes, false), {.threads = 4});
    Bytes data = random_bytes(4 << 20, 2);
    const auto ran = engine.ctr(key, {}, data, data);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->threads, 1);
    EXPECT_EQ(notes.calls, std::vector<std::size_t>{1});
    EXPECT_EQ(notes.bytes, data.size());
    const Plan plan = engine.explain({Mode::ctr, Direction::encrypt, 128, data.size()});
    EXPECT_EQ(plan.options.front().threads, 1);
}

TEST(HostRun, CounterOffsetsInsideABlock) {
    const Bytes raw = random_bytes(16, 4);
    const Key key = *Key::import(raw);
    Block iv;
    iv.fill(0xff);  // the first step carries through every byte
    Engine engine = *Engine::open({.backend = "openssl", .threads = 3});
    for (const std::uint64_t offset : {1, 15, 16, 17, 4097})
        for (const std::size_t size : {0, 1, 14, 15, 16, 17, 1000, 700001}) {
            const Bytes in = random_bytes(size, 5);
            Bytes out(size);
            ASSERT_TRUE(engine.ctr(key, iv, in, out, offset));
            EXPECT_EQ(out, oracle(raw, {Mode::ctr, Direction::encrypt, iv, offset}, in))
                << offset << " " << size;
        }
}

TEST(HostRun, BatchesOfUnequalMessages) {
    const Bytes raw = random_bytes(24, 6);
    const Key key = *Key::import(raw);
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            Recorder::Notes notes;
            Engine engine =
                pipeline::make_engine(std::make_unique<Recorder>(notes), {.threads = 3});
            std::vector<Bytes> in, out, expected;
            std::vector<Message> messages;
            for (std::uint32_t i = 0; i < 150; ++i) {
                const std::size_t any = i == 77 ? std::size_t{1} << 19 : i * 37;
                const std::size_t size = whole_blocks_only(mode) ? any / 16 * 16 : any;
                in.push_back(random_bytes(size, i));
                out.emplace_back(size);
                expected.push_back(oracle(raw, {mode, direction, random_block(i), 0}, in.back()));
            }
            for (std::uint32_t i = 0; i < in.size(); ++i)
                messages.push_back({in[i].data(), out[i].data(), in[i].size(), random_block(i), 0});
            const auto ran = engine.run(key, mode, direction, messages);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(out, expected) << name(mode) << " " << name(direction);
            EXPECT_GT(notes.calls.size(), 1u);
        }
}

TEST(HostRun, BadCallsAreErrors) {
    const Key key = *Key::import(random_bytes(16, 7));
    Engine engine = *Engine::open({.backend = "openssl"});
    Bytes in(32), small(16);
    EXPECT_EQ(engine.ctr(key, {}, in, small).code(), Code::invalid_argument);
    EXPECT_EQ(engine.ecb_encrypt(key, HostIn(in).first(17), HostOut(in).first(17)).code(),
              Code::ragged_length);
    EXPECT_EQ(engine.ctr(key, {}, HostIn(in).first(16), HostOut(in).subspan(8, 16)).code(),
              Code::overlap);
    EXPECT_EQ(Engine::open({.backend = "openssl", .threads = -1}).code(), Code::invalid_argument);
    EXPECT_EQ(Engine::open({.backend = "abacus"}).code(), Code::unknown_backend);
}

}  // namespace
