// SPDX-License-Identifier: Apache-2.0
// No backend touches a byte outside of its input and output: both lie against pages that may not be
// touched, on either side, at every length. Reading a whole vector where a message ends is the
// fault that this is for: harmless on most days, a crash where a page ends.
#include <list>

#include "support/guarded.hpp"
#include "support/oracle.hpp"
#include "support/subject.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr Direction kDirections[] = {Direction::encrypt, Direction::decrypt};

enum class Place { begin, end };

std::span<std::uint8_t> place(Guarded& memory, Place where, std::size_t size) {
    return where == Place::begin ? memory.at_begin(size) : memory.at_end(size);
}

std::size_t whole(Mode mode, std::size_t size) {
    return whole_blocks_only(mode) ? size / kBlockSize * kBlockSize : size;
}

class Bounds : public SubjectTest {
  protected:
    void SetUp() override {
        report_faults();
        SubjectTest::SetUp();
    }

    void check_guarded(Mode mode, Direction direction, std::size_t size, Place where,
                       bool in_place) {
        if (!subject().supports(mode, direction, 1)) return;
        const std::string what = std::string(GetParam().name) + " " + std::string(name(mode)) +
                                 " " + std::string(name(direction)) + ", " + std::to_string(size) +
                                 " bytes at a page's " + (where == Place::begin ? "begin" : "end") +
                                 (in_place ? ", in place" : "");
        now_running(what);
        const Bytes content = pattern(size, size);
        const std::uint64_t offset = mode == Mode::ctr ? size % 19 : 0;
        const Cipher cipher{mode, direction, random_.block(), offset};
        Guarded& source = size <= kPage ? small_in_ : in_;
        Guarded& target = in_place ? source : size <= kPage ? small_out_ : out_;
        const auto in = place(source, where, size), out = place(target, where, size);
        std::ranges::fill(source.all(), Poisoned::kPoison);
        std::ranges::fill(target.all(), Poisoned::kPoison);
        std::ranges::copy(content, in.begin());
        const Message message{in.data(), out.data(), size, cipher.iv, offset};
        const auto done = subject().run(*key_, mode, direction, std::span(&message, 1));
        ASSERT_TRUE(done) << what << ": " << done.error().message;
        ASSERT_EQ(difference(oracle(key_bytes_, cipher, content), out), "") << what;
        // The rest of the page, on the side without a guard.
        const auto rest = where == Place::begin ? target.all().subspan(size)
                                                : target.all().first(target.all().size() - size);
        ASSERT_TRUE(std::ranges::all_of(rest, [](auto byte) { return byte == Poisoned::kPoison; }))
            << what;
    }

    Random random_{314159265};
    Bytes key_bytes_ = random_.bytes(32);
    Result<Key> key_ = Key::import(key_bytes_);
    static constexpr std::size_t kPage = 4096, kLargest = (1 << 20) + 64;
    Guarded small_in_{kPage}, small_out_{kPage}, in_{kLargest}, out_{kLargest};
};

TEST_P(Bounds, EveryLengthAgainstBothGuards) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (std::size_t size = 0; size <= 300; ++size) {
                if (whole(mode, size) != size || (slow() && size > 40 && size % 16 == 8)) continue;
                for (const Place where : {Place::begin, Place::end}) {
                    check_guarded(mode, direction, size, where, size % 2 == 0);
                    check_guarded(mode, direction, size, where, false);
                    if (HasFatalFailure()) return;
                }
            }
}

TEST_P(Bounds, EdgesAgainstBothGuards) {
    std::vector<std::size_t> edges{512, 1024, 4096, 65536, 262144, 1 << 20};
    if (slow()) edges = {4096};
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (const std::size_t edge : edges)
                for (const std::size_t size : {edge - 16, edge - 1, edge + 1, edge + 48}) {
                    if (whole(mode, size) != size) continue;
                    check_guarded(mode, direction, size,
                                  random_.below(2) ? Place::begin : Place::end,
                                  random_.below(2) == 0);
                    if (HasFatalFailure()) return;
                }
}

// Every message of a batch between its own guards: lanes that are short must not read on.
TEST_P(Bounds, BatchesAgainstGuards) {
    constexpr std::size_t kCount = 19;
    std::list<Guarded> memory;
    for (std::size_t i = 0; i < 2 * kCount; ++i) memory.emplace_back(4096);
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            if (!subject().supports(mode, direction, kCount)) continue;
            now_running(std::string(GetParam().name) + ", a batch in " + std::string(name(mode)));
            std::vector<Message> messages;
            std::vector<Bytes> contents;
            auto next = memory.begin();
            for (std::size_t i = 0; i < kCount; ++i) {
                const std::size_t size = whole(mode, random_.below(slow() ? 60 : 2000));
                const Place where = random_.below(4) ? Place::end : Place::begin;
                contents.push_back(pattern(size, i));
                const auto in = place(*next++, where, size), out = place(*next++, where, size);
                std::ranges::copy(contents.back(), in.begin());
                messages.push_back(
                    {in.data(), i % 3 ? out.data() : in.data(), size, random_.block(), 0});
            }
            const auto done = subject().run(*key_, mode, direction, messages);
            ASSERT_TRUE(done) << done.error().message;
            for (std::size_t i = 0; i < kCount; ++i)
                ASSERT_EQ(difference(
                              oracle(key_bytes_, {mode, direction, messages[i].iv, 0}, contents[i]),
                              std::span(messages[i].out, messages[i].size)),
                          "")
                    << name(mode) << " " << name(direction) << ", message " << i;
        }
}

TEST_P(Bounds, NothingIsTouchedForNoBytes) {
    std::uint8_t* const forbidden = in_.at_end(0).data();  // the guard itself
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (std::uint8_t* pointer : {static_cast<std::uint8_t*>(nullptr), forbidden}) {
                if (!subject().supports(mode, direction, 1)) continue;
                now_running(std::string(GetParam().name) + ", no bytes in " +
                            std::string(name(mode)));
                const std::uint64_t offset = mode == Mode::ctr ? 5 : 0;
                const Message message{pointer, pointer, 0, random_.block(), offset};
                EXPECT_TRUE(subject().run(*key_, mode, direction, std::span(&message, 1)))
                    << name(mode) << " " << name(direction);
            }
}

TEST_P(Bounds, NullWithASizeIsRefused) {
    Bytes data(32);
    for (const Mode mode : kModes) {
        const Message no_input{nullptr, data.data(), 32, {}, 0},
            no_output{data.data(), nullptr, 32, {}, 0};
        for (const Message& message : {no_input, no_output}) {
            const auto done =
                subject().run(*key_, mode, Direction::encrypt, std::span(&message, 1));
            EXPECT_EQ(done.code(), Code::invalid_argument) << name(mode);
        }
    }
}

DAEL_FOR_EVERY_BACKEND(Bounds);

// The guards themselves: a test that cannot fail proves nothing.
TEST(GuardedDeathTest, CatchesOneByteTooFarOnEitherSide) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";  // GTEST_FLAG_SET came with 1.12
    for (const bool after : {false, true})
        EXPECT_EXIT(
            {
                report_faults();
                now_running("the test of the guards");
                Guarded memory(100);
                volatile std::uint8_t* byte =
                    after ? memory.at_end(0).data() : memory.at_begin(1).data() - 1;
                *byte = 1;
            },
            ::testing::ExitedWithCode(2), "outside of its buffers: the test of the guards");
}

}  // namespace
