// SPDX-License-Identifier: Apache-2.0
// What the files of this room share: descriptors that close themselves, what makes a file the same
// one, and errors with the system's number.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <daelstrom/error.hpp>

namespace dael::files {

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) {
            reset();
            number_ = other.release();
        }
        return *this;
    }
    ~Descriptor() { reset(); }

    int get() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }
    int release() noexcept { return std::exchange(number_, -1); }
    bool reset() noexcept {  // whether closing it went well, which network file systems tell then
        const int error = errno;
        const int number = release();
        if (number >= 0 && ::close(number) != 0) return false;
        errno = error;
        return true;
    }

  private:
    int number_ = -1;
};

inline bool same_file(const struct stat& a, const struct stat& b) noexcept {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
           (a.st_mode & S_IFMT) == (b.st_mode & S_IFMT);
}
inline bool same_time(const timespec& a, const timespec& b) noexcept {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}
inline bool same_written(const struct stat& a, const struct stat& b) noexcept {
    return a.st_size == b.st_size && same_time(a.st_mtim, b.st_mtim);
}

// Errors about one file, each with the system's number for whoever asked for it.
class Faults {
  public:
    Faults(std::string name, int* system) : name_(std::move(name)), system_(system) {
        if (system_) *system_ = 0;
    }

    const std::string& name() const noexcept { return name_; }
    void report_to(int* system) noexcept {
        system_ = system;
        if (system_) *system_ = 0;
    }

    // "NAME SAYING"
    Error about(int error, const std::string& saying, Code code = Code::io) const {
        if (system_) *system_ = error;
        return {code, name_ + saying};
    }
    // "cannot DOING NAME: why", by errno.
    Error failed(const char* doing) const {
        const int error = errno;
        if (system_) *system_ = error;
        std::string mend;
        if (error == ENOSPC || error == EDQUOT) mend = "; free some space or write elsewhere";
        if (error == EFBIG) mend = "; the file system or a limit (ulimit -f) allows no larger one";
        return {Code::io,
                std::string("cannot ") + doing + " " + name_ + ": " + std::strerror(error) + mend};
    }

  private:
    std::string name_;
    int* system_;
};

}  // namespace dael::files
