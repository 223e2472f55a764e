// SPDX-License-Identifier: Apache-2.0
// A fixture for tests that go over every mode of a subject and compare with OpenSSL.
#pragma once

#include "support/subject.hpp"
#include "support/test_batch.hpp"

namespace dael::test {

class ModesTest : public SubjectTest {
  protected:
    // Every cipher that the subject takes, with whole tags and sectors of 512 bytes. Ends where a
    // test has failed.
    template <class Visit>
    void for_each_cipher(Visit visit) {
        for (const Mode mode : kModes)
            for (const Direction direction : kDirections) {
                if (!can(mode, direction) || goes_as_another(mode)) continue;
                visit(Cipher{mode, direction});
                if (HasFatalFailure()) return;
            }
    }
    // Above backends AEGIS's modes go one way, and XAES-256-GCM that of AEGIS-256, whose starts are
    // as long; kat/ has each of them everywhere.
    bool goes_as_another(Mode mode) const {
        return GetParam().level != Target::Level::backend &&
               (mode == Mode::aegis128x2 || mode == Mode::aegis128x4 || mode == Mode::xaes256gcm);
    }
    // The lengths of a sweep to `most`, as a mode takes them.
    std::vector<std::size_t> lengths(const Cipher& cipher, std::size_t most) const {
        std::vector<std::size_t> list;
        for (std::size_t size = 0; size <= most; size = next_length(size))
            if (const std::size_t fits = fitting(cipher, size); list.empty() || fits != list.back())
                list.push_back(fits);
        return list;
    }
    Bytes random_key(const Cipher& cipher) {
        const auto sizes = KeysFor(cipher).sizes;
        return random_.bytes(sizes[random_.below(sizes.size())]);
    }
    KeyRing ring(const Cipher& cipher, std::size_t count) {
        return KeyRing(random_, count, cipher);
    }

    // One message, by itself, under a key of any size.
    void check(const Cipher& cipher, const Shape& shape) {
        check(cipher, shape, random_key(cipher));
    }
    void check(const Cipher& cipher, const Shape& shape, const Bytes& key) {
        const KeyRing alone({key}, cipher.mode);
        TestBatch batch(random_, alone, cipher);
        batch.add(shape);
        const auto by_itself = [&](const Cipher& c, std::span<const Key> keys,
                                   std::span<const Message> messages, std::span<Code> codes) {
            auto done = subject().run(c, keys[0], messages[0]);
            codes[0] = done.code();
            return done;
        };
        ASSERT_EQ(batch.fault_of(by_itself), "");
    }
    void check_size(const Cipher& cipher, std::size_t size) {
        check(cipher, any_shape(cipher, size, random_));
    }

    void check(TestBatch& batch) { ASSERT_EQ(fault_of(batch), ""); }
    std::string fault_of(TestBatch& batch) {
        return batch.fault_of(
            [&](const auto&... arguments) { return subject().run(arguments...); });
    }

    Random random_{2463534242};
};

}  // namespace dael::test
