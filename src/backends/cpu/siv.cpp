// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/siv.hpp"

#include <algorithm>
#include <array>

#include "backends/cpu/clear_stack.hpp"
#include "backends/cpu/memory_of_call.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu::siv {
namespace {

std::uint64_t size_of(const Message& m) noexcept {
    return std::max(m.size, m.aad_size);
}

// Messages that lie in the first cache together are all hashed before any is encrypted: each by
// itself would wait for its tag.
constexpr std::uint64_t kShort = 4096;

void seal_four(const Form& form, const KeysOfCall& keys, const Message* messages) noexcept {
    std::array<Block, kFour> tags;
    for (std::size_t i = 0; i < kFour; ++i)
        tags[i] = form.tag(keys.of[i], messages[i].start.data(), messages[i], messages[i].in);
    for (std::size_t i = 0; i < kFour; ++i) {
        form.crypt(keys.of[i], tags[i].data(), messages[i]);
        std::copy(tags[i].begin(), tags[i].end(), messages[i].tag);
    }
}

Code one(const Form& form, Direction direction, const Keys& keys, const Message& m) noexcept {
    const std::uint8_t* const nonce = m.start.data();
    if (direction == Direction::encrypt) {
        const Block tag = form.tag(keys, nonce, m, m.in);
        form.crypt(keys, tag.data(), m);
        std::copy(tag.begin(), tag.end(), m.tag);
        return Code::ok;
    }
    Block tag = form.open(keys, nonce, m);
    const core::WipeAtEnd wiped(tag);  // what a forged message should have had
    if (modes::equal_tags(tag.data(), m.tag, tag.size())) return Code::ok;
    if (m.in == m.out)
        form.crypt(keys, m.tag, m);
    else if (m.size != 0)
        wipe(m.out, m.size);
    return Code::authentication;
}

}  // namespace

Result<> run(const Form& form, const Cipher& cipher, std::span<const Key> keys,
             std::span<const Message> messages, std::span<Code> codes) {
    MemoryOfCall<KeysOfCall> derived;
    if (!derived) return Error{Code::out_of_memory, "no memory for the keys of a message"};
    bool spilled = form.spills;
    for (std::size_t i = 0, count = 1; i < messages.size(); i += count) {
        const auto rest = messages.subspan(i);
        const core::KeySchedule& key = keys[rest[0].key].schedule();
        std::uint64_t size = size_of(rest[0]);
        for (count = 1; form.derive_four && count < kFour && count < rest.size() &&
                        rest[count].key == rest[0].key;
             ++count)
            size = std::max(size, size_of(rest[count]));
        if (count == kFour) {
            form.derive_four(key, rest.data(), size, *derived);
            spilled = true;
        } else {
            count = 1;
            form.derive(key, rest[0].start.data(), size_of(rest[0]), derived->of[0]);
        }
        derived.used(count * sizeof(Keys));
        if (count == kFour && size <= kShort && cipher.direction == Direction::encrypt) {
            seal_four(form, *derived, rest.data());
            continue;
        }
        for (std::size_t k = 0; k < count; ++k) {
            const Code code = one(form, cipher.direction, derived->of[k], rest[k]);
            if (code != Code::ok) codes[i + k] = code;
        }
    }
    if (spilled) clear_stack();
    return {};
}

}  // namespace dael::cpu::siv
