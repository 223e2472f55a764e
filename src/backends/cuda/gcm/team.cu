// SPDX-License-Identifier: Apache-2.0
// A few messages whose list is a parameter of the kernel: a thread block takes one from its counter
// to its tag. It is made to be done soon rather than to do much: what comes from far is asked for
// before the table is filled, a ninth warp makes E(J0) and the lengths' product while eight encrypt
// and hash, and the table is the smallest.
//
// Opening hashes first, and decrypts only what it found authentic.
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/tag.cuh"
#include "kernels/gcm_team.hpp"

namespace dael::cuda {
namespace {

using kernels::kLanes;
using kernels::kTeamWarps;
using kernels::TeamRows;
using TeamTables = kernels::Tables<1, false>;

constexpr std::uint32_t kThreads = shapes::gcm_team(0).threads;

// What a thread block shares beside the table.
template <std::uint32_t kAad>
struct alignas(16) TeamShared {
    std::uint32_t keys[shapes::kWarpKeys / 4];
    Words4 sums[kTeamWarps];
    std::uint32_t aad[kAad / 4];
    std::uint32_t authentic[4];
};

// kernels::crypt_masked with its rounds in a short loop: each is used once or twice, and to fetch
// their code takes longer than to count them.
template <int kRounds>
__device__ __forceinline__ Words4 encrypt(const TeamTables& tables, const RoundKeys& keys,
                                          const Words4& block, const Words4& mask) {
    const Words4 first{keys.w[0], keys.w[1], keys.w[2], keys.w[3]};
    return kernels::finish_masked<kRounds, 1, 2>(tables, keys, block ^ first, mask);
}

// A message as one of the eight warps' threads sees it.
template <int kRounds>
class Team {
  public:
    __device__ Team(const Message& message, const TeamRows& rows)
        : message_(message), rows_(rows) {}

    // This thread's block of a row, AAD or data, zeros after its end; zeros where it has none.
    __device__ Words4 load(std::uint32_t row) const {
        if (const int size = rows_.aad_here(row); size != 0)
            return load_part(message_.aad + rows_.aad_block(row) * 16, 0, size);
        const std::int32_t block = rows_.data_block(row);
        return block < 0 ? Words4{} : load_part(message_.in + block * 16, 0, data_size(block));
    }

    // The sum of this thread's blocks, of which it has the first; sealing encrypts the data on the
    // way.
    __device__ Words4 hash(const TeamTables& tables, const RoundKeys& keys, const Words4& first,
                           const Words4& h256, bool sealing) const {
        Words4 sum{};
#pragma unroll 1
        for (std::uint32_t row = 0; row < rows_.count; ++row) {
            Words4 x = row == 0 ? first : load(row);
            if (const std::int32_t block = rows_.data_block(row); sealing && block >= 0) {
                const int size = data_size(block);
                x = first_bytes(crypt(tables, keys, block + 1, x), size);
                store_part(message_.out + block * 16, x, 0, size);
            }
            if (row != 0) sum = kernels::gf_multiply(sum, h256);
            sum = sum ^ x;
        }
        return sum;
    }

    __device__ void decrypt(const TeamTables& tables, const RoundKeys& keys) const {
#pragma unroll 1
        for (std::uint32_t row = 0; row < rows_.count; ++row)
            if (const std::int32_t block = rows_.data_block(row); block >= 0)
                store_part(message_.out + block * 16, crypt(tables, keys, block + 1, load(row)), 0,
                           data_size(block));
    }

    // Counter mode alone, from any byte of a block on, and without input if there is none.
    __device__ void stream(const TeamTables& tables, const RoundKeys& keys) const {
        const auto size = static_cast<std::int32_t>(message_.size);
#pragma unroll 1
        for (std::uint32_t row = 0; row < rows_.count; ++row) {
            const std::int32_t block = rows_.data_block(row);
            if (block < 0) continue;
            const std::int32_t at = block * 16 - message_.skip;
            const int from = at < 0 ? -at : 0, to = min(16, size - at);
            const Words4 x = message_.in ? load_part(message_.in + at, from, to) : Words4{};
            store_part(message_.out + at, crypt(tables, keys, block, x), from, to);
        }
    }

  private:
    __device__ int data_size(std::int32_t block) const {
        return min(16, static_cast<std::int32_t>(message_.size) - block * 16);
    }
    __device__ Words4 crypt(const TeamTables& tables, const RoundKeys& keys, std::int32_t block,
                            const Words4& x) const {
        const Words4 counter = add32(start_of(message_), static_cast<std::uint32_t>(block));
        return encrypt<kRounds>(tables, keys, counter, x);
    }

    const Message& message_;
    const TeamRows& rows_;
};

template <int kRounds, std::uint32_t kMax>
__global__ void __launch_bounds__(kThreads, 1)
    gcm_team(const __grid_constant__ GcmTeamWork<kMax> work) {
    constexpr std::uint32_t kAad = GcmList<kMax>::kAad;
    __shared__ TeamShared<kAad> shared;
    static_assert(sizeof shared == shapes::gcm_team(kAad).fixed);
    const std::uint32_t index = kMax == 1 ? 0 : blockIdx.x;
    if (!(work.ours >> index & 1)) return;
    const std::uint32_t thread = threadIdx.x, warp = thread / kLanes, lane = thread % kLanes;

    Message m = work.list.messages[index];
    const bool aad_travels = work.aad_words != 0;
    if (aad_travels)
        m.aad = reinterpret_cast<const unsigned char*>(shared.aad) +
                reinterpret_cast<std::uintptr_t>(m.aad);
    const GcmKey& key = work.keys[m.key];
    const bool helps = warp == kTeamWarps;  // with the tag, and has no blocks
    // The ninth warp's threads look as those of the first do, and use nothing of it.
    const TeamRows rows(m.aad_size, m.size + m.skip, helps ? lane : thread);
    const Team<kRounds> team(m, rows);

    // All that is in memory, before the table is filled. AAD that travels is not there yet.
    const std::uint32_t rounds = key.rounds;
    if (thread < sizeof(RoundKeys) / 4) shared.keys[thread] = key.encrypt.w[thread];
    const bool tag = work.tag_size != 0;
    const bool early = tag && !helps && rows.count != 0 && !(aad_travels && rows.aad_here(0) != 0);
    Words4 first = early ? team.load(0) : Words4{};
    Words4 owed{}, h256{}, h{}, given{};  // powers of H, and the tag that an opening compares
    if (tag && !helps) {
        owed = key.powers[kernels::team_lane_power(lane)];
        if (rows.count > 1) h256 = key.squares[kernels::kTeamSquare];
    } else if (tag) {
        h = key.powers[1];
        if (lane < kTeamWarps) owed = key.leaps[kernels::team_leap(lane)];
        if (work.opening) given = load_part(m.tag, 0, static_cast<int>(work.tag_size));
    }
    for (std::uint32_t i = thread; i < work.aad_words; i += kThreads)
        shared.aad[i] = work.list.aad[i];
    const auto tables = fill_tables<1, false>();  // which all threads wait for
    if (tag && !helps && !early && rows.count != 0) first = team.load(0);
    const auto& keys = reinterpret_cast<const RoundKeys&>(shared.keys);

    Code code = Code::ok;
    if (rounds != kRounds) {  // replaced by another size meanwhile, on a stream beside
        code = Code::internal;
    } else if (!tag) {
        if (!helps) team.stream(tables, keys);
    } else {
        const bool opening = work.opening != 0;
        Words4 mask{};  // E(J0) ^ lengths * H
        if (helps) {
            mask = kernels::crypt_masked<kRounds>(tables, keys, start_of(m),
                                                  kernels::gf_multiply(lengths_block(m), h));
        } else {
            const Words4 sum = team.hash(tables, keys, first, h256, !opening);
            const Words4 all = warp_sum(kernels::gf_multiply(sum, owed));
            if (lane == 0) shared.sums[warp] = all;
        }
        __syncthreads();
        if (helps) {
            const Words4 sum = lane < kTeamWarps ? shared.sums[lane] : Words4{};
            const Words4 made = warp_sum(kernels::gf_multiply(sum, owed)) ^ mask;
            const int size = static_cast<int>(work.tag_size);
            if (opening) {
                const Words4 wrong = first_bytes(made, size) ^ given;
                if ((wrong.x | wrong.y | wrong.z | wrong.w) != 0) code = Code::authentication;
                if (lane == 0) shared.authentic[0] = code == Code::ok;
            } else if (lane == 0) {
                store_part(m.tag, made, 0, size);
            }
        }
        if (opening) {
            __syncthreads();
            if (!helps && shared.authentic[0]) team.decrypt(tables, keys);
        }
    }
    if (helps && lane == 0 && work.results) work.results[index] = static_cast<std::uint32_t>(code);
    __syncthreads();
    wipe_shared<sizeof shared.keys + sizeof shared.sums, kThreads>(&shared, thread);
    if (thread == 0 && work.ended) atomicAdd(work.ended, 1ull);
}

// The list, its AAD and its units of work, and results that nobody has come to yet, to where the
// kernels of long messages find them.
__global__ void __launch_bounds__(shapes::gcm_place().threads)
    gcm_place(const __grid_constant__ GcmPlaceWork work) {
    const auto copy = [](auto* to, const auto* from, std::uint32_t bytes) {
        for (std::uint32_t i = threadIdx.x; i < bytes / 4; i += shapes::gcm_place().threads)
            reinterpret_cast<std::uint32_t*>(to)[i] =
                reinterpret_cast<const std::uint32_t*>(from)[i];
    };
    const GcmPlace& from = work.from;
    copy(work.to->messages, from.messages, work.count * sizeof(Message));
    copy(work.to->aad, from.aad, work.aad_words * 4);
    copy(work.to->aad_starts, from.aad_starts, (work.count + 1) * 8);
    copy(work.to->data_starts, from.data_starts, (work.count + 1) * 8);
    copy(work.to->group_starts, from.group_starts, (work.count + 1) * 8);
    copy(work.to->results, from.results, work.count * 4);
}

template <std::uint32_t kMax>
Kernel team_kernel(int rounds) {
    return find_kernel(rounds, 1, [](auto r, auto) {
        return Kernel{reinterpret_cast<const void*>(&gcm_team<r.value, kMax>),
                      shapes::gcm_team(GcmList<kMax>::kAad)};
    });
}

}  // namespace

Kernel gcm_team_kernel(int rounds, bool one) {
    return one ? team_kernel<1>(rounds) : team_kernel<kMaxLaunched>(rounds);
}

Kernel gcm_place_kernel() {
    return {reinterpret_cast<const void*>(&gcm_place), shapes::gcm_place()};
}

}  // namespace dael::cuda
