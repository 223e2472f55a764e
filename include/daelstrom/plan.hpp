// SPDX-License-Identifier: Apache-2.0
// What there is to compute with, and how a job would be done. Nothing here touches data or keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/cipher.hpp>

namespace dael {

// A job in outline, for explain().
struct Job {
    Cipher cipher = {};
    int key_bits = 128;
    std::uint64_t size = 0;  // bytes of one message
    std::uint64_t messages = 1;
    enum class From { host, pinned, device } from = From::host;
};

// One way to do a job, with the planner's prediction.
struct Option {
    std::string backend = {};
    int threads = 1;
    std::size_t chunk = 0;            // bytes; 0 where nothing is cut
    double gigabytes_per_second = 0;  // predicted, payload counted once
    double setup_seconds = 0;         // predicted fixed cost of the call
    double seconds = 0;               // predicted in all
    bool measured = false;            // from this machine's calibration, not from built-in figures
    std::string why;                  // one sentence
    bool possible = true;             // false: `why` says what stands against it
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
