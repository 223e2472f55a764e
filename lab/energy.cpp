// SPDX-License-Identifier: Apache-2.0
// Joules for each gigabyte, on the GPU and on the host's cores, with the clocks at which it was
// done and why those were held back.
#include <algorithm>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "lab/meters.hpp"
#include "lab/study.hpp"
#include "measure/device.hpp"
#include "measure/machine.hpp"

namespace dael::lab {
namespace {

using measure::DeviceBuffer;
using measure::DeviceClock;
using measure::Heat;
using measure::MemoryKind;

measure::Axis ciphers(bool quick) {
    measure::Axis all;
    for (const std::uint64_t bits : {128, 256})
        for (const char* mode : {"ecb", "ctr", "gcm"})
            if (!quick || (bits == 128 && mode != std::string_view("ecb")))
                all.push_back({{"mode", mode},
                               {"direction", "encrypt"},
                               {"bits", bits},
                               {"keys", std::uint64_t{mode == std::string_view("gcm")}}});
    // AEGIS takes many messages at once: it, and GCM of the same.
    for (const std::uint64_t bits : {128, 256})
        for (const char* mode : {"gcm", bits == 128 ? "aegis128l" : "aegis256"})
            if (!quick || bits == 128)
                all.push_back({{"mode", mode},
                               {"direction", "encrypt"},
                               {"bits", bits},
                               {"keys", std::uint64_t{1}},
                               {"size", std::uint64_t{16 << 10}}});
    return all;
}

// One message of all the data, or as many as the size of each gives.
void fill_in(bench::Work& work, std::uint64_t all) {
    if (work.size != 0) work.messages = all / work.size;
    if (work.size == 0) work.size = all;
}
constexpr std::size_t kMostTags = (std::size_t{256} << 20 >> 14) * gcm::kTagSize;

// Data in device memory, over and over.
struct OnDevice {
    bench::DeviceUnderTest subject;
    DeviceClock clock;
    measure::DeviceStream stream;
    measure::HostBuffer host;
    DeviceBuffer in, out, tag;
    std::shared_ptr<Meters> meters;

    Result<Heat> prepare(const Point& point) const {
        bench::Work work(point);
        work.backend = subject.name;
        work.where = "device";
        work.measure = "kernel";
        fill_in(work, host.size());
        DAEL_LET(keys, bench::make_keys(work));
        DAEL_LET(set, subject.engine->keys(keys));
        const auto held = std::make_shared<KeySet>(std::move(set));
        const auto key = std::make_shared<Key>(std::move(keys.front()));
        const auto messages = std::make_shared<std::vector<Message>>(
            bench::lay_out(work, in.data(), out.data(), tag.data()));
        const auto next = std::make_shared<std::uint64_t>(0);
        std::shared_ptr<Batch> batch;
        DeviceBuffer list;
        if (work.messages > 1) {  // in device memory, so that it may be launched again and again
            const std::size_t bytes = messages->size() * sizeof(Message);
            DAEL_LET(there, DeviceBuffer::allocate(subject.device, MemoryKind::device, bytes));
            DAEL_TRY(clock.copy_in(there.data(), messages->data(), bytes));
            DAEL_LET(made, subject.engine->prepare(
                               work.cipher, *held,
                               {.list = reinterpret_cast<const Message*>(there.data()),
                                .count = static_cast<std::uint32_t>(messages->size()),
                                .place = Place::device}));
            batch = std::make_shared<Batch>(std::move(made));
            list = there;
        }
        const measure::Launch launch = [=, engine = subject.engine](Stream s) -> Result<> {
            (void)list;  // lives as long
            if (batch) {
                DAEL_TRY(engine->launch(*batch, s));
            } else if (work.tagged()) {
                bench::renew(work.cipher.mode, *messages, *next);
                DAEL_TRY(engine->launch(work.cipher, *held, *messages, s));
            } else {
                DAEL_TRY(engine->run(work.cipher, *key, messages->front(), s));
            }
            return {};
        };
        const auto check = [=, this]() -> Result<> {
            *next = 0;  // as the check expects it
            DAEL_TRY(clock.fill(out.data(), bench::kPoison, work.bytes()));
            DAEL_TRY(clock.run(launch));
            return bench::check_output(
                work, host.data(), clock.fetch_from(out.data()),
                work.tagged() ? clock.fetch_from(tag.data()) : measure::Fetch{});
        };
        const auto account = std::make_shared<Account>();
        constexpr int kTrain = 16;  // so that the device never waits for the host
        const auto train = [=, this]() -> Result<> {
            for (int i = 0; i < kTrain; ++i) DAEL_TRY(launch(stream.get()));
            return {};
        };
        const auto wait = [this] { return subject.device.order.wait(stream.get()); };
        Heat heat;
        Point shown = work.point();
        shown.set("study_part", std::string("device"));
        const double bytes = static_cast<double>(work.bytes()) * kTrain;
        const auto row = heat.enter(subject.name, sampler(meters, account, train, wait), check,
                                    shown, bytes, {});
        heat.describe(row,
                      [=, owned = meters](double) { return figures_of(*owned, *account, bytes); });
        return heat;
    }
};

Result<> run_device(const Bench& lab, const std::shared_ptr<Meters>& meters) {
    auto subject = bench::DeviceUnderTest::open("cuda:0");
    if (!subject) {
        lab.report.skip("cuda: " + subject.error().message);
        return {};
    }
    measure::describe_device(lab.report.machine, subject->device.info);
    const std::uint64_t size =
        measure::fitting(lab.report, (lab.settings.quick ? 16 : 256) * MiB, 3);
    DAEL_LET(clock, DeviceClock::create(subject->device));
    DAEL_LET(stream, measure::DeviceStream::create(subject->device));
    DAEL_LET(host, measure::HostBuffer::allocate(size));
    DAEL_LET(in, DeviceBuffer::allocate(subject->device, MemoryKind::device, size));
    DAEL_LET(out, DeviceBuffer::allocate(subject->device, MemoryKind::device, size));
    DAEL_LET(tag, DeviceBuffer::allocate(subject->device, MemoryKind::device, kMostTags));
    measure::Team team(measure::thread_count(0));
    measure::fill_random(team, host.data(), size, 9);
    DAEL_TRY(clock.copy_in(in.data(), host.data(), size));
    const auto all = std::make_shared<const OnDevice>(
        OnDevice{*subject, clock, stream, std::move(host), in, out, tag, meters});
    return lab.session.run(
        {subject->name, {ciphers(lab.settings.quick)}, {}, [all](const Point& point) {
             return all->prepare(point);
         }});
}

// Data in host memory, on all cores.
Result<> run_host(const Bench& lab, const std::shared_ptr<Meters>& meters) {
    bench::Options options;
    options.sizes = {(lab.settings.quick ? 4 : 64) * MiB};
    const bench::Workload workload = bench::make_workload(options);
    const bench::Suite suite{options, workload, lab.session};
    const auto engines = bench::open_host_engines(suite, 0, false);
    const std::uint64_t size = options.sizes.front();
    DAEL_LET(in, measure::HostBuffer::allocate(size));
    DAEL_LET(out, measure::HostBuffer::allocate(size));
    measure::Team team(measure::thread_count(0));
    measure::fill_random(team, in.data(), size, 10);
    const std::vector<std::uint8_t> no_tag(kMostTags, bench::kPoison);
    std::vector<std::uint8_t> tag = no_tag;
    const auto prepare = [&](const bench::HostEngine& engine, const Point& point) -> Result<Heat> {
        bench::Work work(point);
        work.backend = engine.backend;
        work.form = engine.form;
        work.where = "host";
        fill_in(work, size);
        work.threads = measure::thread_count(0);
        DAEL_LET(made, bench::host_call(engine, work,
                                        bench::lay_out(work, in.data(), out.data(), tag.data())));
        const auto check = [&, work, once = made.call]() -> Result<> {
            std::fill(out.data(), out.data() + size, bench::kPoison);
            tag = no_tag;
            DAEL_TRY(once());
            return bench::check_output(
                work, in.data(), measure::fetch_from(out.data()),
                work.tagged() ? measure::fetch_from(tag.data()) : measure::Fetch{});
        };
        const auto account = std::make_shared<Account>();
        Heat heat;
        Point shown = work.point();
        shown.set("study_part", std::string("host"));
        const auto row = heat.enter(
            engine.label(), sampler(meters, account, made.call, []() -> Result<> { return {}; }),
            check, shown, static_cast<double>(size), {});
        heat.describe(
            row, [=](double) { return figures_of(*meters, *account, static_cast<double>(size)); });
        return heat;
    };
    for (const bench::HostEngine& engine : engines)
        DAEL_TRY(lab.session.run(
            {engine.label(), {ciphers(lab.settings.quick)}, {}, [&](const Point& point) {
                 return prepare(engine, point);
             }}));
    return {};
}

Result<> run_energy(const Bench& lab) {
    DAEL_LET(meters, Meters::open({0}, lab.settings.quick, lab.report));
    // A sample takes as long as the meters need, whatever the usual budget.
    measure::Sampling sampling = lab.session.sampling;
    sampling.repeats = std::min(sampling.repeats, 3);
    measure::Session session{lab.report, sampling, lab.session.describe, lab.session.progress};
    const Bench own{lab.settings, lab.report, session};
    if (!meters->gpus.empty()) DAEL_TRY(run_device(own, meters));
    if (meters->cpu) DAEL_TRY(run_host(own, meters));
    return {};
}

const measure::Columns& energy_columns() {
    static const measure::Columns all = [] {
        measure::Columns columns = bench::columns("quick");
        columns.figures = energy_shown;
        return columns;
    }();
    return all;
}

}  // namespace

const Study kEnergy{"energy",
                    "Tartu 2007",
                    "How many joules does a gigabyte take, and at which clocks?",
                    run_energy,
                    [](const Point& point) { return bench::describe(bench::Work(point)); },
                    energy_columns};

}  // namespace dael::lab
