// SPDX-License-Identifier: Apache-2.0
// The prefetcher of keystream, what is behind an SaFiller: a scheduler (deficit round robin) says
// who gets it next and how much of it, and producer threads bring it.
//
// The packet side pushes tracks that want more onto a stack and goes on; a filler's thread takes
// them off, fills a buffer for many of them, and pushes the windows into the tracks' inboxes. No
// packet call waits for the scheduler's mutex; adding, rekeying and removing an SA do.
//
// A fault ends what is under way in the lane that had it, and for a while nothing more is filled:
// then all lanes are opened anew. What a device does not answer for is not waited for without end,
// and not freed either: closing leaves it to the thread that waits. And what could not be waited
// for, since the wait failed, is lost: it stays as it is, with the lane that it went through,
// unless a later wait says that it has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <daelstrom/keystream.hpp>

#include "keystream/fill_lane.hpp"
#include "keystream/sa_slot.hpp"

namespace dael {

struct SaFiller::State {
    static Result<std::shared_ptr<State>> make(Engine& engine, const SaFillerOptions& options);
    ~State();

    // The packet side; without a lock, but where a thread is to be woken.
    void ask(keystream::Track& track) noexcept;
    void freed() noexcept;

    // Control.
    bool forked() const noexcept;  // since it was opened: its threads are the parent's
    Result<> attach(SaTable::State& table);
    void detach(SaTable::State& table) noexcept;
    void enter(SaTable::State& table, keystream::SaSlot& slot,
               std::shared_ptr<const Key> key) noexcept;
    // After it, no window of the SA that was there is published. Under the slot's mutex and, as the
    // next, the scheduler's, which lock_with() has taken: both, without a wait for the latter while
    // packets wait for the former.
    void leave(SaTable::State& table, keystream::SaSlot& slot) noexcept;
    // What was used of its keystream, which is not held any more.
    void wipe_used(SaTable::State& table, const keystream::SaSlot& slot) noexcept;
    std::unique_lock<std::mutex> lock_with(std::unique_lock<std::mutex>& slot);
    void wake_to_forget() noexcept;
    void add_to(SaCounters& sum, const SaTable::State& table);
    SaFilling filling();
    std::string why_direct(const SaTable::State& table, const keystream::SaSlot& slot);
    void settle(SaTable::State& table);
    std::string describe();
    std::string say_lost(const SaTable::State& table);  // as part of a sentence

  private:
    using Clock = std::chrono::steady_clock;
    struct FillWorker {
        std::vector<keystream::FillLaneOwner> lanes;
        std::size_t oldest = 0, busy = 0;  // lanes[oldest] and those after it are under way
        std::atomic<bool> forgetting{false};
        std::uint64_t opened = 0;  // `faults_` when its lanes were opened
        std::thread thread;
    };

    State(Engine& engine, const SaFillerOptions& options);
    static void close(State* state) noexcept;
    Result<> start();
    Result<> start_thread(std::size_t index);
    Result<> open_lanes(std::vector<keystream::FillLaneOwner>& lanes);
    Result<> open_again(FillWorker& worker);
    Result<> allocate(keystream::FillBuffer& buffer, std::size_t size);
    void release(keystream::FillBuffer& buffer) noexcept;
    Result<std::unique_ptr<core::KeystreamMaker>> keystream_maker();
    Result<keystream::FillLaneOwner> open_lane();
    void serve(FillWorker& worker) noexcept;
    Result<bool> step(FillWorker& worker);
    void doze(FillWorker& worker);
    void ring() noexcept;
    bool forget(FillWorker& worker);
    bool wipe_idle(FillWorker& worker);
    void publish(keystream::Fill& fill) noexcept;
    static void learn_lead(keystream::Track& track, const keystream::Window& window) noexcept;
    void fail(const Error& error) noexcept;
    void fail(keystream::FillLane& lane, const Error& error) noexcept;
    void note(const Error& error) noexcept;
    void give_up(keystream::Fill& fill) noexcept;
    void find_again(FillWorker& worker) noexcept;

    // Under the mutex: scheduler.cpp
    void collect();
    bool compose(keystream::Fill& fill);
    keystream::FillBuffer* free_buffer(SaTable::State& table);
    bool add_windows(keystream::Fill& fill, keystream::SaSlot& slot, std::uint64_t quantum);
    struct Wish {
        std::uint64_t first = 0, count = 0;
        std::uint32_t blocks = 1;
    };
    Wish wish(keystream::Track& track) const;
    std::uint64_t share(const keystream::Track& track, std::uint64_t slot_bytes) const;
    void tick(Clock::time_point now);
    void sweep() noexcept;
    static void wipe_buffer(keystream::FillBuffer& buffer) noexcept;
    void look_at(SaTable::State& table, double seconds, Clock::time_point now);
    void judge(keystream::SaSlot& slot);
    void judge_waste(const SaTable::State& table, keystream::SaSlot& slot, Clock::time_point now);
    void release_idle(SaTable::State& table, keystream::SaSlot& slot,
                      Clock::time_point now) noexcept;
    bool shrink(SaTable::State& table) noexcept;
    void drop_newest(SaTable::State& table) noexcept;
    void stop_asking(keystream::SaSlot& slot) noexcept;
    static bool plans_ahead(const SaTable::State& table) noexcept;
    bool ahead(const SaTable::State& table, const keystream::SaSlot& slot) const noexcept;
    std::string why(const SaTable::State& table, const keystream::SaSlot& slot) const;

    Engine engine_;
    const SaFillerOptions options_;
    std::optional<DeviceAccess> device_;
    std::string name_;
    std::uint32_t process_ = 0;

    std::mutex mutex_;
    std::condition_variable changed_;  // a fill ended
    std::vector<SaTable::State*> tables_;
    std::deque<keystream::SaSlot*> queue_;  // of who wants keystream, in order of service
    std::vector<std::unique_ptr<FillWorker>> workers_;
    std::uint64_t key_serial_ = 0, buffer_order_ = 0, jobs_ = 0, bytes_ = 0, ticks_ = 0;
    std::uint64_t composed_ = 0;  // fills, and tries
    double latency_ = 1e-4;       // seconds from composing a fill to its publication, of late
    Clock::time_point last_tick_{};
    static constexpr Clock::duration kTick = std::chrono::milliseconds(1);
    Clock::duration pause_ = kTick;  // from one tick to the next
    std::uint64_t swept_ = 0;        // the last fill before the last sweep
    bool stuck_ = false;             // who is queued cannot be served, as things are
    std::uint64_t faults_ = 0;
    std::string fault_;     // the last one
    bool resting_ = false;  // nothing is filled up to `rested_`, and until lanes are opened anew
    Clock::duration rest_{};
    Clock::time_point rested_{};
    std::atomic<std::uint64_t> opened_for_{0};  // `faults_`, for threads to see that it changed

    std::atomic<keystream::Track*> asking_{nullptr};
    std::atomic<bool> want_room_{false}, room_{false}, closing_{false};

    std::atomic<int> sleeping_{0};
    std::mutex sleep_;
    std::condition_variable bell_;  // also that a thread has ended
    std::uint64_t rung_ = 0;
    std::size_t running_ = 0;  // threads
    bool abandoned_ = false;   // the last of them deletes this
};

}  // namespace dael
