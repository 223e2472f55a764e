// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstring>

#include "vpn/path/netlink.hpp"

namespace dael::vpn::path {

std::optional<Prefix> Prefix::parse(std::string_view text) {
    const std::size_t slash = text.find('/');
    const auto address = Address::parse(text.substr(0, slash));
    if (!address) return std::nullopt;
    const std::uint8_t most = address->family == 6 ? 128 : 32;
    Prefix prefix{*address, most};
    if (slash == text.npos) return prefix;
    const std::string_view rest = text.substr(slash + 1);
    const auto [end, fault] =
        std::from_chars(rest.data(), rest.data() + rest.size(), prefix.length);
    if (rest.empty() || fault != std::errc{} || end != rest.data() + rest.size() ||
        prefix.length > most)
        return std::nullopt;
    return prefix;
}

std::string Prefix::text() const {
    return address.text() + "/" + std::to_string(length);
}

Prefix Prefix::masked() const noexcept {
    Prefix all = *this;
    for (std::size_t bit = length; bit < 8 * all.address.bytes.size(); ++bit)
        all.address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> bit % 8));
    return all;
}

bool Prefix::holds(const Address& one) const noexcept {
    return one.family == address.family && Prefix{one, length}.masked() == masked();
}

}  // namespace dael::vpn::path
