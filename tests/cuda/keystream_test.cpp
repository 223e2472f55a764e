// SPDX-License-Identifier: Apache-2.0
// Runs of keystream that a GPU writes into memory of the host.
#include <cstring>

#include "cuda/fixture.hpp"
#include "support/keystream_runs.hpp"

namespace dael::test {
namespace {

class KeystreamOnAGpu : public CudaTest {
  protected:
    static constexpr std::size_t kRoom = std::size_t{8} << 20;

    void SetUp() override {
        CudaTest::SetUp();
        if (!device_) return;
        auto memory = device_->memory().allocate_pinned(kRoom);
        ASSERT_TRUE(memory) << memory.error().message;
        room_ = static_cast<std::uint8_t*>(*memory);
        auto maker = device_->keystream_maker();
        ASSERT_TRUE(maker && *maker);
        maker_ = std::move(*maker);
    }
    void TearDown() override {
        maker_.reset();
        if (room_) device_->memory().release_pinned(room_);
        CudaTest::TearDown();
    }
    KeyRing ring_of(std::initializer_list<std::size_t> sizes) {
        std::vector<Bytes> raw;
        for (const std::size_t size : sizes) raw.push_back(random_.bytes(size));
        return KeyRing(std::move(raw));
    }
    std::unique_ptr<core::KeyTables> tables(const KeyRing& ring) {
        auto made = maker_->keys(ring.keys);
        EXPECT_TRUE(made) << made.error().message;
        return made ? std::move(*made) : nullptr;
    }
    // Side by side or with gaps of poison. Bytes up to the last one's end.
    std::size_t place(std::vector<core::KeystreamRun>& runs, bool gaps) {
        std::size_t at = 16 * random_.below(9);
        for (core::KeystreamRun& run : runs) {
            run.out = room_ + at;
            at += std::size_t{run.blocks} * run.slots * 16 + (gaps ? 16 * random_.below(20) : 0);
        }
        EXPECT_LE(at + 4096, kRoom);
        return at;
    }
    void make(const core::KeyTables& keys, const std::vector<core::KeystreamRun>& runs) {
        const auto begun = maker_->begin(keys, runs, stream_);
        ASSERT_TRUE(begun) << begun.error().message;
        for (;;) {
            const auto done = maker_->done();
            ASSERT_TRUE(done) << done.error().message;
            if (*done) break;
        }
    }

    Random random_{2011};
    std::uint8_t* room_ = nullptr;
    std::unique_ptr<core::KeystreamMaker> maker_;
};

TEST_F(KeystreamOnAGpu, IsOpenSslsForEveryShapeAndKey) {
    const KeyRing ring = ring_of({16, 24, 32, 32, 16});
    const auto keys = tables(ring);
    ASSERT_TRUE(keys);
    for (const std::size_t count : {1u, 2u, 7u, 79u, 80u, 81u, 256u}) {
        SCOPED_TRACE(count);
        auto runs = random_runs(random_, count, 5);
        const std::size_t end = place(runs, count % 2 != 0);
        std::memset(room_, Poisoned::kPoison, end + 4096);
        make(*keys, runs);
        const std::uint8_t* before = room_;
        for (const core::KeystreamRun& run : runs) {
            EXPECT_TRUE(all_are({before, run.out}, Poisoned::kPoison));
            const Bytes expected = keystream_oracle(ring.raw[run.key], run);
            ASSERT_EQ(difference(expected, std::span(run.out, expected.size())), "");
            before = run.out + expected.size();
        }
        EXPECT_TRUE(all_are({before, 4096}, Poisoned::kPoison));
    }
}

// What done() has said is so: whole, at once, every time, while other work goes on beside it.
TEST_F(KeystreamOnAGpu, IsThereWhenItIsSaidToBe) {
    const KeyRing ring = ring_of({16});
    const auto keys = tables(ring);
    ASSERT_TRUE(keys);
    std::vector<core::KeystreamRun> lists[2];
    Bytes expected[2];
    for (int i = 0; i < 2; ++i) {
        core::KeystreamRun run;
        run.out = room_ + 16;
        run.first = random_.block();
        run.blocks = 13;
        run.slots = 64 * 1024 / 16 / 13;
        lists[i] = {run};
        expected[i] = keystream_oracle(ring.raw[0], run);
    }
    for (int round = 0; round < 20000; ++round) {
        make(*keys, lists[round % 2]);
        const Bytes& right = expected[round % 2];
        ASSERT_EQ(std::memcmp(room_ + 16, right.data(), right.size()), 0) << round;
    }
}

TEST_F(KeystreamOnAGpu, KeysAreReplacedInTheStreamsOrder) {
    const KeyRing ring = ring_of({16, 24, 32, 16, 32, 24});
    auto made = maker_->keys(std::span(ring.keys).first(1));
    ASSERT_TRUE(made);
    core::KeystreamRun run;
    run.out = room_;
    run.blocks = 3;
    run.slots = 2000;
    for (std::size_t i = 0; i < ring.keys.size(); ++i) {
        ASSERT_TRUE((*made)->replace(0, ring.keys[i], stream_));
        make(**made, {run});
        const Bytes expected = keystream_oracle(ring.raw[i], run);
        ASSERT_EQ(difference(expected, std::span(room_, expected.size())), "") << i;
    }
}

TEST_F(KeystreamOnAGpu, RefusesWhatItCannotDo) {
    const KeyRing ring = ring_of({16});
    const auto keys = tables(ring);
    core::KeystreamRun run;
    run.out = room_;
    run.blocks = run.slots = 1;
    run.key = 1;
    EXPECT_EQ(maker_->begin(*keys, {&run, 1}, stream_).code(), Code::invalid_argument);
    EXPECT_TRUE(maker_->wait());
    run.key = 0;
    make(*keys, {run});
    EXPECT_TRUE(maker_->wait());
}

}  // namespace
}  // namespace dael::test
