// SPDX-License-Identifier: Apache-2.0
// Garbage for a tunnel's port: datagrams that look like ESP and are nobody's.
//
//     vpn_flood ADDRESS:PORT SIZE PER-SECOND SPI FROM
//
// Random bytes behind that SPI, from an address of this machine's, until a signal or the end of
// standard input; so many a second, or as many as go (0). Prints then how many were sent, and how
// many nanoseconds of the processor that took.
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <random>
#include <string_view>
#include <vector>

#include "vpn/path/inet.hpp"
#include "vpn/path/udp.hpp"

namespace {

using namespace dael::vpn::path;
constexpr std::uint64_t kSecond = 1'000'000'000, kBurst = 64;

std::uint64_t clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * kSecond +
           static_cast<std::uint64_t>(now.tv_nsec);
}

bool read(std::string_view text, std::uint64_t& to) {
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), to);
    return fault == std::errc() && end == text.data() + text.size();
}

bool is_over() {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    std::array<char, 64> some;
    return ::poll(&in, 1, 0) > 0 && ::read(STDIN_FILENO, some.data(), some.size()) <= 0;
}

int flood(const Endpoint& to, std::size_t size, std::uint64_t rate, std::uint32_t spi,
          const Address& from) {
    UdpOptions options;
    options.bind.address = from;
    options.gso = false;  // each by itself, as they come from many
    auto udp = Udp::open(options);
    if (!udp) {
        std::fprintf(stderr, "vpn_flood: %s\n", udp.error().message.c_str());
        return 1;
    }
    std::mt19937 chance(7);
    std::vector<std::uint8_t> bytes(size * kBurst);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(chance());
    std::vector<dael::esp::Packet> packets(kBurst);
    for (std::size_t i = 0; i < kBurst; ++i) {
        packets[i].buffer = bytes.data() + i * size;
        packets[i].capacity = packets[i].size = static_cast<std::uint32_t>(size);
        packets[i].verdict = dael::esp::Verdict::ok;
        dael::vpn::inet::put32(packets[i].buffer, spi);
    }
    Route route;
    route.remote = to;
    const std::uint64_t began = clock_ns(CLOCK_MONOTONIC);
    std::uint64_t sent = 0;
    while (!is_over()) {
        if (rate != 0) {
            const std::uint64_t due = began + sent * kSecond / rate;
            const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
            if (due > now) {
                const timespec pause{0, static_cast<long>(std::min(due - now, kSecond / 100))};
                ::nanosleep(&pause, nullptr);
                continue;
            }
        }
        sent += udp->send(packets, route, 0).packets;
    }
    std::printf("%llu %llu\n", static_cast<unsigned long long>(sent),
                static_cast<unsigned long long>(clock_ns(CLOCK_PROCESS_CPUTIME_ID)));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto to = argc == 6 ? Endpoint::parse(argv[1]) : std::nullopt;
    const auto from = argc == 6 ? Address::parse(argv[5]) : std::nullopt;
    std::uint64_t size = 0, rate = 0, spi = 0;
    if (!to || !from || !read(argv[2], size) || !read(argv[3], rate) || !read(argv[4], spi) ||
        size < 4 || size > 1400) {
        std::fprintf(stderr, "usage: vpn_flood ADDRESS:PORT SIZE PER-SECOND SPI FROM\n");
        return 2;
    }
    return flood(*to, size, rate, static_cast<std::uint32_t>(spi), *from);
}
