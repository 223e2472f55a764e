/* SPDX-License-Identifier: Apache-2.0
 * Stands for folders that lack something, in front of the C library (LD_PRELOAD). DAELSTROM_LACKS
 * names what: links (FAT, object stores), flags of renameat2() (9p, NFS), rights (chmod on Windows'
 * drives in WSL), unnamed files (O_TMPFILE). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int lacking(const char* what) {
    const char* all = getenv("DAELSTROM_LACKS");
    return all && strstr(all, what);
}
static int fail(int error) {
    errno = error;
    return -1;
}

int linkat(int from, const char* old, int to, const char* name, int flags) {
    if (lacking("links")) return fail(EPERM);
    return (int)syscall(SYS_linkat, from, old, to, name, flags);
}
int renameat2(int from, const char* old, int to, const char* name, unsigned flags) {
    if (flags != 0 && lacking("flags")) return fail(EINVAL);
    return (int)syscall(SYS_renameat2, from, old, to, name, flags);
}
int fchmod(int fd, mode_t mode) {
    if (lacking("rights")) return fail(EPERM);
    return (int)syscall(SYS_fchmod, fd, mode);
}
int openat(int folder, const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    if ((flags & O_TMPFILE) == O_TMPFILE && lacking("unnamed")) return fail(EOPNOTSUPP);
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}
