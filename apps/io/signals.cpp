// SPDX-License-Identifier: Apache-2.0
#include "io/signals.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>

namespace dael::app {
namespace {

// What the handler reads. It uses only async-signal-safe calls: unlinkat, tcsetattr, sigaction,
// raise.
std::array<char, NAME_MAX + 1> doomed_name;
std::atomic<int> doomed_directory{-1};
termios terminal_state;
std::atomic<int> terminal{-1};

static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void clean_up_and_die(int signal) {
    if (const int directory = doomed_directory.load(); directory >= 0)
        ::unlinkat(directory, doomed_name.data(), 0);
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

void remove_on_signal(int directory_fd, const std::string& name) {
    const auto size = name.copy(doomed_name.data(), doomed_name.size() - 1);
    doomed_name[size] = '\0';
    doomed_directory = directory_fd;
}

void keep_on_signal() {
    doomed_directory = -1;
}

void restore_on_signal(int terminal_fd, const termios& state) {
    terminal_state = state;
    terminal = terminal_fd;
}

void terminal_restored() {
    terminal = -1;
}

}  // namespace dael::app
