// SPDX-License-Identifier: Apache-2.0
// A random walk over a file that is put in its place: any options, on file systems that lack
// anything, with one disturbance at any call to the system: the call fails, the process ends there,
// or somebody else is at work in the folder just then. Afterwards the old file or the new one is
// there whole, or the somebody else's, which is newer; nobody reads more than before; nothing is
// left behind.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <daelstrom/files.hpp>

#include <array>
#include <optional>
#include <random>

#include "files/calls.hpp"
#include "files/folder.hpp"
#include "support/walks.hpp"

namespace dael {
namespace {

using files::Existing;
using test::Lacks;

enum class Disturbance { none, failure, end, newer, removed, edited, link };

struct Scene {
    std::optional<mode_t> old;  // the permissions of the file that is there
    Existing existing = Existing::refused;
    bool secret = false, sync = false, only = false;
    mode_t input = 0;  // permissions of what it is made of; 0: of nothing
    Lacks lacks;
    Disturbance disturbance = Disturbance::none;
    int at = 0;  // which call
    int error = 0;

    bool by_others() const { return disturbance >= Disturbance::newer; }
    // Whom the new file may let in.
    mode_t allowed() const {
        if (secret) return 0600;
        if (old && existing == Existing::replaced) return *old;
        return input != 0 ? input : 0666;
    }
};

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    bool one_in(unsigned n) { return engine_() % n == 0; }
    template <class T>
    T of(std::initializer_list<T> all) {
        return all.begin()[engine_() % all.size()];
    }
    int below(unsigned n) { return static_cast<int>(engine_() % n); }

  private:
    std::mt19937_64 engine_;
};

Scene any_scene(Random& random) {
    Scene scene;
    if (!random.one_in(3)) scene.old = random.of<mode_t>({0600, 0640, 0644, 0604});
    scene.existing =
        random.of({Existing::refused, Existing::replaced, Existing::replaced, Existing::whatever});
    scene.secret = random.one_in(4);
    scene.sync = random.one_in(2);
    scene.only = scene.old && scene.existing == Existing::replaced && random.one_in(2);
    scene.input = random.of<mode_t>({0, 0600, 0640, 0644});
    for (bool Lacks::*what : {&Lacks::unnamed, &Lacks::links, &Lacks::flags, &Lacks::rights,
                              &Lacks::owners, &Lacks::proc, &Lacks::attributes})
        scene.lacks.*what = random.one_in(5);
    scene.disturbance = static_cast<Disturbance>(random.below(7));
    scene.at = random.below(18);
    scene.error = random.of({EIO, ENOSPC, EACCES, EPERM, EINVAL, ENOSYS, EINTR, EEXIST, ENOENT});
    return scene;
}

class Play {
  public:
    Play(const test::Folder& folder, const Scene& scene) : folder_(folder), scene_(scene) {
        folder_.clear();
        folder_.write("victim", "precious", 0600);
        if (scene_.old) folder_.write("name", "old", *scene_.old);
        if (scene_.input != 0) folder_.write("input", "data", scene_.input);
    }

    void run() {
        const std::size_t descriptors = test::open_descriptors();
        if (scene_.disturbance == Disturbance::end)
            run_in_a_child();
        else
            act();
        EXPECT_EQ(test::open_descriptors(), descriptors);
        check();
    }

  private:
    void act() {
        const int input =
            scene_.input != 0 ? ::open(folder_.at("input").c_str(), O_RDONLY | O_CLOEXEC) : -1;
        const struct stat was = folder_.look("name");
        std::optional<test::Watched> watched;
        // Who is at work before it begins is not at work meanwhile.
        if (!scene_.by_others())
            watched.emplace([this](auto call, int number) { return before(call, number); },
                            scene_.lacks);
        {
            auto file = files::NewFile::begin(folder_.fd(), "name",
                                              {.existing = scene_.existing,
                                               .secret = scene_.secret,
                                               .sync = scene_.sync,
                                               .input = input,
                                               .only = scene_.only ? &was : nullptr});
            began_ = static_cast<bool>(file);
            if (scene_.by_others())
                watched.emplace([this](auto call, int number) { return before(call, number); },
                                scene_.lacks);
            if (file) {
                written_ = ::write(file->fd(), "new", 3) == 3;
                if (written_) committed_ = static_cast<bool>(file->commit());
            }
        }
        watched.reset();
        if (input >= 0) ::close(input);
    }

    void run_in_a_child() {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            act();
            ::_exit(testing::Test::HasFailure() ? 1 : 0);
        }
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status));
        ended_ = WEXITSTATUS(status) == kEnded;
        EXPECT_TRUE(ended_ || WEXITSTATUS(status) == 0);
        committed_ = folder_.read("name") == "new";
    }

    int before(std::string_view call, int number) {
        look_who_is_let_in();
        if (number != scene_.at) return 0;
        call_ = call;
        switch (scene_.disturbance) {
            case Disturbance::none:
                break;
            case Disturbance::failure:
                return scene_.error;
            case Disturbance::end:
                ::syscall(SYS_exit_group, kEnded);
                break;
            case Disturbance::newer:
                folder_.put("name", "newer", 0600);
                break;
            case Disturbance::removed:
                std::filesystem::remove(folder_.at("name"));
                break;
            case Disturbance::edited:
                if (std::filesystem::exists(folder_.at("name")))
                    folder_.write("name", "edited", 0600);
                break;
            case Disturbance::link:
                std::filesystem::create_symlink("victim", folder_.at(".other"));
                std::filesystem::rename(folder_.at(".other"), folder_.at("name"));
                break;
        }
        return 0;
    }

    // At every call: a name that leads to the new content lets in no more than it may.
    void look_who_is_let_in() const {
        for (const std::string& name : folder_.names())
            if (S_ISREG(folder_.look(name).st_mode) && folder_.read(name) == "new") {
                EXPECT_EQ(folder_.mode(name) & 077 & ~scene_.allowed(), 0u) << name;
            }
    }

    // Where nothing compares and replaces at one go, there is a gap of one call.
    bool in_the_gap() const { return scene_.lacks.flags && call_ == "renameat2"; }

    void check() const {
        EXPECT_EQ(folder_.read("victim"), "precious");
        EXPECT_EQ(folder_.mode("victim"), 0600u);
        look_who_is_let_in();
        const struct stat status = folder_.look("name");
        const std::string now = S_ISLNK(status.st_mode) ? "(link)" : folder_.read("name");
        const std::string old = scene_.old ? "old" : "(none)";
        const bool disturbed = scene_.by_others() && !call_.empty();
        if (!disturbed)
            check_alone(now, old);
        else if (!in_the_gap())
            check_with_others(now);
        check_hidden();
    }

    void check_alone(const std::string& now, const std::string& old) const {
        // A name that could only be taken by an empty file.
        if (ended_ && now.empty() && !scene_.old && scene_.lacks.flags && scene_.lacks.links)
            return;
        EXPECT_EQ(now, committed_ ? "new" : old);
        if (scene_.disturbance == Disturbance::none) {
            EXPECT_EQ(committed_, !scene_.old || scene_.existing != Existing::refused);
        }
    }

    void check_with_others(const std::string& now) const {
        const bool any = scene_.existing == Existing::whatever;
        const auto is_one_of = [&now](std::initializer_list<const char*> all) {
            return std::ranges::find(all, now) != all.end();
        };
        switch (scene_.disturbance) {
            case Disturbance::newer:
                EXPECT_TRUE(now == "newer" || (any && now == "new")) << now;
                break;
            case Disturbance::link:
                EXPECT_TRUE(now == "(link)" || (any && now == "new")) << now;
                break;
            case Disturbance::removed:
                EXPECT_TRUE(now == "(none)" || (!scene_.only && now == "new")) << now;
                break;
            default:
                if (scene_.only)
                    EXPECT_EQ(now, "edited");
                else
                    EXPECT_TRUE(is_one_of({"edited", "new", "old"})) << now;
        }
    }

    void check_hidden() const {
        std::size_t hidden = 0;
        for (const std::string& name : folder_.names()) hidden += name.starts_with(".daelstrom-");
        const bool named = scene_.lacks.unnamed || scene_.lacks.links || scene_.lacks.proc;
        const bool over = scene_.existing == Existing::whatever || scene_.old;
        if (ended_ && (named || over))
            EXPECT_LE(hidden, 1u);
        else if (scene_.disturbance == Disturbance::failure && call_ == "unlinkat")
            EXPECT_LE(hidden, 1u);
        else
            EXPECT_EQ(hidden, 0u);
    }

    static constexpr int kEnded = 99;
    const test::Folder& folder_;
    const Scene& scene_;
    std::string call_;  // at which the disturbance came
    bool began_ = false, written_ = false, committed_ = false, ended_ = false;
};

std::string text_of(const Scene& scene) {
    std::string text = "old " + (scene.old ? std::to_string(*scene.old) : "none") + ", existing " +
                       std::to_string(static_cast<int>(scene.existing)) +
                       (scene.secret ? ", secret" : "") + (scene.sync ? ", sync" : "") +
                       (scene.only ? ", only" : "") + ", input " + std::to_string(scene.input) +
                       ", disturbance " + std::to_string(static_cast<int>(scene.disturbance)) +
                       " at " + std::to_string(scene.at) + " error " + std::to_string(scene.error) +
                       ", lacks";
    const std::pair<const char*, bool> all[] = {
        {" unnamed", scene.lacks.unnamed},      {" links", scene.lacks.links},
        {" flags", scene.lacks.flags},          {" rights", scene.lacks.rights},
        {" owners", scene.lacks.owners},        {" proc", scene.lacks.proc},
        {" attributes", scene.lacks.attributes}};
    for (const auto& [name, is] : all)
        if (is) text += name;
    return text;
}

TEST(NewFile, AWalk) {
    const test::Folder folder;
    // The umask is the process's; what is made of nothing shows it.
    ::umask(022);
    for (test::Walks walks("files", 400); walks.next();) {
        SCOPED_TRACE(walks.text());
        Random random(walks.seed());
        for (int i = 0; i < 2; ++i) {
            const Scene scene = any_scene(random);
            SCOPED_TRACE(text_of(scene));
            Play(folder, scene).run();
            walks.step();
        }
        if (testing::Test::HasFailure()) break;
    }
}

}  // namespace
}  // namespace dael
