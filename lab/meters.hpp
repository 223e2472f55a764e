// SPDX-License-Identifier: Apache-2.0
// Energy and clocks of work that is done over and over: what `energy` and `devices` share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/power.hpp"
#include "measure/report.hpp"

namespace dael::lab {

// What was used up since the first sample, which warms up and is not counted.
struct Account {
    bool clocks = true;  // whether they are looked at, which takes a moment of each call
    bool warm = false;
    double seconds = 0, calls = 0, gpu_joules = 0, cpu_joules = 0;
    unsigned least_sm_mhz = 0, memory_mhz = 0, celsius = 0;
    std::uint64_t reasons = 0;
};

// The meters that there are, and how long one reading of them takes at least: counters move some
// ten times a second.
struct Meters {
    std::vector<measure::GpuPower> gpus;
    std::optional<measure::CpuPower> cpu;
    double window = 0.5;
    double gpu_idle = 0, cpu_idle = 0;  // watts

    // Of these GPUs and the processor, with a line for what is not there; of what is there the
    // power at rest. Errors: those of reading.
    static Result<std::shared_ptr<Meters>> open(const std::vector<unsigned>& gpus, bool quick,
                                                measure::Report& report);
    struct Reading {
        double seconds = 0, gpu = 0, cpu = 0;
    };
    Result<Reading> read();
    void look_at_clocks(Account& account) const;
};

// `work` puts work on the way, `wait` waits for it; both together are a call. In between the
// device is at it, and its clocks are those of the work.
measure::Sampler sampler(const std::shared_ptr<Meters>& meters,
                         const std::shared_ptr<Account>& account, std::function<Result<>()> work,
                         std::function<Result<>()> wait);
// What the meters have to say of work of `bytes` a call.
measure::Figures figures_of(const Meters& meters, const Account& account, double bytes);
// The same for people.
std::string energy_shown(const measure::Figures& figures);

}  // namespace dael::lab
