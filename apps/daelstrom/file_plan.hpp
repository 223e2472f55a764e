// SPDX-License-Identifier: Apache-2.0
// Which files a command line means, and where each goes: named ones, and with --recursive all that
// lie in folders. Nothing is made here.
//
// Links that are named are followed; those that lie in a folder are left alone, as are pipes,
// devices and sockets there. A folder that was named is held open, and all that is below it is
// reached from there, by names that are no links: whoever may change the folder cannot lead us out
// of it. Each file of the plan takes some 0.7 KB of memory.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

namespace dael::cli {

inline constexpr const char* kSuffix = ".sealed";

// What the names of outputs are made of. `seal`: "x" becomes "x.sealed"; `open`: the reverse;
// `reseal`: the file itself.
enum class Naming { seal, open, reseal };

struct FileRequest {
    Naming naming = Naming::seal;
    std::vector<std::string> inputs;  // none, or a single "-": standard input
    bool recursive = false;
    bool overwrite = false;
    std::optional<std::string> output;      // -o: for a single file
    std::optional<std::string> output_dir;  // what lies in a folder lies there likewise
    bool to_stdout = false;                 // where no output is named
};

// A folder that stays open: a descriptor for *at() calls.
class OpenFolder {
  public:
    explicit OpenFolder(int fd) noexcept : fd_(fd) {}
    OpenFolder(const OpenFolder&) = delete;
    OpenFolder& operator=(const OpenFolder&) = delete;
    ~OpenFolder();
    int fd() const noexcept { return fd_; }
    // What lies below it. Errors (io), calling it `name`: a link is on the way, or it is no folder.
    Result<std::shared_ptr<const OpenFolder>> below(const std::string& path,
                                                    const std::string& name) const;

  private:
    int fd_;
};

// Where outputs lie: it is made, and opened, when the plan is carried out.
struct OutputFolder {
    std::shared_ptr<const OpenFolder> open;
};

struct PlannedFile {
    std::string input;
    std::optional<std::string> output;  // none: standard output
    std::optional<struct stat> found;   // in a folder, where it may be another one by now
    std::uint64_t size = 0;             // bytes, as far as is known
    // What the sealed file is called below the folder that was named, or among named files, without
    // its suffix. Empty: it has no name.
    std::string name;
    // In a folder: the one that was named, the one where outputs lie if it is another, and the way
    // from there to the folder of the file, which is the same in both.
    std::shared_ptr<const OpenFolder> root = {};
    std::shared_ptr<const OutputFolder> output_root = {};
    std::string below = {};
};

struct Plan {
    std::vector<PlannedFile> files;
    bool single = false;                // one file, which was named
    std::vector<std::string> failures;  // messages about what cannot be done
    std::vector<std::string> skipped;   // and about what is left alone
    std::uint64_t other_names = 0;      // files in folders whose names are not for this command
    // To be made, outer ones first, as open to others as what they are made after.
    struct Folder {
        std::string path, below;  // the whole path, and from the outermost one on; that has none
        mode_t mode = 0777;
    };
    std::vector<Folder> folders;
    std::shared_ptr<OutputFolder> output_root;  // the outermost one of them
};

// A path's last part: the name in its folder.
std::string last_part(const std::string& path);

// Errors (invalid_argument, overlap), after which nothing should be done: options that do not go
// together, two inputs that would go to one output, an output that is also an input.
Result<Plan> plan_files(const FileRequest& request);

}  // namespace dael::cli
