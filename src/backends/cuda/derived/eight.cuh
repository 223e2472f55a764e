// SPDX-License-Identifier: Apache-2.0
// Short messages of XAES-256-GCM and AES-GCM-SIV: a warp takes eight from their keys to their tags.
// A quad of lanes hashes one, four blocks at a time: lane t steps with H^4, two steps in one sum of
// products, and owes H^(5 - t) at last, of which one H is for the block of sizes. Four or eight
// lanes encrypt one.
#pragma once

#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/derived/derive.cuh"
#include "backends/cuda/gcm/math.cuh"

namespace dael::cuda {

__device__ __forceinline__ std::uint32_t warp_most(std::uint32_t v) {
#pragma unroll
    for (int distance = 16; distance != 0; distance /= 2) {
        const std::uint32_t other = __shfl_xor_sync(~0u, v, distance);
        v = other > v ? other : v;
    }
    return v;
}

// What one lane of a quad hashes of a message, less than 2^31 blocks: AAD and data, zeros before.
struct EightRow {
    __device__ __forceinline__ EightRow(const Message& m, const unsigned char* its_data, bool ours,
                                        std::uint32_t steps, std::uint32_t t)
        : message(m), data(its_data) {
        const kernels::QuadMessage blocks(m.aad_size, m.size);
        block = static_cast<std::int32_t>(t + blocks.data_blocks - 4 * steps);
        first = ours ? -static_cast<std::int32_t>(blocks.aad_blocks) : 0x7fffffff;
        end = static_cast<std::int32_t>(blocks.data_blocks);
        whole = ours && aligned16(data, data) ? static_cast<std::uint32_t>(m.size / 16) : 0;
    }
    // The next block, four further on.
    __device__ __forceinline__ Words4 next() {
        Words4 x{};
        if (static_cast<std::uint32_t>(block) < whole) {
            x = load_global(data + std::int64_t{block} * 16);
        } else if (block >= first && block < end) {
            const std::uint64_t at =
                std::uint64_t{static_cast<std::uint32_t>(block < 0 ? block - first : block)} * 16;
            x = block < 0 ? load_bytes(message.aad + at, bytes_of(message.aad_size, at))
                          : load_bytes(data + at, bytes_of(message.size, at));
        }
        block += 4;
        return x;
    }
    const Message& message;
    const unsigned char* const data;
    std::int32_t block, first, end;
    std::uint32_t whole;
};

// The hash of a quad's message in all its lanes. `steps` is even.
template <bool kSiv>
__device__ __forceinline__ Words4 hash_quad(EightRow& row, std::uint32_t steps, const Words4& h) {
    const std::uint32_t t = threadIdx.x % 4;
    const Words4 h2 = kernels::gf_square(h), h4 = kernels::gf_square(h2);
    const Words4 odd = kernels::gf_multiply(choose(t == 0, h4, h2), h);  // H^5 or H^3
    const Words4 owed = choose(t % 2 == 0, odd, choose(t == 1, h4, h2));
    const kernels::KaratsubaWords step[2] = {kernels::KaratsubaWords(kernels::gf_square(h4)),
                                             kernels::KaratsubaWords(h4)};
    Words4 sum{}, ahead[2] = {row.next(), row.next()};
#pragma unroll 1
    for (std::uint32_t i = 0; i < steps; i += 2) {
        const Words4 x = hashed<kSiv>(ahead[0]), y = hashed<kSiv>(ahead[1]);
        ahead[0] = row.next();
        ahead[1] = row.next();
        sum = y ^ kernels::gf_sum_of_products<2>(
                      {kernels::KaratsubaWords(sum), kernels::KaratsubaWords(x)}, step);
    }
    const Words4 sizes = choose(t == 3, lengths_of<kSiv>(row.message), Words4{});
    sum = kernels::gf_multiply_add(sum, owed, sizes, h);
    sum = sum ^ shuffle_xor(sum, 1);
    return sum ^ shuffle_xor(sum, 2);
}

// Data of the slots of which `which` has a bit, `mine` the index and `start` the first counter in
// lane `slot`. `back`: what lies in `out` is encrypted again.
template <class F>
__device__ __forceinline__ void crypt_slots(const typename F::Tables& tables,
                                            const SharedKeys* schedules, const Message* messages,
                                            std::uint32_t which, std::uint32_t mine,
                                            const Words4& start, std::uint32_t width, bool back) {
    const std::uint32_t lane = threadIdx.x % kLanes;
#pragma unroll 1
    for (std::uint32_t from = 0; from < kDerivedMessages; from += kLanes / width) {
        const std::uint32_t slot = from + lane / width;
        const Message& m = messages[__shfl_sync(~0u, mine, slot)];
        const Words4 first = shuffle(start, slot);
        if (which >> slot & 1)
            crypt_blocks<F>(tables, schedules[slot], first, back ? m.out : m.in, m.out, m.size,
                            lane % width, width);
    }
    __syncwarp();
}

// What was decrypted and is forged: in place it is encrypted again, apart it is wiped. Apart from
// the code that every message takes.
template <class F>
__device__ __noinline__ void undo_slots(const SharedKeys* schedules, const Message* messages,
                                        std::uint32_t which, std::uint32_t mine, Words4 start,
                                        std::uint32_t width) {
    const auto tables = view_derived<F>();
    const Message& its = messages[mine];
    const std::uint32_t in_place = __ballot_sync(~0u, its.in == its.out) & which;
    if (in_place != 0)
        crypt_slots<F>(tables, schedules, messages, in_place, mine, start, width, true);
#pragma unroll 1
    for (std::uint32_t left = which & ~in_place; left != 0; left &= left - 1) {
        const Message& m = messages[__shfl_sync(~0u, mine, __ffs(static_cast<int>(left)) - 1)];
        wipe_blocks(m.out, m.size, threadIdx.x % kLanes, kLanes);
    }
    __threadfence();
    __syncwarp();
}

template <class F>
struct Eight {
    const DerivedBatch& batch;
    const Message* const messages;
    Deriver<F>& deriver;

    template <bool kOpen>
    __device__ __forceinline__ void run(bool listed, std::uint32_t mine) const {
        const std::uint32_t lane = threadIdx.x % kLanes, slot = lane % kDerivedMessages,
                            q = lane / 4;
        const bool tells = lane < kDerivedMessages;
        bool ours = false;
        if (listed) {
            const Message& m = messages[mine];
            bool other = false;
            const Code code = standing<F>(batch, m, other);
            ours = code == Code::ok && !other && !is_long(batch, m);
            if (tells && batch.results) {
                if (code != Code::ok)
                    batch.results[mine] = static_cast<std::uint32_t>(code);
                else if (!ours && batch.reset)
                    batch.results[mine] = kNotRun;
            }
        }
        const std::uint32_t owners = __ballot_sync(~0u, ours);
        if (owners == 0) return;
        const std::uint32_t another = __shfl_sync(~0u, mine, __ffs(static_cast<int>(owners)) - 1);
        if (!ours) mine = another;
        const std::uint32_t valid = owners & 0xff;
        const Message& its = messages[mine];
        const Words4 nonce = start_of(its);
        Words4 h, mask;
        deriver.derive(batch.keys[its.key], its.key, nonce, rest_of(its), h, mask);

        const kernels::QuadMessage size(its.aad_size, its.size);
        const std::uint32_t most = warp_most(size.data_blocks),
                            longest = warp_most(size.data_blocks + size.aad_blocks),
                            steps = (longest + 7) / 8 * 2;
        // Eight lanes to a message, where that takes hardly more than four.
        const std::uint32_t width = (most + 7) / 8 * 8 * 8 <= (most + 3) / 4 * 4 * 9 ? 8 : 4;
        const Message& quads = messages[__shfl_sync(~0u, mine, q)];
        const bool quads_ours = (valid >> q & 1) != 0;
        const Words4 quads_h = shuffle(h, q);
        Words4 start = add32(kernels::xaes_j0(nonce, rest_of(its)), 1);
        const auto crypt = [&](std::uint32_t which) {
            crypt_slots<F>(deriver.tables(), &deriver.schedule(0), messages, which, mine, start,
                           width, false);
        };
        const auto hash = [&] {
            EightRow row(quads, F::kSiv == kOpen ? quads.out : quads.in, quads_ours, steps,
                         lane % 4);
            const Words4 sum = hash_quad<F::kSiv>(row, steps, quads_h);
            return shuffle(sum, slot * 4);  // to the slot's lanes
        };
        const auto tag_of = [&](const Words4& sum) {
            if constexpr (F::kSiv)
                return deriver.encrypt(deriver.schedule(slot),
                                       kernels::siv_tag_block(kernels::reversed(sum), nonce));
            else
                return sum ^ shuffle(mask, slot + 8);
        };
        if constexpr (!kOpen) {
            Words4 tag;
            if constexpr (F::kSiv) {
                tag = tag_of(hash());
                start = kernels::siv_counter(tag);
                crypt(valid);
            } else {
                crypt(valid);
                tag = tag_of(hash());
            }
            if (!ours || !tells) return;
            store_bytes(its.tag, tag, 16);
            if (batch.results) batch.results[mine] = static_cast<std::uint32_t>(Code::ok);
        } else {
            const Words4 given = load_bytes(its.tag, 16);
            if constexpr (F::kSiv) {
                start = kernels::siv_counter(given);
                crypt(valid);
            }
            const Words4 wrong = tag_of(hash()) ^ given;
            const bool forged = (wrong.x | wrong.y | wrong.z | wrong.w) != 0;
            const std::uint32_t authentic = __ballot_sync(~0u, ours && !forged) & 0xff;
            if constexpr (F::kSiv) {
                if (authentic != valid)
                    undo_slots<F>(&deriver.schedule(0), messages, valid & ~authentic, mine, start,
                                  width);
            } else if (authentic != 0) {
                crypt(authentic);
            }
            if (ours && tells && batch.results)
                batch.results[mine] =
                    static_cast<std::uint32_t>(forged ? Code::authentication : Code::ok);
        }
    }
};

template <class F, bool kOpen>
__global__ void __launch_bounds__(F::kThreads, 1)
    derived_eight(const __grid_constant__ DerivedBatch batch) {
    let_the_next_begin();
    const auto tables = derived_tables<F>();
    wait_for_those_before();
    const std::uint32_t warp = uniform(threadIdx.x / kLanes), lane = threadIdx.x % kLanes,
                        warps = gridDim.x * F::kWarps, place = warp * gridDim.x + blockIdx.x;
    Deriver<F> deriver(tables, warp_schedules(warp));
    const Eight<F> eight{batch, batch.messages, deriver};
    const std::uint32_t count = number_of(batch.number, batch.count);
    // Places that have no message now.
    if (batch.reset && batch.number)
        for (std::uint64_t i = count + std::uint64_t{blockIdx.x} * F::kThreads + threadIdx.x;
             i < batch.count; i += std::uint64_t{gridDim.x} * F::kThreads)
            batch.results[i] = kNotRun;
    const std::uint64_t groups = (std::uint64_t{count} + kDerivedMessages - 1) / kDerivedMessages;
    // There and back, as those that come first may be longer.
#pragma unroll 1
    for (std::uint64_t n = 0; n * warps < groups; ++n) {
        const std::uint64_t group = n * warps + (n % 2 == 0 ? place : warps - 1 - place);
        if (group >= groups) continue;
        const std::uint64_t wanted = group * kDerivedMessages + lane % kDerivedMessages;
        const bool listed = wanted < count;
        const auto mine = static_cast<std::uint32_t>(wanted);
        eight.template run<kOpen>(listed, listed && batch.order ? batch.order[wanted] : mine);
    }
    wipe_own<F>();
}

}  // namespace dael::cuda
