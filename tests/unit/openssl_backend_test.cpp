// SPDX-License-Identifier: Apache-2.0
// The openssl backend's own part: cutting, skipping, and several threads on one backend.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <daelstrom/key.hpp>

#include "core/registry.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using test::Bytes;
using test::random_block;
using test::random_bytes;

std::unique_ptr<core::Backend> open_openssl() {
    auto backend = core::open_backend("openssl");
    if (!backend) throw std::runtime_error(backend.error().message);
    return std::move(*backend);
}

TEST(OpensslBackend, JoinsPiecesOfLongMessages) {
    const auto backend = open_openssl();
    const Bytes raw = random_bytes(32, 1);
    const auto key = Key::import(raw);
    ASSERT_TRUE(key);
    const Bytes in = random_bytes((std::size_t{32} << 20) + 32, 2);  // pieces are 16 MiB
    const Block iv = random_block(3);
    for (const Mode mode : kModes)
        for (const std::uint8_t skip : {std::uint8_t{0}, std::uint8_t{5}}) {
            if (skip != 0 && mode != Mode::ctr) continue;
            Bytes out = in;
            const core::Segment segment{out.data(), out.data(), out.size(), iv, skip};
            ASSERT_TRUE(backend->run({mode, Direction::decrypt, &*key}, std::span(&segment, 1)));
            EXPECT_TRUE(out == test::oracle(raw, {mode, Direction::decrypt, iv, skip}, in))
                << name(mode) << " skip " << int{skip};
        }
}

TEST(OpensslBackend, ServesManyThreadsAtOnce) {
    const auto backend = open_openssl();
    const Bytes raw = random_bytes(24, 1);
    const auto key = Key::import(raw);
    ASSERT_TRUE(key);
    std::vector<std::thread> threads;
    std::vector<int> right(4);
    for (std::size_t t = 0; t < right.size(); ++t)
        threads.emplace_back([&, t] {
            for (unsigned round = 0; round < 20; ++round) {
                const Mode mode = kModes[round % kModes.size()];
                const Bytes in = random_bytes(1024, round);
                Bytes out(in.size());
                const core::Segment segment{in.data(), out.data(), in.size(), random_block(round),
                                            0};
                right[t] +=
                    backend->run({mode, Direction::encrypt, &*key}, std::span(&segment, 1)) &&
                    out == test::oracle(raw, {mode, Direction::encrypt, segment.iv, 0}, in);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, std::vector<int>(4, 20));
}

}  // namespace
