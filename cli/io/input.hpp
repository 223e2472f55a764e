// SPDX-License-Identifier: Apache-2.0
// The data that comes in: a file, a pipe, a device or standard input.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <daelstrom/error.hpp>

namespace dael::cli {

class Input {
  public:
    // "-" is standard input. Errors (io): no such file, not readable, a directory.
    static Result<Input> open(const std::string& path);
    Input(Input&& other) noexcept;
    Input& operator=(Input&&) = delete;
    ~Input();

    // Fills `buffer` unless the input ends first; returns how much came. Blocks; while it waits for
    // a pipe or terminal, stop() from another thread ends it with 0 bytes. Errors (io): the read
    // fails, or a regular file has become shorter than it was.
    Result<std::size_t> fill(std::span<std::uint8_t> buffer);
    void stop() noexcept;

    std::optional<std::uint64_t> remaining() const;  // bytes still to come, where that can be known
    const std::string& name() const noexcept { return name_; }  // quoted, for messages
    const struct stat& status() const noexcept { return status_; }

  private:
    Input(int fd, int stop_fd, std::string name, const struct stat& status);
    Result<bool> ready() const;  // false: stopped
    Result<> check_length() const;

    int fd_;
    int stop_fd_;  // an eventfd; -1 for regular files, which never keep a reader waiting
    std::string name_;
    struct stat status_;
    std::uint64_t start_ = 0;  // where in a regular file we began
    std::uint64_t read_ = 0;
};

}  // namespace dael::cli
