// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"

#include <openssl/evp.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace dael::test {
namespace {

void require(int result, const char* call) {
    if (result != 1) throw std::runtime_error(std::string("the oracle's ") + call + " failed");
}

// The counter block that holds byte `offset` of the keystream, by 128-bit arithmetic.
Block counter_at(const Block& iv, std::uint64_t offset) {
    unsigned __int128 counter = 0;
    for (const std::uint8_t byte : iv) counter = counter << 8 | byte;
    counter += offset / 16;
    Block block;
    for (int i = 15; i >= 0; --i, counter >>= 8)
        block[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(counter);
    return block;
}

}  // namespace

OracleStream::OracleStream(std::span<const std::uint8_t> key, const Cipher& cipher)
    : context_(EVP_CIPHER_CTX_new()) {
    const std::string full =
        "aes-" + std::to_string(8 * key.size()) + "-" + std::string(name(cipher.mode));
    const EVP_CIPHER* evp = EVP_get_cipherbyname(full.c_str());
    if (!context_ || !evp) throw std::runtime_error("the oracle has no " + full);
    Block iv = cipher.iv;
    if (cipher.mode == Mode::ctr) iv = counter_at(iv, cipher.offset);
    require(EVP_CipherInit_ex(context_, evp, nullptr, key.data(), iv.data(),
                              cipher.direction == Direction::encrypt),
            "EVP_CipherInit_ex");
    EVP_CIPHER_CTX_set_padding(context_, 0);
    if (cipher.mode == Mode::ctr && cipher.offset % 16 != 0) {
        const Bytes skipped(cipher.offset % 16);
        Block unused;
        update(skipped, unused.data());
    }
}

OracleStream::~OracleStream() {
    EVP_CIPHER_CTX_free(context_);
}

void OracleStream::update(std::span<const std::uint8_t> in, std::uint8_t* out) {
    if (in.empty()) return;
    int written = 0;
    require(EVP_CipherUpdate(context_, out, &written, in.data(), static_cast<int>(in.size())),
            "EVP_CipherUpdate");
    if (static_cast<std::size_t>(written) != in.size())
        throw std::runtime_error("the oracle held bytes back");
}

Bytes oracle(std::span<const std::uint8_t> key, const Cipher& cipher,
             std::span<const std::uint8_t> in) {
    Bytes out(in.size());
    OracleStream(key, cipher).update(in, out.data());
    return out;
}

Bytes oracle_xts(std::span<const std::uint8_t> key, Direction direction, const XtsSectors& sectors,
                 std::span<const std::uint8_t> in) {
    const EVP_CIPHER* evp = key.size() == 32 ? EVP_aes_128_xts() : EVP_aes_256_xts();
    const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
        EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
    auto number = static_cast<unsigned __int128>(sectors.first_high) << 64 | sectors.first;
    Bytes out(in.size());
    for (std::size_t at = 0; at < in.size(); at += sectors.size, ++number) {
        Block tweak;
        auto rest = number;
        for (auto& byte : tweak) {
            byte = static_cast<std::uint8_t>(rest);
            rest >>= 8;
        }
        require(EVP_CipherInit_ex(context.get(), evp, nullptr, key.data(), tweak.data(),
                                  direction == Direction::encrypt),
                "EVP_CipherInit_ex");
        const auto size = static_cast<int>(std::min(sectors.size, in.size() - at));
        int written = 0;
        require(EVP_CipherUpdate(context.get(), out.data() + at, &written, in.data() + at, size),
                "EVP_CipherUpdate");
        if (written != size) throw std::runtime_error("the oracle held bytes back");
    }
    return out;
}

}  // namespace dael::test
