// SPDX-License-Identifier: Apache-2.0
// One device of an OpenCL platform as a core::Device: kernels over its memory (memory.hpp).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/opencl/batch.hpp"
#include "backends/opencl/drivers.hpp"
#include "backends/opencl/ends.hpp"
#include "backends/opencl/keys.hpp"
#include "backends/opencl/memory.hpp"
#include "backends/opencl/programs.hpp"
#include "backends/opencl/tuning.hpp"
#include "core/device.hpp"
#include "core/known_answers.hpp"

namespace dael::opencl {

// An argument that the driver's copy of is overwritten after the launch.
template <class T>
struct Secret {
    const T& value;
};
template <class T>
Secret(const T&) -> Secret<T>;  // which clang 14 does not find by itself

class OpenClDevice final : public core::Device, public core::Forms, public core::Adoption {
  public:
    // `form`: as parse_tuning() takes it. Errors: device, invalid_argument; unsupported for a
    // device that is not little-endian or has no compiler.
    static Result<std::unique_ptr<OpenClDevice>> open(std::shared_ptr<Context> context,
                                                      cl::Device device, std::string_view form);

    const DeviceInfo& info() const override { return info_; }
    OpenClMemory& memory() override { return memory_; }
    OpenClOrder& order() override { return order_; }
    core::Forms* forms() override { return this; }
    core::Adoption* adoption() override { return this; }

    // modes.cpp; batch.cpp
    Result<> run(const Cipher& cipher, const core::KeyList& keys, const Message& message,
                 Stream stream) override;
    Result<std::unique_ptr<core::Prepared>> prepare(const Cipher& cipher, const core::KeyList& keys,
                                                    const Messages& messages) override;
    Result<> run(core::Prepared& prepared, Stream stream) override;

    // The forms are shapes of kernels (tuning.hpp).
    std::vector<std::string> list() const override;
    Result<> use(const std::string& form) override;
    std::string in_use() const override { return to_string(tuning()); }

    core::NativeHandles native() const override {
        return {(*context_)(), device_(), order_.own()()};
    }
    Result<DeviceOut> adopt(void* native_buffer) override { return memory_.adopt(native_buffer); }
    Result<> adopt_shared(void* memory, std::size_t size) override;
    Result<> forget(const void* address) override { return memory_.forget(address); }
    Result<Stream> adopt_queue(void* native_queue) override;

    // For the other files of this backend.

    const cl::Context& context() const { return **context_; }
    Programs& programs() { return programs_; }
    const Limits& limits() const { return limits_; }
    unsigned compute_units() const { return static_cast<unsigned>(info_.multiprocessors); }
    Tuning tuning() const;
    // As core::Backend::usable() has it.
    Result<> usable() const;
    // Whether these programs compute AES here: they are asked once in a process. Errors: device,
    // also where others computed wrongly.
    Result<> believe(const Cipher& cipher, int rounds, const Programs::Variant& variant);

    // A kernel of a unit for these rounds and this direction of the cipher, in this shape.
    Result<Kernel*> kernel(const std::string& unit, const std::string& entry, int rounds,
                           bool inverse, const Tuning& shape, const std::string& more = {});
    Result<Kernel*> tag_kernel(const std::string& entry, int rounds);
    // Work-groups for `teams` teams' worth of work: few are spread over many compute units.
    unsigned groups_for(std::uint64_t teams, const Tuning& tuning) const;
    // For messages of which each keeps a work-item busy: not spread any further.
    unsigned groups_for_items(std::uint64_t items, const Tuning& tuning) const;
    // Launches `groups` work-groups of `teams` teams; the arguments in the kernel's order: Region,
    // cl::Buffer, plain data by value, Secret. Its end goes to `ends`, where there are some.
    template <class... Arguments>
    Result<> launch(Ends* ends, Kernel& kernel, const cl::CommandQueue& queue, unsigned groups,
                    unsigned teams, const Arguments&... arguments);

    // Messages' parts in one pair of buffers, as modes.cpp and xts.cpp launch them.
    struct Part;
    struct BlocksKernels {
        Kernel *blocks, *save;  // the latter where it is in place
    };
    Result<BlocksKernels> blocks_kernels(const Cipher& cipher, int rounds, const Part& part,
                                         const Tuning& tuning);
    Result<> run_blocks(Ends* ends, const Cipher& cipher, const KeyArgument& key, const Part& part,
                        const Tuning& tuning, const cl::CommandQueue& queue);
    Result<> run_stream(Ends* ends, const KeyArgument& key, const Message& message,
                        const Tuning& tuning, const cl::CommandQueue& queue);
    // For the tweaks, whole sectors, and a last one that is shorter; null: none are.
    struct XtsKernels {
        Kernel *tweaks = nullptr, *sectors = nullptr, *rest = nullptr;
    };
    Result<XtsKernels> xts_kernels(const Cipher& cipher, int rounds, const Message& message,
                                   const Tuning& tuning);
    Result<> run_xts(Ends* ends, const Cipher& cipher, const KeyArgument& key,
                     const Message& message, const Tuning& tuning, const cl::CommandQueue& queue);
    Result<std::unique_ptr<core::Prepared>> prepare_xts(const Cipher& cipher,
                                                        const OpenClKeys& keys,
                                                        std::span<const Message> messages);
    // gcm.cpp: GCM, and counter mode with several keys.
    Result<std::unique_ptr<core::Prepared>> prepare_gcm(const Cipher& cipher,
                                                        const OpenClKeys& keys,
                                                        std::span<const Message> messages);

  private:
    OpenClDevice(std::shared_ptr<Context> context, cl::Device device, Limits limits, Tuning tuning,
                 DeviceInfo info);

    const std::shared_ptr<Context> context_;
    const cl::Device device_;
    const Limits limits_;
    const DeviceInfo info_;
    OpenClOrder order_;
    OpenClMemory memory_;
    Programs programs_;
    mutable std::mutex mutex_;  // guards what follows
    Tuning tuning_;
    std::set<std::pair<unsigned, std::string>> believed_;
    core::Heard heard_;
};

// What one launch can reach: one message, or a list in device memory, between the same two buffers.
struct OpenClDevice::Part {
    Region in, out;
    Segment one{};
    std::uint64_t units = 0;
    bool keystream = false;           // there is no input
    bool in_place = false;            // and chained
    std::vector<Segment> segments{};  // until they are uploaded
    std::uint32_t count = 0;
    unsigned groups = 1;
    cl::Buffer list{}, ends{};
};

// Every device, by its driver: those of drivers for GPUs come first, so that their numbers are the
// same whether the others' are loaded or not.
struct Found {
    cl::Platform platform;
    cl::Device device;
};
std::vector<Found> find_devices(DriverKind kind);
std::vector<Found> find_devices();

// How many there are; 0 with the reason.
int count_devices(std::string* why);

namespace detail {

inline cl_int set_argument(cl::Kernel& kernel, cl_uint index, const cl::Buffer& buffer) {
    const cl_mem handle = buffer();
    return clSetKernelArg(kernel(), index, sizeof handle, &handle);
}
inline cl_int set_argument(cl::Kernel& kernel, cl_uint index, const Region& region) {
    if (region.shared) return clSetKernelArgSVMPointer(kernel(), index, region.shared);
    return set_argument(kernel, index, region.buffer);
}
template <class T>
cl_int set_argument(cl::Kernel& kernel, cl_uint index, const Secret<T>& secret) {
    return clSetKernelArg(kernel(), index, sizeof(T), &secret.value);
}
template <class T>
requires std::is_trivially_copyable_v<T> cl_int set_argument(cl::Kernel& kernel, cl_uint index,
                                                             const T& value) {
    return clSetKernelArg(kernel(), index, sizeof value, &value);
}

template <class T>
void clear_argument(cl::Kernel&, cl_uint, const T&) {}
template <class T>
void clear_argument(cl::Kernel& kernel, cl_uint index, const Secret<T>&) {
    const T zeros{};
    (void)clSetKernelArg(kernel(), index, sizeof zeros, &zeros);
}

}  // namespace detail

template <class... Arguments>
Result<> OpenClDevice::launch(Ends* ends, Kernel& kernel, const cl::CommandQueue& queue,
                              unsigned groups, unsigned teams, const Arguments&... arguments) {
    if (after_fork()) return fork_failure();
    const std::lock_guard lock(kernel.mutex);
    cl_uint index = 0;
    cl_int status = CL_SUCCESS;
    ((status =
          status == CL_SUCCESS ? detail::set_argument(kernel.handle, index, arguments) : status,
      ++index),
     ...);
    const char* call = "clSetKernelArg";
    cl::Event end;
    if (ends) ends->make_room();
    if (status == CL_SUCCESS) {
        call = "clEnqueueNDRangeKernel";
        status = queue.enqueueNDRangeKernel(kernel.handle, cl::NullRange,
                                            {kLanes, std::size_t{groups} * teams}, {kLanes, teams},
                                            nullptr, ends ? &end : nullptr);
    }
    index = 0;
    (detail::clear_argument(kernel.handle, index++, arguments), ...);
    DAEL_TRY(checked(status, call));
    if (ends) ends->add(std::move(end));
    return checked(queue.flush(), "clFlush");
}

}  // namespace dael::opencl
