// SPDX-License-Identifier: Apache-2.0
// What keystream made ahead of time could bring to CTR in small sequential updates: another thread
// fills windows, this one takes an exclusive or of them with 4 KiB at a time. Beside it the code
// that updates of that size go through (vector_aes.hpp). Prints nanoseconds of this thread for each
// 4 KiB, of the quickest of many turns.
//
//     provider_lookahead [WINDOW_KIB] [WINDOWS]
//
// Without AVX-512 it says so and ends.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "vector_aes.hpp"

namespace {

using namespace dael::provider;
using Clock = std::chrono::steady_clock;
constexpr std::size_t kPiece = 4096;

struct Window {
    std::vector<unsigned char> keystream;
    std::atomic<bool> full{false};
};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

void exclusive_or(unsigned char* out, const unsigned char* in, const unsigned char* keystream) {
    for (std::size_t i = 0; i < kPiece; i += 8) {
        std::uint64_t a, b;
        std::memcpy(&a, in + i, 8);
        std::memcpy(&b, keystream + i, 8);
        a ^= b;
        std::memcpy(out + i, &a, 8);
    }
}

}  // namespace

int main(int count, char** words) {
    if (!vector_units()) {
        std::puts("no AVX-512 with VAES here");
        return 0;
    }
    const std::size_t window = (count > 1 ? std::strtoul(words[1], nullptr, 10) : 128) << 10;
    const std::size_t windows = count > 2 ? std::strtoul(words[2], nullptr, 10) : 8;
    if (window < kPiece || windows < 2) return 1;
    unsigned char key[32] = {1}, counter[16] = {2};
    Schedule schedule;
    expand(schedule, key, sizeof key, false);
    const Code ctr = code_for(Kind::ctr, true, schedule.rounds);
    std::vector<unsigned char> in(kPiece, 3), out(kPiece);

    double direct = 1;
    for (int turn = 0; turn < 400; ++turn) {
        const auto start = Clock::now();
        for (int i = 0; i < 100; ++i) ctr(schedule.keys, counter, in.data(), out.data(), kPiece);
        direct = std::min(direct, seconds_since(start) / 100);
    }
    std::vector<Window> ring(windows);
    for (Window& w : ring) w.keystream.resize(window);
    std::atomic<bool> ends{false};
    std::thread filler([&] {
        unsigned char ahead[16] = {2};
        const std::vector<unsigned char> zeros(window);
        for (std::size_t next = 0; !ends.load(std::memory_order_relaxed);) {
            Window& w = ring[next];
            if (w.full.load(std::memory_order_acquire)) continue;
            ctr(schedule.keys, ahead, zeros.data(), w.keystream.data(), window);
            w.full.store(true, std::memory_order_release);
            next = (next + 1) % windows;
        }
    });
    // Of a window that is there: what waiting for it takes is left out, to the look-ahead's favour.
    double taken = 1;
    for (std::size_t turn = 0; turn < 4000; ++turn) {
        Window& w = ring[turn % windows];
        while (!w.full.load(std::memory_order_acquire)) std::this_thread::yield();
        const auto start = Clock::now();
        for (std::size_t at = 0; at < window; at += kPiece) {
            exclusive_or(out.data(), in.data(), &w.keystream[at]);
            std::memset(&w.keystream[at], 0, kPiece);  // used up, and a secret
        }
        taken = std::min(taken, seconds_since(start) / static_cast<double>(window / kPiece));
        w.full.store(false, std::memory_order_release);
    }
    ends = true;
    filler.join();
    std::printf(
        "4 KiB at a time: %.0f ns by AVX-512, %.0f ns with keystream of another thread's "
        "(windows of %zu KiB, %zu of them)\n",
        direct * 1e9, taken * 1e9, window >> 10, windows);
}
