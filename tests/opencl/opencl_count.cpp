// SPDX-License-Identifier: Apache-2.0
// Prints how many OpenCL devices there are, and in a second line why there are none. With the
// argument "offered": how many of them whoever has not asked for OpenCL may use. With "forked" and
// a backend: the same of that one, by a child that another thread forks while it is being loaded.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "core/registry.hpp"

namespace {

std::string asked = "opencl";
bool forks = false;

void print() {
    for (const auto& entry : dael::core::backend_list()) {
        if (asked != entry.name) continue;
        std::string why;
        std::printf("%d\n", entry.count(&why));
        std::printf("%s\n", why.c_str());
    }
    std::fflush(stdout);
}

}  // namespace

// Called by the fake driver as it is loaded.
extern "C" [[gnu::visibility("default")]] void dael_amid_loading();
extern "C" void dael_amid_loading() {
    if (!forks) return;
    std::thread([] {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);  // for one that waits for ever
            print();
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        std::printf("child %d\n", status);
        std::fflush(stdout);
    }).join();
}

int main(int count, char** arguments) {
    if (count > 2) {
        forks = true;
        asked = arguments[2];
    } else if (count > 1) {
        int offered = 0;
        dael::core::visit_devices(
            [&](const dael::core::BackendEntry& entry, int, const std::string&) {
                offered += std::string(entry.name) == "opencl";
                return false;
            });
        std::printf("%d\n", offered);
        return 0;
    }
    print();
}
