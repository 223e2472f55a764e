// SPDX-License-Identifier: Apache-2.0
#include "lab/meters.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include "lab/spawn.hpp"

namespace dael::lab {

using measure::CpuPower;
using measure::GpuPower;

Result<std::shared_ptr<Meters>> Meters::open(const std::vector<unsigned>& gpus, bool quick,
                                             measure::Report& report) {
    const auto meters = std::make_shared<Meters>();
    if (quick) meters->window = 0.1;
    for (const unsigned number : gpus) {
        auto gpu = GpuPower::open(number);
        const auto counts = gpu ? gpu->joules() : Result<double>(gpu.error());
        if (counts)
            meters->gpus.push_back(*gpu);
        else
            report.skip("energy of the GPU: " + counts.error().message);
    }
    if (meters->gpus.size() != gpus.size()) meters->gpus.clear();  // some alone say nothing
    auto cpu = CpuPower::open();
    if (cpu)
        meters->cpu = *cpu;
    else
        report.skip("energy of the processor: " + cpu.error().message);
    if (meters->gpus.empty() && !meters->cpu) return meters;
    DAEL_LET(before, meters->read());
    std::this_thread::sleep_for(std::chrono::duration<double>(2 * meters->window));
    DAEL_LET(after, meters->read());
    meters->gpu_idle = (after.gpu - before.gpu) / (after.seconds - before.seconds);
    meters->cpu_idle = (after.cpu - before.cpu) / (after.seconds - before.seconds);
    return meters;
}

Result<Meters::Reading> Meters::read() {
    Reading reading{now(), 0, 0};
    for (const GpuPower& gpu : gpus) {
        DAEL_LET(joules, gpu.joules());
        reading.gpu += joules;
    }
    if (cpu) {
        DAEL_LET(joules, cpu->joules());
        reading.cpu = joules;
    }
    return reading;
}

void Meters::look_at_clocks(Account& account) const {
    for (const GpuPower& gpu : gpus) {
        const unsigned mhz = gpu.sm_mhz();
        account.least_sm_mhz = account.least_sm_mhz ? std::min(account.least_sm_mhz, mhz) : mhz;
        account.memory_mhz = gpu.memory_mhz();
        account.celsius = std::max(account.celsius, gpu.celsius());
        account.reasons |= gpu.reasons();
    }
}

measure::Sampler sampler(const std::shared_ptr<Meters>& meters,
                         const std::shared_ptr<Account>& account, std::function<Result<>()> work,
                         std::function<Result<>()> wait) {
    return [=]() -> Result<double> {
        DAEL_LET(before, meters->read());
        double calls = 0;
        while (calls == 0 || now() - before.seconds < meters->window) {
            DAEL_TRY(work());
            if (account->warm && account->clocks) meters->look_at_clocks(*account);
            DAEL_TRY(wait());
            ++calls;
        }
        DAEL_LET(after, meters->read());
        const double seconds = after.seconds - before.seconds;
        if (account->warm) {
            account->seconds += seconds;
            account->calls += calls;
            account->gpu_joules += after.gpu - before.gpu;
            account->cpu_joules += after.cpu - before.cpu;
        }
        account->warm = true;
        return seconds / calls;
    };
}

measure::Figures figures_of(const Meters& meters, const Account& account, double bytes) {
    measure::Figures figures;
    const double gigabytes = account.calls * bytes / 1e9;
    if (!meters.gpus.empty())
        figures = {{"gpu_joules_per_gb", account.gpu_joules / gigabytes},
                   {"gpu_watts", account.gpu_joules / account.seconds},
                   {"gpu_idle_watts", meters.gpu_idle}};
    if (!meters.gpus.empty() && account.clocks)
        figures.insert(figures.end(), {{"sm_mhz", account.least_sm_mhz},
                                       {"memory_mhz", account.memory_mhz},
                                       {"celsius", account.celsius},
                                       {"clock_reasons", static_cast<double>(account.reasons)}});
    if (meters.cpu) {
        figures.emplace_back("cpu_joules_per_gb", account.cpu_joules / gigabytes);
        figures.emplace_back("cpu_watts", account.cpu_joules / account.seconds);
        figures.emplace_back("cpu_idle_watts", meters.cpu_idle);
    }
    return figures;
}

std::string energy_shown(const measure::Figures& figures) {
    std::string text;
    for (const auto& [name, value] : figures) {
        std::array<char, 48> number{};
        if (name.ends_with("joules_per_gb"))
            std::snprintf(number.data(), number.size(), "%s %.3g J/GB", name.substr(0, 3).c_str(),
                          value);
        else if (name == "gpu_watts" || name == "cpu_watts")
            std::snprintf(number.data(), number.size(), "%.0f W", value);
        else if (name == "sm_mhz")
            std::snprintf(number.data(), number.size(), "%.0f MHz", value);
        text += (text.empty() || !number[0] ? "" : "  ") + std::string(number.data());
        if (name == "clock_reasons")
            text += "  " + measure::clock_reasons(static_cast<std::uint64_t>(value));
    }
    return text;
}

}  // namespace dael::lab
