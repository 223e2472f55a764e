// SPDX-License-Identifier: Apache-2.0
#include "core/libcrypto.hpp"

#include <openssl/crypto.h>

#include <atomic>
#include <new>

#include "core/process.hpp"

namespace dael::core {
namespace {

struct Own {
    std::uint32_t process;
    OSSL_LIB_CTX* context;
};

}  // namespace

OSSL_LIB_CTX* libcrypto() noexcept {
    constinit static std::atomic<Own*> own{nullptr};
    const std::uint32_t process = this_process();
    Own* now = own.load(std::memory_order_acquire);
    if (now && now->process == process) return now->context;
    auto* const fresh = new (std::nothrow) Own{process, OSSL_LIB_CTX_new()};
    if (!fresh) return nullptr;
    if (fresh->context && own.compare_exchange_strong(now, fresh)) return fresh->context;
    const bool other = fresh->context != nullptr;  // another thread was faster
    OSSL_LIB_CTX_free(fresh->context);
    delete fresh;
    return other ? now->context : nullptr;
}

}  // namespace dael::core
