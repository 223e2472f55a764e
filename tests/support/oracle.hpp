// SPDX-License-Identifier: Apache-2.0
// What the right answer is: OpenSSL, called here directly, sharing
// no code with the backends, the modes' offsets or their chaining.
#pragma once

#include <span>

#include <daelstrom/modes.hpp>
#include <daelstrom/xts.hpp>

#include "support/bytes.hpp"

struct evp_cipher_ctx_st;

namespace dael::test {

Bytes oracle(std::span<const std::uint8_t> key, const Cipher& cipher,
             std::span<const std::uint8_t> in);

// XTS, sector by sector.
Bytes oracle_xts(std::span<const std::uint8_t> key, Direction direction, const XtsSectors& sectors,
                 std::span<const std::uint8_t> in);

// A message fed piece by piece; OpenSSL keeps the chaining value.
class OracleStream {
  public:
    OracleStream(std::span<const std::uint8_t> key, const Cipher& cipher);
    ~OracleStream();
    OracleStream(const OracleStream&) = delete;
    OracleStream& operator=(const OracleStream&) = delete;
    void update(std::span<const std::uint8_t> in, std::uint8_t* out);

  private:
    evp_cipher_ctx_st* context_;
};

}  // namespace dael::test
