// SPDX-License-Identifier: Apache-2.0
// Batches in device memory: made ready, launched, and what became of their messages.
#include <algorithm>
#include <map>

#include <daelstrom/engine.hpp>

#include "core/guard.hpp"
#include "modes/starts.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/key_set.hpp"

namespace dael {

using core::guarded;

namespace {

// One launch: all of the batch, or the messages of one key where the kernels take no more.
struct Part {
    std::unique_ptr<core::Prepared> prepared;
    std::vector<std::uint32_t> messages;  // their places in the list; none: all, in order
};

}  // namespace

struct Batch::State {
    std::shared_ptr<KeySet::State> keys;  // and the engine with them
    pipeline::DevicePath* path;
    Cipher cipher;
    std::uint32_t count;
    bool once;  // launched again it would repeat its starts
    std::vector<Part> parts;
    bool launched = false;
};

Batch::Batch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

const std::uint32_t* Batch::codes() const noexcept {
    return state_->parts.size() == 1 ? state_->parts.front().prepared->results() : nullptr;
}

namespace {

// Modes whose ciphertexts from one start give something away, be it that plaintexts begin alike
// (CBC, CFB). XTS and ECB are made to be repeated.
bool must_not_repeat(const Cipher& cipher) noexcept {
    return modes::encrypts(cipher) && cipher.mode != Mode::ecb && cipher.mode != Mode::xts &&
           cipher.mode != Mode::gcm_siv;
}

Result<> check_host_list(const Cipher& cipher, std::span<const Message> list, std::size_t keys) {
    for (std::size_t i = 0; i < list.size(); ++i)
        if (auto valid = modes::check(cipher, list[i], keys); !valid)
            return pipeline::of_message(i, std::move(valid).error());
    if (list.size() > 1 && must_not_repeat(cipher) && modes::traits(cipher.mode).start_once)
        DAEL_TRY(modes::check_starts(list, has_start_rest(cipher.mode)));
    return {};
}

// Modes whose kernels take messages as they come: by a launch, of no more than a size that is told;
// and of these the ones whose nonces are numbered there.
bool takes_lists(Mode mode) noexcept {
    return authenticates(mode) || mode == Mode::gcm_ctr;
}
bool takes_numbers(Mode mode) noexcept {
    return mode == Mode::gcm || mode == Mode::gcm_ctr || is_aegis(mode);
}

Result<> check_device_list(const Messages& messages, const Cipher& cipher) {
    if (!messages.list && messages.count != 0)
        return Error{Code::invalid_argument, "the list of messages is null"};
    if (messages.nonces && (!takes_numbers(cipher.mode) || !modes::encrypts(cipher)))
        return Error{
            Code::invalid_argument,
            "nonces that count on the device are for encryption in gcm, gcm_ctr and aegis"};
    if (messages.longest != 0 && !takes_lists(cipher.mode))
        return Error{Code::invalid_argument,
                     "how long messages are at most is for lists of gcm_ctr and modes that "
                     "authenticate"};
    return {};
}

// A part for each key, of modes whose kernels take one.
Result<std::vector<Part>> prepare_by_key(core::Device& device, const core::KeyList& keys,
                                         const Cipher& cipher, std::span<const Message> list) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_key;
    for (std::uint32_t i = 0; i < list.size(); ++i) by_key[list[i].key].push_back(i);
    std::vector<Part> parts;
    for (auto& [key, indices] : by_key) {
        std::vector<Message> messages;
        messages.reserve(indices.size());
        for (const std::uint32_t i : indices) messages.push_back(list[i]);
        DAEL_LET(prepared,
                 device.prepare(cipher, keys,
                                {messages.data(), static_cast<std::uint32_t>(messages.size())}));
        parts.push_back({std::move(prepared), std::move(indices)});
    }
    return parts;
}

}  // namespace

Result<Batch> Engine::prepare(const Cipher& cipher, const KeySet& keys, const Messages& messages) {
    return core::guarded([&]() -> Result<Batch> {
        KeySet::State& set = keys.state();
        DAEL_TRY(set.check(cipher, *state_));
        const bool host = messages.place == Place::host;
        if (host && (messages.number || messages.nonces || messages.longest != 0))
            return Error{Code::invalid_argument,
                         "a number, nonces on the device, and how long messages are at most are "
                         "for lists in device memory"};
        const std::span list(host ? messages.list : nullptr, host ? messages.count : 0);
        if (host)
            DAEL_TRY(check_host_list(cipher, list, set.list.size()));
        else
            DAEL_TRY(check_device_list(messages, cipher));
        DAEL_LET(path, host ? state_->path_of(list) : state_->path_of(messages.list));
        if (!host && !path->device.info().reads_lists)
            return Error{Code::unsupported,
                         path->name() +
                             ": lists of messages lie in host memory there, since "
                             "its memory is not named by pointers"};
        const core::Can can = path->backend->can(cipher, set.bits());
        if (can.answer == core::Can::no) return core::cannot(path->name(), cipher, can);
        DAEL_LET(ready, set.on(*path));
        auto state = std::make_unique<Batch::State>(Batch::State{set.shared_from_this(),
                                                                 path,
                                                                 cipher,
                                                                 messages.count,
                                                                 host && must_not_repeat(cipher),
                                                                 {}});
        auto whole = path->device.prepare(cipher, ready, messages);
        const bool mixed =
            std::ranges::any_of(list, [&](const Message& m) { return m.key != list.front().key; });
        if (whole) {
            state->parts.push_back({std::move(*whole), {}});
        } else {
            if (!mixed || whole.code() != Code::unsupported) return std::move(whole).error();
            DAEL_LET(parts, prepare_by_key(path->device, ready, cipher, list));
            state->parts = std::move(parts);
        }
        return Batch(std::move(state));
    });
}

Result<Ran> Engine::launch(Batch& batch, Stream stream) {
    return core::guarded([&]() -> Result<Ran> {
        Batch::State& state = *batch.state_;
        DAEL_TRY(state.keys->check_whole());
        // A replacement may have another size, which not every mode takes.
        DAEL_TRY(modes::check_kind(state.cipher, state.keys->kinds()));
        if (state.once && state.launched)
            return Error{
                Code::limit,
                "the batch was launched before, and its nonces, IVs or counters must not be "
                "used again; prepare one with new ones"};
        if (state.once && state.path->device.order().is_capturing(stream))
            return Error{
                Code::limit,
                "a captured batch would repeat its nonces, IVs or counters with each replay; "
                "give it a list in device memory with nonces that count there"};
        state.launched = true;
        for (const auto& part : state.parts)
            DAEL_TRY(state.path->device.run(*part.prepared, stream));
        return state.path->ran(1, 0);
    });
}

namespace {

// What a launch without a batch asks for besides messages that are valid.
Result<> check_launch(const Cipher& cipher, std::span<const Message> list,
                      const LaunchOptions& options) {
    if (!takes_lists(cipher.mode))
        return Error{Code::unsupported,
                     "launch() of a list is for gcm_ctr and modes that authenticate; " +
                         std::string(name(cipher.mode)) +
                         " has run() for one message, and prepare()"};
    if (list.size() > kMaxLaunched)
        return Error{Code::limit, std::to_string(list.size()) + " messages; a launch takes " +
                                      std::to_string(kMaxLaunched) +
                                      " along: prepare() a batch, or launch twice"};
    if (authenticates(cipher.mode) && !modes::encrypts(cipher) && !options.codes)
        return Error{Code::invalid_argument,
                     "codes is null; only they tell which messages are authentic"};
    if (!options.host_aad) return {};
    std::uint64_t aad = 0;
    for (const Message& m : list) aad += std::min<std::uint64_t>(m.aad_size, kMaxLaunchedAad + 1);
    if (aad <= kMaxLaunchedAad) return {};
    return Error{Code::limit, "a launch takes at most " + std::to_string(kMaxLaunchedAad) +
                                  " bytes of the host's AAD along; copy it to the device"};
}

}  // namespace

Result<Ran> Engine::launch(const Cipher& cipher, const KeySet& keys,
                           std::span<const Message> messages, Stream stream,
                           const LaunchOptions& options) {
    return core::guarded([&]() -> Result<Ran> {
        KeySet::State& set = keys.state();
        DAEL_TRY(set.check(cipher, *state_));
        DAEL_TRY(check_launch(cipher, messages, options));
        DAEL_TRY(check_host_list(cipher, messages, set.list.size()));
        DAEL_LET(path, state_->path_of(messages, options.host_aad));
        core::Device& device = path->device;
        const core::Can can = path->backend->can(cipher, set.bits());
        if (can.answer == core::Can::no) return core::cannot(path->name(), cipher, can);
        if (options.codes && !messages.empty() &&
            !device.memory().is_pinned(options.codes, messages.size() * sizeof *options.codes) &&
            !device.memory().owns(options.codes))
            return Error{Code::invalid_argument, "codes is neither memory of '" + path->name() +
                                                     "' nor page-locked; Memory has both"};
        if (must_not_repeat(cipher) && device.order().is_capturing(stream))
            return Error{Code::limit,
                         "a captured launch would repeat its nonces or counters with each replay; "
                         "prepare a list in device memory with nonces that count there"};
        DAEL_LET(ready, set.on(*path));
        if (!messages.empty()) DAEL_TRY(device.run(cipher, ready, messages, options, stream));
        return path->ran(1, 0);
    });
}

Result<std::vector<Code>> Batch::results(Stream stream) const {
    return core::guarded([&]() -> Result<std::vector<Code>> {
        core::Device& device = state_->path->device;
        std::vector<Code> codes(state_->count);
        for (const Part& part : state_->parts) {
            const std::size_t count = part.messages.empty() ? codes.size() : part.messages.size();
            // Whatever comes of the copy, nothing is ok that nobody has written.
            std::vector<std::uint32_t> raw(count, static_cast<std::uint32_t>(Code::internal));
            const std::uint32_t* const results = part.prepared->results();
            if (results)
                DAEL_TRY(
                    device.memory().copy_out(raw.data(), results, count * sizeof raw[0], stream));
            else
                std::ranges::fill(raw, 0u);
            DAEL_TRY(device.order().wait(stream));
            DAEL_TRY(part.prepared->outcome());
            for (std::size_t i = 0; i < count; ++i)
                codes[part.messages.empty() ? i : part.messages[i]] = static_cast<Code>(raw[i]);
        }
        return codes;
    });
}

}  // namespace dael
