// SPDX-License-Identifier: Apache-2.0
// One NVIDIA GPU as a core::Device.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "backends/cuda/aegis/kernels.hpp"
#include "backends/cuda/context.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/launch.hpp"
#include "backends/cuda/memory.hpp"
#include "backends/cuda/work.hpp"
#include "core/device.hpp"
#include "core/known_answers.hpp"

namespace dael::cuda {

// Kernels that are asked for an answer that is known before they are used: known_answers.cpp. Those
// "of keys" are for messages with keys of their own.
enum class Kind : std::uint8_t {
    ctr_small,
    ctr,
    ecb_encrypt,
    ecb_decrypt,
    cbc_encrypt,
    cbc_decrypt,
    cfb_encrypt,
    cfb_decrypt,
    ofb,
    cbc_keys,
    xts_encrypt,
    xts_decrypt,
    gcm_counter,
    gcm_short,
    gcm_quads,
    gcm_quads_keys,
    gcm_long,
    gcm_long_keys,
    gcm_fused,
    gcm_fused_keys,
    gcm_placed,
    gcm_team,
    gcm_pieces,
    xaes_eight,
    xaes_block,
    xaes_few,
    siv_eight,
    siv_block,
    siv_few,
    keystream
};
inline constexpr std::uint32_t kKinds = static_cast<std::uint32_t>(Kind::keystream) + 1;
// Of a message, or a list of them under one key, in modes that do not authenticate.
Kind kind_of(const Cipher& cipher);

class CudaDevice final : public core::Device {
  public:
    // `later`: the GPU's context is made by the first use, and whether this build has code for it
    // shows then. For tests: `tables` forces a layout (4, 2 or 1 tables; 0 takes the largest that
    // fits), and `hashing` is the best way of GHASH that may be taken.
    // Errors: backend_absent, where there is no code for its architecture; invalid_argument.
    static Result<std::unique_ptr<CudaDevice>> open(int index, int tables = 0,
                                                    Hashing hashing = Hashing::tiles,
                                                    bool later = false);

    const DeviceInfo& info() const override { return info_; }
    std::size_t reach() const override { return reach_; }
    Memory& memory() override { return memory_; }
    Order& order() override { return order_; }
    bool takes_in_one(const void* host_memory, std::size_t size) override {
        return memory_.is_one_pinned(host_memory, size);
    }

    Result<> run(const Cipher& cipher, const core::KeyList& keys, const Message& message,
                 Stream stream) override;
    Result<> run_in_reach(const Cipher& cipher, const core::KeyList& keys, const Message& message,
                          Stream stream) override;
    Result<std::unique_ptr<core::Prepared>> prepare(const Cipher& cipher, const core::KeyList& keys,
                                                    const Messages& messages) override;
    Result<> run(core::Prepared& prepared, Stream stream) override;
    // A few messages of GCM: gcm/launch.cpp.
    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 const LaunchOptions& options, Stream stream) override;

    Result<std::unique_ptr<core::KeystreamMaker>> keystream_maker() override;

    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys);
    // GCM in pieces: gcm/pieces.cpp.
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start);

    // Whether kernels of a kind, for keys of so many rounds, compute AES here: they are asked once
    // in a process, on a stream of their own. Errors: device, also where others computed wrongly.
    Result<> believe(Kind kind, int rounds) {
        const auto& kinds = believed_[static_cast<std::size_t>(rounds - 10) / 2];
        if ((kinds.load(std::memory_order_relaxed) & bit(kind)) != 0 && heard_.all()) [[likely]]
            return {};
        return believe_slowly(kind, rounds);
    }
    // And those of AEGIS, for which a mode has one size of keys.
    Result<> believe(Mode mode, AegisWay way) {
        if ((believed_aegis_[aegis_index(mode)].load(std::memory_order_relaxed) & bit(way)) != 0 &&
            heard_.all()) [[likely]]
            return {};
        return believe_slowly(mode, way);
    }
    // As core::Backend::usable() has it.
    Result<> usable() const;
    // All kinds that are in use, for keys of another size.
    Result<> believe_size(int rounds);

    // What its batches and keys are made with.
    int index() const { return index_; }
    const Layout& layout() const { return layout_; }
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
    // One message of XTS: modes/xts.cpp. `most`: thread blocks.
    Result<> run_xts(const Cipher& cipher, const Key& key, const Message& message, unsigned most,
                     Stream stream);
    // How GHASH is done here by keys that have matrices; which is looked up when the first keys are
    // made. And the kernel and its workers, with matrices or without.
    Result<Hashing> hashing(const SetUp& set_up);
    Hashing hashing(bool matrices) const;
    Kernel hash_kernel(bool matrices) const;
    std::uint32_t hash_workers(bool matrices) const;
    // And of those that encrypt as they hash.
    std::uint32_t fused_workers(bool many_keys) const;
    // Memory for launches of GCM without a batch. Keys have it made, so that no launch need.
    Result<std::shared_ptr<GcmRooms>> gcm_rooms(const SetUp& set_up);

    // For tests, which may have a run-time library of their own that knows no kernels: a kernel's
    // fixed shared memory, in bytes, and the most threads of a block, as it was compiled.
    struct Made {
        std::size_t shared;
        int threads;
    };
    Result<Made> made(const Kernel& kernel) const;
    // For tests: from which size on such a launch goes the long way.
    void force_team_message(std::uint64_t most) { team_message_ = most; }
    // For tests: short messages of GCM go 64 to a warpgroup, however few they are.
    void force_quads() { quads_forced_ = true; }
    bool quads_forced() const;
    // For tests: how messages of AEGIS are taken, whatever they are like.
    void force_aegis(std::optional<AegisWay> way) { aegis_way_ = way; }
    std::optional<AegisWay> forced_aegis_way() const;
    // For tests: so many of the next launches of this kernel fail, for lack of memory.
    void fail_launches(const Kernel& kernel, int times) {
        failing_ = times != 0 ? kernel.function : nullptr;
        failures_ = times;
    }
    // For tests: the tables of XTS's decryption, as xts_kernel() takes them.
    void force_xts_tables(int tables) { layout_.xts_inverse = tables; }

  private:
    CudaDevice(int index, Layout layout, DeviceInfo info, std::size_t reach, bool cooperative,
               bool overlaps, Hashing best_hashing)
        : index_(index),
          layout_(layout),
          info_(std::move(info)),
          reach_(reach),
          cooperative_(cooperative),
          overlaps_(overlaps),
          best_hashing_(best_hashing),
          memory_(index),
          order_(index) {}

    // Loads a kernel, so that it may have its shared memory. Errors: backend_absent.
    Result<> load(const Kernel& kernel);
    static std::uint32_t bit(Kind kind) { return 1u << static_cast<unsigned>(kind); }
    static std::uint32_t bit(AegisWay way) { return 1u << static_cast<unsigned>(way); }
    static std::size_t aegis_index(Mode mode) {
        return static_cast<std::size_t>(mode) - static_cast<std::size_t>(Mode::aegis128l);
    }
    Result<> believe_slowly(Kind kind, int rounds);
    Result<> believe_slowly(Mode mode, AegisWay way);
    // By which all that is known here is told from what another device or layout has answered.
    std::string answers_form() const;
    Result<> run_small(const Key& key, const Message& message, unsigned most, Stream stream);
    Result<> run_blocks(const Cipher& cipher, const Key& key, const Message& message, unsigned most,
                        Stream stream);

    const int index_;
    Layout layout_;
    const DeviceInfo info_;
    const std::size_t reach_;
    const bool cooperative_;
    const bool overlaps_;  // whether a kernel may begin before the one ahead of it has ended
    const Hashing best_hashing_;
    std::atomic<Hashing> hashing_{Hashing::rows};  // until it is known
    CudaMemory memory_;
    CudaOrder order_;
    std::mutex mutex_;                        // guards what follows
    std::unordered_set<const void*> loaded_;  // kernels whose shared-memory limit has been raised
    bool hashing_known_ = false;
    std::shared_ptr<GcmRooms> gcm_rooms_;
    std::uint64_t team_message_ = kTeamMessage;
    bool quads_forced_ = false;
    std::optional<AegisWay> aegis_way_;
    std::atomic<std::uint32_t> believed_[3] = {};        // a bit for each Kind, by rounds
    std::atomic<std::uint32_t> believed_aegis_[4] = {};  // a bit for each AegisWay, by mode
    core::Heard heard_;
    std::atomic<const void*> failing_{nullptr};
    std::atomic<int> failures_{0};
};

// How many CUDA devices this machine has; 0 with the reason.
int count_devices(std::string* why);

// As BackendEntry::device_name.
std::string device_name(int index);

// The backend around one device: `form` may force a layout, "tables=1".
Result<std::unique_ptr<core::Backend>> open_cuda_backend(const core::BackendOptions& options);
// The same with a layout forced as for CudaDevice::open.
Result<std::unique_ptr<core::Backend>> open_cuda_backend(int index, int tables = 0,
                                                         Hashing hashing = Hashing::tiles,
                                                         bool later = false);

}  // namespace dael::cuda
