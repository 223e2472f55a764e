// SPDX-License-Identifier: Apache-2.0
// The ways of AEGIS's messages between memory and a warp's lanes.
//
// AegisLines and AegisBlocks, in run(), are the fast ones: all messages of the warp at multiples of
// 16, bodies of several steps that every one of them has, what comes next asked for before it is
// needed. Their rest() takes what is left, and messages of any address and size; aegis_steps()
// takes AAD too.
#pragma once

#include "backends/cuda/aegis/lanes.cuh"

namespace dael::cuda {

// One of the two: whole blocks of global memory, which nothing else is taken for.
__device__ __forceinline__ Words4 load_line(const unsigned char* p) {
#ifdef __CUDA_ARCH__
    Words4 v;
    asm volatile("ld.global.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
#else
    return kernels::load_aligned(p);
#endif
}
__device__ __forceinline__ void store_line(unsigned char* p, const Words4& v) {
#ifdef __CUDA_ARCH__
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
#else
    kernels::store_aligned(p, v);
#endif
}

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

__device__ __forceinline__ std::uint64_t shuffle(std::uint64_t v, std::uint32_t lane) {
    const std::uint64_t low = __shfl_sync(~0u, static_cast<std::uint32_t>(v), lane),
                        high = __shfl_sync(~0u, static_cast<std::uint32_t>(v >> 32), lane);
    return high << 32 | low;
}
template <class T>
__device__ __forceinline__ T* shuffle(T* p, std::uint32_t lane) {
    return reinterpret_cast<T*>(shuffle(std::uint64_t{reinterpret_cast<std::uintptr_t>(p)}, lane));
}

// The first `size` (1 to 16) bytes of a block, zeros after them.
__device__ __forceinline__ Words4 load_some(const unsigned char* p, int size) {
    if (size == 16 && aligned16(p, p)) return load_line(p);
    return load_part(p, 0, size);
}
__device__ __forceinline__ void store_some(unsigned char* p, const Words4& v, int size) {
    if (size == 16 && aligned16(p, p))
        store_line(p, v);
    else
        store_part(p, v, 0, size);
}
// Of 16 bytes from byte `at` on, how many a message of `size` has.
__device__ __forceinline__ int bytes_at(std::uint64_t at, std::uint64_t size) {
    return at >= size ? 0 : size - at < 16 ? static_cast<int>(size - at) : 16;
}

// What a message's lanes need of its entry in the list, which is read once: six words of 16 bytes,
// for the entries of a warp lie apart, and each load of them costs as many lines as there are.
struct AegisJob {
    const unsigned char *in, *aad;
    unsigned char *out, *tag;
    std::uint64_t size, aad_size;
    std::uint32_t key, skip;
    Words4 nonce[2];

    __device__ __forceinline__ static std::uint64_t join(std::uint32_t low, std::uint32_t high) {
        return std::uint64_t{high} << 32 | low;
    }
    // word(i): word i of the entry.
    template <class Word>
    __device__ __forceinline__ static AegisJob of(bool rest, Word word) {
        const Words4 places = word(0), data = word(1), more = word(2), key = word(4);
        AegisJob job;
        job.in = reinterpret_cast<const unsigned char*>(join(places.x, places.y));
        job.out = reinterpret_cast<unsigned char*>(join(places.z, places.w));
        job.size = join(data.x, data.y);
        job.aad = reinterpret_cast<const unsigned char*>(join(data.z, data.w));
        job.aad_size = join(more.x, more.y);
        job.tag = reinterpret_cast<unsigned char*>(join(more.z, more.w));
        job.nonce[0] = word(3);
        job.key = key.x;
        job.skip = key.y & 0xff;
        job.nonce[1] = rest ? word(5) : Words4{};
        return job;
    }
};
static_assert(offsetof(Message, out) == 8 && offsetof(Message, size) == 16 &&
              offsetof(Message, aad) == 24 && offsetof(Message, aad_size) == 32 &&
              offsetof(Message, tag) == 40 && offsetof(Message, start) == 48 &&
              offsetof(Message, key) == 64 && offsetof(Message, skip) == 68 &&
              offsetof(Message, start_rest) == 80);

// The entry of a lane's own message; lists of others' may be aligned to no more than 8 bytes.
template <class F>
__device__ __forceinline__ AegisJob fetch_job(const Message* entry) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(entry);
    const bool aligned = aligned16(bytes, bytes);
    return AegisJob::of(F::k256, [&](std::uint32_t i) -> Words4 {
        if (aligned) return kernels::load_aligned(bytes + 16 * i);
        return load_part(bytes + 16 * i, 0, 16);
    });
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
        constexpr bool kTwo = F::kRate == 2 && F::kLanesOf == 1;
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
                const Words4 m = load_stage(at), m1 = kTwo ? load_stage(at + 16) : Words4{};
                Words4 z, z1{};
                state.keystream(z, z1);
                const Words4 o = m ^ z, o1 = kTwo ? m1 ^ z1 : Words4{};
                state.update(kOpen ? o : m, kOpen ? o1 : m1);
                store_stage(at, o);
                if constexpr (kTwo) store_stage(at + 16, o1);
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

    // Lines of any address and size, from byte `from` on up to the longest message's end, `to`.
    __device__ __forceinline__ static void rest(AegisState<F>& state, const unsigned char* in,
                                                unsigned char* out, std::uint64_t size,
                                                std::uint64_t from, std::uint64_t to, bool writes) {
        constexpr bool kTwo = F::kRate == 2 && F::kLanesOf == 1;
        const std::uint32_t lane = state.lane, rows = stage();
        const std::uint32_t own = rows + lane / F::kLanesOf * F::kStageStride + state.which() * 16;
        const auto row = [lane](std::uint32_t k) { return (4 * k + lane / 8) * F::kLanesOf; };
        const auto place = [lane, rows](std::uint32_t k) {
            return rows + (4 * k + lane / 8) * F::kStageStride + lane % 8 * 16;
        };
#pragma unroll 1
        for (std::uint64_t line = from; line < to; line += kBytes) {
            const std::uint64_t at = line + lane % 8 * 16;
            std::uint32_t parts = 0;  // words that are not whole, or not aligned
            Words4 words[kMoves];
#pragma unroll
            for (std::uint32_t k = 0; k < kMoves; ++k) {
                const unsigned char* const p = shuffle(in, row(k)) + at;
                const int have = bytes_at(at, shuffle(size, row(k)));
                const bool whole = have == 16 && aligned16(p, p);
                words[k] = {};
                if (whole) words[k] = load_line(p);
                parts |= (have != 0 && !whole ? 1u : 0u) << k;
            }
#pragma unroll
            for (std::uint32_t k = 0; k < kMoves; ++k) store_stage(place(k), words[k]);
#pragma unroll 1
            for (std::uint32_t k = 0; k < kMoves; ++k) {
                if (__ballot_sync(~0u, parts >> k & 1) == 0) continue;
                const unsigned char* const p = shuffle(in, row(k)) + at;
                const int have = bytes_at(at, shuffle(size, row(k)));
                if (parts >> k & 1) store_stage(place(k), load_part(p, 0, have));
            }
            __syncwarp();
#pragma unroll 1
            for (std::uint32_t step = 0; step < kBytes && line + step < to; step += F::kStep) {
                const std::uint64_t mine = line + step;
                Words4 m = load_stage(own + step),
                       m1 = kTwo ? load_stage(own + step + 16) : Words4{};
                Words4 z, z1{};
                state.keystream(z, z1);
                const Words4 o = m ^ z, o1 = kTwo ? m1 ^ z1 : Words4{};
                store_stage(own + step, o);
                if constexpr (kTwo) store_stage(own + step + 16, o1);
                if constexpr (kOpen) {
                    m = first_bytes(o, bytes_at(mine + state.which() * 16, size));
                    if constexpr (kTwo) m1 = first_bytes(o1, bytes_at(mine + 16, size));
                }
                state.update_if(mine < size, m, m1);
            }
            __syncwarp();
            parts = 0;
#pragma unroll
            for (std::uint32_t k = 0; k < kMoves; ++k) {
                unsigned char* const p = shuffle(out, row(k)) + at;
                const std::uint64_t its_size = shuffle(writes ? size : std::uint64_t{0}, row(k));
                const int have = bytes_at(at, its_size);
                const bool whole = have == 16 && aligned16(p, p);
                if (whole) store_line(p, load_stage(place(k)));
                parts |= (have != 0 && !whole ? 1u : 0u) << k;
            }
#pragma unroll 1
            for (std::uint32_t k = 0; k < kMoves; ++k) {
                if (__ballot_sync(~0u, parts >> k & 1) == 0) continue;
                unsigned char* const p = shuffle(out, row(k)) + at;
                const int have = bytes_at(at, shuffle(size, row(k)));
                if (parts >> k & 1) store_part(p, load_stage(place(k)), 0, have);
            }
            __syncwarp();
        }
    }

  private:
    static constexpr std::uint32_t kMoves = 8 / F::kLanesOf;
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

// Blocks straight from memory to the lanes that take them.
//
// With four lanes or eight the state rotates: each step puts block r + 1 of the new state where
// block r was, A(S[r]) ^ S[r + 1], so that a lane looks up what it has, and what it gets of its
// neighbour comes meanwhile. After eight steps all is where it was, and every lane has taken as
// many of the message's blocks.
template <class F, bool kOpen>
class AegisBlocks {
    static constexpr std::uint32_t kLanesOf = F::kLanesOf;
    static constexpr std::uint32_t kSteps = kLanesOf <= 2 ? 4 : 8;

  public:
    static constexpr std::uint32_t kBytes = kSteps * F::kStep;

    __device__ static bool can(const unsigned char*, const unsigned char*) { return true; }

    __device__ __forceinline__ static void rest(AegisState<F>& state, const unsigned char* in,
                                                unsigned char* out, std::uint64_t size,
                                                std::uint64_t from, std::uint64_t to, bool writes);

    __device__ __forceinline__ AegisBlocks(const AegisState<F>& state, const unsigned char* in,
                                           unsigned char* out, std::uint32_t owners,
                                           std::uint32_t count)
        : writes_((owners >> state.lane & 1) != 0) {
        constexpr std::uint32_t kStep = F::kStep, kHalf = kStep / 2;
        const std::uint32_t j = state.j;
        std::uint32_t base = 16 * state.d;
        if constexpr (kLanesOf == 2) base += j * kHalf;
        if constexpr (kLanesOf == 4) {
            // Of four steps odd lanes take the first two's blocks, even lanes the others'.
            offset_[0] = (j % 2 ? 0 : 2) * kStep + ((j >> 1) ^ 1) * kHalf;
            offset_[1] = (j % 2 ? 0 : 2) * kStep + (j >> 1) * kHalf + 4 * kStep;
        }
        if constexpr (kLanesOf == 8) {
            const std::uint32_t u = (kOpen ? 3 - j : 0 - j) % 4, second = (j + u + kOpen) / 4 % 2;
            offset_[0] = u * kStep + second * kHalf;
            offset_[1] = u * kStep + (second ^ 1) * kHalf + 4 * kStep;
        }
        in_ = in + base;
        out_ = out + base;
        if (count != 0)
#pragma unroll
            for (std::uint32_t i = 0; i < kHeld; ++i) m_[i] = load_line(in_ + at(i));
    }

    __device__ __forceinline__ void run(AegisState<F>& state, std::uint32_t count) {
        const unsigned char* in = in_;
        unsigned char* out = out_;
#pragma unroll 1
        for (std::uint32_t left = count; left != 0; --left) {
            // The last body's blocks are asked for again rather than what is behind them.
            const unsigned char* const next = in + (left != 1 ? kBytes : 0);
            if constexpr (kAhead) {
                constexpr std::uint32_t kLines = (kBytes + 127) / 128, kDistance = 2048;
                const std::uint32_t line = kDistance + state.lane % F::kGroup * 128;
                if (state.lane % F::kGroup < kLines && line / kBytes < left) ask_ahead(in + line);
            }
            if constexpr (kLanesOf <= 2)
                rows(state, next, out);
            else if constexpr (kLanesOf == 4)
                pairs(state, next, out);
            else
                singles(state, next, out);
            in = next;
            out += kBytes;
        }
    }

  private:
    static constexpr bool kAhead = kLanesOf >= 4;
    static constexpr std::uint32_t kEach = kLanesOf == 1 ? F::kRate : 1;  // blocks a step
    static constexpr std::uint32_t kHeld = kLanesOf <= 2 ? kSteps * kEach : kLanesOf == 4 ? 4 : 2;

    // Where block i of those that a lane has in a body lies.
    __device__ __forceinline__ std::uint32_t at(std::uint32_t i) const {
        if constexpr (kLanesOf <= 2)
            return i / kEach * F::kStep + i % kEach * (F::kStep / F::kRate);
        if constexpr (kLanesOf == 4) return offset_[i / 2] + i % 2 * F::kStep;
        return offset_[i % 2];
    }
    __device__ __forceinline__ void store(unsigned char* p, const Words4& v) const {
        if (writes_) store_line(p, v);
    }

    __device__ __forceinline__ void rows(AegisState<F>& state, const unsigned char* next,
                                         unsigned char* out) {
#pragma unroll
        for (std::uint32_t i = 0; i < kHeld; i += kEach) {
            Words4 z, z1{};
            state.keystream(z, z1);
            const Words4 o = m_[i] ^ z, o1 = m_[i + kEach - 1] ^ z1;
            const Words4 x = kOpen ? o : m_[i], x1 = kOpen ? o1 : m_[i + kEach - 1];
            // What is no longer needed frees its registers for what comes: sealing, the output
            // first; opening, the input. The other way round is up to a quarter slower.
            const auto put = [&] {
                store(out + at(i), o);
                if constexpr (kEach == 2) store(out + at(i + 1), o1);
            };
            if constexpr (!kOpen) put();
            m_[i] = load_line(next + at(i));
            if constexpr (kEach == 2) m_[i + 1] = load_line(next + at(i + 1));
            if constexpr (kOpen) put();
            state.update(x, x1);
        }
    }

    __device__ __forceinline__ void pairs(AegisState<F>& state, const unsigned char* next,
                                          unsigned char* out) {
        const bool odd = state.j % 2 != 0;
#pragma unroll
        for (std::uint32_t q = 0; q < 2; ++q) {
            Words4 o[2] = {};
#pragma unroll
            for (std::uint32_t u = 0; u < 4; ++u) {
                const Words4 a = state.s[0], b = state.s[1 % F::kBlocks], n = state.from(a, 1);
                const bool mine = u < 2 ? odd : !odd;
                const Words4 z = u % 2 == 0
                                     ? kernels::xor3(a, state.from(b, 1), state.from(a & b, 2))
                                     : kernels::xor3(n, state.from(b, 3), state.from(b & n, 1));
                const Words4 held = m_[2 * q + u % 2], x = held ^ z;
                o[u % 2] = choose(mine, x, o[u % 2]);
                const Words4 absorbed = choose(mine, kOpen ? x : held, {});
                state.s[0] = state.round(a, u % 2 == 0 ? b : b ^ absorbed);
                state.s[1 % F::kBlocks] = state.round(b, u % 2 == 0 ? n ^ absorbed : n);
            }
#pragma unroll
            for (std::uint32_t k = 0; k < 2; ++k) {
                m_[2 * q + k] = load_line(next + at(2 * q + k));
                store(out + at(2 * q + k), o[k]);
            }
        }
    }

    // Sealing, the lane of block 0 or 4 adds the message to what it hands on; opening, the lane
    // that makes the next block 0 or 4 does.
    __device__ __forceinline__ void singles(AegisState<F>& state, const unsigned char* next,
                                            unsigned char* out) {
#pragma unroll
        for (std::uint32_t q = 0; q < 2; ++q) {
            Words4 o{};
#pragma unroll
            for (std::uint32_t u = 0; u < 4; ++u) {
                const Words4 s = state.s[0], held = m_[q];
                const bool mine = (state.j + u) % 4 == (kOpen ? 3 : 0);
                if constexpr (!kOpen) {
                    const Words4 n = state.from(s ^ choose(mine, held, {}), 1);
                    const Words4 z = kernels::xor3(n, state.from(s & n, 2), state.from(s, 6));
                    o = choose(mine, held ^ z, o);
                    state.s[0] = state.round(s, n);
                } else {
                    const Words4 n = state.from(s, 1);
                    const Words4 z =
                        kernels::xor3(state.from(s, 2), state.from(s & n, 3), state.from(s, 7));
                    const Words4 x = held ^ z;
                    o = choose(mine, x, o);
                    state.s[0] = state.round(s, n ^ choose(mine, x, {}));
                }
            }
            m_[q] = load_line(next + at(q));
            store(out + at(q), o);
        }
    }

    const bool writes_;
    const unsigned char* in_;
    unsigned char* out_;
    std::uint32_t offset_[2] = {};
    Words4 m_[kHeld];
};

template <class F, bool kOpen>
using AegisFast = std::conditional_t<F::kStaged, AegisLines<F, kOpen>, AegisBlocks<F, kOpen>>;

// Bytes `from` to `size` of data, `size` being this lane's message's, or of AAD, which has no
// output; a step at a time up to the longest of the warp's, which is `to`. What is past a message's
// end is zeros for its state (ZeroPad of RFC 10032), and steps after its last leave the state
// alone. `opens`: it is ciphertext. The whole warp calls it.
template <class F>
__device__ __forceinline__ void aegis_steps(AegisState<F>& state, const unsigned char* in,
                                            unsigned char* out, std::uint64_t from,
                                            std::uint64_t to, std::uint64_t size, bool opens,
                                            bool writes) {
    constexpr bool kTwo = F::kRate == 2 && F::kLanesOf == 1;
    const auto have = [&](std::uint64_t at) { return state.owns() ? bytes_at(at, size) : 0; };
#pragma unroll 1
    for (std::uint64_t at = from; at < to; at += F::kStep) {
        const std::uint64_t first = at + state.place(), second = first + F::kStep / 2;
        const int n = have(first), n1 = kTwo ? have(second) : 0;
        Words4 m{}, m1{}, z, z1{};
        if (n != 0) m = load_some(in + first, n);
        if (n1 != 0) m1 = load_some(in + second, n1);
        state.keystream(z, z1);
        const Words4 o = m ^ z, o1 = m1 ^ z1;
        if (writes && n != 0) store_some(out + first, o, n);
        if (writes && n1 != 0) store_some(out + second, o1, n1);
        if (opens) {
            m = first_bytes(o, n);
            m1 = first_bytes(o1, n1);
        }
        state.update_if(at < size, m, m1);
    }
}

template <class F, bool kOpen>
__device__ __forceinline__ void AegisBlocks<F, kOpen>::rest(AegisState<F>& state,
                                                            const unsigned char* in,
                                                            unsigned char* out, std::uint64_t size,
                                                            std::uint64_t from, std::uint64_t to,
                                                            bool writes) {
    aegis_steps(state, in, out, from, to, size, kOpen, writes);
}

}  // namespace dael::cuda
