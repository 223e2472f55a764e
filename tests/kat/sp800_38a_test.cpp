// SPDX-License-Identifier: Apache-2.0
// The examples of NIST SP 800-38A, appendix F, both ways: the whole message, and its last block
// alone where a mode can start in the middle.
#include "modes/traits.hpp"
#include "support/oracle.hpp"
#include "support/subject.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class Sp80038a : public SubjectTest {
  protected:
    void expect(const Vector& vector, const Use& use, std::span<const std::uint8_t> in,
                std::span<const std::uint8_t> want) {
        if (!can(use.mode, use.direction)) return;
        const auto key = Key::import(vector.key);
        ASSERT_TRUE(key);
        Poisoned out(in.size(), 0);
        Message message{in.data(), out.data(), in.size(), nullptr, 0, nullptr, use.start};
        if (use.offset != 0) message = modes::from_offset(message, use.offset);
        const auto done = subject().run({use.mode, use.direction}, *key, message);
        ASSERT_TRUE(done) << vector.name << ": " << done.error().message;
        EXPECT_EQ(to_hex(out.span()), to_hex(want)) << vector.name << " " << name(use.direction);
        EXPECT_TRUE(out.intact()) << vector.name;
    }
};

TEST_P(Sp80038a, AppendixF) {
    const auto vectors = load_json("sp800-38a.json");
    ASSERT_EQ(vectors.size(), 15u);  // five modes, three key sizes
    for (const Vector& vector : vectors) {
        const Block start = to_block(vector.iv);
        expect(vector, {vector.mode, Direction::encrypt, start, 0}, vector.plaintext,
               vector.ciphertext);
        expect(vector, {vector.mode, Direction::decrypt, start, 0}, vector.ciphertext,
               vector.plaintext);
    }
}

TEST_P(Sp80038a, EveryByteOfTheCtrKeystream) {
    for (const Vector& vector : load_json("sp800-38a.json")) {
        if (vector.mode != Mode::ctr) continue;
        for (std::size_t offset = 0; offset < vector.plaintext.size(); ++offset)
            expect(vector, {Mode::ctr, Direction::encrypt, to_block(vector.iv), offset},
                   std::span(vector.plaintext).subspan(offset),
                   std::span(vector.ciphertext).subspan(offset));
    }
}

DAEL_FOR_KNOWN_ANSWERS(Sp80038a);

}  // namespace
