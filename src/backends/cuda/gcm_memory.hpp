// SPDX-License-Identifier: Apache-2.0
// GCM's keys and batches in device memory, as the host holds them.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backends/cuda/cuda_context.hpp"
#include "backends/cuda/cuda_error.hpp"
#include "backends/cuda/gcm_work.hpp"
#include "core/device.hpp"

namespace dael::cuda {

// Device memory that wipes itself, which is for when no work on it is under way any more.
class DeviceBlock {
  public:
    explicit DeviceBlock(int device) : device_(device) {}
    DeviceBlock(const DeviceBlock&) = delete;
    ~DeviceBlock() {
        if (!memory_) return;
        const SetUp set_up(device_);
        if (secret_ && cudaMemsetAsync(memory_, 0, size_, set_up.stream()) == cudaSuccess)
            (void)set_up.wait();
        (void)cudaFree(memory_);
    }
    // Within a SetUp.
    Result<> allocate(std::size_t size, bool secret) {
        void* memory = nullptr;
        DAEL_TRY(checked(cudaMalloc(&memory, std::max<std::size_t>(size, 1)), "cudaMalloc"));
        memory_ = static_cast<unsigned char*>(memory);
        size_ = size;
        secret_ = secret;
        return {};
    }
    unsigned char* data() const { return memory_; }

  private:
    int device_;
    unsigned char* memory_ = nullptr;
    std::size_t size_ = 0;
    bool secret_ = false;
};

// The runs of a batch, whose workspace serves one at a time: each begins when the one before has
// ended, whichever streams they are on; and the batch's end waits for the last, so that nothing is
// wiped that a kernel still reads.
class Runs {
  public:
    explicit Runs(int device) : device_(device) {}
    Runs(const Runs&) = delete;
    ~Runs();
    // Within a SetUp.
    Result<> prepare();
    // Launches on the stream, in turn. Of a stream that is being captured into a graph only the
    // destructor knows: then it waits for the whole device. `repeats`: what a replay of the graph
    // would use again and must not, a reason to refuse; empty: nothing.
    template <class Launch>
    Result<> in_turn(Stream stream, const char* repeats, Launch launch) const {
        const CurrentDevice current(device_);
        DAEL_TRY(current.result());
        const std::lock_guard lock(mutex_);
        const auto handle = static_cast<cudaStream_t>(stream.handle);
        auto capturing = begin(handle, repeats);
        if (!capturing) return std::move(capturing).error();
        Result<> launched = launch();
        if (*capturing) return launched;
        Result<> recorded = end(handle);  // after a failure too: some kernels may be under way
        return launched ? std::move(recorded) : std::move(launched);
    }

  private:
    Result<bool> begin(cudaStream_t stream, const char* repeats) const;  // whether it is captured
    Result<> end(cudaStream_t stream) const;

    int device_;
    mutable std::mutex mutex_;
    cudaEvent_t ended_ = nullptr;  // the last run
    mutable bool any_ = false, captured_ = false;
    mutable unsigned long long last_stream_ = 0;  // by cudaStreamGetId
};

// Keys in device memory. Their set and all batches under them have a share, so that the last to go
// takes the keys along.
struct DeviceKeys {
    explicit DeviceKeys(int on) : keys_block(on), matrices_block(on), device(on) {}
    const GcmKey* keys() const { return reinterpret_cast<const GcmKey*>(keys_block.data()); }
    const GcmMatrices* matrices() const {
        return reinterpret_cast<const GcmMatrices*>(matrices_block.data());
    }
    DeviceBlock keys_block, matrices_block;
    int device;
    std::set<int> rounds;                 // of all keys
    std::vector<std::uint8_t> rounds_of;  // of each
    std::uint32_t count = 0;
    std::vector<Key> host;  // copies, for kernels that take a key as a parameter
};

class GcmKeys final : public core::PreparedKeys {
  public:
    explicit GcmKeys(std::shared_ptr<const DeviceKeys> made) : keys(std::move(made)) {}
    const std::shared_ptr<const DeviceKeys> keys;
};

// What every batch of messages with a key each begins with: the keys as this device has them, and a
// count that kernels can number.
inline Result<std::shared_ptr<const DeviceKeys>> keys_for_batch(const core::PreparedKeys& prepared,
                                                                int device, std::size_t count) {
    const auto* keys = dynamic_cast<const GcmKeys*>(&prepared);
    if (!keys || keys->keys->device != device)
        return Error{Code::invalid_argument, "cuda: the keys were prepared for another device"};
    if (count > 0xffffffffu)
        return Error{Code::limit, "a batch takes at most 2^32 - 1 messages; divide it"};
    return keys->keys;
}

class PreparedGcmBatch final : public core::PreparedGcm {
  public:
    PreparedGcmBatch(int device, std::shared_ptr<const DeviceKeys> its_keys)
        : keys(std::move(its_keys)), block(device), runs(device) {}
    const std::uint32_t* results() const override { return batch.results; }

    const std::shared_ptr<const DeviceKeys> keys;
    DeviceBlock block;
    Runs runs;  // after what its end waits for
    GcmBatch batch{};
    std::uint32_t only_key = 0;  // the key of all messages, where they have but one
    bool many_keys = false;
    bool any_short = true, any_long = true, any_long_aad = true;
    bool from_host = false;  // the list: its nonces are fixed, and so is where the tiles begin
};

}  // namespace dael::cuda
