// SPDX-License-Identifier: Apache-2.0
// Which files a command line means, and where each goes: named ones, and with --recursive all that
// lie in folders. Nothing is opened or made here.
//
// Links that are named are followed; those that lie in a folder are left alone, as are pipes,
// devices and sockets there.
#pragma once

#include <sys/stat.h>

#include <cstdint>
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

struct PlannedFile {
    std::string input;
    std::optional<std::string> output;  // none: standard output
    std::optional<struct stat> found;   // in a folder, where it may be another one by now
    std::uint64_t size = 0;             // bytes, as far as is known
    // What the sealed file is called below the folder that was named, or among named files, without
    // its suffix. Empty: it has no name.
    std::string name;
};

struct Plan {
    std::vector<PlannedFile> files;
    bool single = false;                // one file, which was named
    std::vector<std::string> failures;  // messages about what cannot be done
    std::vector<std::string> skipped;   // and about what is left alone
    std::uint64_t other_names = 0;      // files in folders whose names are not for this command
    // To be made, outer ones first, as open to others as what they are made after.
    struct Folder {
        std::string path;
        mode_t mode = 0777;
    };
    std::vector<Folder> folders;
};

// Errors (invalid_argument, overlap), after which nothing should be done: options that do not go
// together, two inputs that would go to one output, an output that is also an input.
Result<Plan> plan_files(const FileRequest& request);

}  // namespace dael::cli
