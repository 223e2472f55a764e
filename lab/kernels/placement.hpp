// SPDX-License-Identifier: Apache-2.0
// The kernels of placement.cl for CUDA.
#pragma once

#include "lab/shape.hpp"

namespace dael::lab {

inline constexpr int kMaxThreads = 1024;    // of a block
inline constexpr int kSlicedThreads = 256;  // bit planes take the registers of four times as many

// The kernel for a shape with any number of threads, as cudaLaunchKernel takes it; null where there
// is none. Its parameters: const uint* in, uint* out, Constants, unsigned blocks.
const void* cuda_kernel(const Shape& shape);

}  // namespace dael::lab
