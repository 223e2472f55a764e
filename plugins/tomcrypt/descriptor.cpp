// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "daelstrom_tomcrypt.h"
#include "hooks.hpp"

namespace daelstrom_tomcrypt {
namespace {

int setup(const unsigned char* key, int size, int rounds, symmetric_key* out) {
    const int error = aes_desc.setup(key, size, rounds, out);
    if (error != CRYPT_OK) return error;
    Context& context = context_of(out);
    context.mark = kMark;
    context.id = next_id();
    context.spent = 0;
    return CRYPT_OK;
}

void done(symmetric_key* key) {
    if (!key) return;
    Context& context = context_of(key);
    if (context.mark == kMark) forget(context.id);
    dael_wipe(&context, sizeof context);
}

// LibTomCrypt's own test of its blocks, which these hooks must then agree with.
int test() {
    if (const int error = aes_desc.test(); error != CRYPT_OK) return error;
    constexpr unsigned long kBlocks = 80;
    unsigned char data[kBlocks * kBlock], bulk[kBlocks * kBlock], one[kBlocks * kBlock];
    for (unsigned long i = 0; i < sizeof data; ++i) data[i] = static_cast<unsigned char>(7 * i + 3);
    for (const int size : {16, 24, 32}) {
        symmetric_key key;
        if (const int error = setup(data, size, 0, &key); error != CRYPT_OK) return error;
        int error = ecb_encrypt(data, bulk, kBlocks, &key);
        for (unsigned long i = 0; i < kBlocks && error == CRYPT_OK; ++i)
            error = aes_desc.ecb_encrypt(data + i * kBlock, one + i * kBlock, &key);
        if (error == CRYPT_OK && std::memcmp(bulk, one, sizeof one) != 0)
            error = CRYPT_FAIL_TESTVECTOR;
        if (error == CRYPT_OK) error = ecb_decrypt(bulk, one, kBlocks, &key);
        if (error == CRYPT_OK && std::memcmp(one, data, sizeof one) != 0)
            error = CRYPT_FAIL_TESTVECTOR;
        done(&key);
        if (error != CRYPT_OK) return error;
    }
    return CRYPT_OK;
}

// Where AES stands in the table; -1: nowhere.
int find() {
    for (int i = 0; i < TAB_SIZE; ++i)
        if (cipher_descriptor[i].name && cipher_descriptor[i].ID == aes_desc.ID) return i;
    return -1;
}

}  // namespace
}  // namespace daelstrom_tomcrypt

namespace ours = daelstrom_tomcrypt;

extern "C" {

// The hooks' names are theirs alone within the namespace.
const struct ltc_cipher_descriptor daelstrom_aes_desc = {
    "aes",
    6,
    16,
    32,
    16,
    10,
    ours::setup,
    rijndael_ecb_encrypt,
    rijndael_ecb_decrypt,
    ours::test,
    ours::done,
    rijndael_keysize,
    ours::ecb_encrypt,
    ours::ecb_decrypt,
    ours::cbc_encrypt,
    ours::cbc_decrypt,
    ours::ctr_encrypt,
    nullptr,  // LRW: with both hooks, lrw_setiv() leaves out what lrw_test() asks for
    nullptr,
    ours::ccm_memory,
    ours::gcm_memory,
    ours::omac_memory,
    nullptr,  // XCBC and F9: block by block
    nullptr,
    ours::xts_encrypt,
    ours::xts_decrypt,
};

int daelstrom_tomcrypt_register(void) {
    if (const int index = ours::find(); index >= 0) {
        // Under the name that the program looks for.
        const char* const name = cipher_descriptor[index].name;
        cipher_descriptor[index] = daelstrom_aes_desc;
        cipher_descriptor[index].name = name;
        return index;
    }
    return register_cipher(&daelstrom_aes_desc);
}

void daelstrom_tomcrypt_unregister(void) {
    if (const int index = ours::find();
        index >= 0 && cipher_descriptor[index].setup == daelstrom_aes_desc.setup) {
        // Whole, as unregister_cipher() compares it.
        const bool other_name = std::strcmp(cipher_descriptor[index].name, aes_desc.name) != 0;
        cipher_descriptor[index] = other_name ? rijndael_desc : aes_desc;
    }
    ours::close_engine();
}

void daelstrom_tomcrypt_forget(void) {
    ours::forget_all();
}

void daelstrom_tomcrypt_use(dael_engine* engine) {
    ours::use(engine);
}

unsigned long long daelstrom_tomcrypt_served(void) {
    return ours::served();
}

}  // extern "C"
