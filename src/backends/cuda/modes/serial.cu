// SPDX-License-Identifier: Apache-2.0
// Modes that are sequential within a message (CBC and CFB encryption, OFB): one message to a
// thread. They pay only in batches of many thousands of messages.
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/memory_access.cuh"

namespace dael::cuda {
namespace {

template <Serial kMode, int kRounds, int kTables>
__global__ void __launch_bounds__(1024, 1)
    serial(const __grid_constant__ SerialWork work, const __grid_constant__ RoundKeys keys) {
    const auto tables = fill_tables<kTables, false>();
    // Neighbouring messages go to neighbouring lanes, and to as many multiprocessors as there are
    // warps.
    const std::uint32_t warp = threadIdx.x / kernels::kLanes * gridDim.x + blockIdx.x;
    const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
    for (std::uint64_t m = warp * kernels::kLanes + threadIdx.x % kernels::kLanes; m < work.count;
         m += stride) {
        const DeviceSegment segment = work.list[m];
        const bool aligned = aligned16(segment.in, segment.out);
        Words4 chain = segment.iv;
        for (std::uint64_t at = 0; at < segment.size; at += 16) {
            const int size = segment.size - at < 16 ? static_cast<int>(segment.size - at) : 16;
            const Words4 x = aligned && size == 16 ? load_aligned(segment.in + at)
                                                   : load_part(segment.in + at, 0, size);
            Words4 y;
            if constexpr (kMode == Serial::cbc_encrypt) {
                y = chain = kernels::crypt_masked<kRounds>(tables, keys, x ^ chain, Words4{});
            } else if constexpr (kMode == Serial::cfb_encrypt) {
                y = chain = kernels::crypt_masked<kRounds>(tables, keys, chain, x);
            } else {
                chain = kernels::crypt_masked<kRounds>(tables, keys, chain, Words4{});
                y = chain ^ x;
            }
            if (aligned && size == 16)
                store_aligned(segment.out + at, y);
            else
                store_part(segment.out + at, y, 0, size);
        }
    }
}

// CBC encryption with a key for each message, whose round keys are in its thread's registers. For
// them a block has half the threads: 16 warps of 16 lookups in flight each still cover the latency
// of shared memory.
template <int kRounds>
__device__ __forceinline__ RoundKeys load_round_keys(const GcmKey& key) {
    RoundKeys keys;
    const auto* from = reinterpret_cast<const uint4*>(key.encrypt.w);
#pragma unroll
    for (int i = 0; i <= kRounds; ++i) {
        const uint4 words = from[i];
        keys.w[4 * i] = words.x;
        keys.w[4 * i + 1] = words.y;
        keys.w[4 * i + 2] = words.z;
        keys.w[4 * i + 3] = words.w;
    }
    return keys;
}

template <int kRounds, int kTables>
__device__ __forceinline__ void cbc_encrypt(const kernels::Tables<kTables, false>& tables,
                                            const Message& m, const GcmKey& key) {
    const RoundKeys keys = load_round_keys<kRounds>(key);
    const unsigned char* const in = m.in;
    unsigned char* const out = m.out;
    const std::uint64_t size = m.size;
    const bool aligned = aligned16(in, out);
    const auto* iv = reinterpret_cast<const std::uint32_t*>(&m.start);
    Words4 chain{iv[0], iv[1], iv[2], iv[3]};
#pragma unroll 1
    for (std::uint64_t at = 0; at < size; at += 16) {
        const Words4 x = aligned ? load_aligned(in + at) : load_part(in + at, 0, 16);
        chain = kernels::crypt_masked<kRounds>(tables, keys, x ^ chain, Words4{});
        if (aligned)
            store_aligned(out + at, chain);
        else
            store_part(out + at, chain, 0, 16);
    }
}

constexpr std::uint32_t kWarps = shapes::kKeyedWarps;

template <int kRounds, int kTables>
__global__ void __launch_bounds__(kWarps* kernels::kLanes, 1)
    keyed_cbc_encrypt(const __grid_constant__ KeyedWork work) {
    const auto tables = fill_tables<kTables, false>();
    // Neighbouring messages go to neighbouring lanes, and to as many multiprocessors as there are
    // warps.
    const std::uint32_t warp = threadIdx.x / kernels::kLanes * gridDim.x + blockIdx.x;
    const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
    const std::uint32_t number = number_of(work.number, work.count);
    for (std::uint64_t i = warp * kernels::kLanes + threadIdx.x % kernels::kLanes; i < work.count;
         i += stride) {
        const std::uint32_t index = work.order ? work.order[i] : static_cast<std::uint32_t>(i);
        const Message& m = work.messages[index];
        // A place of the list that has no message now is nobody's success.
        const Code code = index < number ? validity(work, m) : Code::internal;
        if (code == Code::ok) {
            const GcmKey& key = work.keys[m.key];
            if (key.rounds != kRounds) {  // another launch's
                if (work.reset && work.results) work.results[index] = kNotRun;
                continue;
            }
            cbc_encrypt<kRounds>(tables, m, key);
        }
        if (work.results) work.results[index] = static_cast<std::uint32_t>(code);
    }
}

template <Serial kMode>
Kernel find(int rounds, int tables) {
    return find_kernel(rounds, tables, [](auto r, auto t) {
        return Kernel{reinterpret_cast<const void*>(&serial<kMode, r.value, t.value>),
                      shapes::serial(t.value)};
    });
}

}  // namespace

Kernel serial_kernel(Serial which, int rounds, int tables) {
    switch (which) {
        case Serial::cbc_encrypt:
            return find<Serial::cbc_encrypt>(rounds, tables);
        case Serial::cfb_encrypt:
            return find<Serial::cfb_encrypt>(rounds, tables);
        default:
            return find<Serial::ofb>(rounds, tables);
    }
}

Kernel keyed_cbc_encrypt_kernel(int rounds, int tables) {
    return find_kernel(rounds, tables, [](auto r, auto t) {
        return Kernel{reinterpret_cast<const void*>(&keyed_cbc_encrypt<r.value, t.value>),
                      shapes::keyed_cbc_encrypt(t.value)};
    });
}

}  // namespace dael::cuda
