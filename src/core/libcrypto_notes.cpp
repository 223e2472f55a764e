// SPDX-License-Identifier: Apache-2.0
#include "core/libcrypto_notes.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <string>

namespace dael::core {
namespace {

// More than any of its objects takes that we make.
constexpr std::size_t kProbe = 4096;

unsigned long last_note(const char*& place) noexcept {
    return ERR_peek_last_error_all(&place, nullptr, nullptr, nullptr, nullptr);
}

// Of contexts that are right nothing else comes of setting one up or copying one.
bool says_memory(unsigned long note) noexcept {
    const int reason = ERR_GET_REASON(note);
    return reason == ERR_R_MALLOC_FAILURE ||
           (ERR_GET_LIB(note) == ERR_LIB_EVP &&
            (reason == EVP_R_INITIALIZATION_ERROR || reason == EVP_R_NOT_ABLE_TO_COPY_CTX));
}

}  // namespace

LibcryptoNotes::LibcryptoNotes() noexcept {
    before_ = last_note(place_);
    ERR_set_mark();
}
LibcryptoNotes::~LibcryptoNotes() {
    ERR_pop_to_mark();
}

bool LibcryptoNotes::lacked_memory() const noexcept {
    const char* place = nullptr;
    const unsigned long last = last_note(place);
    if (last == 0 || (last == before_ && place == place_)) return true;
    if (says_memory(last)) return true;
    void* const memory = OPENSSL_malloc(kProbe);
    OPENSSL_free(memory);
    return !memory;
}

Error LibcryptoNotes::no_memory() {
    return {Code::out_of_memory, "no memory for libcrypto"};
}

Error LibcryptoNotes::failure(const char* what, Code code) const {
    if (lacked_memory()) return no_memory();
    return {code, std::string(what) + " of libcrypto failed"};
}

}  // namespace dael::core
