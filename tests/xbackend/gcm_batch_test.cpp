// SPDX-License-Identifier: Apache-2.0
// Batches of GCM messages: many lengths and keys together equal each by itself, and a forged
// message fails alone.
#include <cstring>
#include <thread>

#include "support/gcm_test.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// Messages in one piece of memory, apart from each other, with what OpenSSL makes of them.
struct GcmBatch {
    GcmBatch(Random& random, std::size_t count, std::size_t longest, std::size_t key_count) {
        for (std::size_t k = 0; k < key_count; ++k) {
            raw_keys.push_back(random.bytes(16 + 8 * (k % 3)));
            keys.push_back(*Key::import(raw_keys.back()));
        }
        for (std::size_t i = 0; i < count; ++i) {
            const bool empty = random.below(10) == 0;
            plain.push_back(pattern(empty ? 0 : random.below(longest + 1), i));
            aad.push_back(pattern(random.below(3) * random.below(30), i + 7));
            nonce.push_back(random.bytes(kNonceSize));
            key_of.push_back(static_cast<std::uint32_t>(random.below(key_count)));
            sealed.push_back(gcm_oracle(raw_keys[key_of[i]], nonce[i], aad[i], plain[i]));
            out.emplace_back(plain[i].size(), Poisoned::kPoison);
            tags.emplace_back(kTagSize, Poisoned::kPoison);
        }
    }
    std::vector<core::GcmSegment> segments(bool seal, bool in_place) {
        std::vector<core::GcmSegment> list;
        for (std::size_t i = 0; i < plain.size(); ++i) {
            const Bytes& from = seal ? plain[i] : sealed[i].ciphertext;
            if (in_place) out[i] = from;
            if (!seal) tags[i] = sealed[i].tag;
            list.push_back({in_place ? out[i].data() : from.data(), out[i].data(), from.size(),
                            aad[i].data(), aad[i].size(), nonce[i].data(), kNonceSize,
                            tags[i].data(), kTagSize, key_of[i]});
        }
        return list;
    }

    std::vector<Bytes> raw_keys, plain, aad, nonce, out, tags;
    std::vector<Key> keys;
    std::vector<std::uint32_t> key_of;
    std::vector<Sealed> sealed;
};

class GcmBatches : public GcmTest {
  protected:
    void check_batch(std::size_t count, std::size_t longest, std::size_t key_count, bool in_place) {
        GcmBatch batch(random_, count, longest, key_count);
        std::vector<Code> results(count, Code::internal);
        auto list = batch.segments(true, in_place);
        auto done = subject().gcm(Direction::encrypt, batch.keys, list, results);
        ASSERT_TRUE(done) << done.error().message;
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(results[i], Code::ok) << i;
            ASSERT_EQ(difference(batch.sealed[i].ciphertext, batch.out[i]), "") << i;
            ASSERT_EQ(difference(batch.sealed[i].tag, batch.tags[i]), "") << i << ", its tag";
        }
        list = batch.segments(false, in_place);
        done = subject().gcm(Direction::decrypt, batch.keys, list, results);
        ASSERT_TRUE(done) << done.error().message;
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(results[i], Code::ok) << i;
            ASSERT_EQ(difference(batch.plain[i], batch.out[i]), "") << i;
        }
    }
};

TEST_P(GcmBatches, MixedLengthsAndKeys) {
    for (const std::size_t count : {1, 2, 3, 15, 16, 17, 63, 64, 65, 200, 1000}) {
        if (slow() && count > 20) continue;
        check_batch(count, slow() ? 100 : 2000, 1 + count % 7, count % 2 == 0);
        if (HasFatalFailure()) return;
    }
}

TEST_P(GcmBatches, LongOnesAmongShortOnes) {
    if (slow()) GTEST_SKIP() << "the reference takes too long for this";
    check_batch(40, 300000, 3, false);
}

// Every third message is forged, in one way or another. It fails, its plaintext is nowhere; the
// others are right.
TEST_P(GcmBatches, AForgedMessageFailsAlone) {
    for (const bool in_place : {false, true}) {
        const std::size_t count = slow() ? 12 : 300;
        GcmBatch batch(random_, count, slow() ? 100 : 3000, 4);
        auto list = batch.segments(false, in_place);
        for (std::size_t i = 0; i < count; i += 3) {
            const bool tag = i % 2 == 0 || batch.plain[i].empty();
            Bytes& victim = tag        ? batch.tags[i]
                            : in_place ? batch.out[i]
                                       : batch.sealed[i].ciphertext;
            victim[random_.below(victim.size())] ^= 0x10;
        }
        std::vector<Code> results(count, Code::internal);
        const auto done = subject().gcm(Direction::decrypt, batch.keys, list, results);
        ASSERT_TRUE(done) << done.error().message;
        for (std::size_t i = 0; i < count; ++i) {
            if (i % 3 != 0) {
                ASSERT_EQ(results[i], Code::ok) << i;
                ASSERT_EQ(difference(batch.plain[i], batch.out[i]), "") << i;
                continue;
            }
            ASSERT_EQ(results[i], Code::authentication) << i;
            for (std::size_t at = 0; at + 8 <= batch.plain[i].size(); ++at)
                ASSERT_NE(0, std::memcmp(batch.plain[i].data() + at, batch.out[i].data() + at, 8))
                    << "message " << i << ": plaintext at byte " << at;
        }
    }
}

TEST_P(GcmBatches, FourThreadsWithKeysOfTheirOwn) {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
        threads.emplace_back([this, t] {
            Random random(1000 + t);
            GcmBatch batch(random, slow() ? 5 : 100, slow() ? 100 : 4000, 3);
            std::vector<Code> results(batch.plain.size(), Code::internal);
            for (int repeat = 0; repeat < 3; ++repeat) {
                const auto list = batch.segments(true, false);
                const auto done = subject().gcm(Direction::encrypt, batch.keys, list, results);
                ASSERT_TRUE(done) << done.error().message;
                for (std::size_t i = 0; i < list.size(); ++i) {
                    ASSERT_EQ(difference(batch.sealed[i].ciphertext, batch.out[i]), "");
                    ASSERT_EQ(difference(batch.sealed[i].tag, batch.tags[i]), "");
                }
            }
        });
    for (auto& thread : threads) thread.join();
}

DAEL_FOR_WHOLE_BACKENDS(GcmBatches);

}  // namespace
