// SPDX-License-Identifier: Apache-2.0
// The kernel of short messages, its own code, run by a thread block on the host against OpenSSL.
#include <gtest/gtest.h>

// clang-format off: in this order, as cuda_on_host.hpp says.
#include "kernels/cuda_on_host.hpp"

#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/tag.cuh"
#include "support/test_batch.hpp"

#undef __shared__
#define __shared__ static
#include "backends/cuda/gcm/short.cu"
#include "kernels/gcm_keys_on_host.hpp"
// clang-format on

namespace dael::cuda {
alignas(1024) unsigned char table_image[std::max<std::size_t>(shapes::gcm_short(4).dynamic,
                                                              test::kKeyImage)];
}

namespace dael::test {
namespace {

class GcmShortKernel : public testing::Test {
  protected:
    template <int kRounds>
    static void launch(const cuda::GcmBatch& batch, unsigned blocks) {
        launch_blocks(blocks, cuda::shapes::gcm_short(1).threads,
                      [&] { cuda::gcm_short<kRounds, 1>(batch); });
    }
    static std::string run(TestBatch& tested, unsigned blocks) {
        return tested.fault_of([&](const Cipher& cipher, std::span<const Key> keys,
                                   std::span<const Message> messages,
                                   std::span<Code> codes) -> Result<> {
            const std::vector<cuda::GcmKey> made = device_keys(keys);
            std::vector<std::uint32_t> results(messages.size(), ~0u);
            cuda::GcmBatch batch{};
            batch.messages = messages.data();
            batch.keys = made.data();
            batch.results = results.data();
            batch.count = static_cast<std::uint32_t>(messages.size());
            batch.key_count = static_cast<std::uint32_t>(keys.size());
            batch.tag_size = authenticates(cipher.mode) ? cipher.tag : 0;
            batch.opening = batch.tag_size != 0 && cipher.direction == Direction::decrypt;
            for (const int rounds : {10, 12, 14}) {
                if (std::ranges::none_of(keys, [&](const Key& k) { return k.rounds() == rounds; }))
                    continue;
                if (rounds == 10) launch<10>(batch, blocks);
                if (rounds == 12) launch<12>(batch, blocks);
                if (rounds == 14) launch<14>(batch, blocks);
            }
            for (std::size_t i = 0; i < results.size(); ++i)
                codes[i] = static_cast<Code>(results[i]);
            return {};
        });
    }

    Random random_{1618};
    const KeyRing ring_{random_, 5};
};

constexpr Cipher kCiphers[] = {{Mode::gcm},
                               {Mode::gcm, Direction::decrypt},
                               {Mode::gcm_ctr},
                               {Mode::gcm, Direction::encrypt, 12},
                               {Mode::gcm, Direction::decrypt, 13}};

// Rows of 32 blocks of AAD and data: none, one, two, and more; part blocks at any address.
TEST_F(GcmShortKernel, SizesAlignmentsAndAad) {
    for (const Cipher& cipher : kCiphers) {
        const bool tags = authenticates(cipher.mode);
        TestBatch batch(random_, ring_, cipher);
        for (std::size_t size = 0; size <= 40; ++size)
            batch.add({.size = size,
                       .in_at = size % 16,
                       .out_at = size * 5 % 16,
                       .in_place = size % 4 == 3,
                       .aad_size = tags ? size * 7 % 39 : 0});
        for (const std::size_t edge : {512, 1024, 1536, 2048, 8192})
            for (const int by : {-17, -1, 0, 1, 16}) {
                if (edge == 8192 && by > 0) continue;
                batch.add({.size = edge + static_cast<std::size_t>(by),
                           .in_at = by == 1 ? 3u : 0u,
                           .in_place = by == 16,
                           .aad_size = tags && by < 0 && edge < 8192 ? 17u : 0u});
            }
        if (tags)
            for (const std::size_t aad : {15, 16, 17, 257, 480, 496, 512, 600, 1000, 1024, 4096})
                batch.add({.size = 40, .aad_size = aad});
        EXPECT_EQ(run(batch, 1), "") << batch.what();
    }
}

// More than 32 messages to a warp, and forged ones among them.
TEST_F(GcmShortKernel, ManyMessagesAndForgedOnes) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        TestBatch batch(random_, ring_, {Mode::gcm, direction});
        for (std::size_t i = 0; i < 1800; ++i)
            batch.add({.size = random_.below(90), .aad_size = i % 3 * 7});
        if (direction == Direction::decrypt)
            for (std::size_t i = 5; i < 1800; i += 13) batch.forge(i);
        EXPECT_EQ(run(batch, direction == Direction::encrypt ? 1 : 2), "") << batch.what();
    }
}

// Whether it has met long ones, it tells the plan that comes after it, and leaves them alone.
TEST_F(GcmShortKernel, TellsOfLongMessages) {
    const std::vector<cuda::GcmKey> made = device_keys(ring_.keys);
    Bytes in = random_.bytes(8192), out(8192), tags(40 * 16);
    for (const bool any_long : {false, true})
        for (const bool later : {false, true}) {
            std::vector<Message> messages(40);
            for (std::size_t i = 0; i < messages.size(); ++i) {
                Message& m = messages[i];
                m.in = in.data();
                m.out = out.data() + 16 * i;
                m.size = any_long && i == 17 ? 8193 : 16;
                m.tag = tags.data() + 16 * i;
            }
            messages[3].key = 99;  // invalid, and as long as can be
            messages[3].size = ~std::uint64_t{0};
            std::vector<std::uint32_t> results(messages.size(), ~0u);
            const auto plan = std::make_unique<cuda::PlanState>();
            cuda::GcmBatch batch{};
            batch.messages = messages.data();
            batch.keys = made.data();
            batch.results = results.data();
            batch.count = static_cast<std::uint32_t>(messages.size());
            batch.key_count = static_cast<std::uint32_t>(made.size());
            batch.tag_size = 16;
            batch.plan_later = later;
            batch.plan = plan.get();
            launch<10>(batch, 1);
            EXPECT_EQ(plan->any_long, any_long && later);
            EXPECT_EQ(static_cast<Code>(results[3]), Code::invalid_argument);
            EXPECT_EQ(results[17] == ~0u, any_long || made[0].rounds != 10);
        }
}

}  // namespace
}  // namespace dael::test
