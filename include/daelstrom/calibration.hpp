// SPDX-License-Identifier: Apache-2.0
// What this machine was measured to do, which `auto` and Engine::explain() go by. A calibration is
// a JSON file under the user's cache directory ($XDG_CACHE_HOME/daelstrom, else
// ~/.cache/daelstrom). It holds no secrets. One that is damaged, of another version, or of another
// machine counts as none, and without one daelstrom goes by cautious built-in figures.
//
// All rates are GB/s (10^9 bytes a second) of payload, counted once.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/cipher.hpp>
#include <daelstrom/error.hpp>

namespace dael {

// A host backend in one mode, direction and key size.
struct HostRate {
    std::string backend;
    Mode mode = Mode::ctr;
    Direction direction = Direction::encrypt;
    int key_bits = 128;
    double one_core = 0;    // one message on one core
    double all_cores = 0;   // one message on all cores; as one_core where the mode is sequential
    double batch_core = 0;  // 16 messages at once on one core
    double batch_all = 0;   // 16 messages at once on every core
};

struct KernelRate {
    Mode mode = Mode::ctr;
    Direction direction = Direction::encrypt;
    int key_bits = 128;
    double rate = 0;  // data in device memory, read and written; sequential modes: a large batch
};

struct DeviceRates {
    std::string backend;       // "cuda:0"
    std::string device;        // "NVIDIA H200, 580.82, CUDA 13.0": the figures are of this one only
    double start_seconds = 0;  // the first use of the device in a process
    double setup_seconds = 0;  // a call with hardly any data, host memory
    double copy_in = 0;        // page-locked host memory, one direction at a time
    double copy_out = 0;
    double duplex = 0;      // both directions at once, each
    double pageable = 0;    // both ways through the staging rings
    std::size_t chunk = 0;  // bytes, the best for page-locked memory
    std::vector<KernelRate> kernels;
    // The fastest form of its kernels, where a device leaves a choice (opencl); else empty.
    std::string form = {};
};

struct Calibration {
    std::string machine;  // CPU, cores and GPU driver; see describe_machine()
    std::string made;     // when, UTC: "2025-01-31T12:00:00Z"
    std::vector<HostRate> hosts;
    std::vector<DeviceRates> devices;
    // What memory allows whatever the cipher: data read and written elsewhere that no cache holds,
    // by one core and by all. 0: not measured.
    double memory_core = 0, memory_all = 0;
    // "opencl:0: ..." for each device that could not be measured, and why. Not stored.
    std::vector<std::string> left_out = {};
};

// Called with what is being measured and how much is done, 0 to 1, on the calling thread.
using CalibrationProgress = std::function<void(std::string_view what, double done)>;

// Measures every backend here: some seconds for the host, up to 20 with a GPU, and for OpenCL's
// first time as long as its driver compiles. Stores nothing. A device that fails is left out.
// Errors: out_of_memory, and those of the host's backends.
DAEL_API Result<Calibration> calibrate(const CalibrationProgress& progress = {});

// Writes the file at once or not at all, and returns its path. Errors: io.
DAEL_API Result<std::string> store(const Calibration& calibration);
DAEL_API std::optional<Calibration> load_calibration();
DAEL_API std::string calibration_path();  // empty where neither XDG_CACHE_HOME nor HOME is set

// What a calibration is keyed by: "Intel(R) Xeon(R) ..., 16 cores, NVIDIA driver 580.82".
DAEL_API std::string describe_machine();

}  // namespace dael
