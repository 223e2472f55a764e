// SPDX-License-Identifier: Apache-2.0
// The threads that bring keystream: what they do when there is work, and how they sleep.
#include "keystream/filler.hpp"

#include <algorithm>
#include <system_error>

#include "core/guard.hpp"
#include "core/process.hpp"
#include "core/secure_memory.hpp"
#include "keystream/table.hpp"

namespace dael {

using namespace keystream;

namespace {

// How long a thread looks out for work before it sleeps: to wake it costs the packet side a call to
// the system.
constexpr auto kLookOut = std::chrono::microseconds(200);
constexpr auto kIdleTick = std::chrono::milliseconds(20), kShortTick = std::chrono::milliseconds(1),
               kRestTick = std::chrono::milliseconds(5);
// A fill that takes so long does not keep its thread awake.
constexpr auto kLong = std::chrono::milliseconds(5);

}  // namespace

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

Result<> SaFiller::State::allocate(FillBuffer& buffer, std::size_t size) {
    buffer.windows = std::make_unique<Window[]>(kMaxWindows);
    if (device_) {
        DAEL_LET(memory, device_->memory.allocate_pinned(size));
        buffer.memory = static_cast<std::uint8_t*>(memory);
    } else {
        // It is overwritten all the time, so nobody would swap it.
        buffer.memory =
            static_cast<std::uint8_t*>(core::secure_allocate(size, core::Swapping::allowed));
        if (!buffer.memory) return Error{Code::out_of_memory, "no host memory for keystream"};
    }
    buffer.size = size;
    return {};
}

void SaFiller::State::release(FillBuffer& buffer) noexcept {
    if (!buffer.memory) return;
    dael::wipe(buffer.memory, buffer.size);
    if (device_)
        device_->memory.release_pinned(buffer.memory);
    else
        core::secure_release(buffer.memory, buffer.size);
    buffer.memory = nullptr;
}

Result<> SaFiller::State::attach(SaTable::State& table) {
    // Twice what the budget holds: a buffer is free only once all its windows are over.
    const std::size_t count = 2 * (table.options.budget / table.options.block);
    struct Buffers {
        State& filler;
        std::vector<std::unique_ptr<FillBuffer>> list;
        ~Buffers() {
            for (auto& buffer : list) filler.release(*buffer);
        }
    } made{*this, {}};
    made.list.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        made.list.push_back(std::make_unique<FillBuffer>());
        DAEL_TRY(allocate(*made.list.back(), table.options.block));
    }
    const std::lock_guard lock(mutex_);
    tables_.push_back(&table);
    table.buffers.swap(made.list);
    return {};
}

// Its SAs have left. Waits for what is under way for them, but not for ever: what the device does
// not answer for is left to the fills, whose buffers go when they end, and what is lost stays.
void SaFiller::State::detach(SaTable::State& table) noexcept {
    std::unique_lock lock(mutex_);
    collect();  // what its tracks have asked for is not to be found any more
    changed_.wait_for(lock, std::chrono::milliseconds(options_.patience_ms),
                      [&] { return table.under_way == 0; });
    std::erase_if(queue_, [&](const SaSlot* slot) { return slot->table == &table; });
    std::erase(tables_, &table);
    for (auto& worker : workers_)
        for (auto& lane : worker->lanes)
            if (lane->fill.table == &table) lane->fill.table = nullptr;
    for (auto& buffer : table.buffers)
        if (buffer->taken) (void)buffer.release();
    lock.unlock();
    for (auto& buffer : table.buffers)
        if (buffer) release(*buffer);
    table.buffers.clear();
}

void SaFiller::State::enter(SaTable::State& table, SaSlot& slot,
                            std::shared_ptr<const Key> key) noexcept {
    slot.key = std::move(key);
    slot.key_serial = ++key_serial_;
    ++slot.epoch;
    slot.why.clear();
    slot.penalty = slot.resume_at = 0;
    slot.seen_then = slot.strays_then = 0;
    slot.rest = {};
    slot.direct_until = {};
    slot.made_then = slot.made.load(std::memory_order_relaxed);
    slot.dropped_then = slot.dropped.load(std::memory_order_relaxed);
    slot.idle_seconds = 0;
    const bool ahead = this->ahead(table, slot);
    for (Track& track : slot.tracks) {
        track.ordered = track.needed_then = 0;
        track.rate = 0;
        track.refill_at.store(ahead ? 0 : ~std::uint64_t{0}, std::memory_order_relaxed);
    }
}

std::unique_lock<std::mutex> SaFiller::State::lock_with(std::unique_lock<std::mutex>& slot) {
    std::unique_lock mine(mutex_, std::defer_lock);
    std::lock(slot, mine);
    return mine;
}

void SaFiller::State::leave(SaTable::State& table, SaSlot& slot) noexcept {
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

void SaFiller::State::wake_to_forget() noexcept {
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

std::string SaFiller::State::why_direct(const SaTable::State& table, const SaSlot& slot) {
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
                queue_, [&](const SaSlot* slot) { return slot->table == &table; });
            const bool over = resting_ || !wants || (stuck_ && ticks_ >= until);
            if (table.under_way == 0 && over && (resting_ || !asking_.load())) return;
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
    if (!fill.table) return give_up(fill);
    FillBuffer& buffer = *fill.buffer;
    buffer.taken = false;
    const double seconds = std::chrono::duration<double>(Clock::now() - fill.began).count();
    // The first ones wait for kernels to be compiled and the like, which says nothing of the next.
    latency_ += 0.2 * (std::min(seconds, 2 * latency_) - latency_);
    ++jobs_;
    bytes_ += fill.bytes;
    if (!resting_) rest_ -= rest_ / 4;  // the next fault costs less
    for (std::size_t i = 0; i < buffer.count; ++i) {
        Window& window = buffer.windows[i];
        Track& track = *window.track;
        SaSlot& slot = *track.slot;
        if (slot.epoch != window.epoch || !slot.active) {
            fill.table->unclaimed += window.bytes();
            if (slot.epoch == window.epoch) {
                slot.made.fetch_add(window.bytes(), std::memory_order_relaxed);
                slot.dropped.fetch_add(window.bytes(), std::memory_order_relaxed);
            }
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
    fill.table = nullptr;
    fill.stretches.clear();
    stuck_ = false;
    changed_.notify_all();
}

// For a while nobody is filled for: packets go the direct path.
void SaFiller::State::note(const Error& error) noexcept {
    constexpr Clock::duration kFirst = std::chrono::milliseconds(10),
                              kMax = std::chrono::seconds(10);
    try {
        fault_ = error.message.empty() ? "it did not say why" : error.message;
    } catch (const std::bad_alloc&) {
        fault_ = "no memory";
    }
    opened_for_.store(++faults_, std::memory_order_relaxed);
    rest_ = std::clamp(2 * rest_, kFirst, kMax);
    rested_ = Clock::now() + rest_;
    resting_ = true;
}

void SaFiller::State::fail(const Error& error) noexcept {
    const std::lock_guard lock(mutex_);
    note(error);
    changed_.notify_all();
}

// Nothing of the lane's fill is published. The numbers that it was for may be ordered again; the
// same counters give the same keystream. Where the device cannot be waited for its buffer stays
// taken, and nobody touches it.
void SaFiller::State::fail(FillLane& lane, const Error& error) noexcept {
    const bool ended = lane.end();
    Fill& fill = lane.fill;
    const std::lock_guard lock(mutex_);
    note(error);
    fill.lost = !ended;
    if (!fill.table) {
        if (ended) give_up(fill);
        return;
    }
    FillBuffer& buffer = *fill.buffer;
    ++fill.table->fill_errors;
    if (ended) {
        buffer.taken = false;
        wipe_buffer(buffer);
    } else {
        ++fill.table->lost;
    }
    for (std::size_t i = buffer.count; i-- > 0;) {
        Window& window = buffer.windows[i];
        Track& track = *window.track;
        if (track.slot->epoch == window.epoch && track.ordered == window.end)
            track.ordered = window.first;
        fill.table->retire(window);
    }
    --fill.table->under_way;
    if (ended) fill.table = nullptr;
    fill.stretches.clear();
    changed_.notify_all();
}

// What was lost comes back if the device says by now that it has ended; else it is lost for good.
void SaFiller::State::find_again(FillWorker& worker) noexcept {
    for (auto& lane : worker.lanes) {
        Fill& fill = lane->fill;
        if (!fill.lost) continue;
        const bool ended = lane->end();
        const std::lock_guard lock(mutex_);
        SaTable::State* const table = std::exchange(fill.table, nullptr);
        if (!ended) continue;
        fill.lost = false;
        if (!table) {
            give_up(fill);
            continue;
        }
        --table->lost;
        fill.buffer->taken = false;
        wipe_buffer(*fill.buffer);
    }
}

// Its table went without it.
void SaFiller::State::give_up(Fill& fill) noexcept {
    release(*fill.buffer);
    delete fill.buffer;
    fill.buffer = nullptr;
    fill.stretches.clear();
}

// After a fault, and a rest: lanes that have nothing under way go, and others are opened.
Result<> SaFiller::State::open_again(FillWorker& worker) {
    std::vector<FillLaneOwner> lanes;
    std::uint64_t faults = 0;
    {
        const std::lock_guard lock(mutex_);
        if (Clock::now() < rested_) return {};
        faults = faults_;
    }
    find_again(worker);
    {
        const std::lock_guard lock(mutex_);
        lanes.swap(worker.lanes);
    }
    worker.oldest = 0;
    lanes.clear();
    DAEL_TRY(open_lanes(lanes));
    const std::lock_guard lock(mutex_);
    worker.lanes.swap(lanes);
    worker.opened = faults;
    if (faults == faults_) resting_ = false;
    stuck_ = false;
    return {};
}

// Keys of SAs that have gone leave the lanes, those that are busy later. Whether there were any.
bool SaFiller::State::forget(FillWorker& worker) {
    bool any = false;
    for (auto& lane : worker.lanes) {
        if (lane->fill.lost) continue;
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
        auto done = Result<>{};
        if (!all)
            done = lane->forget(serials);
        else if (lane->end())
            lane->forget_all_keys();
        else  // they go with the lane, or stay with it
            done = Error{Code::device, "the device could not be waited for"};
        // Keystream of theirs, where a lane keeps what it brought last.
        if (done && std::exchange(lane->dirty, false)) done = lane->wipe();
        if (!done) fail(done.error());
    }
    return any;
}

// What nobody uses is wiped before a thread goes to sleep for longer. Whether there was any.
bool SaFiller::State::wipe_idle(FillWorker& worker) {
    bool any = false;
    for (auto& lane : worker.lanes) {
        if (lane->busy || lane->fill.lost || !lane->dirty) continue;
        lane->dirty = false;
        any = true;
        if (auto wiped = lane->wipe(); !wiped) fail(wiped.error());
    }
    const std::lock_guard lock(mutex_);
    for (SaTable::State* table : tables_)
        for (auto& buffer : table->buffers) {
            if (buffer->dirty == 0 || buffer->taken || buffer->live.load() != 0) continue;
            wipe_buffer(*buffer);
            any = true;
        }
    return any;
}

// One piece of work. False: there was none.
Result<bool> SaFiller::State::step(FillWorker& worker) {
    const auto now = Clock::now();
    // Not only when there is nothing else to do: there may always be.
    const bool forgotten =
        worker.forgetting.load() && worker.forgetting.exchange(false) && forget(worker);
    const bool outdated = worker.opened != opened_for_.load(std::memory_order_relaxed);
    if (outdated && worker.busy == 0 && !closing_.load()) DAEL_TRY(open_again(worker));
    FillLane* free = nullptr;
    if (worker.busy < worker.lanes.size() &&
        worker.opened == opened_for_.load(std::memory_order_relaxed))
        free = worker.lanes[(worker.oldest + worker.busy) % worker.lanes.size()].get();
    bool composed = false;
    {
        const std::lock_guard lock(mutex_);
        if (room_.load() && room_.exchange(false)) stuck_ = false;
        collect();
        if (now - last_tick_ >= pause_) tick(now);
        if (free && !closing_.load()) composed = compose(free->fill);
        if (composed) free->fill.began = now;
    }
    if (composed) {
        free->busy = free->dirty = true;
        auto begun = core::guarded([&] { return free->begin(); });
        if (!begun) {
            free->busy = false;
            fail(*free, begun.error());
        } else if (!device_) {
            free->busy = false;
            publish(free->fill);
        } else {
            ++worker.busy;
        }
        return true;
    }
    if (worker.busy != 0) {
        FillLane& oldest = *worker.lanes[worker.oldest];
        auto done = core::guarded([&] { return oldest.done(); });
        if (done && !*done) return forgotten;
        worker.oldest = (worker.oldest + 1) % worker.lanes.size();
        --worker.busy;
        oldest.busy = false;
        if (done)
            publish(oldest.fill);
        else
            fail(oldest, done.error());
        return true;
    }
    return forgotten;
}

void SaFiller::State::serve(FillWorker& worker) noexcept {
    auto last = Clock::now();
    while (!closing_.load() || worker.busy != 0) {  // what was written before closing is seen
        auto worked = core::guarded([&] { return step(worker); });
        if (!worked) fail(worked.error());
        const auto now = Clock::now();
        if (worked && *worked) {
            last = now;
        } else if (worker.busy != 0 && now - last > kLong) {
            std::this_thread::sleep_for(kLookOut);  // whoever takes that long is not about to end
        } else if (worker.busy != 0 || now - last < kLookOut) {
            std::this_thread::yield();
        } else {
            doze(worker);
        }
    }
    // Keys and keystream go with the lanes, on the thread that used them.
    find_again(worker);
    std::vector<FillLaneOwner> lanes;
    {
        const std::lock_guard lock(mutex_);
        lanes.swap(worker.lanes);
    }
}

void SaFiller::State::doze(FillWorker& worker) {
    bool queued = false, active = false, rests = false;
    {
        const std::lock_guard lock(mutex_);
        queued = !queue_.empty();
        rests = resting_;
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
    const auto short_tick = rests ? kRestTick : kShortTick;
    if (active || queued || rests)
        bell_.wait_for(lock, queued || rests ? short_tick : kIdleTick, woken);
    else
        bell_.wait(lock, woken);
    sleeping_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace dael
