// SPDX-License-Identifier: Apache-2.0
// XTS. A sector costs one block more than its data, for its tweak E(K2, number), so a warp takes
// sectors 32 at a time: each lane encrypts the tweak of one, and then all lanes take the blocks of
// one sector after another, 32 to a row. A lane has its sector's tweak by shuffle, times x^lane; a
// row further on that is x^32 more, a rotation by one word.
//
// Decryption needs a forward cipher for the tweaks beside the inverse one. It gets one table of its
// own, in the layout that fits beside the inverse tables (README.md), or none.
#include <daelstrom/device/detail/table_free.hpp>

#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/memory_access.cuh"

namespace dael::cuda {
namespace {

static __device__ const kernels::Leaps leaps = kernels::make_leaps();

// What stands in for the forward tables where nothing fits.
struct NoTable {};

template <int kRounds>
__device__ __forceinline__ Words4 encrypt_tweak(const NoTable&, const RoundKeys& keys,
                                                const Words4& number) {
    return kernels::encrypt_table_free<kRounds>(keys, number);
}

// The rounds as a loop: seldom done, and the code of the data's cipher needs the instruction cache.
template <int kRounds, int kTables>
__device__ __forceinline__ Words4 encrypt_tweak(const kernels::Tables<kTables, false>& tables,
                                                const RoundKeys& keys, const Words4& number) {
    const Words4 s{number.x ^ keys.w[0], number.y ^ keys.w[1], number.z ^ keys.w[2],
                   number.w ^ keys.w[3]};
    return kernels::finish_masked<kRounds, 1, 1>(tables, keys, s, Words4{});
}

__device__ __forceinline__ Words4 shuffle(const Words4& w, unsigned lane) {
    constexpr unsigned kAll = 0xffffffff;
    return {__shfl_sync(kAll, w.x, lane), __shfl_sync(kAll, w.y, lane),
            __shfl_sync(kAll, w.z, lane), __shfl_sync(kAll, w.w, lane)};
}

// Rows `from` to `to` of sectors that are whole rows and 16-byte aligned, so that all data of a
// warp is one contiguous run.
template <int kRounds, bool kInverse, int kTables, class TweakTables>
__device__ __forceinline__ void whole_rows(const kernels::Tables<kTables, kInverse>& tables,
                                           const TweakTables& tweak_tables, const XtsWork& work,
                                           const RoundKeys& keys, std::uint64_t from,
                                           std::uint64_t to) {
    const unsigned lane = threadIdx.x % kernels::kLanes;
    const std::uint32_t rows = work.shape.rows;
    std::uint64_t sector = from / rows;
    auto row = static_cast<std::uint32_t>(from - sector * rows);
    const unsigned char* in = work.in + (from * kernels::kLanes + lane) * 16;
    unsigned char* out = work.out + (from * kernels::kLanes + lane) * 16;
    Words4 held{}, t{};
    unsigned next = kernels::kLanes;  // of the held tweaks
    std::uint32_t here = 0;           // rows left of this sector
#pragma unroll 1
    for (auto left = static_cast<std::uint32_t>(to - from); left != 0; --left) {
        if (here == 0) {
            if (next == kernels::kLanes) {
                held = encrypt_tweak<kRounds>(tweak_tables, work.tweak_keys,
                                              kernels::sector_number(work.first, sector + lane));
                sector += kernels::kLanes;
                next = 0;
            }
            t = kernels::times_x_to(shuffle(held, next++), lane);
            here = rows - row;
            if (row != 0) t = kernels::leap_rows(t, row, leaps.data());
            row = 0;
        } else {
            t = kernels::times_x_to_32(t);
        }
        --here;
        const Words4 x = load_aligned(in);
        store_aligned(out, kernels::crypt_masked<kRounds>(tables, keys, x ^ t, t));
        in += 512;
        out += 512;
    }
}

// Rows `from` to `to` of sectors of any size, at any address. Where a partial block follows a
// lane's own, the row is done twice: the partial block takes the head of the first result, and what
// is left of that, behind the partial block's own bytes, is processed again under the other tweak.
// Decryption meets the two tweaks in the opposite order (IEEE 1619 5.3.2, 5.4.2).
//
// One loop for all of it, with the cipher in it once: of loops within loops the compiler makes
// copies, and fills the registers with round keys.
template <int kRounds, bool kInverse, int kTables, class TweakTables>
__device__ __forceinline__ void any_rows(const kernels::Tables<kTables, kInverse>& tables,
                                         const TweakTables& tweak_tables, const XtsWork& work,
                                         const RoundKeys& keys, std::uint64_t from,
                                         std::uint64_t to) {
    const unsigned lane = threadIdx.x % kernels::kLanes;
    const kernels::XtsShape& shape = work.shape;
    const kernels::XtsLane place = kernels::xts_lane(shape, lane);
    const unsigned units_at_once = kernels::kLanes / shape.sectors;
    const int tail = static_cast<int>(shape.tail);
    std::uint64_t unit = from / shape.rows;
    auto row = static_cast<std::uint32_t>(from - unit * shape.rows);
    const unsigned char* in = nullptr;  // the lane's block, and where its result goes
    unsigned char* out = nullptr;
    Words4 held{}, t{}, tweak{}, other{}, x{};
    unsigned next = units_at_once;        // of the held tweaks
    std::uint32_t here = 0, block = 0;    // rows left of this unit; the lane's block in its sector
    bool mine = false;                    // the lane has a sector in this unit,
    bool active = false, steals = false;  // a block in this row, with a partial one behind it
    bool again = false;                   // second pass over the row; the same for all lanes
#pragma unroll 1
    for (auto left = static_cast<std::uint32_t>(to - from); left != 0 || again;) {
        if (!again) {
            --left;
            if (here == 0) {
                if (next == units_at_once) {
                    held = encrypt_tweak<kRounds>(
                        tweak_tables, work.tweak_keys,
                        kernels::sector_number(work.first, unit * shape.sectors + lane));
                    next = 0;
                }
                // Lanes without a sector in this unit get some tweak, and do not use it.
                t = kernels::times_x_to(shuffle(held, next++ * shape.sectors + place.sector),
                                        place.block);
                if (row != 0) t = kernels::leap_rows(t, row, leaps.data());
                const std::uint64_t sector = unit++ * shape.sectors + place.sector;
                mine = place.sector < shape.sectors && sector < work.sectors;
                block = row * kernels::kLanes + place.block;
                const std::uint64_t at = sector * work.sector_size + block * std::uint64_t{16};
                in = work.in + at;
                out = work.out + at;
                here = shape.rows - row;
                row = 0;
            } else {
                t = kernels::times_x_to_32(t);
                block += kernels::kLanes;
                in += 512;
                out += 512;
            }
            --here;
            active = mine && block < shape.blocks;
            steals = active && tail != 0 && block + 1 == shape.blocks;
            const Words4 after = kernels::times_x_to(t, 1);
            tweak = kInverse && steals ? after : t;
            other = kInverse ? t : after;
            x = Words4{};
            if (active) x = work.aligned ? load_aligned(in) : load_part(in, 0, 16);
        }
        const Words4 y = kernels::crypt_masked<kRounds>(tables, keys, x ^ tweak, tweak);
        again = __any_sync(0xffffffff, steals);
        if (steals) {
            const Words4 partial = load_part(in + 16, 0, tail);
            store_part(out + 16, y, 0, tail);
            x = kernels::splice(partial, y, shape.tail);
            tweak = other;
            steals = false;
        } else if (active) {
            if (work.aligned)
                store_aligned(out, y);
            else
                store_part(out, y, 0, 16);
            active = false;
        }
    }
}

// The tables that the tweaks are encrypted with.
template <bool kInverse, int kTables, bool kTableFree>
__device__ __forceinline__ auto fill_tweak_tables(
    const kernels::Tables<kTables, kInverse>& tables) {
    if constexpr (!kInverse)
        return tables;
    else if constexpr (kTableFree)
        return NoTable{};
    else
        return fill_tables<1, false>(kernels::Tables<kTables, true>::kBytes);
}

template <bool kInverse, int kRounds, int kTables, bool kTableFree>
__global__ void __launch_bounds__(1024, 1)
    xts(const __grid_constant__ XtsWork work, const __grid_constant__ RoundKeys keys) {
    const auto tables = fill_tables<kTables, kInverse>();
    const auto tweak_tables = fill_tweak_tables<kInverse, kTables, kTableFree>(tables);
    const unsigned warps_here = blockDim.x / kernels::kLanes;
    const std::uint64_t warps = std::uint64_t{gridDim.x} * warps_here;
    const std::uint64_t warp =
        std::uint64_t{blockIdx.x} * warps_here + threadIdx.x / kernels::kLanes;
    const std::uint64_t from = work.rows * warp / warps, to = work.rows * (warp + 1) / warps;
    if (work.aligned && work.sector_size % 512 == 0)
        whole_rows<kRounds>(tables, tweak_tables, work, keys, from, to);
    else
        any_rows<kRounds>(tables, tweak_tables, work, keys, from, to);
}

template <bool kInverse, int kRounds, int kTables, bool kTableFree = false>
Kernel make() {
    return {
        reinterpret_cast<const void*>(&xts<kInverse, kRounds, kTables, kTableFree>),
        kInverse ? shapes::xts_decrypt(kTableFree ? 0 : kTables) : shapes::xts_encrypt(kTables)};
}

template <bool kInverse, int kRounds>
Kernel find(int tables) {
    switch (tables) {
        case 4:
            return make<kInverse, kRounds, 4>();
        case 2:
            return make<kInverse, kRounds, 2>();
        case 1:
            return make<kInverse, kRounds, 1>();
        default:  // 0, asked for by decryption only
            return make<kInverse, kRounds, 1, kInverse>();
    }
}

}  // namespace

Kernel xts_kernel(bool decrypt, int rounds, int tables) {
    if (rounds == 10) return decrypt ? find<true, 10>(tables) : find<false, 10>(tables);
    return decrypt ? find<true, 14>(tables) : find<false, 14>(tables);
}

}  // namespace dael::cuda
