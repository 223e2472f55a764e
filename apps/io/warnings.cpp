// SPDX-License-Identifier: Apache-2.0
#include "io/warnings.hpp"

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

}  // namespace dael::app
