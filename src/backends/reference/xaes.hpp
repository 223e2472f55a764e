// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM as C2SP writes it, over gcm.hpp.
#pragma once

#include <memory>
#include <optional>

#include "backends/reference/gcm.hpp"

namespace dael::reference {

class XaesKey;

// A message under its own key, which copies share and nobody changes. The key that it is derived
// from must outlive it.
class Xaes {
  public:
    Xaes(Direction direction, const ExpandedKey& w, const Start& start);

    void restart(const Start& start);  // allocates, which a yardstick may
    void aad(std::span<const std::uint8_t> bytes) noexcept { gcm_->aad(bytes); }
    void update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) {
        gcm_->update(in, out, size);
    }
    Block finish() { return gcm_->finish(); }  // the whole tag

  private:
    Direction direction_;
    const ExpandedKey* w_;
    std::shared_ptr<const XaesKey> key_;
    std::optional<Gcm> gcm_;
};

// One message: ok, or authentication, and then nothing was written.
Code xaes(const Cipher& cipher, const ExpandedKey& w, const Message& message);

}  // namespace dael::reference
