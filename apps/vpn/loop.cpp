// SPDX-License-Identifier: Apache-2.0
#include "vpn/loop.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vpn/path/mend.hpp"

namespace dael::vpn {

Result<std::unique_ptr<Loop>> Loop::open(Sessions& sessions, path::TunQueue& tun, path::Udp& udp,
                                         const Settings& settings) {
    auto self = std::unique_ptr<Loop>(new Loop(sessions, tun, udp, settings));
    self->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->wake_ < 0)
        return Error{Code::io, std::string("cannot make an eventfd: ") + std::strerror(errno)};
    return self;
}

Loop::Loop(Sessions& sessions, path::TunQueue& tun, path::Udp& udp, const Settings& settings)
    : sessions_(sessions),
      tun_(tun),
      udp_(udp),
      settings_(settings),
      read_(std::make_unique<std::uint8_t[]>(path::TunQueue::kMostPacket)),
      batch_(path::kEspWire),
      own_batch_(path::kEspWire),
      joiner_(tun.offloads()) {
    burst_.reserve(kBurst);
}

Loop::~Loop() {
    wipe(read_.get(), path::TunQueue::kMostPacket);
    if (wake_ >= 0) ::close(wake_);
}

void Loop::stop() noexcept {
    stopping_.store(true);
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
}

Result<> Loop::run(bool first) {
    if (first) sessions_.begin(*this);
    while (!stopping_.load(std::memory_order_relaxed)) {
        const bool sent = from_tun();
        const bool came = from_udp();
        if (tun_gone_)
            return Error{Code::io, "the tunnel's interface was deleted by somebody; start again"};
        sessions_.tick(*this);
        admit();
        if (!sent && !came) wait();
    }
    return {};
}

void Loop::wait() {
    pollfd ready[] = {{tun_.fd(), POLLIN, 0}, {udp_.fd(), POLLIN, 0}, {wake_, POLLIN, 0}};
    // Whatever it says, reads tell.
    (void)::poll(ready, std::size(ready), sessions_.patience_ms());
}

// Where the kernel does not take it, or there are more peers than it could look for, all comes in.
void Loop::admit() {
    const std::uint64_t list = sessions_.guest_list();
    if (list == admitted_ || !settings_.filter) return;
    admitted_ = list;
    (void)udp_.admit(sessions_.spi_mark(), sessions_.guests());
}

// ---- from TUN to UDP ----

bool Loop::from_tun() {
    bool any = false;
    answers_ = 0;
    for (int i = 0; i < kReads; ++i) {
        path::VnetHeader header;
        const auto got = tun_.read(header, {read_.get(), path::TunQueue::kMostPacket});
        if (got.error != 0) {
            tun_gone_ = got.error == EBADFD;
            break;
        }
        any = true;
        counters_.tun_reads.add(1);
        take(header, {read_.get(), got.size});
    }
    flush();
    return any;
}

bool Loop::is_from_us(const inet::Ip& ip) const noexcept {
    return std::ranges::any_of(settings_.own, [&ip](const path::Prefix& own) {
        return own.address.family == ip.version &&
               std::memcmp(own.address.bytes.data(), ip.source, ip.address_size()) == 0;
    });
}

PeerId Loop::peer_for(const inet::Ip& ip) {
    const PeerId to = sessions_.allowed().find(ip.version, ip.destination);
    if (to == Allowed::kNobody) {
        counters_.no_peer.add(1);
        return kNoPeer;
    }
    if (settings_.between_peers) return to;
    const PeerId by = settings_.senders->find(ip.version, ip.source);
    if (by == Allowed::kNobody || by == to || is_from_us(ip)) return to;
    counters_.between_peers.add(1);
    return kNoPeer;
}

void Loop::take(const path::VnetHeader& header, std::span<const std::uint8_t> packet) {
    const path::Cutter cut(header, packet);
    if (cut.fault() != path::Cutter::Fault::none) {
        (cut.fault() == path::Cutter::Fault::not_ip ? counters_.not_ip : counters_.bad_vnet).add(1);
        return;
    }
    const inet::Ip& ip = cut.ip();
    const PeerId peer = peer_for(ip);
    if (peer == kNoPeer) return;
    if (cut.largest() > settings_.mtu) return say_too_big(packet, ip);
    if (peer != batch_peer_) {
        flush();
        batch_peer_ = peer;
    }
    const std::uint8_t tos = path::outer_tos(ip.tos, settings_.copy_dscp);
    counters_.segments.add(cut.count());
    for (std::size_t i = 0; i < cut.count();) {
        i = cut.lay(i, batch_, tos);
        if (i < cut.count()) {
            flush();
            batch_peer_ = peer;
        }
    }
    if (settings_.clamp_mss && cut.is_syn() && !batch_.empty()) {
        const esp::Packet& p = batch_.packets().back();
        if (path::clamp_mss({p.buffer + p.offset, p.size}, settings_.mtu)) counters_.clamped.add(1);
    }
}

// Whose the source is. What is ours is no peer's, though it lie in what a peer may have: the kernel
// would pass it on (Linux, of IPv6), and it would leave here as our own.
PeerId Loop::sender_of(const inet::Ip& ip) noexcept {
    Sender& last = last_sender_;
    if (last.version != ip.version ||
        std::memcmp(last.address.data(), ip.source, ip.address_size()) != 0) {
        last.version = ip.version;
        std::memcpy(last.address.data(), ip.source, ip.address_size());
        last.peer = is_from_us(ip) ? kNoPeer : sessions_.allowed().find(ip.version, ip.source);
    }
    return last.peer;
}

void Loop::say_too_big(std::span<const std::uint8_t> packet, const inet::Ip& ip) {
    counters_.too_big.add(1);
    const path::Address& own = ip.version == 6 ? settings_.inner6 : settings_.inner4;
    if (own.family == 0 || ++answers_ > 4) return;
    std::array<std::uint8_t, path::kMostTooBig> answer;
    const std::size_t size = path::too_big(packet, settings_.mtu, own, answer);
    if (size != 0) (void)tun_.write(std::span<const std::uint8_t>(answer).first(size));
}

void Loop::flush() {
    if (batch_.empty()) return;
    PeerEnd& peer = sessions_.peer(batch_peer_);
    Sessions::Way way = sessions_.way_to(batch_peer_);
    if (!way.session) {
        sessions_.wait(batch_peer_, batch_.packets(), batch_.tos(), *this);
    } else if (!way.route.remote) {
        peer.lost.add_shared(batch_.packets().size());
    } else {
        const path::Route before = way.route;
        const Traffic traffic = seal(*way.session, way.route, batch_);
        if (way.route != before) sessions_.forget_local(batch_peer_, before.remote);
        if (traffic.packets != 0)
            sessions_.sent(*way.session, traffic, *this);
        else
            sessions_.failed(*way.session, *this);
    }
    batch_.clear();
    batch_peer_ = kNoPeer;
}

// What could not be sealed is not sent; what the network does not take is lost as on any link.
Traffic Loop::seal(Session& session, path::Route& route, path::Batch& batch) {
    const std::uint64_t bytes = batch.payload_bytes();
    const std::size_t asked = batch.packets().size();
    const auto sealed = session.sender->encapsulate(batch.packets());
    const std::size_t packets = sealed ? sealed->packets : 0;
    if (packets < asked) counters_.not_sealed.add(asked - packets);
    if (packets == 0) return {};
    (void)udp_.send(batch.packets(), route, batch.tos());
    const bool data = batch.packets()[0].next_header != esp::kNoNext;
    if (data) {
        PeerEnd& peer = sessions_.peer(session.peer);
        peer.sent_packets.add_shared(packets);
        peer.sent_bytes.add_shared(bytes);
    }
    return {packets, bytes, data};
}

void Loop::send(std::span<const std::uint8_t> message, path::Route route) {
    (void)udp_.send(message, route);
}

Traffic Loop::send(Session& session, path::Route route, std::span<const Waiting::Item> items) {
    Traffic all;
    const auto go = [&] {
        if (own_batch_.empty()) return;
        const Traffic traffic = seal(session, route, own_batch_);
        all.packets += traffic.packets;
        all.bytes += traffic.bytes;
        all.data |= traffic.data;
        own_batch_.clear();
    };
    for (const Waiting::Item& item : items) {
        std::uint8_t* to = own_batch_.place(item.packet.size(), item.tos, item.next_header);
        if (!to) {
            go();
            to = own_batch_.place(item.packet.size(), item.tos, item.next_header);
        }
        std::ranges::copy(item.packet, to);
    }
    if (items.empty()) (void)own_batch_.place(0, 0, esp::kNoNext);
    go();
    return all;
}

// ---- from UDP to TUN ----

bool Loop::from_udp() {
    bool any = false;
    for (int i = 0; i < kReceives; ++i) {
        const std::span<path::Datagrams> came = udp_.receive();
        if (came.empty()) break;
        any = true;
        hints_ = 0;
        for (const path::Datagrams& each : came) split(each);
        open_burst();
        write_joined();
    }
    return any;
}

void Loop::split(const path::Datagrams& datagrams) {
    // No peer is reached through the tunnel itself: an answer would be sealed again and again. Who
    // sends so has no other end in mind (a peer could, to have its endpoint moved in there).
    if (settings_.interface != 0 && datagrams.interface == settings_.interface) {
        counters_.datagrams.add(datagrams.count());
        return counters_.through_itself.add(datagrams.count());
    }
    for (std::uint32_t at = 0; at < datagrams.size; at += datagrams.segment) {
        const std::uint32_t size = std::min(datagrams.segment, datagrams.size - at);
        const std::span<std::uint8_t> one(datagrams.data + at, size);
        // Packets begin too far apart for the processor to foresee where the next ones do.
        constexpr std::uint64_t kAhead = 3;
        __builtin_prefetch(one.data() + std::min(kAhead * datagrams.segment,
                                                 std::uint64_t{datagrams.size - at - 1}));
        counters_.datagrams.add(1);
        if (Handshakes::is_handshake(one)) {
            open_burst();  // what came before it is looked at before it
            counters_.handshakes.add(1);
            sessions_.handshake(one, datagrams.route, *this);
            continue;
        }
        if (burst_.size() == kBurst) open_burst();
        esp::Packet& packet = burst_.emplace_back();
        packet.buffer = one.data();
        packet.capacity = packet.size = size;
        packet.user = const_cast<path::Datagrams*>(&datagrams);
    }
}

void Loop::open_burst() {
    if (burst_.empty()) return;
    sessions_.open(burst_);
    for (esp::Packet& packet : burst_) deliver(packet);
    end_note();
    burst_.clear();
}

void Loop::deliver(esp::Packet& packet) {
    const auto& came = *static_cast<const path::Datagrams*>(packet.user);
    switch (packet.verdict) {
        case esp::Verdict::ok:
            break;
        case esp::Verdict::dummy:
            counters_.keepalives.add(1);
            return note(packet, 0, false);
        case esp::Verdict::keepalive:
            counters_.keepalives.add(1);
            return;
        case esp::Verdict::unknown_spi:
            counters_.unknown_spi.add(1);
            if (++hints_ <= kHints)
                sessions_.unknown_spi({packet.buffer + packet.offset, packet.size}, came.route,
                                      *this);
            return;
        default:
            counters_.refused.add(1);
            return;
    }
    note(packet, packet.size, true);
    if (!session_) return;
    const std::span<std::uint8_t> inner(packet.buffer + packet.offset, packet.size);
    const auto ip = inet::parse(inner);
    const bool tunnel = (packet.next_header == esp::kIpv4 && ip && ip->version == 4) ||
                        (packet.next_header == esp::kIpv6 && ip && ip->version == 6);
    if (!tunnel || ip->size != inner.size()) return counters_.not_inner.add(1);
    PeerEnd& peer = sessions_.peer(session_->peer);
    if (sender_of(*ip) != session_->peer) {
        counters_.bad_source.add(1);
        return peer.bad_source.add_shared(1);
    }
    if (!path::take_ecn(inner, came.tos)) {
        counters_.bad_ecn.add(1);
        return peer.bad_ecn.add_shared(1);
    }
    // SYNs are short: the others need no look.
    if (settings_.clamp_mss && inner.size() <= 160 && ip->protocol == inet::kTcp &&
        path::clamp_mss(inner, settings_.mtu))
        counters_.clamped.add(1);
    if (joiner_.add(inner)) return;
    write_joined();
    (void)joiner_.add(inner);
}

// Sums up what one session received, for as long as packets are its own.
void Loop::note(const esp::Packet& packet, std::uint64_t bytes, bool data) {
    if (!session_ || session_->receiving_spi != packet.spi) {
        end_note();
        session_ = sessions_.by_spi(packet.spi);
        if (!session_) return;
    }
    traffic_.packets += 1;
    traffic_.bytes += bytes;
    traffic_.data |= data;
    inner_ += data;
    from_ = static_cast<const path::Datagrams*>(packet.user)->route;
}

void Loop::end_note() {
    if (session_ && traffic_.packets != 0) {
        if (traffic_.data) {
            PeerEnd& peer = sessions_.peer(session_->peer);
            peer.received_packets.add_shared(inner_);
            peer.received_bytes.add_shared(traffic_.bytes);
        }
        sessions_.received(*session_, traffic_, from_, *this);
    }
    traffic_ = {};
    inner_ = 0;
    session_.reset();
}

void Loop::write_joined() {
    joiner_.flush([this](std::span<const iovec> parts) {
        if (tun_.write(parts) != 0) counters_.tun_lost.add(1);
    });
    const path::Joiner::Counters& joined = joiner_.counters();
    counters_.tun_writes.set(joined.writes);
    counters_.joined.set(joined.packets);
    counters_.bad_checksums.set(joined.bad_checksums);
}

}  // namespace dael::vpn
