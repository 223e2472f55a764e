// SPDX-License-Identifier: Apache-2.0
// NIST's CAVP response files for AES: known answers (GFSbox, KeySbox, VarKey, VarTxt) and
// multi-block messages (MMT) in ECB, CBC, CFB-128 and OFB, and RFC 3686's CTR vectors in the same
// form.
#include <cstdlib>
#include <filesystem>

#include "support/subject.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;
namespace fs = std::filesystem;

fs::path folder() {
    const char* given = std::getenv("DAELSTROM_CAVP_DIR");
    return given ? given : DAEL_CAVP_DIR;
}

struct Family {
    Mode mode;
    const char* folder;
    const char* prefix;
    std::size_t files;    // as NIST published them
    std::size_t vectors;  // in all of them, so that a file that was read halfway is noticed
};

class Cavp : public SubjectTest {
  protected:
    void run_family(const Family& family) {
        const fs::path path = folder() / family.folder;
        ASSERT_TRUE(fs::is_directory(path))
            << "NIST's vectors are not at '" << path.string()
            << "': run scripts/setup, or name their folder with -DDAELSTROM_CAVP_DIR=... or in the "
               "environment";
        std::size_t files = 0, count = 0;
        for (const auto& entry : fs::directory_iterator(path)) {
            if (!entry.path().filename().string().starts_with(family.prefix)) continue;
            ++files;
            for (const Vector& vector : load_rsp(entry.path(), family.mode)) {
                ++count;
                check_vector(vector);
                if (HasFatalFailure()) return;
            }
        }
        EXPECT_EQ(files, family.files);
        EXPECT_EQ(count, family.vectors);
    }

  private:
    void check_vector(const Vector& vector) {
        if (!can(vector.mode, *vector.direction)) return;
        const auto key = Key::import(vector.key);
        ASSERT_TRUE(key) << vector.name;
        const bool encrypt = *vector.direction == Direction::encrypt;
        const Bytes& in = encrypt ? vector.plaintext : vector.ciphertext;
        const Bytes& want = encrypt ? vector.ciphertext : vector.plaintext;
        ASSERT_FALSE(in.empty()) << vector.name;
        Bytes out(in.size());
        const auto done = subject().run(
            {vector.mode, *vector.direction}, *key,
            {in.data(), out.data(), in.size(), nullptr, 0, nullptr, to_block(vector.iv)});
        ASSERT_TRUE(done) << vector.name << ": " << done.error().message;
        ASSERT_EQ(to_hex(out), to_hex(want)) << vector.name;
    }
};

TEST_P(Cavp, Ecb) {
    run_family({Mode::ecb, "ECB", "ECB", 15, 2138});
}
TEST_P(Cavp, Cbc) {
    run_family({Mode::cbc, "CBC", "CBC", 15, 2138});
}
TEST_P(Cavp, Cfb128) {
    run_family({Mode::cfb, "CFB", "CFB128", 15, 2138});
}
TEST_P(Cavp, Ofb) {
    run_family({Mode::ofb, "OFB", "OFB", 15, 2138});
}
TEST_P(Cavp, Ctr) {
    run_family({Mode::ctr, "CTR", "aes-", 3, 9});
}

// RFC 3686 section 6 counts as gcm_ctr does: nonce and IV, 12 bytes, then a 32-bit counter from 1.
// All of them as one batch, each under its own key.
TEST_P(Cavp, Rfc3686InOneBatchWithAKeyEach) {
    if (!can(Mode::gcm_ctr, Direction::encrypt)) GTEST_SKIP() << "no gcm_ctr";
    std::vector<Vector> vectors;
    for (const auto& entry : fs::directory_iterator(folder() / "CTR"))
        if (entry.path().filename().string().starts_with("aes-"))
            std::ranges::copy(load_rsp(entry.path(), Mode::gcm_ctr), std::back_inserter(vectors));
    ASSERT_EQ(vectors.size(), 9u);
    std::vector<Key> keys;
    std::vector<Bytes> out;
    std::vector<Message> messages;
    for (const Vector& vector : vectors) {
        keys.push_back(*Key::import(vector.key));
        out.emplace_back(vector.plaintext.size());
        messages.push_back({vector.plaintext.data(), out.back().data(), out.back().size(), nullptr,
                            0, nullptr, to_block(vector.iv)});
        messages.back().key = static_cast<std::uint32_t>(messages.size() - 1);
    }
    std::vector<Code> codes(messages.size(), Code::ok);
    const auto done = subject().run({Mode::gcm_ctr}, keys, messages, codes);
    ASSERT_TRUE(done) << done.error().message;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
        EXPECT_EQ(codes[i], Code::ok);
        EXPECT_EQ(to_hex(out[i]), to_hex(vectors[i].ciphertext)) << vectors[i].name;
    }
}

DAEL_FOR_KNOWN_ANSWERS(Cavp);

}  // namespace
