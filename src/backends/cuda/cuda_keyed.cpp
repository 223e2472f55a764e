// SPDX-License-Identifier: Apache-2.0
// CBC encryption with a key for each message: batches in device memory and their launches.
#include <algorithm>
#include <numeric>
#include <vector>

#include "backends/cuda/cuda_device.hpp"
#include "backends/cuda/gcm_memory.hpp"
#include "backends/cuda/keyed_work.hpp"

namespace dael::cuda {
namespace {

// Descriptors, their order and results; no secrets.
class Prepared final : public core::PreparedKeyed {
  public:
    Prepared(int device, std::shared_ptr<const DeviceKeys> its_keys)
        : keys(std::move(its_keys)), block(device), runs(device) {}
    const std::uint32_t* results() const override { return work.results; }

    const std::shared_ptr<const DeviceKeys> keys;
    DeviceBlock block;
    Runs runs;  // after what its end waits for
    KeyedWork work{};
    bool from_host = false;  // the list, and with it the IVs
    std::set<int> rounds;    // of the keys that may be used
};

// `listed`: the block holds the messages and their order too.
Result<std::unique_ptr<Prepared>> allocate_batch(int device, const core::PreparedKeys& prepared,
                                                 std::size_t count, bool listed) {
    auto found = keys_for_batch(prepared, device, count);
    if (!found) return found.error();
    const DeviceKeys& keys = **found;
    auto made = std::make_unique<Prepared>(device, std::move(*found));
    made->from_host = listed;
    DAEL_TRY(made->runs.prepare());
    // The messages come first: their size is a multiple of 16, which keeps all aligned.
    const std::size_t list = listed ? count * sizeof(KeyedMessage) : 0;
    const std::size_t order = listed ? count * sizeof(std::uint32_t) : 0;
    DAEL_TRY(made->block.allocate(list + order + count * sizeof(std::uint32_t), false));
    unsigned char* const memory = made->block.data();
    KeyedWork& work = made->work;
    if (listed) {
        work.messages = reinterpret_cast<const KeyedMessage*>(memory);
        work.order = reinterpret_cast<const std::uint32_t*>(memory + list);
    }
    work.results = reinterpret_cast<std::uint32_t*>(memory + list + order);
    work.keys = keys.keys();
    work.count = static_cast<std::uint32_t>(count);
    work.key_count = keys.count;
    return made;
}

}  // namespace

Result<std::unique_ptr<core::PreparedKeyed>> CudaDevice::prepare_cbc_encrypt(
    const core::PreparedKeys& keys, std::span<const KeyedMessage> messages) {
    const SetUp set_up(index_);
    DAEL_TRY(set_up.result());
    auto made = allocate_batch(index_, keys, messages.size(), true);
    if (!made) return std::move(made).error();
    Prepared& prepared = **made;

    const std::vector<std::uint8_t>& rounds = prepared.keys->rounds_of;
    for (const KeyedMessage& m : messages) prepared.rounds.insert(rounds[m.key]);
    // Lanes of a warp wait for the longest of their messages, and leave each other's key sizes to
    // other launches: put like beside like.
    std::vector<std::uint32_t> order(messages.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
        const int rounds_a = rounds[messages[a].key], rounds_b = rounds[messages[b].key];
        return rounds_a != rounds_b ? rounds_a > rounds_b : messages[a].size > messages[b].size;
    });
    DAEL_TRY(set_up.upload(const_cast<KeyedMessage*>(prepared.work.messages), messages.data(),
                           messages.size_bytes()));
    DAEL_TRY(set_up.upload(const_cast<std::uint32_t*>(prepared.work.order), order.data(),
                           order.size() * sizeof(std::uint32_t)));
    return std::unique_ptr<core::PreparedKeyed>(std::move(*made));
}

Result<std::unique_ptr<core::PreparedKeyed>> CudaDevice::prepare_cbc_encrypt(
    const core::PreparedKeys& keys, const KeyedMessage* device_messages, std::uint32_t count) {
    const SetUp set_up(index_);
    DAEL_TRY(set_up.result());
    auto made = allocate_batch(index_, keys, count, false);
    if (!made) return std::move(made).error();
    (*made)->work.messages = device_messages;
    (*made)->rounds = (*made)->keys->rounds;
    return std::unique_ptr<core::PreparedKeyed>(std::move(*made));
}

Result<> CudaDevice::cbc_encrypt(const core::PreparedKeyed& batch, Stream stream) {
    const auto* prepared = dynamic_cast<const Prepared*>(&batch);
    if (!prepared || prepared->keys->device != index_)
        return Error{Code::invalid_argument, "cuda: the batch was prepared for another backend"};
    KeyedWork work = prepared->work;
    if (work.count == 0) return {};
    // As many multiprocessors as there are warps of messages.
    const unsigned grid = grid_for((std::uint64_t{work.count} + 31) / 32 * 4);
    void* arguments[] = {&work};
    return prepared->runs.in_turn(stream, prepared->from_host ? "IVs" : "", [&]() -> Result<> {
        // A kernel is made for one key size; messages under others are left to other launches.
        for (const int rounds : prepared->rounds)
            DAEL_TRY(launch(keyed_cbc_encrypt_kernel(rounds, layout_.forward), grid, false,
                            arguments, stream));
        return {};
    });
}

}  // namespace dael::cuda
