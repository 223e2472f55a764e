// SPDX-License-Identifier: Apache-2.0
// A forced backend is used, and the caller can see that it was; one that is unknown or absent is an
// error that names it, never a silent other choice. And the table of errors is complete.
#include <gtest/gtest.h>

#include <set>

#include <daelstrom/ctr.hpp>

#include "core/registry.hpp"
#include "support/environment.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using namespace dael::test;

std::string runs(Result<Engine> engine) {
    if (!engine) return "no engine: " + engine.error().message;
    const Bytes bytes = pattern(16), in = pattern(4096);
    const auto key = Key::import(bytes);
    Bytes out(in.size());
    const auto ran = ctr::crypt(*engine, *key, {}, in, out);
    if (!ran) return "error: " + ran.error().message;
    EXPECT_EQ(difference(oracle(bytes, {Mode::ctr, Direction::encrypt, {}, 0}, in), out), "");
    return std::string(ran->backend);
}

TEST(Forced, EveryPresentBackendProvesThatItRan) {
    std::size_t present = 0;
    for (const BackendInfo& info : list_backends()) {
        if (!info.present) continue;
        ++present;
        EXPECT_EQ(runs(Engine::open({.backend = info.name})), info.name);
        EXPECT_FALSE(info.description.empty()) << info.name;
    }
    EXPECT_GE(present, 2u);  // reference and openssl are everywhere
}

TEST(Forced, EveryAbsentBackendSaysWhatIsMissing) {
    for (const BackendInfo& info : list_backends()) {
        EXPECT_FALSE(info.summary.empty()) << info.name;
        if (info.present) continue;
        EXPECT_FALSE(info.missing.empty()) << info.name;
        const auto engine = Engine::open({.backend = info.name});
        ASSERT_EQ(engine.code(), Code::backend_absent) << info.name;
        EXPECT_NE(engine.error().message.find(info.name), std::string::npos)
            << engine.error().message;
        EXPECT_NE(engine.error().message.find(info.missing), std::string::npos)
            << engine.error().message;
    }
}

TEST(Forced, ByTheEnvironment) {
    const Environment forced("DAELSTROM_BACKEND", "reference");
    EXPECT_EQ(runs(Engine::open()), "reference");
    EXPECT_EQ(runs(Engine::open({.backend = "openssl"})),
              "openssl");  // the caller's word goes first
}

TEST(Forced, AnUnknownNameInTheEnvironmentIsAnError) {
    const Environment forced("DAELSTROM_BACKEND", "abacus");
    const auto engine = Engine::open();
    ASSERT_EQ(engine.code(), Code::unknown_backend);
    EXPECT_NE(engine.error().message.find("abacus"), std::string::npos) << engine.error().message;
}

TEST(Forced, AutoOrNothingPicksOneThatIsThere) {
    const Environment unset("DAELSTROM_BACKEND", nullptr);
    for (const char* name : {"", "auto"}) {
        const std::string ran = runs(Engine::open({.backend = name, .calibrated = false}));
        bool listed = false;
        for (const BackendInfo& info : list_backends()) listed |= info.present && info.name == ran;
        EXPECT_TRUE(listed) << ran;
        EXPECT_NE(ran, "reference");  // the slow one is for tests
    }
}

TEST(Forced, UnknownNamesListTheKnownOnes) {
    for (const char* name : {"abacus", "CPU", "cpu ", "cud", "openssl2", "auto:0"}) {
        const auto engine = Engine::open({.backend = name});
        ASSERT_EQ(engine.code(), Code::unknown_backend) << name;
        const std::string& message = engine.error().message;
        EXPECT_NE(message.find(name), std::string::npos) << message;
        for (const core::BackendEntry& entry : core::backend_list())
            EXPECT_NE(message.find(entry.name), std::string::npos) << message;
    }
}

TEST(Forced, DeviceNumbersAreChecked) {
    for (const char* name : {"reference:", "reference:x", "reference:-1", "reference:1x",
                             "reference:0x1", "reference:99999999999999999999"})
        EXPECT_EQ(Engine::open({.backend = name}).code(), Code::unknown_backend) << name;
    const auto engine = Engine::open({.backend = "reference:7"});
    ASSERT_EQ(engine.code(), Code::backend_absent);
    EXPECT_NE(engine.error().message.find("reference:7"), std::string::npos)
        << engine.error().message;
}

TEST(Forced, UnknownFormsAreRefused) {
    const auto engine = Engine::open({.backend = "cpu", .form = "avx1024"});
    ASSERT_FALSE(engine);
    if (engine.code() == Code::backend_absent) GTEST_SKIP() << engine.error().message;
    EXPECT_EQ(engine.code(), Code::invalid_argument);
    EXPECT_NE(engine.error().message.find("avx1024"), std::string::npos) << engine.error().message;
    EXPECT_NE(engine.error().message.find("avx512"), std::string::npos)
        << "should list the known ones";
}

TEST(Forced, AFormIsRefusedWhereThereIsOneOnly) {
    std::size_t tried = 0;
    for (const core::BackendEntry& entry : core::backend_list()) {
        std::string why;
        if (entry.forms || entry.count(&why) == 0) continue;
        ++tried;
        const auto engine = Engine::open({.backend = entry.name, .form = "avx2"});
        ASSERT_EQ(engine.code(), Code::invalid_argument) << entry.name;
        for (const char* word : {"'avx2'", entry.name, "one form only"})
            EXPECT_NE(engine.error().message.find(word), std::string::npos)
                << engine.error().message;
    }
    EXPECT_GE(tried, 2u);  // reference and openssl
}

TEST(Forced, NegativeThreadsAreRefused) {
    EXPECT_EQ(Engine::open({.backend = "openssl", .threads = -1}).code(), Code::invalid_argument);
}

TEST(Forced, InputAndOutputOfDifferentSizesAreRefused) {
    auto engine = Engine::open({.backend = "openssl"});
    ASSERT_TRUE(engine);
    const auto key = Key::import(pattern(16));
    Bytes in(32), out(48);
    const auto ran = ctr::crypt(*engine, *key, {}, in, out);
    ASSERT_EQ(ran.code(), Code::invalid_argument);
    EXPECT_NE(ran.error().message.find("48"), std::string::npos) << ran.error().message;
}

TEST(ErrorTable, IsCompleteAndDistinct) {
    std::set<std::string_view> seen;
    for (int code = 0; code < kCodeCount; ++code) {
        const auto text = describe(static_cast<Code>(code));
        EXPECT_FALSE(text.empty()) << code;
        EXPECT_NE(text, "unknown error") << code;
        EXPECT_TRUE(seen.insert(text).second) << "two codes say: " << text;
    }
    EXPECT_EQ(static_cast<int>(Code::authentication) + 1, kCodeCount)
        << "a code was added: count it";
    for (const int code : {-1, kCodeCount, 1 << 30})
        EXPECT_EQ(describe(static_cast<Code>(code)), "unknown error");
}

}  // namespace
