// SPDX-License-Identifier: Apache-2.0
// The threads that bring keystream: what they do when there is work, and how they sleep.
#include "keystream/filler.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <system_error>

#include "core/guard.hpp"
#include "core/process.hpp"
#include "core/secure_memory.hpp"
#include "keystream/table.hpp"
#include "pipeline/engine_state.hpp"

namespace dael {

using namespace keystream;

namespace {

constexpr std::size_t kLaneBytes = std::size_t{1} << 20;
constexpr auto kTick = std::chrono::milliseconds(1);
// How long a thread looks out for work before it sleeps: to wake it costs the packet side a call to
// the system.
constexpr auto kLookOut = std::chrono::microseconds(200);
constexpr auto kIdleTick = std::chrono::milliseconds(20);

}  // namespace

SaFiller::State::State(Engine& engine, const SaFillerOptions& options)
    : engine_(engine.state()), options_(options), process_(core::this_process()) {}

Result<std::shared_ptr<SaFiller::State>> SaFiller::State::make(Engine& engine,
                                                               const SaFillerOptions& options) {
    if (options.threads < 1 || options.threads > 64)
        return Error{
            Code::invalid_argument,
            "the filler's threads are " + std::to_string(options.threads) + "; give 1 to 64"};
    if (options.lanes < 1 || options.lanes > 16)
        return Error{Code::invalid_argument,
                     "the filler's lanes are " + std::to_string(options.lanes) + "; give 1 to 16"};
    // In a child of fork() it is left as it is: the threads are the parent's, and so is the device,
    // and what they wait for cannot be destroyed.
    const auto unless_forked = [](State* state) {
        if (state->process_ == core::this_process()) delete state;
    };
    std::shared_ptr<State> state(new State(engine, options), unless_forked);
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
        workers_.push_back(std::make_unique<Worker>());
        DAEL_TRY(open_lanes(*workers_.back()));
    }
    last_tick_ = Clock::now();
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Result<> started;
    try {
        for (auto& worker : workers_)
            worker->thread = std::thread([this, its = worker.get()] { serve(*its); });
    } catch (const std::system_error& fault) {
        started = Error{Code::internal,
                        std::string("a filler's thread cannot be started: ") + fault.what()};
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

Result<> SaFiller::State::open_lanes(Worker& worker) {
    const int lanes = device_ ? options_.lanes : 1;
    for (int i = 0; i < lanes; ++i) {
        DAEL_LET(lane, open_lane());
        worker.lanes.push_back(std::move(lane));
    }
    return {};
}

// The device's; null: it makes no runs.
Result<std::unique_ptr<core::KeystreamMaker>> SaFiller::State::keystream_maker() {
    DAEL_LET(through, engine_.state()->lane_of(nullptr));
    return through->device.keystream_maker();
}

Result<std::unique_ptr<Lane>> SaFiller::State::open_lane() {
    if (!device_) return open_host_lane(engine_);
    DAEL_LET(maker, keystream_maker());
    return maker ? open_run_lane(std::move(maker), *device_)
                 : open_device_lane(engine_, *device_, kLaneBytes);
}

SaFiller::State::~State() {
    closing_.store(true);
    ring();
    for (auto& worker : workers_)
        if (worker->thread.joinable()) worker->thread.join();
}

void SaFiller::State::ask(Track& track) noexcept {
    Track* top = asking_.load(std::memory_order_relaxed);
    do track.next_asking = top;
    while (!asking_.compare_exchange_weak(top, &track, std::memory_order_seq_cst));
    if (sleeping_.load(std::memory_order_seq_cst) != 0) ring();
}

void SaFiller::State::freed() noexcept {
    if (!want_room_.load(std::memory_order_seq_cst)) return;
    room_.store(true, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) != 0) ring();
}

void SaFiller::State::ring() noexcept {
    {
        const std::lock_guard lock(sleep_);
        ++rung_;
    }
    bell_.notify_all();
}

Result<> SaFiller::State::attach(SaTable::State& table) {
    // Twice what the budget holds: a buffer is free only once all its windows are over.
    const std::size_t count = 2 * (table.options.budget / table.options.block);
    const auto give_back = [&] {
        for (auto& buffer : table.buffers) {
            if (!buffer->memory) continue;
            if (device_)
                device_->memory.release_pinned(buffer->memory);
            else
                core::secure_release(buffer->memory, table.options.block);
        }
        table.buffers.clear();
    };
    for (std::size_t i = 0; i < count; ++i) {
        table.buffers.push_back(std::make_unique<Buffer>());
        Buffer& buffer = *table.buffers.back();
        buffer.windows.resize(kMostWindows);
        if (device_) {
            auto memory = device_->memory.allocate_pinned(table.options.block);
            if (!memory) {
                give_back();
                return std::move(memory).error();
            }
            buffer.memory = static_cast<std::uint8_t*>(*memory);
        } else {
            // It is overwritten all the time, so nobody would swap it.
            buffer.memory = static_cast<std::uint8_t*>(
                core::secure_allocate(table.options.block, core::Swapping::allowed));
            if (!buffer.memory) {
                give_back();
                return Error{Code::out_of_memory, "no host memory for keystream"};
            }
        }
    }
    const std::lock_guard lock(mutex_);
    tables_.push_back(&table);
    return {};
}

// Its SAs have left. Waits for what is under way for them.
void SaFiller::State::detach(SaTable::State& table) noexcept {
    std::unique_lock lock(mutex_);
    collect();  // what its tracks have asked for is not to be found any more
    changed_.wait(lock, [&] { return table.under_way == 0; });
    std::erase_if(queue_, [&](const Slot* slot) { return slot->table == &table; });
    std::erase(tables_, &table);
    lock.unlock();
    for (auto& buffer : table.buffers) {
        wipe(buffer->memory, table.options.block);
        if (device_)
            device_->memory.release_pinned(buffer->memory);
        else
            core::secure_release(buffer->memory, table.options.block);
    }
    table.buffers.clear();
}

void SaFiller::State::enter(SaTable::State& table, Slot& slot,
                            std::shared_ptr<const Key> key) noexcept {
    const std::lock_guard lock(mutex_);
    slot.key = std::move(key);
    slot.key_serial = ++key_serial_;
    ++slot.epoch;
    slot.why.clear();
    slot.penalty = slot.resume_at = 0;
    slot.seen_then = slot.strays_then = 0;
    slot.idle_seconds = 0;
    const bool ahead = this->ahead(table, slot);
    for (Track& track : slot.tracks) {
        track.ordered = track.needed_then = 0;
        track.rate = 0;
        track.refill_at.store(ahead ? 0 : ~std::uint64_t{0}, std::memory_order_relaxed);
    }
}

void SaFiller::State::leave(SaTable::State& table, Slot& slot) noexcept {
    {
        const std::lock_guard lock(mutex_);
        ++slot.epoch;
        slot.key.reset();
        stop_asking(slot);
        if (slot.queued) std::erase(queue_, &slot);
        if (slot.active) std::erase(table.active, &slot);
        slot.queued = slot.active = false;
        slot.deficit = 0;
        for (auto& worker : workers_) {
            for (auto& lane : worker->lanes) try {
                    lane->forgotten.push_back(slot.key_serial);
                } catch (const std::bad_alloc&) {
                    lane->forget_all = true;
                }
            worker->forgetting.store(true, std::memory_order_seq_cst);
        }
    }
    if (sleeping_.load(std::memory_order_seq_cst) != 0) ring();
}

void SaFiller::State::add_to(SaCounters& sum, const SaTable::State& table) {
    const std::lock_guard lock(mutex_);
    sum.fill_errors += table.fill_errors;
    sum.made += table.unclaimed;
    sum.dropped += table.unclaimed;
    for (const auto& buffer : table.buffers)
        if (buffer->taken || buffer->live.load(std::memory_order_relaxed) != 0)
            sum.memory += table.options.block;
}

std::string SaFiller::State::why_direct(const SaTable::State& table, const Slot& slot) {
    const std::lock_guard lock(mutex_);
    return why(table, slot);
}

void SaFiller::State::settle(SaTable::State& table) {
    // Who is queued and cannot be served may be after some ticks, when others have given up what is
    // more than their share.
    constexpr std::uint64_t kTicks = 8;
    std::uint64_t until = 0;
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (until == 0) until = ticks_ + kTicks;
            const bool wants = std::ranges::any_of(
                queue_, [&](const Slot* slot) { return slot->table == &table; });
            const bool over = !broken_.empty() || !wants || (stuck_ && ticks_ >= until);
            if (table.under_way == 0 && over && (!broken_.empty() || !asking_.load())) return;
        }
        ring();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

// How long a window took, in its track's numbers. It is believed sooner that it takes longer, but
// one delay, as of a thread that had to wait for its core, is not the rule.
void SaFiller::State::learn_lead(Track& track, const Window& window) noexcept {
    const std::uint64_t passed = track.next.load(std::memory_order_relaxed) - window.next_then;
    const std::uint64_t lead = track.lead.load(std::memory_order_relaxed);
    const std::uint64_t more = std::min(passed - lead, window.end - window.first);
    track.lead.store(passed > lead ? lead + (more + 1) / 2 : lead - (lead - passed) / 8,
                     std::memory_order_relaxed);
}

// Hands windows to their tracks, or wipes what nobody wants any more.
void SaFiller::State::publish(Fill& fill) noexcept {
    const std::lock_guard lock(mutex_);
    Buffer& buffer = *fill.buffer;
    buffer.taken = false;
    const double seconds = std::chrono::duration<double>(Clock::now() - fill.began).count();
    // The first ones wait for kernels to be compiled and the like, which says nothing of the next.
    latency_ += 0.2 * (std::min(seconds, 2 * latency_) - latency_);
    ++jobs_;
    bytes_ += fill.bytes;
    for (std::size_t i = 0; i < buffer.count; ++i) {
        Window& window = buffer.windows[i];
        Track& track = *window.track;
        Slot& slot = *track.slot;
        if (slot.epoch != window.epoch || !slot.active) {
            fill.table->unclaimed += window.bytes();
            dael::wipe(window.data, window.bytes());
            fill.table->retire(window);
            continue;
        }
        learn_lead(track, window);
        Window* top = track.inbox.load(std::memory_order_relaxed);
        do window.next = top;
        while (!track.inbox.compare_exchange_weak(top, &window, std::memory_order_release,
                                                  std::memory_order_relaxed));
    }
    --fill.table->under_way;
    fill.stretches.clear();
    stuck_ = false;
    changed_.notify_all();
}

// Nothing of it is published, and nobody is filled for any more: packets go the direct path.
void SaFiller::State::fail(Fill& fill, const Error& error) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        if (broken_.empty()) broken_ = error.message.empty() ? "it did not say why" : error.message;
    } catch (const std::bad_alloc&) {
        broken_ = "no memory";
    }
    for (SaTable::State* table : tables_)
        for (Slot* slot : table->active) stop_asking(*slot);
    for (Slot* slot : queue_) slot->queued = false;
    queue_.clear();
    if (fill.table) {
        Buffer& buffer = *fill.buffer;
        buffer.taken = false;
        ++fill.table->fill_errors;
        dael::wipe(buffer.memory, buffer.bytes);
        for (std::size_t i = 0; i < buffer.count; ++i) fill.table->retire(buffer.windows[i]);
        --fill.table->under_way;
    }
    fill.stretches.clear();
    changed_.notify_all();
}

// Keys of SAs that have gone leave the lanes, those that are busy later. Whether there were any.
bool SaFiller::State::forget(Worker& worker) {
    bool any = false;
    for (auto& lane : worker.lanes) {
        if (lane->busy) {
            worker.forgetting.store(true, std::memory_order_relaxed);
            continue;
        }
        std::vector<std::uint64_t> serials;
        bool all = false;
        {
            const std::lock_guard lock(mutex_);
            serials.swap(lane->forgotten);
            std::swap(all, lane->forget_all);
        }
        if (serials.empty() && !all) continue;
        any = true;
        if (all) {
            lane->forget_all_keys();
        } else if (auto done = lane->forget(serials); !done) {
            Fill none;
            fail(none, done.error());
        }
    }
    return any;
}

// What nobody uses is wiped before a thread goes to sleep for longer. Whether there was any.
bool SaFiller::State::wipe_idle(Worker& worker) {
    bool any = false;
    for (auto& lane : worker.lanes) {
        if (lane->busy || !lane->dirty) continue;
        lane->dirty = false;
        any = true;
        if (auto wiped = lane->wipe(); !wiped) {
            Fill none;
            fail(none, wiped.error());
        }
    }
    const std::lock_guard lock(mutex_);
    for (SaTable::State* table : tables_)
        for (auto& buffer : table->buffers) {
            if (!buffer->dirty || buffer->taken || buffer->live.load() != 0) continue;
            dael::wipe(buffer->memory, table->options.block);
            buffer->dirty = false;
            any = true;
        }
    return any;
}

// One piece of work. False: there was none.
Result<bool> SaFiller::State::step(Worker& worker) {
    const auto now = Clock::now();
    // Not only when there is nothing else to do: there may always be.
    const bool forgotten =
        worker.forgetting.load() && worker.forgetting.exchange(false) && forget(worker);
    Lane* free = nullptr;
    if (worker.busy < worker.lanes.size())
        free = worker.lanes[(worker.oldest + worker.busy) % worker.lanes.size()].get();
    bool composed = false;
    {
        const std::lock_guard lock(mutex_);
        if (room_.load() && room_.exchange(false)) stuck_ = false;
        collect();
        if (now - last_tick_ >= kTick) tick(now);
        if (free && !closing_.load()) composed = compose(free->fill);
    }
    if (composed) {
        free->fill.began = now;
        free->busy = free->dirty = true;
        auto begun = core::guarded([&] { return free->begin(); });
        if (!begun) {
            free->busy = false;
            fail(free->fill, begun.error());
        } else if (!device_) {
            free->busy = false;
            publish(free->fill);
        } else {
            ++worker.busy;
        }
        return true;
    }
    if (worker.busy != 0) {
        Lane& oldest = *worker.lanes[worker.oldest];
        auto done = core::guarded([&] { return oldest.done(); });
        if (done && !*done) return forgotten;
        worker.oldest = (worker.oldest + 1) % worker.lanes.size();
        --worker.busy;
        oldest.busy = false;
        if (done)
            publish(oldest.fill);
        else
            fail(oldest.fill, done.error());
        return true;
    }
    return forgotten;
}

void SaFiller::State::serve(Worker& worker) noexcept {
    auto last = Clock::now();
    while (!closing_.load() || worker.busy != 0) {  // what was written before closing is seen
        auto worked = core::guarded([&] { return step(worker); });
        if (!worked) {
            Fill none;
            fail(none, worked.error());
        }
        const auto now = Clock::now();
        if (worked && *worked) {
            last = now;
        } else if (worker.busy != 0 || now - last < kLookOut) {
            std::this_thread::yield();
        } else {
            doze(worker);
        }
    }
    // Keys and keystream go with the lanes, on the thread that used them.
    worker.lanes.clear();
}

void SaFiller::State::doze(Worker& worker) {
    bool queued = false, active = false;
    {
        const std::lock_guard lock(mutex_);
        queued = !queue_.empty();
        for (const SaTable::State* table : tables_) active = active || !table->active.empty();
    }
    if (!active && !queued && wipe_idle(worker)) return;
    std::unique_lock lock(sleep_);
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint64_t rung = rung_;
    const auto woken = [&] {
        return rung_ != rung || closing_.load() || worker.forgetting.load() ||
               asking_.load(std::memory_order_seq_cst) != nullptr || room_.load();
    };
    if (active || queued)
        bell_.wait_for(lock, queued ? std::chrono::milliseconds(1) : kIdleTick, woken);
    else
        bell_.wait(lock, woken);
    sleeping_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace dael
