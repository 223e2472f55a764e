// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots.hpp"

#include <algorithm>
#include <utility>

namespace dael::pipeline {
namespace {

// What an engine holds on to between calls: sets for a few callers at once, none of them huge.
constexpr std::size_t kKeptBytes = std::size_t{512} << 20;
// What all callers of a device have at once, in device and page-locked memory together.
constexpr std::size_t kMostBytes = std::size_t{2} << 30;

}  // namespace

SlotSet::~SlotSet() {
    wipe();
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

// Errors are passed over: a device that cannot wipe its memory any more has failed as a whole, and
// what it still holds is out of reach.
void SlotSet::wipe() noexcept {
    (void)wait();
    for (Slot& slot : slots_) {
        if (slot.in) (void)device_.memory().fill(slot.in, 0, capacity_, inward_);
        if (slot.out) (void)device_.memory().fill(slot.out, 0, capacity_, inward_);
        if (slot.in_staging) dael::wipe(slot.in_staging, capacity_);
        if (slot.out_staging) dael::wipe(slot.out_staging, capacity_);
    }
    (void)wait();
}

Result<> SlotSet::wait() noexcept {
    Result<> first;
    const auto wait_for = [&](Stream stream) {
        if (!stream.handle) return;
        auto waited = device_.order().wait(stream);
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

std::unique_ptr<SlotSet> SlotPool::take(const SlotNeeds& needs) {
    const std::size_t bytes = static_cast<std::size_t>(needs.slots) * needs.capacity * 4;
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return used_ == 0 || used_ + bytes <= kMostBytes; });
    // The smallest that fits, and of those the one used last: it has the staging it needed.
    auto best = kept_.rend();
    for (auto set = kept_.rbegin(); set != kept_.rend(); ++set)
        if ((*set)->capacity() >= needs.capacity && (*set)->capacity() <= 2 * needs.capacity &&
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
    set->book(std::max(set->bytes(), bytes));
    used_ += set->bytes();
    return set;
}

void SlotPool::destroyed(std::size_t bytes) {
    {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
    }
    returned_.notify_all();
}

Result<SlotPool::Loan> SlotPool::acquire(SlotNeeds needs) {
    for (;;) {
        auto set = take(needs);
        auto provided = set->provide(needs);
        if (provided) return Loan(*this, std::move(set));
        const std::size_t bytes = set->bytes();
        set.reset();
        destroyed(bytes);
        if (provided.code() != Code::out_of_memory) return std::move(provided).error();
        {
            const std::lock_guard lock(mutex_);
            kept_.clear();  // too small for this call, and perhaps what stands in its way
            kept_bytes_ = 0;
        }
        if (needs.capacity / 2 >= needs.least)
            needs.capacity = (needs.capacity / 2 + 15) / 16 * 16;
        else if (needs.slots > 1)
            needs.slots /= 2;
        else
            return std::move(provided).error();
    }
}

void SlotPool::give_back(std::unique_ptr<SlotSet> set, bool good) {
    const std::size_t bytes = set->bytes();
    if (!good) {
        set.reset();
        destroyed(bytes);
        return;
    }
    std::vector<std::unique_ptr<SlotSet>> gone;
    {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
        kept_bytes_ += bytes;
        kept_.push_back(std::move(set));
        // Those that have lain longest make room.
        while (kept_bytes_ > kKeptBytes) {
            kept_bytes_ -= kept_.front()->bytes();
            gone.push_back(std::move(kept_.front()));
            kept_.erase(kept_.begin());
        }
    }
    returned_.notify_all();
}

}  // namespace dael::pipeline
