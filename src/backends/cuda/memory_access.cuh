// SPDX-License-Identifier: Apache-2.0
// How kernels reach memory: filling the table image, and blocks of any alignment and any part.
#pragma once

#include <daelstrom/device/detail/block_access.hpp>

#include "backends/cuda/work.hpp"

namespace dael::cuda {

// Constant-initialised: these are data of the module, nothing runs at start.
static __device__ const kernels::Words256 encrypt_table = kernels::make_encrypt_table();
static __device__ const kernels::Words256 decrypt_table = kernels::make_decrypt_table();
static __device__ const kernels::Words256 inverse_sbox = kernels::make_inverse_sbox();

// What a counter mode reads where a message has no input and its output is the keystream. Loops go
// over it with a step of 0, so that they are the same as for data.
static __device__ const uint4 zeros[256] = {};

extern __shared__ __align__(1024) unsigned char table_image[];

// Fills shared memory, from `offset` bytes on, with every lane's copy of the tables; all threads of
// the block take part.
template <int kTables, bool kInverse>
__device__ __forceinline__ kernels::Tables<kTables, kInverse> fill_tables(
    std::uint32_t offset = 0) {
    using Image = kernels::Tables<kTables, kInverse>;
    const std::uint32_t* t0 = kInverse ? decrypt_table.data() : encrypt_table.data();
    for (std::uint32_t i = threadIdx.x; i < Image::kRuns; i += blockDim.x)
        Image::write_run(table_image + offset, i, Image::run_word(i, t0, inverse_sbox.data()));
    __syncthreads();
    return Image(table_image + offset, threadIdx.x % kernels::kLanes);
}

using kernels::aligned16;
using kernels::first_bytes;
using kernels::load_aligned;
using kernels::load_part;
using kernels::store_aligned;
using kernels::store_part;

// Whole blocks at aligned addresses; a pointer from a list could be to any memory, so it is said.
__device__ __forceinline__ Words4 load_global(const unsigned char* p) {
    __builtin_assume(__isGlobal(p));
    return load_aligned(p);
}
__device__ __forceinline__ void store_global(unsigned char* p, const Words4& v) {
    __builtin_assume(__isGlobal(p));
    store_aligned(p, v);
}

// Addresses of the data, which come from lists in memory: a compiler that cannot see that they are
// global makes slower instructions, which could mean shared memory too.
#ifdef __CUDA_ARCH__
__device__ __forceinline__ std::size_t global_address(const void* p) {
    return __cvta_generic_to_global(p);
}
__device__ __forceinline__ unsigned char* global_pointer(std::size_t at) {
    return static_cast<unsigned char*>(__cvta_global_to_generic(at));
}
#else
inline std::size_t global_address(const void* p) {
    return reinterpret_cast<std::size_t>(p);
}
inline unsigned char* global_pointer(std::size_t at) {
    return reinterpret_cast<unsigned char*>(at);
}
#endif
__device__ __forceinline__ Words4 load_global(std::size_t at) {
    return load_aligned(global_pointer(at));
}
__device__ __forceinline__ void store_global(std::size_t at, const Words4& v) {
    store_aligned(global_pointer(at), v);
}

// Has memory bring what is here as far as the second cache.
__device__ __forceinline__ void ask_ahead([[maybe_unused]] const void* address) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}

// Zeros over shared memory that held secrets, at a kernel's end: what is left there is the next
// kernel's to read. `kThreads` threads take part, of which this is one, in a store or two each: a
// loop here made the loops before it slower, by where their code came to lie.
template <std::uint32_t kBytes, std::uint32_t kThreads>
__device__ __forceinline__ void wipe_shared(void* memory, std::uint32_t thread) {
    static_assert(kBytes % 16 == 0);
#ifdef __CUDA_ARCH__
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory)) + thread * 16;
#pragma unroll
    for (std::uint32_t i = 0; i < kBytes; i += kThreads * 16)
        if (i + kThreads * 16 <= kBytes || i + thread * 16 < kBytes)
            asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(at + i), "r"(0)
                         : "memory");
#else
    for (std::uint32_t at = thread * 16; at < kBytes; at += kThreads * 16)
        std::memset(static_cast<unsigned char*>(memory) + at, 0, 16);
#endif
}

}  // namespace dael::cuda
