// SPDX-License-Identifier: Apache-2.0
// A device as a test subject: messages travel to device memory, keep their alignment there, and lie
// in poison, which is checked to the last byte after each call.
#pragma once

#include <memory>

#include "core/device.hpp"
#include "support/subject.hpp"

namespace dael::test {

// What computes in device memory: a device itself, or an engine on one.
class DeviceCalls {
  public:
    virtual ~DeviceCalls() = default;
    virtual const DeviceInfo& info() const = 0;
    virtual Memory& memory() = 0;
    virtual Order& order() = 0;
    virtual core::Can can(const Cipher& cipher, int key_bits) const = 0;
    // One message; and a list in either memory, waited for. `codes` are preset to ok.
    virtual Result<> one(const Cipher& cipher, const Key& key, const Message& message,
                         Stream stream) = 0;
    virtual Result<> batch(const Cipher& cipher, std::span<const Key> keys,
                           const Messages& messages, Stream stream, std::span<Code> codes) = 0;
};

std::unique_ptr<Subject> device_subject(std::unique_ptr<DeviceCalls> calls);
// Below the engine.
std::unique_ptr<Subject> device_subject(std::unique_ptr<core::Backend> backend);

}  // namespace dael::test
