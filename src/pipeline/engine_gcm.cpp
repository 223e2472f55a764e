// SPDX-License-Identifier: Apache-2.0
// The engine's GCM calls over host memory.
#include <algorithm>

#include "core/guard.hpp"
#include "modes/segment.hpp"
#include "pipeline/key_set.hpp"

namespace dael {

using pipeline::GcmWork;
using pipeline::Lane;

KeySet::KeySet(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
KeySet::KeySet(KeySet&&) noexcept = default;
KeySet& KeySet::operator=(KeySet&&) noexcept = default;
KeySet::~KeySet() = default;
std::size_t KeySet::size() const noexcept {
    return state_->count;
}

Result<const core::PreparedKeys*> KeySet::State::on(Lane& lane) {
    const std::lock_guard lock(mutex_);
    auto& prepared = on_devices_[&lane];
    if (!prepared) {
        auto made = lane.device.prepare_keys(keys);
        if (!made) return std::move(made).error();
        prepared = std::move(*made);
    }
    return prepared.get();
}

Result<KeySet::State::There> KeySet::State::where(Engine::State& its_engine,
                                                  const void* device_memory) {
    auto lane = its_engine.lane_of(device_memory);
    if (!lane) return std::move(lane).error();
    auto prepared = on(**lane);
    if (!prepared) return std::move(prepared).error();
    return There{*lane, *prepared};
}

Result<pipeline::HostKeys> Engine::State::prepare_on_host(std::span<const Key> keys) {
    if (keys.empty()) return Error{Code::invalid_argument, "no keys; give at least one"};
    if (hosts_.empty()) return pipeline::HostKeys{};
    Error none;
    for (const auto& host : hosts_) {
        auto prepared = host->prepare_keys(keys);
        if (prepared) return pipeline::HostKeys{host.get(), std::move(*prepared)};
        none = std::move(prepared).error();
        if (none.code != Code::unsupported) break;
    }
    return none;
}

Result<pipeline::HostKeys> Engine::State::prepare_for_stream(const Key& key) {
    if (!hosts_.empty()) return prepare_on_host(std::span(&key, 1));
    core::Backend& backend = *lanes_.front()->backend;
    auto prepared = backend.prepare_keys(std::span(&key, 1));
    if (!prepared) return std::move(prepared).error();
    return pipeline::HostKeys{&backend, std::move(*prepared)};
}

Result<std::unique_ptr<KeySet::State>> Engine::State::prepare_keys(std::span<const Key> keys,
                                                                   bool kept) {
    auto host = prepare_on_host(keys);
    if (!host) return std::move(host).error();
    auto set = std::make_unique<KeySet::State>();
    set->engine = this;
    set->count = keys.size();
    set->host = std::move(*host);
    if (!kept && set->host.backend) return set;  // which has all it needs
    set->keys.reserve(keys.size());
    for (const Key& key : keys) {
        auto copy = key.duplicate();
        if (!copy) return std::move(copy).error();
        set->keys.push_back(std::move(*copy));
    }
    if (hosts_.empty())  // so that what is wrong shows here
        if (auto made = set->on(*lanes_.front()); !made) return std::move(made).error();
    return set;
}

Result<> Engine::State::check_owner(const KeySet::State& keys) const {
    if (keys.engine == this) return {};
    return Error{Code::invalid_argument,
                 "the keys were made ready by another engine; use prepare_keys of this one"};
}

Result<Ran> Engine::State::gcm(KeySet::State& keys, const GcmWork& work, std::span<Code> results) {
    DAEL_TRY(check_owner(keys));
    if (core::Backend* const host = keys.host.backend) {
        auto threads =
            pipeline::gcm_on_host(*host, pool_, *keys.host.keys, keys.count, work, results);
        if (!threads) return std::move(threads).error();
        return Ran{std::string(host->name()), *threads, 0};
    }
    Lane& lane = *lanes_.front();
    auto prepared = keys.on(lane);
    if (!prepared) return std::move(prepared).error();
    auto slabs = lane.gcm.run(**prepared, keys.count, work, options_.chunk, results);
    if (!slabs) return std::move(slabs).error();
    return Ran{std::string(lane.backend->name()), pool_.threads(), *slabs};
}

namespace {

Result<> check_batch(std::size_t messages, std::size_t results, std::size_t tag_size) {
    if (messages != results)
        return Error{Code::invalid_argument, std::to_string(results) + " results for " +
                                                 std::to_string(messages) +
                                                 " messages; there must be as many"};
    return modes::check_tag_size(tag_size);
}

}  // namespace

Result<KeySet> Engine::prepare_keys(std::span<const Key> keys) {
    return core::guarded([&]() -> Result<KeySet> {
        auto set = state_->prepare_keys(keys, true);
        if (!set) return std::move(set).error();
        return KeySet(std::move(*set));
    });
}

Result<Ran> Engine::seal_batch(const KeySet& keys, std::span<const GcmMessage> messages,
                               std::span<Code> results, std::size_t tag_size) {
    return core::guarded([&]() -> Result<Ran> {
        DAEL_TRY(check_batch(messages.size(), results.size(), tag_size));
        std::ranges::fill(results, Code::internal);  // should the call end before they are known
        return state_->gcm(*keys.state_, GcmWork(Direction::encrypt, messages, tag_size), results);
    });
}

Result<Ran> Engine::open_batch(const KeySet& keys, std::span<const GcmMessage> messages,
                               std::span<Code> results, std::size_t tag_size) {
    return core::guarded([&]() -> Result<Ran> {
        DAEL_TRY(check_batch(messages.size(), results.size(), tag_size));
        std::ranges::fill(results, Code::internal);
        return state_->gcm(*keys.state_, GcmWork(Direction::decrypt, messages, tag_size), results);
    });
}

Result<Ran> Engine::State::gcm_one(Direction direction, const Key& key,
                                   const core::GcmSegment& segment) {
    DAEL_TRY(modes::check(segment, 1));
    auto keys = prepare_keys(std::span(&key, 1), false);
    if (!keys) return std::move(keys).error();
    Code result = Code::internal;
    auto ran = gcm(**keys, GcmWork(direction, segment), std::span(&result, 1));
    if (ran && result == Code::authentication) return pipeline::authentication_failed();
    if (ran && result != Code::ok) return Error{result, std::string(describe(result))};
    return ran;
}

Result<Ran> Engine::gcm_seal(const Key& key, std::span<const std::uint8_t> iv, HostIn aad,
                             HostIn in, HostOut out, std::span<std::uint8_t> tag) {
    if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
    return core::guarded([&] {
        return state_->gcm_one(Direction::encrypt, key,
                               {in.data(), out.data(), in.size(), aad.data(), aad.size(), iv.data(),
                                iv.size(), tag.data(), tag.size(), 0});
    });
}

Result<Ran> Engine::gcm_open(const Key& key, std::span<const std::uint8_t> iv, HostIn aad,
                             HostIn in, HostOut out, std::span<const std::uint8_t> tag) {
    if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
    return core::guarded([&] {
        // A segment's tag is not const, since sealing writes it; opening does not.
        return state_->gcm_one(Direction::decrypt, key,
                               {in.data(), out.data(), in.size(), aad.data(), aad.size(), iv.data(),
                                iv.size(), const_cast<std::uint8_t*>(tag.data()), tag.size(), 0});
    });
}

}  // namespace dael
