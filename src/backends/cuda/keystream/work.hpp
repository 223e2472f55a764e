// SPDX-License-Identifier: Apache-2.0
// Runs of keystream (core/keystream_maker.hpp) as a kernel has them: a list among its parameters,
// whose blocks are shared out in rows of 32, a warp's at once.
//
// Rows begin where lines of 128 bytes do, so that a warp writes whole lines: over a bus each part
// of a line would cost as much as a line. The first row of a run may begin before it, by up to
// kLineBlocks - 1 blocks that are somebody else's, and the last may end after it.
#pragma once

#include <cstring>

#include "backends/cuda/gcm/work.hpp"
#include "core/keystream_maker.hpp"

namespace dael::cuda {

inline constexpr std::uint32_t kLineBlocks = 8;

struct RunEntry {
    unsigned char* out;
    Words4 first;          // counter, words in the order of memory
    std::uint32_t key;     // index
    std::uint32_t blocks;  // of a slot
    std::uint32_t total;   // of all slots
    std::uint32_t row;     // the first of its rows, of all that the list has
};

// What 4 KiB of parameters hold: every launch copies them all, and few lists are longer.
inline constexpr std::uint32_t kMaxRuns = 80;

struct KeystreamWork {
    const GcmKey* keys;
    std::uint32_t* arrived;  // device memory, 0 between launches: thread blocks that are done
    std::uint32_t* done;     // page-locked: gets `ticket` when all are; null: nobody asks
    std::uint32_t ticket;
    std::uint32_t count;  // of runs
    std::uint32_t rows;   // of all runs
    RunEntry runs[kMaxRuns];
};
static_assert(sizeof(RunEntry) == 48 && sizeof(KeystreamWork) <= 4096);

// Blocks of the line that a run begins in that come before it.
DAEL_HD std::uint32_t lead_of(const void* out) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(out) / 16 % kLineBlocks);
}
DAEL_HD std::uint32_t rows_of(const void* out, std::uint32_t total) {
    return (lead_of(out) + total + kernels::kLanes - 1) / kernels::kLanes;
}

// On the host: one run more. False: the list is full.
inline bool add_run(KeystreamWork& work, const core::KeystreamRun& run) {
    if (work.count == kMaxRuns) return false;
    RunEntry& entry = work.runs[work.count++];
    entry.out = run.out;
    std::memcpy(&entry.first, run.first.data(), sizeof entry.first);
    entry.key = run.key;
    entry.blocks = run.blocks;
    entry.total = run.blocks * run.slots;
    entry.row = work.rows;
    work.rows += rows_of(run.out, entry.total);
    return true;
}

// The run that has a row, which must exist.
DAEL_HD std::uint32_t run_of(const KeystreamWork& work, std::uint32_t row) {
    std::uint32_t low = 0, high = work.count;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        (work.runs[middle].row <= row ? low : high) = middle;
    }
    return low;
}

// A worker's rows, one after another, of `workers` that all have some.
struct RowWalk {
    DAEL_HD RowWalk(const KeystreamWork& work, std::uint32_t workers, std::uint32_t worker)
        : row(static_cast<std::uint32_t>(share_start(work.rows, workers, worker))),
          end(static_cast<std::uint32_t>(share_start(work.rows, workers, worker + 1))),
          run(run_of(work, row)) {}
    DAEL_HD bool over() const { return row >= end; }
    DAEL_HD void step(const KeystreamWork& work) {
        ++row;
        if (run + 1 < work.count && row >= work.runs[run + 1].row) ++run;  // none has no rows
    }
    std::uint32_t row, end, run;
};

// Which block of its run a lane has in a row: below `total`, or it has none.
DAEL_HD std::uint32_t block_in(const RunEntry& run, std::uint32_t row, std::uint32_t lane) {
    return (row - run.row) * kernels::kLanes + lane - lead_of(run.out);
}
DAEL_HD Words4 counter_in(const RunEntry& run, std::uint32_t block) {
    const std::uint32_t slot = block / run.blocks;
    return kernels::counter_block(run.first,
                                  std::uint64_t{slot} << 32 | (block - slot * run.blocks));
}

}  // namespace dael::cuda
