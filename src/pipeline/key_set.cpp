// SPDX-License-Identifier: Apache-2.0
#include "pipeline/key_set.hpp"

#include <mutex>
#include <string>

#include "core/guard.hpp"
#include "core/keep_forever.hpp"

namespace dael {
namespace {

// By size: 128, 192, 256 bits.
std::size_t size_of(const Key& key) noexcept {
    return static_cast<std::size_t>(key.bits() / 64 - 2);
}
modes::KeyKinds kinds_of(const std::array<std::size_t, 3>& sizes) noexcept {
    unsigned kinds = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) kinds |= unsigned{sizes[i] != 0} << i;
    return modes::KeyKinds(kinds);
}

}  // namespace

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

KeySet::State::State(std::shared_ptr<Engine::State> its_engine, std::vector<Key> keys)
    : engine(std::move(its_engine)), list(std::move(keys)), bits_(list.front().bits()) {
    for (const Key& key : list) ++sizes_[size_of(key)];
    kinds_ = list.front().is_xts() ? modes::kXts : kinds_of(sizes_);
}

KeySet::State::~State() {
    for (std::size_t i = 0; i < tables_.size(); ++i)
        if (std::unique_ptr<core::KeyTables> tables(tables_[i].load()); engine->given_up(i))
            core::keep_forever(std::move(tables));
    if (!order_ || engine->forked()) return;
    // An event that may still come stays.
    if (core::waited([&] { return settle(); })) order_->destroy_event(replaced_);
}

Result<> KeySet::State::settle() {
    if (!under_way_.load(std::memory_order_acquire)) return {};
    DAEL_TRY(order_->wait(replaced_));
    under_way_.store(false, std::memory_order_release);
    return {};
}

Result<core::KeyList> KeySet::State::on(const pipeline::Worker& worker) {
    auto& mine = tables_[worker.number];
    core::KeyTables* tables = mine.load(std::memory_order_acquire);
    if (!tables) {
        const std::lock_guard lock(at_work_);
        DAEL_TRY(check_whole());
        tables = mine.load(std::memory_order_relaxed);
        if (!tables) {
            DAEL_LET(fresh, worker.backend->tables(list));
            tables = fresh.release();
            mine.store(tables, std::memory_order_release);
        }
    }
    return core::KeyList{list, tables};
}

Result<> KeySet::State::check(const Cipher& cipher, const Engine::State& user) const {
    DAEL_TRY(modes::check_kind(cipher, kinds_));
    if (engine.get() != &user)
        return Error{Code::invalid_argument,
                     "the keys were made ready by another engine; use keys() of this one"};
    return check_whole();
}

Result<> KeySet::State::check_whole() const {
    if (lost_)
        return Error{Code::device,
                     "a replacement in this set of keys failed midway, and nobody can say which "
                     "key the device has; make a new set"};
    if (changing_ && changer_ != core::this_process())
        return Error{Code::device,
                     "another thread was replacing a key of this set when the process forked; make "
                     "a new set"};
    return {};
}

Result<> KeySet::State::replace(std::uint32_t index, const Key& key, Stream stream) {
    if (index >= list.size())
        return Error{Code::invalid_argument, "no key " + std::to_string(index) + "; the set has " +
                                                 std::to_string(list.size())};
    if (key.is_xts() != xts())
        return Error{Code::invalid_argument,
                     "the key is of another kind than the set: one is for XTS, the other is not"};
    const std::lock_guard lock(at_work_);
    DAEL_TRY(check_whole());
    auto replaced = core::guarded([&] { return replace_whole(index, key, stream); });
    if (replaced) return replaced;
    Error error = std::move(replaced).error();
    error.message += lost_ ? "; the device has a part of the replacement, and the set is used up"
                           : "; every key of the set is as it was";
    return error;
}

// What can fail comes first: the copy, then a device, of which there is one at most. Hosts and the
// list then cannot.
Result<> KeySet::State::replace_whole(std::uint32_t index, const Key& key, Stream stream) {
    core::KeyTables* on_device = nullptr;  // those of a parent's are none of a child's
    std::size_t number = 0;
    for (std::size_t i = engine->host_count(); i < tables_.size() && !engine->forked(); ++i) {
        core::KeyTables* const tables = tables_[i].load();
        if (tables && on_device)
            return Error{Code::unsupported,
                         "the keys are in use on several devices, whose streams know nothing of "
                         "each other; make a new set"};
        if (tables) number = i, on_device = tables;
    }
    DAEL_LET(copy, key.duplicate());
    if (on_device && !order_) {
        Order& order = engine->path(number).device.order();
        DAEL_LET(event, order.create_event());
        replaced_ = event;
        order_ = &order;
    }
    // From here on a child that is forked has no whole set.
    struct Changing {
        explicit Changing(State& its_set) : set(its_set) {
            set.changer_ = core::this_process();
            set.changing_ = true;
        }
        ~Changing() { set.changing_ = false; }
        State& set;
    } const changing(*this);
    if (on_device) {
        auto replaced = core::guarded([&] { return on_device->replace(index, key, stream); });
        if (!replaced) {
            if (!on_device->whole()) lost_ = true;
            return replaced;
        }
        if (auto recorded = core::guarded([&] { return order_->record(replaced_, stream); });
            !recorded) {
            lost_ = true;  // nobody could say when it has ended
            return recorded;
        }
        under_way_.store(true, std::memory_order_release);
    }
    for (std::size_t i = 0; i < engine->host_count(); ++i)
        if (core::KeyTables* const tables = tables_[i].load())
            if (auto replaced = tables->replace(index, key, {}); !replaced) {
                lost_ = true;  // a backend that breaks its word
                return replaced;
            }
    --sizes_[size_of(list[index])];
    ++sizes_[size_of(copy)];
    list[index] = std::move(copy);
    if (index == 0) bits_ = list.front().bits();
    if (!xts()) kinds_ = kinds_of(sizes_);
    return {};
}

}  // namespace dael
