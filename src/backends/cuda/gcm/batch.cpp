// SPDX-License-Identifier: Apache-2.0
// GCM on the device: batches in device memory, and which kernels one takes.
#include "backends/cuda/gcm/batch.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cuda/gcm/quads_plan.hpp"
#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"

namespace dael::cuda {

Result<std::unique_ptr<GcmPrepared>> GcmPrepared::make(CudaDevice& device, const Cipher& cipher,
                                                       const core::KeyList& keys,
                                                       const Messages& messages) {
    DAEL_LET(tables, tables_of(keys, device));
    DAEL_TRY(tables->ready(parts_for(cipher)));
    const SetUp set_up(device.index());
    DAEL_TRY(set_up.result());
    auto made = std::make_unique<GcmPrepared>(device, tables, cipher);
    DAEL_TRY(made->runs.prepare());
    made->order_messages(messages);
    DAEL_TRY(made->allocate(set_up, messages));
    if (messages.place == Place::host) {
        DAEL_TRY(made->put(set_up, keys, {messages.list, messages.count}));
    } else {
        made->batch_.messages = messages.list;
        made->batch_.number = messages.number;
        made->batch_.nonces = messages.nonces;
        made->batch_.plan_later = messages.nonces == nullptr;
        made->batch_.longest = messages.longest;
        made->any_long_ = messages.longest == 0 || messages.longest > kShortMessage;
        made->many_keys_ = tables->count() != 1;
        if (!made->many_keys_ && !keys.list.empty()) DAEL_TRY(tables->keep(0, keys.list[0]));
    }
    DAEL_TRY(set_up.wait());
    DAEL_TRY(made->believe());
    return made;
}

Result<> GcmPrepared::believe() {
    const std::vector<int> sizes =
        many_keys_ ? keys->sizes() : std::vector<int>{keys->rounds(only_key_)};
    for (const int rounds : sizes) {
        const auto ask = [&](bool used, Kind one, Kind many) -> Result<> {
            return used ? device.believe(many_keys_ ? many : one, rounds) : Result<>{};
        };
        const bool tags = batch_.tag_size != 0, quads = batch_.quads != nullptr;
        DAEL_TRY(ask(!tags, Kind::gcm_counter, Kind::gcm_counter));
        DAEL_TRY(ask(tags && any_short_ && !quads, Kind::gcm_short, Kind::gcm_short));
        DAEL_TRY(ask(tags && any_short_ && quads, Kind::gcm_quads, Kind::gcm_quads_keys));
        DAEL_TRY(ask(tags && any_long_ && batch_.fused, Kind::gcm_fused, Kind::gcm_fused_keys));
        DAEL_TRY(ask(tags && any_long_ && !batch_.fused, Kind::gcm_long, Kind::gcm_long_keys));
        DAEL_TRY(ask(tags && !from_host_, Kind::gcm_placed, Kind::gcm_placed));
    }
    return {};
}

// Short messages go 64 to a warpgroup where that pays: of one key in any list, of many in a list
// that can be ordered here.
void GcmPrepared::order_messages(const Messages& messages) {
    const bool forced = device.quads_forced();
    if (!keys->quads() || !authenticates(cipher.mode) || device.layout().gcm_short != 4) return;
    if (messages.place == Place::device) {
        if (keys->count() == 1 && (forced || messages.count >= kFewestForQuads))
            batch_.quads = keys->quads();
        return;
    }
    if (!forced && messages.count < QuadPlan::kFewest) return;
    QuadPlan plan({messages.list, messages.count});
    if (plan.groups() == 0 || (!forced && !plan.pays())) return;
    batch_.quads = keys->quads();
    batch_.quad_groups = plan.groups();
    order_ = std::move(plan.places);
}

Result<> GcmPrepared::allocate(const SetUp& set_up, const Messages& messages) {
    const std::size_t count = messages.count;
    GcmBatch& b = batch_;
    b.keys = keys->keys();
    b.count = messages.count;
    b.key_count = keys->count();
    b.tag_size = authenticates(cipher.mode) ? cipher.tag : 0;
    b.matrices = b.tag_size != 0 ? keys->matrices() : nullptr;
    b.opening = b.tag_size != 0 && cipher.direction == Direction::decrypt;
    b.data.workers = b.aad.workers = device.hash_workers(b.matrices != nullptr);
    const std::uint32_t workers = std::max(b.data.workers, device.fused_workers(false));

    Places places;
    const std::size_t starts = (count + 1) * sizeof(std::uint64_t),
                      partials = (workers + count) * sizeof(Words4);
    const std::size_t results = places.add(count * sizeof(std::uint32_t)),
                      aad_starts = places.add(starts), data_starts = places.add(starts),
                      group_starts = places.add(starts), aad_partials = places.add(partials),
                      data_partials = places.add(partials), plan = places.add(sizeof(PlanState)),
                      order = places.add(order_.size() * sizeof order_[0]),
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
    b.plan = reinterpret_cast<PlanState*>(at(plan));
    DAEL_TRY(
        checked(cudaMemsetAsync(b.plan, 0, sizeof(PlanState), set_up.stream()), "cudaMemsetAsync"));
    if (!order_.empty()) b.order = reinterpret_cast<const std::uint32_t*>(at(order));
    if (messages.place == Place::device || b.tag_size != 0) results_ = b.results;
    return {};
}

// A list of the host's: copied, and looked at for which kernels it takes.
Result<> GcmPrepared::put(const SetUp& set_up, const core::KeyList& its_keys,
                          std::span<const Message> messages) {
    from_host_ = true;
    if (messages.empty()) return {};
    DAEL_TRY(set_up.upload(const_cast<Message*>(batch_.messages), messages.data(),
                           messages.size_bytes()));
    if (!order_.empty())
        DAEL_TRY(set_up.upload(const_cast<std::uint32_t*>(batch_.order), order_.data(),
                               order_.size() * sizeof order_[0]));
    order_ = {};
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
    DAEL_LET(fused, fuses(device, cipher, *keys, messages));
    if (fused) fuse(device, *keys, many_keys_, batch_);
    return steps(batch_, Stream{set_up.stream()}).plan();
}

Result<bool> fuses(const CudaDevice& device, const Cipher& cipher, DeviceKeys& keys,
                   std::span<const Message> messages) {
    if (!authenticates(cipher.mode) || cipher.direction != Direction::encrypt || !keys.quads() ||
        device.layout().gcm_ctr != 4)
        return false;
    std::uint64_t count = 0, bytes = 0;
    for (const Message& m : messages) {
        if (!is_long(m)) continue;
        if (!kernels::aligned16(m.in, m.out)) return false;
        ++count;
        bytes += m.size;
    }
    if (count == 0 || bytes / count > kMaxFused) return false;
    Result<> ready = keys.ready(KeyParts::fused);
    if (ready.code() == Code::out_of_memory) return false;  // it can do without
    DAEL_TRY(std::move(ready));
    return keys.fused() != nullptr;
}

void fuse(const CudaDevice& device, const DeviceKeys& keys, bool many_keys, GcmBatch& batch) {
    batch.fused = keys.fused();
    batch.data.workers = device.fused_workers(many_keys);
}

Result<> GcmSteps::launch(const Kernel& kernel, unsigned grid, const GcmBatch& work) const {
    void* arguments[] = {const_cast<GcmBatch*>(&work)};
    return device.launch(kernel, grid, false, arguments, stream);
}

Result<> GcmSteps::plan() const {
    const auto multiprocessors = static_cast<unsigned>(device.info().multiprocessors);
    const std::uint32_t most = std::min(kPlanBlocks, 2 * multiprocessors),
                        threads = gcm_plan_kernel().shape.threads;
    return launch(gcm_plan_kernel(), std::min(most, batch.count / threads + 1), batch);
}

Result<> GcmSteps::hash(Part part) const {
    void* arguments[] = {const_cast<GcmBatch*>(&batch), &part};
    const auto all = static_cast<unsigned>(device.info().multiprocessors);
    return device.launch(device.hash_kernel(batch.matrices != nullptr),
                         part == Part::both ? 2 * all : all, false, arguments, stream);
}

// A warp to a message as long as there are warps for all on the multiprocessors; then a lane.
unsigned GcmSteps::finish_grid(unsigned threads) const {
    const auto all = static_cast<unsigned>(device.info().multiprocessors);
    const auto blocks = [&](unsigned each) { return (batch.count - 1) / each + 1; };
    return std::clamp(blocks(threads), std::min(all, blocks(threads / kernels::kLanes)), 4 * all);
}

void GcmSteps::its_key(RoundKeys& key) const {
    if (!many_keys)
        keys.with(only_key, [&](const Key& only) {
            std::memcpy(key.w, only.schedule().encrypt.data(), sizeof key.w);
        });
}

namespace {

// Of a list whose nonces count there, only those messages that the plan gave one.
void number_those_granted(GcmBatch& work) {
    if (work.nonces) work.number = &work.plan->number;
}

}  // namespace

Result<> GcmSteps::short_messages() const {
    const auto all = static_cast<unsigned>(device.info().multiprocessors);
    if (!batch.quads)
        return for_each_size([&](int rounds, GcmBatch& work) {
            number_those_granted(work);
            return launch(gcm_short_kernel(rounds, device.layout().gcm_short),
                          std::min(all, batch.count), work);
        });
    RoundKeys key{};
    const core::WipeAtEnd wiped(key);
    its_key(key);
    std::uint32_t index = only_key;
    return for_each_size([&](int rounds, GcmBatch& work) {
        number_those_granted(work);
        void* arguments[] = {&work, &key, &index};
        return device.launch(gcm_quads_kernel(rounds, many_keys), all, false, arguments, stream);
    });
}

Result<> GcmSteps::crypt(int rounds) const {
    RoundKeys key{};
    const core::WipeAtEnd wiped(key);
    its_key(key);
    const Layout& layout = device.layout();
    const int tables = many_keys ? layout.gcm_ctr_keys : layout.gcm_ctr;
    void* arguments[] = {const_cast<GcmBatch*>(&batch), &key};
    Kernel kernel = gcm_ctr_kernel(rounds, tables, many_keys);
    kernel.overlaps = !batch.opening;
    return device.launch(kernel, static_cast<unsigned>(device.info().multiprocessors), false,
                         arguments, stream);
}

Result<> GcmSteps::crypt_and_hash() const {
    RoundKeys key{};
    const core::WipeAtEnd wiped(key);
    its_key(key);
    std::uint32_t index = only_key;
    void* arguments[] = {const_cast<GcmBatch*>(&batch), &key, &index};
    return for_each_size([&](int rounds, GcmBatch&) {
        return device.launch(gcm_fused_kernel(rounds, many_keys),
                             static_cast<unsigned>(device.info().multiprocessors), false, arguments,
                             stream);
    });
}

Result<> GcmSteps::long_messages(bool any_long_aad) const {
    if (batch.tag_size == 0) return crypt_all();  // there is no tag to wait for
    if (batch.fused) {
        DAEL_TRY(crypt_and_hash());
        if (any_long_aad) DAEL_TRY(hash(Part::aad));
    } else {
        if (!batch.opening) DAEL_TRY(crypt_all());
        DAEL_TRY(hash(any_long_aad ? Part::both : Part::data));
    }
    DAEL_TRY(for_each_size([&](int rounds, GcmBatch& work) {
        const Kernel kernel = gcm_finish_kernel(rounds);
        return launch(kernel, finish_grid(kernel.shape.threads), work);
    }));
    return batch.opening ? crypt_all() : Result<>{};
}

Result<> GcmPrepared::launch(Stream stream) {
    if (batch_.count == 0) return {};
    GcmBatch batch = batch_;
    if (!many_keys_) batch.generation = keys->generation(only_key_);
    const GcmSteps steps = this->steps(batch, stream);
    // Starts to write, a number that may leave places empty, or units to find.
    const bool planned = !from_host_ && (batch_.nonces || batch_.number || any_long_);
    if (planned && !batch_.plan_later) DAEL_TRY(steps.plan());
    if (any_short_)  // of lists in device memory always: it writes results, of what is invalid too
        DAEL_TRY(steps.short_messages());
    if (planned && batch_.plan_later) DAEL_TRY(steps.plan());
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
std::uint32_t CudaDevice::fused_workers(bool many_keys) const {
    return static_cast<std::uint32_t>(info_.multiprocessors) * shapes::fused_groups(many_keys);
}

}  // namespace dael::cuda
