// SPDX-License-Identifier: Apache-2.0
// GCM's keys and batches in device memory, as the host holds them.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "backends/cuda/cuda_error.hpp"
#include "backends/cuda/gcm_work.hpp"
#include "core/device.hpp"

namespace dael::cuda {

// Device memory that wipes itself.
class DeviceBlock {
  public:
    explicit DeviceBlock(int device) : device_(device) {}
    DeviceBlock(const DeviceBlock&) = delete;
    ~DeviceBlock() {
        if (!memory_) return;
        const CurrentDevice current(device_);
        if (secret_) (void)cudaMemset(memory_, 0, size_);
        (void)cudaFree(memory_);
    }
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

// Done when it returns, whichever stream reads next.
inline Result<> upload_now(void* to, const void* from, std::size_t size) {
    if (size == 0) return {};
    DAEL_TRY(checked(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, cudaStreamPerThread),
                     "cudaMemcpyAsync"));
    return checked(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
}

class GcmKeys final : public core::PreparedKeys {
  public:
    explicit GcmKeys(int on) : keys_block(on), matrices_block(on), device(on) {}
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

// What every batch of messages with a key each begins with: the keys as this device has them, and a
// count that kernels can number.
inline Result<const GcmKeys*> keys_for_batch(const core::PreparedKeys& prepared, int device,
                                             std::size_t count) {
    const auto* keys = dynamic_cast<const GcmKeys*>(&prepared);
    if (!keys || keys->device != device)
        return Error{Code::invalid_argument, "cuda: the keys were prepared for another device"};
    if (count > 0xffffffffu)
        return Error{Code::limit, "a batch takes at most 2^32 - 1 messages; divide it"};
    return keys;
}

class PreparedGcmBatch final : public core::PreparedGcm {
  public:
    PreparedGcmBatch(int device, const GcmKeys& its_keys) : block(device), keys(its_keys) {}
    const std::uint32_t* results() const override { return batch.results; }

    DeviceBlock block;
    const GcmKeys& keys;
    GcmBatch batch{};
    std::uint32_t only_key = 0;  // the key of all messages, where they have but one
    bool many_keys = false;
    bool any_short = true, any_long = true, any_long_aad = true;
    bool planned = false;  // where the tiles begin does not change between runs
};

}  // namespace dael::cuda
