// SPDX-License-Identifier: Apache-2.0
// What is done to data: a mode of operation and its direction. A value: compared, printed, kept in
// a calibration. The modes' own headers (ctr.hpp, gcm.hpp, xts.hpp, ...) say what each is good for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <daelstrom/export.h>

namespace dael {

inline constexpr std::size_t kBlockSize = 16;  // bytes in an AES block
using Block = std::array<std::uint8_t, kBlockSize>;

// The values are the C ABI's `dael_mode`; they never change.
enum class Mode : std::uint8_t {
    ecb = 0,      // SP 800-38A 6.1: whole blocks, no IV
    cbc = 1,      // SP 800-38A 6.2: whole blocks
    cfb = 2,      // SP 800-38A 6.3, CFB-128: any length
    ofb = 3,      // SP 800-38A 6.4: any length
    ctr = 4,      // SP 800-38A 6.5: any length; one 128-bit big-endian counter, wraps
    gcm = 5,      // SP 800-38D: any length, authenticated
    gcm_ctr = 6,  // GCM's counter mode alone: any length, until its 32-bit counter would wrap
    xts = 7,      // IEEE 1619: sectors of 16 bytes or more
};
enum class Direction : std::uint8_t { encrypt = 0, decrypt = 1 };

inline constexpr std::array<Mode, 8> kModes{Mode::ecb, Mode::cbc, Mode::cfb,     Mode::ofb,
                                            Mode::ctr, Mode::gcm, Mode::gcm_ctr, Mode::xts};
// Those of SP 800-38A, which keep secrets and nothing else.
inline constexpr std::array<Mode, 5> kModes38a{Mode::ecb, Mode::cbc, Mode::cfb, Mode::ofb,
                                               Mode::ctr};

DAEL_API std::string_view name(Mode mode) noexcept;                         // "ecb", ..., "gcm_ctr"
DAEL_API std::string_view name(Direction direction) noexcept;               // "encrypt", "decrypt"
DAEL_API std::optional<Mode> mode_by_name(std::string_view name) noexcept;  // any case

// One use of AES. Of one layout everywhere, the C ABI's dael_cipher too.
struct Cipher {
    Mode mode = Mode::ctr;
    Direction direction = Direction::encrypt;  // CTR and OFB do the same both ways
    std::uint8_t tag = 16;                     // GCM: bytes of the messages' tags
    std::uint8_t unused = 0;
    std::uint32_t sector = 512;  // XTS: bytes of a sector

    friend constexpr bool operator==(const Cipher&, const Cipher&) noexcept = default;
};
static_assert(sizeof(Cipher) == 8);

constexpr bool takes_iv(Mode mode) noexcept {
    return mode != Mode::ecb;
}
constexpr bool whole_blocks_only(Mode mode) noexcept {
    return mode == Mode::ecb || mode == Mode::cbc;
}
constexpr bool authenticates(Mode mode) noexcept {
    return mode == Mode::gcm;
}
// Counter modes, whose messages may be without input: the output is then the keystream itself.
constexpr bool makes_keystream(Mode mode) noexcept {
    return mode == Mode::ctr || mode == Mode::gcm_ctr;
}
// Whether the blocks of one message can be processed independently of each other.
constexpr bool parallel_within_message(Mode mode, Direction direction) noexcept {
    const bool chained = mode == Mode::cbc || mode == Mode::cfb;
    return mode != Mode::ofb && (!chained || direction == Direction::decrypt);
}

}  // namespace dael
