// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "core/guard.hpp"

namespace dael::pipeline {
namespace {

// What an engine holds on to between calls: sets for a few callers at once, none of them huge.
constexpr std::size_t kKeptBytes = std::size_t{512} << 20;
// What all callers of a device have at once, in device and page-locked memory together.
constexpr std::size_t kMaxBytes = std::size_t{2} << 30;

// Whether there is less to ask for.
bool shrink(SlotNeeds& needs) noexcept {
    if (needs.capacity / 2 >= needs.least)
        needs.capacity = (needs.capacity / 2 + 15) / 16 * 16;
    else if (needs.slots > 1)
        needs.slots /= 2;
    else
        return false;
    return true;
}

// Of a set: two buffers a slot in either memory.
std::size_t bytes_of(const SlotNeeds& needs) noexcept {
    return static_cast<std::size_t>(needs.slots) * needs.capacity * 4;
}

}  // namespace

SlotSet::~SlotSet() {
    if (process_ != core::this_process() || !wipe()) return;
    for (Slot& slot : slots_) {
        for (const Event event : {slot.arrived, slot.transformed, slot.done})
            if (event.handle) device_.order().destroy_event(event);
        if (slot.work.handle) device_.order().destroy_stream(slot.work);
        if (slot.in) device_.memory().release(slot.in);
        if (slot.out) device_.memory().release(slot.out);
        if (slot.in_staging) device_.memory().release_pinned(slot.in_staging);
        if (slot.out_staging) device_.memory().release_pinned(slot.out_staging);
    }
    for (const Stream stream : {inward_, outward_})
        if (stream.handle) device_.order().destroy_stream(stream);
}

// A device that cannot be waited for may still read and write all of this: it stays, and what is
// in it.
bool SlotSet::wipe() noexcept {
    const auto over = [&] { return wait(); };
    if (lost_ || !core::waited(over)) return false;
    const auto clear = [&](std::uint8_t* memory) {
        const auto fill = [&] { return device_.memory().fill(memory, 0, capacity_, inward_); };
        if (memory) (void)core::guarded(fill);
    };
    for (Slot& slot : slots_) {
        clear(slot.in);
        clear(slot.out);
        if (slot.in_staging) dael::wipe(slot.in_staging, capacity_);
        if (slot.out_staging) dael::wipe(slot.out_staging, capacity_);
    }
    return core::waited(over);
}

Result<> SlotSet::wait() noexcept {
    Result<> first;
    const auto wait_for = [&](Stream stream) {
        if (!stream.handle) return;
        auto waited = core::guarded([&] { return device_.order().wait(stream); });
        if (!waited && first) first = std::move(waited);
    };
    wait_for(inward_);
    for (const Slot& slot : slots_) wait_for(slot.work);
    wait_for(outward_);
    return first;
}

Result<> SlotSet::provide(const SlotNeeds& needs) {
    slots_.resize(std::max(slots_.size(), static_cast<std::size_t>(needs.slots)));
    const auto obtain = [](auto& where, auto&& result) -> Result<> {
        if (!result) return std::move(result).error();
        where = static_cast<std::remove_reference_t<decltype(where)>>(*result);
        return {};
    };
    for (Stream* stream : {&inward_, &outward_})
        if (!stream->handle) DAEL_TRY(obtain(*stream, device_.order().create_stream()));
    for (Slot& slot : slots_) {
        if (!slot.work.handle && (needs.kernels_at_once || &slot == &slots_.front()))
            DAEL_TRY(obtain(slot.work, device_.order().create_stream()));
        for (Event* event : {&slot.arrived, &slot.transformed, &slot.done})
            if (!event->handle) DAEL_TRY(obtain(*event, device_.order().create_event()));
        if (!slot.in) DAEL_TRY(obtain(slot.in, device_.memory().allocate(capacity_)));
        if (needs.out && !slot.out)
            DAEL_TRY(obtain(slot.out, device_.memory().allocate(capacity_)));
        if (needs.in_staging && !slot.in_staging)
            DAEL_TRY(obtain(slot.in_staging, device_.memory().allocate_pinned(capacity_)));
        if (needs.out_staging && !slot.out_staging)
            DAEL_TRY(obtain(slot.out_staging, device_.memory().allocate_pinned(capacity_)));
    }
    return {};
}

SlotPool::SlotPool(core::Device& device, std::size_t memory)
    : device_(device),
      strict_(memory != 0),
      most_(memory == 0 ? kMaxBytes : std::min(memory, ~std::size_t{0} / 2) * 2),
      kept_most_(std::min(kKeptBytes, most_)) {}

// Whether a set may be had at all within the budget, and how.
Result<> SlotPool::fit(SlotNeeds& needs) const {
    while (strict_ && bytes_of(needs) > most_) {
        if (shrink(needs)) continue;
        return Error{Code::out_of_memory,
                     "a chunk of this job takes " + std::to_string(bytes_of(needs) / 2) +
                         " bytes of " + device_.info().name + "'s memory, and device_memory is " +
                         std::to_string(most_ / 2)};
    }
    return {};
}

std::unique_ptr<SlotSet> SlotPool::take(const SlotNeeds& needs) {
    const bool trifle = needs.slots == 1 && needs.capacity <= kBlockSize;
    const std::size_t bytes = trifle ? 0 : bytes_of(needs);
    const core::Uncancelled whole;  // a ticket that nobody takes up would stop all behind it
    Sets gone;
    std::size_t gone_bytes = 0;
    std::unique_lock lock(mutex_);
    if (!trifle) {
        const std::uint64_t ticket = next_ticket_++;
        const auto served = [&] {
            return served_ == ticket && (used_ == 0 || used_ + bytes <= most_);
        };
        // Looks by itself too: where several wait, glibc may lose a wake-up (its bug 25847).
        while (!changed_.wait_for(lock, std::chrono::milliseconds(100), served)) {
        }
        ++served_;
        changed_.notify_all();
    }
    gone.reserve(kept_.size());
    const auto booked = [&](const SlotSet& set) {
        return std::max(set.bytes(), bytes / needs.capacity * set.capacity());
    };
    // The smallest that fits, and of those the one used last: it has the staging it needed.
    auto best = kept_.rend();
    for (auto set = kept_.rbegin(); set != kept_.rend(); ++set)
        if ((*set)->capacity() >= needs.capacity && (*set)->capacity() <= 2 * needs.capacity &&
            (!strict_ || used_ + booked(**set) <= most_) &&
            (best == kept_.rend() || (*set)->capacity() < (*best)->capacity()))
            best = set;
    std::unique_ptr<SlotSet> set;
    if (best != kept_.rend()) {
        set = std::move(*best);
        kept_.erase(std::next(best).base());
        kept_bytes_ -= set->bytes();
    } else {
        set = std::make_unique<SlotSet>(device_, needs.capacity);
    }
    set->book(booked(*set));
    used_ += set->bytes();
    while (strict_ && !kept_.empty() && used_ + kept_bytes_ > most_) {
        gone.push_back(std::move(kept_.front()));
        kept_.erase(kept_.begin());
        kept_bytes_ -= gone.back()->bytes();
        gone_bytes += gone.back()->bytes();
    }
    used_ += gone_bytes;  // until they are
    lock.unlock();
    gone.clear();
    if (gone_bytes != 0) destroyed(gone_bytes);
    return set;
}

void SlotPool::destroyed(std::size_t bytes) noexcept {
    {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
    }
    changed_.notify_all();
}

Result<SlotPool::Loan> SlotPool::acquire(SlotNeeds needs) {
    DAEL_TRY(fit(needs));
    for (;;) {
        Loan loan(*this, take(needs));  // which gives back whatever comes
        auto provided = core::guarded([&] { return loan->provide(needs); });
        if (provided) return loan;
        if (provided.code() != Code::out_of_memory) return std::move(provided).error();
        trim();  // what is kept is too small for this call, and perhaps stands in its way
        if (!shrink(needs)) return std::move(provided).error();
    }
}

std::size_t SlotPool::waiting() {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(next_ticket_ - served_);
}
std::size_t SlotPool::used() {
    const std::lock_guard lock(mutex_);
    return used_;
}

void SlotPool::trim() noexcept {
    Sets idle;
    std::size_t bytes = 0;
    {
        const std::lock_guard lock(mutex_);
        idle.swap(kept_);
        bytes = std::exchange(kept_bytes_, 0);
        used_ += bytes;  // until they are gone
    }
    idle.clear();
    destroyed(bytes);
}

void SlotPool::lose() noexcept {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    for (const auto& set : kept_) set->lose();
}

void SlotPool::give_back(std::unique_ptr<SlotSet> set, bool good) noexcept {
    const std::size_t bytes = set->bytes();
    std::size_t gone_bytes = 0;
    Sets gone;
    {
        const std::lock_guard lock(mutex_);
        if (lost_) set->lose();
        if (good && !lost_) {
            try {
                kept_.push_back(std::move(set));
                kept_bytes_ += bytes;
                // Those that have lain longest make room.
                while (kept_bytes_ > kept_most_) {
                    gone.push_back(std::move(kept_.front()));
                    kept_.erase(kept_.begin());
                    kept_bytes_ -= gone.back()->bytes();
                    gone_bytes += gone.back()->bytes();
                }
            } catch (const std::bad_alloc&) {  // then fewer are kept, or more
            }
        }
        used_ += gone_bytes;  // until they are
    }
    // What goes is wiped before others may have its memory.
    gone.clear();
    set.reset();
    destroyed(bytes + gone_bytes);
}

}  // namespace dael::pipeline
