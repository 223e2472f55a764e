// SPDX-License-Identifier: Apache-2.0
#include "bench/sides.hpp"

#include <algorithm>

namespace dael::bench {

using measure::DeviceBuffer;
using measure::DeviceClock;
using measure::DeviceStream;
using measure::HostBuffer;
using measure::MemoryKind;

Result<std::uint64_t> Sides::room(const Suite& suite, const Devices& all) {
    constexpr std::uint64_t kLeast = 64 << 10;  // of which each has blocks to do
    std::uint64_t room = measure::fitting(suite.session.report, suite.workload.beside, 1);
    for (const DeviceUnderTest& subject : all.devices) {
        DAEL_LET(free, subject.device.memory.free_memory());
        room = std::min(room, free / 4);
    }
    return std::max(room, kLeast);
}

Result<Sides> Sides::make(const Suite& suite, const Devices& all, std::uint64_t size,
                          std::uint64_t seed) {
    Sides sides;
    sides.sampling = suite.workload.sampling;
    DAEL_LET(host, HostBuffer::allocate(size));
    sides.host = std::move(host);
    measure::Team team(measure::thread_count(suite.options.threads));
    measure::fill_random(team, sides.host.data(), size, seed);
    for (const DeviceUnderTest& subject : all.devices) {
        DAEL_LET(clock, DeviceClock::create(subject.device));
        DAEL_LET(stream, DeviceStream::create(subject.device));
        Side side{subject, clock, stream, {}, {}, {}};
        for (DeviceBuffer* buffer : {&side.in, &side.sealed, &side.out}) {
            DAEL_LET(memory, DeviceBuffer::allocate(subject.device, MemoryKind::device, size));
            *buffer = memory;
        }
        DAEL_TRY(clock.copy_in(side.in.data(), sides.host.data(), size));
        sides.each.push_back(std::move(side));
    }
    return sides;
}

std::string Sides::names() const {
    std::string names;
    for (const Side& side : each) names += (names.empty() ? "" : "+") + side.subject.name;
    return names;
}

std::size_t Sides::enter_copies(measure::Heat& heat, std::uint64_t bytes) const {
    return heat.enter("copy within device memory, on all at once",
                      measure::wall_clock(
                          [this, part = bytes / each.size()]() -> Result<> {
                              for (const Side& side : each)
                                  DAEL_TRY(side.subject.device.memory.copy_within(
                                      side.out.data(), side.in.data(), part, side.stream.get()));
                              for (const Side& side : each)
                                  DAEL_TRY(side.subject.device.order.wait(side.stream.get()));
                              return {};
                          },
                          sampling));
}

}  // namespace dael::bench
