// SPDX-License-Identifier: Apache-2.0
// What the user asked for, and the sizes that follow from it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/work.hpp"
#include "measure/turns.hpp"

namespace dael::bench {

struct Options {
    std::vector<std::string> backends{};  // empty: all that the machine has
    std::vector<std::string> modes{};     // "ctr", "xts", "gmac", ...; empty: all
    std::vector<int> bits{};              // empty: as the suite has them
    std::vector<std::uint64_t> sizes{};   // empty: as the suite has them
    std::string suite = "quick";          // "full", "h200", "packets", "devices"
    int repeats = 15;
    int threads = 0;          // for "all cores"; 0: all
    std::string form{};       // of cpu; empty: every one that the machine has (quick: the best)
    std::uint64_t scale = 1;  // divides what is larger than 64 KiB, for tests
};

// `count` messages of `size` bytes.
struct Shape {
    std::uint64_t size, count;
    friend bool operator==(const Shape&, const Shape&) = default;
};

// The same of one mode, for those that authenticate besides GCM. `keys`: 1, or as many as messages.
struct ModeShape {
    Mode mode;
    Shape shape;
    std::uint64_t keys = 1;
    friend bool operator==(const ModeShape&, const ModeShape&) = default;
};

struct Workload {
    std::vector<int> bits;
    bool every_form = false;
    bool every_placement = false;          // in device memory
    std::vector<std::uint64_t> one_core;   // message sizes on one core
    std::vector<std::uint64_t> all_cores;  // on all cores, every mode
    std::vector<std::uint64_t> sweep;      // CTR, wherever the data is, from small to large
    std::uint64_t device = 0;              // the message in device memory that the bars are set for
    std::vector<std::uint64_t> device_sweep;  // CTR and ECB in device memory, from small to large
    std::uint64_t through = 0;                // host memory through the device, every mode
    std::vector<Shape> parallel;    // batches for modes that are parallel within a message
    std::vector<Shape> sequential;  // batches for those that are not
    Shape host_sequential{};        // the same on all cores of the host
    std::vector<Shape> gcm_device;  // batches of GCM in device memory, under one key and many
    std::vector<Shape> gcm_many;    // those under one key alone
    std::vector<Shape> gcm_listed;  // those whose list lies in device memory as well
    std::uint64_t gcm_imix = 0;     // messages of mixed sizes, under one key and 64
    std::vector<ModeShape> tagged_device;  // batches of AEGIS, XAES-256-GCM, GCM-SIV, both ways
    std::vector<std::uint64_t> key_sets;   // how many keys are made ready at once
    std::uint64_t sealed_file = 0;         // plaintext of one that is opened into device memory
    std::vector<std::uint64_t> launched;   // CTR in device memory: what a launch costs
    std::vector<Shape> gcm_cache;          // and on one core
    Shape gcm_host{};                      // and on all cores
    std::vector<Shape> gcm_short;          // short ones on one core, two, four and so on
    std::vector<std::uint64_t> devices;    // host memory through several at once
    std::uint64_t beside = 0;              // data in the memory of several
    measure::Sampling sampling;

    std::uint64_t largest_host() const;     // bytes of the largest work in host memory
    std::uint64_t largest_device() const;   // and in device memory
    std::uint64_t largest_through() const;  // and through a device
};

Workload make_workload(const Options& options);

// The ways to use AES that differ and were asked for: ECB, CBC, CFB, XTS by sector size and GCM
// and what else authenticates both ways, OFB, CTR and GMAC once.
measure::Axis ways(const Options& options);
// Their modes, each once: what Options::modes may name.
std::vector<std::string> mode_names();
// A point of an axis. `keys` is for modes that authenticate.
Point shape(std::uint64_t size, std::uint64_t messages = 1, std::uint64_t keys = 0);
// Whether this way has rows at all for keys of this size: XTS has none of 192 bits, and GCM, with
// which hardly anybody uses them, only where they were asked for; AEGIS, XAES-256-GCM and GCM-SIV
// have the sizes that are theirs.
bool has_bits(const Options& options, const Work& work);
// Those that are worth a benchmark, and may be named in Options::backends: the reference is for
// reading.
inline constexpr std::array kHostBackends{"cpu", "openssl"}, kDeviceBackends{"cuda", "opencl"};
std::vector<std::string> backend_names();
bool wants_backend(const Options& options, const std::string& name);

}  // namespace dael::bench
