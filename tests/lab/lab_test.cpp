// SPDX-License-Identifier: Apache-2.0
// The lab's arithmetic: tables and keys of its kernels, what repeats in a picture, from which size
// on a way pays. Expected values are FIPS 197's, and such as can be counted by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <daelstrom/device/detail/aes_math.hpp>

#include "lab/figures.hpp"
#include "lab/kernel_device.hpp"
#include "lab/spawn.hpp"
#include "lab/study.hpp"
#include "measure/power.hpp"

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

TEST(Kernels, ConstantsHaveTheCounterAndTheKeysBits) {
    std::vector<std::uint8_t> key(16);
    key[0] = 0x01;   // row 0 of column 0: bits 0 and 1 of plane 0
    key[13] = 0x80;  // row 1 of column 3: bits 14 and 15 of plane 7
    const Block start{0x00, 0x01, 0x02, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd};
    const auto all = lab::constants_of(key, start);
    EXPECT_EQ(all.start[0], 0x00010203u);
    EXPECT_EQ(all.start[3], 0xaabbccddu);
    EXPECT_EQ(all.planes[0], 0x3u);
    EXPECT_EQ(all.planes[7], 0xc000u);
    for (int plane = 1; plane < 7; ++plane) EXPECT_EQ(all.planes[plane], 0u);
    EXPECT_EQ(all.keys.words[3], 0x8000u);
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
    EXPECT_EQ((Shape{32, Shape::Tables::none}).blocks(), 512);
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

TEST(Overlap, HiddenIsWhatStreamsGainOfTheCopies) {
    // 1 GB in 2 s on one stream, 1.25 s on four; its copies alone take a second.
    const auto with = [](std::uint64_t streams, double seconds, double copies_gbps) {
        measure::Row made = row("cuda:0", 0, 1'000'000'000, 1 / seconds);
        made.point.set("streams", streams);
        made.seconds = seconds;
        made.ceilings = {{"copies", copies_gbps, 0}};
        return made;
    };
    std::vector<measure::Row> rows{with(4, 1.25, 1), with(1, 2, 1)};
    lab::mark_hidden(rows);
    ASSERT_EQ(rows[0].figures.size(), 1u);
    EXPECT_EQ(rows[0].figures[0].first, "hidden");
    EXPECT_NEAR(rows[0].figures[0].second, 0.75, 1e-9);
    EXPECT_TRUE(rows[1].figures.empty());
    // Of copies that take a hundredth of the time, nothing can be said.
    std::vector<measure::Row> small{with(1, 2, 50), with(4, 1.99, 50)};
    lab::mark_hidden(small);
    EXPECT_TRUE(small[1].figures.empty());
}

TEST(Devices, TheSchedulerIsHeldAgainstTheBestShareOfItsOwnWork) {
    const auto with = [](const char* part, std::uint64_t share, const char* set, double gbps) {
        measure::Row made = row(set, 0, 1'000'000, gbps);
        made.point.set("study_part", std::string(part)).set("cpu_share", share);
        return made;
    };
    std::vector<measure::Row> rows{
        with("fixed share", 0, "cuda:0+cpu", 40),   with("fixed share", 50, "cuda:0+cpu", 80),
        with("fixed share", 100, "cuda:0+cpu", 30), with("scheduler", 0, "cuda:0+cpu", 72),
        with("fixed share", 50, "cuda:1+cpu", 100), with("scheduler", 0, "cuda:2+cpu", 50)};
    lab::mark_best(rows);
    ASSERT_EQ(rows[3].figures.size(), 1u);
    EXPECT_EQ(rows[3].figures[0].first, "of_best");
    EXPECT_DOUBLE_EQ(rows[3].figures[0].second, 0.9);
    for (const std::size_t other : {0, 1, 2, 4, 5}) EXPECT_TRUE(rows[other].figures.empty());
}

// A folder of counters as Linux has them.
class Counters : public testing::Test {
  protected:
    void SetUp() override {
        std::filesystem::remove_all(folder_);
        write("intel-rapl:0", "name", "package-0");
        write("intel-rapl:0", "max_energy_range_uj", "10000000");
        write("intel-rapl:0:0", "name", "core");
        write("intel-rapl:0:0", "max_energy_range_uj", "10000000");
        write("intel-rapl:0:0", "energy_uj", "77");
        write("intel-rapl-mmio:0", "name", "package-0");
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    void write(const char* zone, const char* file, const char* text) {
        std::filesystem::create_directories(folder_ / zone);
        std::ofstream(folder_ / zone / file) << text << '\n';
    }
    std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "powercap";
};

TEST_F(Counters, AreAddedUpPastTheirEnd) {
    write("intel-rapl:0", "energy_uj", "9000000");
    auto power = measure::CpuPower::open(folder_);
    ASSERT_TRUE(power) << power.error().message;
    EXPECT_EQ(*power->joules(), 0);
    write("intel-rapl:0", "energy_uj", "9500000");
    EXPECT_DOUBLE_EQ(*power->joules(), 0.5);
    write("intel-rapl:0", "energy_uj", "500000");  // began again at 10 J
    EXPECT_DOUBLE_EQ(*power->joules(), 1.5);
}

TEST_F(Counters, ThatMayNotBeReadAreSaidToBeAbsent) {
    const auto closed = measure::CpuPower::open(folder_);  // no energy_uj
    EXPECT_EQ(closed.code(), Code::backend_absent);
    EXPECT_NE(closed.error().message.find("administrator"), std::string::npos);
    const auto none = measure::CpuPower::open(folder_ / "nothing");
    EXPECT_EQ(none.code(), Code::backend_absent);
}

TEST(Energy, ReasonsHaveWords) {
    EXPECT_EQ(measure::clock_reasons(0), "");
    EXPECT_EQ(measure::clock_reasons(1), "");  // idle
    EXPECT_EQ(measure::clock_reasons(0x24), "power cap, temperature");
}

TEST(Programs, AreTimedAndTheirFaultsTold) {
    const auto log = std::filesystem::path(testing::TempDir()) / "said";
    const auto done =
        lab::run_program({"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}, log);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_GT(done->cpu_seconds, 0);
    EXPECT_GE(done->seconds, done->cpu_seconds / 2);
    const auto fails = lab::run_program({"sh", "-c", "echo why not >&2; exit 3"}, log);
    EXPECT_EQ(fails.code(), Code::io);
    EXPECT_NE(fails.error().message.find("why not"), std::string::npos);
    EXPECT_EQ(lab::run_program({"daelstrom-has-no-such-program"}, log).code(),
              Code::backend_absent);
    std::filesystem::remove(log);
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
