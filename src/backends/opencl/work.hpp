// SPDX-License-Identifier: Apache-2.0
// What the host tells a kernel to do: the twins of the structures in kernels/*.cl, byte for byte.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include <daelstrom/message.hpp>

#include "core/key_schedule.hpp"
#include "kernels/xts_tweak.hpp"

namespace dael::opencl {

inline constexpr unsigned kLanes = 32;         // work-items of a team
inline constexpr std::size_t kUnitSize = 512;  // bytes of 32 blocks

// A vector of OpenCL C.
struct alignas(16) Uint4 {
    std::array<std::uint32_t, 4> w;
};
inline Uint4 to_uint4(const Block& block) {
    Uint4 v;
    std::memcpy(&v, block.data(), sizeof v);
    return v;
}

struct RoundKeys {
    std::array<std::uint32_t, 60> w;
};
static_assert(sizeof(RoundKeys) == sizeof(core::KeySchedule::encrypt));

// segment.cl
struct Segment {
    std::uint64_t in, out;  // bytes from the beginning of the buffers
    std::uint64_t size;     // bytes
    std::uint32_t skip;     // CTR: bytes of the first keystream block to leave out
    std::uint32_t key;      // its index, where messages have keys of their own
    Uint4 iv;

    std::uint64_t units() const { return (skip + size + kUnitSize - 1) / kUnitSize; }
};
static_assert(sizeof(Segment) == 48);

// blocks.cl
struct ShareEnd {
    std::uint64_t unit;
    std::uint32_t segment;
    std::uint32_t unused;
};
static_assert(sizeof(ShareEnd) == 16);

// ctr_stream.cl
struct StreamWork {
    std::uint64_t in, out, size, unused;
    Uint4 iv;
};
static_assert(sizeof(StreamWork) == 48);

// xts.cl
struct XtsWork {
    std::uint64_t in, out, sectors, rows;
    std::uint32_t sector_size, first_tweak;
    kernels::XtsShape shape;
    std::uint32_t aligned, unused;
    kernels::Leaps leaps;
};
static_assert(sizeof(XtsWork) == 208);

}  // namespace dael::opencl
