// SPDX-License-Identifier: Apache-2.0
// An OpenCL device's queues, and its memory, which is named by the addresses of an AddressSpace. A
// Stream is an in-order cl_command_queue; null is the device's own queue.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include <daelstrom/device.hpp>

#include "backends/opencl/address_space.hpp"
#include "backends/opencl/context.hpp"
#include "backends/opencl/work.hpp"

namespace dael::opencl {

class OpenClOrder final : public Order {
  public:
    OpenClOrder(std::shared_ptr<Context> context, cl::Device device)
        : context_(std::move(context)), device_(std::move(device)) {}
    ~OpenClOrder() override;
    Result<> create_queues();  // once, before anything else

    cl::CommandQueue queue_of(Stream stream) const;
    const cl::CommandQueue& own() const { return own_; }
    // For what must be done at once, whatever waits in other queues.
    const cl::CommandQueue& setup() const { return setup_; }

    // Device memory that launches on one queue pass on to one another: save_before() to blocks(),
    // xts_tweaks() to xts(). Whoever holds it has launched all of them before the next one does.
    struct HeldScratch {
        std::unique_lock<std::mutex> lock;
        cl::Buffer buffer;
    };
    Result<HeldScratch> scratch_of(const cl::CommandQueue& queue, std::size_t size);

    Result<Stream> create_stream() override { return create_stream(0); }
    Result<Stream> create_timed_stream() override {
        return create_stream(CL_QUEUE_PROFILING_ENABLE);
    }
    void destroy_stream(Stream stream) noexcept override;
    Result<Event> create_event() override;
    void destroy_event(Event event) noexcept override;
    Result<> record(Event event, Stream stream) override;
    Result<> wait(Stream stream, Event event) override;
    Result<> wait(Event event) override;
    Result<bool> is_done(Event event) override;
    Result<> wait(Stream stream) override;
    Result<float> elapsed_ms(Event from, Event to) override;

  private:
    Result<cl::CommandQueue> create_queue(cl_command_queue_properties properties) const;
    Result<Stream> create_stream(cl_command_queue_properties properties);

    struct Scratch {
        cl::CommandQueue queue;  // kept, so that no other gets its address
        cl::Buffer buffer;
        std::size_t size = 0;
        std::mutex mutex;  // guards the others, and is held from the first launch to the last
    };
    const std::shared_ptr<Context> context_;
    const cl::Device device_;
    cl::CommandQueue own_, setup_;
    std::mutex mutex_;  // guards what follows
    std::map<cl_command_queue, Scratch> scratch_;
};

class OpenClMemory final : public Memory {
  public:
    // `size`: of the device's memory, in bytes.
    OpenClMemory(std::shared_ptr<Context> context, OpenClOrder& order, std::uint64_t size)
        : context_(std::move(context)), order_(order), size_(size) {}

    // Errors: invalid_argument where not all of the bytes lie in one buffer.
    Result<Region> find(const void* address, std::uint64_t size) const {
        return addresses_.find(address, size);
    }
    // A buffer with this content, ready when it returns.
    Result<cl::Buffer> upload(const void* content, std::size_t size) const;

    // As core::Adoption has them.
    Result<DeviceOut> adopt(void* native_buffer);
    Result<> adopt_shared(void* memory, std::size_t size);
    Result<> forget(const void* address);

    Result<void*> allocate(std::size_t size) override;
    void release(void* memory) noexcept override;
    Result<void*> allocate_pinned(std::size_t size) override {
        return context_->allocate_pinned(size, order_.setup());
    }
    void release_pinned(void* memory) noexcept override {
        context_->release_pinned(memory, order_.setup());
    }
    Result<std::uint64_t> free_memory() override;
    bool is_pinned(const void* host_memory, std::size_t size) override {
        return context_->is_pinned(host_memory, size);
    }
    bool owns(const void* device_memory) override { return addresses_.holds(device_memory); }

    Result<> copy_in(void* device_memory, const void* host_memory, std::size_t size,
                     Stream stream) override;
    Result<> copy_out(void* host_memory, const void* device_memory, std::size_t size,
                      Stream stream) override;
    Result<> copy_within(void* to, const void* from, std::size_t size, Stream stream) override;
    Result<> fill(void* device_memory, std::uint8_t value, std::size_t size,
                  Stream stream) override;

  private:
    const std::shared_ptr<Context> context_;
    OpenClOrder& order_;
    const std::uint64_t size_;
    AddressSpace addresses_;
    std::mutex mutex_;  // guards what follows
    std::map<const void*, std::size_t> allocated_;
};

}  // namespace dael::opencl
