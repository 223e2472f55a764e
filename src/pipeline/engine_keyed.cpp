// SPDX-License-Identifier: Apache-2.0
// The engine's batches outside GCM with a key for each message: counter mode alone and CBC
// encryption, in host memory and in device memory.
#include <algorithm>

#include "core/guard.hpp"
#include "modes/segment.hpp"
#include "pipeline/key_set.hpp"

namespace dael {

using pipeline::GcmWork;
using pipeline::KeyedRuns;
using pipeline::KeyedWork;
using pipeline::Lane;

struct KeyedBatch::State {
    Lane* lane;
    std::unique_ptr<core::PreparedKeyed> prepared;
    std::size_t count;
};

KeyedBatch::KeyedBatch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
KeyedBatch::KeyedBatch(KeyedBatch&&) noexcept = default;
KeyedBatch& KeyedBatch::operator=(KeyedBatch&&) noexcept = default;
KeyedBatch::~KeyedBatch() = default;
const std::uint32_t* KeyedBatch::results() const noexcept {
    return state_->prepared->results();
}

// Through a device a key's messages travel together, one key after the other.
Result<Ran> Engine::State::keyed_through(Lane& lane, const KeySet::State& keys, Mode mode,
                                         const KeyedRuns& runs) {
    started_ = true;
    Ran ran{std::string(lane.backend->name()), 1, 0};
    for (const auto& run : runs.runs) {
        auto done = lane.transfer.run({mode, Direction::encrypt, &keys.keys[run.key]}, runs[run],
                                      transfer_options(lane));
        if (!done) return std::move(done).error();
        ran.threads = std::max(ran.threads, done->threads);
        ran.chunks += done->chunks;
    }
    return ran;
}

Result<Ran> Engine::State::keyed(KeySet::State& keys, const KeyedWork& work,
                                 std::span<Code> results) {
    DAEL_TRY(check_owner(keys));
    const auto order = pipeline::sort_valid(work, keys.count, results);
    Ran ran;
    if (core::Backend* const host = keys.host.backend) {
        auto threads = pipeline::keyed_on_host(*host, pool_, keys.keys, work, order);
        if (!threads) return std::move(threads).error();
        ran = {std::string(host->name()), *threads, 0};
    } else {
        auto through =
            keyed_through(*lanes_.front(), keys, work.mode, pipeline::share_out(work, order, 0));
        if (!through) return through;
        ran = std::move(*through);
    }
    for (const std::size_t i : order) results[i] = Code::ok;
    return ran;
}

namespace {

Result<> check_results(std::size_t messages, std::size_t results) {
    if (messages == results) return {};
    return Error{Code::invalid_argument, std::to_string(results) + " results for " +
                                             std::to_string(messages) +
                                             " messages; there must be as many"};
}

}  // namespace

Result<Ran> Engine::ctr_batch(const KeySet& keys, std::span<const GcmMessage> messages,
                              std::span<Code> results) {
    return core::guarded([&]() -> Result<Ran> {
        DAEL_TRY(check_results(messages.size(), results.size()));
        std::ranges::fill(results, Code::internal);  // should the call end before they are known
        // Devices have counter mode for messages of many keys in one launch, host backends have
        // not.
        if (!keys.state_->host.backend)
            return state_->gcm(*keys.state_, GcmWork(Direction::encrypt, messages, 0), results);
        return state_->keyed(*keys.state_, KeyedWork(messages), results);
    });
}

Result<Ran> Engine::cbc_encrypt_batch(const KeySet& keys, std::span<const KeyedMessage> messages,
                                      std::span<Code> results) {
    return core::guarded([&]() -> Result<Ran> {
        DAEL_TRY(check_results(messages.size(), results.size()));
        std::ranges::fill(results, Code::internal);
        return state_->keyed(*keys.state_, KeyedWork(messages), results);
    });
}

Result<KeyedBatch> Engine::prepare_cbc_encrypt(const KeySet& keys,
                                               std::span<const KeyedMessage> messages) {
    return core::guarded([&]() -> Result<KeyedBatch> {
        DAEL_TRY(state_->check_owner(*keys.state_));
        const void* somewhere = nullptr;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            if (auto valid = modes::check(Mode::cbc, messages[i], keys.size()); !valid) {
                Error error = std::move(valid).error();
                error.message = "message " + std::to_string(i) + ": " + error.message;
                return error;
            }
            if (!somewhere && messages[i].size != 0) somewhere = messages[i].out;
        }
        auto there = keys.state_->where(*state_, somewhere);
        if (!there) return std::move(there).error();
        const auto [lane, prepared] = *there;
        auto batch = lane->device.prepare_cbc_encrypt(*prepared, messages);
        if (!batch) return std::move(batch).error();
        return KeyedBatch(std::make_unique<KeyedBatch::State>(
            KeyedBatch::State{lane, std::move(*batch), messages.size()}));
    });
}

Result<KeyedBatch> Engine::prepare_cbc_encrypt(const KeySet& keys, const KeyedMessage* device_list,
                                               std::uint32_t count) {
    return core::guarded([&]() -> Result<KeyedBatch> {
        DAEL_TRY(state_->check_owner(*keys.state_));
        if (!device_list && count != 0)
            return Error{Code::invalid_argument, "the list of messages is null"};
        auto there = keys.state_->where(*state_, device_list);
        if (!there) return std::move(there).error();
        const auto [lane, prepared] = *there;
        auto batch = lane->device.prepare_cbc_encrypt(*prepared, device_list, count);
        if (!batch) return std::move(batch).error();
        return KeyedBatch(
            std::make_unique<KeyedBatch::State>(KeyedBatch::State{lane, std::move(*batch), count}));
    });
}

Result<Ran> Engine::run(KeyedBatch& batch, Stream stream) {
    return core::guarded([&]() -> Result<Ran> {
        const KeyedBatch::State& state = *batch.state_;
        DAEL_TRY(state.lane->device.cbc_encrypt(*state.prepared, stream));
        return Ran{std::string(state.lane->backend->name()), 1, 0};
    });
}

Result<std::vector<Code>> Engine::results(const KeyedBatch& batch, Stream stream) {
    return core::guarded([&]() -> Result<std::vector<Code>> {
        const KeyedBatch::State& state = *batch.state_;
        return pipeline::fetch_results(state.lane->device, *state.prepared, state.count, stream);
    });
}

}  // namespace dael
