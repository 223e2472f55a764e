// SPDX-License-Identifier: Apache-2.0
#include "lab/kernel_device.hpp"

namespace dael::lab {

Result<std::shared_ptr<KernelDevice>> open_cuda_kernels() {
    return Error{Code::backend_absent, "the lab's kernels were built without CUDA"};
}

}  // namespace dael::lab
