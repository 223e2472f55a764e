// SPDX-License-Identifier: Apache-2.0
// Makes keys ready for GCM: H, its powers, and the matrices for the tensor cores.
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_math.cuh"
#include "backends/cuda/memory_access.cuh"

namespace dael::cuda {
namespace {

constexpr std::uint32_t kThreads = kernels::kTileThreads;
constexpr std::uint32_t kPowers = kernels::kLanes + 2;  // beside the leaps of 32
static_assert(kPowers + kernels::kTeamWarps <= kThreads && kernels::kTeamWarps <= 8);

__device__ Words4 encrypt_zero(const kernels::Tables<1, false>& tables, const GcmKey& key) {
    const RoundKeys& keys = key.encrypt;
    Words4 state{keys.w[0], keys.w[1], keys.w[2], keys.w[3]};
    const int rounds = static_cast<int>(key.rounds);
#pragma unroll 1
    for (int r = 1; r < rounds; ++r) state = kernels::round<false>(tables, keys, r, state);
    const std::uint32_t* last = keys.w + 4 * rounds;
    return kernels::last_round<false>(tables, state) ^
           Words4 { last[0], last[1], last[2], last[3] };
}

// base^exponent from base^(2^j), exponent below 2^bits.
__device__ Words4 power(const Words4* squares, std::uint32_t exponent, int bits) {
    Words4 product = kernels::gf_one();
#pragma unroll 1
    for (int j = 0; j < bits; ++j) {
        const Words4 square = squares[j];
        product = kernels::gf_multiply(product, exponent >> j & 1 ? square : kernels::gf_one());
    }
    return product;
}

// In the stream's order: what was launched before reads the old key, what is launched after the
// new.
__global__ void gcm_key_replace(GcmKey* key, const __grid_constant__ KeyHead head) {
    static_assert(sizeof head / 4 == shapes::gcm_key_replace().threads);
    auto* const to = reinterpret_cast<std::uint32_t*>(static_cast<KeyHead*>(key));
    to[threadIdx.x] = reinterpret_cast<const std::uint32_t*>(&head)[threadIdx.x];
}

// A block of threads to a key.
__global__ void __launch_bounds__(kThreads)
    gcm_key_setup(GcmKey* keys, GcmMatrices* matrices, std::uint32_t count) {
    __shared__ Words4 columns[kernels::kTileColumns];
    static_assert(sizeof columns == shapes::gcm_key_setup().fixed);
    const auto tables = fill_tables<1, false>();
    const std::uint32_t thread = threadIdx.x;
    for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
        GcmKey& key = keys[i];
        const Words4 h = encrypt_zero(tables, key);
        Words4 square = h, inverse = kernels::gf_one();  // H^(2^128 - 2)
#pragma unroll 1
        for (std::uint32_t j = 0; j < (matrices ? 128u : kSquares); ++j) {
            if (j < kSquares && thread == 0) key.squares[j] = square;
            if (matrices && j != 0) inverse = kernels::gf_multiply(inverse, square);
            square = kernels::gf_multiply(square, square);
        }
        __syncthreads();  // the squares are written
        if (thread < kPowers)
            key.powers[thread] = power(key.squares, thread, 6);
        else if (const std::uint32_t leap = thread - kPowers; leap < kernels::kTeamWarps)
            key.leaps[leap] = power(key.squares + 5, leap, 3);
        if (!matrices) continue;

        GcmMatrices& out = matrices[i];
        Words4 weight = kernels::gf_one();  // H^-thread
#pragma unroll 1
        for (std::uint32_t j = 0; j < 7; ++j) {
            weight = kernels::gf_multiply(weight, thread >> j & 1 ? inverse : kernels::gf_one());
            inverse = kernels::gf_multiply(inverse, inverse);
        }
        out.column_weights[thread] = weight;
#pragma unroll 1
        for (std::uint32_t block = 0; block < kernels::kTileDepth; ++block) {
            const Words4 factor = power(key.squares, kernels::tile_power(block), 11);
            columns[thread] = kernels::gf_multiply(factor, kernels::gf_basis(thread));
            __syncthreads();
#pragma unroll 1
            for (std::uint32_t index = thread; index < kernels::kFragmentWords; index += kThreads) {
                const kernels::FragmentWord w = kernels::fragment_word(index);
                if (w.block != block) continue;
                std::uint32_t bits = 0;
#pragma unroll 1
                for (std::uint32_t bit = 0; bit < 32; ++bit) {
                    const auto* column =
                        reinterpret_cast<const std::uint32_t*>(&columns[32 * w.word + bit]);
                    bits |= (column[w.output / 32] >> (w.output % 32) & 1) << bit;
                }
                out.fragments[index] = bits;
            }
            __syncthreads();
        }
    }
    wipe_shared<sizeof columns, kThreads>(columns, thread);
}

}  // namespace

Kernel gcm_key_replace_kernel() {
    return {reinterpret_cast<const void*>(&gcm_key_replace), shapes::gcm_key_replace()};
}

Kernel gcm_key_setup_kernel() {
    return {reinterpret_cast<const void*>(&gcm_key_setup), shapes::gcm_key_setup()};
}

}  // namespace dael::cuda
