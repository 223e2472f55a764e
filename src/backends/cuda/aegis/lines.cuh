// SPDX-License-Identifier: Apache-2.0
// Messages by way of shared memory, a line of 128 bytes of each at a time.
#pragma once

#include "backends/cuda/aegis/job.cuh"
#include "kernels/realign.hpp"

namespace dael::cuda {

// A warp's rows in shared memory, by address from where dynamic shared memory would begin at 0.
__device__ __forceinline__ Words4 load_stage(std::uint32_t at) {
#ifdef __CUDA_ARCH__
    Words4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
#else
    return kernels::load_aligned(table_image + at);
#endif
}
__device__ __forceinline__ void store_stage(std::uint32_t at, const Words4& v) {
#ifdef __CUDA_ARCH__
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
#else
    kernels::store_aligned(table_image + at, v);
#endif
}

// Lines of 128 bytes: eight lanes load and store a message's line at once, and between the two a
// message's own lanes have it in shared memory, a row each, so far apart that lanes that read side
// by side meet no bank twice.
template <class F, bool kOpen>
class AegisLines {
  public:
    static constexpr std::uint32_t kBytes = 128;

    __device__ __forceinline__ static std::uint32_t stage() {
        return kAegisTables + 4 * shapes::kTable +
               uniform(threadIdx.x / kLanes) * F::kMessages * F::kStageStride;
    }

    // The entry of every lane's message, each read by eight lanes at once. `reads`: those that
    // there are. The list lies at a multiple of 16. The whole warp calls it.
    __device__ __forceinline__ static AegisJob fetch(const Message* messages, std::uint32_t index,
                                                     bool reads) {
        const std::uint32_t lane = threadIdx.x % kLanes, rows = stage();
        Words4 words[kMoves];
#pragma unroll
        for (std::uint32_t k = 0; k < kMoves; ++k) {
            const std::uint32_t row = (4 * k + lane / 8) * F::kLanesOf;
            const std::uint32_t its = __shfl_sync(~0u, reads ? index : kNoMessage, row);
            words[k] = {};
            if (its != kNoMessage && lane % 8 < sizeof(Message) / 16)
                words[k] = kernels::load_aligned(
                    reinterpret_cast<const unsigned char*>(messages + its) + lane % 8 * 16);
        }
#pragma unroll
        for (std::uint32_t k = 0; k < kMoves; ++k)
            store_stage(rows + (4 * k + lane / 8) * F::kStageStride + lane % 8 * 16, words[k]);
        __syncwarp();
        const std::uint32_t own = rows + lane / F::kLanesOf * F::kStageStride;
        const AegisJob job =
            AegisJob::of(F::k256, [own](std::uint32_t i) { return load_stage(own + 16 * i); });
        __syncwarp();
        return job;
    }

    // Whether the warp's messages lie near enough to each other. The whole warp asks.
    __device__ static bool can(const unsigned char* in, const unsigned char* out) {
        constexpr std::int64_t kReach = std::int64_t{1} << 35;
        const auto near = [](const unsigned char* p) {
            const auto by =
                static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) -
                                          reinterpret_cast<std::uintptr_t>(shuffle(p, 0)));
            return by > -kReach && by < kReach;
        };
        const bool from = near(in), to = near(out);  // which all lanes ask for
        return __ballot_sync(~0u, from && to) == ~0u;
    }

    // `owners`: lanes whose messages are written. Asks for the first lines, which may come before
    // the state is ready.
    __device__ __forceinline__ AegisLines(const AegisState<F>& state, const unsigned char* in,
                                          unsigned char* out, std::uint32_t owners,
                                          std::uint32_t count)
        : in_(shuffle(in, 0)), out_(shuffle(out, 0)), lane_(state.lane), stage_(stage()) {
        const auto distance = [](const unsigned char* p, const unsigned char* from) {
            return static_cast<std::int32_t>(
                (reinterpret_cast<std::intptr_t>(p) - reinterpret_cast<std::intptr_t>(from)) >> 4);
        };
        const auto from = static_cast<std::uint32_t>(distance(in, in_)),
                   to = static_cast<std::uint32_t>(distance(out, out_));
#pragma unroll
        for (std::uint32_t k = 0; k < kMoves; ++k) {
            const std::uint32_t row = (4 * k + lane_ / 8) * F::kLanesOf;
            from_[k] = static_cast<std::int32_t>(__shfl_sync(~0u, from, row) + lane_ % 8);
            to_[k] = static_cast<std::int32_t>(__shfl_sync(~0u, to, row) + lane_ % 8);
            ours_ |= (owners >> row & 1) << k;
        }
        if (count != 0)
#pragma unroll
            for (std::uint32_t k = 0; k < kMoves; ++k) ahead_[k] = load(in_, k);
    }

    __device__ __forceinline__ void run(AegisState<F>& state, std::uint32_t count) {
        constexpr std::uint32_t kSteps = kBytes / F::kStep;
        const unsigned char* in = in_;
        unsigned char* out = out_;
        const std::uint32_t own =
            stage_ + lane_ / F::kLanesOf * F::kStageStride + state.which() * 16;
#pragma unroll 1
        for (std::uint32_t left = count; left != 0; --left) {
            // The last line is asked for again rather than what is behind it.
            in += left != 1 ? kBytes : 0;
#pragma unroll
            for (std::uint32_t k = 0; k < kMoves; ++k) store_stage(row_at(k), ahead_[k]);
            __syncwarp();
#pragma unroll
            for (std::uint32_t k = 0; k < kMoves; ++k) ahead_[k] = load(in, k);
#pragma unroll 1
            for (std::uint32_t at = own; at != own + kSteps * F::kStep; at += F::kStep) {
                const Words4 m = load_stage(at), m1 = F::kBoth ? load_stage(at + 16) : Words4{};
                Words4 z, z1{};
                state.keystream(z, z1);
                const Words4 o = m ^ z, o1 = F::kBoth ? m1 ^ z1 : Words4{};
                state.update(kOpen ? o : m, kOpen ? o1 : m1);
                store_stage(at, o);
                if constexpr (F::kBoth) store_stage(at + 16, o1);
            }
            __syncwarp();
#pragma unroll
            for (std::uint32_t k = 0; k < kMoves; ++k) {
                const Words4 line = load_stage(row_at(k));
                if (ours_ >> k & 1) store_line(out + std::int64_t{to_[k]} * 16, line);
            }
            __syncwarp();
            out += kBytes;
        }
    }

    // Lines of any address and size, from byte `from`, a multiple of 128, on up to the longest
    // message's end, `to`. Memory is read and written by aligned words of 16 bytes; between those
    // and a message's own words its bytes are turned on the way from its row and to it. Words that
    // are not all its own are its ends, and read and written by a lane of its own.
    //
    // A row has nine words: the first one is the last line's last, for data that begin amid a word.
    // Where any of the warp's messages do, output that does not lies as if it began 16 bytes past.
    __device__ __forceinline__ static void rest(AegisState<F>& state, const unsigned char* in,
                                                unsigned char* out, std::uint64_t size,
                                                std::uint64_t from, std::uint64_t to, bool writes) {
        const std::uint32_t lane = state.lane, word = lane % 8, rows = stage(),
                            own = rows + lane / F::kLanesOf * F::kStageStride;
        std::uint32_t past_in = low_bits(in), past_out = low_bits(out);
        const bool turned = __ballot_sync(~0u, (past_in | past_out) != 0) != 0, ends = state.j == 0;
        if (turned && past_out == 0) past_out = 16;
        in += from - past_in;
        out += from - past_out;
        const auto row = [lane](std::uint32_t k) { return (4 * k + lane / 8) * F::kLanesOf; };
        const auto place = [lane, rows](std::uint32_t k) {
            return rows + (4 * k + lane / 8) * F::kStageStride + lane % 8 * 16;
        };
        constexpr std::uint32_t kTogether = 4;  // words of as many messages, for registers' sake
        Words4 before{};                        // the message's last word of output
#pragma unroll 1
        for (std::uint64_t line = from; line < to; line += kBytes) {
            // What the message has from here on, and the longest, as far as matters.
            constexpr std::uint64_t kMost = 2 * kBytes;
            const std::uint32_t left = line >= size
                                           ? 0
                                           : static_cast<std::uint32_t>(min(size - line, kMost)),
                                all = static_cast<std::uint32_t>(min(to - line, kMost)),
                                in_end = left != 0 ? left + past_in : 0,
                                out_end = left != 0 ? left + past_out : 0;
#pragma unroll 1
            for (std::uint32_t first = 0; first < kMoves; first += kTogether) {
                Words4 words[kTogether];
#pragma unroll
                for (std::uint32_t i = 0; i < kTogether; ++i) {
                    const std::uint32_t k = first + i;
                    words[i] = {};
                    const unsigned char* const p = shuffle(in, row(k)) + (word + 1) * 16;
                    if (16 * (word + 2) <= __shfl_sync(~0u, in_end, row(k)))
                        words[i] = load_line(p);
                }
#pragma unroll
                for (std::uint32_t i = 0; i < kTogether; ++i)
                    store_stage(place(first + i) + 16, words[i]);
            }
            if (ends && line == from && left != 0) store_stage(own, first_word(in, past_in, left));
            __syncwarp();
            if (const std::uint32_t at = in_end / 16, n = in_end % 16;
                ends && n != 0 && at != 0 && at <= 8)
                store_stage(own + 16 * at, load_first(in + 16 * at, n));
            __syncwarp();
            std::uint32_t step = 0;
#pragma unroll 1
            for (; step < kBytes && step < all; step += F::kStep) {
                const std::uint32_t at = own + step + state.which() * 16;
                Words4 m = load_stage(at), m1{};
                if (turned) {
                    const Words4 next = load_stage(at + 16);
                    m = kernels::bytes_from(m, next, past_in);
                    if constexpr (F::kBoth)
                        m1 = kernels::bytes_from(next, load_stage(at + 32), past_in);
                } else if constexpr (F::kBoth) {
                    m1 = load_stage(at + 16);
                }
                Words4 z, z1{};
                state.keystream(z, z1);
                const Words4 o = m ^ z, o1 = F::kBoth ? m1 ^ z1 : Words4{};
                if (turned) {
                    if constexpr (F::kLanesOf == 2) {
                        const Words4 other = state.from(o, 1);
                        __syncwarp();  // both have read
                        store_stage(at, turn(choose(ends, before, other), o, past_out));
                        before = other;
                    } else {
                        store_stage(at, turn(before, o, past_out));
                        if constexpr (F::kBoth) store_stage(at + 16, turn(o, o1, past_out));
                        before = F::kBoth ? o1 : o;
                    }
                } else {
                    store_stage(at, o);
                    if constexpr (F::kBoth) store_stage(at + 16, o1);
                }
                if constexpr (kOpen) {
                    const int have = static_cast<int>(left) - static_cast<int>(step);
                    m = first_bytes(o, have - static_cast<int>(state.which() * 16));
                    if constexpr (F::kBoth) m1 = first_bytes(o1, have - 16);
                }
                state.update_if(step < left, m, m1);
            }
            const bool last = left <= kBytes;  // of the message's lines, or behind them
            if (turned && ends && (step < kBytes || last))
                store_stage(own + step, turn(before, {}, past_out));
            __syncwarp();
            const std::uint32_t its_end = writes ? out_end : 0;
            const bool begins_amid = line == 0 && past_out != 0;
#pragma unroll 1
            for (std::uint32_t first = 0; first < kMoves; first += kTogether)
#pragma unroll
                for (std::uint32_t k = first; k < first + kTogether; ++k) {
                    unsigned char* const p = shuffle(out, row(k)) + word * 16;
                    const std::uint32_t its =
                        __shfl_sync(~0u, its_end | (begins_amid ? 0x80000000u : 0), row(k));
                    if (16 * (word + 1) <= (its & 0xffff) && (word != 0 || its >> 31 == 0))
                        store_line(p, load_stage(place(k)));
                }
            if (ends && its_end != 0) {
                if (begins_amid) store_first_word(out, load_stage(own), past_out, left);
                const std::uint32_t at = (out_end - 1) / 16, n = out_end - 16 * at;
                if (last && n < 16 && (at != 0 || !begins_amid))
                    store_first(out + 16 * at, load_stage(own + 16 * at), n);
                if (last && n == 16 && at == 8) store_line(out + 128, load_stage(own + 128));
            }
            in += kBytes;
            out += kBytes;
            __syncwarp();
            if (ends) store_stage(own, load_stage(own + kBytes));
            __syncwarp();
        }
    }

  private:
    static constexpr std::uint32_t kMoves = 8 / F::kLanesOf;

    __device__ __forceinline__ static std::uint32_t low_bits(const unsigned char* p) {
        return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p)) & 15;
    }
    // The word that begins `past` bytes before its first byte's, of a message that has `size`.
    __device__ __forceinline__ static Words4 first_word(const unsigned char* p, std::uint32_t past,
                                                        std::uint32_t size) {
        if (past == 0) return size >= 16 ? load_line(p) : load_first(p, size);
        if (past + size >= 16) return load_last(p, 16 - past);
        return load_part(p, static_cast<int>(past), static_cast<int>(past + size));
    }
    __device__ __forceinline__ static void store_first_word(unsigned char* p, const Words4& v,
                                                            std::uint32_t past,
                                                            std::uint32_t size) {
        if (past + size >= 16)  // of 16 past nothing
            store_last(p, v, 16 - past);
        else
            store_part(p, v, static_cast<int>(past), static_cast<int>(past + size));
    }
    // An aligned word of output that has the last `past` (1 to 16) bytes of one block, then the
    // next one's.
    __device__ __forceinline__ static Words4 turn(const Words4& block, const Words4& next,
                                                  std::uint32_t past) {
        return kernels::bytes_from(block, next, 16 - past);
    }
    __device__ __forceinline__ Words4 load(const unsigned char* in, std::uint32_t k) const {
        return load_line(in + std::int64_t{from_[k]} * 16);
    }
    __device__ __forceinline__ std::uint32_t row_at(std::uint32_t k) const {
        return stage_ + (4 * k + lane_ / 8) * F::kStageStride + lane_ % 8 * 16;
    }

    const unsigned char* const in_;
    unsigned char* const out_;
    const std::uint32_t lane_, stage_;
    std::int32_t from_[kMoves], to_[kMoves];  // of the words that this lane moves, in words
    std::uint32_t ours_ = 0;                  // a bit for each that it writes
    Words4 ahead_[kMoves];
};

}  // namespace dael::cuda
