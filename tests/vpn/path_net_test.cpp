// SPDX-License-Identifier: Apache-2.0
// TUN, UDP and rtnetlink as the kernel has them, in a network namespace of each case's own.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "support/bytes.hpp"
#include "support/thorough.hpp"
#include "vpn/path/batch.hpp"
#include "vpn/path/cutter.hpp"
#include "vpn/path/joiner.hpp"
#include "vpn/path/mend.hpp"
#include "vpn/path/netlink.hpp"
#include "vpn/path/tun.hpp"
#include "vpn/path/udp.hpp"

namespace {

namespace esp = dael::esp;
using dael::Code;
using namespace dael::test;
using namespace dael::vpn;
using namespace dael::vpn::path;

template <class T>
T must(dael::Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
}
void must(dael::Result<> result) {
    if (!result) throw std::runtime_error(result.error().message);
}

constexpr unsigned kLoopback = 1;  // its index, in every namespace

// What the case makes is gone with its namespace.
class VpnNet : public testing::Test {
  protected:
    void SetUp() override {
        if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0)
            GTEST_SKIP() << "network namespaces need root";
        if (access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "there is no /dev/net/tun";
        auto netlink = Netlink::open();
        if (!netlink && netlink.code() == Code::unsupported) GTEST_SKIP() << "no libmnl";
        netlink_.emplace(must(std::move(netlink)));
        must(netlink_->set_up(kLoopback));
    }
    // TUN with 10.9.0.1 and fd09::1 on it, up.
    Tun tun(const TunOptions& options = {}) {
        Tun tun = must(Tun::open(options));
        must(netlink_->set_mtu(tun.index(), 1400));
        must(netlink_->add_address(tun.index(), *Prefix::parse("10.9.0.1/24")));
        must(netlink_->add_address(tun.index(), *Prefix::parse("fd09::1/64")));
        must(netlink_->set_up(tun.index()));
        in_use("fd09::1");
        return tun;
    }
    // What comes for an address of IPv6 before it is in use is dropped.
    void in_use(const char* address) {
        for (int i = 0; i < 10000 && !must(netlink_->way_to(*Address::parse(address))).here; ++i)
            usleep(1000);
    }
    std::optional<Netlink> netlink_;
};

// A plain socket, closed in the end.
struct Socket {
    int fd;
    Socket(int family, int type) : fd(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        if (fd < 0) throw std::runtime_error("socket");
    }
    explicit Socket(int taken) : fd(taken) {}
    Socket(Socket&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
    ~Socket() {
        if (fd >= 0) close(fd);
    }
    sockaddr_in6 name_of(const char* endpoint, socklen_t& size) const {
        sockaddr_in6 name;
        size = Endpoint::parse(endpoint)->to_socket(name, false);
        return name;
    }
    void bind(const char* endpoint) const {
        socklen_t size;
        const auto name = name_of(endpoint, size);
        if (::bind(fd, reinterpret_cast<const sockaddr*>(&name), size) != 0)
            throw std::runtime_error(std::string("bind: ") + std::strerror(errno));
    }
    int connect(const char* endpoint) const {
        socklen_t size;
        const auto name = name_of(endpoint, size);
        return ::connect(fd, reinterpret_cast<const sockaddr*>(&name), size) == 0 ? 0 : errno;
    }
    bool readable(int milliseconds = 10000) const {
        pollfd p{fd, POLLIN, 0};
        return poll(&p, 1, milliseconds) > 0;
    }
};

bool readable(int fd, int milliseconds = 10000) {
    pollfd p{fd, POLLIN, 0};
    return poll(&p, 1, milliseconds) > 0;
}

// ---- TUN

TEST_F(VpnNet, TunComesAndGoes) {
    unsigned index;
    {
        Tun one = must(Tun::open({}));
        EXPECT_EQ(one.name(), "dael0");
        EXPECT_EQ(must(Tun::open({})).name(), "dael1");
        index = one.index();
        EXPECT_EQ(must(netlink_->link(index)).name, "dael0");
        EXPECT_EQ(one.queues().size(), 1u);
        // Somebody's already.
        EXPECT_EQ(Tun::open({.name = "dael0"}).code(), Code::io);
        EXPECT_EQ(Tun::open({.name = "lo"}).code(), Code::io);
    }
    EXPECT_FALSE(netlink_->link(index));
    for (const char* name : {"", ".", "..", "a/b", "a b", "sixteen-letters-", "\x7f"})
        EXPECT_EQ(Tun::open({.name = name}).code(), Code::invalid_argument) << name;
    EXPECT_EQ(Tun::open({.queues = 0}).code(), Code::invalid_argument);
    Tun many = must(Tun::open({.name = "many", .queues = 3}));
    EXPECT_EQ(many.queues().size(), 3u);
    EXPECT_EQ(Tun::open({.name = "many", .queues = 3}).code(), Code::io);
}

TEST_F(VpnNet, TunGoesWithAProcessThatIsKilled) {
    int ready[2];
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        auto mine = Tun::open({.name = "killed"});
        if (!mine) _exit(1);
        char byte = 1;
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        while (true) pause();
    }
    close(ready[1]);
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    EXPECT_NE(if_nametoindex("killed"), 0u);
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_EQ(if_nametoindex("killed"), 0u);
}

TEST_F(VpnNet, EachOffloadHasASwitch) {
    const Offloads all = must(Tun::open({})).offloads();
    EXPECT_TRUE(all.vnet_header && all.checksum && all.tcp4 && all.tcp6);
    EXPECT_EQ(must(Tun::open({.vnet_header = false})).offloads(), Offloads{});
    Offloads some = all;
    some.udp = false;
    EXPECT_EQ(must(Tun::open({.udp = false})).offloads(), some);
    some = all, some.tcp_ecn = false;
    EXPECT_EQ(must(Tun::open({.tcp_ecn = false})).offloads(), some);
    some = all, some.tcp4 = some.tcp6 = some.tcp_ecn = false;
    EXPECT_FALSE(must(Tun::open({.tcp = false})).offloads().tcp4);
}

// Packets for 10.9.0.2 come back as if from there: addresses change places, which leaves every
// checksum right. So a host talks to itself, through all of the path but the network.
class Mirror {
  public:
    explicit Mirror(TunQueue& queue)
        : queue_(queue), joiner_(queue.offloads()), batch_(kPlainWire) {
        buffer_.resize(TunQueue::kMostPacket);
    }
    // What is there. False: nothing.
    bool pump() {
        bool any = false;
        for (int i = 0; i < 8; ++i) {
            VnetHeader header;
            const auto got = queue_.read(header, buffer_);
            if (got.error != 0) {
                EXPECT_EQ(got.error, EAGAIN);
                break;
            }
            any = true;
            const std::span packet(buffer_.data(), got.size);
            const Cutter cutter(header, packet);
            EXPECT_EQ(cutter.fault(), Cutter::Fault::none);
            if (cutter.fault() != Cutter::Fault::none) return false;
            if (header.gso_type != 0) ++supers;
            ++reads;
            for (std::size_t k = 0; k < cutter.count();) {
                k = cutter.lay(k, batch_, 0);
                back(cutter.is_syn());
            }
        }
        return any;
    }

    std::size_t reads = 0, supers = 0, segments = 0, failed = 0;
    std::size_t clamp = 0;    // SYNs to what fits this MTU; 0: not
    std::size_t longest = 0;  // of segments
    std::uint64_t writes() const { return joiner_.counters().writes; }
    std::uint64_t bad() const { return joiner_.counters().bad_checksums; }

  private:
    void back(bool syn) {
        for (const auto& p : batch_.packets()) {
            const std::span packet(p.buffer + p.offset, p.size);
            ++segments;
            longest = std::max(longest, packet.size());
            const bool six = packet[0] >> 4 == 6;
            if (six && packet[24] == 0xff) continue;  // what a host says to many, at the start
            if (syn && clamp != 0) clamp_mss(packet, clamp);
            std::swap_ranges(&packet[six ? 8 : 12], &packet[six ? 24 : 16], &packet[six ? 24 : 16]);
            if (!joiner_.add(packet)) {
                write();
                joiner_.add(packet);
            }
        }
        write();
        batch_.clear();
    }
    void write() {
        joiner_.flush([&](std::span<const iovec> parts) { failed += queue_.write(parts) != 0; });
    }
    TunQueue& queue_;
    Joiner joiner_;
    Batch batch_;
    Bytes buffer_;
};

struct Connection {
    Socket client, server;
};

// TCP from 10.9.0.1 to itself, by the mirror.
Connection connected(Mirror& mirror, bool six, int tun) {
    const int family = six ? AF_INET6 : AF_INET;
    Socket listener(family, SOCK_STREAM), client(family, SOCK_STREAM);
    static int used = 0;  // what is over keeps its port for a minute
    const std::string port = std::to_string(5000 + used++);
    listener.bind(((six ? "[fd09::1]:" : "10.9.0.1:") + port).c_str());
    if (listen(listener.fd, 1) != 0) throw std::runtime_error("listen");
    if (client.connect(((six ? "[fd09::2]:" : "10.9.0.2:") + port).c_str()) != EINPROGRESS)
        throw std::runtime_error("connect");
    while (true) {
        mirror.pump();
        const int server = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (server >= 0) return {std::move(client), Socket(server)};
        if (!readable(tun)) throw std::runtime_error("no connection in ten seconds");
    }
}

void transfer(Mirror& mirror, Connection& way, int tun, std::size_t total) {
    const Bytes sent = pattern(1 << 18, 3);
    Bytes got(1 << 18);
    std::size_t out = 0, in = 0;
    while (in < total) {
        bool any = mirror.pump();
        if (out < total) {
            const std::size_t at = out % sent.size();
            const ssize_t n =
                send(way.client.fd, &sent[at], std::min(sent.size() - at, total - out), 0);
            if (n > 0) out += static_cast<std::size_t>(n), any = true;
        }
        const ssize_t n = recv(way.server.fd, got.data(), got.size(), 0);
        ASSERT_NE(n, 0);
        for (std::size_t done = 0; n > 0 && done < static_cast<std::size_t>(n);) {
            const std::size_t at = in % sent.size();
            const std::size_t k = std::min(static_cast<std::size_t>(n) - done, sent.size() - at);
            ASSERT_EQ(std::memcmp(&got[done], &sent[at], k), 0) << "at " << in;
            in += k, done += k, any = true;
        }
        if (any) continue;
        pollfd p[2] = {{tun, POLLIN, 0}, {way.server.fd, POLLIN, 0}};
        ASSERT_GT(poll(p, 2, 10000), 0) << "nothing moves: " << in << " of " << total;
    }
}

TEST_F(VpnNet, TcpIsCutAndJoined) {
    struct Kind {
        TunOptions options;
        bool joins;
    };
    const Kind kinds[] = {{{}, true},
                          {{.tcp_ecn = false, .udp = false}, true},
                          {{.tcp = false}, false},
                          {{.vnet_header = false}, false}};
    for (const bool six : {false, true})
        for (const Kind& kind : kinds) {
            Tun one = tun(kind.options);
            TunQueue& queue = one.queues()[0];
            Mirror mirror(queue);
            Connection way = connected(mirror, six, queue.fd());
            const std::size_t total = kind.joins ? thorough(20u << 20, 4u << 20) : 2u << 20;
            transfer(mirror, way, queue.fd(), total);
            EXPECT_EQ(mirror.failed, 0u);
            EXPECT_EQ(mirror.bad(), 0u);
            EXPECT_LE(mirror.longest, 1400u);
            if (kind.joins) {
                EXPECT_GT(mirror.supers, 0u);
                EXPECT_GT(mirror.segments, 2 * mirror.writes()) << "hardly anything was joined";
            } else {
                EXPECT_EQ(mirror.supers, 0u);
            }
        }
}

TEST_F(VpnNet, SuperPacketsAreAsLongAsIsAsked) {
    Tun one = tun();
    ASSERT_TRUE(netlink_->set_gso_limits(one.index(), 10));
    EXPECT_EQ(must(netlink_->link(one.index())).gso_max_segs, 10u);
    TunQueue& queue = one.queues()[0];
    Mirror mirror(queue);
    Connection way = connected(mirror, false, queue.fd());
    transfer(mirror, way, queue.fd(), 4 << 20);
    EXPECT_LE(mirror.segments, 10 * mirror.reads);
    EXPECT_GT(mirror.supers, 0u);
}

TEST_F(VpnNet, TcpObeysTheMssThatSynsWereGiven) {
    for (const bool six : {false, true}) {
        Tun one = tun();
        TunQueue& queue = one.queues()[0];
        Mirror mirror(queue);
        mirror.clamp = 900;
        Connection way = connected(mirror, six, queue.fd());
        transfer(mirror, way, queue.fd(), 1 << 20);
        EXPECT_EQ(mirror.longest, 900u);
    }
}

TEST_F(VpnNet, UdpSuperPacketsAreCutAndJoined) {
    for (const bool six : {false, true}) {
        Tun one = tun();
        if (!one.offloads().udp) GTEST_SKIP() << "this kernel's TUN has no USO";
        TunQueue& queue = one.queues()[0];
        Mirror mirror(queue);
        Socket client(six ? AF_INET6 : AF_INET, SOCK_DGRAM);
        Socket server(six ? AF_INET6 : AF_INET, SOCK_DGRAM);
        server.bind(six ? "[fd09::1]:6000" : "10.9.0.1:6000");
        ASSERT_EQ(client.connect(six ? "[fd09::2]:6000" : "10.9.0.2:6000"), 0);
        const int size = 1200;
        ASSERT_EQ(setsockopt(client.fd, SOL_UDP, UDP_SEGMENT, &size, sizeof size), 0);
        const Bytes content = random_bytes(39 * 1200 + 700, 1);
        for (int round = 0; round < 50; ++round) {
            ASSERT_EQ(send(client.fd, content.data(), content.size(), 0),
                      static_cast<ssize_t>(content.size()));
            mirror.pump();
            for (std::size_t at = 0; at < content.size(); at += 1200) {
                ASSERT_TRUE(server.readable()) << "round " << round << " byte " << at;
                Bytes got(2000);
                const ssize_t n = recv(server.fd, got.data(), got.size(), 0);
                ASSERT_EQ(static_cast<std::size_t>(n),
                          std::min<std::size_t>(1200, content.size() - at));
                ASSERT_EQ(std::memcmp(got.data(), &content[at], static_cast<std::size_t>(n)), 0);
            }
        }
        EXPECT_GE(mirror.supers, 50u);
        EXPECT_GE(mirror.segments, 40 * 50u);
        EXPECT_LE(mirror.writes(), 150u);
    }
}

// The kernel believes what we say of packets that are too big.
TEST_F(VpnNet, TooBigIsHeard) {
    for (const bool six : {false, true}) {
        Tun one = tun();
        TunQueue& queue = one.queues()[0];
        Socket client(six ? AF_INET6 : AF_INET, SOCK_DGRAM);
        ASSERT_EQ(client.connect(six ? "[fd09::2]:6000" : "10.9.0.2:6000"), 0);
        const int forbid = six ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO;
        ASSERT_EQ(setsockopt(client.fd, six ? SOL_IPV6 : SOL_IP,
                             six ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &forbid, sizeof forbid),
                  0);
        const Bytes content(1340);
        ASSERT_EQ(send(client.fd, content.data(), content.size(), 0), 1340);
        bool said = false;
        while (!said) {
            ASSERT_TRUE(readable(queue.fd()));
            VnetHeader header;
            Bytes buffer(TunQueue::kMostPacket);
            const auto got = queue.read(header, buffer);
            ASSERT_EQ(got.error, 0);
            std::array<std::uint8_t, kMostTooBig> answer;
            const auto packet = std::span<const std::uint8_t>(buffer).first(got.size);
            if (packet.size() < 1340) continue;
            const std::size_t size =
                too_big(packet, 1300, *Address::parse(six ? "fd09::77" : "10.9.0.77"), answer);
            ASSERT_NE(size, 0u);
            ASSERT_EQ(queue.write(std::span<const std::uint8_t>(answer).first(size)), 0);
            said = true;
        }
        // What is pending is told first.
        ASSERT_EQ(send(client.fd, content.data(), content.size(), 0), -1);
        ASSERT_EQ(errno, EMSGSIZE);
        int mtu = 0;
        socklen_t length = sizeof mtu;
        ASSERT_EQ(
            getsockopt(client.fd, six ? SOL_IPV6 : SOL_IP, six ? IPV6_MTU : IP_MTU, &mtu, &length),
            0);
        EXPECT_EQ(mtu, 1300);
        const auto way = netlink_->way_to(*Address::parse(six ? "fd09::2" : "10.9.0.2"));
        ASSERT_TRUE(way);
        EXPECT_EQ(way->mtu, 1300u) << "the path's, which was learnt";
    }
}

TEST_F(VpnNet, WhatIsNotUpTakesNothing) {
    Tun one = must(Tun::open({}));
    TunQueue& queue = one.queues()[0];
    VnetHeader header;
    Bytes buffer(TunQueue::kMostPacket);
    EXPECT_EQ(queue.read(header, buffer).error, EAGAIN);
    EXPECT_EQ(queue.write(Bytes(28, 0x45)), EIO);
    must(netlink_->set_up(one.index()));
    EXPECT_EQ(queue.write(Bytes(28, 0x75)), EINVAL) << "of no family";
}

// ---- rtnetlink

bool among(const std::vector<Netlink::RouteSpec>& routes, const char* prefix) {
    return std::ranges::any_of(routes, [&](const auto& r) { return r.to.text() == prefix; });
}

TEST_F(VpnNet, AddressesAndRoutesOfTunGoWithIt) {
    std::optional<Tun> one(tun());
    const unsigned index = one->index();
    const auto link = must(netlink_->link(index));
    EXPECT_EQ(link.mtu, 1400u);
    EXPECT_TRUE(link.up);
    const auto addresses = must(netlink_->addresses(index));
    EXPECT_EQ(std::ranges::count(addresses, *Prefix::parse("10.9.0.1/24")), 1);
    EXPECT_EQ(std::ranges::count(addresses, *Prefix::parse("fd09::1/64")), 1);

    must(netlink_->add_route({.to = *Prefix::parse("172.16.5.9/12"), .index = index, .metric = 7}));
    must(netlink_->add_route({.to = *Prefix::parse("fd55::9/32"), .index = index, .mtu = 1300}));
    must(netlink_->add_route({.to = *Prefix::parse("0.0.0.0/1"), .index = index}));
    auto routes = must(netlink_->routes(index));
    for (const char* prefix :
         {"10.9.0.0/24", "fd09::/64", "172.16.0.0/12", "fd55::/32", "0.0.0.0/1"})
        EXPECT_TRUE(among(routes, prefix)) << prefix;
    const auto way = must(netlink_->way_to(*Address::parse("172.20.1.1")));
    EXPECT_EQ(way.index, index);
    EXPECT_EQ(way.source.text(), "10.9.0.1");
    EXPECT_EQ(way.mtu, 1400u);
    EXPECT_FALSE(way.gateway);
    EXPECT_EQ(must(netlink_->way_to(*Address::parse("fd55::1"))).mtu, 1300u);

    must(netlink_->remove_route({.to = *Prefix::parse("0.0.0.0/1"), .index = index}));
    EXPECT_FALSE(among(must(netlink_->routes(index)), "0.0.0.0/1"));
    must(netlink_->remove_route({.to = *Prefix::parse("fd55::/32"), .index = index}));
    EXPECT_FALSE(among(must(netlink_->routes(index)), "fd55::/32"));
    must(netlink_->remove_address(index, *Prefix::parse("10.9.0.1/24")));
    EXPECT_EQ(std::ranges::count(must(netlink_->addresses(index)), *Prefix::parse("10.9.0.1/24")),
              0);
    must(netlink_->set_up(index, false));
    EXPECT_FALSE(must(netlink_->link(index)).up);

    one.reset();
    EXPECT_FALSE(netlink_->link(index));
    EXPECT_TRUE(must(netlink_->routes(index)).empty());
    EXPECT_TRUE(must(netlink_->addresses(index)).empty());
    EXPECT_EQ(netlink_->way_to(*Address::parse("172.20.1.1")).code(), Code::io);
    EXPECT_EQ(netlink_->set_mtu(index, 1400).code(), Code::io);
    EXPECT_EQ(netlink_->set_up(index).code(), Code::io);
    EXPECT_EQ(netlink_->add_address(index, *Prefix::parse("10.9.0.1/24")).code(), Code::io);
}

TEST_F(VpnNet, LastingRoutesAreTakenBack) {
    Tun one = tun();
    const Netlink::RouteSpec route{.to = *Prefix::parse("192.0.2.7/32"),
                                   .index = one.index(),
                                   .gateway = *Address::parse("10.9.0.254")};
    const auto there = [&] { return among(must(netlink_->routes(one.index())), "192.0.2.7/32"); };
    {
        Netlink other = must(Netlink::open());
        must(other.add_route(route, true));
        EXPECT_TRUE(there());
        EXPECT_EQ(must(other.way_to(*Address::parse("192.0.2.7"))).gateway->text(), "10.9.0.254");
        // The same once more, by others: nothing happens, and it is not theirs.
        must(netlink_->add_route(route, true));
        netlink_->undo();
        EXPECT_TRUE(there());
        // A child of fork() takes nothing back.
        const pid_t child = fork();
        if (child == 0) {
            other.undo();
            _exit(0);
        }
        ASSERT_EQ(waitpid(child, nullptr, 0), child);
        EXPECT_TRUE(there());
        // Another way to the same place: somebody's.
        Netlink::RouteSpec elsewhere = route;
        elsewhere.gateway = *Address::parse("10.9.0.253");
        EXPECT_EQ(netlink_->add_route(elsewhere).code(), Code::io);
        Netlink moved = std::move(other);
        EXPECT_TRUE(there());
    }
    EXPECT_FALSE(there());
    must(netlink_->add_route(route, true));
    must(netlink_->remove_route(route));
    must(netlink_->add_route(route));  // another's now
    netlink_->undo();
    EXPECT_TRUE(there());
}

TEST_F(VpnNet, RulesSayWhereToLook) {
    Tun one = tun();
    const auto by_tun = [&](const char* address, std::uint32_t mark) {
        const auto way = netlink_->way_to(*Address::parse(address), mark);
        return way && way->index == one.index();
    };
    for (const auto& [all, near, far] : {std::array{"0.0.0.0/0", "10.9.0.7", "192.0.2.1"},
                                         std::array{"::/0", "fd09::7", "2001:db8::1"}}) {
        SCOPED_TRACE(all);
        const auto before = must(netlink_->rules());
        Netlink::Rule rule;
        rule.family = far[0] == '2' ? 6 : 4;
        rule.priority = 1000;
        rule.table = 70000;  // of more than a byte
        rule.mark = 5;
        rule.others = true;
        Netlink::Rule second = rule;
        second.priority = 999;
        second.table = Netlink::kMainTable;
        second.longer_than = 0;
        must(netlink_->add_route(
            {.to = *Prefix::parse(all), .index = one.index(), .table = rule.table}));
        EXPECT_TRUE(among(must(netlink_->routes(0, rule.table)), all));
        EXPECT_FALSE(among(must(netlink_->routes(one.index())), all));
        EXPECT_FALSE(by_tun(far, 0)) << "nobody looks there yet";
        for (int times = 0; times < 2; ++times) {
            must(netlink_->add_rule(second));
            must(netlink_->add_rule(rule));
        }
        const auto rules = must(netlink_->rules());
        EXPECT_EQ(rules.size(), before.size() + 2);
        EXPECT_EQ(std::ranges::count(rules, rule), 1);
        EXPECT_EQ(std::ranges::count(rules, second), 1);
        EXPECT_TRUE(by_tun(far, 0));
        EXPECT_TRUE(by_tun(near, 0));
        EXPECT_FALSE(by_tun(far, 5));
        EXPECT_TRUE(by_tun(near, 5)) << "by the main table";
        for (int times = 0; times < 2; ++times) {
            must(netlink_->remove_rule(rule));
            EXPECT_FALSE(by_tun(far, 0));
        }
        must(netlink_->remove_rule(second));
        EXPECT_EQ(must(netlink_->rules()), before);
    }
}

TEST_F(VpnNet, TheReversePathIsFilteredAsTheStricterSays) {
    Tun one = tun();
    const auto set = [](const std::string& interface, int value) {
        std::ofstream("/proc/sys/net/ipv4/conf/" + interface + "/rp_filter") << value;
    };
    for (const int all : {0, 1, 2})
        for (const int own : {0, 1, 2}) {
            set("all", all);
            set(one.name(), own);
            EXPECT_EQ(must(netlink_->reverse_filter(one.index())),
                      static_cast<std::uint32_t>(std::max(all, own)));
        }
    EXPECT_FALSE(netlink_->reverse_filter(9999));
}

// ---- UDP

struct Ends {
    Udp a, b;
};
Ends ends(UdpOptions options, const char* family) {
    options.bind = *Endpoint::parse(family);
    if (options.bind == *Endpoint::parse("0.0.0.0:1")) options.bind = {};
    options.bind.port = 0;
    return {must(Udp::open(options)), must(Udp::open(options))};
}

// All that comes until nothing more does.
std::vector<Bytes> taken(Udp& udp, std::size_t count, std::vector<Datagrams>* all = nullptr) {
    std::vector<Bytes> packets;
    while (packets.size() < count && readable(udp.fd()))
        for (const Datagrams& d : udp.receive()) {
            if (all != nullptr) all->push_back(d);
            for (std::size_t at = 0; at < d.size; at += d.segment)
                packets.emplace_back(d.data + at,
                                     d.data + std::min(at + d.segment, std::size_t{d.size}));
        }
    EXPECT_TRUE(udp.receive().empty());
    return packets;
}

Route to(const char* address, const Udp& udp) {
    return {.remote = {*Address::parse(address), udp.port(), 0}, .local = {}};
}

TEST_F(VpnNet, BatchesArriveHoweverTheyTravel) {
    Random random(1);
    for (const char* family : {"0.0.0.0:1", "127.0.0.1:1", "[::1]:1"})
        for (int kind = 0; kind < 8; ++kind) {
            UdpOptions options;
            options.gso = kind & 1, options.gro = kind & 2, options.many = kind & 4;
            Ends e = ends(options, family);
            EXPECT_EQ(e.a.gso(), (kind & 5) == 5);
            EXPECT_EQ(e.a.gro(), (kind & 6) == 6);
            const bool both = family[0] == '0';
            for (const char* address : {"127.0.0.1", "::1"}) {
                if (!both && (family[0] == '[') != (address[0] == ':')) continue;
                Route route = to(address, e.b);
                for (int round = 0; round < 20; ++round) {
                    Batch batch(kPlainWire);
                    std::vector<Bytes> sent;
                    const std::size_t size = 1 + random.below(1400);
                    const std::size_t most = 1 + random.below(64);
                    while (sent.size() < most) {
                        const bool last = sent.size() + 1 == most;
                        sent.push_back(random.bytes(last ? 1 + random.below(size) : size));
                        std::uint8_t* const place = batch.place(sent.back().size());
                        if (place == nullptr) {
                            sent.pop_back();
                            break;
                        }
                        std::ranges::copy(sent.back(), place);
                    }
                    const auto result = e.a.send(batch.packets(), route, 0);
                    EXPECT_EQ(result.packets, sent.size()) << std::strerror(result.error);
                    EXPECT_EQ(result.bytes, batch.payload_bytes());
                    ASSERT_TRUE(taken(e.b, sent.size()) == sent);
                }
            }
            const auto counted = e.a.counters();
            EXPECT_EQ(counted.lost, 0u);
            EXPECT_EQ(counted.gso_refused, 0u);
            EXPECT_EQ(counted.sent, e.b.counters().received);
            EXPECT_EQ(counted.send_bytes, e.b.counters().receive_bytes);
            if (e.a.gso()) {
                EXPECT_EQ(counted.send_calls, both ? 40u : 20u);
            }
            if (e.a.gso() && e.b.gro()) {
                EXPECT_LE(e.b.counters().receive_calls, both ? 40u : 20u);
            }
        }
}

// What was not sealed stays here, and what lies around it still leaves.
TEST_F(VpnNet, OnlyWhatIsOkIsSent) {
    Ends e = ends({}, "127.0.0.1:1");
    Route route = to("127.0.0.1", e.b);
    Random random(2);
    for (int round = 0; round < 50; ++round) {
        Batch batch(kPlainWire);
        std::vector<Bytes> expected;
        for (int i = 0; i < 30; ++i) {
            const Bytes one = random.bytes(100);
            std::uint8_t* const place = batch.place(100);
            std::ranges::copy(one, place);
            if (random.below(4) == 0)
                batch.packets().back().verdict = esp::Verdict::exhausted;
            else
                expected.push_back(one);
        }
        EXPECT_EQ(e.a.send(batch.packets(), route, 0).packets, expected.size());
        ASSERT_TRUE(taken(e.b, expected.size()) == expected);
    }
}

// Of any sizes, one behind the other: each arrives as it is.
TEST_F(VpnNet, WhatTheKernelCouldNotCutIsNotSentInOne) {
    Ends e = ends({}, "127.0.0.1:1");
    Route route = to("127.0.0.1", e.b);
    Random random(3);
    for (int round = 0; round < 100; ++round) {
        Bytes buffer = random.bytes(40 * 60);
        std::vector<esp::Packet> packets;
        std::vector<Bytes> expected;
        for (std::uint32_t at = 0; packets.size() < 40;) {
            esp::Packet one;
            one.buffer = buffer.data();
            one.offset = at;
            one.size = static_cast<std::uint32_t>(20 * (1 + random.below(3)));
            expected.emplace_back(&buffer[at], &buffer[at] + one.size);
            packets.push_back(one);
            at += one.size;
        }
        EXPECT_EQ(e.a.send(packets, route, 0).packets, 40u);
        ASSERT_TRUE(taken(e.b, 40) == expected);
    }
}

TEST_F(VpnNet, WhenceWhitherAndTosAreSaid) {
    must(netlink_->add_address(kLoopback, *Prefix::parse("fd01::5/128")));
    in_use("fd01::5");
    Ends e = ends({}, "0.0.0.0:1");
    ASSERT_TRUE(e.a.six());
    for (const char* address : {"127.0.0.1", "127.5.6.7", "::1", "fd01::5"}) {
        const bool six = std::strchr(address, ':') != nullptr;
        for (int tos = 0; tos < 256; ++tos) {
            Route route = to(address, e.b);
            ASSERT_EQ(e.a.send(Bytes{1, 2, 3}, route, static_cast<std::uint8_t>(tos)).packets, 1u);
            std::vector<Datagrams> got;
            ASSERT_EQ(taken(e.b, 1, &got).size(), 1u);
            EXPECT_EQ(got[0].tos, tos);
            EXPECT_EQ(got[0].route.local.text(), address);
            EXPECT_EQ(got[0].route.remote.port, e.a.port());
            EXPECT_EQ(got[0].route.remote.address.family, six ? 6 : 4);
            if (tos > 4) continue;
            // The answer leaves from the address that was asked.
            Route back = got[0].route;
            ASSERT_EQ(e.b.send(Bytes{9}, back, 0).packets, 1u);
            got.clear();
            ASSERT_EQ(taken(e.a, 1, &got).size(), 1u);
            EXPECT_EQ(got[0].route.remote.address.text(), address);
            EXPECT_EQ(got[0].route.remote.port, e.b.port());
        }
    }
}

TEST_F(VpnNet, AnAddressThatIsGoneIsForgotten) {
    Ends e = ends({}, "0.0.0.0:1");
    for (const char* address : {"127.0.0.1", "::1"})
        for (const bool batched : {false, true}) {
            Route route = to(address, e.b);
            route.local = *Address::parse(address[0] == ':' ? "fd77::1" : "10.77.0.1");
            Batch batch(kPlainWire);
            for (int i = 0; i < (batched ? 5 : 1); ++i) std::memset(batch.place(10), i, 10);
            EXPECT_EQ(e.a.send(batch.packets(), route, 0).packets, batch.packets().size());
            EXPECT_EQ(route.local.family, 0);
            EXPECT_EQ(taken(e.b, batch.packets().size()).size(), batch.packets().size());
        }
    EXPECT_EQ(e.a.counters().source_gone, 4u);
    EXPECT_EQ(e.a.counters().lost, 0u);
    EXPECT_TRUE(e.a.gso()) << "that was not the reason";
}

TEST_F(VpnNet, WhatIsLongerThanThePath) {
    must(netlink_->set_mtu(kLoopback, 1300));
    for (const char* address : {"127.0.0.1", "::1"})
        for (const bool fragments : {true, false}) {
            Ends e = ends({.fragments = fragments}, "0.0.0.0:1");
            Route route = to(address, e.b);
            Batch batch(kPlainWire);
            for (int i = 0; i < 5; ++i) std::memset(batch.place(1400), i, 1400);
            const auto result = e.a.send(batch.packets(), route, 0);
            const auto counted = e.a.counters();
            EXPECT_TRUE(e.a.gso()) << "another batch may fit";
            if (fragments) {
                EXPECT_EQ(result.packets, 5u);
                EXPECT_EQ(taken(e.b, 5).size(), 5u);
                EXPECT_EQ(counted.lost, 0u);
            } else {
                EXPECT_EQ(result.packets, 0u);
                EXPECT_EQ(result.too_big, 5u);
                EXPECT_EQ(result.error, EMSGSIZE);
                EXPECT_EQ(counted.lost, 5u);
                EXPECT_EQ(counted.too_big, 5u);
                EXPECT_EQ(counted.last_error, EMSGSIZE);
                // Those that fit go on.
                batch.clear();
                for (int i = 0; i < 5; ++i) std::memset(batch.place(1200), i, 1200);
                EXPECT_EQ(e.a.send(batch.packets(), route, 0).packets, 5u);
                EXPECT_EQ(taken(e.b, 5).size(), 5u);
            }
        }
}

// From here on the kernel refuses this thread sendmsg() with that error.
void refuse_sendmsg(int error) {
    const sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sendmsg, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{static_cast<unsigned short>(std::size(steps)),
                            const_cast<sock_filter*>(steps)};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST_F(VpnNet, BatchesAreGivenUpWhereTheKernelCannot) {
    // EINVAL and EMSGSIZE are of one batch: another may fit.
    for (const int error : {EINVAL, EMSGSIZE, EIO, EOPNOTSUPP}) {
        Ends e = ends({}, "0.0.0.0:1");
        if (!e.a.gso()) GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
        Batch batch(kPlainWire);
        for (int i = 0; i < 5; ++i) std::memset(batch.place(1200), i, 1200);
        Route route = to("127.0.0.1", e.b);
        std::thread([&] {
            refuse_sendmsg(error);
            EXPECT_EQ(e.a.send(batch.packets(), route, 0).packets, 5u);
        }).join();
        EXPECT_EQ(taken(e.b, 5).size(), 5u);
        EXPECT_EQ(e.a.counters().gso_refused, 1u);
        EXPECT_EQ(e.a.gso(), error == EINVAL || error == EMSGSIZE) << std::strerror(error);
    }
}

TEST_F(VpnNet, NobodyWaitsForEverWhereNothingLeaves) {
    // A neighbour on an Ethernet who does not say which address it has: what is for it waits, and
    // counts as unsent.
    const Socket tap(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    ifreq request{};
    std::strcpy(request.ifr_name, "silent");
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    ASSERT_EQ(ioctl(tap.fd, TUNSETIFF, &request), 0);
    const unsigned index = if_nametoindex("silent");
    must(netlink_->add_address(index, *Prefix::parse("10.9.0.1/24")));
    must(netlink_->set_up(index));
    Udp udp = must(Udp::open({.buffer = 0}));
    Route route{.remote = *Endpoint::parse("10.9.0.2:4500"), .local = {}};
    std::size_t lost = 0;
    for (int i = 0; i < 20 && lost == 0; ++i) {
        Batch batch(kPlainWire);
        while (std::uint8_t* const place = batch.place(1200)) std::memset(place, 1, 1200);
        const auto result = udp.send(batch.packets(), route, 0);
        lost = batch.packets().size() - result.packets;
        if (lost != 0) {
            EXPECT_EQ(result.error, EAGAIN);
        }
    }
    EXPECT_NE(lost, 0u);
    EXPECT_EQ(udp.counters().full, udp.counters().lost);
    EXPECT_EQ(udp.counters().lost, lost);
}

TEST_F(VpnNet, WhatIsTooLongToTakeIsDropped) {
    Ends e = ends({.gro = false, .largest = 500}, "127.0.0.1:1");
    Route route = to("127.0.0.1", e.b);
    e.a.send(Bytes(501, 1), route);
    e.a.send(Bytes(), route);
    e.a.send(Bytes(500, 2), route);
    const auto got = taken(e.b, 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0], Bytes(500, 2));
    EXPECT_EQ(e.b.counters().cut_short, 1u);
    EXPECT_EQ(e.b.counters().received, 1u);
}

TEST_F(VpnNet, PortsAreTakenOnceUnlessShared) {
    UdpOptions options;
    Udp one = must(Udp::open(options));
    options.bind.port = one.port();
    const auto again = Udp::open(options);
    EXPECT_EQ(again.code(), Code::io);
    options.bind.port = 0;
    options.share_port = true;
    Udp first = must(Udp::open(options));
    options.bind.port = first.port();
    EXPECT_EQ(must(Udp::open(options)).port(), first.port());
    options.bind.address = *Address::parse("192.0.2.1");
    EXPECT_EQ(Udp::open(options).code(), Code::io) << "not ours";
    // Nobody there to send to: lost, not more.
    Route nowhere{.remote = *Endpoint::parse("192.0.2.1:4500"), .local = {}};
    const auto result = first.send(Bytes{1}, nowhere);
    EXPECT_EQ(result.packets, 0u);
    EXPECT_EQ(result.error, ENETUNREACH);
    EXPECT_EQ(first.counters().lost, 1u);
}

// One thread sends while another receives, and a third counts.
TEST_F(VpnNet, SendingAndReceivingDoNotMeet) {
    Ends e = ends({}, "127.0.0.1:1");
    Route route = to("127.0.0.1", e.a);  // to itself
    std::atomic<bool> stop{false};
    std::thread receiver([&] {
        while (!stop)
            if (readable(e.a.fd(), 20)) e.a.receive();
    });
    std::thread asker([&] {
        while (!stop) {
            const auto c = e.a.counters();
            EXPECT_LE(c.lost, c.sent);
            (void)e.a.gso();
            std::this_thread::yield();
        }
    });
    for (int i = 0; i < 500; ++i) {
        Batch batch(kPlainWire);
        for (int k = 0; k < 40; ++k) std::memset(batch.place(1000), k, 1000);
        e.a.send(batch.packets(), route, 0);
    }
    stop = true;
    receiver.join();
    asker.join();
    EXPECT_EQ(e.a.counters().sent, 20000u);
}

}  // namespace
