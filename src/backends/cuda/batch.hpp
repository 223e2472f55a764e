// SPDX-License-Identifier: Apache-2.0
// What batches in device memory have in common: their memory, and the order of their runs.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>

#include "backends/cuda/context.hpp"
#include "backends/cuda/error.hpp"
#include "core/device.hpp"

namespace dael::cuda {

class CudaDevice;
class DeviceKeys;

// Device memory that wipes itself, which is for when no work on it is under way any more.
class DeviceBlock {
  public:
    explicit DeviceBlock(int device) : device_(device) {}
    DeviceBlock(const DeviceBlock&) = delete;
    ~DeviceBlock();
    // Within a SetUp. Once: after that it does nothing.
    Result<> allocate(std::size_t size, bool secret);
    unsigned char* data() const { return memory_; }

  private:
    const int device_;
    unsigned char* memory_ = nullptr;
    std::size_t size_ = 0;
    bool secret_ = false;
};

// Places for arrays in one block of device memory.
class Places {
  public:
    std::size_t add(std::size_t bytes) {
        const std::size_t at = size_;
        size_ += (bytes + 15) / 16 * 16;
        return at;
    }
    std::size_t size() const { return size_; }

  private:
    std::size_t size_ = 0;
};

// Runs of something that serves one at a time: each begins when the one before has ended, whichever
// streams they are on; and the end waits for the last, so that nothing is wiped or freed that a
// kernel still reads.
class Runs {
  public:
    explicit Runs(int device) : device_(device) {}
    Runs(const Runs&) = delete;
    ~Runs();
    // Within a SetUp.
    Result<> prepare();
    // Calls launch(), which launches on the stream. What is captured into a graph in place of being
    // run is in no order but the graph's, and the end can but wait for all of the device then.
    template <class Launch>
    Result<> in_turn(Stream stream, Launch launch) {
        const CurrentDevice current(device_);
        DAEL_TRY(current.result());
        const std::lock_guard lock(mutex_);
        const auto handle = static_cast<cudaStream_t>(stream.handle);
        DAEL_LET(capturing, begin(handle));
        Result<> launched = launch();
        if (capturing) return launched;
        Result<> recorded = end(handle);  // after a failure too: some kernels may be under way
        return launched ? std::move(recorded) : std::move(launched);
    }

  private:
    Result<bool> begin(cudaStream_t stream);  // whether it is captured
    Result<> end(cudaStream_t stream);

    const int device_;
    std::mutex mutex_;
    cudaEvent_t ended_ = nullptr;  // the last run
    bool any_ = false, captured_ = false;
    unsigned long long last_stream_ = 0;  // by cudaStreamGetId
};

// A batch of any kind. What is derived from it has plain values only, so that all that a kernel
// reads is here and stays until the last run has ended; its keys too, by its share in them.
class Batch : public core::Prepared {
  public:
    Batch(CudaDevice& on, std::shared_ptr<DeviceKeys> its_keys, const Cipher& its_cipher);
    const std::uint32_t* results() const final { return results_; }
    bool is_on(const CudaDevice& other) const { return &device == &other; }
    Result<> run(Stream stream) {
        return runs.in_turn(stream, [&] { return launch(stream); });
    }

  protected:
    virtual Result<> launch(Stream stream) = 0;

    CudaDevice& device;
    const std::shared_ptr<DeviceKeys> keys;
    const Cipher cipher;
    DeviceBlock block;
    Runs runs;  // after what its end waits for
    std::uint32_t* results_ = nullptr;
};

}  // namespace dael::cuda
