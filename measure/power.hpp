// SPDX-License-Identifier: Apache-2.0
// What GPUs and processors say of their energy and clocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

namespace dael::measure {

// NVIDIA's management library, which comes with the driver (NVML). For one thread at a time.
class GpuPower {
  public:
    // Number `gpu` in the order of the bus. Errors: backend_absent, without the library or the GPU.
    static Result<GpuPower> open(unsigned gpu = 0);
    // "580.82.07"; empty without the library.
    static std::string driver();

    // Since the driver was loaded. Errors: unsupported, on GPUs that do not count (before Volta).
    Result<double> joules() const;
    // What it does not tell is 0.
    unsigned sm_mhz() const;
    unsigned memory_mhz() const;
    unsigned celsius() const;
    // Why clocks are held back, bits as nvml.h has them (nvmlClocksEventReason...).
    std::uint64_t reasons() const;

  private:
    struct Library;
    std::shared_ptr<const Library> library_;
    void* device_ = nullptr;
};

// What a set of reasons says, in words: "power cap"; empty where nothing is held back.
std::string clock_reasons(std::uint64_t reasons);

// The energy counters of processors and their memory (RAPL), as Linux shows them. To be asked at
// least once a minute, since they wrap.
class CpuPower {
  public:
    // Errors: backend_absent, where there are none or they may not be read.
    static Result<CpuPower> open(const std::filesystem::path& folder = "/sys/class/powercap");
    // Since open(). Errors: io.
    Result<double> joules();

  private:
    struct Zone {
        std::filesystem::path counter;  // microjoules
        std::uint64_t most = 0;         // after which it begins again
        std::uint64_t last = 0;
    };
    std::vector<Zone> zones_;
    double joules_ = 0;
};

}  // namespace dael::measure
