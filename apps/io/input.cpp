// SPDX-License-Identifier: Apache-2.0
#include "io/input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <daelstrom/files.hpp>

#include "io/text.hpp"

namespace dael::app {
namespace {

constexpr int kPipeSize = 1 << 20;  // what an unprivileged process may ask for

Error failure(const std::string& doing, const std::string& name) {
    return {Code::io, "cannot " + doing + " " + name + ": " + std::strerror(errno)};
}

}  // namespace

Result<Input> Input::open(const std::string& path) {
    const std::string name = input_name(path);
    if (path == "-") return of(STDIN_FILENO, name);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return failure("open", name);
    return of(fd, name);
}

Result<Input> Input::open_in(int folder, const std::string& name, const std::string& path,
                             const FoundFile& found) {
    const int fd =
        ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return failure("open", input_name(path));
    auto input = of(fd, input_name(path));
    if (!input) return input;
    const struct stat& status = input->status_;
    if (S_ISREG(status.st_mode) && status.st_dev == found.device && status.st_ino == found.number)
        return input;
    return Error{Code::io,
                 input->name_ + " is not the file that was found there; try again when it rests"};
}

Result<Input> Input::open_locked(const std::string& path) {
    DAEL_LET(fd, files::open_locked(AT_FDCWD, path));
    return of(fd, input_name(path));
}

std::string input_name(const std::string& path) {
    return path == "-" ? "standard input" : in_quotes(path);
}

Result<Input> Input::of(int fd, std::string name) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) {
        auto error = failure("read", name);
        if (fd != STDIN_FILENO) ::close(fd);
        return error;
    }
    int stop_fd = -1;
    if (S_ISREG(status.st_mode)) {
        ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    } else {
        if (S_ISFIFO(status.st_mode)) (void)::fcntl(fd, F_SETPIPE_SZ, kPipeSize);
        stop_fd = ::eventfd(0, EFD_CLOEXEC);
    }
    Input input(fd, stop_fd, name, status);
    if (S_ISDIR(status.st_mode))
        return Error{Code::io, name + " is a directory; give a file (tar can make one of it)"};
    return input;
}

Input::Input(int fd, int stop_fd, std::string name, const struct stat& status)
    : fd_(fd), stop_fd_(stop_fd), name_(std::move(name)), status_(status) {
    if (!S_ISREG(status_.st_mode)) return;
    const off_t at = ::lseek(fd_, 0, SEEK_CUR);  // a shell may hand over a file that is half read
    start_ = at > 0 ? static_cast<std::uint64_t>(at) : 0;
}

Input::Input(Input&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      stop_fd_(std::exchange(other.stop_fd_, -1)),
      name_(std::move(other.name_)),
      status_(other.status_),
      start_(other.start_),
      read_(other.read_),
      peeked_(std::move(other.peeked_)) {}

Input::~Input() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
    if (stop_fd_ >= 0) ::close(stop_fd_);
}

void Input::stop() noexcept {
    if (stop_fd_ >= 0) ::eventfd_write(stop_fd_, 1);
}

Result<bool> Input::ready() const {
    if (stop_fd_ < 0) return true;
    std::array<pollfd, 2> waits{{{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    while (::poll(waits.data(), waits.size(), -1) < 0)
        if (errno != EINTR) return failure("wait for", name_);
    return waits[1].revents == 0;
}

Result<std::size_t> Input::fill(std::span<std::uint8_t> buffer) {
    const std::size_t first = std::min(buffer.size(), peeked_.size());
    std::copy_n(peeked_.begin(), first, buffer.begin());
    peeked_.erase(peeked_.begin(), peeked_.begin() + static_cast<std::ptrdiff_t>(first));
    if (first == buffer.size()) return first;
    auto got = read(buffer.subspan(first));
    if (got) *got += first;
    return got;
}

Result<std::span<const std::uint8_t>> Input::peek(std::size_t size) {
    // No more room than a short file needs, and a byte in which it may have grown.
    if (const auto left = remaining(); left && *left < size)
        size = static_cast<std::size_t>(*left) + 1;
    if (const std::size_t had = peeked_.size(); had < size) {
        peeked_.resize(size);
        auto got = read(std::span(peeked_).subspan(had));
        peeked_.resize(had + (got ? *got : 0));
        if (!got) return std::move(got).error();
    }
    return std::span<const std::uint8_t>(peeked_).first(std::min(size, peeked_.size()));
}

Result<> Input::read_at(std::uint64_t at, std::span<std::uint8_t> buffer) const {
    while (!buffer.empty()) {
        const ssize_t got =
            ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(start_ + at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failure("read", name_);
        if (got == 0)
            return Error{Code::io, name_ +
                                       " became shorter while it was read; try again when it "
                                       "rests"};
        buffer = buffer.subspan(static_cast<std::size_t>(got));
        at += static_cast<std::uint64_t>(got);
    }
    return {};
}

Result<std::size_t> Input::read(std::span<std::uint8_t> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
        const auto more = ready();
        if (!more) return more.error();
        if (!*more) return std::size_t{0};
        const ssize_t got = ::read(fd_, buffer.data() + filled, buffer.size() - filled);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) return failure("read", name_);
        if (got == 0) {
            DAEL_TRY(check_length());
            break;
        }
        filled += static_cast<std::size_t>(got);
        read_ += static_cast<std::uint64_t>(got);
    }
    return filled;
}

// The end came: was it where it should be? The kernel's own files (/sys) state a size that they
// never have; what tells a file that was cut while we read it is that its size is another one now.
Result<> Input::check_length() const {
    struct stat now {};
    if (!S_ISREG(status_.st_mode) || ::fstat(fd_, &now) != 0 || now.st_size >= status_.st_size)
        return {};
    return Error{Code::io, name_ + " was cut from " + std::to_string(status_.st_size) + " to " +
                               std::to_string(now.st_size) +
                               " bytes while it was read; try again when it rests"};
}

std::optional<std::uint64_t> Input::remaining() const {
    if (!S_ISREG(status_.st_mode) || status_.st_size == 0) return std::nullopt;
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    return size - std::min(size, start_ + read_) + peeked_.size();
}

}  // namespace dael::app
