// SPDX-License-Identifier: Apache-2.0
// The calibration, which the library stores by itself: each call to the system on the way fails, as
// on a broken or a full disk, or is the process's last. The old one or the new one is there whole,
// and what failed is said.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <daelstrom/plan.hpp>

#include <cerrno>
#include <cstring>

#include "files/calls.hpp"
#include "files/folder.hpp"
#include "support/environment.hpp"

namespace dael {
namespace {

constexpr const char* kFile = "daelstrom/calibration.json";
constexpr int kEnded = 99;

Calibration made_on(const std::string& day) {
    return {describe_machine(), day, {}, {}};
}

class Steps {
  public:
    // What the file holds before and after.
    Steps(const test::Folder& folder, bool replaces) : folder_(folder), replaces_(replaces) {
        EXPECT_TRUE(store(made_on("the new day")));
        new_ = folder_.read(kFile);
        begin();
        old_ = folder_.read(kFile);
        EXPECT_NE(old_, new_);
    }

    // Whether there was a call with this number.
    bool fail(int number, int error) {
        SCOPED_TRACE("call " + std::to_string(number) + ", " + std::strerror(error));
        begin();
        std::string which;
        Result<std::string> stored = std::string();
        {
            const test::Watched watched([&](std::string_view call, int now) {
                if (now != number) return 0;
                which = call;
                return error;
            });
            stored = store(made_on("the new day"));
        }
        EXPECT_EQ(folder_.read(kFile), stored ? new_ : old_) << which;
        if (!stored) {
            EXPECT_EQ(stored.code(), Code::io);
            EXPECT_NE(stored.error().message.find(std::strerror(error)), std::string::npos)
                << stored.error().message;
            EXPECT_NE(stored.error().message.find("calibration.json"), std::string::npos)
                << stored.error().message;
        }
        if (which == "write" || which == "renameat2") {
            EXPECT_FALSE(stored) << which;
        }
        EXPECT_LE(hidden(), which == "unlinkat" ? 1u : 0u) << which;
        return !which.empty();
    }

    bool end_at(int number) {
        SCOPED_TRACE("ends at call " + std::to_string(number));
        begin();
        const pid_t child = ::fork();
        if (child == 0) {
            const test::Watched watched([number](std::string_view, int now) {
                if (now == number) ::syscall(SYS_exit_group, kEnded);
                return 0;
            });
            ::_exit(store(made_on("the new day")) ? 0 : 1);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == kEnded;
        EXPECT_TRUE(ended || status == 0);
        const std::string now = folder_.read(kFile);
        EXPECT_TRUE(now == new_ || (ended && now == old_)) << now;
        EXPECT_LE(hidden(), ended ? 1u : 0u);
        return ended;
    }

  private:
    void begin() {
        folder_.clear();
        if (replaces_) {
            ASSERT_TRUE(store(made_on("the old day")));
        }
    }
    std::size_t hidden() const {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.at("daelstrom")))
            count += entry.path().filename().string().starts_with(".daelstrom-");
        return count;
    }

    const test::Folder& folder_;
    const bool replaces_;
    std::string old_, new_;
};

TEST(CalibrationSteps, TheOldOneOrTheNewOneIsThereWhole) {
    const test::Folder folder;
    const test::Environment cache("XDG_CACHE_HOME", folder.at("").c_str());
    for (const bool replaces : {false, true}) {
        Steps steps(folder, replaces);
        for (const int error : {EIO, ENOSPC}) {
            int number = 0;
            while (steps.fail(number, error)) ++number;
            EXPECT_GE(number, 5);  // it is opened, written, synced and named
        }
        int number = 0;
        while (steps.end_at(number)) ++number;
        EXPECT_GE(number, 5);
    }
}

}  // namespace
}  // namespace dael
