// SPDX-License-Identifier: Apache-2.0
// How kernels reach memory: filling the table image, and blocks of any alignment and any part.
#pragma once

#include "backends/cuda/work.hpp"

namespace dael::cuda {

// Constant-initialised: these are data of the module, nothing runs at start.
static __device__ const kernels::Words256 encrypt_table = kernels::make_encrypt_table();
static __device__ const kernels::Words256 decrypt_table = kernels::make_decrypt_table();
static __device__ const kernels::Words256 inverse_sbox = kernels::make_inverse_sbox();

extern __shared__ __align__(1024) unsigned char table_image[];

// Fills shared memory, from `offset` bytes on, with every lane's copy of the tables; all threads of
// the block take part.
template <int kTables, bool kInverse>
__device__ __forceinline__ kernels::Tables<kTables, kInverse> fill_tables(
    std::uint32_t offset = 0) {
    using Image = kernels::Tables<kTables, kInverse>;
    const std::uint32_t* t0 = kInverse ? decrypt_table.data() : encrypt_table.data();
    // One load a run, then eight stores of 16 bytes. Threads of a warp write neighbouring rows,
    // which are a multiple of 128 bytes apart: each begins at another place of its run, so that no
    // bank is hit twice.
    for (std::uint32_t i = threadIdx.x; i < Image::kRuns; i += blockDim.x) {
        const std::uint32_t word = Image::run_word(i, t0, inverse_sbox.data());
        uint4* run = reinterpret_cast<uint4*>(table_image + offset + Image::run_offset(i));
#pragma unroll
        for (std::uint32_t k = 0; k < 8; ++k) run[(i + k) % 8] = make_uint4(word, word, word, word);
    }
    __syncthreads();
    return Image(table_image + offset, threadIdx.x % kernels::kLanes);
}

__device__ __forceinline__ bool aligned16(const void* a, const void* b) {
    return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) & 15) == 0;
}

__device__ __forceinline__ Words4 load_aligned(const unsigned char* p) {
    const uint4 v = *reinterpret_cast<const uint4*>(p);
    return {v.x, v.y, v.z, v.w};
}

__device__ __forceinline__ void store_aligned(unsigned char* p, const Words4& v) {
    *reinterpret_cast<uint4*>(p) = make_uint4(v.x, v.y, v.z, v.w);
}

// Bytes `from` to `to` (0 to 16) of a block that would begin at `p`; the others are left as zero
// and not touched. Four bytes at a time where the address allows.
__device__ __forceinline__ Words4 load_part(const unsigned char* p, int from, int to) {
    Words4 v{};
    std::uint32_t* words = &v.x;
    const bool word_aligned = (reinterpret_cast<std::uintptr_t>(p) & 3) == 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if (word_aligned && from <= 4 * w && 4 * w + 4 <= to) {
            words[w] = *reinterpret_cast<const std::uint32_t*>(p + 4 * w);
            continue;
        }
#pragma unroll
        for (int b = 0; b < 4; ++b)
            if (const int at = 4 * w + b; at >= from && at < to)
                words[w] |= std::uint32_t{p[at]} << (8 * b);
    }
    return v;
}

__device__ __forceinline__ void store_part(unsigned char* p, const Words4& v, int from, int to) {
    const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
    const bool word_aligned = (reinterpret_cast<std::uintptr_t>(p) & 3) == 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if (word_aligned && from <= 4 * w && 4 * w + 4 <= to) {
            *reinterpret_cast<std::uint32_t*>(p + 4 * w) = words[w];
            continue;
        }
#pragma unroll
        for (int b = 0; b < 4; ++b)
            if (const int at = 4 * w + b; at >= from && at < to)
                p[at] = static_cast<unsigned char>(words[w] >> (8 * b));
    }
}

// The first `size` (0 to 16) bytes of a block, zeros after them.
__device__ __forceinline__ Words4 first_bytes(const Words4& v, int size) {
    const auto word = [size](std::uint32_t w, int at) {
        const int here = size - at;
        return here >= 4 ? w : here <= 0 ? 0 : w & ((1u << (8 * here)) - 1);
    };
    return {word(v.x, 0), word(v.y, 4), word(v.z, 8), word(v.w, 12)};
}

}  // namespace dael::cuda
