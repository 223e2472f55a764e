// SPDX-License-Identifier: Apache-2.0
// The lab's arithmetic: tables and keys of its kernels, what repeats in a picture, from which size
// on a way pays. Expected values are FIPS 197's, and such as can be counted by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include <string>
#include <vector>

#include <daelstrom/device/detail/aes_math.hpp>

#include "lab/figures.hpp"
#include "lab/kernel_device.hpp"
#include "lab/study.hpp"

namespace {

using namespace dael;
using lab::Point;

TEST(Kernels, TablesAreSubstitutionAndMixedColumns) {
    const auto words = lab::tables();
    ASSERT_EQ(words.size(), 1024u);
    // S(0x53) = 0xed (FIPS 197 5.1.1); its column is 02, 01, 01, 03 times that, lowest row first.
    const std::uint32_t two = core::gf_multiply(0xed, 2), three = core::gf_multiply(0xed, 3);
    const std::uint32_t first = two | 0xed00u | 0xed0000u | three << 24;
    EXPECT_EQ(words[0x53], first);
    EXPECT_EQ(words[256 + 0x53], first << 8 | first >> 24);
    EXPECT_EQ(words[512 + 0x53], first << 16 | first >> 16);
    EXPECT_EQ(words[768 + 0x53], first << 24 | first >> 8);
}

TEST(Kernels, KeysAreThoseOfTheStandard) {
    // FIPS 197 A.1; words there have the first byte on top.
    const std::vector<std::uint8_t> key{0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6,
                                        0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
    const auto keys = lab::expand(key);
    EXPECT_EQ(keys.words[0], 0x16157e2bu);
    EXPECT_EQ(keys.words[4], 0x17fefaa0u);   // a0fafe17
    EXPECT_EQ(keys.words[43], 0xa60c63b6u);  // b6630ca6
}

TEST(Kernels, ShapesKnowWhatTheyNeed) {
    using Shape = lab::Shape;
    EXPECT_EQ((Shape{16, Shape::Tables::shared, true, Shape::State::registers, 4}).local_memory(),
              4096u + 176u);
    EXPECT_EQ((Shape{16, Shape::Tables::banks, false, Shape::State::registers, 4}).local_memory(),
              128u << 10);
    EXPECT_EQ((Shape{4, Shape::Tables::constant, false, Shape::State::aos, 4}).local_memory(),
              64u * 32u);
    EXPECT_EQ((Shape{1, Shape::Tables::shared, true, Shape::State::aos, 4}).blocks(), 16);
}

TEST(Picture, CountsBlocksThatOccurAgain) {
    std::vector<std::uint8_t> bytes(4 * 16);
    EXPECT_EQ(lab::repeated_blocks(bytes), 100);
    bytes[0] = 1;
    EXPECT_EQ(lab::repeated_blocks(bytes), 75);
    bytes[16] = 2;
    bytes[32] = 3;
    EXPECT_EQ(lab::repeated_blocks(bytes), 0);
    EXPECT_EQ(lab::repeated_blocks({}), 0);
}

measure::Row row(const char* backend, std::uint64_t threads, std::uint64_t size, double gbps) {
    return {Point{{"backend", backend},
                  {"mode", "ctr"},
                  {"bits", std::uint64_t{128}},
                  {"size", size},
                  {"where", "host"},
                  {"measure", "call"},
                  {"threads", threads}},
            {gbps, gbps, gbps},
            1,
            1,
            {},
            {},
            {}};
}

TEST(Sizes, AWayPaysFromTheSizeOnAfterWhichItIsNeverSlower) {
    std::vector<measure::Row> rows{
        row("openssl", 1, 16, 2), row("openssl", 1, 32, 2), row("openssl", 1, 64, 2),
        row("cpu", 4, 16, 3),     row("cpu", 4, 32, 1),     row("cpu", 4, 64, 3),
        row("opencl", 1, 16, 1),  row("opencl", 1, 32, 1),  row("opencl", 1, 64, 2)};
    lab::mark_crossovers(rows);
    for (const auto& each : rows) {
        const bool pays = each.point.text("backend") == "cpu" && each.point.number("size") == 64;
        EXPECT_EQ(each.figures.size(), pays ? 1u : 0u) << lab::describe_fields(each.point);
    }
}

TEST(Studies, HaveNamesOfTheirOwn) {
    std::vector<std::string_view> names;
    for (const auto& study : lab::studies()) {
        EXPECT_EQ(std::ranges::count(names, study.name), 0) << study.name;
        names.push_back(study.name);
    }
    const auto none = lab::study_by_name("abacus");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.code(), Code::invalid_argument);
    EXPECT_NE(none.error().message.find("placement"), std::string::npos);
}

}  // namespace
