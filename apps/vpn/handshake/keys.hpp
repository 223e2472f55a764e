// SPDX-License-Identifier: Apache-2.0
// Keys of the handshake as bytes: public ones, and secret ones that wipe themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>

namespace dael::vpn {

inline constexpr std::size_t kKeySize = 32;  // of X25519's keys, and of all others here
using PublicKey = std::array<std::uint8_t, kKeySize>;

// Secret bytes that are wiped when they go, or are moved from.
template <std::size_t Size>
class Wiped {
  public:
    Wiped() = default;
    explicit Wiped(std::span<const std::uint8_t, Size> from) {
        std::copy(from.begin(), from.end(), bytes_.begin());
    }
    Wiped(const Wiped&) = default;  // each copy wipes itself
    Wiped(Wiped&& other) noexcept : bytes_(other.bytes_) { other.clear(); }
    Wiped& operator=(const Wiped&) = default;
    Wiped& operator=(Wiped&& other) noexcept {
        if (this != &other) {
            bytes_ = other.bytes_;
            other.clear();
        }
        return *this;
    }
    ~Wiped() { clear(); }

    void clear() noexcept { wipe(bytes_.data(), Size); }
    std::uint8_t* data() noexcept { return bytes_.data(); }
    const std::uint8_t* data() const noexcept { return bytes_.data(); }
    static constexpr std::size_t size() noexcept { return Size; }
    std::span<std::uint8_t, Size> span() noexcept { return bytes_; }
    std::span<const std::uint8_t, Size> span() const noexcept { return bytes_; }

  private:
    std::array<std::uint8_t, Size> bytes_{};
};
using SecretKey = Wiped<kKeySize>;

// Where random bytes come from: by default OpenSSL's private generator, which asks the kernel each
// time. False: there are none, and nothing is made of what was written. Tests give their own.
struct Randomness {
    bool (*fill)(void* context, std::span<std::uint8_t> bytes) = nullptr;
    void* context = nullptr;

    bool operator()(std::span<std::uint8_t> bytes) const noexcept;
};

// A new private key, and the public one of a private one (RFC 7748 6.1). Errors: internal.
Result<SecretKey> generate_key(const Randomness& random = {});
Result<PublicKey> public_key(const SecretKey& key);

}  // namespace dael::vpn
