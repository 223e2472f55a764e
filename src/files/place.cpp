// SPDX-License-Identifier: Apache-2.0
#include "files/place.hpp"

#include <fcntl.h>
#include <stdio.h>

#include <array>

#include "core/random.hpp"
#include "core/wipe_at_end.hpp"

namespace dael::files {
namespace {

constexpr const char* kAnother = " is another file by now: nothing was replaced; try again";

// While this lives, no handler of signals ends the process.
class Undisturbed {
  public:
    explicit Undisturbed(HiddenNames* watch) noexcept : watch_(watch) {
        if (watch_) watch_->enter();
    }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;
    ~Undisturbed() {
        const int error = errno;
        if (watch_) watch_->leave();
        errno = error;
    }

  private:
    HiddenNames* watch_;
};

// Short whatever the file's own name is, which may have all the bytes that a name can have.
Result<std::string> hidden_name() {
    std::array<std::uint8_t, 8> random;
    DAEL_TRY(core::fill_random(random));
    std::string name = ".daelstrom-";
    for (const unsigned byte : random) {
        constexpr char kDigits[] = "0123456789abcdef";
        name += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return name + ".part";
}

std::string path_of(int fd) {
    return "/proc/self/fd/" + std::to_string(fd);
}

// What a call answers where the file system, a sandbox or the kernel lacks it.
bool is_lacking(int error) {
    return error == EINVAL || error == ENOSYS || error == ENOTSUP || error == EPERM ||
           error == EACCES || error == EMLINK || error == EXDEV;
}

int rename_with(int folder, const std::string& from, const std::string& to, unsigned flags) {
    return ::renameat2(folder, from.c_str(), folder, to.c_str(), flags);
}

}  // namespace

Result<> sync_file(int fd, const Faults& faults) {
    // Some have nothing to sync to, and say so.
    if (::fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return {};
    return faults.failed("write to");
}

Error Place::exists(const Faults& faults, bool by_now) const {
    return faults.about(EEXIST, std::string(by_now ? " exists by now" : " exists") +
                                    (overwriting_.empty() ? "" : "; " + overwriting_));
}

bool Place::is_named(int fd) const {
    struct stat held {
    }, now{};
    return ::fstat(fd, &held) == 0 &&
           ::fstatat(folder(), name_.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           same_file(now, held);
}

// The two are compared as they are now: layered file systems give a file another number when it is
// written to for the first time.
bool Place::still(const Old& old) const {
    struct stat now {};
    return is_named(old.fd) &&
           (!old.content || (::fstat(old.fd, &now) == 0 && same_written(now, old.status) &&
                             same_time(now.st_ctim, old.status.st_ctim)));
}

void Place::forget() noexcept {
    if (hidden_.empty()) return;
    hidden_.clear();
    if (watch_) watch_->gone();
}

void Place::discard() noexcept {
    if (hidden_.empty()) return;
    const Undisturbed whole(watch_);
    (void)::unlinkat(folder(), hidden_.c_str(), 0);
    forget();
}

Result<Descriptor> Place::create(const Faults& faults) {
    // To be read as well: where it cannot be linked after all, it is copied.
    Descriptor unnamed(::openat(folder(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (unnamed && ::access(path_of(unnamed.get()).c_str(), F_OK) == 0) return unnamed;
    return create_hidden(faults);
}

Result<Descriptor> Place::create_hidden(const Faults& faults) {
    DAEL_LET(name, hidden_name());
    const Undisturbed whole(watch_);
    if (watch_) watch_->there(folder(), name.c_str());
    Descriptor file(
        ::openat(folder(), name.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600));
    if (file) {
        hidden_ = std::move(name);
        return file;
    }
    auto error = faults.failed("create");
    if (watch_) watch_->gone();
    return error;
}

// 0, or the error.
int Place::link_to(int fd, const char* name) const {
    if (::linkat(AT_FDCWD, path_of(fd).c_str(), folder(), name, AT_SYMLINK_FOLLOW) == 0) return 0;
    const int error = errno;
    if (error == EEXIST) return error;
    // Without /proc, where the kernel lets us (from 6.10 on, or CAP_DAC_READ_SEARCH).
    if (::linkat(fd, "", folder(), name, AT_EMPTY_PATH) == 0) return 0;
    return errno == EEXIST ? EEXIST : error;
}

// A name for what has none. There is no other way to replace a file by it.
Result<> Place::hide(Descriptor& fd, const How& how, const Faults& faults) {
    if (!hidden_.empty()) return {};
    DAEL_LET(name, hidden_name());
    {
        const Undisturbed whole(watch_);
        if (watch_) watch_->there(folder(), name.c_str());
        const int error = link_to(fd.get(), name.c_str());
        if (error == 0) {
            hidden_ = std::move(name);
            return {};
        }
        if (watch_) watch_->gone();
        errno = error;
    }
    return copy_hidden(fd, how, faults);
}

// Links are not to be had here (file systems without them, sandboxes): the content goes over into a
// file that has a name from the beginning.
Result<> Place::copy_hidden(Descriptor& fd, const How& how, const Faults& faults) {
    DAEL_LET(copy, create_hidden(faults));
    std::array<std::uint8_t, 64 << 10> part;
    const core::WipeAtEnd wipe{part.data(), part.size()};
    for (off_t at = 0;;) {
        const ssize_t got = ::pread(fd.get(), part.data(), part.size(), at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return faults.failed("write to");
        if (got == 0) break;
        for (ssize_t done = 0; done < got;) {
            const auto left = static_cast<std::size_t>(got - done);
            const ssize_t put = ::write(copy.get(), part.data() + done, left);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) return faults.failed("write to");
            done += put;
        }
        at += got;
    }
    DAEL_TRY(how.rights(copy.get()));
    fd = std::move(copy);
    return {};
}

// RENAME_NOREPLACE and what stands for it: a link, which never replaces; a name taken by an empty
// file, and then renamed over. 0, or -1 and errno.
int Place::rename_new() {
    if (rename_with(folder(), hidden_, name_, RENAME_NOREPLACE) == 0) {
        forget();
        return 0;
    }
    if (!is_lacking(errno)) return -1;
    if (::linkat(folder(), hidden_.c_str(), folder(), name_.c_str(), 0) == 0) {
        (void)::unlinkat(folder(), hidden_.c_str(), 0);
        forget();
        return 0;
    }
    if (!is_lacking(errno)) return -1;
    Descriptor taken(::openat(folder(), name_.c_str(),
                              O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600));
    if (!taken) return -1;
    if (is_named(taken.get()) && rename_with(folder(), hidden_, name_, 0) == 0) {
        forget();
        return 0;
    }
    const int error = errno;
    if (is_named(taken.get())) (void)::unlinkat(folder(), name_.c_str(), 0);
    errno = error;
    return -1;
}

Result<> Place::put_new(Descriptor& fd, const How& how, const Faults& faults) {
    if (how.durable) DAEL_TRY(sync_file(fd.get(), faults));
    if (hidden_.empty()) {
        const int error = link_to(fd.get(), name_.c_str());
        if (error == EEXIST) return exists(faults, true);
        if (error == 0) {
            // btrfs before Linux 6.16 brings a file without a name to the disk by halves. So once
            // more; and what may not be on the disk is not there at all.
            if (!how.durable) return {};
            auto synced = sync_file(fd.get(), faults);
            if (!synced && is_named(fd.get())) (void)::unlinkat(folder(), name_.c_str(), 0);
            return synced;
        }
        DAEL_TRY(copy_hidden(fd, how, faults));
        if (how.durable) DAEL_TRY(sync_file(fd.get(), faults));
    }
    const Undisturbed whole(watch_);
    if (rename_new() == 0) return {};
    if (errno == EEXIST) return exists(faults, true);
    return faults.failed("rename the temporary file to");
}

Result<> Place::put_over(Descriptor& fd, const How& how, const Faults& faults) {
    // Most of the way to the disk without a name, so that this has a hidden one only for a moment.
    if (how.durable) (void)::sync_file_range(fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE_AND_WAIT);
    DAEL_TRY(hide(fd, how, faults));
    if (how.durable) DAEL_TRY(sync_file(fd.get(), faults));
    const Undisturbed whole(watch_);
    if (rename_with(folder(), hidden_, name_, 0) != 0)
        return faults.failed("rename the temporary file to");
    forget();
    return {};
}

Result<> Place::put_over(Descriptor& fd, const Old& old, const How& how, const Faults& faults) {
    if (how.durable) (void)::sync_file_range(fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE_AND_WAIT);
    DAEL_TRY(hide(fd, how, faults));
    if (how.durable) DAEL_TRY(sync_file(fd.get(), faults));
    const Undisturbed whole(watch_);
    if (still(old)) {
        // The two change places, so that what was there can be looked at and, if it is another file
        // by then, be put back. Until that is done nobody may remove what is hidden.
        if (watch_) watch_->gone();
        if (rename_with(folder(), hidden_, name_, RENAME_EXCHANGE) == 0)
            return exchanged(fd.get(), old, faults);
        const int error = errno;
        if (watch_) watch_->there(folder(), hidden_.c_str());
        errno = error;
        if (error != ENOENT && !is_lacking(error))
            return faults.failed("rename the temporary file to");
    }
    struct stat now {};
    const bool there = ::fstatat(folder(), name_.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno == ENOENT &&
        !old.content) {  // removed by somebody: there is nothing to lose
        if (rename_new() == 0) return {};
        if (errno == EEXIST) return exists(faults, true);
        return faults.failed("rename the temporary file to");
    }
    if (!still(old)) return faults.about(ESTALE, kAnother);
    if (rename_with(folder(), hidden_, name_, 0) != 0)
        return faults.failed("rename the temporary file to");
    forget();
    return {};
}

// They have changed places: what was there is hidden now, and whatever happens not to be removed
// unless it is what was to be replaced.
Result<> Place::exchanged(int fd, const Old& old, const Faults& faults) {
    struct stat out {
    }, ours{}, held{};
    if (::fstat(fd, &ours) != 0 || ::fstat(old.fd, &held) != 0 ||
        ::fstatat(folder(), hidden_.c_str(), &out, AT_SYMLINK_NOFOLLOW) != 0)
        return lost_sight(faults);
    // Its time of change is that of the exchange by now.
    if (same_file(out, held) && (!old.content || same_written(out, old.status))) {
        (void)::unlinkat(folder(), hidden_.c_str(), 0);
        hidden_.clear();
        return {};
    }
    DAEL_TRY(put_back(ours, faults));
    return faults.about(ESTALE, kAnother);
}

// Somebody put a file there in the moment between our look and the exchange, and it is the hidden
// one now. It gets its name back; if yet another one has that by then, that is the newer one, which
// would have replaced the first.
Result<> Place::put_back(struct stat last, const Faults& faults) {
    struct stat hidden {
    }, out{};
    for (int turn = 0; turn < 100; ++turn) {
        if (::fstatat(folder(), hidden_.c_str(), &hidden, AT_SYMLINK_NOFOLLOW) != 0) break;
        if (rename_with(folder(), hidden_, name_, RENAME_EXCHANGE) != 0) {
            if (errno != ENOENT || rename_with(folder(), hidden_, name_, RENAME_NOREPLACE) != 0)
                continue;
            hidden_.clear();
            return {};
        }
        if (::fstatat(folder(), hidden_.c_str(), &out, AT_SYMLINK_NOFOLLOW) != 0) break;
        if (same_file(out, last)) {
            (void)::unlinkat(folder(), hidden_.c_str(), 0);
            hidden_.clear();
            return {};
        }
        last = hidden;
    }
    return lost_sight(faults);
}

Error Place::lost_sight(const Faults& faults) {
    return faults.about(ESTALE,
                        " changes all the time; a version of it that somebody else wrote is " +
                            std::exchange(hidden_, {}) + " in its folder");
}

void Place::keep(const Faults& faults, std::vector<std::string>& warnings) const {
    // A folder that may be written may still not be one to open.
    const Descriptor opened(::openat(folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened || ::fsync(opened.get()) == 0 || errno == EINVAL || errno == ENOSYS ||
        errno == ENOTSUP)
        return;
    warnings.push_back(faults.name() + " is in its place, but may not be after a power cut: " +
                       std::strerror(errno));
}

}  // namespace dael::files
