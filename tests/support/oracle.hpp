// SPDX-License-Identifier: Apache-2.0
// What the right answer is: OpenSSL, called here directly, or AEGIS by bytes (aegis_plain.hpp),
// sharing no code with the backends, the modes' offsets or their chaining.
#pragma once

#include <span>

#include <daelstrom/gcm.hpp>
#include <daelstrom/xts.hpp>

#include "support/bytes.hpp"

struct evp_cipher_ctx_st;

namespace dael::test {

// One use of a mode of SP 800-38A. `offset`: CTR's, in bytes.
struct Use {
    Mode mode = Mode::ctr;
    Direction direction = Direction::encrypt;
    Block start{};
    std::uint64_t offset = 0;
};
Bytes oracle(std::span<const std::uint8_t> key, const Use& use, std::span<const std::uint8_t> in);

// XTS, sector by sector.
Bytes oracle_xts(std::span<const std::uint8_t> key, Direction direction,
                 const xts::Sectors& sectors, std::span<const std::uint8_t> in);

// GCM's encryption. `iv`: 1 to 128 bytes, as OpenSSL takes them.
struct Sealed {
    Bytes ciphertext, tag;  // the whole tag
};
Sealed gcm_oracle(std::span<const std::uint8_t> key, std::span<const std::uint8_t> iv,
                  std::span<const std::uint8_t> aad, std::span<const std::uint8_t> in);

// The IV for OpenSSL of which it makes the pre-counter block `start`: the nonce, or 16 bytes.
Bytes gcm_iv(std::span<const std::uint8_t> key, const Block& start);

// Any mode, of a message that has its start, skip, input (null: the keystream) and AAD. GCM's tag
// is the ciphertext's, in both directions.
struct Answer {
    Bytes out, tag;
};
Answer oracle(std::span<const std::uint8_t> key, const Cipher& cipher, const Message& message);

// Whether that is worked out here, block by block, and takes its time.
constexpr bool by_hand(Mode mode) noexcept {
    return is_aegis(mode) || mode == Mode::gcm_siv;
}

// The same where the message's input, `in`, may be changed: in GCM-SIV nobody can choose what is
// opened, so that it is what was there, sealed.
Answer oracle(std::span<const std::uint8_t> key, const Cipher& cipher, const Message& message,
              std::span<std::uint8_t> in);

// A message fed piece by piece; OpenSSL keeps the chaining value.
class OracleStream {
  public:
    OracleStream(std::span<const std::uint8_t> key, const Use& use);
    ~OracleStream();
    OracleStream(const OracleStream&) = delete;
    OracleStream& operator=(const OracleStream&) = delete;
    void update(std::span<const std::uint8_t> in, std::uint8_t* out);

  private:
    evp_cipher_ctx_st* context_;
};

}  // namespace dael::test
