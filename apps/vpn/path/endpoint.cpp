// SPDX-License-Identifier: Apache-2.0
#include "vpn/path/endpoint.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace dael::vpn::path {
namespace {

constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

template <class T>
std::optional<T> number(std::string_view text) {
    T value{};
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || fault != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

bool link_local(const std::array<std::uint8_t, 16>& bytes) {
    return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

}  // namespace

std::optional<Address> Address::parse(std::string_view text) {
    if (text.find('\0') != text.npos) return std::nullopt;
    const std::string whole(text);
    Address address;
    if (inet_pton(AF_INET, whole.c_str(), address.bytes.data()) == 1)
        address.family = 4;
    else if (inet_pton(AF_INET6, whole.c_str(), address.bytes.data()) == 1)
        address.family = 6;
    else
        return std::nullopt;
    return address;
}

std::string Address::text() const {
    char buffer[INET6_ADDRSTRLEN] = "none";
    if (family != 0)
        inet_ntop(family == 6 ? AF_INET6 : AF_INET, bytes.data(), buffer, sizeof buffer);
    return buffer;
}

std::optional<Endpoint> Endpoint::parse(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos) return std::nullopt;
    const auto port = number<std::uint16_t>(text.substr(colon + 1));
    std::string_view host = text.substr(0, colon), scope;
    if (!port) return std::nullopt;
    Endpoint endpoint;
    endpoint.port = *port;
    const bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
    if (brackets) {
        host = host.substr(1, host.size() - 2);
        if (const std::size_t at = host.find('%'); at != host.npos) {
            scope = host.substr(at + 1);
            host = host.substr(0, at);
            endpoint.scope = number<std::uint32_t>(scope).value_or(0);
            if (endpoint.scope == 0) endpoint.scope = if_nametoindex(std::string(scope).c_str());
            if (endpoint.scope == 0) return std::nullopt;
        }
    }
    const auto address = Address::parse(host);
    if (!address || brackets != (address->family == 6)) return std::nullopt;
    endpoint.address = *address;
    return endpoint;
}

std::string Endpoint::text() const {
    if (address.family == 0) return "none";
    const std::string after = ":" + std::to_string(port);
    if (address.family == 4) return address.text() + after;
    return "[" + address.text() + (scope != 0 ? "%" + std::to_string(scope) : "") + "]" + after;
}

std::size_t Endpoint::bytes(std::span<std::uint8_t, 18> to) const noexcept {
    const auto from = address.span();
    std::ranges::copy(from, to.begin());
    to[from.size()] = static_cast<std::uint8_t>(port >> 8);
    to[from.size() + 1] = static_cast<std::uint8_t>(port);
    return from.size() + 2;
}

socklen_t Endpoint::to_socket(sockaddr_in6& to, bool six) const noexcept {
    to = {};
    if (address.family != 6 && !six) {
        sockaddr_in four{};
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
        std::memcpy(&four.sin_addr, address.bytes.data(), 4);
        std::memcpy(&to, &four, sizeof four);
        return sizeof four;
    }
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    if (address.family == 6) {
        std::memcpy(&to.sin6_addr, address.bytes.data(), 16);
        to.sin6_scope_id = scope;
    } else if (address.family == 4) {
        std::memcpy(&to.sin6_addr, kMapped, 12);
        std::memcpy(to.sin6_addr.s6_addr + 12, address.bytes.data(), 4);
    }
    return sizeof to;
}

Endpoint Endpoint::from_socket(const sockaddr_in6& from) noexcept {
    Endpoint endpoint;
    if (from.sin6_family == AF_INET) {
        sockaddr_in four;
        std::memcpy(&four, &from, sizeof four);
        endpoint.address.family = 4;
        endpoint.port = ntohs(four.sin_port);
        std::memcpy(endpoint.address.bytes.data(), &four.sin_addr, 4);
    } else if (from.sin6_family == AF_INET6) {
        endpoint.port = ntohs(from.sin6_port);
        const std::uint8_t* const bytes = from.sin6_addr.s6_addr;
        if (std::memcmp(bytes, kMapped, 12) == 0) {
            endpoint.address.family = 4;
            std::memcpy(endpoint.address.bytes.data(), bytes + 12, 4);
        } else {
            endpoint.address.family = 6;
            std::memcpy(endpoint.address.bytes.data(), bytes, 16);
            if (link_local(endpoint.address.bytes)) endpoint.scope = from.sin6_scope_id;
        }
    }
    return endpoint;
}

}  // namespace dael::vpn::path
