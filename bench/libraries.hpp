// SPDX-License-Identifier: Apache-2.0
// The libraries below the host backends, called as a program would that uses them directly: what
// daelstrom's own layers cost is the difference.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <daelstrom/error.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/modes.hpp>

#include "bench/subject.hpp"

struct evp_cipher_ctx_st;

namespace dael::bench {

struct FreeEvpContext {
    void operator()(evp_cipher_ctx_st* context) const noexcept;
};
using EvpContext = std::unique_ptr<evp_cipher_ctx_st, FreeEvpContext>;

// OpenSSL's EVP with one context that is reused; only the IV is set anew for a message.
class Evp {
  public:
    static Result<Evp> open(Mode mode, Direction direction, const TestKey& key);
    Result<> run(std::span<const Message> messages);

  private:
    EvpContext context_;
    bool takes_iv_ = false;
};

// GCM through EVP with one context, which keeps its key: a message gets its IV only.
class EvpGcm {
  public:
    static Result<EvpGcm> open(std::span<const std::uint8_t> key);
    Result<> seal(std::span<const GcmMessage> messages);  // with whole tags, whatever their keys
    // One message in pieces.
    Result<> begin(const std::uint8_t* nonce, std::span<const std::uint8_t> aad);
    Result<> update(std::span<const std::uint8_t> in, std::uint8_t* out);
    Result<> finish(std::uint8_t* tag);

  private:
    EvpContext context_;
};

// XTS through EVP, sector by sector from number `first` on.
Result<> evp_xts(const TestKey& key, Direction direction, std::uint64_t sector_size,
                 std::uint64_t first, std::span<const std::uint8_t> in, std::uint8_t* out);

// libipsec-mb with one manager and its expanded keys: jobs are filled in, submitted and flushed.
class IpsecMb {
  public:
    // Null when the library lacks the mode (CFB, OFB), this build lacks the library, or messages of
    // `size` bytes are more than one job takes.
    static std::unique_ptr<IpsecMb> open(const std::string& isa, Mode mode, Direction direction,
                                         const TestKey& key, std::uint64_t size);
    ~IpsecMb();
    Result<> run(std::span<const Message> messages);

  private:
    struct State;
    explicit IpsecMb(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

// libipsec-mb's GCM with one key made ready: a call for each message, as the library has no jobs
// that would do several at once.
class IpsecMbGcm {
  public:
    // Null when this build or this machine lacks the library or the level.
    static std::unique_ptr<IpsecMbGcm> open(const std::string& isa, const TestKey& key);
    ~IpsecMbGcm();
    Result<> seal(std::span<const GcmMessage> messages);  // with whole tags, whatever their keys

  private:
    struct State;
    explicit IpsecMbGcm(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael::bench
