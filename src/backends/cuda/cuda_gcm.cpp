// SPDX-License-Identifier: Apache-2.0
// GCM on the device: keys and batches in device memory, and which kernels a batch takes.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cuda/cuda_device.hpp"
#include "backends/cuda/cuda_error.hpp"
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_memory.hpp"
#include "core/key_schedule.hpp"

namespace dael::cuda {
namespace {

// Matrices take 18 KiB a key. Sets of more keys than this do without, and hash long messages with
// ordinary multiplications.
constexpr std::size_t kMostMatrices = 4096;

// A place for arrays in one block of device memory.
class Layout16 {
  public:
    std::size_t place(std::size_t bytes) {
        const std::size_t at = size_;
        size_ += (bytes + 15) / 16 * 16;
        return at;
    }
    std::size_t size() const { return size_; }

  private:
    std::size_t size_ = 0;
};

// Round keys and rounds of all keys, through page-locked memory that is wiped; the rest of a GcmKey
// is made on the device.
Result<> upload_keys(const SetUp& set_up, int device, GcmKey* to, std::span<const Key> keys) {
    constexpr std::size_t kHead = offsetof(GcmKey, powers), kAtOnce = Staging::kSize / kHead;
    const Staging staging(device);
    DAEL_TRY(staging.result());
    for (std::size_t first = 0; first < keys.size(); first += kAtOnce) {
        const std::size_t count = std::min(kAtOnce, keys.size() - first);
        for (std::size_t i = 0; i < count; ++i) {
            const Key& key = keys[first + i];
            unsigned char* const head = staging.data() + i * kHead;
            const auto rounds = static_cast<std::uint32_t>(key.rounds());
            std::memcpy(head, key.schedule().encrypt.data(), sizeof(RoundKeys));
            std::memcpy(head + offsetof(GcmKey, rounds), &rounds, sizeof rounds);
        }
        DAEL_TRY(checked(cudaMemcpy2DAsync(to + first, sizeof(GcmKey), staging.data(), kHead, kHead,
                                           count, cudaMemcpyHostToDevice, set_up.stream()),
                         "cudaMemcpy2DAsync"));
        DAEL_TRY(set_up.wait());
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<core::PreparedKeys>> CudaDevice::prepare_keys(std::span<const Key> keys) {
    if (keys.empty()) return Error{Code::invalid_argument, "a set of no keys; give one or more"};
    if (keys.size() > 0xffffffffu)
        return Error{Code::limit, "a set takes at most 2^32 - 1 keys; divide it"};
    const SetUp set_up(index_);
    DAEL_TRY(set_up.result());
    auto prepared = std::make_shared<DeviceKeys>(index_);
    prepared->count = static_cast<std::uint32_t>(keys.size());
    for (const Key& key : keys) {
        prepared->rounds.insert(key.rounds());
        prepared->rounds_of.push_back(static_cast<std::uint8_t>(key.rounds()));
    }
    DAEL_TRY(prepared->keys_block.allocate(keys.size() * sizeof(GcmKey), true));
    auto* device_keys = reinterpret_cast<GcmKey*>(prepared->keys_block.data());
    DAEL_TRY(upload_keys(set_up, index_, device_keys, keys));

    const auto tensor_cores = tensor_cores_hash(set_up);
    if (!tensor_cores) return tensor_cores.error();
    if (*tensor_cores && keys.size() <= kMostMatrices)
        DAEL_TRY(prepared->matrices_block.allocate(keys.size() * sizeof(GcmMatrices), true));
    auto* matrices = reinterpret_cast<GcmMatrices*>(prepared->matrices_block.data());
    void* arguments[] = {&device_keys, &matrices, &prepared->count};
    const auto grid =
        static_cast<unsigned>(std::min<std::size_t>(keys.size(), info_.multiprocessors * 4u));
    DAEL_TRY(launch(gcm_key_setup_kernel(), grid, false, arguments, Stream{set_up.stream()}));
    DAEL_TRY(set_up.wait());
    for (const Key& key : keys) {
        auto copy = key.duplicate();
        if (!copy) return std::move(copy).error();
        prepared->host.push_back(std::move(*copy));
        if (keys.size() > kMostMatrices) break;  // large sets read their keys on the device
    }
    return std::unique_ptr<core::PreparedKeys>(std::make_unique<GcmKeys>(std::move(prepared)));
}

Result<bool> CudaDevice::tensor_cores_hash(const SetUp& set_up) {
    if (!use_tensor_cores_) return false;
    const std::lock_guard lock(mutex_);
    if (!hashes_on_tensor_cores_) {
        const auto has = has_ghash_tiles(set_up);
        if (!has) return has.error();
        hashes_on_tensor_cores_ = *has;
    }
    return *hashes_on_tensor_cores_;
}

namespace {

Result<std::unique_ptr<PreparedGcmBatch>> allocate_batch(int device, unsigned multiprocessors,
                                                         const core::PreparedKeys& prepared,
                                                         std::size_t count, std::size_t tag_size,
                                                         bool messages, std::size_t iv_bytes,
                                                         IvList* ivs) {
    auto found = keys_for_batch(prepared, device, count);
    if (!found) return found.error();
    const DeviceKeys& keys = **found;
    if (tag_size != 0 && !valid_tag_size(tag_size))
        return Error{Code::invalid_argument, "tag size " + std::to_string(tag_size) +
                                                 "; GCM's tags have 4, 8, or 12 to 16 bytes"};
    auto made = std::make_unique<PreparedGcmBatch>(device, std::move(*found));
    DAEL_TRY(made->runs.prepare());
    GcmBatch& b = made->batch;
    b.keys = keys.keys();
    b.matrices = keys.matrices();
    b.count = static_cast<std::uint32_t>(count);
    b.key_count = keys.count;
    b.tag_size = static_cast<std::uint32_t>(tag_size);
    b.data.workers = b.aad.workers =
        multiprocessors * (b.matrices ? shapes::kTileWorkers : shapes::kRowWorkers);

    Layout16 layout;
    const std::size_t starts = (count + 1) * sizeof(std::uint64_t),
                      partials = (b.data.workers + count) * sizeof(Words4);
    const std::size_t results = layout.place(count * sizeof(std::uint32_t)),
                      aad_starts = layout.place(starts), data_starts = layout.place(starts),
                      group_starts = layout.place(starts), aad_partials = layout.place(partials),
                      data_partials = layout.place(partials),
                      list = layout.place(messages ? count * sizeof(GcmMessage) : 0),
                      counters = layout.place(ivs ? count * sizeof(Words4) : 0),
                      iv_starts = layout.place(ivs ? starts : 0), iv_data = layout.place(iv_bytes);
    DAEL_TRY(made->block.allocate(layout.size(), true));
    const auto at = [&](std::size_t place) { return made->block.data() + place; };
    b.results = reinterpret_cast<std::uint32_t*>(at(results));
    b.aad.starts = reinterpret_cast<std::uint64_t*>(at(aad_starts));
    b.aad.partials = reinterpret_cast<Words4*>(at(aad_partials));
    b.data.starts = reinterpret_cast<std::uint64_t*>(at(data_starts));
    b.data.partials = reinterpret_cast<Words4*>(at(data_partials));
    b.groups.starts = reinterpret_cast<std::uint64_t*>(at(group_starts));
    if (messages) b.messages = reinterpret_cast<const GcmMessage*>(at(list));
    if (ivs) {
        b.counters = reinterpret_cast<const Words4*>(at(counters));
        ivs->starts = reinterpret_cast<const std::uint64_t*>(at(iv_starts));
        ivs->bytes = at(iv_data);
    }
    return made;
}

}  // namespace

Result<std::unique_ptr<core::PreparedGcm>> CudaDevice::prepare_gcm(
    const core::PreparedKeys& keys, std::span<const core::GcmSegment> segments) {
    const SetUp set_up(index_);
    DAEL_TRY(set_up.result());
    std::vector<GcmMessage> messages;
    std::vector<std::uint64_t> iv_starts{0};
    std::vector<std::uint8_t> iv_bytes;
    messages.reserve(segments.size());
    bool other_ivs = false;
    for (const core::GcmSegment& s : segments) {
        GcmMessage m{s.in, s.out, s.size, s.aad, s.aad_size, s.tag, {}, s.key};
        if (s.iv_size == kNonceSize)
            std::memcpy(m.nonce.data(), s.iv, kNonceSize);
        else
            other_ivs = true;
        messages.push_back(m);
    }
    if (other_ivs)
        for (const core::GcmSegment& s : segments) {
            iv_bytes.insert(iv_bytes.end(), s.iv, s.iv + s.iv_size);
            iv_starts.push_back(iv_bytes.size());
        }

    IvList ivs{};
    auto made = allocate_batch(index_, static_cast<unsigned>(info_.multiprocessors), keys,
                               segments.size(), segments.empty() ? 16 : segments[0].tag_size, true,
                               iv_bytes.size(), other_ivs ? &ivs : nullptr);
    if (!made) return std::move(made).error();
    PreparedGcmBatch& prepared = **made;
    GcmBatch& b = prepared.batch;
    if (messages.empty()) return std::unique_ptr<core::PreparedGcm>(std::move(*made));
    DAEL_TRY(set_up.upload(const_cast<GcmMessage*>(b.messages), messages.data(),
                           messages.size() * sizeof(GcmMessage)));
    const Stream stream{set_up.stream()};
    const auto grid = static_cast<unsigned>(info_.multiprocessors);
    if (other_ivs) {
        DAEL_TRY(set_up.upload(const_cast<std::uint64_t*>(ivs.starts), iv_starts.data(),
                               iv_starts.size() * sizeof(std::uint64_t)));
        DAEL_TRY(
            set_up.upload(const_cast<unsigned char*>(ivs.bytes), iv_bytes.data(), iv_bytes.size()));
        auto* counters = const_cast<Words4*>(b.counters);
        void* arguments[] = {&b, &ivs, &counters};
        DAEL_TRY(launch(gcm_hash_ivs_kernel(), grid, false, arguments, stream));
    }
    prepared.only_key = messages.front().key;
    prepared.any_short = prepared.any_long = prepared.any_long_aad = false;
    for (const GcmMessage& m : messages) {
        prepared.many_keys |= m.key != prepared.only_key;
        (is_long(m) ? prepared.any_long : prepared.any_short) = true;
        prepared.any_long_aad |= is_long(m) && m.aad_size > kShortAad;
    }
    prepared.many_keys |= prepared.only_key >= prepared.keys->host.size();
    void* arguments[] = {&b};
    if (prepared.any_long) DAEL_TRY(launch(gcm_plan_kernel(), 1, false, arguments, stream));
    prepared.from_host = true;
    DAEL_TRY(set_up.wait());
    return std::unique_ptr<core::PreparedGcm>(std::move(*made));
}

Result<std::unique_ptr<core::PreparedGcm>> CudaDevice::prepare_gcm(
    const core::PreparedKeys& keys, const GcmMessage* device_messages, std::uint32_t count,
    std::size_t tag_size) {
    const SetUp set_up(index_);
    DAEL_TRY(set_up.result());
    auto made = allocate_batch(index_, static_cast<unsigned>(info_.multiprocessors), keys, count,
                               tag_size, false, 0, nullptr);
    if (!made) return std::move(made).error();
    (*made)->batch.messages = device_messages;
    (*made)->many_keys = (*made)->keys->count != 1;
    return std::unique_ptr<core::PreparedGcm>(std::move(*made));
}

Result<> CudaDevice::gcm(Direction direction, const core::PreparedGcm& prepared, Stream stream) {
    const auto* made = dynamic_cast<const PreparedGcmBatch*>(&prepared);
    if (!made)
        return Error{Code::invalid_argument, "cuda: the batch was prepared for another backend"};
    if (made->batch.count == 0) return {};
    const bool repeats = made->from_host && direction == Direction::encrypt;
    return made->runs.in_turn(stream, repeats ? "nonces" : "",
                              [&] { return launch_gcm(direction, *made, stream); });
}

Result<> CudaDevice::launch_gcm(Direction direction, const PreparedGcmBatch& made, Stream stream) {
    GcmBatch batch = made.batch;
    batch.opening = direction == Direction::decrypt;
    const auto all = static_cast<unsigned>(info_.multiprocessors);
    const auto launch_batch = [&](const Kernel& kernel, unsigned grid) {
        void* arguments[] = {&batch};
        return launch(kernel, grid, false, arguments, stream);
    };
    const auto hash = [&](Part part) {
        void* arguments[] = {&batch, &part};
        return launch(batch.matrices ? ghash_tiles_kernel() : ghash_rows_kernel(), all, false,
                      arguments, stream);
    };
    const auto crypt = [&](int rounds) {
        RoundKeys key{};
        if (!made.many_keys)
            std::memcpy(key.w, made.keys->host[made.only_key].schedule().encrypt.data(),
                        sizeof key.w);
        void* arguments[] = {&batch, &key};
        auto result =
            launch(gcm_ctr_kernel(rounds, made.many_keys ? layout_.gcm_ctr_keys : layout_.gcm_ctr,
                                  made.many_keys),
                   all, false, arguments, stream);
        wipe(&key, sizeof key);
        return result;
    };
    // Kernels are made for one key size; messages under others are left to other launches.
    const auto for_each_size = [&](auto run) -> Result<> {
        if (!made.many_keys) return run(made.keys->host[made.only_key].rounds());
        for (const int rounds : made.keys->rounds) DAEL_TRY(run(rounds));
        return {};
    };

    if (!made.from_host) DAEL_TRY(launch_batch(gcm_plan_kernel(), 1));
    if (made.any_short || batch.tag_size == 0)  // which also writes results
        DAEL_TRY(for_each_size([&](int rounds) {
            return launch_batch(gcm_short_kernel(rounds, layout_.gcm_short),
                                std::min(all, batch.count));
        }));
    if (!made.any_long) return {};
    if (batch.tag_size == 0) {
        batch.opening = 0;  // there is no tag to wait for
        return for_each_size(crypt);
    }
    if (!batch.opening) DAEL_TRY(for_each_size(crypt));
    if (made.any_long_aad) DAEL_TRY(hash(Part::aad));
    DAEL_TRY(hash(Part::data));
    DAEL_TRY(for_each_size([&](int rounds) {
        return launch_batch(gcm_finish_kernel(rounds), std::min(all * 4, (batch.count + 7) / 8));
    }));
    return batch.opening ? for_each_size(crypt) : Result<>{};
}

}  // namespace dael::cuda
