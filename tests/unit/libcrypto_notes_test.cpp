// SPDX-License-Identifier: Apache-2.0
// What is made of libcrypto's notes: failures for want of memory are told from others, and notes of
// the caller's stay as they were.
#include <gtest/gtest.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include <functional>

#include "core/guard.hpp"
#include "core/libcrypto.hpp"
#include "core/libcrypto_notes.hpp"
#include "formats/age_crypto.hpp"
#include "formats/hkdf.hpp"
#include "support/bytes.hpp"
#include "support/short_memory.hpp"

namespace {

using namespace dael;
using core::LibcryptoNotes;

TEST(LibcryptoNotes, OtherFailuresKeepTheirCause) {
    const LibcryptoNotes notes;
    EVP_MD* const none = EVP_MD_fetch(core::libcrypto(), "NO-SUCH-HASH", nullptr);
    ASSERT_EQ(none, nullptr);
    EXPECT_EQ(notes.failure("a hash").code, Code::internal);
    EXPECT_EQ(notes.absence([] { return false; }, {Code::unsupported, "none"}).code,
              Code::unsupported);
    // It was there the second time.
    EXPECT_EQ(notes.absence([] { return true; }, {Code::unsupported, "none"}).code,
              Code::out_of_memory);
}

// Each of them with each of its allocations failing, and a note of the caller's before it that says
// something else, or the same: the note stays, and the only failure is one of memory.
TEST(LibcryptoNotes, WithLittleMemoryBesideTheCallersOwn) {
    if (!test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    const test::Bytes key = test::pattern(32);
    formats::CurvePoint point{};
    point[0] = 9;
    test::Bytes out(48);
    formats::Digest digest;
    const auto hash = formats::Hash::sha512;
    const std::function<Result<>()> calls[] = {
        [&] { return formats::hmac(hash, key, {key}, digest); },
        [&] { return formats::hkdf(hash, key, {}, {}, out); },
        [&] { return formats::x25519(key, point, std::span(out).first(32)); },
        [&]() -> Result<> {
            DAEL_TRY(formats::x25519_public(key));
            return {};
        },
        [&] { return formats::chacha_seal(key, {}, key, out); },
        [&] { return formats::scrypt(key, key, 1, out); },
        [&]() -> Result<> {
            const auto opened =
                formats::chacha_open(key, {}, out, std::span(out).first(out.size() - 16));
            return opened.code() == Code::authentication ? Result<>{} : opened;
        }};
    for (const auto& call : calls)
        for (const int note : {0, ERR_R_MALLOC_FAILURE, ERR_R_INTERNAL_ERROR}) {
            (void)call();  // what is made once
            for (long nth = 1;; ++nth) {
                ASSERT_LT(nth, 1000);
                ERR_clear_error();
                if (note != 0) ERR_raise(ERR_LIB_USER, note);
                const unsigned long before = ERR_peek_last_error();
                test::fail_allocation(nth);
                const Result<> done = core::guarded(call);
                const bool failed = test::fail_allocation(0);
                EXPECT_EQ(ERR_peek_last_error(), before);
                if (!failed) {
                    EXPECT_TRUE(done) << done.error().message;
                    break;
                }
                EXPECT_TRUE(done || done.code() == Code::out_of_memory)
                    << &call - calls << ", allocation " << nth << ": " << done.error().message;
            }
            ERR_clear_error();
        }
}

}  // namespace
