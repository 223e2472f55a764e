// SPDX-License-Identifier: Apache-2.0
// A folder for a test, what is in it, and access control lists as the kernel takes them.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

namespace dael::test {

class Folder {
  public:
    Folder() {
        std::string name = testing::TempDir() + "daelstrom-files-XXXXXX";
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        path_ = name;
        fd_ = ::open(name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        ::close(fd_);
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    int fd() const { return fd_; }
    std::string at(const std::string& name) const { return path_ + "/" + name; }

    // Written beside and renamed, as another program would.
    void put(const std::string& name, const std::string& text, mode_t mode = 0644) const {
        write(".other", text, mode);
        std::filesystem::rename(at(".other"), at(name));
    }
    void write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
        const int file = ::open(at(name).c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
        EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        ::fchmod(file, mode);
        ::close(file);
    }
    std::string read(const std::string& name) const {
        std::ifstream file(at(name), std::ios::binary);
        return file ? std::string(std::istreambuf_iterator<char>(file), {}) : "(none)";
    }
    struct stat look(const std::string& name) const {
        struct stat status {};
        (void)::lstat(at(name).c_str(), &status);
        return status;
    }
    mode_t mode(const std::string& name) const { return look(name).st_mode & 07777; }
    std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(path_))
            found.push_back(entry.path().filename());
        std::ranges::sort(found);
        return found;
    }
    void clear() const {
        for (const std::string& name : names()) std::filesystem::remove_all(at(name));
    }

  private:
    std::string path_;
    int fd_ = -1;
};

// acl(5). Permissions of entries: 4 reads.
struct AclEntry {
    enum Tag : std::uint16_t {
        user_itself = 1,
        user = 2,
        group_itself = 4,
        group = 8,
        mask = 16,
        others = 32
    };
    Tag tag;
    std::uint16_t may;
    std::uint32_t whom = 0xffffffff;
};
inline bool set_acl(const std::string& path, std::initializer_list<AclEntry> entries,
                    const char* which = "system.posix_acl_access") {
    std::string list("\2\0\0\0", 4);
    for (const AclEntry& entry : entries)
        list.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    return ::setxattr(path.c_str(), which, list.data(), list.size(), 0) == 0;
}
static_assert(sizeof(AclEntry) == 8);

// How many descriptors this process has open.
inline std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace dael::test
