// SPDX-License-Identifier: Apache-2.0
// The engine's public calls: they check what they are given and hand it to the state, or straight
// to the device that holds the data.
#include <daelstrom/engine.hpp>

#include <cstdlib>

#include "core/quoted.hpp"
#include "core/registry.hpp"
#include "modes/segment.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/guard.hpp"

namespace dael {

struct Batch::State {
    pipeline::Lane* lane;
    Mode mode;
    Direction direction;
    std::unique_ptr<core::PreparedBatch> prepared;
};

Engine::Engine(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;
Batch::Batch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

namespace {

// What `auto` chooses among for host memory: the vector units where there are any, and OpenSSL,
// which is faster where a single message keeps only one of their lanes busy. An instruction set
// that was asked for leaves the first alone.
Result<pipeline::Backends> open_hosts(const EngineOptions& options) {
    pipeline::Backends hosts;
    if (auto cpu = core::open_backend("cpu", {options.isa, 0}))
        hosts.push_back(std::move(*cpu));
    else if (!options.isa.empty())
        return std::move(cpu).error();
    if (!options.isa.empty()) return hosts;
    auto openssl = core::open_backend("openssl");
    if (!openssl) return std::move(openssl).error();
    hosts.push_back(std::move(*openssl));
    return hosts;
}

Result<pipeline::Backends> open_forced(const EngineOptions& options,
                                       const core::NativeHandles& given) {
    auto backend =
        core::open_backend(options.backend, {options.isa, 0, given.context, given.device});
    if (!backend) return std::move(backend).error();
    pipeline::Backends forced;
    forced.push_back(std::move(*backend));
    return forced;
}

Result<std::vector<core::Segment>> to_segments(Mode mode, std::span<const Message> messages) {
    std::vector<core::Segment> segments;
    segments.reserve(messages.size());
    for (const Message& message : messages) {
        auto valid = modes::check(mode, message);
        if (valid) {
            segments.push_back(modes::to_segment(message));
            continue;
        }
        Error error = std::move(valid).error();
        if (messages.size() > 1)
            error.message = "message " + std::to_string(segments.size()) + ": " + error.message;
        return error;
    }
    return segments;
}

}  // namespace

Result<Engine> pipeline::open_engine(EngineOptions options, const core::NativeHandles& given) {
    return guarded([&]() -> Result<Engine> {
        if (options.threads < 0)
            return Error{Code::invalid_argument, "threads is " + std::to_string(options.threads) +
                                                     "; give 1 or more, or 0 for all cores"};
        if (options.chunk % 4096 != 0)
            return Error{Code::invalid_argument, "chunk is " + std::to_string(options.chunk) +
                                                     " bytes; give a multiple of 4096, or 0"};
        if (options.backend.empty())
            if (const char* forced = ::secure_getenv("DAELSTROM_BACKEND")) options.backend = forced;
        if (options.backend.empty()) options.backend = "auto";
        const bool automatic = options.backend == "auto";
        const auto kind = options.backend.substr(0, options.backend.find(':'));
        if (!options.isa.empty() && (kind == "reference" || kind == "openssl"))
            return Error{Code::invalid_argument, "isa " + core::quoted(options.isa) +
                                                     " has no meaning for " +
                                                     core::quoted(options.backend) +
                                                     ", which has one form only; leave one of them "
                                                     "out"};
        auto backends = automatic ? open_hosts(options) : open_forced(options, given);
        if (!backends) return std::move(backends).error();
        auto calibration = options.calibrated ? load_calibration() : std::nullopt;
        return Engine::State::wrap(std::make_unique<Engine::State>(
            std::move(options), std::move(*backends),
            automatic ? open_devices_once : std::function<Backends()>(), std::move(calibration)));
    });
}

Result<Engine> Engine::open(EngineOptions options) {
    return pipeline::open_engine(std::move(options), {});
}

Result<Ran> Engine::run(const Key& key, const Cipher& cipher, HostIn in, HostOut out) {
    if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
    return pipeline::guarded([&]() -> Result<Ran> {
        const Message message{in.data(), out.data(), in.size(), cipher.iv, cipher.offset};
        DAEL_TRY(modes::check(cipher.mode, message));
        const core::Segment segment = modes::to_segment(message);
        return state_->run({cipher.mode, cipher.direction, &key}, std::span(&segment, 1));
    });
}

Result<Ran> Engine::run(const Key& key, Mode mode, Direction direction,
                        std::span<const Message> messages) {
    return pipeline::guarded([&]() -> Result<Ran> {
        auto segments = to_segments(mode, messages);
        if (!segments) return std::move(segments).error();
        return state_->run({mode, direction, &key}, *segments);
    });
}

Result<Ran> Engine::run(const Key& key, const Cipher& cipher, DeviceIn in, DeviceOut out,
                        Stream stream) {
    if (in.size != out.size) return modes::sizes_differ(in.size, out.size);
    return pipeline::guarded([&]() -> Result<Ran> {
        const Message message{static_cast<const std::uint8_t*>(in.data),
                              static_cast<std::uint8_t*>(out.data), in.size, cipher.iv,
                              cipher.offset};
        DAEL_TRY(modes::check(cipher.mode, message));
        auto lane = state_->lane_of(in.data);
        if (!lane) return std::move(lane).error();
        if (in.size != 0)
            DAEL_TRY((*lane)->device.run({cipher.mode, cipher.direction, &key},
                                         modes::to_segment(message), stream));
        return Ran{std::string((*lane)->backend->name()), 1, 0};
    });
}

Result<Batch> Engine::prepare(Mode mode, Direction direction,
                              std::span<const Message> device_messages) {
    return pipeline::guarded([&]() -> Result<Batch> {
        auto segments = to_segments(mode, device_messages);
        if (!segments) return std::move(segments).error();
        auto lane = state_->lane_of(segments->empty() ? nullptr : segments->front().in);
        if (!lane) return std::move(lane).error();
        auto prepared = (*lane)->device.prepare(mode, direction, *segments);
        if (!prepared) return std::move(prepared).error();
        return Batch(std::make_unique<Batch::State>(
            Batch::State{*lane, mode, direction, std::move(*prepared)}));
    });
}

Result<Ran> Engine::run(const Key& key, const Batch& batch, Stream stream) {
    return pipeline::guarded([&]() -> Result<Ran> {
        const auto& [lane, mode, direction, prepared] = *batch.state_;
        DAEL_TRY(lane->device.run({mode, direction, &key}, *prepared, stream));
        return Ran{std::string(lane->backend->name()), 1, 0};
    });
}

Result<Ran> Engine::xts_encrypt(const XtsKey& key, const XtsSectors& sectors, HostIn in,
                                HostOut out) {
    return state_->xts(Direction::encrypt, key, sectors, in, out);
}

Result<Ran> Engine::xts_decrypt(const XtsKey& key, const XtsSectors& sectors, HostIn in,
                                HostOut out) {
    return state_->xts(Direction::decrypt, key, sectors, in, out);
}

Result<Ran> Engine::xts_encrypt(const XtsKey& key, const XtsSectors& sectors, DeviceIn in,
                                DeviceOut out, Stream stream) {
    return state_->xts(Direction::encrypt, key, sectors, in, out, stream);
}

Result<Ran> Engine::xts_decrypt(const XtsKey& key, const XtsSectors& sectors, DeviceIn in,
                                DeviceOut out, Stream stream) {
    return state_->xts(Direction::decrypt, key, sectors, in, out, stream);
}

Plan Engine::explain(const Job& job) const {
    return state_->explain(job);
}

std::vector<std::string> Engine::backends() const {
    return state_->backends();
}

}  // namespace dael
