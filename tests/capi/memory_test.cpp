// SPDX-License-Identifier: Apache-2.0
// Memory that runs out at each allocation in turn of each call of the C interface that works in
// host memory: the call works, or is DAEL_OUT_OF_MEMORY; nothing leaks; no handle comes out; what
// it was called with is as before, and the call then works.
#include <gtest/gtest.h>

#include <daelstrom/daelstrom.h>

#include <cstring>
#include <string>
#include <vector>

#include "capi/little_memory.hpp"
#include "support/bytes.hpp"

namespace {

using dael::test::Bytes;
using dael::test::little_engine;
using dael::test::making;
using dael::test::pattern;
using dael::test::with_little_memory;

class LittleMemory : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        if (!dael::test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
        const dael_engine_options options = little_engine(GetParam(), 2);
        ASSERT_EQ(dael_engine_open(&options, &engine_), DAEL_OK) << dael_last_error();
        const Bytes raw = pattern(64);
        ASSERT_EQ(dael_key_import(raw.data(), 32, &key_), DAEL_OK);
        ASSERT_EQ(dael_key_import(raw.data() + 3, 16, &other_), DAEL_OK);
        ASSERT_EQ(dael_key_import_xts(raw.data(), 64, &xts_), DAEL_OK);
    }
    void TearDown() override {
        dael_key_free(key_);
        dael_key_free(other_);
        dael_key_free(xts_);
        dael_engine_close(engine_);
    }
    dael_key_set* set() {
        const dael_key* const keys[] = {key_, other_};
        dael_key_set* made = nullptr;
        EXPECT_EQ(dael_key_set_make(engine_, keys, 2, &made), DAEL_OK);
        return made;
    }

    dael_engine* engine_ = nullptr;
    dael_key *key_ = nullptr, *other_ = nullptr, *xts_ = nullptr;
};

TEST_P(LittleMemory, EnginesAndKeys) {
    making<dael_engine>(
        "dael_engine_open",
        [](dael_engine** engine) {
            const dael_engine_options options = little_engine(GetParam(), 0);
            return dael_engine_open(&options, engine);
        },
        dael_engine_close);
    const Bytes raw = pattern(64);
    const auto import = [&](dael_key** key) { return dael_key_import(raw.data(), 24, key); };
    making<dael_key>("dael_key_import", import, dael_key_free);
    const auto import_xts = [&](dael_key** key) {
        return dael_key_import_xts(raw.data(), 64, key);
    };
    making<dael_key>("dael_key_import_xts", import_xts, dael_key_free);
    const auto duplicate = [&](dael_key** key) { return dael_key_duplicate(xts_, key); };
    making<dael_key>("dael_key_duplicate", duplicate, dael_key_free);
    const dael_key* const keys[] = {key_, other_};
    const auto make = [&](dael_key_set** made) {
        return dael_key_set_make(engine_, keys, 2, made);
    };
    making<dael_key_set>("dael_key_set_make", make, dael_key_set_free);
    dael_key_set* none = nullptr;
    EXPECT_EQ(dael_key_set_make(engine_, keys, static_cast<std::size_t>(-1) / 2, &none),
              DAEL_OUT_OF_MEMORY);
    const std::uint8_t fixed[4] = {1, 2, 3, 4};
    const auto nonces = [&](dael_nonces** made) { return dael_nonces_make(fixed, 0, made); };
    making<dael_nonces>("dael_nonces_make", nonces, dael_nonces_free);
}

TEST_P(LittleMemory, Messages) {
    for (const int mode :
         {DAEL_ECB, DAEL_CBC, DAEL_CFB, DAEL_OFB, DAEL_CTR, DAEL_GCM, DAEL_GCM_CTR, DAEL_XTS})
        for (const int direction : {DAEL_ENCRYPT, DAEL_DECRYPT})
            for (const std::size_t size : {std::size_t{64}, std::size_t{1} << 20}) {
                if (mode == DAEL_GCM && direction == DAEL_DECRYPT) continue;  // below
                if (size > 64 && std::strcmp(GetParam(), "reference") == 0) continue;
                const dael_cipher cipher{static_cast<std::uint8_t>(mode),
                                         static_cast<std::uint8_t>(direction), 16, 0,
                                         mode == DAEL_XTS ? 512u : 0u};
                const Bytes in = pattern(size);
                Bytes out(size), right(size), tag(16);
                bool known = false;
                dael_message message{};
                message.in = in.data();
                message.out = out.data();
                message.size = size;
                if (mode == DAEL_GCM) message.tag = tag.data();
                with_little_memory(
                    "dael_run, mode " + std::to_string(mode),
                    [&] {
                        const int status = dael_run(
                            engine_, &cipher, mode == DAEL_XTS ? xts_ : key_, &message, nullptr);
                        if (status == DAEL_OK && !known) right = out;
                        known |= status == DAEL_OK;
                        EXPECT_TRUE(status != DAEL_OK || out == right);
                        return status;
                    },
                    [&] { std::ranges::fill(out, std::uint8_t{0}); });
            }
}

TEST_P(LittleMemory, BatchesAndTheirCodes) {
    constexpr std::size_t kCount = 8, kSize = 96 << 10;
    const bool slow = std::strcmp(GetParam(), "reference") == 0;
    const std::size_t size = slow ? 64 : kSize;
    const dael_cipher ciphers[] = {{DAEL_GCM, DAEL_ENCRYPT, 16, 0, 0},
                                   {DAEL_CTR, DAEL_ENCRYPT, 0, 0, 0},
                                   {DAEL_CBC, DAEL_ENCRYPT, 0, 0, 0}};
    for (const dael_cipher& cipher : ciphers) {
        const Bytes in = pattern(kCount * size);
        Bytes out(in.size()), tags(16 * kCount), right(in.size());
        std::vector<dael_message> messages(kCount);
        std::vector<std::int32_t> codes(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            messages[i] = {};
            messages[i].in = in.data() + i * size;
            messages[i].out = out.data() + i * size;
            messages[i].size = size;
            messages[i].start[0] = static_cast<std::uint8_t>(i + 1);
            messages[i].key = i % 2;
            if (cipher.mode == DAEL_GCM) messages[i].tag = tags.data() + 16 * i;
        }
        dael_key_set* const keys = set();
        bool known = false;
        with_little_memory(
            "dael_run_batch, mode " + std::to_string(cipher.mode),
            [&] {
                std::ranges::fill(codes, 99);
                const int status = dael_run_batch(engine_, &cipher, keys, messages.data(), kCount,
                                                  codes.data(), nullptr);
                if (status == DAEL_OK && !known) right = out;
                known |= status == DAEL_OK;
                for (std::size_t i = 0; i < kCount; ++i) {
                    EXPECT_TRUE(codes[i] == DAEL_OK
                                    ? std::memcmp(&right[i * size], &out[i * size], size) == 0
                                    : status != DAEL_OK &&
                                          (codes[i] == status || codes[i] == DAEL_INTERNAL))
                        << codes[i];
                    // Nothing of it was touched.
                    EXPECT_TRUE(codes[i] != DAEL_OUT_OF_MEMORY || out[i * size] == 0xee);
                }
                return status;
            },
            [&] { std::ranges::fill(out, std::uint8_t{0xee}); });
        dael_key_set_free(keys);
    }
}

// The first use of a set makes its tables; a replacement that fails leaves the old key everywhere.
TEST_P(LittleMemory, SetsAndReplacedKeys) {
    const dael_cipher seal{DAEL_GCM, DAEL_ENCRYPT, 16, 0, 0};
    const auto sealed_by = [&](dael_key_set* keys, Bytes& out) {
        std::ranges::fill(out, std::uint8_t{0});
        dael_message message{};
        message.in = message.out = out.data();
        message.size = 32;
        message.tag = out.data() + 32;
        std::int32_t code = 0;
        return dael_run_batch(engine_, &seal, keys, &message, 1, &code, nullptr);
    };
    Bytes first(48);
    with_little_memory("the first use of a set", [&] {
        dael_key_set* keys = nullptr;
        const dael_key* const list[] = {key_, other_};
        int status = dael_key_set_make(engine_, list, 2, &keys);
        if (status == DAEL_OK) status = sealed_by(keys, first);
        dael_key_set_free(keys);
        return status;
    });
    dael_key_set* keys = set();
    Bytes old_one(48), new_one(48), out(48);
    ASSERT_EQ(sealed_by(keys, old_one), DAEL_OK);
    ASSERT_EQ(dael_key_set_replace(keys, 0, other_, nullptr), DAEL_OK);
    ASSERT_EQ(sealed_by(keys, new_one), DAEL_OK);
    ASSERT_NE(old_one, new_one);
    int status = DAEL_OK;
    with_little_memory(
        "dael_key_set_replace",
        [&] { return status = dael_key_set_replace(keys, 0, other_, nullptr); },
        [&] {
            // After the last one, whatever became of it.
            EXPECT_EQ(sealed_by(keys, out), DAEL_OK);
            EXPECT_TRUE(out == (status == DAEL_OK ? new_one : old_one));
            EXPECT_EQ(dael_key_set_replace(keys, 0, key_, nullptr), DAEL_OK);
            EXPECT_EQ(sealed_by(keys, out), DAEL_OK);
            EXPECT_EQ(out, old_one);
            status = DAEL_OUT_OF_MEMORY;  // the old one is in place until the next call
        });
    dael_key_set_free(keys);
}

TEST_P(LittleMemory, NamedCalls) {
    const Bytes iv = pattern(40), aad = pattern(30);
    Bytes data = pattern(100), tag(16);
    std::uint8_t start[16];
    with_little_memory("dael_gcm_start_iv",
                       [&] { return dael_gcm_start_iv(key_, iv.data(), iv.size(), start); });
    with_little_memory("dael_gcm_seal", [&] {
        return dael_gcm_seal(engine_, key_, iv.data(), iv.size(), aad.data(), aad.size(),
                             data.data(), data.data(), data.size(), tag.data(), 16, nullptr);
    });
    const Bytes sealed = data;
    with_little_memory(
        "dael_gcm_open",
        [&] {
            return dael_gcm_open(engine_, key_, iv.data(), iv.size(), aad.data(), aad.size(),
                                 data.data(), data.data(), data.size(), tag.data(), 16, nullptr);
        },
        [&] { data = sealed; });
    with_little_memory("dael_ctr_crypt", [&] {
        return dael_ctr_crypt(engine_, key_, start, 5, data.data(), data.data(), data.size(),
                              nullptr);
    });
    if (std::strcmp(GetParam(), "auto") == 0) return;  // whose devices are not the library's memory
    dael_job job{.struct_size = sizeof job,
                 .cipher = {DAEL_CTR, DAEL_ENCRYPT, 0, 0, 0},
                 .key_bits = 128,
                 .from = DAEL_FROM_HOST,
                 .size = 1 << 20,
                 .messages = 1};
    making<dael_plan>(
        "dael_explain", [&](dael_plan** plan) { return dael_explain(engine_, &job, plan); },
        dael_plan_free);
}

// A message whose memory runs out amid it takes nothing more until it is begun anew.
TEST_P(LittleMemory, Pieces) {
    const std::uint8_t start[16] = {1};
    const Bytes in = pattern(500);
    for (const int mode : {DAEL_CBC, DAEL_CFB, DAEL_OFB, DAEL_CTR, DAEL_GCM}) {
        const dael_cipher cipher{static_cast<std::uint8_t>(mode), DAEL_ENCRYPT, 16, 0, 0};
        SCOPED_TRACE(mode);
        making<dael_pieces>(
            "dael_begin",
            [&](dael_pieces** pieces) { return dael_begin(engine_, &cipher, key_, start, pieces); },
            dael_pieces_free);
        dael_pieces* pieces = nullptr;
        ASSERT_EQ(dael_begin(engine_, &cipher, key_, start, &pieces), DAEL_OK);
        making<dael_pieces>(
            "dael_pieces_clone",
            [&](dael_pieces** copy) { return dael_pieces_clone(pieces, copy); }, dael_pieces_free);
        Bytes right(512), out(512);
        bool known = false;
        with_little_memory("a message in pieces", [&] {
            std::ranges::fill(out, std::uint8_t{0});
            std::size_t written = 0, at = 0;
            int status = dael_pieces_restart(pieces, start);
            for (const std::size_t size : {37, 411, 32}) {
                if (status != DAEL_OK) break;
                status = dael_pieces_update(pieces, in.data() + at, size, out.data() + at,
                                            out.size() - at, &written);
                if (status != DAEL_OK && status != DAEL_OUT_OF_MEMORY) break;
                EXPECT_TRUE(status == DAEL_OK ||
                            dael_pieces_update(pieces, in.data(), 16, out.data(), 480, &written) ==
                                DAEL_INVALID_ARGUMENT);
                at += written;
            }
            if (status == DAEL_OK)
                status = dael_pieces_finish(pieces, out.data() + 480, 16, &written);
            if (status == DAEL_OK && !known) right = out;
            known |= status == DAEL_OK;
            EXPECT_TRUE(status != DAEL_OK || out == right);
            return status;
        });
        dael_pieces_free(pieces);
    }
}

// GCM that is opened in pieces, by its three ways; a tag that does not match is no lack of memory.
TEST_P(LittleMemory, GcmInPieces) {
    const std::uint8_t start[16] = {1};
    const Bytes aad = pattern(30), plain = pattern(500);
    Bytes sealed = plain, tag(16), out(512);
    const dael_cipher seal{DAEL_GCM, DAEL_ENCRYPT, 16, 0, 0},
        open{DAEL_GCM, DAEL_DECRYPT, 16, 0, 0};
    dael_message message{};
    message.in = message.out = sealed.data();
    message.size = sealed.size();
    message.aad = aad.data();
    message.aad_size = aad.size();
    message.start[0] = 1;
    message.tag = tag.data();
    ASSERT_EQ(dael_run(engine_, &seal, key_, &message, nullptr), DAEL_OK) << dael_last_error();
    for (const bool unverified : {false, true}) {
        with_little_memory(unverified ? "in one pass" : "in two passes", [&] {
            dael_pieces* pieces = nullptr;
            std::size_t written = 0;
            std::uint8_t its_tag[16] = {};
            int status = dael_begin(engine_, &open, key_, start, &pieces);
            if (status == DAEL_OK) status = dael_pieces_aad(pieces, aad.data(), aad.size());
            if (unverified) {
                if (status == DAEL_OK)
                    status = dael_pieces_update_unverified(pieces, sealed.data(), out.data(), 500);
                if (status == DAEL_OK) status = dael_pieces_tag(pieces, its_tag);
                if (status == DAEL_OK) {
                    EXPECT_EQ(std::memcmp(its_tag, tag.data(), 16), 0);
                }
            } else {
                if (status == DAEL_OK)
                    status = dael_pieces_authenticate(pieces, sealed.data(), 500);
                if (status == DAEL_OK) status = dael_pieces_verify(pieces, tag.data(), 16);
                if (status == DAEL_OK)
                    status =
                        dael_pieces_update(pieces, sealed.data(), 500, out.data(), 512, &written);
            }
            if (status == DAEL_OK) {
                EXPECT_EQ(std::memcmp(out.data(), plain.data(), 500), 0);
            }
            dael_pieces_free(pieces);
            return status;
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Host, LittleMemory, testing::Values("reference", "openssl", "auto"));

}  // namespace
