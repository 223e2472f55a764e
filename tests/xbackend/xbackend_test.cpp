// SPDX-License-Identifier: Apache-2.0
// Every backend gives OpenSSL's answer, and so every other's: in every mode, on every length,
// alignment and edge, in place and not; and what one encrypts every other decrypts.
#include <sstream>

#include "core/registry.hpp"
#include "support/modes_test.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class XBackend : public ModesTest {};

TEST_P(XBackend, EveryLengthToTwoKiB) {
    for_each_cipher([&](Cipher cipher) {
        for (const std::size_t size : lengths(cipher, 2048)) {
            check_size(cipher, size);
            if (HasFatalFailure()) return;
        }
    });
}

TEST_P(XBackend, EveryAlignmentOfInputAndOutput) {
    for_each_cipher([&](const Cipher& cipher) {
        for (std::size_t in_at = 0; in_at < 16; ++in_at)
            for (std::size_t out_at = 0; out_at < 16; ++out_at) {
                const bool rare = GetParam().rare();  // each of either side once
                if (rare && (in_at + out_at) % 16 != 0) continue;
                if (!rare && sparse() && in_at != out_at && in_at != 0 && out_at != 0) continue;
                const std::size_t size = slow() ? 53 : 1200 + random_.below(32);
                check(cipher, {fitting(cipher, size), in_at, out_at, false, false, 21});
                if (HasFatalFailure()) return;
            }
    });
}

TEST_P(XBackend, EveryAlignmentInPlace) {
    for_each_cipher([&](const Cipher& cipher) {
        for (std::size_t at = 0; at < 16; ++at) {
            check(cipher, {fitting(cipher, slow() ? 53 : 3001), at, 0, true, false, 21});
            if (HasFatalFailure()) return;
        }
    });
}

// The keystream itself, of every alignment and from every byte of a block on.
TEST_P(XBackend, KeystreamsWithoutInput) {
    for_each_cipher([&](const Cipher& cipher) {
        if (!makes_keystream(cipher.mode)) return;
        for (const std::size_t size : lengths(cipher, slow() ? 60 : 600)) {
            Shape shape{.size = size, .out_at = size / 3 % 16, .keystream = true};
            shape.skip = static_cast<std::uint8_t>(size % 16);
            check(cipher, shape);
            if (HasFatalFailure()) return;
        }
        check(cipher,
              {.size = slow() ? 3001u : (sampled() ? 1u << 20 : 5u << 20) + 13, .keystream = true});
    });
}

// Around the sizes at which work is cut up: for threads, for vector loops, for chunks to a device.
TEST_P(XBackend, AroundEdges) {
    std::vector<std::size_t> edges{64 << 10, 128 << 10, 256 << 10, 1 << 20};
    if (sampled()) edges = {64 << 10, 256 << 10};
    if (slow()) edges = {4096};
    for_each_cipher([&](const Cipher& cipher) {
        for (const std::size_t edge : edges)
            for (const std::size_t size : {edge - 16, edge - 1, edge, edge + 1, edge + 16}) {
                if (fitting(cipher, size) != size) continue;
                if (by_hand(cipher.mode) && edge > (256 << 10)) continue;
                check_size(cipher, size);
                if (HasFatalFailure()) return;
            }
    });
}

TEST_P(XBackend, LargeMessages) {
    for_each_cipher([&](const Cipher& cipher) {
        const bool parallel = parallel_within_message(cipher.mode, cipher.direction);
        // OpenCL has another kernel for counters from 4 MiB on.
        const std::size_t mib = by_hand(cipher.mode)           ? 1
                                : GetParam().quick()           ? (parallel ? 16 : 4)
                                : makes_keystream(cipher.mode) ? 4
                                                               : 1;
        check_size(cipher, slow() ? 20005 : (mib << 20) + 21);
    });
}

TEST_P(XBackend, EncryptsForEveryOtherToDecrypt) {
    std::vector<Target> others = targets(Target::Family::Host);
    // With those of its own kind the fastest of them is compared: each call of a driver that is a
    // CPU's takes its time.
    if (GetParam().far() && !slow())
        std::ranges::copy(targets(GetParam().family), std::back_inserter(others));
    std::size_t present = 0;
    for (const Target& target : others) {
        const auto other = subject_of(target);
        if (!other) continue;
        ++present;
        for (const Mode mode : kModes)
            for (const std::size_t key_size : KeysFor(mode).sizes) {
                const Cipher forth{mode, Direction::encrypt}, back{mode, Direction::decrypt};
                if (!can(mode, Direction::encrypt) ||
                    (*other)->can(back, usual_bits(mode)).answer == core::Can::no)
                    continue;
                const KeyRing ring({random_.bytes(key_size)}, mode);
                const Key& key = ring.keys[0];
                const std::size_t size =
                    fitting(forth, 16 + random_.below(target.slow || slow() ? 300 : 3000));
                const Bytes plain = pattern(size, random_.below(251)), aad = pattern(33);
                Bytes cipher(size), opened(size), tag(16);
                Message there{plain.data(), cipher.data(), size};
                if (authenticates(mode)) {
                    there.aad = aad.data();
                    there.aad_size = aad.size();
                    there.tag = tag.data();
                }
                there.start = fitting_start(forth, random_);
                there.start_rest = fitting_rest(forth, random_);
                Message again = there;
                again.in = cipher.data();
                again.out = opened.data();
                ASSERT_TRUE(subject().run(forth, key, there));
                ASSERT_NE(cipher, plain);
                ASSERT_TRUE((*other)->run(back, key, again)) << name(mode) << " " << target.name;
                ASSERT_EQ(difference(plain, opened), "")
                    << name(mode) << ", encrypted by " << GetParam().name << ", decrypted by "
                    << target.name;
            }
    }
    EXPECT_GE(present, 3u);  // the reference and openssl are on every machine
}

// What a mode does not take is refused before anything is read, written or wiped.
TEST_P(XBackend, RefusesWhatHasNoMeaning) {
    Bytes in = pattern(80), out(80, Poisoned::kPoison), tag(16);
    const auto expect = [&](const Cipher& cipher, const Message& message, Code code) {
        const KeyRing keys({pattern_key(cipher.mode)}, cipher.mode);
        const auto done = subject().run(cipher, keys.keys[0], message);
        EXPECT_EQ(done.code(), code)
            << name(cipher.mode) << " " << name(cipher.direction) << " of " << message.size;
        if (done) return;
        EXPECT_FALSE(done.error().message.empty());
    };
    for_each_cipher([&](const Cipher& cipher) {
        const Mode mode = cipher.mode;
        Message good{in.data(), out.data(), 32};
        if (authenticates(mode)) good.tag = tag.data();
        Message bad = good;
        for (const std::size_t size : {1, 15, 17, 31, 33}) {
            bad.size = size;
            if (whole_blocks_only(mode)) expect(cipher, bad, Code::ragged_length);
        }
        bad = good;
        bad.skip = 1;
        if (!makes_keystream(mode)) expect(cipher, bad, Code::invalid_argument);
        bad.skip = 16;
        expect(cipher, bad, Code::invalid_argument);
        bad = good;
        bad.aad = in.data() + 40;
        bad.aad_size = 1;
        if (!authenticates(mode)) expect(cipher, bad, Code::invalid_argument);
        bad = good;
        bad.out = in.data() + 8;
        expect(cipher, bad, Code::overlap);
        bad = good;
        bad.key = 1;
        expect(cipher, bad, Code::invalid_argument);
        bad = good;
        bad.out = nullptr;
        expect(cipher, bad, Code::invalid_argument);
        bad = good;
        bad.in = nullptr;
        if (!makes_keystream(mode)) expect(cipher, bad, Code::invalid_argument);
        Cipher odd = cipher;
        odd.tag = 11;
        if (authenticates(mode)) expect(odd, good, Code::invalid_argument);
        odd.sector = 15;
        if (mode == Mode::xts) expect(odd, good, Code::invalid_argument);
    });
    EXPECT_EQ(out, Bytes(80, Poisoned::kPoison));
    EXPECT_EQ(in, pattern(80));
    EXPECT_EQ(tag, Bytes(16));
}

TEST_P(XBackend, RefusesKeysOfTheOtherKind) {
    for_each_cipher([&](const Cipher& cipher) {
        const KeyRing wrong({pattern(32)}, cipher.mode != Mode::xts);
        Bytes data = pattern(64), tag(16);
        Message message{data.data(), data.data(), data.size()};
        if (authenticates(cipher.mode)) message.tag = tag.data();
        EXPECT_EQ(subject().run(cipher, wrong.keys[0], message).code(), Code::invalid_argument)
            << name(cipher.mode);
        EXPECT_EQ(data, pattern(64));
    });
}

// What a backend has not got it says, with what to use in its place, and leaves the output alone.
TEST_P(XBackend, WhatIsMissingIsSaidWithTheMend) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            if (can(mode, direction)) continue;
            const Cipher cipher{mode, direction};
            const KeyRing keys({pattern_key(mode)}, mode);
            const Bytes in(64);
            Bytes out(64, Poisoned::kPoison), tag(16);
            Message message{in.data(), out.data(), 64};
            if (authenticates(mode)) message.tag = tag.data();
            const auto done = subject().run(cipher, keys.keys[0], message);
            ASSERT_EQ(done.code(), Code::unsupported) << name(mode);
            bool names_another = done.error().message.find("'auto'") != std::string::npos;
            for (const core::BackendEntry& entry : core::backend_list())
                names_another |= entry.name != GetParam().backend &&
                                 done.error().message.find("'" + std::string(entry.name) + "'") !=
                                     std::string::npos;
            EXPECT_TRUE(names_another) << done.error().message;
            EXPECT_EQ(out, Bytes(64, Poisoned::kPoison));
        }
}

DAEL_FOR_EVERY_BACKEND(XBackend);

// A name in DAELSTROM_TEST_REQUIRE that is no target's would never be missed.
TEST(Targets, EveryOneThatIsRequiredIsKnown) {
    const char* list = std::getenv("DAELSTROM_TEST_REQUIRE");
    if (!list || std::string(list) == "all") GTEST_SKIP() << "nothing is required by name";
    std::set<std::string> known;
    for (const auto family : {Target::Family::Host, Target::Family::Gpu, Target::Family::OpenCl,
                              Target::Family::OpenGl})
        for (const Target& target : targets(family)) known.insert(target.name);
    std::string names = list;
    std::ranges::replace(names, ',', ' ');
    std::istringstream words(names);
    for (std::string word; words >> word;)
        EXPECT_TRUE(known.contains(word)) << "no target is called " << word;
}

}  // namespace
