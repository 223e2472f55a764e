// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/batch.hpp"

#include <new>

#include "backends/cuda/device.hpp"
#include "backends/cuda/keys/keys.hpp"

namespace dael::cuda {

namespace {

struct KeptBlock final : Kept {
    explicit KeptBlock(DeviceBlock&& its_block) : block(std::move(its_block)) {}
    Result<> settle(bool) override { return block.wipe(); }
    DeviceBlock block;
};

}  // namespace

DeviceBlock::~DeviceBlock() {
    if (!memory_) return;
    const core::Uncancelled whole;
    if (!core::guarded([&] { return wipe(); })) {
        auto* const kept = new (std::nothrow) KeptBlock(std::move(*this));
        end_or_keep(device_, std::unique_ptr<Kept>(kept));  // no memory to remember it: it stays
        return;
    }
    give_back(device_, memory_, false);
}

Result<> DeviceBlock::wipe() {
    if (!memory_ || !secret_) return {};
    const SetUp set_up(device_);
    DAEL_TRY(set_up.result());
    DAEL_TRY(checked(cudaMemsetAsync(memory_, 0, size_, set_up.stream()), "cudaMemsetAsync"));
    DAEL_TRY(checked(after_wait([&] { return cudaStreamSynchronize(set_up.stream()); }),
                     "cudaStreamSynchronize"));
    secret_ = false;
    return {};
}

Result<> DeviceBlock::allocate(std::size_t size, bool secret) {
    if (memory_) return {};
    retry_kept(device_);
    void* memory = nullptr;
    DAEL_TRY(checked(cudaMalloc(&memory, std::max<std::size_t>(size, 1)), "cudaMalloc"));
    memory_ = static_cast<unsigned char*>(memory);
    size_ = size;
    secret_ = secret;
    return {};
}

Runs::~Runs() {
    if (!ended_) return;
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    forget_failure(cudaEventDestroy(ended_));
}

Result<> Runs::settle(bool waits) {
    if (!ended_) return {};
    const CurrentDevice current(device_);
    DAEL_TRY(current.result());
    const BesideCaptures beside;
    if (lost_) return Error{Code::device, "cuda: nothing tells when a launch has ended"};
    if (!any_) return {};
    return checked(
        after_wait([&] { return waits ? cudaEventSynchronize(ended_) : cudaEventQuery(ended_); }),
        "cudaEventSynchronize");
}

Result<> Runs::prepare() {
    return checked(cudaEventCreateWithFlags(&ended_, cudaEventDisableTiming),
                   "cudaEventCreateWithFlags");
}

// A graph waits for the event, and records it, with each replay: in the order of the calls, it is
// one more stream.
Result<bool> Runs::begin(cudaStream_t stream) {
    if (lost_)
        return Error{Code::device,
                     "cuda: nothing tells when the last launch has ended; prepare it anew"};
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    DAEL_TRY(checked(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing"));
    if (capture != cudaStreamCaptureStatusNone) {
        DAEL_TRY(checked(cudaStreamWaitEvent(stream, ended_, cudaEventWaitExternal),
                         "cudaStreamWaitEvent"));
        captured_ = true;
        return true;
    }
    // By its number: handles are used again for other streams, and one of them means another stream
    // in each thread.
    unsigned long long id = 0;
    DAEL_TRY(checked(cudaStreamGetId(stream, &id), "cudaStreamGetId"));
    if (any_ && (captured_ || id != last_stream_))
        DAEL_TRY(checked(cudaStreamWaitEvent(stream, ended_, 0), "cudaStreamWaitEvent"));
    last_stream_ = id;
    return false;
}

Result<> Runs::end(cudaStream_t stream, bool capturing) {
    const cudaError_t recorded =
        capturing ? cudaEventRecordWithFlags(ended_, stream, cudaEventRecordExternal)
                  : cudaEventRecord(ended_, stream);
    any_ = true;
    lost_ |= recorded != cudaSuccess && !capturing;
    return checked(recorded, capturing ? "cudaEventRecordWithFlags" : "cudaEventRecord");
}

PreparedBatch::PreparedBatch(CudaDevice& on, std::shared_ptr<DeviceKeys> its_keys,
                             const Cipher& its_cipher)
    : index_(on.index()),
      held_(std::make_unique<Held>(on.index(), std::move(its_keys))),
      device(on),
      keys(held_->keys),
      cipher(its_cipher),
      block(held_->block),
      runs(held_->runs) {}

Result<> PreparedBatch::run(Stream stream) {
    DAEL_TRY(keys->usable());
    Result<> ran =
        core::guarded([&] { return runs.in_turn(stream, [&] { return launch(stream); }); });
    if (runs.captured()) keys->note_capture();  // whatever came of it
    return ran;
}

}  // namespace dael::cuda
