// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/keys/keys.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "backends/cuda/device.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/launch.hpp"
#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"

namespace dael::cuda {
namespace {

// Matrices take 30 KiB a key, and 21 more where long messages are hashed as they are encrypted.
// Sets of more keys than this do without, and hash long messages with ordinary multiplications.
constexpr std::size_t kMaxMatrices = 4096;
// So many launches are sooner made than a copy and the wait for it.
constexpr std::size_t kFewKeys = 4;

constexpr std::uint32_t kFirstGeneration = 1;

void write_head(void* to, const Key& key, std::uint32_t generation) {
    const auto rounds = static_cast<std::uint32_t>(key.rounds());
    auto* const at = static_cast<unsigned char*>(to);
    std::memcpy(at, key.schedule().encrypt.data(), sizeof(RoundKeys));
    std::memcpy(at + offsetof(KeyHead, rounds), &rounds, sizeof rounds);
    std::memcpy(at + offsetof(KeyHead, generation), &generation, sizeof generation);
}

}  // namespace

DeviceKeys::DeviceKeys(CudaDevice& device, bool hash)
    : device_(device),
      index_(device.index()),
      hash_(hash),
      memory_(std::make_unique<KeyMemory>(device.index())) {}

DeviceKeys::~DeviceKeys() {
    end_or_keep(index_, std::move(memory_));
}

KeyMemory::~KeyMemory() {
    if (captured.empty()) return;
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    for (const cudaEvent_t event : captured) forget_failure(cudaEventDestroy(event));
}

Result<> KeyMemory::settle(bool waits) {
    DAEL_TRY(replacements.settle(waits));
    if (rooms)
        for (std::uint32_t room = 0; room < GcmRooms::kRooms; ++room)
            if (rooms_taken >> room & 1) DAEL_TRY((*rooms)[room].settle(waits));
    for (const cudaEvent_t event : captured) {
        const CurrentDevice current(device_);
        DAEL_TRY(current.result());
        const BesideCaptures beside;
        DAEL_TRY(checked(
            after_wait([&] { return waits ? cudaEventSynchronize(event) : cudaEventQuery(event); }),
            "cudaEventSynchronize"));
    }
    return all_ended(waits);
}

// The count of thread blocks that have ended is looked at again until it is the one that was
// launched: an event for each of these launches would take longer than a tenth of the launch.
Result<> KeyMemory::all_ended(bool waits) const {
    if (lent == 0) return {};
    const SetUp set_up(device_);
    DAEL_TRY(set_up.result());
    for (auto pause = std::chrono::microseconds(20);;) {
        unsigned long long so_far = 0;
        DAEL_TRY(checked(
            cudaMemcpyAsync(&so_far, ended, sizeof so_far, cudaMemcpyDeviceToHost, set_up.stream()),
            "cudaMemcpyAsync"));
        DAEL_TRY(checked(after_wait([&] { return cudaStreamSynchronize(set_up.stream()); }),
                         "cudaStreamSynchronize"));
        if (so_far >= lent) return {};
        if (!waits) return Error{Code::device, "cuda: launches under the keys are under way"};
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::microseconds(1000));
    }
}

Result<std::shared_ptr<DeviceKeys>> DeviceKeys::make(CudaDevice& device, std::span<const Key> keys,
                                                     bool hash) {
    if (keys.empty()) return Error{Code::invalid_argument, "a set of no keys; give one or more"};
    if (keys.size() > 0xffffffffu)
        return Error{Code::limit, "a set takes at most 2^32 - 1 keys; divide it"};
    const SetUp set_up(device.index());
    DAEL_TRY(set_up.result());
    auto made = std::make_shared<DeviceKeys>(device, hash);
    DAEL_TRY(made->memory_->replacements.prepare());
    for (const Key& key : keys) {
        made->rounds_.push_back(static_cast<std::uint8_t>(key.rounds()));
        ++made->with_rounds_[key.rounds()];
    }
    if (keys.front().is_xts()) return made;  // whose kernels take keys as parameters
    if (hash) {
        DAEL_TRY(device.hashing(set_up));  // by which rooms are made
        DAEL_LET(rooms, device.gcm_rooms(set_up));
        made->memory_->rooms = std::move(rooms);
    }
    const std::size_t size = keys.size() * sizeof(GcmKey);
    DAEL_TRY(made->memory_->keys.allocate(size + sizeof *made->memory_->ended, true));
    made->memory_->ended = reinterpret_cast<unsigned long long*>(made->memory_->keys.data() + size);
    DAEL_TRY(checked(
        cudaMemsetAsync(made->memory_->ended, 0, sizeof *made->memory_->ended, set_up.stream()),
        "cudaMemsetAsync"));
    DAEL_TRY(made->upload(set_up, keys));
    return made;
}

// Round keys and rounds of all keys; the rest of a GcmKey is made on the device. A few travel with
// launches, whose end ready() waits for; more through page-locked memory that is wiped.
Result<> DeviceKeys::upload(const SetUp& set_up, std::span<const Key> keys) {
    if (keys.size() <= kFewKeys)
        return memory_->replacements.in_turn(Stream{set_up.stream()}, [&]() -> Result<> {
            for (std::size_t i = 0; i < keys.size(); ++i)
                DAEL_TRY(put(static_cast<std::uint32_t>(i), keys[i], kFirstGeneration,
                             Stream{set_up.stream()}));
            return {};
        });
    constexpr std::size_t kHead = sizeof(KeyHead), kAtOnce = Staging::kSize / kHead;
    const Staging staging(device_.index());
    DAEL_TRY(staging.result());
    for (std::size_t first = 0; first < keys.size(); first += kAtOnce) {
        const std::size_t here = std::min(kAtOnce, keys.size() - first);
        for (std::size_t i = 0; i < here; ++i)
            write_head(staging.data() + i * kHead, keys[first + i], kFirstGeneration);
        DAEL_TRY(
            checked(cudaMemcpy2DAsync(this->keys() + first, sizeof(GcmKey), staging.data(), kHead,
                                      kHead, here, cudaMemcpyHostToDevice, set_up.stream()),
                    "cudaMemcpy2DAsync"));
        DAEL_TRY(set_up.wait());
    }
    return {};
}

Result<> DeviceKeys::put(std::uint32_t index, const Key& key, std::uint32_t generation,
                         Stream stream) {
    GcmKey* at = keys() + index;
    KeyHead head{};
    const core::WipeAtEnd wiped(head);
    write_head(&head, key, generation);
    void* arguments[] = {&at, &head};
    return device_.launch(gcm_key_replace_kernel(), 1, false, arguments, stream);
}

Result<> DeviceKeys::ready(KeyParts parts) {
    const int wanted = static_cast<int>(parts);
    DAEL_TRY(usable());
    if (!keys() || has(parts)) return {};
    if (parts == KeyParts::fused) DAEL_TRY(ready(KeyParts::ghash));
    const std::lock_guard lock(making_);
    if (ready_.load(std::memory_order_relaxed) >= wanted) return {};
    if (parts == KeyParts::fused && (!quads() || replaced_)) return {};
    const SetUp set_up(device_.index());
    DAEL_TRY(set_up.result());
    const Stream stream{set_up.stream()};
    if (parts == KeyParts::ghash) {
        DAEL_LET(hashing, device_.hashing(set_up));
        if (hashing != Hashing::rows && count() <= kMaxMatrices) {
            DAEL_TRY(memory_->matrices.allocate(count() * sizeof(GcmMatrices), true));
            if (hashing == Hashing::tiles)
                DAEL_TRY(memory_->quads.allocate(count() * sizeof(GcmQuads), true));
        }
    }
    if (parts == KeyParts::fused)
        DAEL_TRY(memory_->fused.allocate(count() * sizeof(GcmFused), true));
    DAEL_TRY(memory_->replacements.in_turn(stream, [&]() -> Result<> {
        return parts == KeyParts::ghash   ? set_up_keys(0, count(), stream)
               : parts == KeyParts::fused ? set_up_fused(0, count(), stream)
                                          : Result<>{};
    }));
    DAEL_TRY(set_up.wait());
    ready_.store(wanted, std::memory_order_release);
    return {};
}

Result<> DeviceKeys::set_up_keys(std::uint32_t first, std::uint32_t count, Stream stream) {
    GcmKey* at = keys() + first;
    GcmMatrices* its_matrices = matrices() ? matrices() + first : nullptr;
    GcmMatrices* for_tiles =
        device_.hashing(its_matrices != nullptr) == Hashing::tiles ? its_matrices : nullptr;
    const auto most = static_cast<unsigned>(device_.info().multiprocessors) * 4u;
    const unsigned grid = std::min<unsigned>(count, most);
    void* arguments[] = {&at, &for_tiles, &count};
    DAEL_TRY(device_.launch(gcm_key_setup_kernel(), grid, false, arguments, stream));
    if (quads()) {
        GcmQuads* its_quads = quads() + first;
        void* quad_arguments[] = {&at, &its_quads, &count};
        DAEL_TRY(device_.launch(gcm_quad_setup_kernel(), grid, false, quad_arguments, stream));
    }
    if (its_matrices == for_tiles) return {};
    arguments[1] = &its_matrices;
    return device_.launch(ghash_mma_setup_kernel(), grid, false, arguments, stream);
}

Result<> DeviceKeys::set_up_fused(std::uint32_t first, std::uint32_t count, Stream stream) {
    GcmKey* at = keys() + first;
    GcmFused* its_fused = fused_memory() + first;
    void* arguments[] = {&at, &its_fused, &count};
    const auto most = static_cast<unsigned>(device_.info().multiprocessors) * 4u;
    return device_.launch(gcm_fused_setup_kernel(), std::min<unsigned>(count, most), false,
                          arguments, stream);
}

std::vector<int> DeviceKeys::sizes() const {
    const std::lock_guard lock(mutex_);
    std::vector<int> sizes;
    for (const auto& [rounds, keys] : with_rounds_)
        if (keys != 0) sizes.push_back(rounds);
    return sizes;
}

int DeviceKeys::rounds(std::uint32_t index) const {
    const std::lock_guard lock(mutex_);
    return rounds_[index];
}

Result<> DeviceKeys::keep(std::uint32_t index, const Key& key) {
    const std::lock_guard lock(mutex_);
    if (host_.contains(index)) return {};
    DAEL_LET(copy, key.duplicate());
    host_.emplace(index, std::move(copy));
    return {};
}

std::uint32_t DeviceKeys::generation(std::uint32_t index) const {
    const std::lock_guard lock(mutex_);
    const auto found = generations_.find(index);
    return found == generations_.end() ? kFirstGeneration : found->second;
}

Result<> DeviceKeys::usable() const {
    if (whole()) return {};
    return Error{Code::device,
                 "cuda: a key of the set was replaced in part when the device failed; make a new "
                 "set"};
}

Result<> DeviceKeys::lend_capture(Stream stream) {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    const BesideCaptures beside;
    cudaEvent_t event = nullptr;
    DAEL_TRY(checked(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                     "cudaEventCreateWithFlags"));
    {
        const std::lock_guard lock(memory_->mutex);
        memory_->captured.push_back(event);
    }
    return checked(cudaEventRecordWithFlags(event, static_cast<cudaStream_t>(stream.handle),
                                            cudaEventRecordExternal),
                   "cudaEventRecordWithFlags");
}

// Once the first kernel is launched, the rest must be too: what can fail beforehand, as kernels
// that are loaded at their first launch, is done when the set is made ready.
Result<> DeviceKeys::replace_there(std::uint32_t index, const Key& key, Stream stream) {
    const std::lock_guard lock(making_);
    std::uint32_t generation = 0;
    {
        const std::lock_guard counting(mutex_);
        if (++last_generation_ == 0) ++last_generation_;
        generation = last_generation_;
    }
    bool begun = false;
    Result<> launched = memory_->replacements.in_turn(stream, [&]() -> Result<> {
        DAEL_TRY(put(index, key, generation, stream));
        begun = true;
        if (hash_) DAEL_TRY(set_up_keys(index, 1, stream));
        return fused() ? set_up_fused(index, 1, stream) : Result<>{};
    });
    replaced_ |= begun;
    if (!launched) {
        if (begun) spoiled_ = true;
        return launched;
    }
    const std::lock_guard counting(mutex_);
    generations_[index] = generation;
    return {};
}

Result<> DeviceKeys::replace(std::uint32_t index, const Key& key, Stream stream) {
    if (index >= count())
        return Error{Code::invalid_argument, "no key " + std::to_string(index) + "; the set has " +
                                                 std::to_string(count())};
    DAEL_TRY(usable());
    if (captured_)
        return Error{Code::unsupported,
                     "cuda: a launch under this set was captured, and its graph would go on with "
                     "the key that it has; make a new set for the new key, and prepare and capture "
                     "anew"};
    DAEL_LET(copy, key.duplicate());
    if (keys() || key.is_xts()) DAEL_TRY(device_.believe_size(key.rounds()));
    if (keys()) {
        // So that what GHASH needs is never behind a stream of others'.
        DAEL_TRY(ready(hash_ ? KeyParts::ghash : KeyParts::schedule));
        if (device_.order().is_capturing(stream))
            return Error{Code::unsupported,
                         "cuda: the stream is being captured, and the graph would keep the key; "
                         "replace it outside"};
        {  // so that what follows on the host cannot fail
            const std::lock_guard lock(mutex_);
            generations_.try_emplace(index, kFirstGeneration);
            with_rounds_.try_emplace(key.rounds(), 0);
        }
        DAEL_TRY(replace_there(index, key, stream));
    }
    const std::lock_guard lock(mutex_);
    ++with_rounds_[key.rounds()];
    if (const auto before = with_rounds_.find(rounds_[index]); --before->second == 0)
        with_rounds_.erase(before);
    rounds_[index] = static_cast<std::uint8_t>(key.rounds());
    if (const auto kept = host_.find(index); kept != host_.end()) kept->second = std::move(copy);
    return {};
}

Result<std::shared_ptr<DeviceKeys>> tables_of(const core::KeyList& keys, const CudaDevice& device) {
    const auto* tables = dynamic_cast<const CudaKeys*>(keys.tables);
    if (!tables || &tables->keys->device() != &device)
        return core::made_for_another("cuda", "keys");
    return tables->keys;
}

}  // namespace dael::cuda
