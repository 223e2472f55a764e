// SPDX-License-Identifier: Apache-2.0
#include "core/libcrypto.hpp"

#include <openssl/crypto.h>

#include <atomic>

namespace dael::core {

OSSL_LIB_CTX* libcrypto() noexcept {
    constinit static std::atomic<OSSL_LIB_CTX*> context{nullptr};
    if (OSSL_LIB_CTX* const made = context.load(std::memory_order_acquire)) return made;
    OSSL_LIB_CTX* const fresh = OSSL_LIB_CTX_new();
    OSSL_LIB_CTX* first = nullptr;
    if (context.compare_exchange_strong(first, fresh)) return fresh;
    OSSL_LIB_CTX_free(fresh);  // another thread was faster
    return first;
}

}  // namespace dael::core
