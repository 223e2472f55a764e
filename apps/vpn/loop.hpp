// SPDX-License-Identifier: Apache-2.0
// One thread's part of the tunnel: a queue of TUN and a UDP socket. Packets of TUN are cut, told by
// whose address they have, sealed a burst at a time and sent; datagrams are opened a burst at a
// time, checked against what their peer may send from, joined and written. It waits only when there
// is nothing on either side.
//
// Threads: run() is one thread's; stop() and what says so any's. fork(): no child goes on with it.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include <daelstrom/esp.hpp>

#include "vpn/count.hpp"
#include "vpn/path/batch.hpp"
#include "vpn/path/cutter.hpp"
#include "vpn/path/joiner.hpp"
#include "vpn/path/tun.hpp"
#include "vpn/path/udp.hpp"
#include "vpn/sessions.hpp"

namespace dael::vpn {

// Why packets went nowhere, and what else is worth a figure. Each loop has its own.
struct LoopCounters {
    // From TUN.
    Count tun_reads, segments;  // segments: packets that these became
    Count not_ip, bad_vnet;     // what the kernel should not have handed over
    Count no_peer;              // an address that is nobody's
    Count between_peers;        // from one peer to another, which is not allowed
    Count too_big;              // longer than the tunnel's packets may be
    Count not_sealed;           // the SA refused
    // From UDP.
    Count datagrams, handshakes, unknown_spi, refused, keepalives;
    Count not_inner;              // authentic, and no packet of IP
    Count bad_source;             // authentic, from an address that is not that peer's
    Count through_itself;         // datagrams that came by the tunnel's own interface
    Count bad_ecn;                // congestion that cannot be told inside (RFC 6040)
    Count tun_writes, tun_lost;   // super-packets or packets; those that TUN did not take
    Count joined, bad_checksums;  // packets that came; inner checksums that were wrong
    Count clamped;                // SYNs
};

class Loop final : public Outlet {
  public:
    struct Settings {
        std::uint32_t mtu = kUsualMtu;
        bool between_peers = false, clamp_mss = true, copy_dscp = false;
        path::Address inner4, inner6;      // ours, for what we say of packets that are too big
        const Allowed* senders = nullptr;  // by whom a packet of TUN was sent, if by a peer
        std::span<const path::Prefix> own;
        std::uint32_t interface = 0;  // the tunnel's own
        bool filter = true;           // what is nobody's does not reach the socket
    };
    // Errors: io (no eventfd). The others must outlive it.
    static Result<std::unique_ptr<Loop>> open(Sessions& sessions, path::TunQueue& tun,
                                              path::Udp& udp, const Settings& settings);
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    // Until stop(), or until the interface is gone: that is an error (io).
    Result<> run(bool first);
    void stop() noexcept;

    const LoopCounters& counters() const noexcept { return counters_; }
    const path::Udp& udp() const noexcept { return udp_; }

    void send(std::span<const std::uint8_t> message, path::Route route) override;
    Traffic send(Session& session, path::Route route,
                 std::span<const Waiting::Item> items) override;

  private:
    static constexpr int kReads = 16;            // of TUN, before it is UDP's turn
    static constexpr int kReceives = 4;          // of UDP, before it is TUN's
    static constexpr std::size_t kBurst = 1024;  // packets opened by one call
    static constexpr std::uint32_t kHints = 4;   // unknown SPIs of one burst that are answered

    Loop(Sessions& sessions, path::TunQueue& tun, path::Udp& udp, const Settings& settings);
    bool from_tun();
    void take(const path::VnetHeader& header, std::span<const std::uint8_t> packet);
    PeerId peer_for(const inet::Ip& ip);
    bool is_from_us(const inet::Ip& ip) const noexcept;
    PeerId sender_of(const inet::Ip& ip) noexcept;
    void say_too_big(std::span<const std::uint8_t> packet, const inet::Ip& ip);
    void flush();
    Traffic seal(Session& session, path::Route& route, path::Batch& batch);

    bool from_udp();
    void split(const path::Datagrams& datagrams);
    void open_burst();
    void deliver(esp::Packet& packet);
    void note(const esp::Packet& packet, std::uint64_t bytes, bool data);
    void end_note();
    void write_joined();
    void wait();
    void admit();

    Sessions& sessions_;
    path::TunQueue& tun_;
    path::Udp& udp_;
    Settings settings_;
    int wake_ = -1;  // an eventfd
    std::atomic<bool> stopping_{false};
    bool tun_gone_ = false;

    std::unique_ptr<std::uint8_t[]> read_;
    path::Batch batch_, own_batch_;  // the second for what is sent beside: dummies, what waited
    PeerId batch_peer_ = kNoPeer;
    int answers_ = 0;  // of this round, that something is too big

    std::vector<esp::Packet> burst_;
    std::uint64_t admitted_ = 0;  // Sessions::guest_list(), as the socket has it
    path::Joiner joiner_;
    std::uint32_t hints_ = 0;
    // The source of the last packet, which the next one has as well more often than not.
    struct Sender {
        unsigned version = 0;
        std::array<std::uint8_t, 16> address{};
        PeerId peer = kNoPeer;
    } last_sender_;
    // Of the session whose packets are just looked at.
    SessionPtr session_;
    Traffic traffic_;
    std::uint64_t inner_ = 0;  // of these packets, those that were no dummies
    path::Route from_;
    LoopCounters counters_;
};

}  // namespace dael::vpn
