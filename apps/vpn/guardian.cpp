// SPDX-License-Identifier: Apache-2.0
#include "vpn/guardian.hpp"

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "io/warnings.hpp"
#include "vpn/rights.hpp"

namespace dael::vpn {
namespace {

constexpr char kDone = '.';  // what it says when it is ready, and when all is done; else why not

// All but `kept`: what it has of the tunnel would stay open after it.
void close_others(int kept) {
    const auto close_from_to = [](unsigned first, unsigned last) {
        if (first > last) return;
#ifdef SYS_close_range
        if (::syscall(SYS_close_range, first, last, 0) == 0) return;
#endif
        const long most = ::sysconf(_SC_OPEN_MAX);
        for (unsigned fd = first; fd <= last && static_cast<long>(fd) < most; ++fd)
            ::close(static_cast<int>(fd));
    };
    if (kept > 0) close_from_to(0, static_cast<unsigned>(kept) - 1);
    close_from_to(static_cast<unsigned>(kept) + 1, ~0u);
}

void say(int socket, std::string_view text) {
    (void)!::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
}

// Of a process that was killed, the interface goes a moment after this end of the socket hears of
// it. Were both of two tunnels killed at once, each one's guardian would find the other's routes
// still there, and leave the rules to that one.
void await_end_of(path::Netlink& netlink, unsigned interface) {
    for (int patience = 30'000; patience > 0 && netlink.link(interface); --patience) {
        const timespec moment{0, 1'000'000};
        ::nanosleep(&moment, nullptr);
    }
}

[[noreturn]] void guard(int socket, Config& config, const Aside& aside, unsigned interface) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    close_others(socket);
    config.private_key.reset();
    for (PeerConfig& peer : config.peers) peer.shared_secret.reset();
    (void)::prctl(PR_SET_NAME, "dael-guardian");
    const auto work = [&]() -> Result<> {
        DAEL_LET(netlink, path::Netlink::open());
        DAEL_TRY(drop_rights(config.user, 1u << CAP_NET_ADMIN));
        if (config.switches.sandbox)
            if (const auto closed = close_sandbox(Sandbox::guardian);
                !closed && closed.code() != Code::unsupported)
                return closed.error();
        say(socket, {&kDone, 1});
        char byte;
        ssize_t got;
        do got = ::read(socket, &byte, 1);
        while (got > 0 || (got < 0 && errno == EINTR));
        await_end_of(netlink, interface);
        return aside.take_back(netlink, interface);
    };
    const auto done = work();
    say(socket, done ? std::string_view(&kDone, 1) : std::string_view(done.error().message));
    ::_exit(done ? 0 : 1);
}

// Up to the end; or one letter, where that is kDone.
std::string hear(int socket) {
    std::string text;
    char buffer[512];
    for (;;) {
        const ssize_t got = ::read(socket, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return text;
        text.append(buffer, static_cast<std::size_t>(got));
        if (text[0] == kDone) return text;
    }
}

}  // namespace

Result<Guardian> Guardian::start(Config& config, const Aside& aside, unsigned interface) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return Error{Code::io, std::string("cannot make a socket: ") + std::strerror(errno)};
    const pid_t child = ::fork();
    if (child == 0) guard(ends[1], config, aside, interface);
    const int why = errno;
    ::close(ends[1]);
    if (child < 0) {
        ::close(ends[0]);
        return Error{Code::io, std::string("cannot start a process: ") + std::strerror(why)};
    }
    const std::string said = hear(ends[0]);
    if (said == std::string_view(&kDone, 1)) return Guardian(ends[0]);
    ::close(ends[0]);
    return Error{Code::io, "the guardian of the tunnel's rules did not start: " +
                               (said.empty() ? std::string("it was killed") : said)};
}

Guardian::Guardian(Guardian&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

Guardian::~Guardian() {
    if (socket_ < 0) return;
    ::shutdown(socket_, SHUT_WR);
    const std::string said = hear(socket_);
    ::close(socket_);
    if (said == std::string_view(&kDone, 1)) return;
    app::warn(
        "rules that lead to the tunnel's routes are left over, and lead to nothing (ip rule; "
        "the next start uses them again): " +
        (said.empty() ? std::string("the guardian was killed") : said));
}

}  // namespace dael::vpn
