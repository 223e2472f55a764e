// SPDX-License-Identifier: Apache-2.0
#include "pipeline/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <memory>
#include <numeric>

#include <daelstrom/calibration.hpp>

#include "core/guard.hpp"
#include "core/registry.hpp"
#include "pipeline/host.hpp"
#include "pipeline/measure.hpp"

namespace dael {
namespace {

using Clock = std::chrono::steady_clock;
using pipeline::kLanes;

constexpr double kGiga = 1e9;

struct Way {
    Mode mode;
    Direction direction;
};
constexpr Way kWays[] = {
    {Mode::ecb, Direction::encrypt}, {Mode::ecb, Direction::decrypt},
    {Mode::cbc, Direction::encrypt}, {Mode::cbc, Direction::decrypt},
    {Mode::cfb, Direction::encrypt}, {Mode::cfb, Direction::decrypt},
    {Mode::ofb, Direction::encrypt}, {Mode::ctr, Direction::encrypt},
};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Rates in GB/s of `work`, which does `bytes`: the best of as many runs as fit the time, since
// whatever else the machine does only ever makes a run slower.
template <class Work>
Result<double> best_rate(std::size_t bytes, std::chrono::milliseconds time, Work work) {
    double best = 0;
    const auto stop = Clock::now() + time;
    do {
        const auto start = Clock::now();
        DAEL_TRY(work());
        const double seconds = seconds_since(start);
        best = std::max(best, static_cast<double>(bytes) / kGiga / std::max(seconds, 1e-9));
    } while (Clock::now() < stop);
    return best;
}

class Calibrator {
  public:
    Calibrator(const CalibrationProgress& progress, const pipeline::Effort& effort)
        : progress_(progress),
          effort_(effort),
          buffer_(std::max(effort.every_core * static_cast<std::size_t>(pool_.threads()),
                           effort.one_core)) {
        for (const int bytes : {16, 24, 32})
            keys_.push_back(
                *Key::import(std::vector<std::uint8_t>(static_cast<std::size_t>(bytes), 0x2b)));
    }

    Result<Calibration> run(const pipeline::Backends& hosts,
                            const std::function<pipeline::Backends()>& find_devices) {
        Calibration calibration;
        calibration.machine = describe_machine();
        char now[32];
        const std::time_t time = std::time(nullptr);
        std::tm utc{};
        std::strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &utc));
        calibration.made = now;

        report("looking for devices", 0);
        const auto start = Clock::now();
        pipeline::Backends devices = find_devices();
        const double opening = seconds_since(start);
        steps_ = static_cast<double>(hosts.size() * std::size(kWays) * keys_.size() +
                                     devices.size() * (8 + std::size(kWays) * keys_.size()));
        for (const auto& host : hosts) DAEL_TRY(measure_host(*host, calibration));
        for (auto& device : devices) {
            const std::string name(device->name());
            if (auto measured = measure_device(std::move(device), opening, calibration); !measured)
                calibration.left_out.push_back(name + ": " + measured.error().message);
        }
        report("done", 1);
        return calibration;
    }

  private:
    void report(std::string_view what, double done) const {
        if (progress_) progress_(what, done);
    }
    void step(std::string_view backend, std::string_view what) {
        report(std::string(backend) + ": " + std::string(what), std::min(step_++ / steps_, 1.0));
    }

    std::vector<core::Segment> messages(std::size_t count, std::size_t bytes) {
        std::vector<core::Segment> segments;
        const std::size_t size = bytes / count / kBlockSize * kBlockSize;
        for (std::size_t i = 0; i < count; ++i)
            segments.push_back({buffer_.data() + i * size, buffer_.data() + i * size, size, {}, 0});
        return segments;
    }

    Result<double> host_rate(core::Backend& backend, const core::Operation& operation, int threads,
                             std::size_t count) {
        const auto cores = static_cast<std::size_t>(threads);
        const std::size_t bytes = threads == 1 ? effort_.one_core : effort_.every_core * cores;
        const auto segments = messages(count, bytes);
        return best_rate(bytes, effort_.figure, [&]() -> Result<> {
            auto ran = pipeline::run_on_host(backend, pool_, operation, segments, threads);
            if (!ran) return std::move(ran).error();
            return {};
        });
    }

    Result<> measure_host(core::Backend& backend, Calibration& calibration) {
        for (const auto& [mode, direction] : kWays)
            for (const Key& key : keys_) {
                step(backend.name(), name(mode));
                const core::Operation operation{mode, direction, &key};
                HostRate rate{std::string(backend.name()), mode, direction, key.bits()};
                const bool parallel = parallel_within_message(mode, direction);
                const int all = pool_.threads();
                const auto each = static_cast<std::size_t>(all);
                struct {
                    double& rate;
                    int threads;
                    std::size_t count;
                } const figures[] = {{rate.one_core, 1, 1},
                                     {rate.all_cores, parallel ? all : 1, 1},
                                     {rate.batch_core, 1, kLanes},
                                     {rate.batch_all, all, kLanes * each}};
                for (const auto& figure : figures) {
                    auto measured = host_rate(backend, operation, figure.threads, figure.count);
                    if (!measured) return std::move(measured).error();
                    figure.rate = *measured;
                }
                calibration.hosts.push_back(std::move(rate));
            }
        return {};
    }

    Result<> measure_device(std::unique_ptr<core::Backend> backend, double opening,
                            Calibration& calibration) {
        core::Device& device = *backend->device();
        DeviceRates rates;
        rates.backend = backend->name();
        rates.device = pipeline::identity(device.info());
        // Drivers put off most of the start until something is asked of the device.
        const auto start = Clock::now();
        auto first = pipeline::measure_kernel(device, {Mode::ctr, Direction::encrypt, &keys_[0]},
                                              std::size_t{1} << 20, 1);
        if (!first) return std::move(first).error();
        rates.start_seconds = std::max(opening + seconds_since(start), 1e-3);
        DAEL_TRY(choose_shape(device, rates));
        DAEL_TRY(measure_copies(device, rates));
        for (const auto& [mode, direction] : kWays)
            for (const Key& key : keys_) {
                step(rates.backend, std::string("kernel ") + std::string(name(mode)));
                const bool parallel = parallel_within_message(mode, direction);
                const std::size_t size = parallel ? effort_.kernel : effort_.sequential;
                auto seconds = pipeline::measure_kernel(device, {mode, direction, &key}, size, 5);
                if (!seconds) return std::move(seconds).error();
                rates.kernels.push_back(
                    {mode, direction, key.bits(),
                     static_cast<double>(size) / kGiga / std::max(*seconds, 1e-9)});
            }
        calibration.devices.push_back(std::move(rates));
        return {};
    }

    // What both directions of the cipher take in this shape of kernels, which stays in use.
    Result<double> seconds_in_shape(core::Device& device, const std::string& shape) {
        DAEL_TRY(device.use_shape(shape));
        double sum = 0;
        for (const auto& [mode, direction] :
             {std::pair{Mode::ctr, Direction::encrypt}, std::pair{Mode::cbc, Direction::decrypt}}) {
            const core::Operation operation{mode, direction, &keys_[0]};
            auto seconds = pipeline::measure_kernel(device, operation, effort_.kernel, 5);
            if (!seconds) return std::move(seconds).error();
            sum += *seconds;
        }
        return sum;
    }

    // The fastest shape; leaves it in use. Shapes are offers: a driver may refuse some of them.
    Result<> choose_shape(core::Device& device, DeviceRates& rates) {
        double best = std::numeric_limits<double>::infinity();
        Result<> refused;
        for (const std::string& shape : device.shapes()) {
            step(rates.backend, shape);
            const auto seconds = seconds_in_shape(device, shape);
            if (!seconds) refused = seconds.error();
            if (!seconds || *seconds >= best) continue;
            best = *seconds;
            rates.shape = shape;
        }
        return rates.shape.empty() ? refused : device.use_shape(rates.shape);
    }

    // The bus, the best chunk, and what pageable memory makes of it.
    Result<> measure_copies(core::Device& device, DeviceRates& rates) {
        const auto release = [&](std::uint8_t* memory) { device.release_pinned(memory); };
        using Pinned = std::unique_ptr<std::uint8_t, decltype(release)>;
        step(rates.backend, "page-locking memory");
        auto in_memory = device.allocate_pinned(effort_.bus),
             out_memory = device.allocate_pinned(effort_.bus);
        const Pinned in(in_memory ? static_cast<std::uint8_t*>(*in_memory) : nullptr, release);
        const Pinned out(out_memory ? static_cast<std::uint8_t*>(*out_memory) : nullptr, release);
        if (!in || !out) return in ? std::move(out_memory).error() : std::move(in_memory).error();
        const HostIn from(in.get(), effort_.bus);
        const HostOut to(out.get(), effort_.bus);

        pipeline::Transfer transfer(device, pool_);
        double best_job = 0;
        for (const std::size_t mebibytes : {2, 4, 8, 16, 32}) {
            step(rates.backend, "copies");
            const std::size_t chunk = mebibytes << 20;
            pipeline::BusRates best;
            for (int repeat = 0; repeat < 4; ++repeat) {  // the first also allocates the slots
                auto bus = pipeline::measure_bus(device, transfer, from, to, chunk);
                if (!bus) return std::move(bus).error();
                best.copy_in = std::max(best.copy_in, bus->copy_in);
                best.copy_out = std::max(best.copy_out, bus->copy_out);
                best.duplex = std::max(best.duplex, bus->duplex);
                best.whole_job = std::max(best.whole_job, bus->whole_job);
            }
            rates.copy_in = std::max(rates.copy_in, best.copy_in);
            rates.copy_out = std::max(rates.copy_out, best.copy_out);
            rates.duplex = std::max(rates.duplex, best.duplex);
            // A larger chunk must earn its memory, and the wait for its first bytes and its last.
            if (best.whole_job > best_job * 1.02) {
                best_job = best.whole_job;
                rates.chunk = chunk;
            }
        }

        step(rates.backend, "pageable memory");
        std::vector<std::uint8_t> pageable_in(effort_.bus, 1), pageable_out(effort_.bus, 2);
        pipeline::TransferOptions options;
        options.chunk = rates.chunk;
        options.threads = pool_.threads();
        const core::Operation operation{Mode::ctr, Direction::encrypt, &keys_[0]};
        const auto timed = [&](const core::Segment& segment) {
            return best_rate(segment.size, effort_.figure, [&]() -> Result<> {
                auto done = transfer.run(operation, std::span(&segment, 1), options);
                if (!done) return std::move(done).error();
                return {};
            });
        };
        const core::Segment large{pageable_in.data(), pageable_out.data(), effort_.bus, {}, 0};
        DAEL_TRY(timed(large));  // allocates the staging rings
        auto rate = timed(large);
        if (!rate) return std::move(rate).error();
        rates.pageable = *rate;

        step(rates.backend, "set-up");
        constexpr std::size_t kHardlyAny = 4096;
        auto small = timed({pageable_in.data(), pageable_out.data(), kHardlyAny, {}, 0});
        if (!small) return std::move(small).error();
        rates.setup_seconds = static_cast<double>(kHardlyAny) / kGiga / *small;
        return {};
    }

    const CalibrationProgress& progress_;
    const pipeline::Effort effort_;
    pipeline::ThreadPool pool_;
    std::vector<std::uint8_t> buffer_;
    std::vector<Key> keys_;
    double steps_ = 1;
    double step_ = 0;
};

}  // namespace

namespace pipeline {

Result<Calibration> calibrate_backends(const Backends& hosts,
                                       const std::function<Backends()>& find_devices,
                                       const CalibrationProgress& progress, const Effort& effort) {
    return core::guarded([&] { return Calibrator(progress, effort).run(hosts, find_devices); });
}

}  // namespace pipeline

Result<Calibration> calibrate(const CalibrationProgress& progress) {
    return core::guarded([&] {
        pipeline::Backends hosts;
        for (const char* backend : {"cpu", "openssl"})
            if (auto opened = core::open_backend(backend)) hosts.push_back(std::move(*opened));
        return pipeline::calibrate_backends(hosts, pipeline::open_devices, progress, {});
    });
}

}  // namespace dael
