// SPDX-License-Identifier: Apache-2.0
// Of a forged packet nothing is written where the caller has its output, at no time: it lies in
// memory here that cannot be written to.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "core/backend.hpp"
#include "core/registry.hpp"
#include "support/bytes.hpp"
#include "support/child.hpp"

#include <daelstrom/gcm.hpp>

namespace {

using namespace dael;
using namespace dael::test;

class Forged : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(By, Forged, testing::Values("cpu", "openssl", "reference"),
                         [](const auto& which) { return std::string(which.param); });

TEST_P(Forged, NothingIsWritten) {
    auto backend = core::open_backend(GetParam());
    if (!backend) GTEST_SKIP() << backend.error().message;
    const Bytes raw = Random(1).bytes(16);
    auto cipher = (*backend)->packets(*Key::import(raw));
    if (!cipher) GTEST_SKIP() << cipher.error().message;
    constexpr std::size_t kMax = 20000;
    auto* const locked = static_cast<std::uint8_t*>(
        mmap(nullptr, kMax, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(locked, MAP_FAILED);
    Random random(2);
    std::uint8_t aad[12] = {}, tag[16] = {};
    const bool slow = std::string(GetParam()) == "reference";
    for (const std::size_t size : {0u, 1u, 64u, 1400u, 9216u, 9217u, 20000u}) {
        if (slow && size > 2000) continue;
        for (const std::size_t aad_size : {8u, 12u}) {
            Bytes ahead(16 * (2 + size / 16 + 1));
            core::CipherPacket packet;
            packet.in = packet.out = locked;
            packet.size = size;
            packet.aad = aad;
            packet.aad_size = aad_size;
            packet.tag = tag;
            packet.first = gcm::start(gcm::Nonce{});
            const Bytes plain = random.bytes(size);
            std::ranges::copy(plain, locked);
            ASSERT_EQ((*cipher)->seal({&packet, 1}), Code::ok);
            const Bytes sealed(locked, locked + size);
            // The packet's keystream, as it would have been made ahead of time; its first block is
            // the tag's, and what it masks is wrong all the same.
            for (std::size_t i = 0; i < size; ++i) ahead[16 + i] = plain[i] ^ sealed[i];
            ASSERT_EQ(mprotect(locked, kMax, PROT_READ), 0);
            const Bytes apart = sealed;
            expect_in_a_child([&] {
                for (const std::size_t blocks :
                     {std::size_t{0}, std::size_t{1}, ahead.size() / 32, 1 + (size + 15) / 16})
                    for (const bool in_place : {true, false}) {
                        core::CipherPacket forged = packet;
                        std::uint8_t wrong[16];
                        std::ranges::copy(tag, wrong);
                        wrong[3] ^= 0x40;
                        forged.tag = wrong;
                        forged.in = in_place ? locked : apart.data();
                        forged.keystream = blocks == 0 ? nullptr : ahead.data();
                        forged.blocks = blocks;
                        Code code = Code::ok;
                        (*cipher)->open({&forged, 1}, {&code, 1});
                        if (code != Code::authentication) return false;
                    }
                return true;
            });
            ASSERT_EQ(mprotect(locked, kMax, PROT_READ | PROT_WRITE), 0);
            Code code = Code::internal;
            (*cipher)->open({&packet, 1}, {&code, 1});
            EXPECT_EQ(code, Code::ok);
            EXPECT_EQ(difference(plain, {locked, size}), "");
        }
    }
    munmap(locked, kMax);
}

}  // namespace
