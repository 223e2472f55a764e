// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/derived/batch.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/derived/plan.hpp"

namespace dael::cuda {
namespace {

// The list, its order and results. Nothing of a derived key is ever here.
class DerivedPrepared final : public PreparedBatch {
  public:
    using PreparedBatch::PreparedBatch;

    Result<> put(const SetUp& set_up, const Messages& messages) {
        const bool listed_here = messages.place == Place::device;
        const std::size_t count = messages.count;
        const auto grid = static_cast<std::uint32_t>(device.info().multiprocessors);
        const DerivedPlan plan(
            listed_here ? std::span<const Message>{} : std::span(messages.list, count),
            grid * shapes::kDerivedThreads / kernels::kLanes);
        Places places;
        const std::size_t results = places.add(count * sizeof(std::uint32_t)),
                          quarters = places.add(plan.quarters.size() * sizeof(std::uint32_t)),
                          blocks = places.add(plan.blocks.size() * sizeof(std::uint32_t)),
                          list = places.add(listed_here ? 0 : count * sizeof(Message));
        DAEL_TRY(runs.prepare());
        DAEL_TRY(block.allocate(places.size(), false));
        const auto at = [&](std::size_t place) { return block.data() + place; };
        DerivedBatch work{};
        work.keys = keys->keys();
        work.key_count = keys->count();
        work.most_short = plan.most_short;
        work.results = results_ = reinterpret_cast<std::uint32_t*>(at(results));
        eight_ = block_ = work;
        if (listed_here) {
            for (DerivedBatch* its : {&eight_, &block_}) {
                its->messages = messages.list;
                its->number = messages.number;
                its->longest = messages.longest;
                its->count = messages.count;
            }
            if (messages.longest != 0 && messages.longest <= work.most_short) block_.count = 0;
            return {};
        }
        if (count == 0) return {};
        DAEL_TRY(set_up.upload(at(list), messages.list, count * sizeof(Message)));
        const auto put_order = [&](DerivedBatch& its, const std::vector<std::uint32_t>& order,
                                   std::size_t place) -> Result<> {
            its.messages = reinterpret_cast<const Message*>(at(list));
            its.count = static_cast<std::uint32_t>(order.size());
            if (order.empty()) return {};
            // As they are listed, where that is all of them.
            if (order.size() == count && std::ranges::is_sorted(order)) return {};
            its.order = reinterpret_cast<const std::uint32_t*>(at(place));
            return set_up.upload(at(place), order.data(), order.size() * sizeof order[0]);
        };
        DAEL_TRY(put_order(eight_, plan.quarters, quarters));
        return put_order(block_, plan.blocks, blocks);
    }
    Result<> believe() {
        for (const int rounds : sizes()) {
            if (eight_.count != 0)
                DAEL_TRY(device.believe(kind_of(cipher.mode, DerivedWay::eight), rounds));
            if (block_.count != 0)
                DAEL_TRY(device.believe(kind_of(cipher.mode, DerivedWay::block), rounds));
        }
        return {};
    }

  protected:
    Result<> launch(Stream stream) override {
        const std::vector<int> all = sizes();
        if (all.empty())  // replaced beside this call: no kernel would write results
            return Error{Code::invalid_argument,
                         "cuda: " + std::string(name(cipher.mode)) + " has no keys of this size"};
        bool first = true;
        for (const int rounds : all) {
            DAEL_TRY(launch(eight_, DerivedWay::eight, rounds, first, stream));
            DAEL_TRY(launch(block_, DerivedWay::block, rounds, first, stream));
            first = false;
        }
        return {};
    }

  private:
    // The sizes of keys that there are and that the mode has: a replaced one may be of another.
    std::vector<int> sizes() const {
        std::vector<int> sizes = keys->sizes();
        std::erase(sizes, 12);
        if (cipher.mode == Mode::xaes256gcm) std::erase(sizes, 10);
        return sizes;
    }
    Result<> launch(const DerivedBatch& which, DerivedWay way, int rounds, bool first,
                    Stream stream) {
        if (which.count == 0) return {};
        DerivedBatch work = which;
        work.reset = first;
        const unsigned grid = derived_grid(
            way, work.count, static_cast<std::uint32_t>(device.info().multiprocessors));
        void* arguments[] = {&work};
        return device.launch(derived_kernel(cipher.mode, rounds, way, device.layout().derived,
                                            cipher.direction == Direction::decrypt),
                             grid, false, arguments, stream);
    }

    DerivedBatch eight_{}, block_{};
};

}  // namespace

Kernel derived_kernel(Mode mode, int rounds, DerivedWay way, int tables, bool opening) {
    return mode == Mode::xaes256gcm ? xaes_kernel(way, tables, opening)
                                    : siv_kernel(rounds, way, tables, opening);
}

Kind kind_of(Mode mode, DerivedWay way) {
    const bool xaes = mode == Mode::xaes256gcm;
    switch (way) {
        case DerivedWay::eight:
            return xaes ? Kind::xaes_eight : Kind::siv_eight;
        case DerivedWay::block:
            return xaes ? Kind::xaes_block : Kind::siv_block;
        default:
            return xaes ? Kind::xaes_few : Kind::siv_few;
    }
}

Result<std::unique_ptr<PreparedBatch>> prepare_derived(CudaDevice& device, const Cipher& cipher,
                                                       const core::KeyList& keys,
                                                       const Messages& messages) {
    DAEL_LET(tables, tables_of(keys, device));
    DAEL_TRY(tables->ready(KeyParts::schedule));
    const SetUp set_up(device.index());
    DAEL_TRY(set_up.result());
    auto made = std::make_unique<DerivedPrepared>(device, tables, cipher);
    DAEL_TRY(made->put(set_up, messages));
    DAEL_TRY(set_up.wait());
    DAEL_TRY(made->believe());
    return std::unique_ptr<PreparedBatch>(std::move(made));
}

}  // namespace dael::cuda
