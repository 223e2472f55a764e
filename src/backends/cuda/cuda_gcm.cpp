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

}  // namespace

Result<std::unique_ptr<core::PreparedKeys>> CudaDevice::prepare_keys(std::span<const Key> keys) {
    if (keys.empty()) return Error{Code::invalid_argument, "a set of no keys; give one or more"};
    if (keys.size() > 0xffffffffu)
        return Error{Code::limit, "a set takes at most 2^32 - 1 keys; divide it"};
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    auto prepared = std::make_unique<GcmKeys>(index_);
    prepared->count = static_cast<std::uint32_t>(keys.size());

    std::vector<GcmKey> host(keys.size());
    Result<> result;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        prepared->rounds.insert(keys[i].rounds());
        prepared->rounds_of.push_back(static_cast<std::uint8_t>(keys[i].rounds()));
        std::memcpy(host[i].encrypt.w, keys[i].schedule().encrypt.data(), sizeof host[i].encrypt.w);
        host[i].rounds = static_cast<std::uint32_t>(keys[i].rounds());
    }
    const std::size_t bytes = host.size() * sizeof(GcmKey);
    result = prepared->keys_block.allocate(bytes, true);
    if (result) result = upload_now(prepared->keys_block.data(), host.data(), bytes);
    wipe(host.data(), bytes);
    DAEL_TRY(std::move(result));

    const auto tensor_cores = tensor_cores_hash();
    if (!tensor_cores) return tensor_cores.error();
    if (*tensor_cores && keys.size() <= kMostMatrices)
        DAEL_TRY(prepared->matrices_block.allocate(keys.size() * sizeof(GcmMatrices), true));

    GcmKey* device_keys = reinterpret_cast<GcmKey*>(prepared->keys_block.data());
    auto* matrices = reinterpret_cast<GcmMatrices*>(prepared->matrices_block.data());
    void* arguments[] = {&device_keys, &matrices, &prepared->count};
    const auto grid =
        static_cast<unsigned>(std::min<std::size_t>(keys.size(), info_.multiprocessors * 4u));
    const Stream stream{cudaStreamPerThread};
    DAEL_TRY(launch(gcm_key_setup_kernel(), grid, false, arguments, stream));
    DAEL_TRY(checked(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize"));
    for (const Key& key : keys) {
        auto copy = key.duplicate();
        if (!copy) return std::move(copy).error();
        prepared->host.push_back(std::move(*copy));
        if (keys.size() > kMostMatrices) break;  // large sets read their keys on the device
    }
    return std::unique_ptr<core::PreparedKeys>(std::move(prepared));
}

Result<bool> CudaDevice::tensor_cores_hash() {
    if (!use_tensor_cores_) return false;
    return has_ghash_tiles();
}

namespace {

Result<std::unique_ptr<PreparedGcmBatch>> allocate_batch(int device, unsigned multiprocessors,
                                                         const core::PreparedKeys& prepared,
                                                         std::size_t count, std::size_t tag_size,
                                                         bool messages, std::size_t iv_bytes,
                                                         IvList* ivs) {
    const auto found = keys_for_batch(prepared, device, count);
    if (!found) return found.error();
    const GcmKeys& keys = **found;
    if (tag_size != 0 && !valid_tag_size(tag_size))
        return Error{Code::invalid_argument, "tag size " + std::to_string(tag_size) +
                                                 "; GCM's tags have 4, 8, or 12 to 16 bytes"};
    auto made = std::make_unique<PreparedGcmBatch>(device, keys);
    GcmBatch& b = made->batch;
    b.keys = keys.keys();
    b.matrices = keys.matrices();
    b.count = static_cast<std::uint32_t>(count);
    b.key_count = keys.count;
    b.tag_size = static_cast<std::uint32_t>(tag_size);
    b.data.workers = b.aad.workers = multiprocessors * (b.matrices ? kTileWorkers : kRowWorkers);

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
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
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
    DAEL_TRY(upload_now(const_cast<GcmMessage*>(b.messages), messages.data(),
                        messages.size() * sizeof(GcmMessage)));
    const Stream stream{cudaStreamPerThread};
    const auto grid = static_cast<unsigned>(info_.multiprocessors);
    if (other_ivs) {
        DAEL_TRY(upload_now(const_cast<std::uint64_t*>(ivs.starts), iv_starts.data(),
                            iv_starts.size() * sizeof(std::uint64_t)));
        DAEL_TRY(
            upload_now(const_cast<unsigned char*>(ivs.bytes), iv_bytes.data(), iv_bytes.size()));
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
    prepared.many_keys |= prepared.only_key >= prepared.keys.host.size();
    void* arguments[] = {&b};
    if (prepared.any_long) DAEL_TRY(launch(gcm_plan_kernel(), 1, false, arguments, stream));
    prepared.planned = true;
    DAEL_TRY(checked(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize"));
    return std::unique_ptr<core::PreparedGcm>(std::move(*made));
}

Result<std::unique_ptr<core::PreparedGcm>> CudaDevice::prepare_gcm(
    const core::PreparedKeys& keys, const GcmMessage* device_messages, std::uint32_t count,
    std::size_t tag_size) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    auto made = allocate_batch(index_, static_cast<unsigned>(info_.multiprocessors), keys, count,
                               tag_size, false, 0, nullptr);
    if (!made) return std::move(made).error();
    (*made)->batch.messages = device_messages;
    (*made)->many_keys = (*made)->keys.count != 1;
    return std::unique_ptr<core::PreparedGcm>(std::move(*made));
}

Result<> CudaDevice::gcm(Direction direction, const core::PreparedGcm& prepared, Stream stream) {
    const auto* made = dynamic_cast<const PreparedGcmBatch*>(&prepared);
    if (!made)
        return Error{Code::invalid_argument, "cuda: the batch was prepared for another backend"};
    if (made->batch.count == 0) return {};
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    GcmBatch batch = made->batch;
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
        if (!made->many_keys)
            std::memcpy(key.w, made->keys.host[made->only_key].schedule().encrypt.data(),
                        sizeof key.w);
        void* arguments[] = {&batch, &key};
        auto result = launch(gcm_ctr_kernel(rounds, layout_.forward, made->many_keys), all, false,
                             arguments, stream);
        wipe(&key, sizeof key);
        return result;
    };
    // Kernels are made for one key size; messages under others are left to other launches.
    const auto for_each_size = [&](auto run) -> Result<> {
        if (!made->many_keys) return run(made->keys.host[made->only_key].rounds());
        for (const int rounds : made->keys.rounds) DAEL_TRY(run(rounds));
        return {};
    };

    if (!made->planned) DAEL_TRY(launch_batch(gcm_plan_kernel(), 1));
    if (made->any_short || batch.tag_size == 0)  // which also writes results
        DAEL_TRY(for_each_size([&](int rounds) {
            return launch_batch(gcm_short_kernel(rounds, layout_.forward),
                                std::min(all, batch.count));
        }));
    if (!made->any_long) return {};
    if (batch.tag_size == 0) {
        batch.opening = 0;  // there is no tag to wait for
        return for_each_size(crypt);
    }
    if (!batch.opening) DAEL_TRY(for_each_size(crypt));
    if (made->any_long_aad) DAEL_TRY(hash(Part::aad));
    DAEL_TRY(hash(Part::data));
    DAEL_TRY(for_each_size([&](int rounds) {
        return launch_batch(gcm_finish_kernel(rounds), std::min(all * 4, (batch.count + 7) / 8));
    }));
    return batch.opening ? for_each_size(crypt) : Result<>{};
}

}  // namespace dael::cuda
