// SPDX-License-Identifier: Apache-2.0
// No backend touches a byte outside of a message's input, output, AAD and tag: each lies against a
// page that may not be touched, on either side, at every length. Reading a whole vector where a
// message ends is the fault that this is for: harmless on most days, a crash where a page ends.
#include <list>

#include "modes/traits.hpp"
#include "support/guarded.hpp"
#include "support/modes_test.hpp"

namespace {

using namespace dael;
using namespace dael::test;

enum class Side { begin, end };

std::span<std::uint8_t> place(Guarded& memory, Side where, std::size_t size) {
    return where == Side::begin ? memory.at_begin(size) : memory.at_end(size);
}
std::span<std::uint8_t> place(Guarded& memory, Side where, std::span<const std::uint8_t> content) {
    std::memset(memory.all().data(), Poisoned::kPoison, memory.all().size());
    const auto placed = place(memory, where, content.size());
    std::ranges::copy(content, placed.begin());
    return placed;
}

class Bounds : public ModesTest {
  protected:
    void SetUp() override {
        report_faults();
        ModesTest::SetUp();
    }

    // The keystream where `keystream`, else in place or not.
    void check_guarded(Cipher cipher, std::size_t size, std::size_t aad_size, Side where,
                       bool in_place, bool keystream = false) {
        if (!authenticates(cipher.mode)) aad_size = 0;
        if (cipher.mode == Mode::gcm && size % 5 == 4) cipher.tag = 13;
        if (is_aegis(cipher.mode) && size % 5 == 4) cipher.tag = 32;
        const std::string what = GetParam().name + " " + std::string(name(cipher.mode)) + " " +
                                 std::string(name(cipher.direction)) + ", " + std::to_string(size) +
                                 " bytes, AAD of " + std::to_string(aad_size) + ", at a page's " +
                                 (where == Side::begin ? "begin" : "end") +
                                 (in_place ? ", in place" : "") + (keystream ? ", keystream" : "");
        now_running(what);
        const KeyRing& keys = keys_for(cipher);
        const Bytes content = pattern(size, size), aad = pattern(aad_size, 3);
        Guarded& source = size <= kPage ? small_in_ : in_;
        Guarded& target = in_place ? source : size <= kPage ? small_out_ : out_;
        const auto in = place(source, where, content);
        const auto out = in_place
                             ? in
                             : place(target, where,
                                     std::span<const std::uint8_t>(Bytes(size, Poisoned::kPoison)));
        Message message{keystream ? nullptr : in.data(), out.data(), size};
        message.aad = place(aad_, where, aad).data();
        message.aad_size = aad_size;
        message.start = fitting_start(cipher, random_);
        message.start_rest = fitting_rest(cipher, random_);
        if (makes_keystream(cipher.mode)) message.skip = static_cast<std::uint8_t>(size % 19 % 16);
        const Answer answer = oracle(keys.raw[0], cipher, message, in);
        const Bytes before(in.begin(), in.end());
        const bool tagged = authenticates(cipher.mode);
        const bool writes_tag = tagged && cipher.direction == Direction::encrypt;
        Bytes right_tag = answer.tag;
        right_tag.resize(tagged ? cipher.tag : 0);
        const auto tag =
            place(tag_, where, writes_tag ? Bytes(cipher.tag, Poisoned::kPoison) : right_tag);
        if (tagged) message.tag = tag.data();
        const auto done = subject().run(cipher, keys.keys[0], message);
        ASSERT_TRUE(done) << what << ": " << done.error().message;
        ASSERT_EQ(difference(answer.out, out), "") << what;
        ASSERT_EQ(difference(right_tag, tag), "") << what << ", its tag";
        ASSERT_TRUE(in_place || std::ranges::equal(before, in)) << what;
        ASSERT_TRUE(std::ranges::equal(aad, std::span(message.aad, aad_size))) << what;
        // The rest of the pages, on the side without a guard.
        for (auto& [memory, used] : {std::pair<Guarded*, std::size_t>{&target, size},
                                     {&source, size},
                                     {&tag_, tag.size()},
                                     {&aad_, aad_size}}) {
            const auto all = memory->all();
            const auto rest =
                where == Side::begin ? all.subspan(used) : all.first(all.size() - used);
            ASSERT_TRUE(all_are(rest, Poisoned::kPoison)) << what;
        }
    }

    const KeyRing& keys_for(const Cipher& cipher) {
        return keys_.try_emplace(cipher.mode, random_, 3, cipher).first->second;
    }
    std::map<Mode, KeyRing> keys_;
    static constexpr std::size_t kPage = 4096, kLargest = (1 << 20) + 64;
    Guarded small_in_{kPage}, small_out_{kPage}, in_{kLargest}, out_{kLargest}, aad_{kPage},
        tag_{kPage};
};

TEST_P(Bounds, EveryLengthAgainstBothGuards) {
    for_each_cipher([&](const Cipher& cipher) {
        for (const std::size_t size : lengths(cipher, authenticates(cipher.mode) ? 600 : 300)) {
            for (const Side where : {Side::begin, Side::end}) {
                const std::size_t aad = random_.below(50);
                if (authenticates(cipher.mode) || size % 2 == 0)
                    check_guarded(cipher, size, aad, where, true);
                check_guarded(cipher, size, aad, where, false);
                if (makes_keystream(cipher.mode))
                    check_guarded(cipher, size, aad, where, false, true);
                if (HasFatalFailure()) return;
            }
        }
    });
}

TEST_P(Bounds, EveryAadLengthAgainstBothGuards) {
    for_each_cipher([&](const Cipher& cipher) {
        if (!authenticates(cipher.mode)) return;
        for (std::size_t size = 0; size <= 300; size = next_length(size)) {
            for (const Side where : {Side::begin, Side::end}) {
                check_guarded(cipher, size % 7, size, where, false);
                if (HasFatalFailure()) return;
            }
        }
    });
}

TEST_P(Bounds, EdgesAgainstBothGuards) {
    std::vector<std::size_t> sizes;
    for (const std::size_t edge :
         slow()      ? std::vector<std::size_t>{4096}
         : sampled() ? std::vector<std::size_t>{512, 4096, 65536, 262144}
                     : std::vector<std::size_t>{512, 1024, 4096, 65536, 262144, 1 << 20})
        for (const std::size_t size : {edge - 16, edge - 1, edge + 1, edge + 48})
            sizes.push_back(size);
    for (std::size_t size = sampled() ? 4090 : 4000; size <= 4100; ++size) sizes.push_back(size);
    for_each_cipher([&](const Cipher& cipher) {
        for (const std::size_t size : sizes) {
            if (fitting(cipher, size) != size) continue;
            check_guarded(cipher, size, 13, random_.below(2) ? Side::begin : Side::end,
                          random_.below(2) == 0);
            if (HasFatalFailure()) return;
        }
    });
}

// Every message of a batch between its own guards: lanes that are short must not read on.
TEST_P(Bounds, BatchesAgainstGuards) {
    constexpr std::size_t kCount = 19;
    std::list<Guarded> memory;
    for (std::size_t i = 0; i < 4 * kCount; ++i) memory.emplace_back(4096);
    for_each_cipher([&](const Cipher& cipher) {
        now_running(GetParam().name + ", a batch in " + std::string(name(cipher.mode)));
        const KeyRing& keys = keys_for(cipher);
        const bool tagged = authenticates(cipher.mode);
        std::vector<Message> messages;
        std::vector<Answer> answers;
        auto next = memory.begin();
        for (std::size_t i = 0; i < kCount; ++i) {
            const std::size_t size = fitting(cipher, random_.below(slow() ? 60 : 2000));
            const Side where = random_.below(4) ? Side::end : Side::begin;
            const auto in = place(*next++, where, pattern(size, i));
            const auto out = place(*next++, where, size);
            const auto aad = place(*next++, where, pattern(tagged ? i : 0, 5));
            Message m{in.data(), i % 3 ? out.data() : in.data(), size, aad.data(), aad.size()};
            m.start = fitting_start(cipher, random_);
            m.key = static_cast<std::uint32_t>(i % keys.keys.size());
            answers.push_back(oracle(keys.raw[m.key], cipher, m, in));
            const auto tag = place(*next++, where, answers.back().tag);
            if (tagged) m.tag = tag.data();
            if (tagged && cipher.direction == Direction::encrypt) std::ranges::fill(tag, 0);
            messages.push_back(m);
        }
        std::vector<Code> codes(kCount, Code::ok);
        const auto done = subject().run(cipher, keys.keys, messages, codes);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(codes, std::vector(kCount, Code::ok));
        for (std::size_t i = 0; i < kCount; ++i) {
            const Message& m = messages[i];
            ASSERT_EQ(difference(answers[i].out, std::span(m.out, m.size)), "")
                << name(cipher.mode) << " " << name(cipher.direction) << ", message " << i;
            ASSERT_EQ(difference(answers[i].tag, std::span(m.tag, tagged ? cipher.tag : 0)), "")
                << i;
        }
    });
}

TEST_P(Bounds, NothingIsTouchedForNoBytes) {
    std::uint8_t* const forbidden = in_.at_end(0).data();  // the guard itself
    for_each_cipher([&](const Cipher& cipher) {
        for (std::uint8_t* pointer : {static_cast<std::uint8_t*>(nullptr), forbidden}) {
            now_running(GetParam().name + ", no bytes in " + std::string(name(cipher.mode)));
            const KeyRing& keys = keys_for(cipher);
            Message message{pointer, pointer, 0, pointer};
            if (makes_keystream(cipher.mode)) message.skip = 5;
            Bytes tag(16);
            if (authenticates(cipher.mode)) {
                tag = oracle(keys.raw[0], cipher, message, {}).tag;
                message.tag = tag.data();
            }
            EXPECT_TRUE(subject().run(cipher, keys.keys[0], message))
                << name(cipher.mode) << " " << name(cipher.direction);
        }
    });
}

TEST_P(Bounds, NullWithASizeIsRefused) {
    for_each_cipher([&](const Cipher& cipher) {
        const KeyRing& keys = keys_for(cipher);
        Bytes data(32), tag(16);
        const bool tagged = authenticates(cipher.mode);
        const Message good{data.data(), data.data(), 32, nullptr, 0, tagged ? tag.data() : nullptr};
        std::vector<Message> bad(2, good);
        bad[0].out = nullptr;
        bad[1].aad_size = 1;
        if (!makes_keystream(cipher.mode)) bad.emplace_back(good).in = nullptr;
        if (tagged) bad.emplace_back(good).tag = nullptr;
        for (const Message& message : bad)
            EXPECT_EQ(subject().run(cipher, keys.keys[0], message).code(), Code::invalid_argument)
                << name(cipher.mode);
        EXPECT_EQ(data, Bytes(32));
    });
}

// What is refused is refused before anything is read, written or wiped.
TEST_P(Bounds, NothingIsTouchedForBadInput) {
    std::uint8_t* const forbidden = in_.at_end(0).data();  // the guard itself
    for_each_cipher([&](const Cipher& cipher) {
        now_running(GetParam().name + ", bad input in " + std::string(name(cipher.mode)));
        const KeyRing& keys = keys_for(cipher);
        const auto expect = [&](const Message& message, Code code) {
            EXPECT_EQ(subject().run(cipher, keys.keys[0], message).code(), code)
                << name(cipher.mode);
        };
        Message good{forbidden, forbidden, 64};
        if (authenticates(cipher.mode)) {
            good.aad = forbidden + 200;
            good.aad_size = 20;
            good.tag = forbidden + 100;
        }
        Message bad = good;
        bad.key = 1;
        expect(bad, Code::invalid_argument);
        bad = good;
        bad.in = forbidden + 8;
        expect(bad, Code::overlap);
        bad = good;
        bad.skip = 17;
        expect(bad, Code::invalid_argument);
        if (!authenticates(cipher.mode)) return;
        bad = good;
        bad.size = modes::most(cipher.mode).data + 1;
        expect(bad, Code::limit);
        bad = good;
        bad.aad_size = modes::most(cipher.mode).aad + 1;
        expect(bad, Code::limit);
        bad = good;
        bad.tag = forbidden + 60;  // of the tag and the output
        expect(bad, Code::overlap);
        bad = good;
        bad.aad = forbidden + 63;
        expect(bad, Code::overlap);
    });
}

// What computes in device memory never sees these pages: there the poison around every message is
// looked at after each call (support/device_subject.cpp).
DAEL_FOR_FAMILIES(Bounds, targets_in_host_memory);

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
