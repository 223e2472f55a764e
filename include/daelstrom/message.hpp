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
    // RFC 10032: any length, authenticated.
    aegis128l = 8,
    aegis256 = 9,
    aegis128x2 = 10,
    aegis128x4 = 11,
    xaes256gcm = 12,  // C2SP's XAES-256-GCM: any length, authenticated
    gcm_siv = 13,     // RFC 8452: any length, authenticated
};
enum class Direction : std::uint8_t { encrypt = 0, decrypt = 1 };

inline constexpr std::array<Mode, 14> kModes{
    Mode::ecb,        Mode::cbc,        Mode::cfb,        Mode::ofb,       Mode::ctr,
    Mode::gcm,        Mode::gcm_ctr,    Mode::xts,        Mode::aegis128l, Mode::aegis256,
    Mode::aegis128x2, Mode::aegis128x4, Mode::xaes256gcm, Mode::gcm_siv};
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
    std::uint8_t tag = 16;  // modes that authenticate: bytes of the messages' tags
    std::uint8_t unused = 0;
    std::uint32_t sector = 512;  // XTS: bytes of a sector

    friend constexpr bool operator==(const Cipher&, const Cipher&) noexcept = default;
};
static_assert(sizeof(Cipher) == 8);

constexpr bool takes_iv(Mode mode) noexcept {
    return mode != Mode::ecb;
}
// Whether a start has more than 16 bytes: Message::start_rest is read.
constexpr bool has_start_rest(Mode mode) noexcept {
    return mode == Mode::aegis256 || mode == Mode::xaes256gcm;
}
constexpr bool whole_blocks_only(Mode mode) noexcept {
    return mode == Mode::ecb || mode == Mode::cbc;
}
constexpr bool is_aegis(Mode mode) noexcept {
    return mode >= Mode::aegis128l && mode <= Mode::aegis128x4;
}
constexpr bool authenticates(Mode mode) noexcept {
    return mode == Mode::gcm || is_aegis(mode) || mode == Mode::xaes256gcm || mode == Mode::gcm_siv;
}
// Counter modes, whose messages may be without input: the output is then the keystream itself.
constexpr bool makes_keystream(Mode mode) noexcept {
    return mode == Mode::ctr || mode == Mode::gcm_ctr;
}
// Whether the blocks of one message can be processed independently of each other.
constexpr bool parallel_within_message(Mode mode, Direction direction) noexcept {
    const bool chained = mode == Mode::cbc || mode == Mode::cfb;
    return mode != Mode::ofb && !is_aegis(mode) && (!chained || direction == Direction::decrypt);
}

}  // namespace dael

// To what it is done: one message, and lists of them.

namespace dael {

// What a message begins from, where it is given alone: Message's start and start_rest.
struct Start {
    constexpr Start() noexcept = default;
    constexpr Start(const Block& start, const Block& start_rest = {}) noexcept  // a Block is one
        : first(start), rest(start_rest) {}
    Block first{}, rest{};
};

// Plain data of one layout for the host, for kernels, which may make lists of them in device
// memory, and for C (dael_message). `in`, `out`, `aad` and `tag` lie in one memory space; `out` is
// `in` itself or does not overlap it, and overlaps neither the tag nor the AAD, nor, in a batch,
// anything of another message. GCM reads ciphertext more than once, and verifies it before it
// decrypts it: nobody else may write what a message names before its work has ended.
struct Message {
    const std::uint8_t* in = nullptr;  // null in a counter mode: `out` gets the keystream itself
    std::uint8_t* out = nullptr;
    std::uint64_t size = 0;  // bytes of `in` and of `out`
    // For modes that authenticate: additional data, authenticated and not encrypted, and the tag,
    // of as many bytes as the cipher says, which encryption writes and decryption reads.
    const std::uint8_t* aad = nullptr;
    std::uint64_t aad_size = 0;  // bytes
    std::uint8_t* tag = nullptr;
    // CBC, CFB, OFB: the IV. CTR, gcm_ctr: the first counter block. GCM: the pre-counter block J0,
    // which gcm::start() makes of a nonce. XTS: the first sector's number, little-endian. AEGIS,
    // XAES-256-GCM, GCM-SIV: the nonce, with zeros behind it. The modes' headers have functions
    // that fill it.
    Block start{};
    std::uint32_t key = 0;  // index into the key set
    // CTR, gcm_ctr: bytes of the first keystream block to leave out, 0 to 15.
    std::uint8_t skip = 0;
    std::uint8_t unused[11] = {};
    // Bytes 16 to 31 of what `start` begins, for modes whose nonces are longer than a block:
    // AEGIS-256 and XAES-256-GCM. No other reads it.
    Block start_rest{};
};
static_assert(sizeof(Message) == 96);

enum class Place : std::uint8_t { host, device };

// Four bytes that stay and a big-endian counter of eight: nonces of 12 bytes that never repeat,
// counted on a device. Lies in device memory, at a multiple of 8; only launches that were given it
// change it. A launch reserves its nonces in one step before it uses any, so that launches that
// share it, of one batch or of several, on any streams or replayed in graphs, have different ones
// in any order. Where fewer are left than there are messages nothing is done, and all have
// Code::limit. To set it back repeats nonces, unless no key that it was used with is used again.
struct DeviceNonces {
    std::uint8_t fixed[4] = {};
    std::uint32_t unused = 0;
    std::uint64_t next = 0;  // of the first message of the next launch
};
static_assert(sizeof(DeviceNonces) == 16);

// A list of messages whose data lies in device memory; see Engine::prepare.
struct Messages {
    const Message* list = nullptr;
    std::uint32_t count = 0;    // messages; where `number` is given, the most there may be
    Place place = Place::host;  // of the list itself
    // In device memory, for lists in device memory: how many messages there are, read when the
    // batch runs. Null: `count`. A number above `count` counts as `count`.
    const std::uint32_t* number = nullptr;
    // In device memory, for lists in device memory of GCM, gcm_ctr and AEGIS encryption: each
    // launch writes a new `start` into every message of the list, and advances the counter; in
    // AEGIS zeros stand behind the 12 bytes that count. Null: the starts are as they stand in the
    // list.
    DeviceNonces* nonces = nullptr;
    // For lists in device memory of modes that authenticate, and gcm_ctr: bytes that no message has
    // more of, data and AAD, so that kernels for longer ones need not be launched; up to 8 KiB
    // saves most. A message that is longer all the same is not done, and has Code::limit. 0: any
    // size.
    std::uint64_t longest = 0;
};

// A few messages that travel with their launch; see Engine::launch. Most messages, and most bytes
// of AAD of all of them together where that lies in the host's memory.
inline constexpr std::uint32_t kMaxLaunched = 32, kMaxLaunchedAad = 1024;
struct LaunchOptions {
    // A Code for each message, as a 32-bit number, once the launch has ended: in the device's
    // memory, or in page-locked memory of the host. Null where every message is done: anything but
    // decryption that authenticates.
    std::uint32_t* codes = nullptr;
    bool host_aad = false;  // the messages' AAD lies in the host's memory, and is copied
};

}  // namespace dael
