// SPDX-License-Identifier: Apache-2.0
// GPUs of this machine and its host on one job: the same bytes as OpenSSL's, in every mode, from
// ordinary and page-locked memory, in place and apart; and data that lies on each of several GPUs.
#include <thread>

#include <daelstrom/device.hpp>

#include "cuda/fixture.hpp"
#include "pipeline/work.hpp"

namespace dael::test {
namespace {

const Cipher kCiphers[] = {{Mode::ctr},
                           {Mode::ecb},
                           {Mode::xts, Direction::encrypt, 16, 0, 512},
                           {Mode::cbc, Direction::decrypt},
                           {Mode::cbc},
                           {Mode::cfb, Direction::decrypt},
                           {Mode::ofb},
                           {Mode::gcm_ctr},
                           gcm::sealing(),
                           gcm::opening()};

class CudaTogether : public ::testing::Test {
  protected:
    void SetUp() override {
        DAEL_NEEDS_GPUS(1);
        std::string why;
        gpus_ = cuda::count_devices(&why);
    }
    // "cuda:0+cuda:1+openssl": as many as there are.
    std::vector<std::string> sets() const {
        std::vector<std::string> sets{"cuda:0+openssl"};
        std::string all = "cuda:0";
        for (int i = 1; i < gpus_; ++i) all += "+cuda:" + std::to_string(i);
        if (gpus_ > 1) sets.insert(sets.end(), {all, all + "+openssl"});
        return sets;
    }
    int gpus_ = 0;
};

TEST_F(CudaTogether, EveryModeFromAnyMemory) {
    Random random(1);
    for (const std::string& set : sets()) {
        auto engine = Engine::open({.backend = set, .chunk = 1 << 20, .patience = 0});
        ASSERT_TRUE(engine) << engine.error().message;
        auto access = device(*engine);
        ASSERT_TRUE(access);
        std::vector<std::string> seen;
        for (const Cipher& cipher : kCiphers) {
            const KeyRing ring(random, 3, cipher.mode == Mode::xts);
            auto keys = engine->keys(ring.keys);
            ASSERT_TRUE(keys) << keys.error().message;
            for (const bool pinned : {true, false})
                for (const bool in_place : {true, false})
                    for (const bool many : {true, false}) {
                        std::vector<std::size_t> sizes{9u << 20, 100, 0, 700'000, 17};
                        if (many) sizes.assign(200, 40'000);
                        for (auto& size : sizes) size = fitting(cipher, size);
                        Work work(random, ring,
                                  {cipher, sizes, in_place, pinned ? &access->memory : nullptr});
                        const auto ran = engine->run(cipher, *keys, work.messages, work.codes);
                        ASSERT_TRUE(ran) << set << ": " << ran.error().message;
                        ASSERT_EQ(work.fault(Code::ok), "")
                            << name(cipher.mode) << (in_place ? " in place" : "")
                            << (pinned ? " page-locked" : "") << ", by " << ran->backend;
                        EXPECT_FALSE(ran->replaced);
                        seen.emplace_back(ran->backend);
                    }
        }
        EXPECT_NE(std::ranges::find(seen, set), seen.end()) << set;  // all of them at once
    }
}

TEST_F(CudaTogether, OneLongMessageOfGcm) {
    Random random(2);
    const KeyRing ring(random, 1);
    for (const std::string& set : sets()) {
        auto engine = Engine::open({.backend = set, .patience = 0});  // sanitizers are slow
        ASSERT_TRUE(engine) << engine.error().message;
        auto keys = engine->keys(ring.keys);
        ASSERT_TRUE(keys);
        for (const Cipher& cipher : {gcm::sealing(), gcm::opening()})
            for (const bool wraps : {false, true}) {
                Work work(random, ring, {cipher, {(24u << 20) + 5u}, true, nullptr, wraps});
                const auto ran = engine->run(cipher, *keys, work.messages, work.codes);
                ASSERT_TRUE(ran) << ran.error().message;
                EXPECT_EQ(work.fault(Code::ok), "") << ran->backend;
            }
    }
}

TEST_F(CudaTogether, ManyCallersAtOnce) {
    Random random(3);
    const KeyRing ring(random, 1);
    auto engine = Engine::open({.backend = sets().back()});
    ASSERT_TRUE(engine);
    auto keys = engine->keys(ring.keys);
    ASSERT_TRUE(keys);
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i)
        callers.emplace_back([&, i] {
            Random mine(static_cast<std::uint64_t>(i));
            const Cipher cipher = i % 2 == 0 ? Cipher{Mode::ctr} : gcm::sealing();
            for (int call = 0; call < 4; ++call) {
                Work work(mine, ring, {cipher, {20u << 20, 300'000, 5}, call % 2 == 0});
                const auto ran = engine->run(cipher, *keys, work.messages, work.codes);
                ASSERT_TRUE(ran) << ran.error().message;
                ASSERT_EQ(work.fault(Code::ok), "");
            }
        });
    for (auto& caller : callers) caller.join();
}

// What lies on a GPU is done there, whichever of the set's it is.
TEST_F(CudaTogether, DataOnEachOfThem) {
    DAEL_NEEDS_GPUS(2);
    Random random(4);
    const KeyRing ring(random, 1);
    auto engine = Engine::open({.backend = sets()[1]});
    ASSERT_TRUE(engine) << engine.error().message;
    const Bytes plain = random.bytes(1 << 20);
    for (int i = 0; i < gpus_; ++i) {
        auto alone = Engine::open({.backend = "cuda:" + std::to_string(i)});
        ASSERT_TRUE(alone) << alone.error().message;
        auto its = device(*alone);
        ASSERT_TRUE(its);
        auto memory = its->memory.allocate(plain.size());
        ASSERT_TRUE(memory) << memory.error().message;
        auto* const data = static_cast<std::uint8_t*>(*memory);
        ASSERT_TRUE(its->memory.copy_in(data, plain.data(), plain.size(), {}));
        Message m{data, data, plain.size()};
        m.start[5] = 9;
        const auto ran = engine->run({Mode::ctr}, ring.keys[0], m, {});
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(ran->backend, "cuda:" + std::to_string(i));
        ASSERT_TRUE(its->order.wait(Stream{}));
        Bytes out(plain.size());
        ASSERT_TRUE(its->memory.copy_out(out.data(), data, out.size(), {}));
        ASSERT_TRUE(its->order.wait(Stream{}));
        Message host = m;
        host.in = plain.data();
        EXPECT_EQ(difference(oracle(ring.raw[0], {Mode::ctr}, host).out, out), "");
        its->memory.release(data);
    }
}

}  // namespace
}  // namespace dael::test
