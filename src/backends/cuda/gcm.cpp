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
    b.data.workers = b.aad.workers = static_cast<std::uint32_t>(device.info().multiprocessors) *
                                     (b.matrices ? shapes::kTileWorkers : shapes::kRowWorkers);

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
    DAEL_TRY(launch_all(gcm_plan_kernel(), 1, Stream{set_up.stream()}));
    return set_up.wait();
}

Result<> GcmPrepared::launch_all(const Kernel& kernel, unsigned grid, Stream stream) {
    void* arguments[] = {&batch_};
    return device.launch(kernel, grid, false, arguments, stream);
}

Result<> GcmPrepared::hash(Part part, Stream stream) {
    void* arguments[] = {&batch_, &part};
    return device.launch(batch_.matrices ? ghash_tiles_kernel() : ghash_rows_kernel(),
                         static_cast<unsigned>(device.info().multiprocessors), false, arguments,
                         stream);
}

Result<> GcmPrepared::crypt(int rounds, Stream stream) {
    RoundKeys key{};
    const core::WipeAtEnd wiped(key);
    if (!many_keys_)
        keys->with(only_key_, [&](const Key& only) {
            std::memcpy(key.w, only.schedule().encrypt.data(), sizeof key.w);
        });
    const Layout& layout = device.layout();
    const int tables = many_keys_ ? layout.gcm_ctr_keys : layout.gcm_ctr;
    void* arguments[] = {&batch_, &key};
    return device.launch(gcm_ctr_kernel(rounds, tables, many_keys_),
                         static_cast<unsigned>(device.info().multiprocessors), false, arguments,
                         stream);
}

// Kernels are made for one key size; messages under others are left to other launches.
template <class Run>
Result<> GcmPrepared::for_each_size(Run run) {
    if (!many_keys_)
        return run(keys->with(only_key_, [](const Key& only) { return only.rounds(); }));
    for (const int rounds : keys->sizes()) DAEL_TRY(run(rounds));
    return {};
}

Result<> GcmPrepared::launch(Stream stream) {
    if (batch_.count == 0) return {};
    const auto all = static_cast<unsigned>(device.info().multiprocessors);
    const auto crypt_all = [&] {
        return for_each_size([&](int rounds) { return crypt(rounds, stream); });
    };
    if (batch_.nonces) DAEL_TRY(launch_all(gcm_number_kernel(), all, stream));
    if (!from_host_) DAEL_TRY(launch_all(gcm_plan_kernel(), 1, stream));
    if (any_short_)  // of lists in device memory always: it writes results, of what is invalid too
        DAEL_TRY(for_each_size([&](int rounds) {
            return launch_all(gcm_short_kernel(rounds, device.layout().gcm_short),
                              std::min(all, batch_.count), stream);
        }));
    if (!any_long_) return {};
    if (batch_.tag_size == 0) return crypt_all();  // there is no tag to wait for
    if (!batch_.opening) DAEL_TRY(crypt_all());
    if (any_long_aad_) DAEL_TRY(hash(Part::aad, stream));
    DAEL_TRY(hash(Part::data, stream));
    DAEL_TRY(for_each_size([&](int rounds) {
        return launch_all(gcm_finish_kernel(rounds), std::min(all * 4, (batch_.count + 7) / 8),
                          stream);
    }));
    return batch_.opening ? crypt_all() : Result<>{};
}

Result<bool> CudaDevice::tensor_cores_hash(const SetUp& set_up) {
    if (!use_tensor_cores_) return false;
    DAEL_TRY(load(ghash_rows_kernel()));
    const std::lock_guard lock(mutex_);
    if (!hashes_on_tensor_cores_) {
        DAEL_LET(has, has_ghash_tiles(set_up));
        hashes_on_tensor_cores_ = has;
    }
    return *hashes_on_tensor_cores_;
}

}  // namespace dael::cuda
