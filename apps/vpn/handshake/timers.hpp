// SPDX-License-Identifier: Apache-2.0
// When what happens to a peer, as functions of the time that is given: nothing here has a clock.
// The times are those of WireGuard's paper (section 6), with limits for AES-GCM.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace dael::vpn {

using Time = std::chrono::nanoseconds;
inline constexpr Time kNever = Time::max();

struct Now {
    Time steady{};  // since any moment that stays the same; never goes back (CLOCK_BOOTTIME)
    Time wall{};    // since 1970; may be set to anything
};

struct Policy {
    Time retry = std::chrono::seconds(5);           // of an initiation that was not answered, ...
    Time jitter = std::chrono::milliseconds(333);   // ... and at most so much more, at random
    Time again = std::chrono::seconds(1);           // between two of which the first was answered
    Time give_up = std::chrono::seconds(90);        // then nothing is tried until asked again
    Time rekey_after = std::chrono::seconds(120);   // the initiator of a session makes another
    Time reject_after = std::chrono::seconds(180);  // a session is over
    Time keepalive = std::chrono::seconds(10);      // an answer where there is nothing to send
    // Sent under one session, each way: then another is agreed on; then nothing goes any more. At
    // 2^36 blocks under one key AES-GCM is told from chance at odds of 2^-57 (SP 800-38D allows
    // more packets than that; TLS 1.3 asks the same odds, RFC 8446 5.5).
    std::uint64_t rekey_packets = std::uint64_t{1} << 34, reject_packets = std::uint64_t{1} << 35;
    std::uint64_t rekey_bytes = std::uint64_t{1} << 38, reject_bytes = std::uint64_t{1} << 39;
    // Handshakes of strangers that are computed before a cookie is asked for: so many a second, and
    // so many at once. Then each address is served as often as the second pair says.
    std::uint32_t free_per_second = 200, free_burst = 100;
    std::uint32_t source_per_second = 20, source_burst = 10;
    std::uint32_t hints_per_second = 50;  // answers to packets of sessions that are not known
};

}  // namespace dael::vpn
