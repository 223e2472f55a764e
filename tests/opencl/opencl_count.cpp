// SPDX-License-Identifier: Apache-2.0
// Prints how many OpenCL devices there are, and in a second line why there are none. With an
// argument: how many of them whoever has not asked for OpenCL may use.
#include <cstdio>
#include <string>

#include "core/registry.hpp"

int main(int count, char**) {
    if (count > 1) {
        int offered = 0;
        dael::core::visit_devices(
            [&](const dael::core::BackendEntry& entry, int, const std::string&) {
                offered += std::string(entry.name) == "opencl";
                return false;
            });
        std::printf("%d\n", offered);
        return 0;
    }
    for (const auto& entry : dael::core::backend_list()) {
        if (std::string(entry.name) != "opencl") continue;
        std::string why;
        std::printf("%d\n", entry.count(&why));
        std::printf("%s\n", why.c_str());
    }
}
