// SPDX-License-Identifier: Apache-2.0
#include "io/prompt.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "io/signals.hpp"

namespace dael::app {
namespace {

// What a shell's job control does to a program that asks: Ctrl-Z and `fg`, `bg`, and to be begun
// in the background. In order: a wish to stop, and the news that it goes on.
constexpr std::array<int, 4> kJobSignals{SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};
volatile std::sig_atomic_t wants_stop = 0;  // the signal
volatile std::sig_atomic_t continued = 0;
pthread_t asking;  // valid while the handlers are installed

extern "C" void note_job_signal(int signal) {
    if (!::pthread_equal(::pthread_self(), asking)) {  // any thread may get it
        ::pthread_kill(asking, signal);
        return;
    }
    if (signal == SIGCONT)
        continued = 1;
    else
        wants_stop = signal;
}

// While this lives, the signals of job control are noted instead of obeyed, and come in wait()
// alone. Those that are ignored stay so.
class JobControl {
  public:
    JobControl() {
        asking = ::pthread_self();
        wants_stop = 0;
        continued = 0;
        sigset_t ours;
        ::sigemptyset(&ours);
        for (const int signal : kJobSignals) ::sigaddset(&ours, signal);
        ::pthread_sigmask(SIG_BLOCK, &ours, &before_);
        open_ = before_;
        for (const int signal : kJobSignals) ::sigdelset(&open_, signal);
        for (std::size_t i = 0; i < kJobSignals.size(); ++i) {
            ::sigaction(kJobSignals[i], nullptr, &old_[i]);
            if (old_[i].sa_handler != SIG_IGN) handle(kJobSignals[i], note_job_signal);
        }
    }
    JobControl(const JobControl&) = delete;
    ~JobControl() {
        for (std::size_t i = 0; i < kJobSignals.size(); ++i)
            ::sigaction(kJobSignals[i], &old_[i], nullptr);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

    // Until something can be read; false: a signal came first.
    bool wait(int fd) const {
        pollfd ready{fd, POLLIN, 0};
        return ::ppoll(&ready, 1, nullptr, &open_) >= 0 || errno != EINTR;
    }
    // Stops as if `signal` had never been caught, `whole_job`: with all that run beside it, as the
    // kernel stops a job. False: it did not, as nobody is there who could let it go on.
    bool stop(int signal, bool whole_job) const {
        continued = 0;
        wants_stop = 0;
        if (whole_job) {  // the others of it
            handle(signal, SIG_IGN);
            ::kill(0, signal);
        }
        handle(signal, SIG_DFL);
        ::pthread_kill(asking, signal);  // not to a thread that takes it later than now
        sigset_t mask;
        ::pthread_sigmask(SIG_SETMASK, &open_, &mask);  // stops here
        ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
        handle(signal, note_job_signal);
        wants_stop = 0;
        return continued != 0;
    }

  private:
    static void handle(int signal, void (*handler)(int)) {
        struct sigaction action {};
        action.sa_handler = handler;
        ::sigaction(signal, &action, nullptr);
    }

    sigset_t before_, open_;
    std::array<struct sigaction, kJobSignals.size()> old_{};
};

// The terminal with its echo off from the first question on.
class QuietTerminal {
  public:
    static Result<QuietTerminal> open(const std::string& what, const std::string& instead) {
        const int fd = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
        termios state{};
        if (fd < 0 || ::tcgetattr(fd, &state) != 0) {
            if (fd >= 0) ::close(fd);
            return Error{Code::io, "there is no terminal to ask for the " + what + "; " + instead};
        }
        return QuietTerminal(fd, state);
    }
    QuietTerminal(QuietTerminal&& other) noexcept
        : fd_(other.fd_), state_(other.state_), quiet_(other.quiet_) {
        other.fd_ = -1;
    }
    ~QuietTerminal() {
        if (fd_ < 0) return;
        show();
        ::close(fd_);
    }

    // Stopped amid the question (Ctrl-Z), the echo is back before the shell is; when it goes on,
    // the echo is off again before the question is asked once more, from its beginning.
    Result<Secret> ask(const std::string& question, const JobControl& jobs) {
        auto line = Secret::create();
        if (!line) return line;
        if (!quiet_) DAEL_TRY(hide(jobs));
        say(question + ": ");
        for (;;) {
            const bool readable = jobs.wait(fd_) && wants_stop == 0 && continued == 0;
            if (!readable || !in_foreground()) {
                line->truncate(0);
                const int signal = wants_stop;
                if (signal != 0) {
                    show();
                    (void)jobs.stop(signal, false);
                }
                DAEL_TRY(hide(jobs));
                say(question + ": ");
                continue;
            }
            std::uint8_t byte = 0;
            const ssize_t got = ::read(fd_, &byte, 1);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0)
                return Error{Code::io, std::string("the terminal: ") + std::strerror(errno)};
            if (got == 0 || byte == '\n') break;
            if (!line->append(byte)) return Error{Code::key_size, "that line is too long"};
        }
        say("\n");
        return line;
    }

  private:
    QuietTerminal(int fd, const termios& state) : fd_(fd), state_(state) {}

    bool in_foreground() const {
        const pid_t group = ::tcgetpgrp(fd_);
        return group < 0 || group == ::getpgrp();
    }
    // Waits for the foreground first: the terminal of a job in the background is somebody else's.
    Result<> hide(const JobControl& jobs) {
        constexpr int kMaxTries = 3;  // the news that it goes on may be late
        for (int tries = 0; !in_foreground();)
            if (!jobs.stop(SIGTTOU, true) && ++tries == kMaxTries)
                return Error{Code::io, "the terminal belongs to another program"};
        continued = 0;
        termios now{};
        // What shows what is typed is the state that others have left it in since.
        if (::tcgetattr(fd_, &now) == 0 && (now.c_lflag & ECHO) != 0) state_ = now;
        restore_on_signal(fd_, state_);
        termios quiet = state_;
        quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        quiet_ = true;
        if (::tcsetattr(fd_, TCSAFLUSH, &quiet) == 0) return {};  // drops what was typed before
        return Error{Code::io, std::string("the terminal's echo cannot be turned off: ") +
                                   std::strerror(errno)};
    }
    void show() {
        if (!quiet_) return;
        quiet_ = false;
        if (in_foreground()) ::tcsetattr(fd_, TCSAFLUSH, &state_);
        terminal_restored();
    }
    void say(const std::string& text) const { (void)!::write(fd_, text.data(), text.size()); }

    int fd_;
    termios state_;       // to be restored
    bool quiet_ = false;  // its echo is off, by us
};

std::string lower_first(std::string text) {
    if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
        text[0] = static_cast<char>(text[0] | 0x20);
    return text;
}

}  // namespace

Result<Secret> prompt(const std::string& what, bool confirm, const std::string& instead) {
    const JobControl jobs;  // outlives what turns the echo on again
    auto terminal = QuietTerminal::open(lower_first(what), instead);
    if (!terminal) return std::move(terminal).error();
    auto first = terminal->ask(what, jobs);
    if (!first || !confirm) return first;
    auto second = terminal->ask(what + ", once more", jobs);
    if (!second) return second;
    const auto a = first->bytes(), b = second->bytes();
    if (a.size() != b.size() || (!a.empty() && CRYPTO_memcmp(a.data(), b.data(), a.size()) != 0))
        return Error{Code::io, "the two do not match; try again"};
    return first;
}

}  // namespace dael::app
