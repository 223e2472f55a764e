// SPDX-License-Identifier: Apache-2.0
#include "bench/device_objects.hpp"

#include <algorithm>

namespace dael::bench {
namespace {

// CUDA's events tell times apart by half a microsecond; less is not a measurement.
constexpr double kEventResolution = 0.5e-6;

Result<std::shared_ptr<core::Event>> create_event(core::Device& device) {
    const auto event = device.create_event();
    if (!event) return event.error();
    return std::shared_ptr<core::Event>(new core::Event(*event), [&device](core::Event* e) {
        device.destroy_event(*e);
        delete e;
    });
}

}  // namespace

Result<DeviceMemory> DeviceMemory::allocate(core::Device& device, MemoryKind kind,
                                            std::size_t size) {
    const bool pinned = kind == MemoryKind::pinned;
    const auto memory = pinned ? device.allocate_pinned(size) : device.allocate(size);
    if (!memory) return memory.error();
    DeviceMemory held;
    held.memory_ = std::shared_ptr<void>(*memory, [&device, pinned](void* data) {
        pinned ? device.release_pinned(data) : device.release(data);
    });
    held.size_ = size;
    return held;
}

Result<DeviceStream> DeviceStream::create(core::Device& device, bool timed) {
    const auto stream = timed ? device.create_timed_stream() : device.create_stream();
    if (!stream) return stream.error();
    DeviceStream held;
    held.stream_ = std::shared_ptr<Stream>(new Stream(*stream), [&device](Stream* s) {
        device.destroy_stream(*s);
        delete s;
    });
    return held;
}

Result<DeviceClock> DeviceClock::create(core::Device& device) {
    DeviceClock clock;
    clock.device_ = &device;
    auto stream = DeviceStream::create(device, true);
    if (!stream) return std::move(stream).error();
    auto begin = create_event(device), end = create_event(device);
    if (!begin) return std::move(begin).error();
    if (!end) return std::move(end).error();
    clock.stream_ = *stream;
    clock.begin_ = *begin;
    clock.end_ = *end;
    return clock;
}

Sampler DeviceClock::by_events(Launch launch) const {
    return [clock = *this, launch = std::move(launch)]() -> Result<double> {
        core::Device& device = *clock.device_;
        DAEL_TRY(device.record(*clock.begin_, clock.stream()));
        DAEL_TRY(launch(clock.stream()));
        DAEL_TRY(device.record(*clock.end_, clock.stream()));
        DAEL_TRY(device.wait(*clock.end_));
        const auto elapsed = device.elapsed_ms(*clock.begin_, *clock.end_);
        if (!elapsed) return elapsed.error();
        return std::max(*elapsed / 1e3, kEventResolution);
    };
}

Sampler DeviceClock::by_wall(Launch launch, const Sampling& sampling) const {
    return wall_clock([clock = *this, launch = std::move(launch)] { return clock.run(launch); },
                      sampling);
}

Sampler DeviceClock::back_to_back(Launch launch, int launches) const {
    const auto train = [clock = *this, launch = std::move(launch), launches]() -> Result<> {
        for (int i = 0; i < launches; ++i) DAEL_TRY(launch(clock.stream()));
        return clock.device_->wait(clock.stream());
    };
    return [sample = wall_clock(train, {}), launches]() -> Result<double> {
        const auto seconds = sample();
        if (!seconds) return seconds.error();
        return *seconds / launches;
    };
}

Result<> DeviceClock::run(const Launch& launch) const {
    DAEL_TRY(launch(stream()));
    return device_->wait(stream());
}

Fetch DeviceClock::fetch_from(const std::uint8_t* device_memory) const {
    return [=, this](std::uint64_t at, std::uint8_t* bytes, std::size_t size) {
        return run([&](Stream s) { return device_->copy_out(bytes, device_memory + at, size, s); });
    };
}

}  // namespace dael::bench
