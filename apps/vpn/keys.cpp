// SPDX-License-Identifier: Apache-2.0
#include "vpn/keys.hpp"

#include <openssl/evp.h>

#include <algorithm>

#include "io/secrets.hpp"
#include "io/text.hpp"

namespace dael::vpn {
namespace {

// Base64's characters by arithmetic: a table's lines in the cache would tell of the key.
char digit_of(unsigned value) noexcept {
    const auto below = [value](unsigned limit) { return (value - limit) >> 8 & 1u; };
    // 'A' to 'Z', 'a' to 'z', '0' to '9', '+', '/': each step as far as from one run to the next.
    unsigned c = value + 'A';
    c += (1 - below(26)) * ('a' - 'Z' - 1);
    c -= (1 - below(52)) * ('a' + 52 - 26 - '0');
    c -= (1 - below(62)) * ('0' + 62 - 52 - '+');
    c += (1 - below(63)) * ('/' - '+' - 1);
    return static_cast<char>(c);
}

// The value of a digit; 0x100 is set for what is none.
unsigned value_of(char digit) noexcept {
    const unsigned c = static_cast<unsigned char>(digit);
    // All ones where first <= c <= last.
    const auto within = [c](unsigned first, unsigned last) {
        return (((c - first) | (last - c)) >> 8 & 1u) - 1u;
    };
    const unsigned upper = within('A', 'Z'), lower = within('a', 'z'), number = within('0', '9'),
                   plus = within('+', '+'), slash = within('/', '/');
    return (upper & (c - 'A')) | (lower & (c - 'a' + 26)) | (number & (c - '0' + 52)) |
           (plus & 62u) | (slash & 63u) | (~(upper | lower | number | plus | slash) & 0x100u);
}

}  // namespace

void encode_key(std::span<const std::uint8_t, kKeySize> key, std::span<char, kKeyText> text) {
    for (std::size_t i = 0, out = 0; i < kKeySize; i += 3, out += 4) {
        const unsigned second = i + 1 < kKeySize ? key[i + 1] : 0u;
        const unsigned third = i + 2 < kKeySize ? key[i + 2] : 0u;
        const unsigned bits = key[i] * 65536u + second * 256u + third;
        text[out] = digit_of(bits >> 18 & 63);
        text[out + 1] = digit_of(bits >> 12 & 63);
        text[out + 2] = digit_of(bits >> 6 & 63);
        text[out + 3] = i + 2 < kKeySize ? digit_of(bits & 63) : '=';
    }
}

bool decode_key(std::span<const char> text, std::span<std::uint8_t, kKeySize> key) {
    if (text.size() != kKeyText || text[kKeyText - 1] != '=') return false;
    unsigned wrong = 0;
    for (std::size_t i = 0, in = 0; i < kKeySize; i += 3, in += 4) {
        const unsigned a = value_of(text[in]), b = value_of(text[in + 1]);
        const unsigned c = value_of(text[in + 2]);
        const unsigned d = i + 2 < kKeySize ? value_of(text[in + 3]) : 0;
        wrong |= (a | b | c | d) & 0x100;
        const unsigned bits = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63);
        key[i] = static_cast<std::uint8_t>(bits >> 16);
        key[i + 1] = static_cast<std::uint8_t>(bits >> 8);
        if (i + 2 < kKeySize)
            key[i + 2] = static_cast<std::uint8_t>(bits);
        else
            wrong |= bits & 0xff;  // bits that no byte has: two texts would be one key
    }
    return wrong == 0;
}

std::string to_text(const PublicKey& key) {
    std::string text(kKeyText, '\0');
    encode_key(key, std::span<char, kKeyText>(text));
    return text;
}

std::optional<PublicKey> parse_public_key(std::string_view text) {
    PublicKey key{};
    if (!decode_key(text, key)) return {};
    return key;
}

Result<SecretKey> read_key(const std::string& path, const std::string& what) {
    DAEL_LET(line, app::read_password({.file = path, .fd = {}}, false, what));
    SecretKey key;
    auto text = line.bytes();
    while (!text.empty() && (text.back() == '\r' || text.back() == ' '))
        text = text.first(text.size() - 1);
    const std::span<const char> letters(reinterpret_cast<const char*>(text.data()), text.size());
    if (!decode_key(letters, key.span()))
        return Error{Code::key_size,
                     what + " file " + app::in_quotes(path) +
                         " holds no key: its first line must be 44 characters of base64, as "
                         "`daelstrom vpn genkey` writes them"};
    return key;
}

Result<InitKeys> keys_of_init(const std::string& path) {
    DAEL_LET(text, app::read_password({.file = path, .fd = {}}, false, "init"));
    auto keys = keys_of_init(text.bytes());
    if (!keys)
        return Error{keys.code(), "init file " + app::in_quotes(path) + keys.error().message};
    return keys;
}

Result<InitKeys> keys_of_init(std::span<const std::uint8_t> text) {
    if (text.size() < kLeastInit)
        return Error{Code::key_size, ": fewer than " + std::to_string(kLeastInit) +
                                         " bytes can be guessed; take what `daelstrom vpn genkey` "
                                         "prints"};
    constexpr std::string_view salt = "daelstrom vpn init 1";
    constexpr std::uint64_t kCost = 1u << 15, kBlock = 8, kMemory = 64u << 20;
    DAEL_LET(all, app::Secret::create(3 * kKeySize));
    const auto out = all.fill();
    if (EVP_PBE_scrypt(reinterpret_cast<const char*>(text.data()), text.size(),
                       reinterpret_cast<const unsigned char*>(salt.data()), salt.size(), kCost,
                       kBlock, 1, kMemory, out.data(), out.size()) != 1)
        return Error{Code::internal, ": libcrypto cannot run scrypt over it"};
    InitKeys keys;
    std::size_t at = 0;
    for (SecretKey* key : {&keys.server, &keys.client, &keys.shared}) {
        std::ranges::copy(out.subspan(at, kKeySize), key->data());
        at += kKeySize;
    }
    return keys;
}

}  // namespace dael::vpn
