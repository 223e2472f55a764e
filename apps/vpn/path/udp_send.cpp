// SPDX-License-Identifier: Apache-2.0
// How datagrams leave: in one piece that the kernel cuts, else many by one call, else one by one.
#include <netinet/udp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vpn/path/batch.hpp"
#include "vpn/path/udp_state.hpp"

namespace dael::vpn::path {
namespace {

using Piece = std::span<const std::uint8_t>;

// Receiver, and what is said beside the data: whence, TOS, and the size of segments.
class Envelope {
  public:
    Envelope(const Route& route, std::uint8_t tos, bool six)
        : size_(route.remote.to_socket(name_, six)) {
        const bool v6 = route.remote.address.family == 6;
        // (Whence must be of the same family.)
        if (route.local.family == 6 && v6) {
            in6_pktinfo info{};
            std::memcpy(&info.ipi6_addr, route.local.bytes.data(), 16);
            info.ipi6_ifindex = route.interface;
            put(SOL_IPV6, IPV6_PKTINFO, &info, sizeof info);
        } else if (v6 && route.interface != 0) {
            in6_pktinfo info{};
            info.ipi6_ifindex = route.interface;
            put(SOL_IPV6, IPV6_PKTINFO, &info, sizeof info);
        } else if (!v6 && (route.local.family == 4 || route.interface != 0)) {
            in_pktinfo info{};
            if (route.local.family == 4)
                std::memcpy(&info.ipi_spec_dst, route.local.bytes.data(), 4);
            info.ipi_ifindex = static_cast<int>(route.interface);
            put(SOL_IP, IP_PKTINFO, &info, sizeof info);
        }
        if (tos != 0) {
            const int value = tos;
            put(v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TCLASS : IP_TOS, &value, sizeof value);
        }
        common_ = used_;
    }

    // For pieces of `segment` bytes in one; 0: one datagram.
    void address(msghdr& header, std::uint16_t segment = 0) {
        used_ = common_;
        if (segment != 0) put(SOL_UDP, UDP_SEGMENT, &segment, sizeof segment);
        header.msg_name = &name_, header.msg_namelen = size_;
        header.msg_control = used_ != 0 ? control_ : nullptr, header.msg_controllen = used_;
    }

  private:
    void put(int level, int type, const void* value, std::size_t size) {
        cmsghdr header{};
        header.cmsg_level = level, header.cmsg_type = type, header.cmsg_len = CMSG_LEN(size);
        std::memset(control_ + used_, 0, CMSG_SPACE(size));
        std::memcpy(control_ + used_, &header, sizeof header);
        std::memcpy(control_ + used_ + CMSG_LEN(0), value, size);
        used_ += CMSG_SPACE(size);
    }

    sockaddr_in6 name_;
    socklen_t size_;
    std::size_t used_ = 0, common_ = 0;
    alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(int)) +
                                   CMSG_SPACE(sizeof(std::uint16_t))];
};

// One sending: the socket, where to, and what became of it.
class Sending {
  public:
    Sending(Udp::State& state, Route& route, std::uint8_t tos)
        : s_(state), route_(route), tos_(tos), envelope_(route, tos, state.six) {}

    // Pieces that lie one behind the other.
    void run(std::span<const Piece> pieces) {
        if (pieces.empty()) return;
        if (pieces.size() > 1 && s_.gso.load(std::memory_order_relaxed)) {
            if (whole(pieces)) return;
            const std::size_t before = result.packets;
            const Address source = route_.local;
            apart(pieces);
            // Not for this batch, nor for where it was to leave from, and each alone does go: this
            // kernel, or the device below, cannot. (EINVAL is of the batch: in older kernels it
            // was the word for pieces that are too long for the path, where EMSGSIZE is now.)
            if (refusal_ != EMSGSIZE && refusal_ != EINVAL && source == route_.local &&
                result.packets - before == pieces.size())
                s_.gso.store(false, std::memory_order_relaxed);
            return;
        }
        apart(pieces);
    }

    Udp::Sent result;

  private:
    // True: done with, sent or lost. False: it is worth trying each alone.
    bool whole(std::span<const Piece> pieces) {
        std::size_t bytes = 0;
        for (const Piece& piece : pieces) bytes += piece.size();
        iovec part{const_cast<std::uint8_t*>(pieces[0].data()), bytes};
        while (true) {
            msghdr header{};
            header.msg_iov = &part, header.msg_iovlen = 1;
            envelope_.address(header, static_cast<std::uint16_t>(pieces[0].size()));
            s_.send_calls.add(1);
            if (sendmsg(s_.fd, &header, MSG_DONTWAIT) >= 0) {
                went(pieces.size(), bytes);
                return true;
            }
            const int error = errno;
            if (error == EINVAL || error == EMSGSIZE || error == EIO || error == EOPNOTSUPP ||
                error == ENOPROTOOPT) {
                s_.gso_refused.add(1);
                refusal_ = error;
                return false;
            }
            if (next(error) == Next::again) continue;
            for (std::size_t i = 0; i < pieces.size(); ++i) lose(error);
            return true;
        }
    }

    void apart(std::span<const Piece> pieces) {
        constexpr std::size_t kMost = 64;
        mmsghdr messages[kMost];
        iovec parts[kMost];
        while (!pieces.empty()) {
            const std::size_t count = s_.many ? std::min(pieces.size(), kMost) : 1;
            for (std::size_t i = 0; i < count; ++i) {
                parts[i] = {const_cast<std::uint8_t*>(pieces[i].data()), pieces[i].size()};
                messages[i] = {};
                messages[i].msg_hdr.msg_iov = &parts[i], messages[i].msg_hdr.msg_iovlen = 1;
                envelope_.address(messages[i].msg_hdr);
            }
            s_.send_calls.add(1);
            const int done = sendmmsg(s_.fd, messages, static_cast<unsigned>(count), MSG_DONTWAIT);
            const int error = errno;
            if (done > 0) {
                const auto sent = static_cast<std::size_t>(done);
                std::size_t bytes = 0;
                for (std::size_t i = 0; i < sent; ++i) bytes += pieces[i].size();
                went(sent, bytes);
                pieces = pieces.subspan(sent);
            } else if (next(error) == Next::lost) {
                lose(error);
                pieces = pieces.subspan(1);
            }
        }
    }

    enum class Next { again, lost };
    Next next(int error) {
        if (error == EINTR) return Next::again;
        if (error == EAGAIN && patience_ > 0) {
            pollfd p{s_.fd, POLLOUT, 0};
            // Once for all that is sent by this call.
            const int ready = poll(&p, 1, patience_);
            patience_ = ready > 0 ? patience_ - 1 : 0;
            return Next::again;
        }
        // The address that we were asked at may have left this machine, with its routes.
        if ((error == EINVAL || error == EADDRNOTAVAIL || error == ENETUNREACH ||
             error == ENODEV) &&
            route_.local.family != 0) {
            route_.local = {};
            if (route_.remote.scope == 0) route_.interface = 0;
            envelope_ = Envelope(route_, tos_, s_.six);
            s_.source_gone.add(1);
            return Next::again;
        }
        return Next::lost;
    }

    void went(std::size_t packets, std::size_t bytes) {
        result.packets += packets;
        result.bytes += bytes;
        s_.sent.add(packets);
        s_.send_bytes.add(bytes);
    }
    void lose(int error) {
        result.error = error;
        s_.lost.add(1);
        s_.last_error.store(error, std::memory_order_relaxed);
        if (error == EAGAIN) s_.full.add(1);
        if (error == EMSGSIZE) {
            ++result.too_big;
            s_.too_big.add(1);
        }
    }

    Udp::State& s_;
    Route& route_;
    std::uint8_t tos_;
    Envelope envelope_;
    int patience_ = Udp::kPatience;
    int refusal_ = 0;
};

}  // namespace

Udp::Sent Udp::send(std::span<const esp::Packet> packets, Route& route, std::uint8_t tos) {
    Sending sending(*state_, route, tos);
    Piece pieces[Batch::kMostSegments];
    std::size_t count = 0, bytes = 0;
    const auto flush = [&] {
        sending.run({pieces, count});
        count = bytes = 0;
    };
    for (const esp::Packet& packet : packets) {
        if (packet.verdict != esp::Verdict::ok) continue;
        const Piece piece(packet.buffer + packet.offset, packet.size);
        if (count != 0) {
            const Piece& last = pieces[count - 1];
            const bool goes_on = last.data() + last.size() == piece.data() &&
                                 last.size() == pieces[0].size() &&
                                 piece.size() <= pieces[0].size() && !piece.empty();
            if (!goes_on || count == Batch::kMostSegments ||
                bytes + piece.size() > Batch::kMostBytes)
                flush();
        }
        pieces[count++] = piece;
        bytes += piece.size();
    }
    flush();
    return sending.result;
}

Udp::Sent Udp::send(std::span<const std::uint8_t> datagram, Route& route, std::uint8_t tos) {
    Sending sending(*state_, route, tos);
    sending.run({&datagram, 1});
    return sending.result;
}

}  // namespace dael::vpn::path
