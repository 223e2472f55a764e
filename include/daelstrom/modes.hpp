// SPDX-License-Identifier: Apache-2.0
// Modes of operation (NIST SP 800-38A) and what one call to the cipher is told.
//
// Safety: none of these modes authenticates. ECB shows equal blocks. A counter block or IV must
// never repeat under one key in CTR and OFB, and a CBC or CFB IV must be unpredictable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace dael {

inline constexpr std::size_t kBlockSize = 16;  // bytes in an AES block
using Block = std::array<std::uint8_t, kBlockSize>;

enum class Mode : int {
    ecb = 0,  // SP 800-38A 6.1: whole blocks, no IV
    cbc = 1,  // SP 800-38A 6.2: whole blocks
    cfb = 2,  // SP 800-38A 6.3, CFB-128: any length
    ofb = 3,  // SP 800-38A 6.4: any length
    ctr = 4,  // SP 800-38A 6.5: any length; one 128-bit big-endian counter, wraps
};
enum class Direction : int { encrypt = 0, decrypt = 1 };

inline constexpr std::array<Mode, 5> kModes{Mode::ecb, Mode::cbc, Mode::cfb, Mode::ofb, Mode::ctr};

std::string_view name(Mode mode) noexcept;                         // "ecb", "cbc", ...
std::string_view name(Direction direction) noexcept;               // "encrypt", "decrypt"
std::optional<Mode> mode_by_name(std::string_view name) noexcept;  // any case

constexpr bool takes_iv(Mode mode) noexcept {
    return mode != Mode::ecb;
}
constexpr bool whole_blocks_only(Mode mode) noexcept {
    return mode == Mode::ecb || mode == Mode::cbc;
}
// Whether the blocks of one message can be processed independently of each other.
constexpr bool parallel_within_message(Mode mode, Direction direction) noexcept {
    return mode == Mode::ecb || mode == Mode::ctr ||
           (direction == Direction::decrypt && (mode == Mode::cbc || mode == Mode::cfb));
}

// One use of the cipher: mode, direction and where it starts.
struct Cipher {
    Mode mode = Mode::ctr;
    Direction direction = Direction::encrypt;  // CTR and OFB do the same both ways
    Block iv{};                                // IV, or CTR's initial counter block; ignored by ECB
    std::uint64_t offset = 0;  // CTR only: byte of the keystream at which the data starts
};

// One message of a batch. `in` and `out` hold `size` bytes each, in one memory space; `out` is `in`
// itself or does not overlap it.
struct Message {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    std::size_t size = 0;      // bytes; a multiple of 16 in ECB and CBC
    Block iv{};                // IV or initial counter block of this message
    std::uint64_t offset = 0;  // CTR only, as in Cipher
};

}  // namespace dael
