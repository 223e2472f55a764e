// SPDX-License-Identifier: Apache-2.0
// Devices that each have all of some data in their memory, for those who have them work side by
// side.
#pragma once

#include <string>
#include <vector>

#include "bench/devices.hpp"
#include "measure/memory.hpp"

namespace dael::bench {

struct Side {
    DeviceUnderTest subject;
    measure::DeviceClock clock;
    measure::DeviceStream stream;
    // GCM is opened from what was sealed there.
    measure::DeviceBuffer in, sealed, out;
};

struct Sides {
    measure::Sampling sampling;
    measure::HostBuffer host;  // what `in` of each side holds
    std::vector<Side> each;

    // Bytes that every device has room for, of what the suite has for it.
    static Result<std::uint64_t> room(const Suite& suite, const Devices& all);
    // `size` random bytes, other ones for another `seed`.
    static Result<Sides> make(const Suite& suite, const Devices& all, std::uint64_t size,
                              std::uint64_t seed);
    std::string names() const;  // "cuda:0+cuda:1"
    // Copies within the memory of all at once, of `bytes` an equal part each.
    std::size_t enter_copies(measure::Heat& heat, std::uint64_t bytes) const;
};

}  // namespace dael::bench
