// SPDX-License-Identifier: Apache-2.0
// How the CUDA kernel of keystream's runs divides a list among its warps and counts, on the host.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "backends/cuda/keystream/work.hpp"
#include "modes/counter.hpp"
#include "support/keystream_runs.hpp"

namespace {

using namespace dael;
using namespace dael::test;

Block as_block(const kernels::Words4& words) {
    Block block;
    std::memcpy(block.data(), &words, sizeof block);
    return block;
}

// Runs from an address on, which nothing is written to.
cuda::KeystreamWork work_of(const std::vector<core::KeystreamRun>& runs) {
    cuda::KeystreamWork work{};
    for (const core::KeystreamRun& run : runs) cuda::add_run(work, run);
    return work;
}

// Every block of every run is some lane's of some worker, once, and has the counter that it should.
TEST(KeystreamKernel, MakesEachBlockOnceFromItsCounter) {
    Random random(80);
    for (const std::size_t count : {1u, 2u, 13u, 80u})
        for (const std::uint32_t most_workers : {1u, 16u, 77u, 512u}) {
            SCOPED_TRACE(count);
            auto runs = random_runs(random, count, 3);
            std::uintptr_t at = 4096 + 16 * random.below(8);
            for (core::KeystreamRun& run : runs) {
                run.out = reinterpret_cast<std::uint8_t*>(at);
                at += std::uintptr_t{run.blocks} * run.slots * 16 + 16 * random.below(12);
            }
            const cuda::KeystreamWork work = work_of(runs);
            ASSERT_EQ(work.count, count);
            std::map<std::uintptr_t, Block> made;
            const std::uint32_t workers = cuda::busy_workers(most_workers, work.rows);
            for (std::uint32_t worker = 0; worker < workers; ++worker) {
                cuda::RowWalk walk(work, workers, worker);
                ASSERT_FALSE(walk.over()) << "a worker without work";
                for (; !walk.over(); walk.step(work)) {
                    const cuda::RunEntry& run = work.runs[walk.run];
                    for (std::uint32_t lane = 0; lane < 32; ++lane) {
                        const std::uint32_t block = cuda::block_in(run, walk.row, lane);
                        if (block >= run.total) continue;
                        const auto to = reinterpret_cast<std::uintptr_t>(run.out) + block * 16u;
                        // Whole lines, but for a run's ends.
                        if (lane % cuda::kLineBlocks == 0) {
                            EXPECT_EQ(to % 128, 0u);
                        }
                        const Block counter = as_block(cuda::counter_in(run, block));
                        ASSERT_TRUE(made.emplace(to, counter).second) << "made twice";
                    }
                }
            }
            std::size_t blocks = 0;
            for (const core::KeystreamRun& run : runs)
                for (std::uint32_t slot = 0; slot < run.slots; ++slot)
                    for (std::uint32_t j = 0; j < run.blocks; ++j, ++blocks) {
                        const auto to = reinterpret_cast<std::uintptr_t>(run.out) +
                                        (std::uintptr_t{slot} * run.blocks + j) * 16;
                        const auto found = made.find(to);
                        ASSERT_NE(found, made.end());
                        const Block first =
                            modes::counter_add(run.first, std::uint64_t{slot} << 32);
                        ASSERT_EQ(found->second, modes::counter_add(first, j));
                    }
            EXPECT_EQ(made.size(), blocks);
        }
}

TEST(KeystreamKernel, TakesTheLargestRun) {
    core::KeystreamRun run;
    run.out = reinterpret_cast<std::uint8_t*>(std::uintptr_t{1} << 40 | 112);
    run.blocks = 1u << 15;
    run.slots = core::kMaxRunBlocks >> 15;
    const cuda::KeystreamWork work = work_of({run});
    EXPECT_EQ(work.rows, (core::kMaxRunBlocks + 7 + 31) / 32);
    cuda::RowWalk last(work, 512, 511);
    while (last.row + 1 < work.rows) last.step(work);
    EXPECT_EQ(cuda::block_in(work.runs[0], last.row, 6), core::kMaxRunBlocks - 1);
    EXPECT_EQ(as_block(cuda::counter_in(work.runs[0], core::kMaxRunBlocks - 1)),
              modes::counter_add(run.first, std::uint64_t{run.slots - 1} << 32 | (run.blocks - 1)));
}

TEST(KeystreamKernel, AListTakesWhatFitsAmongParameters) {
    cuda::KeystreamWork work{};
    core::KeystreamRun run;
    run.out = reinterpret_cast<std::uint8_t*>(std::uintptr_t{4096});
    run.blocks = run.slots = 1;
    for (std::uint32_t i = 0; i < cuda::kMaxRuns; ++i) EXPECT_TRUE(cuda::add_run(work, run));
    EXPECT_FALSE(cuda::add_run(work, run));
    EXPECT_EQ(work.count, cuda::kMaxRuns);
}

}  // namespace
