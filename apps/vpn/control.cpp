// SPDX-License-Identifier: Apache-2.0
#include "vpn/control.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "io/text.hpp"

namespace dael::vpn {
namespace {

constexpr std::chrono::seconds kPatience{2};  // for all that one asks and is told

Error failure(const std::string& what) {
    return {Code::io, what + ": " + std::strerror(errno)};
}

// The name of a socket without a file begins with a zero byte (unix(7), "abstract").
socklen_t name_of(const std::string& interface, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const std::string name = "daelstrom-vpn/" + interface;
    const std::size_t size = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), size);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

bool send_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

Result<uid_t> other_side(int fd) {
    ucred who{};
    socklen_t size = sizeof who;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        return failure("cannot tell who is at the control socket");
    return who.uid;
}

Result<int> listen_at_path(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return Error{Code::invalid_argument, "metrics: a socket's path has at most 107 bytes"};
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return failure("cannot make a socket");
    const auto* const where = reinterpret_cast<const sockaddr*>(&address);
    // One that is left over has nobody behind it.
    struct stat there {};
    if (::lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode) &&
        ::connect(fd, where, sizeof address) != 0 && errno == ECONNREFUSED)
        ::unlink(path.c_str());
    const mode_t before = ::umask(0117);
    const bool bound = ::bind(fd, where, sizeof address) == 0 && ::listen(fd, 8) == 0;
    const int why = errno;
    ::umask(before);
    if (bound) return fd;
    ::close(fd);
    errno = why;
    return failure("cannot listen for metrics at " + app::in_quotes(path));
}

}  // namespace

sigset_t end_signals() noexcept {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&signals, signal);
    return signals;
}

// Who asks, for so long as kPatience, and no longer once the end is asked for: whoever is slow
// holds up nobody's `down`.
struct Control::Asker {
    int fd, signals, wake;
    std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + kPatience;

    bool await(short events) const {
        for (;;) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(
                end - std::chrono::steady_clock::now());
            if (left.count() <= 0) return false;
            std::array<pollfd, 3> ready{{{fd, events, 0}, {signals, POLLIN, 0}, {wake, POLLIN, 0}}};
            if (::poll(ready.data(), ready.size(), static_cast<int>(left.count())) < 0) {
                if (errno == EINTR) continue;
                return false;
            }
            if (ready[1].revents != 0 || ready[2].revents != 0) return false;
            if (ready[0].revents != 0) return true;
        }
    }
    // Up to `last`, or to `most` bytes; nothing where it did not come in time.
    std::string receive_until(std::string_view last, std::size_t most) const {
        std::string text;
        while (text.size() < most && text.find(last) == text.npos) {
            if (!await(POLLIN)) return {};
            char buffer[512];
            const ssize_t got = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (got <= 0) return {};
            text.append(buffer, static_cast<std::size_t>(got));
        }
        return text;
    }
    void tell(std::string_view text) const {
        while (!text.empty() && await(POLLOUT)) {
            const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (sent <= 0) return;
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
};

Control::Asker Control::asker(int fd) const {
    return {.fd = fd, .signals = signals_, .wake = wake_};
}

Result<Control> Control::open(const std::string& interface, const std::string& metrics_path) {
    Control control;
    control.owner_ = ::getuid();
    control.listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control.listener_ < 0) return failure("cannot make a control socket");
    sockaddr_un address;
    const socklen_t size = name_of(interface, address);
    if (::bind(control.listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
        if (errno == EADDRINUSE)
            return Error{Code::io, "a tunnel with interface " + app::in_quotes(interface) +
                                       " runs already; `daelstrom vpn down " + interface +
                                       "` ends it"};
        return failure("cannot bind the control socket");
    }
    if (::listen(control.listener_, 8) != 0) return failure("cannot listen for control");
    if (!metrics_path.empty()) {
        DAEL_LET(metrics, listen_at_path(metrics_path));
        control.metrics_ = metrics;
        control.metrics_path_ = metrics_path;
    }
    const sigset_t signals = end_signals();
    control.signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    control.wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (control.signals_ < 0 || control.wake_ < 0) return failure("cannot wait for signals");
    return control;
}

Control::Control(Control&& other) noexcept
    : listener_(std::exchange(other.listener_, -1)),
      metrics_(std::exchange(other.metrics_, -1)),
      signals_(std::exchange(other.signals_, -1)),
      wake_(std::exchange(other.wake_, -1)),
      owner_(other.owner_),
      metrics_path_(std::move(other.metrics_path_)),
      waiting_(std::move(other.waiting_)) {}

Control::~Control() {
    if (metrics_ >= 0) (void)::unlink(metrics_path_.c_str());
    for (const int fd : {listener_, metrics_, signals_, wake_})
        if (fd >= 0) ::close(fd);
    for (const int fd : waiting_) ::close(fd);
}

void Control::stop() noexcept {
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
}

Result<> Control::serve(const std::function<std::string(std::string_view)>& answer) {
    for (bool stopped = false; !stopped;) {
        std::array<pollfd, 4> ready{{{listener_, POLLIN, 0},
                                     {signals_, POLLIN, 0},
                                     {wake_, POLLIN, 0},
                                     {metrics_, POLLIN, 0}}};
        if (::poll(ready.data(), ready.size(), -1) < 0) {
            if (errno == EINTR) continue;
            return failure("cannot wait for control");
        }
        if (ready[1].revents != 0 || ready[2].revents != 0) return {};
        if (ready[0].revents != 0) serve_client(answer, stopped);
        if (ready[3].revents != 0) serve_scraper(answer);
    }
    return {};
}

void Control::serve_client(const std::function<std::string(std::string_view)>& answer,
                           bool& stopped) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const Asker client = asker(fd);
    // Before anything is read: a stranger need not be waited for.
    const auto who = other_side(fd);
    if (!who || (*who != 0 && *who != owner_)) {
        client.tell("!not allowed: ask as root, or as who started the tunnel\n");
        ::close(fd);
        return;
    }
    std::string question = client.receive_until("\n", 64);
    question = question.substr(0, question.find('\n'));
    client.tell("=" + answer(question));
    if (question == "down") {
        stopped = true;
        waiting_.push_back(fd);
    } else {
        ::close(fd);
    }
}

void Control::serve_scraper(const std::function<std::string(std::string_view)>& answer) const {
    const int fd = ::accept4(metrics_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const Asker scraper = asker(fd);
    if (scraper.receive_until("\r\n\r\n", 8192).starts_with("GET "))
        scraper.tell(
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
            "Connection: close\r\n\r\n" +
            answer("metrics"));
    ::close(fd);
}

Result<std::string> ask(const std::string& interface, std::string_view question) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return failure("cannot make a socket");
    const struct Closer {
        int fd;
        ~Closer() { ::close(fd); }
    } closer{fd};
    sockaddr_un address;
    const socklen_t size = name_of(interface, address);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
        if (errno == ECONNREFUSED || errno == ENOENT)
            return Error{Code::io, "no tunnel with interface " + app::in_quotes(interface) +
                                       " runs here; `daelstrom vpn up` starts one"};
        return failure("cannot reach the tunnel");
    }
    // Any user may take a name without a file: what answers must be root's, or our own.
    DAEL_LET(who, other_side(fd));
    if (who != 0 && who != ::geteuid())
        return Error{Code::io, "the control socket of " + app::in_quotes(interface) +
                                   " is held by another user, " + std::to_string(who) +
                                   "; it is not asked"};
    // It may have refused already, and be gone: its words are there to be read all the same.
    if (!send_all(fd, std::string(question) + "\n") && errno != EPIPE)
        return failure("cannot ask the tunnel");
    std::string text;
    char buffer[16384];
    for (;;) {
        const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == ECONNRESET) break;  // it went without reading the question
        if (got < 0) return failure("the tunnel does not answer");
        if (got == 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
    }
    if (text.starts_with('!')) {
        text.erase(text.find_last_not_of('\n') + 1);
        return Error{Code::io, "the tunnel says: " + app::on_one_line(text.substr(1))};
    }
    if (!text.starts_with('=')) return Error{Code::io, "the tunnel ended before it answered"};
    return text.substr(1);
}

}  // namespace dael::vpn
