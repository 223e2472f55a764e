// SPDX-License-Identifier: Apache-2.0
// The header of an age v1 file (age-encryption.org/v1): lines of text, read as strictly as the
// specification has it, so that a header can be written in one way alone. Nothing in it is secret.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael::formats {

inline constexpr std::string_view kAgeLine = "age-encryption.org/v1\n";
inline constexpr std::size_t kMaxStanzas = 1000;
inline constexpr std::size_t kWrappedSize = 32;  // bytes of a file key, wrapped, and a tag
inline constexpr std::size_t kScryptSalt = 16;

using Wrapped = std::array<std::uint8_t, kWrappedSize>;

// The stanzas that daelstrom knows.
struct CurveStanza {  // -> X25519 <share>
    std::array<std::uint8_t, 32> share;
    Wrapped body;
};
struct HybridStanza {  // -> mlkem768x25519 <share>
    std::array<std::uint8_t, 1120> share;
    Wrapped body;
};
struct ScryptStanza {  // -> scrypt <salt> <work>
    std::array<std::uint8_t, kScryptSalt> salt;
    int work = 0;  // 0: there is no such stanza
    Wrapped body;
};

struct AgeHeader {
    std::vector<CurveStanza> curve;
    std::vector<HybridStanza> hybrid;
    ScryptStanza scrypt;      // which is alone
    std::size_t stanzas = 0;  // of any kind
    std::size_t covered = 0;  // bytes that the MAC covers
    std::array<std::uint8_t, 32> mac{};
    std::size_t size = 0;  // bytes; 0: `start` ends before it does
};

// Of the first bytes of a file; no more than `most` belong to a header. Errors: bad_format, which
// names the line; unsupported; limit.
Result<AgeHeader> parse_age_header(HostIn start, std::size_t most);

// Its text up to the "---", which the MAC covers, and its end.
void write_stanza(std::string& header, const CurveStanza& stanza);
void write_stanza(std::string& header, const HybridStanza& stanza);
void write_stanza(std::string& header, const ScryptStanza& stanza);
void write_mac(std::string& header, HostIn mac);

}  // namespace dael::formats
