// SPDX-License-Identifier: Apache-2.0
// A benchmark at first use: which is quicker for one thread, the engine or the default provider's
// own code: that depends on the version of OpenSSL (3.1 has GCM for VAES with AVX-512, later ones
// more) and on the processor, so it is measured, once in a process for each mode and direction, in
// less than a millisecond.
#pragma once

#include <daelstrom/daelstrom.h>

#include "basis.hpp"

namespace dael::provider {

// Bytes of an update, in GCM of a message, from which the engine does it on the calling thread;
// SIZE_MAX: never. The engine is open. Any number of threads at once. With a `warmup` of 0, which
// is for tests, nothing is measured, and the engine gets what it may get.
std::size_t won_from(const Basis& basis, bool encrypts) noexcept;

// A kind's dael_mode.
constexpr int mode_of(Kind kind) noexcept {
    return kind == Kind::ecb   ? DAEL_ECB
           : kind == Kind::cbc ? DAEL_CBC
           : kind == Kind::cfb ? DAEL_CFB
           : kind == Kind::gcm ? DAEL_GCM
                               : DAEL_CTR;
}

}  // namespace dael::provider
