// SPDX-License-Identifier: Apache-2.0
// A driver of OpenCL without a platform, which says so when it is loaded.
#include <CL/cl.h>

#include <cstdio>

namespace {

[[gnu::constructor]] void say_it() {
    std::puts("loaded");
    std::fflush(stdout);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] cl_int CL_API_CALL
clIcdGetPlatformIDsKHR(cl_uint, cl_platform_id*, cl_uint* count) {
    *count = 0;
    return CL_SUCCESS;
}
