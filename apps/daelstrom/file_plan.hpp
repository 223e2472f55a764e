// SPDX-License-Identifier: Apache-2.0
// Which files a command line means, and where each goes: named ones, and with --recursive all that
// lie in folders. Nothing is made here.
//
// Links that are named are followed; those that lie in a folder are left alone, as are pipes,
// devices and sockets there. A folder that was named is held open, and all that is below it is
// reached from there, by names that are no links: whoever may change the folder cannot lead us out
// of it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

#include "planned_files.hpp"

namespace dael::cli {

struct FileRequest {
    Naming naming = Naming::seal;
    std::vector<std::string> inputs;  // none, or a single "-": standard input
    bool recursive = false;
    bool overwrite = false;
    std::optional<std::string> output;      // -o: for a single file
    std::optional<std::string> output_dir;  // what lies in a folder lies there likewise
    bool to_stdout = false;                 // where no output is named
};

struct FilePlan {
    PlannedFiles files;
    bool single = false;                // one file, which was named
    std::vector<std::string> failures;  // messages about what cannot be done
    std::uint64_t other_names = 0;      // files in folders whose names are not for this command
    // To be made, outer ones first, as open to others as what they are made after.
    struct Folder {
        std::string path, below;  // the whole path, and from the outermost one on; that has none
        mode_t mode = 0777;
    };
    std::vector<Folder> folders;
    std::shared_ptr<OutputFolder> output_root;  // the outermost one of them
};

// Errors (invalid_argument, overlap), after which nothing should be done: options that do not go
// together, two inputs that would go to one output, an output that is also an input.
Result<FilePlan> plan_files(const FileRequest& request);

}  // namespace dael::cli
