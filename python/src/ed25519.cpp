// SPDX-License-Identifier: Apache-2.0
// Ed25519 (RFC 8032), for formats whose headers are signed: OpenSSL's.
#include <openssl/evp.h>

#include <memory>

#include "engine.hpp"

namespace daelpy {
namespace {

using Pkey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

constexpr std::size_t kKey = 32, kSignature = 64;

Memory thirty_two(nb::handle object, const char* name) {
    Memory memory(object, Access::read, name);
    if (memory.on_device || memory.size != kKey)
        value_error(std::string(name) + " is " + std::to_string(memory.size) +
                    " bytes; Ed25519 takes 32");
    return memory;
}

Pkey private_key(nb::handle seed) {
    const Memory memory = thirty_two(seed, "seed");
    Pkey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, memory.data, kKey),
             EVP_PKEY_free);
    if (!key) raise("InternalError", "OpenSSL takes no Ed25519 key");
    return key;
}

nb::bytes public_of(nb::handle seed) {
    const Pkey key = private_key(seed);
    unsigned char made[kKey];
    std::size_t size = sizeof made;
    if (EVP_PKEY_get_raw_public_key(key.get(), made, &size) != 1)
        raise("InternalError", "OpenSSL gives no public key");
    return nb::bytes(made, size);
}

nb::bytes sign(nb::handle seed, nb::handle message) {
    const Pkey key = private_key(seed);
    const Memory bytes(message, Access::read, "message");
    const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    unsigned char made[kSignature];
    std::size_t size = sizeof made;
    if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
        EVP_DigestSign(context.get(), made, &size, bytes.data, bytes.size) != 1)
        raise("InternalError", "OpenSSL does not sign");
    return nb::bytes(made, size);
}

bool verify(nb::handle public_key, nb::handle message, nb::handle signature) {
    const Memory raw = thirty_two(public_key, "public_key");
    const Memory bytes(message, Access::read, "message"),
        given(signature, Access::read, "signature");
    const Pkey key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw.data, kKey),
                   EVP_PKEY_free);
    const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    return key && context && given.size == kSignature &&
           EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
           EVP_DigestVerify(context.get(), given.data, given.size, bytes.data, bytes.size) == 1;
}

}  // namespace

void bind_ed25519(nb::module_& m) {
    m.def("ed25519_public", public_of, nb::arg("seed"));
    m.def("ed25519_sign", sign, nb::arg("seed"), nb::arg("message"));
    m.def("ed25519_verify", verify, nb::arg("public_key"), nb::arg("message"),
          nb::arg("signature"));
}

}  // namespace daelpy
