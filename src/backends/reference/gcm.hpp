// SPDX-License-Identifier: Apache-2.0
// GCM as SP 800-38D writes it, over the cipher of aes.hpp: the yardstick for the other backends,
// with which it shares no arithmetic. Constant time: the product in the field is computed bit by
// bit under masks.
#pragma once

#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/message.hpp>

#include "backends/reference/aes.hpp"

namespace dael::reference {

// A block as one number, its first byte uppermost: u_0 of 6.3 is the highest bit.
using Bits = unsigned __int128;

// 6.4, algorithm 2, fed with any number of bytes at a time.
class Ghash {
  public:
    explicit Ghash(Bits h) noexcept : h_(h) {}
    Ghash(const Ghash&) = default;
    Ghash& operator=(const Ghash&) = default;
    ~Ghash() { wipe(this, sizeof *this); }
    void add(std::uint8_t byte) noexcept {
        block_[used_++] = byte;
        if (used_ == kBlockSize) end_block();
    }
    void add(std::span<const std::uint8_t> bytes) noexcept {
        for (const std::uint8_t byte : bytes) add(byte);
    }
    // Zeros up to the next whole block.
    void pad() noexcept {
        if (used_ != 0) end_block();
    }
    Bits value() const noexcept { return y_; }

  private:
    void end_block() noexcept;
    Bits h_, y_ = 0;
    Block block_{};
    std::size_t used_ = 0;
};

// 7.1 and 7.2, which differ in what goes into GHASH: always the ciphertext. From the pre-counter
// block J0 on, which is a message's start. The key must outlive it.
class Gcm {
  public:
    Gcm(Direction direction, const ExpandedKey& w, const Block& j0) noexcept;
    Gcm(const Gcm&) = default;
    Gcm& operator=(const Gcm&) = default;
    ~Gcm();

    void restart(const Start& j0) noexcept;  // of one block
    void aad(std::span<const std::uint8_t> bytes) noexcept;
    void update(const std::uint8_t* in, std::uint8_t* out, std::size_t size);
    // The ciphertext of a message without its plaintext, in place of update().
    void authenticate(std::span<const std::uint8_t> ciphertext) noexcept;
    Block finish();  // the whole tag

  private:
    Direction direction_;
    const ExpandedKey* w_;
    Bits h_, j0_ = 0, counter_ = 0;
    Ghash ghash_;
    Block keystream_{};
    std::uint64_t aad_size_ = 0, size_ = 0;
};

// One message: ok, or authentication, and then nothing was written.
Code gcm(const Cipher& cipher, const ExpandedKey& w, const Message& message);

// The tag of a message without data.
Block gmac(const ExpandedKey& w, const Block& j0, std::span<const std::uint8_t> aad);

}  // namespace dael::reference
