// SPDX-License-Identifier: Apache-2.0
#include "pipeline/engine_state.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/guard.hpp"
#include "core/process.hpp"
#include "core/registry.hpp"
#include "modes/starts.hpp"
#include "pipeline/key_set.hpp"
#include "pipeline/share.hpp"

namespace dael {
namespace pipeline {

DevicePath::DevicePath(std::unique_ptr<core::Backend> opened, std::size_t its_number,
                       ThreadPool& pool, const Planner& planner, bool formed)
    : Worker{opened.get(), its_number},
      owned(std::move(opened)),
      device(*owned->device()),
      rates(planner.device_rates(name(), identity(device.info()))),
      transfer(device, pool) {
    core::Forms* const forms = device.forms();
    if (!formed || !forms || rates.form.empty()) return;
    // Only what the device itself offers: a file must not talk it into a form that it holds to be
    // unsafe here. What it no longer offers, after a change of ours, is as good as none.
    const auto offered = forms->list();
    if (std::ranges::find(offered, rates.form) != offered.end()) (void)forms->use(rates.form);
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

// Sees to it that after an error no code says of a message what nobody vouches for: an exception,
// or a host backend that failed, leaves those of a call that are `internal` all.
struct Told {
    std::span<Code> codes;
    bool all = false;
    ~Told() {
        if (!all) std::ranges::fill(codes, Code::internal);
    }
    Error nothing_touched(Error error) {
        std::ranges::fill(codes, error.code);
        all = true;
        return error;
    }
    void by(const pipeline::Rest& rest, const Result<Ran>& ran) {
        if (!ran && !rest.touched) std::ranges::fill(codes, ran.code());
        all = true;
    }
};

// What stands against a backend stands against each of its options.
Option usable_or_why(const core::Backend& backend, Option option) {
    if (auto usable = backend.usable(); !usable) {
        option.possible = false;
        option.why = std::move(usable).error().message;
    }
    return option;
}

// The caller must know, where there are words left to say it in.
Error with_loss(Result<Ran> ran) {
    Error error = std::move(ran).error();
    (void)core::guarded([&]() -> Result<> {
        error.message += "; data that was worked in place is lost, and codes say which";
        return {};
    });
    return error;
}

}  // namespace

Engine::State::State(EngineOptions engine_options, pipeline::Backends given,
                     std::function<pipeline::Devices()> find_devices,
                     std::optional<Calibration> calibration)
    : options_(std::move(engine_options)),
      planner_(std::move(calibration), pipeline::hosts_among(given, options_.form)),
      expected_(planner_.expected_device()),
      pool_(options_.threads, {options_.thread_started, options_.thread_context}),
      find_devices_(std::move(find_devices)),
      serial_(pipeline::next_serial()) {
    if (!given.front()->device()) {
        hosts_ = std::move(given);
        for (const Mode mode : kModes)
            for (const Direction direction : {Direction::encrypt, Direction::decrypt})
                for (const int bits : {128, 192, 256}) {
                    const auto host = choose_host({{mode, direction}, bits, 1});
                    short_hosts_[Planner::kind({mode, direction}, bits)] =
                        static_cast<std::uint8_t>(host ? host->number : hosts_.size());
                }
    } else {
        paths_.push_back(std::make_unique<DevicePath>(std::move(given.front()), 0, pool_, planner_,
                                                      options_.form.empty()));
        opening_ = 2 * core::this_process() + 1;
        started_ = true;
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
        found.push_back(
            std::make_unique<DevicePath>(std::move(backend), number, pool_, planner_, true));
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
    std::size_t best = hosts_.size();
    double best_seconds = 0;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        if (hosts_[i]->can(job.cipher, job.key_bits).answer == core::Can::no) continue;
        const double seconds =
            hosts_.size() == 1 ? 0 : planner_.host(i, job, pool_.threads()).seconds;
        if (best != hosts_.size() && seconds >= best_seconds) continue;
        best = i;
        best_seconds = seconds;
    }
    if (best != hosts_.size()) return Worker{hosts_[best].get(), best};
    return core::cannot(hosts_.front()->profile().name, job.cipher,
                        hosts_.front()->can(job.cipher, job.key_bits));
}

DevicePath* Engine::State::choose(const Worker& host, std::span<const Message> messages, Job& job) {
    if (!Planner::device_considered(job) || forked()) return nullptr;
    if (opened() && paths_.empty()) return nullptr;
    const double host_seconds = planner_.host(host.number, job, pool_.threads()).seconds;
    if (!started_) {
        const DeviceRates& rates = opened() ? paths_.front()->rates : expected_;
        const Estimate estimate = planner_.device(rates, job, start_seconds(rates));
        if (!estimate.possible) return nullptr;
        if (estimate.seconds >= host_seconds) {
            const double running = planner_.device(rates, job, 0).seconds;
            missed_seconds_.fetch_add(std::max(0.0, host_seconds - running));
            return nullptr;
        }
        if (paths().empty()) return nullptr;
    }
    DevicePath* best = nullptr;
    double best_seconds = host_seconds;
    for (const auto& path : paths()) {
        if (path->failed) continue;
        const bool reached = pipeline::in_reach(path->device, job.cipher, messages);
        const auto direct = reached ? pipeline::Direct{true, true}
                                    : pipeline::direct_copies(path->device, messages);
        job.from = direct.in && direct.out ? Job::From::pinned : Job::From::host;
        const Estimate estimate = planner_.device(path->rates, job, start_seconds(path->rates),
                                                  reached ? path->device.reach() : 0);
        if (!estimate.possible || estimate.seconds >= best_seconds) continue;
        if (path->backend->can(job.cipher, job.key_bits).answer == core::Can::no) continue;
        best = path.get();
        best_seconds = estimate.seconds;
    }
    return best;
}

Result<Ran> Engine::State::run_on_host(const Worker& host, Request& request, KeySet::State* set,
                                       const Survey& survey) {
    // Only modes that authenticate get more out of a key than its schedule; the tables of the
    // others are made no sooner than they are of use.
    if (set && authenticates(request.cipher.mode)) {
        DAEL_LET(ready, set->on(host));
        request.keys = ready;
    }
    DAEL_LET(threads,
             pipeline::run_on_host(*host.backend, pool_, request, survey, pool_.threads()));
    return host.ran(threads, 0);
}

Result<Ran> Engine::State::run_through(DevicePath& path, Request request, KeySet::State* set,
                                       const Survey& survey, pipeline::Rest& rest) {
    started_ = true;
    if (forked()) return core::opened_before_fork(path.name());
    const core::Can can = path.backend->can(request.cipher, request.keys.list.front().bits());
    // Messages without a byte need nothing of a device, so no mode refuses them. One message that
    // is sequential is refused by itself, since the host does it better; a batch is taken, of one
    // too.
    if (survey.bytes != 0 &&
        (can.answer == core::Can::no || (can.answer == core::Can::batches && !set)))
        return core::cannot(path.name(), request.cipher, can);
    pipeline::TransferOptions options;
    options.chunk = options_.chunk != 0 ? options_.chunk : path.rates.chunk;
    options.threads = pool_.threads();
    std::unique_ptr<core::KeyTables> own;
    if (set) {
        DAEL_LET(ready, set->on(path));
        DAEL_TRY(set->settle());
        request.keys = ready;
    } else if (authenticates(request.cipher.mode)) {
        DAEL_LET(tables, path.backend->tables(request.keys.list));
        own = std::move(tables);
        request.keys.tables = own.get();
    }
    if (!survey.one_key && !pipeline::takes_mixed_keys(request.cipher))
        return run_by_key(path, request, options, rest);
    DAEL_LET(done, path.transfer.run(request, options, rest));
    return path.ran(done.threads, done.chunks);
}

// Each key's messages travel together, one key after the other.
Result<Ran> Engine::State::run_by_key(DevicePath& path, const Request& request,
                                      const pipeline::TransferOptions& options,
                                      pipeline::Rest& rest) {
    std::map<std::uint32_t, std::vector<std::size_t>> by_key;
    for (std::size_t i = 0; i < request.messages.size(); ++i)
        by_key[request.messages[i].key].push_back(i);
    Ran ran = path.ran(1, 0);
    std::optional<Error> failed;
    // Until all is told, nobody knows.
    std::ranges::fill(request.codes, Code::internal);
    rest.touched = rest.lost = true;
    bool touched = false, lost = false;
    std::vector<Code> all_codes(request.codes.size());
    std::vector<pipeline::Piece> pieces;
    for (const auto& [key, indices] : by_key) {
        std::vector<Message> messages;
        for (const std::size_t i : indices) messages.push_back(request.messages[i]);
        std::vector<Code> codes(messages.size());
        pipeline::Rest of_key;
        if (!failed) {
            auto done =
                path.transfer.run({request.cipher, request.keys, messages, codes}, options, of_key);
            if (done) {
                ran.threads = std::max(ran.threads, done->threads);
                ran.chunks += done->chunks;
                of_key.touched = true;
            } else {
                failed = std::move(done).error();
            }
        }
        touched |= of_key.touched;
        lost |= of_key.lost;
        if (!of_key.touched) {  // nothing of this key
            std::ranges::fill(codes, failed->code);
            for (std::size_t i = 0; i < messages.size(); ++i)
                of_key.pieces.push_back({messages[i], i});
        }
        for (std::size_t i = 0; i < indices.size(); ++i) all_codes[indices[i]] = codes[i];
        for (pipeline::Piece& piece : of_key.pieces) {
            piece.index = indices[piece.index];
            pieces.push_back(piece);
        }
    }
    std::ranges::copy(all_codes, request.codes.begin());
    rest = {touched, std::move(pieces), lost};
    if (failed) return std::move(*failed);
    return ran;
}

Result<Ran> Engine::State::run_rest(const Worker& host, const Request& request, KeySet::State* set,
                                    const pipeline::Rest& rest) {
    for (const pipeline::Piece& piece : rest.pieces) request.codes[piece.index] = Code::internal;
    std::vector<Message> messages;
    for (const pipeline::Piece& piece : rest.pieces) messages.push_back(piece.message);
    std::vector<Code> codes(messages.size(), Code::internal);
    Request again{request.cipher, request.keys, messages, codes};
    again.keys.tables = nullptr;
    DAEL_LET(ran, run_on_host(host, again, set, pipeline::survey(request.cipher, messages)));
    for (const pipeline::Piece& piece : rest.pieces) request.codes[piece.index] = Code::ok;
    for (std::size_t i = 0; i < codes.size(); ++i)
        if (codes[i] != Code::ok) request.codes[rest.pieces[i].index] = codes[i];
    return ran;
}

Result<Ran> Engine::State::run_short(const Cipher& cipher, const Key& key, KeySet::State* set,
                                     const Message& message, Code& code) {
    code = Code::internal;
    core::KeyList keys{set ? std::span<const Key>(set->list) : std::span(&key, 1)};
    const int bits = key.bits();
    Worker host{nullptr, short_hosts_[Planner::kind(cipher, bits)]};
    if (host.number == hosts_.size() || message.size == 0) {
        DAEL_LET(chosen, choose_host({cipher, bits, message.size}));
        host = chosen;
    }
    host.backend = hosts_[host.number].get();
    if (set && !modes::takes(cipher, message, keys.list.size())) {
        code = modes::check(cipher, message, keys.list.size()).code();
        return host.ran(1, 0);
    }
    if (set && authenticates(cipher.mode)) {
        DAEL_LET(ready, set->on(host));
        keys = ready;
    }
    Told told{{&code, 1}};
    code = Code::ok;
    DAEL_TRY(host.backend->run(pipeline::for_backend(cipher), keys, {&message, 1}, {&code, 1}));
    told.all = true;
    return host.ran(1, 0);
}

Result<Ran> Engine::State::run(const Cipher& cipher, std::span<const Key> keys, KeySet::State* set,
                               std::span<const Message> messages, std::span<Code> codes) {
    const Survey survey = pipeline::survey(cipher, messages, pool_);
    Told told{codes};
    if (modes::traits(cipher.mode).start_once && modes::encrypts(cipher) &&
        !survey.starts_distinct && pipeline::starts_repeat(messages, pool_))
        if (auto checked = modes::check_starts(messages); !checked)
            return told.nothing_touched(std::move(checked).error());
    Request request{cipher, {set ? std::span<const Key>(set->list) : keys}, messages, codes};
    pipeline::Rest rest;
    if (hosts_.empty()) {
        auto ran = run_through(*paths_.front(), request, set, survey, rest);
        told.by(rest, ran);
        return rest.lost ? with_loss(std::move(ran)) : std::move(ran);
    }
    Job job{cipher, request.keys.list.front().bits(), survey.bytes, messages.size()};
    if (messages.size() > 1) job.size /= messages.size();
    auto host = choose_host(job);
    if (!host) return told.nothing_touched(std::move(host).error());
    DevicePath* const path = find_devices_ ? choose(*host, messages, job) : nullptr;
    if (!path) {
        auto ran = run_on_host(*host, request, set, survey);
        told.all = static_cast<bool>(ran);
        return ran;
    }
    auto ran = core::guarded([&] { return run_through(*path, request, set, survey, rest); });
    told.by(rest, ran);
    if (ran || (ran.code() != Code::device && ran.code() != Code::backend_absent &&
                ran.code() != Code::out_of_memory))
        return ran;
    // The device failed, cannot be used, as its first use showed, or has no room. What it has not
    // touched, or what was not in place, the host can still do.
    const bool failed = ran.code() != Code::out_of_memory;
    if (failed) path->failed.note(ran.error());
    told.all = rest.touched;
    auto done = core::guarded([&] {
        return rest.touched ? run_rest(*host, request, set, rest)
                            : run_on_host(*host, request, set, survey);
    });
    told.all |= static_cast<bool>(done);
    if (rest.lost) return with_loss(std::move(ran));
    if (done) done->replaced = failed;
    return done;
}

Result<DevicePath*> Engine::State::path_of(const void* device_memory) {
    auto& last = pipeline::known(device_memory);
    if (device_memory && last.engine == serial_ && !forked() &&
        last.stretch == reinterpret_cast<std::uintptr_t>(device_memory) >> pipeline::kStretch)
        return last.path;
    if (!hosts_.empty() && !find_devices_)
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

Option Engine::State::host_option(std::size_t number, const Job& job) const {
    const core::Backend& host = *hosts_[number];
    const bool shared = host.profile().shared_by_threads;
    Estimate estimate = planner_.host(number, job, shared ? pool_.threads() : 1);
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
    const core::Can can = host.can(job.cipher, job.key_bits);
    if (option.possible && can.answer == core::Can::no) {
        option.possible = false;
        option.why = "the backend lacks this mode: " + std::string(can.why);
    }
    return usable_or_why(host, std::move(option));
}

Option Engine::State::device_option(const DevicePath& path, const Job& job) const {
    const Estimate estimate =
        planner_.device(path.rates, job, start_seconds(path.rates), path.device.reach());
    Option option{path.name(),
                  1,
                  options_.chunk != 0 && estimate.chunk != 0 ? options_.chunk : estimate.chunk,
                  estimate.rate,
                  estimate.setup_seconds,
                  estimate.seconds,
                  estimate.measured,
                  pipeline::why(path.name(), job, estimate),
                  estimate.possible};
    const core::Can can = path.backend->can(job.cipher, job.key_bits);
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

Plan Engine::State::explain(const Job& job) {
    std::vector<Option> options;
    for (std::size_t i = 0; i < hosts_.size(); ++i) options.push_back(host_option(i, job));
    for (const auto& path : paths()) options.push_back(device_option(*path, job));
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
