// SPDX-License-Identifier: Apache-2.0
// GHASH's field among the threads of a warp.
#pragma once

#include "backends/cuda/gcm/work.hpp"
#include "backends/cuda/memory_access.cuh"
#include "backends/cuda/warp_values.cuh"

namespace dael::cuda {

__device__ __forceinline__ Words4 shuffle_xor(const Words4& v, int distance) {
    return {__shfl_xor_sync(~0u, v.x, distance), __shfl_xor_sync(~0u, v.y, distance),
            __shfl_xor_sync(~0u, v.z, distance), __shfl_xor_sync(~0u, v.w, distance)};
}

// The sum of all lanes' values, in every lane.
__device__ __forceinline__ Words4 warp_sum(Words4 v) {
#pragma unroll
    for (int distance = 16; distance != 0; distance /= 2) v = v ^ shuffle_xor(v, distance);
    return v;
}

// What a thread block of GHASH's is there for: AAD or data, and the how manieth of those.
struct PartBlock {
    __device__ explicit PartBlock(Part asked) : part(asked), block(blockIdx.x) {
        if (asked != Part::both) return;
        const std::uint32_t half = gridDim.x / 2;
        part = block < half ? Part::aad : Part::data;
        if (block >= half) block -= half;
    }
    Part part;
    std::uint32_t block;
};

// A block of what is hashed; zeros before the data and after it.
__device__ __forceinline__ Words4 block_at(const HashItem& item, std::int64_t at) {
    const std::int64_t left = static_cast<std::int64_t>(item.size) - at;
    const int size = at < 0 || left <= 0 ? 0 : left < 16 ? static_cast<int>(left) : 16;
    return size == 16 && aligned16(item.data, item.data) ? load_aligned(item.data + at)
                                                         : load_part(item.data + at, 0, size);
}

// GHASH's sum over bytes, to whole blocks with zeros: block i of n times H^(n - i). The whole warp
// takes part, 32 blocks at a time, the last of them at lane 31; every lane gets the sum.
__device__ __forceinline__ Words4 hash_bytes(const unsigned char* bytes, std::uint64_t size,
                                             const GcmKey& key) {
    const std::uint32_t lane = threadIdx.x % kernels::kLanes;
    const auto blocks = static_cast<std::int64_t>((size + 15) / 16), rows = (blocks + 31) / 32;
    Words4 hash{};
#pragma unroll 1
    for (std::int64_t row = 0; row < rows; ++row) {
        if (row != 0) hash = kernels::gf_multiply(hash, key.powers[kernels::kLanes]);
        const std::int64_t block = (row - rows) * 32 + lane + blocks;
        if (block < 0) continue;
        const std::int64_t left = static_cast<std::int64_t>(size) - block * 16;
        hash = hash ^ load_part(bytes + block * 16, 0, left < 16 ? static_cast<int>(left) : 16);
    }
    return warp_sum(kernels::gf_multiply(hash, key.powers[kernels::kLanes - lane]));
}

// value * base^exponent, from base^(2^j); the whole warp takes part, and every lane gets it. The
// time depends on nothing but `count`: lane j takes the squares j, j + 32, ... that the exponent
// has.
template <std::uint32_t count>
__device__ __forceinline__ Words4 times_power(Words4 value, const Words4* squares,
                                              std::uint64_t exponent) {
    const std::uint32_t lane = threadIdx.x % kernels::kLanes;
    const auto factor = [&](std::uint32_t j) {
        const Words4 power = squares[j];
        return exponent >> j & 1 ? power : kernels::gf_one();
    };
    Words4 product = lane == 0 ? value : kernels::gf_one();
#pragma unroll 1
    for (std::uint32_t j = lane; j < count; j += kernels::kLanes)
        product = kernels::gf_multiply(product, factor(j));
#pragma unroll 1
    for (int distance = 16; distance != 0; distance /= 2)
        product = kernels::gf_multiply(product, shuffle_xor(product, distance));
    return product;
}

}  // namespace dael::cuda
