// SPDX-License-Identifier: Apache-2.0
// GCM of one message in pieces: the order of calls, the limits, and that no plaintext gets out
// before its tag is verified.
#include <daelstrom/gcm_stream.hpp>

#include <algorithm>
#include <vector>

#include "core/guard.hpp"
#include "modes/gcm.hpp"
#include "modes/segment.hpp"
#include "pipeline/engine_state.hpp"

namespace dael {
namespace {

// The first pass decrypts as well, for want of a way to hash only, into this much memory.
constexpr std::size_t kScratch = std::size_t{16} << 10;

Error out_of_order(const char* what) {
    return {Code::invalid_argument, what};
}

// Counts bytes against GCM's limits: nothing is processed that passes them.
struct Counts {
    std::uint64_t aad = 0, data = 0;

    Result<> add_aad(HostIn bytes) {
        if (!bytes.data() && !bytes.empty())
            return Error{Code::invalid_argument, "the additional data is null"};
        DAEL_TRY(modes::check_aad_size(bytes.size()));
        DAEL_TRY(modes::check_aad_size(aad + bytes.size()));
        aad += bytes.size();
        return {};
    }
    Result<> add_data(std::size_t size) {
        DAEL_TRY(modes::check_data_size(size));
        DAEL_TRY(modes::check_data_size(data + size));
        data += size;
        return {};
    }
};

// One key, made ready on the engine's backend, which must outlive the streams under it.
Result<pipeline::HostKeys> stream_keys(Engine::State& engine, const Key& key,
                                       std::span<const std::uint8_t> iv) {
    DAEL_TRY(modes::check_iv_size(iv.size()));
    if (!iv.data()) return Error{Code::invalid_argument, "the IV is null"};
    return engine.prepare_for_stream(key);
}

}  // namespace

struct GcmSealer::State {
    pipeline::HostKeys keys;
    std::unique_ptr<core::GcmStream> stream;
    Counts counts;
    enum class Phase { aad, data, spent } phase = Phase::aad;
};

struct GcmOpener::State {
    pipeline::HostKeys keys;
    std::unique_ptr<core::GcmStream> first, second;  // the passes
    std::vector<std::uint8_t> scratch;
    Counts counts;
    std::uint64_t decrypted = 0;
    Block tag{};  // of the first pass
    enum class Phase { aad, data, verified, spent } phase = Phase::aad;
};

GcmSealer::GcmSealer(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
GcmSealer::GcmSealer(GcmSealer&&) noexcept = default;
GcmSealer& GcmSealer::operator=(GcmSealer&&) noexcept = default;
GcmSealer::~GcmSealer() = default;
GcmOpener::GcmOpener(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
GcmOpener::GcmOpener(GcmOpener&&) noexcept = default;
GcmOpener& GcmOpener::operator=(GcmOpener&&) noexcept = default;
GcmOpener::~GcmOpener() = default;

Result<GcmSealer> Engine::gcm_sealer(const Key& key, std::span<const std::uint8_t> iv) {
    return core::guarded([&]() -> Result<GcmSealer> {
        auto keys = stream_keys(*state_, key, iv);
        if (!keys) return std::move(keys).error();
        auto state = std::make_unique<GcmSealer::State>();
        state->keys = std::move(*keys);
        auto stream = state->keys.backend->gcm_stream(Direction::encrypt, *state->keys.keys, 0, iv);
        if (!stream) return std::move(stream).error();
        state->stream = std::move(*stream);
        return GcmSealer(std::move(state));
    });
}

Result<> GcmSealer::aad(HostIn bytes) {
    return core::guarded([&]() -> Result<> {
        if (state_->phase != State::Phase::aad)
            return out_of_order("additional data comes before the data, and before finish()");
        DAEL_TRY(state_->counts.add_aad(bytes));
        return state_->stream->aad(bytes);
    });
}

Result<> GcmSealer::update(HostIn in, HostOut out) {
    return core::guarded([&]() -> Result<> {
        if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
        if (state_->phase == State::Phase::spent)
            return out_of_order("this message is finished; make a new sealer, with a new IV");
        DAEL_TRY(modes::check_data(in.data(), out.data(), in.size()));
        DAEL_TRY(state_->counts.add_data(in.size()));
        state_->phase = State::Phase::data;
        auto done = state_->stream->update(in, out.data());
        if (!done) state_->phase = State::Phase::spent;
        return done;
    });
}

Result<> GcmSealer::finish(std::span<std::uint8_t> tag) {
    return core::guarded([&]() -> Result<> {
        if (state_->phase == State::Phase::spent)
            return out_of_order("this message is finished; make a new sealer, with a new IV");
        DAEL_TRY(modes::check_tag_size(tag.size()));
        state_->phase = State::Phase::spent;
        const auto whole = state_->stream->finish();
        if (!whole) return whole.error();
        std::copy_n(whole->begin(), tag.size(), tag.begin());
        return {};
    });
}

Result<GcmOpener> Engine::gcm_opener(const Key& key, std::span<const std::uint8_t> iv) {
    return core::guarded([&]() -> Result<GcmOpener> {
        auto keys = stream_keys(*state_, key, iv);
        if (!keys) return std::move(keys).error();
        auto state = std::make_unique<GcmOpener::State>();
        state->keys = std::move(*keys);
        for (auto* pass : {&state->first, &state->second}) {
            auto stream =
                state->keys.backend->gcm_stream(Direction::decrypt, *state->keys.keys, 0, iv);
            if (!stream) return std::move(stream).error();
            *pass = std::move(*stream);
        }
        state->scratch.resize(kScratch);
        return GcmOpener(std::move(state));
    });
}

Result<> GcmOpener::aad(HostIn bytes) {
    return core::guarded([&]() -> Result<> {
        if (state_->phase != State::Phase::aad)
            return out_of_order("additional data comes before the ciphertext, and before verify()");
        DAEL_TRY(state_->counts.add_aad(bytes));
        DAEL_TRY(state_->first->aad(bytes));
        return state_->second->aad(bytes);
    });
}

Result<> GcmOpener::authenticate(HostIn ciphertext) {
    return core::guarded([&]() -> Result<> {
        State& state = *state_;
        if (state.phase != State::Phase::aad && state.phase != State::Phase::data)
            return out_of_order("the first pass is over; make a new opener for another message");
        if (!ciphertext.data() && !ciphertext.empty())
            return Error{Code::invalid_argument, "the ciphertext is null"};
        DAEL_TRY(state.counts.add_data(ciphertext.size()));
        state.phase = State::Phase::data;
        Result<> result;
        const std::size_t used = std::min(kScratch, ciphertext.size());
        while (result && !ciphertext.empty()) {
            const auto piece = ciphertext.first(std::min(kScratch, ciphertext.size()));
            result = state.first->update(piece, state.scratch.data());
            ciphertext = ciphertext.subspan(piece.size());
        }
        wipe(state.scratch.data(), used);
        if (!result) state.phase = State::Phase::spent;
        return result;
    });
}

Result<> GcmOpener::verify(std::span<const std::uint8_t> tag) {
    return core::guarded([&]() -> Result<> {
        State& state = *state_;
        if (state.phase != State::Phase::aad && state.phase != State::Phase::data)
            return out_of_order("verify() once, after the first pass");
        DAEL_TRY(modes::check_tag_size(tag.size()));
        state.phase = State::Phase::spent;
        const auto whole = state.first->finish();
        if (!whole) return whole.error();
        if (!modes::equal_tags(whole->data(), tag.data(), tag.size()))
            return pipeline::authentication_failed();
        state.tag = *whole;
        state.phase = State::Phase::verified;
        return {};
    });
}

Result<> GcmOpener::decrypt(HostIn in, HostOut out) {
    return core::guarded([&]() -> Result<> {
        State& state = *state_;
        if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
        if (state.phase != State::Phase::verified)
            return out_of_order("nothing is decrypted before verify() has succeeded");
        if (in.size() > state.counts.data - state.decrypted)
            return Error{Code::invalid_argument,
                         "decrypt() of more bytes than authenticate() was given"};
        DAEL_TRY(modes::check_data(in.data(), out.data(), in.size()));
        if (in.empty()) return {};
        auto done = state.second->update(in, out.data());
        state.decrypted += in.size();
        if (done && state.decrypted < state.counts.data) return {};
        // The end: it must have been the message that was verified.
        state.phase = State::Phase::spent;
        if (done) {
            const auto whole = state.second->finish();
            if (!whole)
                done = whole.error();
            else if (!modes::equal_tags(whole->data(), state.tag.data(), state.tag.size()))
                done = Error{Code::authentication,
                             "the second pass was given other data than the first"};
        }
        if (!done) wipe(out.data(), out.size());
        return done;
    });
}

}  // namespace dael
