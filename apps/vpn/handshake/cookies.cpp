// SPDX-License-Identifier: Apache-2.0
#include "vpn/handshake/cookies.hpp"

#include <algorithm>

namespace dael::vpn {
namespace {

constexpr std::size_t kMacs = 2 * kMacSize;

bool mac_is(const Hash& computed, BytesIn there) noexcept {
    return same(computed.span().first<kMacSize>(), there);
}

// The key under which a cookie is sealed. The salt is random, so that the key serves once, and the
// one nonce of 0 with it: random nonces of 12 bytes under one key might meet.
bool cookie_key(const Crypto& crypto, const MacKeys& keys, BytesIn salt, SecretKey& key) noexcept {
    return crypto.hkdf(salt, keys.cookie.span(), bytes_of(kCookieLabel), key.span());
}

// Of an address whom it is fair to serve as one: of IPv6 a network of 64 bits.
BytesIn network_of(BytesIn source) noexcept {
    constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (source.size() < 16) return source.first(std::min<std::size_t>(source.size(), 4));
    return source.first(std::equal(kMapped, kMapped + 12, source.begin()) ? 16 : 8);
}

}  // namespace

bool MacKeys::set(const Crypto& crypto, const PublicKey& owner) noexcept {
    return crypto.hash({bytes_of(kMacLabel), owner}, mac) &&
           crypto.hash({bytes_of(kCookieLabel), owner}, cookie);
}

bool write_macs(const Crypto& crypto, const MacKeys& receiver, const Cookie* cookie,
                BytesOut message) noexcept {
    const std::size_t at = message.size() - kMacs;
    Hash mac;
    if (!crypto.hmac(receiver.mac.span(), {message.first(at)}, mac)) return false;
    std::copy_n(mac.data(), kMacSize, message.begin() + static_cast<std::ptrdiff_t>(at));
    if (!cookie) return true;  // MAC2 stays 0
    if (!crypto.hmac(cookie->span(), {message.first(at + kMacSize)}, mac)) return false;
    std::copy_n(mac.data(), kMacSize, message.last(kMacSize).begin());
    return true;
}

Mac mac1_of(BytesIn message) noexcept {
    Mac mac;
    std::copy_n(message.last(kMacs).begin(), kMacSize, mac.begin());
    return mac;
}

bool open_cookie(const Crypto& crypto, const MacKeys& sender, const Mac& mac1, BytesIn reply,
                 Cookie& cookie) noexcept {
    using layout::CookieReply;
    SecretKey key;
    return cookie_key(crypto, sender, reply.subspan(CookieReply::salt, kSaltSize), key) &&
           crypto.open(key, 0, mac1, reply.subspan(CookieReply::sealed, CookieReply::sealed_size),
                       cookie.span());
}

bool Rate::has(std::uint32_t per_second, std::uint32_t burst, Time now) const noexcept {
    if (per_second == 0 || burst == 0) return false;
    const Time each = Time(std::chrono::seconds(1)) / per_second;
    return full_at_ <= now + each * (burst - 1);
}

bool Rate::take(std::uint32_t per_second, std::uint32_t burst, Time now) noexcept {
    if (!has(per_second, burst, now)) return false;
    full_at_ = std::max(full_at_, now) + Time(std::chrono::seconds(1)) / per_second;
    return true;
}

bool Gate::open(const Crypto& crypto, const PublicKey& own, const Policy& policy,
                const Randomness& random) noexcept {
    policy_ = policy;
    random_ = random;
    return own_.set(crypto, own) && mac1_.open(crypto, own_.mac.span());
}

bool Gate::mac1_holds(BytesIn message) noexcept {
    Hash mac;
    return mac1_(message.first(message.size() - kMacs), mac) &&
           mac_is(mac, message.last(kMacs).first(kMacSize));
}

bool Gate::under_load(Time now) const noexcept {
    return !free_.has(policy_.free_per_second, policy_.free_burst, now);
}

Gate::Answer Gate::admit(const Crypto& crypto, BytesIn message, BytesIn source, Time now) noexcept {
    if (free_.take(policy_.free_per_second, policy_.free_burst, now)) return Answer::compute;
    if (!turn(now)) return Answer::fault;
    bool holds = false;
    if (!mac2_holds(crypto, secret_, message, source, holds)) return Answer::fault;
    if (!holds && has_before_ && !mac2_holds(crypto, before_, message, source, holds))
        return Answer::fault;
    if (!holds) return Answer::ask;
    Hash place;
    if (!crypto.hmac(secret_.span(), {network_of(source)}, place)) return Answer::fault;
    Rate& rate = sources_[get_u32(place.span(), 0) % sources_.size()];
    return rate.take(policy_.source_per_second, policy_.source_burst, now) ? Answer::compute
                                                                           : Answer::drop;
}

bool Gate::write_reply(const Crypto& crypto, BytesIn message, BytesIn source, Time now,
                       BytesOut reply) noexcept {
    using layout::CookieReply;
    // Initiations and responses alike: the sender's number comes first.
    const std::uint32_t receiver = get_u32(message, layout::Initiation::sender);
    static_assert(layout::Initiation::sender == layout::Response::sender);
    begin_message(reply, MessageType::cookie_reply);
    put_u32(reply, CookieReply::receiver, receiver);
    const BytesOut salt = reply.subspan(CookieReply::salt, kSaltSize);
    Cookie cookie;
    SecretKey key;
    const Mac mac1 = mac1_of(message);
    return turn(now) && random_(salt) && cookie_of(crypto, secret_, source, cookie) &&
           cookie_key(crypto, own_, salt, key) &&
           crypto.seal(key, 0, mac1, cookie.span(),
                       reply.subspan(CookieReply::sealed, CookieReply::sealed_size));
}

bool Gate::write_hint_mac(BytesOut message) noexcept {
    Hash mac;
    if (!mac1_(message.first(message.size() - kMacSize), mac)) return false;
    std::copy_n(mac.data(), kMacSize, message.last(kMacSize).begin());
    return true;
}

bool Gate::may_hint(Time now) noexcept {
    return hints_.take(policy_.hints_per_second, policy_.hints_per_second, now);
}

// Sees that the secret is not too old.
bool Gate::turn(Time now) noexcept {
    if (since_ != Time::min() && now - since_ < kCookieLife) return true;
    SecretKey fresh;
    if (!random_(fresh.span())) return false;
    has_before_ = since_ != Time::min() && now - since_ < 2 * kCookieLife;
    before_ = std::move(secret_);
    secret_ = std::move(fresh);
    since_ = now;
    return true;
}

bool Gate::cookie_of(const Crypto& crypto, const SecretKey& secret, BytesIn source,
                     Cookie& cookie) const noexcept {
    Hash mac;
    if (!crypto.hmac(secret.span(), {bytes_of(kCookieLabel), source}, mac)) return false;
    cookie = Cookie(mac.span().first<kCookieSize>());
    return true;
}

bool Gate::mac2_holds(const Crypto& crypto, const SecretKey& secret, BytesIn message,
                      BytesIn source, bool& holds) const noexcept {
    Cookie cookie;
    Hash mac;
    if (!cookie_of(crypto, secret, source, cookie) ||
        !crypto.hmac(cookie.span(), {message.first(message.size() - kMacSize)}, mac))
        return false;
    holds = mac_is(mac, message.last(kMacSize));
    return true;
}

}  // namespace dael::vpn
