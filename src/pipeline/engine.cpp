// SPDX-License-Identifier: Apache-2.0
// The engine's public calls: they check what they are given and hand it to the state, or straight
// to the device that holds the data.
#include <daelstrom/engine.hpp>

#include <algorithm>
#include <cstdlib>

#include "core/guard.hpp"
#include "core/quoted.hpp"
#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/key_set.hpp"

namespace dael {

Engine::Engine(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

namespace {

// What `auto` chooses among for host memory, the one expected to be fastest first: the vector units
// where there are any, and OpenSSL, which is faster where a single message keeps only one of their
// lanes busy. Either will do where the other cannot be had: OpenSSL may be set up to have no AES
// for us. A form that was asked for leaves only what has forms.
Result<pipeline::Backends> open_hosts(const EngineOptions& options) {
    std::vector<const core::BackendEntry*> entries;
    for (const core::BackendEntry& entry : core::backend_list())
        if (entry.expected && (options.form.empty() || entry.forms)) entries.push_back(&entry);
    std::ranges::stable_sort(entries, std::ranges::greater{}, [&](const core::BackendEntry* entry) {
        return entry->expected(options.form).parallel;
    });
    pipeline::Backends hosts;
    Error first{Code::backend_absent, "this build has no backend for host memory"};
    for (const core::BackendEntry* entry : entries) {
        auto host = core::open_backend(entry->name, {.form = options.form});
        if (host)
            hosts.push_back(std::move(*host));
        else if (entry == entries.front())
            first = std::move(host).error();
    }
    if (hosts.empty()) return first;
    return hosts;
}

// "cuda:0+cpu": several that work together. Host backends share the host's threads: one at most.
Result<pipeline::Backends> open_set(const EngineOptions& options) {
    if (!options.form.empty())
        return Error{Code::invalid_argument, "form " + core::quoted(options.form) +
                                                 " is for one backend, and there are several: " +
                                                 core::quoted(options.backend)};
    pipeline::Backends set;
    std::size_t hosts = 0;
    std::string_view rest = options.backend;
    for (bool more = true; more;) {
        const auto plus = rest.find('+');
        const std::string_view name = rest.substr(0, plus);
        more = plus != rest.npos;
        rest = more ? rest.substr(plus + 1) : "";
        if (name == "auto" || name == "all")
            return Error{Code::invalid_argument, "backend " + core::quoted(options.backend) +
                                                     ": '" + std::string(name) +
                                                     "' stands by itself"};
        DAEL_LET(backend, core::open_backend(name));
        hosts += backend->device() == nullptr;
        for (const auto& other : set)
            if (other->profile().name == backend->profile().name)
                return Error{Code::invalid_argument, "backend " + core::quoted(options.backend) +
                                                         " has '" + backend->profile().name +
                                                         "' twice"};
        set.push_back(std::move(backend));
    }
    if (hosts > 1)
        return Error{Code::invalid_argument,
                     "backend " + core::quoted(options.backend) + " has " + std::to_string(hosts) +
                         " that work on the host's threads; name one of them"};
    if (set.size() > pipeline::kMaxTogether)
        return Error{Code::limit, "backend " + core::quoted(options.backend) + " has " +
                                      std::to_string(set.size()) + " members; there may be " +
                                      std::to_string(pipeline::kMaxTogether)};
    return set;
}

// Everything there is: every device once, and who does best on the host.
Result<pipeline::Backends> open_all(const EngineOptions& options) {
    DAEL_LET(all, open_hosts(options));
    for (auto& device : pipeline::open_devices_once().opened)
        if (all.size() < pipeline::kMaxTogether) all.push_back(std::move(device));
    return std::move(all);
}

Result<pipeline::Backends> open_forced(const EngineOptions& options,
                                       const core::NativeHandles& given) {
    if (!given.context && options.backend == "all") return open_all(options);
    if (!given.context && options.backend.find('+') != options.backend.npos)
        return open_set(options);
    DAEL_LET(backend,
             core::open_backend(options.backend, {options.form, 0, given.context, given.device}));
    pipeline::Backends forced;
    forced.push_back(std::move(backend));
    return forced;
}

// A code of one message, which is valid and not ok, as an Error of the call.
Error as_error(Code code) {
    if (code == Code::authentication) return pipeline::authentication_failed();
    return {code, std::string(describe(code))};
}

}  // namespace

Result<Engine> pipeline::open_engine(EngineOptions options, const core::NativeHandles& given) {
    return core::guarded([&]() -> Result<Engine> {
        if (options.threads < 0)
            return Error{Code::invalid_argument, "threads is " + std::to_string(options.threads) +
                                                     "; give 1 or more, or 0 for all cores"};
        if (options.chunk % 4096 != 0)
            return Error{Code::invalid_argument, "chunk is " + std::to_string(options.chunk) +
                                                     " bytes; give a multiple of 4096, or 0"};
        if (!(options.patience >= 0))
            return Error{Code::invalid_argument, "patience is " + std::to_string(options.patience) +
                                                     " seconds; give more, or 0 for ever"};
        if (!(options.cpu_share > 0 && options.cpu_share <= 1))
            return Error{Code::invalid_argument, "cpu_share is " +
                                                     std::to_string(options.cpu_share) +
                                                     "; give a part of the cores, above 0 to 1"};
        if (options.backend.empty())
            if (const char* forced = secure_getenv("DAELSTROM_BACKEND")) options.backend = forced;
        if (options.backend.empty()) options.backend = "auto";
        const bool automatic = options.backend == "auto";
        auto backends = automatic ? open_hosts(options) : open_forced(options, given);
        if (!backends) return std::move(backends).error();
        auto calibration = options.calibrated ? load_calibration() : std::nullopt;
        return Engine(std::make_shared<Engine::State>(
            std::move(options), std::move(*backends),
            automatic ? open_devices_once : std::function<Devices()>(), std::move(calibration)));
    });
}

Result<Engine> Engine::open(EngineOptions options) {
    return pipeline::open_engine(std::move(options), {});
}

Result<KeySet> Engine::keys(std::span<const Key> keys) {
    return core::guarded([&]() -> Result<KeySet> {
        DAEL_LET(set, KeySet::State::make(state_, keys));
        return KeySet(std::move(set));
    });
}

Result<Ran> Engine::run(const Cipher& cipher, const Key& key, const Message& message) {
    return core::guarded([&]() -> Result<Ran> {
        const std::span keys(&key, 1);
        DAEL_TRY(modes::check(cipher, key));
        if (!modes::takes(cipher, message, 1))  // before what a backend may lack
            return modes::check(cipher, message, 1).error();
        Code code = Code::internal;
        auto ran = state_->is_short(message)
                       ? state_->run_short(cipher, key, nullptr, message, code)
                       : state_->run(cipher, keys, nullptr, {&message, 1}, {&code, 1});
        if (ran && code != Code::ok) return as_error(code);
        return ran;
    });
}

Result<Ran> Engine::run(const Cipher& cipher, const Key& key, const Message& message,
                        Stream stream) {
    return core::guarded([&]() -> Result<Ran> {
        const std::span keys(&key, 1);
        DAEL_TRY(modes::check(cipher, key));
        DAEL_TRY(modes::check(cipher, message, 1));
        DAEL_LET(path, state_->path_of(std::span(&message, 1)));
        if (authenticates(cipher.mode))
            return Error{Code::unsupported, std::string(name(cipher.mode)) +
                                                " in device memory takes keys made ready; use "
                                                "Engine::keys() and launch()"};
        const core::Can can = path->backend->can(cipher, key.bits());
        if (can.answer == core::Can::no) return core::cannot(path->name(), cipher, can);
        if (message.size != 0)
            DAEL_TRY(path->device.run(pipeline::for_backend(cipher), {keys}, message, stream));
        return path->ran(1, 0);
    });
}

Result<Ran> Engine::run(const Cipher& cipher, const KeySet& keys, std::span<const Message> messages,
                        std::span<Code> codes) {
    return core::guarded([&]() -> Result<Ran> {
        KeySet::State& set = keys.state();
        if (messages.size() != codes.size())
            return Error{Code::invalid_argument, std::to_string(codes.size()) + " codes for " +
                                                     std::to_string(messages.size()) +
                                                     " messages; there must be as many"};
        if (auto checked = set.check(cipher, *state_); !checked) {
            std::ranges::fill(codes, checked.code());
            return std::move(checked).error();
        }
        if (messages.size() == 1 && state_->is_short(messages[0]))
            return state_->run_short(cipher, set.list.front(), &set, messages[0], codes[0]);
        return state_->run(cipher, set.list, &set, messages, codes);
    });
}

void Engine::trim() noexcept {
    if (state_) state_->trim();
}

Plan Engine::explain(const Job& job) const {
    return state_->explain(job);
}

std::vector<std::string> Engine::backends() const {
    return state_->backends();
}

}  // namespace dael
