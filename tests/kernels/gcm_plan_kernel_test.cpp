// SPDX-License-Identifier: Apache-2.0
// The kernel that plans lists in device memory, its own code, run on the host, while other launches
// of it come between its threads: they share the counter of nonces, or all of the batch.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

// clang-format off: in this order, as cuda_on_host.hpp says.
#include "kernels/cuda_on_host.hpp"

#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "support/test_batch.hpp"
#include "support/walks.hpp"

#undef __shared__
#define __shared__ static
#include "backends/cuda/gcm/plan.cu"
// clang-format on

namespace dael::cuda {
alignas(1024) unsigned char table_image[1024];
}

namespace dael::test {
namespace {

constexpr std::uint32_t kCount = 600, kBatches = 3;  // messages: more than a block has threads
constexpr std::uint64_t kLongest = 3 * cuda::kShortMessage;

// What a batch has in device memory, with room behind each array that nobody is to touch.
struct InMemory {
    static constexpr std::uint64_t kGuard = 0xeeee'eeee'eeee'eeee;
    Message list[kCount];
    std::uint32_t results[kCount], results_guard[64];
    std::uint64_t starts[3][kCount + 1], starts_guard[64];
    cuda::PlanState plan;
    std::uint64_t plan_guard[64];
};
struct Space {
    DeviceNonces nonces;
    std::uint32_t number;
    InMemory batches[kBatches];
};

// Memory that children of fork() share: each is a launch that comes between.
class GcmPlanKernel : public testing::Test {
  protected:
    void SetUp() override {
        void* const memory =
            mmap(nullptr, sizeof(Space), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        space_ = static_cast<Space*>(memory);
        static std::uint8_t data[16];
        for (InMemory& b : space_->batches) {
            for (std::uint32_t i = 0; i < kCount; ++i)
                b.list[i] = {.in = data,
                             .out = data,
                             .size = i % 7 == 3 ? kLongest : 16,
                             .tag = data,
                             .start = {}};
            std::memset(b.results_guard, 0xee, sizeof b.results_guard);
            std::memset(b.starts_guard, 0xee, sizeof b.starts_guard);
            std::memset(b.plan_guard, 0xee, sizeof b.plan_guard);
        }
        space_->nonces = {{1, 2, 3, 4}, 0, 1000};
        space_->number = kCount;
    }
    void TearDown() override {
        HostBlock::before() = nullptr;
        if (space_) munmap(space_, sizeof(Space));
    }

    cuda::GcmBatch batch(std::uint32_t which) const {
        InMemory& its = space_->batches[which];
        cuda::GcmBatch b{};
        b.messages = its.list;
        b.number = &space_->number;
        b.nonces = &space_->nonces;
        b.results = its.results;
        b.aad.starts = its.starts[0];
        b.data.starts = its.starts[1];
        b.groups.starts = its.starts[2];
        b.count = kCount;
        b.key_count = 1;
        b.tag_size = 16;
        b.plan = &its.plan;
        return b;
    }
    void plan(std::uint32_t which, unsigned blocks) const {
        const cuda::GcmBatch b = batch(which);
        launch_blocks(blocks, cuda::shapes::gcm_plan().threads, [&] { cuda::gcm_plan(b); });
    }
    // Launches `which`, and `between` when it is `turn` steps on. False: that did not come to its
    // end.
    template <class Between>
    bool plan_with(std::uint32_t which, unsigned blocks, unsigned turn, Between between) const {
        bool ended = true;
        unsigned turns = 0;
        HostBlock::before() = [&](unsigned, std::uint64_t) {
            if (turns++ != turn) return;
            const pid_t child = fork();
            if (child == 0) {
                alarm(120);
                HostBlock::before() = nullptr;
                between();
                _exit(0);
            }
            int status = 0;
            ended = waitpid(child, &status, 0) == child && WIFEXITED(status);
        };
        plan(which, blocks);
        HostBlock::before() = nullptr;
        return ended && turns > turn;
    }
    // Nobody has written beside the arrays.
    void expect_guards() const {
        for (const InMemory& b : space_->batches) {
            for (const std::uint32_t word : b.results_guard)
                ASSERT_EQ(word, static_cast<std::uint32_t>(InMemory::kGuard));
            for (const std::uint64_t word : b.starts_guard) ASSERT_EQ(word, InMemory::kGuard);
            for (const std::uint64_t word : b.plan_guard) ASSERT_EQ(word, InMemory::kGuard);
        }
    }
    // All launches of a batch have as many blocks.
    void begin_anew() const {
        for (InMemory& b : space_->batches) b.plan = {};
    }
    // The starts of a batch's messages, each found once.
    void add_starts(std::uint32_t which, std::uint32_t count, std::multiset<Block>& all) const {
        for (std::uint32_t i = 0; i < count; ++i) all.insert(space_->batches[which].list[i].start);
    }
    void expect_planned(std::uint32_t which) const {
        const cuda::GcmBatch b = batch(which);
        cuda::Units at{};
        for (std::uint32_t i = 0; i <= kCount; ++i) {
            ASSERT_EQ(b.data.starts[i], at.data) << i;
            ASSERT_EQ(b.groups.starts[i] >= at.data, true) << i;
            if (i != kCount) at += cuda::units_of(b, i);
        }
    }

    Space* space_ = nullptr;
};

std::size_t repeated(const std::multiset<Block>& starts) {
    return starts.size() - std::set<Block>(starts.begin(), starts.end()).size();
}

TEST_F(GcmPlanKernel, LaunchesThatShareACounterHaveDifferentNonces) {
    for (const unsigned blocks : {1u, 2u, 5u}) {
        begin_anew();
        for (const unsigned turn : {0u, 1u, 300u, 511u}) {
            space_->nonces.next = 1000;
            ASSERT_TRUE(plan_with(0, blocks, turn, [&] {
                plan(1, blocks);
                plan(2, blocks);
            }));
            std::multiset<Block> starts;
            for (std::uint32_t b = 0; b < kBatches; ++b) add_starts(b, kCount, starts);
            EXPECT_EQ(repeated(starts), 0u) << blocks << " blocks, turn " << turn;
            EXPECT_EQ(space_->nonces.next, 1000 + std::uint64_t{kBatches} * kCount);
            for (std::uint32_t b = 0; b < kBatches; ++b) expect_planned(b);
            expect_guards();
        }
    }
}

// The number of messages may be written anew while a launch is under way: none is numbered beyond
// what was reserved.
TEST_F(GcmPlanKernel, WhatIsNumberedWasReserved) {
    space_->number = 5;
    ASSERT_TRUE(plan_with(0, 2, 530, [&] { space_->number = kCount; }));
    EXPECT_EQ(space_->nonces.next, 1005u);
    plan(1, 2);
    std::multiset<Block> starts;
    add_starts(0, 5, starts);
    add_starts(1, kCount, starts);
    EXPECT_EQ(repeated(starts), 0u);
    for (std::uint32_t i = 5; i < kCount; ++i)
        ASSERT_EQ(space_->batches[0].list[i].start, Block{}) << i;
}

// AEGIS's lists are numbered and have no units: nonces with zeros behind what counts.
TEST_F(GcmPlanKernel, NumbersAloneForAegis) {
    space_->number = 590;
    InMemory& its = space_->batches[0];
    for (Message& m : its.list) m.start_rest.fill(0xee);
    cuda::GcmBatch b = batch(0);
    b.only_numbers = 1;
    b.aad.starts = b.data.starts = b.groups.starts = nullptr;
    launch_blocks(3, cuda::shapes::gcm_plan().threads, [&] { cuda::gcm_plan(b); });
    EXPECT_EQ(space_->nonces.next, 1590u);
    EXPECT_EQ(its.plan.number, 590u);
    for (std::uint32_t i = 0; i < kCount; ++i) {
        if (i >= 590) {
            EXPECT_EQ(its.results[i], cuda::kNotRun);
            EXPECT_EQ(its.list[i].start, Block{});
            continue;
        }
        const std::uint32_t n = 1000 + i;
        const Block want{1,
                         2,
                         3,
                         4,
                         0,
                         0,
                         0,
                         0,
                         0,
                         0,
                         static_cast<std::uint8_t>(n >> 8),
                         static_cast<std::uint8_t>(n)};
        ASSERT_EQ(its.list[i].start, want) << i;
        ASSERT_EQ(its.list[i].start_rest, Block{}) << i;
    }
    expect_guards();
}

// At the counter's end nothing is numbered, nothing is done, and the counter stays.
TEST_F(GcmPlanKernel, TooFewNoncesAreRefused) {
    for (const std::uint64_t left :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{kCount - 1}}) {
        for (InMemory& b : space_->batches) b.list[7].start = {};
        space_->nonces.next = ~std::uint64_t{0} - left;
        for (const unsigned blocks : {1u, 3u}) {
            begin_anew();
            plan(0, blocks);
            EXPECT_EQ(space_->nonces.next, ~std::uint64_t{0} - left);
            const InMemory& b = space_->batches[0];
            EXPECT_EQ(b.plan.number, 0u);  // for the kernels that follow
            for (std::uint32_t i = 0; i < kCount; ++i) {
                ASSERT_EQ(static_cast<Code>(b.results[i]), Code::limit) << i;
                ASSERT_EQ(b.list[i].start, Block{}) << i;
            }
            for (const auto& starts : b.starts) ASSERT_EQ(starts[kCount], 0u);
        }
    }
    // The last that there are.
    space_->nonces.next = ~std::uint64_t{0} - kCount;
    plan(0, 3);
    EXPECT_EQ(space_->nonces.next, ~std::uint64_t{0});
    EXPECT_EQ(space_->batches[0].plan.number, kCount);
    std::multiset<Block> starts;
    add_starts(0, kCount, starts);
    EXPECT_EQ(repeated(starts), 0u);
}

// What the order of a batch's runs is there to prevent: both come to their end, write nothing
// beside their arrays, and what is launched after them is right.
TEST_F(GcmPlanKernel, TwoLaunchesOfOneBatchAtOnce) {
    for (const unsigned blocks : {1u, 2u, 5u}) {
        begin_anew();
        for (const unsigned turn : {0u, 1u, 300u, 511u}) {
            space_->nonces.next = 1000;
            ASSERT_TRUE(plan_with(0, blocks, turn, [&] { plan(0, blocks); })) << turn;
            EXPECT_EQ(space_->nonces.next, 1000 + 2 * std::uint64_t{kCount});
            std::multiset<Block> starts;
            add_starts(0, kCount, starts);
            EXPECT_EQ(repeated(starts), 0u);
            plan(0, blocks);
            add_starts(0, kCount, starts);
            EXPECT_EQ(repeated(starts), 0u);
            expect_planned(0);
            expect_guards();
        }
    }
}

// Launches of several batches, with one counter, that come into each other anywhere and as deep as
// three.
TEST_F(GcmPlanKernel, RandomInterleavings) {
    for (Walks walks("plans", 60); walks.next();) {
        SCOPED_TRACE(walks.text());
        Random random(walks.seed());
        walks.step();
        begin_anew();
        space_->nonces.next = random.below(2) != 0 ? 1000 : 0xffff'fe00;
        const std::uint64_t begin = space_->nonces.next;
        const unsigned blocks = 1 + static_cast<unsigned>(random.below(4));
        const auto turn = [&] { return static_cast<unsigned>(random.below(513 * blocks)); };
        const unsigned outer = turn(), inner = turn();
        bool ended = plan_with(0, blocks, outer, [&] {
            if (!plan_with(1, blocks, inner, [&] { plan(2, blocks); })) _exit(1);
        });
        ASSERT_TRUE(ended);
        std::multiset<Block> starts;
        for (std::uint32_t b = 0; b < kBatches; ++b) add_starts(b, kCount, starts);
        ASSERT_EQ(repeated(starts), 0u);
        ASSERT_EQ(space_->nonces.next, begin + std::uint64_t{kBatches} * kCount);
        expect_guards();
    }
}

}  // namespace
}  // namespace dael::test
