// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/xaes.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <daelstrom/gcm.hpp>

namespace dael::reference {
namespace {

// Step 2: L << 1, as one number whose first byte is uppermost, and 0b10000111 where a bit fell off.
Block doubled(const Block& l) noexcept {
    Block k1;
    for (std::size_t i = 0; i < kBlockSize; ++i)
        k1[i] = static_cast<std::uint8_t>(l[i] << 1 | (i + 1 < kBlockSize ? l[i + 1] >> 7 : 0));
    k1[kBlockSize - 1] ^= static_cast<std::uint8_t>(0b10000111 & (0 - (l[0] >> 7)));
    return k1;
}

}  // namespace

// "Detailed key derivation algorithm", step by step: K_x and, as GCM's pre-counter block, N_x.
class XaesKey {
  public:
    XaesKey(const ExpandedKey& w, const Start& n) {
        Block l = cipher(Block{}, w), k1 = doubled(l);
        std::array<std::uint8_t, 32> k_x;
        for (std::uint8_t i = 1; i <= 2; ++i) {
            Block m{0x00, i, 0x58, 0x00};
            std::copy_n(n.first.begin(), 12, m.begin() + 4);
            Block half = cipher(m ^ k1, w);
            std::ranges::copy(half, k_x.begin() + kBlockSize * (i - 1));
            wipe(half.data(), half.size());
        }
        key_.emplace(k_x);
        for (auto* secret : {&l, &k1}) wipe(secret->data(), secret->size());
        wipe(k_x.data(), k_x.size());
        gcm::Nonce n_x;  // N[12:]
        std::copy_n(n.first.begin() + 12, 4, n_x.begin());
        std::copy_n(n.rest.begin(), 8, n_x.begin() + 4);
        j0_ = gcm::start(n_x);
    }
    const ExpandedKey& key() const noexcept { return *key_; }
    const Block& j0() const noexcept { return j0_; }

  private:
    std::optional<ExpandedKey> key_;
    Block j0_;
};

Xaes::Xaes(Direction direction, const ExpandedKey& w, const Start& start)
    : direction_(direction), w_(&w) {
    restart(start);
}

void Xaes::restart(const Start& start) {
    key_ = std::make_shared<const XaesKey>(*w_, start);
    gcm_.emplace(direction_, key_->key(), key_->j0());
}

Code xaes(const Cipher& cipher, const ExpandedKey& w, const Message& message) {
    const XaesKey derived(w, {message.start, message.start_rest});
    Message its = message;
    its.start = derived.j0();
    return reference::gcm({Mode::gcm, cipher.direction}, derived.key(), its);
}

}  // namespace dael::reference
