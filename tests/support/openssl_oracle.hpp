// SPDX-License-Identifier: Apache-2.0
// What a call must produce, from OpenSSL's own interface, one whole message at a time.
#pragma once

#include <openssl/evp.h>

#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <daelstrom/modes.hpp>

#include "modes/counter.hpp"

namespace dael::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes random_bytes(std::size_t size, std::uint32_t seed) {
    std::mt19937 random(seed);
    Bytes bytes(size);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    return bytes;
}

inline Block random_block(std::uint32_t seed) {
    Block block;
    std::ranges::copy(random_bytes(block.size(), seed), block.begin());
    return block;
}

inline Bytes openssl(const Bytes& key, Mode mode, Direction direction, const Block& iv,
                     std::span<const std::uint8_t> in, std::uint64_t offset = 0) {
    const std::string suffix(name(mode));
    const std::string cipher = "AES-" + std::to_string(key.size() * 8) + "-" + suffix;
    const std::unique_ptr<EVP_CIPHER, decltype(&EVP_CIPHER_free)> type(
        EVP_CIPHER_fetch(nullptr, cipher.c_str(), nullptr), EVP_CIPHER_free);
    const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
        EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    const Block start = mode == Mode::ctr ? modes::counter_add(iv, offset / kBlockSize) : iv;
    const auto skip = static_cast<int>(offset % kBlockSize);
    Bytes out(in.size());
    int written = 0;
    std::uint8_t unused[kBlockSize] = {};
    const std::uint8_t nothing = 0;
    if (!EVP_CipherInit_ex(context.get(), type.get(), nullptr, key.data(),
                           takes_iv(mode) ? start.data() : nullptr,
                           direction == Direction::encrypt) ||
        !EVP_CIPHER_CTX_set_padding(context.get(), 0) ||
        !EVP_CipherUpdate(context.get(), unused, &written, unused, skip) ||
        !EVP_CipherUpdate(context.get(), out.empty() ? unused : out.data(), &written,
                          in.empty() ? &nothing : in.data(), static_cast<int>(in.size())))
        throw std::runtime_error("openssl: " + cipher);
    return out;
}

}  // namespace dael::test
