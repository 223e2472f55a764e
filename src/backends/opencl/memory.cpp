// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/memory.hpp"

#include <algorithm>

#include "backends/opencl/kept.hpp"
#include "backends/opencl/room.hpp"

namespace dael::opencl {
namespace {

// An event of the caller's, which one thread may record while another waits for it.
class Recorded {
  public:
    static Recorded& of(Event event) { return *static_cast<Recorded*>(event.handle); }
    // As it is now; null where it was never recorded.
    cl::Event get() {
        const std::lock_guard lock(mutex_);
        return event_;
    }
    void set(cl::Event event) {
        const std::lock_guard lock(mutex_);
        std::swap(event_, event);  // the one before goes after the lock has
    }

  private:
    std::mutex mutex_;  // guards what follows
    cl::Event event_;
};

}  // namespace

Result<> OpenClOrder::create_queues() {
    DAEL_LET(own, create_queue(CL_QUEUE_PROFILING_ENABLE));
    DAEL_LET(setup, create_queue(0));
    own_ = own;
    setup_ = setup;
    return {};
}

Result<cl::CommandQueue> OpenClOrder::create_queue(cl_command_queue_properties properties) const {
    cl_int status = CL_SUCCESS;
    const cl::CommandQueue queue(**context_, device_, properties, &status);
    DAEL_TRY(checked(status, "clCreateCommandQueue"));
    return queue;
}

cl::CommandQueue OpenClOrder::queue_of(Stream stream) const {
    if (!stream.handle) return own_;
    return cl::CommandQueue(static_cast<cl_command_queue>(stream.handle), true);
}

OpenClOrder::~OpenClOrder() {
    if (own_()) (void)own_.finish();
}

Result<OpenClOrder::HeldScratch> OpenClOrder::scratch_of(const cl::CommandQueue& queue,
                                                         std::size_t size) {
    if (after_fork()) return fork_failure();
    Scratch& scratch = [&]() -> Scratch& {
        const std::lock_guard lock(mutex_);
        return scratch_[queue()];
    }();
    std::unique_lock lock(scratch.mutex);
    if (scratch.size < size) {
        cl_int status = CL_SUCCESS;
        // Work that uses the old one keeps it.
        scratch.buffer = cl::Buffer(**context_, CL_MEM_READ_WRITE, size, nullptr, &status);
        scratch.size = status == CL_SUCCESS ? size : 0;
        DAEL_TRY(checked(status, "clCreateBuffer"));
        scratch.queue = queue;
    }
    return HeldScratch{std::move(lock), scratch.buffer};
}

Result<Stream> OpenClOrder::create_stream(cl_command_queue_properties properties) {
    DAEL_LET(queue, create_queue(properties));
    DAEL_TRY(checked(clRetainCommandQueue(queue()), "clRetainCommandQueue"));
    return Stream{queue()};
}

void OpenClOrder::destroy_stream(Stream stream) noexcept {
    if (after_fork()) return;
    const auto queue = static_cast<cl_command_queue>(stream.handle);
    (void)clFinish(queue);
    {
        const std::lock_guard lock(mutex_);
        scratch_.erase(queue);
    }
    (void)clReleaseCommandQueue(queue);
}

Result<Event> OpenClOrder::create_event() {
    return Event{new Recorded};
}

void OpenClOrder::destroy_event(Event event) noexcept {
    delete &Recorded::of(event);
}

Result<> OpenClOrder::record(Event event, Stream stream) {
    if (after_fork()) return fork_failure();
    const cl::CommandQueue queue = queue_of(stream);
    cl::Event marker;
    DAEL_TRY(
        checked(queue.enqueueMarkerWithWaitList(nullptr, &marker), "clEnqueueMarkerWithWaitList"));
    Recorded::of(event).set(std::move(marker));
    return checked(queue.flush(), "clFlush");
}

Result<> OpenClOrder::wait(Stream stream, Event event) {
    if (after_fork()) return fork_failure();
    const std::vector<cl::Event> events{Recorded::of(event).get()};
    if (!events.front()()) return {};  // never recorded: there is nothing to wait for
    return checked(queue_of(stream).enqueueBarrierWithWaitList(&events),
                   "clEnqueueBarrierWithWaitList");
}

Result<> OpenClOrder::wait(Event event) {
    if (after_fork()) return fork_failure();
    const cl::Event recorded = Recorded::of(event).get();
    if (!recorded()) return {};
    return checked(recorded.wait(), "clWaitForEvents");
}

Result<bool> OpenClOrder::is_done(Event event) {
    if (after_fork()) return fork_failure();
    const cl::Event recorded = Recorded::of(event).get();
    if (!recorded()) return true;
    cl_int fault = CL_SUCCESS;
    const cl_int status = recorded.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(&fault);
    DAEL_TRY(checked(fault, "clGetEventInfo"));
    if (status < 0) DAEL_TRY(checked(status, "the work before an event"));
    return status == CL_COMPLETE;
}

Result<> OpenClOrder::wait(Stream stream) {
    return checked(queue_of(stream).finish(), "clFinish");
}

Result<float> OpenClOrder::elapsed_ms(Event from, Event to) {
    if (after_fork()) return fork_failure();
    const cl::Event before = Recorded::of(from).get(), after = Recorded::of(to).get();
    cl_int first = CL_SUCCESS, second = CL_SUCCESS;
    const cl_ulong begin = before.getProfilingInfo<CL_PROFILING_COMMAND_END>(&first);
    const cl_ulong end = after.getProfilingInfo<CL_PROFILING_COMMAND_END>(&second);
    DAEL_TRY(checked(first != CL_SUCCESS ? first : second, "clGetEventProfilingInfo"));
    return static_cast<float>(static_cast<double>(end - std::min(begin, end)) * 1e-6);
}

Result<cl::Buffer> OpenClMemory::upload(const void* content, std::size_t size) const {
    cl_int status = CL_SUCCESS;
    const cl::Buffer buffer(**context_, CL_MEM_READ_ONLY, size, nullptr, &status);
    DAEL_TRY(checked(status, "clCreateBuffer"));
    DAEL_TRY(checked(order_.setup().enqueueWriteBuffer(buffer, CL_TRUE, 0, size, content),
                     "clEnqueueWriteBuffer"));
    return buffer;
}

Result<void*> OpenClMemory::allocate(std::size_t size) {
    (void)retry_kept();
    cl_int status = CL_SUCCESS;
    const cl::Buffer buffer(**context_, CL_MEM_READ_WRITE, size, nullptr, &status);
    DAEL_TRY(checked(status, "clCreateBuffer"));
    // Drivers put off the allocation to the first use; a lack of memory is to be told here. (What
    // OpenCL has for that, clEnqueueMigrateMemObjects, crashes NVIDIA's driver 580 where threads do
    // it at once.)
    const cl::CommandQueue& setup = order_.setup();
    status = setup.enqueueFillBuffer<cl_uchar>(buffer, 0, 0, 1);
    if (status == CL_SUCCESS) status = setup.finish();
    if (status != CL_SUCCESS) {
        Error error = cl_failure(status, "clEnqueueFillBuffer");
        // To some drivers memory is one of the resources.
        if (status == CL_OUT_OF_RESOURCES) error.code = Code::out_of_memory;
        return error;
    }
    auto room = room_in(allocated_);
    auto address = addresses_.add(buffer, size);
    if (address) {
        room.key() = *address;
        room.mapped() = size;
        const std::lock_guard lock(mutex_);
        put(allocated_, std::move(room));
    }
    return address;
}

void OpenClMemory::release(void* memory) noexcept {
    if (after_fork()) return;
    {
        const std::lock_guard lock(mutex_);
        allocated_.erase(memory);  // before another allocation can have the address
    }
    (void)addresses_.remove(memory);
}

Result<std::uint64_t> OpenClMemory::free_memory() {
    if (after_fork()) return fork_failure();
    // OpenCL does not tell; what was allocated here is known.
    const std::lock_guard lock(mutex_);
    std::uint64_t taken = 0;
    for (const auto& [address, size] : allocated_) taken += size;
    return size_ - std::min(size_, taken);
}

Result<> OpenClMemory::copy_in(void* device_memory, const void* host_memory, std::size_t size,
                               Stream stream) {
    if (size == 0) return {};
    const auto to = addresses_.find(device_memory, size);
    if (!to) return to.error();
    const cl::CommandQueue queue = order_.queue_of(stream);
    // Memory that may go away before the copy is done is copied at once.
    const cl_bool blocking = context_->is_pinned(host_memory, size) ? CL_FALSE : CL_TRUE;
    if (to->shared)
        DAEL_TRY(checked(clEnqueueSVMMemcpy(queue(), blocking, to->address(), host_memory, size, 0,
                                            nullptr, nullptr),
                         "clEnqueueSVMMemcpy"));
    else
        DAEL_TRY(checked(clEnqueueWriteBuffer(queue(), to->buffer(), blocking, to->offset, size,
                                              host_memory, 0, nullptr, nullptr),
                         "clEnqueueWriteBuffer"));
    return checked(queue.flush(), "clFlush");
}

Result<> OpenClMemory::copy_out(void* host_memory, const void* device_memory, std::size_t size,
                                Stream stream) {
    if (size == 0) return {};
    const auto from = addresses_.find(device_memory, size);
    if (!from) return from.error();
    const cl::CommandQueue queue = order_.queue_of(stream);
    const cl_bool blocking = context_->is_pinned(host_memory, size) ? CL_FALSE : CL_TRUE;
    if (from->shared)
        DAEL_TRY(checked(clEnqueueSVMMemcpy(queue(), blocking, host_memory, from->address(), size,
                                            0, nullptr, nullptr),
                         "clEnqueueSVMMemcpy"));
    else
        DAEL_TRY(checked(clEnqueueReadBuffer(queue(), from->buffer(), blocking, from->offset, size,
                                             host_memory, 0, nullptr, nullptr),
                         "clEnqueueReadBuffer"));
    return checked(queue.flush(), "clFlush");
}

Result<> OpenClMemory::copy_within(void* to, const void* from, std::size_t size, Stream stream) {
    if (size == 0) return {};
    const auto target = addresses_.find(to, size), source = addresses_.find(from, size);
    if (!target) return target.error();
    if (!source) return source.error();
    const cl::CommandQueue queue = order_.queue_of(stream);
    if (target->shared && source->shared)
        DAEL_TRY(checked(clEnqueueSVMMemcpy(queue(), CL_FALSE, target->address(), source->address(),
                                            size, 0, nullptr, nullptr),
                         "clEnqueueSVMMemcpy"));
    else if (target->buffer() && source->buffer())
        DAEL_TRY(
            checked(clEnqueueCopyBuffer(queue(), source->buffer(), target->buffer(), source->offset,
                                        target->offset, size, 0, nullptr, nullptr),
                    "clEnqueueCopyBuffer"));
    else
        return Error{Code::unsupported,
                     "opencl: no copies between a buffer and shared virtual memory"};
    return checked(queue.flush(), "clFlush");
}

Result<> OpenClMemory::fill(void* device_memory, std::uint8_t value, std::size_t size,
                            Stream stream) {
    if (size == 0) return {};
    const auto to = addresses_.find(device_memory, size);
    if (!to) return to.error();
    const cl::CommandQueue queue = order_.queue_of(stream);
    if (to->shared)
        DAEL_TRY(checked(
            clEnqueueSVMMemFill(queue(), to->address(), &value, 1, size, 0, nullptr, nullptr),
            "clEnqueueSVMMemFill"));
    else
        DAEL_TRY(checked(clEnqueueFillBuffer(queue(), to->buffer(), &value, 1, to->offset, size, 0,
                                             nullptr, nullptr),
                         "clEnqueueFillBuffer"));
    return checked(queue.flush(), "clFlush");
}

Result<DeviceOut> OpenClMemory::adopt(void* native_buffer) {
    if (!native_buffer) return Error{Code::invalid_argument, "opencl: the buffer is null"};
    const cl::Buffer buffer(static_cast<cl_mem>(native_buffer), true);
    cl_int status = CL_SUCCESS;
    const std::size_t size = buffer.getInfo<CL_MEM_SIZE>(&status);
    DAEL_TRY(checked(status, "clGetMemObjectInfo"));
    if (buffer.getInfo<CL_MEM_CONTEXT>(&status)() != (*context_)())
        return Error{Code::invalid_argument,
                     "opencl: the buffer belongs to another context than the engine's"};
    // Kernels tell alignment by the offset in a buffer.
    const auto host = reinterpret_cast<std::uintptr_t>(buffer.getInfo<CL_MEM_HOST_PTR>());
    if ((buffer.getInfo<CL_MEM_FLAGS>() & CL_MEM_USE_HOST_PTR) && host % kBlockSize != 0)
        return Error{Code::invalid_argument,
                     "opencl: the buffer uses host memory that does not begin at a multiple of 16"};
    const auto address = addresses_.add(buffer, size);
    if (!address) return address.error();
    return DeviceOut{*address, size};
}

Result<> OpenClMemory::adopt_shared(void* memory, std::size_t size) {
    return addresses_.add_shared(memory, size);
}

Result<> OpenClMemory::forget(const void* address) {
    if (after_fork()) return fork_failure();
    {
        const std::lock_guard lock(mutex_);
        if (allocated_.contains(address))
            return Error{Code::invalid_argument,
                         "opencl: this memory was allocated here, not adopted; release it"};
    }
    if (addresses_.remove(address)) return {};
    return Error{Code::invalid_argument, "opencl: no memory was adopted that begins here"};
}

}  // namespace dael::opencl
