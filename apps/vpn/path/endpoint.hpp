// SPDX-License-Identifier: Apache-2.0
// Where datagrams come from and go to. IPv4 is IPv4 here, also on a socket of both families.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dael::vpn::path {

// An address; of IPv4 the first 4 bytes count and the others are 0.
struct Address {
    std::array<std::uint8_t, 16> bytes{};
    std::uint8_t family = 0;  // 4, 6; 0: none
    bool operator==(const Address&) const = default;
    std::span<const std::uint8_t> span() const noexcept {
        return {bytes.data(), family == 6 ? 16u : family == 4 ? 4u : 0u};
    }
    // Numbers only, never a name. IPv6 without brackets or scope.
    static std::optional<Address> parse(std::string_view text);
    std::string text() const;
};

struct Endpoint {
    Address address;
    std::uint16_t port = 0;
    std::uint32_t scope = 0;  // the interface, of link-local IPv6 addresses; else 0
    bool operator==(const Endpoint&) const = default;
    explicit operator bool() const noexcept { return address.family != 0; }
    // "192.0.2.1:4500", "[2001:db8::1]:4500", "[fe80::1%eth0]:4500".
    static std::optional<Endpoint> parse(std::string_view text);
    std::string text() const;
    // Address and port as bytes, for a cookie's MAC: 4 + 2 or 16 + 2 (scope is left out). Writes
    // into `to`, says how many.
    std::size_t bytes(std::span<std::uint8_t, 18> to) const noexcept;

    // As sockets have it. `six`: for a socket of IPv6, where IPv4 is mapped. Says the size.
    socklen_t to_socket(sockaddr_in6& to, bool six) const noexcept;
    static Endpoint from_socket(const sockaddr_in6& from) noexcept;  // sockaddr_in within, too
};

// A peer's end and ours: answers leave from the address that was asked.
struct Route {
    Endpoint remote{};
    Address local{};              // none: the kernel chooses
    std::uint32_t interface = 0;  // to leave by, 0: as routes say
    bool operator==(const Route&) const = default;
};

}  // namespace dael::vpn::path
