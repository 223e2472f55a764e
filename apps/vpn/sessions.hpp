// SPDX-License-Identifier: Apache-2.0
// The peers and their sessions, shared by all loops: which SA sends to whom and where that is,
// whose an SPI is, and the handshakes that make new ones. What is to be sent goes out by the loop
// that asked (Outlet).
//
// Threads: any may call anything. A loop takes a peer's lock once for a burst of packets; the
// handshakes have one lock, taken once for a burst too. Close: when no loop runs. fork(): a child
// may close it, no more (esp.hpp, handshakes.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/esp.hpp>

#include "vpn/allowed.hpp"
#include "vpn/config.hpp"
#include "vpn/count.hpp"
#include "vpn/handshake/handshakes.hpp"
#include "vpn/path/endpoint.hpp"
#include "vpn/waiting.hpp"

namespace dael::vpn {

// Two SAs, one each way. Lives as long as somebody uses it; its keys go with it.
struct Session {
    SessionId id = kNoSession;
    PeerId peer = kNoPeer;
    std::uint32_t sending_spi = 0, receiving_spi = 0;
    std::optional<esp::Encapsulator> sender;
};
using SessionPtr = std::shared_ptr<Session>;

struct PeerEnd {
    // `sent`, `received`: inner packets; `lost`: those that had no session or no endpoint.
    Count sent_packets, sent_bytes, received_packets, received_bytes;
    Count lost, bad_source, bad_ecn, moves;
    Count refused_moves;  // bursts from an address to which sealed packets would go by the tunnel

    mutable std::mutex mutex;  // of what follows
    SessionPtr in_use;         // null: none to send with
    path::Route route;         // where the peer is, if that is known
    Waiting waiting;
};

// What a session's loop can do for it. Called with the handshakes' lock held.
class Outlet {
  public:
    virtual void send(std::span<const std::uint8_t> message, path::Route route) = 0;
    // Seals and sends these, or a dummy where there are none. Says what went.
    virtual Traffic send(Session& session, path::Route route,
                         std::span<const Waiting::Item> items) = 0;

  protected:
    ~Outlet() = default;
};

class Sessions {
  public:
    // Takes the keys out of `config`, which are wiped there. Errors: of Engine, SaTable,
    // Handshakes.
    static Result<std::unique_ptr<Sessions>> open(Config& config);
    ~Sessions();

    const Allowed& allowed() const noexcept { return allowed_; }
    std::size_t peers() const noexcept { return peers_.size(); }
    PeerEnd& peer(PeerId peer) noexcept { return *peers_[peer]; }

    // Where session and peer are now, for a burst.
    struct Way {
        SessionPtr session;
        path::Route route;
    };
    Way way_to(PeerId peer);
    // The address of ours that packets left from is gone: another is chosen from here on.
    void forget_local(PeerId peer, const path::Endpoint& remote);
    SessionPtr by_spi(std::uint32_t spi);  // null: nobody's
    std::size_t open(std::span<esp::Packet> packets) noexcept {
        return opener_->decapsulate(packets, esp::Framing::udp_content);
    }

    // Packets wait for a session, which is asked for. Those that find no room are lost.
    void wait(PeerId peer, std::span<const esp::Packet> packets, std::uint8_t tos, Outlet& outlet);
    void sent(const Session& session, const Traffic& traffic, Outlet& outlet);
    // `route`: whence the last authentic packet came.
    void received(const Session& session, const Traffic& traffic, const path::Route& route,
                  Outlet& outlet);
    void failed(const Session& session, Outlet& outlet);
    void handshake(std::span<const std::uint8_t> datagram, const path::Route& from, Outlet& outlet);
    void unknown_spi(std::span<const std::uint8_t> packet, const path::Route& from, Outlet& outlet);

    // Who may send what is no packet of a session (Udp::admit): where the peers are. Before hints
    // are over (may_hint) that is anybody, and the number of the list 0; with each change it has
    // another one.
    std::uint64_t guest_list() const noexcept {
        return hints_over_.load(std::memory_order_relaxed)
                   ? guest_list_.load(std::memory_order_acquire)
                   : 0;
    }
    std::vector<path::Address> guests() const;  // each once; no more than are too many
    std::uint16_t spi_mark() const noexcept { return spi_mark_; }

    // Every peer with an endpoint is asked for a session.
    void begin(Outlet& outlet);
    // What is due by now. Cheap where nothing is.
    void tick(Outlet& outlet);
    // Until something may be due: milliseconds, at most a second.
    int patience_ms() const noexcept;

    struct PeerReport {
        PeerStatus handshakes;
        path::Route route;
        std::uint32_t sending_spi = 0, receiving_spi = 0;
    };
    PeerReport report(PeerId peer);
    esp::Counters opened() const { return opener_->counters(); }
    std::array<std::uint64_t, kOutcomes> outcomes() const;
    bool under_load();
    SaCounters table() const { return table_->counters(); }
    SaFilling filling() const { return table_->filling(); }

    // Session keys are appended to this descriptor, for captures to be read: never but to look for
    // faults. And the highest timestamp that was sent is kept in that one, if any (-1: none).
    void log_keys(int fd) noexcept { key_log_ = fd; }
    void keep_timestamp(int fd) noexcept { timestamp_file_ = fd; }

    // As if these had been opened then: for tests.
    void pretend_since(Time then) noexcept { since_ = then; }

  private:
    Sessions() = default;
    bool may_hint(const path::Endpoint& to) const;
    void drain(Outlet& outlet, const path::Route* from);  // the lock is held
    void act(const Action& action, Outlet& outlet, const path::Route* from, const Now& now);
    void install(const Action& action, const Now& now);
    void use(const Action& action, Outlet& outlet, const Now& now);
    void remove(const Action& action);
    void move(PeerEnd& peer, const path::Route& route);
    void write_keys(const FreshSession& fresh) const;

    std::optional<SaTable> table_;
    bool ahead_ = false;  // whether keystream is made before packets come
    std::optional<esp::Decapsulator> opener_;
    Allowed allowed_;
    Allowed inside_;  // what sealed packets would go into the tunnel for, too
    std::vector<std::unique_ptr<PeerEnd>> peers_;

    std::mutex handshakes_mutex_;  // of these; before a peer's lock and that of SPIs
    std::optional<Handshakes> handshakes_;
    std::unordered_map<SessionId, SessionPtr> sessions_;
    std::array<Count, kOutcomes> outcomes_;
    Time last_timestamp_{0};

    std::mutex spis_mutex_;
    std::unordered_map<std::uint32_t, SessionPtr> spis_;

    Time since_{0};
    std::uint16_t spi_mark_ = 0;
    std::atomic<bool> hints_over_{false};
    std::atomic<std::uint64_t> guest_list_{1};
    std::atomic<std::int64_t> deadline_{0};  // nanoseconds of Now::steady
    int key_log_ = -1, timestamp_file_ = -1;
};

Now now();

}  // namespace dael::vpn
