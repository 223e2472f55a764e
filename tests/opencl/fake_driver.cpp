// SPDX-License-Identifier: Apache-2.0
// A driver of OpenCL without a platform, which says so when it is loaded, and lets the program do
// something meanwhile.
#include <CL/cl.h>
#include <dlfcn.h>

#include <cstdio>

namespace {

[[gnu::constructor]] void say_it() {
    std::puts("loaded");
    std::fflush(stdout);
    if (void* const amid = dlsym(RTLD_DEFAULT, "dael_amid_loading"))
        reinterpret_cast<void (*)()>(amid)();
}

}  // namespace

extern "C" [[gnu::visibility("default")]] cl_int CL_API_CALL
clIcdGetPlatformIDsKHR(cl_uint, cl_platform_id*, cl_uint* count) {
    *count = 0;
    return CL_SUCCESS;
}
