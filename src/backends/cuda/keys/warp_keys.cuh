// SPDX-License-Identifier: Apache-2.0
// Round keys of a batch with many keys: a place in shared memory for each warp's.
#pragma once

#include "backends/cuda/gcm/work.hpp"
#include "backends/cuda/memory_access.cuh"

namespace dael::cuda {

// Round keys that several warps share, so placed that four words come at once.
struct alignas(16) SharedKeys {
    std::uint32_t w[60];
};

class WarpKeys {
  public:
    static constexpr std::uint32_t kBytes = shapes::kWarpKeys;
    __device__ WarpKeys(std::uint32_t offset, std::uint32_t warp)
        : place_(table_image + offset + warp * kBytes) {}
    __device__ const RoundKeys& keys() const { return *reinterpret_cast<const RoundKeys*>(place_); }
    // The whole warp calls it.
    __device__ void load(const GcmKey& key) const {
        const std::uint32_t lane = threadIdx.x % kernels::kLanes;
        __syncwarp();
        for (std::uint32_t i = lane; i < sizeof(RoundKeys) / 4; i += kernels::kLanes)
            reinterpret_cast<std::uint32_t*>(place_)[i] = key.encrypt.w[i];
        __syncwarp();
    }
    // The same, at the kernel's end.
    __device__ void wipe() const {
        __syncwarp();
        wipe_shared<kBytes, kernels::kLanes>(place_, threadIdx.x % kernels::kLanes);
    }

  private:
    unsigned char* place_;
};

}  // namespace dael::cuda
