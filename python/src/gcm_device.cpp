// SPDX-License-Identifier: Apache-2.0
#include "gcm_device.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "gcm.hpp"

namespace daelpy {
namespace {

// Device memory of a slot: the list of one message, and behind it room for additional data.
constexpr std::size_t kList = 128;
constexpr std::size_t kFirstRoom = 1024;
// Launches that may be under way before a call waits for the oldest.
constexpr std::size_t kSlots = 8;

dael_status launch_along(const KeySet& keys, const dael_cipher& cipher,
                         std::span<const dael_message> messages, bool host_aad, void* stream,
                         std::uint32_t* codes) {
    dael_launch_options options{};
    options.struct_size = sizeof options;
    options.codes = codes;
    options.host_aad = host_aad ? 1 : 0;
    return dael_launch_messages(keys.engine.get(), &cipher, keys.get(), messages.data(),
                                static_cast<std::uint32_t>(messages.size()), stream, &options,
                                nullptr);
}

}  // namespace

bool go_along(std::span<const dael_message> messages, bool host_aad) {
    if (messages.empty() || messages.size() > DAEL_MAX_LAUNCHED) return false;
    std::uint64_t aad = 0;
    for (const dael_message& m : messages) {
        if (m.aad_size > kMaxAlong || m.size > kMaxAlong - m.aad_size) return false;
        aad += m.aad_size;
    }
    return !host_aad || aad <= DAEL_MAX_LAUNCHED_AAD;
}

dael_status run_along(const KeySet& keys, const dael_cipher& cipher,
                      std::span<const dael_message> messages, int number, bool host_aad,
                      void* stream, std::int32_t* codes) {
    KeptDevice* device = nullptr;
    Codes* written = nullptr;
    dael_status status = keys.engine.devices->of(number, messages[0].tag, device);
    if (status == DAEL_OK) status = device->take(written);
    if (status != DAEL_OK) return status;
    std::fill_n(*written, messages.size(), DAEL_INTERNAL);  // until the launch says otherwise
    status = launch_along(keys, cipher, messages, host_aad, stream, *written);
    // One that failed may have been launched in part: waited for like the others, but for one that
    // was refused before anything began.
    const dael_status ended =
        status == DAEL_LIMIT ? DAEL_OK : dael_stream_wait(device->get(), stream);
    if (status == DAEL_OK) status = ended;
    if (status == DAEL_OK) std::copy_n(*written, messages.size(), codes);
    // After a wait that failed nobody knows what will be written there yet.
    if (ended == DAEL_OK) device->give(written);
    return status;
}

struct DeviceGcm::ReadyBatch {
    dael_batch* batch = nullptr;
    void* on_device = nullptr;
    void* on_host = nullptr;  // page-locked: what is copied to the former
    std::size_t room = 0;     // for additional data
    void* event = nullptr;    // when the last launch is done
    bool recorded = false;
};

// The slots of a device in one direction, used one after another.
struct DeviceGcm::Ring {
    explicit Ring(dael_device* its_device) : device(its_device) {}
    dael_device* const device;
    std::array<ReadyBatch, kSlots> slots;
    std::size_t next = 0;
    std::mutex mutex;

    ~Ring() {
        for (ReadyBatch& slot : slots) (void)empty(slot);
    }
    // What could not be waited for stays as it is.
    dael_status empty(ReadyBatch& slot) {
        if (slot.recorded)
            if (const dael_status status = dael_event_wait(device, slot.event); status != DAEL_OK)
                return status;
        dael_batch_free(slot.batch);
        if (slot.event) dael_event_destroy(device, slot.event);
        if (slot.on_device) dael_device_release(device, slot.on_device);
        if (slot.on_host) {
            dael_wipe(slot.on_host, kList + slot.room);
            dael_device_release_pinned(device, slot.on_host);
        }
        slot = {};
        return DAEL_OK;
    }
    dael_status make(ReadyBatch& slot, const KeySet& keys, const dael_cipher& cipher,
                     std::size_t room) {
        const std::size_t size = kList + room;
        dael_status status = empty(slot);
        if (status != DAEL_OK) return status;
        status = dael_event_create(device, &slot.event);
        if (status == DAEL_OK) status = dael_device_allocate(device, size, &slot.on_device);
        if (status == DAEL_OK) status = dael_device_allocate_pinned(device, size, &slot.on_host);
        if (status != DAEL_OK) return status;
        slot.room = room;
        dael_prepare_options options{};
        options.struct_size = sizeof options;
        options.place = DAEL_PLACE_DEVICE;
        status = dael_prepare(keys.engine.get(), &cipher, keys.get(),
                              static_cast<const dael_message*>(slot.on_device), 1, &options,
                              &slot.batch);
        return status;
    }
    // The next slot, with that much room, once what it was last used for is done.
    dael_status take(const KeySet& keys, const dael_cipher& cipher, std::size_t room,
                     ReadyBatch*& taken) {
        ReadyBatch& slot = slots[next++ % kSlots];
        taken = &slot;
        if (!slot.batch || slot.room < room)
            return make(slot, keys, cipher, std::max(kFirstRoom, std::bit_ceil(room)));
        return slot.recorded ? dael_event_wait(device, slot.event) : DAEL_OK;
    }
};

DeviceGcm::DeviceGcm(const KeySet& keys) : keys_(keys) {}

DeviceGcm::~DeviceGcm() {
    // A child of fork() has no devices; what its parent had there is not its own to give back.
    if (keys_.engine.devices->in_child())
        for (auto& [which, ring] : rings_) (void)ring.release();
    const Released released;  // while the last launches end
    rings_.clear();
}

std::int32_t DeviceGcm::alone(const dael_cipher& cipher, const dael_message& message, int number,
                              bool host_aad, void* stream) {
    std::int32_t code = DAEL_OK;
    const dael_status status =
        cipher.direction == DAEL_DECRYPT
            ? run_along(keys_, cipher, {&message, 1}, number, host_aad, stream, &code)
            : launch_along(keys_, cipher, {&message, 1}, host_aad, stream, nullptr);
    return status == DAEL_OK ? code : -status;
}

std::int32_t DeviceGcm::in_a_slot(const dael_cipher& cipher, const dael_message& message,
                                  int number, bool copy_aad, void* stream) {
    KeptDevice* device = nullptr;
    const dael_status found = keys_.engine.devices->of(number, message.tag, device);
    if (found != DAEL_OK) return -found;
    Ring* ring = nullptr;
    {
        const std::lock_guard hold(mutex_);
        auto& kept = rings_[{device, cipher.direction}];
        if (!kept) kept = std::make_unique<Ring>(device->get());
        ring = kept.get();
    }
    const std::lock_guard hold(ring->mutex);
    ReadyBatch* slot = nullptr;
    const dael_status taken = ring->take(keys_, cipher, copy_aad ? message.aad_size : 0, slot);
    if (taken != DAEL_OK) return -taken;
    return launch(*slot, message, device->get(), copy_aad, stream,
                  cipher.direction == DAEL_DECRYPT);
}

std::int32_t DeviceGcm::launch(ReadyBatch& slot, const dael_message& message, dael_device* device,
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
    if (status != DAEL_OK) {
        // Some of it may be under way, without an event that says when it is done: the stream does.
        // If not, what the slot has is used by nobody again, and never freed.
        if (dael_stream_wait(device, stream) != DAEL_OK) slot = {};
        slot.recorded = false;
        return -status;
    }
    slot.recorded = true;
    if (!wait) return DAEL_OK;
    std::int32_t code = DAEL_INTERNAL;
    status = dael_results(slot.batch, stream, &code, 1);
    return status == DAEL_OK ? code : -status;
}

void DeviceGcm::run(dael_direction direction, const dael_message& message, int number,
                    bool copy_aad, void* stream) {
    const dael_cipher cipher{DAEL_GCM, static_cast<std::uint8_t>(direction), kTag, 0, 0};
    const bool is_alone = go_along({&message, 1}, copy_aad);
    // What is launched alone to be encrypted has nothing here that a child could wait for.
    if (!(is_alone && direction == DAEL_ENCRYPT) && keys_.engine.devices->in_child())
        raise_forked();
    std::int32_t code = DAEL_INTERNAL;
    {
        const Released released;
        if (is_alone) {
            code = alone(cipher, message, number, copy_aad, stream);
        } else {
            // A list in device memory is checked when it is read there, where an encryption's
            // caller does not look. This call checks the same on the host, and then says that it
            // takes no gcm.
            dael_message checked = message;
            if (copy_aad) checked.aad_size = 0;
            const dael_status status = dael_run_device(
                keys_.engine.get(), &cipher, keys_.keys[0].get(), &checked, stream, nullptr);
            code = status == DAEL_UNSUPPORTED ? in_a_slot(cipher, message, number, copy_aad, stream)
                                              : -status;
        }
    }
    if (code < 0) raise(static_cast<dael_status>(-code));
    if (code != DAEL_OK) raise_code(code);
}

}  // namespace daelpy
