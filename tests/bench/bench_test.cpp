// SPDX-License-Identifier: Apache-2.0
// The benchmark itself: that its statistics are right, that it notices wrong output, and that a run
// on small sizes gives sane rows in the schema of bench/README.md.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <set>

#include "bench/check.hpp"
#include "bench/device_under_test.hpp"
#include "bench/gcm.hpp"
#include "bench/machine.hpp"
#include "bench/report.hpp"
#include "bench/session.hpp"
#include "bench/workload.hpp"
#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"

namespace {

using namespace dael;
using namespace dael::bench;

TEST(Measure, SpreadIsMedianAndExtremes) {
    const Spread odd = spread({5, 1, 3});
    EXPECT_EQ(odd.median, 3);
    EXPECT_EQ(odd.min, 1);
    EXPECT_EQ(odd.max, 5);
    EXPECT_EQ(spread({4, 1, 2, 3}).median, 2.5);
}

TEST(Measure, RatioIsTakenWithinEachTurn) {
    // The machine halves its speed in the middle: each turn still says 2, the medians alone would
    // not.
    EXPECT_DOUBLE_EQ(speed_ratio({1, 1, 2, 2, 2}, {2, 2, 4, 4, 4}), 2);
    EXPECT_DOUBLE_EQ(gigabytes_per_second({0.5, 1, 2}, 4e9).median, 4);
}

TEST(Measure, ContestantsTakeTurnsAndTheFirstTurnIsThrownAway) {
    std::string order;
    const auto contestant = [&order](char letter) {
        return Contestant{std::string(1, letter), [&order, letter]() -> Result<double> {
                              order += letter;
                              return 1.0;
                          }};
    };
    const auto series = compare({contestant('a'), contestant('b')}, {.repeats = 3});
    ASSERT_TRUE(series);
    EXPECT_EQ(order, "abbaabba");
    EXPECT_EQ((*series)[0].size(), 3u);
    EXPECT_EQ((*series)[1].size(), 3u);
}

TEST(Measure, ErrorsNameTheContestant) {
    const auto series = compare({{"slow one",
                                  []() -> Result<double> {
                                      return Error{Code::device, "it broke"};
                                  }}},
                                {});
    ASSERT_FALSE(series);
    EXPECT_EQ(series.error().message, "slow one: it broke");
}

class CheckOutput : public testing::TestWithParam<std::tuple<Mode, Direction>> {};

TEST_P(CheckOutput, AcceptsOpenSSLsAndNoticesAWrongByteInEverySample) {
    const auto key = TestKey::make(192);
    ASSERT_TRUE(key);
    Work work;
    std::tie(work.mode, work.direction) = GetParam();
    work.bits = 192;
    for (const auto& [size, messages] :
         {std::pair<std::uint64_t, std::uint64_t>{1 << 20, 1}, {1 << 12, 9}}) {
        work.size = size;
        work.messages = messages;
        std::vector<std::uint8_t> in(size * messages), out(in.size());
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * i >> 3);
        auto openssl = Evp::open(work.mode, work.direction, *key);
        ASSERT_TRUE(openssl);
        ASSERT_TRUE(openssl->run(lay_out(work, in.data(), out.data())));
        const auto fine = check_output(work, *key, in.data(), out.data());
        ASSERT_TRUE(fine) << fine.error().message;
        for (const Window& window : sample_windows(work)) {
            ASSERT_LE(window.begin + window.size, work.size);
            std::uint8_t& last = out[window.message * work.size + window.begin + window.size - 1];
            last ^= 1;
            EXPECT_EQ(check_output(work, *key, in.data(), out.data()).code(), Code::internal);
            last ^= 1;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, CheckOutput,
                         testing::Combine(testing::ValuesIn(kModes),
                                          testing::Values(Direction::encrypt, Direction::decrypt)));

TEST(CheckOutput, NoticesAWrongByteInXts) {
    const auto key = TestKey::make(256);
    ASSERT_TRUE(key);
    Work work;
    work.mode = Mode::ecb;
    work.sector = 512;
    work.size = (1 << 20) + 48;  // the last sector is short
    std::vector<std::uint8_t> in(work.size), out(work.size);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * i >> 3);
    ASSERT_TRUE(evp_xts(*key, work.direction, work.sector, kFirstSector, in, out.data()));
    EXPECT_NE(in, out);
    ASSERT_TRUE(check_output(work, *key, in.data(), out.data()));
    for (const Window& window : sample_windows(work)) {
        EXPECT_EQ(window.begin % work.sector, 0u);
        std::uint8_t& last = out[window.begin + window.size - 1];
        last ^= 1;
        EXPECT_EQ(check_output(work, *key, in.data(), out.data()).code(), Code::internal);
        last ^= 1;
    }
    EXPECT_EQ(cipher_name(work), "xts-128 encrypt, 512 B sectors");
}

// The check of GCM on data that OpenSSL seals: one message longer than a piece, and many under
// several keys.
TEST(CheckSealed, NoticesAWrongByteATagAndAFailure) {
    const auto key = TestKey::make(256);
    ASSERT_TRUE(key);
    for (const Work& work : {gcm_work(256, Direction::encrypt, {(16 << 20) + 48, 1}, 1),
                             gcm_work(256, Direction::encrypt, {1024, 9}, 9)}) {
        std::vector<std::uint8_t> in(work.size * work.messages), out(in.size()),
            tags(work.messages * kTagSize);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * i >> 3);
        GcmMessages messages(work, in.data(), out.data(), tags.data());
        for (const GcmMessage& message : messages.renew()) {
            auto openssl = EvpGcm::open(gcm_key_bytes(*key, message.key));
            ASSERT_TRUE(openssl);
            ASSERT_TRUE(openssl->seal(std::span(&message, 1)));
        }
        const auto check = [&] {
            return check_sealed(work, *key, in.data(), fetch_from(out.data()),
                                fetch_from(tags.data()));
        };
        const auto fine = check();
        ASSERT_TRUE(fine) << fine.error().message;
        const auto opened = [&] { return check_opened(work, in.data(), fetch_from(out.data())); };
        EXPECT_EQ(opened().code(), Code::internal);
        const std::vector<std::uint8_t> sealed = std::exchange(out, in);
        EXPECT_TRUE(opened());
        for (const Window& window : sample_windows(work)) {
            std::uint8_t& last = out[(window.message + 1) * work.size - 1];
            last ^= 1;
            EXPECT_EQ(opened().code(), Code::internal);
            last ^= 1;
        }
        out = sealed;
        for (const Window& window : sample_windows(work))
            for (std::uint8_t* byte :
                 {&out[window.message * work.size], &out[(window.message + 1) * work.size - 1],
                  &tags[window.message * kTagSize + 15]}) {
                *byte ^= 1;
                EXPECT_EQ(check().code(), Code::internal);
                *byte ^= 1;
            }
        std::vector<Code> results(work.messages, Code::ok);
        EXPECT_TRUE(check_results(work, results));
        results.back() = Code::authentication;
        EXPECT_EQ(check_results(work, results).code(), Code::internal);
    }
}

TEST(GcmMessages, AreSealedUnderOtherNoncesAndKeysEachTime) {
    const Work work = gcm_work(128, Direction::encrypt, {16, 6}, 3);
    std::vector<std::uint8_t> data(96), tags(96);
    GcmMessages messages(work, data.data(), data.data(), tags.data());
    const auto segments = messages.segments();
    std::set<std::vector<std::uint8_t>> nonces;
    std::set<std::uint32_t> keys;
    for (int call = 0; call < 3; ++call) {
        messages.renew();
        for (const core::GcmSegment& segment : segments) {
            nonces.emplace(segment.iv, segment.iv + segment.iv_size);
            keys.insert(segment.key);
        }
    }
    EXPECT_EQ(nonces.size(), 18u);
    EXPECT_EQ(keys.size(), 3u);
    const auto key = TestKey::make(128);
    ASSERT_TRUE(key);
    EXPECT_TRUE(std::ranges::equal(gcm_key_bytes(*key, 0), key->bytes()));
    EXPECT_NE(gcm_key_bytes(*key, 1), gcm_key_bytes(*key, 2));
}

TEST(Names, TellGcmsKeysAndDirections) {
    Work work = gcm_work(128, Direction::encrypt, {1024, 65'536}, 1);
    EXPECT_EQ(cipher_name(work), "gcm-128");
    work.keys = 65'536;
    work.direction = Direction::decrypt;
    EXPECT_EQ(cipher_name(work), "gcm-128 decrypt, 65536 keys");
    work = gcm_work(256, Direction::encrypt, {1 << 20, 1}, 1);
    work.mac_only = true;
    EXPECT_EQ(cipher_name(work), "gmac-256");
}

TEST(Workload, HasEveryWayOnceAndHonoursChoices) {
    EXPECT_EQ(ways({}).size(), 8u);
    EXPECT_EQ(ways({.modes = {Mode::cbc}}).size(), 2u);
    EXPECT_TRUE(ways({.basic = false}).empty());
    const Workload chosen = make_workload({.bits = {192}, .sizes = {4096, 1 << 20}});
    EXPECT_EQ(chosen.bits, std::vector{192});
    EXPECT_EQ(chosen.largest_through(), 1u << 20);
    EXPECT_EQ(make_workload({.suite = "h200"}).largest_host(), std::uint64_t{4} << 30);
}

// Small work of every kind; the machine's speed is nobody's business here, only that rows make
// sense.
Options small() {
    Options options;
    options.repeats = 3;
    options.scale = 256;
    return options;
}

void expect_sane(const Report& report) {
    ASSERT_FALSE(report.rows.empty());
    for (const Row& row : report.rows) {
        SCOPED_TRACE(describe(row) + ", " + row.measure + ", " + row.placement);
        EXPECT_GE(row.samples, 3);
        EXPECT_TRUE(std::isfinite(row.seconds) && row.seconds > 0) << row.seconds;
        EXPECT_TRUE(std::isfinite(row.gbps.max)) << row.gbps.max;
        EXPECT_GT(row.gbps.min, 0);
        EXPECT_LE(row.gbps.min, row.gbps.median);
        EXPECT_LE(row.gbps.median, row.gbps.max);
        EXPECT_NEAR(row.gbps.median, row.bytes() / row.seconds / 1e9, row.gbps.median * 1e-6);
        ASSERT_FALSE(row.ceilings.empty());
        for (const Ceiling& ceiling : row.ceilings) {
            EXPECT_FALSE(ceiling.name.empty());
            EXPECT_GT(ceiling.gbps, 0);
            EXPECT_TRUE(std::isfinite(ceiling.ratio) && ceiling.ratio > 0) << ceiling.ratio;
        }
    }
}

bool cpu_is_here(const Report& report) {
    return std::ranges::any_of(report.rows, [](const Row& row) { return row.backend == "cpu"; });
}

void expect_schema(const Report& report) {
    const auto json = nlohmann::json::parse(to_json(report));
    for (const char* field :
         {"machine", "date", "version", "commit", "compiler", "suite", "skipped"})
        EXPECT_TRUE(json.contains(field)) << field;
    EXPECT_FALSE(json["machine"]["cpu"].get<std::string>().empty());
    EXPECT_GT(json["machine"]["cores"].get<int>(), 0);
    ASSERT_EQ(json["rows"].size(), report.rows.size());
    for (const auto& row : json["rows"]) {
        EXPECT_EQ(row.contains("keys"), row["mode"] == "gcm" || row["mode"] == "gmac");
        EXPECT_EQ(row.contains("sector"), row["mode"] == "xts");
        for (const char* text : {"backend", "mode", "direction", "where", "measure", "placement"})
            EXPECT_TRUE(row.at(text).is_string()) << text;
        for (const char* number :
             {"bits", "size", "messages", "threads", "seconds", "samples", "ratio"})
            EXPECT_TRUE(row.at(number).is_number()) << number;
        for (const char* figure : {"median", "min", "max"})
            EXPECT_TRUE(row.at("gbps").at(figure).is_number()) << figure;
        EXPECT_TRUE(row.at("ceiling").at("name").is_string());
        EXPECT_TRUE(row.at("ceiling").at("gbps").is_number());
    }
}

TEST(Suite, QuickOnTheHostGivesSaneRows) {
    Options options = small();
    options.backends = {"cpu", "openssl"};
    const auto report = measure(options, [](const std::string&) {});
    ASSERT_TRUE(report) << report.error().message;
    expect_sane(*report);
    expect_schema(*report);
    EXPECT_NE(to_table(*report).find("ctr-128"), std::string::npos);
    int together = 0;
    for (const Row& row : report->rows)
        together += row.where == "cache" && row.mode == Mode::cbc && row.messages == 16;
    EXPECT_GE(together, 2);  // 128 and 256 bits
    // Two key sizes, both ways, two sector sizes, by openssl alone.
    EXPECT_EQ(std::ranges::count_if(report->rows, [](const Row& row) { return row.sector != 0; }),
              8);
    // Two key sizes by two engines: a message and a batch on one core, through the engine and
    // without it; a batch on all cores.
    const auto gcm = std::ranges::count_if(report->rows, [](const Row& row) { return row.keys; });
    EXPECT_EQ(gcm, cpu_is_here(*report) ? 20 : 10);
    options.basic = options.gcm = false;
    const auto only = measure(options, [](const std::string&) {});
    ASSERT_TRUE(only) << only.error().message;
    EXPECT_EQ(only->rows.size(), 8u);
    options.xts = false;
    options.gcm = true;
    const auto only_gcm = measure(options, [](const std::string&) {});
    ASSERT_TRUE(only_gcm) << only_gcm.error().message;
    EXPECT_EQ(std::ssize(only_gcm->rows), gcm);
    for (const Row& row : only_gcm->rows) EXPECT_EQ(mode_name(row), "gcm");
}

// The code that measures a GPU, on a device made of threads.
TEST(Suite, QuickOnADeviceGivesSaneRows) {
    const Options options = small();
    const Workload workload = make_workload(options);
    Report report;
    Session session{options, workload, report, [](const std::string&) {}};
    test::HostDevice device;
    Engine engine = pipeline::make_engine(std::make_unique<test::HostDeviceBackend>(device));
    DeviceUnderTest subject{"threads:0", device, engine};
    report.machine = describe_host();
    describe_device(report.machine, device.info());
    const auto resident = measure_resident(session, subject);
    ASSERT_TRUE(resident) << resident.error().message;
    const auto through = measure_through(session, subject);
    ASSERT_TRUE(through) << through.error().message;
    EXPECT_TRUE(report.skipped.empty()) << report.skipped.front();
    EXPECT_GT(device.kernels(), report.rows.size());

    expect_sane(report);
    expect_schema(report);
    std::map<std::string, int> measures, places, placements;
    for (const Row& row : report.rows) {
        ++measures[row.measure];
        ++places[row.where];
        ++placements[row.placement];
    }
    for (const char* measure : {"kernel", "launch", "latency", "total", "async"})
        EXPECT_GT(measures[measure], 0) << measure;
    for (const char* where : {"device", "pinned", "pageable"}) EXPECT_GT(places[where], 0) << where;
    EXPECT_EQ(placements["in place"], placements["unaligned"]);
    EXPECT_GT(placements["in place"], 0);
    EXPECT_EQ(std::ranges::count_if(report.rows, [](const Row& row) { return row.sector != 0; }),
              8);
    std::map<std::string, int> gcm;
    for (const Row& row : report.rows)
        if (row.keys != 0)
            ++gcm[mode_name(row) + " " + std::string(name(row.direction)) +
                  (row.messages == 1 ? ""
                   : row.keys == 1   ? ", batch"
                                     : ", batch with keys")];
    // Two key sizes, two shapes of batches.
    EXPECT_EQ(gcm, (std::map<std::string, int>{{"gcm encrypt", 2},
                                               {"gcm encrypt, batch", 4},
                                               {"gcm encrypt, batch with keys", 4},
                                               {"gcm decrypt", 2},
                                               {"gcm decrypt, batch", 4},
                                               {"gcm decrypt, batch with keys", 4},
                                               {"gmac encrypt", 2}}));
}

TEST(Suite, AbsentBackendsAreLeftOutWithALine) {
    Options options = small();
    options.backends = {"cuda:9999"};
    const auto report = measure(options, [](const std::string&) {});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->rows.empty());
    ASSERT_EQ(report->skipped.size(), 1u);
    EXPECT_EQ(report->skipped[0].rfind("cuda:9999: ", 0), 0u) << report->skipped[0];
    EXPECT_NE(to_table(*report).find("Left out"), std::string::npos);
}

}  // namespace
