// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <string>
#include <utility>

#include <daelstrom/key.hpp>

#include "core/key_schedule.hpp"
#include "core/secure_memory.hpp"

namespace dael {

Result<Key> Key::import(std::span<const std::uint8_t> bytes) {
    if (bytes.size() != 16 && bytes.size() != 24 && bytes.size() != 32)
        return Error{Code::key_size,
                     "key is " + std::to_string(bytes.size()) + " bytes; AES takes 16, 24 or 32"};
    void* memory = core::secure_allocate(sizeof(core::KeySchedule));
    if (!memory) return Error{Code::out_of_memory, "no memory for a key schedule"};
    Key key(new (memory) core::KeySchedule{});
    core::expand_key(bytes, *key.schedule_);
    return key;
}

Key::Key(Key&& other) noexcept : schedule_(std::exchange(other.schedule_, nullptr)) {}

Key& Key::operator=(Key&& other) noexcept {
    Key taken(std::move(other));  // the old key goes now, not when `other` does
    std::swap(schedule_, taken.schedule_);
    return *this;
}

Key::~Key() {
    if (schedule_) core::secure_release(schedule_, sizeof(core::KeySchedule));
}

Result<Key> Key::duplicate() const {
    return import(schedule_->key());
}

int Key::bits() const noexcept {
    return 8 * schedule_->key_bytes;
}
int Key::rounds() const noexcept {
    return schedule_->rounds;
}

}  // namespace dael
