// SPDX-License-Identifier: Apache-2.0
// All that lies above a backend knows of a mode: one row each. A new mode is a row here, its
// checks, and the backends that have it: docs/architecture.md, "Adding a mode", has the whole list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <daelstrom/aegis.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/gcm_siv.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/message.hpp>
#include <daelstrom/xts.hpp>

namespace dael::modes {

struct Traits {
    std::string_view name;
    // Whether one message may be cut, by direction: its parts are independent, once each has a
    // start of its own. (A device may be parallel within a message that is never cut: GCM.)
    std::array<bool, 2> cut;
    // Whether two messages encrypted from one start under one key may not be in one call: in the
    // counter modes and OFB that gives away their whole XOR. (CBC and CFB only tell what begins
    // alike.)
    bool start_once;
    // Whether it is a key stream that is made and XORed, so that both directions are the same.
    bool both_ways;

    // Bytes of which a cut must be a multiple, counted from the message's beginning less its skip.
    std::size_t (*unit)(const Cipher& cipher);
    // What only this mode asks of a message: whether it is so, and if not why.
    bool (*takes)(const Cipher& cipher, const Message& message);
    Error (*refusal)(const Cipher& cipher, const Message& message);
    // The start of the part from byte `at` on. In CBC and CFB decryption the bytes before `at` must
    // still be ciphertext.
    Block (*start_at)(const Cipher& cipher, const Message& message, std::uint64_t at);
};

const Traits& traits(Mode mode) noexcept;

inline bool can_cut(const Cipher& cipher) noexcept {
    return traits(cipher.mode).cut[static_cast<std::size_t>(cipher.direction)];
}
inline bool encrypts(const Cipher& cipher) noexcept {
    return cipher.direction == Direction::encrypt;
}

// Kinds of keys, as bits of a mask: what a mode takes, what a set has.
enum KeyKinds : std::uint8_t {
    kAes128 = 1,
    kAes192 = 2,
    kAes256 = 4,
    kAnyAes = kAes128 | kAes192 | kAes256,
    kXts = 8,  // made by Key::import_xts(), of any size
};
constexpr KeyKinds operator|(KeyKinds a, KeyKinds b) noexcept {
    return KeyKinds(std::uint8_t(a) | std::uint8_t(b));
}
inline KeyKinds kind_of(const Key& key) noexcept {
    return key.is_xts() ? kXts : KeyKinds(1 << (key.bits() / 64 - 2));
}
// Those that a mode takes.
constexpr KeyKinds key_kinds(Mode mode) noexcept {
    switch (mode) {
        case Mode::xts:
            return kXts;
        case Mode::aegis128l:
        case Mode::aegis128x2:
        case Mode::aegis128x4:
            return kAes128;
        case Mode::aegis256:
        case Mode::xaes256gcm:
            return kAes256;
        case Mode::gcm_siv:
            return kAes128 | kAes256;
        default:
            return kAnyAes;
    }
}
// Whether the mode has tags of so many bytes; any number where it has none.
constexpr bool valid_tag_size(Mode mode, std::size_t size) noexcept {
    return mode == Mode::gcm ? gcm::valid_tag_size(size)
           : is_aegis(mode)  ? aegis::valid_tag_size(size)
                             : !authenticates(mode) || size == kBlockSize;
}

// Whether a cipher makes sense, known mode and direction, a tag that the mode has, XTS's sectors of
// 16 bytes to 16 MiB, and takes keys of all these kinds. Every call asks this first, so that it is
// here whole; the reason is not. Errors: invalid_argument.
inline bool takes_kind(const Cipher& cipher, KeyKinds kinds) noexcept {
    return static_cast<std::size_t>(cipher.mode) < kModes.size() &&
           static_cast<std::size_t>(cipher.direction) < 2 &&
           (kinds & ~key_kinds(cipher.mode)) == 0 && valid_tag_size(cipher.mode, cipher.tag) &&
           (cipher.mode != Mode::xts ||
            (cipher.sector >= xts::kLeast && cipher.sector <= xts::kMax));
}
Error refusal(const Cipher& cipher, KeyKinds kinds);
inline Result<> check_kind(const Cipher& cipher, KeyKinds kinds) {
    if (takes_kind(cipher, kinds)) [[likely]]
        return {};
    return refusal(cipher, kinds);
}
inline Result<> check(const Cipher& cipher, const Key& key) {
    return check_kind(cipher, kind_of(key));
}
// Of a tag that the mode does not have: invalid_argument. Of more than one message may have, which
// `what` says: limit.
Error no_such_tag(Mode mode, std::size_t size);
Error too_long(Mode mode, const std::string& what);
Error too_much_aad(Mode mode, const std::string& what);

// Whether two runs of bytes share one; neither passes the end of memory.
inline bool overlap(const std::uint8_t* a, std::uint64_t a_size, const std::uint8_t* b,
                    std::uint64_t b_size) noexcept {
    const auto from_a = reinterpret_cast<std::uintptr_t>(a);
    const auto from_b = reinterpret_cast<std::uintptr_t>(b);
    return (from_b - from_a < a_size && b_size != 0) || (from_a - from_b < b_size && a_size != 0);
}
// A skip, and an input of null, are for counter modes; AAD is for modes that authenticate.
inline bool well_formed(const Cipher& cipher, const Message& m) noexcept {
    const bool counts = makes_keystream(cipher.mode);
    return (m.size == 0 || (m.out && (m.in || counts))) && (counts ? m.skip < 16 : m.skip == 0) &&
           (m.aad_size == 0 || authenticates(cipher.mode)) &&
           m.size <= std::numeric_limits<std::uint64_t>::max() - kBlockSize &&
           (m.in == m.out || !m.in || !overlap(m.in, m.size, m.out, m.size));
}
// The most that one message may have of data and of AAD in a mode that authenticates: GCM's sizes
// (SP 800-38D 5.2.1.1), AEGIS's (RFC 10032); XAES-256-GCM has GCM's; GCM-SIV's are 2^36 bytes each
// (RFC 8452 section 6).
struct Most {
    std::uint64_t data, aad;
};
constexpr Most most(Mode mode) noexcept {
    return is_aegis(mode)          ? Most{aegis::kMaxData, aegis::kMaxAad}
           : mode == Mode::gcm_siv ? Most{gcm_siv::kMaxData, gcm_siv::kMaxAad}
                                   : Most{gcm::kMaxData, gcm::kMaxAad};
}
// Whether nothing is behind the nonce, where that fills no whole block: XAES-256-GCM, GCM-SIV.
inline bool ends_in_zeros(Mode mode, const Message& m) noexcept {
    std::uint64_t rest = 0;
    if (mode == Mode::xaes256gcm) std::memcpy(&rest, m.start_rest.data() + 8, 8);
    if (mode == Mode::gcm_siv) std::memcpy(&rest, m.start.data() + 12, 4);
    return rest == 0;
}
// Modes that authenticate: sizes, the nonce, the tag, and nothing over the output.
inline bool tagged_takes(const Cipher& cipher, const Message& m) noexcept {
    const Most limits = most(cipher.mode);
    return m.size <= limits.data && m.aad_size <= limits.aad && m.tag &&
           ends_in_zeros(cipher.mode, m) && !overlap(m.tag, cipher.tag, m.out, m.size) &&
           (m.aad_size == 0 || (m.aad && !overlap(m.aad, m.aad_size, m.out, m.size)));
}

// Whether the mode takes the message; `keys` is how many keys there are to choose from. The first
// is without the reason, and without the cost of a Result for each of many short messages, of which
// there may be millions: what modes that authenticate ask is here whole. Errors: ragged_length
// (ECB, CBC, XTS), overlap, invalid_argument (null pointers, no such key, a skip or AAD where the
// mode has none), limit (sizes, counters that would wrap, numbers of sectors).
inline bool takes(const Cipher& cipher, const Message& message, std::size_t keys) noexcept {
    if (message.key >= keys || !well_formed(cipher, message)) return false;
    return authenticates(cipher.mode) ? tagged_takes(cipher, message)
                                      : traits(cipher.mode).takes(cipher, message);
}
Result<> check(const Cipher& cipher, const Message& message, std::size_t keys);

// For calls that are given both sizes: invalid_argument.
Error sizes_differ(std::size_t in, std::size_t out);

// `size` bytes of a message from byte `at` on, which is 0, or a multiple of the unit less the
// message's skip. Only for ciphers that can cut.
Message slice(const Cipher& cipher, const Message& message, std::uint64_t at, std::uint64_t size);

// The message from byte `offset` of its keystream on, for counter modes: start and skip.
Message from_offset(Message message, std::uint64_t offset) noexcept;

// XTS's number of a later sector: little-endian, 128 bits (IEEE 1619 5.1).
Block sector_add(Block number, std::uint64_t sectors) noexcept;

}  // namespace dael::modes
