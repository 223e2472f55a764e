// SPDX-License-Identifier: Apache-2.0
// Files of SAs: the thesis' own form, all settings, and what is said of files that are wrong.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "keystream/flow.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class SaFiles : public testing::Test {
  protected:
    void SetUp() override {
        if (load_sas("/nonexistent").code() == Code::unsupported)
            GTEST_SKIP() << load_sas("/nonexistent").error().message;
    }
    ~SaFiles() override { std::remove(path_.c_str()); }
    Result<std::vector<SaEntry>> load(const std::string& text) {
        std::ofstream(path_) << text;
        return load_sas(path_);
    }
    std::string error_of(const std::string& text) {
        const auto loaded = load(text);
        if (loaded) return "it was taken";
        const std::string& message = loaded.error().message;
        // The path, which differs from run to run, is named.
        EXPECT_EQ(message.rfind("'" + path_ + "'", 0), 0u) << message;
        EXPECT_EQ(message.find('\n'), std::string::npos);
        return message.substr(path_.size() + 2);
    }

    const std::string path_ = testing::TempDir() + "daelstrom_sas_" +
                              std::to_string(reinterpret_cast<std::uintptr_t>(this)) + ".cfg";
};

constexpr const char* kKey =
    "key = [0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30,"
    " 0x83, 0x08];";

std::string with(const std::string& settings) {
    return std::string("testapp = { SAs = (\n { ") + kKey + "\n nonce = [1];\n " + settings +
           " } ); };";
}

TEST_F(SaFiles, AsTheThesisHasThem) {
    const auto sas = load(std::string("testapp = {\n  SAs = (\n    { keybits = 128; ") + kKey +
                          " nonce = [0xcafebabe, 0xfacedbad, 0xdecaf888, 0x1]; segments = 4; },\n"
                          "    { keybits = 128; " +
                          kKey + " nonce = [0x1]; segments = 0; }\n  );\n};\n");
    ASSERT_TRUE(sas) << sas.error().message;
    ASSERT_EQ(sas->size(), 2u);
    const SaEntry& one = sas->front();
    EXPECT_EQ(one.key.bits(), 128);
    EXPECT_EQ(one.options.quota, 4u * 65536);
    EXPECT_EQ(one.options.salt, (std::array<std::uint8_t, 4>{0xca, 0xfe, 0xba, 0xbe}));
    EXPECT_EQ(one.options.first_iv, (std::array<std::uint8_t, 12>{0xfa, 0xce, 0xdb, 0xad, 0xde,
                                                                  0xca, 0xf8, 0x88, 0, 0, 0, 1}));
    EXPECT_FALSE(one.options.fresh_key);
    EXPECT_EQ(one.line, 3);
    EXPECT_EQ((*sas)[1].options.quota, 0u);

    // The key is the one that stands there, and it does not send.
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    SaTable table = *SaTable::open(engine);
    const auto sends = table.add(one.key, one.options);
    ASSERT_EQ(sends.code(), Code::invalid_argument);
    EXPECT_NE(sends.error().message.find("fresh"), std::string::npos);
    SaOptions options = one.options;
    options.fresh_key = true;
    const SaId id = *table.add(one.key, options);
    std::uint8_t iv[8], tag[16], data[4] = {1, 2, 3, 4};
    const SaPacket packet{data, data, 4, nullptr, 0, iv, tag};
    ASSERT_TRUE(table.seal(id, {&packet, 1}));
    expect_right(
        {0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83,
         0x08},
        options,
        {Bytes(iv, iv + 8), {}, {1, 2, 3, 4}, Bytes(data, data + 4), Bytes(tag, tag + 16)});
}

TEST_F(SaFiles, AllSettings) {
    const auto sas =
        load(with("direction = \"receive\"; layout = \"stream\"; ivs = \"counting\"; icv = 12; "
                  "fresh_key = true; limit = 4294967295L; soft_limit = 1000;"));
    ASSERT_TRUE(sas) << sas.error().message;
    const SaOptions& options = sas->front().options;
    EXPECT_EQ(options.direction, SaDirection::receiving);
    EXPECT_EQ(options.layout, SaLayout::stream);
    EXPECT_EQ(options.ivs, SaIvs::counting);
    EXPECT_EQ(options.tag_size, 12);
    EXPECT_TRUE(options.fresh_key);
    EXPECT_EQ(options.limit, 4294967295u);
    EXPECT_EQ(options.soft_limit, 1000u);
    EXPECT_EQ(load("SAs = ();")->size(), 0u) << "none";
}

TEST_F(SaFiles, WhatIsWrongAndWhere) {
    EXPECT_EQ(load_sas("/nonexistent/sas").code(), Code::io);
    EXPECT_EQ(error_of("testapp = { SAs = ( {"), ", line 1: syntax error");
    EXPECT_EQ(error_of("x = 1;"),
              ": no list of SAs; give `testapp = { SAs = ( { ... }, ... ); };`");
    EXPECT_EQ(error_of("\nSAs = { };"), ", line 2: SAs must be a list, in round brackets");
    EXPECT_EQ(error_of("SAs = ( 7 );"), ", line 1: SA 1: it must be a group, in curly brackets");
    EXPECT_EQ(error_of("SAs = (\n{ nonce = [1]; } );"), ", line 2: SA 1: key is missing");
    EXPECT_EQ(error_of("SAs = ( { key = [1, 2, 3]; } );"),
              ", line 1: SA 1: the key is 3 bytes; AES takes 16, 24 or 32");
    EXPECT_EQ(error_of("SAs = ( { key = [1, 2, 300]; } );"),
              ", line 1: SA 1: key has an element that is no number of 8 bits");
    EXPECT_EQ(error_of(with("keybits = 256;")),
              ", line 4: SA 1: keybits is 256, and the key has 16 bytes, which are 128 bits");
    EXPECT_EQ(error_of(std::string("SAs = ( { ") + kKey + " } );"),
              ", line 1: SA 1: nonce is missing");
    EXPECT_EQ(error_of(with("segments = -1;")),
              ", line 4: SA 1: segments must be a number from 0 to 1048576");
    EXPECT_EQ(error_of(with("icv = 4;")),
              ", line 4: SA 1: icv must be 8, 12 or 16 bytes (RFC 4106, section 6)");
    EXPECT_EQ(error_of(with("direction = \"out\";")),
              ", line 4: SA 1: direction must be one of \"send\", \"receive\"");
    EXPECT_EQ(error_of(with("fresh_key = 1;")), ", line 4: SA 1: fresh_key must be true or false");
    EXPECT_EQ(error_of(with("keyBits = 128;")), ", line 4: SA 1: there is no setting 'keyBits'");
    EXPECT_EQ(error_of(with("}, {")), ", line 4: SA 2: key is missing");
}

}  // namespace
