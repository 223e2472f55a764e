// SPDX-License-Identifier: Apache-2.0
// One device of an OpenCL platform as a core::Device. Its memory is named by addresses of an
// AddressSpace; a Stream is an in-order cl_command_queue; null is the device's own queue.
#pragma once

#include <map>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/opencl/address_space.hpp"
#include "backends/opencl/context.hpp"
#include "backends/opencl/drivers.hpp"
#include "backends/opencl/ends.hpp"
#include "backends/opencl/programs.hpp"
#include "backends/opencl/tuning.hpp"
#include "backends/opencl/work.hpp"
#include "core/device.hpp"
#include "core/ghash_math.hpp"

namespace dael::opencl {

// An argument that the driver's copy of is overwritten after the launch.
template <class T>
struct Secret {
    const T& value;
};
template <class T>
Secret(const T&) -> Secret<T>;  // which clang 14 does not find by itself

class GcmBatch;
class GcmKeys;
struct GcmPart;
// Which of a batch's steps will be run: encryption alone for counter mode without tags, hashing
// alone for a message in pieces.
enum class GcmSteps { all, encryption, hashing };

class OpenClDevice final : public core::Device {
  public:
    // `shape`: as parse_tuning() takes it. Errors: device, invalid_argument; unsupported for a
    // device that is not little-endian or has no compiler.
    static Result<std::unique_ptr<OpenClDevice>> open(std::shared_ptr<Context> context,
                                                      cl::Device device, std::string_view shape);
    ~OpenClDevice() override;

    const core::DeviceInfo& info() const override { return info_; }

    Result<> run(const core::Operation& operation, const core::Segment& segment,
                 Stream stream) override;
    Result<std::unique_ptr<core::PreparedBatch>> prepare(
        Mode mode, Direction direction, std::span<const core::Segment> segments) override;
    Result<> run(const core::Operation& operation, const core::PreparedBatch& batch,
                 Stream stream) override;
    Result<> xts(const core::XtsOperation& operation, const core::Segment& segment,
                 Stream stream) override;  // opencl_xts.cpp

    // GCM: opencl_gcm.cpp. Lists of messages must lie on the host.
    bool reads_lists() const override { return false; }
    Result<std::unique_ptr<core::PreparedKeys>> prepare_keys(std::span<const Key> keys) override;
    Result<std::unique_ptr<core::PreparedGcm>> prepare_gcm(
        const core::PreparedKeys& keys, std::span<const core::GcmSegment> segments) override;
    Result<std::unique_ptr<core::PreparedGcm>> prepare_gcm(const core::PreparedKeys& keys,
                                                           const GcmMessage* device_messages,
                                                           std::uint32_t count,
                                                           std::size_t tag_size) override;
    Result<> gcm(Direction direction, const core::PreparedGcm& batch, Stream stream) override;
    // opencl_gcm_stream.cpp
    Result<std::unique_ptr<core::GcmStream>> gcm_stream(Direction direction,
                                                        const core::PreparedKeys& keys,
                                                        std::uint32_t key,
                                                        std::span<const std::uint8_t> iv) override;

    // CBC encryption with a key for each message: opencl_keyed.cpp. Lists as for GCM.
    Result<std::unique_ptr<core::PreparedKeyed>> prepare_cbc_encrypt(
        const core::PreparedKeys& keys, std::span<const KeyedMessage> messages) override;
    Result<std::unique_ptr<core::PreparedKeyed>> prepare_cbc_encrypt(
        const core::PreparedKeys& keys, const KeyedMessage* device_messages,
        std::uint32_t count) override;
    Result<> cbc_encrypt(const core::PreparedKeyed& batch, Stream stream) override;

    std::vector<std::string> shapes() const override;
    Result<> use_shape(const std::string& shape) override;
    std::string shape() const override;
    std::string layout() const override;

    // Memory, order, copies: opencl_memory.cpp.
    Result<void*> allocate(std::size_t size) override;
    void release(void* memory) noexcept override;
    Result<void*> allocate_pinned(std::size_t size) override {
        return context_->allocate_pinned(size, setup_);
    }
    void release_pinned(void* memory) noexcept override {
        context_->release_pinned(memory, setup_);
    }
    Result<std::uint64_t> free_memory() override;
    bool is_pinned(const void* host_memory) override {
        return context_->is_pinned(host_memory, 1);
    }
    bool owns(const void* device_memory) override { return addresses_.holds(device_memory); }

    Result<Stream> create_stream() override { return create_stream(0); }
    Result<Stream> create_timed_stream() override {
        return create_stream(CL_QUEUE_PROFILING_ENABLE);
    }
    void destroy_stream(Stream stream) noexcept override;
    Result<core::Event> create_event() override;
    void destroy_event(core::Event event) noexcept override;
    Result<> record(core::Event event, Stream stream) override;
    Result<> wait(Stream stream, core::Event event) override;
    Result<> wait(core::Event event) override;
    Result<> wait(Stream stream) override;
    Result<float> elapsed_ms(core::Event from, core::Event to) override;

    Result<> copy_in(void* device_memory, const void* host_memory, std::size_t size,
                     Stream stream) override;
    Result<> copy_out(void* host_memory, const void* device_memory, std::size_t size,
                      Stream stream) override;
    Result<> copy_within(void* to, const void* from, std::size_t size, Stream stream) override;
    Result<> fill(void* device_memory, std::uint8_t value, std::size_t size,
                  Stream stream) override;

    // The caller's own memory: a buffer of this context, or shared virtual memory.
    Result<DeviceOut> adopt(void* native_buffer) override;
    Result<> adopt_shared(void* memory, std::size_t size) override;
    Result<> forget(const void* address) override;
    Result<Stream> adopt_queue(void* native_queue) override;
    core::NativeHandles native() const override { return {(*context_)(), device_(), queue_()}; }

    Programs& programs() { return programs_; }

  private:
    OpenClDevice(std::shared_ptr<Context> context, cl::Device device, Limits limits, Tuning tuning,
                 core::DeviceInfo info);
    Result<> create_queues();

    Tuning tuning() const;
    cl::CommandQueue queue_of(Stream stream) const;
    Result<cl::CommandQueue> create_queue(cl_command_queue_properties properties = 0) const;
    Result<Stream> create_stream(cl_command_queue_properties properties);
    // A buffer with this content, ready when it returns.
    Result<cl::Buffer> upload(const void* content, std::size_t size) const;

    // A kernel of a unit for these rounds and this direction of the cipher, in the tuning's shape.
    Result<Kernel*> kernel(const std::string& unit, const std::string& entry, int rounds,
                           bool inverse, const Tuning& tuning, const std::string& more = {});
    // Work-groups for `teams` teams' worth of work: few are spread over many compute units.
    unsigned groups_for(std::uint64_t teams, const Tuning& tuning) const;
    // For messages of which each keeps a work-item busy: not spread any further.
    unsigned groups_for_items(std::uint64_t items, const Tuning& tuning) const;
    // Launches `groups` work-groups of `teams` teams; the arguments in the kernel's order: Place,
    // cl::Buffer, plain data by value, Secret.
    template <class... Arguments>
    Result<> launch(Kernel& kernel, const cl::CommandQueue& queue, unsigned groups, unsigned teams,
                    const Arguments&... arguments) {
        return launch_with(nullptr, kernel, queue, groups, teams, arguments...);
    }
    // The same, for a batch.
    template <class... Arguments>
    Result<> launch(Ends& ends, Kernel& kernel, const cl::CommandQueue& queue, unsigned groups,
                    unsigned teams, const Arguments&... arguments) {
        cl::Event end;
        DAEL_TRY(launch_with(&end, kernel, queue, groups, teams, arguments...));
        ends.add(std::move(end));
        return {};
    }
    template <class... Arguments>
    Result<> launch_with(cl::Event* end, Kernel& kernel, const cl::CommandQueue& queue,
                         unsigned groups, unsigned teams, const Arguments&... arguments);

    class Prepared;
    struct Part;
    Result<> run_blocks(const core::Operation& operation, const Part& part, const Tuning& tuning,
                        Stream stream);
    Result<> run_stream(const core::Operation& operation, const core::Segment& segment,
                        const Tuning& tuning, Stream stream);

    class KeyedBatch;
    class PiecewiseGcm;
    // Of a batch of messages with a key each: the keys, if they are this device's.
    Result<const GcmKeys*> keys_for_batch(const core::PreparedKeys& prepared,
                                          std::size_t count) const;
    // Device memory for the results of `count` messages, every byte set to `value`.
    Result<std::uint32_t*> allocate_results(std::size_t count, std::uint8_t value);
    Result<Kernel*> tag_kernel(const std::string& entry, int rounds);
    // H of a key. Wipe it.
    Result<core::FieldElement> hash_subkey(const GcmKeys& keys, std::uint32_t key) const;
    Result<std::unique_ptr<GcmBatch>> make_gcm(const core::PreparedKeys& keys,
                                               std::span<const core::GcmSegment> segments,
                                               GcmSteps steps);
    Result<> add_message(GcmBatch& batch, const core::GcmSegment& segment, std::uint32_t result);
    Result<> finish_part(GcmPart& part, const Tuning& tuning, GcmSteps steps);
    // The steps of a run: GHASH into the part's sums, and counter mode.
    Result<> hash(const GcmBatch& batch, const GcmPart& part, bool opening,
                  const cl::CommandQueue& queue);
    Result<> crypt(const GcmBatch& batch, const GcmPart& part, bool opening,
                   const cl::CommandQueue& queue);

    // Device memory that launches on one queue pass on to one another: save_before() to blocks(),
    // xts_tweaks() to xts(). Whoever holds it has launched all of them before the next one does.
    struct Scratch {
        cl::CommandQueue queue;  // kept, so that no other gets its address
        cl::Buffer buffer;
        std::size_t size = 0;
        std::mutex mutex;  // guards the others, and is held from the first launch to the last
    };
    struct HeldScratch {
        std::unique_lock<std::mutex> lock;
        cl::Buffer buffer;
    };
    Result<HeldScratch> scratch_of(const cl::CommandQueue& queue, std::size_t size);

    const std::shared_ptr<Context> context_;
    const cl::Device device_;
    cl::CommandQueue queue_, setup_;  // the default stream's; for what must be done at once
    const Limits limits_;
    const core::DeviceInfo info_;
    AddressSpace addresses_;
    Programs programs_;
    mutable std::mutex mutex_;  // guards what follows
    Tuning tuning_;
    std::map<cl_command_queue, Scratch> scratch_;
    std::map<const void*, std::size_t> allocated_;
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
// As BackendEntry::offered. Loads no driver for CPUs.
int count_gpus();

// As BackendEntry::device_name.
std::string device_name(int index);

// The backend around one device.
Result<std::unique_ptr<core::Backend>> open_backend(const core::BackendOptions& options);

namespace detail {

inline cl_int set_argument(cl::Kernel& kernel, cl_uint index, const cl::Buffer& buffer) {
    const cl_mem handle = buffer();
    return clSetKernelArg(kernel(), index, sizeof handle, &handle);
}
inline cl_int set_argument(cl::Kernel& kernel, cl_uint index, const Place& place) {
    if (place.shared) return clSetKernelArgSVMPointer(kernel(), index, place.shared);
    return set_argument(kernel, index, place.buffer);
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
Result<> OpenClDevice::launch_with(cl::Event* end, Kernel& kernel, const cl::CommandQueue& queue,
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
    if (status == CL_SUCCESS) {
        call = "clEnqueueNDRangeKernel";
        status = queue.enqueueNDRangeKernel(kernel.handle, cl::NullRange,
                                            {kLanes, std::size_t{groups} * teams}, {kLanes, teams},
                                            nullptr, end);
    }
    index = 0;
    (detail::clear_argument(kernel.handle, index++, arguments), ...);
    DAEL_TRY(checked(status, call));
    return checked(queue.flush(), "clFlush");
}

}  // namespace dael::opencl
