// SPDX-License-Identifier: Apache-2.0
// Every backend gives OpenSSL's answer, and so every other's: on every length, alignment and edge,
// in place and not; and what one encrypts every other decrypts.
#include "support/oracle.hpp"
#include "support/subject.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kKeySizes[] = {16, 24, 32};
constexpr Direction kDirections[] = {Direction::encrypt, Direction::decrypt};

class XBackend : public SubjectTest {
  protected:
    Random random_{2463534242};

    // One message with a random key and IV, a random place in memory, in place every third time.
    void check_length(Mode mode, Direction direction, std::size_t size, std::size_t key_size) {
        const std::uint64_t offset = mode == Mode::ctr && random_.below(2) ? random_.below(64) : 0;
        check(random_.bytes(key_size), {mode, direction, random_.block(), offset},
              pattern(size, random_.below(251)), random_.below(16), random_.below(16),
              random_.below(3) == 0);
    }
};

std::size_t whole(Mode mode, std::size_t size) {
    return whole_blocks_only(mode) ? size / kBlockSize * kBlockSize : size;
}

TEST_P(XBackend, EveryLengthToTwoKiB) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (std::size_t size = 0; size <= 2048; size += next_length(size)) {
                if (whole(mode, size) != size) continue;
                // The reference gets every length of the first 80 bytes, and some of the others.
                if (slow() && size > 80 && random_.below(whole_blocks_only(mode) ? 8 : 64) != 0)
                    continue;
                check_length(mode, direction, size, kKeySizes[random_.below(3)]);
                if (HasFatalFailure()) return;
            }
}

TEST_P(XBackend, EveryAlignmentOfInputAndOutput) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (std::size_t in_at = 0; in_at < 16; ++in_at)
                for (std::size_t out_at = 0; out_at < 16; ++out_at) {
                    if (slow() && in_at != out_at && in_at != 0) continue;
                    const Cipher cipher{mode, direction, random_.block(), 0};
                    const std::size_t size = whole(mode, slow() ? 53 : 1200 + random_.below(32));
                    check(random_.bytes(16), cipher, pattern(size), in_at, out_at);
                    if (HasFatalFailure()) return;
                }
}

TEST_P(XBackend, EveryAlignmentInPlace) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (std::size_t at = 0; at < 16; ++at) {
                const Cipher cipher{mode, direction, random_.block(), 0};
                check(random_.bytes(32), cipher, pattern(whole(mode, slow() ? 53 : 3001)), at, 0,
                      true);
                if (HasFatalFailure()) return;
            }
}

// Around the sizes at which work is cut up: for threads, for vector loops, for chunks to a device.
TEST_P(XBackend, AroundEdges) {
    std::vector<std::size_t> edges{64 << 10, 128 << 10, 256 << 10, 1 << 20};
    if (slow()) edges = {4096};
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (const std::size_t edge : edges)
                for (const std::size_t size : {edge - 16, edge - 1, edge, edge + 1, edge + 16}) {
                    if (whole(mode, size) != size) continue;
                    check_length(mode, direction, size, kKeySizes[random_.below(3)]);
                    if (HasFatalFailure()) return;
                }
}

TEST_P(XBackend, LargeMessages) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            const std::size_t mib =
                parallel_within_message(mode, direction) ? thorough(16, 2) : thorough(4, 1);
            check_length(mode, direction, whole(mode, slow() ? 20005 : (mib << 20) + 21), 16);
            if (HasFatalFailure()) return;
        }
}

TEST_P(XBackend, EncryptsForEveryOtherToDecrypt) {
    std::vector<Target> others = targets(Target::Family::Host);
    if (GetParam().far()) std::ranges::copy(targets(GetParam().family), std::back_inserter(others));
    std::size_t present = 0;
    for (const Target& target : others) {
        const auto other = open_subject(target);
        if (!other) continue;
        ++present;
        for (const Mode mode : kModes)
            for (const std::size_t key_size : kKeySizes) {
                const std::size_t size =
                    whole(mode, 16 + random_.below(target.slow || slow() ? 300 : 3000));
                const auto key = Key::import(random_.bytes(key_size));
                ASSERT_TRUE(key);
                const Bytes plain = pattern(size, random_.below(251));
                Bytes cipher(size), back(size);
                const Message there{plain.data(), cipher.data(), size, random_.block(), 0};
                const Message again{cipher.data(), back.data(), size, there.iv, 0};
                if (!subject().supports(mode, Direction::encrypt, 1) ||
                    !(*other)->supports(mode, Direction::decrypt, 1))
                    continue;
                ASSERT_TRUE(subject().run(*key, mode, Direction::encrypt, std::span(&there, 1)));
                ASSERT_NE(cipher, plain);
                ASSERT_TRUE((*other)->run(*key, mode, Direction::decrypt, std::span(&again, 1)));
                ASSERT_EQ(difference(plain, back), "")
                    << name(mode) << ", encrypted by " << GetParam().name << ", decrypted by "
                    << target.name;
            }
    }
    EXPECT_GE(present, 3u);  // the reference and openssl are on every machine
}

TEST_P(XBackend, RefusesRaggedLengthsAndOffsetsOutsideCtr) {
    const auto key = Key::import(random_.bytes(16));
    ASSERT_TRUE(key);
    Bytes in = pattern(40), out(40, Poisoned::kPoison);
    const Bytes untouched = out;
    for (const Mode mode : {Mode::ecb, Mode::cbc})
        for (const std::size_t size : {1, 15, 17, 31, 33}) {
            const Message message{in.data(), out.data(), size, {}, 0};
            const auto done = subject().run(*key, mode, Direction::encrypt, std::span(&message, 1));
            EXPECT_EQ(done.code(), Code::ragged_length) << name(mode) << " " << size;
        }
    const Message with_offset{in.data(), out.data(), 32, {}, 16};
    for (const Mode mode : {Mode::ecb, Mode::cbc, Mode::cfb, Mode::ofb})
        EXPECT_EQ(subject().run(*key, mode, Direction::encrypt, std::span(&with_offset, 1)).code(),
                  Code::invalid_argument)
            << name(mode);
    const Message overlapping{in.data(), in.data() + 8, 32, {}, 0};
    EXPECT_EQ(subject().run(*key, Mode::ctr, Direction::encrypt, std::span(&overlapping, 1)).code(),
              Code::overlap);
    EXPECT_EQ(out, untouched);
    EXPECT_EQ(in, pattern(40));
}

DAEL_FOR_EVERY_BACKEND(XBackend);

}  // namespace
