// SPDX-License-Identifier: Apache-2.0
// Folders that lack what others have, kernels and sandboxes without openat2(), and others who
// exchange folders and links underneath.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <daelstrom/files.hpp>

#include <atomic>
#include <thread>
#include <vector>

#include "files/calls.hpp"
#include "files/folder.hpp"
#include "support/child.hpp"

namespace dael {
namespace {

using files::Existing;
using test::Folder;
using test::Lacks;

Result<> put(const Folder& folder, const std::string& name, const std::string& text,
             const files::NewFileOptions& options) {
    DAEL_LET(file, files::NewFile::begin(folder.fd(), name, options));
    EXPECT_EQ(::write(file.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return file.commit();
}

TEST(Lacking, NewAndReplacedFilesComeToTheirPlaces) {
    const Folder folder;
    for (unsigned bits = 0; bits < 128; ++bits) {
        const Lacks lacks{(bits & 1) != 0,  (bits & 2) != 0,  (bits & 4) != 0, (bits & 8) != 0,
                          (bits & 16) != 0, (bits & 32) != 0, (bits & 64) != 0};
        SCOPED_TRACE(bits);
        folder.clear();
        const test::Watched watched(nullptr, lacks);
        const auto made = put(folder, "new", "one", {});
        EXPECT_TRUE(made) << made.error().message;
        EXPECT_FALSE(put(folder, "new", "two", {}));
        EXPECT_EQ(folder.read("new"), "one");
        EXPECT_TRUE(put(folder, "new", "two", {.existing = Existing::replaced}));
        EXPECT_EQ(folder.read("new"), "two");
        EXPECT_TRUE(put(folder, "key", "key", {.secret = true}));
        EXPECT_EQ(folder.mode("key"), 0600u);
        EXPECT_TRUE(put(folder, "key", "other", {.existing = Existing::whatever, .sync = true}));
        EXPECT_EQ(folder.names(), (std::vector<std::string>{"key", "new"}));
    }
}

TEST(Lacking, WhatCannotBeMadePrivateIsSaid) {
    const Folder folder;
    folder.write("old", "old", 0640);
    const test::Watched watched(
        [](std::string_view call, int) { return call == "fchmod" ? EPERM : 0; });
    auto file = files::NewFile::begin(folder.fd(), "old", {.existing = Existing::replaced});
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->commit());
    ASSERT_EQ(file->warnings().size(), 1u);
    EXPECT_NE(file->warnings()[0].find("could not get its permissions"), std::string::npos);
    EXPECT_EQ(folder.mode("old"), 0600u);
}

// Where the group cannot be given, its bits are not given to another.
TEST(Lacking, AnotherGroupGetsWhatEverybodyGets) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root has files of other groups here";
    const Folder folder;
    for (const auto& [mode, expected] :
         {std::pair<mode_t, mode_t>{0640, 0600}, {0644, 0644}, {0604, 0600}, {0666, 0644}}) {
        folder.clear();
        folder.write("input", "data", mode);
        folder.write("old", "old", mode);
        ASSERT_EQ(::chown(folder.at("input").c_str(), 0, 4321), 0);
        ASSERT_EQ(::chown(folder.at("old").c_str(), 0, 4321), 0);
        const int input = ::open(folder.at("input").c_str(), O_RDONLY | O_CLOEXEC);
        const test::Watched watched(nullptr, {.owners = true});
        EXPECT_TRUE(put(folder, "new", "data", {.input = input}));
        EXPECT_EQ(folder.mode("new") & ~0022u, expected & ~0022u) << std::oct << mode;
        EXPECT_TRUE(put(folder, "old", "new", {.existing = Existing::replaced}));
        EXPECT_EQ(folder.mode("old") & 077u & ~(mode & 07u) & ~((mode & 07u) << 3), 0u)
            << std::oct << mode;
        ::close(input);
    }
}

// As in a sandbox that knows the call by no name.
bool without_openat2() {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{4, filter};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Lacking, FoldersAreOpenedByStepsWithoutOpenat2) {
    const Folder folder;
    std::filesystem::create_directories(folder.at("a/b/c"));
    std::filesystem::create_symlink("b", folder.at("a/link"));
    test::expect_in_a_child([&] {
        if (!without_openat2()) return true;  // nor seccomp here
        for (const char* const path : {"", "a", "a/b/c", "./a//b/"}) {
            const auto found = files::open_below(folder.fd(), path);
            if (!found) return false;
            ::close(*found);
        }
        for (const char* const path : {"a/link", "a/link/c", "..", "a/../..", "none", "/"})
            if (files::open_below(folder.fd(), path)) return false;
        return true;
    });
}

TEST(Lacking, NobodyLeadsUsOutOfTheFolder) {
    const Folder folder, elsewhere;
    std::filesystem::create_directory(folder.at("sub"));
    std::filesystem::create_symlink(elsewhere.at(""), folder.at("link"));
    std::atomic<bool> done = false;
    std::thread mallory([&] {
        while (!done)
            ::syscall(SYS_renameat2, folder.fd(), "sub", folder.fd(), "link",
                      2 /* RENAME_EXCHANGE */);
    });
    int made = 0;
    for (int i = 0; i < 300; ++i) {
        const auto sub = files::open_below(folder.fd(), "sub");
        if (!sub) continue;
        auto file = files::NewFile::begin(*sub, "x" + std::to_string(i), {.follow = false});
        if (file && file->commit()) ++made;
        ::close(*sub);
    }
    done = true;
    mallory.join();
    EXPECT_GT(made, 0);
    EXPECT_TRUE(elsewhere.names().empty());
}

// Many who replace one file at once: of each generation one comes through.
TEST(Replacing, OfManyAtOnceOneComesThrough) {
    const Folder folder;
    folder.write("file", "0");
    std::atomic<int> came = 0, refused = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 60; ++i) {
                auto file =
                    files::NewFile::begin(folder.fd(), "file", {.existing = Existing::replaced});
                if (!file) {
                    ++refused;
                    continue;
                }
                const std::string text = std::to_string(t) + "." + std::to_string(i);
                EXPECT_EQ(::write(file->fd(), text.data(), text.size()),
                          static_cast<ssize_t>(text.size()));
                ++(file->commit() ? came : refused);
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(came, 0);
    EXPECT_EQ(came + refused, 240);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
}

}  // namespace
}  // namespace dael
