// SPDX-License-Identifier: Apache-2.0
// One measured figure, and a run's worth of them. bench/README.md tells what each field means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <daelstrom/modes.hpp>

#include "bench/measure.hpp"

namespace dael::bench {

// What a figure is held against: measured in the same turns, on the same payload.
struct Ceiling {
    std::string name;  // "copy within device memory", "libipsec-mb called directly"
    double gbps = 0;   // its median
    double ratio = 0;  // the row's rate over this one's, the median over the turns
};

// What was run.
struct Work {
    std::string backend;  // "cpu", "openssl", "cuda:0"
    std::string isa;      // cpu: "sse", "avx2", "avx512"; a device's shape or form; else empty
    Mode mode = Mode::ctr;
    Direction direction = Direction::encrypt;
    std::uint64_t sector = 0;  // bytes; not 0: XTS, and `mode` has no meaning
    std::uint64_t keys = 0;    // not 0: GCM under so many keys, and `mode` has no meaning
    bool mac_only = false;     // GMAC: the message is AAD
    int bits = 128;
    std::uint64_t size = 0;      // bytes of one message
    std::uint64_t messages = 1;  // processed by one call
    std::string where;           // "cache", "host", "device", "pinned", "pageable", "texture"
    std::string measure =
        "call";  // "call", "backend", "kernel", "total", "async", "launch", "latency"
    std::string placement = "apart";  // "apart", "in place", "unaligned"
    int threads = 1;                  // host threads that take part
    std::string data = "random";      // "random", "ramp" (0 to 255), "constant" (0xaa)

    double bytes() const { return static_cast<double>(size) * static_cast<double>(messages); }
};

struct Row : Work {
    Spread gbps;         // payload counted once, whatever the number of copies
    double seconds = 0;  // of one call, the median
    int samples = 0;
    std::vector<Ceiling> ceilings;  // the first is the one that the table shows
};

struct Yardstick {
    std::string name;
    const Series* series;
};

// "ctr-128", "cbc-256 decrypt", "xts-128 encrypt, 512 B sectors", "gcm-128, 1024 keys"; "16 KiB",
// "1024 x 1 MiB".
std::string mode_name(const Work& work);
std::string cipher_name(const Work& work);
std::string size_name(const Work& work);

Row make_row(Work work, const Series& series, const std::vector<Yardstick>& yardsticks);

struct Machine {
    std::string cpu;
    int cores = 0;  // that this process may use
    std::uint64_t memory = 0;
    std::string gpu;  // empty: none; so are the fields below
    int multiprocessors = 0;
    std::uint64_t gpu_memory = 0;
    std::string driver;        // "580.65.06"
    std::string cuda_runtime;  // "13.0"
    std::string opengl;        // who drew, in the suite "generations"
};

struct Report {
    Machine machine;
    std::string date;     // UTC, ISO 8601
    std::string version;  // "0.1.0"
    std::string commit;   // of the source tree when it was configured
    std::string compiler;
    std::string suite;
    std::vector<Row> rows;
    std::vector<std::string> skipped;  // one line each: what was left out and why
};

}  // namespace dael::bench
