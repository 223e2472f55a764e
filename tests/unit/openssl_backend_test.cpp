// SPDX-License-Identifier: Apache-2.0
// The openssl backend's own part: cutting, skipping, and several threads on one backend.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/registry.hpp"
#include "support/test_batch.hpp"

namespace {

using namespace dael;
using test::KeyRing;
using test::Random;
using test::Shape;
using test::TestBatch;

class OpensslBackend : public testing::Test {
  protected:
    void SetUp() override {
        auto opened = core::open_backend("openssl");
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
    }
    std::string fault_of(TestBatch& batch) {
        return batch.fault_of([this](const Cipher& cipher, std::span<const Key> keys,
                                     std::span<const Message> messages, std::span<Code> codes) {
            return backend_->run(cipher, {keys}, messages, codes);
        });
    }
    std::unique_ptr<core::Backend> backend_;
    Random random_{21};
    const KeyRing ring_{random_, 6};
};

TEST_F(OpensslBackend, JoinsPiecesOfLongMessages) {
    const std::size_t size = (std::size_t{32} << 20) + 32;  // pieces are 16 MiB
    for (const Mode mode : kModes38a) {
        TestBatch batch(random_, ring_, {mode, Direction::decrypt});
        batch.add(Shape{.size = size, .in_place = true});
        if (mode == Mode::ctr) batch.add(Shape{.size = size, .in_place = true, .skip = 5});
        ASSERT_EQ(fault_of(batch), "") << name(mode);
    }
}

TEST_F(OpensslBackend, ServesManyThreadsAtOnce) {
    std::vector<std::thread> threads;
    std::vector<std::string> faults(4);
    for (unsigned t = 0; t < faults.size(); ++t)
        threads.emplace_back([&, t] {
            Random random(t);
            for (unsigned round = 0; round < 20 && faults[t].empty(); ++round) {
                TestBatch batch(random, ring_,
                                {kModes38a[round % kModes38a.size()], Direction::encrypt});
                batch.add_sizes(std::vector<std::size_t>(5, 1024));
                faults[t] = fault_of(batch);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(faults, std::vector<std::string>(4));
}

}  // namespace
