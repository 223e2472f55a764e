// SPDX-License-Identifier: Apache-2.0
// Counter mode by one warp, over any range of a message's blocks, at any address.
//
// A row is 32 consecutive blocks, one to a lane. Where the output is aligned, a lane's block of
// keystream goes to one aligned word of 16 bytes. Where it is not, the keystream is turned, and not
// the data: an aligned word takes the tail of one block and the head of the next, that is of the
// neighbouring lane's and the lane's own (kernels/realign.hpp); lane 0 takes the tail that the last
// lane made in the row before. Input that is aligned otherwise than the output is cut out of two
// aligned words. What of the data is no whole aligned word, which happens at the ends of the range
// alone, goes byte by byte, 16 lanes to a word; so other warps, and other messages, may own what
// lies beside it.
#pragma once

#include "backends/cuda/memory_access.cuh"
#include "backends/cuda/warp_values.cuh"
#include "kernels/counter_cache.hpp"
#include "kernels/realign.hpp"

namespace dael::cuda {

// A message's bytes are `begin` to `end` of the blocks from `start` on, of which the first would
// lie at `in` and `out`; all of it the same in all lanes. The low 32 bits of the counter may wrap,
// without a carry: in CTR they must not.
struct CounterData {
    __device__ __forceinline__ CounterData(const unsigned char* data_in, unsigned char* data_out,
                                           std::uint64_t size, std::uint32_t skip,
                                           const Words4& first)
        : in(data_in ? global_address(data_in) - skip : 0),
          out(global_address(data_out) - skip),
          begin(skip),
          end(skip + size),
          start(first),
          has_input(data_in != nullptr) {}
    __device__ std::uint64_t blocks() const { return (end + 15) / 16; }

    std::size_t in, out;
    std::int64_t begin, end;
    Words4 start;
    bool has_input;  // else the output is the keystream itself
};

template <int kRounds, int kTables, class Keys>
class CounterRows {
  public:
    using LaneTables = kernels::Tables<kTables, false>;
    __device__ __forceinline__ CounterRows(const LaneTables& tables, const Keys& keys,
                                           const CounterData& data)
        : tables_(tables),
          keys_(keys),
          data_(data),
          cache_(tables, keys, data.start),
          lane_(threadIdx.x % kLanes),
          counter_(kernels::byte_swap(data.start.w)),
          shift_(static_cast<std::uint32_t>(data.out) & 15),
          past_(data.has_input ? static_cast<std::uint32_t>(data.in - data.out) & 15 : 0) {}

    // Whole groups of 256 counters go the fast way, in which a lane keeps the state after round 2
    // for the values of the counter's low byte that it serves: it needs that the first 32 of a
    // group's counters are one row's, give or take a lane.
    __device__ __forceinline__ void crypt(std::uint64_t from, std::uint64_t to) {
        const Range range{max(data_.begin, static_cast<std::int64_t>(from * 16)),
                          min(data_.end, static_cast<std::int64_t>(to * 16))};
        const bool plain = (shift_ | past_) == 0;
        // Of the last word's input there may be too little behind it.
        const std::uint64_t whole = data_.end / 16,
                            limit = min(to, plain ? whole : whole - (whole != 0));
        std::uint64_t block = from;
        Carried carried{};
        bool fresh = true;
#pragma unroll 1
        while (block < to) {
            const std::uint32_t first = counter_ + static_cast<std::uint32_t>(block);
            if (first % 256 < kLanes && block + 256 <= limit &&
                (plain ? block != 0 || data_.begin == 0 : block != from)) {
                const auto groups = static_cast<std::uint32_t>((limit - block) / 256);
                if (plain)
                    whole_groups<Fit::aligned>(block, groups, carried.tail);
                else if (past_ == 0)
                    whole_groups<Fit::alike>(block, groups, carried.tail);
                else if (shift_ == 0)
                    whole_groups<Fit::input_shifted>(block, groups, carried.tail);
                else
                    whole_groups<Fit::different>(block, groups, carried.tail);
                block += groups * std::uint64_t{256};
                fresh = true;
            } else {
                row(block, range, fresh, carried);
                fresh = false;
                block += kLanes;
            }
        }
        const std::int64_t at = static_cast<std::int64_t>(block * 16) - shift_;
        if (shift_ != 0 && at < range.end)
            bytes(kernels::bytes_from(carried.tail, carried.tail, 16 - shift_), 0, at, range);
    }

  private:
    static constexpr std::uint32_t kLanes = kernels::kLanes, kRowBytes = kLanes * 16;
    static constexpr int kUnroll = kTables == 1 ? kRounds : 4;

    // How input and output lie: both are aligned; both are past a word by as much; the input is and
    // the output is aligned; or each is by its own.
    enum class Fit { aligned, alike, input_shifted, different };

    // `groups` of 256 blocks from `block` on, all of whose words are whole; where data is shifted
    // the row before was this warp's too. The inner loop takes one row, and the values that a lane
    // keeps go round in its registers: with all eight rows in its body it would be 46 KiB, and
    // warps in different loops would take each other's instructions out of the cache.
    template <Fit kFit>
    __device__ __forceinline__ void whole_groups(std::uint64_t block, std::uint32_t groups,
                                                 Words4& tail) {
        constexpr std::uint32_t kRows = 256 / kLanes, kGroupBytes = 256 * 16;
        std::uint32_t first = counter_ + static_cast<std::uint32_t>(block);
        const std::uint32_t phase = first % 256;
        Words4 low[kRows];
#pragma unroll
        for (std::uint32_t k = 0; k < kRows; ++k)
            low[k] = cache_.low((phase + k * kLanes + lane_) % 256);
        const bool next_group = phase + lane_ >= kLanes;  // in the last row
        Words4 high = cache_.high(first);
        const std::size_t place = (block + lane_) * 16 - shift_;
        std::size_t in = data_.has_input ? data_.in + place - past_ : global_address(zeros),
                    out = data_.out + place;
        const std::size_t in_step = data_.has_input ? kGroupBytes : 0;
#pragma unroll 1
        while (true) {
            Words4 base = high ^ cache_.middle(first);
#pragma unroll 1
            for (std::uint32_t row = 0; row < kRows; ++row) {
                if (row == kRows - 1 && phase != 0) {
                    const std::uint32_t next = first + 256;
                    const Words4 beyond = next % 65536 < 256 ? cache_.high(next) : high;
                    base = choose(next_group, beyond ^ cache_.middle(next), base);
                }
                word<kFit>(in + row * kRowBytes, out + row * kRowBytes, base ^ low[0], tail);
                const Words4 gone = low[0];
#pragma unroll
                for (std::uint32_t k = 0; k + 1 < kRows; ++k) low[k] = low[k + 1];
                low[kRows - 1] = gone;
            }
            if (--groups == 0) return;
            first += 256;
            if (first % 65536 < 256) high = cache_.high(first);  // bytes 12 and 13 are new
            in += in_step;
            out += kGroupBytes;
        }
    }

    struct Range {
        std::int64_t begin, end;
    };
    // From one row to the next: what the lane before made in it; and what counters of its group
    // have in common after round 2.
    struct Carried {
        Words4 tail, high, base;
    };

    __device__ __forceinline__ Words4 finish(const Words4& state, const Words4& mask) const {
        return kernels::finish_masked<kRounds, 3, kUnroll>(tables_, keys_, state, mask);
    }

    // The lane's aligned word of keystream, of its own block and the one before, where the output
    // is past a word.
    __device__ __forceinline__ Words4 turned(const Words4& own, Words4& tail) const {
        const Words4 before = shuffle(own, (lane_ + kLanes - 1) % kLanes);
        const Words4 word = kernels::bytes_from(choose(lane_ == 0, tail, before), own, 16 - shift_);
        tail = before;
        return word;
    }

    // A lane's word of a row all of whose words are whole.
    template <Fit kFit>
    __device__ __forceinline__ void word(std::size_t in, std::size_t out, const Words4& state,
                                         Words4& tail) const {
        Words4 x = load_global(in);
        if constexpr (kFit == Fit::aligned) {
            store_global(out, finish(state, x));
            return;
        }
        Words4 y{};
        if (kFit != Fit::alike) y = load_global(in + 16);
        Words4 keystream = finish(state, Words4{});
        if (kFit != Fit::input_shifted) keystream = turned(keystream, tail);
        if (kFit != Fit::alike) x = kernels::bytes_from(x, y, past_);
        store_global(out, keystream ^ x);
    }

    // One row, of which any part may be in the range.
    __device__ __forceinline__ void row(std::uint64_t block, const Range& range, bool fresh,
                                        Carried& carried) {
        const std::uint32_t first = counter_ + static_cast<std::uint32_t>(block);
        const std::int64_t at = static_cast<std::int64_t>((block + lane_) * 16) - shift_;
        bool whole = range.begin <= at && at + 16 <= range.end;
        if (past_ != 0) whole &= data_.begin <= at - past_ && at - past_ + 32 <= data_.end;
        Words4 x{}, y{};
        if (whole && data_.has_input) {
            const std::size_t in = data_.in + at - past_;
            x = load_global(in);
            if (past_ != 0) y = load_global(in + 16);
        }
        const std::uint32_t mine = first + lane_;
        // A row that some counters of the next group are in, or the row after that.
        if (fresh || (first + kLanes - 1) % 256 < 2 * kLanes - 1) {
            if (fresh || (first + kLanes - 1) % 65536 < 2 * kLanes - 1)
                carried.high = cache_.high(mine);
            carried.base = carried.high ^ cache_.middle(mine);
        }
        Words4 word = finish(carried.base ^ cache_.low(mine % 256), Words4{});
        if (shift_ != 0) word = turned(word, carried.tail);
        if (past_ != 0) x = kernels::bytes_from(x, y, past_);
        if (whole) store_global(data_.out + at, word ^ x);
        const bool part = !whole && at < range.end && range.begin < at + 16;
        for (std::uint32_t left = __ballot_sync(~0u, part); left != 0; left &= left - 1) {
            const auto lane = static_cast<std::uint32_t>(__ffs(static_cast<int>(left)) - 1);
            bytes(word, lane, static_cast<std::int64_t>((block + lane) * 16) - shift_, range);
        }
    }

    // What of the word that `lane` has, which begins `at`, is in the range.
    __device__ __forceinline__ void bytes(const Words4& words, std::uint32_t lane, std::int64_t at,
                                          const Range& range) const {
        const Words4 v = shuffle(words, lane);
        const std::uint32_t even = lane_ & 8 ? v.z : v.x, odd = lane_ & 8 ? v.w : v.y;
        const std::uint32_t byte = (lane_ & 4 ? odd : even) >> lane_ % 4 * 8;
        at += lane_;
        if (lane_ >= 16 || at < range.begin || at >= range.end) return;
        const std::uint32_t x = data_.has_input ? *global_pointer(data_.in + at) : 0;
        *global_pointer(data_.out + at) = static_cast<unsigned char>(byte ^ x);
    }

    const LaneTables& tables_;
    const Keys& keys_;
    const CounterData& data_;
    const kernels::CounterCache<kTables> cache_;
    const std::uint32_t lane_, counter_;
    const std::uint32_t shift_;  // how far the output is past a word
    const std::uint32_t past_;   // how far the input of an aligned word of output is past one
};

}  // namespace dael::cuda
