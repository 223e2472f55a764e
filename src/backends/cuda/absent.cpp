// SPDX-License-Identifier: Apache-2.0
// Stands in for the cuda backend in a build without nvcc, or one that was asked to do
// without (DAELSTROM_CUDA=OFF).
#include "core/backend.hpp"

namespace dael::backends {

extern const core::BackendEntry cuda;
const core::BackendEntry cuda{
    "cuda", "NVIDIA GPUs: data in GPU memory, or host memory through the GPU",
    [](std::string* why) {
        *why = "this build has no CUDA (" DAELSTROM_NO_CUDA ")";
        return 0;
    },
    [](const core::BackendOptions&) -> Result<std::unique_ptr<core::Backend>> {
        return Error{Code::backend_absent, "this build has no CUDA (" DAELSTROM_NO_CUDA ")"};
    }};

}  // namespace dael::backends
