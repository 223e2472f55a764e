// SPDX-License-Identifier: Apache-2.0
// GCM of one message in device memory. Short ones travel with their launch. For the others the
// library has batches that are made ready once: here a few of them are kept, each with a list of
// one message in device memory, which a call fills in in the order of its stream. So a call
// allocates nothing.
#pragma once

#include <map>
#include <mutex>
#include <span>

#include "engine.hpp"

namespace daelpy {

// Most bytes of a message, data and additional data together, that goes with its launch: up to here
// that is one kernel, as dael_launch_messages says.
inline constexpr std::uint64_t kMaxAlong = std::uint64_t{64} << 10;

// Whether these messages in device memory go with one launch. `host_aad`: their additional data lie
// in the host's memory.
bool go_along(std::span<const dael_message> messages, bool host_aad);
// Such a launch, and what became of each, when it is done. `number`: of the device, negative where
// that is not known. Other threads of Python may run meanwhile.
dael_status run_along(const KeySet& keys, const dael_cipher& cipher,
                      std::span<const dael_message> messages, int number, bool host_aad,
                      void* stream, std::int32_t* codes);

class DeviceGcm {
  public:
    explicit DeviceGcm(const KeySet& keys);
    ~DeviceGcm();

    // `number`: the device's, negative where that is not known. `copy_aad`: the additional data lie
    // in the host's memory. Encryption returns once it is launched; decryption when it is done, and
    // raises InvalidTag.
    void run(dael_direction direction, const dael_message& message, int number, bool copy_aad,
             void* stream);

  private:
    struct ReadyBatch;
    struct Ring;
    // All of these: less than 0 is a status of the call.
    std::int32_t alone(const dael_cipher& cipher, const dael_message& message, int number,
                       bool host_aad, void* stream);
    std::int32_t in_a_slot(const dael_cipher& cipher, const dael_message& message, int number,
                           bool copy_aad, void* stream);
    std::int32_t launch(ReadyBatch& slot, const dael_message& message, dael_device* device,
                        bool copy_aad, void* stream, bool wait);

    const KeySet keys_;
    std::mutex mutex_;
    std::map<std::pair<const KeptDevice*, int>, std::unique_ptr<Ring>> rings_;
};

}  // namespace daelpy
