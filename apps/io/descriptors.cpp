// SPDX-License-Identifier: Apache-2.0
#include "io/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace dael::app {

Result<> keep_standard_descriptors() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        // The lowest number that is free is this one. Opened the wrong way round: data that nobody
        // would get must not look written, nor an input that is missing look empty.
        if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return Error{Code::io, "descriptor " + std::to_string(fd) +
                                       " is closed, and /dev/null cannot take its place: " +
                                       std::strerror(errno)};
    }
    return {};
}

void raise_descriptor_limit() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace dael::app
