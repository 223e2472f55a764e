// SPDX-License-Identifier: Apache-2.0
// Folders below a folder, locks, and the way of many files to the disk.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include <daelstrom/files.hpp>

#include "core/guard.hpp"
#include "core/quoted.hpp"
#include "files/descriptor.hpp"

namespace dael::files {
namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

int open_by_openat2(int folder, const std::string& path) {
    open_how how{};
    how.flags = kFolder;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    // The kernel asks for another try where somebody renamed above.
    for (int turn = 0; turn < 1000; ++turn) {
        const long got = ::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how);
        if (got >= 0 || (errno != EAGAIN && errno != EINTR)) return static_cast<int>(got);
    }
    return -1;
}

// One after another, for kernels and sandboxes without openat2(). O_PATH with O_NOFOLLOW opens a
// link itself, and O_DIRECTORY refuses that.
int open_by_steps(int folder, const std::string& path) {
    Descriptor at(::openat(folder, ".", kFolder));
    for (std::size_t begin = 0; at && begin < path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string name = path.substr(begin, end - begin);
        begin = end + 1;
        if (name.empty() || name == ".") continue;
        if (name == "..") {
            errno = EXDEV;
            return -1;
        }
        at = Descriptor(::openat(at.get(), name.c_str(), kFolder | O_NOFOLLOW));
    }
    return at.release();
}

}  // namespace

Result<int> open_below(int folder, const std::string& path, int* system) {
    return core::guarded([&]() -> Result<int> {
        const Faults faults(core::quoted(path), system);
        if (path.starts_with('/') || path.find('\0') != path.npos)
            return faults.about(EXDEV, " is no path below a folder", Code::invalid_argument);
        const std::string below = path.empty() ? "." : path;
        int got = open_by_openat2(folder, below);
        if (got < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == E2BIG ||
                        errno == EAGAIN))
            got = open_by_steps(folder, below);
        if (got >= 0) return got;
        if (errno == ELOOP || errno == EXDEV || errno == ENOTDIR)
            return faults.about(errno, " leads through a link, or is no folder");
        return faults.failed("open the folder");
    });
}

Result<int> open_locked(int folder, const std::string& path, int* system) {
    return core::guarded([&]() -> Result<int> {
        const Faults faults(core::quoted(path), system);
        constexpr int kFlags = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
        for (;;) {
            // Locks over the network want a file that is open for writing.
            Descriptor file(::openat(folder, path.c_str(), O_RDWR | kFlags));
            if (!file) file = Descriptor(::openat(folder, path.c_str(), O_RDONLY | kFlags));
            struct stat opened {
            }, now{};
            if (!file || ::fstat(file.get(), &opened) != 0) return faults.failed("open");
            if (!S_ISREG(opened.st_mode))
                return faults.about(EXDEV, " is no file that can be changed in place");
            int locked = -1;
            while ((locked = ::flock(file.get(), LOCK_EX)) != 0 && errno == EINTR) {
            }
            if (locked != 0 && errno != ENOLCK && errno != ENOSYS && errno != ENOTSUP &&
                errno != EINVAL && errno != EBADF && errno != EPERM)
                return faults.failed("lock");
            // Who had the lock before us may have put another file in its place.
            if (::fstatat(folder, path.c_str(), &now, 0) != 0) return faults.failed("open");
            if (same_file(opened, now)) return file.release();
        }
    });
}

Result<> sync_together(std::span<const int> descriptors) {
    return core::guarded([&]() -> Result<> {
        std::vector<dev_t> synced;
        for (const int fd : descriptors) {
            struct stat status {};
            if (::fstat(fd, &status) != 0 || std::ranges::count(synced, status.st_dev) != 0)
                continue;
            if (::syncfs(fd) != 0)
                return Error{Code::io, std::string("cannot bring the files to the disk: ") +
                                           std::strerror(errno)};
            synced.push_back(status.st_dev);
        }
        return {};
    });
}

}  // namespace dael::files
