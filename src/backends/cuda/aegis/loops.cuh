// SPDX-License-Identifier: Apache-2.0
// The ways of AEGIS's messages between memory and a warp's lanes.
//
// AegisLines and AegisBlocks are the fast ones: all messages of the warp at multiples of 16, bodies
// of several steps that every one of them has, what comes next asked for before it is needed.
// aegis_steps() takes what is left, and anything else: any address, any size, AAD.
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

__device__ __forceinline__ const unsigned char* shuffle_pointer(const void* p, std::uint32_t lane) {
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    const std::uint64_t low = __shfl_sync(~0u, static_cast<std::uint32_t>(at), lane),
                        high = __shfl_sync(~0u, static_cast<std::uint32_t>(at >> 32), lane);
    return reinterpret_cast<const unsigned char*>(high << 32 | low);
}

// Lines of 128 bytes: eight lanes load and store a message's line at once, and between the two a
// message's own lanes have it in shared memory, a row each, so far apart that lanes that read side
// by side meet no bank twice.
template <class F, bool kOpen>
class AegisLines {
  public:
    static constexpr std::uint32_t kBytes = 128;

    // Whether the warp's messages lie near enough to each other. The whole warp asks.
    __device__ static bool can(const unsigned char* in, const unsigned char* out) {
        constexpr std::int64_t kReach = std::int64_t{1} << 35;
        const auto near = [](const unsigned char* p) {
            const auto by =
                static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) -
                                          reinterpret_cast<std::uintptr_t>(shuffle_pointer(p, 0)));
            return by > -kReach && by < kReach;
        };
        return __ballot_sync(~0u, near(in) && near(out)) == ~0u;
    }

    // `owners`: lanes whose messages are written. Asks for the first lines, which may come before
    // the state is ready.
    __device__ __forceinline__ AegisLines(const AegisState<F>& state, const unsigned char* in,
                                          unsigned char* out, std::uint32_t owners,
                                          std::uint64_t count)
        : in_(shuffle_pointer(in, 0)),
          out_(const_cast<unsigned char*>(shuffle_pointer(out, 0))),
          lane_(state.lane),
          stage_(kAegisTables + 4 * shapes::kTable +
                 uniform(threadIdx.x / kLanes) * F::kMessages * F::kStageStride) {
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

    __device__ __forceinline__ void run(AegisState<F>& state, std::uint64_t count) {
        constexpr std::uint32_t kSteps = kBytes / F::kStep;
        constexpr bool kTwo = F::kRate == 2 && F::kLanesOf == 1;
        const unsigned char* in = in_;
        unsigned char* out = out_;
        const std::uint32_t own =
            stage_ + lane_ / F::kLanesOf * F::kStageStride + state.which() * 16;
#pragma unroll 1
        for (std::uint64_t left = count; left != 0; --left) {
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

    __device__ __forceinline__ AegisBlocks(const AegisState<F>& state, const unsigned char* in,
                                           unsigned char* out, std::uint32_t owners,
                                           std::uint64_t count)
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

    __device__ __forceinline__ void run(AegisState<F>& state, std::uint64_t count) {
        const unsigned char* in = in_;
        unsigned char* out = out_;
#pragma unroll 1
        for (std::uint64_t left = count; left != 0; --left) {
            // The last body's blocks are asked for again rather than what is behind them.
            const unsigned char* const next = in + (left != 1 ? kBytes : 0);
            if constexpr (kAhead) {
                constexpr std::uint32_t kLines = (kBytes + 127) / 128, kDistance = 2048;
                const std::uint32_t line = kDistance + state.lane % F::kGroup * 128;
                if (state.lane % F::kGroup < kLines && line < left * kBytes) ask_ahead(in + line);
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
            m_[i] = load_line(next + at(i));
            if constexpr (kEach == 2) m_[i + 1] = load_line(next + at(i + 1));
            store(out + at(i), o);
            if constexpr (kEach == 2) store(out + at(i + 1), o1);
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

// The first `size` (1 to 16) bytes of a block, zeros after them.
__device__ __forceinline__ Words4 load_some(const unsigned char* p, int size) {
    if (size == 16 && aligned16(p, p)) return kernels::load_aligned(p);
    return load_part(p, 0, size);
}
__device__ __forceinline__ void store_some(unsigned char* p, const Words4& v, int size) {
    if (size == 16 && aligned16(p, p))
        kernels::store_aligned(p, v);
    else
        store_part(p, v, 0, size);
}

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
    const auto have = [&](std::uint64_t at) {
        return !state.owns() || at >= size ? 0 : size - at < 16 ? static_cast<int>(size - at) : 16;
    };
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
        if constexpr (F::kLanesOf == 1) {
            if (at < size) state.update(m, m1);
        } else {
            AegisState<F> after = state;
            after.update(m, m1);
#pragma unroll
            for (std::uint32_t i = 0; i < F::kBlocks; ++i)
                state.s[i] = choose(at < size, after.s[i], state.s[i]);
        }
    }
}

}  // namespace dael::cuda
