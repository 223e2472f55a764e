// SPDX-License-Identifier: Apache-2.0
// The benchmark itself: that its statistics are right, that it notices wrong output, and that a run
// on small sizes gives sane rows in the schema of bench/README.md.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <set>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/devices.hpp"
#include "bench/packets.hpp"
#include "bench/suite.hpp"
#include "core/registry.hpp"
#include "measure/machine.hpp"
#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"

namespace {

using namespace dael;
using namespace dael::bench;
using namespace dael::measure;

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

TEST(Measure, WhatIsWarmHasNoTurnThatIsThrownAway) {
    int calls = 0;
    const auto series = compare({{"a", [&calls]() -> Result<double> { return ++calls; }}},
                                {.repeats = 2, .warm_up = false});
    ASSERT_TRUE(series);
    EXPECT_EQ(series->front(), (std::vector<double>{1, 2}));
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

TEST(Points, AreTheProductOfTheirAxesWithoutThoseThatAreNotWanted) {
    Benchmark benchmark{
        "a benchmark",
        {Axis{Point{{"where", "here"}}}, axis("bits", std::vector{128, 256}),
         axis("size", std::vector{1, 2, 2})},
        [](const Point& p) { return p.number("bits") == 128 || p.number("size") == 1; },
        {}};
    const auto points = points_of(benchmark);
    ASSERT_EQ(points.size(), 3u);  // 128 with 1 and 2, once each; 256 with 1
    EXPECT_EQ(points[0],
              (Point{{"where", "here"}, {"bits", std::uint64_t{128}}, {"size", std::uint64_t{1}}}));
    EXPECT_EQ(points[2].number("bits"), 256u);
    EXPECT_EQ(points[2].number("colour"), 0u);
    EXPECT_EQ(points[2].text("bits"), "");
    benchmark.axes.push_back({});
    EXPECT_TRUE(points_of(benchmark).empty());
}

TEST(Heats, CheckBeforeTheyTimeAndLeaveOutWhatIsUnsupported) {
    Report report;
    std::string order;
    const auto sampler = [&order](const char* name) -> Sampler {
        return [&order, name]() -> Result<double> {
            order += name;
            return 1.0;
        };
    };
    const auto check = [&order](Code code) -> Check {
        return [&order, code]() -> Result<> {
            order += 'c';
            if (code == Code::ok) return {};
            return Error{code, "no"};
        };
    };
    Heat heat;
    const auto ceiling = heat.enter("ceiling", sampler("x"));
    heat.enter("one", sampler("1"), check(Code::ok), {{"name", "one"}}, 2e9, {ceiling});
    heat.enter("other", sampler("2"), check(Code::unsupported), {{"name", "other"}}, 2e9,
               {ceiling});
    heat.enter("nobody's", sampler("y"));
    ASSERT_TRUE(heat.run({.repeats = 1}, "a heat", report));
    EXPECT_EQ(order, "ccx11x");  // one turn thrown away, and one; nothing of what has no row
    ASSERT_EQ(report.rows.size(), 1u);
    EXPECT_EQ(report.rows[0].gbps.median, 2);
    EXPECT_EQ(report.rows[0].ceilings.at(0).ratio, 1);
    EXPECT_EQ(report.skipped, std::vector<std::string>{"a heat: no"});

    Heat wrong;
    wrong.enter("wrong", sampler("3"), check(Code::internal), {}, 1, {});
    EXPECT_EQ(wrong.run({.repeats = 1}, "a heat", report).code(), Code::internal);
    EXPECT_EQ(report.rows.size(), 1u);
}

Work work_of(const char* mode, Direction direction, int bits, Point more) {
    return Work(Point{{"mode", mode},
                      {"direction", std::string(name(direction))},
                      {"bits", static_cast<std::uint64_t>(bits)}}
                    .set(more));
}

std::vector<std::uint8_t> bytes_of(std::size_t size) {
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * i >> 3);
    return bytes;
}

TEST(Works, SurviveAsPoints) {
    Work work = work_of("xts", Direction::decrypt, 256, shape(4096, 2));
    work.cipher.sector = 4096;
    work.backend = "cpu";
    work.placement = "in place";
    EXPECT_EQ(Work(work.point()).point(), work.point());
    work = work_of("gmac", Direction::encrypt, 128, shape(4096, 1, 1));
    EXPECT_EQ(Work(work.point()).point(), work.point());
    EXPECT_TRUE(work.mac_only);
}

class CheckOutput : public testing::TestWithParam<std::tuple<const char*, Direction>> {};

TEST_P(CheckOutput, AcceptsOpenSSLsAndNoticesAWrongByteInEverySample) {
    const auto [mode, direction] = GetParam();
    for (const Point& size : {shape((1 << 20) + 16, 1), shape(1 << 12, 9)}) {
        const Work work = work_of(mode, direction, 256, size);
        if (work.is(Mode::xts) && work.messages > 1) continue;
        const auto in = bytes_of(work.bytes());
        std::vector<std::uint8_t> out(in.size());
        auto openssl = Evp::open(work.cipher, key_bytes(work));
        ASSERT_TRUE(openssl);
        ASSERT_TRUE(openssl->run(lay_out(work, in.data(), out.data())));
        EXPECT_NE(in, out);
        const auto check = [&] { return check_output(work, in.data(), fetch_from(out.data())); };
        const auto fine = check();
        ASSERT_TRUE(fine) << fine.error().message;
        for (const Window& window : sample_windows(work)) {
            ASSERT_LE(window.begin + window.size, work.size);
            if (work.is(Mode::xts)) {
                EXPECT_EQ(window.begin % work.cipher.sector, 0u);
            }
            std::uint8_t& last = out[window.message * work.size + window.begin + window.size - 1];
            last ^= 1;
            EXPECT_EQ(check().code(), Code::internal);
            last ^= 1;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, CheckOutput,
                         testing::Combine(testing::Values("ecb", "cbc", "cfb", "ofb", "ctr", "xts"),
                                          testing::Values(Direction::encrypt, Direction::decrypt)));

// The check of GCM on data that OpenSSL seals: one message longer than a piece, and many under
// several keys; and GMAC, which has a tag alone.
TEST(CheckSealed, NoticesAWrongByteATagAndAFailure) {
    for (const Work& work : {work_of("gcm", Direction::encrypt, 256, shape((16 << 20) + 48, 1, 1)),
                             work_of("gcm", Direction::encrypt, 256, shape(1024, 9, 9)),
                             work_of("gmac", Direction::encrypt, 128, shape(1024, 1, 1))}) {
        const auto in = bytes_of(work.bytes());
        std::vector<std::uint8_t> out(in.size()), tags(work.messages * gcm::kTagSize);
        for (const Message& message : lay_out(work, in.data(), out.data(), tags.data())) {
            auto openssl = Evp::open(work.cipher, key_bytes(work, message.key));
            ASSERT_TRUE(openssl);
            ASSERT_TRUE(openssl->run(std::span(&message, 1)));
        }
        const auto check = [&] {
            return check_output(work, in.data(), fetch_from(out.data()), fetch_from(tags.data()));
        };
        const auto fine = check();
        ASSERT_TRUE(fine) << fine.error().message;
        for (const Window& window : sample_windows(work)) {
            std::vector<std::uint8_t*> bytes{&tags[window.message * gcm::kTagSize + 15]};
            if (!work.mac_only)
                bytes.insert(bytes.end(), {&out[window.message * work.size],
                                           &out[(window.message + 1) * work.size - 1]});
            for (std::uint8_t* byte : bytes) {
                *byte ^= 1;
                EXPECT_EQ(check().code(), Code::internal);
                *byte ^= 1;
            }
        }
        const auto opened = [&] { return check_opened(work, in.data(), fetch_from(out.data())); };
        EXPECT_EQ(opened().code(), Code::internal);
        out = in;
        EXPECT_TRUE(opened());
        out.back() ^= 1;
        EXPECT_EQ(opened().code(), Code::internal);
        std::vector<Code> codes(work.messages, Code::ok);
        EXPECT_TRUE(check_codes(work, codes));
        codes.back() = Code::authentication;
        EXPECT_EQ(check_codes(work, codes).code(), Code::internal);
    }
}

class Nonces : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(Nonces, AreOthersEachTimeAndTheKeysTakeTurns) {
    const auto [mode, bits] = GetParam();
    const Work work = work_of(mode, Direction::encrypt, bits, shape(16, 6, 3));
    std::vector<std::uint8_t> data(96), tags(96);
    auto messages = lay_out(work, data.data(), data.data(), tags.data());
    std::set<Block> starts;
    std::set<std::uint32_t> keys;
    std::uint64_t next = 0;
    for (int call = 0; call < 3; ++call) {
        renew(work.cipher.mode, messages, next);
        for (const Message& message : messages) {
            starts.insert(message.start);
            keys.insert(message.key);
        }
    }
    EXPECT_EQ(starts.size(), 18u);
    EXPECT_EQ(keys.size(), 3u);
    EXPECT_NE(key_bytes(work, 1), key_bytes(work, 2));
}

INSTANTIATE_TEST_SUITE_P(Modes, Nonces,
                         testing::Values(std::pair("gcm", 128), std::pair("aegis128l", 128),
                                         std::pair("aegis256", 256), std::pair("xaes256gcm", 256),
                                         std::pair("gcm_siv", 128)));

// Modes that OpenSSL lacks: every byte and tag of all messages is looked at, whoever made them.
TEST(CheckByBackends, NoticesAWrongByteOrTagAnywhere) {
    for (const auto& [mode, bits] : {std::pair("aegis128l", 128),
                                     {"aegis256", 256},
                                     {"aegis128x4", 128},
                                     {"xaes256gcm", 256},
                                     {"gcm_siv", 128}})
        for (const Point& size : {shape(1000, 9, 9), shape(4096, 300, 1)}) {
            Work work = work_of(mode, Direction::encrypt, bits, size);
            SCOPED_TRACE(describe(work));
            work.backend = "a device";
            const auto in = bytes_of(work.bytes());
            std::vector<std::uint8_t> out(in.size()), tags(work.messages * gcm::kTagSize);
            auto engine = Engine::open({.backend = "auto", .threads = 1});
            ASSERT_TRUE(engine);
            const auto keys = make_keys(work);
            ASSERT_TRUE(keys);
            const auto set = engine->keys(*keys);
            ASSERT_TRUE(set);
            const auto messages = lay_out(work, in.data(), out.data(), tags.data());
            std::vector<Code> codes(work.messages);
            ASSERT_TRUE(engine->run(work.cipher, *set, messages, codes));
            const auto check = [&] {
                return check_output(work, in.data(), fetch_from(out.data()),
                                    fetch_from(tags.data()));
            };
            const auto fine = check();
            ASSERT_TRUE(fine) << fine.error().message;
            const std::uint64_t last = work.messages - 1;
            for (std::uint8_t* byte : {&out[0], &out[(last - 1) * work.size + 77], &out.back(),
                                       &tags[(last - 2) * gcm::kTagSize], &tags.back()}) {
                *byte ^= 1;
                EXPECT_EQ(check().code(), Code::internal);
                *byte ^= 1;
            }
            const auto opened = [&] {
                work.cipher.direction = Direction::decrypt;
                return check_opened(work, in.data(), fetch_from(out.data()));
            };
            out = in;
            EXPECT_TRUE(opened());
            out[(last - 1) * work.size + 77] ^= 1;  // of no sample
            EXPECT_EQ(opened().code(), Code::internal);
        }
}

TEST(Names, TellKeysDirectionsAndSectors) {
    EXPECT_EQ(cipher_name(work_of("gcm", Direction::encrypt, 128, shape(1024, 65'536, 1))),
              "gcm-128");
    EXPECT_EQ(cipher_name(work_of("gcm", Direction::decrypt, 128, shape(1024, 65'536, 65'536))),
              "gcm-128 decrypt, 65536 keys");
    EXPECT_EQ(cipher_name(work_of("gmac", Direction::encrypt, 256, shape(1 << 20, 1, 1))),
              "gmac-256");
    EXPECT_EQ(
        cipher_name(work_of("xts", Direction::encrypt, 256, {{"sector", std::uint64_t{512}}})),
        "xts-256 encrypt, 512 B sectors");
}

TEST(Workload, HasEveryWayOnceAndHonoursChoices) {
    EXPECT_EQ(ways({}).size(), 8u + 4 + 3 + 2 * 6);
    EXPECT_EQ(ways({.modes = {"cbc"}}).size(), 2u);
    EXPECT_EQ(ways({.modes = {"gmac"}}).size(), 1u);
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
        const Work work(row.point);
        SCOPED_TRACE(describe(work) + ", " + work.measure + ", " + work.placement);
        EXPECT_GE(row.samples, 3);
        EXPECT_TRUE(std::isfinite(row.seconds) && row.seconds > 0) << row.seconds;
        EXPECT_TRUE(std::isfinite(row.gbps.max)) << row.gbps.max;
        EXPECT_GT(row.gbps.min, 0);
        EXPECT_LE(row.gbps.min, row.gbps.median);
        EXPECT_LE(row.gbps.median, row.gbps.max);
        EXPECT_NEAR(row.gbps.median, static_cast<double>(work.bytes()) / row.seconds / 1e9,
                    row.gbps.median * 1e-6);
        ASSERT_FALSE(row.ceilings.empty());
        for (const Ceiling& ceiling : row.ceilings) {
            EXPECT_FALSE(ceiling.name.empty());
            EXPECT_GT(ceiling.gbps, 0);
            EXPECT_TRUE(std::isfinite(ceiling.ratio) && ceiling.ratio > 0) << ceiling.ratio;
        }
    }
}

auto rows_with(const Report& report, const std::function<bool(const Work&)>& wanted) {
    return std::ranges::count_if(report.rows,
                                 [&](const Row& row) { return wanted(Work(row.point)); });
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
        const auto mode = mode_by_name(row["mode"].get<std::string>());
        EXPECT_EQ(row.contains("keys"), row["mode"] == "gmac" || authenticates(*mode));
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
    const auto report = run(options, [](const std::string&) {});
    ASSERT_TRUE(report) << report.error().message;
    expect_sane(*report);
    expect_schema(*report);
    EXPECT_NE(to_table(*report, columns()).find("ctr-128"), std::string::npos);
    EXPECT_GE(rows_with(*report,
                        [](const Work& w) {
                            return w.where == "cache" && w.is(Mode::cbc) && w.messages == 16;
                        }),
              2);  // 128 and 256 bits
    // Two key sizes, both ways, two sector sizes, by openssl alone.
    const auto is_xts = [](const Work& w) { return w.is(Mode::xts); };
    EXPECT_EQ(rows_with(*report, is_xts), 8);
    // Two key sizes by two engines: a message and a batch on one core, a batch on all cores.
    const auto is_gcm = [](const Work& w) { return w.is(Mode::gcm); };
    const auto gcm = rows_with(*report, is_gcm);
    EXPECT_EQ(gcm, rows_with(*report, [](const Work& w) { return w.backend == "cpu"; }) ? 12 : 6);
    options.modes = {"xts"};
    const auto only = run(options, [](const std::string&) {});
    ASSERT_TRUE(only) << only.error().message;
    EXPECT_EQ(only->rows.size(), 8u);
    options.modes = {"gcm"};
    const auto only_gcm = run(options, [](const std::string&) {});
    ASSERT_TRUE(only_gcm) << only_gcm.error().message;
    EXPECT_EQ(std::ssize(only_gcm->rows), gcm);
    EXPECT_EQ(rows_with(*only_gcm, is_gcm), gcm);
}

// The code that measures a GPU, on a device made of threads.
void measure_device(const Options& options, const std::string& name, Report& report) {
    const Workload workload = make_workload(options);
    Session session{report, workload.sampling, [](const Point& p) { return describe(Work(p)); },
                    [](const std::string&) {}};
    const Suite suite{options, workload, session};
    test::HostDevice device;
    const auto engine = std::make_shared<Engine>(
        pipeline::make_engine(std::make_unique<test::HostDeviceBackend>(device)));
    const auto access = dael::device(*engine);
    ASSERT_TRUE(access) << access.error().message;
    const DeviceUnderTest subject{name, engine, *access};
    report.machine = describe_host();
    describe_device(report.machine, access->info);
    for (auto* part : {resident, through}) {
        auto benchmark = part(suite, subject);
        ASSERT_TRUE(benchmark) << benchmark.error().message;
        const auto done = session.run(*benchmark);
        ASSERT_TRUE(done) << done.error().message;
    }
    EXPECT_TRUE(report.skipped.empty()) << report.skipped.front();
    EXPECT_GT(device.kernels(), report.rows.size());
    expect_sane(report);
    expect_schema(report);
}

TEST(Suite, QuickOnADeviceGivesSaneRows) {
    Report report;
    measure_device(small(), "threads:0", report);
    std::map<std::string, int> measures, places, placements, gcm;
    for (const Row& row : report.rows) {
        const Work work(row.point);
        ++measures[work.measure];
        ++places[work.where];
        ++placements[work.placement];
        if (work.is(Mode::gcm))
            ++gcm[row.point.text("mode") + " " + row.point.text("direction") +
                  (work.messages == 1 ? ""
                   : work.keys == 1   ? ", batch"
                                      : ", batch with keys")];
    }
    for (const char* measure : {"kernel", "launch", "latency", "total", "async"})
        EXPECT_GT(measures[measure], 0) << measure;
    for (const char* where : {"device", "pinned", "pageable"}) EXPECT_GT(places[where], 0) << where;
    EXPECT_EQ(placements["in place"], placements["unaligned"]);
    EXPECT_GT(placements["in place"], 0);
    EXPECT_EQ(rows_with(report, [](const Work& w) { return w.is(Mode::xts); }), 8);
    // Under one key and a key each, both ways; GCM-SIV under one of two sizes.
    for (const Mode mode : {Mode::aegis128l, Mode::xaes256gcm, Mode::gcm_siv})
        EXPECT_EQ(rows_with(report, [mode](const Work& w) { return w.is(mode); }), 4) << name(mode);
    // Two key sizes, two shapes of batches.
    EXPECT_EQ(gcm, (std::map<std::string, int>{{"gcm encrypt", 2},
                                               {"gcm encrypt, batch", 4},
                                               {"gcm encrypt, batch with keys", 4},
                                               {"gcm decrypt", 2},
                                               {"gcm decrypt, batch", 4},
                                               {"gcm decrypt, batch with keys", 4},
                                               {"gmac encrypt", 2}}));
}

// What the suite for an H200 has besides: keys, lists in device memory, messages of mixed sizes,
// and data at all kinds of addresses.
TEST(Suite, RowsOfAnH200AreSane) {
    Options options = small();
    options.suite = "h200";
    options.modes = {"gcm", "ctr", "aegis128l", "aegis128x4"};
    options.bits = {128};
    options.scale = 4096;
    Report report;
    measure_device(options, "cuda:0", report);
    const auto rows = [&](const auto& wanted) { return rows_with(report, wanted); };
    for (const std::uint64_t keys : {1, 4096})
        EXPECT_EQ(rows([&](const Work& w) { return w.measure == "keys" && w.keys == keys; }), 1);
    // Six shapes, one of them with a key each too, and the mix; four of the other; both ways.
    EXPECT_EQ(rows([](const Work& w) { return w.is(Mode::aegis128l); }), 2 * 8);
    EXPECT_EQ(rows([](const Work& w) { return w.is(Mode::aegis128x4); }), 2 * 4);
    for (const char* list : {kListThere, kListBound})
        EXPECT_EQ(rows([&](const Work& w) { return w.list == list; }), 1) << list;
    for (const std::uint64_t keys : {1, 64})
        EXPECT_EQ(rows([&](const Work& w) {
                      return w.is(Mode::gcm) && w.mix == "imix" && w.keys == keys;
                  }),
                  1);
    for (const Shift& shift : kShifts)
        EXPECT_EQ(rows([&](const Work& w) { return w.placement == shift.name; }),
                  shift.name == std::string("both 8 off") ? 2 : 1)
            << shift.name;
    for (const std::uint64_t size : {4096, 65536})
        EXPECT_EQ(rows([&](const Work& w) {
                      return w.measure == "launch" && w.is(Mode::ctr) && w.size == size;
                  }),
                  1)
            << size;
}

TEST(Messages, OfAMixFollowEachOtherInTheirPlaces) {
    Point point = shape(0, 30, 2);
    point.set("mix", "imix");
    const Work work = work_of("gcm", Direction::encrypt, 128, point);
    std::vector<std::uint8_t> data(work.room()), tags(30 * 16);
    const auto messages = lay_out(work, data.data(), data.data(), tags.data());
    std::size_t bytes = 0;
    std::map<std::uint64_t, int> sizes;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        EXPECT_EQ(messages[i].out - data.data(), static_cast<std::ptrdiff_t>(i * Work::kSlot));
        bytes += messages[i].size;
        if (i < 24) ++sizes[messages[i].size];
    }
    EXPECT_EQ(bytes, work.bytes());
    EXPECT_EQ(sizes, (std::map<std::uint64_t, int>{{64, 14}, {570, 8}, {1500, 2}}));
    EXPECT_EQ(size_name(work), "30 x IMIX");
}

// Every contestant has its rows, and each row the figures of its kind.
TEST(Suite, PacketsGiveSaneRows) {
    Options options = small();
    options.suite = "packets";
    const auto report = run(options, [](const std::string&) {});
    ASSERT_TRUE(report) << report.error().message;
    std::map<std::string, std::set<std::string>> who;
    for (const Row& row : report->rows) {
        SCOPED_TRACE(describe_packets(row.point));
        EXPECT_GE(row.samples, 3);
        EXPECT_TRUE(std::isfinite(row.seconds) && row.seconds > 0) << row.seconds;
        EXPECT_GT(row.gbps.min, 0);
        EXPECT_TRUE(std::isfinite(row.gbps.max)) << row.gbps.max;
        const std::string& where = row.point.text("where");
        who[where].insert(row.point.text("backend"));
        std::map<std::string, double> figures(row.figures.begin(), row.figures.end());
        ASSERT_GT(figures["mpps"], 0);
        if (where == "latency") {
            EXPECT_GT(figures["p50_ns"], 0);
            EXPECT_GE(figures["p99_ns"], figures["p50_ns"]);
            EXPECT_GE(figures["p999_ns"], figures["p99_ns"]);
            continue;
        }
        EXPECT_NEAR(figures["ns"] * figures["mpps"], 1000, 1);
        if (figures.contains("hits")) {
            EXPECT_NEAR(figures["hits"] + figures["partial"] + figures["fallbacks"], 1, 1e-6);
        }
    }
    for (const char* where : {"packets", "budgets", "cores", "arrivals"}) {
        EXPECT_TRUE(who[where].contains("daelstrom, direct")) << where;
        EXPECT_TRUE(who[where].contains("daelstrom, keystream by cpu") ||
                    who[where].contains("daelstrom, keystream by openssl"))
            << where;
    }
    for (const char* name : {"memcpy", "OpenSSL EVP", "daelstrom, batches"})
        EXPECT_TRUE(who["packets"].contains(name)) << name;
    EXPECT_GE(who["parts"].size(), 2u);
    // The rows go into JSON with their figures, and into a table.
    const auto json = nlohmann::json::parse(to_json(*report));
    EXPECT_TRUE(json["rows"].at(0).at("ns").is_number());
    EXPECT_NE(to_table(*report, columns("packets")).find("Latency of packets"), std::string::npos);
}

TEST(Devices, WhoDidHowMuchIsToldInTheOrderOfTheSet) {
    Ran ran;
    ran.backend = "cuda:1+cpu";
    ran.percent = {60, 40};
    EXPECT_EQ(percents("cuda:0+cuda:1+cpu", ran), (std::vector<double>{0, 60, 40}));
    ran = {};
    ran.backend = "cpu";  // by itself
    EXPECT_EQ(percents("cuda:0+cpu", ran), (std::vector<double>{0, 100}));
}

TEST(Devices, RatesAreAdded) {
    const auto takes = [](double seconds) {
        return [seconds]() -> Result<double> { return seconds; };
    };
    EXPECT_DOUBLE_EQ(*added({takes(1), takes(0.5)})(), 1.0 / 3);
    const auto fails = [] { return Result<double>(Error{Code::device, "it broke"}); };
    EXPECT_EQ(added({takes(1), fails})().code(), Code::device);
}

// Two devices made of threads, and OpenSSL on the host.
TEST(Suite, DevicesTogetherGiveSaneRows) {
    Options options = small();
    options.suite = "devices";
    Report report;
    const Workload workload = make_workload(options);
    Session session{report, workload.sampling, [](const Point& p) { return describe(Work(p)); },
                    [](const std::string&) {}};
    const Suite suite{options, workload, session};
    test::HostDevice first({.name = "threads:0"}), second({.name = "threads:1"});
    Devices all;
    for (auto* device : {&first, &second}) {
        const auto engine = std::make_shared<Engine>(
            pipeline::make_engine(std::make_unique<test::HostDeviceBackend>(*device)));
        const auto access = dael::device(*engine);
        ASSERT_TRUE(access) << access.error().message;
        all.devices.push_back({device->name(), engine, *access});
        all.alone.push_back({device->name(), "", engine});
    }
    all.alone.push_back(
        {"openssl", "", std::make_shared<Engine>(*Engine::open({.backend = "openssl"}))});
    for (const std::string set : {"threads:0+threads:1", "threads:0+openssl"}) {
        pipeline::Backends members;
        for (const std::string& name : members_of(set)) {
            if (name == "openssl")
                members.push_back(*core::open_backend(name));
            else
                members.push_back(std::make_unique<test::HostDeviceBackend>(
                    name == first.name() ? first : second));
        }
        all.sets.push_back(
            {set, "", std::make_shared<Engine>(pipeline::make_set_engine(std::move(members)))});
    }
    for (auto* part : {together, side_by_side}) {
        auto benchmark = part(suite, all);
        ASSERT_TRUE(benchmark) << benchmark.error().message;
        const auto done = session.run(*benchmark);
        ASSERT_TRUE(done) << done.error().message;
    }
    report.machine = describe_host();
    EXPECT_TRUE(report.skipped.empty()) << report.skipped.front();
    expect_sane(report);
    expect_schema(report);
    std::map<std::string, int> who;
    for (const Row& row : report.rows) {
        const Work work(row.point);
        SCOPED_TRACE(describe(work));
        ++who[work.where + " " + work.backend];
        double percent = 0;
        for (const auto& [name, share] : row.figures) percent += share;
        const bool set = work.where == "pinned" && members_of(work.backend).size() > 1;
        EXPECT_NEAR(percent, set ? 100 : 0, 1);
        EXPECT_EQ(row.figures.size(), set ? 2u : 0u);
        if (members_of(work.backend).size() == 1) continue;
        std::set<std::string> against;
        for (const Ceiling& ceiling : row.ceilings) against.insert(ceiling.name);
        for (const std::string& member : members_of(work.backend))
            EXPECT_TRUE(against.contains(member)) << member;
        EXPECT_TRUE(against.contains("each alone, added"));
    }
    // Two ciphers, of two sizes in host memory.
    EXPECT_EQ(who, (std::map<std::string, int>{{"pinned threads:0", 4},
                                               {"pinned threads:1", 4},
                                               {"pinned openssl", 4},
                                               {"pinned threads:0+threads:1", 4},
                                               {"pinned threads:0+openssl", 4},
                                               {"device threads:0", 2},
                                               {"device threads:1", 2},
                                               {"device threads:0+threads:1", 2}}));
    EXPECT_NE(to_table(report, columns("devices")).find("%"), std::string::npos);
}

TEST(Suite, AbsentBackendsAreLeftOutWithALine) {
    Options options = small();
    options.backends = {"cuda:9999"};
    const auto report = run(options, [](const std::string&) {});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->rows.empty());
    ASSERT_EQ(report->skipped.size(), 1u);
    EXPECT_EQ(report->skipped[0].rfind("cuda:9999: ", 0), 0u) << report->skipped[0];
    EXPECT_NE(to_table(*report, columns()).find("Left out"), std::string::npos);
}

}  // namespace
