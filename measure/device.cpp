// SPDX-License-Identifier: Apache-2.0
#include "measure/device.hpp"

#include <algorithm>

namespace dael::measure {
namespace {

// CUDA's events tell times apart by half a microsecond; less is not a measurement.
constexpr double kEventResolution = 0.5e-6;

Result<std::shared_ptr<Event>> create_event(Order& order) {
    DAEL_LET(event, order.create_event());
    return std::shared_ptr<Event>(new Event(event), [&order](Event* e) {
        order.destroy_event(*e);
        delete e;
    });
}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::allocate(const DeviceAccess& device, MemoryKind kind,
                                            std::size_t size) {
    const bool pinned = kind == MemoryKind::pinned;
    Memory& memory = device.memory;
    DAEL_LET(data, pinned ? memory.allocate_pinned(size) : memory.allocate(size));
    DeviceBuffer buffer;
    buffer.memory_ = std::shared_ptr<void>(data, [&memory, pinned](void* held) {
        pinned ? memory.release_pinned(held) : memory.release(held);
    });
    buffer.size_ = size;
    return buffer;
}

Result<DeviceStream> DeviceStream::create(const DeviceAccess& device, bool timed) {
    Order& order = device.order;
    DAEL_LET(stream, timed ? order.create_timed_stream() : order.create_stream());
    DeviceStream held;
    held.stream_ = std::shared_ptr<Stream>(new Stream(stream), [&order](Stream* s) {
        order.destroy_stream(*s);
        delete s;
    });
    return held;
}

Result<DeviceClock> DeviceClock::create(const DeviceAccess& device) {
    DeviceClock clock;
    clock.device_ = std::make_shared<DeviceAccess>(device);
    DAEL_LET(stream, DeviceStream::create(device, true));
    DAEL_LET(begin, create_event(device.order));
    DAEL_LET(end, create_event(device.order));
    clock.stream_ = stream;
    clock.begin_ = begin;
    clock.end_ = end;
    return clock;
}

Sampler DeviceClock::by_events(Launch launch, Launch before) const {
    return [clock = *this, launch = std::move(launch),
            before = std::move(before)]() -> Result<double> {
        Order& order = clock.device_->order;
        const Stream stream = clock.stream_.get();
        if (before) DAEL_TRY(before(stream));
        DAEL_TRY(order.record(*clock.begin_, stream));
        DAEL_TRY(launch(stream));
        DAEL_TRY(order.record(*clock.end_, stream));
        DAEL_TRY(order.wait(*clock.end_));
        DAEL_LET(elapsed, order.elapsed_ms(*clock.begin_, *clock.end_));
        return std::max(elapsed / 1e3, kEventResolution);
    };
}

Sampler DeviceClock::by_wall(Launch launch, const Sampling& sampling) const {
    return wall_clock([clock = *this, launch = std::move(launch)] { return clock.run(launch); },
                      sampling);
}

Sampler DeviceClock::back_to_back(Launch launch, int launches) const {
    const auto train = [clock = *this, launch = std::move(launch), launches]() -> Result<> {
        for (int i = 0; i < launches; ++i) DAEL_TRY(launch(clock.stream_.get()));
        return clock.device_->order.wait(clock.stream_.get());
    };
    return [sample = wall_clock(train, {}), launches]() -> Result<double> {
        DAEL_LET(seconds, sample());
        return seconds / launches;
    };
}

Result<> DeviceClock::run(const Launch& launch) const {
    DAEL_TRY(launch(stream_.get()));
    return device_->order.wait(stream_.get());
}

Result<> DeviceClock::copy_in(void* device_memory, const void* host, std::size_t size) const {
    return run([&](Stream s) { return device_->memory.copy_in(device_memory, host, size, s); });
}

Result<> DeviceClock::fill(void* device_memory, std::uint8_t value, std::size_t size) const {
    return run([&](Stream s) { return device_->memory.fill(device_memory, value, size, s); });
}

Fetch DeviceClock::fetch_from(const std::uint8_t* device_memory) const {
    return [clock = *this, device_memory](std::uint64_t at, std::uint8_t* bytes, std::size_t size) {
        return clock.run([&](Stream s) {
            return clock.device_->memory.copy_out(bytes, device_memory + at, size, s);
        });
    };
}

Launch DeviceClock::copy_within(void* to, const void* from, std::size_t size) const {
    return [&memory = device_->memory, to, from, size](Stream s) {
        return memory.copy_within(to, from, size, s);
    };
}

}  // namespace dael::measure
