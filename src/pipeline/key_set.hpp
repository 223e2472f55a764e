// SPDX-License-Identifier: Apache-2.0
// What is behind a KeySet: its keys, and the tables that the engine's backends made of them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include <daelstrom/key_set.hpp>

#include "pipeline/engine_state.hpp"

namespace dael {

struct KeySet::State : std::enable_shared_from_this<KeySet::State> {
    // Errors: invalid_argument (none, or of two kinds), out_of_memory.
    static Result<std::shared_ptr<State>> make(std::shared_ptr<Engine::State> engine,
                                               std::span<const Key> keys);
    ~State();

    // The keys with the tables of a backend of the engine, made at the first need. Without a lock:
    // of two threads that make them at once, one throws its own away. Errors: as Backend::tables.
    Result<core::Keys> on(const pipeline::Worker& worker);

    // Errors: invalid_argument.
    Result<> check_owner(const Engine::State& user) const;

    bool xts() const noexcept { return list.front().is_xts(); }

    const std::shared_ptr<Engine::State> engine;  // outlives the tables
    std::vector<Key> list;

    Result<> replace(std::uint32_t index, const Key& key, Stream stream);

  private:
    State(std::shared_ptr<Engine::State> its_engine, std::vector<Key> keys)
        : engine(std::move(its_engine)), list(std::move(keys)) {}
    // By the number of the worker.
    std::array<std::atomic<core::KeyTables*>, pipeline::kMostWorkers> tables_{};
};

}  // namespace dael
