// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>

#include <atomic>

namespace dael::provider {
namespace {

constexpr std::size_t kIv = 12, kTag = 16, kHeader = 13, kRecord = 8 + 16 + 16;

// The call that is refused, on a context of its own. Whether it came to that.
bool provoke(const Basis& gcm, void* context, Refusal refusal) noexcept {
    unsigned char zeros[32] = {}, header[kHeader] = {}, record[kRecord] = {}, out[kTag];
    header[kHeader - 1] = kRecord;
    std::size_t made = 0;
    const auto set = [&](const char* name, unsigned char* data, std::size_t size) {
        const OSSL_PARAM one[] = {OSSL_PARAM_construct_octet_string(name, data, size),
                                  OSSL_PARAM_construct_end()};
        return gcm.set_ctx_params(context, one) == 1;
    };
    const bool seals = refusal == Refusal::none_made || refusal == Refusal::not_needed;
    const auto init = seals ? gcm.encrypt_init : gcm.decrypt_init;
    if (init(context, zeros, gcm.key_bytes, zeros, kIv, nullptr) != 1) return false;
    switch (refusal) {
        case Refusal::wrong_tag:
            if (!set(OSSL_CIPHER_PARAM_AEAD_TAG, zeros, kTag)) return false;
            [[fallthrough]];
        case Refusal::no_tag:
            (void)gcm.final(context, out, &made, sizeof out);
            return true;
        case Refusal::forged_record:
            if (!set(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, zeros, 4) ||
                !set(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD, header, kHeader))
                return false;
            (void)gcm.cipher(context, record, &made, kRecord, record, kRecord);
            return true;
        case Refusal::none_made: {
            OSSL_PARAM one[] = {
                OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, out, kTag),
                OSSL_PARAM_construct_end()};
            (void)gcm.get_ctx_params(context, one);
            return true;
        }
        case Refusal::not_needed:
            (void)set(OSSL_CIPHER_PARAM_AEAD_TAG, zeros, kTag);
            return true;
    }
    return false;
}

}  // namespace

std::optional<int> ask_refusal(const Basis& gcm, Refusal refusal) noexcept {
    void* const context = gcm.newctx(gcm.provider_context);
    if (!context) return {};
    ERR_set_mark();
    // Ours, so that what comes after it is theirs.
    ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
    const bool listens = ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_USER;  // memory for a queue
    const bool asked = provoke(gcm, context, refusal);
    const unsigned long last = ERR_peek_last_error();
    ERR_pop_to_mark();
    gcm.freectx(context);
    if (!listens || !asked) return {};
    if (ERR_GET_LIB(last) == ERR_LIB_USER) return 0;
    // That memory ran out says nothing of the tag, whichever part of libcrypto notes it: from 3.2
    // on its allocator does.
    if (ERR_FATAL_ERROR(last)) return {};
    return ERR_GET_LIB(last) == ERR_LIB_PROV ? ERR_GET_REASON(last) : 0;
}

int refuse(const Basis& gcm, Refusal refusal, const char* why) noexcept {
    constinit static std::atomic<int> known[kRefusals];  // 0: not known; else one more
    auto& answer = known[static_cast<std::size_t>(refusal)];
    int reason = answer.load(std::memory_order_relaxed) - 1;
    if (reason < 0) {
        const std::optional<int> told = ask_refusal(gcm, refusal);
        if (told) answer.store(*told + 1, std::memory_order_relaxed);
        reason = told.value_or(0);
    }
    if (reason != 0) ERR_raise_data(ERR_LIB_PROV, reason, "daelstrom: %s", why);
    return 0;
}

}  // namespace dael::provider
