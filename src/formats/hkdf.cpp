// SPDX-License-Identifier: Apache-2.0
// Over libcrypto's HMAC: its own HKDF takes no more than 1 KiB of info before OpenSSL 3.1.
#include "formats/hkdf.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>

#include "core/libcrypto.hpp"
#include "core/libcrypto_notes.hpp"
#include "formats/owned.hpp"

namespace dael::formats {
namespace {

using Bytes = std::span<const std::uint8_t>;

const char* name_of(Hash hash) {
    return hash == Hash::sha1 ? "SHA1" : hash == Hash::sha256 ? "SHA256" : "SHA512";
}

}  // namespace

Result<> hmac(Hash hash, Bytes key, std::initializer_list<Bytes> parts, Digest& out) {
    const core::LibcryptoNotes notes;
    constexpr std::uint8_t kZero[1]{};
    if (key.empty()) key = kZero;  // the same key (RFC 2104 2), where null would be none at all
    const Owned<EVP_MAC> mac(EVP_MAC_fetch(core::libcrypto(), "HMAC", nullptr));
    const Owned<EVP_MAC_CTX> context(mac ? EVP_MAC_CTX_new(mac.get()) : nullptr);
    if (!context) return notes.failure("HMAC");
    const std::array<OSSL_PARAM, 2> parameters{
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>(name_of(hash)),
                                         0),
        OSSL_PARAM_construct_end()};
    if (EVP_MAC_init(context.get(), key.data(), key.size(), parameters.data()) != 1)
        return notes.failure("HMAC");
    for (const Bytes part : parts)
        if (!part.empty() && EVP_MAC_update(context.get(), part.data(), part.size()) != 1)
            return notes.failure("HMAC");
    if (EVP_MAC_final(context.get(), out.bytes.data(), &out.size, out.bytes.size()) != 1)
        return notes.failure("HMAC");
    return {};
}

Result<> hkdf(Hash hash, Bytes key, Bytes salt, Bytes info, std::span<std::uint8_t> out) {
    Digest extracted, block;
    DAEL_TRY(hmac(hash, salt, {key}, extracted));              // RFC 5869 2.2
    for (std::uint8_t counter = 1; !out.empty(); ++counter) {  // 2.3
        Digest next;
        DAEL_TRY(hmac(hash, extracted.view(), {block.view(), info, {&counter, 1}}, next));
        block = next;
        const std::size_t size = std::min(out.size(), block.size);
        std::copy_n(block.bytes.begin(), size, out.begin());
        out = out.subspan(size);
    }
    return {};
}

}  // namespace dael::formats
