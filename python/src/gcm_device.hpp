// SPDX-License-Identifier: Apache-2.0
// GCM of one message in device memory. The library does GCM there in batches that are made ready
// once: here a few of them are kept, each with a list of one message in device memory, which a call
// fills in in the order of its stream. So a call allocates nothing.
#pragma once

#include <unistd.h>

#include <map>
#include <mutex>

#include "engine.hpp"

namespace daelpy {

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
    struct Slot;
    struct Ring;
    Ring& ring(int number, const void* memory, dael_direction direction);
    std::int32_t launch(Slot& slot, dael_device* device, const dael_message& message, bool copy_aad,
                        void* stream, bool wait);

    KeySet keys_;
    pid_t process_;
    std::mutex mutex_;
    std::map<std::pair<int, int>, std::unique_ptr<Ring>> rings_;
};

}  // namespace daelpy
