// SPDX-License-Identifier: Apache-2.0
// XTS on CUDA device memory, in every layout of its tables, against OpenSSL.
#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

// The parameter: tables for encryption, and for decryption as xts_kernel() takes them.
class XtsCuda : public testing::TestWithParam<std::pair<int, int>> {
  protected:
    void SetUp() override {
        DAEL_NEEDS_GPUS(1);
        const auto [forward, inverse] = GetParam();
        auto backend = cuda::open_cuda_backend(0, forward);
        if (backend.code() == Code::invalid_argument) GTEST_SKIP() << backend.error().message;
        ASSERT_TRUE(backend) << backend.error().message;
        static_cast<cuda::CudaDevice*>((*backend)->device())->force_xts_tables(inverse);
        subject_ = device_subject(std::move(*backend));
    }
    void check(std::uint32_t sector, const Shape& shape) {
        for (const Direction direction : kDirections)
            for (const KeyRing* ring : {&small_, &large_}) {
                TestBatch batch(random_, *ring,
                                {.mode = Mode::xts, .direction = direction, .sector = sector});
                batch.add(shape);
                ASSERT_EQ(fault_of(*subject_, batch), "") << "sectors of " << sector;
            }
    }
    static Block number(std::uint64_t low, std::uint64_t high) {
        return xts::start({.first = low, .first_high = high});
    }

    Random random_{1618};
    const KeyRing small_{{random_.bytes(32)}, true}, large_{{random_.bytes(64)}, true};
    std::unique_ptr<Subject> subject_;
};

TEST_P(XtsCuda, EverySectorLength) {
    for (std::uint32_t size = 16; size <= 1100; ++size) {
        check(size, {.size = std::size_t{size} * (1 + size % 5),
                     .in_place = size % 3 == 0,
                     .start = number(~std::uint64_t{0} - 2, 3)});
        if (HasFatalFailure()) return;
    }
}

TEST_P(XtsCuda, AlignmentsAndShortLastSectors) {
    for (const std::uint32_t sector : {16, 80, 256, 512, 528, 1024, 4096})
        for (const std::size_t rest : {0, 16, 17, 33, 79}) {
            if (rest >= sector && rest != 0) continue;
            for (const std::size_t in_at : {0, 1, 4})
                for (const std::size_t out_at : {0, 8, 15}) {
                    check(
                        sector,
                        {.size = 7 * std::size_t{sector} + rest, .in_at = in_at, .out_at = out_at});
                    if (HasFatalFailure()) return;
                }
        }
}

// So much that every warp has a share, and shares that begin within a sector, near its start and
// far from it.
TEST_P(XtsCuda, SharesOfEveryKind) {
    struct Case {
        std::uint32_t sector;
        std::size_t size;
    };
    for (const auto& [sector, size] :
         std::initializer_list<Case>{{512, std::size_t{40} << 20},
                                     {4096, std::size_t{40} << 20},
                                     {4104, 4104 * 9001},
                                     {48, 48 * 300'001},
                                     {1 << 16, std::size_t{33} << 20},
                                     {(1 << 20) + 5, 40 << 20},
                                     {xts::kMax, xts::kMax * 2},
                                     {xts::kMax - 1, xts::kMax * 2 - 2}}) {
        check(sector, {.size = size, .in_place = sector % 1024 == 0});
        if (HasFatalFailure()) return;
    }
}

TEST_P(XtsCuda, NumbersCarryThroughAllTheirBytes) {
    for (const auto& [low, high] : {std::pair{std::uint64_t{0}, std::uint64_t{0}},
                                    {0xffffffffull, 0},
                                    {~0ull, 0},
                                    {~0ull - 100, 0xffffffff},
                                    {~0ull - 1, ~0ull - 1}})
        check(512, {.size = 512 * 300, .start = number(low, high)});
}

TEST_P(XtsCuda, Batches) {
    for (const Direction direction : kDirections) {
        TestBatch batch(random_, small_, {.mode = Mode::xts, .direction = direction});
        batch.add_sizes({0, 16, 512, 530, 4096, 100000});
        EXPECT_EQ(fault_of(*subject_, batch), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, XtsCuda,
                         testing::Values(std::pair{4, 4}, std::pair{2, 2}, std::pair{1, 1},
                                         std::pair{1, 0}),
                         [](const auto& instance) {
                             return "forward" + std::to_string(instance.param.first) + "_inverse" +
                                    std::to_string(instance.param.second);
                         });

}  // namespace
}  // namespace dael::test
