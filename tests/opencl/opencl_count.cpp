// SPDX-License-Identifier: Apache-2.0
// Prints how many OpenCL devices there are, and in a second line why there are none. With the
// argument "offered": how many of them whoever has not asked for OpenCL may use. With "forked" and
// a backend: the same of that one, by a child that another thread forks while it is being loaded.
// With "looking" and a pipe by name in place of a driver's registration: the same by a child that
// is forked while another thread waits for what the pipe says.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
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

void print_in_a_child() {
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
}

void print_while_looking(const char* pipe) {
    alarm(120);
    std::thread looking(print);
    int end = -1;
    while ((end = open(pipe, O_WRONLY | O_NONBLOCK)) < 0 && errno == ENXIO)  // nobody reads yet
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    print_in_a_child();
    unlink(pipe);
    close(end);
    looking.join();
}

}  // namespace

// Called by the fake driver as it is loaded.
extern "C" [[gnu::visibility("default")]] void dael_amid_loading();
extern "C" void dael_amid_loading() {
    if (!forks) return;
    std::thread(print_in_a_child).join();
}

int main(int count, char** arguments) {
    if (count > 2 && std::string(arguments[1]) == "looking") {
        print_while_looking(arguments[2]);
        return 0;
    }
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
