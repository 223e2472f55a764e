// SPDX-License-Identifier: Apache-2.0
// AES-GCM for packets under one key, on the calling thread: keystream that is there already is
// XORed and hashed in one pass, and what is missing is encrypted here. Made by Backend::packets.
//
// Keystream is the cipher of the counters first, first + 1, first + 2, ...: that of `first` masks
// the tag, the others are for the data. Whoever brings it answers for it, and for no counter ever
// serving twice; nothing here can tell. `first` of the standard's GCM is J0 of a 12-byte nonce
// (gcm::start); any other block is one too, with a counter of 128 bits from there on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/message.hpp>

namespace dael::core {

struct CipherPacket {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;  // `in` itself, or apart from it
    std::size_t size = 0;         // bytes of `in` and of `out`; below gcm::kMaxData
    const std::uint8_t* aad = nullptr;
    std::size_t aad_size = 0;  // bytes; 8 and 12 are fast
    // Sealing writes it, opening reads it. Apart from `out`, but may follow it directly.
    std::uint8_t* tag = nullptr;
    std::size_t tag_size = 16;  // gcm::valid_tag_size
    Block first{};
    // The keystream of `first` and of the counters after it; null where there is none. Read up to
    // the end of the block that holds the packet's last byte, and not beyond `blocks`. It saves
    // time where it is enough, 1 + size / 16 blocks rounded up; of less a backend may use nothing.
    const std::uint8_t* keystream = nullptr;
    std::size_t blocks = 0;  // of keystream; 0 or more than the packet needs are both right
    // What is to be brought near meanwhile, since a later packet will want it: as many bytes as
    // this one has. Null: nothing.
    const std::uint8_t* soon = nullptr;
};

// Thread-safe: any number of threads may use one at once. A call takes no lock and, but for a
// thread's first one, no memory; none writes to the keystream. The backend must outlive it.
class PacketCipher {
  public:
    virtual ~PacketCipher() = default;

    // Every packet's `out` and `tag`. Not ok (internal, out_of_memory: of libcrypto alone): then
    // the outputs and tags of all are wiped, and nothing may be sent.
    [[nodiscard]] virtual Code seal(std::span<const CipherPacket> packets) const noexcept = 0;

    // codes[i] becomes ok, or authentication (or, as above, a fault): then nothing of the plaintext
    // was in `out` at any time, which is left as it was; in place the ciphertext. What a library
    // decrypts before it knows the tag it decrypts elsewhere.
    virtual void open(std::span<const CipherPacket> packets,
                      std::span<Code> codes) const noexcept = 0;

    // Where what a packet reads of the key lies: before this address, 16 bytes for each block of
    // data, AAD and lengths, nearest first; behind it, kNearBehind bytes. For those who fetch it
    // ahead of a call. Null: nowhere in particular.
    static constexpr std::size_t kNearBehind = 192;
    virtual const std::uint8_t* near() const noexcept { return nullptr; }
};

}  // namespace dael::core
