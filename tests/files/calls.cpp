// SPDX-License-Identifier: Apache-2.0
#include "files/calls.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <utility>

namespace dael::test {
namespace {

struct Watch {
    Watched::Before before;
    Lacks lacks;
    int number = 0;
    bool inside = false;  // what the watcher itself calls is not watched
};
thread_local Watch* watch = nullptr;

// The error that the call is to have, or 0.
int about_to(const char* call) {
    if (!watch || watch->inside) return 0;
    watch->inside = true;
    const int error = watch->before ? watch->before(call, watch->number++) : 0;
    watch->inside = false;
    return error;
}
bool lacking(bool Lacks::*what) {
    return watch && !watch->inside && watch->lacks.*what;
}
long fail(int error) {
    errno = error;
    return -1;
}

}  // namespace

Watched::Watched(Before before, const Lacks& lacks) {
    watch = new Watch{std::move(before), lacks};
}
Watched::~Watched() {
    delete std::exchange(watch, nullptr);
}

}  // namespace dael::test

using dael::test::about_to;
using dael::test::fail;
using dael::test::lacking;
using dael::test::Lacks;

extern "C" {

int openat(int folder, const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    if (const int error = about_to("openat")) return static_cast<int>(fail(error));
    if ((flags & O_TMPFILE) == O_TMPFILE && lacking(&Lacks::unnamed))
        return static_cast<int>(fail(EOPNOTSUPP));
    return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}
int access(const char* path, int mode) noexcept {
    if (lacking(&Lacks::proc) && std::strncmp(path, "/proc/", 6) == 0)
        return static_cast<int>(fail(ENOENT));
    return static_cast<int>(::syscall(SYS_faccessat, AT_FDCWD, path, mode));
}
int linkat(int from, const char* old, int to, const char* name, int flags) noexcept {
    if (const int error = about_to("linkat")) return static_cast<int>(fail(error));
    if (lacking(&Lacks::links)) return static_cast<int>(fail(EPERM));
    if (lacking(&Lacks::proc) && std::strncmp(old, "/proc/", 6) == 0)
        return static_cast<int>(fail(ENOENT));
    return static_cast<int>(::syscall(SYS_linkat, from, old, to, name, flags));
}
int renameat2(int from, const char* old, int to, const char* name, unsigned flags) noexcept {
    if (const int error = about_to("renameat2")) return static_cast<int>(fail(error));
    if (flags != 0 && lacking(&Lacks::flags)) return static_cast<int>(fail(EINVAL));
    return static_cast<int>(::syscall(SYS_renameat2, from, old, to, name, flags));
}
int unlinkat(int folder, const char* name, int flags) noexcept {
    if (const int error = about_to("unlinkat")) return static_cast<int>(fail(error));
    return static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
}
int fsync(int) {
    if (const int error = about_to("fsync")) return static_cast<int>(fail(error));
    return 0;  // the disk itself is not what is tested, and slow
}
int fchmod(int fd, mode_t mode) noexcept {
    if (const int error = about_to("fchmod")) return static_cast<int>(fail(error));
    if (lacking(&Lacks::rights)) return static_cast<int>(fail(EPERM));
    return static_cast<int>(::syscall(SYS_fchmod, fd, mode));
}
int fchown(int fd, uid_t owner, gid_t group) noexcept {
    if (const int error = about_to("fchown")) return static_cast<int>(fail(error));
    if (lacking(&Lacks::owners)) return static_cast<int>(fail(EPERM));
    return static_cast<int>(::syscall(SYS_fchown, fd, owner, group));
}
int fsetxattr(int fd, const char* name, const void* value, size_t size, int flags) noexcept {
    if (const int error = about_to("fsetxattr")) return static_cast<int>(fail(error));
    if (lacking(&Lacks::attributes)) return static_cast<int>(fail(ENOTSUP));
    return static_cast<int>(::syscall(SYS_fsetxattr, fd, name, value, size, flags));
}
ssize_t pread(int fd, void* bytes, size_t size, off_t at) {
    if (const int error = about_to("pread")) return fail(error);
    return ::syscall(SYS_pread64, fd, bytes, size, at);
}
ssize_t write(int fd, const void* bytes, size_t size) {
    if (const int error = about_to("write")) return fail(error);
    return ::syscall(SYS_write, fd, bytes, size);
}

}  // extern "C"
