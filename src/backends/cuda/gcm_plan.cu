// SPDX-License-Identifier: Apache-2.0
// Before the work on a list in device memory: nonces for its messages, and its units of work, that
// is where each message's begin. Or after its short messages, whose kernel has told whether there
// are others: mostly there are none, and nothing is left to do.
//
// Each block of threads takes a run of the messages and reads them once. What it counted it tells
// the blocks after it, in words that say by their highest bit that they are there; it waits for
// those of the blocks before, which have begun, since blocks are numbered as they begin. So it is
// right with any grid, however many blocks there is room for at once.
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_work.hpp"

namespace dael::cuda {
namespace {

constexpr std::uint32_t kThreads = shapes::gcm_plan().threads;
constexpr std::uint64_t kTold = std::uint64_t{1} << 63;
// The result of a place of the list that has no message now.
constexpr auto kNoMessageHere = static_cast<std::uint32_t>(Code::internal);

// A new J0 for a message (SP 800-38D 7.1), from nonces that count.
__device__ void number(const GcmBatch& batch, std::uint64_t message, std::uint64_t nonce) {
    auto* const start =
        reinterpret_cast<std::uint32_t*>(const_cast<Block*>(&batch.messages[message].start));
    start[0] = *reinterpret_cast<const std::uint32_t*>(batch.nonces->fixed);
    start[1] = kernels::byte_swap(static_cast<std::uint32_t>(nonce >> 32));
    start[2] = kernels::byte_swap(static_cast<std::uint32_t>(nonce));
    start[3] = 0x01000000;
}

__device__ void put_start(const GcmBatch& batch, std::uint64_t message, const Units& at) {
    batch.aad.starts[message] = at.aad;
    batch.data.starts[message] = at.data;
    batch.groups.starts[message] = at.groups;
}

struct PlanShared {
    Units sums[kThreads];
    std::uint64_t found;  // what run of messages, counted from 1, last had units
    std::uint32_t block, last;
};
static_assert(sizeof(PlanShared) == shapes::gcm_plan().fixed);

// The sums of all threads' units up to each, in `sums`.
__device__ void sum_up(Units* sums, std::uint32_t thread, const Units& mine) {
    sums[thread] = mine;
    __syncthreads();
    for (std::uint32_t distance = 1; distance < kThreads; distance *= 2) {
        const Units before = thread >= distance ? sums[thread - distance] : Units{};
        __syncthreads();
        sums[thread] += before;
        __syncthreads();
    }
}

// What another block has told, once it has.
__device__ std::uint64_t told(const volatile std::uint64_t& word) {
    std::uint64_t value;
    do value = word;
    while ((value & kTold) == 0);
    return value & ~kTold;
}

__global__ void __launch_bounds__(kThreads) gcm_plan(const __grid_constant__ GcmBatch batch) {
    __shared__ PlanShared shared;
    let_the_next_begin();
    wait_for_those_before();
    PlanState& state = *batch.plan;
    const std::uint32_t thread = threadIdx.x, blocks = gridDim.x;
    const std::uint32_t count = number_of(batch.number, batch.count);
    if (batch.plan_later && state.any_long == 0) {
        for (std::uint64_t i = std::uint64_t{count} + blockIdx.x * kThreads + thread;
             i < batch.count; i += blocks * kThreads)
            batch.results[i] = kNoMessageHere;
        if (blockIdx.x == 0 && thread == 0) put_start(batch, batch.count, {});
        return;
    }
    if (thread == 0) {
        shared.block = atomicAdd(&state.begun, 1u);
        shared.found = 0;
    }
    __syncthreads();
    const std::uint32_t block = shared.block;
    const std::uint64_t first = batch.nonces ? batch.nonces->next : 0;
    const std::uint64_t from = share_start(batch.count, blocks, block),
                        to = share_start(batch.count, blocks, block + 1);

    Units all{};  // of this block's messages
    std::uint64_t run = 1;
    for (std::uint64_t begin = from; begin < to; begin += kThreads, ++run) {
        const std::uint64_t i = begin + thread;
        Units mine{};
        if (i < to && i < count) {
            if (batch.nonces) number(batch, i, first + i);
            mine = units_of(batch, i);
        } else if (i < to) {  // a place of the list that has no message now
            batch.results[i] = kNoMessageHere;
        }
        if (mine.any()) shared.found = run;
        __syncthreads();
        Units at = all;
        if (shared.found == run) {  // else all of them are short
            sum_up(shared.sums, thread, mine);
            if (thread != 0) at += shared.sums[thread - 1];
            all += shared.sums[kThreads - 1];
        }
        if (i < to) put_start(batch, i, at);
        __syncthreads();
    }

    if (thread == 0) {
        volatile std::uint64_t* const tell = &state.sums[block * 3];
        tell[0] = all.aad | kTold;
        tell[1] = all.data | kTold;
        tell[2] = all.groups | kTold;
    }
    Units before{};  // of the blocks before
    for (std::uint32_t b = thread; b < block; b += kThreads)
        before +=
            {told(state.sums[b * 3]), told(state.sums[b * 3 + 1]), told(state.sums[b * 3 + 2])};
    if (before.any()) shared.found = ~std::uint64_t{0};
    __syncthreads();
    if (shared.found == ~std::uint64_t{0}) {  // else nothing long has come before
        sum_up(shared.sums, thread, before);
        before = shared.sums[kThreads - 1];
        for (std::uint64_t i = from + thread; i < to; i += kThreads)
            put_start(
                batch, i,
                before + Units{batch.aad.starts[i], batch.data.starts[i], batch.groups.starts[i]});
    }
    if (block + 1 == blocks && thread == 0) put_start(batch, batch.count, before + all);

    // The last one leaves all as it was, and counts the nonces on that everybody has used.
    if (thread == 0) {
        __threadfence();
        shared.last = atomicAdd(&state.ended, 1u) + 1 == blocks;
    }
    __syncthreads();
    if (shared.last == 0) return;
    for (std::uint32_t i = thread; i < blocks * 3; i += kThreads) state.sums[i] = 0;
    if (thread != 0) return;
    state.begun = state.ended = state.any_long = 0;
    if (batch.nonces) batch.nonces->next += count;
}

}  // namespace

Kernel gcm_plan_kernel() {
    return {reinterpret_cast<const void*>(&gcm_plan), shapes::gcm_plan(), true};
}

}  // namespace dael::cuda
