// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <algorithm>

#include <daelstrom/gcm.hpp>

#include "bench/libraries.hpp"

namespace dael::bench {
namespace {

constexpr std::size_t kMax = std::size_t{1} << 30;  // EVP counts bytes in an int

Error failed(const char* call) {
    return {Code::internal, "OpenSSL: " + std::string(call) + " failed"};
}

// OpenSSL's plain "CFB" is CFB-128.
const EVP_CIPHER* cipher_of(Mode mode, std::size_t key_size) {
    const std::size_t bits = key_size * (mode == Mode::xts ? 4 : 8);
    return EVP_get_cipherbyname(
        ("AES-" + std::to_string(bits) + "-" + std::string(name(mode))).c_str());
}

}  // namespace

void Evp::Free::operator()(evp_cipher_ctx_st* context) const noexcept {
    EVP_CIPHER_CTX_free(context);
}

Result<Evp> Evp::open(const Cipher& cipher, std::span<const std::uint8_t> key) {
    Evp evp;
    evp.context_.reset(EVP_CIPHER_CTX_new());
    evp.cipher_ = cipher;
    const int encrypt = cipher.direction == Direction::encrypt;
    if (!evp.context_ || EVP_CipherInit_ex(evp.context_.get(), cipher_of(cipher.mode, key.size()),
                                           nullptr, key.data(), nullptr, encrypt) != 1)
        return failed("EVP_CipherInit_ex");
    EVP_CIPHER_CTX_set_padding(evp.context_.get(), 0);
    return evp;
}

// The first 12 bytes of GCM's start are the nonce.
Result<> Evp::begin(const Message& message) {
    sector_ = message.start;
    const auto* iv = takes_iv(cipher_.mode) ? message.start.data() : nullptr;
    if (EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, iv, -1) != 1)
        return failed("EVP_CipherInit_ex");
    return message.aad_size != 0 ? put({message.aad, message.aad_size}, nullptr) : Result<>{};
}

Result<> Evp::update(std::span<const std::uint8_t> in, std::uint8_t* out) {
    if (cipher_.mode != Mode::xts) return put(in, out);
    for (std::size_t at = 0; at < in.size(); at += cipher_.sector) {
        if (EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, sector_.data(), -1) != 1)
            return failed("EVP_CipherInit_ex");
        DAEL_TRY(
            put(in.subspan(at, std::min<std::size_t>(cipher_.sector, in.size() - at)), out + at));
        for (std::size_t i = 0; i < kBlockSize && ++sector_[i] == 0;) ++i;
    }
    return {};
}

Result<> Evp::put(std::span<const std::uint8_t> in, std::uint8_t* out) {
    for (std::size_t done = 0; done < in.size();) {
        const std::size_t size = std::min(kMax, in.size() - done);
        int written = 0;
        if (EVP_CipherUpdate(context_.get(), out ? out + done : nullptr, &written, in.data() + done,
                             static_cast<int>(size)) != 1)
            return failed("EVP_CipherUpdate");
        done += size;
    }
    return {};
}

Result<> Evp::tag(std::uint8_t* tag) {
    Block nothing;
    int written = 0;
    if (EVP_CipherFinal_ex(context_.get(), nothing.data(), &written) != 1 ||
        EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, gcm::kTagSize, tag) != 1)
        return failed("EVP_CipherFinal_ex");
    return {};
}

Result<> Evp::run(std::span<const Message> messages) {
    for (const Message& message : messages) {
        DAEL_TRY(begin(message));
        DAEL_TRY(update({message.in, message.size}, message.out));
        if (message.tag) DAEL_TRY(tag(message.tag));
    }
    return {};
}

}  // namespace dael::bench
