// SPDX-License-Identifier: Apache-2.0
// GCM, and batches with a key for each message, on the device made of threads.
#include <algorithm>
#include <cstring>
#include <utility>

#include "modes/gcm.hpp"
#include "support/host_device.hpp"

namespace dael::test {

struct HostDevice::Keys final : core::PreparedKeys {
    explicit Keys(std::atomic<int>& count) : live(count) { ++live; }
    ~Keys() override { --live; }
    std::atomic<int>& live;
    std::unique_ptr<core::PreparedKeys> keys;
    std::vector<Key> copies;
};

struct HostDevice::Gcm final : core::PreparedGcm {
    explicit Gcm(HostDevice& owner) : device(owner) { ++device.batches_; }
    ~Gcm() override {
        if (codes) {
            std::memset(codes, 0, count * sizeof *codes);
            device.release(codes);
        }
        --device.batches_;
    }
    const std::uint32_t* results() const override { return codes; }
    Result<> outcome() const override { return device.outcome(); }

    HostDevice& device;
    const Keys* keys = nullptr;
    std::vector<core::GcmSegment> segments;
    std::vector<std::vector<std::uint8_t>> ivs;
    const GcmMessage* list = nullptr;  // in device memory, in place of segments
    std::size_t count = 0, tag_size = 0;
    std::uint32_t* codes = nullptr;
};

Result<std::unique_ptr<core::PreparedKeys>> HostDevice::prepare_keys(std::span<const Key> keys) {
    DAEL_TRY(attempt("prepare_keys"));
    auto prepared = std::make_unique<Keys>(batches_);
    auto made = maths_->prepare_keys(keys);
    if (!made) return std::move(made).error();
    prepared->keys = std::move(*made);
    for (const Key& key : keys) prepared->copies.push_back(std::move(*key.duplicate()));
    return std::unique_ptr<core::PreparedKeys>(std::move(prepared));
}

Result<std::unique_ptr<core::PreparedGcm>> HostDevice::prepare_gcm(
    const core::PreparedKeys& keys, std::span<const core::GcmSegment> segments) {
    DAEL_TRY(attempt("prepare_gcm"));
    auto batch = std::make_unique<Gcm>(*this);
    batch->keys = &static_cast<const Keys&>(keys);
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
    batch->count = segments.size();
    return std::unique_ptr<core::PreparedGcm>(std::move(batch));
}

Result<std::unique_ptr<core::PreparedGcm>> HostDevice::prepare_gcm(
    const core::PreparedKeys& keys, const GcmMessage* device_messages, std::uint32_t count,
    std::size_t tag_size) {
    DAEL_TRY(attempt("prepare_gcm of a list"));
    check_device_range(device_messages, count * sizeof(GcmMessage), "prepare_gcm's list");
    auto batch = std::make_unique<Gcm>(*this);
    batch->keys = &static_cast<const Keys&>(keys);
    batch->list = device_messages;
    batch->count = count;
    batch->tag_size = tag_size;
    auto codes = allocate(count * sizeof(std::uint32_t));
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
        for (std::size_t i = 0; i < prepared->count; ++i) {
            core::GcmSegment segment =
                prepared->list ? modes::to_segment(prepared->list[i], prepared->tag_size)
                               : prepared->segments[i];
            check_device_range(segment.in, segment.size, "a message's in");
            check_device_range(segment.out, segment.size, "a message's out");
            if (segment.tag_size != 0)
                check_device_range(segment.tag, segment.tag_size, "a message's tag");
            std::vector<std::uint8_t> out(segment.size);
            std::uint8_t* const device_out = std::exchange(segment.out, out.data());
            Code code = Code::internal;
            if (segment.tag_size == 0) {
                core::Segment counted{segment.in, segment.out, segment.size, {}, 0};
                std::copy_n(segment.iv, kNonceSize, counted.iv.begin());
                counted.iv.back() = 1;
                code = run_keyed(*prepared->keys, Mode::ctr, segment.key, counted);
            } else if (!maths_->gcm(direction, *prepared->keys->keys, std::span(&segment, 1),
                                    std::span(&code, 1)))
                violation("the GCM kernel failed");
            if (code == Code::ok) std::ranges::copy(out, device_out);
            prepared->codes[i] = static_cast<std::uint32_t>(code);
        }
    });
    return {};
}

// A list of the host's is copied; one in device memory is read when the batch runs.
struct HostDevice::Keyed final : core::PreparedKeyed {
    explicit Keyed(HostDevice& owner) : device(owner) { ++device.batches_; }
    ~Keyed() override {
        if (codes) {
            std::memset(codes, 0, count * sizeof *codes);
            device.release(codes);
        }
        --device.batches_;
    }
    const std::uint32_t* results() const override { return codes; }
    Result<> outcome() const override { return device.outcome(); }

    HostDevice& device;
    const Keys* keys = nullptr;
    std::vector<KeyedMessage> copied;
    const KeyedMessage* list = nullptr;
    std::size_t count = 0;
    std::uint32_t* codes = nullptr;
};

Code HostDevice::run_keyed(const Keys& keys, Mode mode, std::uint32_t key,
                           const core::Segment& segment) {
    if (maths_->run({mode, Direction::encrypt, &keys.copies[key]}, std::span(&segment, 1)))
        return Code::ok;
    violation("the kernel of a batch with many keys failed");
    return Code::internal;
}

Result<std::unique_ptr<HostDevice::Keyed>> HostDevice::prepare_keyed(const core::PreparedKeys& keys,
                                                                     std::size_t count) {
    DAEL_TRY(attempt("prepare_cbc_encrypt"));
    auto batch = std::make_unique<Keyed>(*this);
    batch->keys = &static_cast<const Keys&>(keys);
    auto codes = allocate(count * sizeof(std::uint32_t));
    if (!codes) return std::move(codes).error();
    batch->codes = static_cast<std::uint32_t*>(*codes);
    batch->count = count;
    return batch;
}

Result<std::unique_ptr<core::PreparedKeyed>> HostDevice::prepare_cbc_encrypt(
    const core::PreparedKeys& keys, std::span<const KeyedMessage> messages) {
    auto batch = prepare_keyed(keys, messages.size());
    if (!batch) return std::move(batch).error();
    (*batch)->copied.assign(messages.begin(), messages.end());
    (*batch)->list = (*batch)->copied.data();
    for (const KeyedMessage& message : messages) {
        check_device_range(message.in, message.size, "prepare_cbc_encrypt's in");
        check_device_range(message.out, message.size, "prepare_cbc_encrypt's out");
    }
    return std::unique_ptr<core::PreparedKeyed>(std::move(*batch));
}

Result<std::unique_ptr<core::PreparedKeyed>> HostDevice::prepare_cbc_encrypt(
    const core::PreparedKeys& keys, const KeyedMessage* device_messages, std::uint32_t count) {
    auto batch = prepare_keyed(keys, count);
    if (!batch) return std::move(batch).error();
    check_device_range(device_messages, count * sizeof(KeyedMessage), "prepare_cbc_encrypt's list");
    (*batch)->list = device_messages;
    return std::unique_ptr<core::PreparedKeyed>(std::move(*batch));
}

Result<> HostDevice::cbc_encrypt(const core::PreparedKeyed& batch, Stream stream) {
    DAEL_TRY(attempt("cbc_encrypt"));
    const auto* prepared = static_cast<const Keyed*>(&batch);
    enqueue(stream, [this, prepared] {
        ++kernels_;
        for (std::size_t i = 0; i < prepared->count; ++i) {
            const KeyedMessage& m = prepared->list[i];
            Code code = m.key >= prepared->keys->copies.size() ? Code::invalid_argument
                        : m.size % kBlockSize != 0             ? Code::ragged_length
                                                               : Code::ok;
            if (code == Code::ok)
                code = run_keyed(*prepared->keys, Mode::cbc, m.key, {m.in, m.out, m.size, m.iv, 0});
            prepared->codes[i] = static_cast<std::uint32_t>(code);
        }
    });
    return {};
}

}  // namespace dael::test
