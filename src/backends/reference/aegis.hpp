// SPDX-License-Identifier: Apache-2.0
// AEGIS as RFC 10032 writes it, over the transformations of aes.hpp: the yardstick for the other
// backends. AEGIS-128L is AEGIS-128X of degree 1 ("Implementation Considerations").
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/message.hpp>

#include "core/backend.hpp"

namespace dael::reference {

// One message, fed with any number of bytes at a time: AAD, then data, then finish().
class Aegis {
  public:
    // `key` has 16 bytes, 32 for AEGIS-256, and must outlive it.
    Aegis(const Cipher& cipher, std::span<const std::uint8_t> key, const Start& nonce) noexcept;
    Aegis(const Aegis&) = default;
    Aegis& operator=(const Aegis&) = default;
    ~Aegis();

    void restart(const Start& nonce) noexcept;
    void aad(std::span<const std::uint8_t> bytes) noexcept;
    // `out` null: for the tag alone.
    void update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept;
    core::Tag finish() noexcept;

  private:
    static constexpr std::size_t kMaxDegree = 4;
    using Row = std::array<Block, kMaxDegree>;                // of D blocks
    using Bytes = std::array<std::uint8_t, 2 * sizeof(Row)>;  // of R bits

    void init_128x(const Block& key, const Block& nonce) noexcept;
    void init_256(const Block& k0, const Block& k1, const Block& n0, const Block& n1) noexcept;
    void update_128x(const Row& m0, const Row& m1) noexcept;
    void update_256(const Block& m) noexcept;
    void absorb() noexcept;     // what block_ has, with zeros behind it
    void keystream() noexcept;  // z0 and z1
    bool is_256() const noexcept { return cipher_.mode == Mode::aegis256; }

    Cipher cipher_;
    std::span<const std::uint8_t> key_;
    std::size_t d_, rate_;      // D, and R in bytes
    std::array<Row, 8> v_{};    // V[j,i]; of AEGIS-256 six rows of one block
    Bytes block_{}, stream_{};  // of the block that is begun: AAD or plaintext; keystream
    std::size_t used_ = 0;      // bytes of it
    std::uint64_t aad_size_ = 0, size_ = 0;
};

// One message: ok, or authentication, and then nothing was written.
Code aegis(const Cipher& cipher, std::span<const std::uint8_t> key, const Message& message);

}  // namespace dael::reference
