// SPDX-License-Identifier: Apache-2.0
#include "pipeline/thread_pool.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/guard.hpp"
#include "core/libcrypto_notes.hpp"
#include "core/process.hpp"

namespace dael::pipeline {
namespace {

// Whoever has nothing to do looks for something this long before it sleeps: waking takes as long,
// and the next piece of a call, or the next call of a program that has many, is often there sooner.
constexpr std::chrono::microseconds kPatience{25};

void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Whether it came true in that time.
template <class Condition>
bool soon(const Condition& condition) noexcept {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    do {
        for (int i = 0; i < 32; ++i) {
            if (condition()) return true;
            pause();
        }
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

// What the caller hears of a callback that ended one of the pool's threads.
Error ended() noexcept {
    try {
        return {Code::internal, "a callback ended a thread of the library's; let it return"};
    } catch (const std::bad_alloc&) {
        return {Code::internal, "a thread ended"};  // so short that it needs no memory
    }
}

}  // namespace

// One call to run(). It lives on the caller's stack, which waits until `inside` is 0 before it
// goes.
struct ThreadPool::Task {
    const Work& work;
    const std::size_t count;
    std::atomic<std::size_t> next{0};
    std::atomic<int> took_part{0};
    std::mutex error_mutex{};
    std::optional<Error> error{};

    // Changed with the crew's mutex held.
    int wanted = 0;  // threads that may still come in
    int asleep = 0;  // of those, must still be woken
    std::atomic<int> inside{0};
    std::condition_variable left{};

    // No piece is started after this.
    void fail(Error&& its_error) noexcept {
        next.store(count, std::memory_order_relaxed);
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::move(its_error);
    }

    // The piece whose callback ends the thread by pthread_exit() has no result to look at.
    class Piece {
      public:
        explicit Piece(Task& task) noexcept : task_(task) {}
        Piece(const Piece&) = delete;
        Piece& operator=(const Piece&) = delete;
        ~Piece() {
            if (!returned_) task_.fail(ended());
        }
        void returned() noexcept { returned_ = true; }

      private:
        Task& task_;
        bool returned_ = false;
    };

    void work_off() {
        bool first = true;
        for (std::size_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
            if (first) took_part.fetch_add(1, std::memory_order_relaxed);
            first = false;
            Piece piece(*this);
            auto result = core::guarded([&] { return work(index); });
            piece.returned();
            if (!result) fail(std::move(result).error());
        }
    }
};

struct ThreadPool::Crew {
    explicit Crew(Hook its_hook) : hook(its_hook) {}
    const std::uint32_t process = core::this_process();
    const Hook hook;
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<Task*> queue;
    int looking = 0;        // threads that are awake and have nothing to do
    std::size_t ended = 0;  // of `threads`, those that a callback has ended
    std::atomic<bool> closing{false}, waiting{false};  // whether the queue has something
    struct Member {
        pthread_t id;
        bool ended = false;
    };
    std::vector<Member> threads;

    void put(Task& task) {
        // Some are awake, and not needed by others.
        int awake = looking;
        for (const Task* other : queue) awake -= other->wanted;
        task.asleep = task.wanted - std::clamp(awake, 0, task.wanted);
        queue.push_back(&task);
        waiting = true;
    }
    // Each who comes wakes two more, so that the first does not spend as long on it as all work.
    int share_of_waking(Task& task) {
        const int mine = std::min(task.asleep, 2);
        task.asleep -= mine;
        return mine;
    }
    void wake_up(int sleepers) {
        for (int i = 0; i < sleepers; ++i) wake.notify_one();
    }
    void take_off(Task& task) {
        std::erase(queue, &task);
        waiting = !queue.empty();
    }

    // Has at least `count` threads, or as many as the system grants: the caller works in any case.
    void grow(std::size_t count) {
        // Those that a callback has ended are joined, but for those that are at their destructors
        // still, which may take any time: their turn comes later.
        if (ended != 0)
            ended -= std::erase_if(threads, [](const Member& member) {
                return member.ended && pthread_tryjoin_np(member.id, nullptr) == 0;
            });
        count += ended;
        if (threads.size() >= count) return;
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            threads.reserve(count);
            const auto start = [](void* crew) -> void* {
                serve(*static_cast<Crew*>(crew));
                return nullptr;
            };
            pthread_t id;
            while (threads.size() < count && pthread_create(&id, nullptr, start, this) == 0)
                threads.push_back({id});
        } catch (const std::bad_alloc&) {
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    void this_one_ends() noexcept {
        for (Member& member : threads)
            if (pthread_equal(member.id, pthread_self())) member.ended = true;
        ++ended;
    }
};

ThreadPool::ThreadPool(int threads) : ThreadPool(threads, Hook{}) {}

ThreadPool::ThreadPool(int threads, Hook hook)
    : threads_(threads > 0 ? threads
                           : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))),
      hook_(hook) {}

ThreadPool::~ThreadPool() {
    Crew* crew = crew_.load();
    // After a fork the threads belong to the parent: there is nothing here to join, and a mutex
    // that one of them held would never open. The few bytes are left behind on purpose.
    if (!crew || crew->process != core::this_process()) return;
    {
        const std::lock_guard lock(crew->mutex);
        crew->closing = true;
    }
    crew->wake.notify_all();
    for (const Crew::Member& member : crew->threads) pthread_join(member.id, nullptr);
    delete crew;
}

ThreadPool::Crew& ThreadPool::crew() {
    Crew* current = crew_.load();
    if (current && current->process == core::this_process()) return *current;
    auto fresh = std::make_unique<Crew>(hook_);
    // Without a lock, since a lock may have been held by another thread when the process forked.
    if (crew_.compare_exchange_strong(current, fresh.get())) return *fresh.release();
    return *current;
}

// A thread's share of a task. It is given back by a callback that ends the thread, too: the caller
// waits for it.
class ThreadPool::Share {
  public:
    // `lock`: of the crew's mutex, which is held now, not while at work, and then again.
    Share(Crew& crew, std::unique_lock<std::mutex>& lock) noexcept
        : crew_(crew), lock_(lock), task_(*crew.queue.front()) {
        if (--task_.wanted == 0) crew.take_off(task_);
        ++task_.inside;
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() {
        lock_.lock();
        if (!returned_) crew_.this_one_ends();
        if (--task_.inside == 0) task_.left.notify_one();
    }
    void work_off() {
        const int wakes = crew_.share_of_waking(task_);
        lock_.unlock();
        crew_.wake_up(wakes);
        task_.work_off();
        returned_ = true;
    }

  private:
    Crew& crew_;
    std::unique_lock<std::mutex>& lock_;
    Task& task_;
    bool returned_ = false;
};

// The caller's end of a task, by return or because a callback ends its thread: the others work on
// its stack, and it is not left before they are done.
class ThreadPool::Leave {
  public:
    Leave(Crew& crew, Task& task) noexcept : crew_(crew), task_(task) {}
    Leave(const Leave&) = delete;
    Leave& operator=(const Leave&) = delete;
    ~Leave() {
        {  // nobody else comes in
            const std::lock_guard lock(crew_.mutex);
            crew_.take_off(task_);
        }
        (void)soon([&] { return task_.inside == 0; });
        std::unique_lock lock(crew_.mutex);
        task_.left.wait(lock, [&] { return task_.inside == 0; });
    }

  private:
    Crew& crew_;
    Task& task_;
};

void ThreadPool::serve(Crew& crew) {
    const core::Uncancelled whole;
    (void)pthread_setname_np(pthread_self(), "daelstrom");
    if (crew.hook.call) crew.hook.call(crew.hook.context);
    std::unique_lock lock(crew.mutex);
    for (;;) {
        crew.wake.wait(lock, [&] { return crew.closing || !crew.queue.empty(); });
        if (crew.closing) break;
        Share(crew, lock).work_off();
        if (!crew.queue.empty()) continue;
        ++crew.looking;
        lock.unlock();
        (void)soon([&] { return crew.closing || crew.waiting; });
        lock.lock();
        --crew.looking;
    }
    lock.unlock();
    core::LibcryptoNotes::end_thread();
}

Result<int> ThreadPool::run(std::size_t count, int threads, const Work& work) {
    Task task{.work = work, .count = count};
    const auto most = static_cast<std::size_t>(std::clamp(threads, 1, threads_));
    const std::size_t helpers = count == 0 ? 0 : std::min(most, count) - 1;
    if (helpers == 0) {
        task.work_off();
    } else {
        const core::Uncancelled whole;
        Crew& crew = this->crew();
        int wakes = 0;
        {
            const std::lock_guard lock(crew.mutex);
            crew.grow(helpers);
            task.wanted = static_cast<int>(helpers);
            crew.put(task);
            wakes = crew.share_of_waking(task);
        }
        const Leave leave(crew, task);
        crew.wake_up(wakes);
        task.work_off();
    }
    if (task.error) return std::move(*task.error);
    return std::max(1, task.took_part.load());
}

}  // namespace dael::pipeline
