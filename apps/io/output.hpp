// SPDX-License-Identifier: Apache-2.0
// The data that goes out: to standard output, to what is no file as it is, or into a file that is
// put in its place whole (daelstrom/files.hpp). Whatever ends the program before leaves nothing
// behind. Any number of threads may write outputs of their own.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/files.hpp>

#include "io/input.hpp"
#include "io/signals.hpp"
#include "io/terminal_text.hpp"

namespace dael::app {

struct OutputOptions {
    std::optional<std::string> path;  // "-" is standard output asked for, none is by default
    bool overwrite = false;           // -f
    bool for_terminal = true;         // whether what is written may be shown on a terminal, if it
                                      // is text (terminal_text.hpp) or -o - asks for it
    bool replaces_input = false;      // the path is the input's, which this takes the place of
    bool secret = false;              // for its owner alone, whatever it replaces
    bool sync = false;                // on the disk before it has its name, even if it is new
    // For what lies in a folder that was walked: the folder, held open, and the name in it, which
    // is no link. The path is for messages then.
    int folder = AT_FDCWD;
    std::optional<std::string> name_in_folder = {};
};

class Output {
  public:
    // Errors (io, overlap): the file exists and -f is not given, a directory, no permission; it is
    // the input itself; it would replace the input, which has other names (hard links) or is
    // another file by now; a terminal that should not get this. Creates nothing under the final
    // name.
    static Result<Output> open(const OutputOptions& options, const Input& input);
    static Result<Output> open(const OutputOptions& options);  // of what is made here
    Output(Output&& other) noexcept;
    Output& operator=(Output&&) = delete;
    ~Output();  // not committed: as if it had never been

    // Sets room aside for a file of about this size; a full disk then shows at once. Errors: io.
    Result<> reserve(std::uint64_t size);
    Result<> write(std::span<const std::uint8_t> bytes);
    // Where it would wait for the disk and a Deferral lives in this thread, that gets it.
    Result<> commit();

    const std::string& name() const noexcept { return name_; }   // quoted, for messages
    std::uint64_t written() const noexcept { return written_; }  // bytes
    int fd() const noexcept { return fd_; }

  private:
    friend class Deferral;
    Output() = default;
    static Result<Output> open(const OutputOptions& options, const Input* input);
    Result<> open_standard(const OutputOptions& options, const Input* input);
    Result<> open_path(const OutputOptions& options, const Input* input);
    Result<> end(files::Sync sync);
    Result<> end_anyhow(files::Sync sync);  // memory that runs out is an error, too
    Result<> put(std::span<const std::uint8_t> bytes);
    Error failure(const std::string& doing) const;

    std::string name_;
    std::unique_ptr<DoomedFile> doomed_;  // outlives the file
    std::optional<files::NewFile> file_;  // none: standard output
    int fd_ = -1;
    bool waits_ = false;  // for the disk
    std::uint64_t written_ = 0;
    std::unique_ptr<TerminalText> terminal_;  // what goes there; null: it goes elsewhere
};

// Many outputs brought to the disk at one go, which takes about as long as one of them by itself.
// While this lives, commit() in this thread puts off what would wait, here.
class Deferral {
  public:
    Deferral();
    Deferral(const Deferral&) = delete;
    Deferral& operator=(const Deferral&) = delete;
    ~Deferral();

    std::optional<Output> put_off;

    // Commits them all, each for itself: what became of one is at its place in the answer, which
    // for one that finds no memory is out_of_memory. Throws std::bad_alloc before the first alone.
    static std::vector<Result<>> commit(std::span<Output* const> outputs);
};

}  // namespace dael::app
