// SPDX-License-Identifier: Apache-2.0
#include "modes/starts.hpp"

#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <string>

namespace dael::modes {
namespace {

// Starts are no secrets, and whoever picks them to collide makes only his own batch slow.
std::size_t mixed(const Message& m, bool with_rest) noexcept {
    std::uint64_t a, b;
    std::memcpy(&a, m.start.data(), sizeof a);
    std::memcpy(&b, m.start.data() + 8, sizeof b);
    if (with_rest) {
        std::uint64_t c, d;
        std::memcpy(&c, m.start_rest.data(), sizeof c);
        std::memcpy(&d, m.start_rest.data() + 8, sizeof d);
        a ^= std::rotl(c, 17);
        b += d * 0x94d049bb133111ebu;
    }
    std::uint64_t x = a * 0x9e3779b97f4a7c15u ^ std::rotl(b, 32) ^ m.key;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    return static_cast<std::size_t>(x ^ x >> 29);
}

}  // namespace

// Open addressing, half full at most; places hold a message's number plus one. Memory that the
// system gives as zeros is first touched by whoever looks.
SeenStarts::SeenStarts(std::span<const Message> messages, bool with_rest)
    : messages_(messages),
      with_rest_(with_rest),
      mask_(std::bit_ceil(2 * messages.size() + 1) - 1),
      places_(static_cast<std::uint32_t*>(std::calloc(mask_ + 1, sizeof(std::uint32_t)))) {
    if (!places_) throw std::bad_alloc();
}

std::optional<Pair> SeenStarts::add(std::size_t begin, std::size_t end) noexcept {
    for (std::size_t i = begin; i < end; ++i) {
        const Message& m = messages_[i];
        if (m.size == 0 && !m.tag) continue;
        for (std::size_t at = mixed(m, with_rest_) & mask_;; at = (at + 1) & mask_) {
            const std::atomic_ref place(places_[at]);
            std::uint32_t seen = 0;
            if (place.compare_exchange_strong(seen, static_cast<std::uint32_t>(i + 1),
                                              std::memory_order_relaxed))
                break;
            const Message& other = messages_[seen - 1];
            if (other.key == m.key && other.start == m.start &&
                (!with_rest_ || other.start_rest == m.start_rest))
                return {{seen - 1, i}};
        }
    }
    return std::nullopt;
}

std::optional<Pair> find_repeat(std::span<const Message> messages, bool with_rest) {
    return SeenStarts(messages, with_rest).add(0, messages.size());
}

Result<> check_starts(std::span<const Message> messages, bool with_rest) {
    const auto twice = find_repeat(messages, with_rest);
    if (!twice) return {};
    return Error{Code::limit, "messages " + std::to_string(twice->first) + " and " +
                                  std::to_string(twice->second) +
                                  " have the same key and the same nonce, IV or counter; "
                                  "give each its own (see NonceCounter)"};
}

}  // namespace dael::modes
