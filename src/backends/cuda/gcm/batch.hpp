// SPDX-License-Identifier: Apache-2.0
// Batches of GCM, and of its counter mode alone, in device memory.
#pragma once

#include <vector>

#include "backends/cuda/device.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/keys/keys.hpp"

namespace dael::cuda {

inline KeyParts parts_for(const Cipher& cipher) {
    return authenticates(cipher.mode) ? KeyParts::ghash : KeyParts::schedule;
}

// Whether long messages are hashed as they are encrypted: if they are sealed, lie at aligned
// addresses, are not so long that this does not pay, and the keys, which are made ready for it, and
// the device can.
Result<bool> fuses(const CudaDevice& device, const Cipher& cipher, DeviceKeys& keys,
                   std::span<const Message> messages);
// Has them so. `batch.data` needs room for the partials of fused_workers().
void fuse(const CudaDevice& device, const DeviceKeys& keys, bool many_keys, GcmBatch& batch);

// The launches for a batch whose workspace is ready.
struct GcmSteps {
    Result<> launch(const Kernel& kernel, unsigned grid, const GcmBatch& work) const;
    // What comes first where the list, or a part of it, is not known on the host.
    Result<> plan() const;
    // Its short messages, and the results of invalid ones.
    Result<> short_messages() const;
    // Of its long messages all there is to do, from where their units begin on.
    Result<> long_messages(bool any_long_aad) const;
    // Kernels are made for one key size; messages under others are left to other launches. Each
    // has its own word of the batch, which tells the first of them.
    template <class Run>
    Result<> for_each_size(Run run) const {
        GcmBatch work = batch;
        work.reset = 1;
        if (!many_keys)
            return run(keys.with(only_key, [](const Key& only) { return only.rounds(); }), work);
        for (const int rounds : keys.sizes()) {
            DAEL_TRY(run(rounds, work));
            work.reset = 0;
        }
        return {};
    }

    CudaDevice& device;
    const DeviceKeys& keys;
    const GcmBatch& batch;
    Stream stream;
    bool many_keys;
    std::uint32_t only_key;  // of all messages, where they have but one

  private:
    Result<> hash(Part part) const;
    unsigned finish_grid(unsigned threads) const;
    Result<> crypt(int rounds) const;
    Result<> crypt_and_hash() const;
    // The key of all messages, for kernels that take it as a parameter; none where they have many.
    void its_key(RoundKeys& key) const;
    Result<> crypt_all() const {
        return for_each_size([&](int rounds, GcmBatch&) { return crypt(rounds); });
    }
};

class GcmPrepared final : public PreparedBatch {
  public:
    // As Device::prepare. Of ctr the messages' counters must not wrap in their low 32 bits.
    static Result<std::unique_ptr<GcmPrepared>> make(CudaDevice& device, const Cipher& cipher,
                                                     const core::KeyList& keys,
                                                     const Messages& messages);
    GcmPrepared(CudaDevice& on, std::shared_ptr<DeviceKeys> its_keys, const Cipher& its_cipher)
        : PreparedBatch(on, std::move(its_keys), its_cipher) {}

    const GcmBatch& batch() const { return batch_; }

  protected:
    Result<> launch(Stream stream) override;

  private:
    Result<> believe();
    void order_messages(const Messages& messages);
    Result<> allocate(const SetUp& set_up, const Messages& messages);
    Result<> put(const SetUp& set_up, const core::KeyList& keys, std::span<const Message> messages);
    GcmSteps steps(const GcmBatch& batch, Stream stream) const {
        return {device, *keys, batch, stream, many_keys_, only_key_};
    }

    GcmBatch batch_{};
    bool from_host_ = false;  // the list: where its tiles begin is known
    bool many_keys_ = false;
    std::uint32_t only_key_ = 0;
    std::vector<std::uint32_t> order_;  // of its short messages, until it has been copied
    bool any_short_ = true, any_long_ = true, any_long_aad_ = true;
};

}  // namespace dael::cuda
