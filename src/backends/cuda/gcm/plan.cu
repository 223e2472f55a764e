// SPDX-License-Identifier: Apache-2.0
// Before the work on a list in device memory: nonces for its messages, and its units of work, that
// is where each message's begin. Or after its short messages, whose kernel has told whether there
// are others: mostly there are none, and nothing is left to do.
//
// Each block of threads takes a run of the messages and reads them once. What it counted it tells
// the blocks after it, in words that say of which round they are; it waits for those of the blocks
// before, which have begun, since blocks are numbered as they begin. So it is right with any grid,
// however many blocks there is room for at once. Where two launches of a batch meet all the same,
// which the order of its runs is there to prevent, each block is still one of a whole round: nobody
// waits for ever or writes beside its arrays, and no nonce is given twice.
//
// Nonces are reserved before any is used, in one step, so that launches that share the counter have
// different ones in any order.
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/work.hpp"

namespace dael::cuda {
namespace {

constexpr std::uint32_t kThreads = shapes::gcm_plan().threads;
// A word told: its value, and above it the round, which is never 0.
constexpr std::uint32_t kValueBits = 56, kTags = 255;
constexpr std::uint64_t kValue = (std::uint64_t{1} << kValueBits) - 1;
// In what block 0 tells of the nonces: there are too few left, and nobody gets any.
constexpr std::uint64_t kRefused = std::uint64_t{1} << 32;

// A new J0 for a message (SP 800-38D 7.1), or a new nonce of AEGIS, from nonces that count.
__device__ void number(const GcmBatch& batch, std::uint64_t message, std::uint64_t nonce) {
    auto* const start =
        reinterpret_cast<std::uint32_t*>(const_cast<Block*>(&batch.messages[message].start));
    start[0] = *reinterpret_cast<const std::uint32_t*>(batch.nonces->fixed);
    start[1] = kernels::byte_swap(static_cast<std::uint32_t>(nonce >> 32));
    start[2] = kernels::byte_swap(static_cast<std::uint32_t>(nonce));
    start[3] = batch.only_numbers ? 0 : 0x01000000;
    if (!batch.only_numbers) return;
    auto* const rest =
        reinterpret_cast<std::uint32_t*>(const_cast<Block*>(&batch.messages[message].start_rest));
    for (std::uint32_t i = 0; i < 4; ++i) rest[i] = 0;
}

__device__ void put_start(const GcmBatch& batch, std::uint64_t message, const Units& at) {
    if (batch.only_numbers) return;
    batch.aad.starts[message] = at.aad;
    batch.data.starts[message] = at.data;
    batch.groups.starts[message] = at.groups;
}

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

// A block's place in its round, and the round's among those of the batch.
struct Round {
    std::uint32_t block, slot, tag;

    __device__ static Round of(std::uint64_t begun, std::uint32_t blocks) {
        const std::uint64_t round = begun / blocks;
        return {static_cast<std::uint32_t>(begun - round * blocks),
                static_cast<std::uint32_t>(round % kPlanRounds),
                static_cast<std::uint32_t>(round % kTags) + 1};
    }
    __device__ void tell(volatile std::uint64_t& word, std::uint64_t value) const {
        word = value | std::uint64_t{tag} << kValueBits;
    }
    // What another block has told, once it has; of this round or, where others have overtaken it,
    // of a later one.
    __device__ std::uint64_t told(const volatile std::uint64_t& word) const {
        std::uint64_t value;
        do value = word;
        while (!is_new(static_cast<std::uint32_t>(value >> kValueBits)));
        return value & kValue;
    }

    // Whether it is of this very round.
    __device__ bool has_told(const volatile std::uint64_t& word) const {
        return static_cast<std::uint32_t>(word >> kValueBits) == tag;
    }

  private:
    __device__ bool is_new(std::uint32_t told) const {
        return told != 0 && (told + kTags - tag) % kTags < kTags / 2;
    }
};

// What a block's first thread tells the others at the beginning, where sums lie later.
struct Beginning {
    Round round;
    std::uint64_t granted, first;
};
struct PlanShared {
    Units sums[kThreads];
    std::uint64_t found;  // what run of messages, counted from 1, last had units
    std::uint64_t unused;
};
static_assert(sizeof(PlanShared) == shapes::gcm_plan().fixed);

// The next `count` nonces, for nobody else. False: there are not so many left, and all is as it
// was: a counter that begins anew would repeat what it has had.
__device__ bool reserve(DeviceNonces& nonces, std::uint32_t count, std::uint64_t& first) {
    auto* const next = reinterpret_cast<unsigned long long*>(&nonces.next);
    unsigned long long now = *const_cast<const volatile unsigned long long*>(next);
    for (;;) {
        if (count > ~now) return false;
        const unsigned long long was = atomicCAS(next, now, now + count);
        if (was == now) break;
        now = was;
    }
    first = now;
    return true;
}

// By one thread of block 0, before all others go on.
__device__ void grant(const GcmBatch& batch, const Round& round, std::uint32_t count) {
    PlanState& state = *batch.plan;
    std::uint64_t first = 0;
    const bool granted = reserve(*batch.nonces, count, first);
    const_cast<volatile std::uint64_t&>(state.granted[round.slot]) = 0;  // of a round that is over
    __threadfence();
    const_cast<volatile std::uint64_t&>(state.first[round.slot]) = first;
    const_cast<volatile std::uint32_t&>(state.number) = granted ? count : 0;
    __threadfence();
    round.tell(state.granted[round.slot], granted ? count : kRefused);
}

__global__ void __launch_bounds__(kThreads) gcm_plan(const __grid_constant__ GcmBatch batch) {
    __shared__ PlanShared shared;
    let_the_next_begin();
    wait_for_those_before();
    PlanState& state = *batch.plan;
    const std::uint32_t thread = threadIdx.x, blocks = gridDim.x;
    std::uint32_t count = number_of(batch.number, batch.count);
    if (batch.plan_later && state.any_long == 0) {
        for (std::uint64_t i = std::uint64_t{count} + blockIdx.x * kThreads + thread;
             i < batch.count; i += blocks * kThreads)
            batch.results[i] = kNotRun;
        if (blockIdx.x == 0 && thread == 0) put_start(batch, batch.count, {});
        return;
    }
    auto& told = reinterpret_cast<Beginning&>(shared.sums);
    if (thread == 0) {
        const Round round =
            Round::of(atomicAdd(reinterpret_cast<unsigned long long*>(&state.begun), 1ull), blocks);
        told.round = round;
        shared.found = 0;
        if (batch.nonces) {
            if (round.block == 0) grant(batch, round, count);
            told.granted = round.told(state.granted[round.slot]);
            __threadfence();
            told.first = const_cast<const volatile std::uint64_t&>(state.first[round.slot]);
            __threadfence();
            // Overtaken by all rounds, the nonces are another one's: whoever has not read them gets
            // none.
            if (!round.has_told(state.granted[round.slot])) told.granted = kRefused;
        }
    }
    __syncthreads();
    const Round round = told.round;
    const std::uint32_t block = round.block;
    // Of a list without nonces all that has been said.
    const std::uint64_t granted = batch.nonces ? told.granted : count, first = told.first;
    const std::uint32_t listed = count;
    count = granted >= kRefused ? 0 : static_cast<std::uint32_t>(granted);
    const std::uint64_t from = share_start(batch.count, blocks, block),
                        to = share_start(batch.count, blocks, block + 1);

    Units all{};  // of this block's messages
    std::uint64_t run = 1;
    for (std::uint64_t begin = from; begin < to; begin += kThreads, ++run) {
        const std::uint64_t i = begin + thread;
        Units mine{};
        if (i < to && i < count) {
            if (batch.nonces) number(batch, i, first + i);
            if (!batch.only_numbers) mine = units_of(batch, i);
        } else if (i < to) {  // a place of the list that has no message now, or none with a nonce
            batch.results[i] = granted >= kRefused && i < listed
                                   ? static_cast<std::uint32_t>(Code::limit)
                                   : kNotRun;
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
        std::uint64_t* const tell = &state.sums[block * 3];
        round.tell(tell[0], all.aad);
        round.tell(tell[1], all.data);
        round.tell(tell[2], all.groups);
    }
    Units before{};  // of the blocks before
    for (std::uint32_t b = thread; b < block; b += kThreads)
        before += {round.told(state.sums[b * 3]), round.told(state.sums[b * 3 + 1]),
                   round.told(state.sums[b * 3 + 2])};
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

    // What the short messages' kernel told is done with once every block has seen it.
    if (!batch.plan_later || thread != 0) return;
    __threadfence();
    const auto ended = atomicAdd(reinterpret_cast<unsigned long long*>(&state.ended), 1ull) + 1;
    if (ended % blocks == 0) state.any_long = 0;
}

}  // namespace

Kernel gcm_plan_kernel() {
    return {reinterpret_cast<const void*>(&gcm_plan), shapes::gcm_plan(), true};
}

}  // namespace dael::cuda
