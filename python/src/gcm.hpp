// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "engine.hpp"

namespace daelpy {

inline constexpr std::uint64_t kTag = DAEL_TAG_SIZE;

// One key for GCM; messages in host memory or on a device. A first message that is short is done
// with the key as it is, since many programs make one of these for each; whatever comes next makes
// the key ready, once. Never changes otherwise, and has no lock that a child of fork() could find
// taken.
class DeviceGcm;
class AesGcm {
  public:
    AesGcm(nb::handle key, const Engine* engine);
    ~AesGcm();
    AesGcm(const AesGcm&) = delete;
    AesGcm& operator=(const AesGcm&) = delete;

    nb::object encrypt(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle out,
                       nb::handle stream);
    nb::object decrypt(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle out,
                       nb::handle stream);
    std::uint64_t encrypt_into(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle out,
                               nb::handle stream);
    std::uint64_t decrypt_into(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle out,
                               nb::handle stream);
    const KeySet& keys() const;

  private:
    dael_message message(nb::handle nonce, const Memory& data, const Memory& aad) const;
    void run(dael_direction direction, const dael_message& message);
    void run_where_it_lies(dael_direction direction, const dael_message& message,
                           const Memory& data, const Memory& additional, const Memory* out,
                           nb::handle stream);
    void run_on_device(dael_direction direction, const dael_message& message, const Memory& data,
                       const Memory& aad, const Memory* out, nb::handle stream);

    struct Ready;
    Ready& ready() const;

    Engine engine_;
    Key key_;
    std::atomic<bool> used_{false};
    mutable std::atomic<Ready*> ready_{nullptr};
};

// Whether plaintext that nobody has verified may lie in an output, which is then wiped: after a tag
// that did not match, or a failure amid the work. A message that was refused has cost its caller
// nothing.
inline bool left_unverified(dael_status status, std::int32_t code) noexcept {
    const int which = status != DAEL_OK ? static_cast<int>(status) : code;
    return which == DAEL_AUTHENTICATION || which == DAEL_DEVICE || which == DAEL_INTERNAL ||
           which == DAEL_OUT_OF_MEMORY;
}

// The pre-counter block of a nonce of 12 bytes, or of another size, which takes the key.
void gcm_start(const Key& key, const Memory& nonce, std::uint8_t start[DAEL_BLOCK_SIZE]);

}  // namespace daelpy
