// SPDX-License-Identifier: Apache-2.0
#include "lab/kernel_device.hpp"

namespace dael::lab {

Result<std::shared_ptr<KernelDevice>> open_opencl_kernels() {
    return Error{Code::backend_absent, "CL/opencl.hpp was not found when this was built"};
}

}  // namespace dael::lab
