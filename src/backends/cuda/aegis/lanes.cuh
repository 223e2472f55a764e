// SPDX-License-Identifier: Apache-2.0
// The states of AEGIS in the lanes of a warp: a message has one state, or two or four of
// AEGIS-128X, and a state's blocks lie in one lane or in equal shares in two, four or eight
// neighbours.
#pragma once

#include "backends/cuda/aegis/work.hpp"
#include "backends/cuda/memory_access.cuh"
#include "backends/cuda/warp_values.cuh"

namespace dael::cuda {

using kernels::kLanes;

// Where the tables begin: an address in shared memory that is known when compiling, behind what the
// system has there, so that one PRMT and a constant are the whole address of a lookup.
inline constexpr std::uint32_t kAegisTables = shapes::kAegisTables;

#ifdef __CUDA_ARCH__
// Four tables there. The loads are not volatile: tables do not change once they are filled, and
// every address depends on a value that was made behind the barrier.
class FixedTables {
  public:
    __device__ __forceinline__ explicit FixedTables(std::uint32_t lane) : lane4_(lane * 4) {
        asm volatile("mov.u32 %0, %0;" : "+r"(lane4_)::"memory");
    }
    __device__ __forceinline__ std::uint32_t column(std::uint32_t a, std::uint32_t b,
                                                    std::uint32_t c, std::uint32_t d,
                                                    std::uint32_t key) const {
        const std::uint32_t t = kernels::xor3(lookup<0>(a), lookup<1>(b), lookup<2>(c));
        return kernels::xor3(t, lookup<3>(d), key);
    }

  private:
    template <std::uint32_t k>
    __device__ __forceinline__ std::uint32_t lookup(std::uint32_t word) const {
        std::uint32_t value;
        asm("ld.shared.u32 %0, [%1+%2];"
            : "=r"(value)
            : "r"(__byte_perm(word, lane4_, 0x7604u | k << 4)),
              "n"(kAegisTables + (k >> 1) * 65536 + (k & 1) * 128));
        return value;
    }
    std::uint32_t lane4_;
};
#else
class FixedTables : public kernels::Tables<4, false> {
  public:
    explicit FixedTables(std::uint32_t lane)
        : kernels::Tables<4, false>(table_image + kAegisTables, lane) {}
};
#endif

// A form of the kernels. `tLanes`: lanes of a state. `tStaged`: lines of memory by way of shared
// memory (lines.cuh). `tTables`: 4, or 1 where there is less shared memory or little to do.
template <bool t256, std::uint32_t tLanes, std::uint32_t tDegree, std::uint32_t tThreads,
          bool tStaged = false, int tTables = 4>
struct AegisForm {
    static constexpr bool k256 = t256, kStaged = tStaged;
    static constexpr std::uint32_t kLanesOf = tLanes, kDegree = tDegree, kThreads = tThreads;
    static constexpr int kTables = tTables;
    static constexpr std::uint32_t kState = k256 ? 6 : 8;        // blocks
    static constexpr std::uint32_t kBlocks = kState / tLanes;    // of it, in a lane
    static constexpr std::uint32_t kGroup = tLanes * tDegree;    // lanes of a message
    static constexpr std::uint32_t kMessages = kLanes / kGroup;  // of a warp
    static constexpr std::uint32_t kRate = k256 ? 1 : 2;         // blocks that a state takes a step
    static constexpr std::uint32_t kStep = 16 * kRate * tDegree;  // bytes
    static constexpr bool kBoth = kRate == 2 && tLanes == 1;      // a lane has both blocks of one
    static constexpr std::uint32_t kStageStride = tLanes == 1 ? 144 : 160;
    static_assert(k256 ? tLanes == 1 && tDegree == 1 : kState % tLanes == 0);
    static constexpr std::uint32_t kRows =
        tStaged ? tThreads / kLanes * kMessages * kStageStride : 0;
    static_assert(kRows <= shapes::kAegisRows);
    static_assert(!tStaged || (tLanes <= 2 && tDegree == 1 && tTables == 4));
    using Tables = std::conditional_t<tTables == 4, FixedTables, kernels::Tables<tTables, false>>;

    static constexpr Shape shape() { return shapes::aegis(tThreads, tTables, kRows); }
};

template <class F>
struct AegisState {
    static constexpr std::uint32_t kLanesOf = F::kLanesOf, kDegree = F::kDegree, N = F::kBlocks;

    __device__ explicit AegisState(const typename F::Tables& its_tables) : tables(its_tables) {
        lane = threadIdx.x % kLanes;
        j = lane % kLanesOf;
        d = lane / kLanesOf % kDegree;
    }

    __device__ __forceinline__ Words4 round(const Words4& v, const Words4& k = {}) const {
        return kernels::aes_round(tables, v, k);
    }

    // What the state's lane j + `distance` offers.
    __device__ __forceinline__ std::uint32_t from(std::uint32_t v, std::uint32_t distance) const {
        if constexpr (kLanesOf == 1) return v;
        if (distance % kLanesOf == kLanesOf / 2)
            return __shfl_xor_sync(~0u, v, static_cast<int>(kLanesOf / 2));
        return __shfl_sync(~0u, v, (lane & ~(kLanesOf - 1)) | ((lane + distance) & (kLanesOf - 1)));
    }
    __device__ __forceinline__ Words4 from(const Words4& v, std::uint32_t distance) const {
        return {from(v.x, distance), from(v.y, distance), from(v.z, distance), from(v.w, distance)};
    }

    // Whether a block of the message is this lane's in a step, and which of the state's two; with
    // one lane it has both.
    __device__ __forceinline__ bool owns() const {
        return kLanesOf <= 2 || j % (kLanesOf / 2) == 0;
    }
    __device__ __forceinline__ std::uint32_t which() const {
        return kLanesOf == 1 ? 0 : j / (kLanesOf / 2);
    }
    // Where its first block lies in a step's bytes.
    __device__ __forceinline__ std::uint32_t place() const {
        return which() * (F::kStep / F::kRate) + 16 * d;
    }

    // Update(): `m` in lanes that own a block, zeros in the others; `m1` where a lane has both.
    __device__ __forceinline__ void update(const Words4& m, const Words4& m1) {
        if constexpr (kLanesOf == 1) {
            kernels::aegis_update(tables, s, m, m1);
        } else {
            const Words4 last = from(round(s[N - 1]), kLanesOf - 1);
#pragma unroll
            for (std::uint32_t i = N - 1; i != 0; --i) s[i] = round(s[i - 1], s[i]);
            s[0] = kernels::xor3(last, s[0], m);
        }
    }

    // The same in the messages that go on; the others' states stay.
    __device__ __forceinline__ void update_if(bool goes_on, const Words4& m, const Words4& m1) {
        if constexpr (kLanesOf == 1) {
            if (goes_on) update(m, m1);
        } else {
            AegisState after = *this;
            after.update(m, m1);
#pragma unroll
            for (std::uint32_t i = 0; i < N; ++i) s[i] = choose(goes_on, after.s[i], s[i]);
        }
    }

    // z0 or z1, in the lanes that own a block; both where there is one lane.
    __device__ __forceinline__ void keystream(Words4& z, Words4& z1) const {
        if constexpr (kLanesOf == 1) {
            kernels::aegis_keystream(s, z, z1);
        } else if constexpr (kLanesOf == 2) {  // S1 ^ S6 ^ (S2 & S3); S5 ^ S2 ^ (S6 & S7)
            z = kernels::and_xor(s[2], s[3], s[1]) ^ from(s[2], 1);
        } else if constexpr (kLanesOf == 4) {
            z = kernels::xor3(s[1], from(s[0] & s[1], 1), from(s[0], 3));
        } else {
            z = kernels::and_xor(from(s[0], 2), from(s[0], 3), from(s[0], 1)) ^ from(s[0], 6);
        }
    }

    // Init(), all but the AAD.
    __device__ __forceinline__ void begin(const Words4 (&key)[2], const Words4 (&nonce)[2]) {
#pragma unroll
        for (std::uint32_t i = 0; i < N; ++i) {
            if constexpr (F::k256)
                s[i] = kernels::aegis_first_256(i, key, nonce);
            else
                s[i] = kernels::aegis_first_128(j * N + i, key[0], nonce[0]);
        }
        if constexpr (F::k256) {
#pragma unroll 1
            for (std::uint32_t i = 0; i < kernels::kAegisBegin256; ++i)
                update(kernels::aegis_begin_256(i, key, nonce), {});
        } else {
            constexpr bool kShort = kLanesOf == 1 && kDegree == 1;
            if constexpr (kShort) kernels::aegis_third_128(tables, s, key[0], nonce[0]);
            const std::uint32_t context = kernels::aegis_context(d, kDegree);
            const Words4 m = choose(owns(), choose(which() != 0, key[0], nonce[0]), {});
#pragma unroll 1
            for (std::uint32_t i = kShort ? 3 : 0; i < kernels::kAegisBegin128; ++i) {
                if constexpr (kDegree > 1) {  // to S3 and S7
                    if (kLanesOf == 1) s[N / 2 - 1].x ^= context;
                    if (kLanesOf <= 2 || j % (kLanesOf / 2) == kLanesOf / 2 - 1)
                        s[N - 1].x ^= context;
                }
                update(m, key[0]);
            }
        }
    }

    // Finalize(): every lane of the message has the tag, of 16 bytes or of 32.
    __device__ __forceinline__ void end(const Words4& lengths, std::uint32_t tag_size,
                                        Words4 (&tag)[2]) {
        // S2, of AEGIS-256 S3.
        Words4 t = kLanesOf >= 4 ? s[0] : s[(F::k256 ? 3 : 2) % N];
        if constexpr (kLanesOf > 1) t = shuffle(t, (lane & ~(kLanesOf - 1)) | (2 / N));
        t = t ^ lengths;
        const Words4 m = choose(owns(), t, {});
#pragma unroll 1
        for (std::uint32_t i = 0; i < kernels::kAegisEnd; ++i) update(m, t);
        tag[0] = tag[1] = {};
#pragma unroll
        for (std::uint32_t i = 0; i < N; ++i) {
            const std::uint32_t block = j * N + i;
            tag[0] = tag[0] ^ choose(kernels::aegis_in_first<F::kState>(block, tag_size), s[i], {});
            tag[1] =
                tag[1] ^ choose(kernels::aegis_in_second<F::kState>(block, tag_size), s[i], {});
        }
#pragma unroll
        for (std::uint32_t distance = 1; distance < F::kGroup; distance *= 2)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                tag[half] = tag[half] ^ shuffle(tag[half], lane ^ distance);
    }

    const typename F::Tables tables;
    std::uint32_t lane, j, d;  // j: which of the state's lanes; d: which of the message's states
    Words4 s[N];
};

}  // namespace dael::cuda
