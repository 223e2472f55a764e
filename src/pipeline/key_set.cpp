// SPDX-License-Identifier: Apache-2.0
#include "pipeline/key_set.hpp"

#include <string>

#include "core/guard.hpp"

namespace dael {

KeySet::KeySet(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
KeySet::KeySet(KeySet&&) noexcept = default;
KeySet& KeySet::operator=(KeySet&&) noexcept = default;
KeySet::~KeySet() = default;

std::size_t KeySet::size() const noexcept {
    return state_->list.size();
}
int KeySet::bits(std::uint32_t index) const noexcept {
    return index < size() ? state_->list[index].bits() : 0;
}
Result<> KeySet::replace(std::uint32_t index, const Key& key, Stream stream) {
    return core::guarded([&] { return state_->replace(index, key, stream); });
}

Result<std::shared_ptr<KeySet::State>> KeySet::State::make(std::shared_ptr<Engine::State> engine,
                                                           std::span<const Key> keys) {
    if (keys.empty()) return Error{Code::invalid_argument, "no keys; give at least one"};
    std::vector<Key> list;
    list.reserve(keys.size());
    for (const Key& key : keys) {
        if (key.is_xts() != keys.front().is_xts())
            return Error{Code::invalid_argument,
                         "key " + std::to_string(list.size()) +
                             " is of another kind than the first; a set is for XTS, or it is not"};
        DAEL_LET(copy, key.duplicate());
        list.push_back(std::move(copy));
    }
    return std::shared_ptr<State>(new State(std::move(engine), std::move(list)));
}

KeySet::State::~State() {
    for (auto& tables : tables_) delete tables.load();
}

Result<core::Keys> KeySet::State::on(const pipeline::Worker& worker) {
    auto& mine = tables_[worker.number];
    core::KeyTables* tables = mine.load(std::memory_order_acquire);
    if (!tables) {
        DAEL_LET(fresh, worker.backend->tables(list));
        if (mine.compare_exchange_strong(tables, fresh.get())) tables = fresh.release();
    }
    return core::Keys{list, tables};
}

Result<> KeySet::State::check_owner(const Engine::State& user) const {
    if (engine.get() == &user) return {};
    return Error{Code::invalid_argument,
                 "the keys were made ready by another engine; use keys() of this one"};
}

Result<> KeySet::State::replace(std::uint32_t index, const Key& key, Stream stream) {
    if (index >= list.size())
        return Error{Code::invalid_argument, "no key " + std::to_string(index) + "; the set has " +
                                                 std::to_string(list.size())};
    if (key.is_xts() != xts())
        return Error{Code::invalid_argument,
                     "the key is of another kind than the set: one is for XTS, the other is not"};
    int on_devices = 0;
    for (std::size_t i = engine->host_count(); i < tables_.size(); ++i)
        on_devices += tables_[i].load() != nullptr;
    if (on_devices > 1)
        return Error{Code::unsupported,
                     "the keys are in use on several devices, whose streams know nothing of each "
                     "other; make a new set"};
    DAEL_LET(copy, key.duplicate());
    for (std::size_t i = 0; i < tables_.size(); ++i)
        if (core::KeyTables* tables = tables_[i].load())
            DAEL_TRY(tables->replace(index, key, i < engine->host_count() ? Stream{} : stream));
    list[index] = std::move(copy);
    return {};
}

}  // namespace dael
