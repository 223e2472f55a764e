// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <string>
#include <utility>

#include <daelstrom/key.hpp>

#include "core/key_schedule.hpp"
#include "core/secure_memory.hpp"

namespace dael {
namespace {

std::size_t memory_of(bool xts) noexcept {
    return (xts ? 2 : 1) * sizeof(core::KeySchedule);
}

// Looks at every byte, whatever it finds; only the verdict is known afterwards.
bool equal_in_constant_time(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
    volatile std::uint8_t differing = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        differing = static_cast<std::uint8_t>(differing | (a[i] ^ b[i]));
    return differing == 0;
}

}  // namespace

Result<Key> Key::import(std::span<const std::uint8_t> bytes) {
    if (bytes.size() != 16 && bytes.size() != 24 && bytes.size() != 32)
        return Error{Code::key_size,
                     "key is " + std::to_string(bytes.size()) + " bytes; AES takes 16, 24 or 32"};
    void* memory = core::secure_allocate(memory_of(false));
    if (!memory) return Error{Code::out_of_memory, "no memory for a key schedule"};
    Key key(new (memory) core::KeySchedule{}, false);
    core::expand_key(bytes, *key.schedule_);
    return key;
}

Result<Key> Key::import_xts(std::span<const std::uint8_t> bytes) {
    if (bytes.size() != 32 && bytes.size() != 64)
        return Error{Code::key_size, "XTS key is " + std::to_string(bytes.size()) +
                                         " bytes; XTS takes two AES keys one after the other: 32 "
                                         "bytes for AES-128, 64 for AES-256, and no AES-192"};
    const auto first = bytes.first(bytes.size() / 2), second = bytes.last(bytes.size() / 2);
    if (equal_in_constant_time(first, second))
        return Error{Code::invalid_argument, "the two halves of the XTS key are equal; draw all " +
                                                 std::to_string(bytes.size()) + " bytes at random"};
    void* memory = core::secure_allocate(memory_of(true));
    if (!memory) return Error{Code::out_of_memory, "no memory for a key schedule"};
    Key key(new (memory) core::KeySchedule[2]{}, true);
    core::expand_key(first, key.schedule_[0]);
    core::expand_key(second, key.schedule_[1]);
    return key;
}

Key::Key(Key&& other) noexcept
    : schedule_(std::exchange(other.schedule_, nullptr)), xts_(other.xts_) {}

Key& Key::operator=(Key&& other) noexcept {
    Key taken(std::move(other));  // the old key goes now, not when `other` does
    std::swap(schedule_, taken.schedule_);
    std::swap(xts_, taken.xts_);
    return *this;
}

Key::~Key() {
    if (schedule_) core::secure_release(schedule_, memory_of(xts_));
}

Result<Key> Key::duplicate() const {
    void* memory = core::secure_allocate(memory_of(xts_));
    if (!memory) return Error{Code::out_of_memory, "no memory for a key schedule"};
    auto* copy = static_cast<core::KeySchedule*>(memory);
    for (std::size_t i = 0; i < (xts_ ? 2u : 1u); ++i)
        new (copy + i) core::KeySchedule(schedule_[i]);
    return Key(copy, xts_);
}

int Key::bits() const noexcept {
    return 8 * schedule_->key_bytes;
}
int Key::rounds() const noexcept {
    return schedule_->rounds;
}
const core::KeySchedule& Key::tweak() const noexcept {
    return schedule_[1];
}

}  // namespace dael
