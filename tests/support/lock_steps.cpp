// SPDX-License-Identifier: Apache-2.0
#include "support/lock_steps.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

namespace {

using dael::test::LockSteps;

// Without locks of its own, since it stands within everybody's.
struct Steps {
    enum State : int { idle, asked, over, ended };
    std::atomic<int> state{idle};
    std::atomic<bool> blocked{false};  // fork() waits for what the thread has, which does not stop
    std::atomic<bool> missed{false};   // a lock that it took then
    struct Step {
        const void *lock, *place;
    };
    Step all[4096];  // the same place takes many locks in a library that has one function for that
    std::atomic<int> count{0}, waited{0};
    std::atomic<bool> learning{false};  // locks that are passed over
    std::string module;
};
Steps steps;
thread_local bool watched = false, forking = false;

std::string place_of(const void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || !info.dli_fname) return "?";
    const char* const name = std::strrchr(info.dli_fname, '/');
    char text[32];
    std::snprintf(text, sizeof text, "+0x%zx",
                  static_cast<std::size_t>(static_cast<const char*>(address) -
                                           static_cast<const char*>(info.dli_fbase)));
    return std::string(name ? name + 1 : info.dli_fname) + text;
}

bool is_ours(const void* address) {
    Dl_info here{}, there{};
    if (dladdr(reinterpret_cast<const void*>(&is_ours), &here) == 0 || dladdr(address, &there) == 0)
        return false;
    return here.dli_fbase == there.dli_fbase ||
           (!steps.module.empty() && std::strstr(there.dli_fname, steps.module.c_str()));
}

[[maybe_unused]] void taken(const void* lock, const void* place) {
    if (!watched || steps.state.load() == Steps::ended) return;
    for (int i = 0; i < steps.count; ++i)
        if (steps.all[i].place == place && steps.all[i].lock == lock) return;
    watched = false;  // what this takes itself
    if (steps.blocked) {
        if (is_ours(place)) steps.missed = true;
    } else if (steps.learning && steps.count < static_cast<int>(std::size(steps.all))) {
        steps.all[steps.count] = {lock, place};
        ++steps.count;
    } else if (steps.count < static_cast<int>(std::size(steps.all)) && is_ours(place)) {
        steps.all[steps.count] = {lock, place};
        ++steps.count;
        steps.state = Steps::asked;
        steps.state.notify_all();
        while (steps.state.load() == Steps::asked) steps.state.wait(Steps::asked);
    }
    watched = true;
}

// fork() waits for a lock that the thread has, this one or one that it took before: on it goes.
[[maybe_unused]] void go_on() {
    if (steps.blocked.exchange(true)) return;
    ++steps.waited;
    steps.state = Steps::over;
    steps.state.notify_all();
}

template <class Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#ifndef DAEL_SANITIZED
#define DAEL_TAKES(function, attempt, type)                         \
    extern "C" int function(type* lock) noexcept {                  \
        static constinit std::atomic<int (*)(type*)> kept{nullptr}; \
        auto* call = kept.load(std::memory_order_relaxed);          \
        if (!call) kept.store(call = real<int(type*)>(#function));  \
        if (forking) {                                              \
            if (attempt(lock) == 0) return 0;                       \
            go_on();                                                \
        }                                                           \
        const int result = call(lock);                              \
        if (result == 0) taken(lock, __builtin_return_address(0));  \
        return result;                                              \
    }
DAEL_TAKES(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t)
DAEL_TAKES(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t)
DAEL_TAKES(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t)
#undef DAEL_TAKES

// Of static objects in functions: 1 where the caller is to make it now.
extern "C" int __cxa_guard_acquire(std::uint64_t* guard) noexcept {
    static constinit std::atomic<int (*)(std::uint64_t*)> kept{nullptr};
    auto* call = kept.load(std::memory_order_relaxed);
    if (!call) kept.store(call = real<int(std::uint64_t*)>("__cxa_guard_acquire"));
    const int result = call(guard);
    if (result != 0) taken(guard, __builtin_return_address(0));
    return result;
}
#endif

namespace dael::test {

LockSteps fork_at_each_lock(const std::function<void()>& work,
                            const std::function<std::string()>& child, const std::string& module,
                            const std::function<void()>& but) {
    LockSteps result;
    int passed_over = 0, passes = 0;
    steps.count = steps.waited = 0;
    steps.module = module;
    steps.state = Steps::idle;
    std::thread worker([&] {
        steps.learning = true;
        watched = true;
        but();
        steps.learning = false;
        passed_over = steps.count;
        do {
            steps.missed = false;
            work();
        } while (++passes < 2 || (steps.missed && passes < 20));
        watched = false;
        steps.state = Steps::ended;
        steps.state.notify_all();
    });
    for (;;) {
        int state = steps.state.load();
        if (state == Steps::ended) break;
        if (state != Steps::asked) {
            steps.state.wait(state);
            continue;
        }
        const void* const place = steps.all[steps.count - 1].place;
        int answer[2];
        if (pipe(answer) != 0) break;
        forking = true;
        const pid_t made = fork();
        if (made == 0) {
            forking = false;
            alarm(20);
            const std::string wrong = child();
            (void)!write(answer[1], wrong.data(), wrong.size());
            _exit(wrong.empty() ? 0 : 1);
        }
        forking = false;
        const bool waited = steps.blocked.exchange(false);
        close(answer[1]);
        char text[400] = "";
        const ssize_t size = read(answer[0], text, sizeof text - 1);
        close(answer[0]);
        int status = -1;
        waitpid(made, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            result.wrong.push_back(
                "at " + place_of(place) + ": " +
                (WIFSIGNALED(status)
                     ? "signal " + std::to_string(WTERMSIG(status))
                     : std::string(text, size > 0 ? static_cast<std::size_t>(size) : 0)));
        if (!waited) {
            steps.state = Steps::over;
            steps.state.notify_all();
        }
    }
    worker.join();
    result.locks = steps.count - passed_over;
    result.waited = steps.waited;
    return result;
}

}  // namespace dael::test
