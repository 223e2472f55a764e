// SPDX-License-Identifier: Apache-2.0
#include "vpn/path/tun.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace dael::vpn::path {
namespace {

// Linux 6.2's, which headers of before do not have.
constexpr unsigned kUso4 = 0x20, kUso6 = 0x40;

Error fault(const std::string& what) {
    return {Code::io, what + ": " + std::strerror(errno)};
}

// Takes as much as the kernel takes: first all, then less and less.
Offloads set_offloads(int fd, const TunOptions& options) {
    Offloads some;
    some.vnet_header = true;
    struct Step {
        bool tcp, ecn, udp;
    };
    const Step steps[] = {{options.tcp, options.tcp_ecn, options.udp},
                          {options.tcp, false, options.udp},
                          {options.tcp, options.tcp_ecn, false},
                          {options.tcp, false, false},
                          {false, false, false}};
    for (const Step& step : steps) {
        unsigned flags = TUN_F_CSUM;
        if (step.tcp) flags |= TUN_F_TSO4 | TUN_F_TSO6;
        if (step.tcp && step.ecn) flags |= TUN_F_TSO_ECN;
        if (step.udp) flags |= kUso4 | kUso6;
        if (ioctl(fd, TUNSETOFFLOAD, flags) < 0) continue;
        some.checksum = true;
        some.tcp4 = some.tcp6 = step.tcp;
        some.tcp_ecn = step.tcp && step.ecn;
        some.udp = step.udp;
        return some;
    }
    ioctl(fd, TUNSETOFFLOAD, 0u);
    return some;
}

bool good_name(const std::string& name) {
    if (name.empty() || name.size() >= IFNAMSIZ || name == "." || name == "..") return false;
    return std::ranges::all_of(name, [](char c) { return c > ' ' && c < 127 && c != '/'; });
}

}  // namespace

Result<Tun> Tun::open(const TunOptions& options) {
    if (!good_name(options.name) || options.queues == 0 || options.queues > 256)
        return Error{Code::invalid_argument,
                     "an interface has a name of 1 to 15 characters without spaces or slashes, and "
                     "1 to 256 queues"};
    Tun tun;
    ifreq request{};
    std::memcpy(request.ifr_name, options.name.data(), options.name.size());
    unsigned features = 0, queues = options.queues;
    for (unsigned i = 0; i < queues; ++i) {
        TunQueue queue(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), {});
        if (queue.fd() < 0) return fault("/dev/net/tun cannot be opened");
        if (i == 0 && ioctl(queue.fd(), TUNGETFEATURES, &features) < 0)
            return fault("/dev/net/tun does not say what it can");
        if ((features & IFF_MULTI_QUEUE) == 0) queues = 1;
        unsigned flags = IFF_TUN | IFF_NO_PI;
        if (options.vnet_header) flags |= features & IFF_VNET_HDR;
        if (queues > 1) flags |= IFF_MULTI_QUEUE;
        // The first makes the interface: one that is there already is somebody's.
        if (i == 0) flags |= IFF_TUN_EXCL;
        request.ifr_flags = static_cast<short>(flags);
        if (ioctl(queue.fd(), TUNSETIFF, &request) < 0)
            return fault("the TUN interface \"" + std::string(request.ifr_name) +
                         "\" cannot be made");
        // Offloads are the interface's, headers each queue's.
        if (i == 0 && (flags & IFF_VNET_HDR) != 0)
            tun.offloads_ = set_offloads(queue.fd(), options);
        tun.queues_.emplace_back(std::exchange(queue.fd_, -1), tun.offloads_);
    }
    tun.name_ = request.ifr_name;
    tun.index_ = if_nametoindex(request.ifr_name);
    if (tun.index_ == 0) return fault("the interface \"" + tun.name_ + "\" is gone again");
    return tun;
}

TunQueue::TunQueue(TunQueue&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), offloads_(other.offloads_) {}

TunQueue::~TunQueue() {
    if (fd_ >= 0) close(fd_);
}

TunQueue::Got TunQueue::read(VnetHeader& header, std::span<std::uint8_t> packet) noexcept {
    header = {};
    iovec parts[2] = {{&header, sizeof header}, {packet.data(), packet.size()}};
    const std::size_t before = offloads_.vnet_header ? sizeof header : 0;
    ssize_t n;
    do n = before != 0 ? readv(fd_, parts, 2) : ::read(fd_, packet.data(), packet.size());
    while (n < 0 && errno == EINTR);
    if (n < 0) return {0, errno};
    if (static_cast<std::size_t>(n) <= before) return {0, EIO};
    return {static_cast<std::size_t>(n) - before, 0};
}

int TunQueue::write(std::span<const iovec> parts) noexcept {
    ssize_t n;
    do n = writev(fd_, parts.data(), static_cast<int>(parts.size()));
    while (n < 0 && errno == EINTR);
    return n < 0 ? errno : 0;
}

int TunQueue::write(std::span<const std::uint8_t> packet) noexcept {
    VnetHeader header{};
    const iovec parts[2] = {{&header, sizeof header},
                            {const_cast<std::uint8_t*>(packet.data()), packet.size()}};
    return write(std::span<const iovec>(parts).subspan(offloads_.vnet_header ? 0 : 1));
}

}  // namespace dael::vpn::path
