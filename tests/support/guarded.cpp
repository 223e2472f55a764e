// SPDX-License-Identifier: Apache-2.0
#include "support/guarded.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <new>

namespace dael::test {
namespace {

// Read by the signal handler: plain memory that was filled before the call that faults.
std::array<char, 256> running{};
std::size_t running_size = 0;

void say(const char* text, std::size_t size) {
    if (write(STDERR_FILENO, text, size) < 0) _exit(3);
}

extern "C" void on_fault(int) {
    constexpr std::string_view kFault = "touched memory outside of its buffers: ";
    say(kFault.data(), kFault.size());
    say(running.data(), running_size);
    say("\n", 1);
    _exit(2);
}

}  // namespace

Guarded::Guarded(std::size_t capacity) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    room_ = std::max<std::size_t>(1, (capacity + page_ - 1) / page_) * page_;
    void* memory = mmap(nullptr, room_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::uint8_t*>(memory) + page_;
    if (mprotect(begin_, room_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

Guarded::~Guarded() {
    munmap(begin_ - page_, room_ + 2 * page_);
}

void report_faults() {
    struct sigaction action {};
    action.sa_handler = on_fault;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
}

void now_running(std::string_view what) {
    running_size = std::min(what.size(), running.size());
    std::copy_n(what.data(), running_size, running.data());
}

}  // namespace dael::test
