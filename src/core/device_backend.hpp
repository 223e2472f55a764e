// SPDX-License-Identifier: Apache-2.0
// The backend around a device with memory of its own: all of its work goes through the device, and
// data in host memory is the pipeline's to bring there. What is left to each kind of device: can(),
// tables() and begin().
#pragma once

#include <memory>
#include <string>

#include "core/device.hpp"

namespace dael::core {

class DeviceBackend : public Backend {
  public:
    const Profile& profile() const override { return profile_; }
    Result<> run(const Cipher& cipher, const KeyList& keys, std::span<const Message> messages,
                 std::span<Code> codes) final;
    Device* device() final { return device_.get(); }

  protected:
    // `name`: "cuda:0". `processors`: what the maker calls them, "SMs".
    DeviceBackend(std::string name, std::string_view processors, std::unique_ptr<Device> device);

    Profile profile_;
    const std::unique_ptr<Device> device_;
};

// "NVIDIA H200, sm_90, 132 SMs, 140.4 GiB, 128 KiB tables".
std::string description_of(const DeviceInfo& info, std::string_view processors);

}  // namespace dael::core
