// SPDX-License-Identifier: Apache-2.0
// Files in their places: whole or not at all, in the place of what was meant, open to nobody new.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <daelstrom/files.hpp>

#include <thread>
#include <vector>

#include "files/folder.hpp"
#include "support/child.hpp"

namespace dael {
namespace {

using files::Existing;
using files::NewFile;
using test::Folder;

Result<NewFile> begin(const Folder& folder, const std::string& name,
                      const files::NewFileOptions& options = {}, int* error = nullptr) {
    return NewFile::begin(folder.fd(), name, options, error);
}
void write(const NewFile& file, const std::string& text) {
    ASSERT_EQ(::write(file.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}
// Writes a file whole; the errno of what failed, or 0.
int put(const Folder& folder, const std::string& name, const std::string& text,
        const files::NewFileOptions& options = {}) {
    int error = 0;
    auto file = begin(folder, name, options, &error);
    if (!file) return error;
    write(*file, text);
    return file->commit(files::Sync::alone, &error) ? 0 : error;
}
class Open {
  public:
    explicit Open(const std::string& path, int flags = O_RDONLY)
        : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {}
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() { ::close(fd_); }
    int fd() const { return fd_; }

  private:
    int fd_;
};

TEST(NewFile, IsThereWholeOrNotAtAll) {
    const Folder folder;
    {
        auto file = begin(folder, "new");
        ASSERT_TRUE(file);
        write(*file, "whole");
        EXPECT_FALSE(std::filesystem::exists(folder.at("new")));
        ASSERT_TRUE(file->commit());
        EXPECT_FALSE(file->replaces());
        EXPECT_EQ(file->commit().code(), Code::invalid_argument);
    }
    EXPECT_EQ(folder.read("new"), "whole");
    { ASSERT_TRUE(begin(folder, "never")); }
    EXPECT_EQ(folder.names(), std::vector<std::string>{"new"});
}

TEST(NewFile, RefusesWhatIsThere) {
    const Folder folder;
    folder.write("old", "old");
    EXPECT_EQ(put(folder, "old", "new"), EEXIST);
    auto file = begin(folder, "late");
    ASSERT_TRUE(file);
    folder.put("late", "somebody's");
    int error = 0;
    EXPECT_FALSE(file->commit(files::Sync::alone, &error));
    EXPECT_EQ(error, EEXIST);
    EXPECT_EQ(folder.read("old") + folder.read("late"), "oldsomebody's");
    std::filesystem::create_directory(folder.at("folder"));
    for (const auto existing : {Existing::refused, Existing::replaced, Existing::whatever})
        EXPECT_EQ(put(folder, "folder", "x", {.existing = existing}), EISDIR);
    for (const char* const none : {"folder/", ".", "..", "folder/.."})
        EXPECT_EQ(put(folder, none, "x"), EISDIR) << none;
    EXPECT_EQ(put(folder, "", "x"), ENOENT);
    EXPECT_EQ(put(folder, "none/x", "x"), ENOENT);
}

TEST(NewFile, ReplacesWhatItFoundAndNothingNewer) {
    const Folder folder;
    folder.write("file", "old");
    EXPECT_EQ(put(folder, "file", "new", {.existing = Existing::replaced}), 0);
    EXPECT_EQ(folder.read("file"), "new");
    for (const bool read : {false, true}) {
        const struct stat was = folder.look("file");
        auto file =
            begin(folder, "file", {.existing = Existing::replaced, .only = read ? &was : nullptr});
        ASSERT_TRUE(file);
        write(*file, "ours");
        folder.put("file", "newer");
        int error = 0;
        EXPECT_FALSE(file->commit(files::Sync::alone, &error));
        EXPECT_EQ(error, ESTALE);
        EXPECT_EQ(folder.read("file"), "newer");
    }
    // What appears where nothing was is newer, too.
    auto file = begin(folder, "none", {.existing = Existing::replaced});
    ASSERT_TRUE(file);
    folder.put("none", "newer");
    EXPECT_FALSE(file->commit());
    EXPECT_EQ(folder.read("none"), "newer");
    EXPECT_EQ(put(folder, "none", "any", {.existing = Existing::whatever}), 0);
    EXPECT_EQ(folder.read("none"), "any");
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"file", "none"}));
}

TEST(NewFile, ReplacesOnlyTheContentThatWasRead) {
    const Folder folder;
    folder.write("file", "old");
    const struct stat was = folder.look("file");
    {  // before it begins
        folder.put("file", "newer");
        int error = 0;
        EXPECT_FALSE(begin(folder, "file", {.existing = Existing::replaced, .only = &was}, &error));
        EXPECT_EQ(error, ESTALE);
    }
    const struct stat now = folder.look("file");
    auto file = begin(folder, "file", {.existing = Existing::replaced, .only = &now});
    ASSERT_TRUE(file);
    folder.write("file", "changed where it lies");
    EXPECT_FALSE(file->commit());
    EXPECT_EQ(folder.read("file"), "changed where it lies");
    // Without `only`, what is written into the very file that was meant goes with it.
    auto forced = begin(folder, "file", {.existing = Existing::replaced});
    ASSERT_TRUE(forced);
    folder.write("file", "again");
    EXPECT_TRUE(forced->commit());
    // Removed meanwhile: `only` brings nothing back.
    const struct stat last = folder.look("file");
    auto gone = begin(folder, "file", {.existing = Existing::replaced, .only = &last});
    ASSERT_TRUE(gone);
    std::filesystem::remove(folder.at("file"));
    EXPECT_FALSE(gone->commit());
    EXPECT_TRUE(folder.names().empty());
}

TEST(NewFile, FollowsLinksToWhatWasFoundBehindThem) {
    const Folder folder;
    std::filesystem::create_directory(folder.at("below"));
    folder.write("below/target", "old");
    folder.write("victim", "precious");
    std::filesystem::create_symlink("below/link", folder.at("link"));
    std::filesystem::create_symlink("target", folder.at("below/link"));
    EXPECT_EQ(put(folder, "link", "new"), EEXIST);
    EXPECT_EQ(put(folder, "link", "new", {.existing = Existing::replaced, .follow = false}), ELOOP);
    EXPECT_EQ(put(folder, "link", "new", {.existing = Existing::replaced}), 0);
    EXPECT_EQ(folder.read("below/target"), "new");
    EXPECT_TRUE(std::filesystem::is_symlink(folder.at("below/link")));
    // Turned elsewhere once it has begun: the file that was found is the one that is replaced.
    auto file = begin(folder, "link", {.existing = Existing::replaced});
    ASSERT_TRUE(file);
    write(*file, "ours");
    std::filesystem::remove(folder.at("link"));
    std::filesystem::create_symlink("victim", folder.at("link"));
    EXPECT_TRUE(file->commit());
    EXPECT_EQ(folder.read("victim"), "precious");
    EXPECT_EQ(folder.read("below/target"), "ours");
    // In the target's own place: another file by then.
    auto other = begin(folder, "below/target", {.existing = Existing::replaced});
    ASSERT_TRUE(other);
    std::filesystem::remove(folder.at("below/target"));
    std::filesystem::create_symlink("../victim", folder.at("below/target"));
    EXPECT_FALSE(other->commit());
    EXPECT_EQ(folder.read("victim"), "precious");
    std::filesystem::create_symlink("nowhere", folder.at("dangling"));
    std::filesystem::create_symlink("circle", folder.at("circle"));
    EXPECT_EQ(put(folder, "dangling", "x", {.existing = Existing::replaced}), EEXIST);
    EXPECT_EQ(put(folder, "circle", "x", {.existing = Existing::replaced}), ELOOP);
}

TEST(NewFile, IsNotItsInput) {
    const Folder folder;
    folder.write("input", "data");
    std::filesystem::create_hard_link(folder.at("input"), folder.at("same"));
    const Open input(folder.at("input"));
    for (const char* const name : {"input", "same"})
        EXPECT_EQ(begin(folder, name, {.existing = Existing::replaced, .input = input.fd()}).code(),
                  Code::overlap);
    struct stat read {};
    ::fstat(input.fd(), &read);
    auto file = begin(folder, "input",
                      {.existing = Existing::replaced, .input = input.fd(), .only = &read});
    ASSERT_TRUE(file);
    EXPECT_EQ(file->others(), 1u);
    write(*file, "changed");
    EXPECT_TRUE(file->commit());
    EXPECT_EQ(folder.read("input") + folder.read("same"), "changeddata");
}

TEST(NewFile, NamesMayHaveAllBytesThatNamesCanHave) {
    const Folder folder;
    std::string many;
    for (int i = 0; i < 85; ++i) many += "\xe6\x97\xa5";  // 255 bytes, 85 letters
    for (const std::string& name :
         {std::string(255, 'a'), many, std::string("-x"), std::string("a\nb")}) {
        EXPECT_EQ(put(folder, name, "one"), 0);
        EXPECT_EQ(put(folder, name, "two", {.existing = Existing::replaced}), 0);
        EXPECT_EQ(folder.read(name), "two");
    }
    EXPECT_EQ(put(folder, std::string(256, 'a'), "x"), ENAMETOOLONG);
    EXPECT_EQ(folder.names().size(), 4u);
}

TEST(NewFile, ADescriptorOfOursByItsNameIsWrittenToAsItIs) {
    const Folder folder;
    folder.write("log", "before ");
    const Open log(folder.at("log"), O_WRONLY | O_APPEND);
    for (const char* const place : {"/proc/self/fd/", "/dev/fd/"}) {
        const std::string name = place + std::to_string(log.fd());
        if (::access(name.c_str(), F_OK) != 0) GTEST_SKIP() << "there is no " << place;
        std::filesystem::remove(folder.at("out"));
        std::filesystem::create_symlink(name, folder.at("out"));
        for (const std::string& path : {name, folder.at("out")})
            for (const auto existing : {Existing::refused, Existing::replaced}) {
                EXPECT_EQ(put(folder, path, "x", {.existing = existing}), EXDEV);
                auto file = begin(folder, path, {.existing = existing, .streams = true});
                ASSERT_TRUE(file) << file.error().message;
                EXPECT_TRUE(file->streams());
                write(*file, "+");
                EXPECT_TRUE(file->commit());
            }
        EXPECT_TRUE(std::filesystem::is_symlink(folder.at("out")));
    }
    EXPECT_EQ(folder.read("log"), "before ++++++++");
    const Open reading(folder.at("log"));
    EXPECT_EQ(put(folder, "/proc/self/fd/" + std::to_string(reading.fd()), "x",
                  {.existing = Existing::replaced, .streams = true}),
              EBADF);
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"log", "out"}));
}

TEST(NewFile, PipesAndDevicesAreWrittenToAsTheyAre) {
    const Folder folder;
    ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
    const Open reader(folder.at("pipe"), O_RDONLY | O_NONBLOCK);
    EXPECT_EQ(put(folder, "pipe", "x"), EXDEV);
    EXPECT_EQ(put(folder, "pipe", "x", {.streams = true}), 0);
    char byte = 0;
    EXPECT_EQ(::read(reader.fd(), &byte, 1), 1);
    EXPECT_EQ(put(folder, "/dev/null", "x", {.existing = Existing::replaced, .streams = true}), 0);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"pipe"});
}

TEST(NewFile, AChildOfForkNeitherCommitsNorDiscards) {
    const Folder folder;
    folder.write("file", "old");
    auto file = begin(folder, "file", {.existing = Existing::replaced});
    ASSERT_TRUE(file);
    write(*file, "new");
    test::expect_in_a_child([&] {
        if (file->commit().code() != Code::invalid_argument) return false;
        { const NewFile taken = std::move(*file); }
        return folder.read("file") == "old";
    });
    EXPECT_TRUE(file->commit());
    EXPECT_EQ(folder.read("file"), "new");
}

// Who was in the input's group, or in its list, is not who is in the caller's.
TEST(Rights, ANewFileLetsNobodyInWhoCouldNotReadItsInput) {
    const Folder folder;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    const auto mode_after = [&](mode_t mode) {
        folder.write("input", "data", mode);
        const Open input(folder.at("input"));
        EXPECT_EQ(put(folder, "out", "data", {.existing = Existing::whatever, .input = input.fd()}),
                  0);
        const mode_t found = folder.mode("out");
        std::filesystem::remove(folder.at("out"));
        return found;
    };
    for (const mode_t mode : {0600u, 0640u, 0644u, 0666u, 0604u, 0755u})
        EXPECT_EQ(mode_after(mode), mode & 0666 & ~mask) << mode;

    // Without leave to give the group: what its members may is what all may.
    if (::geteuid() == 0) {
        folder.write("input", "data", 0640);
        folder.write("excludes", "data", 0604);
        for (const char* const name : {"input", "excludes"})
            ASSERT_EQ(::chown(folder.at(name).c_str(), 65534, 4321), 0);
        std::filesystem::permissions(folder.at(""), std::filesystem::perms(0777));
        const Open input(folder.at("input")), excludes(folder.at("excludes"));
        test::expect_in_a_child([&] {
            if (::setgroups(0, nullptr) != 0 || ::setgid(100) != 0 || ::setuid(65534) != 0)
                return false;
            return put(folder, "a", "data", {.input = input.fd()}) == 0 &&
                   put(folder, "b", "data", {.input = excludes.fd()}) == 0 &&
                   folder.mode("a") == 0600 && folder.mode("b") == 0600;
        });
        // With it, the group stays, and so do its rights.
        EXPECT_EQ(put(folder, "c", "data", {.input = input.fd()}), 0);
        EXPECT_EQ(folder.look("c").st_gid, 4321u);
        EXPECT_EQ(folder.mode("c"), 0640 & ~mask);
    }
}

// Which the process may change between two files.
TEST(Rights, TheUmaskIsAskedForEachTime) {
    const Folder folder;
    const mode_t before = ::umask(022);
    for (const mode_t mask : {022u, 077u, 027u, 0u}) {
        ::umask(mask);
        EXPECT_EQ(put(folder, "new", "x", {.existing = Existing::whatever}), 0);
        EXPECT_EQ(folder.mode("new"), 0666 & ~mask);
    }
    ::umask(before);
}

TEST(Rights, TheBitsOfAListsMaskAreNotTheGroups) {
    using test::AclEntry;
    const Folder folder;
    folder.write("input", "data");
    if (!test::set_acl(folder.at("input"), {{AclEntry::user_itself, 6},
                                            {AclEntry::user, 6, 5555},
                                            {AclEntry::group_itself, 0},
                                            {AclEntry::mask, 6},
                                            {AclEntry::others, 0}}))
        GTEST_SKIP() << "this file system keeps no access control lists";
    ASSERT_EQ(folder.mode("input"), 0660u);
    const Open input(folder.at("input"));
    EXPECT_EQ(put(folder, "a", "data", {.input = input.fd()}), 0);
    EXPECT_EQ(folder.mode("a"), 0600u);
    // Whom the list shuts out, all others' bits must not let in.
    folder.write("input", "data");
    ASSERT_TRUE(test::set_acl(folder.at("input"), {{AclEntry::user_itself, 6},
                                                   {AclEntry::user, 0, 5555},
                                                   {AclEntry::group_itself, 4},
                                                   {AclEntry::mask, 4},
                                                   {AclEntry::others, 4}}));
    EXPECT_EQ(put(folder, "b", "data", {.input = input.fd()}), 0);
    EXPECT_EQ(folder.mode("b"), 0600u);
    // Nor does a list that the folder gives to what is made in it.
    ASSERT_TRUE(test::set_acl(folder.at(""),
                              {{AclEntry::user_itself, 6},
                               {AclEntry::user, 6, 5555},
                               {AclEntry::group_itself, 4},
                               {AclEntry::mask, 6},
                               {AclEntry::others, 0}},
                              "system.posix_acl_default"));
    folder.write("open", "data", 0640);
    ::removexattr(folder.at("open").c_str(), "system.posix_acl_access");
    ::chmod(folder.at("open").c_str(), 0640);
    const Open other(folder.at("open"));
    EXPECT_EQ(put(folder, "c", "data", {.input = other.fd()}), 0);
    EXPECT_EQ(put(folder, "d", "data", {.secret = true}), 0);
    for (const char* const name : {"c", "d"})
        EXPECT_LT(::getxattr(folder.at(name).c_str(), "system.posix_acl_access", nullptr, 0), 0)
            << name;
    EXPECT_EQ(folder.mode("d"), 0600u);
}

TEST(Rights, AFileKeepsThoseOfTheOneThatItReplaces) {
    const Folder folder;
    folder.write("file", "old", 0604);
    (void)::setxattr(folder.at("file").c_str(), "user.note", "May", 3, 0);
    const bool notes = ::getxattr(folder.at("file").c_str(), "user.note", nullptr, 0) == 3;
    folder.write("input", "data", 0600);
    const Open input(folder.at("input"));
    EXPECT_EQ(put(folder, "file", "new", {.existing = Existing::replaced, .input = input.fd()}), 0);
    EXPECT_EQ(folder.mode("file"), 0604u);
    if (notes) {
        EXPECT_EQ(::getxattr(folder.at("file").c_str(), "user.note", nullptr, 0), 3);
    }
    EXPECT_EQ(put(folder, "file", "key", {.existing = Existing::replaced, .secret = true}), 0);
    EXPECT_EQ(folder.mode("file"), 0600u);
}

TEST(Below, OpensFoldersByNamesAlone) {
    const Folder folder;
    std::filesystem::create_directories(folder.at("a/b"));
    std::filesystem::create_symlink("a", folder.at("link"));
    folder.write("a/file", "x");
    for (const char* const path : {"", "a", "a/b", "a//b/", "./a"}) {
        auto found = files::open_below(folder.fd(), path);
        ASSERT_TRUE(found) << path;
        ::close(*found);
    }
    for (const char* const path : {"link", "link/b", "..", "a/../..", "/", "a/file", "none"})
        EXPECT_FALSE(files::open_below(folder.fd(), path)) << path;
}

TEST(Locked, OneAfterAnotherNothingIsLost) {
    const Folder folder;
    folder.write("file", "");
    constexpr int kThreads = 4, kTurns = 25;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            for (int turn = 0; turn < kTurns; ++turn) {
                auto fd = files::open_locked(folder.fd(), "file");
                ASSERT_TRUE(fd) << fd.error().message;
                struct stat status {};
                ::fstat(*fd, &status);
                std::string text(static_cast<std::size_t>(status.st_size), '\0');
                ASSERT_EQ(::pread(*fd, text.data(), text.size(), 0), status.st_size);
                auto file =
                    NewFile::begin(folder.fd(), "file",
                                   {.existing = Existing::replaced, .input = *fd, .only = &status});
                ASSERT_TRUE(file) << file.error().message;
                write(*file, text + "x");
                const auto done = file->commit();
                ASSERT_TRUE(done) << done.error().message;
                ::close(*fd);
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(folder.read("file").size(), std::size_t{kThreads * kTurns});
    EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
}

}  // namespace
}  // namespace dael
