// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/programs.hpp"

#include <string_view>
#include <vector>

#include "backends/opencl/binary_cache.hpp"
#include "backends/opencl/sources.hpp"

namespace dael::opencl {
namespace {

// A unit is compiled by itself: files of kernels/, one after the other.
const std::map<std::string, std::vector<std::string_view>>& units() {
    // Never destroyed: static destructors may still open engines.
    static const auto& list = *new std::map<std::string, std::vector<std::string_view>>{
        {"blocks", {sources::aes, sources::segment, sources::blocks}},
        {"serial", {sources::aes, sources::segment, sources::serial}},
        {"serial_keyed", {sources::aes, sources::gcm, sources::segment, sources::serial}},
        {"ctr_stream", {sources::aes, sources::counter_cache, sources::ctr_stream}},
        {"xts", {sources::aes, sources::xts}},
        {"xts_tweaks", {sources::aes, sources::xts_tweaks}},
        {"ghash", {sources::aes, sources::gcm, sources::ghash}},
        {"gcm_ctr", {sources::aes, sources::gcm, sources::gcm_ctr}},
        {"gcm_ctr_cached", {sources::aes, sources::gcm, sources::counter_cache, sources::gcm_ctr}},
        {"gcm_tag", {sources::aes, sources::gcm, sources::gcm_tag}},
        {"derived", {sources::aes, sources::gcm, sources::aead, sources::derived}},
        {"aegis", {sources::aes, sources::gcm, sources::aead, sources::aegis}},
    };
    return list;
}

// "error: ..." and the lines around it, as the driver's compiler wrote them.
Error build_failure(const cl::Program& program, const cl::Device& device, const std::string& name,
                    cl_int status) {
    std::string log;
    (void)program.getBuildInfo(device, CL_PROGRAM_BUILD_LOG, &log);
    while (!log.empty() && (log.back() == '\0' || std::isspace(log.back()))) log.pop_back();
    Error error = cl_failure(status, "clBuildProgram");
    error.message += "; '" + name + "' does not compile on this driver" +
                     (log.empty() ? ", which gives no reason" : ":\n" + log);
    return error;
}

std::optional<Binary> binary_of(const cl::Program& program) {
    std::vector<Binary> binaries;
    if (program.getInfo(CL_PROGRAM_BINARIES, &binaries) != CL_SUCCESS || binaries.size() != 1 ||
        binaries.front().empty())
        return std::nullopt;
    return std::move(binaries.front());
}

}  // namespace

Programs::Programs(cl::Context context, cl::Device device)
    : context_(std::move(context)), device_(std::move(device)) {
    const cl::Platform platform(device_.getInfo<CL_DEVICE_PLATFORM>());
    for (const std::string& part :
         {platform.getInfo<CL_PLATFORM_NAME>(), platform.getInfo<CL_PLATFORM_VERSION>(),
          device_.getInfo<CL_DEVICE_NAME>(), device_.getInfo<CL_DEVICE_VERSION>(),
          device_.getInfo<CL_DRIVER_VERSION>()})
        identity_ += part + '\n';
    keeps_ = !platform.getInfo<CL_PLATFORM_NAME>().starts_with("Portable Computing Language");
}

Result<cl::Program> Programs::build(const std::string& name, const std::string& source,
                                    const std::string& macros) const {
    const std::string options = "-cl-std=CL1.2 " + macros;
    const std::string identity = identity_ + options + '\n' + source;
    cl_int status = CL_SUCCESS;
    if (const auto binary = keeps_ ? load_binary(identity) : std::nullopt) {
        const cl::Program program(context_, {device_}, {*binary}, nullptr, &status);
        if (status == CL_SUCCESS && program.build(device_, options.c_str()) == CL_SUCCESS) {
            ++from_disk_;
            return program;
        }
    }
    const cl::Program program(context_, source, false, &status);
    DAEL_TRY(checked(status, "clCreateProgramWithSource"));
    if (status = program.build(device_, options.c_str()); status != CL_SUCCESS)
        return build_failure(program, device_, name, status);
    if (keeps_)
        if (const auto binary = binary_of(program)) store_binary(identity, *binary);
    return program;
}

void Programs::define(std::string macros) {
    const std::lock_guard lock(mutex_);
    defined_ = ' ' + std::move(macros);
}

Result<Kernel*> Programs::find(const std::string& unit, const std::string& entry,
                               const std::string& macros) {
    if (after_fork()) return fork_failure();
    std::string all = macros;
    Program& program = [&]() -> Program& {
        const std::lock_guard lock(mutex_);
        all += defined_;
        return programs_[unit + ' ' + all];
    }();
    const std::lock_guard lock(program.mutex);
    if (!program.handle()) {
        std::string source;
        for (const std::string_view part : units().at(unit)) source += part;
        auto built = build(unit, source, all);
        if (!built) return std::move(built).error();
        program.handle = std::move(*built);
    }
    Kernel& kernel = program.kernels[entry];
    if (!kernel.handle()) {
        cl_int status = CL_SUCCESS;
        kernel.handle = cl::Kernel(program.handle, entry.c_str(), &status);
        DAEL_TRY(checked(status, ("clCreateKernel '" + entry + "'").c_str()));
    }
    return &kernel;
}

}  // namespace dael::opencl
