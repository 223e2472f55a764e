// SPDX-License-Identifier: Apache-2.0
#include "pipeline/engine_state.hpp"

#include <algorithm>
#include <map>

#include "core/registry.hpp"
#include "pipeline/host.hpp"

namespace dael {
namespace pipeline {

Lane::Lane(std::unique_ptr<core::Backend> opened, ThreadPool& pool, const Planner& planner,
           bool shaped)
    : backend(std::move(opened)),
      device(*backend->device()),
      rates(planner.device_rates(backend->name(), identity(device.info()))),
      transfer(device, pool),
      gcm(device, pool) {
    // A shape that the device no longer takes, after a change of ours, is as good as none.
    if (shaped && !rates.shape.empty()) (void)device.use_shape(rates.shape);
}

std::string identity(const core::DeviceInfo& info) {
    return info.name + ", " + info.driver;
}

Error authentication_failed() {
    return {Code::authentication,
            "the tag does not match: a wrong key, IV or additional data, or altered data"};
}

Result<std::vector<Code>> fetch_results(core::Device& device, const core::PreparedMessages& batch,
                                        std::size_t count, Stream stream) {
    // Whatever comes of the copy, nothing is ok that nobody has written.
    std::vector<std::uint32_t> raw(count, static_cast<std::uint32_t>(Code::internal));
    DAEL_TRY(device.copy_out(raw.data(), batch.results(), count * sizeof raw[0], stream));
    DAEL_TRY(device.wait(stream));
    DAEL_TRY(batch.outcome());
    std::vector<Code> codes;
    codes.reserve(count);
    for (const std::uint32_t code : raw) codes.push_back(static_cast<Code>(code));
    return codes;
}

namespace {

Backends open_devices(bool once) {
    Backends devices;
    std::map<std::string, const core::BackendEntry*> takers;
    core::visit_devices([&](const core::BackendEntry& entry, int index, const std::string& name) {
        const auto taker = takers.find(name);
        if (once && taker != takers.end() && taker->second != &entry) return false;
        if (auto backend = entry.open({.isa = {}, .index = index, .later = true})) {
            devices.push_back(std::move(*backend));
            takers.emplace(name, &entry);
        }
        return false;
    });
    return devices;
}

}  // namespace

Backends open_devices() {
    return open_devices(false);
}
Backends open_devices_once() {
    return open_devices(true);
}

Engine make_engine(std::unique_ptr<core::Backend> backend, EngineOptions options) {
    Backends given;
    given.push_back(std::move(backend));
    return Engine::State::wrap(std::make_unique<Engine::State>(std::move(options), std::move(given),
                                                               nullptr, std::nullopt));
}

Engine make_auto_engine(std::unique_ptr<core::Backend> host, std::function<Backends()> devices,
                        EngineOptions options, std::optional<Calibration> calibration) {
    Backends given;
    given.push_back(std::move(host));
    return Engine::State::wrap(std::make_unique<Engine::State>(
        std::move(options), std::move(given), std::move(devices), std::move(calibration)));
}

}  // namespace pipeline

using pipeline::Estimate;
using pipeline::Lane;

Engine::State::State(EngineOptions engine_options, pipeline::Backends given,
                     std::function<pipeline::Backends()> find_devices,
                     std::optional<Calibration> calibration)
    : options_(std::move(engine_options)),
      planner_(std::move(calibration)),
      expected_(planner_.expected_device()),
      pool_(options_.threads),
      find_devices_(std::move(find_devices)) {
    if (!given.front()->device()) {
        hosts_ = std::move(given);
    } else {
        lanes_.push_back(std::make_unique<Lane>(std::move(given.front()), pool_, planner_,
                                                options_.isa.empty()));
        opened_ = started_ = true;
    }
}

Engine::State::Lanes& Engine::State::lanes() {
    if (!opened_.load(std::memory_order_acquire) && find_devices_)
        std::call_once(opened_once_, [&] {
            for (auto& backend : find_devices_())
                lanes_.push_back(std::make_unique<Lane>(std::move(backend), pool_, planner_, true));
            opened_.store(true, std::memory_order_release);
        });
    return lanes_;
}

// Starting a device takes longer than most jobs. Each job that a device would have done sooner, had
// it been started, adds what was missed by not starting it; once that reaches the price of starting
// it is paid. So one long job starts a device at once, many short ones in the end, and either way
// the start costs at most as much again as the best that foresight could have done.
double Engine::State::start_seconds(const DeviceRates& rates) const noexcept {
    return started_ ? 0 : std::max(0.0, rates.start_seconds - missed_seconds_);
}

core::Backend& Engine::State::choose_host(const Job& job) const {
    if (hosts_.size() == 1) return *hosts_.front();
    return **std::ranges::min_element(hosts_, {}, [&](const auto& host) {
        return planner_.host(host->name(), job, pool_.threads()).seconds;
    });
}

Lane* Engine::State::choose(const core::Backend& host, std::span<const core::Segment> segments,
                            Job& job) {
    if (!pipeline::Planner::device_considered(job)) return nullptr;
    if (opened_ && lanes_.empty()) return nullptr;
    const double host_seconds = planner_.host(host.name(), job, pool_.threads()).seconds;
    if (!started_) {
        const DeviceRates& rates = opened_ ? lanes_.front()->rates : expected_;
        const Estimate estimate = planner_.device(rates, job, start_seconds(rates));
        if (!estimate.possible) return nullptr;
        if (estimate.seconds >= host_seconds) {
            const double running = planner_.device(rates, job, 0).seconds;
            missed_seconds_.fetch_add(std::max(0.0, host_seconds - running));
            return nullptr;
        }
        if (lanes().empty()) return nullptr;
    }
    Lane* best = nullptr;
    double best_seconds = host_seconds;
    for (const auto& lane : lanes_) {
        if (lane->failed) continue;
        const auto direct = pipeline::direct_copies(lane->device, segments);
        job.from = direct.in && direct.out ? Job::From::pinned : Job::From::host;
        const Estimate estimate = planner_.device(lane->rates, job, start_seconds(lane->rates));
        if (!estimate.possible || estimate.seconds >= best_seconds) continue;
        best = lane.get();
        best_seconds = estimate.seconds;
    }
    return best;
}

Result<Ran> Engine::State::run_on_host(core::Backend& host, const core::Operation& operation,
                                       std::span<const core::Segment> segments) {
    auto threads = pipeline::run_on_host(host, pool_, operation, segments, pool_.threads());
    if (!threads) return std::move(threads).error();
    return Ran{std::string(host.name()), *threads, 0};
}

pipeline::TransferOptions Engine::State::transfer_options(const Lane& lane) const {
    pipeline::TransferOptions options;
    options.chunk = options_.chunk != 0 ? options_.chunk : lane.rates.chunk;
    options.threads = pool_.threads();
    return options;
}

Result<Ran> Engine::State::run_through(Lane& lane, const core::Operation& operation,
                                       std::span<const core::Segment> segments) {
    started_ = true;
    const std::string backend(lane.backend->name());
    // Messages without a byte need nothing of a device, so no mode refuses them.
    const bool any_bytes = std::ranges::any_of(
        segments, [](const core::Segment& segment) { return segment.size != 0; });
    if (any_bytes && !lane.backend->supports(operation.mode, operation.direction, segments.size()))
        return Error{
            Code::unsupported,
            "backend '" + backend + "' cannot " + std::string(name(operation.direction)) +
                " a single message in " + std::string(name(operation.mode)) +
                " mode, whose blocks depend on one another; pass many messages at once, or "
                "use the backend 'auto' or 'cpu'"};
    auto done = lane.transfer.run(operation, segments, transfer_options(lane));
    if (!done) return std::move(done).error();
    return Ran{backend, done->threads, done->chunks};
}

Result<Ran> Engine::State::run(const core::Operation& operation,
                               std::span<const core::Segment> segments) {
    if (hosts_.empty()) return run_through(*lanes_.front(), operation, segments);
    if (!find_devices_) return run_on_host(*hosts_.front(), operation, segments);
    Job job{operation.mode, operation.direction, operation.key->bits(), 0, segments.size()};
    bool in_place = false;
    for (const auto& segment : segments) {
        job.size += segment.size;
        in_place = in_place || segment.in == segment.out;
    }
    if (!segments.empty()) job.size /= segments.size();
    core::Backend& host = choose_host(job);
    Lane* lane = choose(host, segments, job);
    if (!lane) return run_on_host(host, operation, segments);
    auto ran = run_through(*lane, operation, segments);
    if (ran || (ran.code() != Code::device && ran.code() != Code::backend_absent &&
                ran.code() != Code::out_of_memory))
        return ran;
    // The device failed, cannot be used, as its first use showed, or has no room. The host can
    // still do it, as long as the input is untouched.
    if (ran.code() != Code::out_of_memory) lane->failed = true;
    return in_place ? std::move(ran) : run_on_host(host, operation, segments);
}

Result<Lane*> Engine::State::lane_of(const void* device_memory) {
    if (!hosts_.empty() && !find_devices_)
        return Error{Code::unsupported, "backend '" + std::string(hosts_.front()->name()) +
                                            "' does not reach device memory; open the engine with "
                                            "the backend 'auto' or 'cuda'"};
    auto& lanes = this->lanes();
    if (lanes.empty())
        return Error{Code::backend_absent,
                     "data in device memory, but no device is available here; `daelstrom devices` "
                     "says what is missing"};
    started_ = true;
    if (lanes.size() == 1) return lanes.front().get();
    for (const auto& lane : lanes)
        if (lane->device.owns(device_memory)) return lane.get();
    return Error{Code::invalid_argument, "the pointer is in no device's memory"};
}

Option Engine::State::host_option(const core::Backend& host, const Job& job) const {
    const bool shared = host.shared_by_threads();
    Estimate estimate = planner_.host(host.name(), job, shared ? pool_.threads() : 1);
    if (!shared && estimate.possible) estimate.limit = "the backend itself";
    Option option{std::string(host.name()),
                  estimate.threads,
                  0,
                  estimate.rate,
                  estimate.setup_seconds,
                  estimate.seconds,
                  estimate.measured,
                  pipeline::why(host.name(), job, estimate),
                  estimate.possible};
    if (option.possible && !host.supports(job.mode, job.direction, job.messages)) {
        option.possible = false;
        option.why = "the backend lacks this mode";
    }
    return option;
}

Option Engine::State::device_option(const Lane& lane, const Job& job) const {
    const Estimate estimate = planner_.device(lane.rates, job, start_seconds(lane.rates));
    Option option{std::string(lane.backend->name()),
                  1,
                  options_.chunk != 0 && estimate.chunk != 0 ? options_.chunk : estimate.chunk,
                  estimate.rate,
                  estimate.setup_seconds,
                  estimate.seconds,
                  estimate.measured,
                  pipeline::why(lane.backend->name(), job, estimate),
                  estimate.possible};
    if (!hosts_.empty() && !pipeline::Planner::device_considered(job)) {
        option.possible = false;
        option.why = "too little data to be worth asking a device";
    } else if (lane.failed) {
        option.possible = false;
        option.why = "the device has failed before";
    }
    return option;
}

Plan Engine::State::explain(const Job& job) {
    std::vector<Option> options;
    for (const auto& host : hosts_) options.push_back(host_option(*host, job));
    for (const auto& lane : lanes()) options.push_back(device_option(*lane, job));
    return pipeline::make_plan(job, std::move(options), planner_.calibrated());
}

std::vector<std::string> Engine::State::backends() {
    std::vector<std::string> names;
    for (const auto& host : hosts_) names.emplace_back(host->name());
    if (opened_.load(std::memory_order_acquire))
        for (const auto& lane : lanes_) names.emplace_back(lane->backend->name());
    return names;
}

}  // namespace dael
