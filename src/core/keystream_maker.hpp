// SPDX-License-Identifier: Apache-2.0
// Keystream in host memory by a device, for counters that count: what fills the windows of
// daelstrom/keystream.hpp. A list has an entry for each window and none for its packets, and the
// host vouches for it, so that there is nothing for the device to plan, to check or to report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <daelstrom/memory.hpp>
#include <daelstrom/message.hpp>

#include "core/backend.hpp"

namespace dael::core {

// Slots side by side, each of as many blocks. Block j of slot i is the cipher of the counter
// `first` + i 2^32 + j, numbers of 128 bits, big-endian (SP 800-38A B.1): slots of (salt, IV, 1)
// are those of IVs that follow one another (RFC 4106 section 4), and a single slot is a stream.
struct KeystreamRun {
    std::uint8_t* out = nullptr;  // page-locked host memory of the device's, aligned to 16 bytes
    Block first{};
    std::uint32_t key = 0;     // of the tables, for any mode but XTS
    std::uint32_t blocks = 0;  // of a slot; 1 or more, as of `slots`
    std::uint32_t slots = 0;   // blocks of all slots: at most kMaxRunBlocks
};
inline constexpr std::uint64_t kMaxRunBlocks = std::uint64_t{1} << 30;

// Makes one list's keystream at a time, for one thread at a time. It goes after its work is done.
class KeystreamMaker {
  public:
    virtual ~KeystreamMaker() = default;
    // Keys for begin(): expanded, and without what other modes need of keys. Errors: as
    // Backend::tables.
    virtual Result<std::unique_ptr<KeyTables>> keys(std::span<const Key> list) = 0;
    // Begins a list, which is not empty and which it copies, in the order of the stream: keys that
    // were replaced there before are replaced. After an error something of it may be under way, and
    // wait() ends that. Errors: invalid_argument for tables or a key of none of the device's,
    // device.
    virtual Result<> begin(const KeyTables& keys, std::span<const KeystreamRun> runs,
                           Stream stream) = 0;
    // Whether all of it lies in the host's memory, for any of its threads to read. Costs next to
    // nothing. Errors: device; then nothing that it brought is of use.
    virtual Result<bool> done() = 0;
    // Until it does. Errors: as above.
    virtual Result<> wait() = 0;
};

}  // namespace dael::core
