// SPDX-License-Identifier: Apache-2.0
#include "devices.hpp"

#include <cstdlib>
#include <new>
#include <string>

#include "process.hpp"

namespace daelpy {
namespace {

// Sets of codes in one allocation, as page-locked memory comes by the page.
constexpr std::size_t kSets = 4096 / sizeof(Codes);

int number_of(const dael_device* device) {
    const std::string name = dael_device_describe(device)->backend;
    const auto colon = name.find(':');
    return colon == std::string::npos ? 0 : std::atoi(name.c_str() + colon + 1);
}

}  // namespace

// What could not be waited for stays, and the device with it: another stream may still be to wait
// for such an event. One failure may be that of work that came before, so it is asked twice. Blocks
// whose sets are not all back are written to by a launch that nobody has waited for.
KeptDevice::~KeptDevice() {
    bool over = free_.size() == kSets * blocks_.size();
    for (void* event : events_)
        if (dael_event_wait(get(), event) == DAEL_OK || dael_event_wait(get(), event) == DAEL_OK)
            dael_event_destroy(get(), event);
        else
            over = false;
    if (!over) {
        (void)new (std::nothrow) std::shared_ptr<dael_device>(device_);
        return;
    }
    for (void* block : blocks_) {
        dael_wipe(block, kSets * sizeof(Codes));
        dael_device_release_pinned(get(), block);
    }
}

dael_status KeptDevice::take(Codes*& codes) {
    const std::lock_guard hold(mutex_);
    if (free_.empty()) {
        blocks_.reserve(blocks_.size() + 1);
        free_.reserve(kSets * (blocks_.size() + 1));  // so that give() never allocates
        void* block = nullptr;
        const dael_status status =
            dael_device_allocate_pinned(get(), kSets * sizeof(Codes), &block);
        if (status != DAEL_OK) return status;
        blocks_.push_back(block);
        for (std::size_t i = 0; i < kSets; ++i) free_.push_back(static_cast<Codes*>(block) + i);
    }
    codes = free_.back();
    free_.pop_back();
    return DAEL_OK;
}

void KeptDevice::give(Codes* codes) {
    const std::lock_guard hold(mutex_);
    free_.push_back(codes);
}

dael_status KeptDevice::follow(void* first, void* later) {
    void* event = nullptr;
    {
        const std::lock_guard hold(mutex_);
        if (!events_.empty()) {
            event = events_.back();
            events_.pop_back();
        }
    }
    dael_status status = event ? DAEL_OK : dael_event_create(get(), &event);
    if (status != DAEL_OK) return status;
    status = dael_event_record(get(), event, first);
    if (status == DAEL_OK) status = dael_stream_wait_event(get(), later, event);
    // Recorded again it is as good as new: who waits for it waits for what it marked then.
    const std::lock_guard hold(mutex_);
    events_.push_back(event);
    return status;
}

Devices::Devices(dael_engine* engine) : engine_(engine) {}

Devices::~Devices() {
    // What a child's parent has on its devices is not the child's to give back.
    if (in_child())
        for (auto& [number, device] : kept_) (void)device.release();
}

bool Devices::in_child() const {
    const std::uint64_t process = process_.load(std::memory_order_relaxed);
    return process != 0 && process != this_process();
}

dael_status Devices::of(int number, const void* memory, KeptDevice*& found) {
    std::uint64_t nobody = 0;  // before the lock: a child would find it held
    process_.compare_exchange_strong(nobody, this_process());
    const std::lock_guard hold(mutex_);
    if (const auto kept = kept_.find(number); kept != kept_.end()) {
        found = kept->second.get();
        return DAEL_OK;
    }
    // Of no memory at all the engine would name its first device, which may be another one.
    if (!memory && number >= 0) return DAEL_INVALID_ARGUMENT;
    dael_device* device = nullptr;
    const dael_status status = dael_device_of(engine_, memory, &device);
    if (status != DAEL_OK) return status;
    auto made =
        std::make_unique<KeptDevice>(std::shared_ptr<dael_device>(device, dael_device_free));
    const auto at = number < 0 ? number_of(device) : number;
    found = kept_.emplace(at, std::move(made)).first->second.get();
    return DAEL_OK;
}

}  // namespace daelpy
