// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots.hpp"

#include <algorithm>
#include <utility>

namespace dael::pipeline {
namespace {

// What an engine holds on to between calls: sets for a few callers at once, none of them huge.
constexpr std::size_t kKeptSets = 8;
constexpr std::size_t kKeptBytes = std::size_t{512} << 20;

}  // namespace

SlotSet::~SlotSet() {
    wipe();
    for (Slot& slot : slots_) {
        for (const core::Event event : {slot.arrived, slot.transformed, slot.done})
            if (event.handle) device_.destroy_event(event);
        if (slot.work.handle) device_.destroy_stream(slot.work);
        if (slot.in) device_.release(slot.in);
        if (slot.out) device_.release(slot.out);
        if (slot.in_staging) device_.release_pinned(slot.in_staging);
        if (slot.out_staging) device_.release_pinned(slot.out_staging);
    }
    for (const Stream stream : {inward_, outward_})
        if (stream.handle) device_.destroy_stream(stream);
}

// Errors are passed over: a device that cannot wipe its memory any more has failed as a whole, and
// what it still holds is out of reach.
void SlotSet::wipe() noexcept {
    (void)wait();
    for (Slot& slot : slots_) {
        if (slot.in) (void)device_.fill(slot.in, 0, capacity_, inward_);
        if (slot.out) (void)device_.fill(slot.out, 0, capacity_, inward_);
        if (slot.in_staging) dael::wipe(slot.in_staging, capacity_);
        if (slot.out_staging) dael::wipe(slot.out_staging, capacity_);
    }
    (void)wait();
}

Result<> SlotSet::wait() noexcept {
    Result<> first;
    const auto wait_for = [&](Stream stream) {
        if (!stream.handle) return;
        auto waited = device_.wait(stream);
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
        if (!stream->handle) DAEL_TRY(obtain(*stream, device_.create_stream()));
    for (Slot& slot : slots_) {
        if (!slot.work.handle && (needs.kernels_at_once || &slot == &slots_.front()))
            DAEL_TRY(obtain(slot.work, device_.create_stream()));
        for (core::Event* event : {&slot.arrived, &slot.transformed, &slot.done})
            if (!event->handle) DAEL_TRY(obtain(*event, device_.create_event()));
        if (!slot.in) DAEL_TRY(obtain(slot.in, device_.allocate(capacity_)));
        if (needs.out && !slot.out) DAEL_TRY(obtain(slot.out, device_.allocate(capacity_)));
        if (needs.in_staging && !slot.in_staging)
            DAEL_TRY(obtain(slot.in_staging, device_.allocate_pinned(capacity_)));
        if (needs.out_staging && !slot.out_staging)
            DAEL_TRY(obtain(slot.out_staging, device_.allocate_pinned(capacity_)));
    }
    return {};
}

std::unique_ptr<SlotSet> SlotPool::take_kept(const SlotNeeds& needs) {
    const std::lock_guard lock(mutex_);
    // The smallest that fits, and of those the one used last: it has the staging it needed.
    auto best = kept_.rend();
    for (auto set = kept_.rbegin(); set != kept_.rend(); ++set)
        if ((*set)->capacity() >= needs.capacity &&
            (best == kept_.rend() || (*set)->capacity() < (*best)->capacity()))
            best = set;
    if (best == kept_.rend()) return nullptr;
    auto set = std::move(*best);
    kept_.erase(std::next(best).base());
    return set;
}

Result<std::unique_ptr<SlotSet>> SlotPool::acquire(SlotNeeds needs) {
    for (;;) {
        auto set = take_kept(needs);
        if (!set) set = std::make_unique<SlotSet>(device_, needs.capacity);
        auto provided = set->provide(needs);
        if (provided) return set;
        if (provided.code() != Code::out_of_memory) return std::move(provided).error();
        set.reset();
        {
            const std::lock_guard lock(mutex_);
            kept_.clear();  // too small for this call, and perhaps what stands in its way
        }
        if (needs.capacity / 2 >= needs.least)
            needs.capacity = (needs.capacity / 2 + 15) / 16 * 16;
        else if (needs.slots > 1)
            needs.slots /= 2;
        else
            return std::move(provided).error();
    }
}

void SlotPool::give_back(std::unique_ptr<SlotSet> set) {
    if (set->bytes() > kKeptBytes) return;
    const std::lock_guard lock(mutex_);
    if (kept_.size() < kKeptSets) kept_.push_back(std::move(set));
}

}  // namespace dael::pipeline
