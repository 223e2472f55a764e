// SPDX-License-Identifier: Apache-2.0
// The engine's GCM calls over device memory.
#include "modes/gcm.hpp"
#include "pipeline/guard.hpp"
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
    if (tag_size != 0) return modes::check(modes::to_segment(message, tag_size), keys);
    if (message.aad_size != 0)
        return Error{Code::invalid_argument,
                     "AAD without a tag; give a tag size, or leave the AAD out"};
    std::uint8_t no_tag = 0;  // what there is besides must be as if there were one
    GcmMessage with_tag = message;
    with_tag.tag = &no_tag;
    return modes::check(modes::to_segment(with_tag, kTagSize), keys);
}

}  // namespace

Result<GcmBatch> Engine::prepare_gcm(const KeySet& keys, std::span<const GcmMessage> messages,
                                     std::size_t tag_size) {
    return pipeline::guarded([&]() -> Result<GcmBatch> {
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
        const void* somewhere = messages.empty()  ? nullptr
                                : messages[0].tag ? messages[0].tag
                                                  : messages[0].out;
        auto lane = state_->lane_of(somewhere);
        if (!lane) return std::move(lane).error();
        auto prepared = keys.state_->on(**lane);
        if (!prepared) return std::move(prepared).error();
        auto batch = (*lane)->device.prepare_gcm(**prepared, segments);
        if (!batch) return std::move(batch).error();
        return GcmBatch(std::make_unique<GcmBatch::State>(
            GcmBatch::State{*lane, std::move(*batch), messages.size(), true}));
    });
}

Result<GcmBatch> Engine::prepare_gcm(const KeySet& keys, const GcmMessage* device_list,
                                     std::uint32_t count, std::size_t tag_size) {
    return pipeline::guarded([&]() -> Result<GcmBatch> {
        DAEL_TRY(check_batch_tag_size(tag_size));
        if (!device_list && count != 0)
            return Error{Code::invalid_argument, "the list of messages is null"};
        auto lane = state_->lane_of(device_list);
        if (!lane) return std::move(lane).error();
        auto prepared = keys.state_->on(**lane);
        if (!prepared) return std::move(prepared).error();
        auto batch = (*lane)->device.prepare_gcm(**prepared, device_list, count, tag_size);
        if (!batch) return std::move(batch).error();
        return GcmBatch(std::make_unique<GcmBatch::State>(
            GcmBatch::State{*lane, std::move(*batch), count, false}));
    });
}

Result<Ran> Engine::seal(GcmBatch& batch, Stream stream) {
    return pipeline::guarded([&]() -> Result<Ran> {
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
    return pipeline::guarded([&]() -> Result<Ran> {
        GcmBatch::State& state = *batch.state_;
        DAEL_TRY(state.lane->device.gcm(Direction::decrypt, *state.prepared, stream));
        return Ran{std::string(state.lane->backend->name()), 1, 0};
    });
}

Result<std::vector<Code>> Engine::results(const GcmBatch& batch, Stream stream) {
    return pipeline::guarded([&]() -> Result<std::vector<Code>> {
        const GcmBatch::State& state = *batch.state_;
        std::vector<std::uint32_t> raw(state.count);
        core::Device& device = state.lane->device;
        DAEL_TRY(device.copy_out(raw.data(), state.prepared->results(),
                                 raw.size() * sizeof(std::uint32_t), stream));
        DAEL_TRY(device.wait(stream));
        std::vector<Code> codes;
        for (const std::uint32_t code : raw) codes.push_back(static_cast<Code>(code));
        return codes;
    });
}

}  // namespace dael
