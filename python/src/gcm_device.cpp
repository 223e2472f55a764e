// SPDX-License-Identifier: Apache-2.0
#include "gcm_device.hpp"

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "gcm.hpp"

namespace daelpy {
namespace {

// Device memory of a slot: the list of one message, and behind it room for additional data.
constexpr std::size_t kList = 128;
constexpr std::size_t kFirstRoom = 1024;
// Launches that may be under way before a call waits for the oldest.
constexpr std::size_t kSlots = 8;

}  // namespace

struct DeviceGcm::Slot {
    dael_batch* batch = nullptr;
    void* on_device = nullptr;
    void* on_host = nullptr;  // page-locked: what is copied to the former
    std::size_t room = 0;     // for additional data
    void* event = nullptr;    // when the last launch is done
    bool recorded = false;
};

// The slots of a device in one direction, used one after another.
struct DeviceGcm::Ring {
    Device device;
    dael_direction direction{};
    std::array<Slot, kSlots> slots;
    std::size_t next = 0;
    std::mutex mutex;

    ~Ring() {
        for (Slot& slot : slots) empty(slot);
    }
    void empty(Slot& slot) {
        if (slot.recorded) (void)dael_event_wait(device.get(), slot.event);
        dael_batch_free(slot.batch);
        if (slot.event) dael_event_destroy(device.get(), slot.event);
        if (slot.on_device) dael_device_release(device.get(), slot.on_device);
        if (slot.on_host) dael_device_release_pinned(device.get(), slot.on_host);
        slot = {};
    }
    dael_status make(Slot& slot, const KeySet& keys, std::size_t room) {
        empty(slot);
        dael_device* const d = device.get();
        const std::size_t size = kList + room;
        dael_status status = dael_event_create(d, &slot.event);
        if (status == DAEL_OK) status = dael_device_allocate(d, size, &slot.on_device);
        if (status == DAEL_OK) status = dael_device_allocate_pinned(d, size, &slot.on_host);
        if (status != DAEL_OK) return status;
        const dael_cipher cipher{DAEL_GCM, static_cast<std::uint8_t>(direction), kTag, 0, 0};
        dael_prepare_options options{};
        options.struct_size = sizeof options;
        options.place = DAEL_PLACE_DEVICE;
        status = dael_prepare(keys.engine.get(), &cipher, keys.get(),
                              static_cast<const dael_message*>(slot.on_device), 1, &options,
                              &slot.batch);
        slot.room = room;
        return status;
    }
    // The next slot, with that much room, once what it was last used for is done.
    dael_status take(const KeySet& keys, std::size_t room, Slot*& taken) {
        Slot& slot = slots[next++ % kSlots];
        taken = &slot;
        if (!slot.batch || slot.room < room)
            return make(slot, keys, std::max(kFirstRoom, std::bit_ceil(room)));
        return slot.recorded ? dael_event_wait(device.get(), slot.event) : DAEL_OK;
    }
};

DeviceGcm::DeviceGcm(const KeySet& keys) : keys_(keys), process_(getpid()) {}

DeviceGcm::~DeviceGcm() {
    // A child of fork() has no devices; what its parent had there is not its own to give back.
    if (getpid() != process_)
        for (auto& [which, ring] : rings_) (void)ring.release();
}

DeviceGcm::Ring& DeviceGcm::ring(int number, const void* memory, dael_direction direction) {
    Device found;
    if (number < 0) {
        found = Device::of(keys_.engine, memory);
        const std::string name = dael_device_describe(found.get())->backend;
        const auto colon = name.find(':');
        number = colon == std::string::npos ? 0 : std::atoi(name.c_str() + colon + 1);
    }
    auto& ring = rings_[{number, direction}];
    if (!ring) {
        auto made = std::make_unique<Ring>();
        made->device = found.handle ? found : Device::of(keys_.engine, memory);
        made->direction = direction;
        ring = std::move(made);
    }
    return *ring;
}

std::int32_t DeviceGcm::launch(Slot& slot, dael_device* device, const dael_message& message,
                               bool copy_aad, void* stream, bool wait) {
    auto* const list = static_cast<std::uint8_t*>(slot.on_host);
    dael_message placed = message;
    std::size_t size = sizeof placed;
    if (copy_aad) {
        std::memcpy(list + kList, message.aad, message.aad_size);
        placed.aad = static_cast<const std::uint8_t*>(slot.on_device) + kList;
        size = kList + message.aad_size;
    }
    std::memcpy(list, &placed, sizeof placed);
    dael_status status = dael_device_copy_in(device, slot.on_device, list, size, stream);
    if (status == DAEL_OK) status = dael_launch(keys_.engine.get(), slot.batch, stream, nullptr);
    if (status == DAEL_OK) status = dael_event_record(device, slot.event, stream);
    slot.recorded = status == DAEL_OK;
    if (status != DAEL_OK) return -status;
    if (!wait) return DAEL_OK;
    std::int32_t code = DAEL_INTERNAL;
    status = dael_results(slot.batch, stream, &code, 1);
    return status == DAEL_OK ? code : -status;
}

void DeviceGcm::run(dael_direction direction, const dael_message& message, int number,
                    bool copy_aad, void* stream) {
    if (getpid() != process_)
        raise("DeviceError",
              "this key was made ready before fork(); a child process cannot use its parent's "
              "devices");
    std::int32_t code = DAEL_INTERNAL;  // less than 0: a status of the call
    const bool wait = direction == DAEL_DECRYPT;
    Ring* ring = nullptr;
    {
        const Released released;
        const std::lock_guard hold(mutex_);
        const nb::gil_scoped_acquire back;  // makes handles, and may throw
        ring = &this->ring(number, message.in ? message.in : message.tag, direction);
    }
    {
        const Released released;
        const std::lock_guard hold(ring->mutex);
        Slot* slot = nullptr;
        const dael_status taken = ring->take(keys_, copy_aad ? message.aad_size : 0, slot);
        code = taken != DAEL_OK
                   ? -taken
                   : launch(*slot, ring->device.get(), message, copy_aad, stream, wait);
    }
    if (code < 0) raise(static_cast<dael_status>(-code));
    if (code != DAEL_OK) raise_code(code);
}

}  // namespace daelpy
