// SPDX-License-Identifier: Apache-2.0
#include "io/output.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "io/attributes.hpp"
#include "io/text.hpp"
#include "io/warnings.hpp"

namespace dael::app {
namespace {

bool same_file(const struct stat& a, const struct stat& b) {
    return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Looked at once: to look is to set it, for all threads, and another one may just create a file.
unsigned current_umask() {
    static const mode_t mask = [] {
        const mode_t found = ::umask(077);
        ::umask(found);
        return found;
    }();
    return mask;
}

std::string random_name() {
    std::random_device random;
    char name[40];
    std::snprintf(name, sizeof name, ".daelstrom-%08x%08x.part", random(), random());
    return name;
}

std::string path_of_fd(int fd) {
    return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

Error Output::failure(const std::string& doing) const {
    const int error = errno;
    std::string mend;
    if (error == ENOSPC || error == EDQUOT) mend = "; free some space or write elsewhere";
    if (error == EFBIG) mend = "; the file system or a limit (ulimit -f) allows no larger one";
    return {Code::io, "cannot " + doing + " " + name_ + ": " + std::strerror(error) + mend};
}

Result<Output> Output::open(const OutputOptions& options, const Input& input) {
    return open(options, input.status());
}

Result<Output> Output::open(const OutputOptions& options) {
    const struct stat none {};
    return open(options, none);
}

Result<Output> Output::open(const OutputOptions& options, const struct stat& input) {
    Output output;
    DAEL_TRY(output.check_target(options, input));
    if (output.fd_ < 0) DAEL_TRY(output.create(*options.path));
    return output;
}

// Everything that can be refused before anything is made. Opens what is no regular file (standard
// output, a pipe, a device): there, nothing can be replaced, and no temporary file can help.
Result<> Output::check_target(const OutputOptions& options, const struct stat& input) {
    const bool standard = !options.path || options.path == "-";
    name_ = standard ? "standard output" : in_quotes(*options.path);
    overwrite_ = options.overwrite || options.replaces_input;
    secret_ = options.secret;
    struct stat status {};
    if (standard) {
        fd_ = STDOUT_FILENO;
        if (::fstat(fd_, &status) != 0) return failure("write to");
        if (!options.path && !options.for_terminal && ::isatty(fd_))
            return Error{Code::io,
                         std::string(options.secret ? "a secret" : "ciphertext") +
                             " would go to the terminal; give -o FILE, or -o - if you mean it"};
        if (options.secret) warn_if_shared(fd_, name_);
        if (same_file(status, input))
            return Error{Code::overlap,
                         "standard output is the input itself; write to another file"};
        return {};
    }
    // A new file is as open as its input, and no more than the umask allows.
    mode_ = (S_ISREG(input.st_mode) ? input.st_mode & 0666u : 0666u) & ~current_umask();
    if (options.secret) mode_ &= 0600;
    replaced_fd_ = ::open(options.path->c_str(), O_PATH | O_CLOEXEC);
    if (replaced_fd_ < 0 || ::fstat(replaced_fd_, &status) != 0) return {};
    if (S_ISDIR(status.st_mode))
        return Error{Code::io, name_ + " is a directory; give a file name"};
    if (same_file(status, input) && !options.replaces_input)
        return Error{Code::overlap, name_ + " is the input itself; write to another file"};
    if (S_ISREG(status.st_mode)) {
        shared_ = status.st_nlink > 1;
        if (shared_ && options.replaces_input && !options.overwrite)
            return Error{Code::io,
                         name_ + " has " + std::to_string(status.st_nlink) +
                             " names (hard links), and the others would keep what it holds now; "
                             "remove them, give -o FILE, or -f if they may"};
        return {};
    }
    fd_ = ::open(options.path->c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd_ < 0) return failure("open");
    if (!options.for_terminal && ::isatty(fd_))
        return Error{Code::io, name_ + " is a terminal, and this is " +
                                   (options.secret ? "a secret" : "ciphertext") +
                                   "; give -o - if you mean it"};
    return {};
}

Result<> Output::create(std::string path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) {
        if (!overwrite_) return Error{Code::io, name_ + " exists; -f overwrites it"};
        // Behind a symbolic link, the file that it leads to is replaced, not the link.
        if (char* real = ::realpath(path.c_str(), nullptr)) {
            path = real;
            std::free(real);
        }
    }
    const auto slash = path.rfind('/');
    const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
    target_ = slash == path.npos ? path : path.substr(slash + 1);
    if (target_.empty()) return Error{Code::io, name_ + " names no file; give a file name"};
    directory_fd_ = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd_ < 0) return failure("create");

    return create_unnamed() ? Result<>() : create_named();
}

// A file without a name disappears with the process, even with SIGKILL. Not every file system has
// them, and naming one takes /proc.
bool Output::create_unnamed() {
    fd_ = ::openat(directory_fd_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd_ >= 0 && ::access(path_of_fd(fd_).c_str(), F_OK) != 0) ::close(std::exchange(fd_, -1));
    return fd_ >= 0;
}

Result<> Output::create_named() {
    temporary_ = random_name();
    fd_ = doomed_.create(directory_fd_, temporary_, [this] {
        return ::openat(directory_fd_, temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC,
                        0600);
    });
    if (fd_ >= 0) return {};
    auto error = failure("create");
    doomed_.keep();
    temporary_.clear();
    return error;
}

Output::Output(Output&& other) noexcept
    : name_(std::move(other.name_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      doomed_(std::move(other.doomed_)),
      fd_(std::exchange(other.fd_, -1)),
      directory_fd_(std::exchange(other.directory_fd_, -1)),
      mode_(other.mode_),
      overwrite_(other.overwrite_),
      secret_(other.secret_),
      replaced_fd_(std::exchange(other.replaced_fd_, -1)),
      shared_(other.shared_),
      written_(other.written_) {}

Output::~Output() {
    if (!temporary_.empty()) ::unlinkat(directory_fd_, temporary_.c_str(), 0);
    doomed_.keep();  // before the directory's descriptor goes
    if (fd_ > STDOUT_FILENO) ::close(fd_);
    if (directory_fd_ >= 0) ::close(directory_fd_);
    if (replaced_fd_ >= 0) ::close(replaced_fd_);
}

Result<> Output::reserve(std::uint64_t size) {
    if (target_.empty() || size == 0) return {};
    // A tmpfs fills what it sets aside with zeros, page by page, which takes as long as to write
    // it: there, to look whether the room is there does.
    struct statfs room {};
    if (::fstatfs(fd_, &room) == 0 && room.f_type == TMPFS_MAGIC) {
        const bool enough = room.f_blocks == 0 ||  // without a limit
                            room.f_bavail >= size / static_cast<std::uint64_t>(room.f_bsize);
        errno = ENOSPC;
        return enough ? Result<>() : Result<>(failure("write to"));
    }
    if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)) == 0) return {};
    return errno == ENOSPC || errno == EDQUOT ? Result<>(failure("write to")) : Result<>();
}

Result<> Output::write(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
        if (put < 0 && errno == EAGAIN) {  // a pipe that somebody made non-blocking, and full
            pollfd room{fd_, POLLOUT, 0};
            (void)::poll(&room, 1, -1);  // whatever it says, the next write tells
            continue;
        }
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return failure("write to");
        bytes = bytes.subspan(static_cast<std::size_t>(put));
        written_ += static_cast<std::uint64_t>(put);
    }
    return {};
}

Result<> Output::commit() {
    if (target_.empty()) {
        // What a network file system could not store shows when a descriptor is closed.
        return ::close(std::exchange(fd_, -1)) == 0 || errno == EBADF
                   ? Result<>()
                   : Result<>(failure("write to"));
    }
    const bool replaces = replaced_fd_ >= 0;
    if (replaces && !secret_)
        DAEL_TRY(inherit_attributes(fd_, replaced_fd_, name_));
    else if (::fchmod(fd_, mode_) != 0)
        return failure("set the permissions of");
    // A new name that reaches the disk before the content does would leave neither file after a
    // power cut.
    if (replaces && ::fsync(fd_) != 0) return failure("write to");
    const int copy = ::dup(fd_);
    if (copy >= 0 && ::close(copy) != 0) return failure("write to");
    DAEL_TRY(publish());
    if (replaces) keep_in_folder();
    if (shared_) warn(name_ + " had other names (hard links), which keep what it held");
    return {};
}

// Brings the new name to the disk. A folder that may be written may still not be one to open.
void Output::keep_in_folder() const {
    const int folder = ::openat(directory_fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    if (::fsync(folder) != 0 && errno != EINVAL)
        warn(name_ + " is in its place, but may not be after a power cut: " + std::strerror(errno));
    ::close(folder);
}

Result<> Output::publish() {
    if (temporary_.empty()) {
        if (!overwrite_) return link_to(target_);
        temporary_ = random_name();  // a link cannot replace a file, a rename can
        DAEL_TRY(doomed_.create(directory_fd_, temporary_, [this] { return link_to(temporary_); }));
    }
    const unsigned flags = overwrite_ ? 0 : RENAME_NOREPLACE;
    const char* from = temporary_.c_str();
    const char* to = target_.c_str();
    int done = ::renameat2(directory_fd_, from, directory_fd_, to, flags);
    if (done != 0 &&
        errno == EINVAL) {  // a file system without RENAME_NOREPLACE; a link never replaces
        done = ::linkat(directory_fd_, from, directory_fd_, to, 0);
        if (done == 0) return {};  // the destructor removes the temporary name
    }
    if (done != 0) {
        if (errno == EEXIST) return Error{Code::io, name_ + " exists by now; -f overwrites it"};
        return failure("rename the temporary file to");
    }
    temporary_.clear();
    doomed_.keep();
    return {};
}

Result<> Output::link_to(const std::string& name) {
    if (::linkat(AT_FDCWD, path_of_fd(fd_).c_str(), directory_fd_, name.c_str(),
                 AT_SYMLINK_FOLLOW) == 0)
        return {};
    if (errno == EEXIST) return Error{Code::io, name_ + " exists by now; -f overwrites it"};
    return failure("name");
}

}  // namespace dael::app
