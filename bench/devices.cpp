// SPDX-License-Identifier: Apache-2.0
#include "bench/device_under_test.hpp"
#include "bench/machine.hpp"
#include "core/registry.hpp"

namespace dael::bench {
namespace {

// The device backends to measure: those asked for by name ("cuda:1", "opencl"), else the first GPU.
std::vector<std::string> device_names(const Options& options) {
    if (options.backends.empty()) return {"cuda:0"};
    std::vector<std::string> names;
    for (const auto& name : options.backends)
        for (const std::string kind : {"cuda", "opencl"})
            if (name == kind || name.starts_with(kind + ":"))
                names.push_back(name == kind ? kind + ":0" : name);
    return names;
}

Result<> measure_one(Session& session, const std::string& name) {
    // A backend of our own for the kernels; the engine, which runs the pipeline, has its own as
    // well.
    auto backend = core::open_backend(name);
    if (!backend) return std::move(backend).error();
    EngineOptions options;
    options.backend = name;
    auto engine = Engine::open(options);
    if (!engine) return std::move(engine).error();
    DeviceUnderTest subject{name, *(*backend)->device(), *engine};
    describe_device(session.report.machine, subject.device.info());
    DAEL_TRY(measure_resident(session, subject));
    return measure_through(session, subject);
}

}  // namespace

Result<> measure_devices(Session& session) {
    for (const auto& name : device_names(session.options)) {
        auto measured = measure_one(session, name);
        if (measured.code() == Code::backend_absent || measured.code() == Code::unknown_backend)
            session.skip(name + ": " + measured.error().message);
        else if (!measured)
            return measured;
    }
    return {};
}

}  // namespace dael::bench
