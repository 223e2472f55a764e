// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/engine.hpp>

#include <cstdlib>

#include "core/registry.hpp"
#include "modes/segment.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/guard.hpp"
#include "pipeline/host.hpp"

namespace dael {

struct Batch::State {};

Engine::Engine(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;
Batch::Batch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

namespace pipeline {
namespace {

// What `auto` uses for host memory: the vector units where there are any, else OpenSSL.
Result<std::unique_ptr<core::Backend>> open_host(const EngineOptions& options) {
    auto cpu = core::open_backend("cpu", {options.isa, 0});
    if (cpu || !options.isa.empty()) return cpu;
    return core::open_backend("openssl");
}

}  // namespace

Engine make_engine(std::unique_ptr<core::Backend> backend, EngineOptions options) {
    return Engine::State::wrap(
        std::make_unique<Engine::State>(std::move(options), std::move(backend)));
}

}  // namespace pipeline

Result<Engine> Engine::open(EngineOptions options) {
    return pipeline::guarded([&]() -> Result<Engine> {
        if (options.threads < 0)
            return Error{Code::invalid_argument, "threads is " + std::to_string(options.threads) +
                                                     "; give 1 or more, or 0 for all cores"};
        if (options.backend.empty())
            if (const char* forced = std::getenv("DAELSTROM_BACKEND")) options.backend = forced;
        if (options.backend.empty()) options.backend = "auto";
        auto backend = options.backend == "auto"
                           ? pipeline::open_host(options)
                           : core::open_backend(options.backend, {options.isa, 0});
        if (!backend) return std::move(backend).error();
        return pipeline::make_engine(std::move(*backend), std::move(options));
    });
}

Result<Ran> Engine::run(const Key& key, const Cipher& cipher, HostIn in, HostOut out) {
    if (in.size() != out.size())
        return Error{Code::invalid_argument, "output is " + std::to_string(out.size()) +
                                                 " bytes; the input is " +
                                                 std::to_string(in.size())};
    const Message message{in.data(), out.data(), in.size(), cipher.iv, cipher.offset};
    return run(key, cipher.mode, cipher.direction, std::span(&message, 1));
}

Result<Ran> Engine::run(const Key& key, Mode mode, Direction direction,
                        std::span<const Message> messages) {
    return pipeline::guarded([&]() -> Result<Ran> {
        std::vector<core::Segment> segments;
        segments.reserve(messages.size());
        for (const Message& message : messages) {
            auto segment = modes::to_segment(mode, direction, message);
            if (!segment) return std::move(segment).error();
            segments.push_back(*segment);
        }
        core::Backend& backend = *state_->host;
        auto threads = pipeline::run_on_host(backend, state_->pool, {mode, direction, &key},
                                             std::move(segments), state_->pool.threads());
        if (!threads) return std::move(threads).error();
        return Ran{std::string(backend.name()), *threads, 0};
    });
}

std::vector<std::string> Engine::backends() const {
    return {std::string(state_->host->name())};
}

}  // namespace dael
