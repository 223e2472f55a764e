// SPDX-License-Identifier: Apache-2.0
// Packets that came become super-packets again, so that the host takes many by one write: those of
// a TCP or UDP flow that follow each other, as receive offload of a network card does it. Order
// within a flow stays. Nothing is copied: parts point into the packets.
//
// A super-packet tells the kernel not to look at checksums, so each is verified here before it is
// joined; one that is wrong goes alone, as it is, for the kernel to refuse. What has IP options or
// extension headers, is a fragment, has TCP flags other than ACK and PSH, or differs in what
// cutting could not restore (TOS, TTL, DF, acknowledgement, window, options) is not joined.
//
// Threads: one at a time.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "vpn/path/inet.hpp"
#include "vpn/path/vnet.hpp"

namespace dael::vpn::path {

class Joiner {
  public:
    struct Counters {
        std::uint64_t packets = 0, bytes = 0, writes = 0;
        std::uint64_t bad_checksums = 0;  // would have been joined, else
    };
    static constexpr std::size_t kMostFlows = 64, kMostParts = 64;

    // Joins what these allow; nothing, where there is no VnetHeader.
    explicit Joiner(const Offloads& offloads);

    // Takes an inner packet (whole: IP's length is its size), which must stay until flush(); its
    // headers may be changed meanwhile. False: full; flush() and add it again.
    bool add(std::span<std::uint8_t> packet) noexcept;

    // Calls write(std::span<const iovec>) for each packet that there is, in order, and forgets
    // them. The first part is the VnetHeader, where the device has one.
    template <class Write>
    void flush(Write&& write) noexcept(noexcept(write(std::span<const iovec>{}))) {
        for (std::size_t i = 0; i < count_; ++i) write(seal(flows_[i]));
        count_ = 0;
    }
    bool empty() const noexcept { return count_ == 0; }
    const Counters& counters() const noexcept { return counters_; }

  private:
    struct Flow {
        std::uint8_t* ip = nullptr;
        std::size_t l4 = 0, header = 0;   // where transport and payload begin
        std::size_t size = 0, total = 0;  // payload of the first; all bytes so far
        std::uint32_t next = 0;           // TCP: the sequence number that goes on
        std::uint16_t id = 0;             // IPv4: of the next, unless DF is set
        std::uint8_t protocol = 0;
        bool six = false, open = false;
        std::size_t parts = 0;
        VnetHeader vnet{};
        std::array<iovec, kMostParts + 1> part;
    };
    struct Seen;  // what add() found out about a packet
    bool look(std::span<std::uint8_t> packet, Seen& seen) noexcept;
    bool joins(const Flow& flow, const Seen& seen) const noexcept;
    std::span<const iovec> seal(Flow& flow) noexcept;

    Offloads offloads_;
    std::unique_ptr<Flow[]> flows_;
    std::array<std::uint32_t, kMostFlows> hosts_{}, ports_{};  // hashes, to find them fast
    std::size_t count_ = 0;
    Counters counters_{};
};

}  // namespace dael::vpn::path
