// SPDX-License-Identifier: Apache-2.0
// A GPU is asked what AES makes of a few messages before its kernels are believed. How long that
// takes is printed.
#include <chrono>
#include <cstdio>

#include <daelstrom/ctr.hpp>
#include <daelstrom/engine.hpp>

#include "core/known_answers.hpp"
#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

using cuda::Kind;

class KnownAnswers : public CudaTest {
  protected:
    void TearDown() override {
        core::spoil_answers({});
        core::forget_answers();
        CudaTest::TearDown();
    }
    Random random_{7};
};

// Whether the modes of this kind have keys of this size.
bool takes(Kind kind, int rounds) {
    switch (kind) {
        case Kind::xaes_eight:
        case Kind::xaes_block:
        case Kind::xaes_few:
            return rounds == 14;
        case Kind::xts_encrypt:
        case Kind::xts_decrypt:
        case Kind::siv_eight:
        case Kind::siv_block:
        case Kind::siv_few:
            return rounds != 12;
        default:
            return true;
    }
}

TEST_F(KnownAnswers, EveryKindOfKernelsIsRight) {
    core::forget_answers();
    for (int time = 0; time < 2; ++time) {  // the first loads kernels
        core::forget_answers();
        open(0);  // which has believed nothing
        double most = 0, all = 0;
        for (const int rounds : {10, 12, 14})
            for (std::uint32_t kind = 0; kind < cuda::kKinds; ++kind) {
                const auto its = static_cast<Kind>(kind);
                if (!takes(its, rounds)) continue;
                const auto begin = std::chrono::steady_clock::now();
                const auto believed = device_->believe(its, rounds);
                const double us = std::chrono::duration<double, std::micro>(
                                      std::chrono::steady_clock::now() - begin)
                                      .count();
                EXPECT_TRUE(believed) << kind << ": " << believed.error().message;
                std::printf("known answer, kind %u, %d rounds, %s: %.0f us\n", kind, rounds,
                            time == 0 ? "first" : "again", us);
                most = std::max(most, us);
                all += us;
            }
        std::printf("known answers: %.0f us in all, %.0f us at most\n", all, most);
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 1000; ++i) (void)device_->believe(Kind::gcm_team, 10);
        std::printf("once known: %.1f ns\n", std::chrono::duration<double, std::nano>(
                                                 std::chrono::steady_clock::now() - begin)
                                                     .count() /
                                                 1000);
    }
}

TEST_F(KnownAnswers, WhatComputesWronglyIsLeftAlone) {
    core::forget_answers();
    core::spoil_answers("ctr of little data");
    const auto refused = cuda::open_cuda_backend(0);
    ASSERT_EQ(refused.code(), Code::device);
    EXPECT_NE(refused.error().message.find("computes wrongly"), std::string::npos);
    EXPECT_NE(refused.error().message.find("cuda:0"), std::string::npos);
    EXPECT_EQ(Engine::open({.backend = "cuda"}).code(), Code::device);

    // A device that is opened already refuses all, whichever kernels it was that were wrong.
    core::spoil_answers({});
    core::forget_answers();
    open(0);
    core::spoil_answers("gcm of a few messages");
    const KeyRing ring({random_.bytes(16)});
    auto tables = device_->tables(ring.keys);
    ASSERT_TRUE(tables) << tables.error().message;
    std::uint8_t* const memory = allocate(4096);
    const Message m{
        .in = memory, .out = memory + 1024, .size = 100, .tag = memory + 2048, .start = {}};
    const auto ran =
        device_->run({Mode::gcm}, {ring.keys, tables->get()}, std::span(&m, 1), {}, stream_);
    ASSERT_EQ(ran.code(), Code::device);
    EXPECT_NE(ran.error().message.find("computes wrongly"), std::string::npos);
    core::spoil_answers({});
    EXPECT_EQ(
        device_->run({Mode::ecb}, {ring.keys}, {.in = memory, .out = memory, .size = 64}, stream_)
            .code(),
        Code::device);
    wait();
}

}  // namespace
}  // namespace dael::test
