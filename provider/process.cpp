// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "settings.hpp"
#include "vector_aes.hpp"

namespace dael::provider {
namespace {

constinit std::atomic<dael_engine*> shared_engine{nullptr};
constinit std::atomic<std::uint64_t> waited{0};
constinit std::atomic<int> gave_up{0};  // 1: somebody writes `fault`, 2: it is written
constinit char fault[256] = "";
constinit Counts all_counts;
constinit std::atomic<bool> told{false};
constinit std::atomic<bool> left_alone{false};

// Measured with OpenSSL 3.0 on AMD EPYC with VAES (README.md, "Who does what"): where the engine's
// call is as quick as the default provider's code, rounded up. What the process measures once more
// (contest.hpp) is never below.
constexpr std::size_t kNever = SIZE_MAX;
constinit std::atomic<std::size_t> starts[DAEL_XTS + 1][2] = {
    {2048, 2048},      // ECB
    {kNever, 2048},    // CBC
    {kNever, 256},     // CFB
    {kNever, kNever},  // OFB
    {1024, 1024},      // CTR
    {256, 256},        // GCM
    {kNever, kNever},  // GCM_CTR
    {kNever, kNever},  // XTS
};

// How many filters of system calls a process has, as the kernel says: with Linux 5.9 their number,
// before that whether there is one. -1: it is not to be had.
int filters() noexcept {
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    char text[8192];
    std::size_t size = 0;
    for (ssize_t some = 1; some > 0 && size < sizeof text - 1;) {
        some = read(file, text + size, sizeof text - 1 - size);
        if (some > 0) size += static_cast<std::size_t>(some);
    }
    close(file);
    text[size] = 0;
    for (const char* const name : {"\nSeccomp_filters:", "\nSeccomp:"})
        if (const char* const at = std::strstr(text, name))
            return std::atoi(at + std::strlen(name));
    return -1;
}
constinit std::atomic<int> first_filters{-2};  // -2: nobody has asked
constinit std::atomic<bool> shut_in{false}, asked_when_large{false};
constexpr char kShutIn[] =
    "the process has forbidden itself system calls (seccomp) since it loaded the provider, so that "
    "no thread is started and no device is used";

bool is_shut_in() noexcept {
    const int before = first_filters.load(std::memory_order_relaxed);
    if (before >= 0 && filters() > before && !shut_in.exchange(true)) log_line(kShutIn, nullptr);
    return shut_in.load(std::memory_order_relaxed);
}

dael_engine* open_engine() noexcept {
    const Quiet quiet;
    if (is_shut_in()) return nullptr;
    const Settings& told_us = settings();
    dael_engine_options options{};
    options.struct_size = sizeof options;
    options.backend = *told_us.backend ? told_us.backend : nullptr;
    options.threads = told_us.threads;
    dael_engine* engine = nullptr;
    if (dael_engine_open(&options, &engine) != DAEL_OK) {
        int none = 0;
        if (gave_up.compare_exchange_strong(none, 1)) {
            std::snprintf(fault, sizeof fault, "%s", dael_last_error());
            gave_up.store(2, std::memory_order_release);
            log_line("no engine, so OpenSSL's own code does everything", fault);
        }
        return nullptr;
    }
    dael_engine* first = nullptr;
    if (!shared_engine.compare_exchange_strong(first, engine)) {
        dael_engine_close(engine);  // another thread was faster
        return first;
    }
    log_line("engine opened", *told_us.backend ? told_us.backend : "auto");
    return engine;
}

}  // namespace

dael_engine* opened_engine() noexcept {
    return shared_engine.load(std::memory_order_acquire);
}

dael_engine* engine_for(std::size_t bytes) noexcept {
    if (dael_engine* const engine = opened_engine()) return engine;
    if (gave_up.load(std::memory_order_relaxed) != 0 || engine_left_alone()) return nullptr;
    if (bytes < settings().threshold &&
        waited.fetch_add(bytes, std::memory_order_relaxed) + bytes < settings().warmup)
        return nullptr;
    return open_engine();
}

void remember_filters() noexcept {
    int none = -2;
    if (first_filters.load(std::memory_order_relaxed) != none ||
        !first_filters.compare_exchange_strong(none, filters()))
        return;
    // A child has no threads yet, and may shut itself in.
    pthread_atfork(nullptr, nullptr,
                   [] { asked_when_large.store(false, std::memory_order_relaxed); });
}
bool threads_may_start() noexcept {
    if (asked_when_large.load(std::memory_order_relaxed)) return true;
    if (is_shut_in()) return false;
    asked_when_large.store(true, std::memory_order_relaxed);
    return true;
}

bool thread_may_work() noexcept {
    struct Ending {
        bool* ended;
        ~Ending() { *ended = true; }
    };
    constinit static thread_local bool ended = false;  // without a destructor: there to the end
    if (ended) return false;
    static thread_local Ending ending{&ended};
    (void)ending;
    return true;
}

bool by_vector_units() noexcept {
    // No static objects here and below: a child of fork() would wait for a thread that was making
    // one.
    enum Wanted : int { unknown, no, yes };
    constinit static std::atomic<Wanted> wanted{unknown};
    Wanted answer = wanted.load(std::memory_order_relaxed);
    if (answer == unknown) {
        const char* const name = settings().backend;
        answer =
            settings().vectors && vector_units() &&
                    (!*name || std::strcmp(name, "auto") == 0 ||
                     std::strncmp(name, "cpu", 3) == 0 || std::strcmp(name, "all") == 0 ||
                     std::strncmp(name, "cuda", 4) == 0 || std::strncmp(name, "opencl", 6) == 0)
                ? yes
                : no;
        wanted.store(answer, std::memory_order_relaxed);
    }
    return answer == yes && gave_up.load(std::memory_order_relaxed) == 0;
}

int threads() noexcept {
    if (settings().threads > 0) return settings().threads;
    constinit static std::atomic<long> known{0};
    long all = known.load(std::memory_order_relaxed);
    if (all == 0) known.store(all = sysconf(_SC_NPROCESSORS_ONLN), std::memory_order_relaxed);
    return all > 0 ? static_cast<int>(all) : 1;
}

const char* engine_fault() noexcept {
    if (shut_in.load(std::memory_order_relaxed)) return kShutIn;
    return gave_up.load(std::memory_order_acquire) == 2 ? fault : "";
}

Counts& counts() noexcept {
    return all_counts;
}

bool engine_left_alone() noexcept {
    return left_alone.load(std::memory_order_relaxed) || shut_in.load(std::memory_order_relaxed);
}

void engine_failed(const char* doing, dael_status status) noexcept {
    const char* const backend = settings().backend;
    // `auto` goes on with the host by itself.
    if (status == DAEL_DEVICE && *backend && std::strcmp(backend, "auto") != 0 &&
        !left_alone.exchange(true))
        log_line("the device failed and is left alone from now on, all is done without it",
                 backend);
    all_counts.failures.fetch_add(1, std::memory_order_relaxed);
    if (!told.exchange(true)) {
        char line[1200];
        std::snprintf(line, sizeof line, "%s: %.1000s", doing, dael_last_error());
        log_line("the engine failed, and will be said so once", line);
    }
}

void note_replaced(const dael_ran& ran) noexcept {
    constinit static std::atomic<bool> said{false};
    if (ran.replaced == 0) return;
    all_counts.failures.fetch_add(1, std::memory_order_relaxed);
    if (!said.exchange(true))
        log_line("a device failed and is left alone from now on; its work was done by",
                 ran.backend);
}

std::size_t from_bytes(int mode, int direction) noexcept {
    return starts[mode][direction].load(std::memory_order_relaxed);
}

void note_worker(int mode, int direction, const dael_ran& ran) noexcept {
    // What it would do by libcrypto, the default provider's code does with a call less.
    if (std::strcmp(ran.backend, "openssl") == 0 && ran.threads <= 1)
        starts[mode][direction].store(settings().threshold, std::memory_order_relaxed);
}

}  // namespace dael::provider
