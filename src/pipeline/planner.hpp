// SPDX-License-Identifier: Apache-2.0
// The cost model: predicts how long each way of doing a job takes, from a calibration where there
// is one and from built-in figures where not. Engine::run under `auto` and Engine::explain() ask
// the same functions, so that what is explained is what is done.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/engine.hpp>
#include <daelstrom/plan.hpp>

#include "core/backend.hpp"

namespace dael::pipeline {

struct Estimate {
    bool possible = true;
    bool measured = false;
    int threads = 1;
    std::size_t chunk = 0;
    double setup_seconds = 0;
    double seconds = 0;      // setup included
    double rate = 0;         // GB/s, setup left out
    std::string_view limit;  // what the rate is bounded by, or what stands against the job
};

// Several ways of doing a job, at once.
struct Together {
    // Who has a part in it, and which, 0 to 1: whoever is not set up before the others have ended
    // has none.
    std::vector<double> shares;
    double seconds = 0;
    double rate = 0;  // GB/s, set-up left out
    std::size_t members() const noexcept {
        return static_cast<std::size_t>(
            std::ranges::count_if(shares, [](double share) { return share > 0; }));
    }
};
// `bytes` of the job. `memory`: GB/s that the host's memory allows them together, 0 for any.
// `seconds` is that of the best alone, or less.
Together together(std::span<const Estimate> each, double bytes, double memory = 0);
// Several are more trouble than one, and their figures add up to more than there will be: `auto`
// has them only for so many bytes, and where they are predicted to take so much of the best one's
// time.
inline constexpr std::uint64_t kLeastForSeveral = std::uint64_t{4} << 20;
inline constexpr double kWorthSeveral = 0.9;

class Planner {
  public:
    // The host backends, which are numbered in this order.
    struct Host {
        std::string name;
        core::Expected expected;
    };
    Planner(std::optional<Calibration> calibration, const std::vector<Host>& hosts);

    // Bytes below which one message is one core's, and no device's.
    static constexpr std::uint64_t kShort = std::uint64_t{32} << 10;
    // Bytes for each thread up to which caches may hold a job, and the figures of the cipher count;
    // beyond, memory is the limit, where that was measured.
    static constexpr std::uint64_t kCached = std::uint64_t{4} << 20;
    // Jobs by mode, direction and key size.
    static constexpr std::size_t kKinds = kModes.size() * 2 * 3;
    static std::size_t kind(const Cipher& cipher, int key_bits) noexcept {
        return (static_cast<std::size_t>(cipher.mode) * 2 +
                static_cast<std::size_t>(cipher.direction)) *
                   3 +
               static_cast<std::size_t>(key_bits / 64 - 2);
    }
    // False for jobs so small that `auto` does not even ask about devices.
    static bool device_considered(const Job& job) noexcept;

    // `threads`: the most that the engine may use.
    Estimate host(std::size_t host, const Job& job, int threads) const noexcept;
    // `start_seconds`: what is still to be paid for the first use of the device in this process.
    // `reach`: of its kernels, as core::Device has it.
    Estimate device(const DeviceRates& rates, const Job& job, double start_seconds,
                    std::size_t reach = 0) const noexcept;

    // The rates of a device that is open; the built-in ones where the calibration has another
    // device.
    DeviceRates device_rates(std::string_view backend, std::string_view identity) const;
    // The rates to expect of a device that has not been opened.
    DeviceRates expected_device() const;
    // What the host's memory allows a job of so many bytes whoever works on it, where a host
    // backend is among them; GB/s, 0 where nobody knows or caches may hold it.
    double memory(std::uint64_t bytes, int threads) const noexcept {
        const auto held = static_cast<std::uint64_t>(threads) * kCached;
        return calibration_ && bytes > held ? calibration_->memory_all : 0;
    }
    bool calibrated() const noexcept { return calibration_.has_value(); }

  private:
    // GB/s, as a HostRate has them.
    struct Rates {
        double one_core, all_cores, batch_core, batch_all;
        bool measured;
    };
    using Table = std::array<Rates, kKinds>;  // by kind, so that no call searches
    const Rates& rates(std::size_t host, const Job& job) const noexcept;

    std::optional<Calibration> calibration_;
    std::vector<Table> tables_;  // a host's each
};

// "1.00 GiB", "64 KiB", "17 bytes"; "21.4 GB/s"; "1.3 ms".
std::string in_words(std::uint64_t bytes);
std::string rate_in_words(double gigabytes_per_second);
std::string time_in_words(double seconds);

// All bytes of a job; what 64 bits cannot count is counted as the most that they can.
std::uint64_t total_bytes(const Job& job);

// The two sentences of an option and of a plan.
std::string why(std::string_view backend, const Job& job, const Estimate& estimate);
Plan make_plan(const Job& job, std::vector<Option> options, bool calibrated);

}  // namespace dael::pipeline
