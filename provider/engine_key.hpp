// SPDX-License-Identifier: Apache-2.0
// A key in one of our contexts, made ready for the engine once enough was encrypted under it, and
// what the engine did for that context. One thread at a time, as contexts are.
#pragma once

#include <openssl/crypto.h>

#include <cstring>

#include "process.hpp"
#include "settings.hpp"

namespace dael::provider {

struct EngineKey {
    // Bytes under a key from which on it pays to make it ready, which takes as long as some KiB.
    static constexpr std::uint64_t kEnough = 16 << 10;
    // One call that stays on the calling thread, and neither locks nor allocates: less than the
    // engine takes for long (32 KiB).
    static constexpr std::size_t kSlice = 28 << 10;

    static constexpr std::size_t kCounted = 1024;

    unsigned char bytes[32] = {};
    std::size_t size = 0;  // 0: no key yet
    dael_key* key = nullptr;
    std::uint64_t seen = 0;
    std::uint64_t updates = 0, done = 0;  // not yet told to counts()

    // Whether these are the bytes of the key that is set, in a time that does not depend on them.
    bool same(const unsigned char* other, std::size_t other_size) const noexcept {
        if (size != other_size) return false;
        std::uint64_t differs = 0;
        for (std::size_t at = 0; at < other_size; at += 8) {
            std::uint64_t a, b;
            std::memcpy(&a, bytes + at, 8);
            std::memcpy(&b, other + at, 8);
            differs |= a ^ b;
        }
        return differs == 0;
    }
    void set(const unsigned char* fresh, std::size_t fresh_size) noexcept {
        if (same(fresh, fresh_size)) return;
        drop();
        std::memcpy(bytes, fresh, fresh_size);
        size = fresh_size;
        seen = 0;
    }
    void drop() noexcept {
        if (key) dael_key_free(key);
        key = nullptr;
    }
    // The key's handle if the engine is to be used for an update of so many bytes, else null.
    const dael_key* ready(std::size_t update) noexcept {
        if (!thread_may_work() || engine_left_alone()) return nullptr;
        if (update >= settings().threshold && !threads_may_start()) return nullptr;
        if (key) return key;
        seen += update;
        if ((seen < kEnough && settings().warmup != 0) || size == 0) return nullptr;
        if (!engine_for(update)) return nullptr;
        if (dael_key_import(bytes, size, &key) != DAEL_OK) engine_failed("making a key ready");
        return key;
    }
    // Of an update that the vector units did. Short ones are not counted: that would cost more than
    // a tenth of their time.
    void did_here(std::size_t update) noexcept {
        if (update < kCounted) return;
        did(update);
        if (settings().warmup == 0 && thread_may_work()) engine_for(update);
    }
    void did(std::size_t update) noexcept {
        done += update;
        if (++updates >= 1024 || done >= (16 << 20)) tell();
    }
    void tell() noexcept {
        if (updates == 0) return;
        counts().updates.fetch_add(updates, std::memory_order_relaxed);
        counts().bytes.fetch_add(done, std::memory_order_relaxed);
        updates = done = 0;
    }
    static void did_parallel(std::size_t update) noexcept {
        counts().parallel_updates.fetch_add(1, std::memory_order_relaxed);
        counts().parallel_bytes.fetch_add(update, std::memory_order_relaxed);
    }
};

}  // namespace dael::provider
