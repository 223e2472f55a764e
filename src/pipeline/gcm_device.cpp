// SPDX-License-Identifier: Apache-2.0
// The engine's GCM calls over device memory.
#include "core/guard.hpp"
#include "modes/gcm.hpp"
#include "pipeline/key_set.hpp"

namespace dael {

struct GcmBatch::State {
    pipeline::Lane* lane;
    std::unique_ptr<core::PreparedGcm> prepared;
    std::size_t count;
    bool seals_once;  // the list came from the host: its nonces are fixed
    bool sealed = false;
};

GcmBatch::GcmBatch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
GcmBatch::GcmBatch(GcmBatch&&) noexcept = default;
GcmBatch& GcmBatch::operator=(GcmBatch&&) noexcept = default;
GcmBatch::~GcmBatch() = default;
const std::uint32_t* GcmBatch::results() const noexcept {
    return state_->prepared->results();
}

namespace {

// Counter mode alone is asked for with a tag size of 0.
Result<> check_batch_tag_size(std::size_t size) {
    return size == 0 ? Result<>{} : modes::check_tag_size(size);
}

Result<> check_message(const GcmMessage& message, std::size_t tag_size, std::size_t keys) {
    const core::GcmSegment segment = modes::to_segment(message, tag_size);
    return tag_size == 0 ? modes::check_ctr(segment, keys) : modes::check(segment, keys);
}

}  // namespace

Result<GcmBatch> Engine::prepare_gcm(const KeySet& keys, std::span<const GcmMessage> messages,
                                     std::size_t tag_size) {
    return core::guarded([&]() -> Result<GcmBatch> {
        DAEL_TRY(state_->check_owner(*keys.state_));
        DAEL_TRY(check_batch_tag_size(tag_size));
        std::vector<core::GcmSegment> segments;
        segments.reserve(messages.size());
        for (const GcmMessage& message : messages) {
            if (auto valid = check_message(message, tag_size, keys.size()); !valid) {
                Error error = std::move(valid).error();
                error.message = "message " + std::to_string(segments.size()) + ": " + error.message;
                return error;
            }
            segments.push_back(modes::to_segment(message, tag_size));
        }
        const void* somewhere = messages.empty() ? nullptr
                                : tag_size == 0  ? messages[0].out
                                                 : messages[0].tag;
        auto there = keys.state_->where(*state_, somewhere);
        if (!there) return std::move(there).error();
        const auto [lane, prepared] = *there;
        auto batch = lane->device.prepare_gcm(*prepared, segments);
        if (!batch) return std::move(batch).error();
        return GcmBatch(std::make_unique<GcmBatch::State>(
            GcmBatch::State{lane, std::move(*batch), messages.size(), true}));
    });
}

Result<GcmBatch> Engine::prepare_gcm(const KeySet& keys, const GcmMessage* device_list,
                                     std::uint32_t count, std::size_t tag_size) {
    return core::guarded([&]() -> Result<GcmBatch> {
        DAEL_TRY(state_->check_owner(*keys.state_));
        DAEL_TRY(check_batch_tag_size(tag_size));
        if (!device_list && count != 0)
            return Error{Code::invalid_argument, "the list of messages is null"};
        auto there = keys.state_->where(*state_, device_list);
        if (!there) return std::move(there).error();
        const auto [lane, prepared] = *there;
        auto batch = lane->device.prepare_gcm(*prepared, device_list, count, tag_size);
        if (!batch) return std::move(batch).error();
        return GcmBatch(std::make_unique<GcmBatch::State>(
            GcmBatch::State{lane, std::move(*batch), count, false}));
    });
}

Result<Ran> Engine::seal(GcmBatch& batch, Stream stream) {
    return core::guarded([&]() -> Result<Ran> {
        GcmBatch::State& state = *batch.state_;
        if (state.seals_once && state.sealed)
            return Error{Code::limit,
                         "the batch was sealed before, and its nonces must not be used again; "
                         "prepare one with new nonces"};
        state.sealed = true;
        DAEL_TRY(state.lane->device.gcm(Direction::encrypt, *state.prepared, stream));
        return Ran{std::string(state.lane->backend->name()), 1, 0};
    });
}

Result<Ran> Engine::open(GcmBatch& batch, Stream stream) {
    return core::guarded([&]() -> Result<Ran> {
        GcmBatch::State& state = *batch.state_;
        DAEL_TRY(state.lane->device.gcm(Direction::decrypt, *state.prepared, stream));
        return Ran{std::string(state.lane->backend->name()), 1, 0};
    });
}

Result<std::vector<Code>> Engine::results(const GcmBatch& batch, Stream stream) {
    return core::guarded([&]() -> Result<std::vector<Code>> {
        const GcmBatch::State& state = *batch.state_;
        return pipeline::fetch_results(state.lane->device, *state.prepared, state.count, stream);
    });
}

}  // namespace dael
