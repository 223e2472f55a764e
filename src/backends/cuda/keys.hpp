// SPDX-License-Identifier: Apache-2.0
// Keys as a device has them: expanded, with what GHASH needs of each, in its memory; and on the
// host, for kernels that take a key as a parameter.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/cuda/batch.hpp"
#include "backends/cuda/gcm_work.hpp"

namespace dael::cuda {

// What kernels may need of keys, each with those before it: round keys; what GHASH needs; and what
// it needs where messages are hashed as they are encrypted.
enum class KeyParts { schedule, ghash, fused };

// A set of keys and all batches under them have a share in them: the last to go wipes them.
class DeviceKeys {
  public:
    // `hash`: GHASH may need them. Without it they are for keystream.cpp alone.
    static Result<std::shared_ptr<DeviceKeys>> make(CudaDevice& device, std::span<const Key> keys,
                                                    bool hash = true);
    DeviceKeys(CudaDevice& device, bool hash);

    CudaDevice& device() const { return device_; }
    std::uint32_t count() const { return static_cast<std::uint32_t>(rounds_.size()); }
    // From then on kernels on any stream may read these parts of them, which are made at the first
    // need: sets for counter modes and CBC are spared what GHASH takes. The first call of a kind
    // waits, but for nobody else's work: so a set whose keys have been replaced, which is on a
    // stream of others', gets no `fused`.
    Result<> ready(KeyParts parts);
    GcmKey* keys() const { return reinterpret_cast<GcmKey*>(keys_block_.data()); }
    // Of keys that are ready for GHASH. Null: hashed without tensor cores.
    GcmMatrices* matrices() const { return reinterpret_cast<GcmMatrices*>(matrices_block_.data()); }
    // Where there are matrices.
    GcmQuads* quads() const { return reinterpret_cast<GcmQuads*>(quads_block_.data()); }
    // Of keys that are ready for it. Null without quads, and where they cannot be made.
    GcmFused* fused() const { return reinterpret_cast<GcmFused*>(fused_block_.data()); }

    // A kernel is made for one key size; a batch of many keys takes a launch for each of these.
    // Asked at every launch, so that keys are counted when they come and not searched then.
    std::vector<int> sizes() const;  // rounds: of 10, 12 and 14 those that there are
    int rounds(std::uint32_t index) const;
    // Has `key`, which is key `index` of the set, on the host from now on.
    Result<> keep(std::uint32_t index, const Key& key);
    // Calls use(key) with a key that is kept.
    template <class Use>
    auto with(std::uint32_t index, Use use) const {
        const std::lock_guard lock(mutex_);
        return use(host_.at(index));
    }

    // Something reads the keys that has no share in them: their end waits for the device.
    void lend() { lent_.store(true, std::memory_order_relaxed); }

    Result<> replace(std::uint32_t index, const Key& key, Stream stream);
    ~DeviceKeys();

  private:
    Result<> upload(const SetUp& set_up, std::span<const Key> keys);
    Result<> put(std::uint32_t index, const Key& key, Stream stream);
    Result<> set_up_keys(std::uint32_t first, std::uint32_t count, Stream stream);
    Result<> set_up_fused(std::uint32_t first, std::uint32_t count, Stream stream);

    CudaDevice& device_;
    const bool hash_;
    DeviceBlock keys_block_, matrices_block_, quads_block_, fused_block_;
    std::atomic<bool> lent_{false};
    std::mutex making_;           // guards the blocks of matrices until they are ready, and:
    bool replaced_ = false;       // has any key been?
    std::atomic<int> ready_{-1};  // the last of KeyParts
    Runs replacements_;           // after what its end waits for
    mutable std::mutex mutex_;    // guards what follows
    std::vector<std::uint8_t> rounds_;
    std::map<int, std::uint32_t> with_rounds_;  // how many keys, none of them 0
    std::map<std::uint32_t, Key> host_;
};

class CudaKeys final : public core::KeyTables {
  public:
    explicit CudaKeys(std::shared_ptr<DeviceKeys> made) : keys(std::move(made)) {}
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override {
        return keys->replace(index, key, stream);
    }
    const std::shared_ptr<DeviceKeys> keys;
};

// The tables of a call, as this device's. Errors: invalid_argument.
Result<std::shared_ptr<DeviceKeys>> tables_of(const core::Keys& keys, const CudaDevice& device);

}  // namespace dael::cuda
