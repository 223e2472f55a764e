// SPDX-License-Identifier: Apache-2.0
// The backend around a device with memory of its own: all of its work goes through the device, and
// data in host memory is the pipeline's to bring there.
#pragma once

#include <memory>
#include <string>

#include "core/device.hpp"

namespace dael::core {

class DeviceBackend final : public Backend {
  public:
    // `name`: "cuda:0". `processors`: what the maker calls them, "SMs".
    DeviceBackend(std::string name, std::string processors, std::unique_ptr<Device> device)
        : name_(std::move(name)), processors_(std::move(processors)), device_(std::move(device)) {}

    std::string_view name() const override { return name_; }
    std::string description() const override;
    bool supports(Mode mode, Direction direction, std::size_t segments) const override {
        return parallel_within_message(mode, direction) || segments > 1;
    }
    Result<> run(const Operation& operation, std::span<const Segment> segments) override;
    // A GCM message in pieces; whole ones in host memory go through the pipeline.
    Result<std::unique_ptr<PreparedKeys>> prepare_keys(std::span<const Key> keys) override {
        return device_->prepare_keys(keys);
    }
    Result<std::unique_ptr<GcmStream>> gcm_stream(Direction direction, const PreparedKeys& keys,
                                                  std::uint32_t key,
                                                  std::span<const std::uint8_t> iv) override {
        return device_->gcm_stream(direction, keys, key, iv);
    }
    Device* device() override { return device_.get(); }

  private:
    const std::string name_, processors_;
    const std::unique_ptr<Device> device_;
};

}  // namespace dael::core
