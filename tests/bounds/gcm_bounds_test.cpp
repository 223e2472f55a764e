// SPDX-License-Identifier: Apache-2.0
// GCM touches nothing outside of its data, AAD and tag: each lies against a page that may not be
// touched, on either side, at every length.
#include "support/gcm_test.hpp"
#include "support/guarded.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class GcmBounds : public GcmTest {
  protected:
    void SetUp() override {
        report_faults();
        GcmTest::SetUp();
    }

    void check_guarded(std::size_t size, std::size_t aad_size, std::size_t iv_size, bool at_end,
                       bool in_place) {
        const std::string what = std::string(GetParam().name) + ", " + std::to_string(size) +
                                 " bytes, AAD of " + std::to_string(aad_size) + ", at a page's " +
                                 (at_end ? "end" : "begin") + (in_place ? ", in place" : "");
        const auto place = [&](Guarded& memory, std::span<const std::uint8_t> content) {
            std::ranges::fill(memory.all(), Poisoned::kPoison);
            const auto where =
                at_end ? memory.at_end(content.size()) : memory.at_begin(content.size());
            std::ranges::copy(content, where.begin());
            return where;
        };
        const Bytes plain = pattern(size, size), aad = pattern(aad_size, 3);
        const Bytes iv = random_.bytes(iv_size);
        const Sealed sealed = gcm_oracle(key_bytes_, iv, aad, plain);
        for (const bool seal : {true, false}) {
            now_running(what + (seal ? ", sealing" : ", opening"));
            const std::size_t tag_size = size % 5 == 4 ? 13 : kTagSize;
            const auto in = place(in_, seal ? plain : sealed.ciphertext);
            const auto out = in_place ? in : place(out_, Bytes(size, Poisoned::kPoison));
            const auto held_aad = place(aad_, aad), held_iv = place(iv_, iv);
            const auto tag = place(tag_, std::span(sealed.tag).first(tag_size));
            if (seal) std::ranges::fill(tag, Poisoned::kPoison);
            const core::GcmSegment message{
                in.data(),      out.data(), size,       held_aad.data(), aad_size,
                held_iv.data(), iv_size,    tag.data(), tag_size,        0};
            Code result = Code::internal;
            const auto done =
                subject().gcm(seal ? Direction::encrypt : Direction::decrypt, std::span(&*key_, 1),
                              std::span(&message, 1), std::span(&result, 1));
            ASSERT_TRUE(done) << what << ": " << done.error().message;
            ASSERT_EQ(result, Code::ok) << what;
            ASSERT_EQ(difference(seal ? sealed.ciphertext : plain, out), "") << what;
            ASSERT_EQ(difference(std::span(sealed.tag).first(tag_size), tag), "") << what;
            // The rest of the pages, on the side without a guard.
            for (auto* memory : {&out_, &tag_, &in_}) {
                const std::size_t used = memory == &tag_ ? tag_size : size;
                if (memory == &out_ && in_place) continue;
                const auto all = memory->all();
                const auto rest = at_end ? all.first(all.size() - used) : all.subspan(used);
                ASSERT_TRUE(std::ranges::all_of(rest, [](auto byte) {
                    return byte == Poisoned::kPoison;
                })) << what;
            }
        }
    }

    const Bytes key_bytes_ = random_.bytes(32);
    Result<Key> key_ = Key::import(key_bytes_);
    Guarded in_{8192}, out_{8192}, aad_{4096}, iv_{4096}, tag_{4096};
};

TEST_P(GcmBounds, EveryLengthAgainstBothGuards) {
    for (std::size_t size = 0; size <= 600; ++size) {
        if (slow() && size > 40 && size % 16 != 8) continue;
        for (const bool at_end : {false, true})
            for (const bool in_place : {false, true}) {
                check_guarded(size, random_.below(50), size % 4 ? kNonceSize : 1 + size % 128,
                              at_end, in_place);
                if (HasFatalFailure()) return;
            }
    }
}

TEST_P(GcmBounds, EveryAadLengthAgainstBothGuards) {
    for (std::size_t size = 0; size <= 300; ++size) {
        if (slow() && size > 40 && size % 16 != 8) continue;
        for (const bool at_end : {false, true}) {
            check_guarded(size % 7, size, kNonceSize, at_end, false);
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(GcmBounds, LongerLengthsAgainstBothGuards) {
    for (std::size_t size = slow() ? 4090 : 4000; size <= 4100; ++size) {
        check_guarded(size, 13, kNonceSize, size % 2 == 0, size % 3 == 0);
        if (HasFatalFailure()) return;
    }
}

// What is refused is refused before anything is read, written or wiped.
TEST_P(GcmBounds, NothingIsTouchedForBadInput) {
    now_running(std::string(GetParam().name) + ", bad input");
    std::uint8_t* const forbidden = in_.at_end(0).data();  // the guard itself
    const Bytes iv(kNonceSize);
    const core::GcmSegment good{forbidden, forbidden, 64,        forbidden, 20,
                                iv.data(), iv.size(), forbidden, kTagSize,  0};
    core::GcmSegment no_key = good, no_in = good, no_tag = good, too_long = good;
    no_key.key = 1;
    no_in.in = nullptr;
    no_tag.tag = nullptr;
    too_long.size = kGcmMostData + 1;
    for (const core::GcmSegment& message : {no_key, no_in, no_tag, too_long, good})
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            Code result = Code::ok;
            const auto done = subject().gcm(direction, std::span(&*key_, 1), std::span(&message, 1),
                                            std::span(&result, 1));
            const Code code = done ? result : done.code();
            EXPECT_EQ(code, message.size > kGcmMostData ? Code::limit
                            : message.key == 1 || !message.in || !message.tag
                                ? Code::invalid_argument
                                : Code::overlap);  // of the tag and the output
        }
}

DAEL_FOR_WHOLE_BACKENDS(GcmBounds);

}  // namespace
