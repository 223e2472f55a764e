// SPDX-License-Identifier: Apache-2.0
// A device's memory and its order of work, for C.
#include <daelstrom/device.hpp>

#include <new>

#include "capi/shared.hpp"

// The strings of `info` are those of `access`, which therefore stays where it is.
struct dael_device {
    dael_device(dael::Engine its_engine, dael::DeviceAccess its_access)
        : engine(std::move(its_engine)),
          access(std::move(its_access)),
          info{.struct_size = sizeof(dael_device_info),
               .backend = access.backend.c_str(),
               .name = access.info.name.c_str(),
               .architecture = access.info.architecture.c_str(),
               .driver = access.info.driver.c_str(),
               .layout = access.info.layout.c_str(),
               .memory = access.info.memory,
               .multiprocessors = access.info.multiprocessors,
               .shared_memory = access.info.shared_memory,
               .reads_lists = access.info.reads_lists} {}
    dael_device(const dael_device&) = delete;
    dael_device& operator=(const dael_device&) = delete;

    const dael::Engine engine;  // whose device it is
    const dael::DeviceAccess access;
    const dael_device_info info;
};

using dael::Event;
using dael::Result;
using dael::Stream;
using namespace dael::capi;

namespace {

// Hands out the handle in a Stream or an Event, or memory.
template <class Make>
dael_status hand_out_native(dael_device* device, void** out, const char* name, Make&& make) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{out, name}}));
        *out = nullptr;
        DAEL_TRY(given({{device, "device"}}));
        DAEL_LET(made, make());
        if constexpr (requires { made.handle; })
            *out = made.handle;
        else
            *out = made;
        return {};
    });
}

// Runs `work` with a device that is there, and pointers that are, where there is anything at all.
template <class Work>
dael_status moving(dael_device* device, std::initializer_list<Pointer> ends, std::size_t size,
                   Work&& work) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{device, "device"}}));
        if (size == 0) return {};
        DAEL_TRY(given(ends));
        return work(device->access.memory);
    });
}
template <class Work>
dael_status ordering(dael_device* device, Work&& work) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{device, "device"}}));
        return work(device->access.order);
    });
}

// A cancelled thread gives back first, as where handles are freed.
template <class Work>
void giving_back(dael_device* device, void* what, Work&& work) noexcept {
    if (!device || !what) return;
    const dael::core::Uncancelled whole;
    work();
}

}  // namespace

extern "C" {

dael_status dael_device_of(dael_engine* engine, const void* memory, dael_device** device) {
    return hand_out(device, "device", [&]() -> Result<dael_device*> {
        DAEL_TRY(given({{engine, "engine"}}));
        DAEL_LET(access, dael::device(engine->engine, memory));
        return new dael_device(dael::Engine(engine->engine.state()), std::move(access));
    });
}
void dael_device_free(dael_device* device) {
    release(device);
}
const dael_device_info* dael_device_describe(const dael_device* device) {
    return device ? &device->info : nullptr;
}

dael_status dael_device_allocate(dael_device* device, size_t size, void** memory) {
    return hand_out_native(device, memory, "memory",
                           [&] { return device->access.memory.allocate(size); });
}
void dael_device_release(dael_device* device, void* memory) {
    giving_back(device, memory, [&] { device->access.memory.release(memory); });
}
dael_status dael_device_allocate_pinned(dael_device* device, size_t size, void** memory) {
    return hand_out_native(device, memory, "memory",
                           [&] { return device->access.memory.allocate_pinned(size); });
}
void dael_device_release_pinned(dael_device* device, void* memory) {
    giving_back(device, memory, [&] { device->access.memory.release_pinned(memory); });
}
dael_status dael_device_free_memory(dael_device* device, uint64_t* bytes) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{device, "device"}, {bytes, "bytes"}}));
        DAEL_LET(free, device->access.memory.free_memory());
        *bytes = free;
        return {};
    });
}

int dael_device_is_pinned(dael_device* device, const void* host_memory, size_t size) {
    bool pinned = false;
    const dael_status asked = call([&]() -> Result<> {
        pinned = device && host_memory && device->access.memory.is_pinned(host_memory, size);
        return {};
    });
    return asked == DAEL_OK && pinned;
}
int dael_device_owns(dael_device* device, const void* device_memory) {
    bool owns = false;
    const dael_status asked = call([&]() -> Result<> {
        owns = device && device_memory && device->access.memory.owns(device_memory);
        return {};
    });
    return asked == DAEL_OK && owns;
}

dael_status dael_device_copy_in(dael_device* device, void* device_memory, const void* host_memory,
                                size_t size, void* stream) {
    return moving(device, {{device_memory, "device_memory"}, {host_memory, "host_memory"}}, size,
                  [&](dael::Memory& memory) {
                      return memory.copy_in(device_memory, host_memory, size, Stream{stream});
                  });
}
dael_status dael_device_copy_out(dael_device* device, void* host_memory, const void* device_memory,
                                 size_t size, void* stream) {
    return moving(device, {{device_memory, "device_memory"}, {host_memory, "host_memory"}}, size,
                  [&](dael::Memory& memory) {
                      return memory.copy_out(host_memory, device_memory, size, Stream{stream});
                  });
}
dael_status dael_device_copy_within(dael_device* device, void* to, const void* from, size_t size,
                                    void* stream) {
    return moving(device, {{to, "to"}, {from, "from"}}, size, [&](dael::Memory& memory) {
        return memory.copy_within(to, from, size, Stream{stream});
    });
}
dael_status dael_device_fill(dael_device* device, void* device_memory, uint8_t value, size_t size,
                             void* stream) {
    return moving(device, {{device_memory, "device_memory"}}, size, [&](dael::Memory& memory) {
        return memory.fill(device_memory, value, size, Stream{stream});
    });
}

dael_status dael_stream_create(dael_device* device, int timed, void** stream) {
    return hand_out_native(device, stream, "stream", [&] {
        dael::Order& order = device->access.order;
        return timed ? order.create_timed_stream() : order.create_stream();
    });
}
void dael_stream_destroy(dael_device* device, void* stream) {
    giving_back(device, stream, [&] { device->access.order.destroy_stream(Stream{stream}); });
}
dael_status dael_stream_wait(dael_device* device, void* stream) {
    return ordering(device, [&](dael::Order& order) { return order.wait(Stream{stream}); });
}

dael_status dael_event_create(dael_device* device, void** event) {
    return hand_out_native(device, event, "event",
                           [&] { return device->access.order.create_event(); });
}
void dael_event_destroy(dael_device* device, void* event) {
    giving_back(device, event, [&] { device->access.order.destroy_event(Event{event}); });
}
dael_status dael_event_record(dael_device* device, void* event, void* stream) {
    return ordering(device, [&](dael::Order& order) -> Result<> {
        DAEL_TRY(given({{event, "event"}}));
        return order.record(Event{event}, Stream{stream});
    });
}
dael_status dael_stream_wait_event(dael_device* device, void* stream, void* event) {
    return ordering(device, [&](dael::Order& order) -> Result<> {
        DAEL_TRY(given({{event, "event"}}));
        return order.wait(Stream{stream}, Event{event});
    });
}
dael_status dael_event_wait(dael_device* device, void* event) {
    return ordering(device, [&](dael::Order& order) -> Result<> {
        DAEL_TRY(given({{event, "event"}}));
        return order.wait(Event{event});
    });
}
dael_status dael_event_elapsed_ms(dael_device* device, void* from, void* to, float* milliseconds) {
    return ordering(device, [&](dael::Order& order) -> Result<> {
        DAEL_TRY(given({{from, "from"}, {to, "to"}, {milliseconds, "milliseconds"}}));
        DAEL_LET(elapsed, order.elapsed_ms(Event{from}, Event{to}));
        *milliseconds = elapsed;
        return {};
    });
}

}  // extern "C"
