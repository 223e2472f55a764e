// SPDX-License-Identifier: Apache-2.0
// The suite "devices": all devices at one job, and the host's threads beside them, held against
// each of them alone. bench/README.md says what is measured.
#pragma once

#include <string>
#include <vector>

#include "bench/suite.hpp"
#include "measure/device.hpp"

namespace dael::bench {

struct Devices {
    std::vector<DeviceUnderTest> devices;
    std::vector<HostEngine> alone;  // an engine for each device, then the host's, where it has part
    std::vector<HostEngine> sets;   // of two and more of them: "cuda:0+cuda:1", "cuda:0+cpu"

    // Every GPU and the best backend of the host, or those that the options name. What is absent is
    // skipped with a line. Errors: those of opening that are not absence.
    static Result<Devices> open(const Suite& suite);
    // One of them by itself, or a set, by its name; null: there is none.
    const HostEngine* find(const std::string& name) const;
};

// "cuda:0+cpu": {"cuda:0", "cpu"}.
std::vector<std::string> members_of(const std::string& set);
// How much each member of the set did, per cent.
std::vector<double> percents(const std::string& set, const Ran& ran);
// The sample of a contestant who does not exist: as fast as all of these would be together if
// nobody was in another's way. Each takes a sample, one after the other.
measure::Sampler added(std::vector<measure::Sampler> each);
// What the suite measures: ciphers, and their data `bytes` in all, in `parts` at least.
measure::Axis devices_work(const Options& options, const std::vector<std::uint64_t>& bytes,
                           std::uint64_t parts = 1);

// Page-locked host memory that devices copy from and to, or plain memory where there is none; and
// of each device what copies need.
struct SharedMemory {
    struct Lane {
        DeviceUnderTest subject;
        measure::DeviceStream inward, outward;
        measure::DeviceBuffer in, out;
    };
    measure::DeviceBuffer pinned_in, pinned_out;
    measure::HostBuffer plain_in, plain_out;
    std::vector<std::uint8_t> tags;
    std::vector<Lane> lanes;
    measure::Team team;

    explicit SharedMemory(int threads) : team(threads) {}
    // `size` random bytes, room for as many, and for the tags of so many messages.
    static Result<std::shared_ptr<SharedMemory>> make(const Devices& all, std::uint64_t size,
                                                      std::uint64_t messages, int threads);

    const std::uint8_t* in() const { return pinned_in.size() ? pinned_in.data() : plain_in.data(); }
    std::uint8_t* out() const { return pinned_out.size() ? pinned_out.data() : plain_out.data(); }
    // Both ways through the lanes of these members, each its part, and the last `by_host` bytes by
    // memcpy of the host's threads, all at the same time.
    Result<> copy(const std::vector<std::string>& members, std::uint64_t size,
                  std::uint64_t by_host);
    // Does the work once over poison, from the first nonces on, and looks at what came of it.
    Result<> check(const Work& work, const std::function<Result<>()>& once);
};

// Host memory through devices and on the host's threads: each alone, and together.
Result<Benchmark> together(const Suite& suite, const Devices& all);
// Data in the memory of each device, which works on its own part, against one device with all.
Result<Benchmark> side_by_side(const Suite& suite, const Devices& all);
// One message that lies in parts in the memory of each, with one tag.
Result<Benchmark> over_devices(const Suite& suite, const Devices& all);

}  // namespace dael::bench
