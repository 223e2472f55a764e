// SPDX-License-Identifier: Apache-2.0
// The shapes that kernels get. Nothing here needs a device.
#include "backends/opencl/tuning.hpp"

#include <gtest/gtest.h>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::opencl;

constexpr std::size_t kKiB = 1024;

Limits gpu(std::size_t local_memory, std::size_t work_group = 1024) {
    return {local_memory, true, work_group};
}

TEST(OpenClTuning, TablesByLocalMemory) {
    struct Case {
        std::size_t kib;
        int tables;
    };
    for (const auto& [kib, tables] : {Case{4, -1}, Case{8, 0}, Case{16, 0}, Case{32, 1},
                                      Case{48, 1}, Case{64, 2}, Case{128, 4}, Case{227, 4}}) {
        const Limits limits = gpu(kib * kKiB);
        EXPECT_EQ(default_tuning(limits).tables, tables) << kib;
        EXPECT_EQ(tables_that_fit(4, limits), tables) << kib;
        EXPECT_LE(table_bytes(tables), limits.local_memory);
    }
    EXPECT_EQ(tables_that_fit(1, gpu(128 * kKiB)), 1);  // no more than asked for
    EXPECT_EQ(tables_that_fit(-1, gpu(128 * kKiB)), -1);
}

// Tables in ordinary memory would tell through its caches what was looked up.
TEST(OpenClTuning, NoTablesWhereLocalMemoryIsOrdinary) {
    const Limits cpu{1024 * kKiB, false, 4096};
    EXPECT_EQ(default_tuning(cpu).tables, -1);
    for (const Tuning& tuning : candidates(cpu)) EXPECT_EQ(tuning.tables, -1);
}

TEST(OpenClTuning, TeamsByWorkGroup) {
    EXPECT_EQ(default_tuning(gpu(48 * kKiB, 32)).teams, 1u);
    EXPECT_EQ(default_tuning(gpu(48 * kKiB, 96)).teams, 2u);  // a power of two
    EXPECT_EQ(default_tuning(gpu(48 * kKiB, 256)).teams, 8u);
    EXPECT_EQ(default_tuning(gpu(48 * kKiB, 1024)).teams, 16u);
}

TEST(OpenClTuning, CandidatesFitAndAreWhatTheySay) {
    for (const bool dedicated : {false, true})
        for (const std::size_t kib : {4, 16, 32, 48, 64, 128, 227})
            for (const std::size_t work_group : {32, 128, 256, 1024, 4096}) {
                const Limits limits{kib * kKiB, dedicated, work_group};
                const auto list = candidates(limits);
                ASSERT_FALSE(list.empty());
                EXPECT_EQ(list.front(), default_tuning(limits));
                for (std::size_t i = 0; i < list.size(); ++i) {
                    const Tuning& tuning = list[i];
                    EXPECT_LE(table_bytes(tuning.tables), limits.local_memory);
                    EXPECT_LE(tuning.teams * 32, work_group) << to_string(tuning);
                    EXPECT_EQ(std::count(list.begin(), list.end(), tuning), 1) << to_string(tuning);
                    const auto read = parse_tuning(to_string(tuning), limits);
                    ASSERT_TRUE(read) << read.error().message;
                    EXPECT_EQ(*read, tuning) << to_string(tuning);
                }
            }
}

TEST(OpenClTuning, ReadsWhatIsNamedAndKeepsTheRest) {
    const Limits limits = gpu(64 * kKiB);
    const Tuning usual = default_tuning(limits);
    EXPECT_EQ(*parse_tuning("", limits), usual);
    const Tuning read = *parse_tuning("held=8,tables=-1", limits);
    EXPECT_EQ(read, (Tuning{-1, usual.teams, 8, usual.groups}));
    EXPECT_EQ(to_string(read), "tables=-1,teams=16,held=8,groups=" + std::to_string(usual.groups));
}

TEST(OpenClTuning, RefusesWithTheThingAndTheMend) {
    const Limits limits = gpu(64 * kKiB, 256);
    for (const char* field : {"tables=3", "tables=", "tables=1x", "teams=3", "teams=0", "teams=16",
                              "teams=-4", "held=16", "held=3", "groups=0", "groups=65",
                              "groups=99999999999", "speed=1", "tables", "=1", " teams=4"}) {
        const auto read = parse_tuning(std::string("held=4,") + field, limits);
        ASSERT_FALSE(read) << field;
        EXPECT_EQ(read.code(), Code::invalid_argument) << field;
        const std::string& message = read.error().message;
        EXPECT_NE(message.find("'" + std::string(field) + "'"), std::string::npos) << message;
        EXPECT_NE(message.find("teams=1 to 8"), std::string::npos) << message;
    }
    const auto read = parse_tuning("tables=4", limits);
    ASSERT_FALSE(read);
    test::expect_refused(read.error(), Code::unsupported, "65536");
    test::expect_refused(read.error(), Code::unsupported, "ask for fewer");
}

}  // namespace
