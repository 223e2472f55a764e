// SPDX-License-Identifier: Apache-2.0
// What the cpu backend leaves in its memory when a call is over: no round keys, and no keystream.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <daelstrom/key.hpp>

#include "backends/cpu/gcm.hpp"
#include "core/key_schedule.hpp"
#include "core/registry.hpp"
#include "support/oracle.hpp"

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
