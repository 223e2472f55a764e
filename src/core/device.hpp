// SPDX-License-Identifier: Apache-2.0
// A processor with memory of its own, as the pipeline sees it. Everything but allocation and `wait`
// is asynchronous and ordered by streams; all calls may come from any thread. Errors name the
// driver call that failed; a failed call leaves the process and other devices usable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <daelstrom/keyed.hpp>

#include "core/backend.hpp"

namespace dael::core {

struct DeviceInfo {
    std::string name;          // "NVIDIA H200"
    std::string architecture;  // "sm_90"
    std::uint64_t memory = 0;  // bytes in all
    int multiprocessors = 0;
    std::string driver;          // driver and runtime: "580.82, CUDA 13.0"
    bool shared_memory = false;  // whether memory of the host can be adopted (OpenCL's SVM)
};

// The driver's own objects behind a device, for callers who share theirs; null where a device has
// none. OpenCL: cl_context, cl_device_id, cl_command_queue.
struct NativeHandles {
    void* context = nullptr;
    void* device = nullptr;
    void* queue = nullptr;
};

// Device events mark a point of a stream.
struct Event {
    void* handle = nullptr;
};

// A batch made ready in device memory: many messages, one launch. Made by Device::prepare.
class PreparedBatch {
  public:
    virtual ~PreparedBatch() = default;
};

// A batch of messages with its descriptors and workspace in device memory. Its keys must outlive
// it, and it the work that it was used for. One run at a time.
class PreparedMessages {
  public:
    virtual ~PreparedMessages() = default;
    // Device memory, one for each message in order: a Code, ok or authentication, as an int. Valid
    // once a run has ended, and its outcome is good.
    virtual const std::uint32_t* results() const = 0;
    // Of a run that has been waited for: a failure that the wait may have kept silent about.
    virtual Result<> outcome() const { return {}; }
};
class PreparedGcm : public PreparedMessages {};
// With a key for each message, outside GCM.
class PreparedKeyed : public PreparedMessages {};

class Device {
  public:
    virtual ~Device() = default;

    virtual const DeviceInfo& info() const = 0;

    // Transforms one segment of device memory: launches on the stream and returns. No allocation,
    // no synchronisation (opencl: but for the first use of a kernel, which compiles it, and of
    // scratch memory on a stream). CBC, CFB and OFB that cannot be parallelised are refused
    // (Code::unsupported).
    virtual Result<> run(const Operation& operation, const Segment& segment, Stream stream) = 0;

    // Many independent segments of device memory in one launch. `prepare` allocates and copies the
    // descriptors (synchronous); `run` may then be repeated with any key, without allocation. The
    // batch must outlive the work that it was used for.
    virtual Result<std::unique_ptr<PreparedBatch>> prepare(Mode mode, Direction direction,
                                                           std::span<const Segment> segments) = 0;
    virtual Result<> run(const Operation& operation, const PreparedBatch& batch, Stream stream) = 0;

    // Whether a list of messages may lie in device memory, with pointers in it.
    virtual bool reads_lists() const { return true; }

    // GCM. Keys are expanded into device memory, synchronously. prepare_gcm takes descriptors from
    // the host, whose in, out, aad and tag are device pointers, or ones that lie in device memory
    // and are read when the batch runs. gcm() launches and returns, without allocation; opening
    // verifies a message before it writes its plaintext.
    virtual Result<std::unique_ptr<PreparedKeys>> prepare_keys(std::span<const Key> keys);
    virtual Result<std::unique_ptr<PreparedGcm>> prepare_gcm(const PreparedKeys& keys,
                                                             std::span<const GcmSegment> segments);
    virtual Result<std::unique_ptr<PreparedGcm>> prepare_gcm(const PreparedKeys& keys,
                                                             const GcmMessage* device_messages,
                                                             std::uint32_t count,
                                                             std::size_t tag_size);
    virtual Result<> gcm(Direction direction, const PreparedGcm& batch, Stream stream);
    // One message of host memory in pieces. The keys must outlive it.
    virtual Result<std::unique_ptr<GcmStream>> gcm_stream(Direction direction,
                                                          const PreparedKeys& keys,
                                                          std::uint32_t key,
                                                          std::span<const std::uint8_t> iv);

    // CBC encryption, each message under a key of its own; otherwise as prepare_gcm and gcm. A
    // message of a list in device memory that cannot be done has a result that says so, and the
    // others are done.
    virtual Result<std::unique_ptr<PreparedKeyed>> prepare_cbc_encrypt(
        const PreparedKeys& keys, std::span<const KeyedMessage> messages);
    virtual Result<std::unique_ptr<PreparedKeyed>> prepare_cbc_encrypt(
        const PreparedKeys& keys, const KeyedMessage* device_messages, std::uint32_t count);
    virtual Result<> cbc_encrypt(const PreparedKeyed& batch, Stream stream);

    // XTS over one segment of device memory (see XtsOperation): launches and returns, without
    // allocation or synchronisation.
    virtual Result<> xts(const XtsOperation& operation, const Segment& segment, Stream stream);

    // The shapes that this device's kernels can have, for calibration to try: the first is the
    // default. None where there is no choice. A shape holds for work that is launched after it. Only
    // these may be chosen here, where the choice may come from a file: another may be slower, or
    // tell more of what it looks up.
    virtual std::vector<std::string> shapes() const { return {}; }
    virtual Result<> use_shape(const std::string& shape);
    virtual std::string shape() const { return {}; }  // in use
    // Of the tables that kernels use: "128 KiB", "64 KiB", "32 KiB".
    virtual std::string layout() const { return {}; }

    // Memory that the caller has from the driver itself, where it is not named by address: it gets
    // one, or has one and becomes known, until it is forgotten.
    virtual Result<DeviceOut> adopt(void* native_buffer);
    virtual Result<> adopt_shared(void* memory, std::size_t size);
    virtual Result<> forget(const void* address);
    virtual Result<Stream> adopt_queue(void* native_queue);  // not retained
    virtual NativeHandles native() const { return {}; }

    // Memory. Device memory that held secrets is wiped by the caller before it is released.
    virtual Result<void*> allocate(std::size_t size) = 0;
    virtual void release(void* memory) noexcept = 0;
    virtual Result<void*> allocate_pinned(std::size_t size) = 0;
    virtual void release_pinned(void* memory) noexcept = 0;
    virtual Result<std::uint64_t> free_memory() = 0;  // bytes
    // Whether the device can copy from this host address at full speed without staging.
    virtual bool is_pinned(const void* host_memory) = 0;
    // Whether this device, of several of its kind, holds this device memory.
    virtual bool owns(const void* device_memory) {
        (void)device_memory;
        return true;
    }

    // Order.
    virtual Result<Stream> create_stream() = 0;
    // One whose events elapsed_ms() takes. With some drivers it is slower.
    virtual Result<Stream> create_timed_stream() { return create_stream(); }
    virtual void destroy_stream(Stream stream) noexcept = 0;
    virtual Result<Event> create_event() = 0;
    virtual void destroy_event(Event event) noexcept = 0;
    virtual Result<> record(Event event, Stream stream) = 0;  // what the stream has so far
    virtual Result<> wait(Stream stream, Event event) = 0;  // later work of the stream comes after
    virtual Result<> wait(Event event) = 0;                 // the calling thread waits
    virtual Result<> wait(Stream stream) = 0;               // the calling thread waits for all
    virtual Result<float> elapsed_ms(Event from, Event to) = 0;  // both recorded and done

    // Copies, asynchronous when the host memory is pinned.
    virtual Result<> copy_in(void* device_memory, const void* host_memory, std::size_t size,
                             Stream stream) = 0;
    virtual Result<> copy_out(void* host_memory, const void* device_memory, std::size_t size,
                              Stream stream) = 0;
    virtual Result<> copy_within(void* to, const void* from, std::size_t size, Stream stream) = 0;
    virtual Result<> fill(void* device_memory, std::uint8_t value, std::size_t size,
                          Stream stream) = 0;
};

}  // namespace dael::core
