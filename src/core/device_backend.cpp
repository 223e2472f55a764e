// SPDX-License-Identifier: Apache-2.0
#include "core/device_backend.hpp"

namespace dael::core {

DeviceBackend::DeviceBackend(std::string name, std::string_view processors,
                             std::unique_ptr<Device> device)
    : profile_{std::move(name), description_of(device->info(), processors)},
      device_(std::move(device)) {}

Result<> DeviceBackend::run(const Cipher&, const KeyList&, std::span<const Message>,
                            std::span<Code>) {
    return Error{Code::unsupported,
                 profile_.name + ": data in host memory goes through the pipeline"};
}

Result<> Device::run(const Cipher& cipher, const KeyList&, std::span<const Message>,
                     const LaunchOptions&, Stream) {
    return Error{Code::unsupported, info().name + ": messages of " +
                                        std::string(name(cipher.mode)) +
                                        " take a batch there; prepare() and launch() it"};
}

std::string description_of(const DeviceInfo& info, std::string_view processors) {
    const auto tenths = info.memory * 10 >> 30;
    return info.name + ", " + info.architecture + ", " + std::to_string(info.multiprocessors) +
           " " + std::string(processors) + ", " + std::to_string(tenths / 10) + "." +
           std::to_string(tenths % 10) + " GiB, " + info.layout + " tables";
}

}  // namespace dael::core
