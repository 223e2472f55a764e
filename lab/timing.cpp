// SPDX-License-Identifier: Apache-2.0
// Does the time tell what is encrypted? Welch's t over fixed and random inputs, for each backend
// and each kernel; and for what must be found, or the rest would prove nothing: a comparison that
// ends early, and the kernels of placement whose lanes share a table.
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "lab/field.hpp"
#include "measure/machine.hpp"
#include "measure/timed.hpp"

namespace dael::lab {
namespace {

using measure::DeviceBuffer;
using measure::Input;
using measure::MemoryKind;
using measure::Samples;

constexpr std::size_t kHostSize = 256;  // bytes of a message: short, so that little hides a leak
constexpr int kBuffers = 8;             // of each kind, so that caches serve both alike

// One test: its row, once all its collections are through.
struct Trial {
    double t = 0;
    std::size_t samples = 0;      // of each collection
    std::vector<double> seconds;  // of one call, the median of each collection
    // Of each: by which share random inputs take longer than fixed ones, by medians.
    std::vector<double> differences;
    bool must_leak = false;
};

// Keeps the smallest |t| over a few collections: a leak is in the code and shows every time.
// `unit`: seconds of one tick.
Result<Trial> try_it(int attempts, double unit, const std::function<Samples()>& collect,
                     const Result<>& fault) {
    Trial trial;
    trial.t = measure::smallest_of(attempts, [&] {
        Samples samples = collect();
        std::vector<double> all = samples.fixed;
        all.insert(all.end(), samples.random.begin(), samples.random.end());
        trial.samples = all.size();
        const double fixed = measure::spread(samples.fixed).median;
        trial.differences.push_back(fixed > 0 ? measure::spread(samples.random).median / fixed - 1
                                              : 0);
        trial.seconds.push_back(measure::spread(std::move(all)).median * unit);
        return samples;
    });
    if (!fault) return fault.error();
    return trial;
}

void enter(measure::Report& report, Point point, double bytes, const Trial& trial) {
    measure::Row row{std::move(point),
                     measure::gigabytes_per_second(trial.seconds, bytes),
                     measure::spread(trial.seconds).median,
                     static_cast<int>(trial.seconds.size()),
                     {},
                     {},
                     trial.seconds};
    row.figures = {{"t", trial.t},
                   {"threshold", measure::kThreshold},
                   {"inputs", static_cast<double>(trial.samples)},
                   {"leaks", trial.t >= measure::kThreshold ? 1 : 0},
                   {"must_leak", trial.must_leak ? 1 : 0},
                   {"difference", measure::spread(trial.differences).median}};
    report.rows.push_back(std::move(row));
}

Point point_of(const char* part, const bench::Work& work, const std::string& kernel,
               const char* varied) {
    Point point = work.point();
    point.set("study_part", std::string(part));
    point.set("where", std::string(part));
    point.set("kernel", kernel);
    point.set("varied", std::string(varied));
    return point;
}

// Seconds of one tick of the clock that host code is timed by.
double seconds_of_a_tick() {
    const auto start = std::chrono::steady_clock::now();
    const double before = measure::ticks();
    std::chrono::duration<double> passed{};
    while (passed.count() < 0.02) passed = std::chrono::steady_clock::now() - start;
    return passed.count() / (measure::ticks() - before);
}

struct Host {
    const Bench& lab;
    std::size_t count;
    int attempts;
    double tick = seconds_of_a_tick();

    // `once` on inputs of all three fixed kinds, and the worst of them.
    template <class Once>
    Result<Trial> worst(Once once) const {
        Trial worst;
        Result<> fault;
        for (const Input& fixed : measure::fixed_inputs()) {
            DAEL_LET(trial, try_it(
                                attempts, tick,
                                [&] {
                                    return measure::time(
                                        fixed, measure::random_input,
                                        [&](const Input& input) {
                                            if (auto done = once(input); !done) fault = done;
                                        },
                                        count);
                                },
                                fault));
            if (worst.seconds.empty() || trial.t > worst.t) worst = trial;
            if (lab.settings.quick) break;
        }
        return worst;
    }

    // Messages whose bytes, or whose key, are the input.
    Result<> backend(const bench::HostEngine& engine, Mode mode, const char* varied) const {
        bench::Work work(Point{{"mode", std::string(name(mode))},
                               {"direction", "encrypt"},
                               {"bits", std::uint64_t{128}},
                               {"keys", std::uint64_t{mode == Mode::gcm}}});
        work.backend = engine.backend;
        work.form = engine.form;
        work.size = kHostSize;
        const std::string what = engine.label() + ", " + work.point().text("mode") + ", " + varied;
        lab.session.progress(what);
        alignas(64) std::array<std::uint8_t, kHostSize> in{}, out{};
        std::array<std::uint8_t, gcm::kTagSize> tag{};
        Message message = bench::lay_out(work, in.data(), out.data(), tag.data()).front();
        DAEL_LET(keys, bench::make_keys(work));
        measure::Team team(1);
        measure::fill_random(team, in.data(), in.size(), 12);
        const auto first = engine.engine->run(work.cipher, keys.front(), message);
        if (first.code() == Code::unsupported) {
            lab.report.skip(what + ": " + first.error().message);
            return {};
        }
        if (!first) return first.error();
        DAEL_TRY(bench::check_output(
            work, in.data(), measure::fetch_from(out.data()),
            mode == Mode::gcm ? measure::fetch_from(tag.data()) : measure::Fetch{}));
        const bool of_key = varied == std::string_view("key");
        DAEL_LET(trial, worst([&](const Input& input) -> Result<> {
                     if (of_key) {
                         DAEL_LET(key, Key::import(std::span(input).first(16)));
                         DAEL_TRY(engine.engine->run(work.cipher, key, message));
                         return {};
                     }
                     for (std::size_t at = 0; at < in.size(); at += input.size())
                         std::memcpy(in.data() + at, input.data(), input.size());
                     DAEL_TRY(engine.engine->run(work.cipher, keys.front(), message));
                     return {};
                 }));
        enter(lab.report, point_of("host", work, "", varied), kHostSize, trial);
        return {};
    }

    Result<> control() const {
        const Input secret = measure::random_input();
        Result<> none;
        DAEL_LET(trial, try_it(
                            attempts, tick,
                            [&] {
                                return measure::time(
                                    secret, measure::random_input,
                                    [&](const Input& input) {
                                        measure::keep(measure::leaky_equal(secret, input));
                                    },
                                    count);
                            },
                            none));
        trial.must_leak = true;
        enter(lab.report,
              {{"study_part", "control"},
               {"where", "control"},
               {"kernel", "comparison that ends early"},
               {"size", std::uint64_t{sizeof(Input)}},
               {"measure", "call"},
               {"varied", "data"}},
              sizeof(Input), trial);
        return {};
    }
};

Result<> run_host(const Bench& lab) {
    const bool quick = lab.settings.quick;
    const Host host{lab, quick ? 2000 : measure::kSamples, quick ? 2 : measure::kAttempts};
    DAEL_TRY(host.control());
    const bench::Options options;
    const bench::Workload workload = bench::make_workload(options);
    const bench::Suite suite{options, workload, lab.session};
    std::vector<bench::HostEngine> engines = bench::open_host_engines(suite, 1, !quick);
    DAEL_LET(reference, Engine::open({.backend = "reference", .threads = 1}));
    engines.push_back({"reference", "", std::make_shared<Engine>(std::move(reference))});
    for (const auto& engine : engines)
        for (const Mode mode : {Mode::ecb, Mode::ctr, Mode::gcm})
            for (const char* varied : {"data", "key"})
                if (!quick || mode == Mode::ctr) DAEL_TRY(host.backend(engine, mode, varied));
    return {};
}

std::vector<std::uint8_t> bytes_of(bool is_fixed, int buffer, std::size_t size) {
    std::vector<std::uint8_t> bytes(size, 0x5a);
    if (!is_fixed) {
        measure::Team team(1);
        measure::fill_random(team, bytes.data(), size, 20 + static_cast<unsigned>(buffer));
    }
    return bytes;
}

// Launches on one buffer of a device, before each of which one of eight inputs of either kind is
// laid there: so kinds do not differ in where they lie.
struct TimedDevice {
    measure::DeviceClock clock;
    std::size_t size;  // of an input
    std::size_t count;
    int attempts;
    std::array<std::vector<DeviceBuffer>, 2> inputs;  // random; fixed
    // Copied behind the input, so that the device is still at it when the launch and the events
    // around it are on their way, and the host's share is not in its time. Absent: no copy.
    std::optional<std::pair<DeviceBuffer, DeviceBuffer>> ahead;

    static Result<TimedDevice> make(const DeviceAccess& device, const measure::DeviceClock& clock,
                                    bool is_cpu, std::size_t size, std::size_t count,
                                    int attempts) {
        constexpr std::size_t kAhead = 64 << 20;
        const auto allocate = [&device](std::size_t bytes) {
            return DeviceBuffer::allocate(device, MemoryKind::device, bytes);
        };
        TimedDevice timed{clock, size, count, attempts, {}, {}};
        for (const bool is_fixed : {false, true})
            for (int i = 0; i < kBuffers; ++i) {
                DAEL_LET(buffer, allocate(size));
                const auto bytes = bytes_of(is_fixed, i, size);
                DAEL_TRY(clock.copy_in(buffer.data(), bytes.data(), size));
                timed.inputs[is_fixed].push_back(buffer);
            }
        if (is_cpu) return timed;
        DAEL_LET(from, allocate(kAhead));
        DAEL_LET(to, allocate(kAhead));
        timed.ahead = {from, to};
        return timed;
    }

    // `launch` works on what lies at `input`.
    Result<Trial> trial(const measure::Launch& launch, std::uint8_t* input) const {
        std::array<std::vector<measure::Sampler>, 2> samplers;
        for (const std::size_t kind : {0, 1})
            for (const DeviceBuffer& from : inputs[kind])
                samplers[kind].push_back(clock.by_events(
                    launch,
                    [lay = clock.copy_within(input, from.data(), size),
                     wait = ahead ? clock.copy_within(ahead->second.data(), ahead->first.data(),
                                                      ahead->first.size())
                                  : measure::Launch{}](Stream stream) -> Result<> {
                        DAEL_TRY(lay(stream));
                        return wait ? wait(stream) : Result<>{};
                    }));
        std::mt19937 random(11);
        Result<> fault;
        return try_it(
            attempts, 1,
            [&] {
                return measure::collect(count, [&](bool is_fixed) {
                    const auto& own = samplers[is_fixed];
                    const auto seconds = own[random() % own.size()]();
                    if (seconds) return *seconds;
                    fault = seconds.error();
                    return 0.0;
                });
            },
            fault);
    }
};

// The lab's own kernels: those that share tables between lanes must be found on a GPU.
Result<> run_own_kernels(const Bench& lab, const std::shared_ptr<KernelDevice>& device,
                         std::size_t size, std::size_t count, int attempts) {
    struct Kernel {
        const char* name;
        Shape shape;
        bool shares;
    };
    const std::array<Kernel, 6> kernels{
        {{"1", {16, Shape::Tables::constant, false, Shape::State::registers, 4}, true},
         {"2", {16, Shape::Tables::shared, false, Shape::State::registers, 4}, true},
         {"4", {16, Shape::Tables::shared, true, Shape::State::registers, 1}, true},
         {"banks, 4 tables",
          {16, Shape::Tables::banks, false, Shape::State::registers, 4, 1024},
          false},
         {"computed S-box", {16, Shape::Tables::none, false, Shape::State::registers, 4}, false},
         {"bitsliced",
          {32, Shape::Tables::none, false, Shape::State::registers, 4, 256, Shape::Form::sliced},
          false}}};
    DAEL_LET(field, Field::make(device, size));
    DAEL_LET(timed, TimedDevice::make(device->access(), field->clock, device->is_cpu(), size, count,
                                      attempts));
    for (const Kernel& kernel : kernels) {
        // Without tables, a processor takes a thousand times as long.
        if (device->is_cpu() && kernel.shape.tables == Shape::Tables::none) continue;
        const std::string what = device->name() + ", " + kernel.name;
        lab.session.progress(what);
        const std::uint32_t grid = field->grid_of(kernel.shape, 0);
        auto launch = field->prepare(kernel.shape, grid);
        if (launch.code() == Code::unsupported) {
            lab.report.skip(what + ": " + launch.error().message);
            continue;
        }
        if (!launch) return launch.error();
        DAEL_TRY(field->clock.copy_in(field->in.data, field->host.data(), size));
        DAEL_TRY(field->check(kernel.shape, *launch));
        DAEL_LET(trial, timed.trial(*launch, field->in.data));
        trial.must_leak = kernel.shares && !device->is_cpu();
        enter(lab.report,
              point_of("own kernels", field->work_of(kernel.shape), kernel.name, "data"),
              static_cast<double>(size), trial);
    }
    return {};
}

// The library's kernels in one form.
Result<> run_library(const Bench& lab, const std::string& form, std::size_t size, std::size_t count,
                     int attempts) {
    auto subject = bench::DeviceUnderTest::open("cuda", form);
    if (!subject) {
        lab.report.skip("cuda " + form + ": " + subject.error().message);
        return {};
    }
    DAEL_LET(clock, measure::DeviceClock::create(subject->device));
    DAEL_LET(timed, TimedDevice::make(subject->device, clock, false, size, count, attempts));
    DAEL_LET(in, DeviceBuffer::allocate(subject->device, MemoryKind::device, size));
    DAEL_LET(out, DeviceBuffer::allocate(subject->device, MemoryKind::device, size));
    DAEL_LET(tag, DeviceBuffer::allocate(subject->device, MemoryKind::device, gcm::kTagSize));
    const std::vector<std::uint8_t> host = bytes_of(false, 0, size);
    for (const auto& [mode, direction] : {std::pair{Mode::ecb, Direction::encrypt},
                                          {Mode::ecb, Direction::decrypt},
                                          {Mode::cbc, Direction::decrypt},
                                          {Mode::ctr, Direction::encrypt},
                                          {Mode::xts, Direction::encrypt},
                                          {Mode::gcm, Direction::encrypt}}) {
        bench::Work work(Point{{"mode", std::string(name(mode))},
                               {"direction", std::string(name(direction))},
                               {"bits", std::uint64_t{128}},
                               {"keys", std::uint64_t{mode == Mode::gcm}}});
        work.backend = subject->name;
        work.form = form;
        work.size = size;
        work.where = "device";
        work.measure = "kernel";
        lab.session.progress(bench::describe(work));
        DAEL_LET(keys, bench::make_keys(work));
        DAEL_LET(set, subject->engine->keys(keys));
        const auto messages = bench::lay_out(work, in.data(), out.data(), tag.data());
        const measure::Launch launch = [&](Stream s) -> Result<> {
            if (work.is(Mode::gcm))
                DAEL_TRY(subject->engine->launch(work.cipher, set, messages, s));
            else
                DAEL_TRY(subject->engine->run(work.cipher, keys.front(), messages.front(), s));
            return {};
        };
        DAEL_TRY(clock.copy_in(in.data(), host.data(), size));
        DAEL_TRY(clock.fill(out.data(), bench::kPoison, size));
        DAEL_TRY(clock.run(launch));
        DAEL_TRY(bench::check_output(
            work, host.data(), clock.fetch_from(out.data()),
            work.is(Mode::gcm) ? clock.fetch_from(tag.data()) : measure::Fetch{}));
        DAEL_LET(trial, timed.trial(launch, in.data()));
        enter(lab.report, point_of("library", work, "daelstrom", "data"), static_cast<double>(size),
              trial);
    }
    return {};
}

Result<> run_timing(const Bench& lab) {
    const bool quick = lab.settings.quick;
    DAEL_TRY(run_host(lab));
    const std::size_t count = quick ? 2000 : 6000;
    const int attempts = quick ? 2 : 3;
    // Long against the clock's tick, which OpenCL's events have coarser; and of what shares tables
    // in constant memory a MiB takes a quarter of a millisecond.
    constexpr std::size_t kCudaSize = 1 << 20, kOpenClSize = 4 << 20, kCpuSize = 16 << 10;
    bool has_gpu = false;
    for (const auto& device : kernel_devices(lab.report)) {
        measure::describe_device(lab.report.machine, device->access().info);
        if (device->is_cpu())
            lab.report.skip(
                device->name() +
                ": a processor that plays a device has no banks of shared memory; its "
                "times say nothing of a GPU's, and the library's are the backend cpu's");
        const bool cuda = device->name().starts_with("cuda");
        has_gpu = has_gpu || cuda;
        DAEL_TRY(run_own_kernels(lab, device,
                                 device->is_cpu() ? kCpuSize
                                 : cuda           ? kCudaSize
                                                  : kOpenClSize,
                                 count, attempts));
    }
    if (has_gpu)
        for (const char* form : {"tables=4", "tables=2", "tables=1"})
            DAEL_TRY(run_library(lab, form, kCudaSize, count, attempts));
    for (const auto& row : lab.report.rows) {
        const bool leaks = row.figures[3].second != 0, must = row.figures[4].second != 0;
        if (must && !leaks)
            lab.report.skip("what must be found was not: " + describe_fields(row.point) +
                            "; this machine is too noisy to judge the rest");
    }
    return {};
}

std::string timing_shown(const measure::Figures& figures) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "t %.1f of %.0f: %s", figures[0].second,
                  figures[1].second,
                  figures[3].second != 0 ? (figures[4].second != 0 ? "leaks, as it must" : "LEAKS")
                                         : "no difference seen");
    return text.data();
}

const measure::Columns& timing_columns() {
    static const measure::Columns all{
        {{"backend", false,
          [](const Point& p) {
              return p.text("backend") + (p.text("isa").empty() ? "" : " " + p.text("isa"));
          }},
         {"kernel", false, [](const Point& p) { return p.text("kernel"); }},
         {"cipher", false,
          [](const Point& p) {
              return p.text("mode").empty() ? std::string() : bench::cipher_name(bench::Work(p));
          }},
         {"what varies", false, [](const Point& p) { return p.text("varied"); }}},
        {"control", "host", "own kernels", "library"},
        [](const measure::Machine& machine, const std::string& where) -> std::string {
            if (where == "control") return "What must be found";
            if (where == "host") return "Messages of 256 bytes on one core of " + machine.cpu;
            return (where == "library" ? "daelstrom's kernels on " : "Kernels of `placement` on ") +
                   machine.gpu;
        },
        timing_shown};
    return all;
}

}  // namespace

const Study kTiming{"timing",
                    "Jiang, Fei and Kaeli 2016",
                    "Does the time tell what is encrypted, or with which key?",
                    run_timing,
                    describe_fields,
                    timing_columns};

}  // namespace dael::lab
