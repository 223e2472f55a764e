// SPDX-License-Identifier: Apache-2.0
// A bad network between two ends of UDP, for kernels without netem: loses, keeps back, repeats,
// alters and delays what passes, and changes its source port as a NAT does.
//
//     vpn_relay LISTEN SERVER [NAME=VALUE...]
//
// Clients send to LISTEN; each reaches SERVER from a port of its own. Says "ready PORT", then obeys
// lines on stdin, each answered by a line; ends when stdin does.
//
//     NAME VALUE             a rate (relay_way.hpp: 0 to 1, or milliseconds), of both directions;
//                            "out.NAME" towards the server, "in.NAME" towards clients
//     seed N                 of what follows
//     port                   every client's packets come from another port from now on
//     every N                the same after each N packets towards the server (0: never)
//     garbage COUNT SIZE     so many datagrams of random bytes to the server, beside the others
//     forge COUNT            so many like the last one that passed, with other bytes from the tenth
//     on stats                  one line of JSON
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "vpn/path/endpoint.hpp"
#include "vpn/relay_way.hpp"

namespace {

using namespace dael::test;
using dael::vpn::path::Endpoint;

constexpr std::size_t kRoom = 65536, kBurst = 64, kMostClients = 64;

[[noreturn]] void die(const std::string& what) {
    std::fprintf(stderr, "vpn_relay: %s: %s\n", what.c_str(), std::strerror(errno));
    std::exit(1);
}

std::uint64_t now() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

int opened(const Endpoint& at) {
    const int family = at.address.family == 6 ? AF_INET6 : AF_INET;
    const int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    const int on = 1, big = 7 << 20;
    setsockopt(fd, SOL_IP, IP_RECVTOS, &on, sizeof on);
    if (family == AF_INET6) setsockopt(fd, SOL_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
    for (const int name : {SO_RCVBUFFORCE, SO_SNDBUFFORCE})
        setsockopt(fd, SOL_SOCKET, name, &big, sizeof big);
    sockaddr_in6 name;
    const socklen_t size = at.to_socket(name, false);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&name), size) < 0) die("bind " + at.text());
    return fd;
}

struct Control {
    alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];
};

// What leaves by one call.
class Outbox {
  public:
    void add(int fd, const Endpoint& to, std::span<const std::uint8_t> bytes, std::uint8_t tos) {
        if (count_ == kBurst || (count_ != 0 && fd != fd_)) flush();
        fd_ = fd;
        Slot& s = slots_[count_];
        s.bytes.assign(bytes.begin(), bytes.end());
        s.part = {s.bytes.data(), s.bytes.size()};
        msghdr& h = messages_[count_++].msg_hdr;
        h = {};
        h.msg_name = &s.name, h.msg_namelen = to.to_socket(s.name, false);
        h.msg_iov = &s.part, h.msg_iovlen = 1;
        if (tos == 0) return;
        const bool six = to.address.family == 6;
        cmsghdr c{};
        c.cmsg_level = six ? SOL_IPV6 : SOL_IP, c.cmsg_type = six ? IPV6_TCLASS : IP_TOS;
        c.cmsg_len = CMSG_LEN(sizeof(int));
        const int value = tos;
        std::memcpy(s.control.bytes, &c, sizeof c);
        std::memcpy(s.control.bytes + CMSG_LEN(0), &value, sizeof value);
        h.msg_control = s.control.bytes, h.msg_controllen = sizeof s.control.bytes;
    }
    void flush() {
        for (std::size_t done = 0; done < count_;) {
            const int n = sendmmsg(fd_, &messages_[done], static_cast<unsigned>(count_ - done), 0);
            if (n > 0) {
                done += static_cast<std::size_t>(n);
            } else if (errno == EAGAIN) {
                pollfd p{fd_, POLLOUT, 0};
                poll(&p, 1, 100);
            } else if (errno != EINTR) {
                ++failed;
                ++done;
            }
        }
        count_ = 0;
    }
    std::uint64_t failed = 0;

  private:
    struct Slot {
        Bytes bytes;
        iovec part;
        sockaddr_in6 name;
        Control control;
    };
    Slot slots_[kBurst];
    mmsghdr messages_[kBurst];
    std::size_t count_ = 0;
    int fd_ = -1;
};

class Relay {
  public:
    Relay(const Endpoint& listen, const Endpoint& server)
        : server_(server), front_(opened(listen)), room_(kBurst * kRoom) {
        sockaddr_in6 name{};
        socklen_t size = sizeof name;
        getsockname(front_, reinterpret_cast<sockaddr*>(&name), &size);
        std::printf("ready %u\n", unsigned{Endpoint::from_socket(name).port});
        std::fflush(stdout);
    }

    // What became of a line; empty: not understood.
    std::string obey(const std::string& line) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        if (name == "stats") return stats();
        if (name == "port") return change_ports(), "ok";
        double value = -1, more = -1;
        if (!(words >> value) || value < 0) return {};
        if (!(words >> more)) more = -1;
        const auto whole = static_cast<std::uint64_t>(value);
        if (name == "seed") {
            out_.seed(2 * whole + 1), in_.seed(2 * whole + 2);
            return "ok";
        }
        if (name == "every") return every_ = whole, "ok";
        if (name == "forge") return forge_ = whole, "ok";
        if (name == "garbage" && more >= 0) {
            garbage_ = whole;
            garbage_size_ = std::min<std::size_t>(static_cast<std::size_t>(more), 65000);
            return "ok";
        }
        const bool outwards = name.starts_with("out."), inwards = name.starts_with("in.");
        const std::string rate = name.substr(outwards ? 4 : inwards ? 3 : 0);
        if (RelayRates().of(rate) == nullptr) return {};
        if (!inwards) *out_.rates.of(rate) = value;
        if (!outwards) *in_.rates.of(rate) = value;
        return "ok";
    }

    void run() {
        std::string input;
        std::vector<pollfd> all;
        while (true) {
            all.clear();
            all.push_back({STDIN_FILENO, POLLIN, 0});
            all.push_back({front_, POLLIN, 0});
            for (const auto& client : clients_) all.push_back({client->back, POLLIN, 0});
            const int ready = poll(all.data(), all.size(), timeout());
            if (ready < 0 && errno != EINTR) die("poll");
            const std::uint64_t time = now();
            // By index of what there was: the list changes.
            std::vector<std::uint64_t> backs;
            for (std::size_t i = 2; i < all.size(); ++i)
                if (all[i].revents != 0) backs.push_back(clients_[i - 2]->number);
            if (all[1].revents != 0) take_from_clients(time);
            for (const std::uint64_t number : backs)
                if (Client* const client = find(number)) take_from_server(*client, time);
            out_.tick(time), in_.tick(time);
            outbox_.flush();
            make_garbage();
            if (all[0].revents != 0 && !listen(input)) return;
        }
    }

  private:
    struct Client {
        Endpoint at;
        int back;
        std::uint64_t number;
        Client(const Endpoint& where, int fd, std::uint64_t which)
            : at(where), back(fd), number(which) {}
        Client(const Client&) = delete;
        Client& operator=(const Client&) = delete;
        ~Client() { close(back); }
    };

    Endpoint any() const {
        Endpoint all;
        all.address.family = server_.address.family;
        return all;
    }
    Client* find(std::uint64_t number) {
        for (const auto& client : clients_)
            if (client->number == number) return client.get();
        return nullptr;
    }
    Client& client_at(const Endpoint& at) {
        for (const auto& client : clients_)
            if (client->at == at) return *client;
        if (clients_.size() == kMostClients) {
            outbox_.flush();
            clients_.erase(clients_.begin());
        }
        clients_.push_back(std::make_unique<Client>(at, opened(any()), ++number_));
        return *clients_.back();
    }
    void change_ports() {
        outbox_.flush();
        for (const auto& client : clients_) {
            const int before = client->back;
            client->back = opened(any());  // before the other goes, so that it is another port
            close(before);
            ++ports_;
        }
    }

    // Milliseconds, rounded up.
    int timeout() const {
        if (garbage_ != 0 || forge_ != 0) return 0;
        std::int64_t least = -1;
        for (const RelayWay* way : {&out_, &in_}) {
            const std::int64_t one = way->next(now());
            if (one >= 0 && (least < 0 || one < least)) least = one;
        }
        return least < 0 ? -1 : static_cast<int>((least + 999) / 1000);
    }

    template <class Each>
    void take(int fd, Each&& each) {
        sockaddr_in6 names[kBurst];
        Control controls[kBurst];
        iovec parts[kBurst];
        mmsghdr messages[kBurst];
        for (std::size_t i = 0; i < kBurst; ++i) {
            parts[i] = {&room_[i * kRoom], kRoom};
            msghdr& h = messages[i].msg_hdr;
            h = {};
            h.msg_name = &names[i], h.msg_namelen = sizeof names[i];
            h.msg_iov = &parts[i], h.msg_iovlen = 1;
            h.msg_control = controls[i].bytes, h.msg_controllen = sizeof controls[i].bytes;
        }
        const int n = recvmmsg(fd, messages, kBurst, MSG_DONTWAIT, nullptr);
        for (int i = 0; i < n; ++i) {
            msghdr& h = messages[i].msg_hdr;
            std::uint8_t tos = 0;
            if (cmsghdr* const c = CMSG_FIRSTHDR(&h)) tos = *CMSG_DATA(c);  // a byte, or an int
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
            if (cmsghdr* const c = CMSG_FIRSTHDR(&h); c && c->cmsg_level == SOL_IPV6)
                tos = CMSG_DATA(c)[3];
#endif
            each(Endpoint::from_socket(names[i]),
                 std::span<const std::uint8_t>(&room_[static_cast<std::size_t>(i) * kRoom],
                                               messages[i].msg_len),
                 tos);
        }
        outbox_.flush();  // what it holds may be of a client that goes
    }
    void take_from_clients(std::uint64_t time) {
        take(front_,
             [&](const Endpoint& from, std::span<const std::uint8_t> bytes, std::uint8_t tos) {
                 if (every_ != 0 && ++since_ >= every_) since_ = 0, change_ports();
                 last_.assign(bytes.begin(), bytes.end());
                 out_.take(bytes, tos, client_at(from).number, time);
             });
    }
    void take_from_server(Client& client, std::uint64_t time) {
        const std::uint64_t number = client.number;
        take(client.back,
             [&](const Endpoint& from, std::span<const std::uint8_t> bytes, std::uint8_t tos) {
                 if (from == server_) in_.take(bytes, tos, number, time);
             });
    }

    void make_garbage() {
        std::uint64_t& count = garbage_ != 0 ? garbage_ : forge_;
        if (count == 0) return;
        if (stranger_ < 0) stranger_ = opened(any());
        // As from the last client, if there is one: what is forged looks like it.
        const int fd = clients_.empty() ? stranger_ : clients_.back()->back;
        for (std::size_t i = 0; i < kBurst && count != 0; ++i, --count) {
            const bool forged = &count == &forge_;
            Bytes bytes = forged ? last_ : Bytes(garbage_size_);
            for (std::size_t at = forged ? 9 : 0; at < bytes.size(); at += 8) {
                const std::uint64_t eight = noise_.number();
                std::memcpy(&bytes[at], &eight, std::min<std::size_t>(8, bytes.size() - at));
            }
            outbox_.add(fd, server_, bytes, 0);
            ++made_;
        }
        outbox_.flush();
    }

    // False: that was all.
    bool listen(std::string& input) {
        char buffer[4096];
        const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
        if (n <= 0) return n < 0 && errno == EINTR;
        input.append(buffer, static_cast<std::size_t>(n));
        for (std::size_t end; (end = input.find('\n')) != input.npos; input.erase(0, end + 1)) {
            const std::string answer = obey(input.substr(0, end));
            std::printf("%s\n", answer.empty() ? "not understood" : answer.c_str());
        }
        std::fflush(stdout);
        return true;
    }

    std::string stats() const {
        std::ostringstream text;
        const auto one = [&](const char* name, const RelayCounts& c) {
            text << '"' << name << "\": {\"seen\": " << c.seen << ", \"passed\": " << c.passed
                 << ", \"lost\": " << c.lost << ", \"late\": " << c.late
                 << ", \"twice\": " << c.twice << ", \"again\": " << c.again
                 << ", \"altered\": " << c.altered << "}, ";
        };
        text << '{';
        one("out", out_.counts), one("in", in_.counts);
        text << "\"clients\": " << clients_.size() << ", \"ports\": " << ports_
             << ", \"garbage\": " << made_ << ", \"pending\": " << garbage_ + forge_
             << ", \"failed\": " << outbox_.failed << '}';
        return text.str();
    }

    Endpoint server_;
    int front_, stranger_ = -1;
    Bytes room_, last_;
    std::vector<std::unique_ptr<Client>> clients_;
    std::uint64_t number_ = 0, ports_ = 0, every_ = 0, since_ = 0, made_ = 0;
    std::uint64_t garbage_ = 0, forge_ = 0;
    std::size_t garbage_size_ = 0;
    Random noise_{99};
    Outbox outbox_;
    RelayWay out_{1, [this](auto bytes, auto tos, auto number) {
                      if (Client* const client = find(number))
                          outbox_.add(client->back, server_, bytes, tos);
                  }};
    RelayWay in_{2, [this](auto bytes, auto tos, auto number) {
                     if (Client* const client = find(number))
                         outbox_.add(front_, client->at, bytes, tos);
                 }};
};

}  // namespace

int main(int argc, char** argv) {
    const auto listen = argc > 2 ? Endpoint::parse(argv[1]) : std::nullopt;
    const auto server = argc > 2 ? Endpoint::parse(argv[2]) : std::nullopt;
    if (!listen || !server) {
        std::fprintf(stderr, "vpn_relay ADDRESS:PORT ADDRESS:PORT [NAME=VALUE...]\n");
        return 2;
    }
    Relay relay(*listen, *server);
    for (int i = 3; i < argc; ++i) {
        std::string line = argv[i];
        std::ranges::replace(line, '=', ' ');
        if (relay.obey(line).empty()) {
            std::fprintf(stderr, "vpn_relay: \"%s\" is not understood\n", argv[i]);
            return 2;
        }
    }
    relay.run();
}
