// SPDX-License-Identifier: Apache-2.0
// A thread block of CUDA on the host, so that a kernel's own code can run where there is no GPU:
// one thread takes the part of all, and goes from one to the next where they wait for each other.
// A file that includes this goes on to include the headers of kernels, then says that __shared__ is
// static, and includes the kernels themselves. Blocks run one after another.
#pragma once

#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __noinline__
#define __noinline__

struct HostDim3 {
    unsigned x = 0, y = 0, z = 0;
};
inline HostDim3 threadIdx, blockIdx, blockDim, gridDim;
using std::max;
using std::min;

namespace dael::test {

// The threads of a block, in lockstep where they meet.
class HostBlock {
  public:
    static constexpr std::size_t kStack = 64 * 1024;

    static void run(unsigned threads, const std::function<void()>& kernel) {
        HostBlock block(threads, kernel);
        current() = &block;
        block.all();
        current() = nullptr;
    }
    static HostBlock*& current() {
        static HostBlock* block = nullptr;
        return block;
    }

    // Until `size` threads of this one's group have come.
    void meet(unsigned group, unsigned size) {
        Meeting& meeting = meetings_.at(group);
        if (++meeting.come == size) {
            meeting.come = 0;
            ++meeting.held;
            return;
        }
        fibers_[at_].waits_for = &meeting;
        fibers_[at_].held = meeting.held;
        // By setjmp, which asks nothing of the system, as swapcontext() does.
        if (_setjmp(fibers_[at_].place) == 0) _longjmp(main_place_, 1);
    }
    void meet_all() { meet(0, static_cast<unsigned>(fibers_.size())); }
    void meet_warp() { meet(1 + at_ / 32, 32); }
    // What another lane of the warp gives.
    std::uint32_t exchange(std::uint32_t value, unsigned lane) {
        given_[at_] = value;
        meet_warp();
        const std::uint32_t taken = given_[at_ / 32 * 32 + lane % 32];
        meet_warp();
        return taken;
    }
    unsigned thread() const { return at_; }
    // Called before a thread goes on, with how often all of them have met.
    static std::function<void(unsigned thread, std::uint64_t met)>& before() {
        static std::function<void(unsigned, std::uint64_t)> before;
        return before;
    }

  private:
    struct Meeting {
        unsigned come = 0;
        std::uint64_t held = 0;
    };
    struct Fiber {
        ucontext_t context{};
        jmp_buf place{};
        const Meeting* waits_for = nullptr;  // until it was held more often than
        std::uint64_t held = 0;
        bool begun = false, done = false;
        bool can_run() const { return !done && (!waits_for || waits_for->held != held); }
    };

    HostBlock(unsigned threads, const std::function<void()>& kernel)
        : kernel_(kernel), fibers_(threads), meetings_(2 + threads / 32), given_(threads) {
        blockDim.x = threads;
        static std::vector<std::unique_ptr<char[]>> stacks;  // for the next block, too
        while (stacks.size() < threads) stacks.push_back(std::make_unique<char[]>(kStack));
        for (std::size_t i = 0; i < threads; ++i) {
            ucontext_t& context = fibers_[i].context;
            getcontext(&context);
            context.uc_stack.ss_sp = stacks[i].get();
            context.uc_stack.ss_size = kStack;
            makecontext(&context, &HostBlock::begin, 0);
        }
    }
    static void begin() {
        HostBlock& block = *current();
        block.kernel_();
        block.fibers_[block.at_].done = true;
        _longjmp(block.main_place_, 1);
    }
    // Threads come in one order and then in the other, so that a barrier that is missing shows.
    static bool& backwards() {
        static bool backwards = false;
        return backwards;
    }
    void all() {
        for (bool any = true; any;) {
            any = false;
            const auto count = static_cast<unsigned>(fibers_.size());
            backwards() = !backwards();
            for (unsigned i = 0; i < count; ++i) {
                at_ = backwards() ? count - 1 - i : i;
                if (!fibers_[at_].can_run()) continue;
                any = true;
                threadIdx.x = at_;
                if (before()) before()(at_, meetings_[0].held);
                resume(fibers_[at_]);
            }
        }
    }
    void resume(Fiber& fiber) {
        if (_setjmp(main_place_) != 0) return;
        if (fiber.begun) _longjmp(fiber.place, 1);
        fiber.begun = true;
        setcontext(&fiber.context);
    }

    const std::function<void()>& kernel_;
    std::vector<Fiber> fibers_;
    std::vector<Meeting> meetings_;  // of all, then of each warp
    std::vector<std::uint32_t> given_;
    jmp_buf main_place_{};
    unsigned at_ = 0;  // the thread that runs
};

// Blocks of threads, one after another.
template <class Kernel>
void launch_blocks(unsigned blocks, unsigned threads, Kernel kernel) {
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) HostBlock::run(threads, kernel);
    blockIdx.x = 0;
}

// While this lives, a lane finds zeros in all banks of a table image but one, its own or, `by`
// apart, another's, from when the image has been filled and all threads have met.
class OwnBanks {
  public:
    OwnBanks(unsigned char* image, std::size_t size, unsigned by = 0)
        : image_(reinterpret_cast<std::uint32_t*>(image)), filled_(size / 4) {
        HostBlock::before() = [this, by](unsigned thread, std::uint64_t met) {
            if (met == 0) {
                lane_ = kAll;
                return;
            }
            if (lane_ == kAll) {
                std::copy_n(image_, filled_.size(), filled_.begin());
                std::fill_n(image_, filled_.size(), 0);
            }
            const unsigned lane = (thread + by) % 32;
            if (lane == lane_) return;
            if (lane_ != kAll)
                for (std::size_t i = lane_; i < filled_.size(); i += 32) image_[i] = 0;
            for (std::size_t i = lane; i < filled_.size(); i += 32) image_[i] = filled_[i];
            lane_ = lane;
        };
    }
    OwnBanks(const OwnBanks&) = delete;
    ~OwnBanks() { HostBlock::before() = nullptr; }

  private:
    static constexpr unsigned kAll = ~0u;
    std::uint32_t* const image_;
    std::vector<std::uint32_t> filled_;
    unsigned lane_ = kAll;  // whose bank can be seen
};

}  // namespace dael::test

inline void __syncthreads() {
    dael::test::HostBlock::current()->meet_all();
}
inline void __syncwarp() {
    dael::test::HostBlock::current()->meet_warp();
}
inline std::uint32_t __shfl_sync(unsigned, std::uint32_t value, unsigned lane) {
    return dael::test::HostBlock::current()->exchange(value, lane);
}
inline std::uint32_t __shfl_xor_sync(unsigned, std::uint32_t value, int distance) {
    auto* const block = dael::test::HostBlock::current();
    return block->exchange(value, block->thread() % 32 ^ static_cast<unsigned>(distance));
}
inline unsigned atomicAdd(unsigned* at, unsigned value) {
    return std::exchange(*at, *at + value);
}
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
    return std::exchange(*at, *at + value);
}
inline unsigned long long atomicCAS(unsigned long long* at, unsigned long long expected,
                                    unsigned long long value) {
    return *at == expected ? std::exchange(*at, value) : *at;
}
inline void __threadfence() {}
[[noreturn]] inline void __trap() {
    std::abort();
}
inline unsigned __ballot_sync(unsigned, bool vote) {
    auto* const block = dael::test::HostBlock::current();
    unsigned votes = 0;
    for (unsigned i = 0; i < 32; ++i) votes |= block->exchange(vote, i) << i;
    return votes;
}
inline int __popc(unsigned value) {
    return __builtin_popcount(value);
}
inline int __ffs(int value) {
    return __builtin_ffs(value);
}
inline bool __isGlobal(const void*) {
    return true;
}
#define __builtin_assume(condition) static_cast<void>(condition)
inline std::size_t __cvta_generic_to_shared(const void* address) {
    return reinterpret_cast<std::size_t>(address);
}
