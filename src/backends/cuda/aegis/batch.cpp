// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/aegis/batch.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cuda/aegis/plan.hpp"
#include "backends/cuda/gcm/batch.hpp"
#include "modes/aegis.hpp"

namespace dael::cuda {
namespace {

// <daelstrom/device/detail/aegis.hpp> has the constants in words.
constexpr bool is_in_words(const Block& block, const kernels::Words4& words) {
    const std::uint32_t w[] = {words.x, words.y, words.z, words.w};
    for (std::size_t i = 0; i < 16; ++i)
        if (block[i] != (w[i / 4] >> (8 * (i % 4)) & 0xff)) return false;
    return true;
}
static_assert(is_in_words(dael::aegis::kC0, kernels::aegis_c0()) &&
              is_in_words(dael::aegis::kC1, kernels::aegis_c1()));
static_assert(kernels::kAegisBegin128 == dael::aegis::kBegin128 &&
              kernels::kAegisBegin256 == 4 * dael::aegis::kBegin256 &&
              kernels::kAegisEnd == dael::aegis::kEnd);

// The list, its order and results; nonces that count are the plan's of GCM.
class AegisPrepared final : public PreparedBatch {
  public:
    using PreparedBatch::PreparedBatch;

    Result<> put(const SetUp& set_up, const Messages& messages) {
        const bool listed_here = messages.place == Place::device;
        const std::size_t count = messages.count;
        const AegisPlan plan(listed_here ? std::span<const Message>{}
                                         : std::span(messages.list, count));
        const auto forced = device.forced_aegis_way();
        way_ = forced ? *forced
                      : aegis_way(cipher, device.layout().forward, device.layout().aegis_rows,
                                  listed_here ? count : plan.most,
                                  listed_here ? messages.longest : plan.bytes);
        Places places;
        const std::size_t results = places.add(count * sizeof(std::uint32_t)),
                          order = places.add(plan.order.size() * sizeof(std::uint32_t)),
                          list = places.add(listed_here ? 0 : count * sizeof(Message)),
                          state = places.add(listed_here ? sizeof(PlanState) : 0),
                          ordered = places.add(listed_here ? order_size(count) : 0);
        DAEL_TRY(runs.prepare());
        DAEL_TRY(block.allocate(places.size(), false));
        const auto at = [&](std::size_t place) { return block.data() + place; };
        work_.keys = keys->keys();
        work_.key_count = keys->count();
        work_.count = messages.count;
        work_.tag_size = cipher.tag;
        work_.results = results_ = reinterpret_cast<std::uint32_t*>(at(results));
        if (listed_here) {
            work_.messages = messages.list;
            work_.number = messages.number;
            work_.longest = messages.longest;
            ordering_.messages = messages.list;
            if (ordering_.turns != 0)
                ordering_.order = reinterpret_cast<std::uint32_t*>(at(ordered));
            return number(set_up, messages, reinterpret_cast<PlanState*>(at(state)));
        }
        if (count == 0) return {};
        work_.messages = reinterpret_cast<const Message*>(at(list));
        DAEL_TRY(set_up.upload(at(list), messages.list, count * sizeof(Message)));
        if (plan.order.empty()) return {};
        work_.order = reinterpret_cast<const std::uint32_t*>(at(order));
        return set_up.upload(at(order), plan.order.data(),
                             plan.order.size() * sizeof plan.order[0]);
    }
    Result<> believe() { return device.believe(cipher.mode, way_); }

  protected:
    Result<> launch(Stream stream) override {
        if (work_.count == 0) return {};
        if (numbers_.plan) {
            const GcmSteps steps{device, *keys, numbers_, stream, false, 0};
            DAEL_TRY(steps.plan());
        }
        const unsigned grid = aegis_grid(device, cipher.mode, way_, work_.count);
        AegisBatch work = work_;
        if (ordering_.order) {
            ordering_.number = work_.number;
            ordering_.count = work_.count;
            void* arguments[] = {&ordering_};
            DAEL_TRY(device.launch(aegis_order_kernel(), grid, false, arguments, stream));
            work.order = ordering_.order;
            work.number = nullptr;  // what has no message says so
            work.count = grid * ordering_.turns * ordering_.warps * ordering_.together;
        }
        void* arguments[] = {&work};
        return device.launch(
            aegis_kernel(cipher.mode, way_, cipher.direction == Direction::decrypt), grid, false,
            arguments, stream);
    }

  private:
    // A list whose nonces count, or that may have fewer messages than places, is gone through
    // first: it gives results to places that have no message or no nonce.
    Result<> number(const SetUp& set_up, const Messages& messages, PlanState* state) {
        if (!messages.nonces && !messages.number) return {};
        DAEL_TRY(
            checked(cudaMemsetAsync(state, 0, sizeof *state, set_up.stream()), "cudaMemsetAsync"));
        numbers_.messages = messages.list;
        numbers_.number = messages.number;
        numbers_.nonces = messages.nonces;
        numbers_.results = work_.results;
        numbers_.count = messages.count;
        numbers_.plan = state;
        numbers_.only_numbers = 1;
        if (messages.nonces) work_.number = &state->number;
        return {};
    }

    // How a list there is ordered, and the bytes that this takes.
    std::size_t order_size(std::size_t count) {
        const auto degree = static_cast<std::uint32_t>(dael::aegis::degree(cipher.mode));
        const unsigned grid = aegis_grid(device, cipher.mode, way_, count);
        ordering_.step = cipher.mode == Mode::aegis256 ? 16 : 32 * degree;
        ordering_.together = aegis_messages_of(cipher.mode, way_);
        ordering_.warps = aegis_kernel(cipher.mode, way_, false).shape.threads / kernels::kLanes;
        const std::uint64_t turn = std::uint64_t{ordering_.together} * ordering_.warps * grid,
                            turns = (count + turn - 1) / turn, all = turns * turn;
        if (all >= kNoMessage) return 0;  // more than can be told: as they are listed
        ordering_.turns = static_cast<std::uint32_t>(turns);
        return all * sizeof(std::uint32_t);
    }

    AegisBatch work_{};
    AegisOrdering ordering_{};  // of a list there
    GcmBatch numbers_{};        // for gcm_plan; without `plan`: there is nothing to number
    AegisWay way_ = AegisWay::plain;
};

}  // namespace

unsigned aegis_grid(const CudaDevice& device, Mode mode, AegisWay way, std::uint64_t messages) {
    const std::uint32_t each = aegis_messages_of(mode, way);
    return static_cast<unsigned>(
        std::clamp<std::uint64_t>((messages + each - 1) / each, 1,
                                  static_cast<std::uint64_t>(device.info().multiprocessors)));
}

Kernel aegis_kernel(Mode mode, AegisWay way, bool opening) {
    switch (mode) {
        case Mode::aegis256:
            return aegis256_kernel(way, opening);
        case Mode::aegis128x2:
            return aegis128x2_kernel(way, opening);
        case Mode::aegis128x4:
            return aegis128x4_kernel(way, opening);
        default:
            return aegis128l_kernel(way, opening);
    }
}

bool has_way(Mode mode, AegisWay way) {
    switch (way) {
        case AegisWay::lines:
            return mode == Mode::aegis128l || mode == Mode::aegis256;
        case AegisWay::lines2:
            return mode == Mode::aegis128l;
        case AegisWay::blocks2:
            return mode == Mode::aegis128x2 || mode == Mode::aegis128x4;
        case AegisWay::blocks4:
        case AegisWay::blocks8:
            return mode != Mode::aegis256;
        default:
            return true;
    }
}

std::uint32_t aegis_messages_of(Mode mode, AegisWay way) {
    const auto degree = static_cast<std::uint32_t>(dael::aegis::degree(mode));
    const std::uint32_t lanes =
        way == AegisWay::lines2 || way == AegisWay::blocks2                            ? 2
        : way == AegisWay::blocks4                                                     ? 4
        : way == AegisWay::blocks8 || (way == AegisWay::few && mode != Mode::aegis256) ? 8
                                                                                       : 1;
    return kernels::kLanes / (degree * lanes);
}

Result<std::unique_ptr<PreparedBatch>> prepare_aegis(CudaDevice& device, const Cipher& cipher,
                                                     const core::KeyList& keys,
                                                     const Messages& messages) {
    DAEL_LET(tables, tables_of(keys, device));
    DAEL_TRY(tables->ready(KeyParts::schedule));
    const SetUp set_up(device.index());
    DAEL_TRY(set_up.result());
    auto made = std::make_unique<AegisPrepared>(device, tables, cipher);
    DAEL_TRY(made->put(set_up, messages));
    DAEL_TRY(set_up.wait());
    DAEL_TRY(made->believe());
    return std::unique_ptr<PreparedBatch>(std::move(made));
}

}  // namespace dael::cuda
