// SPDX-License-Identifier: Apache-2.0
#include "files/resolve.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <array>
#include <charconv>
#include <climits>
#include <cstdio>

namespace dael::files {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel has it

bool is_of_the_kernel(int fd) {
    struct statfs system {};
    return ::fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

std::optional<std::string> link_in(int folder, const std::string& name) {
    std::array<char, PATH_MAX + 1> text;
    const ssize_t size = ::readlinkat(folder, name.c_str(), text.data(), text.size());
    if (size < 0) return std::nullopt;
    return std::string(text.data(), static_cast<std::size_t>(size));
}

// The number of a descriptor of this process, where a name in a folder of /proc is one's.
std::optional<int> our_descriptor(const Target& target) {
    struct stat folder {
    }, mine{}, file{};
    if (::fstat(target.folder.get(), &folder) != 0) return std::nullopt;
    bool is_ours = false;
    for (const char* const place : {"/proc/self/fd", "/proc/thread-self/fd"})
        is_ours = is_ours || (::stat(place, &mine) == 0 && same_file(folder, mine));
    if (!is_ours) return std::nullopt;
    int number = -1;
    const char* const end = target.name.data() + target.name.size();
    const auto read = std::from_chars(target.name.data(), end, number);
    if (read.ec != std::errc{} || read.ptr != end || ::fstat(number, &file) != 0 ||
        !same_file(file, target.status))
        return std::nullopt;
    return number;
}

Error moved(const Faults& faults) {
    return faults.about(ESTALE, " changed while it was looked at; try again when it rests");
}

// From `folder` on, a step for each link. The result has the folder, the name, and its lstat() in
// `found_status`, or nothing there.
struct Walk {
    Target target;
    bool there = false;
    struct stat status {};
};

Result<Walk> walk(int from, std::string path, bool follow, const Faults& faults) {
    Walk walk;
    Descriptor held;  // the folder that the path begins at
    for (int links = 0;; ++links) {
        const auto slash = path.rfind('/');
        const std::string parent = slash == path.npos ? "." : path.substr(0, slash + 1);
        walk.target.name = slash == path.npos ? path : path.substr(slash + 1);
        const std::string& name = walk.target.name;
        if (name.empty() || name == "." || name == "..")
            return faults.about(EISDIR, " names no file; give a file name");
        Descriptor folder(::openat(from, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!folder) return faults.failed("create");
        walk.target.folder = std::move(folder);
        walk.there = ::fstatat(walk.target.folder.get(), name.c_str(), &walk.status,
                               AT_SYMLINK_NOFOLLOW) == 0;
        if (!walk.there && errno != ENOENT) return faults.failed("look at");
        if (!walk.there || !S_ISLNK(walk.status.st_mode)) return walk;
        if (!follow) return faults.about(ELOOP, " is a symbolic link; give the file itself");
        if (links == kMaxLinks) return faults.about(ELOOP, " is a link that leads in circles");
        walk.target.by_link = true;
        // What looks like a link there is a descriptor, and its text only a hint.
        if (is_of_the_kernel(walk.target.folder.get())) return walk;
        auto next = link_in(walk.target.folder.get(), name);
        if (!next) return errno == EINVAL ? moved(faults) : faults.failed("follow");
        path = std::move(*next);
        held = std::move(walk.target.folder);
        from = held.get();
    }
}

}  // namespace

Result<Target> resolve(int folder, const std::string& path, bool follow, const Faults& faults) {
    if (path.empty()) return faults.about(ENOENT, " names no file; give a file name");
    if (path.find('\0') != path.npos)
        return faults.about(EINVAL, " has a zero byte in it; give a file name",
                            Code::invalid_argument);
    const int flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
    Descriptor found(::openat(folder, path.c_str(), flags));
    if (!found && errno != ENOENT) return faults.failed("look at");
    DAEL_LET(walked, walk(folder, path, follow, faults));
    Target& target = walked.target;
    if (!found) {
        if (target.by_link)
            return faults.about(EEXIST, " exists, as a link that leads nowhere; remove it first");
        if (walked.there) return moved(faults);
        return std::move(target);
    }
    if (::fstat(found.get(), &target.status) != 0) return faults.failed("look at");
    const bool magic = walked.there && S_ISLNK(walked.status.st_mode);
    if (!magic && !(walked.there && same_file(walked.status, target.status))) return moved(faults);
    target.found = std::move(found);
    if (magic) {
        target.ours = our_descriptor(target);
        target.folder.reset();
    }
    return std::move(target);
}

}  // namespace dael::files
