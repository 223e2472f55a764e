// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/gcm.hpp>

#include <algorithm>

namespace dael {
namespace {

gcm::Nonce nonce_of(const std::array<std::uint8_t, 4>& fixed, std::uint64_t number) {
    gcm::Nonce nonce;
    std::ranges::copy(fixed, nonce.begin());
    for (int i = 11; i >= 4; --i, number >>= 8)
        nonce[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(number);
    return nonce;
}

}  // namespace

// The last number is never handed out: one past it would be 0 again.
Result<std::uint64_t> NonceCounter::take(std::uint64_t count) {
    std::uint64_t first = next_.load(std::memory_order_relaxed);
    do {
        if (count > ~std::uint64_t{0} - first)
            return Error{Code::limit, "the nonces of this counter are used up; take a new key"};
    } while (!next_.compare_exchange_weak(first, first + count, std::memory_order_relaxed));
    return first;
}

Result<gcm::Nonce> NonceCounter::next() {
    DAEL_LET(number, take(1));
    return nonce_of(fixed_, number);
}

Result<> NonceCounter::number(std::span<Message> messages) {
    DAEL_LET(first, take(messages.size()));
    for (std::size_t i = 0; i < messages.size(); ++i)
        messages[i].start = gcm::start(nonce_of(fixed_, first + i));
    return {};
}

}  // namespace dael
