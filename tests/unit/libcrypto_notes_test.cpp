// SPDX-License-Identifier: Apache-2.0
// What is made of libcrypto's notes: failures for want of memory are told from others, and notes of
// the caller's stay as they were.
#include <gtest/gtest.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include <functional>
#include <string>
#include <vector>

#include <daelstrom/gcm.hpp>

#include "backends/openssl/evp.hpp"
#include "core/guard.hpp"
#include "core/libcrypto.hpp"
#include "core/libcrypto_notes.hpp"
#include "core/packet_cipher.hpp"
#include "core/registry.hpp"
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
    const auto find = [] { return EVP_MD_fetch(core::libcrypto(), "NO-SUCH-HASH", nullptr); };
    EXPECT_EQ(notes.absence([&] { return find() != nullptr; }, {Code::unsupported, "none"}).code,
              Code::unsupported);
    // It was there the second time.
    EXPECT_EQ(notes.absence([] { return true; }, {Code::unsupported, "none"}).code,
              Code::out_of_memory);
}

// Of a lack of memory the note may say that there is no such thing; the second try tells.
TEST(LibcryptoNotes, ALackOfMemoryIsNoAbsence) {
    for (const int reason : {ERR_R_MALLOC_FAILURE, 0}) {  // 0: not noted, for want of memory too
        const LibcryptoNotes notes;
        ERR_raise(ERR_LIB_EVP, EVP_R_UNSUPPORTED_ALGORITHM);
        const auto lacks_memory = [&] {
            if (reason != 0) ERR_raise(ERR_LIB_EVP, reason);
            return false;
        };
        EXPECT_EQ(notes.absence(lacks_memory, {Code::unsupported, "none"}).code,
                  Code::out_of_memory);
    }
}

// The backend finds its ciphers where the lack has passed.
TEST(LibcryptoNotes, ALackOfMemoryThatPassesIsNoFailure) {
    if (!test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    openssl::Algorithm cipher;
    const std::string name = "AES-128-CFB8", none = "AES-128-NONE";
    ASSERT_TRUE(openssl::fetch(cipher, name));
    EXPECT_EQ(openssl::fetch(cipher, none).code(), Code::backend_absent);
    ERR_clear_error();
    bool failed = true;
    for (long nth = 1; failed; ++nth) {
        ASSERT_LT(nth, 1000);
        // Forgets what it has found.
        ASSERT_EQ(EVP_set_default_properties(core::libcrypto(), ""), 1);
        test::fail_allocation(nth);
        const Result<> found = openssl::fetch(cipher, name);
        failed = test::fail_allocation(0);
        EXPECT_TRUE(found) << "allocation " << nth << ": " << found.error().message;
        EXPECT_EQ(ERR_peek_error(), 0u);
    }
}

// Each call with each of its allocations failing, and a note of the caller's before it that says
// something else, or the same: the note stays, and the only failure is one of memory.
using Calls = std::vector<std::function<Result<>()>>;
void expect_only_lack_of_memory(const Calls& calls) {
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
                    << &call - calls.data() << ", allocation " << nth << ": "
                    << done.error().message;
            }
            ERR_clear_error();
        }
}

TEST(LibcryptoNotes, WithLittleMemoryBesideTheCallersOwn) {
    if (!test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    const test::Bytes key = test::pattern(32);
    formats::CurvePoint point{};
    point[0] = 9;
    test::Bytes out(48);
    formats::Digest digest;
    const auto hash = formats::Hash::sha512;
    expect_only_lack_of_memory(
        {[&] { return formats::hmac(hash, key, {key}, digest); },
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
         }});
}

// A message of GCM under one key, which a backend seals.
struct Sealed {
    explicit Sealed(core::Backend& by) : backend(by) {
        EXPECT_TRUE(backend.run({Mode::gcm}, {{&key, 1}, nullptr}, {&message, 1}, {&code, 1}));
    }
    // Altered, by messages as many.
    Result<> refused(const core::KeyTables* tables, std::size_t count = 1) {
        std::vector<Message> messages(count, message);
        std::vector<Code> codes(count, Code::ok);
        std::vector<std::uint8_t> out(data.size());
        test::Bytes other = tag;
        other[0] ^= 1;
        for (Message& m : messages) {
            m.out = out.data();
            m.tag = other.data();
        }
        const Cipher open{Mode::gcm, Direction::decrypt};
        auto ran = backend.run(open, {{&key, 1}, tables}, messages, codes);
        if (!ran) return ran;
        for (const Code each : codes)
            if (each != Code::authentication) return Error{each, "a forgery was not refused"};
        return {};
    }

    core::Backend& backend;
    const Key key = *Key::import(test::pattern(16));
    test::Bytes data = test::pattern(100), tag = test::Bytes(16);
    Message message{.in = data.data(),
                    .out = data.data(),
                    .size = data.size(),
                    .tag = tag.data(),
                    .start = gcm::start({})};
    Code code = Code::ok;
};

// The backend that stands on libcrypto: the caller's notes, which may be many, are none of its.
TEST(LibcryptoNotes, OfTheBackendAreNoneOfTheCallers) {
    auto backend = core::open_backend("openssl");
    ASSERT_TRUE(backend) << backend.error().message;
    Sealed sealed(**backend);
    const auto tables = (*backend)->tables({&sealed.key, 1});
    ASSERT_TRUE(tables);
    auto packets = (*backend)->packets(sealed.key);
    ASSERT_TRUE(packets);
    ERR_clear_error();
    for (int reason = 101; reason <= 105; ++reason) ERR_raise(ERR_LIB_USER, reason);
    for (const core::KeyTables* its : {tables->get(), static_cast<core::KeyTables*>(nullptr)})
        for (const std::size_t count : {1, 40}) {
            const auto refused = sealed.refused(its, count);
            EXPECT_TRUE(refused) << refused.error().message;
        }
    test::Bytes out(sealed.data.size()), wrong(16);
    core::CipherPacket packet{.in = sealed.data.data(),
                              .out = out.data(),
                              .size = out.size(),
                              .tag = wrong.data(),
                              .first = sealed.message.start};
    Code code = Code::ok;
    (*packets)->open({&packet, 1}, {&code, 1});
    EXPECT_EQ(code, Code::authentication);
    // Tags of no size, which libcrypto itself refuses, and notes.
    packet.tag_size = 0;
    const std::vector<core::CipherPacket> many(40, packet);
    std::vector<Code> codes(many.size(), Code::ok);
    (*packets)->open(many, codes);
    for (const Code each : codes) EXPECT_EQ(each, Code::internal);
    for (int reason = 101; reason <= 105; ++reason)
        EXPECT_EQ(ERR_GET_REASON(ERR_get_error()), reason);
    EXPECT_EQ(ERR_get_error(), 0u);
}

TEST(LibcryptoNotes, OfTheBackendWithLittleMemory) {
    if (!test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    auto backend = core::open_backend("openssl");
    ASSERT_TRUE(backend) << backend.error().message;
    Sealed sealed(**backend);
    const core::KeyList keys{{&sealed.key, 1}, nullptr};
    const auto tables = (*backend)->tables(keys.list);
    ASSERT_TRUE(tables);
    const Block start = gcm::start({});
    auto pieces = (*backend)->begin({Mode::gcm}, {keys.list, tables->get()}, 0, start);
    ASSERT_TRUE(pieces) << pieces.error().message;
    test::Bytes data(96), tag(16);
    Calls calls{[] {
                    auto opened = core::open_backend("openssl");
                    return opened ? Result<>{} : Result<>(std::move(opened).error());
                },
                [&] { return sealed.refused(nullptr); },
                [&]() -> Result<> {
                    DAEL_LET(fresh, (*backend)->tables(keys.list));
                    return sealed.refused(fresh.get());
                },
                [&]() -> Result<> {
                    DAEL_LET(fresh, (*backend)->packets(sealed.key));
                    core::CipherPacket packet{.in = data.data(),
                                              .out = data.data(),
                                              .size = data.size(),
                                              .tag = tag.data(),
                                              .first = start};
                    const Code code = fresh->seal({&packet, 1});
                    return code == Code::ok ? Result<>{} : Result<>(Error{code, "a packet"});
                },
                [&]() -> Result<> {
                    DAEL_LET(copy, (*pieces)->clone());
                    DAEL_TRY(copy->update(data.data(), data.data(), data.size()));
                    DAEL_TRY(copy->finish());
                    return {};
                }};
    const Key xts = *Key::import_xts(test::pattern(32));
    for (const Mode mode : {Mode::ecb, Mode::cbc, Mode::ctr, Mode::xts})
        calls.push_back([&, mode] {
            const Message message{
                .in = data.data(), .out = data.data(), .size = data.size(), .start = {}};
            const Key& key = mode == Mode::xts ? xts : sealed.key;
            Code code = Code::ok;
            return (*backend)->run({mode, Direction::encrypt}, {{&key, 1}, nullptr}, {&message, 1},
                                   {&code, 1});
        });
    expect_only_lack_of_memory(calls);
}

}  // namespace
