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

void Evp::Free::operator()(evp_cipher_ctx_st* context) const noexcept {
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

}  // namespace dael::bench
