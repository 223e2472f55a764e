// SPDX-License-Identifier: Apache-2.0
#include "io/prompt.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/signals.hpp"

namespace dael::app {
namespace {

// The terminal with its echo off for as long as this lives.
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
    QuietTerminal(QuietTerminal&& other) noexcept : fd_(other.fd_), state_(other.state_) {
        other.fd_ = -1;
    }
    ~QuietTerminal() {
        if (fd_ < 0) return;
        ::tcsetattr(fd_, TCSAFLUSH, &state_);
        terminal_restored();
        ::close(fd_);
    }

    Result<Secret> ask(const std::string& question) {
        say(question + ": ");
        auto line = Secret::create();
        if (!line) return line;
        for (;;) {
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
    QuietTerminal(int fd, const termios& state) : fd_(fd), state_(state) {
        restore_on_signal(fd_, state_);
        termios quiet = state_;
        quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        ::tcsetattr(fd_, TCSAFLUSH, &quiet);  // drops what was typed before the question
    }
    void say(const std::string& text) const { (void)!::write(fd_, text.data(), text.size()); }

    int fd_;
    termios state_;
};

std::string lower_first(std::string text) {
    if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
        text[0] = static_cast<char>(text[0] | 0x20);
    return text;
}

}  // namespace

Result<Secret> prompt(const std::string& what, bool confirm, const std::string& instead) {
    auto terminal = QuietTerminal::open(lower_first(what), instead);
    if (!terminal) return std::move(terminal).error();
    auto first = terminal->ask(what);
    if (!first || !confirm) return first;
    auto second = terminal->ask(what + ", once more");
    if (!second) return second;
    const auto a = first->bytes(), b = second->bytes();
    if (a.size() != b.size() || (!a.empty() && CRYPTO_memcmp(a.data(), b.data(), a.size()) != 0))
        return Error{Code::io, "the two do not match; try again"};
    return first;
}

}  // namespace dael::app
