// SPDX-License-Identifier: Apache-2.0
// What is behind a KeySet: its keys, and the tables that the engine's backends made of them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include <daelstrom/key.hpp>

#include "core/process.hpp"
#include "pipeline/engine_state.hpp"

namespace dael {

struct KeySet::State : std::enable_shared_from_this<KeySet::State> {
    // Errors: invalid_argument (none, or of two kinds), out_of_memory.
    static Result<std::shared_ptr<State>> make(std::shared_ptr<Engine::State> engine,
                                               std::span<const Key> keys);
    ~State();

    // The keys with the tables of a backend of the engine, made at the first need, which may be
    // beside replace(). Errors: as Backend::tables.
    Result<core::KeyList> on(const pipeline::Worker& worker);
    // Waits for a replacement that is under way on a stream of the caller's. For work in host
    // memory through a device, whose own streams are in no order with that. Errors: device.
    Result<> settle();

    // Whether the cipher takes such keys, and the set is of this engine, and whole. Errors:
    // invalid_argument, device.
    Result<> check(const Cipher& cipher, const Engine::State& user) const;
    // Whether everybody knows which keys it has. Errors: device.
    Result<> check_whole() const;

    bool xts() const noexcept { return kinds() == modes::kXts; }
    // Those of all its keys. Beside replace() too.
    modes::KeyKinds kinds() const noexcept { return kinds_; }
    // Of the first key, for what depends on the size of keys. Beside replace() too.
    int bits() const noexcept { return bits_; }

    const std::shared_ptr<Engine::State> engine;  // outlives the tables
    std::vector<Key> list;

    Result<> replace(std::uint32_t index, const Key& key, Stream stream);

  private:
    State(std::shared_ptr<Engine::State> its_engine, std::vector<Key> keys);
    Result<> replace_whole(std::uint32_t index, const Key& key, Stream stream);
    // By the number of the worker.
    std::array<std::atomic<core::KeyTables*>, pipeline::kMaxWorkers> tables_{};
    std::array<std::size_t, 3> sizes_{};  // how many of its keys have 128, 192, 256 bits
    std::atomic<modes::KeyKinds> kinds_{};
    std::atomic<int> bits_;
    // While a replacement changes the set: what a child that is forked then finds.
    std::atomic<bool> changing_{false};
    std::atomic<std::uint32_t> changer_{0};  // the process that is at it
    std::atomic<bool> lost_{false};          // a device has a part of a replacement, for good
    // A device's replacement that nobody has waited for, and where it has ended.
    std::atomic<bool> under_way_{false};
    Order* order_ = nullptr;  // of the event
    Event replaced_{};
    core::ProcessLock at_work_;  // on the list: making tables of it, or replacing
};

}  // namespace dael
