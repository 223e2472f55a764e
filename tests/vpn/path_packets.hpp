// SPDX-License-Identifier: Apache-2.0
// TCP and UDP packets made from what they say, slowly and as it is written down: what the path is
// compared with.
#pragma once

#include <cstdint>

#include "support/bytes.hpp"
#include "vpn/path/vnet.hpp"

namespace dael::test {

// Word by word (RFC 1071), most significant byte first.
inline std::uint16_t sum_by_hand(std::span<const std::uint8_t> bytes, std::uint32_t sum = 0) {
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        const unsigned low = i + 1 < bytes.size() ? bytes[i + 1] : 0u;
        sum += static_cast<std::uint32_t>(bytes[i] << 8) + low;
        while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<std::uint16_t>(sum);
}

struct InnerPacket {
    bool six = false, tcp = true, dont_fragment = true;
    std::uint8_t tos = 0, hops = 64, flags = 0x10;  // ACK
    std::uint32_t label = 0;                        // IPv6's flow label, of 20 bits
    std::uint16_t id = 0, fragment = 0;             // the latter: MF and offset, as they lie
    Bytes source, destination;
    std::uint16_t from = 40000, to = 443;
    std::uint32_t sequence = 0, acknowledgement = 0;
    std::uint16_t window = 500, urgent = 0;
    Bytes ip_options, extensions, tcp_options;  // of multiples of 4, 8 and 4 bytes
    std::uint8_t next = 0;                      // with extensions: IPv6's own next header
    Bytes payload;
    bool checksum = true;  // UDP: none

    std::size_t ip_header() const { return six ? 40 + extensions.size() : 20 + ip_options.size(); }
    std::size_t header() const { return ip_header() + (tcp ? 20 + tcp_options.size() : 8); }

    std::uint16_t pseudo(std::size_t length) const {
        Bytes words = source;
        words.insert(words.end(), destination.begin(), destination.end());
        for (const std::size_t w : {std::size_t{tcp ? 6u : 17u}, length}) {
            words.push_back(static_cast<std::uint8_t>(w >> 8));
            words.push_back(static_cast<std::uint8_t>(w));
        }
        return sum_by_hand(words);
    }

    // `half`: with the checksum that the kernel leaves to be finished.
    Bytes bytes(bool half = false) const {
        Bytes out;
        const auto put = [&](std::uint64_t value, int size) {
            while (size-- > 0) out.push_back(static_cast<std::uint8_t>(value >> (8 * size)));
        };
        const auto append = [&](const Bytes& more) {
            out.insert(out.end(), more.begin(), more.end());
        };
        const std::size_t length = header() - ip_header() + payload.size();
        const std::uint8_t protocol = tcp ? 6 : 17;
        if (six) {
            put(std::uint32_t{6} << 28 | std::uint32_t{tos} << 20 | label, 4);
            put(extensions.size() + length, 2);
            put(extensions.empty() ? protocol : next, 1);
            put(hops, 1);
            append(source), append(destination), append(extensions);
        } else {
            put(0x40 | (5 + ip_options.size() / 4), 1);
            put(tos, 1);
            put(ip_header() + length, 2);
            put(id, 2);
            put((dont_fragment ? 0x4000 : 0) | fragment, 2);
            put(hops, 1), put(protocol, 1), put(0, 2);
            append(source), append(destination), append(ip_options);
            const std::uint16_t sum = static_cast<std::uint16_t>(~sum_by_hand(out));
            out[10] = static_cast<std::uint8_t>(sum >> 8);
            out[11] = static_cast<std::uint8_t>(sum);
        }
        put(from, 2), put(to, 2);
        std::size_t at = out.size();
        if (tcp) {
            put(sequence, 4), put(acknowledgement, 4);
            put(0x50 + tcp_options.size() / 4 * 16, 1);
            put(flags, 1), put(window, 2);
            at = out.size();
            put(0, 2), put(urgent, 2);
            append(tcp_options);
        } else {
            put(length, 2);
            at = out.size();
            put(0, 2);
        }
        append(payload);
        if (!tcp && !checksum) return out;
        std::uint16_t sum = pseudo(length);
        if (!half) {
            const std::span all(out);
            sum = static_cast<std::uint16_t>(~sum_by_hand(all.subspan(ip_header()), sum));
            if (!tcp && sum == 0) sum = 0xffff;
        }
        out[at] = static_cast<std::uint8_t>(sum >> 8);
        out[at + 1] = static_cast<std::uint8_t>(sum);
        return out;
    }

    // The header that goes before it, where it is to be cut into segments of `size` bytes.
    vpn::path::VnetHeader super(std::size_t size) const {
        using vpn::path::VnetHeader;
        VnetHeader v;
        v.flags = VnetHeader::kNeedsCsum;
        v.gso_type = !tcp ? VnetHeader::kUdp : six ? VnetHeader::kTcp6 : VnetHeader::kTcp4;
        v.hdr_len = static_cast<std::uint16_t>(header());
        v.gso_size = static_cast<std::uint16_t>(size);
        v.csum_start = static_cast<std::uint16_t>(ip_header());
        v.csum_offset = tcp ? 16 : 6;
        return v;
    }

    // The packets that it is made of.
    std::vector<InnerPacket> segments(std::size_t size) const {
        std::vector<InnerPacket> all;
        std::size_t done = 0;
        do {
            InnerPacket one = *this;
            const std::size_t n = std::min(size, payload.size() - done);
            one.payload.assign(payload.begin() + static_cast<std::ptrdiff_t>(done),
                               payload.begin() + static_cast<std::ptrdiff_t>(done + n));
            one.id = static_cast<std::uint16_t>(id + all.size());
            one.sequence += static_cast<std::uint32_t>(done);
            if (done + n < payload.size()) one.flags &= static_cast<std::uint8_t>(~0x09);
            if (done != 0) one.flags &= 0x7f;
            done += n;
            all.push_back(std::move(one));
        } while (done < payload.size());
        return all;
    }
};

inline InnerPacket some_packet(Random& random, bool six, bool tcp) {
    InnerPacket p;
    p.six = six, p.tcp = tcp;
    p.source = random.bytes(six ? 16 : 4);
    p.destination = random.bytes(six ? 16 : 4);
    p.destination[0] &= 0x3f;  // not to many
    p.tos = static_cast<std::uint8_t>(random.number());
    p.hops = static_cast<std::uint8_t>(1 + random.below(255));
    p.label = static_cast<std::uint32_t>(random.below(1 << 20));
    p.id = static_cast<std::uint16_t>(random.number());
    p.dont_fragment = random.below(2) != 0;
    p.from = static_cast<std::uint16_t>(random.number());
    p.to = static_cast<std::uint16_t>(random.number());
    p.sequence = static_cast<std::uint32_t>(random.number());
    p.acknowledgement = static_cast<std::uint32_t>(random.number());
    p.window = static_cast<std::uint16_t>(random.number());
    if (random.below(2) != 0) p.tcp_options = random.bytes(4 * random.below(11));
    return p;
}

}  // namespace dael::test
