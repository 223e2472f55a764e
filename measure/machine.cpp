// SPDX-License-Identifier: Apache-2.0
#include "measure/machine.hpp"

#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>

#include "commit.hpp"  // made by cmake/Commit.cmake
#include "measure/power.hpp"
#include "measure/team.hpp"

namespace dael::measure {
namespace {

// The processor's name as Linux gives it; where it gives none (most of Arm), its architecture.
std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.rfind("model name", 0) == 0)
            if (const auto colon = line.find(": "); colon != line.npos)
                return line.substr(colon + 2);
    return DAEL_PROCESSOR;
}

std::uint64_t pages(int name) {
    return static_cast<std::uint64_t>(sysconf(name)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Machine describe_host() {
    Machine machine;
    machine.cpu = cpu_name();
    machine.cores = thread_count(0);
    machine.memory = pages(_SC_PHYS_PAGES);
    return machine;
}

void describe_device(Machine& machine, const DeviceInfo& info) {
    machine.gpu = info.name;
    machine.multiprocessors = info.multiprocessors;
    machine.gpu_memory = info.memory;
    machine.driver = GpuPower::driver();
    if (machine.driver.empty()) machine.driver = info.driver;
    // CUDA's run-time library ends the device's own words: "..., runtime 13.0".
    constexpr std::string_view kRuntime = "runtime ";
    if (const auto at = info.driver.rfind(kRuntime); at != info.driver.npos)
        machine.cuda_runtime = info.driver.substr(at + kRuntime.size());
}

void describe_build(Report& report) {
    report.version = DAEL_VERSION;
    report.commit = DAEL_COMMIT;
    report.compiler = DAEL_COMPILER;
    std::array<char, 32> text{};
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    report.date = text.data();
}

}  // namespace dael::measure
