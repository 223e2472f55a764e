// SPDX-License-Identifier: Apache-2.0
// XTS's tweaks as a warp makes them: powers of x in GF(2^128) by shifts, and which lane takes which
// block. IEEE 1619 5.2: a tweak is a polynomial with its lowest coefficient in bit 0 of byte 0, so
// the first word of a block is the lowest; x^128 = x^7 + x^2 + x + 1.
//
// Nothing here branches on a tweak or uses one as an address.
#pragma once

#include <array>
#include <cstdint>

#include <daelstrom/device/detail/hd.hpp>
#include <daelstrom/device/detail/rounds.hpp>

namespace dael::kernels {

// Adds the terms from x^128 to x^159, whose coefficients are `over`, to the others.
DAEL_HD constexpr Words4 fold(const Words4& t, std::uint32_t over) {
    return {t.x ^ over ^ over << 1 ^ over << 2 ^ over << 7,
            t.y ^ over >> 31 ^ over >> 30 ^ over >> 25, t.z, t.w};
}

// t * x^n, n from 0 to 31.
DAEL_HD constexpr Words4 times_x_to(const Words4& t, std::uint32_t n) {
    const auto shifted = [n](std::uint32_t low, std::uint32_t high) {  // one funnel shift
        return static_cast<std::uint32_t>(((static_cast<std::uint64_t>(high) << 32 | low) << n) >>
                                          32);
    };
    return fold({t.x << n, shifted(t.x, t.y), shifted(t.y, t.z), shifted(t.z, t.w)},
                shifted(t.w, 0));
}

// t * x^32: what a lane does between two rows of 32 blocks.
DAEL_HD constexpr Words4 times_x_to_32(const Words4& t) {
    return fold({0, t.x, t.y, t.z}, t.w);
}

// a * b.
DAEL_HD constexpr Words4 tweak_multiply(Words4 a, Words4 b) {
    Words4 product{0, 0, 0, 0};
    DAEL_UNROLL(1)
    for (int i = 0; i < 128; ++i) {
        const std::uint32_t mask = 0u - (b.x & 1);
        product = {product.x ^ (a.x & mask), product.y ^ (a.y & mask), product.z ^ (a.z & mask),
                   product.w ^ (a.w & mask)};
        b = {b.x >> 1 | b.y << 31, b.y >> 1 | b.z << 31, b.z >> 1 | b.w << 31, b.w >> 1};
        a = times_x_to(a, 1);
    }
    return product;
}

// x^(32 * 64 * 2^i), for leaps within long sectors.
using Leaps = std::array<Words4, 9>;  // up to 2^15 rows, the longest sector there is
constexpr Leaps make_leaps() {
    Words4 power{0, 1, 0, 0};
    for (int i = 0; i < 6; ++i) power = tweak_multiply(power, power);
    Leaps leaps{};
    for (auto& leap : leaps) {
        leap = power;
        power = tweak_multiply(power, power);
    }
    return leaps;
}

// t * x^(32 * rows), rows below 2^15: for the few warps that start within a sector. Up to 63 rows
// step by step, as from the start of a sector of up to 32 KiB; beyond, a multiplication for each
// bit.
DAEL_HD Words4 leap_rows(Words4 t, std::uint32_t rows, const Words4* leaps) {
    DAEL_UNROLL(1)
    for (std::uint32_t near = rows % 64; near != 0; --near) t = times_x_to_32(t);
    DAEL_UNROLL(1)
    for (std::uint32_t far = rows / 64; far != 0; far >>= 1, ++leaps)
        if (far & 1) t = tweak_multiply(t, *leaps);
    return t;
}

// The number of a later sector: 128 bits, the first word lowest.
DAEL_HD Words4 sector_number(const Words4& first, std::uint64_t later) {
    const std::uint64_t low = static_cast<std::uint64_t>(first.y) << 32 | first.x;
    const std::uint64_t high = static_cast<std::uint64_t>(first.w) << 32 | first.z;
    const std::uint64_t sum = low + later;
    const std::uint64_t carried = high + (sum < low);
    return {static_cast<std::uint32_t>(sum), static_cast<std::uint32_t>(sum >> 32),
            static_cast<std::uint32_t>(carried), static_cast<std::uint32_t>(carried >> 32)};
}

// The first `count` bytes (0 to 15) of `head`, then those of `rest`.
DAEL_HD Words4 splice(const Words4& head, const Words4& rest, std::uint32_t count) {
    const auto word = [count](std::uint32_t h, std::uint32_t r, std::uint32_t at) {
        const std::uint32_t bytes = count <= at ? 0 : count - at;
        const std::uint32_t mask = bytes >= 4 ? ~0u : (1u << 8 * bytes) - 1;
        return (h & mask) | (r & ~mask);
    };
    return {word(head.x, rest.x, 0), word(head.y, rest.y, 4), word(head.z, rest.z, 8),
            word(head.w, rest.w, 12)};
}

// How a warp goes over sectors of one size. A row is what its 32 lanes take at once. A unit is a
// sector, in one row or more; or, where sectors are so short that several fit into a row, so many
// of them, in one row. A partial block goes with the whole block before it, on the same lane.
struct XtsShape {
    std::uint32_t blocks;   // whole blocks in a sector
    std::uint32_t tail;     // bytes in its partial block
    std::uint32_t sectors;  // in a unit
    std::uint32_t rows;     // in a unit
};
inline XtsShape xts_shape(std::uint32_t sector_size) {
    const std::uint32_t blocks = sector_size / 16;
    return {blocks, sector_size % 16, blocks < 32 ? 32 / blocks : 1, (blocks + 31) / 32};
}
inline std::uint64_t xts_rows(const XtsShape& shape, std::uint64_t sectors) {
    return (sectors + shape.sectors - 1) / shape.sectors * shape.rows;
}

// A lane's place in every unit. Lanes whose `sector` is not below XtsShape::sectors, or whose block
// is not below XtsShape::blocks, have nothing to do.
struct XtsLane {
    std::uint32_t sector;  // of the unit
    std::uint32_t block;   // in row 0; 32 more in each further one
};
DAEL_HD XtsLane xts_lane(const XtsShape& shape, std::uint32_t lane) {
    const std::uint32_t sector = lane / shape.blocks;
    return {sector, lane - sector * shape.blocks};
}

}  // namespace dael::kernels
