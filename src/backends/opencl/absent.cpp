// SPDX-License-Identifier: Apache-2.0
// Stands in for the opencl backend in a build without OpenCL's headers.
#include "core/backend.hpp"

namespace dael::backends {

extern const core::BackendEntry opencl;
const core::BackendEntry opencl{
    "opencl", "any GPU with an OpenCL driver: data in its memory, or host memory through it",
    [](std::string* why) {
        *why = "this build has no OpenCL (CL/opencl.hpp was not found when it was built)";
        return 0;
    },
    [](const core::BackendOptions&) -> Result<std::unique_ptr<core::Backend>> {
        return Error{Code::backend_absent, "this build has no OpenCL"};
    }};

}  // namespace dael::backends
