// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <algorithm>

#include "bench/libraries.hpp"

namespace dael::bench {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // EVP counts bytes in an int

const EVP_CIPHER* cipher_by_name(Mode mode, int bits) {
    // OpenSSL's plain "CFB" is CFB-128.
    return EVP_get_cipherbyname(
        ("AES-" + std::to_string(bits) + "-" + std::string(name(mode))).c_str());
}

}  // namespace

void FreeEvpContext::operator()(evp_cipher_ctx_st* context) const noexcept {
    EVP_CIPHER_CTX_free(context);
}

Result<Evp> Evp::open(Mode mode, Direction direction, const TestKey& key) {
    Evp evp;
    evp.context_.reset(EVP_CIPHER_CTX_new());
    evp.takes_iv_ = takes_iv(mode);
    const int encrypt = direction == Direction::encrypt;
    if (!evp.context_ || EVP_CipherInit_ex(evp.context_.get(), cipher_by_name(mode, key.key.bits()),
                                           nullptr, key.bytes().data(), nullptr, encrypt) != 1)
        return Error{Code::internal, "OpenSSL: EVP_CipherInit_ex failed"};
    EVP_CIPHER_CTX_set_padding(evp.context_.get(), 0);
    return evp;
}

Result<> Evp::run(std::span<const Message> messages) {
    for (const Message& message : messages) {
        const auto* iv = takes_iv_ ? message.iv.data() : nullptr;
        if (EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, iv, -1) != 1)
            return Error{Code::internal, "OpenSSL: EVP_CipherInit_ex failed"};
        for (std::size_t done = 0; done < message.size;) {
            const auto size = static_cast<int>(std::min(kPiece, message.size - done));
            int written = 0;
            if (EVP_CipherUpdate(context_.get(), message.out + done, &written, message.in + done,
                                 size) != 1)
                return Error{Code::internal, "OpenSSL: EVP_CipherUpdate failed"};
            done += static_cast<std::size_t>(size);
        }
    }
    return {};
}

Result<EvpGcm> EvpGcm::open(std::span<const std::uint8_t> key) {
    EvpGcm evp;
    evp.context_.reset(EVP_CIPHER_CTX_new());
    const EVP_CIPHER* cipher = key.size() == 16   ? EVP_aes_128_gcm()
                               : key.size() == 24 ? EVP_aes_192_gcm()
                                                  : EVP_aes_256_gcm();
    if (!evp.context_ ||
        EVP_EncryptInit_ex(evp.context_.get(), cipher, nullptr, key.data(), nullptr) != 1)
        return Error{Code::internal, "OpenSSL: EVP_EncryptInit_ex failed"};
    return evp;
}

Result<> EvpGcm::begin(const std::uint8_t* nonce, std::span<const std::uint8_t> aad) {
    if (EVP_EncryptInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce) != 1)
        return Error{Code::internal, "OpenSSL: EVP_EncryptInit_ex failed"};
    return update(aad, nullptr);
}

Result<> EvpGcm::update(std::span<const std::uint8_t> in, std::uint8_t* out) {
    for (std::size_t done = 0; done < in.size();) {
        const std::size_t size = std::min(kPiece, in.size() - done);
        int written = 0;
        if (EVP_EncryptUpdate(context_.get(), out ? out + done : nullptr, &written,
                              in.data() + done, static_cast<int>(size)) != 1)
            return Error{Code::internal, "OpenSSL: EVP_EncryptUpdate failed"};
        done += size;
    }
    return {};
}

Result<> EvpGcm::finish(std::uint8_t* tag) {
    Block nothing;
    int written = 0;
    if (EVP_EncryptFinal_ex(context_.get(), nothing.data(), &written) != 1 ||
        EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagSize, tag) != 1)
        return Error{Code::internal, "OpenSSL: EVP_EncryptFinal_ex failed"};
    return {};
}

Result<> EvpGcm::seal(std::span<const GcmMessage> messages) {
    for (const GcmMessage& m : messages) {
        DAEL_TRY(begin(m.nonce.data(), {m.aad, m.aad_size}));
        DAEL_TRY(update({m.in, m.size}, m.out));
        DAEL_TRY(finish(m.tag));
    }
    return {};
}

Result<> evp_xts(const TestKey& key, Direction direction, std::uint64_t sector_size,
                 std::uint64_t first, std::span<const std::uint8_t> in, std::uint8_t* out) {
    const EvpContext context(EVP_CIPHER_CTX_new());
    const EVP_CIPHER* cipher = key.key.bits() == 128 ? EVP_aes_128_xts() : EVP_aes_256_xts();
    const int encrypt = direction == Direction::encrypt;
    if (!context || EVP_CipherInit_ex(context.get(), cipher, nullptr, key.xts_bytes().data(),
                                      nullptr, encrypt) != 1)
        return Error{Code::internal, "OpenSSL: EVP_CipherInit_ex failed"};
    for (std::size_t at = 0; at < in.size(); at += sector_size, ++first) {
        Block number{};
        for (std::size_t i = 0; i < 8; ++i) number[i] = static_cast<std::uint8_t>(first >> 8 * i);
        const auto size = static_cast<int>(std::min<std::size_t>(sector_size, in.size() - at));
        int written = 0;
        if (EVP_CipherInit_ex(context.get(), nullptr, nullptr, nullptr, number.data(), -1) != 1 ||
            EVP_CipherUpdate(context.get(), out + at, &written, in.data() + at, size) != 1)
            return Error{Code::internal, "OpenSSL: XTS failed"};
    }
    return {};
}

}  // namespace dael::bench
