// SPDX-License-Identifier: Apache-2.0
// The examples of NIST SP 800-38A, appendix F, both ways: the whole message, and its last block
// alone where a mode can start in the middle.
#include "support/subject.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class Sp80038a : public SubjectTest {
  protected:
    void expect(const Vector& vector, Direction direction, const Cipher& cipher,
                std::span<const std::uint8_t> in, std::span<const std::uint8_t> want) {
        if (!subject().supports(cipher.mode, direction, 1)) return;
        const auto key = Key::import(vector.key);
        ASSERT_TRUE(key);
        Poisoned out(in.size(), 0);
        const Message message{in.data(), out.data(), in.size(), cipher.iv, cipher.offset};
        const auto done = subject().run(*key, cipher.mode, direction, std::span(&message, 1));
        ASSERT_TRUE(done) << vector.name << ": " << done.error().message;
        EXPECT_EQ(to_hex(out.span()), to_hex(want)) << vector.name << " " << name(direction);
        EXPECT_TRUE(out.intact()) << vector.name;
    }
};

TEST_P(Sp80038a, AppendixF) {
    const auto vectors = load_json("sp800-38a.json");
    ASSERT_EQ(vectors.size(), 15u);  // five modes, three key sizes
    for (const Vector& vector : vectors) {
        const Cipher cipher{vector.mode, Direction::encrypt, to_block(vector.iv), 0};
        expect(vector, Direction::encrypt, cipher, vector.plaintext, vector.ciphertext);
        expect(vector, Direction::decrypt, cipher, vector.ciphertext, vector.plaintext);
    }
}

TEST_P(Sp80038a, EveryByteOfTheCtrKeystream) {
    for (const Vector& vector : load_json("sp800-38a.json")) {
        if (vector.mode != Mode::ctr) continue;
        for (std::size_t offset = 0; offset < vector.plaintext.size(); ++offset)
            expect(vector, Direction::encrypt,
                   {Mode::ctr, Direction::encrypt, to_block(vector.iv), offset},
                   std::span(vector.plaintext).subspan(offset),
                   std::span(vector.ciphertext).subspan(offset));
    }
}

DAEL_FOR_EVERY_BACKEND(Sp80038a);

}  // namespace
