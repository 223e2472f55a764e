// SPDX-License-Identifier: Apache-2.0
// What the cpu backend leaves in its memory when a call is over: no round keys, and no keystream.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <daelstrom/key.hpp>

#include "backends/cpu/gcm.hpp"
#include "core/key_schedule.hpp"
#include "core/packet_cipher.hpp"
#include "core/registry.hpp"
#include "support/oracle.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using Memory = std::span<const std::uint8_t>;

bool holds(Memory memory, Memory block) {
    return memmem(memory.data(), memory.size(), block.data(), block.size()) != nullptr;
}

class CpuMemory : public testing::TestWithParam<cpu::Level> {
  protected:
    static constexpr std::size_t kMessages = 20, kSize = 4096;

    void SetUp() override {
        if (!cpu::available(GetParam())) GTEST_SKIP() << "this CPU has no " << name(GetParam());
        auto opened = core::open_backend("cpu", {.form = std::string(name(GetParam()))});
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
        const auto workspace = cpu::workspace(GetParam());
        ASSERT_TRUE(workspace) << workspace.error().message;
        workspace_ = *workspace;
        places_ = {
            {reinterpret_cast<const std::uint8_t*>(workspace_), sizeof(cpu::Workspace)},
            {reinterpret_cast<const std::uint8_t*>(workspace_->manager), imb_get_mb_mgr_size()},
            {reinterpret_cast<const std::uint8_t*>(workspace_->gcm_key), sizeof(cpu::GcmKey)}};
    }

    // Encrypts messages of several lengths, so that lanes end at different times.
    void run(Mode mode, Direction direction, const Key& key) {
        in_ = test::random_bytes(kMessages * kSize, 4);
        out_.assign(in_.size(), 0);
        messages_.clear();
        for (std::size_t i = 0; i < kMessages; ++i)
            messages_.push_back({.in = in_.data() + i * kSize,
                                 .out = out_.data() + i * kSize,
                                 .size = kSize - 16 * (i % 7),
                                 .tag = tags_[i].data(),
                                 .start = test::random_block(static_cast<unsigned>(i))});
        std::vector<Code> codes(kMessages);
        const auto result =
            backend_->run({mode, direction}, {std::span(&key, 1)}, messages_, codes);
        ASSERT_TRUE(result) << result.error().message;
    }

    bool left_behind(Memory block) const {
        return std::ranges::any_of(places_, [&](Memory place) { return holds(place, block); });
    }

    std::unique_ptr<core::Backend> backend_;
    cpu::Workspace* workspace_ = nullptr;
    std::vector<Memory> places_;
    test::Bytes in_, out_;
    std::vector<Message> messages_;
    std::array<Block, kMessages> tags_{};
};

TEST_P(CpuMemory, NoRoundKeysAreLeft) {
    for (const std::size_t size : {16, 24, 32}) {
        const auto key = Key::import(test::random_bytes(size, 1001));
        ASSERT_TRUE(key);
        const core::KeySchedule& schedule = key->schedule();
        for (const Mode mode : {Mode::ecb, Mode::cbc, Mode::cfb, Mode::ofb, Mode::ctr, Mode::gcm})
            for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
                run(mode, direction, *key);
                for (std::size_t round = 0; round <= static_cast<std::size_t>(key->rounds());
                     ++round) {
                    EXPECT_FALSE(left_behind(Memory(schedule.encrypt).subspan(16 * round, 16)))
                        << dael::name(mode) << " round key " << round;
                    EXPECT_FALSE(left_behind(Memory(schedule.decrypt).subspan(16 * round, 16)))
                        << dael::name(mode) << " inverse round key " << round;
                }
            }
    }
}

TEST_P(CpuMemory, NoKeystreamIsLeft) {
    const auto key = Key::import(test::random_bytes(16, 1001));
    ASSERT_TRUE(key);
    for (const Mode mode : {Mode::cfb, Mode::ofb, Mode::ctr, Mode::gcm})
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            if (mode == Mode::gcm && direction == Direction::decrypt) continue;  // writes no data
            run(mode, direction, *key);
            for (const Message& message : messages_)
                for (std::size_t left = kBlockSize; left <= message.size; left += 7 * kBlockSize) {
                    const std::size_t at = message.size - left;  // the last block is among them
                    Block keystream;
                    for (std::size_t i = 0; i < kBlockSize; ++i)
                        keystream[i] = message.in[at + i] ^ message.out[at + i];
                    ASSERT_FALSE(left_behind(keystream)) << dael::name(mode) << " byte " << at;
                }
        }
}

// Packets are worked on without a workspace: what is put together for them, on the stack, is looked
// for there. One that has no keystream, and no nonce, so that all of it is made here.
TEST_P(CpuMemory, PacketsLeaveNoKeystreamOnTheStack) {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers keep copies of their own";
    const test::Bytes raw = test::random_bytes(32, 1001);
    const auto key = Key::import(raw);
    auto made = backend_->packets(*key);
    ASSERT_TRUE(made);
    const core::PacketCipher& cipher = **made;
    const Block first = test::random_block(9);
    const test::Bytes keystream =
        test::oracle(raw, {Mode::ctr, Direction::encrypt, first}, test::Bytes(3000));
    test::Bytes in = test::random_bytes(2900, 10), out(in.size());
    for (const std::size_t size : {std::size_t{1400}, in.size()}) {
        for (const std::size_t there : {0u, 20u}) {
            Block tag;
            const core::CipherPacket packet{in.data(),  out.data(), size,  nullptr,          0,
                                            tag.data(), 16,         first, keystream.data(), there};
            struct Call {
                const core::PacketCipher& cipher;
                const core::CipherPacket& packet;
            } call{cipher, packet};
            std::vector<std::uint8_t> stack(256 << 10);
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            void* const base = reinterpret_cast<void*>(
                (reinterpret_cast<std::uintptr_t>(stack.data()) + 63) / 64 * 64);
            ASSERT_EQ(pthread_attr_setstack(&attributes, base, (256 << 10) - 64), 0);
            pthread_t thread;
            ASSERT_EQ(pthread_create(
                          &thread, &attributes,
                          [](void* context) -> void* {
                              const auto& [its_cipher, its_packet] = *static_cast<Call*>(context);
                              (void)its_cipher.seal({&its_packet, 1});
                              return nullptr;
                          },
                          &call),
                      0);
            pthread_join(thread, nullptr);
            pthread_attr_destroy(&attributes);
            for (std::size_t block = 1; block <= size / 16; ++block)
                ASSERT_FALSE(holds(stack, Memory(keystream).subspan(16 * block, 16)))
                    << size << " bytes, " << there << " blocks there, block " << block;
        }
    }
}

// The search itself: it must find what is there.
TEST_P(CpuMemory, TheSearchFindsWhatIsPlanted) {
    const Block planted = test::random_block(77);
    EXPECT_FALSE(left_behind(planted));
    std::ranges::copy(planted, workspace_->scratch_of(cpu::Workspace::kLanes - 1) + 5);
    EXPECT_TRUE(left_behind(planted));
    wipe(workspace_->scratch_of(cpu::Workspace::kLanes - 1), cpu::Workspace::kScratch);
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuMemory, testing::ValuesIn(cpu::kLevels),
                         [](const auto& level) { return std::string(name(level.param)); });

}  // namespace
