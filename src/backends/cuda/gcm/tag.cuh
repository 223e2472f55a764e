// SPDX-License-Identifier: Apache-2.0
// The end of GCM: the block of lengths, the tag, and its comparison (SP 800-38D 7.1 and 7.2).
#pragma once

#include "backends/cuda/gcm/math.cuh"
#include "backends/cuda/memory_access.cuh"

namespace dael::cuda {

// The sizes of AAD and data in bits, big-endian.
__device__ __forceinline__ Words4 lengths_block(const Message& m) {
    const std::uint64_t aad = m.aad_size * 8, data = m.size * 8;
    return {kernels::byte_swap(static_cast<std::uint32_t>(aad >> 32)),
            kernels::byte_swap(static_cast<std::uint32_t>(aad)),
            kernels::byte_swap(static_cast<std::uint32_t>(data >> 32)),
            kernels::byte_swap(static_cast<std::uint32_t>(data))};
}

// E(J0) ^ lengths * H: what the tag is besides the hash of AAD and data. For one lane, with its own
// key.
template <int kRounds, int kTables>
__device__ __forceinline__ Words4 tag_mask(const kernels::Tables<kTables, false>& tables,
                                           const GcmKey& key, const Words4& j0, const Message& m) {
    return kernels::crypt_masked<kRounds>(tables, key.encrypt, j0,
                                          kernels::gf_multiply(lengths_block(m), key.powers[1]));
}

// The tag and the result, by one lane.
__device__ __forceinline__ void write_tag(const GcmBatch& batch, std::uint64_t index,
                                          const Words4& tag) {
    store_part(batch.messages[index].tag, tag, 0, static_cast<int>(batch.tag_size));
    batch.results[index] = static_cast<std::uint32_t>(Code::ok);
}

// Compares all bytes, whatever the first ones are; `writes`: whether this lane writes the result.
__device__ __forceinline__ bool check_tag(const GcmBatch& batch, std::uint64_t index,
                                          const Words4& tag, bool writes = true) {
    const int size = static_cast<int>(batch.tag_size);
    const Words4 difference =
        first_bytes(tag, size) ^ load_part(batch.messages[index].tag, 0, size);
    const bool equal = (difference.x | difference.y | difference.z | difference.w) == 0;
    if (writes)
        batch.results[index] = static_cast<std::uint32_t>(equal ? Code::ok : Code::authentication);
    return equal;
}

}  // namespace dael::cuda
