// SPDX-License-Identifier: Apache-2.0
#include "modes/starts.hpp"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace dael::modes {
namespace {

// Starts are no secrets, and whoever picks them to collide makes only his own batch slow.
std::size_t mixed(const Message& m) noexcept {
    std::uint64_t a, b;
    std::memcpy(&a, m.start.data(), sizeof a);
    std::memcpy(&b, m.start.data() + 8, sizeof b);
    std::uint64_t x = a * 0x9e3779b97f4a7c15u ^ std::rotl(b, 32) ^ m.key;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    return static_cast<std::size_t>(x ^ x >> 29);
}

}  // namespace

std::optional<std::pair<std::size_t, std::size_t>> find_repeat(std::span<const Message> messages) {
    // Open addressing, half full at most; places hold a message's number plus one.
    std::vector<std::uint32_t> places(std::bit_ceil(2 * messages.size() + 1));
    const std::size_t mask = places.size() - 1;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        if (m.size == 0 && !m.tag) continue;
        for (std::size_t at = mixed(m) & mask;; at = (at + 1) & mask) {
            if (places[at] == 0) {
                places[at] = static_cast<std::uint32_t>(i + 1);
                break;
            }
            const Message& other = messages[places[at] - 1];
            if (other.key == m.key && other.start == m.start) return {{places[at] - 1, i}};
        }
    }
    return std::nullopt;
}

Result<> check_starts(std::span<const Message> messages) {
    const auto twice = find_repeat(messages);
    if (!twice) return {};
    return Error{Code::limit, "messages " + std::to_string(twice->first) + " and " +
                                  std::to_string(twice->second) +
                                  " have the same key and the same nonce, IV or counter; "
                                  "give each its own (see nonce.hpp)"};
}

}  // namespace dael::modes
