// SPDX-License-Identifier: Apache-2.0
// The roof of the tunnel: the same interface, the same cutting, joining and batches, the same UDP,
// and packets as they are in it. No encryption, no peers, no policy: for measuring, in namespaces
// of one's own, and for nothing else, since whoever reaches its port reaches the host behind it.
//
//     vpn_roof INTERFACE PORT PEER:PORT ADDRESS/LENGTH MTU
//
// Says "INTERFACE is up" on standard error, and runs until a signal ends it.
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "vpn/path/batch.hpp"
#include "vpn/path/cutter.hpp"
#include "vpn/path/joiner.hpp"
#include "vpn/path/mend.hpp"
#include "vpn/path/netlink.hpp"
#include "vpn/path/tun.hpp"
#include "vpn/path/udp.hpp"

namespace dael::vpn::path {
namespace {

// As vpn/loop.hpp and vpn/run.cpp have them.
constexpr int kReads = 16, kReceives = 4;
constexpr std::uint32_t kMessages = 32;

struct Options {
    std::string interface;
    std::uint16_t port = 0;
    Endpoint peer;
    Prefix address;
    std::uint32_t mtu = 0;
};

class Roof {
  public:
    Roof(TunQueue& tun, Udp& udp, const Endpoint& peer)
        : tun_(tun), udp_(udp), joiner_(tun.offloads()) {
        route_.remote = peer;
    }

    // Until the interface is gone.
    void run() {
        while (true) {
            bool busy = from_tun();
            if (gone_) return;
            busy = from_udp() || busy;
            if (busy) continue;
            pollfd ready[] = {{tun_.fd(), POLLIN, 0}, {udp_.fd(), POLLIN, 0}};
            (void)::poll(ready, std::size(ready), -1);
        }
    }

  private:
    bool from_tun() {
        bool any = false;
        for (int i = 0; i < kReads; ++i) {
            VnetHeader header;
            const auto got = tun_.read(header, {read_.get(), TunQueue::kMostPacket});
            if (got.error != 0) {
                gone_ = got.error == EBADFD;
                break;
            }
            any = true;
            const Cutter cut(header, {read_.get(), got.size});
            if (cut.fault() != Cutter::Fault::none) continue;
            for (std::size_t k = 0; k < cut.count();) {
                k = cut.lay(k, batch_, outer_tos(cut.ip().tos, false));
                if (k < cut.count()) flush();
            }
        }
        flush();
        return any;
    }
    void flush() {
        if (batch_.empty()) return;
        (void)udp_.send(batch_.packets(), route_, batch_.tos());
        batch_.clear();
    }
    bool from_udp() {
        bool any = false;
        for (int i = 0; i < kReceives; ++i) {
            const std::span<Datagrams> came = udp_.receive();
            if (came.empty()) break;
            any = true;
            for (const Datagrams& each : came)
                for (std::uint32_t at = 0; at < each.size; at += each.segment)
                    deliver({each.data + at, std::min(each.segment, each.size - at)});
            write();
        }
        return any;
    }
    void deliver(std::span<std::uint8_t> packet) {
        const auto ip = inet::parse(packet);
        if (!ip || ip->size != packet.size() || joiner_.add(packet)) return;
        write();
        (void)joiner_.add(packet);
    }
    void write() {
        joiner_.flush([this](std::span<const iovec> parts) { (void)tun_.write(parts); });
    }

    TunQueue& tun_;
    Udp& udp_;
    Route route_;
    Batch batch_{kPlainWire};
    Joiner joiner_;
    std::unique_ptr<std::uint8_t[]> read_ = std::make_unique<std::uint8_t[]>(TunQueue::kMostPacket);
    bool gone_ = false;
};

Result<> run(const Options& options) {
    UdpOptions socket;
    socket.bind.port = options.port;
    socket.messages = kMessages;
    DAEL_LET(udp, Udp::open(socket));
    DAEL_LET(netlink, Netlink::open());
    TunOptions interface;
    interface.name = options.interface;
    DAEL_LET(tun, Tun::open(interface));
    DAEL_TRY(netlink.set_mtu(tun.index(), options.mtu));
    const auto most = static_cast<std::uint32_t>(
        std::min(Batch::kMostSegments, Batch::kMostBytes / kPlainWire.size(options.mtu)));
    (void)netlink.set_gso_limits(tun.index(), most);
    DAEL_TRY(netlink.add_address(tun.index(), options.address));
    DAEL_TRY(netlink.set_up(tun.index()));
    std::fprintf(stderr, "%s is up\n", tun.name().c_str());
    Roof(tun.queues()[0], udp, options.peer).run();
    return Error{Code::io, "the interface was deleted"};
}

template <class Number>
bool read(std::string_view text, Number& to) {
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), to);
    return fault == std::errc() && end == text.data() + text.size();
}

}  // namespace
}  // namespace dael::vpn::path

int main(int argc, char** argv) {
    using namespace dael::vpn::path;
    Options options;
    const auto peer = argc == 6 ? Endpoint::parse(argv[3]) : std::nullopt;
    const auto address = argc == 6 ? Prefix::parse(argv[4]) : std::nullopt;
    if (!peer || !address || !read(argv[2], options.port) || !read(argv[5], options.mtu) ||
        options.mtu < 576 || options.mtu > 9000) {
        std::fprintf(stderr, "usage: vpn_roof INTERFACE PORT PEER:PORT ADDRESS/LENGTH MTU\n");
        return 2;
    }
    options.interface = argv[1];
    options.peer = *peer;
    options.address = *address;
    const auto done = run(options);
    std::fprintf(stderr, "vpn_roof: %s\n", done.error().message.c_str());
    return 1;
}
