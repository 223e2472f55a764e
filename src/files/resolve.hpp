// SPDX-License-Identifier: Apache-2.0
// Where a path leads: the folder, held open, the name in it, and what lies there now.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "files/descriptor.hpp"

namespace dael::files {

struct Target {
    Descriptor folder;      // O_PATH; none for what has no place in a folder (a descriptor of ours)
    std::string name;       // in it
    Descriptor found;       // O_PATH; none: nothing is there
    struct stat status {};  // of what is there
    std::optional<int> ours;  // a descriptor of this process that the path names
    bool by_link = false;     // a link at the path's end led here
};

// Follows the links at the path's end one by one, each from the folder that it lies in, and makes
// sure that this leads to what the kernel finds by itself: where it refuses to follow a link of
// somebody else's (fs.protected_symlinks), so does this. Only ENOENT counts as "not there".
Result<Target> resolve(int folder, const std::string& path, bool follow, const Faults& faults);

}  // namespace dael::files
