// SPDX-License-Identifier: Apache-2.0
// Leaving nothing behind: whatever ends the program early, a half-written file is removed and the
// terminal's echo is restored, and the program then dies of the signal itself, so that a shell sees
// why.
#pragma once

#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <string>

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
class DoomedFile {
  public:
    static constexpr std::size_t kMost = 256;  // at a time; those beyond are not removed

    DoomedFile() = default;
    DoomedFile(DoomedFile&& other) noexcept;
    DoomedFile& operator=(DoomedFile&&) = delete;
    ~DoomedFile() { keep(); }

    // Notes the file `name` in the directory `directory_fd`, which must stay open, and calls
    // make(), which creates it. A signal that comes meanwhile waits until that is done, whichever
    // thread gets it: so no moment is left uncovered. Returns what make() returns.
    template <class Make>
    auto create(int directory_fd, const std::string& name, Make make) {
        const Creating creating;
        note(directory_fd, name);
        return make();
    }
    void keep() noexcept;  // it has gone, or has another name now

  private:
    class Creating {
      public:
        Creating() noexcept;
        ~Creating();
        Creating(const Creating&) = delete;

      private:
        sigset_t before_;
    };
    void note(int directory_fd, const std::string& name) noexcept;

    int slot_ = -1;
};

// The terminal to restore on a fatal signal. One at a time.
void restore_on_signal(int terminal_fd, const termios& state);
void terminal_restored();

}  // namespace dael::app
