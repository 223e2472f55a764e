// SPDX-License-Identifier: Apache-2.0
#include "vpn/path/filter.hpp"

#include "vpn/path/inet.hpp"

namespace dael::vpn::path {
namespace {

constexpr std::uint32_t kAll = 0xffffffff;
constexpr std::uint32_t kPayload = inet::kUdpHeader;  // where the filter of a UDP socket begins
constexpr std::uint32_t kIp = static_cast<std::uint32_t>(SKF_NET_OFF);
constexpr std::uint32_t kSource4 = 12, kSource6 = 8;

// Loads that pass the end drop what they are of.
sock_filter load(std::uint32_t at) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
}
sock_filter give(std::uint32_t bytes) {
    return BPF_STMT(BPF_RET | BPF_K, bytes);
}
// Goes on with the next step where it is so, else leaves out `past` more.
sock_filter only_if(std::uint32_t value, std::uint8_t past) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, past);
}

}  // namespace

std::vector<sock_filter> filter_for(std::uint16_t mark, std::span<const Address> guests) {
    std::vector<sock_filter> steps{
        load(kPayload),
        only_if(0, 1),
        give(kAll),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
        only_if(mark, 1),
        give(kAll),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kIp),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 1, 0),
        BPF_STMT(BPF_JMP | BPF_JA, 0),  // to IPv6's part, once it is known where that is
    };
    const std::size_t to_six = steps.size() - 1;
    steps.push_back(load(kIp + kSource4));
    for (const Address& guest : guests) {
        if (guest.family != 4) continue;
        steps.push_back(only_if(inet::get32(guest.bytes.data()), 1));
        steps.push_back(give(kAll));
    }
    steps.push_back(give(0));
    steps[to_six].k = static_cast<std::uint32_t>(steps.size() - to_six - 1);
    // Read once: the kernel makes eight instructions or more of each load from a packet.
    for (std::uint32_t i = 0; i < 4; ++i) {
        steps.push_back(load(kIp + kSource6 + 4 * i));
        steps.push_back(BPF_STMT(BPF_ST, i));
    }
    for (const Address& guest : guests) {
        if (guest.family != 6) continue;
        for (std::uint32_t i = 0; i < 4; ++i) {
            steps.push_back(BPF_STMT(BPF_LD | BPF_MEM, i));
            steps.push_back(only_if(inet::get32(guest.bytes.data() + 4 * i),
                                    static_cast<std::uint8_t>(2 * (3 - i) + 1)));
        }
        steps.push_back(give(kAll));
    }
    steps.push_back(give(0));
    return steps;
}

}  // namespace dael::vpn::path
