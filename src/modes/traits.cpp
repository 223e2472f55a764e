// SPDX-License-Identifier: Apache-2.0
#include "modes/traits.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include <daelstrom/device/detail/aes_math.hpp>

#include "modes/counter.hpp"

namespace dael::modes {
namespace {

Error null_with_size(const char* what, std::uint64_t size) {
    return {Code::invalid_argument,
            std::string(what) + " is null, but its size is " + std::to_string(size) + " bytes"};
}

// Whole counter blocks used up by `bytes` bytes after `skip`.
std::uint64_t blocks_touched(std::uint64_t skip, std::uint64_t bytes) noexcept {
    return (skip + bytes) / kBlockSize;
}

std::size_t block_unit(const Cipher&) {
    return kBlockSize;
}
std::size_t sector_unit(const Cipher& cipher) {
    return cipher.sector;
}

bool any_length(const Cipher&, const Message&) {
    return true;
}
Error no_refusal(const Cipher&, const Message&) {
    return {Code::internal, "a message was refused for nothing"};
}

bool whole_blocks(const Cipher&, const Message& m) {
    return m.size % kBlockSize == 0;
}
Error ragged(const Cipher& cipher, const Message& m) {
    return {Code::ragged_length, "length " + std::to_string(m.size) + " is not a multiple of 16; " +
                                     std::string(name(cipher.mode)) +
                                     " takes whole blocks: pad the data, or use ctr"};
}

Error tagged_refusal(const Cipher& cipher, const Message& m) {
    const Most limits = most(cipher.mode);
    if (m.size > limits.data) return too_long(cipher.mode, std::to_string(m.size) + " bytes");
    if (m.aad_size > limits.aad)
        return too_much_aad(cipher.mode, std::to_string(m.aad_size) + " bytes");
    if (!ends_in_zeros(cipher.mode, m))
        return {Code::invalid_argument,
                cipher.mode == Mode::gcm_siv
                    ? "a nonce of GCM-SIV has 12 bytes; the last 4 of the start are not zero"
                    : "a nonce of XAES-256-GCM has 24 bytes; the last 8 of the start are not zero"};
    if (!m.tag) return null_with_size("the tag", cipher.tag);
    if (!m.aad && m.aad_size != 0) return null_with_size("the additional data", m.aad_size);
    if (overlap(m.tag, cipher.tag, m.out, m.size))
        return {Code::overlap, "the tag overlaps the output; keep it outside, before or after"};
    return {Code::overlap, "the additional data overlaps the output; keep them apart"};
}

bool gcm_ctr_takes(const Cipher&, const Message& m) {
    const std::uint64_t room = blocks_before_wrap32(m.start) * kBlockSize;
    return m.size <= room - m.skip;
}
Error gcm_ctr_refusal(const Cipher&, const Message& m) {
    return {Code::limit, std::to_string(m.size) +
                             " bytes under one nonce; its 32-bit counter lasts for " +
                             std::to_string(blocks_before_wrap32(m.start) * kBlockSize - m.skip) +
                             ": cut the data into messages with a nonce each"};
}

std::uint64_t sectors_of(const Cipher& cipher, const Message& m) noexcept {
    return m.size / cipher.sector + (m.size % cipher.sector != 0);
}
bool numbers_last(const Cipher& cipher, const Message& m) noexcept {
    constexpr auto kLargest = std::numeric_limits<std::uint64_t>::max();
    const auto first = core::load_le<std::uint64_t>(m.start.data());
    const auto first_high = core::load_le<std::uint64_t>(m.start.data() + 8);
    const std::uint64_t count = sectors_of(cipher, m);
    return count == 0 || first_high != kLargest || count - 1 <= kLargest - first;
}
bool xts_takes(const Cipher& cipher, const Message& m) {
    const std::uint64_t last = m.size % cipher.sector;
    return (last == 0 || last >= xts::kLeast) && numbers_last(cipher, m);
}
Error xts_refusal(const Cipher& cipher, const Message& m) {
    if (const std::uint64_t last = m.size % cipher.sector; last != 0 && last < xts::kLeast)
        return {Code::ragged_length,
                "length " + std::to_string(m.size) + " leaves a last sector of " +
                    std::to_string(last) + " bytes; it takes at least 16: give whole sectors of " +
                    std::to_string(cipher.sector) + " bytes, or a longer rest"};
    return {Code::limit, "the sectors' numbers pass 2^128 - 1"};
}

Block same_start(const Cipher&, const Message& m, std::uint64_t) {
    return m.start;
}
Block block_before(const Cipher&, const Message& m, std::uint64_t at) {
    Block start;
    std::memcpy(start.data(), m.in + at - kBlockSize, kBlockSize);
    return start;
}
Block later_counter(const Cipher&, const Message& m, std::uint64_t at) {
    return counter_add(m.start, blocks_touched(m.skip, at));
}
Block later_sector(const Cipher& cipher, const Message& m, std::uint64_t at) {
    return sector_add(m.start, at / cipher.sector);
}

constexpr std::array<bool, 2> kBoth{true, true}, kDecrypting{false, true}, kNever{false, false};

// By Mode's values.
constexpr std::array<Traits, kModes.size()> kTraits{{
    {"ecb", kBoth, false, false, block_unit, whole_blocks, ragged, same_start},
    {"cbc", kDecrypting, false, false, block_unit, whole_blocks, ragged, block_before},
    {"cfb", kDecrypting, false, false, block_unit, any_length, no_refusal, block_before},
    {"ofb", kNever, true, true, block_unit, any_length, no_refusal, same_start},
    {"ctr", kBoth, true, true, block_unit, any_length, no_refusal, later_counter},
    {"gcm", kNever, true, false, block_unit, tagged_takes, tagged_refusal, same_start},
    {"gcm_ctr", kBoth, true, true, block_unit, gcm_ctr_takes, gcm_ctr_refusal, later_counter},
    {"xts", kBoth, false, false, sector_unit, xts_takes, xts_refusal, later_sector},
    {"aegis128l", kNever, true, false, block_unit, tagged_takes, tagged_refusal, same_start},
    {"aegis256", kNever, true, false, block_unit, tagged_takes, tagged_refusal, same_start},
    {"aegis128x2", kNever, true, false, block_unit, tagged_takes, tagged_refusal, same_start},
    {"aegis128x4", kNever, true, false, block_unit, tagged_takes, tagged_refusal, same_start},
    {"xaes256gcm", kNever, true, false, block_unit, tagged_takes, tagged_refusal, same_start},
    {"gcm_siv", kNever, false, false, block_unit, tagged_takes, tagged_refusal, same_start},
}};

// A mode without a row would have one of nulls; and what <daelstrom/message.hpp> says of a mode is
// what its row says. Of a mode that authenticates a message may be parallel and yet not be cut.
consteval bool rows_are_right() {
    for (std::size_t i = 0; i < kModes.size(); ++i) {
        const Mode mode{static_cast<std::uint8_t>(i)};
        const Traits& row = kTraits[i];
        if (kModes[i] != mode || row.name.empty() ||
            (row.takes == whole_blocks) != whole_blocks_only(mode))
            return false;
        for (const auto direction : {Direction::encrypt, Direction::decrypt})
            if (!authenticates(mode) && row.cut[static_cast<std::size_t>(direction)] !=
                                            parallel_within_message(mode, direction))
                return false;
    }
    return true;
}
static_assert(rows_are_right());

}  // namespace

const Traits& traits(Mode mode) noexcept {
    return kTraits[static_cast<std::size_t>(mode)];
}

namespace {

// As people write it in a text.
std::string_view title(Mode mode) noexcept {
    switch (mode) {
        case Mode::gcm:
            return "GCM";
        case Mode::xts:
            return "XTS";
        case Mode::aegis128l:
            return "AEGIS-128L";
        case Mode::aegis256:
            return "AEGIS-256";
        case Mode::aegis128x2:
            return "AEGIS-128X2";
        case Mode::aegis128x4:
            return "AEGIS-128X4";
        case Mode::xaes256gcm:
            return "XAES-256-GCM";
        case Mode::gcm_siv:
            return "GCM-SIV";
        default:
            return name(mode);
    }
}
std::string power_of_two(std::uint64_t limit) {
    return limit == gcm::kMaxData ? "2^36 - 32" : limit == gcm::kMaxAad ? "2^61 - 1" : "2^36";
}
std::string_view sizes_of(KeyKinds kinds) noexcept {
    return kinds == kAes128   ? "16"
           : kinds == kAes256 ? "32"
           : kinds == kAnyAes ? "16, 24 or 32"
                              : "16 or 32";
}

}  // namespace

Error too_long(Mode mode, const std::string& what) {
    return {Code::limit, what + " under one " + (mode == Mode::gcm ? "IV" : "nonce") + "; " +
                             std::string(title(mode)) + "'s limit is " +
                             power_of_two(most(mode).data) +
                             ": cut the data into messages with one each"};
}
Error too_much_aad(Mode mode, const std::string& what) {
    return {Code::limit, what + " of additional data; " + std::string(title(mode)) +
                             "'s limit is " + power_of_two(most(mode).aad)};
}
Error no_such_tag(Mode mode, std::size_t size) {
    return {Code::invalid_argument, "a tag of " + std::to_string(size) + " bytes; " +
                                        std::string(title(mode)) + " has " +
                                        (mode == Mode::gcm ? "4, 8, and 12 to 16"
                                         : is_aegis(mode)  ? "16 and 32"
                                                           : "16")};
}

Error refusal(const Cipher& cipher, KeyKinds kinds) {
    if (static_cast<std::size_t>(cipher.mode) >= kModes.size())
        return {Code::invalid_argument, "no mode " + std::to_string(static_cast<int>(cipher.mode))};
    if (cipher.direction != Direction::encrypt && cipher.direction != Direction::decrypt)
        return {Code::invalid_argument, "no direction " +
                                            std::to_string(static_cast<int>(cipher.direction)) +
                                            "; 0 encrypts, 1 decrypts"};
    if (!valid_tag_size(cipher.mode, cipher.tag)) return no_such_tag(cipher.mode, cipher.tag);
    if (cipher.mode == Mode::xts && (cipher.sector < xts::kLeast || cipher.sector > xts::kMax))
        return {Code::invalid_argument, "sector size is " + std::to_string(cipher.sector) +
                                            " bytes; XTS takes 16 to " + std::to_string(xts::kMax)};
    if (cipher.mode == Mode::xts)
        return {Code::invalid_argument,
                "XTS takes keys made by Key::import_xts(), of 32 or 64 bytes"};
    if (kinds & kXts)
        return {Code::invalid_argument,
                std::string(name(cipher.mode)) +
                    " takes keys made by Key::import(); this one is for XTS"};
    const KeyKinds wrong{static_cast<std::uint8_t>(kinds & ~key_kinds(cipher.mode))};
    return {Code::invalid_argument, std::string(title(cipher.mode)) + " takes keys of " +
                                        std::string(sizes_of(key_kinds(cipher.mode))) +
                                        " bytes, not of " +
                                        (wrong & kAes128   ? "16"
                                         : wrong & kAes192 ? "24"
                                                           : "32")};
}

Result<> check(const Cipher& cipher, const Message& m, std::size_t keys) {
    if (takes(cipher, m, keys)) return {};
    if (m.key >= keys)
        return Error{Code::invalid_argument,
                     "no key " + std::to_string(m.key) + "; the set has " + std::to_string(keys)};
    if (m.size != 0 && (!m.out || (!m.in && !makes_keystream(cipher.mode))))
        return null_with_size(m.out ? "the input" : "the output", m.size);
    if (m.skip != 0 && !makes_keystream(cipher.mode))
        return Error{Code::invalid_argument,
                     "a skip is for counter modes only, not for " + std::string(name(cipher.mode))};
    if (m.skip >= kBlockSize)
        return Error{Code::invalid_argument,
                     "skip is " + std::to_string(m.skip) + "; a block has 16 bytes"};
    if (m.aad_size != 0 && !authenticates(cipher.mode))
        return Error{Code::invalid_argument,
                     "additional data is for modes that authenticate, not for " +
                         std::string(name(cipher.mode))};
    if (m.size > std::numeric_limits<std::uint64_t>::max() - kBlockSize)
        return Error{Code::limit, std::to_string(m.size) + " bytes in one message"};
    if (!well_formed(cipher, m))
        return Error{
            Code::overlap,
            "input and output overlap; pass the same buffer to work in place, or two apart"};
    return traits(cipher.mode).refusal(cipher, m);
}

Error sizes_differ(std::size_t in, std::size_t out) {
    return {Code::invalid_argument, "output is " + std::to_string(out) + " bytes; the input is " +
                                        std::to_string(in) + "; they must be the same"};
}

Message slice(const Cipher& cipher, const Message& message, std::uint64_t at, std::uint64_t size) {
    Message part = message;
    part.size = size;
    if (at == 0) return part;
    part.start = traits(cipher.mode).start_at(cipher, message, at);
    part.skip = 0;
    if (part.in) part.in += at;
    part.out += at;
    return part;
}

Message from_offset(Message message, std::uint64_t offset) noexcept {
    message.start = counter_add(message.start, offset / kBlockSize);
    message.skip = static_cast<std::uint8_t>(offset % kBlockSize);
    return message;
}

Block sector_add(Block number, std::uint64_t sectors) noexcept {
    const auto low = core::load_le<std::uint64_t>(number.data());
    const auto high = core::load_le<std::uint64_t>(number.data() + 8);
    core::store_le(number.data(), low + sectors);
    core::store_le(number.data() + 8, high + (low + sectors < low));
    return number;
}

}  // namespace dael::modes
