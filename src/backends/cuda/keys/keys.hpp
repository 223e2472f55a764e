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
#include "backends/cuda/gcm/work.hpp"

namespace dael::cuda {

// What kernels may need of keys, each with those before it: round keys; what GHASH needs; and what
// it needs where messages are hashed as they are encrypted.
enum class KeyParts { schedule, ghash, fused };

class GcmRooms;

// What a set of keys has on a device, and what tells that nobody reads it any more.
struct KeyMemory final : Kept {
    explicit KeyMemory(int device)
        : keys(device),
          matrices(device),
          quads(device),
          fused(device),
          replacements(device),
          device_(device) {}
    ~KeyMemory() override;
    Result<> settle(bool waits) override;

    DeviceBlock keys, matrices, quads, fused;  // behind the keys' lies `ended`
    Runs replacements;
    // Of launches that have no share in the keys: thread blocks of those that were made at once
    // (GcmTeamWork::ended counts those that have done with them); a bit for each room of those that
    // took one; and the ends of those that were captured.
    std::atomic<std::uint64_t> lent{0};
    std::atomic<std::uint32_t> rooms_taken{0};
    std::shared_ptr<GcmRooms> rooms;
    std::mutex mutex;  // guards the list
    std::vector<cudaEvent_t> captured;
    unsigned long long* ended = nullptr;  // on the device

  private:
    Result<> all_ended(bool waits) const;
    const int device_;
};

// A set of keys and all batches under them have a share in them: the last to go wipes them.
class DeviceKeys {
  public:
    // `hash`: GHASH may need them. Without it they are for keystream/keystream.cpp alone.
    static Result<std::shared_ptr<DeviceKeys>> make(CudaDevice& device, std::span<const Key> keys,
                                                    bool hash = true);
    DeviceKeys(CudaDevice& device, bool hash);
    ~DeviceKeys();

    CudaDevice& device() const { return device_; }
    std::uint32_t count() const { return static_cast<std::uint32_t>(rounds_.size()); }
    // Whether work may be launched under them. Errors: device, once a replacement was launched in
    // part and failed, after which nobody can say which key is in what.
    Result<> usable() const;
    bool whole() const noexcept { return !spoiled_.load(std::memory_order_relaxed); }
    // From then on kernels on any stream may read these parts of them, which are made at the first
    // need: sets for counter modes and CBC are spared what GHASH takes. The first call of a kind
    // waits, but for nobody else's work: so a set whose keys have been replaced, which is on a
    // stream of others', gets no `fused`.
    Result<> ready(KeyParts parts);
    GcmKey* keys() const { return reinterpret_cast<GcmKey*>(memory_->keys.data()); }
    // Of keys that are ready for GHASH. Null: hashed without tensor cores.
    GcmMatrices* matrices() const {
        return reinterpret_cast<GcmMatrices*>(memory_->matrices.data());
    }
    // Where there are matrices.
    GcmQuads* quads() const { return reinterpret_cast<GcmQuads*>(memory_->quads.data()); }
    // Null until keys are ready for it, without quads, and where they cannot be made.
    GcmFused* fused() const { return has(KeyParts::fused) ? fused_memory() : nullptr; }

    // A kernel is made for one key size; a batch of many keys takes a launch for each of these.
    // Asked at every launch, so that keys are counted when they come and not searched then.
    std::vector<int> sizes() const;  // rounds: of 10, 12 and 14 those that there are
    int rounds(std::uint32_t index) const;
    // KeyHead::generation of the key that work launched from now on is to find there.
    std::uint32_t generation(std::uint32_t index) const;
    // Has `key`, which is key `index` of the set, on the host from now on.
    Result<> keep(std::uint32_t index, const Key& key);
    // Calls use(key) with a key that is kept.
    template <class Use>
    auto with(std::uint32_t index, Use use) const {
        const std::lock_guard lock(mutex_);
        return use(host_.at(index));
    }

    // Something reads the keys that has no share in them: so many thread blocks, which count where
    // this says; or a launch that has this room, or that was captured on this stream.
    unsigned long long* lend(std::uint32_t blocks) {
        memory_->lent.fetch_add(blocks, std::memory_order_relaxed);
        return memory_->ended;
    }
    void take_back(std::uint32_t blocks) { memory_->lent.fetch_sub(blocks); }
    void lend_room(std::uint32_t room) { memory_->rooms_taken.fetch_or(1u << room); }
    Result<> lend_capture(Stream stream);
    // A launch under them was captured: the graph keeps the key that it has as a parameter.
    void note_capture() { captured_.store(true, std::memory_order_relaxed); }

    // Errors: unsupported once a launch was captured; and as KeyTables::replace.
    Result<> replace(std::uint32_t index, const Key& key, Stream stream);

  private:
    bool has(KeyParts parts) const {
        return ready_.load(std::memory_order_acquire) >= static_cast<int>(parts);
    }
    GcmFused* fused_memory() const { return reinterpret_cast<GcmFused*>(memory_->fused.data()); }
    Result<> upload(const SetUp& set_up, std::span<const Key> keys);
    Result<> put(std::uint32_t index, const Key& key, std::uint32_t generation, Stream stream);
    Result<> set_up_keys(std::uint32_t first, std::uint32_t count, Stream stream);
    Result<> set_up_fused(std::uint32_t first, std::uint32_t count, Stream stream);
    Result<> replace_there(std::uint32_t index, const Key& key, Stream stream);

    CudaDevice& device_;
    const int index_;
    const bool hash_;
    std::unique_ptr<KeyMemory> memory_;
    std::atomic<bool> captured_{false}, spoiled_{false};
    std::mutex making_;                  // guards the blocks of matrices until they are ready, and:
    bool replaced_ = false;              // has any key been?
    std::atomic<int> ready_{-1};         // the last of KeyParts
    mutable std::mutex mutex_;           // guards what follows
    std::uint32_t last_generation_ = 1;  // that of the keys that the set began with
    std::vector<std::uint8_t> rounds_;
    std::map<std::uint32_t, std::uint32_t> generations_;  // of those that were replaced
    std::map<int, std::uint32_t> with_rounds_;            // how many keys
    std::map<std::uint32_t, Key> host_;
};

class CudaKeys final : public core::KeyTables {
  public:
    explicit CudaKeys(std::shared_ptr<DeviceKeys> made) : keys(std::move(made)) {}
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override {
        return keys->replace(index, key, stream);
    }
    bool whole() const noexcept override { return keys->whole(); }
    const std::shared_ptr<DeviceKeys> keys;
};

// The tables of a call, as this device's. Errors: invalid_argument.
Result<std::shared_ptr<DeviceKeys>> tables_of(const core::KeyList& keys, const CudaDevice& device);

}  // namespace dael::cuda
