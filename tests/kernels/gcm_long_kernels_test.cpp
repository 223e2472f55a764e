// SPDX-License-Identifier: Apache-2.0
// The kernels of long messages without tensor cores, their own code, run by thread blocks on the
// host against OpenSSL: counter mode, GHASH by tiles, and tags. A list that the host has planned.
#include <gtest/gtest.h>

// clang-format off: in this order, as cuda_on_host.hpp says.
#include "kernels/cuda_on_host.hpp"

#include "backends/cuda/ctr/rows.cuh"
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/launch_plan.hpp"
#include "backends/cuda/gcm/tag.cuh"
#include "support/test_batch.hpp"

#undef __shared__
#define __shared__ static
#include "backends/cuda/gcm/counter.cu"
#include "backends/cuda/gcm/ghash.cu"
#define kWarps kFinishWarps
#include "backends/cuda/gcm/finish.cu"
#undef kWarps
#include "kernels/gcm_keys_on_host.hpp"
// clang-format on

namespace dael::cuda {
alignas(1024) unsigned char table_image[std::max<std::size_t>(shapes::gcm_ctr(1, true).dynamic,
                                                              test::kKeyImage)];

// What only a GPU can say, so that the library's own object with these kernels is not linked too.
Result<bool> has_ghash_tiles(const SetUp&) {
    return false;
}
}  // namespace dael::cuda

namespace dael::test {
namespace {

using cuda::GcmBatch;
using cuda::GcmKey;
using cuda::GcmPlace;

// Thread blocks of counter mode, of GHASH for each part, and of those that make tags.
struct Grids {
    unsigned crypt, hash, finish;
};

class GcmLongKernels : public testing::Test {
  protected:
    template <int kRounds>
    static void crypt(const GcmBatch& batch, unsigned blocks) {
        launch_blocks(blocks, cuda::shapes::gcm_ctr(1, true).threads,
                      [&] { cuda::gcm_ctr<kRounds, 1, true>(batch, cuda::RoundKeys{}); });
    }
    template <int kRounds>
    static void finish(const GcmBatch& batch, unsigned blocks) {
        launch_blocks(blocks, cuda::shapes::gcm_finish().threads,
                      [&] { cuda::gcm_finish<kRounds>(batch); });
    }
    static std::string run(TestBatch& tested, const Grids& grids) {
        return tested.fault_of([&](const Cipher& cipher, std::span<const Key> keys,
                                   std::span<const Message> messages,
                                   std::span<Code> codes) -> Result<> {
            const std::vector<GcmKey> made = device_keys(keys);
            const auto place = std::make_unique<GcmPlace>();
            std::ranges::copy(messages, place->messages);
            GcmBatch batch{};
            batch.keys = made.data();
            batch.count = static_cast<std::uint32_t>(messages.size());
            batch.key_count = static_cast<std::uint32_t>(keys.size());
            batch.tag_size = cipher.tag;
            batch.opening = cipher.direction == Direction::decrypt;
            cuda::plan_units(batch, *place);
            batch.messages = place->messages;
            batch.results = place->results;
            batch.aad.starts = place->aad_starts;
            batch.data.starts = place->data_starts;
            batch.groups.starts = place->group_starts;
            batch.data.workers = batch.aad.workers = grids.hash * cuda::shapes::kRowWorkers;
            std::vector<kernels::Words4> partials(2 * (batch.data.workers + batch.count));
            batch.aad.partials = partials.data();
            batch.data.partials = partials.data() + batch.data.workers + batch.count;
            const auto crypt_all = [&] {
                crypt<10>(batch, grids.crypt);
                crypt<12>(batch, grids.crypt);
                crypt<14>(batch, grids.crypt);
            };
            if (!batch.opening) crypt_all();
            launch_blocks(2 * grids.hash, cuda::shapes::ghash_rows().threads,
                          [&] { cuda::ghash_rows(batch, cuda::Part::both); });
            finish<10>(batch, grids.finish);
            finish<12>(batch, grids.finish);
            finish<14>(batch, grids.finish);
            if (batch.opening) crypt_all();
            for (std::size_t i = 0; i < codes.size(); ++i)
                codes[i] = static_cast<Code>(place->results[i]);
            return {};
        });
    }

    Random random_{2718};
    const KeyRing ring_{random_, 5};
};

// Messages that several workers share, workers with several messages; AAD that a lane hashes, a
// warp, and all workers; a warp that makes one tag, and many.
TEST_F(GcmLongKernels, SizesAlignmentsAndAad) {
    for (const Cipher& cipher :
         {Cipher{Mode::gcm}, Cipher{Mode::gcm, Direction::decrypt},
          Cipher{Mode::gcm, Direction::encrypt, 12}, Cipher{Mode::gcm, Direction::decrypt, 13}})
        for (const Grids& grids : {Grids{1, 1, 1}, Grids{2, 2, 4}}) {
            TestBatch batch(random_, ring_, cipher);
            std::size_t i = 0;
            for (const std::size_t size : {8193, 16384, 16385, 24589, 33000})
                for (const std::size_t aad : {0, 1, 16, 63, 64, 65, 8193}) {
                    if (batch.size() == kMaxLaunched) break;
                    ++i;
                    batch.add({.size = size,
                               .in_at = i % 5,
                               .out_at = i % 3 == 0 ? i % 7 : i % 5,
                               .in_place = i % 4 == 3,
                               .aad_size = aad});
                }
            ASSERT_EQ(run(batch, grids), "") << batch.what() << ", grid " << grids.crypt;
        }
}

// AAD alone can make a message long, and forged ones among others are not decrypted.
TEST_F(GcmLongKernels, LittleDataWithMuchAadAndForgedOnes) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        TestBatch batch(random_, ring_, {Mode::gcm, direction});
        for (std::size_t i = 0; i < 30; ++i)
            batch.add({.size = i % 3 == 0 ? i : 9000 + i, .aad_size = i % 3 == 0 ? 9000 : i * 5});
        if (direction == Direction::decrypt)
            for (std::size_t i = 0; i < 30; i += 4) batch.forge(i);
        ASSERT_EQ(run(batch, {1, 1, 2}), "") << batch.what();
    }
}

}  // namespace
}  // namespace dael::test
