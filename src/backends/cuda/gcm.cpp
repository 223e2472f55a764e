// SPDX-License-Identifier: Apache-2.0
// GCM on the device: batches in device memory, and which kernels one takes.
#include "backends/cuda/gcm.hpp"

#include <algorithm>
#include <cstring>

#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"

namespace dael::cuda {

Result<std::unique_ptr<GcmPrepared>> GcmPrepared::make(CudaDevice& device, const Cipher& cipher,
                                                       const core::Keys& keys,
                                                       const Messages& messages) {
    DAEL_LET(tables, tables_of(keys, device));
    const SetUp set_up(device.index());
    DAEL_TRY(set_up.result());
    auto made = std::make_unique<GcmPrepared>(device, tables, cipher);
    DAEL_TRY(made->runs.prepare());
    DAEL_TRY(made->allocate(messages));
    if (messages.place == Place::host) {
        DAEL_TRY(made->put(set_up, keys, {messages.list, messages.count}));
    } else {
        made->batch_.messages = messages.list;
        made->batch_.number = messages.number;
        made->batch_.nonces = messages.nonces;
        made->many_keys_ = tables->count() != 1;
        if (!made->many_keys_ && !keys.list.empty()) DAEL_TRY(tables->keep(0, keys.list[0]));
    }
    return made;
}

Result<> GcmPrepared::allocate(const Messages& messages) {
    const std::size_t count = messages.count;
    GcmBatch& b = batch_;
    b.keys = keys->keys();
    b.matrices = keys->matrices();
    b.count = messages.count;
    b.key_count = keys->count();
    b.tag_size = authenticates(cipher.mode) ? cipher.tag : 0;
    b.opening = b.tag_size != 0 && cipher.direction == Direction::decrypt;
    b.data.workers = b.aad.workers = device.hash_workers(b.matrices != nullptr);

    Places places;
    const std::size_t starts = (count + 1) * sizeof(std::uint64_t),
                      partials = (b.data.workers + count) * sizeof(Words4);
    const std::size_t results = places.add(count * sizeof(std::uint32_t)),
                      aad_starts = places.add(starts), data_starts = places.add(starts),
                      group_starts = places.add(starts), aad_partials = places.add(partials),
                      data_partials = places.add(partials),
                      list =
                          places.add(messages.place == Place::host ? count * sizeof(Message) : 0);
    DAEL_TRY(block.allocate(places.size(), true));
    const auto at = [&](std::size_t place) { return block.data() + place; };
    b.results = reinterpret_cast<std::uint32_t*>(at(results));
    b.aad.starts = reinterpret_cast<std::uint64_t*>(at(aad_starts));
    b.aad.partials = reinterpret_cast<Words4*>(at(aad_partials));
    b.data.starts = reinterpret_cast<std::uint64_t*>(at(data_starts));
    b.data.partials = reinterpret_cast<Words4*>(at(data_partials));
    b.groups.starts = reinterpret_cast<std::uint64_t*>(at(group_starts));
    b.messages = reinterpret_cast<const Message*>(at(list));
    if (messages.place == Place::device || b.tag_size != 0) results_ = b.results;
    return {};
}

// A list of the host's: copied, and looked at for which kernels it takes.
Result<> GcmPrepared::put(const SetUp& set_up, const core::Keys& its_keys,
                          std::span<const Message> messages) {
    from_host_ = true;
    if (messages.empty()) return {};
    DAEL_TRY(set_up.upload(const_cast<Message*>(batch_.messages), messages.data(),
                           messages.size_bytes()));
    only_key_ = messages.front().key;
    any_short_ = any_long_ = any_long_aad_ = false;
    for (const Message& m : messages) {
        many_keys_ |= m.key != only_key_;
        (is_long(m) ? any_long_ : any_short_) = true;
        any_long_aad_ |= is_long(m) && m.aad_size > kShortAad;
    }
    if (!many_keys_ && only_key_ < its_keys.list.size())
        DAEL_TRY(keys->keep(only_key_, its_keys.list[only_key_]));
    if (!any_long_) return {};
    DAEL_TRY(steps(Stream{set_up.stream()}).launch(gcm_plan_kernel(), 1));
    return set_up.wait();
}

Result<> GcmSteps::launch(const Kernel& kernel, unsigned grid) const {
    void* arguments[] = {const_cast<GcmBatch*>(&batch)};
    return device.launch(kernel, grid, false, arguments, stream);
}

Result<> GcmSteps::hash(Part part) const {
    void* arguments[] = {const_cast<GcmBatch*>(&batch), &part};
    return device.launch(device.hash_kernel(batch.matrices != nullptr),
                         static_cast<unsigned>(device.info().multiprocessors), false, arguments,
                         stream);
}

Result<> GcmSteps::crypt(int rounds) const {
    RoundKeys key{};
    const core::WipeAtEnd wiped(key);
    if (!many_keys)
        keys.with(only_key, [&](const Key& only) {
            std::memcpy(key.w, only.schedule().encrypt.data(), sizeof key.w);
        });
    const Layout& layout = device.layout();
    const int tables = many_keys ? layout.gcm_ctr_keys : layout.gcm_ctr;
    void* arguments[] = {const_cast<GcmBatch*>(&batch), &key};
    return device.launch(gcm_ctr_kernel(rounds, tables, many_keys),
                         static_cast<unsigned>(device.info().multiprocessors), false, arguments,
                         stream);
}

Result<> GcmSteps::long_messages(bool any_long_aad) const {
    if (batch.tag_size == 0) return crypt_all();  // there is no tag to wait for
    if (!batch.opening) DAEL_TRY(crypt_all());
    if (any_long_aad) DAEL_TRY(hash(Part::aad));
    DAEL_TRY(hash(Part::data));
    const auto most = static_cast<unsigned>(device.info().multiprocessors) * 4;
    DAEL_TRY(for_each_size([&](int rounds) {
        return launch(gcm_finish_kernel(rounds), std::min(most, (batch.count + 7) / 8));
    }));
    return batch.opening ? crypt_all() : Result<>{};
}

Result<> GcmPrepared::launch(Stream stream) {
    if (batch_.count == 0) return {};
    const auto all = static_cast<unsigned>(device.info().multiprocessors);
    const GcmSteps steps = this->steps(stream);
    if (batch_.nonces) DAEL_TRY(steps.launch(gcm_number_kernel(), all));
    if (!from_host_) DAEL_TRY(steps.launch(gcm_plan_kernel(), 1));
    if (any_short_)  // of lists in device memory always: it writes results, of what is invalid too
        DAEL_TRY(steps.for_each_size([&](int rounds) {
            return steps.launch(gcm_short_kernel(rounds, device.layout().gcm_short),
                                std::min(all, batch_.count));
        }));
    return any_long_ ? steps.long_messages(any_long_aad_) : Result<>{};
}

Result<Hashing> CudaDevice::hashing(const SetUp& set_up) {
    if (best_hashing_ == Hashing::rows) return Hashing::rows;
    DAEL_TRY(load(ghash_rows_kernel()));
    const std::lock_guard lock(mutex_);
    if (!hashing_known_) {
        DAEL_LET(tiles, has_ghash_tiles(set_up));
        DAEL_LET(mma, has_ghash_mma(set_up));
        hashing_ = tiles && best_hashing_ == Hashing::tiles ? Hashing::tiles
                   : mma                                    ? Hashing::mma
                                                            : Hashing::rows;
        hashing_known_ = true;
    }
    return hashing_.load();
}

Hashing CudaDevice::hashing(bool matrices) const {
    return matrices ? hashing_.load() : Hashing::rows;
}
Kernel CudaDevice::hash_kernel(bool matrices) const {
    switch (hashing(matrices)) {
        case Hashing::tiles:
            return ghash_tiles_kernel();
        case Hashing::mma:
            return ghash_mma_kernel();
        case Hashing::rows:
            break;
    }
    return ghash_rows_kernel();
}
std::uint32_t CudaDevice::hash_workers(bool matrices) const {
    const Hashing hashing = this->hashing(matrices);
    return static_cast<std::uint32_t>(info_.multiprocessors) *
           (hashing == Hashing::tiles ? shapes::kTileWorkers
            : hashing == Hashing::mma ? shapes::kMmaWorkers
                                      : shapes::kRowWorkers);
}

}  // namespace dael::cuda
