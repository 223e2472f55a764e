// SPDX-License-Identifier: Apache-2.0
// How a filler's threads and lanes begin and end.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "core/guard.hpp"
#include "core/libcrypto_notes.hpp"
#include "core/process.hpp"
#include "keystream/table.hpp"
#include "pipeline/engine_state.hpp"

namespace dael {

using namespace keystream;

namespace {

constexpr std::size_t kLaneBytes = std::size_t{1} << 20;

// Where a thread may run: on the processors that were named, or else where the program's first
// thread may, which is seldom bound to one: who opens a filler often is, and packets are its work.
Result<> bind(std::thread& thread, const std::vector<int>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
    if (cpus.empty() && sched_getaffinity(getpid(), sizeof set, &set) != 0) return {};
    if (pthread_setaffinity_np(thread.native_handle(), sizeof set, &set) == 0 || cpus.empty())
        return {};
    std::string list;
    for (const int cpu : cpus) list += (list.empty() ? "" : ", ") + std::to_string(cpu);
    return Error{Code::invalid_argument, "the filler's threads cannot run on the processors " +
                                             list + "; name some that this process may use"};
}

}  // namespace

SaFiller::State::State(Engine& engine, const SaFillerOptions& options)
    : engine_(engine.state()), options_(options), process_(core::this_process()) {}

SaFiller::State::~State() = default;

Result<std::shared_ptr<SaFiller::State>> SaFiller::State::make(Engine& engine,
                                                               const SaFillerOptions& options) {
    if (options.threads < 1 || options.threads > 64)
        return Error{
            Code::invalid_argument,
            "the filler's threads are " + std::to_string(options.threads) + "; give 1 to 64"};
    if (options.lanes < 1 || options.lanes > 16)
        return Error{Code::invalid_argument,
                     "the filler's lanes are " + std::to_string(options.lanes) + "; give 1 to 16"};
    for (const int cpu : options.cpus)
        if (cpu < 0 || cpu >= CPU_SETSIZE)
            return Error{Code::invalid_argument, "processor " + std::to_string(cpu) +
                                                     " for the filler's threads; give 0 to " +
                                                     std::to_string(CPU_SETSIZE - 1)};
    std::shared_ptr<State> state(new State(engine, options), &State::close);
    DAEL_TRY(state->start());
    return state;
}

Result<> SaFiller::State::start() {
    if (auto device = dael::device(engine_)) {
        DAEL_LET(maker, keystream_maker());
        if (maker || device->info.reads_lists) device_.emplace(*device);
    }
    name_ = device_ ? device_->backend : std::string();
    for (const std::string& backend : engine_.backends())
        if (!device_) name_ += (name_.empty() ? "" : ", ") + backend;
    for (int i = 0; i < options_.threads; ++i) {
        workers_.push_back(std::make_unique<FillWorker>());
        DAEL_TRY(open_lanes(workers_.back()->lanes));
    }
    last_tick_ = Clock::now();
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Result<> started;
    for (std::size_t i = 0; started && i < workers_.size(); ++i)
        started = core::guarded([&] { return start_thread(i); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

Result<> SaFiller::State::start_thread(std::size_t index) {
    FillWorker& worker = *workers_[index];
    const std::string name = "dael-filler-" + std::to_string(index);  // 15 letters are the most
    {
        const std::lock_guard lock(sleep_);
        ++running_;
    }
    try {
        worker.thread = std::thread([this, &worker] {
            serve(worker);
            std::unique_lock lock(sleep_);
            const bool last = --running_ == 0 && abandoned_;
            bell_.notify_all();
            lock.unlock();
            if (last) delete this;
            core::LibcryptoNotes::end_thread();
        });
    } catch (const std::exception& fault) {
        {
            const std::lock_guard lock(sleep_);
            --running_;
        }
        if (dynamic_cast<const std::bad_alloc*>(&fault)) throw;  // out_of_memory, by start()
        return Error{Code::internal,
                     std::string("a filler's thread cannot be started: ") + fault.what()};
    }
    pthread_setname_np(worker.thread.native_handle(), name.c_str());
    return bind(worker.thread, options_.cpus);
}

Result<> SaFiller::State::open_lanes(std::vector<FillLaneOwner>& lanes) {
    const int count = device_ ? options_.lanes : 1;
    for (int i = 0; i < count; ++i) {
        DAEL_LET(lane, open_lane());
        lanes.push_back(std::move(lane));
    }
    return {};
}

// The device's; null: it makes no runs.
Result<std::unique_ptr<core::KeystreamMaker>> SaFiller::State::keystream_maker() {
    DAEL_LET(through, engine_.state()->path_of(nullptr));
    return through->device.keystream_maker();
}

Result<FillLaneOwner> SaFiller::State::open_lane() {
    if (!device_) return open_host_lane(engine_);
    DAEL_LET(maker, keystream_maker());
    return maker ? open_run_lane(engine_, std::move(maker), *device_)
                 : open_device_lane(engine_, *device_, kLaneBytes);
}

bool SaFiller::State::forked() const noexcept {
    return process_ != core::this_process();
}

// Waits for the threads, but not for ever. In a child of fork() all is left as it is: the threads
// are the parent's, and so is the device, and what they wait for cannot be destroyed.
void SaFiller::State::close(State* state) noexcept {
    if (state->forked()) return;
    state->closing_.store(true);
    state->ring();
    {
        std::unique_lock lock(state->sleep_);
        if (!state->bell_.wait_for(lock, std::chrono::milliseconds(state->options_.patience_ms),
                                   [&] { return state->running_ == 0; })) {
            for (auto& worker : state->workers_)
                if (worker->thread.joinable()) worker->thread.detach();
            state->abandoned_ = true;
            return;
        }
    }
    for (auto& worker : state->workers_)
        if (worker->thread.joinable()) worker->thread.join();
    delete state;
}

}  // namespace dael
