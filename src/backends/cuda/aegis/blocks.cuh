// SPDX-License-Identifier: Apache-2.0
// Messages straight from memory to the lanes that take their blocks.
#pragma once

#include "backends/cuda/aegis/steps.cuh"

namespace dael::cuda {

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
                                                std::uint64_t from, std::uint64_t to, bool writes) {
        aegis_steps(state, in, out, from, to, size, kOpen, writes);
    }

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

}  // namespace dael::cuda
