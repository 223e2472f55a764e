// SPDX-License-Identifier: Apache-2.0
#include "daelstrom_sa_context.h"

#include "hooks.hpp"

namespace ours = daelstrom_tomcrypt;

extern "C" {

int daelstrom_sa_context_init(daelstrom_sa_context* sa, dael_sa_table* table,
                              const dael_sa_options* options, const unsigned char* key,
                              unsigned long keylen) {
    if (!sa || !table || !options || !key) return CRYPT_INVALID_ARG;
    *sa = {};
    dael_key* imported = nullptr;
    dael_status status = dael_key_import(key, keylen, &imported);
    if (status == DAEL_OK) status = dael_sa_add(table, imported, options, &sa->sa);
    dael_key_free(imported);
    if (status != DAEL_OK) return ours::error_of(status);
    sa->table = table;
    sa->taglen = options->tag_size == 0 ? DAEL_TAG_SIZE : options->tag_size;
    sa->ivlen = options->layout == DAEL_SA_STREAM ? 12 : 8;
    return CRYPT_OK;
}

void daelstrom_sa_context_done(daelstrom_sa_context* sa) {
    if (!sa) return;
    if (sa->table) dael_sa_remove(sa->table, sa->sa);
    dael_wipe(sa, sizeof *sa);
}

int daelstrom_gcm_encrypt(daelstrom_sa_context* sa, const unsigned char* pt, unsigned char* ct,
                          unsigned long len, const unsigned char* aad, unsigned long aadlen,
                          unsigned char* tag, unsigned long* taglen) {
    if (!sa || !sa->table || !tag || !taglen) return CRYPT_INVALID_ARG;
    if (*taglen < sa->taglen) return CRYPT_BUFFER_OVERFLOW;
    const dael_sa_packet packet{pt, ct, len, aad, aadlen, sa->iv, tag};
    const dael_status status =
        dael_sa_seal(sa->table, sa->sa, &packet, 1, nullptr, nullptr, nullptr, nullptr);
    if (status == DAEL_OK) *taglen = sa->taglen;
    return ours::error_of(status);
}

int daelstrom_gcm_decrypt(daelstrom_sa_context* sa, const unsigned char* ct, unsigned char* pt,
                          unsigned long len, const unsigned char* aad, unsigned long aadlen,
                          const unsigned char* tag, unsigned long taglen) {
    if (!sa || !sa->table || !tag || taglen != sa->taglen) return CRYPT_INVALID_ARG;
    // Opening reads the tag, and writes nothing there.
    const dael_sa_packet packet{ct, pt, len, aad, aadlen, sa->iv, const_cast<unsigned char*>(tag)};
    int32_t code = DAEL_INTERNAL;
    const dael_status status = dael_sa_open(sa->table, sa->sa, &packet, 1, &code);
    return ours::error_of(status != DAEL_OK ? status : static_cast<dael_status>(code));
}

}  // extern "C"
