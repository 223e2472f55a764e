// SPDX-License-Identifier: Apache-2.0
// Leaks on purpose: what a device may still read or write is never freed. It takes no memory and no
// lock, since it is needed where things have failed already, and in a child of fork().
#pragma once

#include <atomic>
#include <memory>

namespace dael::core {

// T has a `T* next_kept`. All are to be found from here, for whoever looks for what leaks.
template <class T>
void keep_forever(std::unique_ptr<T> thing) noexcept {
    static constinit std::atomic<T*> all{nullptr};
    T* const kept = thing.release();
    if (!kept) return;
    kept->next_kept = all.load();
    while (!all.compare_exchange_weak(kept->next_kept, kept)) continue;
}

}  // namespace dael::core
