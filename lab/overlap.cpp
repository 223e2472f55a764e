// SPDX-License-Identifier: Apache-2.0
// How much of the way over the bus can be hidden behind other work: data cut in chunks, whose
// copies and kernels take turns on several streams (Kazan 2017 hid 65% with four chunks).
#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "io/text.hpp"
#include "lab/figures.hpp"
#include "lab/kernel_device.hpp"
#include "lab/study.hpp"
#include "measure/device.hpp"
#include "measure/machine.hpp"

namespace dael::lab {
namespace {

using measure::DeviceBuffer;
using measure::DeviceClock;
using measure::DeviceStream;
using measure::Heat;
using measure::HostBuffer;
using measure::MemoryKind;

// The share of all the time that copies must have before what is hidden of them is told from noise.
constexpr double kEnough = 0.2;

// What is done with each chunk.
struct Ways {
    bool in = false, kernel = false, out = false;
};
Ways ways_of(const Point& point) {
    const std::string& ways = point.text("ways");
    return {ways != "out", true, ways != "in"};
}

struct Pipeline {
    bench::DeviceUnderTest subject;
    measure::Sampling sampling;
    bench::Work work;
    DeviceClock clock;
    std::vector<DeviceStream> streams;
    DeviceBuffer device_in, device_out, pinned_in, pinned_out;
    HostBuffer pageable_in, pageable_out;
    Key key;

    const std::uint8_t* from(bool pinned) const {
        return pinned ? pinned_in.data() : pageable_in.data();
    }
    std::uint8_t* to(bool pinned) const { return pinned ? pinned_out.data() : pageable_out.data(); }

    // Chunk by chunk, each on the next of `count` streams; on one of them all follow each other.
    Result<> cross(const Ways& ways, bool pinned, std::uint64_t chunk, std::size_t count) const {
        Memory& memory = subject.device.memory;
        for (std::uint64_t at = 0, turn = 0; at < work.size; at += chunk, ++turn) {
            const std::uint64_t size = std::min(chunk, work.size - at);
            const Stream stream = streams[turn % count].get();
            if (ways.in)
                DAEL_TRY(memory.copy_in(device_in.data() + at, from(pinned) + at, size, stream));
            if (ways.kernel) {
                Message message;
                message.in = device_in.data() + at;
                message.out = device_out.data() + at;
                message.size = size;
                DAEL_TRY(subject.engine->run(work.cipher, key, message, stream));
            }
            if (ways.out)
                DAEL_TRY(memory.copy_out(to(pinned) + at, device_out.data() + at, size, stream));
        }
        for (std::size_t i = 0; i < count; ++i)
            DAEL_TRY(subject.device.order.wait(streams[i].get()));
        return {};
    }

    // Does it once over poison, and looks at what came of it, where it had to go.
    Result<> check(const std::function<Result<>()>& once, const Ways& ways, bool pinned) const {
        if (ways.in) {
            DAEL_TRY(clock.fill(device_in.data(), bench::kPoison, work.size));
        } else {
            DAEL_TRY(clock.copy_in(device_in.data(), from(true), work.size));
        }
        DAEL_TRY(clock.fill(device_out.data(), bench::kPoison, work.size));
        for (const bench::Window& window : bench::sample_windows(work))
            std::memset(to(pinned) + window.begin, bench::kPoison, window.size);
        DAEL_TRY(once());
        return bench::check_output(
            work, from(pinned),
            ways.out ? measure::fetch_from(to(pinned)) : clock.fetch_from(device_out.data()));
    }

    Point point(const char* part, const Point& of) const {
        return {{"study_part", part},      {"where", of.text("where")},
                {"backend", subject.name}, {"mode", "ecb"},
                {"direction", "encrypt"},  {"bits", std::uint64_t{128}},
                {"size", work.size},       {"measure", "async"},
                {"ways", of.text("ways")}, {"chunk", of.number("chunk")}};
    }

    measure::Sampler wall(std::function<Result<>()> call) const {
        return measure::wall_clock(std::move(call), sampling);
    }
};

Result<std::shared_ptr<Pipeline>> open_pipeline(const Bench& lab, const char* device,
                                                std::uint64_t size, std::size_t streams) {
    DAEL_LET(subject, bench::DeviceUnderTest::open(device));
    bench::Work work(
        Point{{"mode", "ecb"}, {"direction", "encrypt"}, {"bits", std::uint64_t{128}}});
    work.backend = subject.name;
    work.size = measure::fitting(lab.report, size, 6);
    DAEL_LET(clock, DeviceClock::create(subject.device));
    DAEL_LET(keys, bench::make_keys(work));
    measure::Sampling sampling = lab.session.sampling;
    sampling.budget_seconds = std::min(sampling.budget_seconds, 1.5);
    const auto pipeline = std::make_shared<Pipeline>(Pipeline{
        subject, sampling, work, clock, {}, {}, {}, {}, {}, {}, {}, std::move(keys.front())});
    for (std::size_t i = 0; i < streams; ++i) {
        DAEL_LET(stream, DeviceStream::create(subject.device));
        pipeline->streams.push_back(stream);
    }
    for (const auto& [buffer, kind] : {std::pair{&pipeline->device_in, MemoryKind::device},
                                       {&pipeline->device_out, MemoryKind::device},
                                       {&pipeline->pinned_in, MemoryKind::pinned},
                                       {&pipeline->pinned_out, MemoryKind::pinned}}) {
        DAEL_LET(memory, DeviceBuffer::allocate(subject.device, kind, work.size));
        *buffer = memory;
    }
    for (HostBuffer* buffer : {&pipeline->pageable_in, &pipeline->pageable_out}) {
        DAEL_LET(memory, HostBuffer::allocate(work.size));
        *buffer = std::move(memory);
    }
    measure::Team team(measure::thread_count(0));
    measure::fill_random(team, pipeline->pinned_in.data(), work.size, 8);
    std::memcpy(pipeline->pageable_in.data(), pipeline->pinned_in.data(), work.size);
    return pipeline;
}

// One heat for each chunk: the copies alone, and all of it on one stream and on several.
Result<Heat> by_streams(const std::shared_ptr<Pipeline>& all, const Point& point) {
    const Ways ways = ways_of(point);
    const bool pinned = point.text("where") == "pinned";
    const std::uint64_t chunk = point.number("chunk");
    Heat heat;
    const auto copies = heat.enter("the copies alone, in sequence", all->wall([=] {
        return all->cross({ways.in, false, ways.out}, pinned, chunk, 1);
    }));
    for (std::size_t count = 1; count <= all->streams.size(); count *= 2) {
        const auto once = [=] { return all->cross(ways, pinned, chunk, count); };
        Point shown = all->point("streams", point);
        shown.set("streams", std::uint64_t{count});
        heat.enter(std::to_string(count) + " streams", all->wall(once),
                   [=] { return all->check(once, ways, pinned); }, std::move(shown),
                   static_cast<double>(all->work.size), {copies});
    }
    return heat;
}

// What the library does with the same data by itself.
Result<Heat> by_library(const std::shared_ptr<Pipeline>& all, const Point& point) {
    const bool pinned = point.text("where") == "pinned";
    const auto once = [=]() -> Result<> {
        Message message;
        message.in = all->from(pinned);
        message.out = all->to(pinned);
        message.size = all->work.size;
        DAEL_TRY(all->subject.engine->run(all->work.cipher, all->key, message));
        return {};
    };
    Heat heat;
    const auto copies = heat.enter("the copies alone, in sequence", all->wall([=] {
        return all->cross({true, false, true}, pinned, all->work.size, 1);
    }));
    heat.enter("the library", all->wall(once),
               [=] { return all->check(once, ways_of(point), pinned); },
               all->point("the library", point), static_cast<double>(all->work.size), {copies});
    return heat;
}

Result<> run_device(const Bench& lab, const char* device) {
    const bool quick = lab.settings.quick;
    bool is_cpu = false;
    if (std::string_view(device).starts_with("opencl"))
        if (const auto kernels = open_opencl_kernels()) is_cpu = (*kernels)->is_cpu();
    std::vector<std::uint64_t> chunks{64 * KiB, 256 * KiB};
    if (is_cpu && quick) chunks = {64 * KiB};
    if (!quick && !is_cpu) chunks = {64 * KiB, 256 * KiB, MiB, 4 * MiB, 16 * MiB, 64 * MiB};
    const std::uint64_t size = is_cpu ? (quick ? 256 * KiB : MiB) : (quick ? 16 * MiB : 256 * MiB);
    auto opened = open_pipeline(lab, device, size, quick ? 2 : 8);
    if (!opened) {
        if (opened.code() != Code::backend_absent && opened.code() != Code::out_of_memory)
            return std::move(opened).error();
        lab.report.skip(std::string(device) + ": " + opened.error().message);
        return {};
    }
    measure::describe_device(lab.report.machine, (*opened)->subject.device.info);
    measure::Session session{lab.report, (*opened)->sampling, lab.session.describe,
                             lab.session.progress};
    const measure::Axis memory = measure::axis("where", std::array{"pinned", "pageable"});
    DAEL_TRY(session.run({device,
                          {memory, measure::axis("ways", std::array{"in", "out", "both"}),
                           measure::axis("chunk", chunks)},
                          {},
                          [all = *opened](const Point& point) { return by_streams(all, point); }}));
    return session.run({std::string(device) + ", the library's pipeline",
                        {memory, {Point{{"ways", "both"}}}},
                        {},
                        [all = *opened](const Point& point) { return by_library(all, point); }});
}

}  // namespace

void mark_hidden(std::vector<measure::Row>& rows) {
    const auto way_of = [](Point point) {
        return describe_fields(point.set("streams", {})) + point.text("where");
    };
    std::map<std::string, double> in_sequence;
    for (const auto& row : rows)
        if (row.point.number("streams") == 1) in_sequence[way_of(row.point)] = row.seconds;
    for (auto& row : rows) {
        const auto sequence = in_sequence.find(way_of(row.point));
        if (row.point.number("streams") < 2 || sequence == in_sequence.end() ||
            row.ceilings.empty())
            continue;
        const double copies =
            static_cast<double>(row.point.number("size")) / (row.ceilings.front().gbps * 1e9);
        if (copies < kEnough * sequence->second) continue;
        row.figures.emplace_back("hidden", (sequence->second - row.seconds) / copies);
    }
}

namespace {

Result<> run_overlap(const Bench& lab) {
    for (const char* device : {"cuda:0", "opencl:0"}) DAEL_TRY(run_device(lab, device));
    mark_hidden(lab.report.rows);
    return {};
}

const measure::Columns& overlap_columns() {
    static const auto size = [](const Point& p) {
        return p.number("chunk") ? app::format_size(static_cast<double>(p.number("chunk")))
                                 : std::string("its own");
    };
    static const measure::Columns all{
        {{"backend", false, [](const Point& p) { return p.text("backend"); }},
         {"ways", false, [](const Point& p) { return p.text("ways"); }},
         {"chunk", true, size},
         {"streams", true,
          [](const Point& p) {
              return p.number("streams") ? std::to_string(p.number("streams"))
                                         : std::string("the library");
          }}},
        {"pinned", "pageable"},
        [](const measure::Machine& machine, const std::string& where) {
            return "AES-128-ECB through " + machine.gpu + ", " + where + " memory";
        },
        [](const measure::Figures& figures) {
            return figures.empty()
                       ? std::string()
                       : std::to_string(static_cast<int>(100 * figures.front().second)) +
                             "% of the copies hidden";
        }};
    return all;
}

}  // namespace

const Study kOverlap{
    "overlap",   "Kazan 2017",    "How much of the copies can chunks on several streams hide?",
    run_overlap, describe_fields, overlap_columns};

}  // namespace dael::lab
