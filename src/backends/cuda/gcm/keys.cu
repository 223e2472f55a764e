// SPDX-License-Identifier: Apache-2.0
// Makes keys ready for GCM: H, its powers, and the matrices for the tensor cores.
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/math.cuh"
#include "backends/cuda/memory_access.cuh"
#include "kernels/gcm_key.hpp"

namespace dael::cuda {
namespace {

using kernels::kLanes;

constexpr std::uint32_t kThreads = kernels::kTileThreads;
constexpr std::uint32_t kPowers = 2 * kLanes + 2;  // beside the leaps of 32
// Products of four neighbouring squares: from H, from H^16 and from H^128 on.
constexpr std::uint32_t kParts = 3, kPartSize = 16;
constexpr std::uint32_t kColumnSquare = 7;  // H^128
static_assert(kThreads == 128 && kernels::kTileColumns == 1 << kColumnSquare);
static_assert(kPowers <= kThreads && 2 * kernels::kTeamWarps <= kPartSize && kSquares <= kThreads);
static_assert(kernels::kTileDepth < kPartSize);

__device__ const kernels::LeapRows leap_rows = kernels::make_leap_rows();

__device__ Words4 encrypt_zero(const kernels::Tables<1, false>& tables, const GcmKey& key) {
    const RoundKeys& keys = key.encrypt;
    Words4 state{keys.w[0], keys.w[1], keys.w[2], keys.w[3]};
    const int rounds = static_cast<int>(key.rounds);
#pragma unroll 1
    for (int r = 1; r < rounds; ++r) state = kernels::round<false>(tables, keys, r, state);
    const std::uint32_t* last = keys.w + 4 * rounds;
    return kernels::last_round<false>(tables, state) ^
           Words4 { last[0], last[1], last[2], last[3] };
}

// In the stream's order: what was launched before reads the old key, what is launched after the
// new.
__global__ void gcm_key_replace(GcmKey* key, const __grid_constant__ KeyHead head) {
    static_assert(sizeof head / 4 == shapes::gcm_key_replace().threads);
    auto* const to = reinterpret_cast<std::uint32_t*>(static_cast<KeyHead*>(key));
    to[threadIdx.x] = reinterpret_cast<const std::uint32_t*>(&head)[threadIdx.x];
}

// What the threads of a block tell each other of a key.
struct KeyShared {
    Words4 squares[kernels::kFieldBits];  // H^(2^j)
    Words4 parts[kParts][kPartSize];      // H^m, H^16m, H^128m
    Words4 rest[2];                       // of the inverse, two factors
};
static_assert(sizeof(KeyShared) == shapes::kKeyShared);

// All squares, by one warp: from each to the one kLeapSquares on by the matrix for that, a lane for
// each of those, and then what is between, all lanes at once.
__device__ void make_squares(Words4* squares, const Words4& h, std::uint32_t lane) {
    constexpr std::uint32_t kLeaps = kernels::kFieldBits / kernels::kLeapSquares;
    static_assert(kLeaps <= kLanes);
    Words4 rows[4];
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i)
        rows[i] = kernels::load_aligned(
            reinterpret_cast<const unsigned char*>(leap_rows.data() + 4 * (kLanes * i + lane)));
    Words4 leap = h, mine = h;
#pragma unroll 1
    for (std::uint32_t i = 1; i < kLeaps; ++i) {
        const auto bits = [&](const Words4& row) {
            return __ballot_sync(~0u, kernels::leap_bit(row, leap));
        };
        leap = Words4{bits(rows[0]), bits(rows[1]), bits(rows[2]), bits(rows[3])};
        if (i == lane) mine = leap;
    }
#pragma unroll 1
    for (std::uint32_t j = 0; j < kernels::kLeapSquares; ++j) {
        if (lane < kLeaps) squares[kernels::kLeapSquares * lane + j] = mine;
        mine = kernels::gf_square(mine);
    }
}

// The product of those of four squares that the low bits of `which` ask for.
__device__ Words4 make_part(const Words4* squares, std::uint32_t which) {
    Words4 product = which & 1 ? squares[0] : kernels::gf_one();
#pragma unroll 1
    for (std::uint32_t j = 1; j < 4; ++j)
        product = kernels::gf_multiply(product, which >> j & 1 ? squares[j] : kernels::gf_one());
    return product;
}

// All squares but one multiply to the inverse of that one, since all together are a^(2^128 - 1).
// Here of kColumnSquare, by 64 threads; each warp leaves a factor.
__device__ void make_rest(const Words4* squares, Words4* rest, std::uint32_t thread) {
    const Words4 first = thread == kColumnSquare ? kernels::gf_one() : squares[thread];
    Words4 product = kernels::gf_multiply(first, squares[thread + 64]);
#pragma unroll 1
    for (int distance = 16; distance != 0; distance /= 2)
        product = kernels::gf_multiply(product, shuffle_xor(product, distance));
    if (thread % kLanes == 0) rest[thread / kLanes] = product;
}

// The matrices of a tile's blocks, a warp to 32 columns of one: each lane makes a column, and gets
// the words with the bits that it stands for.
__device__ void make_fragments(const KeyShared& shared, GcmMatrices& out, std::uint32_t warp,
                               std::uint32_t lane) {
    constexpr std::uint32_t kWarps = kThreads / kLanes;
#pragma unroll 1
    for (std::uint32_t i = warp; i < kernels::kTileDepth * 4; i += kWarps) {
        const std::uint32_t block = i / 4, word = i % 4;
        const Words4 factor = shared.parts[2][kernels::tile_power(block) / kernels::kTileColumns];
        const Words4 column = kernels::gf_times_basis(factor, 32 * word + lane);
        const std::uint32_t words[4] = {column.x, column.y, column.z, column.w};
#pragma unroll
        for (std::uint32_t w = 0; w < 4; ++w)
            out.fragments[kernels::fragment_place(block, 32 * w + lane, word)] =
                kernels::transpose_bits(words[w], lane, [](std::uint32_t value, int distance) {
                    return __shfl_xor_sync(~0u, value, distance);
                });
    }
}

// A block of threads to a key.
__global__ void __launch_bounds__(kThreads)
    gcm_key_setup(GcmKey* keys, GcmMatrices* matrices, std::uint32_t count) {
    auto& shared = *reinterpret_cast<KeyShared*>(table_image + shapes::kTable);
    const auto tables = fill_tables<1, false>();
    const std::uint32_t thread = threadIdx.x, warp = thread / kLanes, lane = thread % kLanes;
#pragma unroll 1
    for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
        GcmKey& key = keys[i];
        if (warp == 0) make_squares(shared.squares, encrypt_zero(tables, key), lane);
        __syncthreads();
        if (thread < kParts * kPartSize) {
            const std::uint32_t part = thread / kPartSize,
                                from = part == 2 ? kColumnSquare : 4 * part;
            shared.parts[part][thread % kPartSize] =
                make_part(shared.squares + from, thread % kPartSize);
        } else if (matrices && thread >= 64) {
            make_rest(shared.squares, shared.rest, thread - 64);
        }
        __syncthreads();
        const Words4 power = kernels::gf_multiply(shared.parts[0][thread % kPartSize],
                                                  shared.parts[1][thread / kPartSize]);
        if (thread < kSquares) key.squares[thread] = shared.squares[thread];
        if (thread < kPowers) key.powers[thread] = power;
        if (thread < kernels::kTeamWarps) key.leaps[thread] = shared.parts[1][2 * thread];
        if (matrices) {
            // H^-n = H^(128 - n) * H^-128.
            const Words4 inverse = kernels::gf_multiply(shared.rest[0], shared.rest[1]);
            const Words4 weight = kernels::gf_multiply(power, inverse);
            matrices[i].column_weights[(kThreads - thread) % kThreads] =
                thread == 0 ? kernels::gf_one() : weight;
            make_fragments(shared, matrices[i], warp, lane);
        }
        __syncthreads();  // the next key's squares
    }
    wipe_shared<sizeof shared, kThreads>(&shared, thread);
}

}  // namespace

Kernel gcm_key_replace_kernel() {
    return {reinterpret_cast<const void*>(&gcm_key_replace), shapes::gcm_key_replace()};
}

Kernel gcm_key_setup_kernel() {
    return {reinterpret_cast<const void*>(&gcm_key_setup), shapes::gcm_key_setup()};
}

}  // namespace dael::cuda
