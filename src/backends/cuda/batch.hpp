// SPDX-License-Identifier: Apache-2.0
// What batches in device memory have in common: their memory, and the order of their runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/cuda/context.hpp"
#include "backends/cuda/error.hpp"
#include "backends/cuda/kept.hpp"
#include "core/device.hpp"
#include "core/guard.hpp"

namespace dael::cuda {

class CudaDevice;
class DeviceKeys;

// Device memory that wipes itself, which is for when no work on it is under way any more. Where it
// cannot be wiped it is kept (kept.hpp).
class DeviceBlock {
  public:
    explicit DeviceBlock(int device) : device_(device) {}
    DeviceBlock(const DeviceBlock&) = delete;
    DeviceBlock(DeviceBlock&& other) noexcept
        : device_(other.device_),
          memory_(std::exchange(other.memory_, nullptr)),
          size_(other.size_),
          secret_(other.secret_) {}
    ~DeviceBlock();
    // Within a SetUp. Once: after that it does nothing.
    Result<> allocate(std::size_t size, bool secret);
    unsigned char* data() const { return memory_; }
    // Zeros, where it is secret, and then nothing is any more.
    Result<> wipe();

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
// streams they are on, and whether they are launched or replayed in a graph. Of a capture that
// holds from the call that replays it, as for launches. Whoever owns them has settle() say that the
// last has ended before anything is wiped or freed that a kernel still reads.
class Runs {
  public:
    explicit Runs(int device) : device_(device) {}
    Runs(const Runs&) = delete;
    ~Runs();
    // Within a SetUp.
    Result<> prepare();
    // Calls launch(), which launches on the stream, or has it captured.
    template <class Launch>
    Result<> in_turn(Stream stream, Launch launch) {
        const CurrentDevice current(device_);
        DAEL_TRY(current.result());
        const std::lock_guard lock(mutex_);
        const auto handle = static_cast<cudaStream_t>(stream.handle);
        DAEL_LET(capturing, begin(handle));
        Result<> launched = core::guarded([&]() -> Result<> { return launch(); });
        // After a failure too: some kernels may be under way.
        Result<> recorded = end(handle, capturing);
        return launched ? std::move(recorded) : std::move(launched);
    }
    // Whether any was captured, whose graph may be replayed at any time.
    bool captured() const { return captured_.load(std::memory_order_relaxed); }
    Result<> settle(bool waits);

  private:
    Result<bool> begin(cudaStream_t stream);  // whether it is captured
    Result<> end(cudaStream_t stream, bool capturing);

    const int device_;
    std::mutex mutex_;
    cudaEvent_t ended_ = nullptr;  // the last run
    // `lost_`: a run began whose end nothing tells.
    bool any_ = false, lost_ = false;
    std::atomic<bool> captured_{false};
    unsigned long long last_stream_ = 0;  // by cudaStreamGetId
};

// A batch of any kind. What is derived from it has plain values only, so that all that a kernel
// reads is in what is held here and stays until the last run has ended; its keys too, by its share
// in them.
class PreparedBatch : public core::Prepared {
    struct Held final : Kept {
        Held(int device, std::shared_ptr<DeviceKeys> its_keys)
            : keys(std::move(its_keys)), block(device), runs(device) {}
        Result<> settle(bool waits) override { return runs.settle(waits); }

        const std::shared_ptr<DeviceKeys> keys;
        DeviceBlock block;
        Runs runs;
    };
    const int index_;
    std::unique_ptr<Held> held_;

  public:
    PreparedBatch(CudaDevice& on, std::shared_ptr<DeviceKeys> its_keys, const Cipher& its_cipher);
    ~PreparedBatch() override { end_or_keep(index_, std::move(held_)); }
    const std::uint32_t* results() const final { return results_; }
    bool is_on(const CudaDevice& other) const { return &device == &other; }
    Result<> run(Stream stream);

  protected:
    virtual Result<> launch(Stream stream) = 0;

    CudaDevice& device;
    const std::shared_ptr<DeviceKeys>& keys;
    const Cipher cipher;
    DeviceBlock& block;
    Runs& runs;
    std::uint32_t* results_ = nullptr;
};

}  // namespace dael::cuda
