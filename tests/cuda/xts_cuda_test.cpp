// SPDX-License-Identifier: Apache-2.0
// XTS on a GPU with every layout of tables, on device memory: the layouts that other GPUs would
// choose are forced, since the tests over backends see only this one's.
#include <gtest/gtest.h>

#include <thread>

#include "backends/cuda/cuda_device.hpp"
#include "modes/xts.hpp"
#include "support/device_subject.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr Direction kDirections[] = {Direction::encrypt, Direction::decrypt};

// The parameter: tables for encryption, and for decryption as xts_kernel() takes them.
class XtsCuda : public testing::TestWithParam<std::pair<int, int>> {
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        const auto [forward, inverse] = GetParam();
        auto backend = cuda::open_cuda_backend(0, forward);
        ASSERT_TRUE(backend) << backend.error().message;
        auto* device = dynamic_cast<cuda::CudaDevice*>((*backend)->device());
        ASSERT_TRUE(device);
        device->force_xts_tables(inverse);
        device_ = device;
        subject_ = device_subject(std::move(*backend));
    }

    void check(const Bytes& raw, Direction direction, const XtsSectors& sectors, std::size_t size,
               std::size_t in_at, std::size_t out_at, bool in_place) {
        const XtsKey key = *XtsKey::import(raw);
        const Bytes in = pattern(size, size);
        Poisoned source(in, in_at), apart(size, out_at);
        Poisoned& target = in_place ? source : apart;
        const auto done = subject_->xts(key, direction, sectors, source.span(), target.span());
        const std::string what = std::string(name(direction)) + " " +
                                 std::to_string(4 * raw.size()) + " bits, " + std::to_string(size) +
                                 " bytes in sectors of " + std::to_string(sectors.size) +
                                 ", in at " + std::to_string(in_at) + ", out at " +
                                 std::to_string(out_at) + (in_place ? ", in place" : "");
        ASSERT_TRUE(done) << what << ": " << done.error().message;
        ASSERT_EQ(difference(oracle_xts(raw, direction, sectors, in), target.span()), "") << what;
    }

    Random random_{1618};
    Bytes keys_[2] = {random_.bytes(32), random_.bytes(64)};
    core::Device* device_ = nullptr;
    std::unique_ptr<Subject> subject_;
};

TEST_P(XtsCuda, EverySectorLength) {
    for (std::size_t size = 16; size <= 1100; ++size)
        for (const Direction direction : kDirections) {
            const std::size_t count = 1 + size % 5;
            check(keys_[size % 2], direction, {~std::uint64_t{0} - 2, size, 3}, size * count, 0, 0,
                  size % 3 == 0);
            if (HasFatalFailure()) return;
        }
}

TEST_P(XtsCuda, AlignmentsAndShortLastSectors) {
    for (const std::size_t sector : {16, 80, 256, 512, 528, 1024, 4096})
        for (const std::size_t rest : {0, 16, 17, 33, 79}) {
            if (rest >= sector) continue;
            for (const auto& [in_at, out_at] :
                 {std::pair{0, 0}, {0, 4}, {1, 0}, {3, 7}, {8, 8}, {15, 2}})
                for (const Direction direction : kDirections) {
                    check(keys_[rest % 2], direction, {5, sector}, 37 * sector + rest, in_at,
                          out_at, false);
                    if (in_at == out_at)
                        check(keys_[rest % 2], direction, {5, sector}, 37 * sector + rest, in_at,
                              out_at, true);
                    if (HasFatalFailure()) return;
                }
        }
}

// So much that every warp has a share, and shares that begin within a sector, near its start and
// far from it.
TEST_P(XtsCuda, SharesOfEveryKind) {
    struct Shape {
        std::size_t sector, size;
    };
    for (const auto& [sector, size] :
         std::initializer_list<Shape>{{512, std::size_t{40} << 20},
                                      {4096, std::size_t{40} << 20},
                                      {4104, 4104 * 9001},
                                      {48, 48 * 300'001},
                                      {1 << 16, std::size_t{33} << 20},
                                      {(1 << 20) + 5, 40 << 20},
                                      {kXtsMost, kXtsMost * 2},
                                      {kXtsMost - 1, kXtsMost * 2 - 2}})
        for (const Direction direction : kDirections) {
            check(keys_[size % 3 == 0], direction, {77, sector}, size, 0, 0,
                  direction == Direction::encrypt);
            if (HasFatalFailure()) return;
        }
}

TEST_P(XtsCuda, ManyStreamsAndKeysAtOnce) {
    constexpr int kThreads = 6;
    constexpr std::size_t kSize = (1 << 20) + 31;
    std::vector<int> wrong(kThreads, 1);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            const Bytes raw = random_bytes(t % 2 ? 32 : 64, static_cast<std::uint32_t>(t));
            const XtsKey key = *XtsKey::import(raw);
            const Direction direction = kDirections[t / 2 % 2];
            const XtsSectors sectors{static_cast<std::uint64_t>(t), 512};
            const Bytes in = random_bytes(kSize, static_cast<std::uint32_t>(100 + t));
            const Bytes expected = oracle_xts(raw, direction, sectors, in);
            Bytes got(kSize);
            const Stream stream = *device_->create_stream();
            auto* memory = static_cast<std::uint8_t*>(*device_->allocate(kSize));
            bool right = true;
            for (int round = 0; round < 10 && right; ++round)
                right = device_->copy_in(memory, in.data(), kSize, stream) &&
                        device_->xts({direction, &key, sectors.size},
                                     modes::to_segment(sectors, memory, memory, kSize), stream) &&
                        device_->copy_out(got.data(), memory, kSize, stream) &&
                        device_->wait(stream) && got == expected;
            device_->release(memory);
            device_->destroy_stream(stream);
            wrong[static_cast<std::size_t>(t)] = right ? 0 : 1;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

INSTANTIATE_TEST_SUITE_P(Layouts, XtsCuda,
                         testing::Values(std::pair{4, 4}, std::pair{2, 2}, std::pair{1, 1},
                                         std::pair{1, 0}),
                         [](const auto& instance) {
                             return std::to_string(instance.param.first) + "_and_" +
                                    std::to_string(instance.param.second);
                         });

}  // namespace
