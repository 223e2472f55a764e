// SPDX-License-Identifier: Apache-2.0
// Leaving nothing behind: whatever ends the program early, a half-written file is removed and the
// terminal's echo is restored, and the program then dies of the signal itself, so that a shell sees
// why.
#pragma once

#include <signal.h>
#include <termios.h>

#include <cstddef>

#include <daelstrom/files.hpp>

namespace dael::app {

// Handles SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, except those that were ignored when the
// program started (nohup); makes writes past a size limit fail with EFBIG instead of a signal.
void install_signal_handlers();

// For the start of a thread that should not be interrupted by signals: the others take them.
void block_signals();

// No core dumps: they would hold keys and plaintext.
void disable_core_dumps();

// A file to remove on a fatal signal, while this lives and holds it. As many at once as threads
// write files; any thread may use its own.
class DoomedFile final : public files::HiddenNames {
  public:
    static constexpr std::size_t kMax = 256;  // at a time; those beyond are not removed

    DoomedFile() = default;
    DoomedFile(const DoomedFile&) = delete;
    DoomedFile& operator=(const DoomedFile&) = delete;
    ~DoomedFile() { gone(); }

    // A signal that comes between the two waits until that is done, whichever thread gets it: so no
    // moment is left uncovered.
    void enter() noexcept override;
    void leave() noexcept override;
    void there(int folder, const char* name) noexcept override;
    void gone() noexcept override;

  private:
    sigset_t before_{};
    int slot_ = -1;
};

// The terminal to restore on a fatal signal. One at a time.
void restore_on_signal(int terminal_fd, const termios& state);
void terminal_restored();

}  // namespace dael::app
