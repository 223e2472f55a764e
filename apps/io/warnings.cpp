// SPDX-License-Identifier: Apache-2.0
#include "io/warnings.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "io/text.hpp"

namespace dael::app {
namespace {

std::atomic<bool> silent{false};

// On a terminal a line of progress may stand there; it is drawn again if there is more of it.
void write_line(std::string_view kind, std::string_view text) {
    const std::string line = std::string(::isatty(STDERR_FILENO) ? "\r\x1b[K" : "") +
                             program_invocation_short_name + ": " + std::string(kind) +
                             on_one_line(text) + "\n";
    (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void warn(std::string_view text) {
    if (!silent) write_line("warning: ", text);
}

void tell(std::string_view text) {
    if (!silent) write_line("", text);
}

void complain(std::string_view text) {
    write_line("", text);
}

void silence_warnings() {
    silent = true;
}

void warn_if_shared(int fd, const std::string& name) {
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || (status.st_mode & 077) == 0)
        return;
    const bool all = (status.st_mode & 07) != 0;
    warn("others can read or change " + name + ", which is open to " +
         (all ? "everybody" : "its group") + "; chmod 600 makes it yours alone");
}

}  // namespace dael::app
