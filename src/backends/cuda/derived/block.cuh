// SPDX-License-Identifier: Apache-2.0
// Messages of XAES-256-GCM and AES-GCM-SIV by a thread block each: long ones, and those of a list
// that travels with its launch. AAD, data and the block of sizes are hashed as one sequence that
// ends at the last thread: on tensor cores, or by a thread for every block and multiplications.
#pragma once

#include "backends/cuda/derived/eight.cuh"
#include "backends/cuda/derived/rows.cuh"

namespace dael::cuda {

struct BlockScratch {
    Words4 h, mask, tag;
    Words4 powers[kLanes], leap;  // what lanes owe, the last one's first; what warps do
    Words4 sums[16];              // of a warp each
    std::uint32_t pending[16], authentic, unused[3];
};
static_assert(sizeof(BlockScratch) <= shapes::kDerivedScratch);

// Where a block of the sequence is, counted from its end on.
template <bool kSiv>
struct Sequence {
    __device__ __forceinline__ Sequence(const Message& m, const unsigned char* its_data)
        : message(m),
          data(its_data),
          aad_blocks(blocks_of(m.aad_size)),
          data_blocks(blocks_of(m.size)),
          aligned(aligned16(its_data, its_data)) {}
    __device__ __forceinline__ std::uint64_t count() const { return aad_blocks + data_blocks + 1; }
    // Block `i` as it lies in memory; zeros for i < 0.
    __device__ __forceinline__ Words4 at(std::int64_t i) const {
        const std::int64_t block = i - static_cast<std::int64_t>(aad_blocks);
        const std::uint64_t from = static_cast<std::uint64_t>(block) * 16;
        if (block >= 0 && aligned && from + 16 <= message.size) return load_global(data + from);
        return edge(i, block);
    }
    const Message& message;
    const unsigned char* const data;
    const std::uint64_t aad_blocks, data_blocks;
    const bool aligned;

  private:
    __device__ __forceinline__ Words4 edge(std::int64_t i, std::int64_t block) const {
        if (i < 0) return {};
        const std::uint64_t from = static_cast<std::uint64_t>(block < 0 ? i : block) * 16;
        // Which may have come along with the launch, and lie in shared memory.
        if (block < 0) return load_part(message.aad + from, 0, bytes_of(message.aad_size, from));
        if (from >= message.size) return hashed<kSiv>(lengths_of<kSiv>(message));
        return load_bytes(data + from, bytes_of(message.size, from));
    }
};

template <class F>
class Block {
  public:
    static constexpr std::uint32_t kThreads = F::kThreads, kWarps = F::kWarps;
    // On tensor cores; and of how many warps there are sums then.
    static constexpr bool kRows = kHasRows && F::kTables == 4 && kThreads == 512;
    static constexpr std::uint32_t kSums = kRows ? 8 : kWarps;

    __device__ __forceinline__ Block(const DerivedBatch& batch, Deriver<F>& deriver)
        : batch_(batch),
          deriver_(deriver),
          keys_(warp_schedules(0)[0]),
          shared_(
              *reinterpret_cast<BlockScratch*>(table_image + kWarps * shapes::kDerivedSchedules)) {}

    // A valid message, by all threads.
    template <bool kOpen>
    __device__ __forceinline__ void run(const Message& m, std::uint32_t index) const {
        const std::uint32_t thread = threadIdx.x;
        __syncthreads();  // the one before is done
        if (thread < kLanes) derive(m);
        __syncthreads();
        const Words4 start = add32(kernels::xaes_j0(start_of(m), rest_of(m)), 1);
        const Sequence<F::kSiv> sequence(m, F::kSiv == kOpen ? m.out : m.in);
        if constexpr (!kOpen) {
            if constexpr (!F::kSiv) crypt(m, start, m.in);
            hash(sequence);
            if (thread < kLanes) {
                const Words4 tag = tag_of(m);
                if (thread == 0) store_bytes(m.tag, tag, 16);
                if (thread == 0) shared_.tag = tag;
            }
            if constexpr (F::kSiv) {
                __syncthreads();
                crypt(m, kernels::siv_counter(shared_.tag), m.in);
            }
            if (thread == 0) tell(index, Code::ok);
        } else {
            const Words4 given = load_bytes(m.tag, 16), counter = kernels::siv_counter(given);
            if constexpr (F::kSiv) crypt(m, counter, m.in);
            hash(sequence);
            if (thread < kLanes) {
                const Words4 wrong = tag_of(m) ^ given;
                if (thread == 0) shared_.authentic = (wrong.x | wrong.y | wrong.z | wrong.w) == 0;
            }
            __syncthreads();
            const bool authentic = shared_.authentic != 0;
            if constexpr (F::kSiv) {
                if (!authentic && m.in == m.out) crypt(m, counter, m.out);
                if (!authentic && m.in != m.out) wipe_blocks(m.out, m.size, thread, kThreads);
                if (!authentic) __threadfence();
                __syncthreads();
            } else if (authentic) {
                crypt(m, start, m.in);
            }
            if (thread == 0) tell(index, authentic ? Code::ok : Code::authentication);
        }
    }
    __device__ __forceinline__ void tell(std::uint32_t index, Code code) const {
        if (batch_.results) batch_.results[index] = static_cast<std::uint32_t>(code);
    }
    __device__ __forceinline__ BlockScratch& shared() const { return shared_; }

  private:
    // Keys and the first powers of H, by one warp.
    __device__ __forceinline__ void derive(const Message& m) const {
        const std::uint32_t lane = threadIdx.x;
        Words4 h, mask;
        deriver_.derive(batch_.keys[m.key], m.key, start_of(m), rest_of(m), h, mask);
        if (lane == 8) shared_.mask = mask;
        h = shuffle(h, 0);
        if (lane == 0) shared_.h = h;
        // H^(lane + 1), or of rows, which have four blocks each, H^(4 lane).
        Words4 power = kRows ? kernels::gf_one() : h,
               square = kRows ? kernels::gf_square(kernels::gf_square(h)) : h;
#pragma unroll 1
        for (std::uint32_t bit = 1; bit < kLanes; bit *= 2) {
            power = choose((lane & bit) != 0, kernels::gf_multiply(power, square), power);
            square = kernels::gf_square(square);
        }
        shared_.powers[lane] = power;
        if (lane == 0) shared_.leap = square;
    }

    // Each warp's sum.
    __device__ __forceinline__ void hash(const Sequence<F::kSiv>& sequence) const {
        const std::uint32_t warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
        __syncthreads();  // all data that it is of have been written
        if constexpr (kRows) {
            make_rows<F::kSiv>(shared_.h);
            hash_rows<F::kSiv>(sequence.count(), [&](std::int64_t i) { return sequence.at(i); });
            if (warp < kSums) close(row_state<F::kSiv>(threadIdx.x), warp, lane);
        } else {
            close(hash_blocks(sequence), warp, lane);
        }
        __syncthreads();
    }
    __device__ __forceinline__ void close(Words4 sum, std::uint32_t warp,
                                          std::uint32_t lane) const {
        sum = warp_sum(kernels::gf_multiply(sum, shared_.powers[kLanes - 1 - lane]));
        if (lane == 0) shared_.sums[warp] = sum;
    }

    // What a thread has of the message: steps with H^(threads), two in one sum of products.
    __device__ __forceinline__ Words4 hash_blocks(const Sequence<F::kSiv>& sequence) const {
        const std::uint32_t thread = threadIdx.x;
        Words4 h = shared_.h;
#pragma unroll 1
        for (std::uint32_t i = 1; i < kThreads; i *= 2) h = kernels::gf_square(h);
        const kernels::KaratsubaWords step[2] = {kernels::KaratsubaWords(kernels::gf_square(h)),
                                                 kernels::KaratsubaWords(h)};
        const std::uint64_t count = sequence.count(),
                            steps = (count + 2 * kThreads - 1) / (2 * kThreads);
        std::int64_t at = static_cast<std::int64_t>(thread + count) -
                          static_cast<std::int64_t>(steps * 2 * kThreads);
        Words4 sum{}, ahead[2] = {sequence.at(at), sequence.at(at + kThreads)};
#pragma unroll 1
        for (std::uint64_t i = 0; i < steps; ++i) {
            const Words4 x = hashed<F::kSiv>(ahead[0]), y = hashed<F::kSiv>(ahead[1]);
            at += 2 * kThreads;
            if (i + 1 < steps) {
                ahead[0] = sequence.at(at);
                ahead[1] = sequence.at(at + kThreads);
            }
            sum = y ^ kernels::gf_sum_of_products<2>(
                          {kernels::KaratsubaWords(sum), kernels::KaratsubaWords(x)}, step);
        }
        return sum;
    }

    // Of the warps' sums, each by what it owes; by one warp.
    __device__ __forceinline__ Words4 tag_of(const Message& m) const {
        const std::uint32_t lane = threadIdx.x, after = kSums - 1 - lane;
        Words4 sum = lane < kSums ? shared_.sums[lane] : Words4{}, square = shared_.leap;
#pragma unroll 1
        for (std::uint32_t bit = 1; bit < kSums; bit *= 2) {
            sum = choose((after & bit) != 0, kernels::gf_multiply(sum, square), sum);
            square = kernels::gf_square(square);
        }
        sum = warp_sum(sum);
        if constexpr (F::kSiv)
            return deriver_.encrypt(keys_,
                                    kernels::siv_tag_block(kernels::reversed(sum), start_of(m)));
        else
            return sum ^ shared_.mask;
    }

    __device__ __forceinline__ void crypt(const Message& m, const Words4& start,
                                          const unsigned char* in) const {
        crypt_blocks<F>(deriver_.tables(), keys_, start, in, m.out, m.size, threadIdx.x, kThreads);
    }

    const DerivedBatch& batch_;
    Deriver<F>& deriver_;
    const SharedKeys& keys_;
    BlockScratch& shared_;
};

// Of a batch, those that are not a quad's; a list that has not been ordered is searched for them.
template <class F, bool kOpen>
__global__ void __launch_bounds__(F::kThreads, 1)
    derived_block(const __grid_constant__ DerivedBatch batch) {
    let_the_next_begin();
    const auto tables = derived_tables<F>();
    wait_for_those_before();
    Deriver<F> deriver(tables, warp_schedules(0));
    const Block<F> block(batch, deriver);
    const std::uint32_t count = number_of(batch.number, batch.count);
    const auto index_of = [&](std::uint64_t place) {
        return batch.order ? batch.order[place] : static_cast<std::uint32_t>(place);
    };
#pragma unroll 1
    for (std::uint64_t first = blockIdx.x; first < count;
         first += std::uint64_t{gridDim.x} * F::kThreads) {
        const std::uint64_t place = first + std::uint64_t{threadIdx.x} * gridDim.x;
        bool ours = false;
        if (place < count) {
            const Message& m = batch.messages[index_of(place)];
            bool other = false;
            ours = standing<F>(batch, m, other) == Code::ok && is_long(batch, m);
            // Not ok until a launch of its key's size says so.
            if (ours && other && batch.reset && batch.results)
                batch.results[index_of(place)] = kNotRun;
            ours = ours && !other;
        }
        const std::uint32_t of_warp = __ballot_sync(~0u, ours);
        __syncthreads();
        if (threadIdx.x % kLanes == 0) block.shared().pending[threadIdx.x / kLanes] = of_warp;
        __syncthreads();
#pragma unroll 1
        for (std::uint32_t warp = 0; warp < F::kWarps; ++warp)
#pragma unroll 1
            for (std::uint32_t left = block.shared().pending[warp]; left != 0; left &= left - 1) {
                const std::uint32_t thread = warp * kLanes + __ffs(static_cast<int>(left)) - 1;
                const std::uint32_t index = index_of(first + std::uint64_t{thread} * gridDim.x);
                block.template run<kOpen>(batch.messages[index], index);
            }
    }
    wipe_own<F>();
}

// A few, of any size, whose list is a parameter: a message to a thread block.
template <class F, bool kOpen>
__global__ void __launch_bounds__(F::kThreads, 1)
    derived_few(const __grid_constant__ DerivedLaunch launch) {
    __shared__ std::uint32_t aad[kMaxLaunchedAad / 4];
    __shared__ Message message;
    static_assert(sizeof aad + sizeof message <= shapes::kDerivedList);
    let_the_next_begin();
    const auto tables = derived_tables<F>();
    wait_for_those_before();
    for (std::uint32_t i = threadIdx.x; i < launch.aad_words; i += F::kThreads)
        aad[i] = launch.aad[i];
    if (threadIdx.x == 0) {
        message = launch.messages[blockIdx.x];
        if (launch.aad_words != 0)
            message.aad = reinterpret_cast<const unsigned char*>(aad) +
                          reinterpret_cast<std::uintptr_t>(message.aad);
    }
    __syncthreads();
    Deriver<F> deriver(tables, warp_schedules(0));
    const Block<F> block(launch.batch, deriver);
    bool other = false;
    const Code code = standing<F>(launch.batch, message, other);
    if (code == Code::ok && !other)
        block.template run<kOpen>(message, blockIdx.x);
    else if (threadIdx.x == 0 && (code != Code::ok || launch.batch.reset))
        block.tell(blockIdx.x, code != Code::ok ? code : Code::internal);
    wipe_own<F>();
    if (threadIdx.x == 0 && launch.batch.ended) atomicAdd(launch.batch.ended, 1ull);
}

template <class F>
Kernel derived_kernel_of(DerivedWay way, bool opening) {
    const auto of = [&](auto* seal, auto* open) {
        return Kernel{reinterpret_cast<const void*>(opening ? open : seal), F::shape(), true};
    };
    return way == DerivedWay::eight ? of(&derived_eight<F, false>, &derived_eight<F, true>)
                                    : of(&derived_block<F, false>, &derived_block<F, true>);
}
template <class F>
Kernel derived_few_of(bool opening) {
    const auto* const seal = reinterpret_cast<const void*>(&derived_few<F, false>);
    const auto* const open = reinterpret_cast<const void*>(&derived_few<F, true>);
    return {opening ? open : seal, shapes::derived_few(), true};
}

}  // namespace dael::cuda
