// SPDX-License-Identifier: Apache-2.0
// What TUN puts before each packet where IFF_VNET_HDR is set: struct virtio_net_hdr of virtio 1.2,
// 5.1.6, in the machine's own byte order. Linux's header of Debian 12 is no C++ (it has a member
// called `class`) and knows no USO, so it stands here once more.
#pragma once

#include <cstdint>

namespace dael::vpn::path {

struct VnetHeader {
    static constexpr std::uint8_t kNeedsCsum = 1;                                       // flags
    static constexpr std::uint8_t kNone = 0, kTcp4 = 1, kUfo = 3, kTcp6 = 4, kUdp = 5;  // gso_type
    static constexpr std::uint8_t kEcn = 0x80;  // besides, in gso_type
    std::uint8_t flags = 0, gso_type = kNone;
    std::uint16_t hdr_len = 0;   // a hint, not to be trusted
    std::uint16_t gso_size = 0;  // bytes of payload in each segment
    std::uint16_t csum_start = 0, csum_offset = 0;
};
static_assert(sizeof(VnetHeader) == 10);

// What the kernel may hand over in one piece, and be handed.
struct Offloads {
    bool vnet_header = false;  // there is a VnetHeader at all; else none of the others
    bool checksum = false, tcp4 = false, tcp6 = false, tcp_ecn = false, udp = false;
    bool operator==(const Offloads&) const = default;
};

}  // namespace dael::vpn::path
