// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace dael::test {

// Table lookups with bank conflicts over `bytes` bytes of device memory.
cudaError_t launch_leaky_rounds(const void* in, void* out, std::size_t bytes, cudaStream_t stream);

}  // namespace dael::test
