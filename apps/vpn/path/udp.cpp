// SPDX-License-Identifier: Apache-2.0
// The socket itself, and what it takes; sending is in udp_send.cpp.
#include "vpn/path/udp.hpp"

#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <openssl/crypto.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "vpn/path/filter.hpp"
#include "vpn/path/udp_state.hpp"

namespace dael::vpn::path {
namespace {

// What SO_RCVBUF's limit would not allow is forced, where we may.
void set_buffer(int fd, int forced, int asked, std::uint32_t bytes) {
    const int size = static_cast<int>(std::min<std::uint32_t>(bytes, 1u << 30));
    if (setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size) < 0)
        setsockopt(fd, SOL_SOCKET, asked, &size, sizeof size);
}

bool set(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// Null: bound. Else what failed, with errno.
const char* prepare(Udp::State& s, const UdpOptions& options) {
    const int fd = s.fd;
    // What comes with each datagram. On a socket of both families each needs its own.
    if (!set(fd, SOL_IP, IP_PKTINFO, 1) || !set(fd, SOL_IP, IP_RECVTOS, 1)) return "options";
    if (s.six) {
        const bool both = options.bind.address.family == 0;
        if (!set(fd, SOL_IPV6, IPV6_V6ONLY, both ? 0 : 1)) return "IPV6_V6ONLY";
        if (!set(fd, SOL_IPV6, IPV6_RECVPKTINFO, 1) || !set(fd, SOL_IPV6, IPV6_RECVTCLASS, 1))
            return "options";
    }
    // In IPv4 routers may fragment where we may; in IPv6 we do, by what they say.
    const bool fragments = options.fragments;
    set(fd, SOL_IP, IP_MTU_DISCOVER, fragments ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
    if (s.six)
        set(fd, SOL_IPV6, IPV6_MTU_DISCOVER, fragments ? IPV6_PMTUDISC_WANT : IPV6_PMTUDISC_DO);
    if (options.share_port && !set(fd, SOL_SOCKET, SO_REUSEPORT, 1)) return "SO_REUSEPORT";
    if (options.mark != 0 && !set(fd, SOL_SOCKET, SO_MARK, static_cast<int>(options.mark)))
        return "SO_MARK";
    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, options.buffer);
    set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, options.buffer);
    s.gro = options.gro && options.many && set(fd, SOL_UDP, UDP_GRO, 1);
    // 0 is what it is anyway: a kernel that knows the option takes it.
    s.gso = options.gso && options.many && set(fd, SOL_UDP, UDP_SEGMENT, 0);

    sockaddr_in6 name;
    const socklen_t size = options.bind.to_socket(name, s.six);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&name), size) < 0) return "bind";
    sockaddr_in6 bound{};
    socklen_t length = sizeof bound;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) < 0) return "getsockname";
    s.port = Endpoint::from_socket(bound).port;
    return nullptr;
}

void make_room(Udp::State& s, const UdpOptions& options) {
    const std::size_t count = options.many ? std::max(options.messages, 1u) : 1;
    s.room = s.gro ? 65536 : std::max(options.largest, 64u);
    s.buffer = std::make_unique_for_overwrite<std::uint8_t[]>(count * s.room);
    s.touched.resize(count);
    s.messages.resize(count);
    s.parts.resize(count);
    s.names.resize(count);
    s.controls.resize(count);
    s.datagrams.resize(count);
}

}  // namespace

Udp::State::~State() {
    for (std::size_t i = 0; i < touched.size(); ++i)
        OPENSSL_cleanse(buffer.get() + i * room, touched[i]);
    if (fd >= 0) close(fd);
}

Udp::Udp(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Udp::Udp(Udp&&) noexcept = default;
Udp& Udp::operator=(Udp&&) noexcept = default;
Udp::~Udp() = default;

Result<Udp> Udp::open(const UdpOptions& options) {
    const std::uint8_t family = options.bind.address.family;
    std::string failed;
    for (const bool six : {true, false}) {
        if (family == (six ? 4 : 6)) continue;
        auto state = std::make_unique<State>();
        state->six = six;
        state->many = options.many;
        state->fd = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const char* const what = state->fd < 0 ? "socket" : prepare(*state, options);
        if (what == nullptr) {
            make_room(*state, options);
            return Udp(std::move(state));
        }
        // Without IPv6 (in the kernel, or on this machine) IPv4 is left.
        const int error = errno;
        failed = std::string(what) + ": " + std::strerror(error);
        if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) break;
    }
    return Error{Code::io, "the UDP port " + std::to_string(options.bind.port) +
                               (family != 0 ? " of " + options.bind.address.text() : "") +
                               " cannot be opened: " + failed};
}

int Udp::fd() const noexcept {
    return state_->fd;
}
std::uint16_t Udp::port() const noexcept {
    return state_->port;
}
bool Udp::gso() const noexcept {
    return state_->gso.load(std::memory_order_relaxed);
}
bool Udp::gro() const noexcept {
    return state_->gro;
}
bool Udp::six() const noexcept {
    return state_->six;
}

namespace {

void read_control(msghdr& header, Datagrams& d) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        int value = 0;
        const std::size_t size = c->cmsg_len - CMSG_LEN(0);
        const auto is = [&](int level, int type, std::size_t least) {
            return c->cmsg_level == level && c->cmsg_type == type && size >= least;
        };
        if (is(SOL_UDP, UDP_GRO, 2)) {  // an int; of two bytes in the first kernels
            std::memcpy(&value, CMSG_DATA(c), std::min(size, sizeof value));
            if (value > 0 && static_cast<std::uint32_t>(value) < d.size)
                d.segment = static_cast<std::uint32_t>(value);
        } else if (is(SOL_IP, IP_TOS, 1)) {
            d.tos = *CMSG_DATA(c);
        } else if (is(SOL_IPV6, IPV6_TCLASS, sizeof value)) {
            std::memcpy(&value, CMSG_DATA(c), sizeof value);
            d.tos = static_cast<std::uint8_t>(value);
        } else if (is(SOL_IP, IP_PKTINFO, sizeof(in_pktinfo))) {
            in_pktinfo info;
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            d.route.local.family = 4;
            std::memcpy(d.route.local.bytes.data(), &info.ipi_spec_dst, 4);
            d.interface = static_cast<std::uint32_t>(info.ipi_ifindex);
        } else if (is(SOL_IPV6, IPV6_PKTINFO, sizeof(in6_pktinfo)) &&
                   d.route.remote.address.family == 6) {
            // (On a socket of both families it comes for IPv4, too, mapped.)
            in6_pktinfo info;
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            d.route.local.family = 6;
            std::memcpy(d.route.local.bytes.data(), &info.ipi6_addr, 16);
            d.interface = info.ipi6_ifindex;
            if (d.route.remote.scope != 0) d.route.interface = info.ipi6_ifindex;
        }
    }
}

}  // namespace

std::span<Datagrams> Udp::receive() {
    State& s = *state_;
    const std::size_t count = s.messages.size();
    for (std::size_t i = 0; i < count; ++i) {
        s.parts[i] = {s.buffer.get() + i * s.room, s.room};
        msghdr& h = s.messages[i].msg_hdr;
        h = {};
        h.msg_name = &s.names[i], h.msg_namelen = sizeof s.names[i];
        h.msg_iov = &s.parts[i], h.msg_iovlen = 1;
        h.msg_control = s.controls[i].bytes, h.msg_controllen = sizeof s.controls[i].bytes;
    }
    int got;
    do got = recvmmsg(s.fd, s.messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT, nullptr);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return {};
    s.receive_calls.add(1);
    std::size_t n = 0;
    for (int i = 0; i < got; ++i) {
        const auto at = static_cast<std::size_t>(i);
        mmsghdr& m = s.messages[at];
        s.touched[at] =
            std::max<std::size_t>(s.touched[at], std::min<std::size_t>(m.msg_len, s.room));
        if ((m.msg_hdr.msg_flags & MSG_TRUNC) != 0) {
            s.cut_short.add(1);
            continue;
        }
        if (m.msg_len == 0) continue;
        Datagrams& d = s.datagrams[n++];
        d = {};
        d.data = static_cast<std::uint8_t*>(s.parts[at].iov_base);
        d.size = d.segment = m.msg_len;
        d.route.remote = Endpoint::from_socket(s.names[at]);
        read_control(m.msg_hdr, d);
        s.received.add(d.count());
        s.receive_bytes.add(d.size);
    }
    return {s.datagrams.data(), n};
}

bool Udp::admit(std::uint16_t mark, std::span<const Address> guests) {
    if (guests.size() <= kMostGuests) {
        std::vector<sock_filter> steps = filter_for(mark, guests);
        const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
        if (setsockopt(state_->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0)
            return true;
    }
    set(state_->fd, SOL_SOCKET, SO_DETACH_FILTER, 0);  // what names other guests
    return false;
}

bool Udp::takes_filter() const noexcept {
    sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
    const sock_fprog program{1, &all};
    return setsockopt(state_->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 &&
           set(state_->fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
}

std::uint64_t Udp::dropped() const noexcept {
    std::uint32_t values[SK_MEMINFO_VARS] = {};
    socklen_t size = sizeof values;
    if (getsockopt(state_->fd, SOL_SOCKET, SO_MEMINFO, values, &size) != 0 ||
        size <= SK_MEMINFO_DROPS * sizeof values[0])
        return 0;
    return values[SK_MEMINFO_DROPS];
}

Udp::Counters Udp::counters() const noexcept {
    const State& s = *state_;
    return {.sent = s.sent.get(),
            .send_calls = s.send_calls.get(),
            .send_bytes = s.send_bytes.get(),
            .lost = s.lost.get(),
            .too_big = s.too_big.get(),
            .full = s.full.get(),
            .gso_refused = s.gso_refused.get(),
            .source_gone = s.source_gone.get(),
            .received = s.received.get(),
            .receive_calls = s.receive_calls.get(),
            .receive_bytes = s.receive_bytes.get(),
            .cut_short = s.cut_short.get(),
            .last_error = s.last_error.load(std::memory_order_relaxed)};
}

}  // namespace dael::vpn::path
