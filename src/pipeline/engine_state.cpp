// SPDX-License-Identifier: Apache-2.0
#include "pipeline/engine_state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <thread>

#include "core/guard.hpp"
#include "core/keep_forever.hpp"
#include "core/process.hpp"
#include "core/registry.hpp"
#include "modes/starts.hpp"
#include "pipeline/key_set.hpp"
#include "pipeline/share.hpp"

namespace dael {
namespace pipeline {
namespace {

// What the bus does, where it may not do all that it can.
DeviceRates within(DeviceRates rates, const Budget& budget) {
    const double most = static_cast<double>(budget.copy_rate) / 1e9;
    for (double* rate : {&rates.copy_in, &rates.copy_out, &rates.duplex, &rates.pageable})
        if (budget.copy_rate != 0) *rate = std::min(*rate, most);
    return rates;
}

}  // namespace

DevicePath::DevicePath(std::unique_ptr<core::Backend> opened, std::size_t its_number,
                       ThreadPool& pool, const Planner& planner, bool formed, const Budget& budget)
    : Worker{opened.get(), its_number},
      owned(std::move(opened)),
      device(*owned->device()),
      rates(planner.device_rates(name(), identity(device.info()))),
      transfer(device, pool, budget) {
    rates = within(rates, budget);
    core::Forms* const forms = device.forms();
    if (!formed || !forms || rates.form.empty()) return;
    // Only what the device itself offers: a file must not talk it into a form that it holds to be
    // unsafe here. What it no longer offers, after a change of ours, is as good as none.
    const auto offered = forms->list();
    if (std::ranges::find(offered, rates.form) != offered.end()) (void)forms->use(rates.form);
}

DevicePath::~DevicePath() {
    if (transfer.given_up()) core::keep_forever(std::move(owned));
}

namespace {

// A compiler's log may follow.
std::string first_line(const std::string& message) {
    return message.substr(0, message.find('\n'));
}

}  // namespace

void Failure::note(const Error& error) noexcept {
    noted_ = true;
    (void)core::guarded([&]() -> Result<> {
        auto mine = std::make_unique<const Error>(error);
        const Error* first = nullptr;
        if (error_.compare_exchange_strong(first, mine.get())) (void)mine.release();
        return {};
    });
}

std::string Failure::why() const {
    const Error* const error = error_;
    return "the device has failed and is left alone" +
           (error ? ": " + first_line(error->message) : "");
}

std::string identity(const DeviceInfo& info) {
    return info.name + ", " + info.driver;
}

Error authentication_failed() {
    return {Code::authentication,
            "the tag does not match: a wrong key, IV or additional data, or altered data"};
}

Error of_message(std::size_t index, Error error) {
    error.message = "message " + std::to_string(index) + ": " + error.message;
    return error;
}

namespace {

Devices open_devices(bool once) {
    Devices found;
    std::map<std::string, const core::BackendEntry*> takers;
    core::visit_devices([&](const core::BackendEntry& entry, int index, const std::string& name) {
        const auto taker = takers.find(name);
        if (once && taker != takers.end() && taker->second != &entry) return false;
        auto backend = entry.open({.form = {}, .index = index, .later = true});
        if (backend) {
            found.opened.push_back(std::move(*backend));
            takers.emplace(name, &entry);
        } else {
            found.left_out.push_back({std::string(entry.name) + ":" + std::to_string(index),
                                      std::move(backend).error()});
        }
        return false;
    });
    return found;
}

std::vector<Planner::Host> hosts_among(const Backends& backends, const std::string& form) {
    std::vector<Planner::Host> hosts;
    for (const auto& backend : backends) {
        if (backend->device()) continue;
        Planner::Host host{backend->profile().name, {}};
        for (const core::BackendEntry& entry : core::backend_list())
            if (host.name == entry.name && entry.expected) host.expected = entry.expected(form);
        hosts.push_back(std::move(host));
    }
    return hosts;
}

std::uint64_t next_serial() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

// What memory was last found to be a device's, by this thread: asking the driver takes as long as a
// tenth of a launch. By stretches of 2 MiB, the least that drivers map on a device at a time, so
// that none is the host's and a device's at once. Only where there is one device: of several, one
// may get an address that another one has given back.
struct Known {
    std::uint64_t engine = 0;
    std::uintptr_t stretch = 0;
    DevicePath* path = nullptr;
};
constexpr int kStretch = 21;
Known& known(const void* memory) {
    thread_local std::array<Known, 64> all;
    return all[(reinterpret_cast<std::uintptr_t>(memory) >> kStretch) % all.size()];
}

}  // namespace

Backends open_devices() {
    return open_devices(false).opened;
}
Devices open_devices_once() {
    return open_devices(true);
}

Engine make_engine(std::unique_ptr<core::Backend> backend, EngineOptions options) {
    Backends given;
    given.push_back(std::move(backend));
    return Engine(std::make_shared<Engine::State>(std::move(options), std::move(given), nullptr,
                                                  std::nullopt));
}

Engine make_set_engine(Backends set, EngineOptions options) {
    return Engine(
        std::make_shared<Engine::State>(std::move(options), std::move(set), nullptr, std::nullopt));
}

Engine make_auto_engine(Backends hosts, std::function<Devices()> devices, EngineOptions options,
                        std::optional<Calibration> calibration) {
    return Engine(std::make_shared<Engine::State>(std::move(options), std::move(hosts),
                                                  std::move(devices), std::move(calibration)));
}

}  // namespace pipeline

using pipeline::DevicePath;
using pipeline::Estimate;
using pipeline::Planner;
using pipeline::Request;
using pipeline::Survey;
using pipeline::Worker;

namespace {

// 0: all cores.
int host_threads(const EngineOptions& options) {
    if (options.threads != 0 || options.cpu_share >= 1) return options.threads;
    const double cores = std::max(1u, std::thread::hardware_concurrency());
    return std::max(1, static_cast<int>(std::lround(cores * options.cpu_share)));
}

// Opening one long message of GCM is to hash its parts, and then counter mode.
Job second_pass(Job job) noexcept {
    job.cipher.mode = Mode::gcm_ctr;
    return job;
}
Estimate two_passes(const Job& job, Estimate first, const Estimate& second) noexcept {
    if (modes::encrypts(job.cipher)) return first;
    first.seconds += second.seconds;
    first.rate = static_cast<double>(job.size) / 1e9 / (first.seconds - first.setup_seconds);
    return first;
}

// What stands against a backend stands against each of its options.
Option usable_or_why(const core::Backend& backend, Option option) {
    if (auto usable = backend.usable(); !usable) {
        option.possible = false;
        option.why = std::move(usable).error().message;
    }
    return option;
}

}  // namespace

Engine::State::State(EngineOptions engine_options, pipeline::Backends given,
                     std::function<pipeline::Devices()> find_devices,
                     std::optional<Calibration> calibration)
    : options_(std::move(engine_options)),
      planner_(std::move(calibration), pipeline::hosts_among(given, options_.form)),
      expected_(pipeline::within(planner_.expected_device(), budget())),
      pool_(host_threads(options_), {options_.thread_started, options_.thread_context}),
      drivers_(pipeline::kMaxWorkers, {options_.thread_started, options_.thread_context}),
      find_devices_(std::move(find_devices)),
      serial_(pipeline::next_serial()) {
    pipeline::Backends devices;
    for (auto& backend : given)
        (backend->device() ? devices : hosts_).push_back(std::move(backend));
    for (auto& device : devices)
        paths_.push_back(std::make_unique<DevicePath>(std::move(device),
                                                      hosts_.size() + paths_.size(), pool_,
                                                      planner_, options_.form.empty(), budget()));
    if (!paths_.empty()) {
        opening_ = 2 * core::this_process() + 1;
        started_ = true;
    }
    if (hosts_.empty()) return;
    for (const Mode mode : kModes)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt})
            for (const int bits : {128, 192, 256}) {
                const auto host = choose_host({{mode, direction}, bits, 1});
                short_hosts_[Planner::kind({mode, direction}, bits)] =
                    static_cast<std::uint8_t>(host ? host->number : hosts_.size());
            }
}

Engine::State::DevicePaths& Engine::State::paths() {
    if (!find_devices_) return paths_;
    const std::uint32_t at_it = 2 * core::this_process();
    for (;;) {
        std::uint32_t state = opening_.load(std::memory_order_acquire);
        if ((state & 1) != 0) return paths_;
        if (state == at_it)
            opening_.wait(state);
        else if (state != 0)
            return none_;
        else if (opening_.compare_exchange_strong(state, at_it))
            break;
    }
    // All of them or, where memory runs out or the thread is cancelled in between, none.
    struct Opening {
        std::atomic<std::uint32_t>& state;
        std::uint32_t after;
        ~Opening() {
            state.store(after, std::memory_order_release);
            state.notify_all();
        }
    } opening{opening_, 0};
    DevicePaths found;
    pipeline::Devices devices = find_devices_();
    for (auto& backend : devices.opened) {
        const std::size_t number = hosts_.size() + found.size();
        if (number == pipeline::kMaxWorkers) break;
        found.push_back(std::make_unique<DevicePath>(std::move(backend), number, pool_, planner_,
                                                     true, budget()));
    }
    paths_ = std::move(found);
    left_out_ = std::move(devices.left_out);
    opening.after = at_it + 1;
    return paths_;
}

bool Engine::State::forked() const noexcept {
    const std::uint32_t state = opening_.load(std::memory_order_acquire);
    return state != 0 && state / 2 != core::this_process();
}

void Engine::State::trim() noexcept {
    if (!opened() || forked()) return;
    for (const auto& path : paths_) path->transfer.slots().trim();
}

// Starting a device takes longer than most jobs. Each job that a device would have done sooner, had
// it been started, adds what was missed by not starting it; once that reaches the price of starting
// it is paid. So one long job starts a device at once, many short ones in the end, and either way
// the start costs at most as much again as the best that foresight could have done.
double Engine::State::start_seconds(const DeviceRates& rates) const noexcept {
    return started_ ? 0 : std::max(0.0, rates.start_seconds - missed_seconds_);
}

Result<Worker> Engine::State::choose_host(const Job& job) const {
    if (hosts_.empty()) return Error{Code::unsupported, "the host is not among the backends"};
    std::size_t best = hosts_.size();
    double best_seconds = 0;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        if (hosts_[i]->can(job.cipher, job.key_bits).answer == core::Can::no) continue;
        const double seconds = hosts_.size() == 1 ? 0 : host_estimate(i, job).seconds;
        if (best != hosts_.size() && seconds >= best_seconds) continue;
        best = i;
        best_seconds = seconds;
    }
    if (best != hosts_.size()) return Worker{hosts_[best].get(), best};
    return core::cannot(hosts_.front()->profile().name, job.cipher,
                        hosts_.front()->can(job.cipher, job.key_bits));
}

// One long message of GCM is one core's, or in parts everybody's; opening then has two passes.
Estimate Engine::State::host_estimate(std::size_t number, const Job& job) const {
    const int threads = hosts_[number]->profile().shared_by_threads ? pool_.threads() : 1;
    const Estimate whole = planner_.host(number, job, threads);
    const auto parts = pipeline::in_parts(job);
    if (!parts || threads == 1 || !whole.possible) return whole;
    const Estimate several = two_passes(job, planner_.host(number, *parts, threads),
                                        planner_.host(number, second_pass(job), threads));
    return several.seconds < pipeline::kWorthSeveral * whole.seconds ? several : whole;
}

Estimate Engine::State::device_estimate(const DeviceRates& rates, const Job& job,
                                        double start_seconds, std::size_t reach) const {
    const auto parts = pipeline::in_parts(job);
    const Estimate estimate = planner_.device(rates, parts.value_or(job), start_seconds, reach);
    if (!parts || job.from == Job::From::device || !estimate.possible) return estimate;
    return two_passes(job, estimate, planner_.device(rates, second_pass(job), 0));
}

Result<DevicePath*> Engine::State::path_of(const void* device_memory) {
    auto& last = pipeline::known(device_memory);
    if (device_memory && last.engine == serial_ && !forked() &&
        last.stretch == reinterpret_cast<std::uintptr_t>(device_memory) >> pipeline::kStretch)
        return last.path;
    if (!find_devices_ && paths_.empty())
        return Error{Code::unsupported, "backend '" + hosts_.front()->profile().name +
                                            "' does not reach device memory; open the engine with "
                                            "the backend 'auto' or 'cuda'"};
    if (forked()) return core::opened_before_fork("the engine's devices");
    auto& paths = this->paths();
    if (paths.empty())
        return Error{Code::backend_absent,
                     "data in device memory, but no device is available here" +
                         (left_out_.empty() ? "; `daelstrom devices` says what is missing"
                                            : ": " + left_out_.front().error.message)};
    started_ = true;
    if (!device_memory) return paths.front().get();
    for (const auto& path : paths) {
        if (!path->device.memory().owns(device_memory)) continue;
        if (paths.size() == 1)
            last = {serial_, reinterpret_cast<std::uintptr_t>(device_memory) >> pipeline::kStretch,
                    path.get()};
        return path.get();
    }
    return Error{Code::invalid_argument,
                 paths.size() == 1
                     ? "the pointer is not in the memory of '" + paths.front()->name() + "'"
                     : "the pointer is in no device's memory"};
}

Result<DevicePath*> Engine::State::path_of(std::span<const Message> messages, bool host_aad) {
    DevicePath* all = nullptr;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        const void* const places[] = {m.size != 0 ? m.in : nullptr, m.size != 0 ? m.out : nullptr,
                                      m.aad_size != 0 && !host_aad ? m.aad : nullptr, m.tag};
        for (const void* place : places) {
            if (!place) continue;
            auto path = path_of(place);
            if (!path && messages.size() > 1)
                return pipeline::of_message(i, std::move(path).error());
            if (!path) return path;
            if (all && *path != all) {
                Error error{Code::invalid_argument, "its memory is '" + (*path)->name() +
                                                        "''s, and others' is '" + all->name() +
                                                        "''s; one call works on one device"};
                return messages.size() > 1 ? pipeline::of_message(i, std::move(error)) : error;
            }
            all = *path;
        }
    }
    return all ? Result<DevicePath*>(all) : path_of(nullptr);
}

Result<Worker> Engine::State::worker_for_pieces(const Cipher& cipher, int key_bits) {
    if (!hosts_.empty()) return choose_host({cipher, key_bits, std::uint64_t{16} << 10});
    if (forked()) return core::opened_before_fork(paths_.front()->name());
    return static_cast<Worker>(*paths_.front());
}

namespace {

// Whether the backend has the mode, and the mode such keys.
core::Can can_do(const core::Backend& backend, const Job& job) {
    const auto size = modes::KeyKinds(1 << (job.key_bits / 64 - 2));
    const modes::KeyKinds kinds = modes::key_kinds(job.cipher.mode);
    if (kinds != modes::kXts && (kinds & size) == 0)
        return {core::Can::no, kinds == modes::kAes128   ? "it takes keys of 128 bits"
                               : kinds == modes::kAes256 ? "it takes keys of 256 bits"
                                                         : "it takes keys of 128 and 256 bits"};
    return backend.can(job.cipher, job.key_bits);
}

}  // namespace

Option Engine::State::host_option(std::size_t number, const Job& job) const {
    const core::Backend& host = *hosts_[number];
    const bool shared = host.profile().shared_by_threads;
    Estimate estimate = host_estimate(number, job);
    if (!shared && estimate.possible) estimate.limit = "the backend itself";
    const std::string& name = host.profile().name;
    Option option{name,
                  estimate.threads,
                  0,
                  estimate.rate,
                  estimate.setup_seconds,
                  estimate.seconds,
                  estimate.measured,
                  pipeline::why(name, job, estimate),
                  estimate.possible};
    const core::Can can = can_do(host, job);
    if (option.possible && can.answer == core::Can::no) {
        option.possible = false;
        option.why = "the backend lacks this mode: " + std::string(can.why);
    }
    return usable_or_why(host, std::move(option));
}

Option Engine::State::device_option(const DevicePath& path, const Job& job) const {
    const Estimate estimate =
        device_estimate(path.rates, job, start_seconds(path.rates), path.device.reach());
    Option option{path.name(),
                  1,
                  options_.chunk != 0 && estimate.chunk != 0 ? options_.chunk : estimate.chunk,
                  estimate.rate,
                  estimate.setup_seconds,
                  estimate.seconds,
                  estimate.measured,
                  pipeline::why(path.name(), job, estimate),
                  estimate.possible};
    const core::Can can = can_do(*path.backend, job);
    if (path.failed || forked()) {
        option.possible = false;
        option.why = path.failed ? path.failed.why() : "the device was opened before fork()";
        return option;
    }
    if (!hosts_.empty() && !Planner::device_considered(job)) {
        option.possible = false;
        option.why = "too little data to be worth asking a device";
    } else if (option.possible && can.answer == core::Can::no) {
        option.possible = false;
        option.why = "the device lacks this mode: " + std::string(can.why);
    }
    return usable_or_why(*path.backend, std::move(option));
}

std::optional<Option> Engine::State::option_together(std::span<const Option> options,
                                                     std::size_t host, const Job& job) const {
    if (job.from == Job::From::device || (!hosts_.empty() && !Planner::device_considered(job)))
        return std::nullopt;
    std::vector<Estimate> estimates;
    double best = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < options.size(); ++i) {
        const Option& its = options[i];
        const bool takes_part = its.possible && (i >= hosts_.size() || i == host);
        estimates.push_back({.possible = takes_part,
                             .setup_seconds = its.setup_seconds,
                             .seconds = its.seconds,
                             .rate = its.gigabytes_per_second});
        if (its.possible) best = std::min(best, its.seconds);
    }
    const bool with_host = !hosts_.empty();
    const std::uint64_t bytes = pipeline::total_bytes(job);
    if (find_devices_ &&
        (bytes < pipeline::kLeastForSeveral || (job.in_place && job.from == Job::From::pinned)))
        return std::nullopt;
    for (std::size_t i = hosts_.size(); i < options.size() && find_devices_; ++i)
        if (job.from == Job::From::pinned &&
            pipeline::in_reach(paths_[i - hosts_.size()]->device.reach(), job.cipher, bytes,
                               job.messages))
            return std::nullopt;
    const auto all = pipeline::together(estimates, static_cast<double>(bytes),
                                        with_host ? planner_.memory(bytes, pool_.threads()) : 0);
    if (all.members() < 2) return std::nullopt;
    if (find_devices_ && all.seconds >= pipeline::kWorthSeveral * best) return std::nullopt;
    Option several{.gigabytes_per_second = all.rate, .seconds = all.seconds, .measured = true};
    const auto take = [&](std::size_t i) {
        const Option& its = options[i];
        if (all.shares[i] <= 0) return;
        several.backend += (several.backend.empty() ? "" : "+") + its.backend;
        several.shares.push_back(all.shares[i]);
        several.threads = std::max(several.threads, its.threads);
        several.chunk = std::max(several.chunk, its.chunk);
        several.setup_seconds = std::max(several.setup_seconds, its.setup_seconds);
        several.measured &= its.measured;
        several.why += (several.why.empty() ? "" : ", ") + its.backend + " " +
                       std::to_string(std::lround(100 * all.shares[i])) + "%";
    };
    for (std::size_t i = hosts_.size(); i < options.size(); ++i) take(i);  // as Ran names them
    for (std::size_t i = 0; i < hosts_.size(); ++i) take(i);
    several.why = several.backend + " together: " + pipeline::in_words(bytes) + " in " +
                  pipeline::time_in_words(several.seconds) + ", " +
                  pipeline::rate_in_words(several.gigabytes_per_second) + " (" + several.why + ")";
    return several;
}

Plan Engine::State::explain(const Job& job) {
    std::vector<Option> options;
    for (std::size_t i = 0; i < hosts_.size(); ++i) options.push_back(host_option(i, job));
    for (const auto& path : paths()) options.push_back(device_option(*path, job));
    const auto host = choose_host(job);
    if (auto several = option_together(options, host ? host->number : hosts_.size(), job))
        options.insert(options.begin(), std::move(*several));
    if (opened())
        for (const pipeline::LeftOut& device : left_out_)
            options.push_back(
                {.backend = device.name, .why = device.error.message, .possible = false});
    return pipeline::make_plan(job, std::move(options), planner_.calibrated());
}

std::vector<std::string> Engine::State::backends() {
    std::vector<std::string> names;
    for (const auto& host : hosts_) names.push_back(host->profile().name);
    if (opened())
        for (const auto& path : paths_) names.push_back(path->name());
    return names;
}

}  // namespace dael
