// SPDX-License-Identifier: Apache-2.0
// The data that comes in: a file, a pipe, a device or standard input.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

namespace dael::app {

// What messages call it: the path in quotes, or standard input for "-".
std::string input_name(const std::string& path);

// What tells a file from every other one.
struct FoundFile {
    dev_t device = 0;
    ino_t number = 0;
};

class Input {
  public:
    // "-" is standard input. Errors (io): no such file, not readable, a directory.
    static Result<Input> open(const std::string& path);
    // What lies in a folder that is held open, by its name there; the path is for messages. It was
    // a regular file when it was found, and must be the same one still: what has come in its place
    // since (a link, a pipe that would keep us waiting) is refused.
    static Result<Input> open_in(int folder, const std::string& name, const std::string& path,
                                 const FoundFile& found);
    // A regular file that is read, changed and replaced: nobody else does so by this call until
    // this goes.
    static Result<Input> open_locked(const std::string& path);
    Input(Input&& other) noexcept;
    Input& operator=(Input&&) = delete;
    ~Input();

    // Fills `buffer` unless the input ends first; returns how much came. Blocks; while it waits for
    // a pipe or terminal, stop() from another thread ends it with 0 bytes. Errors (io): the read
    // fails, or a regular file has become shorter than it was.
    Result<std::size_t> fill(std::span<std::uint8_t> buffer);
    void stop() noexcept;

    // Up to `size` of the bytes that fill() will yield next; valid until it is called.
    Result<std::span<const std::uint8_t>> peek(std::size_t size);
    // A regular file only: bytes that begin `at` bytes after where we began. Errors: io.
    Result<> read_at(std::uint64_t at, std::span<std::uint8_t> buffer) const;
    bool is_file() const noexcept { return S_ISREG(status_.st_mode); }

    std::optional<std::uint64_t> remaining() const;  // bytes still to come, where that can be known
    std::uint64_t taken() const noexcept { return read_ - peeked_.size(); }  // bytes, by fill()
    const std::string& name() const noexcept { return name_; }               // quoted, for messages
    const struct stat& status() const noexcept { return status_; }
    int fd() const noexcept { return fd_; }

  private:
    Input(int fd, int stop_fd, std::string name, const struct stat& status);
    Result<std::size_t> read(std::span<std::uint8_t> buffer);
    Result<bool> ready() const;  // false: stopped
    Result<> check_length() const;
    static Result<Input> of(int fd, std::string name);

    int fd_;
    int stop_fd_;  // an eventfd; -1 for regular files, which never keep a reader waiting
    std::string name_;
    struct stat status_;
    std::uint64_t start_ = 0;  // where in a regular file we began
    std::uint64_t read_ = 0;
    std::vector<std::uint8_t> peeked_;  // read, and not yet asked for by fill()
};

}  // namespace dael::app
