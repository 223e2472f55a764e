// SPDX-License-Identifier: Apache-2.0
// Every kind of processor and every way to program it, on the same data in one run: CUDA, OpenCL,
// OpenGL in its two forms, the CPU; in device memory and from host memory; and whether the speed
// depends on the data, as it did on a GeForce 6800: a byte ramp, a constant, and random bytes.
#include <array>
#include <cstring>

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "lab/study.hpp"
#include "measure/device.hpp"
#include "measure/machine.hpp"

namespace dael::lab {
namespace {

using bench::DeviceUnderTest;
using bench::HostCall;
using bench::HostEngine;
using bench::kPoison;
using bench::Work;

using measure::DeviceBuffer;
using measure::DeviceClock;
using measure::Heat;
using measure::HostBuffer;
using measure::MemoryKind;

// The thesis' data; the first is random.
constexpr std::array<const char*, 3> kData{"", "ramp", "constant"};
constexpr std::uint8_t kConstant = 0xaa;

struct Generations {
    measure::Sampling sampling;
    std::array<HostBuffer, kData.size()> input;
    HostBuffer out;

    Result<> allocate(std::size_t in_size, std::size_t out_size) {
        for (HostBuffer& buffer : input) {
            DAEL_LET(memory, HostBuffer::allocate(in_size));
            buffer = std::move(memory);
        }
        DAEL_LET(memory, HostBuffer::allocate(out_size));
        out = std::move(memory);
        measure::Team team(measure::thread_count(0));
        measure::fill_random(team, input[0].data(), in_size, 5);
        for (std::size_t i = 0; i < in_size; ++i) input[1].data()[i] = static_cast<std::uint8_t>(i);
        std::memset(input[2].data(), kConstant, in_size);
        return {};
    }

    // One contestant for each kind of data, in turns: the others against random data, and random
    // data against them, unless it has a row already, in device memory.
    Heat depend(Work work, const std::function<measure::Sampler(std::size_t data)>& sampler,
                const std::function<Result<>(std::size_t data)>& check) const {
        Heat heat;
        for (std::size_t data = 0; data < kData.size(); ++data) {
            work.data = kData[data];
            if (data == 0 && work.where == "device") {
                heat.enter("random data", sampler(data));
                continue;
            }
            const std::vector<std::size_t> others =
                data == 0 ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{0};
            heat.enter((data == 0 ? "random" : work.data) + " data", sampler(data),
                       [check, data] { return check(data); }, work.point(),
                       static_cast<double>(work.bytes()), others);
        }
        return heat;
    }

    // From one host buffer to another.
    Result<Heat> from_host_memory(Work work) {
        DAEL_LET(
            opened,
            Engine::open({.backend = work.backend, .form = work.form, .threads = work.threads}));
        const HostEngine engine{work.backend, work.form,
                                std::make_shared<Engine>(std::move(opened))};
        std::vector<HostCall> calls;
        for (const HostBuffer& in : input) {
            DAEL_LET(call,
                     bench::host_call(engine, work, bench::lay_out(work, in.data(), out.data())));
            calls.push_back(call);
        }
        DAEL_TRY(calls.front().call());
        work.threads = calls.front().ran->threads;
        return depend(
            work, [&](std::size_t data) { return measure::wall_clock(calls[data].call, sampling); },
            [=, this](std::size_t data) -> Result<> {
                std::memset(out.data(), kPoison, work.bytes());
                DAEL_TRY(calls[data].call());
                return bench::check_output(work, input[data].data(),
                                           measure::fetch_from(out.data()));
            });
    }
};

// A device with room for one message in and out.
struct Generation {
    DeviceUnderTest subject;
    std::string form;
    DeviceClock clock;
    DeviceBuffer in, out;

    std::string label() const { return subject.name + (form.empty() ? "" : " " + form); }

    Result<measure::Launch> launch(const Work& work) const {
        DAEL_LET(keys, bench::make_keys(work));
        return measure::Launch(
            [engine = subject.engine, cipher = work.cipher,
             message = bench::lay_out(work, in.data(), out.data()).front(),
             key = std::make_shared<Key>(std::move(keys.front()))](Stream s) -> Result<> {
                DAEL_TRY(engine->run(cipher, *key, message, s));
                return {};
            });
    }

    Result<> check(const Work& work, const measure::Launch& launch, const HostBuffer& host) const {
        DAEL_TRY(clock.copy_in(in.data(), host.data(), work.bytes()));
        DAEL_TRY(clock.fill(out.data(), kPoison, work.bytes()));
        DAEL_TRY(clock.run(launch));
        return bench::check_output(work, host.data(), clock.fetch_from(out.data()));
    }
};

Result<Generation> open_generation(const std::string& backend, const std::string& form,
                                   std::size_t size) {
    DAEL_LET(subject, DeviceUnderTest::open(backend, form));
    DAEL_LET(clock, DeviceClock::create(subject.device));
    DAEL_LET(in, DeviceBuffer::allocate(subject.device, MemoryKind::device, size));
    DAEL_LET(out, DeviceBuffer::allocate(subject.device, MemoryKind::device, size));
    return Generation{subject, form, clock, in, out};
}

using AllGenerations = std::vector<Generation>;

// Against a copy on the first device, and each of the devices before it.
Result<Heat> race(const Generations& data, const AllGenerations& all, Work work) {
    Heat heat;
    const Generation& first = all.front();
    std::vector<std::size_t> against{heat.enter(
        "copy within device memory", first.clock.by_events(first.clock.copy_within(
                                         first.out.data(), first.in.data(), work.bytes())))};
    for (const Generation& one : all) {
        work.backend = one.subject.name;
        work.form = one.form;
        DAEL_LET(launch, one.launch(work));
        against.push_back(heat.enter(
            one.label(), one.clock.by_events(launch),
            [&data, &one, work, launch] { return one.check(work, launch, data.input[0]); },
            work.point(), static_cast<double>(work.bytes()), against));
    }
    return heat;
}

// The same launch on each kind of data, brought there before each sample.
Result<Heat> depend(const Generations& data, const Generation& one, Work work) {
    work.backend = one.subject.name;
    work.form = one.form;
    DAEL_LET(launch, one.launch(work));
    return data.depend(
        work,
        [&](std::size_t kind) {
            return one.clock.by_events(launch, [&data, &one, kind, size = work.bytes()](Stream s) {
                return one.subject.device.memory.copy_in(one.in.data(), data.input[kind].data(),
                                                         size, s);
            });
        },
        [&data, &one, work, launch](std::size_t kind) {
            return one.check(work, launch, data.input[kind]);
        });
}

// A device in quick runs may be a processor that plays one. From host memory the slowest takes a
// second.
std::uint64_t largest(const Settings& settings, std::uint64_t size) {
    constexpr std::uint64_t kLeast = 64 * KiB;
    return settings.quick ? kLeast
                          : std::max(kLeast, size / settings.scale / kBlockSize * kBlockSize);
}

Result<std::vector<Benchmark>> generations(const Bench& lab) {
    // What has to fit into host memory at once: the three inputs with room to spare; and from host
    // memory the three, an output, and the pipelines' staging memory.
    measure::Report& report = lab.report;
    const std::uint64_t on_device =
        measure::fitting(report, largest(lab.settings, std::uint64_t{1} << 30), 4);
    const std::uint64_t on_host =
        std::min(on_device, measure::fitting(report, largest(lab.settings, 256 * MiB), 5));
    const auto state = std::make_shared<Generations>();
    state->sampling = lab.session.sampling;
    DAEL_TRY(state->allocate(on_device, on_host));
    // CUDA in its own layout of tables and in the one that OpenCL has room for, and OpenCL.
    const auto all = std::make_shared<AllGenerations>();
    for (const auto& [name, form] :
         {std::pair{"cuda", ""}, std::pair{"cuda", "tables=1"}, std::pair{"opencl", ""}}) {
        auto opened = open_generation(name, form, on_device);
        if (!opened) {
            report.skip(std::string(name) + ": " + opened.error().message);
            continue;
        }
        if (all->empty()) measure::describe_device(report.machine, opened->subject.device.info);
        all->push_back(std::move(*opened));
    }

    const Point device{{"where", "device"}, {"measure", "kernel"}, {"threads", std::uint64_t{1}}};
    const Point ecb{{"mode", "ecb"}, {"direction", "encrypt"}, {"bits", std::uint64_t{128}}};
    std::vector<Benchmark> benchmarks;
    if (!all->empty())
        benchmarks.push_back({"device memory",
                              {measure::Axis{device}, measure::Axis{bench::shape(on_device)},
                               measure::axis("bits", std::vector{128, 256}), bench::ways({})},
                              [](const Point& point) {
                                  const Work work(point);
                                  return work.parallel() && !work.is(Mode::xts) && !work.tagged();
                              },
                              [=](const Point& point) { return race(*state, *all, Work(point)); }});
    measure::Axis which;
    for (std::uint64_t i = 0; i < all->size(); ++i) which.push_back({{"number", i}});
    benchmarks.push_back({"kinds of data, device memory",
                          {measure::Axis{device}, measure::Axis{bench::shape(on_device)},
                           measure::Axis{ecb}, std::move(which)},
                          {},
                          [=](const Point& point) {
                              return depend(*state, (*all)[point.number("number")], Work(point));
                          }});
    const auto host = [](const char* backend, const char* form, std::uint64_t threads) {
        return Point{{"backend", backend}, {"isa", form}, {"threads", threads}};
    };
    benchmarks.push_back(
        {"kinds of data",
         {measure::Axis{Point{{"where", "host"}, {"measure", "call"}}},
          measure::Axis{bench::shape(on_host)}, measure::Axis{ecb},
          measure::Axis{host("cpu", "", 0), host("cpu", "", 1), host("cuda", "", 0),
                        host("opencl", "", 0), host("opengl", "gl-int", 0),
                        host("opengl", "gl-float", 0)}},
         {},
         [=](const Point& point) { return state->from_host_memory(Work(point)); }});
    return benchmarks;
}

Result<> run_generations(const Bench& lab) {
    DAEL_LET(benchmarks, generations(lab));
    for (const Benchmark& benchmark : benchmarks) DAEL_TRY(lab.session.run(benchmark));
    return {};
}

}  // namespace

const Study kGenerations{"generations",
                         "Tartu 2007",
                         "How fast is each way to program a processor, and does the data tell?",
                         run_generations,
                         [](const Point& point) { return bench::describe(Work(point)); },
                         []() -> const measure::Columns& { return bench::columns("full"); }};

}  // namespace dael::lab
