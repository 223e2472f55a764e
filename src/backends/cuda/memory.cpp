// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/memory.hpp"

#include "backends/cuda/context.hpp"
#include "backends/cuda/error.hpp"
#include "backends/cuda/kept.hpp"
#include "core/near_node.hpp"

namespace dael::cuda {
namespace {

cudaStream_t handle_of(Stream stream) {
    return static_cast<cudaStream_t>(stream.handle);
}
cudaEvent_t handle_of(Event event) {
    return static_cast<cudaEvent_t>(event.handle);
}

// Of every call: none of them, and waiting and asking not either, may break a capture elsewhere.
class Scope {
  public:
    explicit Scope(int device) : current_(device) {}
    Result<> result() const { return current_.result(); }

  private:
    const CurrentDevice current_;
    const BesideCaptures beside_;
};

int node_of(int device) noexcept {
    char address[32] = {};
    if (cudaDeviceGetPCIBusId(address, sizeof address, device) != cudaSuccess) {
        (void)cudaGetLastError();
        return -1;
    }
    return core::node_of_pci(address);
}

}  // namespace

CudaMemory::CudaMemory(int index) : index_(index), node_(node_of(index)) {}

Result<void*> CudaMemory::allocate(std::size_t size) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    void* memory = nullptr;
    DAEL_TRY(checked(cudaMalloc(&memory, size), "cudaMalloc"));
    return memory;
}

void CudaMemory::release(void* memory) noexcept {
    give_back(index_, memory, false);
}

Result<void*> CudaMemory::allocate_pinned(std::size_t size) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    void* memory = nullptr;
    const core::NearNode near_the_bus(node_);  // the driver's pages are this thread's
    DAEL_TRY(checked(cudaHostAlloc(&memory, size, cudaHostAllocPortable), "cudaHostAlloc"));
    return memory;
}

void CudaMemory::release_pinned(void* memory) noexcept {
    give_back(index_, memory, true);
}

Result<std::uint64_t> CudaMemory::free_memory() {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    std::size_t free = 0, total = 0;
    DAEL_TRY(checked(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
    return std::uint64_t{free};
}

// Of all of it: neighbouring pages may have been locked by different calls, or not at all.
bool CudaMemory::is_pinned(const void* host_memory, std::size_t size) {
    const auto* at = static_cast<const unsigned char*>(host_memory);
    const unsigned char* const end = at + size;
    do {
        const auto found = find_memory(at);
        if (!found || !found->pinned) return false;
        at = found->end > at ? found->end : at + 1 < end ? end - 1 : end;
    } while (at < end);
    return true;
}

bool CudaMemory::is_one_pinned(const void* host_memory, std::size_t size) {
    const auto* const at = static_cast<const unsigned char*>(host_memory);
    const auto found = find_memory(at);
    return found && found->pinned && found->end > at &&
           static_cast<std::size_t>(found->end - at) >= size;
}

// Where the driver cannot say it is taken to be: it fails in all it is asked after a kernel that
// faulted, and what is done with the memory then says so.
bool CudaMemory::owns(const void* device_memory) {
    const auto found = find_memory(device_memory);
    return !found || found->device == index_;
}

Result<Stream> CudaOrder::create_stream() {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    cudaStream_t stream = nullptr;
    DAEL_TRY(checked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     "cudaStreamCreateWithFlags"));
    return Stream{stream};
}

void CudaOrder::destroy_stream(Stream stream) noexcept {
    const Scope scope(index_);
    forget_failure(cudaStreamDestroy(handle_of(stream)));
}

Result<Event> CudaOrder::create_event() {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    cudaEvent_t event = nullptr;
    DAEL_TRY(checked(cudaEventCreate(&event), "cudaEventCreate"));
    return Event{event};
}

void CudaOrder::destroy_event(Event event) noexcept {
    const Scope scope(index_);
    forget_failure(cudaEventDestroy(handle_of(event)));
}

Result<> CudaOrder::record(Event event, Stream stream) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    return checked(cudaEventRecord(handle_of(event), handle_of(stream)), "cudaEventRecord");
}

Result<> CudaOrder::wait(Stream stream, Event event) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    return checked(cudaStreamWaitEvent(handle_of(stream), handle_of(event), 0),
                   "cudaStreamWaitEvent");
}

Result<> CudaOrder::wait(Event event) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    return checked(cudaEventSynchronize(handle_of(event)), "cudaEventSynchronize");
}

Result<bool> CudaOrder::is_done(Event event) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    const cudaError_t status = cudaEventQuery(handle_of(event));
    if (status == cudaErrorNotReady) {
        (void)cudaGetLastError();  // which is none, and the caller's to look at
        return false;
    }
    DAEL_TRY(checked(status, "cudaEventQuery"));
    return true;
}

Result<> CudaOrder::wait(Stream stream) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    return checked(cudaStreamSynchronize(handle_of(stream)), "cudaStreamSynchronize");
}

Result<float> CudaOrder::elapsed_ms(Event from, Event to) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    float ms = 0;
    DAEL_TRY(
        checked(cudaEventElapsedTime(&ms, handle_of(from), handle_of(to)), "cudaEventElapsedTime"));
    return ms;
}

bool CudaOrder::is_capturing(Stream stream) {
    const Scope scope(index_);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (!scope.result() || cudaStreamIsCapturing(handle_of(stream), &status) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return status != cudaStreamCaptureStatusNone;
}

Result<> CudaMemory::copy_in(void* device_memory, const void* host_memory, std::size_t size,
                             Stream stream) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    return checked(cudaMemcpyAsync(device_memory, host_memory, size, cudaMemcpyHostToDevice,
                                   handle_of(stream)),
                   "cudaMemcpyAsync to the device");
}

Result<> CudaMemory::copy_out(void* host_memory, const void* device_memory, std::size_t size,
                              Stream stream) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    return checked(cudaMemcpyAsync(host_memory, device_memory, size, cudaMemcpyDeviceToHost,
                                   handle_of(stream)),
                   "cudaMemcpyAsync from the device");
}

Result<> CudaMemory::copy_within(void* to, const void* from, std::size_t size, Stream stream) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    return checked(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, handle_of(stream)),
                   "cudaMemcpyAsync within the device");
}

Result<> CudaMemory::fill(void* device_memory, std::uint8_t value, std::size_t size,
                          Stream stream) {
    const Scope scope(index_);
    DAEL_TRY(scope.result());
    return checked(cudaMemsetAsync(device_memory, value, size, handle_of(stream)),
                   "cudaMemsetAsync");
}

}  // namespace dael::cuda
