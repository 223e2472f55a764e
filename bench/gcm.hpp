// SPDX-License-Identifier: Apache-2.0
// What GCM's rows need: sets of keys, messages that get new nonces before each call, and a check
// that takes in the tags.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/subject.hpp"
#include "core/backend.hpp"

namespace dael::bench {

// Key `index` of a set, as long as the test key, which is the first.
std::vector<std::uint8_t> gcm_key_bytes(const TestKey& key, std::uint64_t index);
Result<std::vector<Key>> gcm_keys(const TestKey& key, std::uint64_t count);

// Messages as lay_out() lays them out, their tags side by side as well; each takes the next key of
// the set in turn.
class GcmMessages {
  public:
    GcmMessages(const Work& work, const std::uint8_t* in, std::uint8_t* out, std::uint8_t* tags);

    // With nonces that they did not have before: numbers from 0 on, which is what the check
    // expects.
    std::span<const GcmMessage> renew() noexcept;
    std::span<const GcmMessage> as_they_are() const noexcept { return messages_; }
    // The same messages, which see new nonces for as long as this lives.
    std::vector<core::GcmSegment> segments() const;

  private:
    std::vector<GcmMessage> messages_;
    std::uint64_t next_ = 0;
};

// Sealed data and its tags: whole messages, the first, the last and some between, against OpenSSL.
// `in` and the errors are as for check_output().
Result<> check_sealed(const Work& work, const TestKey& key, const std::uint8_t* in,
                      const Fetch& out, const Fetch& tags);

// Opened data: the same messages against the plaintext that was sealed.
Result<> check_opened(const Work& work, const std::uint8_t* plaintext, const Fetch& out);

// That no message failed. Error: Code::internal, naming the work and the message.
Result<> check_results(const Work& work, std::span<const Code> results);

}  // namespace dael::bench
