// SPDX-License-Identifier: Apache-2.0
// What is behind an Engine. Internal: the engine's own sources, the benchmark and the tests.
#pragma once

#include <memory>
#include <string>

#include <daelstrom/engine.hpp>

#include "core/backend.hpp"
#include "pipeline/thread_pool.hpp"

namespace dael {

struct Engine::State {
    State(EngineOptions engine_options, std::unique_ptr<core::Backend> backend)
        : options(std::move(engine_options)), pool(options.threads), host(std::move(backend)) {}

    // An Engine over this state.
    static Engine wrap(std::unique_ptr<State> state) { return Engine(std::move(state)); }

    EngineOptions options;
    pipeline::ThreadPool pool;
    std::unique_ptr<core::Backend> host;
};

namespace pipeline {

// An engine on a backend that is not in the list: for tests.
Engine make_engine(std::unique_ptr<core::Backend> backend, EngineOptions options = {});

}  // namespace pipeline
}  // namespace dael
