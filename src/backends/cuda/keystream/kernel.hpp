// SPDX-License-Identifier: Apache-2.0
// The kernel of runs of keystream, and who launches it.
#pragma once

#include <memory>

#include "backends/cuda/keystream/work.hpp"
#include "core/keystream_maker.hpp"

namespace dael::cuda {

class CudaDevice;

// (KeystreamWork): any grid. keystream.cu
Kernel keystream_runs_kernel();

// keystream.cpp
Result<std::unique_ptr<core::KeystreamMaker>> make_keystream_maker(CudaDevice& device);

}  // namespace dael::cuda
