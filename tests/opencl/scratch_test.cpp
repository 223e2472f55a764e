// SPDX-License-Identifier: Apache-2.0
// Work in several launches that pass something on in a queue's scratch memory: CBC and CFB
// decryption in place, and XTS. Long enough for many shares, from several threads, on several
// queues and on one.
#include <functional>
#include <thread>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kSize = (std::size_t{1} << 20) + 16 * 5;

class OpenClScratch : public OpenClTest {
  protected:
    // Decrypts in place on a stream and compares.
    bool decrypts(Mode mode, std::uint32_t seed, Stream stream, bool as_batch) {
        // CFB takes a ragged end, and none is at a multiple of 16.
        const std::size_t size = mode == Mode::cfb ? kSize + 7 : kSize;
        const Bytes raw = random_bytes(16, seed), in = random_bytes(size, seed + 1);
        const Block iv = random_block(seed);
        const Key key = *Key::import(raw);
        const Bytes expected = oracle(raw, {mode, Direction::decrypt, iv, 0}, in);
        const auto allocated = device_->memory().allocate(size + 5);
        if (!allocated) return false;
        auto* memory = static_cast<std::uint8_t*>(*allocated) + (seed % 2 ? 5 : 0);
        const Cipher cipher{mode, Direction::decrypt};
        const Message one = message(memory, memory, size, iv);
        Result<> done = device_->memory().copy_in(memory, in.data(), size, stream);
        if (as_batch) {
            const auto keys = opencl::OpenClKeys::create(*device_, std::span(&key, 1));
            if (!keys) return false;
            auto batch = device_->prepare(cipher, {std::span(&key, 1), keys->get()}, {&one, 1});
            done = batch ? device_->run(**batch, stream) : std::move(batch).error();
            if (done) done = device_->order().wait(stream);
        } else if (done) {
            done = run(cipher, key, one, stream);
        }
        EXPECT_TRUE(done) << done.error().message;
        const bool right = difference(expected, get(memory, size, stream)).empty();
        device_->memory().release(*allocated);
        return right;
    }
    bool xts(Direction direction, std::uint32_t seed, Stream stream, std::uint32_t sector,
             std::size_t size) {
        const Bytes raw = random_bytes(32, seed), in = random_bytes(size, seed + 1);
        const Key key = *Key::import_xts(raw);
        const xts::Sectors sectors{seed, sector, 0};
        const auto allocated = device_->memory().allocate(size);
        if (!allocated) return false;
        auto* memory = static_cast<std::uint8_t*>(*allocated);
        Result<> done = device_->memory().copy_in(memory, in.data(), size, stream);
        if (done)
            done = run({.mode = Mode::xts, .direction = direction, .sector = sector}, key,
                       message(memory, memory, size, xts::start(sectors)), stream);
        EXPECT_TRUE(done) << done.error().message;
        const bool right =
            difference(oracle_xts(raw, direction, sectors, in), get(memory, size, stream)).empty();
        device_->memory().release(*allocated);
        return right;
    }
};

TEST_F(OpenClScratch, ChainedInPlaceAloneAndAsABatch) {
    // Few shares and many. On a CPU what is computed takes long: once.
    for (const char* shape :
         {"", "tables=0,teams=1,groups=1", "tables=1,teams=1,groups=64", "tables=0,teams=4"}) {
        device_ = open(shape);
        ASSERT_TRUE(device_) << shape;
        for (const Mode mode : {Mode::cbc, Mode::cfb})
            for (const bool as_batch : {false, true})
                for (const std::uint32_t seed : {10, 11}) {
                    if (*shape == 0 && (as_batch || seed == 11)) continue;
                    EXPECT_TRUE(decrypts(mode, seed, {}, as_batch))
                        << name(mode) << " " << as_batch << " " << seed << " " << shape;
                }
    }
}

// More sectors than have tweaks at once, a short one behind them; and enough for three runs.
TEST_F(OpenClScratch, XtsInSeveralRuns) {
    device_ = open("tables=1");
    EXPECT_TRUE(xts(Direction::decrypt, 5, {}, 17, 17 * ((std::size_t{1} << 18) + 3) + 16));
    EXPECT_TRUE(xts(Direction::encrypt, 6, {}, 16, 16 * ((std::size_t{2} << 18) + 1)));
}

void on_threads(const std::function<bool(std::uint32_t)>& work) {
    std::vector<std::thread> threads;
    std::vector<int> right(4, 0);
    for (std::uint32_t t = 0; t < right.size(); ++t)
        threads.emplace_back([&, t] { right[t] = work(t); });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, std::vector<int>(right.size(), 1));
}

TEST_F(OpenClScratch, QueuesHaveOneEach) {
    device_ = open("tables=1");
    on_threads([&](std::uint32_t t) {
        const Stream stream = *device_->order().create_stream();
        bool right = true;
        for (std::uint32_t round = 0; round < 3; ++round) {
            right = right &&
                    decrypts(t % 2 ? Mode::cbc : Mode::cfb, 100 * t + round, stream, round == 1);
            right = right && xts(Direction::decrypt, 7 * t + round, stream, 512, 1 << 19);
        }
        device_->order().destroy_stream(stream);
        return right;
    });
}

TEST_F(OpenClScratch, ThreadsTakeTurnsOnOneQueue) {
    device_ = open("tables=1");
    on_threads([&](std::uint32_t t) {
        bool right = true;
        for (std::uint32_t round = 0; round < 4; ++round)
            right = right && (t % 2 ? decrypts(Mode::cbc, 100 * t + round, {}, round == 1)
                                    : xts(Direction::encrypt, 7 * t + round, {}, 32, 1 << 19));
        return right;
    });
}

}  // namespace
