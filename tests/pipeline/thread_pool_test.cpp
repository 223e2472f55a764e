// SPDX-License-Identifier: Apache-2.0
#include "pipeline/thread_pool.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/cancelled.hpp"
#include "support/child.hpp"

namespace {

using dael::Code;
using dael::Error;
using dael::Result;
using dael::pipeline::ThreadPool;

TEST(ThreadPool, RunsEveryIndexOnce) {
    ThreadPool pool(4);
    for (const std::size_t count : {0, 1, 2, 3, 5, 1000}) {
        std::vector<std::atomic<int>> seen(count);
        const auto threads = pool.run(count, 4, [&](std::size_t index) -> Result<> {
            ++seen[index];
            return {};
        });
        ASSERT_TRUE(threads);
        EXPECT_LE(*threads, 4);
        for (const auto& times : seen) EXPECT_EQ(times, 1);
    }
}

TEST(ThreadPool, ACallerThatIsCancelledWaitsForTheOthers) {
    ThreadPool pool(2);
    std::atomic<int> done{0};
    EXPECT_TRUE(dael::test::cancelled([&] {
        std::barrier both(2);
        const auto caller = std::this_thread::get_id();
        (void)pool.run(2, 2, [&](std::size_t) -> Result<> {
            both.arrive_and_wait();
            if (std::this_thread::get_id() == caller)
                pthread_cancel(pthread_self());
            else
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            ++done;  // on the caller's stack it would be gone
            return {};
        });
        pthread_testcancel();
    }));
    EXPECT_EQ(done, 2);
}

TEST(ThreadPool, AThreadThatEndsInACallbackIsMissedByNobody) {
    ThreadPool pool(3);
    const auto caller = std::this_thread::get_id();
    for (int turn = 0; turn < 3; ++turn) {
        std::barrier all_three(3);
        const auto threads = pool.run(3, 3, [&](std::size_t) -> Result<> {
            all_three.arrive_and_wait();
            if (std::this_thread::get_id() != caller) pthread_exit(nullptr);
            return {};
        });
        ASSERT_FALSE(threads);
        EXPECT_EQ(threads.code(), Code::internal);
    }
    std::barrier all_three(3);  // others have taken their places
    EXPECT_TRUE(pool.run(3, 3, [&](std::size_t) -> Result<> {
        all_three.arrive_and_wait();
        return {};
    }));
}

// A thread's number is not another's before it is joined.
TEST(ThreadPool, ThreadsThatEndInCallbacksAreJoinedBeforeThePoolGoes) {
    ThreadPool pool(2);
    const auto caller = std::this_thread::get_id();
    std::vector<pthread_t> ended;
    bool joined = false;
    for (int turn = 0; turn < 500 && !joined; ++turn) {
        std::barrier both(2);
        (void)pool.run(2, 2, [&](std::size_t) -> Result<> {
            both.arrive_and_wait();
            if (std::this_thread::get_id() == caller) return {};
            for (const pthread_t other : ended)
                joined = joined || pthread_equal(other, pthread_self());
            ended.push_back(pthread_self());
            pthread_exit(nullptr);
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(joined);
}

// One that is at its destructors is not waited for.
TEST(ThreadPool, AThreadThatTakesLongToEndIsNotWaitedFor) {
    static std::atomic<bool> may_end;
    static std::atomic<int> at_it;
    may_end = false;
    at_it = 0;
    struct Slow {
        ~Slow() {
            ++at_it;
            may_end.wait(false);
        }
    };
    ThreadPool pool(2);
    const auto caller = std::this_thread::get_id();
    const auto run = [&](bool ends) {
        std::barrier both(2);
        return pool.run(2, 2, [&](std::size_t) -> Result<> {
            both.arrive_and_wait();
            if (std::this_thread::get_id() == caller || !ends) return {};
            static thread_local const Slow its;
            pthread_exit(nullptr);
        });
    };
    for (int turn = 0; turn < 3; ++turn) EXPECT_FALSE(run(true));
    while (at_it != 3) std::this_thread::yield();
    EXPECT_TRUE(run(false));
    may_end = true;
    may_end.notify_all();
}

TEST(ThreadPool, ACallerThatEndsInACallbackWaitsForTheOthers) {
    ThreadPool pool(2);
    std::atomic<int> done{0};
    std::thread([&] {
        std::barrier both(2);
        const auto caller = std::this_thread::get_id();
        (void)pool.run(2, 2, [&](std::size_t) -> Result<> {
            both.arrive_and_wait();
            if (std::this_thread::get_id() == caller) pthread_exit(nullptr);
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            ++done;  // the caller's work lives on its stack
            return {};
        });
    }).join();
    EXPECT_EQ(done, 1);
    EXPECT_TRUE(pool.run(2, 2, [](std::size_t) -> Result<> { return {}; }));
}

TEST(ThreadPool, ReallyRunsAtOnceOnTheThreadsAskedFor) {
    ThreadPool pool(3);
    std::barrier all_three(3);  // opens only if three threads are inside at the same time
    std::mutex mutex;
    std::set<std::thread::id> ids;
    const auto threads = pool.run(3, 3, [&](std::size_t) -> Result<> {
        all_three.arrive_and_wait();
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
        return {};
    });
    ASSERT_TRUE(threads);
    EXPECT_EQ(*threads, 3);
    EXPECT_EQ(ids.size(), 3u);
    EXPECT_EQ(ids.count(std::this_thread::get_id()), 1u);
}

TEST(ThreadPool, ItsThreadsHaveANameAndAreHandedToTheHook) {
    std::atomic<int> hooked{0};
    std::atomic<bool> right{true};
    ThreadPool pool(3,
                    {[](void* context) { ++*static_cast<std::atomic<int>*>(context); }, &hooked});
    std::barrier all_three(3);
    const auto caller = std::this_thread::get_id();
    ASSERT_TRUE(pool.run(3, 3, [&](std::size_t) -> Result<> {
        all_three.arrive_and_wait();
        char name[16] = {};
        pthread_getname_np(pthread_self(), name, sizeof name);
        if (std::this_thread::get_id() != caller && std::string(name) != "daelstrom") right = false;
        return {};
    }));
    EXPECT_EQ(hooked, 2);  // not on the caller's own
    EXPECT_TRUE(right);
}

TEST(ThreadPool, OneThreadStaysOnTheCaller) {
    ThreadPool pool(8);
    const auto caller = std::this_thread::get_id();
    const auto threads = pool.run(100, 1, [&](std::size_t) -> Result<> {
        if (std::this_thread::get_id() != caller) return Error{Code::internal, "another thread"};
        return {};
    });
    ASSERT_TRUE(threads);
    EXPECT_EQ(*threads, 1);
}

TEST(ThreadPool, ReturnsTheErrorAndStartsNothingAfterIt) {
    ThreadPool pool(2);
    std::atomic<int> started{0};
    const auto threads = pool.run(100000, 2, [&](std::size_t index) -> Result<> {
        ++started;
        if (index == 10) return Error{Code::device, "piece 10"};
        std::this_thread::sleep_for(std::chrono::microseconds(10));
        return {};
    });
    EXPECT_EQ(threads.code(), Code::device);
    EXPECT_EQ(threads.error().message, "piece 10");
    EXPECT_LT(started, 50000);
}

TEST(ThreadPool, ExceptionsBecomeErrors) {
    ThreadPool pool(2);
    const auto threads = pool.run(4, 2, [](std::size_t) -> Result<> { throw std::bad_alloc(); });
    EXPECT_EQ(threads.code(), Code::out_of_memory);
}

TEST(ThreadPool, ServesManyCallersAndNestedCalls) {
    ThreadPool pool(4);
    std::atomic<int> pieces{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 6; ++caller)
        callers.emplace_back([&] {
            for (int round = 0; round < 20; ++round)
                EXPECT_TRUE(pool.run(5, 4, [&](std::size_t) -> Result<> {
                    auto inner = pool.run(3, 4, [&](std::size_t) -> Result<> {
                        ++pieces;
                        return {};
                    });
                    if (!inner) return inner.error();
                    return {};
                }));
        });
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(pieces, 6 * 20 * 5 * 3);
}

TEST(ThreadPool, WorksInAChildOfFork) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer does not support threads in a child of a threaded process";
#endif
    ThreadPool pool(3);
    const auto meet = [&] {
        std::barrier all_three(3);
        const auto threads = pool.run(3, 3, [&](std::size_t) -> Result<> {
            all_three.arrive_and_wait();
            return {};
        });
        return threads && *threads == 3;
    };
    ASSERT_TRUE(meet());
    dael::test::expect_in_a_child(
        [&] {  // a pool that waits for the parent's threads would wait for ever
            const bool met = meet();
            pool.~ThreadPool();
            return met;
        });
    EXPECT_TRUE(meet());
}

}  // namespace
