// SPDX-License-Identifier: Apache-2.0
// Packets that leave together: laid one behind the other at their size on the wire, so that they
// can be sealed in place by one call and sent by one call (UDP_SEGMENT: all of one size, but the
// last, which may be shorter).
//
// Threads: one at a time. fork(): a copy. Holds plaintext until it is sealed: wiped when it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <daelstrom/esp.hpp>

namespace dael::vpn::path {

// How many bytes a packet takes on the wire: head + (n + fixed, up to a multiple of align) + tail.
struct WireFormat {
    std::uint32_t head = 0, fixed = 0, align = 1, tail = 0;
    constexpr std::size_t size(std::size_t payload) const noexcept {
        return head + (payload + fixed + align - 1) / align * align + tail;
    }
};
// ESP in UDP with AES-GCM and an ICV of 16 bytes: what esp::packet_size() says, without a call.
inline constexpr WireFormat kEspWire{esp::kHeader, 2, 4, 16};
inline constexpr WireFormat kPlainWire{};  // packets as they are, to measure what encryption adds

class Batch {
  public:
    // 65,535 bytes of UDP content less what the link may add (a batch that is longer with its
    // Ethernet and VLAN headers is cut by the kernel, slowly); 64 segments is what all kernels take
    // and what a receiver's GRO joins.
    static constexpr std::size_t kMostBytes = 65000, kMostSegments = 64;
    struct Limits {
        std::size_t bytes = kMostBytes, segments = kMostSegments;
    };
    explicit Batch(const WireFormat& wire) : Batch(wire, Limits{}) {}
    Batch(const WireFormat& wire, Limits limits);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch();

    // Room for a packet of `size` bytes (at most kMostInner) with this outer TOS: where to write
    // it. Null: it cannot go along with those that are there (send them, clear(), and ask again).
    // An empty batch always has room.
    static constexpr std::size_t kMostInner = 65535;
    std::uint8_t* place(std::size_t size, std::uint8_t tos = 0,
                        std::uint8_t next_header = esp::kIpv4) noexcept;

    bool empty() const noexcept { return used_ == 0; }
    // For encapsulate(), with as much capacity as the wire's format needs; and then for
    // Udp::send(), which takes those whose verdict is ok.
    std::span<esp::Packet> packets() noexcept { return {packets_.data(), used_}; }
    std::size_t payload_bytes() const noexcept { return payload_; }
    std::uint8_t tos() const noexcept { return tos_; }  // of all of them, outside
    const WireFormat& wire() const noexcept { return wire_; }
    void clear() noexcept;

  private:
    WireFormat wire_;
    Limits limits_;
    std::size_t capacity_;
    std::unique_ptr<std::uint8_t[]> buffer_;
    std::vector<esp::Packet> packets_;
    std::size_t used_ = 0, bytes_ = 0, payload_ = 0, first_ = 0, touched_ = 0;
    std::uint8_t tos_ = 0;
    bool closed_ = false;  // a shorter one came: it is the last
};

}  // namespace dael::vpn::path
