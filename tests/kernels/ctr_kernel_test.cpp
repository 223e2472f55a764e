// SPDX-License-Identifier: Apache-2.0
// The kernels of counter mode, their own code, run by a thread block on the host against OpenSSL:
// every alignment of input and output, whatever range of a message a warp gets.
#include <gtest/gtest.h>

// clang-format off: in this order, as cuda_on_host.hpp says.
#include "kernels/cuda_on_host.hpp"

#include "backends/cuda/ctr/rows.cuh"
#include "backends/cuda/find_kernel.hpp"
#include "core/key_schedule.hpp"
#include "support/test_batch.hpp"

#undef __shared__
#define __shared__ static
#include "backends/cuda/ctr/ctr.cu"
#include "backends/cuda/ctr/small.cu"
// clang-format on

namespace dael::cuda {
alignas(1024) unsigned char table_image[4 * 32 * 1024];
}

namespace dael::test {
namespace {

constexpr std::uint32_t kWarps = cuda::shapes::kCtrWarps;

TEST(Realign, TakesBytesFromAnyOn) {
    Random random(7);
    const Bytes bytes = random.bytes(32);
    kernels::Words4 a, b;
    std::memcpy(&a, bytes.data(), 16);
    std::memcpy(&b, bytes.data() + 16, 16);
    for (std::uint32_t first = 0; first < 16; ++first) {
        const kernels::Words4 taken = kernels::bytes_from(a, b, first);
        EXPECT_EQ(std::memcmp(&taken, bytes.data() + first, 16), 0) << first;
    }
}

class CtrKernel : public testing::Test {
  protected:
    // Each message by the kernel of little data, in two blocks of threads.
    std::string run_small(TestBatch& batch) {
        return batch.fault_of([&](const Cipher&, std::span<const Key> keys,
                                  std::span<const Message> messages, std::span<Code>) -> Result<> {
            cuda::RoundKeys round_keys;
            std::memcpy(round_keys.w, keys[0].schedule().encrypt.data(), sizeof round_keys.w);
            for (const Message& m : messages) {
                kernels::Words4 start;
                std::memcpy(&start, m.start.data(), sizeof start);
                const cuda::DeviceSegment one{m.in, m.out, m.size, start, m.skip};
                launch_blocks(2, cuda::shapes::ctr_small().threads, [&] {
                    if (keys[0].rounds() == 10) cuda::ctr_small<10>(one, round_keys);
                    if (keys[0].rounds() == 12) cuda::ctr_small<12>(one, round_keys);
                    if (keys[0].rounds() == 14) cuda::ctr_small<14>(one, round_keys);
                });
            }
            return {};
        });
    }

    // A batch as one list, whose rows the warps share out at random, or each message by itself.
    std::string run(TestBatch& batch, bool listed) {
        return batch.fault_of([&](const Cipher&, std::span<const Key> keys,
                                  std::span<const Message> messages, std::span<Code>) -> Result<> {
            cuda::RoundKeys round_keys;
            std::memcpy(round_keys.w, keys[0].schedule().encrypt.data(), sizeof round_keys.w);
            std::vector<cuda::DeviceSegment> list;
            for (const Message& m : messages) {
                kernels::Words4 start;
                std::memcpy(&start, m.start.data(), sizeof start);
                list.push_back({m.in, m.out, m.size, start, m.skip});
            }
            if (listed) {
                const auto starts = shares(list);
                launch({{}, list.data(), starts.data(), false}, round_keys, keys[0].rounds());
                return {};
            }
            for (const cuda::DeviceSegment& one : list)
                if (one.size != 0)
                    launch({one, nullptr, nullptr, false}, round_keys, keys[0].rounds());
            return {};
        });
    }

    // Many of the warps get nothing, and some much.
    std::vector<cuda::WarpStart> shares(const std::vector<cuda::DeviceSegment>& list) {
        std::vector<cuda::WarpStart> borders{{0, 0}};
        for (std::uint32_t s = 0; s < list.size(); ++s)
            for (std::uint64_t row = 0; row * 32 < list[s].blocks(); ++row)
                if (random_.below(30) == 0 && borders.size() < kWarps)
                    borders.push_back({row * 32, s});
        while (borders.size() <= kWarps)
            borders.push_back({0, static_cast<std::uint32_t>(list.size())});
        return borders;
    }

    static void launch(const cuda::BlocksWork& work, const cuda::RoundKeys& keys, int rounds) {
        gridDim.x = 1;
        HostBlock::run(cuda::shapes::ctr(4).threads, [&] {
            if (rounds == 10) cuda::ctr<10, 4>(work, keys);
            if (rounds == 12) cuda::ctr<12, 2>(work, keys);
            if (rounds == 14) cuda::ctr<14, 1>(work, keys);
        });
    }

    // Somewhere within a group of 256, and where bytes carry; the low 32 bits do not wrap.
    Block start(unsigned kind) {
        Block counter = random_.block();
        counter[12] &= 0x7f;
        if (kind % 3 == 0) counter[15] &= 0x1f;
        if (kind % 4 == 0) counter[14] = 0xff;
        if (kind % 8 == 0) counter[13] = 0xff;
        return counter;
    }

    Random random_{3141};
};

TEST_F(CtrKernel, EveryAlignmentOfInputAndOutput) {
    const std::size_t sizes[] = {1, 15, 16, 17, 33, 511, 512, 513, 4095, 4096, 4112, 8200, 12289};
    for (std::size_t in_at = 0; in_at < 16; ++in_at)
        for (std::size_t out_at = 0; out_at < 16; ++out_at) {
            const KeyRing ring({random_.bytes(kKeySizes[(in_at + out_at) % 5 % 3])});
            TestBatch batch(random_, ring, {Mode::ctr, Direction::encrypt});
            for (unsigned i = 0; i < 4; ++i)
                batch.add({.size = sizes[random_.below(std::size(sizes))],
                           .in_at = in_at,
                           .out_at = out_at,
                           .in_place = i == 3,
                           .keystream = i == 2 && in_at == 5,
                           .start = start(i + static_cast<unsigned>(in_at)),
                           .skip = i == 1 ? static_cast<std::uint8_t>(random_.below(16))
                                          : std::uint8_t{0}});
            ASSERT_EQ(run(batch, true), "") << in_at << " to " << out_at;
        }
}

TEST_F(CtrKernel, LittleData) {
    for (const std::size_t key_size : kKeySizes) {
        const KeyRing ring({random_.bytes(key_size)});
        TestBatch batch(random_, ring, {Mode::ctr, Direction::encrypt});
        for (const std::size_t size : {1, 15, 16, 17, 4096, 4099, 20'000})
            for (unsigned i = 0; i < 4; ++i)
                batch.add({.size = size,
                           .in_at = i * 5,
                           .out_at = i == 2 ? 3 : i * 5,
                           .in_place = i == 3,
                           .keystream = i == 1,
                           .start = random_.block(),
                           .skip = static_cast<std::uint8_t>(i * 5)});
        ASSERT_EQ(run_small(batch), "");
    }
}

// A lane looks into its own bank alone, so that no data and no key makes two of them meet.
TEST_F(CtrKernel, LanesNeedTheirOwnBanksAlone) {
    for (const std::size_t key_size : kKeySizes) {
        const KeyRing ring({random_.bytes(key_size)});
        for (const unsigned by : {0u, 1u}) {
            TestBatch batch(random_, ring, {Mode::ctr, Direction::encrypt}),
                little(random_, ring, {Mode::ctr, Direction::encrypt});
            for (const std::size_t at : {0, 5}) {
                batch.add({.size = 9000, .in_at = at, .out_at = at * 2, .start = start(1)});
                little.add({.size = 5000, .in_at = at, .out_at = at * 2, .start = start(1)});
            }
            const OwnBanks own(cuda::table_image, sizeof cuda::table_image, by);
            EXPECT_EQ(run(batch, true) == "", by == 0);
            EXPECT_EQ(run_small(little) == "", by == 0);
        }
    }
}

// A message by itself is divided by rows, or by groups of counters where every warp gets several.
TEST_F(CtrKernel, MessagesByThemselves) {
    const KeyRing ring({random_.bytes(16)});
    for (const std::size_t size :
         {std::size_t{3}, std::size_t{5000}, std::size_t{kWarps * 8192 - 16},
          std::size_t{kWarps * 8192 + 4099}, std::size_t{kWarps * 9000}})
        for (unsigned i = 0; i < 4; ++i) {
            TestBatch batch(random_, ring, {Mode::ctr, Direction::encrypt});
            batch.add({.size = size,
                       .in_at = i == 1 ? 0 : i * 5,
                       .out_at = i * 5,
                       .in_place = i == 3,
                       .start = start(i),
                       .skip = static_cast<std::uint8_t>(i == 2 ? 9 : 0)});
            ASSERT_EQ(run(batch, false), "") << size << ", " << i;
        }
}

}  // namespace
}  // namespace dael::test
