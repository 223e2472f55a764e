// SPDX-License-Identifier: Apache-2.0
// One NVIDIA GPU as a core::Device.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_set>

#include "backends/cuda/cuda_context.hpp"
#include "backends/cuda/work.hpp"
#include "core/device.hpp"

namespace dael::cuda {

class PreparedGcmBatch;

class CudaDevice final : public core::Device {
  public:
    // `later`: the GPU's context is made by the first use, and whether this build has code for it
    // shows then. For tests: `tables` forces a layout (4, 2 or 1 tables; 0 takes the largest that
    // fits), and GHASH can be kept off the tensor cores.
    // Errors: backend_absent, where there is no code for its architecture; invalid_argument.
    static Result<std::unique_ptr<CudaDevice>> open(int index, int tables = 0,
                                                    bool use_tensor_cores = true,
                                                    bool later = false);

    const core::DeviceInfo& info() const override { return info_; }

    Result<> run(const core::Operation& operation, const core::Segment& segment,
                 Stream stream) override;
    Result<std::unique_ptr<core::PreparedBatch>> prepare(
        Mode mode, Direction direction, std::span<const core::Segment> segments) override;
    Result<> run(const core::Operation& operation, const core::PreparedBatch& batch,
                 Stream stream) override;

    // GCM: cuda_gcm.cpp.
    Result<std::unique_ptr<core::PreparedKeys>> prepare_keys(std::span<const Key> keys) override;
    Result<std::unique_ptr<core::PreparedGcm>> prepare_gcm(
        const core::PreparedKeys& keys, std::span<const core::GcmSegment> segments) override;
    Result<std::unique_ptr<core::PreparedGcm>> prepare_gcm(const core::PreparedKeys& keys,
                                                           const GcmMessage* device_messages,
                                                           std::uint32_t count,
                                                           std::size_t tag_size) override;
    Result<> gcm(Direction direction, const core::PreparedGcm& batch, Stream stream) override;
    // cuda_gcm_stream.cpp
    Result<std::unique_ptr<core::GcmStream>> gcm_stream(Direction direction,
                                                        const core::PreparedKeys& keys,
                                                        std::uint32_t key,
                                                        std::span<const std::uint8_t> iv) override;

    // CBC encryption with a key for each message: cuda_keyed.cpp.
    Result<std::unique_ptr<core::PreparedKeyed>> prepare_cbc_encrypt(
        const core::PreparedKeys& keys, std::span<const KeyedMessage> messages) override;
    Result<std::unique_ptr<core::PreparedKeyed>> prepare_cbc_encrypt(
        const core::PreparedKeys& keys, const KeyedMessage* device_messages,
        std::uint32_t count) override;
    Result<> cbc_encrypt(const core::PreparedKeyed& batch, Stream stream) override;

    // XTS: cuda_xts.cpp. For tests: `tables` are those of decryption, as xts_kernel() takes them.
    Result<> xts(const core::XtsOperation& operation, const core::Segment& segment,
                 Stream stream) override;
    void force_xts_tables(int tables) { layout_.xts_inverse = tables; }

    std::string layout() const override { return std::to_string(layout_.forward * 32) + " KiB"; }

    Result<void*> allocate(std::size_t size) override;
    void release(void* memory) noexcept override;
    Result<void*> allocate_pinned(std::size_t size) override;
    void release_pinned(void* memory) noexcept override;
    Result<std::uint64_t> free_memory() override;
    bool is_pinned(const void* host_memory) override;
    bool owns(const void* device_memory) override;

    Result<Stream> create_stream() override;
    void destroy_stream(Stream stream) noexcept override;
    Result<core::Event> create_event() override;
    void destroy_event(core::Event event) noexcept override;
    Result<> record(core::Event event, Stream stream) override;
    Result<> wait(Stream stream, core::Event event) override;
    Result<> wait(core::Event event) override;
    Result<> wait(Stream stream) override;
    Result<float> elapsed_ms(core::Event from, core::Event to) override;

    Result<> copy_in(void* device_memory, const void* host_memory, std::size_t size,
                     Stream stream) override;
    Result<> copy_out(void* host_memory, const void* device_memory, std::size_t size,
                      Stream stream) override;
    Result<> copy_within(void* to, const void* from, std::size_t size, Stream stream) override;
    Result<> fill(void* device_memory, std::uint8_t value, std::size_t size,
                  Stream stream) override;

  private:
    friend class CudaGcmStream;
    CudaDevice(int index, Layout layout, core::DeviceInfo info, bool cooperative,
               bool use_tensor_cores)
        : index_(index),
          layout_(layout),
          info_(std::move(info)),
          cooperative_(cooperative),
          use_tensor_cores_(use_tensor_cores) {}

    // Thread blocks for `units` units of work that a warp takes at once.
    unsigned grid_for(std::uint64_t units) const;
    // Makes the device current. `arguments`: addresses of the kernel's parameters.
    Result<> launch(const Kernel& kernel, unsigned grid, bool cooperative, void** arguments,
                    Stream stream);
    Result<> launch(const Kernel& kernel, unsigned grid, bool cooperative, const void* work,
                    const RoundKeys& keys, Stream stream) {
        void* arguments[] = {const_cast<void*>(work), const_cast<RoundKeys*>(&keys)};
        return launch(kernel, grid, cooperative, arguments, stream);
    }
    // Loads a kernel, so that it may have its shared memory. Errors: backend_absent.
    Result<> load(const Kernel& kernel);
    // Whether GHASH runs on this device's tensor cores.
    Result<bool> tensor_cores_hash(const SetUp& set_up);
    Result<> launch_gcm(Direction direction, const PreparedGcmBatch& batch, Stream stream);
    Result<> run_stream(const core::Operation& operation, const core::Segment& segment,
                        Stream stream);

    int index_;
    Layout layout_;
    core::DeviceInfo info_;
    bool cooperative_;
    bool use_tensor_cores_;
    std::mutex mutex_;                        // guards what follows
    std::unordered_set<const void*> loaded_;  // kernels whose shared-memory limit has been raised
    std::optional<bool> hashes_on_tensor_cores_;
};

// How many CUDA devices this machine has; 0 with the reason.
int count_devices(std::string* why);

// As BackendEntry::device_name.
std::string device_name(int index);

// The backend around one device: `isa` may force a layout, "tables=1".
Result<std::unique_ptr<core::Backend>> open_cuda_backend(const core::BackendOptions& options);

// The backend around one device, with a layout forced as for CudaDevice::open.
Result<std::unique_ptr<core::Backend>> open_cuda_backend(int index, int tables = 0,
                                                         bool use_tensor_cores = true,
                                                         bool later = false);

}  // namespace dael::cuda
