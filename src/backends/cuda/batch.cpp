// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/batch.hpp"

#include "backends/cuda/device.hpp"

namespace dael::cuda {

DeviceBlock::~DeviceBlock() {
    if (!memory_) return;
    const SetUp set_up(device_);
    if (secret_ && cudaMemsetAsync(memory_, 0, size_, set_up.stream()) == cudaSuccess)
        (void)set_up.wait();
    (void)cudaFree(memory_);
}

Result<> DeviceBlock::allocate(std::size_t size, bool secret) {
    if (memory_) return {};
    void* memory = nullptr;
    DAEL_TRY(checked(cudaMalloc(&memory, std::max<std::size_t>(size, 1)), "cudaMalloc"));
    memory_ = static_cast<unsigned char*>(memory);
    size_ = size;
    secret_ = secret;
    return {};
}

Runs::~Runs() {
    if (!ended_) return;
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    if (captured_) (void)cudaDeviceSynchronize();
    if (any_) (void)cudaEventSynchronize(ended_);
    (void)cudaEventDestroy(ended_);
}

Result<> Runs::prepare() {
    return checked(cudaEventCreateWithFlags(&ended_, cudaEventDisableTiming),
                   "cudaEventCreateWithFlags");
}

Result<bool> Runs::begin(cudaStream_t stream) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    DAEL_TRY(checked(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing"));
    if (capture != cudaStreamCaptureStatusNone) {
        captured_ = true;
        return true;
    }
    // By its number: handles are used again for other streams, and one of them means another stream
    // in each thread.
    unsigned long long id = 0;
    DAEL_TRY(checked(cudaStreamGetId(stream, &id), "cudaStreamGetId"));
    if (any_ && id != last_stream_)
        DAEL_TRY(checked(cudaStreamWaitEvent(stream, ended_, 0), "cudaStreamWaitEvent"));
    last_stream_ = id;
    return false;
}

Result<> Runs::end(cudaStream_t stream) {
    any_ = true;
    return checked(cudaEventRecord(ended_, stream), "cudaEventRecord");
}

Batch::Batch(CudaDevice& on, std::shared_ptr<DeviceKeys> its_keys, const Cipher& its_cipher)
    : device(on),
      keys(std::move(its_keys)),
      cipher(its_cipher),
      block(on.index()),
      runs(on.index()) {}

}  // namespace dael::cuda
