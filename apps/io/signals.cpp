// SPDX-License-Identifier: Apache-2.0
#include "io/signals.hpp"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <utility>

namespace dael::app {
namespace {

// What the handler reads. It uses only async-signal-safe calls: unlinkat, nanosleep, tcsetattr,
// sigaction, raise.
struct DoomedName {
    std::atomic<bool> taken{false};
    std::atomic<int> directory{-1};  // set when the name is
    std::array<char, 64> name{};
};
std::array<DoomedName, DoomedFile::kMax> slots;
std::atomic<int> creating{0};    // threads between enter() and leave()
std::atomic<bool> dying{false};  // no further file may be created
termios terminal_state;
std::atomic<int> terminal{-1};

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// The threads that are creating a file do not get the signal (Creating blocks it), so that to wait
// for them ends; a network file system that does not answer gets two seconds.
void wait_for_creators() {
    for (int turn = 0; creating.load() > 0 && turn < 2000; ++turn) {
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

extern "C" void clean_up_and_die(int signal) {
    dying = true;
    wait_for_creators();
    for (const DoomedName& slot : slots)
        if (const int directory = slot.directory.load(); directory >= 0)
            ::unlinkat(directory, slot.name.data(), 0);
    if (const int fd = terminal.load(); fd >= 0) ::tcsetattr(fd, TCSANOW, &terminal_state);
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
    ::raise(signal);  // delivered when the handler returns
}

}  // namespace

void install_signal_handlers() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
        struct sigaction action {};
        ::sigaction(signal, nullptr, &action);
        if (action.sa_handler == SIG_IGN) continue;
        action = {};
        action.sa_handler = clean_up_and_die;
        ::sigfillset(&action.sa_mask);
        ::sigaction(signal, &action, nullptr);
    }
    std::signal(SIGXFSZ, SIG_IGN);
}

void disable_core_dumps() {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__  // LeakSanitizer attaches to the process, which this forbids
    ::prctl(PR_SET_DUMPABLE, 0);
#endif
}

void block_signals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

void DoomedFile::enter() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    ++creating;
    if (!dying) return;
    // The handler is at work or about to be. With the count taken back it does not wait for us, and
    // the process ends before this thread goes on.
    --creating;
    for (;;) ::pause();
}

void DoomedFile::leave() noexcept {
    --creating;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void DoomedFile::there(int folder, const char* name) noexcept {
    gone();
    for (std::size_t i = 0; i < slots.size(); ++i) {
        DoomedName& slot = slots[i];
        if (slot.taken.exchange(true)) continue;
        std::strncpy(slot.name.data(), name, slot.name.size() - 1);
        slot.directory = folder;
        slot_ = static_cast<int>(i);
        return;
    }
}

void DoomedFile::gone() noexcept {
    if (slot_ < 0) return;
    DoomedName& slot = slots[static_cast<std::size_t>(std::exchange(slot_, -1))];
    slot.directory = -1;
    slot.taken = false;
}

void restore_on_signal(int terminal_fd, const termios& state) {
    terminal_state = state;
    terminal = terminal_fd;
}

void terminal_restored() {
    terminal = -1;
}

}  // namespace dael::app
