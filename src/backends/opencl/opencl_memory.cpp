// SPDX-License-Identifier: Apache-2.0
// An OpenCL device's memory, queues, events and copies.
#include <algorithm>

#include "backends/opencl/opencl_device.hpp"

namespace dael::opencl {
namespace {

cl::Event& event_of(core::Event event) {
    return *static_cast<cl::Event*>(event.handle);
}

}  // namespace

Result<> OpenClDevice::create_queues() {
    auto queue = create_queue(CL_QUEUE_PROFILING_ENABLE), setup = create_queue();
    if (!queue) return std::move(queue).error();
    if (!setup) return std::move(setup).error();
    queue_ = *queue;
    setup_ = *setup;
    return {};
}

Result<cl::CommandQueue> OpenClDevice::create_queue(cl_command_queue_properties properties) const {
    cl_int status = CL_SUCCESS;
    const cl::CommandQueue queue(**context_, device_, properties, &status);
    DAEL_TRY(checked(status, "clCreateCommandQueue"));
    return queue;
}

cl::CommandQueue OpenClDevice::queue_of(Stream stream) const {
    if (!stream.handle) return queue_;
    return cl::CommandQueue(static_cast<cl_command_queue>(stream.handle), true);
}

Result<cl::Buffer> OpenClDevice::upload(const void* content, std::size_t size) const {
    cl_int status = CL_SUCCESS;
    const cl::Buffer buffer(**context_, CL_MEM_READ_ONLY, size, nullptr, &status);
    DAEL_TRY(checked(status, "clCreateBuffer"));
    DAEL_TRY(checked(setup_.enqueueWriteBuffer(buffer, CL_TRUE, 0, size, content),
                     "clEnqueueWriteBuffer"));
    return buffer;
}

Result<void*> OpenClDevice::allocate(std::size_t size) {
    cl_int status = CL_SUCCESS;
    const cl::Buffer buffer(**context_, CL_MEM_READ_WRITE, size, nullptr, &status);
    DAEL_TRY(checked(status, "clCreateBuffer"));
    // Drivers put off the allocation to the first use; a lack of memory is to be told here. (What
    // OpenCL has for that, clEnqueueMigrateMemObjects, crashes NVIDIA's driver 580 where threads do
    // it at once.)
    status = setup_.enqueueFillBuffer<cl_uchar>(buffer, 0, 0, 1);
    if (status == CL_SUCCESS) status = setup_.finish();
    if (status != CL_SUCCESS) {
        Error error = cl_failure(status, "clEnqueueFillBuffer");
        // To some drivers memory is one of the resources.
        if (status == CL_OUT_OF_RESOURCES) error.code = Code::out_of_memory;
        return error;
    }
    auto address = addresses_.add(buffer, size);
    if (address) {
        const std::lock_guard lock(mutex_);
        allocated_[*address] = size;
    }
    return address;
}

void OpenClDevice::release(void* memory) noexcept {
    if (after_fork()) return;
    {
        const std::lock_guard lock(mutex_);
        allocated_.erase(memory);  // before another allocation can have the address
    }
    (void)addresses_.remove(memory);
}

Result<std::uint64_t> OpenClDevice::free_memory() {
    if (after_fork()) return fork_failure();
    // OpenCL does not tell; what was allocated here is known.
    const std::lock_guard lock(mutex_);
    std::uint64_t taken = 0;
    for (const auto& [address, size] : allocated_) taken += size;
    return info_.memory - std::min(info_.memory, taken);
}

Result<Stream> OpenClDevice::create_stream(cl_command_queue_properties properties) {
    auto queue = create_queue(properties);
    if (!queue) return std::move(queue).error();
    DAEL_TRY(checked(clRetainCommandQueue((*queue)()), "clRetainCommandQueue"));
    return Stream{(*queue)()};
}

void OpenClDevice::destroy_stream(Stream stream) noexcept {
    if (after_fork()) return;
    const auto queue = static_cast<cl_command_queue>(stream.handle);
    (void)clFinish(queue);
    {
        const std::lock_guard lock(mutex_);
        scratch_.erase(queue);
    }
    (void)clReleaseCommandQueue(queue);
}

Result<core::Event> OpenClDevice::create_event() {
    return core::Event{new cl::Event};
}

void OpenClDevice::destroy_event(core::Event event) noexcept {
    delete &event_of(event);
}

Result<> OpenClDevice::record(core::Event event, Stream stream) {
    const cl::CommandQueue queue = queue_of(stream);
    DAEL_TRY(checked(queue.enqueueMarkerWithWaitList(nullptr, &event_of(event)),
                     "clEnqueueMarkerWithWaitList"));
    return checked(queue.flush(), "clFlush");
}

Result<> OpenClDevice::wait(Stream stream, core::Event event) {
    if (!event_of(event)()) return {};  // never recorded: there is nothing to wait for
    const std::vector<cl::Event> events{event_of(event)};
    return checked(queue_of(stream).enqueueBarrierWithWaitList(&events),
                   "clEnqueueBarrierWithWaitList");
}

Result<> OpenClDevice::wait(core::Event event) {
    if (!event_of(event)()) return {};
    return checked(event_of(event).wait(), "clWaitForEvents");
}

Result<> OpenClDevice::wait(Stream stream) {
    return checked(queue_of(stream).finish(), "clFinish");
}

Result<float> OpenClDevice::elapsed_ms(core::Event from, core::Event to) {
    cl_int first = CL_SUCCESS, second = CL_SUCCESS;
    const cl_ulong begin = event_of(from).getProfilingInfo<CL_PROFILING_COMMAND_END>(&first);
    const cl_ulong end = event_of(to).getProfilingInfo<CL_PROFILING_COMMAND_END>(&second);
    DAEL_TRY(checked(first != CL_SUCCESS ? first : second, "clGetEventProfilingInfo"));
    return static_cast<float>(static_cast<double>(end - std::min(begin, end)) * 1e-6);
}

Result<> OpenClDevice::copy_in(void* device_memory, const void* host_memory, std::size_t size,
                               Stream stream) {
    if (size == 0) return {};
    const auto to = addresses_.find(device_memory, size);
    if (!to) return to.error();
    const cl::CommandQueue queue = queue_of(stream);
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

Result<> OpenClDevice::copy_out(void* host_memory, const void* device_memory, std::size_t size,
                                Stream stream) {
    if (size == 0) return {};
    const auto from = addresses_.find(device_memory, size);
    if (!from) return from.error();
    const cl::CommandQueue queue = queue_of(stream);
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

Result<> OpenClDevice::copy_within(void* to, const void* from, std::size_t size, Stream stream) {
    if (size == 0) return {};
    const auto target = addresses_.find(to, size), source = addresses_.find(from, size);
    if (!target) return target.error();
    if (!source) return source.error();
    const cl::CommandQueue queue = queue_of(stream);
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

Result<> OpenClDevice::fill(void* device_memory, std::uint8_t value, std::size_t size,
                            Stream stream) {
    if (size == 0) return {};
    const auto to = addresses_.find(device_memory, size);
    if (!to) return to.error();
    const cl::CommandQueue queue = queue_of(stream);
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

Result<DeviceOut> OpenClDevice::adopt(void* native_buffer) {
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

Result<> OpenClDevice::adopt_shared(void* memory, std::size_t size) {
    if (info_.shared_memory) return addresses_.add_shared(memory, size);
    return Error{Code::unsupported, "opencl: this device has no shared virtual memory"};
}

Result<> OpenClDevice::forget(const void* address) {
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
