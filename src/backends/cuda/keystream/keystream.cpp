// SPDX-License-Identifier: Apache-2.0
// Launches of keystream's runs, one for most lists, and how one sees that they are done: by a word
// of page-locked memory that the kernel writes last, which takes no call of the driver's to look
// at. The keystream goes where it is to lie from the kernel itself: page-locked memory has one
// address for the host and all GPUs.
#include <algorithm>
#include <atomic>
#include <memory>

#include "backends/cuda/device.hpp"
#include "backends/cuda/keys/keys.hpp"
#include "backends/cuda/keystream/kernel.hpp"
#include "core/guard.hpp"

namespace dael::cuda {
namespace {

// A warp makes two rows, or more where a list is long. So few thread blocks write as fast as the
// bus takes it (on an H200 8 bring as much as 64, or more), and leave multiprocessors to the
// launches beside them.
constexpr std::uint32_t kRowsOfAWarp = 2;
constexpr unsigned kMaxBlocks = 8;
// Looks at the word between two questions to the driver.
constexpr std::uint32_t kLooks = 4096;

class CudaKeystream final : public core::KeystreamMaker {
  public:
    explicit CudaKeystream(CudaDevice& device)
        : device_(device), arrived_(std::make_unique<DeviceBlock>(device.index())) {}

    Result<> open() {
        const SetUp set_up(device_.index());
        DAEL_TRY(set_up.result());
        DAEL_TRY(arrived_->allocate(sizeof(std::uint32_t), false));
        DAEL_TRY(
            checked(cudaMemsetAsync(arrived_->data(), 0, sizeof(std::uint32_t), set_up.stream()),
                    "cudaMemsetAsync"));
        DAEL_TRY(set_up.wait());
        DAEL_LET(word, device_.memory().allocate_pinned(sizeof *done_));
        done_ = static_cast<std::uint32_t*>(word);
        *done_ = ticket_;
        return {};
    }

    bool reaches() const { return device_.memory().is_pinned(done_, sizeof *done_); }

    ~CudaKeystream() override {
        if (!core::waited([&] { return wait(); }))
            (void)arrived_.release();  // whether a kernel will still write there nobody knows
        else if (done_)
            device_.memory().release_pinned(done_);
    }

    Result<std::unique_ptr<core::KeyTables>> keys(std::span<const Key> list) override {
        DAEL_LET(made, DeviceKeys::make(device_, list, false));
        DAEL_TRY(made->ready(KeyParts::schedule));
        return std::unique_ptr<core::KeyTables>(std::make_unique<CudaKeys>(std::move(made)));
    }

    Result<> begin(const core::KeyTables& tables, std::span<const core::KeystreamRun> runs,
                   Stream stream) override {
        const auto* const its = dynamic_cast<const CudaKeys*>(&tables);
        if (!its || &its->keys->device() != &device_ || !its->keys->keys())
            return core::made_for_another("cuda", "keys");
        for (const core::KeystreamRun& run : runs)
            if (run.key >= its->keys->count())
                return Error{Code::invalid_argument, "cuda: no key " + std::to_string(run.key) +
                                                         "; the set has " +
                                                         std::to_string(its->keys->count())};
        stream_ = stream;
        under_way_ = true;
        looks_ = 0;
        KeystreamWork& work = work_;
        work.keys = its->keys->keys();
        work.arrived = reinterpret_cast<std::uint32_t*>(arrived_->data());
        work.ticket = ++ticket_;
        // Launches of one stream take place one after another, so that the last speaks for all.
        for (std::size_t i = 0; i < runs.size();) {
            work.count = work.rows = 0;
            while (i < runs.size() && add_run(work, runs[i])) ++i;
            work.done = i == runs.size() ? done_ : nullptr;
            DAEL_TRY(launch());
        }
        return {};
    }

    Result<bool> done() override {
        if (!under_way_) return true;
        if (said()) {
            under_way_ = false;
            return true;
        }
        if (++looks_ % kLooks != 0) return false;
        // A kernel that faulted says nothing any more; the driver does.
        const CurrentDevice current(device_.index());
        DAEL_TRY(current.result());
        const BesideCaptures beside;
        const cudaError_t status = cudaStreamQuery(handle());
        if (status == cudaErrorNotReady) return false;
        DAEL_TRY(ended(status, "cudaStreamQuery"));
        return true;
    }

    Result<> wait() override {
        if (!under_way_) return {};
        const CurrentDevice current(device_.index());
        DAEL_TRY(current.result());
        const BesideCaptures beside;
        return ended(after_wait([&] { return cudaStreamSynchronize(handle()); }),
                     "cudaStreamSynchronize");
    }

  private:
    cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.handle); }
    bool said() const { return std::atomic_ref(*done_).load(std::memory_order_acquire) == ticket_; }

    Result<> launch() {
        const auto all = static_cast<unsigned>(device_.info().multiprocessors);
        const unsigned grid = std::clamp(work_.rows / (shapes::kKeystreamWarps * kRowsOfAWarp), 1u,
                                         std::min(kMaxBlocks, all));
        void* arguments[] = {&work_};
        return device_.launch(keystream_runs_kernel(), grid, false, arguments, stream_);
    }

    // The stream has nothing more to do, unless the wait failed: then nobody knows.
    Result<> ended(cudaError_t status, const char* call) {
        under_way_ = status != cudaSuccess;
        DAEL_TRY(checked(status, call));
        if (said()) return {};
        return Error{Code::device, "cuda: the kernel of keystream did not come to its end"};
    }

    CudaDevice& device_;
    std::unique_ptr<DeviceBlock> arrived_;  // KeystreamWork::arrived
    std::uint32_t* done_ = nullptr;
    std::uint32_t ticket_ = 0, looks_ = 0;  // of the last list, and at it
    bool under_way_ = false;
    Stream stream_;
    KeystreamWork work_{};
};

}  // namespace

Result<std::unique_ptr<core::KeystreamMaker>> make_keystream_maker(CudaDevice& device) {
    // Its kernel writes, and the host watches, page-locked memory: where kernels do not reach that
    // by the host's addresses, or it is managed memory, as under confidential computing, whose
    // pages would go to and fro, there is none.
    if (device.reach() == 0) return std::unique_ptr<core::KeystreamMaker>();
    auto made = std::make_unique<CudaKeystream>(device);
    DAEL_TRY(made->open());
    if (!made->reaches()) return std::unique_ptr<core::KeystreamMaker>();
    for (const int rounds : {10, 12, 14}) DAEL_TRY(device.believe(Kind::keystream, rounds));
    return std::unique_ptr<core::KeystreamMaker>(std::move(made));
}

}  // namespace dael::cuda
