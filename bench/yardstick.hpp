// SPDX-License-Identifier: Apache-2.0
// What outputs are held against of modes that OpenSSL does not have.
#pragma once

#include "bench/check.hpp"

namespace dael::bench {

// Sealed. All messages whole, data and tags, against another backend than the row's, or another
// form of it: `cpu`, else `openssl`. The first, the last and some random ones, and all where the
// work is small, against `reference`. Errors: as check_output.
Result<> check_by_backends(const Work& work, const std::uint8_t* in, const Fetch& out,
                           const Fetch& tags);
// Opened: all messages against the plaintext that was sealed.
Result<> check_all_opened(const Work& work, const std::uint8_t* plaintext, const Fetch& out);

}  // namespace dael::bench
