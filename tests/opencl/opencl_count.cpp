// SPDX-License-Identifier: Apache-2.0
// Prints how many OpenCL devices there are, and in a second line why there are none.
#include <cstdio>
#include <string>

#include "core/registry.hpp"

int main() {
    for (const auto& entry : dael::core::backend_list()) {
        if (std::string(entry.name) != "opencl") continue;
        std::string why;
        std::printf("%d\n", entry.count(&why));
        std::printf("%s\n", why.c_str());
    }
}
