// SPDX-License-Identifier: Apache-2.0
// libipsec-mb as this backend uses it: its instruction-set levels, and one manager for each thread
// and level, since a manager must not be shared.
#pragma once

#include <intel-ipsec-mb.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <daelstrom/error.hpp>
#include <daelstrom/message.hpp>

#include "core/key_schedule.hpp"

namespace dael::cpu {

enum class Level { sse, avx2, avx512 };
inline constexpr std::array kLevels{Level::sse, Level::avx2, Level::avx512};  // slowest first

std::string_view name(Level level) noexcept;  // "sse", "avx2", "avx512": a backend's form
std::optional<Level> level_by_name(std::string_view name) noexcept;
bool available(Level level) noexcept;  // whether this CPU, and its system, run it
// Whether AES and carry-less products have whole vectors at this level on this CPU.
bool vectorised(Level level) noexcept;
// "AVX-512 with VAES": the level, and which AES instructions the library uses at it on this CPU.
std::string describe(Level level);

// A message of a sequential mode on its way: `done` bytes are through, the next `size` are being
// worked on, `chain` goes into the first of their blocks.
struct Lane {
    const Message* message;
    const core::KeySchedule* key;
    std::size_t done, size;
    Block chain;
    const std::uint8_t* in() const noexcept { return message->in + done; }
    std::uint8_t* out() const noexcept { return message->out + done; }
};

struct GcmKey;  // gcm.hpp

// What one thread needs to drive the library, in memory that is left out of core dumps and wiped on
// release. It holds no keys (the library's manager does, while a call runs, and clears them), but
// for one that is expanded for GCM as long as a call runs, in locked memory.
struct Workspace {
    static constexpr std::size_t kJobs = IMB_MAX_BURST_SIZE;  // jobs in one burst
    static constexpr std::size_t kLanes = 16;      // as many as AVX-512 encrypts side by side
    static constexpr std::size_t kScratch = 8192;  // bytes of scratch for each lane

    IMB_MGR* manager;
    GcmKey* gcm_key;
    std::array<IMB_JOB, kJobs> jobs;
    std::array<Block, kJobs> ivs;  // each job's, for as long as it runs
    std::array<Lane, kJobs> lanes;
    // Three cache lines keep the lanes apart, which would else all fall into the same cache sets.
    struct alignas(64) Scratch {
        std::array<std::uint8_t, kScratch> bytes;
        std::array<std::uint8_t, 192> apart;
    };
    std::array<Scratch, kLanes> scratch;

    std::uint8_t* scratch_of(std::size_t lane) noexcept { return scratch[lane].bytes.data(); }
    // Wipes what CFB and OFB left in the first `count` lanes: up to `size` bytes of keystream in
    // each one's scratch, and OFB's chain values, which are keystream too.
    void wipe_keystream(std::size_t count, std::size_t size) noexcept;
};

// The calling thread's own, made at its first use and released when the thread ends.
// Errors: out_of_memory; internal, when the library fails its self-test.
Result<Workspace*> workspace(Level level);

}  // namespace dael::cpu
