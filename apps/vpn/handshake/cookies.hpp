// SPDX-License-Identifier: Apache-2.0
// What a message has besides Noise, against floods: MAC1 shows that its sender knows our public
// key, MAC2, by a cookie that we gave, that it gets what is sent to its address. Neither is a
// proof of who it is. After WireGuard's paper, 5.4.4 and 5.4.7, with HMAC-SHA256 and AES-256-GCM.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "vpn/handshake/messages.hpp"
#include "vpn/handshake/timers.hpp"

namespace dael::vpn {

inline constexpr Time kCookieLife = std::chrono::seconds(120);

// Keys that follow from the public key of whom a message is for: no secrets to who knows that.
struct MacKeys {
    Hash mac, cookie;
    bool set(const Crypto& crypto, const PublicKey& owner) noexcept;
};

using Cookie = Wiped<kCookieSize>;

// Writes MAC1, and MAC2 where there is a cookie: into the last 32 bytes of the message.
bool write_macs(const Crypto& crypto, const MacKeys& receiver, const Cookie* cookie,
                BytesOut message) noexcept;
Mac mac1_of(BytesIn message) noexcept;

// The cookie in a reply to the message with that MAC1.
bool open_cookie(const Crypto& crypto, const MacKeys& sender, const Mac& mac1, BytesIn reply,
                 Cookie& cookie) noexcept;

// A rate with a burst, by one number (the generic cell rate algorithm of ATM's traffic control).
class Rate {
  public:
    bool has(std::uint32_t per_second, std::uint32_t burst, Time now) const noexcept;
    bool take(std::uint32_t per_second, std::uint32_t burst, Time now) noexcept;

  private:
    Time full_at_ = Time::min();  // when the bucket will be full again
};

// The receiving side. Threads: one at a time.
class Gate {
  public:
    bool open(const Crypto& crypto, const PublicKey& own, const Policy& policy,
              const Randomness& random) noexcept;
    const MacKeys& own() const noexcept { return own_; }

    bool mac1_holds(BytesIn message) noexcept;
    enum class Answer : std::uint8_t { compute, ask, drop, fault };
    // Whether a message whose MAC1 holds is worth a computation: while there is little to do,
    // always.
    Answer admit(const Crypto& crypto, BytesIn message, BytesIn source, Time now) noexcept;
    bool under_load(Time now) const noexcept;
    // What asks for a cookie: the reply to this message.
    bool write_reply(const Crypto& crypto, BytesIn message, BytesIn source, Time now,
                     BytesOut reply) noexcept;
    // The MAC of hints, under our own key.
    bool write_hint_mac(BytesOut message) noexcept;
    bool may_hint(Time now) noexcept;

  private:
    bool turn(Time now) noexcept;
    bool cookie_of(const Crypto& crypto, const SecretKey& secret, BytesIn source,
                   Cookie& cookie) const noexcept;
    bool mac2_holds(const Crypto& crypto, const SecretKey& secret, BytesIn message, BytesIn source,
                    bool& holds) const noexcept;

    Policy policy_;
    Randomness random_;
    MacKeys own_;
    KeyedMac mac1_;
    // Of cookies: the one that is given, and the one before it, which holds as long once more.
    SecretKey secret_, before_;
    Time since_ = Time::min();
    bool has_before_ = false;
    Rate free_, hints_;
    std::array<Rate, 1024> sources_;  // by a hash of the address that nobody can foresee
};

}  // namespace dael::vpn
