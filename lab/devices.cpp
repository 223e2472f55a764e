// SPDX-License-Identifier: Apache-2.0
// One job by devices and the host's cores together: rate and energy over the share of the cores,
// from nothing to all of it, and what the library's scheduler makes of it by itself.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "bench/check.hpp"
#include "bench/devices.hpp"
#include "lab/figures.hpp"
#include "lab/kernel_device.hpp"
#include "lab/meters.hpp"
#include "lab/study.hpp"
#include "measure/machine.hpp"

namespace dael::lab {
namespace {

using measure::Heat;

// An engine and its part of the messages.
struct Part {
    std::shared_ptr<Engine> engine;
    KeySet keys;
    std::size_t first = 0;
    std::vector<Code> codes;

    static Result<Part> make(const bench::HostEngine& engine, const bench::Work& work,
                             std::size_t first, std::size_t count) {
        DAEL_LET(keys, bench::make_keys(work));
        DAEL_LET(set, engine.engine->keys(keys));
        return Part{engine.engine, std::move(set), first, std::vector<Code>(count, Code::ok)};
    }
};

// Everybody's parts, each on a thread of its own.
struct Job {
    bench::Work work;
    std::vector<Message> messages;
    std::vector<Part> parts;
    std::vector<Result<Ran>> ran;
    std::uint64_t next = 0;  // nonce

    Result<> run(measure::Team& team) {
        constexpr std::size_t kLine = 64;  // a team's shares are whole cache lines
        if (work.is(Mode::gcm)) bench::renew(Mode::gcm, messages, next);
        ran.assign(parts.size(), Error{Code::internal, "it never began"});
        const auto one = [this](std::size_t i) {
            Part& part = parts[i];
            ran[i] = part.engine->run(work.cipher, part.keys,
                                      std::span(messages).subspan(part.first, part.codes.size()),
                                      part.codes);
        };
        if (parts.size() == 1)
            one(0);
        else
            team.run(parts.size() * kLine, [&one](std::size_t begin, std::size_t end) {
                for (; begin < end; begin += kLine) one(begin / kLine);
            });
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (!ran[i]) return std::move(ran[i]).error();
            DAEL_TRY(bench::check_codes(work, parts[i].codes));
        }
        return {};
    }
};

struct Curve {
    bench::Devices all;
    std::shared_ptr<bench::SharedMemory> memory;
    std::shared_ptr<measure::Team> two;  // who waits for the devices, and who leads the cores
    std::shared_ptr<Meters> meters;
    std::vector<int> shares;  // of the cores, per cent

    std::shared_ptr<Job> job(const bench::Work& work) const {
        return std::make_shared<Job>(Job{
            work, bench::lay_out(work, memory->in(), memory->out(), memory->tags.data()), {}, {}});
    }

    // Enters a job with what it costs.
    std::size_t enter(Heat& heat, const std::string& name, const std::shared_ptr<Job>& job,
                      Point point, std::vector<std::size_t> against, bool scheduler) const {
        const auto account = std::make_shared<Account>();
        account->clocks = false;
        const auto call = [job, two = two] { return job->run(*two); };
        const auto check = [job, call, memory = memory] {
            job->next = 0;  // as the check expects it
            return memory->check(job->work, call);
        };
        const auto bytes = static_cast<double>(job->work.bytes());
        const auto row = heat.enter(name, sampler(meters, account, call, [] { return Result<>{}; }),
                                    check, std::move(point), bytes, std::move(against));
        heat.describe(row, [=, meters = meters, set = job->work.backend](double) {
            auto figures = figures_of(*meters, *account, bytes);
            if (scheduler)
                figures.emplace_back("cpu_percent", bench::percents(set, *job->ran.front()).back());
            return figures;
        });
        return row;
    }

    // The set's devices are one engine, as they would be without the cores, and these another.
    Result<Heat> prepare(const bench::HostEngine& set, const Point& point) const {
        bench::Work work(point);
        work.backend = set.backend;
        const auto plus = set.backend.rfind('+');
        const bench::HostEngine& devices = *all.find(set.backend.substr(0, plus));
        const bench::HostEngine& host = *all.find(set.backend.substr(plus + 1));
        Heat heat;
        std::vector<std::size_t> alone;
        for (const int share : shares) {
            const auto split = job(work);
            const std::size_t by_host = work.messages * static_cast<unsigned>(share) / 100;
            const std::size_t by_devices = work.messages - by_host;
            if (by_devices != 0) {
                DAEL_LET(part, Part::make(devices, work, 0, by_devices));
                split->parts.push_back(std::move(part));
            }
            if (by_host != 0) {
                DAEL_LET(part, Part::make(host, work, by_devices, by_host));
                split->parts.push_back(std::move(part));
            }
            Point shown = work.point();
            shown.set("study_part", std::string("fixed share"));
            shown.set("cpu_share", static_cast<std::uint64_t>(share));
            const auto row = enter(heat,
                                   share == 0     ? devices.backend
                                   : share == 100 ? host.backend
                                                  : std::to_string(share) + "%",
                                   split, std::move(shown), {}, false);
            if (share == 0 || share == 100) alone.push_back(row);
        }
        const auto own = job(work);
        DAEL_LET(part, Part::make(set, work, 0, work.messages));
        own->parts.push_back(std::move(part));
        Point shown = work.point();
        shown.set("study_part", std::string("scheduler"));
        enter(heat, "scheduler", own, std::move(shown), alone, true);
        return heat;
    }
};

// The GPUs of a set by their numbers, which are NVML's where all of the same kind are there.
std::vector<unsigned> gpus_of(const std::string& set) {
    std::vector<unsigned> numbers;
    for (const std::string& name : bench::members_of(set))
        if (name.starts_with("cuda:"))
            numbers.push_back(static_cast<unsigned>(std::atoi(name.c_str() + 5)));
    return numbers;
}

Result<> run_devices(const Bench& lab) {
    bench::Options options;
    const bench::Workload workload = bench::make_workload(options);
    const bench::Suite suite{options, workload, lab.session};
    DAEL_LET(all, bench::Devices::open(suite));
    bool is_cpu = false;
    if (all.devices.empty()) {
        options.backends = {"opencl", "cpu", "openssl"};
        DAEL_LET(others, bench::Devices::open(suite));
        all = std::move(others);
        if (const auto kernels = open_opencl_kernels()) is_cpu = (*kernels)->is_cpu();
    }
    if (all.sets.empty()) return {};  // who is missing was said
    measure::describe_device(lab.report.machine, all.devices.front().device.info);
    const bool quick = lab.settings.quick;
    const std::uint64_t size = is_cpu ? 16 * KiB : MiB;
    const std::uint64_t most = is_cpu ? 10 : quick ? 20 : 1000;
    const std::uint64_t count =
        std::max<std::uint64_t>(10, std::min(most / lab.settings.scale,
                                             measure::fitting(lab.report, most * size, 2) / size)) /
        10 * 10;
    const auto state = std::make_shared<Curve>();
    DAEL_LET(memory, bench::SharedMemory::make(all, count * size, count, measure::thread_count(0)));
    state->all = std::move(all);
    state->memory = memory;
    state->two = std::make_shared<measure::Team>(2);
    for (int share = 0; share <= 100; share += quick ? 50 : 10) state->shares.push_back(share);
    measure::Sampling sampling = lab.session.sampling;
    sampling.repeats = std::min(sampling.repeats, 3);  // a sample takes as long as the meters need
    measure::Session session{lab.report, sampling, lab.session.describe, lab.session.progress};
    measure::Axis ciphers;
    for (const auto& [mode, bits, keys] : {std::tuple{"ctr", 256, 0}, {"gcm", 128, 1}})
        ciphers.push_back(Point{
            {"mode", mode},
            {"direction", "encrypt"},
            {"bits", static_cast<std::uint64_t>(bits)},
            {"where",
             "pinned"}}.set(bench::shape(size, count, static_cast<unsigned>(keys))));
    for (const bench::HostEngine& set : state->all.sets) {
        const std::string host = bench::members_of(set.backend).back();
        if (std::ranges::count(bench::kHostBackends, host) == 0) continue;
        const auto gpus = gpus_of(set.backend);
        if (gpus.empty())
            lab.report.skip("energy of " + set.backend + ": of devices NVML alone tells, CUDA's");
        DAEL_LET(meters, Meters::open(gpus, quick, lab.report));
        state->meters = meters;
        if (meters->gpus.empty() && !meters->cpu) meters->window = 0.1;  // it is for rates alone
        if (is_cpu) meters->window = 0;
        DAEL_TRY(session.run({set.backend, {ciphers}, {}, [state, set](const Point& point) {
                                  return state->prepare(set, point);
                              }}));
    }
    mark_best(lab.report.rows);
    return {};
}

}  // namespace

void mark_best(std::vector<measure::Row>& rows) {
    const auto work_of = [](Point point) {
        return describe_fields(point.set("study_part", {}).set("cpu_share", {}));
    };
    std::map<std::string, double> best;
    for (const auto& row : rows)
        if (row.point.text("study_part") == "fixed share")
            best[work_of(row.point)] = std::max(best[work_of(row.point)], row.gbps.median);
    for (auto& row : rows)
        if (const auto found = best.find(work_of(row.point));
            row.point.text("study_part") == "scheduler" && found != best.end())
            row.figures.emplace_back("of_best", row.gbps.median / found->second);
}

namespace {

std::string shown(const measure::Figures& figures) {
    std::string text;
    for (const auto& [name, value] : figures) {
        std::array<char, 48> number{};
        if (name == "cpu_percent")
            std::snprintf(number.data(), number.size(), "%.0f%% by the host", value);
        if (name == "of_best")
            std::snprintf(number.data(), number.size(), "%.0f%% of the best", 100 * value);
        text += (text.empty() || !number[0] ? "" : "  ") + std::string(number.data());
    }
    const std::string energy = energy_shown(figures);
    return energy + (energy.empty() || text.empty() ? "" : "  ") + text;
}

const measure::Columns& devices_columns() {
    static const measure::Columns all = [] {
        measure::Columns columns = bench::columns("quick");
        columns.columns.back() = {"the host's share", true, [](const Point& p) {
                                      return p.text("study_part") == "scheduler"
                                                 ? "the scheduler's"
                                                 : std::to_string(p.number("cpu_share")) + "%";
                                  }};
        columns.figures = shown;
        return columns;
    }();
    return all;
}

}  // namespace

const Study kDevices{
    "devices",   "daelstrom",     "How much of a job should the host's cores do beside a GPU?",
    run_devices, describe_fields, devices_columns};

}  // namespace dael::lab
