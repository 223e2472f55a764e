// SPDX-License-Identifier: Apache-2.0
// The libraries below the host backends, called as a program would that uses them directly: what
// daelstrom's own layers cost is the difference. OpenSSL is also what outputs are checked with.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "bench/work.hpp"

struct evp_cipher_ctx_st;

namespace dael::bench {

// OpenSSL's EVP with one context that is reused and keeps its key; a message sets the IV only.
class Evp {
  public:
    static Result<Evp> open(const Cipher& cipher, std::span<const std::uint8_t> key);
    Result<> run(std::span<const Message> messages);  // all under the one key

    // One message in pieces; XTS: of whole sectors. `message` gives the start and the AAD.
    Result<> begin(const Message& message);
    Result<> update(std::span<const std::uint8_t> in, std::uint8_t* out);
    Result<> tag(std::uint8_t* tag);  // GCM

  private:
    struct Free {
        void operator()(evp_cipher_ctx_st* context) const noexcept;
    };
    Result<> put(std::span<const std::uint8_t> in, std::uint8_t* out);

    std::unique_ptr<evp_cipher_ctx_st, Free> context_;
    Cipher cipher_;
    Block sector_{};  // number of the next
};

// libipsec-mb called directly: jobs are filled in, submitted and flushed; GCM a call for each
// message, as the library has no jobs that would do several at once. One manager, and keys expanded
// once. Null where the library lacks the mode (CFB, OFB, XTS), this build or this machine lacks the
// library or the level, or messages are more than one job takes.
using Call = std::function<Result<>(std::span<const Message>)>;
Call ipsec_mb(const std::string& level, const Work& work);

}  // namespace dael::bench
