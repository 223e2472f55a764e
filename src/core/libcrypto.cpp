// SPDX-License-Identifier: Apache-2.0
#include "core/libcrypto.hpp"

#include <openssl/crypto.h>

#include <atomic>
#include <mutex>
#include <new>

#include "core/over_fork.hpp"
#include "core/process.hpp"

namespace dael::core {
namespace {

struct Own {
    std::uint32_t process;
    OSSL_LIB_CTX* context;
};

// With the first thing that a process fetches libcrypto fills tables of names, under locks that are
// the process's. Held over fork(), or a child that is forked meanwhile would wait for them for
// ever.
constinit std::mutex filling;
[[gnu::constructor(101)]] void hold_filling_over_fork() {
    hold_over_fork<filling>();
}

void fill_names() noexcept {
    const std::lock_guard lock(filling);
    (void)OPENSSL_init_crypto(OPENSSL_INIT_ADD_ALL_CIPHERS | OPENSSL_INIT_ADD_ALL_DIGESTS, nullptr);
}

}  // namespace

OSSL_LIB_CTX* libcrypto() noexcept {
    constinit static std::atomic<Own*> own{nullptr};
    const std::uint32_t process = this_process();
    Own* now = own.load(std::memory_order_acquire);
    if (now && now->process == process) return now->context;
    fill_names();
    auto* const fresh = new (std::nothrow) Own{process, OSSL_LIB_CTX_new()};
    if (!fresh) return nullptr;
    if (fresh->context && own.compare_exchange_strong(now, fresh)) return fresh->context;
    const bool other = fresh->context != nullptr;  // another thread was faster
    OSSL_LIB_CTX_free(fresh->context);
    delete fresh;
    return other ? now->context : nullptr;
}

}  // namespace dael::core
