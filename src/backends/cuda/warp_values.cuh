// SPDX-License-Identifier: Apache-2.0
// Values among the lanes of a warp.
#pragma once

#include "backends/cuda/work.hpp"

namespace dael::cuda {

__device__ __forceinline__ Words4 shuffle(const Words4& v, std::uint32_t lane) {
    return {__shfl_sync(~0u, v.x, lane), __shfl_sync(~0u, v.y, lane), __shfl_sync(~0u, v.z, lane),
            __shfl_sync(~0u, v.w, lane)};
}

__device__ __forceinline__ Words4 choose(bool first, const Words4& a, const Words4& b) {
    return {first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w};
}

// The same, for a value that all lanes of the warp have alike. A compiler that knows so keeps it in
// a register of the warp's, and around loops and branches on it it still has such registers: else
// every lookup's address costs an addition.
__device__ __forceinline__ std::uint32_t uniform(std::uint32_t v) {
    return __shfl_sync(~0u, v, 0);
}
__device__ __forceinline__ std::uint64_t uniform(std::uint64_t v) {
    return static_cast<std::uint64_t>(uniform(static_cast<std::uint32_t>(v >> 32))) << 32 |
           uniform(static_cast<std::uint32_t>(v));
}
template <class T>
__device__ __forceinline__ T* uniform(T* p) {
    return reinterpret_cast<T*>(uniform(std::uint64_t{reinterpret_cast<std::uintptr_t>(p)}));
}

// Of how many lanes asked(lane) is true.
struct WarpVotes {
    template <class Asked>
    __device__ __forceinline__ std::uint32_t operator()(Asked asked) const {
        const bool mine = asked(threadIdx.x % kernels::kLanes);
        return static_cast<std::uint32_t>(__popc(__ballot_sync(~0u, mine)));
    }
};

}  // namespace dael::cuda
