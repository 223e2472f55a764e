// SPDX-License-Identifier: Apache-2.0
// What all lanes need: keys in their places, and lists of messages.
#include "keystream/fill_lane.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <daelstrom/ctr.hpp>

#include "core/keep_forever.hpp"
#include "core/secure_memory.hpp"

namespace dael::keystream {
namespace {

constexpr std::uint32_t kFirstPlaces = 64, kMaxPlaces = 16384;
// More new keys than this at once are made ready together, in a new set.
constexpr std::size_t kManyNew = 16;

Key key_of_zeros() {
    return *Key::import(std::array<std::uint8_t, 16>{});
}

void put64(std::uint8_t* to, std::uint64_t value) {
    if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
    std::memcpy(to, &value, 8);
}

// gcm_ctr counts in 32 bits, the layout `stream` in 128: a message ends where the former wrap.
std::uint64_t before_wrap(Uint128 counter) {
    return (std::uint64_t{1} << 32) - static_cast<std::uint32_t>(counter);
}

}  // namespace

// A new set with the stretches' keys and those that were there: on a device a set is made ready in
// one go, where a key that is replaced takes a launch of its own.
Result<> KeyPlaces::remake(const std::vector<Stretch>& stretches) {
    std::unordered_map<std::uint64_t, Place> kept = std::move(by_serial_);
    clear();
    for (const Stretch& stretch : stretches) kept[stretch.key_serial] = {stretch.key, 0, jobs_};
    if (kept.size() > kMaxPlaces / 2)  // what was not used lately goes
        std::erase_if(kept, [&](const auto& entry) { return entry.second.used + 8 < jobs_; });
    if (kept.size() > kMaxPlaces)
        std::erase_if(kept, [&](const auto& entry) { return entry.second.used != jobs_; });
    const std::size_t size = std::max<std::size_t>(kFirstPlaces, std::bit_ceil(2 * kept.size()));
    std::vector<Key> keys;
    keys.reserve(size);
    for (auto& [serial, place] : kept) {
        place.index = static_cast<std::uint32_t>(keys.size());
        DAEL_LET(copy, place.key->duplicate());
        keys.push_back(std::move(copy));
    }
    while (keys.size() < size) {
        free_.push_back(static_cast<std::uint32_t>(keys.size()));
        keys.push_back(key_of_zeros());
    }
    DAEL_TRY(make_set(keys));
    made_ = true;
    by_serial_ = std::move(kept);
    return {};
}

void KeyPlaces::clear() {
    made_ = false;
    drop_set();
    by_serial_.clear();
    free_.clear();
}

Result<bool> KeyPlaces::find(const std::vector<Stretch>& stretches, Stream stream,
                             std::vector<std::uint32_t>& places) {
    ++jobs_;
    std::size_t fresh = 0;
    for (const Stretch& stretch : stretches) {
        const auto found = by_serial_.find(stretch.key_serial);
        if (found == by_serial_.end())
            ++fresh;
        else
            found->second.used = jobs_;
    }
    const bool remade = !made_ || fresh > std::min(kManyNew, free_.size());
    if (remade) DAEL_TRY(remake(stretches));
    places.clear();
    for (const Stretch& stretch : stretches) {
        auto found = by_serial_.find(stretch.key_serial);
        if (found == by_serial_.end()) {
            const std::uint32_t index = free_.back();
            DAEL_TRY(replace(index, *stretch.key, stream));
            free_.pop_back();
            found = by_serial_.emplace(stretch.key_serial, Place{stretch.key, index, jobs_}).first;
        }
        places.push_back(found->second.index);
    }
    return remade;
}

Result<> KeyPlaces::forget(const std::vector<std::uint64_t>& serials, Stream stream) {
    for (const std::uint64_t serial : serials) {
        const auto found = by_serial_.find(serial);
        if (found == by_serial_.end()) continue;
        DAEL_TRY(replace(found->second.index, key_of_zeros(), stream));
        free_.push_back(found->second.index);
        by_serial_.erase(found);
    }
    return {};
}

void EndFillLane::operator()(FillLane* lane) const noexcept {
    const auto ended = [&] {
        if (lane->fill.lost || !lane->end()) return false;
        (void)core::guarded([&] { return lane->wipe(); });
        return lane->end();
    };
    if (ended()) {
        delete lane;
        return;
    }
    core::keep_forever(std::unique_ptr<FillLane>(lane));
}

Result<> EngineKeys::make_set(std::span<const Key> keys) {
    DAEL_LET(set, engine_.keys(keys));
    set_.emplace(std::move(set));
    return {};
}

Block counter_of(const Stretch& stretch, std::uint64_t n) {
    Block counter{};
    if (stretch.layout == SaLayout::rfc4106) {
        std::memcpy(counter.data(), stretch.salt.data(), 4);
        put64(counter.data() + 4, stretch.iv_bits | n);
        counter[15] = 1;
    } else {
        const Uint128 number = stretch.base + n;
        put64(counter.data(), static_cast<std::uint64_t>(number >> 64));
        put64(counter.data() + 8, static_cast<std::uint64_t>(number));
    }
    return counter;
}

std::size_t messages_of(const Stretch& stretch) {
    if (stretch.layout == SaLayout::rfc4106)
        return static_cast<std::size_t>(stretch.end - stretch.first);
    const std::uint64_t blocks = stretch.end - stretch.first;
    return blocks <= before_wrap(stretch.base + stretch.first) ? 1 : 2;  // windows are far shorter
}

void write_messages(const Fill& fill, const std::vector<std::uint32_t>& places,
                    std::uint8_t* memory, Message* to) {
    for (std::size_t i = 0; i < fill.stretches.size(); ++i) {
        const Stretch& stretch = fill.stretches[i];
        std::uint8_t* at = memory + stretch.offset;
        Message message;
        message.key = places[i];
        if (stretch.layout == SaLayout::rfc4106) {
            message.size = std::uint64_t{stretch.blocks} * 16;
            for (std::uint64_t n = stretch.first; n < stretch.end; ++n, at += message.size) {
                message.out = at;
                message.start = counter_of(stretch, n);
                *to++ = message;
            }
        } else {
            for (std::uint64_t n = stretch.first; n < stretch.end;) {
                const std::uint64_t blocks =
                    std::min(stretch.end - n, before_wrap(stretch.base + n));
                message.out = at;
                message.start = counter_of(stretch, n);
                message.size = blocks * 16;
                *to++ = message;
                at += message.size;
                n += blocks;
            }
        }
    }
}

}  // namespace dael::keystream
