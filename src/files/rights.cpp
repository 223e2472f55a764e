// SPDX-License-Identifier: Apache-2.0
#include "files/rights.hpp"

#include <fcntl.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace dael::files {
namespace {

constexpr const char* kAcl = "system.posix_acl_access";
constexpr std::array<std::string_view, 3> kOfTheContent{"security.capability", "security.ima",
                                                        "security.evm"};

// Attributes are read through a descriptor; one that is O_PATH has only its name in /proc for that.
class Attributes {
  public:
    explicit Attributes(int fd, bool path_only = false) : fd_(fd) {
        if (path_only) path_ = "/proc/self/fd/" + std::to_string(fd);
    }
    std::optional<std::string> value(const char* name) const {
        for (int turn = 0; turn < 8; ++turn) {  // it may grow in between
            const ssize_t size = get(name, nullptr, 0);
            if (size < 0) return std::nullopt;
            std::string value(static_cast<std::size_t>(size), '\0');
            const ssize_t got = get(name, value.data(), value.size());
            if (got < 0 && errno == ERANGE) continue;
            if (got < 0) return std::nullopt;
            value.resize(static_cast<std::size_t>(got));
            return value;
        }
        return std::nullopt;
    }
    // None: they cannot be read, which is not the same as that there are none.
    std::optional<std::vector<std::string>> names() const {
        const auto list_of = [this](char* list, std::size_t size) {
            return path_.empty() ? ::flistxattr(fd_, list, size)
                                 : ::listxattr(path_.c_str(), list, size);
        };
        const ssize_t size = list_of(nullptr, 0);
        std::vector<std::string> names;
        if (size < 0 && (errno == ENOTSUP || errno == ENOSYS)) return names;
        if (size < 0) return std::nullopt;
        std::string list(static_cast<std::size_t>(size), '\0');
        const ssize_t got = list.empty() ? 0 : list_of(list.data(), list.size());
        if (got < 0) return std::nullopt;
        for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
            names.emplace_back(list.c_str() + at);
            at += names.back().size() + 1;
        }
        return names;
    }

  private:
    ssize_t get(const char* name, char* value, std::size_t size) const {
        return path_.empty() ? ::fgetxattr(fd_, name, value, size)
                             : ::getxattr(path_.c_str(), name, value, size);
    }
    int fd_;
    std::string path_;
};

// What permission bits mean once an access control list is looked at: the bits of the group are
// the list's mask then, and say nothing of the group.
struct Bits {
    unsigned group = 0, others = 0;  // 0 to 7
};

// acl(5), as the kernel hands it out: a version, then a tag, permissions and a number for each
// entry, little-endian.
Bits bits_of(mode_t mode, const std::optional<std::string>& list) {
    Bits bits{mode >> 3 & 7u, mode & 7u};
    if (!list) return bits;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(list->data());
    const auto number = [bytes](std::size_t at) {
        return bytes[at] | unsigned{bytes[at + 1]} << 8;
    };
    enum : unsigned { kUser = 2, kGroupItself = 4, kGroup = 8 };
    const unsigned mask = bits.group;
    unsigned users = 7, groups = 7;
    bits.group = 0;
    for (std::size_t at = 4; at + 8 <= list->size(); at += 8) {
        const unsigned tag = number(at), may = number(at + 2) & mask;
        if (tag == kGroupItself) bits.group = may;
        if (tag == kUser) users &= may;
        if (tag == kGroup) groups &= may;
    }
    // Whom the list names and lets do less than all others, these bits cannot tell from others.
    bits.group &= users;
    bits.others &= users & groups;
    return bits;
}

// Where the group is another one: its members were others before, and the old one's are now.
Bits without_group(Bits bits) {
    bits.group = bits.others = bits.group & bits.others;
    return bits;
}

bool has_group(int fd, gid_t wanted) {
    struct stat now {};
    return ::fstat(fd, &now) == 0 &&
           (now.st_gid == wanted || ::fchown(fd, static_cast<uid_t>(-1), wanted) == 0);
}

// No list that a folder gives to new files. False: it is still there.
bool without_list(int fd) {
    return ::fremovexattr(fd, kAcl) == 0 || ::fgetxattr(fd, kAcl, nullptr, 0) < 0;
}

// Not every file system has permissions (FAT), or lets them be changed (DrvFs, sandboxes).
Result<> set_mode(int fd, mode_t mode, const Faults& faults, std::vector<std::string>& warnings) {
    struct stat now {};
    if (::fstat(fd, &now) == 0 && (now.st_mode & 0777) == mode) return {};
    if (::fchmod(fd, mode) == 0) return {};
    if (errno != EPERM && errno != EACCES && errno != ENOTSUP && errno != ENOSYS && errno != EINVAL)
        return faults.failed("set the permissions of");
    const std::string why = std::strerror(errno);
    const mode_t more = now.st_mode & 0777 & ~mode, less = mode & ~now.st_mode;
    if ((more & 077) != 0)
        warnings.push_back(faults.name() +
                           " lies where permissions cannot be set, and others may read it: " + why);
    else if ((less & 0777) != 0)
        warnings.push_back(faults.name() + " could not get its permissions: " + why);
    return {};
}

void copy_attributes(int to, const Attributes& from, const std::vector<std::string>& wanted,
                     const Faults& faults, std::vector<std::string>& warnings) {
    const Attributes mine(to);
    for (const std::string& attribute : wanted) {
        if (attribute == kAcl || std::ranges::find(kOfTheContent, attribute) != kOfTheContent.end())
            continue;
        const auto value = from.value(attribute.c_str());
        if (value && value == mine.value(attribute.c_str())) continue;
        if (!value || ::fsetxattr(to, attribute.c_str(), value->data(), value->size(), 0) != 0)
            warnings.push_back(faults.name() + " lost its attribute " + attribute + ": " +
                               std::strerror(errno));
    }
}

}  // namespace

Result<> rights_after_input(int fd, int input, const struct stat& status, mode_t umask,
                            const Faults& faults, std::vector<std::string>& warnings) {
    // Only files and disks have permissions that say who may know their content.
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        return rights_of_its_own(fd, 0666 & ~umask, faults, warnings);
    Bits bits = bits_of(status.st_mode, Attributes(input).value(kAcl));
    if (!has_group(fd, status.st_gid)) bits = without_group(bits);
    if (!without_list(fd)) bits.group = 0;  // which is its mask: nobody whom it names gets in
    const mode_t mode = (status.st_mode & 0600) | bits.group << 3 | bits.others;
    return set_mode(fd, mode & 0666 & ~umask, faults, warnings);
}

Result<> rights_of_its_own(int fd, mode_t mode, const Faults& faults,
                           std::vector<std::string>& warnings) {
    return set_mode(fd, mode, faults, warnings);
}

Result<> rights_of_a_secret(int fd, const Faults& faults, std::vector<std::string>& warnings) {
    (void)without_list(fd);
    return set_mode(fd, 0600, faults, warnings);
}

Result<> rights_of_the_replaced(int fd, int from, int folder, const std::string& name,
                                const Faults& faults, std::vector<std::string>& warnings) {
    struct stat old {
    }, now{}, opened{};
    if (::fstat(from, &old) != 0 || ::fstat(fd, &now) != 0)
        return faults.failed("look at the attributes of");
    Descriptor readable(
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    const bool same = readable && ::fstat(readable.get(), &opened) == 0 && same_file(old, opened);
    const Attributes theirs = same ? Attributes(readable.get()) : Attributes(from, true);
    const auto wanted = theirs.names();
    if (wanted) copy_attributes(fd, theirs, *wanted, faults, warnings);

    // The group first: who is let in by a list or by bits must be who it meant. The owner last,
    // since only the owner may set the others.
    const bool group_kept = has_group(fd, old.st_gid);
    const std::string why_group = std::strerror(errno);
    std::optional<std::string> list;
    if (wanted && std::ranges::find(*wanted, kAcl) != wanted->end()) list = theirs.value(kAcl);
    const bool listed =
        list && group_kept && ::fsetxattr(fd, kAcl, list->data(), list->size(), 0) == 0;
    mode_t mode = old.st_mode & 0777;
    if (!listed) {
        if (list) warnings.push_back(faults.name() + " lost its access control list");
        Bits bits = bits_of(old.st_mode, list);
        if (!group_kept) bits = without_group(bits);
        if (!without_list(fd) || !wanted) bits.group = 0;
        mode = (mode & 0700) | bits.group << 3 | bits.others;
    }
    DAEL_TRY(set_mode(fd, mode, faults, warnings));
    const bool owner_kept =
        old.st_uid == now.st_uid || ::fchown(fd, old.st_uid, static_cast<gid_t>(-1)) == 0;
    if (!owner_kept || !group_kept) {
        const std::string why = owner_kept ? why_group : std::strerror(errno);
        warnings.push_back(faults.name() + " could not keep its " +
                           (owner_kept   ? "group"
                            : group_kept ? "owner"
                                         : "owner and group") +
                           ": " + why);
    }
    if (!wanted)
        warnings.push_back(faults.name() + " may have lost attributes, which could not be read");
    return {};
}

}  // namespace dael::files
