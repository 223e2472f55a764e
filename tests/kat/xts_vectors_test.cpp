// SPDX-License-Identifier: Apache-2.0
// XTS-AES: IEEE 1619's own vectors (annex B), and NIST's CAVP response files.
#include <cstdlib>
#include <filesystem>

#include "support/subject.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;
namespace fs = std::filesystem;

class XtsVectors : public SubjectTest {
  protected:
    void SetUp() override {
        SubjectTest::SetUp();
        if (!IsSkipped() && !HasFatalFailure() && !can(Mode::xts, Direction::encrypt))
            GTEST_SKIP() << GetParam().name << " has no XTS";
    }
    void check_vector(const XtsVector& vector, Direction direction) {
        const auto key = Key::import_xts(vector.key);
        ASSERT_TRUE(key) << vector.name << ": " << key.error().message;
        const bool encrypt = direction == Direction::encrypt;
        const Bytes& in = encrypt ? vector.plaintext : vector.ciphertext;
        const Bytes& want = encrypt ? vector.ciphertext : vector.plaintext;
        ASSERT_EQ(8 * in.size(), vector.bits) << vector.name;
        ASSERT_EQ(vector.number.size(), 16u) << vector.name;
        Bytes out(in.size(), Poisoned::kPoison);
        const auto done = subject().run(
            {Mode::xts, direction, 16, 0, static_cast<std::uint32_t>(in.size())}, *key,
            {in.data(), out.data(), in.size(), nullptr, 0, nullptr, to_block(vector.number)});
        ASSERT_TRUE(done) << vector.name << ": " << done.error().message;
        ASSERT_EQ(to_hex(out), to_hex(want)) << vector.name;
    }
};

TEST_P(XtsVectors, Ieee1619) {
    const auto vectors = load_xts_json("ieee1619.json");
    EXPECT_EQ(vectors.size(), 8u);
    for (const XtsVector& vector : vectors)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            check_vector(vector, direction);
            if (HasFatalFailure()) return;
        }
}

#ifdef DAEL_CAVP_DIR
TEST_P(XtsVectors, Cavp) {
    const char* given = std::getenv("DAELSTROM_CAVP_DIR");
    const fs::path folder = fs::path(given ? given : DAEL_CAVP_DIR) / "XTS";
    ASSERT_TRUE(fs::is_directory(folder))
        << "NIST's vectors are not at '" << folder.string()
        << "': run scripts/setup, or name their folder with -DDAELSTROM_CAVP_DIR=... or in the "
           "environment";
    std::size_t run = 0, not_bytes = 0;
    for (const char* kind : {"tweak-128hexstr", "tweak-dataunitseqno"})
        for (const char* file : {"XTSGenAES128.rsp", "XTSGenAES256.rsp"})
            for (const XtsVector& vector : load_xts_rsp(folder / kind / file)) {
                if (vector.bits % 8 != 0) {  // 130, 140 and 250 bits: not for a library of bytes
                    ++not_bytes;
                    continue;
                }
                ++run;
                check_vector(vector, *vector.direction);
                if (HasFatalFailure()) return;
            }
    EXPECT_EQ(run, 2800u);
    EXPECT_EQ(not_bytes, 1200u);
}
#endif

DAEL_FOR_KNOWN_ANSWERS(XtsVectors);

}  // namespace
