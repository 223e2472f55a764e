// SPDX-License-Identifier: Apache-2.0
#include "core/device_backend.hpp"

namespace dael::core {

std::string DeviceBackend::description() const {
    const DeviceInfo& info = device_->info();
    const auto tenths = info.memory * 10 >> 30;
    return info.name + ", " + info.architecture + ", " + std::to_string(info.multiprocessors) +
           " " + processors_ + ", " + std::to_string(tenths / 10) + "." +
           std::to_string(tenths % 10) + " GiB, " + device_->layout() + " tables";
}

Result<> DeviceBackend::run(const Operation&, std::span<const Segment>) {
    return Error{Code::unsupported, name_.substr(0, name_.find(':')) +
                                        ": data in host memory goes through the pipeline"};
}

}  // namespace dael::core
