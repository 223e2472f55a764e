// SPDX-License-Identifier: Apache-2.0
// The Monte Carlo tests of the AESAVS (section 6.4): 100 records of 1000 calls each, every call fed
// with what earlier ones produced, every record with a key made from the last two outputs.
#include <functional>

#include "modes/chain.hpp"
#include "support/oracle.hpp"
#include "support/subject.hpp"
#include "support/vectors.hpp"

namespace dael::test {

// A thousand calls one after the other: on OpenCL, in its quickest form.
static std::vector<Target> targets_for_chains(Target::Family family) {
    auto found = targets_for_known_answers(family);
    if (family == Target::Family::OpenCl)
        std::erase_if(found, [](const Target& target) { return target.form.empty(); });
    return found;
}

}  // namespace dael::test

namespace {

using namespace dael;
using namespace dael::test;

constexpr int kRecords = 100, kCalls = 1000;

// One record's cipher: transforms the next block of a message that goes on from call to call.
using NextBlock = std::function<Block(const Block&)>;
using Start = std::function<NextBlock(const Bytes& key, const Block& iv)>;

// Calls `seen(record, output)` after each of `records` records.
void monte_carlo(const MonteCarlo& test, int records, const Start& start,
                 const std::function<void(int, const Block&)>& seen) {
    Bytes key = test.key;
    Block iv = test.iv, input = test.input;
    for (int record = test.first; record < test.first + records; ++record) {
        const NextBlock next = start(key, iv);
        Block before{}, output{};
        for (int call = 0; call < kCalls; ++call) {
            before = output;
            output = next(input);
            // 6.4.1: ECB feeds each output back. 6.4.2 to 6.4.4: the others feed the one before it,
            // and the IV after the first call.
            if (test.mode == Mode::ecb)
                input = output;
            else
                input = call == 0 ? iv : before;
        }
        seen(record, output);
        // The key's bytes are changed by as many of the last bytes of the last two outputs.
        Bytes last(before.begin(), before.end());
        last.insert(last.end(), output.begin(), output.end());
        for (std::size_t i = 0; i < key.size(); ++i) key[i] ^= last[32 - key.size() + i];
        iv = output;
        input = test.mode == Mode::ecb ? output : before;
    }
}

Start by_openssl(const MonteCarlo& test) {
    return [&test](const Bytes& key, const Block& iv) -> NextBlock {
        auto stream = std::make_shared<OracleStream>(key, Use{test.mode, test.direction, iv, 0});
        return [stream](const Block& in) {
            Block out{};
            stream->update(in, out.data());
            return out;
        };
    };
}

class MonteCarloTest : public SubjectTest {
  protected:
    // Through a Chain, as a stream of chunks of one block.
    Start by_subject(const MonteCarlo& test) {
        return [this, &test](const Bytes& bytes, const Block& iv) -> NextBlock {
            auto key = std::make_shared<Result<Key>>(Key::import(bytes));
            const Cipher cipher{test.mode, test.direction};
            auto chain = std::make_shared<modes::Chain>(cipher, iv);
            return [this, cipher, key, chain](const Block& in) {
                Block out{};
                const auto done =
                    subject().run(cipher, **key, chain->next(in.data(), out.data(), in.size()));
                EXPECT_TRUE(done) << done.error().message;
                chain->done();
                return out;
            };
        };
    }
};

TEST(MonteCarloFile, HoldsForOpensslAndCoversEveryMode) {
    std::map<std::pair<Mode, std::size_t>, int> covered;
    for (const MonteCarlo& test : load_monte_carlo("cavp-mct.json")) {
        ++covered[{test.mode, test.key.size()}];
        std::size_t compared = 0;
        monte_carlo(
            test, kRecords - test.first, by_openssl(test), [&](int record, const Block& output) {
                const auto want = test.outputs.find(record);
                if (want == test.outputs.end()) return;
                ++compared;
                EXPECT_EQ(to_hex(output), to_hex(want->second)) << name(test.mode) << " " << record;
            });
        EXPECT_EQ(compared, test.outputs.size());
    }
    EXPECT_EQ(covered.size(), 12u);  // four modes, three key sizes
}

TEST_P(MonteCarloTest, EveryModeAndKeySize) {
    // All records below the engine. Each call to a device, to the reference or through the engine
    // costs its time: they get fewer, compared with what OpenSSL has at those, which the file's
    // outputs have confirmed above.
    const bool few = slow() || GetParam().far() || GetParam().level != Target::Level::backend ||
                     GetParam().backend == "threads";
    const int limit = GetParam().family == Target::Family::OpenCl ? 1 : few ? 2 : kRecords;
    for (const MonteCarlo& test : load_monte_carlo("cavp-mct.json")) {
        if (!can(test.mode, test.direction)) continue;
        const int records = std::min(limit, kRecords - test.first);
        std::vector<Block> want, got;
        monte_carlo(test, records, by_openssl(test),
                    [&](int, const Block& output) { want.push_back(output); });
        monte_carlo(test, records, by_subject(test), [&](int record, const Block& output) {
            got.push_back(output);
            const auto published = test.outputs.find(record);
            if (published != test.outputs.end()) {
                EXPECT_EQ(to_hex(output), to_hex(published->second));
            }
        });
        ASSERT_EQ(got, want) << name(test.mode) << " " << name(test.direction) << ", "
                             << 8 * test.key.size() << " bits";
    }
}

DAEL_FOR_FAMILIES(MonteCarloTest, targets_for_chains);

}  // namespace
