// SPDX-License-Identifier: Apache-2.0
// The opencl backend: finding devices, of every platform, and opening one.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "backends/opencl/pieces.hpp"
#include "core/device_backend.hpp"
#include "modes/xaes.hpp"

namespace dael::opencl {

namespace {

// "OpenCL 1.1 Mesa": kernels and calls are of version 1.2.
bool too_old(const std::string& version) {
    int major = 0, minor = 0;
    return std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor) != 2 ||
           std::pair(major, minor) < std::pair(1, 2);
}

}  // namespace

Error fork_failure() {
    return core::opened_before_fork("opencl");
}

Error cl_failure(cl_int status, const char* call) {
    if (after_fork()) return fork_failure();
    const auto [code, name] = [&]() -> std::pair<Code, const char*> {
        switch (status) {
            case CL_MEM_OBJECT_ALLOCATION_FAILURE:
                return {Code::out_of_memory, "CL_MEM_OBJECT_ALLOCATION_FAILURE"};
            case CL_OUT_OF_HOST_MEMORY:
                return {Code::out_of_memory, "CL_OUT_OF_HOST_MEMORY"};
            case CL_INVALID_BUFFER_SIZE:  // what a driver says to more than it gives in one piece
                return {Code::out_of_memory,
                        "CL_INVALID_BUFFER_SIZE; the device's CL_DEVICE_MAX_MEM_ALLOC_SIZE is the "
                        "limit of one buffer"};
            case CL_OUT_OF_RESOURCES:  // of a launch or a wait the device may be lost
                return {std::string_view(call).starts_with("clBuild") ||
                                std::string_view(call).starts_with("clCreate")
                            ? Code::out_of_memory
                            : Code::device,
                        "CL_OUT_OF_RESOURCES"};
            case CL_BUILD_PROGRAM_FAILURE:
                return {Code::device, "CL_BUILD_PROGRAM_FAILURE"};
            case CL_DEVICE_NOT_AVAILABLE:
                return {Code::device, "CL_DEVICE_NOT_AVAILABLE"};
            case CL_INVALID_ARG_SIZE:
                return {Code::internal, "CL_INVALID_ARG_SIZE"};
            case CL_INVALID_KERNEL_ARGS:
                return {Code::internal, "CL_INVALID_KERNEL_ARGS"};
            case CL_INVALID_MEM_OBJECT:
                return {Code::device, "CL_INVALID_MEM_OBJECT"};
            case CL_INVALID_WORK_GROUP_SIZE:
                return {Code::device,
                        "CL_INVALID_WORK_GROUP_SIZE; ask for smaller work-groups, with teams="};
            case CL_INVALID_COMMAND_QUEUE:
                return {Code::device, "CL_INVALID_COMMAND_QUEUE"};
            default:
                return {Code::device, "see CL/cl.h"};
        }
    }();
    return {code, std::string("opencl: ") + call + ": error " + std::to_string(status) + " (" +
                      name + ")"};
}

std::vector<Found> find_devices(DriverKind kind) {
    std::vector<Found> found;
    if (after_fork()) return found;
    for (const cl::Platform& platform : platforms(kind)) {
        if (too_old(platform.getInfo<CL_PLATFORM_VERSION>())) continue;
        std::vector<cl::Device> devices;
        // CL_DEVICE_NOT_FOUND is one of the answers.
        if (platform.getDevices(CL_DEVICE_TYPE_ALL, &devices) != CL_SUCCESS) continue;
        for (const cl::Device& device : devices)
            if (!too_old(device.getInfo<CL_DEVICE_VERSION>())) found.push_back({platform, device});
    }
    return found;
}

std::vector<Found> find_devices() {
    auto found = find_devices(DriverKind::gpu);
    for (Found& device : find_devices(DriverKind::cpu)) found.push_back(std::move(device));
    return found;
}

namespace {

// The device with this number, as find_devices() counts them. No driver of a CPU is loaded for one
// that comes before those.
std::optional<Found> device_at(int index) {
    auto at = static_cast<std::size_t>(index);
    for (const DriverKind kind : {DriverKind::gpu, DriverKind::cpu}) {
        const auto found = find_devices(kind);
        if (at < found.size()) return found[at];
        at -= found.size();
    }
    return std::nullopt;
}

// The other way round; none for a device of a driver that is not registered.
std::optional<int> number_of(const cl::Device& device) {
    int before = 0;
    for (const DriverKind kind : {DriverKind::gpu, DriverKind::cpu}) {
        const auto found = find_devices(kind);
        const auto same =
            std::ranges::find(found, device(), [](const Found& f) { return f.device(); });
        if (same != found.end()) return before + static_cast<int>(same - found.begin());
        before += static_cast<int>(found.size());
    }
    return std::nullopt;
}

std::string what_is_missing() {
    if (after_fork())
        return "OpenCL was loaded before fork(), and does not work after it; use this backend in "
               "the child alone, or after exec()";
    const auto drivers = registered_drivers();
    if (drivers.empty())
        return "no driver for OpenCL is registered, in /etc/OpenCL/vendors or where "
               "OCL_ICD_VENDORS says; install the GPU's, or PoCL for the CPU";
    for (const DriverKind kind : {DriverKind::gpu, DriverKind::cpu})
        for (const cl::Platform& platform : platforms(kind))
            return "OpenCL's driver '" + platform.getInfo<CL_PLATFORM_NAME>() +
                   "' has no device here of OpenCL 1.2 or later; PoCL needs a cache folder that it "
                   "may write to (POCL_CACHE_DIR), a GPU's driver the right to its device";
    return "the registered driver for OpenCL, '" + drivers.front().library +
           "', cannot be loaded, or is none; install it anew";
}

}  // namespace

int count_devices(std::string* why) {
    const auto count = static_cast<int>(find_devices().size());
    if (count == 0 && why) *why = what_is_missing();
    return count;
}

namespace {

// As BackendEntry::offered. Loads no driver for CPUs.
int count_gpus() {
    return static_cast<int>(find_devices(DriverKind::gpu).size());
}

std::string device_name(int index) {
    const auto found = device_at(index);
    if (!found) return {};
    // CPUs, and accelerators that are made of them, are better served by the host's own backends.
    if (!(found->device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_GPU)) return {};
    return found->device.getInfo<CL_DEVICE_NAME>();
}

class OpenClBackend final : public core::DeviceBackend {
  public:
    OpenClBackend(std::string name, std::unique_ptr<OpenClDevice> device)
        : DeviceBackend(std::move(name), "compute units", std::move(device)) {}

    Result<> usable() const override { return own_device().usable(); }
    core::Can can(const Cipher& cipher, int key_bits) const override {
        if (cipher.mode == Mode::xts && key_bits == 192)
            return {core::Can::no, "XTS has no AES-192 (IEEE 1619)"};
        if (!parallel_within_message(cipher.mode, cipher.direction))
            return {core::Can::batches,
                    "one message alone is sequential; give many as a batch, or use a CPU backend"};
        return {};
    }

    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) override {
        DAEL_LET(made, OpenClKeys::create(own_device(), keys));
        return std::unique_ptr<core::KeyTables>(std::move(made));
    }

    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        const auto* tables = dynamic_cast<const OpenClKeys*>(keys.tables);
        if (!tables || &tables->device() != &own_device())
            return core::made_for_another("opencl", "keys");
        if (cipher.mode == Mode::xaes256gcm)
            return modes::begin_xaes(*this, cipher, keys.list[key], start);
        return begin_pieces(own_device(), cipher.direction, *tables, key, keys.list[key],
                            start.first);
    }

  private:
    OpenClDevice& own_device() const { return static_cast<OpenClDevice&>(*device_); }
};

Result<std::unique_ptr<core::Backend>> open_backend(const core::BackendOptions& options) {
    std::shared_ptr<Context> context;
    cl::Device device;
    int index = options.index;
    if (options.context) {
        watch_for_forks();
        const cl::Context given(static_cast<cl_context>(options.context), true);
        device = cl::Device(static_cast<cl_device_id>(options.device), true);
        const auto members = given.getInfo<CL_CONTEXT_DEVICES>();
        if (std::ranges::find(members, device(), &cl::Device::get) == members.end())
            return Error{Code::invalid_argument,
                         "opencl: the device is none of the context's; give one that is"};
        context = Context::of(given);
        index = number_of(device).value_or(index);
    } else {
        const auto found = device_at(index);
        if (!found) return Error{Code::backend_absent, "opencl: the device has gone"};
        device = found->device;
        DAEL_LET(shared, Context::of(device));
        context = std::move(shared);
    }
    DAEL_LET(opened, OpenClDevice::open(std::move(context), std::move(device), options.form));
    return std::unique_ptr<core::Backend>(
        std::make_unique<OpenClBackend>("opencl:" + std::to_string(index), std::move(opened)));
}

// Each layout of tables; who has no room for one says so when it is opened.
std::vector<std::string> forms() {
    return {"tables=4,teams=4", "tables=2,teams=2,held=8", "tables=1", "tables=0,teams=1,groups=3"};
}

constexpr core::BackendEntry kEntry{
    .name = "opencl",
    .summary = "any GPU with an OpenCL driver: data in its memory, or host memory through it",
    .count = count_devices,
    .open = open_backend,
    .device_name = device_name,
    .offered = count_gpus,
    .forms = forms};

}  // namespace
}  // namespace dael::opencl

namespace dael::backends {

extern const core::BackendEntry opencl;
const core::BackendEntry opencl = dael::opencl::kEntry;

}  // namespace dael::backends
