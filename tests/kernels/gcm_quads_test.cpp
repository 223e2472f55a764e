// SPDX-License-Identifier: Apache-2.0
// GCM of short messages in groups of 64, on the host: GHASH by quads of lanes as the tensor cores
// are given it and count it, and how messages are put into groups.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "backends/cuda/gcm/quads_plan.hpp"
#include "support/bytes.hpp"
#include "tensor_counts.hpp"

namespace {

using namespace dael;
using cuda::kNoMessage;
using kernels::kQuadRows;
using kernels::QuadMessage;
using kernels::Words4;
using test::Bytes;
using test::count;
using test::word;

// The matrices of a key, as the kernel for them fills them in.
std::vector<std::uint32_t> matrices(const Words4& h) {
    std::vector<std::uint32_t> words(kernels::kQuadWords, 0xdeadbeef);
    Words4 power = kernels::gf_one();
    for (std::uint32_t p = 1; p <= kernels::kQuadBlocks; ++p) {
        power = kernels::gf_multiply(power, h);
        test::for_each_word(power, [&](std::uint32_t output, std::uint32_t of, std::uint32_t row) {
            words[kernels::quad_block_index(p, output, of)] = row;
            if (p != kernels::kQuadBlocks) return;
            words[kernels::quad_state_index(output, of)] = row;
            words[kernels::quad_zero_index(output, of)] = 0;
        });
    }
    return words;
}

struct TestMessage {
    Bytes aad, data;
    // Block `i` of the data, as first_block() counts them.
    Words4 block(std::int32_t i) const {
        const QuadMessage blocks(aad.size(), data.size());
        Words4 x{};
        const auto take = [&](const Bytes& bytes, std::size_t at) {
            std::memcpy(&x, bytes.data() + at * 16,
                        std::min<std::size_t>(16, bytes.size() - at * 16));
        };
        if (i >= 0 && i < static_cast<std::int32_t>(blocks.data_blocks)) {
            take(data, static_cast<std::size_t>(i));
        } else if (i < 0 && i >= -static_cast<std::int32_t>(blocks.aad_blocks)) {
            take(aad, static_cast<std::size_t>(i + static_cast<std::int32_t>(blocks.aad_blocks)));
        } else if (i == static_cast<std::int32_t>(blocks.data_blocks)) {
            x.y = kernels::byte_swap(static_cast<std::uint32_t>(aad.size() * 8));
            x.w = kernels::byte_swap(static_cast<std::uint32_t>(data.size() * 8));
        }
        return x;
    }
    // SP 800-38D 6.4, a block after the other.
    Words4 ghash(const Words4& h) const {
        const QuadMessage blocks(aad.size(), data.size());
        Words4 sum{};
        for (auto i = -static_cast<std::int32_t>(blocks.aad_blocks);
             i <= static_cast<std::int32_t>(blocks.data_blocks); ++i)
            sum = kernels::gf_multiply(sum ^ block(i), h);
        return sum;
    }
};

void hash_step(std::uint32_t (&hash)[32][2], const Words4 (&blocks)[32][2],
               const std::vector<std::uint32_t>& matrices) {
    std::uint32_t operands[3][32][4];
    for (std::uint32_t lane = 0; lane < 32; ++lane)
        for (std::uint32_t r = 0; r < 4; ++r) {
            operands[0][lane][r] = r < 2 ? hash[lane][r] : 0;
            operands[1][lane][r] = word(blocks[lane][r % 2], r / 2);
            operands[2][lane][r] = word(blocks[lane][r % 2], 2 + r / 2);
        }
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        std::uint32_t counts[64] = {}, words[2] = {};
        for (std::uint32_t operand = 0; operand < kernels::kQuadOperands; ++operand)
            count(counts, operands[operand], lane,
                  matrices.data() + kernels::quad_index(operand, 0, 0, 0));
        kernels::pack_parities(words, counts);
        hash[lane][0] = words[0];
        hash[lane][1] = words[1];
    }
}

TEST(GcmQuads, EveryWordOfTheMatricesHasOnePlace) {
    std::set<std::uint32_t> places;
    for (std::uint32_t output = 0; output < 128; ++output)
        for (std::uint32_t of = 0; of < 4; ++of) {
            for (std::uint32_t p = 1; p <= kernels::kQuadBlocks; ++p)
                places.insert(kernels::quad_block_index(p, output, of));
            places.insert(kernels::quad_state_index(output, of));
            places.insert(kernels::quad_zero_index(output, of));
        }
    EXPECT_EQ(places.size(), kernels::kQuadWords);
    EXPECT_EQ(*places.rbegin(), kernels::kQuadWords - 1);
}

// A warp's 16 messages of every length there is, beside each other, each with zeros before it.
TEST(GcmQuads, HashesMessagesOfAnyLengthsBesideEachOther) {
    test::Random random(7);
    Words4 h;
    std::memcpy(&h, random.block().data(), sizeof h);
    const auto words = matrices(h);
    for (std::size_t round = 0; round < 12; ++round) {
        std::vector<TestMessage> messages;
        std::uint32_t steps = 0;
        for (std::size_t i = 0; i < kernels::kQuadWarpRows; ++i) {
            const std::size_t size = (round * 16 + i) * 37 % 300, aad = i % 3 == 0 ? 0 : i * 5 % 70;
            messages.push_back({random.bytes(aad), random.bytes(round == 0 ? i : size)});
            steps = std::max(steps,
                             QuadMessage(messages[i].aad.size(), messages[i].data.size()).steps());
        }
        steps += round % 2;  // no message need be as long as the group
        std::uint32_t hash[32][2] = {};
        for (std::uint32_t step = 0; step < steps; ++step) {
            Words4 blocks[32][2];
            for (std::uint32_t lane = 0; lane < 32; ++lane)
                for (std::uint32_t r = 0; r < 2; ++r) {
                    const TestMessage& m = messages[lane / 4 + 8 * r];
                    const QuadMessage its(m.aad.size(), m.data.size());
                    blocks[lane][r] = m.block(its.first_block(steps, lane % 4) +
                                              static_cast<std::int32_t>(4 * step));
                }
            hash_step(hash, blocks, words);
        }
        for (std::uint32_t i = 0; i < kernels::kQuadWarpRows; ++i) {
            const Words4 expected = messages[i].ghash(h);
            for (std::uint32_t t = 0; t < 4; ++t)
                ASSERT_EQ(hash[4 * (i % 8) + t][i / 8], word(expected, t)) << round << " " << i;
        }
    }
}

// The hardware's counts are at most 640, whose upper bits must not reach other counts' places.
TEST(GcmQuads, ParitiesOfTheLargestCounts) {
    for (const std::uint32_t value : {640u, 639u, 768u}) {
        std::uint32_t counts[64], words[2] = {};
        std::fill(std::begin(counts), std::end(counts), value);
        kernels::pack_parities(words, counts);
        EXPECT_EQ(words[0], value % 2 ? ~0u : 0u);
        EXPECT_EQ(words[1], value % 2 ? ~0u : 0u);
    }
}

class QuadPlanTest : public testing::Test {
  protected:
    void add(std::uint64_t size, std::uint64_t aad = 0, std::uint32_t key = 0) {
        Message m;
        m.size = size;
        m.aad_size = aad;
        m.key = key;
        list_.push_back(m);
    }
    std::uint32_t steps(std::uint32_t index) const {
        return QuadMessage(list_[index].aad_size, list_[index].size).steps();
    }
    // Each short message has one place, and groups are as the kernel wants them.
    void check(const cuda::QuadPlan& plan) const {
        std::multiset<std::uint32_t> placed, all;
        for (std::uint32_t i = 0; i < list_.size(); ++i)
            if (!cuda::is_long(list_[i])) all.insert(i);
        std::uint32_t before = ~0u;
        std::uint64_t taken = 0;
        ASSERT_EQ(plan.places.size(), plan.groups() * kQuadRows);
        for (std::uint32_t g = 0; g < plan.groups(); ++g) {
            const std::uint32_t* group = plan.places.data() + std::size_t{g} * kQuadRows;
            ASSERT_NE(group[0], kNoMessage);
            EXPECT_LE(steps(group[0]), before);
            before = steps(group[0]);
            taken += std::uint64_t{before} * kQuadRows;
            for (std::uint32_t i = 0; i < kQuadRows; ++i) {
                if (group[i] == kNoMessage) continue;
                placed.insert(group[i]);
                EXPECT_EQ(list_[group[i]].key, list_[group[0]].key);
                EXPECT_LE(steps(group[i]), before);
            }
        }
        EXPECT_EQ(placed, all);
        EXPECT_EQ(plan.taken, taken);
        EXPECT_LE(plan.useful, plan.taken);
    }

    std::vector<Message> list_;
};

TEST_F(QuadPlanTest, LengthsAndKeysInAnyOrder) {
    test::Random random(8);
    for (const std::uint32_t keys : {1, 3, 64}) {
        list_.clear();
        for (std::size_t i = 0; i < 5000; ++i)
            add(random.below(9000), random.below(4) == 0 ? random.below(600) : 0,
                static_cast<std::uint32_t>(random.below(keys)));
        const cuda::QuadPlan plan(list_);
        check(plan);
    }
}

TEST_F(QuadPlanTest, EqualMessagesStayAsTheyAre) {
    for (int i = 0; i < 4200; ++i) add(1024);
    const cuda::QuadPlan plan(list_);
    check(plan);
    EXPECT_TRUE(plan.pays());
    for (std::uint32_t i = 0; i < list_.size(); ++i) EXPECT_EQ(plan.places[i], i);
}

TEST_F(QuadPlanTest, ItTakesMoreLongMessagesThanShortOnes) {
    for (int i = 0; i < 8192; ++i) add(8192);
    EXPECT_FALSE(cuda::QuadPlan(list_).pays());
    for (int i = 0; i < 8192; ++i) add(8192);
    EXPECT_TRUE(cuda::QuadPlan(list_).pays());
    list_.clear();
    for (int i = 0; i < 3200; ++i) add(40);
    EXPECT_TRUE(cuda::QuadPlan(list_).pays());
}

TEST_F(QuadPlanTest, AKeyEachDoesNotPay) {
    for (std::uint32_t i = 0; i < 5000; ++i) add(1024, 0, i);
    const cuda::QuadPlan plan(list_);
    check(plan);
    EXPECT_FALSE(plan.pays());
}

TEST_F(QuadPlanTest, NoneAndLongOnesAlone) {
    EXPECT_EQ(cuda::QuadPlan(list_).groups(), 0u);
    for (int i = 0; i < 5000; ++i) add(100000);
    const cuda::QuadPlan plan(list_);
    check(plan);
    EXPECT_EQ(plan.groups(), 0u);
}

}  // namespace
