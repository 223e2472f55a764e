// SPDX-License-Identifier: Apache-2.0
// GCM on the device made of threads.
#include <algorithm>
#include <cstring>
#include <utility>

#include "support/host_device.hpp"

namespace dael::test {

struct HostDevice::Keys final : core::PreparedKeys {
    explicit Keys(std::atomic<int>& count) : live(count) { ++live; }
    ~Keys() override { --live; }
    std::atomic<int>& live;
    std::unique_ptr<core::PreparedKeys> keys;
};

struct HostDevice::Gcm final : core::PreparedGcm {
    explicit Gcm(HostDevice& owner) : device(owner) { ++device.batches_; }
    ~Gcm() override {
        if (codes) {
            std::memset(codes, 0, segments.size() * sizeof *codes);
            device.release(codes);
        }
        --device.batches_;
    }
    const std::uint32_t* results() const override { return codes; }

    HostDevice& device;
    const core::PreparedKeys* keys = nullptr;
    std::vector<core::GcmSegment> segments;
    std::vector<std::vector<std::uint8_t>> ivs;
    std::uint32_t* codes = nullptr;
};

Result<std::unique_ptr<core::PreparedKeys>> HostDevice::prepare_keys(std::span<const Key> keys) {
    DAEL_TRY(attempt("prepare_keys"));
    auto prepared = std::make_unique<Keys>(batches_);
    auto made = maths_->prepare_keys(keys);
    if (!made) return std::move(made).error();
    prepared->keys = std::move(*made);
    return std::unique_ptr<core::PreparedKeys>(std::move(prepared));
}

Result<std::unique_ptr<core::PreparedGcm>> HostDevice::prepare_gcm(
    const core::PreparedKeys& keys, std::span<const core::GcmSegment> segments) {
    DAEL_TRY(attempt("prepare_gcm"));
    auto batch = std::make_unique<Gcm>(*this);
    batch->keys = static_cast<const Keys&>(keys).keys.get();
    batch->segments.assign(segments.begin(), segments.end());
    for (auto& segment : batch->segments) {
        check_device_range(segment.in, segment.size, "prepare_gcm's in");
        check_device_range(segment.out, segment.size, "prepare_gcm's out");
        check_device_range(segment.aad, segment.aad_size, "prepare_gcm's aad");
        check_device_range(segment.tag, segment.tag_size, "prepare_gcm's tag");
        // IVs are the host's, and the caller's again as soon as this returns.
        segment.iv = batch->ivs.emplace_back(segment.iv, segment.iv + segment.iv_size).data();
    }
    auto codes = allocate(segments.size() * sizeof(std::uint32_t));
    if (!codes) return std::move(codes).error();
    batch->codes = static_cast<std::uint32_t*>(*codes);
    return std::unique_ptr<core::PreparedGcm>(std::move(batch));
}

// A device verifies before it writes: what the host backend would wipe stays as it was.
Result<> HostDevice::gcm(Direction direction, const core::PreparedGcm& batch, Stream stream) {
    DAEL_TRY(attempt("gcm"));
    const auto* prepared = static_cast<const Gcm*>(&batch);
    enqueue(stream, [this, direction, prepared] {
        ++kernels_;
        for (std::size_t i = 0; i < prepared->segments.size(); ++i) {
            core::GcmSegment segment = prepared->segments[i];
            std::vector<std::uint8_t> out(segment.size);
            std::uint8_t* const device_out = std::exchange(segment.out, out.data());
            Code code = Code::internal;
            if (!maths_->gcm(direction, *prepared->keys, std::span(&segment, 1),
                             std::span(&code, 1)))
                violation("the GCM kernel failed");
            if (code == Code::ok) std::ranges::copy(out, device_out);
            prepared->codes[i] = static_cast<std::uint32_t>(code);
        }
    });
    return {};
}

}  // namespace dael::test
