// SPDX-License-Identifier: Apache-2.0
// Stands before the C library and the allocator (LD_PRELOAD) and counts the calls of a process that
// change files. DAELSTROM_STEP is what becomes of one of them: "EIO 3" or "ENOSPC 3" (it fails, the
// fourth), "kill 3" or "term 3" (the process is sent that signal), "memory 3" (the fourth
// allocation after the first new file fails), or "none 0"; "EIO rename" is the first of that name.
// DAELSTROM_STEPS is a descriptor that gets the name of each call, one a line. What goes to a pipe
// or a terminal changes no file. What the C library calls by itself is not seen: whoever writes by
// stdio has its data written unseen.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

struct Injection {
    enum { none, error, signal, memory } what = none;
    int number = 0;  // of the error, or the signal
    long at = -1;
    const char* named = nullptr;
    int log = -1;
};

Injection read_injection() {
    Injection injection;
    const char* const step = std::getenv("DAELSTROM_STEP");
    const char* const log = std::getenv("DAELSTROM_STEPS");
    if (!step || !log) return injection;
    injection.log = std::atoi(log);
    const char* const where = std::strchr(step, ' ') + 1;
    if (*where >= '0' && *where <= '9')
        injection.at = std::atol(where);
    else
        injection.named = where;
    const auto is = [step](const char* word) {
        return std::strncmp(step, word, std::strlen(word)) == 0;
    };
    if (is("EIO ") || is("ENOSPC ")) injection.what = Injection::error;
    if (is("kill ") || is("term ")) injection.what = Injection::signal;
    if (is("memory ")) injection.what = Injection::memory;
    injection.number = is("EIO ") ? EIO : is("ENOSPC ") ? ENOSPC : is("kill ") ? SIGKILL : SIGTERM;
    return injection;
}

const Injection& injection() {
    static const Injection read = read_injection();
    return read;
}

std::atomic<long> calls{0}, allocations{-1};  // the latter once a new file was opened

void note(const char* name) {
    char line[64];
    const int size = std::snprintf(line, sizeof line, "%s\n", name);
    (void)!::syscall(SYS_write, injection().log, line, static_cast<std::size_t>(size));
}

// Whether the call is to fail, with errno set.
bool fails(const char* name) {
    if (injection().log < 0) return false;
    note(name);
    static std::atomic<bool> met{false};
    const bool here =
        calls++ == injection().at ||
        (injection().named && std::strcmp(name, injection().named) == 0 && !met.exchange(true));
    if (here && injection().what == Injection::signal)
        ::syscall(SYS_kill, ::syscall(SYS_getpid), injection().number);
    if (!here || injection().what != Injection::error) return false;
    errno = injection().number;
    return true;
}

bool is_file(int fd) {
    struct stat status;
    return fd != injection().log && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

bool makes_file(int flags) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE || (flags & O_TRUNC) != 0;
}

int open_at(int folder, const char* path, int flags, int mode) {
    if (makes_file(flags)) {
        if (fails("open")) return -1;
        long none = -1;
        allocations.compare_exchange_strong(none, 0);
    }
    return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int system_call(const char* name, long number, auto... arguments) {
    return fails(name) ? -1 : static_cast<int>(::syscall(number, arguments...));
}

}  // namespace

void* operator new(std::size_t size) {
    if (injection().what == Injection::memory && allocations >= 0 &&
        allocations++ == injection().at) {
        note("no memory");
        throw std::bad_alloc();
    }
    if (void* const memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}

extern "C" {

int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = makes_file(flags) ? va_arg(more, int) : 0;
    va_end(more);
    return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = makes_file(flags) ? va_arg(more, int) : 0;
    va_end(more);
    return open_at(folder, path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
    if (std::strpbrk(mode, "wa+") && fails("open")) return nullptr;
    return next<decltype(fopen)>("fopen")(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
    return fopen(path, mode);
}
ssize_t write(int fd, const void* bytes, size_t size) {
    if (is_file(fd) && fails("write")) return -1;
    return ::syscall(SYS_write, fd, bytes, size);
}
ssize_t writev(int fd, const iovec* parts, int count) {
    if (is_file(fd) && fails("write")) return -1;
    return ::syscall(SYS_writev, fd, parts, count);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
    if (is_file(fd) && fails("write")) return -1;
    return ::syscall(SYS_pwrite64, fd, bytes, size, at);
}
int fallocate(int fd, int mode, off_t at, off_t size) {
    return system_call("fallocate", SYS_fallocate, fd, mode, at, size);
}
int ftruncate(int fd, off_t size) noexcept {
    return system_call("ftruncate", SYS_ftruncate, fd, size);
}
int fsync(int fd) {
    return system_call("fsync", SYS_fsync, fd);
}
int fdatasync(int fd) {
    return system_call("fsync", SYS_fdatasync, fd);
}
int syncfs(int fd) noexcept {
    return system_call("fsync", SYS_syncfs, fd);
}
int fchmod(int fd, mode_t mode) noexcept {
    return system_call("fchmod", SYS_fchmod, fd, mode);
}
int fchown(int fd, uid_t owner, gid_t group) noexcept {
    return system_call("fchown", SYS_fchown, fd, owner, group);
}
int fsetxattr(int fd, const char* name, const void* value, size_t size, int flags) noexcept {
    return system_call("fsetxattr", SYS_fsetxattr, fd, name, value, size, flags);
}
int linkat(int from, const char* old, int to, const char* name, int flags) noexcept {
    return system_call("link", SYS_linkat, from, old, to, name, flags);
}
int rename(const char* old, const char* name) noexcept {
    return system_call("rename", SYS_renameat2, AT_FDCWD, old, AT_FDCWD, name, 0);
}
int renameat2(int from, const char* old, int to, const char* name, unsigned flags) noexcept {
    return system_call("rename", SYS_renameat2, from, old, to, name, flags);
}
int unlink(const char* path) noexcept {
    return system_call("unlink", SYS_unlinkat, AT_FDCWD, path, 0);
}
int unlinkat(int folder, const char* path, int flags) noexcept {
    return system_call("unlink", SYS_unlinkat, folder, path, flags);
}
int remove(const char* path) noexcept {
    return fails("unlink") ? -1 : next<decltype(remove)>("remove")(path);
}
int mkdir(const char* path, mode_t mode) noexcept {
    return system_call("mkdir", SYS_mkdirat, AT_FDCWD, path, mode);
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
    return system_call("mkdir", SYS_mkdirat, folder, path, mode);
}

}  // extern "C"
