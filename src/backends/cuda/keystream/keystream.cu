// SPDX-License-Identifier: Apache-2.0
// Keystream of runs of counters, under any keys, written where the host reads it. What bounds it is
// the bus, so that a few multiprocessors are enough and counters are not cached: several launches
// run side by side.
#include "backends/cuda/keys/warp_keys.cuh"
#include "backends/cuda/keystream/kernel.hpp"

namespace dael::cuda {
namespace {

using kernels::kLanes;

constexpr std::uint32_t kWarps = shapes::kKeystreamWarps;

template <int kRounds>
__device__ __forceinline__ void write_row(const kernels::Tables<1, false>& tables,
                                          const RoundKeys& keys, const RunEntry& run,
                                          std::uint32_t block) {
    if (block >= run.total) return;
    store_aligned(run.out + std::uint64_t{block} * 16,
                  kernels::crypt_masked<kRounds>(tables, keys, counter_in(run, block), {}));
}

// The last thread block of a launch says that all is written. Each has its threads' stores behind
// it when its first thread arrives, and the fences put those, of all thread blocks, before what is
// said (PTX ISA, memory consistency model: barriers and fences are cumulative).
__device__ __forceinline__ void arrive(const KeystreamWork& work) {
    __syncthreads();
    if (threadIdx.x != 0 || !work.done) return;
    __threadfence_system();
    if (atomicInc(work.arrived, gridDim.x - 1) != gridDim.x - 1) return;  // the last makes it 0
    __threadfence_system();
    *static_cast<volatile std::uint32_t*>(work.done) = work.ticket;
}

__global__ void __launch_bounds__(kWarps* kLanes)
    keystream_runs(const __grid_constant__ KeystreamWork work) {
    const auto tables = fill_tables<1, false>();
    const std::uint32_t warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    const WarpKeys warp_keys(kernels::Tables<1, false>::kBytes, warp);
    const std::uint32_t workers = busy_workers(gridDim.x * kWarps, work.rows),
                        worker = warp * gridDim.x + blockIdx.x;
    if (worker < workers) {
        std::uint32_t loaded = ~0u, rounds = 0;
#pragma unroll 1
        for (RowWalk walk(work, workers, worker); !walk.over(); walk.step(work)) {
            const RunEntry& run = work.runs[walk.run];
            if (run.key != loaded) {
                loaded = run.key;
                const GcmKey& key = work.keys[run.key];
                rounds = key.rounds;
                warp_keys.load(key);
            }
            const std::uint32_t block = block_in(run, walk.row, lane);
            if (rounds == 10)
                write_row<10>(tables, warp_keys.keys(), run, block);
            else if (rounds == 12)
                write_row<12>(tables, warp_keys.keys(), run, block);
            else
                write_row<14>(tables, warp_keys.keys(), run, block);
        }
    }
    warp_keys.wipe();
    arrive(work);
}

}  // namespace

Kernel keystream_runs_kernel() {
    return {reinterpret_cast<const void*>(&keystream_runs), shapes::keystream_runs()};
}

}  // namespace dael::cuda
