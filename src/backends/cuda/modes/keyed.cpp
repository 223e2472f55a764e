// SPDX-License-Identifier: Apache-2.0
// CBC encryption with a key for each message: batches in device memory.
#include <algorithm>
#include <numeric>
#include <vector>

#include "backends/cuda/device.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/modes/modes.hpp"

namespace dael::cuda {
namespace {

// Descriptors, their order and results; no secrets.
class KeyedBatch final : public PreparedBatch {
  public:
    using PreparedBatch::PreparedBatch;

    Result<> put(const SetUp& set_up, const core::KeyList& its_keys, const Messages& messages) {
        const bool listed_here = messages.place == Place::device;
        const std::size_t count = messages.count;
        work_.keys = keys->keys();
        work_.key_count = keys->count();
        work_.count = messages.count;
        Places places;
        const std::size_t results = places.add(listed_here ? count * sizeof(std::uint32_t) : 0),
                          list = places.add(listed_here ? 0 : count * sizeof(Message)),
                          order = places.add(listed_here ? 0 : count * sizeof(std::uint32_t));
        DAEL_TRY(runs.prepare());
        DAEL_TRY(block.allocate(places.size(), false));
        if (listed_here) {
            work_.messages = messages.list;
            work_.number = messages.number;
            work_.results = results_ = reinterpret_cast<std::uint32_t*>(block.data() + results);
            return {};
        }
        work_.messages = reinterpret_cast<const Message*>(block.data() + list);
        work_.order = reinterpret_cast<const std::uint32_t*>(block.data() + order);
        DAEL_TRY(set_up.upload(block.data() + list, messages.list, count * sizeof(Message)));
        const auto sorted = by_key_and_size(its_keys, {messages.list, count});
        return set_up.upload(block.data() + order, sorted.data(), count * sizeof sorted[0]);
    }

  protected:
    Result<> launch(Stream stream) override {
        if (work_.count == 0) return {};
        // As many multiprocessors as there are warps of messages.
        const unsigned grid = device.grid_for((std::uint64_t{work_.count} + 31) / 32 * 4);
        KeyedWork work = work_;
        work.reset = 1;
        void* arguments[] = {&work};
        for (const int rounds : keys->sizes()) {
            DAEL_TRY(device.launch(keyed_cbc_encrypt_kernel(rounds, device.layout().forward), grid,
                                   false, arguments, stream));
            work.reset = 0;
        }
        return {};
    }

  private:
    // Lanes of a warp wait for the longest of their messages, and leave each other's key sizes to
    // other launches: like beside like.
    static std::vector<std::uint32_t> by_key_and_size(const core::KeyList& its_keys,
                                                      std::span<const Message> messages) {
        std::vector<std::uint32_t> order(messages.size());
        std::iota(order.begin(), order.end(), 0u);
        std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
            const Message &m = messages[a], &n = messages[b];
            const int rounds_m = its_keys.list[m.key].rounds(),
                      rounds_n = its_keys.list[n.key].rounds();
            return rounds_m != rounds_n ? rounds_m > rounds_n : m.size > n.size;
        });
        return order;
    }

    KeyedWork work_{};
};

}  // namespace

Result<std::unique_ptr<PreparedBatch>> prepare_keyed(CudaDevice& device, const Cipher& cipher,
                                                     const core::KeyList& keys,
                                                     const Messages& messages) {
    DAEL_LET(tables, tables_of(keys, device));
    DAEL_TRY(tables->ready(KeyParts::schedule));
    for (const int rounds : tables->sizes()) DAEL_TRY(device.believe(Kind::cbc_keys, rounds));
    const SetUp set_up(device.index());
    DAEL_TRY(set_up.result());
    auto made = std::make_unique<KeyedBatch>(device, tables, cipher);
    DAEL_TRY(made->put(set_up, keys, messages));
    return std::unique_ptr<PreparedBatch>(std::move(made));
}

}  // namespace dael::cuda
