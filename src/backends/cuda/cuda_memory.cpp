// SPDX-License-Identifier: Apache-2.0
// A CUDA device's memory, streams, events and copies.
#include "backends/cuda/cuda_device.hpp"
#include "backends/cuda/cuda_error.hpp"

namespace dael::cuda {
namespace {

cudaStream_t handle_of(Stream stream) {
    return static_cast<cudaStream_t>(stream.handle);
}
cudaEvent_t handle_of(core::Event event) {
    return static_cast<cudaEvent_t>(event.handle);
}

}  // namespace

Result<void*> CudaDevice::allocate(std::size_t size) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    const BesideCaptures beside;
    void* memory = nullptr;
    DAEL_TRY(checked(cudaMalloc(&memory, size), "cudaMalloc"));
    return memory;
}

void CudaDevice::release(void* memory) noexcept {
    const CurrentDevice current(index_);
    const BesideCaptures beside;
    (void)cudaFree(memory);
}

Result<void*> CudaDevice::allocate_pinned(std::size_t size) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    const BesideCaptures beside;
    void* memory = nullptr;
    DAEL_TRY(checked(cudaHostAlloc(&memory, size, cudaHostAllocPortable), "cudaHostAlloc"));
    return memory;
}

void CudaDevice::release_pinned(void* memory) noexcept {
    const CurrentDevice current(index_);
    const BesideCaptures beside;
    (void)cudaFreeHost(memory);
}

Result<std::uint64_t> CudaDevice::free_memory() {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    std::size_t free = 0, total = 0;
    DAEL_TRY(checked(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
    return std::uint64_t{free};
}

bool CudaDevice::is_pinned(const void* host_memory) {
    const auto found = find_memory(host_memory);
    return found && found->pinned;
}

// Where the driver cannot say it is taken to be: it fails in all it is asked after a kernel that
// faulted, and what is done with the memory then says so.
bool CudaDevice::owns(const void* device_memory) {
    const auto found = find_memory(device_memory);
    return !found || found->device == index_;
}

Result<Stream> CudaDevice::create_stream() {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    const BesideCaptures beside;
    cudaStream_t stream = nullptr;
    DAEL_TRY(checked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     "cudaStreamCreateWithFlags"));
    return Stream{stream};
}

void CudaDevice::destroy_stream(Stream stream) noexcept {
    const CurrentDevice current(index_);
    (void)cudaStreamDestroy(handle_of(stream));
}

Result<core::Event> CudaDevice::create_event() {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    cudaEvent_t event = nullptr;
    DAEL_TRY(checked(cudaEventCreate(&event), "cudaEventCreate"));
    return core::Event{event};
}

void CudaDevice::destroy_event(core::Event event) noexcept {
    const CurrentDevice current(index_);
    (void)cudaEventDestroy(handle_of(event));
}

Result<> CudaDevice::record(core::Event event, Stream stream) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    return checked(cudaEventRecord(handle_of(event), handle_of(stream)), "cudaEventRecord");
}

Result<> CudaDevice::wait(Stream stream, core::Event event) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    return checked(cudaStreamWaitEvent(handle_of(stream), handle_of(event), 0),
                   "cudaStreamWaitEvent");
}

Result<> CudaDevice::wait(core::Event event) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    return checked(cudaEventSynchronize(handle_of(event)), "cudaEventSynchronize");
}

Result<> CudaDevice::wait(Stream stream) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    return checked(cudaStreamSynchronize(handle_of(stream)), "cudaStreamSynchronize");
}

Result<float> CudaDevice::elapsed_ms(core::Event from, core::Event to) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    float ms = 0;
    DAEL_TRY(
        checked(cudaEventElapsedTime(&ms, handle_of(from), handle_of(to)), "cudaEventElapsedTime"));
    return ms;
}

Result<> CudaDevice::copy_in(void* device_memory, const void* host_memory, std::size_t size,
                             Stream stream) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    return checked(cudaMemcpyAsync(device_memory, host_memory, size, cudaMemcpyHostToDevice,
                                   handle_of(stream)),
                   "cudaMemcpyAsync to the device");
}

Result<> CudaDevice::copy_out(void* host_memory, const void* device_memory, std::size_t size,
                              Stream stream) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    return checked(cudaMemcpyAsync(host_memory, device_memory, size, cudaMemcpyDeviceToHost,
                                   handle_of(stream)),
                   "cudaMemcpyAsync from the device");
}

Result<> CudaDevice::copy_within(void* to, const void* from, std::size_t size, Stream stream) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    return checked(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, handle_of(stream)),
                   "cudaMemcpyAsync within the device");
}

Result<> CudaDevice::fill(void* device_memory, std::uint8_t value, std::size_t size,
                          Stream stream) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    return checked(cudaMemsetAsync(device_memory, value, size, handle_of(stream)),
                   "cudaMemsetAsync");
}

}  // namespace dael::cuda
