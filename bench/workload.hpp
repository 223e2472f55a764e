// SPDX-License-Identifier: Apache-2.0
// What the user asked for, and the sizes that follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <daelstrom/modes.hpp>

#include "bench/measure.hpp"

namespace dael::bench {

struct Options {
    std::vector<std::string> backends{};       // empty: all that the machine has
    bool basic = true;                         // whether modes of SP 800-38A are measured,
    std::vector<Mode> modes{};                 // these; empty: all
    bool xts = true, gcm = true, gmac = true;  // and whether these are
    std::vector<int> bits{};                   // empty: as the suite has them
    std::vector<std::uint64_t> sizes{};        // empty: as the suite has them
    std::string suite = "quick";               // "quick", "full", "h200", "generations"
    int repeats = 15;
    int threads = 0;          // for "all cores"; 0: all
    std::string isa{};        // empty: every level that the machine has (quick: the best)
    std::uint64_t scale = 1;  // divides what is larger than 64 KiB, for tests
};

// `count` messages of `size` bytes.
struct BatchShape {
    std::uint64_t size, count;
};

struct Workload {
    std::vector<int> bits;
    bool every_isa = false;
    std::vector<std::uint64_t> one_core;   // message sizes on one core
    std::vector<std::uint64_t> all_cores;  // on all cores, every mode
    std::vector<std::uint64_t> sweep;      // CTR, wherever the data is, from small to large
    std::uint64_t device = 0;              // the message in device memory that the bars are set for
    std::vector<std::uint64_t> device_sweep;  // CTR and ECB in device memory, from small to large
    std::vector<std::uint64_t> sectors{512, 4096};  // of XTS, in device memory and on all cores
    std::uint64_t through = 0;                      // host memory through the device, every mode
    std::vector<BatchShape> parallel;    // batches for modes that are parallel within a message
    std::vector<BatchShape> sequential;  // batches for those that are not
    BatchShape host_sequential{};        // the same on all cores of the host
    std::vector<BatchShape> gcm_device;  // batches of GCM in device memory, under one key and many
    std::vector<BatchShape> gcm_cache;   // and on one core
    BatchShape gcm_host{};               // and on all cores
    Sampling sampling;

    std::uint64_t largest_host() const;     // bytes of the largest work in host memory
    std::uint64_t largest_device() const;   // and in device memory
    std::uint64_t largest_through() const;  // and through a device
};

Workload make_workload(const Options& options);

// The ways to use a mode that differ: ECB, CBC and CFB both ways, OFB and CTR once.
struct Way {
    Mode mode;
    Direction direction;
};
std::vector<Way> ways(const Options& options);
bool wants_backend(const Options& options, const std::string& name);

}  // namespace dael::bench
