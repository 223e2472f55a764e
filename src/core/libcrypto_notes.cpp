// SPDX-License-Identifier: Apache-2.0
#include "core/libcrypto_notes.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <mutex>
#include <string>

#include "core/over_fork.hpp"

namespace dael::core {
namespace {

// More than any of its objects takes that we make.
constexpr std::size_t kProbe = 4096;

// For a thread that is new to it libcrypto makes the queue of its errors under locks that are the
// process's. Held over fork(), or a child that is forked meanwhile would wait for them with the
// next thread that it starts.
constinit std::mutex meeting;
[[gnu::constructor(101)]] void hold_meeting_over_fork() {
    hold_over_fork<meeting>();
}

thread_local bool has_met = false;

void meet() noexcept {
    if (has_met) return;
    const std::lock_guard lock(meeting);
    (void)ERR_peek_last_error();
    has_met = true;
}

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
    meet();
    before_ = last_note(place_);
    ERR_set_mark();
}
LibcryptoNotes::~LibcryptoNotes() {
    ERR_pop_to_mark();
}

unsigned long LibcryptoNotes::last() const noexcept {
    const char* place = nullptr;
    const unsigned long note = last_note(place);
    return note == before_ && place == place_ ? 0 : note;
}

bool LibcryptoNotes::lacked_memory() const noexcept {
    const unsigned long note = last();
    return note == 0 || says_memory(note) || !memory_is_there();
}

bool LibcryptoNotes::memory_is_there() noexcept {
    void* const memory = OPENSSL_malloc(kProbe);
    OPENSSL_free(memory);
    return memory != nullptr;
}

void LibcryptoNotes::end_thread() noexcept {
    if (!has_met) return;
    const std::lock_guard lock(meeting);
    OPENSSL_thread_stop();
    has_met = false;
}

void LibcryptoNotes::forget() const noexcept {
    ERR_pop_to_mark();
    ERR_set_mark();
}

Error LibcryptoNotes::no_memory() {
    return {Code::out_of_memory, "no memory for libcrypto"};
}

Error LibcryptoNotes::failure(const char* what, Code code) const {
    if (lacked_memory()) return no_memory();
    return {code, std::string(what) + " of libcrypto failed"};
}

}  // namespace dael::core
