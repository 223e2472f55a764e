// SPDX-License-Identifier: Apache-2.0
// Precomputed keystream in memory: windows, each of consecutive numbers of one SA, side by side in
// page-locked buffers, each of which one launch fills.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dael::keystream {

struct Track;
struct FillBuffer;

// Who holds it: the scheduler until it is published, then the track's inbox, then the packet side,
// which retires it. Numbers are those of a track: packets, in layout stream blocks.
struct Window {
    std::uint64_t first = 0, end = 0;
    std::uint32_t blocks = 1;  // of keystream for each number
    std::uint8_t* data = nullptr;
    FillBuffer* buffer = nullptr;
    Track* track = nullptr;
    std::uint64_t epoch = 0;      // of the SA that it was ordered for
    std::uint64_t next_then = 0;  // the track's next number when it was ordered
    Window* next = nullptr;       // in the inbox
    bool over = false;  // retired; written and read under the SA's mutex once it is published

    std::size_t bytes() const noexcept {
        return static_cast<std::size_t>(end - first) * blocks * 16;
    }
};

inline constexpr std::size_t kMaxWindows = 256;  // in a buffer

// Free, and the scheduler's alone, while `live` is 0 and nobody fills it. Its windows are known
// until it is filled again, so that an SA that goes finds what was used of its keystream.
struct FillBuffer {
    std::uint8_t* memory = nullptr;
    std::size_t size = 0;               // bytes of it
    std::unique_ptr<Window[]> windows;  // kMaxWindows; the first `count` are in use
    std::size_t count = 0;
    std::size_t bytes = 0;               // filled
    bool taken = false;                  // it is being filled, or lost; the scheduler's
    std::size_t dirty = 0;               // bytes that were filled and not wiped since; likewise
    std::uint64_t order = 0;             // when it was filled, in order
    std::atomic<std::uint32_t> live{0};  // windows that are not retired
};

}  // namespace dael::keystream
