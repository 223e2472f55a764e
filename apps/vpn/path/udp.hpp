// SPDX-License-Identifier: Apache-2.0
// A UDP socket that takes and gives many datagrams a call: UDP_SEGMENT and UDP_GRO, and recvmmsg()
// and sendmmsg() where the kernel, the device below or the option says no. Never blocks, but for
// send() where the send buffer is full: then for kPatience at most, so that what fills it slows.
//
// Threads: one may send while another receives; each of both by one thread at a time. Close: by
// nobody while a call is under way. fork(): the child shares the socket, and closes its copy only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/esp.hpp>

#include "vpn/path/endpoint.hpp"

namespace dael::vpn::path {

struct UdpOptions {
    Endpoint bind{};          // no address: any, of both families (IPv4 alone without IPv6)
    bool gso = true;          // send by UDP_SEGMENT
    bool gro = true;          // receive by UDP_GRO
    bool many = true;         // recvmmsg(), sendmmsg(); false: a call for each (and no GSO, no GRO)
    bool share_port = false;  // SO_REUSEPORT, for several queues
    bool fragments = true;  // too long for the path: in fragments; false: DF, and too_big counts it
    std::uint32_t messages = 8;       // taken by one receive()
    std::uint32_t largest = 2048;     // longest datagram taken where there is no GRO
    std::uint32_t buffer = 7u << 20;  // bytes for the kernel to hold, each way; forced where we may
    std::uint32_t mark = 0;           // SO_MARK
};

// What came: one datagram, or several of one sender and size that the kernel joined.
struct Datagrams {
    std::uint8_t* data = nullptr;
    std::uint32_t size = 0;       // bytes of all; never 0
    std::uint32_t segment = 0;    // of each, but the last, which may be shorter; never 0
    std::uint8_t tos = 0;         // of the outer header: DSCP and ECN
    Route route;                  // whence, and which of our addresses was meant
    std::uint32_t interface = 0;  // it came by; 0: not known
    std::uint32_t count() const noexcept { return (size + segment - 1) / segment; }
};

class Udp {
  public:
    static constexpr int kPatience = 20;  // milliseconds

    struct Counters {
        std::uint64_t sent = 0, send_calls = 0, send_bytes = 0;
        std::uint64_t lost = 0;         // send failed
        std::uint64_t too_big = 0;      // of these, by EMSGSIZE
        std::uint64_t full = 0;         // of these, as nobody took them for kPatience
        std::uint64_t gso_refused = 0;  // batches that went one by one
        std::uint64_t source_gone = 0;  // the address to send from was no longer there
        std::uint64_t received = 0, receive_calls = 0, receive_bytes = 0;
        std::uint64_t cut_short = 0;  // longer than `largest`: dropped
        int last_error = 0;           // errno of what was lost last
    };

    // Errors: io (the port is taken, no such address).
    static Result<Udp> open(const UdpOptions& options);
    Udp(Udp&&) noexcept;
    Udp& operator=(Udp&&) noexcept;
    ~Udp();

    int fd() const noexcept;  // for poll()
    std::uint16_t port() const noexcept;
    bool gso() const noexcept;  // as it stands: false from when the kernel refused on
    bool gro() const noexcept;
    bool six() const noexcept;  // reaches IPv6

    struct Sent {
        std::size_t packets = 0, bytes = 0;
        std::size_t too_big = 0;  // did not fit the path; `error` is EMSGSIZE if it came last
        int error = 0;            // errno of the last that failed
    };
    // Sends those packets whose verdict is ok (buffer + offset, size), in order. Those that lie
    // without a gap, all of one size but the last, leave by one call. Where `route.local` is gone
    // from this machine it is cleared, and the kernel chooses.
    Sent send(std::span<const esp::Packet> packets, Route& route, std::uint8_t tos);
    Sent send(std::span<const std::uint8_t> datagram, Route& route, std::uint8_t tos = 0);

    // What there is, at once; empty: nothing. Valid until the next call, and may be written to
    // (what was decrypted there is the caller's to wipe; the destructor wipes all).
    std::span<Datagrams> receive();

    // From now on the kernel drops what is no handshake, has no SPI that begins with `mark`, and
    // comes from none of `guests` (path/filter.hpp); dropped() counts it. False where the kernel
    // takes no such filter, or there are too many guests: then everything comes in.
    bool admit(std::uint16_t mark, std::span<const Address> guests);
    bool takes_filter() const noexcept;  // whether this kernel does, for some guests

    Counters counters() const noexcept;  // any thread may ask
    // What the kernel did not put into the socket: filtered, or no room; 0 where it does not tell.
    std::uint64_t dropped() const noexcept;

    struct State;

  private:
    explicit Udp(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael::vpn::path
