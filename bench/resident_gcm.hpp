// SPDX-License-Identifier: Apache-2.0
// GCM and GMAC over device memory.
#pragma once

#include <vector>

#include "bench/device_objects.hpp"
#include "bench/device_under_test.hpp"
#include "bench/subject.hpp"

namespace dael::bench {

// Two stretches of device memory of one size, and what the first of them holds.
struct ResidentMemory {
    HostBuffer host;
    DeviceMemory in, out;
};

// One message both ways, GMAC, and batches both ways under one key and a key for each message; less
// the backend.
std::vector<Work> resident_gcm_works(const Session& session, int bits);

// Seals, checks, and takes the time of that; or opens what was sealed, checks, and takes the time
// of that. `memory.in` is then again as it was. Errors: out_of_memory, unsupported; internal when
// the output is wrong.
Result<> race_resident_gcm(Session& session, DeviceUnderTest& subject, const DeviceClock& clock,
                           const ResidentMemory& memory, Work work, const TestKey& key);

}  // namespace dael::bench
