// SPDX-License-Identifier: Apache-2.0
// The benchmarks of AES, and the suites that are made of them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <daelstrom/device.hpp>

#include "bench/workload.hpp"
#include "measure/benchmark.hpp"
#include "measure/team.hpp"

namespace dael::bench {

using measure::Benchmark;
using measure::Report;
using measure::Session;

// What every benchmark needs to know.
struct Suite {
    const Options& options;
    const Workload& workload;
    Session& session;
};

// One backend in one form on so many threads, for data in host memory.
struct HostEngine {
    std::string backend;  // "cpu", "openssl"
    std::string form;
    std::shared_ptr<Engine> engine;

    std::string label() const { return form.empty() ? backend : backend + " " + form; }
};

// The fastest form of cpu first; `every_form`: each of them, else the one. What is asked for and
// absent is skipped with a line.
std::vector<HostEngine> open_host_engines(const Suite& suite, int threads, bool every_form);

// The call that a program would make with these messages: of one message, or of a batch under keys
// that were made ready. What is sealed gets new nonces each time. `ran` has what the last call did.
struct HostCall {
    std::function<Result<>()> call;
    std::shared_ptr<const Ran> ran;
};
Result<HostCall> host_call(const HostEngine& engine, const Work& work,
                           std::vector<Message> messages);

// The ceiling of work in the host's memory: a row of memcpy by a team's threads. Returns its
// number; the team lives as long as the heat.
std::size_t enter_memcpy(measure::Heat& heat, measure::Team& team, std::uint8_t* to,
                         const std::uint8_t* from, std::size_t size,
                         const measure::Sampling& sampling);

// A device and an engine on it, which shares it.
struct DeviceUnderTest {
    std::string name;  // "cuda:0"
    std::shared_ptr<Engine> engine;
    DeviceAccess device;

    // `backend` may be a kind, "cuda", for its first. Errors: as Engine::open.
    static Result<DeviceUnderTest> open(const std::string& backend, const std::string& form = {});
};

// One core, small messages: each form of each backend against the bare library below it and against
// OpenSSL, on one pinned thread.
Result<Benchmark> one_core(const Suite& suite);
// All cores, large messages, against memcpy by as many threads; CTR by size on one core and on all.
Result<Benchmark> all_cores(const Suite& suite);
// Batches of short messages on one core and on more, as the library's call alone takes.
Result<Benchmark> short_batches(const Suite& suite);
// Data in device memory: single messages by size and placement, batches, the cost of a launch.
Result<Benchmark> resident(const Suite& suite, const DeviceUnderTest& subject);
// Data in host memory that goes through the device: kernel, total (one after the other), async.
Result<Benchmark> through(const Suite& suite, const DeviceUnderTest& subject);
// A sealed file in the page cache, opened into device memory by one thread that reads and by more.
Result<Benchmark> sealed_in(const Suite& suite, const DeviceUnderTest& subject);

// The device backends to measure: those asked for by name ("cuda:1", "opencl"), else the first GPU.
std::vector<std::string> device_names(const Options& options);

// How the rows of a suite stand in a table.
const measure::Columns& columns(const std::string& suite);

// All that the options ask for.
Result<Report> run(const Options& options, std::function<void(const std::string&)> progress);

}  // namespace dael::bench
