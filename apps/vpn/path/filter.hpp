// SPDX-License-Identifier: Apache-2.0
// What the kernel may drop of what comes, before it wakes anybody or takes room in the socket's
// buffer: a program for SO_ATTACH_FILTER (classic BPF). With the SPIs of one end all alike in
// their upper halves, it need not know which there are.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vpn/path/endpoint.hpp"

namespace dael::vpn::path {

// Most addresses that a filter can name: of each in IPv6 the kernel makes up to fourteen
// instructions of its own, of 8 bytes, and what a socket may have of such programs, the old and the
// new one together, is 20 KiB (net.core.optmem_max) before Linux 6.7.
inline constexpr std::size_t kMostGuests = 64;

// Lets in what begins with four zero bytes (no ESP: RFC 3948 2.2), SPIs whose upper half is
// `mark`, and whatever comes from one of `guests` (at most kMostGuests). Those must be the
// addresses that packets are expected from: what one of them sends the kernel may have joined with
// a forged packet in front (UDP GRO), whose first bytes are all that is looked at.
std::vector<sock_filter> filter_for(std::uint16_t mark, std::span<const Address> guests);

}  // namespace dael::vpn::path
