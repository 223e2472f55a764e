// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/engine.hpp>

#include <cstdlib>

#include "core/registry.hpp"
#include "modes/segment.hpp"

namespace dael {

struct Engine::State {
    std::unique_ptr<core::Backend> backend;
};
struct Batch::State {};

Engine::Engine(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;
Batch::Batch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

Result<Engine> Engine::open(EngineOptions options) {
    std::string name = options.backend;
    if (name.empty())
        if (const char* forced = std::getenv("DAELSTROM_BACKEND")) name = forced;
    if (name.empty() || name == "auto") name = "openssl";
    auto backend = core::open_backend(name, {options.isa, 0});
    if (!backend) return std::move(backend).error();
    auto state = std::make_unique<State>();
    state->backend = std::move(*backend);
    return Engine(std::move(state));
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
    std::vector<core::Segment> segments;
    for (const Message& message : messages) {
        auto segment = modes::to_segment(mode, direction, message);
        if (!segment) return std::move(segment).error();
        segments.push_back(*segment);
    }
    DAEL_TRY(state_->backend->run({mode, direction, &key}, segments));
    return Ran{std::string(state_->backend->name()), 1, 0};
}

}  // namespace dael
