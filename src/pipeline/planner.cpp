// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planner.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "modes/traits.hpp"
#include "pipeline/share.hpp"
#include "pipeline/transfer.hpp"

namespace dael::pipeline {
namespace {

constexpr double kCallSeconds = 1e-6;   // of any call on the host
constexpr double kWakeSeconds = 20e-6;  // to have the other threads at work
constexpr double kLaunchSeconds = 5e-6;
// A kernel that reads and writes the host's memory itself: the launch and the wait for it, and what
// it gets across the bus of what copies get. Measured on an H200.
constexpr double kReachSeconds = 13e-6, kReachRate = 0.75;
constexpr double kGiga = 1e9;
// Below this no device can win: the set-up of a call through it is longer than the whole job on a
// core.
constexpr std::uint64_t kDeviceConsidered = std::uint64_t{64} << 10;

// Without a calibration: what host backends are expected to do is their own to say
// (core::Expected), for AES-128; rounds scale it to the other keys. Deliberately low for devices:
// without a measurement, a copy across an unknown bus should not be preferred to the cores.
constexpr double kHostMemory = 40;  // all cores together do no more than memory allows

constexpr double kBuiltInKernel = 250;
constexpr double kBuiltInSequentialKernel = 40;
// A sequential batch keeps a device busy only with many messages, one thread each.
constexpr double kBusyMessages = 8192;
// Of modes whose messages have keys of their own a device's unit takes one at most, however long.
constexpr double kBusyUnits = 128;

double rounds(int key_bits) {
    return key_bits / 32.0 + 6;
}

HostRate built_in(const core::Expected& figures, const Cipher& cipher, int key_bits) {
    const double scale = rounds(128) / rounds(key_bits);
    HostRate rate{{}, cipher.mode, cipher.direction, key_bits};
    if (is_aegis(cipher.mode)) {
        rate.one_core = rate.batch_core = rate.all_cores = figures.aegis;
        rate.batch_all = std::max(kHostMemory, rate.one_core);
    } else if (parallel_within_message(cipher.mode, cipher.direction)) {
        rate.one_core = scale * (cipher.mode == Mode::cfb     ? figures.cfb_decrypt
                                 : authenticates(cipher.mode) ? figures.gcm
                                                              : figures.parallel);
        rate.batch_core = rate.one_core;
        rate.batch_all = std::max(kHostMemory, rate.one_core);
        rate.all_cores = modes::can_cut(cipher) ? rate.batch_all : rate.one_core;
    } else {
        rate.one_core = rate.all_cores = scale * figures.sequential;
        rate.batch_core = scale * figures.sequential_batch;
        rate.batch_all = kHostMemory;
    }
    return rate;
}

// gcm_ctr is ctr.
bool is_for(Mode mode, Direction direction, int key_bits, const Cipher& cipher, int bits) {
    const Mode as_run = cipher.mode == Mode::gcm_ctr ? Mode::ctr : cipher.mode;
    // What does the same both ways is measured once, and so is what takes the same time.
    return mode == as_run && key_bits == bits &&
           (modes::traits(mode).both_ways || authenticates(mode) || direction == cipher.direction);
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

std::uint64_t total_bytes(const Job& job) {
    const auto most = std::numeric_limits<std::uint64_t>::max();
    return job.messages != 0 && job.size > most / job.messages ? most : job.size * job.messages;
}

// They end together: those who have a part do `bytes` in the time that each has left once it is set
// up. Whoever is set up soonest comes first.
Together together(std::span<const Estimate> each, double bytes, double memory) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < each.size(); ++i)
        if (each[i].possible && each[i].rate > 0) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return each[i].setup_seconds; });
    Together all{std::vector<double>(each.size()), 0, 0};
    double waited = 0, best = 0;  // bytes that are not done while somebody is set up
    std::size_t members = 0;
    for (const std::size_t i : order) {
        if (members != 0 && each[i].setup_seconds >= all.seconds) break;
        all.rate += each[i].rate;
        best = std::max(best, each[i].rate);
        waited += each[i].rate * kGiga * each[i].setup_seconds;
        all.seconds = (bytes + waited) / (all.rate * kGiga);
        ++members;
    }
    for (std::size_t i = 0; i < members; ++i) {
        const Estimate& its = each[order[i]];
        const double done = its.rate * kGiga * (all.seconds - its.setup_seconds);
        all.shares[order[i]] = bytes > 0 ? done / bytes : 1.0 / static_cast<double>(members);
    }
    if (members > 1 && memory > 0 && memory < all.rate && best < all.rate) {
        const double bound = std::max(memory, best);
        all.seconds = std::max(all.seconds, waited / (all.rate * kGiga) + bytes / (bound * kGiga));
        all.rate = bound;
    }
    return all;
}

Planner::Planner(std::optional<Calibration> calibration, const std::vector<Host>& hosts)
    : calibration_(std::move(calibration)) {
    for (const Host& host : hosts) {
        Table& table = tables_.emplace_back();
        for (const Mode mode : kModes)
            for (const Direction direction : {Direction::encrypt, Direction::decrypt})
                for (const int bits : {128, 192, 256}) {
                    const Cipher cipher{mode, direction};
                    HostRate rate = built_in(host.expected, cipher, bits);
                    bool measured = false;
                    if (calibration_)
                        for (const HostRate& r : calibration_->hosts)
                            if (r.backend == host.name &&
                                is_for(r.mode, r.direction, r.key_bits, cipher, bits))
                                rate = r, measured = true;
                    table[kind(cipher, bits)] = {rate.one_core, rate.all_cores, rate.batch_core,
                                                 rate.batch_all, measured};
                }
    }
}

const Planner::Rates& Planner::rates(std::size_t host, const Job& job) const noexcept {
    return tables_[host][kind(job.cipher, job.key_bits)];
}

bool Planner::device_considered(const Job& job) noexcept {
    return job.from == Job::From::device || total_bytes(job) >= kDeviceConsidered;
}

Estimate Planner::host(std::size_t host, const Job& job, int threads) const noexcept {
    if (job.from == Job::From::device) return impossible("the data lies in device memory");
    Estimate estimate;
    const Rates& rate = rates(host, job);
    estimate.measured = rate.measured;
    const std::uint64_t bytes = total_bytes(job);
    estimate.threads = threads_worth(job.cipher, bytes, job.messages, threads);
    const double count = estimate.threads;
    if (is_aegis(job.cipher.mode) ||
        parallel_within_message(job.cipher.mode, job.cipher.direction)) {
        const double all = job.messages > 1 ? rate.batch_all : rate.all_cores;
        estimate.rate = count == 1 ? rate.one_core : std::min(rate.one_core * count, all);
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
    if (calibration_ && calibration_->memory_all > 0 && total(job) > count * kCached) {
        const double memory =
            count == 1 ? calibration_->memory_core
                       : std::min(count * calibration_->memory_core, calibration_->memory_all);
        if (memory < estimate.rate) {
            estimate.rate = memory;
            estimate.limit = "memory, which must be read and written";
        }
    }
    estimate.setup_seconds = kCallSeconds + (estimate.threads > 1 ? kWakeSeconds : 0);
    estimate.seconds = estimate.setup_seconds + total(job) / (estimate.rate * kGiga);
    return estimate;
}

Estimate Planner::device(const DeviceRates& rates, const Job& job, double start_seconds,
                         std::size_t reach) const noexcept {
    const bool parallel = parallel_within_message(job.cipher.mode, job.cipher.direction);
    if (!parallel && job.messages < 2)
        return impossible(
            "each block needs the one before: a device does it for many messages only");
    Estimate estimate;
    const auto found = std::ranges::find_if(rates.kernels, [&](const KernelRate& rate) {
        return is_for(rate.mode, rate.direction, rate.key_bits, job.cipher, job.key_bits);
    });
    estimate.measured = found != rates.kernels.end();
    double kernel = estimate.measured ? found->rate
                                      : (parallel ? kBuiltInKernel : kBuiltInSequentialKernel) *
                                            rounds(128) / rounds(job.key_bits);
    if (!parallel) kernel *= std::min(1.0, static_cast<double>(job.messages) / kBusyMessages);
    if (job.cipher.mode == Mode::xaes256gcm || job.cipher.mode == Mode::gcm_siv)
        kernel *= std::min(1.0, static_cast<double>(job.messages) / kBusyUnits);
    estimate.setup_seconds = start_seconds;
    if (job.from == Job::From::device) {
        estimate.rate = kernel;
        estimate.limit = "the kernel";
        estimate.setup_seconds += kLaunchSeconds;
    } else if (job.from == Job::From::pinned &&
               in_reach(reach, job.cipher, total_bytes(job), job.messages)) {
        const double bus = kReachRate * rates.duplex;
        estimate.rate = std::min(kernel, bus);
        estimate.limit = kernel < bus ? "the kernel" : "the bus, which the kernel reaches across";
        estimate.setup_seconds += kReachSeconds;
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
    const std::string what = std::string(name(job.cipher.mode)) + " " +
                             std::string(name(job.cipher.direction)) + "ion with a " +
                             std::to_string(job.key_bits) + "-bit key";
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
