// SPDX-License-Identifier: Apache-2.0
// Opening a device, and choosing and shaping its kernels. What they are launched for stands in
// modes.cpp, xts.cpp and gcm.cpp.
#include "backends/opencl/device.hpp"

#include <algorithm>

namespace dael::opencl {

OpenClDevice::OpenClDevice(std::shared_ptr<Context> context, cl::Device device, Limits limits,
                           Tuning tuning, DeviceInfo info)
    : context_(std::move(context)),
      device_(std::move(device)),
      limits_(limits),
      info_(std::move(info)),
      order_(context_, device_),
      memory_(context_, order_, info_.memory),
      programs_(**context_, device_),
      tuning_(tuning) {}

namespace {

// Whether local memory is memory of its own. Of a CPU it never is, whatever its driver says: tables
// would lie in its caches. Mesa's rusticl says of every device that it is not; of these it is.
bool has_own_local_memory(const cl::Device& device) {
    if (!(device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_GPU)) return false;
    if (device.getInfo<CL_DEVICE_LOCAL_MEM_TYPE>() == CL_LOCAL) return true;
    const cl::Platform platform(device.getInfo<CL_DEVICE_PLATFORM>());
    return known_local_memory(platform.getInfo<CL_PLATFORM_NAME>(),
                              device.getInfo<CL_DEVICE_NAME>());
}

}  // namespace

Result<std::unique_ptr<OpenClDevice>> OpenClDevice::open(std::shared_ptr<Context> context,
                                                         cl::Device device, std::string_view form) {
    DeviceInfo info;
    info.name = device.getInfo<CL_DEVICE_NAME>();
    if (!device.getInfo<CL_DEVICE_ENDIAN_LITTLE>() ||
        !device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>())
        return Error{Code::unsupported, "opencl: '" + info.name +
                                            "' is big-endian or has no compiler for kernels; "
                                            "daelstrom needs a little-endian one that has"};
    Limits limits;
    limits.local_memory = device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
    limits.dedicated = has_own_local_memory(device);
    limits.work_group = device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
    if (limits.work_group < kLanes)
        return Error{Code::unsupported, "opencl: '" + info.name + "' takes work-groups of " +
                                            std::to_string(limits.work_group) +
                                            " work-items at most; daelstrom needs 32"};
    DAEL_LET(tuning, parse_tuning(form, limits));
    info.architecture = device.getInfo<CL_DEVICE_VERSION>();
    while (!info.architecture.empty() && info.architecture.back() == ' ')
        info.architecture.pop_back();
    info.memory = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
    info.multiprocessors = static_cast<int>(device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
    info.driver = info.architecture + ", driver " + device.getInfo<CL_DRIVER_VERSION>();
    // A question for version 2.0; a driver of 1.2 answers that it does not know it.
    cl_device_svm_capabilities svm = 0;
    if (device.getInfo(CL_DEVICE_SVM_CAPABILITIES, &svm) != CL_SUCCESS) svm = 0;
    info.shared_memory = (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
    info.reads_lists = false;  // which hold pointers, and buffers have none
    info.layout =
        tuning.tables < 0 ? "no" : std::to_string(table_bytes(tuning.tables) / 1024) + " KiB";
    std::unique_ptr<OpenClDevice> opened(
        new OpenClDevice(std::move(context), std::move(device), limits, tuning, std::move(info)));
    DAEL_TRY(opened->usable());
    DAEL_TRY(opened->order_.create_queues());
    return opened;
}

std::vector<std::string> OpenClDevice::list() const {
    std::vector<std::string> forms;
    for (const Tuning& tuning : candidates(limits_)) forms.push_back(to_string(tuning));
    return forms;
}

Result<> OpenClDevice::use(const std::string& form) {
    DAEL_LET(tuning, parse_tuning(form, limits_));
    if (std::ranges::count(candidates(limits_), tuning) == 0)
        return Error{Code::unsupported, "opencl: '" + form +
                                            "' is none of the forms that are tried on '" +
                                            info_.name +
                                            "'; to have it all the same, open the "
                                            "engine with it"};
    if (after_fork()) return fork_failure();
    const std::lock_guard lock(mutex_);
    tuning_ = tuning;
    return {};
}

Tuning OpenClDevice::tuning() const {
    if (after_fork()) return {};  // nothing will be launched in it
    if (const auto* asked = Programs::variant_asked()) return asked->tuning;
    const std::lock_guard lock(mutex_);
    return tuning_;
}

unsigned OpenClDevice::groups_for(std::uint64_t teams, const Tuning& tuning) const {
    // Few are spread over many compute units, down to four on each.
    const std::uint64_t wanted = std::max<std::uint64_t>(1, (teams + 3) / 4);
    return static_cast<unsigned>(
        std::min<std::uint64_t>(wanted, std::uint64_t{compute_units()} * tuning.groups));
}

unsigned OpenClDevice::groups_for_items(std::uint64_t items, const Tuning& tuning) const {
    return groups_for((items + kLanes - 1) / kLanes * 4, tuning);
}

Result<Kernel*> OpenClDevice::kernel(const std::string& unit, const std::string& entry, int rounds,
                                     bool inverse, const Tuning& shape, const std::string& more) {
    const int tables = shape.tables;
    // Nobody looks things up on a CPU but tests of the kernels that GPUs have: what counts there is
    // how soon they are compiled, which takes a CPU's driver seconds each.
    const bool soon = tuning().tables >= 0 && !limits_.dedicated;
    return programs_.find(
        unit, entry,
        "-DDAEL_ROUNDS=" + std::to_string(rounds) + " -DDAEL_INVERSE=" + std::to_string(inverse) +
            " -DDAEL_TABLES=" + std::to_string(tables) +
            " -DDAEL_TEAMS=" + std::to_string(shape.teams) +
            " -DDAEL_UNROLL=" + (tables > 0 ? "4" : "1") + more + (soon ? " -cl-opt-disable" : ""));
}

Result<> OpenClDevice::adopt_shared(void* memory, std::size_t size) {
    if (info_.shared_memory) return memory_.adopt_shared(memory, size);
    return Error{Code::unsupported, "opencl: this device has no shared virtual memory"};
}

Result<Stream> OpenClDevice::adopt_queue(void* native_queue) {
    if (!native_queue) return Error{Code::invalid_argument, "opencl: the queue is null"};
    const cl::CommandQueue queue(static_cast<cl_command_queue>(native_queue), true);
    cl_int status = CL_SUCCESS;
    const auto properties = queue.getInfo<CL_QUEUE_PROPERTIES>(&status);
    DAEL_TRY(checked(status, "clGetCommandQueueInfo"));
    if (queue.getInfo<CL_QUEUE_CONTEXT>()() != (*context_)() ||
        queue.getInfo<CL_QUEUE_DEVICE>()() != device_())
        return Error{Code::invalid_argument,
                     "opencl: the queue belongs to another context or device than the engine's"};
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return Error{Code::invalid_argument,
                     "opencl: the queue is out of order; make one without "
                     "CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE"};
    return Stream{native_queue};
}

}  // namespace dael::opencl
