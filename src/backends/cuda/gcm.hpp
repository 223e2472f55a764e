// SPDX-License-Identifier: Apache-2.0
// Batches of GCM, and of its counter mode alone, in device memory.
#pragma once

#include "backends/cuda/device.hpp"
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/keys.hpp"

namespace dael::cuda {

class GcmPrepared final : public Batch {
  public:
    // As Device::prepare. Of ctr the messages' counters must not wrap in their low 32 bits.
    static Result<std::unique_ptr<GcmPrepared>> make(CudaDevice& device, const Cipher& cipher,
                                                     const core::Keys& keys,
                                                     const Messages& messages);
    GcmPrepared(CudaDevice& on, std::shared_ptr<DeviceKeys> its_keys, const Cipher& its_cipher)
        : Batch(on, std::move(its_keys), its_cipher) {}

    const GcmBatch& batch() const { return batch_; }

  protected:
    Result<> launch(Stream stream) override;

  private:
    Result<> allocate(const Messages& messages);
    Result<> put(const SetUp& set_up, const core::Keys& keys, std::span<const Message> messages);
    Result<> launch_all(const Kernel& kernel, unsigned grid, Stream stream);
    Result<> hash(Part part, Stream stream);
    Result<> crypt(int rounds, Stream stream);
    template <class Run>
    Result<> for_each_size(Run run);

    GcmBatch batch_{};
    bool from_host_ = false;  // the list: where its tiles begin is known
    bool many_keys_ = false;
    std::uint32_t only_key_ = 0;  // of all messages, where they have but one
    bool any_short_ = true, any_long_ = true, any_long_aad_ = true;
};

}  // namespace dael::cuda
