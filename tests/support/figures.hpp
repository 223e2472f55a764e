// SPDX-License-Identifier: Apache-2.0
// A calibration for engines that choose between the host (openssl) and the device made of threads.
#pragma once

#include <daelstrom/message.hpp>
#include <daelstrom/plan.hpp>

namespace dael::test {

// One rate for the host and one for the device's bus, GB/s, in every mode; by those that stand here
// any job of a MiB is the device's.
struct Rates {
    double host = .01, bus = 50, start_seconds = .001, setup_seconds = 1e-9;
};
inline Calibration figures(const Rates& rates = {}) {
    Calibration calibration{"a machine", "2025-01-01T00:00:00Z", {}, {}};
    DeviceRates device{
        "threads:0", "threads, ", rates.start_seconds, rates.setup_seconds,   rates.bus,
        rates.bus,   rates.bus,   rates.bus,           std::size_t{64} << 10, {}};
    for (const Mode mode : kModes)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt})
            for (const int bits : {128, 192, 256}) {
                calibration.hosts.push_back({"openssl", mode, direction, bits, rates.host,
                                             rates.host, rates.host, rates.host});
                device.kernels.push_back({mode, direction, bits, 100});
            }
    calibration.devices.push_back(device);
    return calibration;
}

}  // namespace dael::test
