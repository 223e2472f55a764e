// SPDX-License-Identifier: Apache-2.0
// A thread that is cancelled in the midst of a call.
#pragma once

#include <pthread.h>

#include <functional>

namespace dael::test {

// What the thread calls where it is to end.
inline void cancel_me() {
    pthread_cancel(pthread_self());
    pthread_testcancel();
}

// Whether a thread that runs `work`, which calls cancel_me(), is cancelled there and its stack is
// unwound down to here.
inline bool cancelled(const std::function<void()>& work) {
    struct Call {
        const std::function<void()>& work;
        bool unwound = false;
    } call{work};
    struct Witness {
        bool& gone;
        ~Witness() { gone = true; }
    };
    pthread_t thread{};
    const auto run = [](void* argument) -> void* {
        auto& its = *static_cast<Call*>(argument);
        const Witness witness{its.unwound};
        its.work();
        return nullptr;
    };
    if (pthread_create(&thread, nullptr, run, &call) != 0) return false;
    void* result = nullptr;
    if (pthread_join(thread, &result) != 0) return false;
    return result == PTHREAD_CANCELED && call.unwound;
}

}  // namespace dael::test
