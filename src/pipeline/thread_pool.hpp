// SPDX-License-Identifier: Apache-2.0
// Host threads that share out pieces of one call's work.
//
// Promises: nothing is started before it is needed, and no more threads than the largest call so
// far wanted, besides those that a callback is ending. Any number of threads may call run() at
// once, also from inside work. A child of fork() gets threads of its own when it first needs them
// (the parent's do not exist in it). After each call the threads look for more to do for 25
// microseconds, then sleep. They take no signals, so that Ctrl-C reaches the program's own; they
// are called "daelstrom", and a hook may see to their affinity. There is no global state and
// nothing to do at exit.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include <daelstrom/error.hpp>

namespace dael::pipeline {

class ThreadPool {
  public:
    using Work = std::function<Result<>(std::size_t index)>;

    // Called on each thread that is started, before it works.
    struct Hook {
        void (*call)(void* context) = nullptr;
        void* context = nullptr;
    };
    // `threads`: the most that take part in a call; 0: all cores.
    explicit ThreadPool(int threads = 0);
    ThreadPool(int threads, Hook hook);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const noexcept { return threads_; }

    // Calls work(0) to work(count - 1), in any order, on up to `threads` threads at once, the
    // calling one among them, and returns when all have returned: the number of threads that took
    // part. After an error no further piece is started, and the first error is returned. Work may
    // end its thread by pthread_exit(): one of the pool's is missed by nobody, and the call fails;
    // the calling one goes when the others are done. It is not cancelled while others take part.
    Result<int> run(std::size_t count, int threads, const Work& work);

  private:
    struct Task;
    struct Crew;
    class Share;
    class Leave;
    Crew& crew();
    static void serve(Crew& crew);

    int threads_;
    const Hook hook_;
    std::atomic<Crew*> crew_{nullptr};
};

}  // namespace dael::pipeline
