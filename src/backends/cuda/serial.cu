// SPDX-License-Identifier: Apache-2.0
// Modes that are sequential within a message (CBC and CFB encryption, OFB): one message to a
// thread. They pay only in batches of many thousands of messages.
#include "backends/cuda/find_kernel.hpp"
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

}  // namespace dael::cuda
