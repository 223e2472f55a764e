// SPDX-License-Identifier: Apache-2.0
// GHASH by mma.sync: the kernels' own code, run by thread blocks on the host with the instruction
// played by its definition, against multiplications.
#include <gtest/gtest.h>

#include <bit>

// clang-format off: in this order, as cuda_on_host.hpp says.
#include "kernels/cuda_on_host.hpp"

#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/launch_plan.hpp"
#include "backends/cuda/gcm/math.cuh"
#include "kernels/ghash_mma.hpp"
#include "support/test_batch.hpp"

namespace dael::cuda {
namespace {

// The instruction, by the PTX ISA: a lane has the rows lane / 4 and 8 more of the first operand and
// the column lane / 4 of the second, of 32 bits lane % 4 of each 128; and of the result the columns
// 2 (lane % 4) and 1 more in its rows.
template <int kHalves>
void play_mma(std::uint32_t (&d)[4], const std::uint32_t* a, const std::uint32_t* b) {
    auto& block = *test::HostBlock::current();
    const unsigned lane = block.thread() % 32;
    for (unsigned half = 0; half < kHalves; ++half)
        for (unsigned quad = 0; quad < 4; ++quad) {
            // All take part in every exchange, whether they need it or not.
            std::uint32_t rows[2], columns[2];
            for (unsigned i = 0; i < 2; ++i) {
                rows[i] = block.exchange(a[2 * half + i], lane / 4 * 4 + quad);
                columns[i] = block.exchange(b[half], (lane % 4 * 2 + i) * 4 + quad);
            }
            for (unsigned i = 0; i < 4; ++i)
                d[i] += static_cast<std::uint32_t>(std::popcount(rows[i / 2] & columns[i % 2]));
        }
}
void mma_b1(std::uint32_t (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
            std::uint32_t b1) {
    const std::uint32_t b[2] = {b0, b1};
    play_mma<2>(d, a, b);
}
void mma_b1(std::uint32_t (&d)[4], const std::uint32_t (&a)[2], std::uint32_t b) {
    play_mma<1>(d, a, &b);
}

}  // namespace
}  // namespace dael::cuda

#undef __shared__
#define __shared__ static
#include "backends/cuda/gcm/ghash_mma.cu"
// clang-format on

namespace dael::cuda {
// What only a GPU can say, so that the library's own object with these kernels is not linked too.
Result<bool> has_ghash_mma(const SetUp&) {
    return false;
}
}  // namespace dael::cuda

namespace dael::test {
namespace {

using cuda::GcmBatch;
using cuda::GcmKey;
using cuda::GcmMatrices;
using cuda::GcmPlace;
using kernels::Words4;

Words4 words(const unsigned char* bytes, std::size_t size) {
    Words4 block{};
    std::memcpy(&block, bytes, std::min<std::size_t>(size, 16));
    return block;
}

// What a key's own set-up leaves of H.
GcmKey key_of(const Words4& h) {
    GcmKey key{};
    key.powers[0] = kernels::gf_one();
    for (std::size_t i = 1; i < std::size(key.powers); ++i)
        key.powers[i] = kernels::gf_multiply(key.powers[i - 1], h);
    key.squares[0] = h;
    for (std::size_t i = 1; i < std::size(key.squares); ++i)
        key.squares[i] = kernels::gf_multiply(key.squares[i - 1], key.squares[i - 1]);
    return key;
}

class GhashMma : public testing::Test {
  protected:
    GhashMma() {
        for (int i = 0; i < 2; ++i) {
            const auto h = random_.block();
            keys_.push_back(key_of(words(reinterpret_cast<const unsigned char*>(&h), 16)));
        }
        std::memset(matrices_.data(), 0xee, matrices_.size() * sizeof(GcmMatrices));
        launch_blocks(1, cuda::shapes::ghash_mma_setup().threads, [&] {
            cuda::ghash_mma_setup(keys_.data(), matrices_.data(),
                                  static_cast<std::uint32_t>(keys_.size()));
        });
    }

    // The sums of the messages' data, as all workers together leave them.
    std::vector<Words4> hashed(std::span<const Message> messages, std::uint32_t grid) {
        auto place = std::make_unique<GcmPlace>();
        std::ranges::copy(messages, place->messages);
        GcmBatch batch{};
        batch.keys = keys_.data();
        batch.matrices = matrices_.data();
        batch.count = static_cast<std::uint32_t>(messages.size());
        batch.key_count = static_cast<std::uint32_t>(keys_.size());
        batch.tag_size = 16;
        batch.opening = 1;
        cuda::plan_units(batch, *place);
        batch.messages = place->messages;
        batch.results = place->results;
        batch.data.starts = place->data_starts;
        batch.data.workers = grid * cuda::shapes::kMmaWorkers;
        std::vector<Words4> partials(batch.data.workers + batch.count);
        batch.data.partials = partials.data();
        launch_blocks(grid, cuda::shapes::ghash_mma().threads,
                      [&] { cuda::ghash_mma(batch, cuda::Part::data); });

        const std::uint64_t tiles = batch.data.starts[batch.count];
        const std::uint32_t workers = cuda::busy_workers(batch.data.workers, tiles);
        std::vector<Words4> sums(batch.count);
        for (std::uint32_t i = 0; i < batch.count; ++i) {
            const std::uint64_t from = batch.data.starts[i], to = batch.data.starts[i + 1];
            if (from == to) continue;
            for (std::uint32_t w = cuda::worker_of(tiles, workers, from);
                 w <= cuda::worker_of(tiles, workers, to - 1); ++w)
                sums[i] = sums[i] ^ partials[w + i];
        }
        return sums;
    }
    Words4 expected(const Message& m) const {
        Words4 sum{};
        for (std::size_t at = 0; at < m.size; at += 16)
            sum = kernels::gf_multiply(sum ^ words(m.in + at, m.size - at), keys_[m.key].powers[1]);
        return sum;
    }

    Random random_{11};
    std::vector<GcmKey> keys_;
    std::vector<GcmMatrices> matrices_{2};
};

TEST_F(GhashMma, MessagesOfAnySizeAlignmentAndKey) {
    const std::size_t sizes[] = {8193, 8208, 16384, 16385, 16400, 20000, 33000};
    std::vector<Message> messages;
    std::vector<Bytes> data;
    unsigned char tag[16];
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
        data.push_back(random_.bytes(sizes[i] + 16));
        auto* const in = data.back().data() + i % 3 * 5;
        messages.push_back({.in = in,
                            .out = in,
                            .size = sizes[i],
                            .tag = tag,
                            .key = static_cast<std::uint32_t>(i / 2 % 2)});
    }
    // With one grid workers have several messages, with the other messages have several workers.
    for (const std::uint32_t grid : {1u, 2u}) {
        const auto sums = hashed(messages, grid);
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const Words4 right = expected(messages[i]);
            EXPECT_EQ(std::memcmp(&sums[i], &right, 16), 0) << sizes[i] << " bytes, grid " << grid;
        }
    }
}

TEST(GhashMmaLayout, EveryBitOfAStateHasOnePlace) {
    std::vector<int> places(128);
    for (std::uint32_t quad = 0; quad < 4; ++quad)
        for (std::uint32_t bit = 0; bit < 32; ++bit) {
            const std::uint32_t at = kernels::mma_state_bit(quad, bit);
            ++places.at(at);
            const Words4 part = kernels::mma_column_part(1u << bit, quad);
            const Words4 right = kernels::gf_basis(at);
            EXPECT_EQ(std::memcmp(&part, &right, 16), 0) << quad << ' ' << bit;
        }
    EXPECT_EQ(places, std::vector<int>(128, 1));
}

}  // namespace
}  // namespace dael::test
