// SPDX-License-Identifier: Apache-2.0
// What OpenSSL's queue of errors has where GCM refuses a tag. That differs from version to version
// (nothing for a wrong one in 3.0, BAD_DECRYPT in what follows 4.0), and programs look at it: who
// finds the queue empty says "wrong tag". So it is not known here; the default provider that is
// there is asked by a message of zeros, once it can be.
#pragma once

#include <optional>

#include "basis.hpp"

namespace dael::provider {

enum class Refusal : unsigned char {
    wrong_tag,      // at the end of what was opened
    no_tag,         // there, and none was set
    forged_record,  // of TLS 1.2
    none_made,      // a tag is asked for, and there is none
    not_needed,     // a tag is set, to seal
};
inline constexpr std::size_t kRefusals = 5;

// The reason that the default provider gives; 0: it gives none. Nothing where it could not be
// asked, since memory ran out or a call before failed. Leaves nothing on the queue. `gcm`: any of
// that provider's.
std::optional<int> ask_refusal(const Basis& gcm, Refusal refusal) noexcept;
// Puts the same on the queue, with `why` behind, and is 0. Remembers an answer; who got none asks
// again next time. Any thread.
int refuse(const Basis& gcm, Refusal refusal, const char* why) noexcept;

}  // namespace dael::provider
