// SPDX-License-Identifier: Apache-2.0
// Known answers for GCM: the paper's test cases, and NIST's CAVP response files (gcmDecrypt and
// gcmEncryptExtIV), with short tags, IVs of 1 and of 128 bytes, and forgeries to be refused.
#include <cstdlib>
#include <filesystem>
#include <map>

#include "support/gcm_test.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;
namespace fs = std::filesystem;

// A vector with its J0, which the field's plain mathematics make of a long IV.
struct Started {
    GcmVector vector;
    Block start;
};
std::vector<Started> started(std::vector<GcmVector> vectors) {
    std::vector<Started> list;
    for (GcmVector& vector : vectors) {
        const Block start = GcmCase{vector.key, vector.iv, {}, {}}.start();
        list.push_back({std::move(vector), start});
    }
    return list;
}

class GcmVectors : public GcmTest {
  protected:
    // Vectors of one tag size, each under a key of its own.
    void check_group(const std::vector<const Started*>& group) {
        std::vector<Key> keys;
        for (const auto* started : group) {
            auto key = Key::import(started->vector.key);
            ASSERT_TRUE(key) << started->vector.name;
            keys.push_back(std::move(*key));
        }
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            const bool seal = direction == Direction::encrypt;
            std::vector<Message> messages;
            std::vector<const GcmVector*> used;
            std::vector<Bytes> out, tags;
            out.reserve(group.size());
            tags.reserve(group.size());
            for (std::size_t i = 0; i < group.size(); ++i) {
                const GcmVector& v = group[i]->vector;
                if (seal && v.refused) continue;
                const Bytes& in = seal ? v.plaintext : v.ciphertext;
                out.emplace_back(in.size(), Poisoned::kPoison);
                tags.push_back(seal ? Bytes(v.tag.size()) : v.tag);
                messages.push_back({in.data(), out.back().data(), in.size(), v.aad.data(),
                                    v.aad.size(), tags.back().data(), group[i]->start});
                messages.back().key = static_cast<std::uint32_t>(i);
                used.push_back(&v);
            }
            std::vector<Code> results(messages.size(), Code::ok);
            const auto done = subject().run(
                {Mode::gcm, direction, static_cast<std::uint8_t>(group[0]->vector.tag.size())},
                keys, messages, results);
            ASSERT_TRUE(done) << done.error().message;
            for (std::size_t i = 0; i < used.size(); ++i) {
                const GcmVector& v = *used[i];
                ASSERT_EQ(results[i], v.refused ? Code::authentication : Code::ok) << v.name;
                if (v.refused) continue;
                ASSERT_EQ(to_hex(out[i]), to_hex(seal ? v.ciphertext : v.plaintext)) << v.name;
                ASSERT_EQ(to_hex(tags[i]), to_hex(v.tag)) << v.name;
            }
        }
    }

    // In batches, so that a device need not be asked for each.
    void check_all(const std::vector<Started>& vectors) {
        std::map<std::size_t, std::vector<const Started*>> groups;
        for (const auto& started : vectors) groups[started.vector.tag.size()].push_back(&started);
        // Every fourth will do for what goes through kernels that get all of them elsewhere, and
        // where OpenCL's driver is a CPU's, where each batch makes its tables anew.
        const bool few = GetParam().level != Target::Level::backend ||
                         GetParam().backend == "threads" ||
                         GetParam().family == Target::Family::OpenCl;
        const std::size_t step = 100, stride = few ? 4 * step : step;
        for (const auto& [tag_size, group] : groups)
            for (std::size_t at = 0; at < group.size(); at += stride) {
                const auto begin = group.begin() + static_cast<std::ptrdiff_t>(at);
                const auto count = std::min(step, group.size() - at);
                check_group({begin, begin + static_cast<std::ptrdiff_t>(count)});
                if (HasFatalFailure()) return;
            }
    }
};

TEST_P(GcmVectors, ThePapersTestCases) {
    const auto vectors = load_gcm_json("gcm.json");
    ASSERT_EQ(vectors.size(), 18u);
    check_all(started(vectors));
}

#ifdef DAEL_CAVP_DIR
TEST_P(GcmVectors, Cavp) {
    const char* given = std::getenv("DAELSTROM_CAVP_DIR");
    const fs::path path = fs::path(given ? given : DAEL_CAVP_DIR) / "GCM";
    ASSERT_TRUE(fs::is_directory(path))
        << "NIST's vectors are not at '" << path.string()
        << "': run scripts/setup, or name their folder with -DDAELSTROM_CAVP_DIR=... or in the "
           "environment";
    std::size_t files = 0, refused = 0;
    for (const auto& entry : fs::directory_iterator(path)) {
        static std::map<fs::path, std::vector<Started>> loaded;  // once for all targets
        auto& vectors = loaded[entry.path()];
        if (vectors.empty()) vectors = started(load_gcm_rsp(entry.path()));
        ASSERT_EQ(vectors.size(), 7875u) << entry.path();
        for (const auto& started : vectors) refused += started.vector.refused;
        ++files;
        check_all(vectors);
        if (HasFatalFailure()) return;
    }
    EXPECT_EQ(files, 6u);
    EXPECT_GT(refused, 10000u);
}
#endif

DAEL_FOR_KNOWN_ANSWERS(GcmVectors);

}  // namespace
