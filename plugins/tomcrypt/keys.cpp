// SPDX-License-Identifier: Apache-2.0
#include "keys.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace daelstrom_tomcrypt {

// A key that is ready. Free while `set` is null.
struct CachedKey {
    RawKey raw;
    std::uint64_t id = 0;
    dael_engine* engine = nullptr;
    dael_key* key = nullptr;
    dael_key_set* set = nullptr;
    std::uint32_t users = 0;
    bool doomed = false;  // goes when its last user does
};

namespace {

constexpr std::size_t kSets = 32, kWays = 2, kMemory = 8;
// What a context has done when its key is made ready: that costs as much as so many blocks.
constexpr std::uint64_t kWorthAKey = 32;

struct Table {
    CachedKey of_contexts[kSets][kWays];  // by id
    std::size_t newest[kSets] = {};
    CachedKey of_memory[kMemory];  // by the key itself
    std::size_t next = 0;          // to be taken
};

// Held for some nanoseconds, twice in a call: half as long as a mutex would take to do so. While a
// key is made ready, for a microsecond, others make way.
std::atomic<bool> locked{false};
constexpr std::size_t kPage = 4096;
alignas(kPage) unsigned char storage[(sizeof(Table) + kPage - 1) / kPage * kPage];
Table* table = nullptr;  // there until the process ends
dael_engine *own_engine = nullptr, *given_engine = nullptr;
bool no_engine = false;
std::uint64_t calls = 0;
std::atomic<std::uint64_t> ids{0};

void lock() noexcept {
    while (locked.exchange(true, std::memory_order_acquire)) sched_yield();
}
void unlock() noexcept {
    locked.store(false, std::memory_order_release);
}

// From the beginning, so that a child finds the lock open even where another thread of its parent
// was amid the first call, which takes the longest.
[[maybe_unused]] const int at_fork = pthread_atfork(lock, unlock, unlock);

struct Lock {
    Lock() noexcept { lock(); }
    ~Lock() { unlock(); }
};

// Both under the lock.
void open_table() noexcept {
    if (table) return;
    mlock(storage, sizeof storage);  // where the limit is 0 it is as safe as the contexts are
    madvise(storage, sizeof storage, MADV_DONTDUMP);
    table = new (storage) Table;
}

dael_engine* open_engine() noexcept {
    if (given_engine) return given_engine;
    if (own_engine || no_engine) return own_engine;
    const char* const asked = secure_getenv("DAELSTROM_BACKEND");
    for (const char* backend : {asked && *asked ? asked : "cpu", "openssl"}) {
        dael_engine_options options{};
        options.struct_size = sizeof options;
        options.backend = backend;
        options.threads = 1;  // none is started in a program that did not ask for it
        if (dael_engine_open(&options, &own_engine) == DAEL_OK) return own_engine;
    }
    no_engine = true;
    return nullptr;
}

bool make(std::span<const std::uint8_t> raw, dael_engine* engine, dael_key*& key,
          dael_key_set*& set) noexcept {
    if (dael_key_import(raw.data(), raw.size(), &key) == DAEL_OK &&
        dael_key_set_make(engine, &key, 1, &set) == DAEL_OK)
        return true;
    dael_key_free(key);
    key = nullptr;
    return false;
}

void clear(CachedKey& slot) noexcept {
    if (slot.users != 0) {
        slot.doomed = true;
        return;
    }
    dael_key_set_free(slot.set);
    dael_key_free(slot.key);
    dael_wipe(&slot, sizeof slot);
}

// All bytes are looked at, whatever they are. Sizes are 16, 24 or 32.
bool same(const RawKey& a, std::span<const std::uint8_t> b) noexcept {
    if (a.size != b.size()) return false;
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < b.size(); i += 8) {
        std::uint64_t x, y;
        std::memcpy(&x, a.bytes + i, 8);
        std::memcpy(&y, b.data() + i, 8);
        difference |= x ^ y;
    }
    return difference == 0;
}

// The place of a key that is there, or may be put there; null: neither.
CachedKey* place(std::uint64_t id, std::span<const std::uint8_t> raw) noexcept {
    if (id != 0) {
        auto& ways = table->of_contexts[id % kSets];
        std::size_t& newest = table->newest[id % kSets];
        if (ways[newest].id != id) newest = 1 - newest;
        return &ways[newest];
    }
    for (CachedKey& slot : table->of_memory)
        if (slot.set && !slot.doomed && same(slot.raw, raw)) return &slot;
    return &table->of_memory[table->next++ % kMemory];
}

}  // namespace

RawKey::RawKey(const Context& context) noexcept {
    // The first round keys are the key (FIPS 197 5.2), as big-endian words.
    const int words = context.plain.Nr - 6;
    if (words != 4 && words != 6 && words != 8) return;
    size = static_cast<std::size_t>(words) * 4;
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::uint8_t>(context.plain.eK[i / 4] >> (24 - 8 * (i % 4)));
}

Ready Ready::of(symmetric_key* key, unsigned long blocks) {
    Context& context = context_of(key);
    const bool known = context.mark == kMark;
    if (known) {
        // Several threads may use one context.
        std::atomic_ref spent(context.spent);
        const std::uint64_t so_far = spent.load(std::memory_order_relaxed);
        if (so_far < kWorthAKey) {
            spent.store(so_far + blocks, std::memory_order_relaxed);
            if (so_far + blocks < kWorthAKey) return {};
        }
    } else if (blocks < kWorthAKey) {
        return {};
    }
    const RawKey raw(context);
    if (raw.size == 0) return {};
    return Ready(known ? context.id : 0, {raw.bytes, raw.size}, known);
}

Ready Ready::of(std::span<const std::uint8_t> raw) {
    if (raw.size() != 16 && raw.size() != 24 && raw.size() != 32) return {};
    return Ready(0, raw, true);
}

Ready::Ready(std::uint64_t id, std::span<const std::uint8_t> raw, bool keep) noexcept {
    Lock guard;
    engine_ = open_engine();
    if (!engine_) return;
    open_table();
    if (CachedKey* slot = keep ? place(id, raw) : nullptr) {
        const bool there = slot->set && !slot->doomed && slot->id == id &&
                           slot->engine == engine_ && same(slot->raw, raw);
        if (!there && slot->users == 0) {
            clear(*slot);
            if (!make(raw, engine_, slot->key, slot->set)) return;
            slot->raw.size = raw.size();
            std::memcpy(slot->raw.bytes, raw.data(), raw.size());
            slot->id = id;
            slot->engine = engine_;
        }
        if (there || slot->users == 0) {
            ++slot->users;
            slot_ = slot;
            key_ = slot->key;
            set_ = slot->set;
        }
    }
    if (!key_ && !make(raw, engine_, key_, set_)) return;
    ++calls;
}

Ready::~Ready() {
    if (!key_) return;
    if (!slot_) {
        dael_key_set_free(set_);
        dael_key_free(key_);
        return;
    }
    Lock guard;
    if (--slot_->users == 0 && slot_->doomed) clear(*slot_);
}

dael_status Ready::run(const dael_cipher& cipher, const dael_message& message) const noexcept {
    std::int32_t code = DAEL_INTERNAL;
    const dael_status whole = dael_run_batch(engine_, &cipher, set_, &message, 1, &code, nullptr);
    return whole != DAEL_OK ? whole : static_cast<dael_status>(code);
}

std::uint64_t next_id() noexcept {
    return ids.fetch_add(1, std::memory_order_relaxed) + 1;
}

void forget(std::uint64_t id) noexcept {
    Lock guard;
    if (!table || id == 0) return;
    for (CachedKey& slot : table->of_contexts[id % kSets])
        if (slot.set && slot.id == id) clear(slot);
}

void forget_all() noexcept {
    Lock guard;
    if (!table) return;
    for (auto& ways : table->of_contexts)
        for (CachedKey& slot : ways) clear(slot);
    for (CachedKey& slot : table->of_memory) clear(slot);
}

void use(dael_engine* engine) noexcept {
    Lock guard;
    given_engine = engine;
}

void close_engine() noexcept {
    forget_all();
    Lock guard;
    dael_engine_close(own_engine);
    own_engine = given_engine = nullptr;
    no_engine = false;
}

std::uint64_t served() noexcept {
    Lock guard;
    return calls;
}

}  // namespace daelstrom_tomcrypt
