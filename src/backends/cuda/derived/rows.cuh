// SPDX-License-Identifier: Apache-2.0
// A long message hashed on the tensor cores of sm_90a by a thread block: kernels/gcm_quads.hpp, but
// its rows are all of one message. Row r of 256 has blocks 4 r to 4 r + 3 of every 1024, and steps
// with H^1024; at the end it owes H^(4 (255 - r)). The matrices lie in shared memory, made for the
// message, and take blocks as they lie in memory: for POLYVAL bytes are reversed in the matrix.
#pragma once

#include "backends/cuda/derived/derive.cuh"
#include "backends/cuda/gcm/math.cuh"
#include "kernels/gcm_quads.hpp"

// What multiplies: 64 rows of registers by the 128 columns at `columns`, a descriptor. A test on
// the host plays it.
#ifdef __CUDACC__
#include "backends/cuda/gcm/tile_hasher.cuh"
#endif

namespace dael::cuda {

inline constexpr std::uint32_t kRowSpan = 1024;  // blocks that a thread block takes at once
// Where matrices and rows lie in shared memory, behind what forms share.
inline constexpr std::uint32_t kRowMatrices = 32 * 1024, kRowStates = kRowMatrices + 16 * 1024;
static_assert(kRowMatrices >= shapes::derived_own(shapes::kDerivedThreads) &&
              kernels::kQuadWords * 4 <= kRowStates - kRowMatrices &&
              kRowStates + 256 * 16 == shapes::kDerivedRows);

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
inline constexpr bool kHasRows = true;
#else
inline constexpr bool kHasRows = false;
#endif

__device__ __forceinline__ std::uint64_t rows_descriptor() {
#ifdef __CUDA_ARCH__
    return tile_descriptor(
        static_cast<std::uint32_t>(__cvta_generic_to_shared(table_image + kRowMatrices)));
#else
    return reinterpret_cast<std::uintptr_t>(table_image + kRowMatrices) / 16;
#endif
}
__device__ __forceinline__ void rows_fence() {
#ifdef __CUDA_ARCH__
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void rows_wait() {
#ifdef __CUDA_ARCH__
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
}
__device__ __forceinline__ void rows_written() {
#ifdef __CUDA_ARCH__
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// The matrices of H, by 512 threads: four warps to a power of 1 to 4, each to 32 bits of the
// factor; H^1024's, of the state, four warps to a word of the product.
template <bool kSiv>
__device__ __forceinline__ void make_rows(const Words4& h) {
    const std::uint32_t which = threadIdx.x / 128, word = threadIdx.x / kLanes % 4,
                        lane = threadIdx.x % kLanes, bit = threadIdx.x % 128;
    auto* const to = reinterpret_cast<std::uint32_t*>(table_image + kRowMatrices);
    // What a factor with this bit alone, as it lies in memory, comes to.
    const auto column = [&](const Words4& power) {
        return hashed<kSiv>(kernels::gf_times_basis(power, kSiv ? bit ^ 0x78 : bit));
    };
    const auto row_of = [&](std::uint32_t bits) {
        return kernels::transpose_bits(bits, lane, [](std::uint32_t value, int distance) {
            return __shfl_xor_sync(~0u, value, distance);
        });
    };
    const auto word_of = [](const Words4& v, std::uint32_t i) {
        return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
    };
    const Words4 h2 = kernels::gf_square(h);
    Words4 power = h, far = h;
    if (which == 1) power = h2;
    if (which == 2) power = kernels::gf_multiply(h2, h);
    if (which == 3) power = kernels::gf_square(h2);
#pragma unroll 1
    for (std::uint32_t i = 1; i < kRowSpan; i *= 2) far = kernels::gf_square(far);
    const Words4 near_column = column(power), far_column = column(far);
#pragma unroll 1
    for (std::uint32_t q = 0; q < 4; ++q)
        to[kernels::quad_block_index(which + 1, 32 * q + lane, word)] =
            row_of(word_of(near_column, q));
    const std::uint32_t output = 32 * which + lane;
    to[kernels::quad_state_index(output, word)] = row_of(word_of(far_column, which));
    to[kernels::quad_zero_index(output, word)] = 0;
    rows_written();
    __syncthreads();
}

// The rows' sums to shared memory, as GHASH has them, of `count` blocks of which at(i) is the i-th
// as it lies in memory, zeros for i < 0.
template <bool kSiv, class At>
__device__ __forceinline__ void hash_rows(std::uint64_t count, At at) {
    const std::uint32_t warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    const std::uint64_t steps = (count + kRowSpan - 1) / kRowSpan, matrices = rows_descriptor();
    constexpr std::uint64_t kOperand = 2 * kernels::kQuadColumns;
    std::int64_t i = static_cast<std::int64_t>(count + warp * 64 + lane) -
                     static_cast<std::int64_t>(steps * kRowSpan);
    std::uint32_t hash[2] = {0, 0};
    Words4 ahead[2] = {at(i), at(i + 32)};
#pragma unroll 1
    for (std::uint64_t step = 0; step < steps; ++step) {
        const Words4 a = ahead[0], b = ahead[1];
        i += kRowSpan;
        if (step + 1 < steps) {
            ahead[0] = at(i);
            ahead[1] = at(i + 32);
        }
        const std::uint32_t state[4] = {hash[0], hash[1], 0, 0};
        const std::uint32_t first[4] = {a.x, b.x, a.y, b.y}, second[4] = {a.z, b.z, a.w, b.w};
        std::uint32_t counts[kernels::kQuadColumns / 2];
        rows_fence();
        wgmma_b1(counts, state, matrices, 0);
        wgmma_b1(counts, first, matrices + kOperand, 1);
        wgmma_b1(counts, second, matrices + 2 * kOperand, 1);
        rows_wait();
        hash[0] = hash[1] = 0;
        kernels::pack_parities(hash, counts);
    }
    // Word `lane % 4` of rows lane / 4 and 8 more of the warp's 16.
    auto* const states = reinterpret_cast<std::uint32_t*>(table_image + kRowStates);
#pragma unroll
    for (std::uint32_t k = 0; k < 2; ++k)
        states[(warp * 16 + lane / 4 + 8 * k) * 4 + lane % 4] = hash[k];
    __syncthreads();
}
template <bool kSiv>
__device__ __forceinline__ Words4 row_state(std::uint32_t row) {
    return hashed<kSiv>(kernels::load_aligned(table_image + kRowStates + row * 16));
}

}  // namespace dael::cuda
