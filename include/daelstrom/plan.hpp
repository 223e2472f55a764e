// SPDX-License-Identifier: Apache-2.0
// What there is to compute with, and how a job would be done. Nothing here touches data or keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/message.hpp>

namespace dael {

// A job in outline, for explain().
struct Job {
    Cipher cipher = {};
    int key_bits = 128;
    std::uint64_t size = 0;  // bytes of one message
    std::uint64_t messages = 1;
    enum class From { host, pinned, device } from = From::host;
    bool in_place = false;  // which counts where several might work on page-locked memory
};

// One way to do a job, with the planner's prediction.
struct Option {
    std::string backend = {};  // "cuda:0", or several together, "cuda:0+cpu"
    int threads = 1;
    std::size_t chunk = 0;            // bytes; 0 where nothing is cut
    double gigabytes_per_second = 0;  // predicted, payload counted once
    double setup_seconds = 0;         // predicted fixed cost of the call
    double seconds = 0;               // predicted in all
    bool measured = false;            // from this machine's calibration, not from built-in figures
    std::string why;                  // one sentence
    bool possible = true;             // false: `why` says what stands against it
    // Of several together, "cuda:0+cpu": the part that each has in it, 0 to 1, in the order of
    // their names.
    std::vector<double> shares = {};
};
struct Plan {
    std::vector<Option> options;  // best first, the impossible ones last
    std::string summary;          // what would be done and why, in words, with the figures
};

// Every backend that daelstrom knows, with what this machine has of it.
struct BackendInfo {
    std::string name;         // "cuda:0"
    std::string description;  // "NVIDIA H200, sm_90, 132 SMs, 140.4 GiB, 128 KiB tables"
    std::string summary;      // one line on what the backend is
    bool present = false;
    std::string missing;  // what is missing when not present
};

// Every kind of backend that daelstrom knows, with name and summary alone: nothing is asked.
DAEL_API std::vector<BackendInfo> backend_kinds();
// What the machine has of each, or of this kind alone; several devices have an entry each. Drivers
// are loaded and devices opened: where a driver that aborts must not end the program, ask from a
// child process, as `daelstrom devices` does.
DAEL_API std::vector<BackendInfo> list_backends(std::string_view kind = {});

}  // namespace dael

// What this machine was measured to do, which `auto` and Engine::explain() go by. A calibration is
// a JSON file under the user's cache directory ($XDG_CACHE_HOME/daelstrom, else
// ~/.cache/daelstrom). It holds no secrets. One that is damaged, of another version, or of another
// machine counts as none, and without one daelstrom goes by cautious built-in figures.
//
// All rates are GB/s (10^9 bytes a second) of payload, counted once.

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
