// SPDX-License-Identifier: Apache-2.0
#include "bench/suite.hpp"

#include <cmath>
#include <cstring>

#include "bench/check.hpp"
#include "bench/devices.hpp"
#include "bench/packets.hpp"
#include "measure/machine.hpp"

namespace dael::bench {
namespace {

bool open_into(std::vector<HostEngine>& engines, const Suite& suite, const std::string& backend,
               const std::string& form, int threads) {
    auto engine = Engine::open({.backend = backend, .form = form, .threads = threads});
    if (!engine) {
        suite.session.report.skip((form.empty() ? backend : backend + " " + form) + ": " +
                                  engine.error().message);
        return false;
    }
    engines.push_back({backend, form, std::make_shared<Engine>(std::move(*engine))});
    return true;
}

// A benchmark that could be made ready, or a line that says why not.
Result<> run(const Suite& suite, const std::string& what, Result<Benchmark> benchmark) {
    if (benchmark) return suite.session.run(*benchmark);
    if (benchmark.code() != Code::out_of_memory) return std::move(benchmark).error();
    suite.session.report.skip(what + ": " + benchmark.error().message);
    return {};
}

Result<> run_device(const Suite& suite, const std::string& name) {
    auto subject = DeviceUnderTest::open(name);
    if (subject.code() == Code::backend_absent || subject.code() == Code::unknown_backend) {
        suite.session.report.skip(name + ": " + subject.error().message);
        return {};
    }
    if (!subject) return std::move(subject).error();
    measure::describe_device(suite.session.report.machine, subject->device.info);
    DAEL_TRY(run(suite, name + ", device memory", resident(suite, *subject)));
    DAEL_TRY(run(suite, name + ", host memory", through(suite, *subject)));
    if (suite.workload.sealed_file == 0 || !subject->device.info.reads_lists) return {};
    return run(suite, name + ", sealed files", sealed_in(suite, *subject));
}

// Each alone, and all of them at one job.
Result<> run_devices(const Suite& suite) {
    DAEL_LET(all, Devices::open(suite));
    measure::Machine& machine = suite.session.report.machine;
    if (!all.devices.empty()) describe_device(machine, all.devices.front().device.info);
    if (all.devices.size() > 1)
        machine.gpu = std::to_string(all.devices.size()) + " x " + machine.gpu;
    if (!all.alone.empty()) DAEL_TRY(run(suite, "together", together(suite, all)));
    if (all.devices.size() > 1) {
        DAEL_TRY(run(suite, "side by side", side_by_side(suite, all)));
        return run(suite, "over devices", over_devices(suite, all));
    }
    suite.session.report.skip("several devices: here there are " +
                              std::to_string(all.devices.size()));
    return {};
}

}  // namespace

std::vector<std::string> device_names(const Options& options) {
    if (options.backends.empty()) return {"cuda:0"};
    std::vector<std::string> names;
    for (const auto& name : options.backends)
        for (const std::string kind : kDeviceBackends)
            if (name == kind || name.starts_with(kind + ":"))
                names.push_back(name == kind ? kind + ":0" : name);
    return names;
}

std::vector<HostEngine> open_host_engines(const Suite& suite, int threads, bool every_form) {
    std::vector<HostEngine> engines;
    const Options& options = suite.options;
    for (const std::string backend : kHostBackends) {
        if (!wants_backend(options, backend)) continue;
        if (backend != "cpu") {
            open_into(engines, suite, backend, "", threads);
        } else if (!options.form.empty()) {
            open_into(engines, suite, backend, options.form, threads);
        } else {
            for (const char* form : {"avx512", "avx2", "sse"})
                if (open_into(engines, suite, backend, form, threads) && !every_form) break;
        }
    }
    return engines;
}

std::size_t enter_memcpy(measure::Heat& heat, measure::Team& team, std::uint8_t* to,
                         const std::uint8_t* from, std::size_t size,
                         const measure::Sampling& sampling) {
    const int threads = team.threads();
    return heat.enter("memcpy" + (threads == 1 ? "" : ", " + std::to_string(threads) + " threads"),
                      measure::wall_clock(
                          [&team, to, from, size]() -> Result<> {
                              team.run(size, [=](std::size_t begin, std::size_t end) {
                                  std::memcpy(to + begin, from + begin, end - begin);
                              });
                              return {};
                          },
                          sampling));
}

Result<HostCall> host_call(const HostEngine& engine, const Work& work,
                           std::vector<Message> messages) {
    struct HostBatch {  // what goes last stands first
        std::shared_ptr<Engine> engine;
        KeySet keys;
        Work work;
        std::vector<Message> messages;
        std::vector<Code> codes;
        std::uint64_t next = 0;
    };
    DAEL_LET(keys, make_keys(work));
    const auto ran = std::make_shared<Ran>();
    if (messages.size() == 1 && !work.tagged())
        return HostCall{[engine = engine.engine, cipher = work.cipher, message = messages.front(),
                         key = std::make_shared<Key>(std::move(keys.front())), ran]() -> Result<> {
                            DAEL_LET(done, engine->run(cipher, *key, message));
                            *ran = done;
                            return {};
                        },
                        ran};
    DAEL_LET(set, engine.engine->keys(keys));
    const auto batch = std::make_shared<HostBatch>(
        HostBatch{engine.engine, std::move(set), work, std::move(messages),
                  std::vector<Code>(work.messages, Code::internal)});
    return HostCall{[batch, ran]() -> Result<> {
                        HostBatch& b = *batch;
                        if (b.work.tagged() && !b.work.opens())
                            renew(b.work.cipher.mode, b.messages, b.next);
                        DAEL_LET(done, b.engine->run(b.work.cipher, b.keys, b.messages, b.codes));
                        *ran = done;
                        return check_codes(b.work, b.codes);
                    },
                    ran};
}

Result<DeviceUnderTest> DeviceUnderTest::open(const std::string& backend, const std::string& form) {
    DAEL_LET(opened, Engine::open({.backend = backend, .form = form}));
    const auto engine = std::make_shared<Engine>(std::move(opened));
    DAEL_LET(access, dael::device(*engine));
    return DeviceUnderTest{engine->backends().front(), engine, access};
}

const measure::Columns& columns(const std::string& suite) {
    static const measure::Columns with_shares = [] {
        measure::Columns all = columns();
        all.figures = [](const measure::Figures& shares) {
            std::string text;
            for (const auto& [name, percent] : shares)
                text += (text.empty() ? "" : " + ") + std::to_string(std::lround(percent)) + "%";
            return text;
        };
        return all;
    }();
    if (suite == "devices") return with_shares;
    return suite == "packets" ? packet_columns() : columns();
}

Result<Report> run(const Options& options, std::function<void(const std::string&)> progress) {
    Report report;
    const Workload workload = make_workload(options);
    measure::describe_build(report);
    report.suite = options.suite;
    report.machine = measure::describe_host();
    const bool packets = options.suite == "packets";
    Session session{report, workload.sampling,
                    [packets](const Point& point) {
                        return packets ? describe_packets(point) : describe(Work(point));
                    },
                    std::move(progress)};
    const Suite suite{options, workload, session};
    if (packets) {
        DAEL_LET(benchmarks, packet_suite(suite));
        for (const Benchmark& benchmark : benchmarks) DAEL_TRY(session.run(benchmark));
        return report;
    }
    if (options.suite == "devices") {
        DAEL_TRY(run_devices(suite));
        return report;
    }
    DAEL_TRY(run(suite, "one core", one_core(suite)));
    DAEL_TRY(run(suite, "all cores", all_cores(suite)));
    if (!workload.gcm_short.empty())
        DAEL_TRY(run(suite, "short messages on many cores", short_batches(suite)));
    for (const std::string& name : device_names(options)) DAEL_TRY(run_device(suite, name));
    return report;
}

}  // namespace dael::bench
