// SPDX-License-Identifier: Apache-2.0
// A packet as TUN hands it over becomes packets that can travel: a super-packet is cut into its
// segments, each with headers and checksums of its own. A checksum that the kernel left to a device
// is made, since there is none: what is sealed must be right as it is.
//
// Nothing is believed: a header that does not fit the packet is a fault, and nothing is read or
// written outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vpn/path/batch.hpp"
#include "vpn/path/inet.hpp"
#include "vpn/path/vnet.hpp"

namespace dael::vpn::path {

// Looks at one packet of TUN, which must stay as it is until its last segment is laid. For one
// thread; holds nothing but what it saw.
class Cutter {
  public:
    enum class Fault : std::uint8_t {
        none,
        not_ip,        // neither IPv4 nor IPv6, cut short, or lengths that cannot be
        bad_header,    // the VnetHeader does not fit the packet
        unknown_type,  // a kind of super-packet that nobody asked for
    };
    Cutter(const VnetHeader& header, std::span<const std::uint8_t> packet) noexcept;

    Fault fault() const noexcept { return fault_; }  // where there is one, nothing else counts
    const inet::Ip& ip() const noexcept { return ip_; }
    std::size_t count() const noexcept { return count_; }      // packets that it becomes
    std::size_t largest() const noexcept { return largest_; }  // bytes of the longest of them
    // All of them together: what a counter of bytes wants.
    std::size_t bytes() const noexcept { return count_ * header_ + payload_; }
    std::size_t size(std::size_t i) const noexcept;  // bytes of packet i
    // Writes packet i: size(i) bytes, exactly.
    void lay(std::size_t i, std::uint8_t* to) const noexcept;
    // Lays packets from `first` on into the batch, as many as go; says which is next. Where that is
    // not count(): send the batch, clear it, go on.
    std::size_t lay(std::size_t first, Batch& batch, std::uint8_t tos) const noexcept;
    // The first packet where it was laid last, alone: for MSS clamping.
    bool is_syn() const noexcept { return syn_; }

  private:
    Fault look(const VnetHeader& header) noexcept;
    void lay_segment(std::size_t i, std::uint8_t* to) const noexcept;
    void lay_alone(std::uint8_t* to) const noexcept;

    std::span<const std::uint8_t> packet_;
    inet::Ip ip_{};
    Fault fault_ = Fault::none;
    bool super_ = false, partial_ = false, syn_ = false;
    std::uint8_t protocol_ = 0;
    std::size_t l4_ = 0, checksum_ = 0;     // where they are in each packet
    std::size_t header_ = 0, segment_ = 0;  // bytes of headers and of payload in each
    std::size_t payload_ = 0;               // of all
    std::size_t count_ = 0, largest_ = 0;
    std::uint64_t transport_base_ = 0, ip_base_ = 0;  // sum of what is the same in all segments
};

}  // namespace dael::vpn::path
