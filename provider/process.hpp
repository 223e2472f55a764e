// SPDX-License-Identifier: Apache-2.0
// What a process has one of: the engine, opened when there has been enough to do for it to pay, and
// the counts of what it did. No lock anywhere, so that fork() at any moment does no harm; and never
// closed, so that there is nothing to be done at exit; a log gets its last line by teardown().
#pragma once

#include <daelstrom/daelstrom.h>
#include <openssl/err.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dael::provider {

// What is done meanwhile leaves nothing on OpenSSL's queue of errors.
struct Quiet {
    Quiet() noexcept { ERR_set_mark(); }
    ~Quiet() { ERR_pop_to_mark(); }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
};

// The engine for an update of so many bytes; null while it is not worth opening, and where it
// cannot be opened, which is tried once. Thread-safe.
dael_engine* engine_for(std::size_t bytes) noexcept;
dael_engine* opened_engine() noexcept;  // null: none is open yet
int threads() noexcept;                 // that a large update may have: as set, or all cores
// Whether the engine may be used by this thread: not once its thread-local objects are going, as
// they do before exit() calls handlers, which may encrypt. The engine has some.
bool thread_may_work() noexcept;
// Whether new contexts do small and middling messages by the vector units' code here
// (vector_aes.hpp): where there are some, unless the settings name a backend that has none.
bool by_vector_units() noexcept;
// Whether this process has more filters of system calls (seccomp(2)) than when it loaded the
// provider: it has shut itself in, and to start a thread may be its end. The engine is left alone
// then. Asked when the engine is opened, and in each process when the first large update comes;
// what /proc does not tell is taken for none.
void remember_filters() noexcept;
bool threads_may_start() noexcept;
// Why there is no engine though one was wanted; "" otherwise.
const char* engine_fault() noexcept;

// What the engine did, as far as contexts have told: they do so now and then, and at their end.
struct Counts {
    std::atomic<std::uint64_t> updates{0}, bytes{0};                    // on calling threads
    std::atomic<std::uint64_t> parallel_updates{0}, parallel_bytes{0};  // from the threshold on
    std::atomic<std::uint64_t> failures{0};  // that the default provider's code made good, or not
};
Counts& counts() noexcept;

// Tells the log of the first failure of an engine's call, and counts each. After one of a device's
// driver the engine is left alone, where it has that device and nothing else.
void engine_failed(const char* doing, dael_status status = DAEL_INTERNAL) noexcept;
bool engine_left_alone() noexcept;
// The same of a device that failed, where the engine did its work on the host.
void note_replaced(const dael_ran& ran) noexcept;

// From how many bytes of an update on the engine is asked, by dael_mode and direction. SIZE_MAX:
// never. Raised to the threshold when the engine turns out to take OpenSSL itself.
std::size_t from_bytes(int mode, int direction) noexcept;
void note_worker(int mode, int direction, const dael_ran& ran) noexcept;

}  // namespace dael::provider
