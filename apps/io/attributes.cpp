// SPDX-License-Identifier: Apache-2.0
#include "io/attributes.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "io/warnings.hpp"

namespace dael::app {
namespace {

constexpr const char* kAcl = "system.posix_acl_access";
constexpr std::array<std::string_view, 3> kOfTheContent{"security.capability", "security.ima",
                                                        "security.evm"};

// A name under which calls that take no O_PATH descriptor reach the file.
std::string path_of(int fd) {
    return "/proc/self/fd/" + std::to_string(fd);
}

std::optional<std::string> value_of(int fd, const char* attribute) {
    const std::string path = path_of(fd);
    const ssize_t size = ::getxattr(path.c_str(), attribute, nullptr, 0);
    if (size < 0) return std::nullopt;
    std::string value(static_cast<std::size_t>(size), '\0');
    const ssize_t got = ::getxattr(path.c_str(), attribute, value.data(), value.size());
    if (got < 0) return std::nullopt;
    value.resize(static_cast<std::size_t>(got));
    return value;
}

std::vector<std::string> attributes_of(int fd) {
    const std::string path = path_of(fd);
    const ssize_t size = ::listxattr(path.c_str(), nullptr, 0);
    if (size <= 0) return {};
    std::string list(static_cast<std::size_t>(size), '\0');
    const ssize_t got = ::listxattr(path.c_str(), list.data(), list.size());
    std::vector<std::string> names;
    for (std::size_t at = 0; got > 0 && at < static_cast<std::size_t>(got);) {
        names.emplace_back(list.c_str() + at);
        at += names.back().size() + 1;
    }
    return names;
}

void copy_attributes(int to, int from, const std::string& name) {
    const auto wanted = attributes_of(from);
    for (const std::string& attribute : wanted) {
        if (std::ranges::find(kOfTheContent, attribute) != kOfTheContent.end()) continue;
        const auto value = value_of(from, attribute.c_str());
        if (value && value == value_of(to, attribute.c_str())) continue;
        if (!value || ::fsetxattr(to, attribute.c_str(), value->data(), value->size(), 0) != 0)
            warn(name + " lost its attribute " + attribute + ": " + std::strerror(errno));
    }
    // A list that the folder gives to new files would let in whom the old file did not.
    if (std::ranges::find(wanted, kAcl) == wanted.end()) ::fremovexattr(to, kAcl);
}

}  // namespace

Result<> inherit_attributes(int to, int from, const std::string& name) {
    struct stat old {
    }, now{};
    if (::fstat(from, &old) != 0 || ::fstat(to, &now) != 0)
        return Error{Code::io,
                     "cannot look at the attributes of " + name + ": " + std::strerror(errno)};
    mode_t mode = old.st_mode & 0777;
    copy_attributes(to, from, name);
    if ((old.st_uid != now.st_uid || old.st_gid != now.st_gid) &&
        ::fchown(to, old.st_uid, old.st_gid) != 0) {
        const std::string why = std::strerror(errno);
        const bool group =
            old.st_gid == now.st_gid || ::fchown(to, static_cast<uid_t>(-1), old.st_gid) == 0;
        if (!group) mode &= ~070u | (mode & 07) << 3;
        const std::string lost = group                      ? "owner"
                                 : old.st_uid == now.st_uid ? "group"
                                                            : "owner and group";
        warn(name + " could not keep its " + lost + ": " + why);
    }
    if (::fchmod(to, mode) != 0)
        return Error{Code::io,
                     "cannot set the permissions of " + name + ": " + std::strerror(errno)};
    return {};
}

}  // namespace dael::app
