// SPDX-License-Identifier: Apache-2.0
#include "formats/bech32.hpp"

#include <algorithm>

#include <daelstrom/key.hpp>

namespace dael::formats {
namespace {

constexpr std::string_view kLetters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
constexpr std::size_t kChecksum = 6;  // digits of 5 bits

constexpr std::uint32_t equal(std::uint32_t a, std::uint32_t b) {  // all ones or zero
    return 0u - ((((a ^ b) - 1) & ~(a ^ b)) >> 31);
}
constexpr std::uint32_t not_above(std::uint32_t c, std::uint32_t limit) {  // both below 2^31
    return 0u - (1 ^ ((limit - c) >> 31));
}
constexpr std::uint32_t within(std::uint32_t c, std::uint32_t low, std::uint32_t high) {
    return not_above(low, c) & not_above(c, high);
}

constexpr std::uint8_t upper(std::uint32_t c) {
    return static_cast<std::uint8_t>(c - (within(c, 'a', 'z') & 32));
}

// BIP 173's checksum, digit after digit.
constexpr std::uint32_t next(std::uint32_t sum, std::uint32_t digit) {
    constexpr std::array<std::uint32_t, 5> kGenerator{0x3b6a57b2, 0x26508e6d, 0x1ea119fa,
                                                      0x3d4233dd, 0x2a1462b3};
    const std::uint32_t top = sum >> 25;
    sum = (sum & 0x1ffffff) << 5 ^ digit;
    for (std::size_t i = 0; i < kGenerator.size(); ++i)
        sum ^= (0u - (top >> i & 1)) & kGenerator[i];
    return sum;
}

constexpr std::uint32_t after(std::string_view prefix) {
    std::uint32_t sum = 1;
    for (const char c : prefix) sum = next(sum, static_cast<std::uint32_t>(c) >> 5);
    sum = next(sum, 0);
    for (const char c : prefix) sum = next(sum, static_cast<std::uint32_t>(c) & 31);
    return sum;
}

// The digit behind a small letter or figure; 32 and above for others.
std::uint32_t digit_of(std::uint32_t c) {
    std::uint32_t digit = 0, found = 0;
    for (std::uint32_t i = 0; i < 32; ++i) {
        const std::uint32_t here = equal(c, static_cast<std::uint8_t>(kLetters[i]));
        digit |= here & i;
        found |= here;
    }
    return digit | (~found & 32);
}

std::uint8_t letter_of(std::uint32_t digit) {
    std::uint32_t letter = 0;
    for (std::uint32_t i = 0; i < 32; ++i)
        letter |= equal(digit, i) & static_cast<std::uint8_t>(kLetters[i]);
    return static_cast<std::uint8_t>(letter);
}

}  // namespace

bool begins_as(const Bech32& kind, HostIn text) noexcept {
    const std::size_t size = kind.prefix.size();
    if (text.size() <= size || text[size] != '1') return false;
    for (std::size_t i = 0; i < size; ++i) {
        const auto c = static_cast<std::uint8_t>(kind.prefix[i]);
        if (text[i] != (kind.capitals ? upper(c) : c)) return false;
    }
    return true;
}

bool decode_bech32(const Bech32& kind, HostIn text, HostOut bytes) noexcept {
    if (text.size() != kind.size() || bytes.size() != kind.bytes || !begins_as(kind, text))
        return false;
    const std::size_t data = kind.digits();
    const HostIn digits = text.last(data + kChecksum);
    std::uint32_t sum = after(kind.prefix), bits = 0, bad = 0;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        const std::uint32_t c = digits[i];
        const std::uint32_t small = within(c, 'a', 'z'), capital = within(c, 'A', 'Z');
        bad |= kind.capitals ? small : capital;
        const std::uint32_t digit = digit_of(c + (capital & 32));
        bad |= digit & 32;
        sum = next(sum, digit & 31);
        if (i >= data) continue;
        bits = bits << 5 | (digit & 31);
        // With digit i there are 5 (i + 1) bits: a byte is whole wherever a multiple of 8 is
        // passed. The last digit's bits to spare are zeros.
        const std::size_t have = 5 * (i + 1), whole = have / 8;
        if (whole > 5 * i / 8) bytes[whole - 1] = static_cast<std::uint8_t>(bits >> (have % 8));
    }
    bad |= (bits & ((1u << (5 * data - 8 * kind.bytes)) - 1)) | (sum ^ 1);
    if (bad == 0) return true;
    wipe(bytes.data(), bytes.size());
    return false;
}

void encode_bech32(const Bech32& kind, HostIn bytes, HostOut text) noexcept {
    const std::size_t data = kind.digits();
    const auto put = [&](std::size_t at, std::uint8_t c) {
        text[at] = kind.capitals ? upper(c) : c;
    };
    for (std::size_t i = 0; i < kind.prefix.size(); ++i)
        put(i, static_cast<std::uint8_t>(kind.prefix[i]));
    const std::size_t first = kind.prefix.size() + 1;
    text[first - 1] = '1';
    std::uint32_t sum = after(kind.prefix);
    for (std::size_t i = 0; i < data; ++i) {
        const std::size_t bit = 5 * i;  // the first of five
        const std::uint32_t pair = static_cast<std::uint32_t>(bytes[bit / 8]) << 8 |
                                   (bit / 8 + 1 < bytes.size() ? bytes[bit / 8 + 1] : 0u);
        const std::uint32_t digit = pair >> (11 - bit % 8) & 31;
        sum = next(sum, digit);
        put(first + i, letter_of(digit));
    }
    for (std::size_t i = 0; i < kChecksum; ++i) sum = next(sum, 0);
    sum ^= 1;
    for (std::size_t i = 0; i < kChecksum; ++i)
        put(first + data + i, letter_of(sum >> (5 * (5 - i)) & 31));
}

}  // namespace dael::formats
