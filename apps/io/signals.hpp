// SPDX-License-Identifier: Apache-2.0
// Leaving nothing behind: whatever ends the program early, a half-written file is removed and the
// terminal's echo is restored, and the program then dies of the signal itself, so that a shell sees
// why.
#pragma once

#include <termios.h>

#include <string>

namespace dael::app {

// Handles SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, except those that were ignored when the
// program started (nohup); makes writes past a size limit fail with EFBIG instead of a signal.
void install_signal_handlers();

// No core dumps: they would hold keys and plaintext.
void disable_core_dumps();

// The file (`name` in the directory `directory_fd`) to remove on a fatal signal. Set it before the
// file is created, so that no moment is left uncovered. One at a time.
void remove_on_signal(int directory_fd, const std::string& name);
void keep_on_signal();

// The terminal to restore on a fatal signal. One at a time.
void restore_on_signal(int terminal_fd, const termios& state);
void terminal_restored();

}  // namespace dael::app
