// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planner.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "pipeline/host.hpp"
#include "pipeline/transfer.hpp"

namespace dael::pipeline {
namespace {

constexpr double kCallSeconds = 1e-6;   // of any call on the host
constexpr double kWakeSeconds = 20e-6;  // to have the other threads at work
constexpr double kLaunchSeconds = 5e-6;
constexpr double kGiga = 1e9;
// Below this no device can win: the set-up of a call through it is longer than the whole job on a
// core.
constexpr std::uint64_t kDeviceConsidered = std::uint64_t{64} << 10;

// Built-in figures for AES-128 on one core, GB/s; a middling x86-64 core of the last ten years.
// Rounds scale them to the other keys. Deliberately low for devices: without a measurement, a copy
// across an unknown bus should not be preferred to the cores.
struct BuiltInHost {
    std::string_view backend;
    double parallel;  // ECB, CTR, CBC decryption
    double cfb_decrypt;
    double sequential;        // one message
    double sequential_batch;  // 16 messages
};
constexpr std::array kBuiltInHosts{
    BuiltInHost{"cpu", 10, 8, 0.8, 6},  // one message uses one lane of sixteen
    BuiltInHost{"openssl", 5, 0.9, 1.2, 1.2},
    BuiltInHost{"reference", 0.02, 0.02, 0.02, 0.02},
};
constexpr BuiltInHost kUnknownHost{"", 1, 0.5, 0.5, 0.5};
constexpr double kHostMemory = 40;  // all cores together do no more than memory allows

constexpr double kBuiltInKernel = 250;
constexpr double kBuiltInSequentialKernel = 40;
// A sequential batch keeps a device busy only with many messages, one thread each.
constexpr double kBusyMessages = 8192;

double rounds(int key_bits) {
    return key_bits / 32.0 + 6;
}

HostRate built_in(std::string_view backend, const Job& job) {
    const auto found = std::ranges::find(kBuiltInHosts, backend, &BuiltInHost::backend);
    const BuiltInHost& figures = found == kBuiltInHosts.end() ? kUnknownHost : *found;
    const double scale = rounds(128) / rounds(job.key_bits);
    HostRate rate{{}, job.mode, job.direction, job.key_bits};
    if (parallel_within_message(job.mode, job.direction)) {
        rate.one_core = scale * (job.mode == Mode::cfb ? figures.cfb_decrypt : figures.parallel);
        rate.all_cores = rate.batch_all = std::max(kHostMemory, rate.one_core);
        rate.batch_core = rate.one_core;
    } else {
        rate.one_core = rate.all_cores = scale * figures.sequential;
        rate.batch_core = scale * figures.sequential_batch;
        rate.batch_all = kHostMemory;
    }
    return rate;
}

template <class Rate>
bool is_for(const Rate& rate, const Job& job) {
    // CTR and OFB do the same both ways, and are measured once.
    const bool both = job.mode == Mode::ctr || job.mode == Mode::ofb;
    return rate.mode == job.mode && (both || rate.direction == job.direction) &&
           rate.key_bits == job.key_bits;
}

DeviceRates built_in_device() {
    DeviceRates rates;
    rates.start_seconds = 0.4;
    rates.setup_seconds = 100e-6;
    rates.copy_in = rates.copy_out = 20;
    rates.duplex = 15;
    rates.pageable = 6;
    rates.chunk = kDefaultChunk;
    return rates;
}

// All bytes of a job; what 64 bits cannot count is counted as the most that they can.
std::uint64_t total_bytes(const Job& job) {
    const auto most = std::numeric_limits<std::uint64_t>::max();
    return job.messages != 0 && job.size > most / job.messages ? most : job.size * job.messages;
}

double total(const Job& job) {
    return static_cast<double>(total_bytes(job));
}

Estimate impossible(std::string_view reason) {
    Estimate estimate;
    estimate.possible = false;
    estimate.limit = reason;
    return estimate;
}

}  // namespace

HostRate Planner::host_rate(std::string_view backend, const Job& job,
                            bool& measured) const noexcept {
    measured = true;
    if (calibration_)
        for (const HostRate& rate : calibration_->hosts)
            if (is_for(rate, job) && rate.backend == backend) return rate;
    measured = false;
    return built_in(backend, job);
}

bool Planner::device_considered(const Job& job) noexcept {
    return job.from == Job::From::device || total_bytes(job) >= kDeviceConsidered;
}

Estimate Planner::host(std::string_view backend, const Job& job, int threads) const noexcept {
    if (job.from == Job::From::device) return impossible("the data lies in device memory");
    Estimate estimate;
    const HostRate rate = host_rate(backend, job, estimate.measured);
    const std::uint64_t bytes = total_bytes(job);
    estimate.threads = threads_worth(job.mode, job.direction, bytes, job.messages, threads);
    const double count = estimate.threads;
    if (parallel_within_message(job.mode, job.direction)) {
        estimate.rate =
            count == 1 ? rate.one_core : std::min(rate.one_core * count, rate.all_cores);
        estimate.limit = count == 1 ? "one core" : "the cores";
    } else if (job.messages < 2) {
        estimate.rate = rate.one_core;
        estimate.limit = "one core, since each block needs the one before";
    } else {
        // Lanes that stay empty are lost: a lane runs no faster when others idle.
        const double lanes = std::min(static_cast<double>(job.messages) / count / kLanes, 1.0);
        const double core = std::max(rate.batch_core * lanes, rate.one_core);
        estimate.rate = count == 1 ? core : std::min(core * count, rate.batch_all);
        estimate.limit = "the cores, several messages on each";
    }
    estimate.setup_seconds = kCallSeconds + (estimate.threads > 1 ? kWakeSeconds : 0);
    estimate.seconds = estimate.setup_seconds + total(job) / (estimate.rate * kGiga);
    return estimate;
}

Estimate Planner::device(const DeviceRates& rates, const Job& job,
                         double start_seconds) const noexcept {
    const bool parallel = parallel_within_message(job.mode, job.direction);
    if (!parallel && job.messages < 2)
        return impossible(
            "each block needs the one before: a device does it for many messages only");
    Estimate estimate;
    const auto found = std::ranges::find_if(
        rates.kernels, [&](const KernelRate& rate) { return is_for(rate, job); });
    estimate.measured = found != rates.kernels.end();
    double kernel = estimate.measured ? found->rate
                                      : (parallel ? kBuiltInKernel : kBuiltInSequentialKernel) *
                                            rounds(128) / rounds(job.key_bits);
    if (!parallel) kernel *= std::min(1.0, static_cast<double>(job.messages) / kBusyMessages);
    estimate.setup_seconds = start_seconds;
    if (job.from == Job::From::device) {
        estimate.rate = kernel;
        estimate.limit = "the kernel";
        estimate.setup_seconds += kLaunchSeconds;
    } else {
        const bool pinned = job.from == Job::From::pinned;
        const double bus = pinned ? rates.duplex : rates.pageable;
        estimate.rate = std::min(kernel, bus);
        estimate.limit = kernel < bus ? "the kernel"
                         : pinned     ? "the bus, both directions at once"
                                      : "the copies through page-locked memory";
        estimate.chunk = rates.chunk;
        // While the last chunk goes out nothing else does anything; copies are cut to fit small
        // jobs.
        const double alone = std::min(total(job) / 4, static_cast<double>(rates.chunk));
        estimate.setup_seconds += rates.setup_seconds + alone / (rates.copy_out * kGiga);
    }
    estimate.seconds = estimate.setup_seconds + total(job) / (estimate.rate * kGiga);
    return estimate;
}

DeviceRates Planner::device_rates(std::string_view backend, std::string_view identity) const {
    if (calibration_)
        for (const DeviceRates& rates : calibration_->devices)
            if (rates.backend == backend && rates.device == identity) return rates;
    DeviceRates rates = built_in_device();
    rates.backend = backend;
    rates.device = identity;
    return rates;
}

DeviceRates Planner::expected_device() const {
    if (calibration_ && !calibration_->devices.empty()) return calibration_->devices.front();
    return built_in_device();
}
std::string in_words(std::uint64_t bytes) {
    constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
    char text[48];
    std::snprintf(text, sizeof text, value < 10 && unit != 0 ? "%.2f %s" : "%.0f %s", value,
                  kUnits[unit]);
    return text;
}

std::string rate_in_words(double gigabytes_per_second) {
    char text[48];
    std::snprintf(text, sizeof text, "%.3g GB/s", gigabytes_per_second);
    return text;
}

std::string time_in_words(double seconds) {
    char text[48];
    if (seconds < 1e-3)
        std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
    else if (seconds < 1)
        std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
    else
        std::snprintf(text, sizeof text, "%.3g s", seconds);
    return text;
}

std::string why(std::string_view backend, const Job& job, const Estimate& estimate) {
    const std::string limit(estimate.limit);
    if (!estimate.possible) return limit;
    return std::string(backend) +
           (estimate.threads > 1 ? " on " + std::to_string(estimate.threads) + " threads" : "") +
           ": " + in_words(total_bytes(job)) + " in " + time_in_words(estimate.seconds) +
           ", of which " + time_in_words(estimate.setup_seconds) + " to set up; " +
           rate_in_words(estimate.rate) + ", limited by " + limit +
           (estimate.measured ? " (measured here)" : " (built-in figure)");
}

Plan make_plan(const Job& job, std::vector<Option> options, bool calibrated) {
    std::ranges::stable_sort(options, [](const Option& a, const Option& b) {
        return a.possible != b.possible ? a.possible : a.seconds < b.seconds;
    });
    Plan plan{std::move(options), {}};
    const std::string what = std::string(name(job.mode)) + " " + std::string(name(job.direction)) +
                             "ion with a " + std::to_string(job.key_bits) + "-bit key";
    if (plan.options.empty() || !plan.options[0].possible) {
        plan.summary = "No backend here can do " + what + " on this data";
        if (!plan.options.empty())
            plan.summary += ": " + plan.options[0].backend + ": " + plan.options[0].why;
        return plan;
    }
    plan.summary = "For " + what + ", " + plan.options[0].why + ".";
    if (plan.options.size() > 1 && plan.options[1].possible)
        plan.summary += " Next best is " + plan.options[1].why + ".";
    if (!calibrated)
        plan.summary += " These are built-in figures: `daelstrom calibrate` measures this machine.";
    return plan;
}

}  // namespace dael::pipeline
