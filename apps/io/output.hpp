// SPDX-License-Identifier: Apache-2.0
// The data that goes out. A file appears under its name whole or not at all: it is written without
// a name, or under a dot name in the same directory, and gets its own when all is well. Whatever
// ends the program before leaves nothing behind. A file that takes another's place is on the disk
// before it does, and has the other's owner, group, permissions and attributes. Any number of
// threads may write outputs of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <daelstrom/error.hpp>

#include "io/input.hpp"
#include "io/signals.hpp"

namespace dael::app {

struct OutputOptions {
    std::optional<std::string> path;  // "-" is standard output asked for, none is by default
    bool overwrite = false;           // -f
    bool for_terminal = true;         // whether what is written may be shown on a terminal
    bool replaces_input = false;      // the path is the input's, which this takes the place of
    bool secret = false;              // for its owner alone, whatever it replaces
};

class Output {
  public:
    // Errors (io, overlap): the file exists and -f is not given, a directory, no permission; it is
    // the input itself; it would replace the input, which has other names (hard links); a terminal
    // that should not get this. Creates nothing under the final name.
    static Result<Output> open(const OutputOptions& options, const Input& input);
    static Result<Output> open(const OutputOptions& options);  // of what is made here
    Output(Output&& other) noexcept;
    Output& operator=(Output&&) = delete;
    ~Output();  // not committed: as if it had never been

    // Sets room aside for a file of about this size; a full disk then shows at once. Errors: io.
    Result<> reserve(std::uint64_t size);
    Result<> write(std::span<const std::uint8_t> bytes);
    Result<> commit();

    const std::string& name() const noexcept { return name_; }   // quoted, for messages
    std::uint64_t written() const noexcept { return written_; }  // bytes

  private:
    Output() = default;
    static Result<Output> open(const OutputOptions& options, const struct stat& input);
    Result<> check_target(const OutputOptions& options, const struct stat& input);
    Result<> create(std::string path);
    bool create_unnamed();
    Result<> create_named();
    Result<> link_to(const std::string& name);
    Result<> publish();
    void keep_in_folder() const;
    Error failure(const std::string& doing) const;

    std::string name_;
    std::string target_;     // the final name, within directory_fd_; empty: not a file of ours
    std::string temporary_;  // the dot name in use, within directory_fd_; empty: none
    DoomedFile doomed_;      // the same, for signals
    int fd_ = -1;
    int directory_fd_ = -1;
    unsigned mode_ = 0;
    bool overwrite_ = false;
    bool secret_ = false;
    int replaced_fd_ = -1;  // the file that this takes the place of; -1: none
    bool shared_ = false;   // which has other names besides
    std::uint64_t written_ = 0;
};

}  // namespace dael::app
