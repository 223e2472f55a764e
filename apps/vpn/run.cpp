// SPDX-License-Identifier: Apache-2.0
#include "vpn/run.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "io/text.hpp"
#include "io/warnings.hpp"
#include "vpn/aside.hpp"
#include "vpn/control.hpp"
#include "vpn/guardian.hpp"
#include "vpn/loop.hpp"
#include "vpn/path/netlink.hpp"
#include "vpn/path/tun.hpp"
#include "vpn/path/udp.hpp"
#include "vpn/rights.hpp"
#include "vpn/sessions.hpp"
#include "vpn/status.hpp"

namespace dael::vpn {
namespace {

class File {
  public:
    explicit File(int fd = -1) noexcept : fd_(fd) {}
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~File() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const noexcept { return fd_; }

  private:
    int fd_;
};

// Names are looked up once, while there are rights to do so.
Result<> resolve(Config& config) {
    for (PeerConfig& peer : config.peers) {
        if (!peer.endpoint) continue;
        if (const auto numbers = path::Endpoint::parse(to_text(*peer.endpoint))) {
            peer.resolved = *numbers;
            continue;
        }
        addrinfo hints{};
        hints.ai_socktype = SOCK_DGRAM;
        addrinfo* found = nullptr;
        const int fault = ::getaddrinfo(peer.endpoint->host.c_str(), nullptr, &hints, &found);
        if (fault != 0)
            return Error{Code::io,
                         "cannot find the endpoint " + app::in_quotes(peer.endpoint->host) + ": " +
                             (fault == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(fault))};
        for (const addrinfo* each = found; each; each = each->ai_next) {
            if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
            sockaddr_in6 address{};
            std::memcpy(&address, each->ai_addr,
                        std::min<std::size_t>(each->ai_addrlen, sizeof address));
            peer.resolved = path::Endpoint::from_socket(address);
            peer.resolved.port = peer.endpoint->port;
            break;
        }
        ::freeaddrinfo(found);
        if (!peer.resolved)
            return Error{Code::io, "the endpoint " + app::in_quotes(peer.endpoint->host) +
                                       " has no address of IPv4 or IPv6"};
    }
    for (const PeerConfig& peer : config.peers) {
        if (!peer.endpoint) continue;
        const std::string fault =
            endpoint_fault(config, peer.endpoint->host, peer.resolved.address);
        if (!fault.empty()) return Error{Code::bad_format, fault};
    }
    return {};
}

// Everything with a descriptor, in the order in which it must go: the interface first, so that
// whoever waits for the end finds nothing left.
struct Setup {
    std::optional<Control> control;
    std::optional<Guardian> guardian;
    File key_log, state;
    std::vector<path::Udp> sockets;
    std::optional<path::Tun> tun;
};

Result<> open_sockets(const Config& config, const Aside& aside, Setup& setup) {
    path::UdpOptions options;
    options.mark = aside.mark();
    if (config.listen_address) options.bind.address = *config.listen_address;
    options.bind.port = config.port;
    options.gso = config.switches.udp_gso;
    options.gro = config.switches.udp_gro;
    options.share_port = config.queues > 1;
    options.messages = 32;  // who sends without GSO, or sends garbage, costs fewer calls
    options.largest = std::max<std::uint32_t>(2048, config.mtu + 128);
    for (std::uint32_t i = 0; i < config.queues; ++i) {
        DAEL_LET(socket, path::Udp::open(options));
        options.bind.port = socket.port();
        setup.sockets.push_back(std::move(socket));
    }
    return {};
}

// Whether the interface's own network has these addresses already.
bool is_connected(const Config& config, const path::Prefix& prefix) {
    return std::ranges::any_of(config.addresses, [&prefix](const path::Prefix& own) {
        return own.length <= prefix.length && own.holds(prefix.address);
    });
}

// A worker of the kernel's puts IPv6 addresses to use a moment later. What came before would be
// lost; after so long it may.
void await_addresses(const Config& config, path::Netlink& netlink) {
    int patience = 500;  // milliseconds
    for (const path::Prefix& own : config.addresses)
        while (own.address.family == 6 && --patience > 0) {
            const auto way = netlink.way_to(own.address);
            if (way && way->here) break;
            const timespec moment{0, 1'000'000};
            ::nanosleep(&moment, nullptr);
        }
}

Result<> open_interface(const Config& config, path::Netlink& netlink, Setup& setup,
                        std::vector<std::string>& fallbacks) {
    path::TunOptions options;
    options.name = config.interface;
    options.queues = config.queues;
    if (!config.switches.tun_offloads)
        options.vnet_header = options.tcp = options.tcp_ecn = options.udp = false;
    DAEL_LET(opened, path::Tun::open(options));
    setup.tun.emplace(std::move(opened));
    path::Tun& tun = *setup.tun;
    DAEL_TRY(netlink.set_mtu(tun.index(), config.mtu));
    // So that a super-packet fills a batch (docs/vpn.md).
    const std::size_t wire = path::kEspWire.size(config.mtu);
    const auto most = static_cast<std::uint32_t>(
        std::min(path::Batch::kMostSegments, path::Batch::kMostBytes / wire));
    if (const auto set = netlink.set_gso_limits(tun.index(), most); !set)
        fallbacks.push_back("limits of super-packets: " + set.error().message);
    for (const path::Prefix& address : config.addresses)
        DAEL_TRY(netlink.add_address(tun.index(), address));
    DAEL_TRY(netlink.set_up(tun.index()));
    await_addresses(config, netlink);
    return {};
}

// What sealed packets would take, too, is set aside.
Result<> set_routes(Config& config, const Aside& aside, path::Netlink& netlink, Setup& setup,
                    std::vector<std::string>& fallbacks) {
    if (!config.routes) return {};
    const unsigned index = setup.tun->index();
    for (const PeerConfig& peer : config.peers)
        for (const path::Prefix& prefix : peer.allowed)
            if (!is_connected(config, prefix) && !aside.has(prefix)) {
                path::Netlink::RouteSpec route;
                route.to = prefix;
                route.index = index;
                DAEL_TRY(netlink.add_route(route));
            }
    if (!aside.empty()) {
        // Who takes back is there before there is something.
        DAEL_LET(guardian, Guardian::start(config, aside, index));
        setup.guardian.emplace(std::move(guardian));
        DAEL_TRY(aside.set(netlink, index));
        if (std::string filter = strict_filter(aside, config, netlink); !filter.empty()) {
            app::warn(filter);
            fallbacks.push_back(std::move(filter));
        }
    }
    for (const PeerConfig& peer : config.peers) {
        if (!peer.resolved || peer.resolved.scope != 0) continue;
        const auto way = netlink.way_to(peer.resolved.address, aside.mark());
        if (way && way->index == index)
            return Error{Code::io,
                         "the endpoint " + peer.resolved.text() +
                             " would be reached by the tunnel itself; is a rule of somebody "
                             "else's in the way (ip rule)?"};
    }
    return {};
}

Result<File> open_file(const std::string& path, int flags, const char* what) {
    File file(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600));
    if (file.get() < 0)
        return Error{Code::io, std::string("cannot open the file ") + app::in_quotes(path) +
                                   " of " + what + ": " + std::strerror(errno)};
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return Error{Code::io, app::in_quotes(path) + " is no regular file"};
    return file;
}

Result<> open_files(Config& config, Setup& setup) {
    if (!config.key_log.empty()) {
        DAEL_LET(file, open_file(config.key_log, O_WRONLY | O_APPEND, "session keys"));
        app::warn_if_shared(file.get(), "the file of session keys");
        setup.key_log = std::move(file);
        // Whatever --quiet says.
        app::complain(
            "warning: SESSION KEYS ARE WRITTEN to " + app::in_quotes(config.key_log) +
            ": whoever reads it reads what goes through this tunnel, also what was recorded. "
            "Take debug_log_session_keys out once the fault is found");
    }
    if (!config.state.empty()) {
        DAEL_LET(file, open_file(config.state, O_RDWR, "timestamps"));
        char text[32] = "";
        if (::pread(file.get(), text, sizeof text - 1, 0) > 0)
            config.timestamp_floor = Time(std::max(0LL, std::strtoll(text, nullptr, 10)));
        setup.state = std::move(file);
    }
    return {};
}

void note_fallbacks(const Config& config, Setup& setup, std::vector<std::string>& out) {
    const path::Offloads& tun = setup.tun->offloads();
    if (config.switches.tun_offloads) {
        if (!tun.vnet_header)
            out.emplace_back("super-packets: this kernel's TUN has none");
        else if (!tun.udp)
            out.emplace_back("UDP super-packets: this kernel's TUN has none");
    }
    if (config.switches.udp_gso && !setup.sockets[0].gso())
        out.emplace_back("UDP GSO: this kernel has none");
    if (config.switches.udp_gro && !setup.sockets[0].gro())
        out.emplace_back("UDP GRO: this kernel has none");
    if (config.switches.udp_filter && !setup.sockets[0].takes_filter())
        out.emplace_back("filter on the UDP socket: this kernel has none");
    if (setup.tun->queues().size() < config.queues)
        out.emplace_back("several queues: this kernel's TUN has one");
}

// To systemd, where it waits for that (sd_notify(3)).
void notify_manager() {
    const char* const path = std::getenv("NOTIFY_SOCKET");
    if (!path || (path[0] != '/' && path[0] != '@')) return;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t size = std::strlen(path);
    if (size >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, path, size);
    if (path[0] == '@') address.sun_path[0] = 0;
    const File socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    constexpr std::string_view text = "READY=1";
    (void)::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size));
}

Loop::Settings settings_of(const Config& config, const Allowed& senders, unsigned interface) {
    Loop::Settings settings;
    settings.mtu = config.mtu;
    settings.between_peers = config.between_peers;
    settings.clamp_mss = config.switches.clamp_mss;
    settings.copy_dscp = config.switches.copy_dscp;
    settings.filter = config.switches.udp_filter;
    settings.senders = &senders;
    settings.own = config.addresses;
    settings.interface = interface;
    for (const path::Prefix& own : config.addresses) {
        path::Address& inner = own.address.family == 6 ? settings.inner6 : settings.inner4;
        if (inner.family == 0) inner = own.address;
    }
    return settings;
}

// The loops, each in a thread of its own; the first that ends by a fault ends all.
class Threads {
  public:
    Threads(std::span<const std::unique_ptr<Loop>> loops, Control& control) : loops_(loops) {
        for (std::size_t i = 0; i < loops.size(); ++i)
            threads_.emplace_back([this, i, &control] {
                const auto done = loops_[i]->run(i == 0);
                if (done) return;
                const std::lock_guard lock(mutex_);
                if (!fault_) fault_ = done.error();
                control.stop();
            });
    }
    ~Threads() { (void)end(); }
    Result<> end() {
        for (const auto& loop : loops_) loop->stop();
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
        const std::lock_guard lock(mutex_);
        if (fault_) return *fault_;
        return {};
    }

  private:
    std::span<const std::unique_ptr<Loop>> loops_;
    std::mutex mutex_;
    std::optional<Error> fault_;
    std::vector<std::thread> threads_;
};

void block_ends() {
    const sigset_t signals = end_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

Result<> run_tunnel(Config config, const std::function<void()>& ready) {
    block_ends();
    // What libcrypto makes of private keys lies in memory that is locked, where there is any.
    (void)::CRYPTO_secure_malloc_init(std::size_t{1} << 16, 64);
    DAEL_TRY(resolve(config));
    DAEL_LET(own_key, public_key(*config.private_key));
    Setup setup;
    std::vector<std::string> fallbacks;
    DAEL_LET(control, Control::open(config.interface, config.metrics));
    setup.control.emplace(std::move(control));
    DAEL_TRY(open_files(config, setup));
    const Aside aside(config);
    DAEL_TRY(open_sockets(config, aside, setup));
    {
        DAEL_LET(netlink, path::Netlink::open());
        DAEL_TRY(open_interface(config, netlink, setup, fallbacks));
        DAEL_TRY(set_routes(config, aside, netlink, setup, fallbacks));
    }
    note_fallbacks(config, setup, fallbacks);
    // Nobody would read what came to those beyond.
    while (setup.sockets.size() > setup.tun->queues().size()) setup.sockets.pop_back();
    DAEL_TRY(drop_rights(config.user));

    DAEL_LET(sessions, Sessions::open(config));
    sessions->log_keys(setup.key_log.get());
    sessions->keep_timestamp(setup.state.get());
    Allowed senders;  // without those who have everything, of whom an address says nothing
    for (PeerId i = 0; i < config.peers.size(); ++i)
        for (const path::Prefix& prefix : config.peers[i].allowed)
            if (prefix.length != 0) senders.add(prefix, i);
    std::vector<std::unique_ptr<Loop>> loops;
    const std::span<path::TunQueue> queues = setup.tun->queues();
    for (std::size_t i = 0; i < queues.size(); ++i) {
        DAEL_LET(loop, Loop::open(*sessions, queues[i], setup.sockets[i],
                                  settings_of(config, senders, setup.tun->index())));
        loops.push_back(std::move(loop));
    }
    Threads threads(loops, *setup.control);
    if (config.switches.sandbox)
        if (const auto closed = close_sandbox(Sandbox::tunnel); !closed) {
            if (closed.code() != Code::unsupported) return closed.error();
            fallbacks.push_back("seccomp: " + closed.error().message);
            app::warn(fallbacks.back() + "; the tunnel runs without that");
        }
    Tunnel tunnel{config,      own_key, *sessions, *setup.tun, loops, aside, std::move(fallbacks),
                  now().steady};
    notify_manager();
    ready();
    DAEL_TRY(setup.control->serve([&tunnel](std::string_view question) -> std::string {
        if (question == "status") return status_text(tunnel);
        if (question == "json") return status_json(tunnel);
        if (question == "metrics") return status_metrics(tunnel);
        return {};
    }));
    return threads.end();
}

}  // namespace dael::vpn
