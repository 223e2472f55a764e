// SPDX-License-Identifier: Apache-2.0
#include "io/output.hpp"

#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "io/text.hpp"
#include "io/warnings.hpp"

namespace dael::app {
namespace {

bool same_file(const struct stat& a, const struct stat& b) {
    return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

thread_local Deferral* deferral = nullptr;

}  // namespace

Error Output::failure(const std::string& doing) const {
    const int error = errno;
    std::string mend;
    if (error == ENOSPC || error == EDQUOT) mend = "; free some space or write elsewhere";
    if (error == EFBIG) mend = "; the file system or a limit (ulimit -f) allows no larger one";
    return {Code::io, "cannot " + doing + " " + name_ + ": " + std::strerror(error) + mend};
}

Result<Output> Output::open(const OutputOptions& options, const Input& input) {
    return open(options, &input);
}

Result<Output> Output::open(const OutputOptions& options) {
    return open(options, nullptr);
}

Result<Output> Output::open(const OutputOptions& options, const Input* input) {
    Output output;
    const bool standard = !options.path || options.path == "-";
    output.name_ = standard ? "standard output" : in_quotes(*options.path);
    DAEL_TRY(standard ? output.open_standard(options, input) : output.open_path(options, input));
    return output;
}

Result<> Output::open_standard(const OutputOptions& options, const Input* input) {
    struct stat status {};
    fd_ = STDOUT_FILENO;
    if (::fstat(fd_, &status) != 0) return failure("write to");
    if (!options.path && !options.for_terminal && ::isatty(fd_))
        return Error{Code::io,
                     std::string(options.secret ? "a secret" : "ciphertext") +
                         " would go to the terminal; give -o FILE, or -o - if you mean it"};
    if (options.secret) warn_if_shared(fd_, name_);
    if (!options.path && ::isatty(fd_)) terminal_ = std::make_unique<TerminalText>();
    if (input && same_file(status, input->status()))
        return Error{Code::overlap, "standard output is the input itself; write to another file"};
    return {};
}

Result<> Output::open_path(const OutputOptions& options, const Input* input) {
    const bool replaces = options.overwrite || options.replaces_input;
    doomed_ = std::make_unique<DoomedFile>();
    DAEL_LET(file, files::NewFile::begin(
                       options.folder, options.name_in_folder.value_or(*options.path),
                       {.existing = replaces ? files::Existing::replaced : files::Existing::refused,
                        .secret = options.secret,
                        .sync = options.sync,
                        .follow = !options.name_in_folder,
                        .streams = true,
                        .input = input ? input->fd() : -1,
                        .only = options.replaces_input && input ? &input->status() : nullptr,
                        .name = name_,
                        .overwriting = replaces ? "nothing was replaced" : "-f overwrites it",
                        .hidden = doomed_.get()}));
    file_.emplace(std::move(file));
    fd_ = file_->fd();
    if (const auto others = file_->others(); others > 0) {
        if (options.replaces_input && !options.overwrite)
            return Error{Code::io,
                         name_ + " has " + std::to_string(others + 1) +
                             " names (hard links), and the others would keep what it holds now; "
                             "remove them, give -o FILE, or -f if they may"};
    }
    waits_ = !file_->streams() && (file_->replaces() || options.secret || options.sync);
    if (!file_->streams()) return {};
    if (options.secret) warn_if_shared(fd_, name_);
    if (!options.for_terminal && ::isatty(fd_))
        return Error{Code::io, name_ + " is a terminal, and this is " +
                                   (options.secret ? "a secret" : "ciphertext") +
                                   "; give -o - if you mean it"};
    if (::isatty(fd_)) terminal_ = std::make_unique<TerminalText>();
    return {};
}

Output::Output(Output&& other) noexcept
    : name_(std::move(other.name_)),
      doomed_(std::move(other.doomed_)),
      file_(std::exchange(other.file_, std::nullopt)),
      fd_(std::exchange(other.fd_, -1)),
      waits_(other.waits_),
      written_(other.written_),
      terminal_(std::move(other.terminal_)) {}

Output::~Output() {
    file_.reset();
}

Result<> Output::reserve(std::uint64_t size) {
    if (!file_ || file_->streams() || size == 0) return {};
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
    if (!terminal_) return put(bytes);
    return terminal_->take(bytes, [this](std::span<const std::uint8_t> text) { return put(text); });
}

Result<> Output::put(std::span<const std::uint8_t> bytes) {
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
    if (terminal_)
        DAEL_TRY(terminal_->end([this](std::span<const std::uint8_t> text) { return put(text); }));
    if (!file_) {
        // What a network file system could not store shows when a descriptor is closed.
        return ::close(std::exchange(fd_, -1)) == 0 || errno == EBADF
                   ? Result<>()
                   : Result<>(failure("write to"));
    }
    if (waits_ && deferral) {
        deferral->put_off.emplace(std::move(*this));
        return {};
    }
    return end(files::Sync::alone);
}

Result<> Output::end(files::Sync sync) {
    fd_ = -1;
    auto done = file_->commit(sync);
    if (!done) return done;
    for (const std::string& warning : file_->warnings()) warn(warning);
    if (file_->others() > 0) warn(name_ + " had other names (hard links), which keep what it held");
    return {};
}

Result<> Output::end_anyhow(files::Sync sync) try {
    return end(sync);
} catch (const std::bad_alloc&) {
    return Error{Code::out_of_memory, ""};
}

Deferral::Deferral() {
    deferral = this;
}
Deferral::~Deferral() {
    deferral = nullptr;
}

std::vector<Result<>> Deferral::commit(std::span<Output* const> outputs) {
    std::vector<Result<>> done;
    done.reserve(outputs.size());
    std::vector<int> files;
    for (const Output* output : outputs) files.push_back(output->fd());
    // One of each file system is kept open: their folders are to be reached once the files are
    // closed.
    std::vector<int> kept;
    std::vector<dev_t> systems;
    kept.reserve(files.size());
    systems.reserve(files.size());
    const auto synced = files::sync_together(files);
    for (const int fd : files) {
        struct stat status {};
        if (!synced || ::fstat(fd, &status) != 0 || std::ranges::count(systems, status.st_dev) != 0)
            continue;
        systems.push_back(status.st_dev);
        if (const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3); copy >= 0) kept.push_back(copy);
    }
    // Where that does not go, each by itself, which then says what is wrong.
    for (Output* output : outputs)
        done.push_back(output->end_anyhow(synced ? files::Sync::together : files::Sync::alone));
    const auto named = files::sync_together(kept);
    for (const int fd : kept) ::close(fd);
    try {
        if (!named)
            warn("the files are in their places, but may not be after a power cut: " +
                 named.error().message);
    } catch (const std::bad_alloc&) {  // a doubt that cannot be told is none of success
        for (Result<>& one : done) one = Error{Code::out_of_memory, ""};
    }
    return done;
}

}  // namespace dael::app
