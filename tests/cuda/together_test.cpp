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
            const KeyRing ring(random, 3, cipher.mode);
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

// One message in parts on all of them, or two parts on the one there is: by a call over shards.
TEST_F(CudaTogether, OneMessageOverDevices) {
    Random random(5);
    std::vector<Engine> alone;
    std::string set;
    for (int i = 0; i < gpus_; ++i) {
        const std::string name = "cuda:" + std::to_string(i);
        set += (i == 0 ? "" : "+") + name;
        auto engine = Engine::open({.backend = name});
        ASSERT_TRUE(engine) << engine.error().message;
        alone.push_back(std::move(*engine));
    }
    auto engine = Engine::open({.backend = set});
    ASSERT_TRUE(engine) << engine.error().message;
    const std::size_t parts = std::max(2, gpus_);
    for (const Cipher& cipher : kCiphers) {
        if (!modes::can_cut(cipher) && !authenticates(cipher.mode)) continue;
        const KeyRing ring(random, 2, cipher.mode);
        auto keys = engine->keys(ring.keys);
        ASSERT_TRUE(keys) << keys.error().message;
        for (const std::size_t wanted : {std::size_t{0}, std::size_t{70}, std::size_t{9 << 20}}) {
            const Bytes plain = random.bytes(fitting(cipher, wanted + 5));
            const Bytes aad = random.bytes(authenticates(cipher.mode) ? 77 : 0);
            Block tag{};
            Message m{plain.data(), const_cast<std::uint8_t*>(plain.data()), plain.size()};
            m.start = fitting_start(cipher, random);
            m.key = 1;
            m.aad = aad.data();
            m.aad_size = aad.size();
            if (authenticates(cipher.mode)) m.tag = tag.data();
            const Answer answer = oracle(ring.raw[1], cipher, m);
            if (!modes::encrypts(cipher) && m.tag) std::ranges::copy(answer.tag, tag.begin());
            m.in = m.out = nullptr;
            m.size = 0;
            std::vector<Shard> shards;
            const std::size_t each = plain.size() / parts / 512 * 512;
            for (std::size_t i = 0; i < parts; ++i) {
                auto its = device(alone[i % alone.size()]);
                ASSERT_TRUE(its);
                const std::size_t size = i + 1 < parts ? each : plain.size() - i * each;
                auto memory = its->memory.allocate(size + 16);
                auto stream = its->order.create_stream();
                ASSERT_TRUE(memory && stream);
                auto* const data = static_cast<std::uint8_t*>(*memory);
                ASSERT_TRUE(its->memory.copy_in(data, plain.data() + i * each, size, *stream));
                shards.push_back({data, data, size, *stream});
            }
            const auto fetched = [&] {
                Bytes out(plain.size());
                for (std::size_t i = 0; i < parts; ++i) {
                    auto its = device(alone[i % alone.size()]);
                    EXPECT_TRUE(its->memory.copy_out(out.data() + i * each, shards[i].in,
                                                     shards[i].size, shards[i].stream));
                    EXPECT_TRUE(its->order.wait(shards[i].stream));
                }
                return out;
            };
            if (authenticates(cipher.mode) && !modes::encrypts(cipher)) {
                tag[0] ^= 1;
                EXPECT_EQ(engine->run_shards(cipher, *keys, m, shards).code(),
                          Code::authentication);
                EXPECT_EQ(difference(plain, fetched()), "");
                tag[0] ^= 1;
            }
            const auto ran = engine->run_shards(cipher, *keys, m, shards);
            ASSERT_TRUE(ran) << name(cipher.mode) << ": " << ran.error().message;
            EXPECT_EQ(difference(answer.out, fetched()), "") << name(cipher.mode);
            if (m.tag) {
                EXPECT_EQ(difference(answer.tag, tag), "");
            }
            for (std::size_t i = 0; i < parts; ++i) {
                auto its = device(alone[i % alone.size()]);
                its->order.destroy_stream(shards[i].stream);
                its->memory.release(shards[i].out);
            }
        }
    }
}

// What a budget leaves is not taken, whatever is asked for.
TEST_F(CudaTogether, WithinABudgetOfMemory) {
    Random random(6);
    const KeyRing ring(random, 1);
    auto engine = Engine::open({.backend = "cuda:0", .device_memory = 24 << 20});
    ASSERT_TRUE(engine) << engine.error().message;
    auto keys = engine->keys(ring.keys);
    ASSERT_TRUE(keys);
    for (const Cipher& cipher : {Cipher{Mode::ctr}, gcm::sealing()}) {
        Work work(random, ring, {cipher, std::vector<std::size_t>(80, 1 << 20)});
        const auto ran = engine->run(cipher, *keys, work.messages, work.codes);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(work.fault(Code::ok), "");
        EXPECT_GT(ran->chunks, 12u);  // so small they are
    }
}

}  // namespace
}  // namespace dael::test
